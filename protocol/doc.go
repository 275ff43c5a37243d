// Package protocol implements the Redis wire protocol: parsing of requests,
// encoding and decoding of replies, and the static metadata of commands.
//
//   - [Reader] parses the commands in a byte stream, within limits. It does not
//     copy arguments, and examines each byte once.
//   - [Args] is the cursor with which a command reads its arguments. It latches the
//     first error, so a command reads all arguments and checks for an error once.
//   - [Reply] encodes replies in RESP2 or RESP3. The rest of the server does not
//     depend on the version that a client uses.
//   - [Decode] converts replies to Go values.
//   - [Facts] is the metadata of a command: arity, flags, keys, syntax and
//     documentation.
//
// The package does not depend on keys and values, does no I/O and starts no
// goroutine.
//
// Simple strings and errors are encoded with redcon's Append functions; the other
// types have encoders of their own, which are faster. Requests are not parsed with
// redcon, for the reasons given in reader.go.
package protocol
