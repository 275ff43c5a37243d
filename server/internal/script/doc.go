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
// to be removed. So a source is compiled here, and the libraries are our own. Where the
// machine itself differs, compiled code calls Go functions in place of instructions:
// concatenation, the remainder, and loops over numbers that are not constants
// ([intrinsics] in resolve.go).
//
// # The compiler
//
// It is written from the reference manual of Lua 5.1, and its messages from what
// redis-server replies. Each pass is a file or two:
//
//	scan.go               bytes to tokens
//	parse.go, express.go  tokens to a tree (tree.go): recursive descent, precedence climbing
//	resolve.go            names to registers, upvalues and globals; which scopes are captured
//	generate.go           statements to instructions
//	value.go              expressions to instructions: into a register, or an operand
//	branch.go             conditions: where to continue, and with which value
//	emit.go               instructions, labels, constants, gopher-lua's prototypes
//	name.go               a table from instructions to the names of their operands
//	errors.go             messages of the machine in Lua's words, with these names
//	unwind.go             what an error does to captured variables
//
// The tree exists because the parser cannot know what follows: whether a variable is
// captured later, an operand is the first of a concatenation, or a call the last of a
// list. Chains of operators, suffixes and clauses are lists in it, and each other nesting
// is at most 200 deep, so no pass recurses further than that. All passes take time in
// proportion to the source, and can be interrupted at each token and instruction. The
// tree and the buffers are used again for the next source: a compilation allocates
// little more than its result.
//
// Registers are a stack. Jumps lead to labels, which the last step replaces by distances;
// jumps to jumps lead to the last destination, and unreachable ones are not emitted.
//
// One alternative is to keep gopher-lua's compiler and to change its syntax tree;
// but most of the differences are in that compiler, and its error messages are
// unlike Lua's. Another is a machine of our own: it could be faster (that of
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
// contain nothing to change, and functions that write to tables refuse them.
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
// errors are those of Redis, which tests compare. The compiler is written from the
// grammar and the descriptions in the manual of Lua 5.1.
package script
