// Package script is Lua 5.1 as scripts of Redis have it: the language, its
// libraries, the libraries that Redis adds (bit, cjson, cmsgpack, struct), and
// globals that nobody can change. It knows nothing of Redis's commands: whoever
// has a [State] gives it the table redis.
//
// # What runs
//
// The machine is that of github.com/yuin/gopher-lua. Its compiler and its
// libraries are not used, for scripts of Redis meet their differences from Lua:
// it reads "010" as 8 and writes 0.1+0.2 with 17 digits, local f = function() …
// end is visible within itself, messages of errors and their positions are its
// own, patterns and string.format differ in details, and os, io and the like have
// to be taken out again. So a source is compiled here (lex.go, parse.go, code.go:
// the compiler of Lua 5.1 that makes instructions for gopher-lua's machine), and
// the libraries are ours. Where the machine itself differs, compiled code calls
// functions of ours in place of instructions: concatenation, the remainder, and
// loops over numbers that are not constants ([intrinsics] in code.go). Errors that
// the machine raises get Lua's words in errors.go, with the names of variables.
//
// An alternative was to keep gopher-lua's compiler and to change its syntax tree;
// but it is where most of the differences are, and what it says of a mistake is
// nothing like Lua's. Another was a machine of our own: it could be faster (that
// of gopher-lua takes some 5 to 7 times as long as Lua for arithmetic, and about
// as long as Lua for what scripts mostly do, calling commands and joining
// strings), but it would be all ours to get right.
//
// # What remains different
//
//   - An array goes up to its highest index: # of a table with holes may tell
//     another border than Lua's, and a single element at index 50 000 000 takes the
//     memory of all below it.
//   - The order in which next goes over the keys that are no array is that of
//     their insertion; in Lua it is any. So cjson.encode gives another order.
//   - # asks a table for __len, and next does not notice a key that was never in
//     the table.
//   - Zero has no sign once it is computed.
//   - collectgarbage has nothing to do but "count".
//
// # No way out
//
// Scripts reach what is in their globals and nothing else. There is no io, no
// debug, no require, no load of compiled code; of os there is only clock. Globals
// and libraries are read through empty tables that stand for them (see guard in
// state.go): there is nothing to change in those, and functions that write to
// tables refuse them. Gopher-lua's stack of calls is bounded as Lua's is, strings
// to 512 MB; each millisecond the caller is asked whether the script may go on
// ([State.Interrupt]), and an error from there cannot be caught.
//
// The compiler, the patterns and the libraries follow those of Lua 5.1, which are
// Copyright (C) 1994-2012 Lua.org, PUC-Rio, and of lua-cjson, Copyright (C)
// 2010-2012 Mark Pulford, both under the MIT license; struct is Copyright (C)
// 2010-2018 Lua.org, PUC-Rio, cmsgpack Copyright (C) 2012 Salvatore Sanfilippo,
// bit Copyright (C) 2008-2012 Mike Pall, under the same.
package script
