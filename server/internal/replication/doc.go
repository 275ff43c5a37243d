// Package replication makes a server the primary of replicas: of Redis, Valkey and of
// tools that speak their protocol, as "redis-cli --rdb" and "--replica".
//
// # The stream
//
// The stream consists of commands of Redis. Their source is the list of effects of the
// keyspace ([keyspace.Effects]), the changes of each key that the data file is written
// from. Commands of clients are not repeated: so expired keys, results of scripts and
// random choices are the same on a replica, and a command that has no counterpart in
// Redis reaches replicas by its result. The effects of a turn are one transaction.
//
//	engine.feed ──► queue ──► Translator ──► ready ──► backlog, output queues of replicas
//	under the lock            without it               under the lock
//
// A replica has the same keys with the same values and deadlines. Deadlines of members of
// sorted sets and of fields of hashes have a form that Redis ignores and zsetd
// understands, see effects_deadlines.go; in Redis the members go when they expire here.
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
// A replica that cannot continue receives all data as an RDB file of version 10, which is
// read from a snapshot of the keyspace in pieces ([keyspace.Snapshot]): no process is
// forked, the lock is held for at most 200 µs a piece, and memory grows by the values
// that change meanwhile. So a replica is of version 7.0 or later. Replicas that wait
// together share a transfer.
//
// After a restart replicas continue if they have just the changes that the data file has,
// see restart.go.
//
// # Sources
//
// The protocol is described in the manual of Redis, "Redis replication", and observed
// at its servers: PING, REPLCONF and PSYNC by the replica; +FULLRESYNC id offset and the
// file, or +CONTINUE; then the stream. The file is $length and its bytes, or $EOF: and
// 40 bytes that follow the file again. A replica sends REPLCONF ACK offset every second,
// and first when it has loaded the file, which is when the stream may begin.
package replication
