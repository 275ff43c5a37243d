//go:build unix

// Command conformance runs the test suite of Redis or Valkey against zsetd and against the
// server that the suite is of, file by file, and prints the results side by side.
//
//	conformance -suite DIR -zsetd BINARY [flags] [file ...]
//
// DIR is the source of Redis 8.6 or 7.0, or of Valkey 9.1: edition.go has the files of each
// that are run. Only a copy of its folder tests is used, and its programs. Most
// files run in "external" mode: the program starts the server and the suite
// connects to it. Files that have to start servers themselves run in "spawn" mode,
// with the binary in place of src/redis-server: those of replication, and those with
// tests that start a replica. The files of Sentinel have a framework of their own: five
// Sentinels, which are always those of the suite, and five servers. Valkey's file of scripts
// runs twice: with the table redis of its API, and with the table server. zsetd runs with the
// parameter dialect of the server that the suite is of.
//
// The score of the real server is kept in a folder (-cache), by a checksum of the suite.
//
// The files integration/replication and integration/replication-psync take five to
// fourteen minutes each, in which they mostly wait. They run only if they are named, with a
// longer limit:
//
//	make conformance FILES='integration/replication integration/replication-psync'
//
// Files run in parallel, because they mostly wait. A file has a time limit. A test
// that hangs or ends the server is skipped, and the file runs again, so that the
// following tests count. A file with unexplained failures runs once more at the
// end, alone; a test that passes in one of the runs counts, because many tests
// depend on the speed of the machine.
//
// The copy of the suite has changes, for both servers: it accepts short lists that are
// listpacks; after a command without a wait it waits a moment before it sends the next
// command on another connection; the framework of Sentinel takes its ports and the
// tests to skip from outside; and tests with replicas that leave during a transfer look for
// what becomes of the others, and not in the log for a pipe.
//
// The files psync2 draw the order of their tests, and how often each runs. Each test
// counts once, without the numbers of servers, cycles and writes in its name.
//
// Tests that the real server passes count. The file exceptions.txt lists those that
// zsetd need not pass, by suite, each with the reason. The exit status is 1 if any other test
// fails, or if fewer tests pass in total than the least of the suite, so the score cannot
// fall. The program reports exceptions that are no longer necessary.
package main
