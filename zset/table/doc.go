// Package table is a hash table from strings to values that is cloned in constant
// time, can be scanned with a stateless cursor while it changes, and picks random
// entries uniformly.
//
// A Go map does none of the three: copying it takes time in proportion, its order
// cannot be resumed, and ranging over it favours some entries.
//
// Any number of goroutines may read a table that nobody writes. Clone counts as a
// write of the original; afterwards each of the two may be read or written without
// regard to the other. A Table must not be copied other than by Clone.
package table
