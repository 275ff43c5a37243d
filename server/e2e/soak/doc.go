//go:build linux

// Command soak keeps a server busy for an hour with everything that it can do, and
// compares what it replies and holds with a model, on Linux:
//
//	make soak                      # an hour; TIME=30s is enough to see that all is well
//	make soak TIME=3m RACE=1       # with the race detector in the server
//	make soak SEED=17 RATE=3000    # draw what that run has drawn; at most so many commands a second
//
// # Two servers
//
// Both are processes of their own, built from this tree, and work at the same time.
// The server of the stage "steady" runs the whole time; every few minutes all
// workers pause, garbage is collected, the model is compared with the data, and the
// use of resources is sampled: heap, goroutines, descriptors, memory. In the end the
// second half of these samples is compared with the first, and when all clients have
// gone and FLUSHALL has deleted all, heap, goroutines and descriptors must be what
// they were just after the start. The table that is printed has these samples.
//
// The server of the stage "crash" is killed repeatedly, or receives a signal to stop, and starts
// with its file: with appendfsync always, where nothing that was acknowledged may be
// lost, or as usual, where the last second may be. How much it was, at most, is printed.
//
// # Who works
//
// An owner (owner.go, ops.go) has keys of all types that no other worker touches,
// some with deadlines, and so knows every reply and the whole of its data. It sends
// commands alone, in pipelines, in transactions, from scripts and functions, over
// RESP2 and RESP3. When its connection breaks it has to be found out which of the
// commands that were on their way were done: those before one moment, and none
// after. After a crash that must be so for all that the owners have, and for all
// owners it must be the same moment: the file has the data of one instant.
//
// Others share keys (shared.go, recipes.go, listeners.go), and check what must always
// hold: of counters what was acknowledged, and at most what is in doubt besides; of
// accounts the sum, through WATCH, MULTI and scripts; of queues that each element is
// taken once, with the commands that block; of claims that no two have one at the same
// time; of buckets that the replies to ZADDEX INCR are 1, 2, 3, …; of waiting lists that
// no member moves back; of streams with groups that each entry is acknowledged once; of
// messages that all come, in order; of CLIENT TRACKING that each change of a cached
// key is notified; of keys that expire that they do so on time, once, with an
// event; of a cache, which alone has keys that may be evicted, that what is there is
// what was set last. Which of them does without the stage "crash" is said in stage.cast.
//
// Visitors do what is rude: they die while they wait, send half a command, read nothing,
// close one side. The operator (chaos.go) changes settings, harmless and limiting ones,
// kills clients, pauses them, saves, reloads, runs scripts that take long, looks at
// everything there is to look at.
//
// # When it fails
//
// it prints the seed, the worker that has found the fault, the last commands of this
// worker and of the operator, and the difference. The server's log and file are
// kept. A seed fixes the random choices, not the interleaving of the workers, so the
// same fault may not show at once; -stages, -only, -calm and
// -deeds leave out what it does not need.
//
// Limits: keys are not used in the 400 ms before their deadlines, because a reply might
// be from before or after them. If a reply is late nevertheless, or is an error in the
// middle of a pipeline (-OOM, -BUSY), the model takes over the values of the server
// ("adopted", which is counted).
package main
