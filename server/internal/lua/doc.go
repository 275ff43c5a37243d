// Package lua is a machine for Lua 5.1: values, tables, functions and coroutines, and a loop
// that executes prototypes. It has no libraries and no compiler; package compiler makes its
// prototypes, and functions of Go do the rest.
//
// A frame is a call of a function. Its registers are a part of the coroutine's stack:
//
//	            ret                 base                     top
//	             |                   |                        |
//	… caller … | function | arguments | parameters  locals  temporaries | callee …
//	                         that are "..."
//
// The results replace the function and what follows, where the caller has its next free
// register. A function of Go has its arguments in place of registers.
//
// Calls between functions of Lua add frames, and the loop goes on; coroutine.resume,
// metamethods and functions that functions of Go call are loops within the loop, of which there are at
// most 200. Errors are returned, from the place where they are raised to that which catches them.
//
// Memory is the collector's of Go. Values are 16 bytes, and numbers and booleans need no object.
// What a script allocates is counted, see [Machine.Allocated], but what it frees is not.
package lua
