//go:build unix

// Command conformance runs Redis's own test suite against zsetd and against a
// real redis-server, file by file, and prints one beside the other.
//
//	conformance -suite DIR -zsetd BINARY [flags] [file ...]
//
// DIR is the source of Redis 7.0, of which only the folder tests is used, and
// that from a copy. Most files run in "external" mode: the server is started
// here and the suite connects to it. Those that must start servers themselves
// run in "spawn" mode, with the binary in the place of src/redis-server.
//
// Files run side by side, for most of their time is spent waiting. A file has a
// time limit; a test that hangs, or after which the server is gone, is left out
// and the file run again, so that what comes after it counts. A file with failures
// that nothing explains is run once more when all others are done, alone: a test
// counts that passes in one of the runs, for many of them depend on the speed of
// the machine.
//
// The copy of the suite is changed in two places, for both servers: it does not
// mind whether short lists are quicklists, and it lets a command that it does not
// wait for arrive before it sends the next one on another connection.
//
// What counts are the tests that the real server passes. The file
// exceptions.txt names those that zsetd need not pass, each with its reason. The
// exit status is 1 if another one fails, or if fewer pass in all than did: so the
// score cannot fall. Exceptions that are no longer needed are told.
package main
