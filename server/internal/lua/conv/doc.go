// Package conv converts numbers and strings as Lua 5.1 does on amd64: strings to
// numbers with C's strtod, numbers to strings with %.14g, and numbers to C's integers.
//
// Its functions have no state and may be called concurrently. Each takes time in
// proportion to the string.
package conv
