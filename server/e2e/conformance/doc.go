//go:build unix

// Command conformance runs Redis's own test suite against zsetd and against a real
// redis-server, file by file, and prints the results side by side.
//
//	conformance -suite DIR -zsetd BINARY [flags] [file ...]
//
// DIR is the source of Redis 7.0; only a copy of its folder tests is used. Most
// files run in "external" mode: the program starts the server and the suite
// connects to it. Files that have to start servers themselves run in "spawn" mode,
// with the binary in place of src/redis-server.
//
// Files run in parallel, because they mostly wait. A file has a time limit. A test
// that hangs or ends the server is skipped, and the file runs again, so that the
// following tests count. A file with unexplained failures runs once more at the
// end, alone; a test that passes in one of the runs counts, because many tests
// depend on the speed of the machine.
//
// The copy of the suite has two changes, for both servers: it accepts short lists
// that are quicklists, and after a command without a wait it waits a moment before
// it sends the next command on another connection.
//
// Tests that the real server passes count. The file exceptions.txt lists those that
// zsetd need not pass, each with the reason. The exit status is 1 if any other test
// fails, or if fewer tests pass in total than leastPassed, so the score cannot
// fall. The program reports exceptions that are no longer necessary.
package main
