// Package e2e holds the tests that use the server as an application does:
// through go-redis, over TCP, with clients that run at the same time. Among
// them are the four systems that zsetd is made for, each built from the
// commands of the document that describes it:
//
//   - liveevents_test.go: events of a web page in sorted sets scored by time,
//     with ZADD, ZREMRANGEBYSCORE, ZRANGE, ZCARD, ZREM and messages;
//   - timeboxes_test.go: counts for each of the last N minutes in two sorted
//     sets that WATCH, MULTI and EXEC keep in step;
//   - folder_test.go: many events folded into one by the members of a sorted
//     set, with the details in sets;
//   - waitinglist_test.go: a room with a limit and a line before it, in a hash
//     and two sorted sets.
//
// Beside each stands the same system with the commands that only zsetd has, in
// files named *_recipe_test.go; server/PATTERNS.md shows their code, and
// readme_test.go runs its sessions and programs. costs_recipe_test.go measures both. The recipes are small
// unless the flag -full is given.
//
// Files named client_*_test.go use the libraries that applications use, in Go
// and other languages, and what is made of them, such as job queues.
//
// It is a module of its own, so that nobody who imports zsetd gets go-redis
// with it. The same tests run against any other server of the protocol, which
// they empty:
//
//	go test . -against 127.0.0.1:6380
package e2e
