// Package forward answers commands from another server or a cluster, to which the data
// have moved: the parameter forward-to, and the last step of package migrate. It
// implements engine.Forwarder, and knows no commands: the engine decides which ones go,
// and encodes them.
//
//	client ─► session ─► upstream ─► connection ─► server, or the node of the slot
//	client ◄─ session ◄───────────── reply, as it is
//
// # Connections
//
// Each session has an upstream with connections of its own, because blocking commands,
// WATCH and the database belong to a connection. They are opened when they are needed,
// log in as the address says, speak the client's version of the protocol, and close with
// the client. Requests of a turn that have the same node are written together. A reply is
// passed on byte by byte as soon as it is complete.
//
// An upstream has a goroutine while requests wait for replies. It holds one turn of
// requests (64, or 1 MB and one more) and one reply, which client-output-buffer-limit
// bounds.
//
// # Clusters
//
// A request goes to the node of its first key's slot. MOVED, ASK and TRYAGAIN are
// followed; the map of slots is read again when a node is away. Commands without keys run
// at any node, or at all primaries (SCRIPT LOAD, FLUSHALL), whose replies are joined
// (DBSIZE, KEYS, and SCAN call by call, see join.go), or at one of them by chance
// (RANDOMKEY), as the engine says. Keys of several slots are refused by the nodes.
//
// A server that is no zsetd receives the commands of zsetd as calls of the functions that
// "zsetd functions" prints. As it keeps members that are past their deadlines, zpurge goes
// before each command that may show members of a sorted set, unless the library is missing.
//
// # Transactions
//
// MULTI is answered before the queue is sent, so that the commands of a transaction never
// run outside it. WATCH stays at one connection; if that is lost, or the slot has moved,
// EXEC replies null, as if a watched key had changed.
//
// # Errors
//
// If the new home cannot be reached, the reply is the error FORWARD, which says that the
// command has not run. If the connection is lost before the reply, the command may have
// run, and the error says that. No request is sent twice unless its node has refused it.
//
// # Messages
//
// One connection, with a goroutine that reads and one that writes, receives the messages
// of all subscriptions of the server's clients; in a cluster, sharded channels have one
// for each node, and channels of keyspace events one for each primary. If it is lost, it
// is opened again; messages of the time between are lost, as with any subscriber. When
// other nodes have the slots, after a failover for instance, the subscriptions follow.
package forward
