//go:build linux

// Command bench compares the performance of zsetd with that of other servers of the
// protocol, under the same workloads in the same run. The first is the reference: make bench
// takes Redis 8.6 for it, which .ci/judges builds with its own flags and allocator, and also
// measures redis-server and, if it is installed, valkey-server, but not their starts.
//
//	bench -zsetd BINARY [flags]
//	bench -zsetd BINARY -scale [flags]
//	bench -profile FILE [flags]
//
// It starts the servers without persistence and applies each workload to one after
// the other (A B A B), so that other load on the machine affects all of them alike.
// Results are medians over the rounds. works.go has the workloads; main.go is the
// entry point.
//
// # What is measured
//
// CPU per operation is the CPU time of the server's process (utime and stime of
// /proc/PID/stat) during the load, divided by the number of operations. It is more
// stable than throughput, because clients and server share the cores of one
// machine. An operation is a command, or in pub/sub with subscribers a delivery.
//
// Latency is the time from writing a request to reading the last of its replies. A
// request is everything that is sent at once: with P16, sixteen commands. At full
// load latency measures queueing, so some workloads also run at half load: half of
// the throughput of the reference for that workload, for all servers. At half load
// each client follows a schedule, and a late reply adds to the latency of the
// following requests (no coordinated omission).
//
// Memory is the resident set of a fresh server with one data set, after a pause for
// garbage collection; and again after every member or key was replaced ten times by
// one of the same size, or as often as possible in a minute. The peak is the
// maximum over the whole time.
//
// Scripts (scripts.go): EVAL of a new script includes its compilation. EVALSHA, BullMQ runs the script with which
// BullMQ adds a job, from its package as .ci/clients installs it; without it the work is left out.
//
// The floor (floor.go) is a server that only replies to PING: an epoll loop with a read and a
// write for each request.
//
// Replication (replication.go) has a primary and a replica of the same kind: the time of a
// full synchronization, the longest time in which the primary answers a PING meanwhile,
// its CPU time with that of a forked process, and its CPU per operation of a workload
// while the replica follows.
//
// Durable writes (durable.go) run on servers with appendonly yes and appendfsync always. The
// flushes of the disk during a round are those of all processes.
//
// A start (start.go) is that of a server with a data set in its file: the time and the CPU
// time until the first reply that is not -LOADING, the maximum of the resident set by then, the
// resident set then, and after a pause. The rounds alternate, so the files are in the page cache.
//
// The console (console.go) is measured with WORK="console" only, or "console viewers": works on servers without
// it, with it, and with one viewer of its overview, and 1 000 viewers of a channel beside 300
// subscribers, at 1 000 messages a second.
//
// Live queries (live.go) are measured with WORK=live only. Viewers keep replies up to date: those of
// zsetd subscribe to queries, those of the reference to events of the key, and read after each event
// that comes when the reply to the read before has come. Where everybody waits for one change, the
// next follows when all have seen it. Of 100 000 ranks a client compares each with the list when
// the changes have ended.
//
// At the end verdict.go compares the run with the targets.
//
// At P1 the CPU per operation depends on the number of requests that wait when the
// server polls, and so on the speed of the clients. These clients and
// redis-benchmark give the same figures for Redis within the variation
// between rounds. Do not compare figures of different runs.
//
// # How cost grows
//
// With -scale the program measures CPU per operation and memory as a function of
// one quantity (scale.go): members of a set, sets, connections, commands in a
// request, clients that wait for the disk, strings in the file at a start, or cores. Each value
// gets fresh servers and shorter rounds. This takes ten minutes, and 6 GB of memory unless
// -members is less than ten million.
// RESULTS.md has the tables and the plot (scaleplot.go).
//
// # The compiler's profile
//
// With -profile the program compares nothing, and writes the CPU profile of zsetd under the
// works (profile.go): make profile makes cmd/zsetd/default.pgo of it. Measured with bench
// itself, with and without the profile in turn (23 works, the geometric mean of two runs with
// exchanged places): 3 % less CPU per operation, of scripts that call commands 14 %. A first
// build takes twice as long with it.
//
// # Files
//
// A request is a template (template.go) that each client fills with random numbers.
// Replies are counted, not decoded (reply.go), but an error ends the run. A client
// is a goroutine with a connection (load.go). Latencies go into a histogram with
// buckets of 1.6 % (histogram.go). The results are printed, written as Markdown
// (report.go), and drawn (plot.go, scaleplot.go, both by svg.go).
package main
