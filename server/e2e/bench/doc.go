//go:build linux

// Command bench measures zsetd beside redis-server, and beside valkey-server
// where there is one, on the same work and in the same run.
//
//	bench -zsetd BINARY [flags]
//	bench -zsetd BINARY -scale [flags]
//
// It starts the servers itself, with nothing kept on disk, and gives each work
// to one after the other, A B A B, so that what else the machine does falls on
// all alike; what is told is the median of the rounds. Read works.go for what
// the works are, and begin with main.go.
//
// # What is measured
//
// The CPU per operation is what the server's process used (utime and stime of
// /proc/PID/stat) while the load ran, divided by the operations in that time. It
// is steady where throughput is not: the load comes from the same machine, and
// the two share its cores. A command is an operation; of pub/sub with
// subscribers, a delivery is.
//
// Latency is the time from writing a request to having read all of its replies,
// and a request is what is sent at once: with P16, sixteen commands. At full
// load it says how long the queue is, so some works run at half load as well: at
// half of the throughput that redis-server had on that work, for all servers.
// Each client then has its own timetable, and when a reply comes so late that
// the next request should be under way, the wait counts for that one, too.
//
// Memory is the resident set of a fresh server that was given one data set,
// after a pause in which what garbage collection leaves can be given back; and
// again when every member or key was replaced by another of its size ten times,
// or as often as it went in a minute. The peak is the highest of all the time.
//
// At the end the run is judged (verdict.go): whether it reached what is aimed at.
//
// At P1 the CPU per operation depends on how many requests wait when the server
// looks, and so on how fast the clients are. Those here and redis-benchmark gave
// the same figures for redis-server when they were compared, up to what they
// differ by from round to round; so do not compare figures of different runs.
//
// # How cost grows
//
// With -scale the program measures something else (scale.go): CPU per operation
// and memory while one quantity grows, be it members in a set, sets, connections,
// commands in a request, or cores. Each value gets fresh servers, and rounds that
// are shorter. It takes less than ten minutes, and 3 GB of memory unless -members
// says less than 7; RESULTS.md has its tables and its plot (scaleplot.go).
//
// # The parts
//
// A request is written as a template (template.go), filled in by each client
// with its own random numbers; replies are only counted (reply.go), but an error
// ends the run. The clients are goroutines with a connection each (load.go);
// latencies go into a histogram with buckets of 1.6 % (histogram.go). The table
// is printed, written as Markdown (report.go), and drawn (plot.go).
package main
