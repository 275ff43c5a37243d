// Package differential contains no code of the program. Its tests compare what scripts reply
// in zsetd with a real Redis or Valkey: random programs of Lua, programs at the limits of the
// language, and random calls of the libraries, with the messages and lines of their errors.
// make differential makes a long run.
package differential
