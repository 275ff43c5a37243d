// Package server is an in-memory store that speaks the Redis protocol, for a Go program. It runs
// without Redis and, if wanted, without a network: see [Server.Do] and [Server.Dialer].
//
//	srv, err := server.New(server.Options{})
//	...
//	go srv.ListenAndServe()
//	defer srv.Shutdown(ctx)
//
// A program calls commands with [Server.Do], [Server.Tx] and [Server.Dialer], converts their
// replies with [Scan], receives messages and keyspace events with [Server.Subscribe] and
// [Server.PSubscribe], and replies of live queries with [Server.Observe]. It ranges over
// [Server.Keys], saves with [Server.Save] and [Server.Backup], reads [Server.Stats], adds a
// [Command] of its own with [Options].Commands, and mounts the server in another one with [Redcon].
//
// # Versions
//
// Versions are semantic (https://semver.org). Before v1.0.0 a minor version, as v0.2.0, may
// change the Go API: names, signatures, the fields of options. .github/CHANGELOG.md names
// each such change, and its replacement. A patch version, as v0.2.1, changes none. From
// v1.0.0 on, the Go API of every package that is not internal stays compatible within a major
// version, in the sense of Go 1: https://go.dev/doc/go1compat.
//
// Three things do not depend on that. Commands of Redis keep the replies of Redis, and
// parameters their names. A command that only zsetd has keeps its meaning, and may have more
// options. A file of data opens in every later version: see package snapshot.
package server
