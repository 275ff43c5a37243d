// Package rdb reads and writes values as Redis does in its files and in what DUMP
// replies.
//
// It reads what Redis writes up to version 13 of the format (Redis 8.6), and Valkey up
// to version 80 (Valkey 9): all encodings of strings, lists, sets, sorted sets, hashes
// and streams, of whatever age. Values of modules are passed over and named; newer
// versions and types are refused with an error that names them. Everything is checked
// while it is read: input from an untrusted client causes an error at most.
//
// It writes two ways. [Codec.AppendPayload] chooses the encodings of Redis 7.0, so
// that a DUMP is, for small values, the same bytes. [Codec.AppendPortable] chooses
// those that every Redis since 5.0 can load. A [Writer] writes files for a [Target].
//
// A payload of a hash whose fields have deadlines is of a type that Redis 7.4
// introduced and older servers refuse; a payload of a sorted set whose members have
// some is of a type of zsetd's own, which Redis refuses. Files have the deadlines
// of fields where the target has them, and none of members.
//
// Redis compresses strings with LZF, and so does this package, by the same choice
// of matches.
package rdb
