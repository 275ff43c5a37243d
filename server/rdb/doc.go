// Package rdb reads and writes values in the format of Redis's RDB files and of the
// replies of DUMP.
//
// It reads the format of Redis up to version 13 (Redis 8.6), and of Valkey up to
// version 80 (Valkey 9): all encodings of strings, lists, sets, sorted sets, hashes
// and streams, of any age. Values of modules are skipped and named; newer versions
// and types are refused with an error that names them. All input is checked while
// it is read: input from an untrusted client causes an error at most.
//
// It writes in two ways. [Codec.AppendPayload] chooses the encodings of Redis 7.0,
// so that for small values a DUMP has the same bytes. [Codec.AppendPortable]
// chooses those that every Redis since 5.0 can load. A [Writer] writes files for a
// [Target].
//
// A payload of a hash whose fields have deadlines is of a type that Redis 7.4
// introduced and older servers refuse; a payload of a sorted set whose members have
// deadlines is of a type of zsetd's own, which Redis refuses. Files have the
// deadlines of fields where the target supports them. Other deadlines of members and
// fields may precede the key, in AUX fields of zsetd's own, which Redis skips.
//
// Redis compresses strings with LZF, and so does this package, with the same choice
// of matches.
package rdb
