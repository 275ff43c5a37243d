// Package protocol is the Redis wire protocol: what comes in as bytes and
// leaves as bytes, and the facts about commands that both ends agree on.
//
//   - [Reader] finds the commands in a stream of bytes and slices out their
//     arguments, within limits, without copying and without looking at any
//     byte twice.
//   - [Args] is the cursor with which a command reads its arguments. It keeps
//     the first error, so a command reads everything first and asks once.
//   - [Reply] encodes replies in RESP2 or RESP3. Nothing else in the server
//     knows which of the two a client speaks.
//   - [Decode] turns replies back into Go values.
//   - [Facts] is what is known about a command before it runs: its arity,
//     flags, keys, syntax and documentation.
//
// The package knows nothing of keys and values, does no I/O and starts no
// goroutine.
//
// Replies are encoded over redcon's Append functions, which are sound;
// requests are not read with redcon, for the reasons that head reader.go.
package protocol
