// Package script is Lua 5.1 as scripts of Redis have it: the language, its
// libraries, the libraries that Redis adds (bit, cjson, cmsgpack, struct), and
// read-only globals. It knows nothing of Redis's commands: the owner of a [State]
// provides the table redis.
//
// # What runs
//
// The machine is that of github.com/yuin/gopher-lua. Its compiler and its libraries
// are not used, because scripts of Redis depend on points in which they differ from
// Lua: it parses "010" as 8 and writes 0.1+0.2 with 17 digits, local f = function()
// … end is visible within itself, error messages and their positions are its own,
// patterns and string.format differ in details, and os, io and the like would have
// to be removed. So package compiler compiles the source, and the libraries are our
// own. Where the machine itself differs, compiled code calls Go functions of this package
// in place of instructions (compiler.Intrinsics). errors.go says messages of the
// machine in Lua's words; unwind.go does what an error does to captured variables.
//
// The alternative is a machine of our own: it could be faster (that of
// gopher-lua takes some 5 to 7 times as long as Lua for arithmetic, and about as
// long as Lua for the usual work of scripts, calling commands and joining strings),
// but all of it would have to be verified.
//
// # What remains different
//
//   - An array extends to its highest index: # of a table with holes may return
//     another border than Lua's, and a single element at index 50 000 000 takes the
//     memory of all below it.
//   - next visits the keys outside of the array in insertion order; in Lua the
//     order is unspecified. So cjson.encode gives another order.
//   - # calls __len of a table, and next does not detect a key that was never in
//     the table.
//   - A computed zero has no sign.
//   - table.sort leaves elements that are equal, by the order it is given, in another
//     order, and never raises "invalid order function for sorting". After an error in
//     the function the table is as it was.
//   - collectgarbage supports "count" only.
//   - The remainder of division by a constant whole number is exact, also for numbers
//     above 2^53, where Lua's is not.
//   - A value that a generic for cannot call has no name in the error; Lua names what was
//     in one of its registers before the loop.
//   - Of a source that has a syntax error after a function that needs too many registers
//     or upvalues, the syntax error is reported.
//   - A function has at most 2^20 instructions. Concatenation takes a register more than
//     in Lua, so expressions of about 250 operands may be too complex; and since some
//     operations take another number of instructions than in Lua, so may a loop of more
//     than 2^17 be too long.
//
// # Isolation
//
// Scripts reach their globals and nothing else. There is no io, no debug, no
// require, no load of compiled code; of os there is only clock. Globals and
// libraries are read through empty proxy tables (see guard in state.go): these
// contain nothing to change, and functions that write to tables refuse them. So the code of
// a script, other than that of a library of functions, contains what it reads of them.
// Gopher-lua's call stack is bounded as Lua's is, strings to 512 MB; each
// millisecond [State.Interrupt] decides whether the script may continue, and an
// error from it cannot be caught.
//
// # Sources
//
// The libraries are written from documentation: the manual of Lua 5.1, for patterns,
// string, table and the globals; the manuals of lua-cjson by Mark Pulford and of struct
// by Roberto Ierusalimschy; the documentation of Bit Operations by Mike Pall; and the
// specification of MessagePack. Where these leave something open, the results and the
// errors are those of Redis, which tests compare.
package script
