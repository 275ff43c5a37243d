// Package script is Lua 5.1 as scripts of Redis have it: the language, its
// libraries, the libraries that Redis adds (bit, cjson, cmsgpack, struct), and
// read-only globals. It knows nothing of Redis's commands: the owner of a [State]
// provides the table redis.
//
// # What runs
//
// Package lua is the machine, package compiler compiles the source, and the libraries are
// here. All are our own, because scripts of Redis depend on points in which other
// implementations for Go differ from Lua 5.1: how numbers are read and written, messages of
// errors and their lines, the order in which pairs and cjson.encode visit a table, also the globals and
// libraries, the border that # finds, patterns and string.format; and on what Redis has removed or added.
//
// # What remains different
//
//   - collectgarbage supports "count" only.
//   - A value that a generic for cannot call has no name in the error; Lua names what was
//     in one of its registers before the loop.
//   - Of a source that has a syntax error after a function that needs too many registers
//     or upvalues, the syntax error is reported.
//   - A function has at most 2^20 instructions. Since some operations take another number of
//     instructions and registers than in Lua, a loop of more than 2^17 instructions may be too
//     long, or an expression of about 250 operands too complex, for one of them only.
//   - The last of 17 digits of x^y differs for a few operands, where the C library rounds to the
//     other side; that of math.sin, cos and tan, and of large arguments the 14th, too.
//   - __redis__err__handler names another position where a script calls it as a tail call, or from code
//     of loadstring.
//   - A recursion of 16 381 calls is too deep; in Lua up to 20 000 are allowed after a first
//     one was too deep.
//
// # Isolation
//
// Scripts reach their globals and nothing else. There is no io, no debug, no
// require, no load of compiled code; of os there is only clock. Globals and
// libraries are read-only, so the code of a script, other than that of a library of functions,
// contains what it reads of them. Calls are as deep as in Lua, strings have 512 MB; each
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
