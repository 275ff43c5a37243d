// Package psync is the replica's side of the replication protocol of Redis: the
// handshake with a primary, the transfer of the data, and the stream of commands. It
// works on a connection that the caller has dialed, and knows nothing of a server: a
// server that follows a primary uses it, and a tool that copies a primary's data.
//
//	Handshake ──► Link.Payload   if Link.Full: the data, as an RDB file
//	          └─► Link.Next      the stream from Link.Offset on, with Link.Acknowledge
//
// # Protocol
//
// It is described in the manual of Redis, "Redis replication", and observed at its
// servers. The replica sends PING, AUTH, REPLCONF with its port, address,
// capabilities and version, and PSYNC with a replication ID and the offset of the next byte, "? -1"
// for all data. The primary answers +FULLRESYNC id offset, or +CONTINUE with a new ID
// if it has changed. The data are $length and that many bytes, or $EOF: with 40 bytes
// that follow the data again. The stream consists of commands, each an array of bulk
// strings. Every byte of it counts for the offset. A primary sends bare newlines while
// it prepares an answer. Primaries without PSYNC, which are older than Redis 2.8,
// answer SYNC with the data, and have no offsets.
//
// # Memory
//
// A primary cannot make a Link hold more than some times the bytes that it has sent, nor
// more than [Options].MaxCommand and 50 MB: lengths that it announces allocate nothing.
package psync
