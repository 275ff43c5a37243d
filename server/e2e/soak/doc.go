//go:build linux

// Command soak runs servers under a mixed load for an hour, and compares their replies and
// data with a model. It needs Linux:
//
//	make soak                      # an hour; TIME=30s is enough for a first look
//	make soak TIME=3m RACE=1       # with the race detector in the server
//	make soak SEED=17 RATE=3000    # the random choices of an earlier run; at most so many commands a second
//
// # Two servers
//
// Each stage has a server: a process that is built from this tree. Both stages run at the
// same time.
//
// The server of the stage "steady" runs until the end. At intervals the workers pause, and
// soak collects garbage, compares all data with the model, and takes a sample of heap,
// goroutines, descriptors and memory. At the end the samples of the second half must not
// be higher than those of the first, and after all clients have left and FLUSHALL, the
// server must be as small as after its start. soak prints a table of the samples.
//
// The server of the stage "crash" is killed or stopped again and again, and restarts with
// its file. With appendfsync always no acknowledged write may be lost; otherwise those of
// the last second may be. soak prints the age of the oldest loss.
//
// # Workers
//
// An owner (owner.go, step.go) has keys that no other worker touches, some of them with
// deadlines, so it knows every reply and all of its data. It draws commands from tables
// (table.go, draw.go) and sends them alone, in pipelines, transactions, scripts and
// functions, in RESP2 and RESP3. After a lost connection it finds out which of its last
// commands were run: all up to a moment, and none after it. After a crash this moment must
// be the same for all owners, because the file holds the data of one instant.
//
// Other workers share keys and check invariants:
//
//   - shared.go: counters, accounts whose sum is constant, queues whose elements are
//     taken once, a cache whose keys may be evicted.
//   - recipes.go: claims of groups with a lease, hits in buckets that expire, waiting
//     lists, a stream whose entries are acknowledged once.
//   - views.go: live queries of a number that grows.
//   - listeners.go: messages that arrive in order, client-side caches, events of keys that
//     expire, and visitors, who break the protocol or leave without reading.
//
// stage.cast says which of them the stage "crash" leaves out. The operator (chaos.go)
// changes settings, kills and pauses clients, saves, reloads and limits memory.
//
// # Failures
//
// On a failure soak prints the seed, the difference, and the last commands of the worker
// that found it and of the operator. It keeps the server's log and file. A seed fixes the
// random choices and not the order in which workers run, so a second run may need longer
// to fail. The flags -stages, -only, -calm and -deeds reduce a run to what a failure needs.
//
// # Limits
//
// An owner does not use a key in the 400 ms before one of its deadlines, because the reply
// could be from before or after it. If a reply arrives later than that, or an error
// refuses part of a pipeline (-OOM, -BUSY), the owner adopts the values of the server, and
// soak counts these.
package main
