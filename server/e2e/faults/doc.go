// Package faults has tests of a server under hostile clients and lack of resources.
// They build the program zsetd, start it as a process of its own, and observe it from
// outside: its current and peak memory, its CPU time, its open descriptors, its number
// of goroutines, and whether it still stores data. They run on Linux only.
//
// harness_test.go is the test harness. Where redis-server is installed
// (version 7.0), many of them give it the same load and log its figures beside ours:
//
//	go test ./faults -v -run Malformed
//
// A busy machine can break these tests, so go test ./... leaves them out: make faults
// runs them all, and -run those that it names. Tests in other packages have no
// ceilings in time or memory, but for those named TestMeasure…, which make faults
// runs, too (the environment variable ZSETD_MEASURE is set then).
//
// The tests, and what each of them allows:
//
//	TestHarness       that the harness sees memory, CPU, descriptors and goroutines come and go
//	TestProcess       the first reply within 50 ms; 20 MB and 1 ‰ of a CPU when idle; 22 MB when 30 MB of data are gone
//	TestStop          SIGTERM while clients write: the end within 5 s
//	TestFileStaysSmall 3 MB of data that are changed 1.8 million times: a file of 40 MB, 16 MB more memory
//	TestFileCutShort  the file is truncated while clients write, then two SIGTERM and a SIGINT: nothing is lost
//	TestExpiredOnTime the event of a key that expires within 50 ms
//	TestMemoryPerKey  bytes of the heap for each key of several kinds
//	TestMalformed     50 MB of malformed input: a peak of 64 MB, descriptors and goroutines as before within 2 s
//	TestUnauthenticated  before AUTH, each of: a gigabyte without a newline, absurd counts and lengths, half commands
//	                  that are held open, one byte at a time, unread replies: 32 MB, 0.5 s of CPU
//	TestPatterns      patterns that take long to match, wherever a client may give one: 10 ms of CPU
//	TestHeavy         a sorted set of a million is removed, in several ways: no other client waits for 50 ms
//	TestManyArguments  every command with 20 000 arguments: others wait for 50 ms for each 10 000
//	TestPipe          300 MB of SET onto 1000 keys as fast as it goes: the data and 32 MB
//	TestLargeValue    SET and GET of 256 MB: 2.2 times as much at most; 64 MB again when it is deleted, or its client leaves
//	TestDeadWaiters   500 clients that wait in BZPOPMIN die: noticed within 500 ms, no element is lost, nor comes twice
//	TestClosedWaiters 500 clients wait and close, then 500 elements come: none is lost
//	TestReconnectWhenFull  300 times close and connect at maxclients: none is refused
//	TestFewDescriptors 64 descriptors, 120 clients: 32 are served, the others receive an error; 0.1 s of CPU in 3 s; a second until the next
//	TestNoDescriptors none left for three listeners: each client of any of them is served, 10 lines in the log
//	TestIdleClients   10 000 idle clients: 10 KB each, PING under 1 ms, descriptors, goroutines and memory as before
//	TestStreams       1500 viewers of the console: 10 KB each, also with a channel each, the limit of their address, descriptors and goroutines as before
//	TestSubscriberThatNeverReads    publishing 200 000 messages of 1 KB: 99th percentile under 5 ms, under 100 MB in all
//	TestClientThatNeverReads        40 000 GETs of 60 KB: under 64 MB more, then disconnected
//	TestMonitorThatNeverReads       60 MB of lines: under 64 MB more, then disconnected
//	TestClientsThatTakeTheirTime    a client that reads slowly, pauses or half-closes receives all replies
//	TestHostileQueries  100 000 live queries whose subscriber reads nothing, a million members with each change, a script that loops: PING within 10 ms and twice
//	                  the time without them, 99th percentile; nothing is left, nor 64 MB
//	TestManyClientsThatNeverRead    maxmemory-clients: 1.2 GB of replies take at most four times 40 MB
//
// Memory is that of the process (VmRSS, VmHWM of /proc/PID/status), so it counts
// garbage that Go has not collected. CPU is utime and stime, which other programs
// on the same machine do not affect. They affect times, so a test that limits one
// measures beside it how late a goroutine of its own wakes up (probe), and allows
// that much more.
//
// A server is alive if it answers SET and GET (process.alive); PING does not prove it:
// a server whose lock is never released still answers PING.
package faults
