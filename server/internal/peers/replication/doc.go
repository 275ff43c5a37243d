// Package replication makes a server the primary of replicas: of Redis, Valkey, zsetd and
// of tools that speak their protocol, as "redis-cli --rdb" and "--replica". And it makes
// a server the replica of such a primary.
//
// # The stream
//
// The stream consists of commands of Redis. Their source is the list of effects of the
// keyspace ([keyspace.Effects]), the changes of each key that the data file is written
// from. Commands of clients are not repeated: so expired keys, results of scripts and
// random choices are the same on a replica, and a command that has no counterpart in
// Redis reaches replicas by its result. The effects of a turn are one transaction. A move of an
// element between lists is one effect.
//
//	engine.feed ──► queue ──► Translator ──► ready ──► backlog, output queues of replicas
//	under the lock            without it               under the lock
//
// The stream waits for slow replicas in the backlog, once for all of them: an output queue has
// at most the next megabyte. These bytes count for client-output-buffer-limit, whose hard limit
// is at least repl-backlog-size, as in Redis.
//
// A replica sends acknowledgements and no commands: one that has a reply, which would stand in
// the stream, ends its connection, as in Redis.
//
// A replica has the same keys with the same values and deadlines. Deadlines of members of
// sorted sets and of fields of hashes have a form that Redis ignores and zsetd
// understands, see effects_deadlines.go; in Redis the members go when they expire here.
// With the parameter repl-field-deadlines Redis 7.4 or Valkey 9 have those of fields.
// Not transferred are
//
//   - times at which consumers of streams were seen or active;
//   - the highest ID deleted from a stream if it goes back to 0-0, which is the case
//     after XTRIM with ACKED or DELREF, and if an entry is pending that was removed by
//     them: XSETID cannot express that;
//   - encodings and access times, and the sign of a score of zero, which the compact
//     encoding of Redis does not have.
//
// # Transfers
//
// A replica that cannot continue receives all data as an RDB file of version 9 or 10 (with
// repl-field-deadlines, that of Redis 7.4 or Valkey 9), which is read from a snapshot of
// the keyspace in pieces ([keyspace.Snapshot]): no process is forked, the lock is held for
// at most 100 µs a piece, and memory grows by the values that change meanwhile. Replicas
// that wait together share a transfer. One that takes nothing of it for repl-timeout is
// disconnected.
//
// Version 9 is that of Redis 5.0, and every later server loads it. Version 10 is for
// replicas that are known to load it by what they announce: the capability
// rdb-channel-repl, since Redis 8.0, or a version, since Valkey 8.0. Their small values
// are listpacks there, which these load in half the time, and a zsetd does not. In version 9 only function libraries
// and streams with groups or deleted entries have types of Redis 7.0. The commands of the
// stream are those of Redis 7.0: changes of streams, and SET of a key that keeps its
// deadline, need it or 6.0. Tests judge with Redis 7.0 and later. Redis 6.0.16, tried by
// hand, ends when it loads one of the types of 7.0, so the README promises 7.0 and later.
// zsetd follows Redis 6.0.16.
//
// After a restart replicas continue if they have just the changes that the data file has,
// see restart.go.
//
// # The server as a replica
//
// A link connects to the primary, with package psync, and runs the commands of the stream
// in a session of its own (link.go). The bytes of the stream go unchanged to the replicas
// of the server, under the ID and the offsets of the primary; effects are not listed.
//
//	primary ──► psync.Link ──► session ──► keyspace
//	                    └──► backlog, output queues of replicas
//
// A link that was cut is connected again at once, and one that cannot be, every second; after
// data that cannot be read the time doubles with each transfer, up to a minute. Its messages
// in the log that programs look for have Redis's words.
//
// The offset counts whole transactions that were run, so the stream can continue there
// after every cut, at any primary that has it. All data come into a keyspace of their own
// (load.go) and replace those of the server when they are whole. Meanwhile the server serves
// its old data, and keeps them if the transfer fails; with repl-diskless-load flushdb it has
// none, and its data file keeps the last state. A replica that has no data at all replies
// -MASTERDOWN, and has the priority 0 for Sentinel ([engine.Engine.Bare]).
//
// Expired keys are removed by the primary, but for those whose deadlines clients of a
// writable replica have set. Clients do not see them before
// (keyspace.Standby), and commands of the stream do (keyspace.Reveal).
//
// A promoted replica continues the stream under a new ID, and the old one stands for the
// part before. A primary that becomes a replica continues its own stream likewise, and
// FAILOVER does both at once (failover.go).
//
// # Sources
//
// The protocol is described in the manual of Redis, "Redis replication", and observed
// at its servers: PING, REPLCONF and PSYNC by the replica; +FULLRESYNC id offset and the
// file, or +CONTINUE; then the stream. The file is $length and its bytes, or $EOF: and
// 40 bytes that follow the file again. A replica sends REPLCONF ACK offset every second,
// and first when it has loaded the file, which is when the stream may begin.
package replication
