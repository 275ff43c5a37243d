// Package replication turns the changes of a keyspace into commands of Redis, which
// a primary sends to its replicas.
//
// The source is the list of effects of the keyspace ([keyspace.Effects]), the changes
// of each key. Commands of clients are not repeated: so expired keys, results of
// scripts and random choices are the same on a replica, and a command that has no
// counterpart in Redis reaches replicas by its result. A [Translator] writes
// the effects as RESP arrays of bulk strings, each set of effects as one transaction.
//
// A replica has the same keys with the same values and deadlines. Not transferred are
//
//   - deadlines of members of sorted sets and of fields of hashes, which Redis 7.0 does
//     not have: their removal is transferred when they expire;
//   - times at which consumers of streams were seen or active;
//   - the highest ID deleted from a stream if it goes back to 0-0, which is the case
//     after XTRIM with ACKED or DELREF, and if an entry is pending that was removed by
//     them: XSETID cannot express that;
//   - encodings and access times, and the sign of a score of zero, which the compact
//     encoding of Redis does not have.
//
// Streams with their counters, and functions, need a replica of version 7.0; trimming
// streams by ID and creating consumers 6.2; all other commands 6.0.
package replication
