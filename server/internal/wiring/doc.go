// Package wiring puts an engine together: the rows of all families of commands, replication,
// forwarding and a transport. Package server and the tests of the packages below it make
// their engines here. For contributors it is the way into the code.
//
// # Packages
//
// Package server is the embedding API. These are the packages below it, of which
// other programs cannot import those of internal; each imports only packages below it.
//
//	servertest                    a server for tests of programs
//	examples/folder               a program that embeds a server: likes, folded
//	examples/liveevents           a program that embeds a server: events that expire
//	examples/timeboxes            a program that embeds a server: hits by time
//	examples/waitinglist          a program that embeds a server: a room and its line
//	console                       the page, the metrics and the event streams over HTTP
//	migrate                       the move of a running data set between servers
//	internal/wiring               an engine with its commands, replication and transport
//	internal/commands/scripting   EVAL, FCALL, function libraries
//	internal/commands/admin       handlers of the commands on the server and its connections
//	internal/commands/data        handlers of the commands on data, one file per family
//	internal/commands/stream      handlers of the commands on streams
//	internal/commands/pubsub      handlers of the publish/subscribe commands
//	internal/peers/transport      listeners, TLS, the two transports
//	internal/peers/replication    primaries and replicas: transfers, and the stream of effects
//	internal/peers/forward        commands that another server answers after a move
//	internal/engine               the lock, turns, commit, dispatch, sessions
//	internal/engine/persist       the keeper of the data file: checkpoints, rewrites, backups
//	archive                       keyspaces to and from files of data
//	rdb                           the format of Redis's RDB files and of DUMP
//	internal/engine/subscription  channels and patterns with their subscribers
//	internal/engine/tracking      keys in the caches of clients
//	internal/engine/acl           users, rules, and the check of a command
//	internal/engine/config        the parameters and redis.conf
//	internal/engine/metrics       counters of what the server does, and the text of INFO
//	internal/peers/psync          the replica's side of the replication protocol
//	internal/peers/remote         addresses of other servers, and requests to them
//	internal/lua/script           the Lua machine within limits, with Redis's libraries
//	internal/lua/compiler         Lua sources to code of that machine
//	internal/lua                  values and the machine of Lua 5.1
//	internal/lua/conv             numbers and strings as Lua converts them
//	internal/values/keyspace      typed values behind two accessors
//	internal/values/operation     the operations of which a change consists
//	internal/values/sequence      the values that are lists and streams
//	internal/values/journal       the format of the changes of values
//	internal/values/packed        byte strings in one slice
//	internal/values/score         scores, and times in their place
//	internal/values/longdouble    the numbers of INCRBYFLOAT
//	internal/values/geo           points on the earth as scores
//	internal/values/hyperloglog   counts of distinct elements
//	internal/values/bitmap        bits in byte slices
//	internal/values/lcs           the longest common subsequence
//	internal/base/clock           the clock of the server
//	internal/base/process         the version, processor time and open files of this process
//	internal/base/replyjson       replies of RESP3 as JSON
//	internal/base/glob            patterns of names
//	internal/base/keyslot         the cluster slot of a key
//
// Start reading with internal/commands/data/sortedset.go, the handlers of the sorted sets;
// internal/engine/call.go, all that a handler sees; internal/engine/table.go, the
// command table; internal/engine/unit.go, the commit of a command's effects; and
// internal/values/keyspace/keyspace.go, the accessors of the data. Then internal/engine/session.go
// and internal/peers/transport/net.go show how commands arrive there. The package comment of internal/engine
// explains the design.
//
// # Glossary
//
//   - Command: a row of facts (name, arity, flags, keys, group, since, syntax,
//     summary) and its handler.
//   - Call: one execution of a command: arguments in, reply out, access to the
//     keyspace. All that a handler sees.
//   - Keyspace: typed values behind two accessors, Get to read and Edit to modify.
//   - Commit scope: one command, one EXEC, one script or one expiry sweep. Its
//     effects become visible together. Which clients receive its messages, events and
//     invalidations is decided when each of its commands has ended (engine.commitScope).
//   - Turn: one lock hold: up to 64 commit scopes of ready clients, under one reading
//     of the clock.
//   - Waiter: a blocked Call. It changed nothing, and is retried when its key changes
//     or its time comes.
//   - Live query: a read command whose reply is sent to a subscriber when it changes.
//   - Checkpoint: the changes since the previous one, taken at one instant, on their
//     way to the file (type snapshot.Checkpoint).
//   - Effect: one change of a keyspace, for readers other than the file: replicas receive
//     those of a turn as commands (keyspace.Effects).
//   - Session: one client: database, protocol version, user, transaction queue,
//     watches, subscriptions, bounded output queue. It does no I/O.
//   - Transport: moves bytes between sockets and sessions.
package wiring
