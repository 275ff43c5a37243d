// Package rdb reads and writes values as Redis does in its files and in what DUMP
// replies.
//
// It reads whatever Redis has written up to version 12 of the format (Redis
// 7.4): all encodings of strings, lists, sets, sorted sets, hashes and streams, of whatever
// age. Everything is checked while it is read; nothing that anybody can send does
// more harm than an error.
//
// It writes two ways. [Codec.AppendPayload] chooses the encodings of Redis 7.0, so
// that a DUMP is, for small values, the same bytes. [Codec.AppendPortable] and
// [Writer] choose those that every Redis since 5.0 can load.
//
// A hash whose fields have deadlines is written as Redis 7.4 does, which older ones
// refuse; a sorted set whose members have some in a way of our own, which
// Redis refuses. A Writer leaves them out, and counts them.
//
// Redis compresses strings with LZF, and so does this package, by the same choice
// of matches.
package rdb
