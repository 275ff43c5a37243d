// Package e2e has the tests that use the server as an application does: with
// go-redis, over TCP, and with concurrent clients. Among them are the four
// systems that zsetd is made for, each built from the commands of the document
// that describes it:
//
//   - liveevents_test.go: events of a web page in sorted sets scored by time,
//     with ZADD, ZREMRANGEBYSCORE, ZRANGE, ZCARD, ZREM and PUBLISH;
//   - timeboxes_test.go: counts for each of the last N minutes in two sorted
//     sets that WATCH, MULTI and EXEC keep consistent;
//   - folder_test.go: many events folded into one by the members of a sorted
//     set, with the details in sets;
//   - waitinglist_test.go: a room with a capacity and a queue of waiting users, in
//     a hash and two sorted sets.
//
// Files named *_recipe_test.go implement the same systems with commands that only
// zsetd has. server/examples shows their code, and readme_test.go runs its sessions
// and its functions in Python and JavaScript. costs_recipe_test.go measures both versions.
// The recipes have a small load without the flag -full.
//
// Files named client_*_test.go use the client libraries of applications, in Go and
// other languages, and packages that are built on them, such as job queues.
//
// migrate_test.go moves data between real servers and clusters, and
// cluster_recipe_test.go runs the recipes by FCALL on a Redis Cluster. Both need
// redis-server and redis-cli.
//
// Files named sentinel*_test.go start servers of zsetd and of Redis as processes, which
// three Sentinels watch, and kill the primary.
//
// The package is a separate module, so that the packages that programs import do not
// depend on clients. The tests also run against another server of the protocol,
// and delete its data:
//
//	go test . -against 127.0.0.1:6380
package e2e
