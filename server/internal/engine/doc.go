// Package engine executes commands: the lock, turns, commit scopes, dispatch, sessions,
// blocked clients, publish/subscribe, tracking, expiry and eviction. It has no handlers of data
// commands and no transports: [New] receives them from the packages above it, as [Parts].
//
// # Parts
//
// Engine and Session hold parts by name. What a part can do with its own state is a method of
// the part; what needs several parts is a method of Engine or Session, in the file of the part
// that it is about.
//
//	Engine.Turn         the state of one lock hold, with its commit scope (turn.go, unit.go)
//	Engine.checks       the conditions that a command passes before it runs (checks.go)
//	Engine.Clients      the sessions, the memory of all clients (clients.go, clientmemory.go)
//	Engine.PubSub       channels and patterns (pubsub.go, package subscription)
//	Engine.Queries      live queries: channels whose names are commands (query.go, queryname.go, queryorder.go)
//	Engine.Tracking     keys in the caches of clients (tracking.go, package tracking)
//	Engine.events       which keyspace events have listeners (notify.go)
//	Engine.Waits        watched keys, blocked commands (waiting.go)
//	Engine.Timers       the one timer, and what it is set for (timer.go)
//	Engine.Pauses       commands that CLIENT PAUSE or a backlog holds back (pause.go, backlog.go)
//	Engine.Memory       maxmemory and eviction (maxmemory.go, evict.go)
//	Engine.Freeing      garbage that has been made (lazyfree.go), and compactions (compact.go)
//	Engine.Scripting    scripts and function libraries (script_run.go)
//	Engine.Stats        counters (stats.go, meter.go, package metrics)
//	Engine.Replica      the state of a server that follows another (following.go)
//	Engine.Forwarding   commands that another server answers (forward.go)
//	Engine.Ending       the shutdown (shutdown.go, stopwait.go)
//	Engine.Transports   listeners and connections (transport.go, loop.go)
//	Engine.ACL, Config, Keys, Keeper   packages acl, config, keyspace and persist
//	Session.live        its subscriptions to live queries (query.go)
//	Session.Queue       replies and messages on their way out (outputqueue.go)
//	Session.Transaction MULTI and WATCH (transaction.go)
//	Session.Stall       what the session waits for (pause.go)
//	Session.Login, Modes, Activity, Peer, Weight   session.go, timer.go, clientmemory.go
//
// # One lock
//
// Commands run one at a time under one mutex, as in Redis. So transactions,
// multi-key commands, the order of blocked clients and the order of events are
// right by construction. Reading sockets, splitting input into commands and writing
// replies happen outside the lock, in parallel. Only MIGRATE talks to another server
// under the lock, as in Redis. Measured on two cores with 50 connections, ZADD takes
// 1.35–2.3 µs under one mutex, 1.65–3.0 with one mutex for each of 16 shards,
// 2.7–3.8 with an engine goroutine fed by channels, and 20–24 with a copy-on-write
// tree published for every write.
//
// A turn runs up to 64 commands of a pipeline, or 1 ms, in one lock hold. Each command
// is a commit scope with its own commit; all of them see the same reading of the
// clock, as the commands of a transaction do.
//
// The state of a turn is one value (turn.go). A script that runs for long lends the lock, and
// another turn takes the place of its own meanwhile. The ways to take the lock, and what each is
// for, are in lock.go.
//
// A panic under the lock stops the server: state that may be half changed never
// reaches the file (fault.go).
//
// # Lock order
//
// A goroutine that holds a lock of this table may take locks below it, and none above.
// Locks without an order between them stand in one row.
//
//	lock                       guards                                     held for
//	Attached.serving           the turns of one attached connection       a turn and its output
//	Keeper.writingOut          one backup of data in memory at a time     the backup
//	Transport.mu               listeners and connections                  the start of a session
//	Engine.lifecycle           whether the server stops                   an instant
//	Engine.Mu                  sessions, keys, users, settings, pub/sub   a turn
//	Keeper.io                  the data file                              one write or read of it
//	Transport.listening,       the listeners that CONFIG SET replaces,    opening sockets,
//	  tlsState.mu              the TLS configuration                      reading its files
//	Primary.translating        effects on their way to replicas           a translation
//	Keeper.queueLock,          checkpoints on their way to the file,      an instant; no lock is
//	  Primary.queueLock,       effects that are not translated,             taken below these
//	  slowConsumers.mu,        the list of clients with a backlog,
//	  upstream.mu, hub.mu,     requests and subscriptions to forward,
//	  loop.mu,                 sessions that a loop has to look at,
//	  Subscription.mu          the end of a subscription
//
// Users, settings, subscriptions and the keyspace have no locks of their own: Engine.Mu
// guards them. Values that transports read on every command without Engine.Mu are atomic
// (inputLimits, acl.List.LoginRequired). The logger of the embedding program may be called
// with any of these locks held, so it must not call the server.
//
// # One dispatch
//
// Before a command runs, dispatch asks a list of checks (checks.go): user, MULTI, cluster
// slots, memory, subscriptions, pause and others. Each names the state of the session or
// of the server in which it applies. Short commands in a pipeline form a fast batch
// (fastbatch.go) while no check of that list applies, so none of them has to be asked.
// A check asks for a field of the command's row, never for its name.
//
// A handler runs in Call.execute and nowhere else (execute.go), whether its command is
// single, in a batch, in EXEC or in a script, or is retried for a waiter; for a live query it
// runs in Call.observe.
//
// # One commit point
//
// A handler calls Changed once for each key that it changed. Watched keys,
// client-side caches, keyspace notifications, messages and blocked commands all
// follow from that call: the last at commit, the others when the command has ended, also in a
// transaction or a script, for the clients that listen then. Messages to the client whose
// command runs wait for its reply. For a collection the handler first calls Touched
// with the members that the event is about. Apart from deadlines (below) no other code
// marks, notifies or wakes. Without a listener an effect costs one comparison.
//
// # Live queries
//
// A change of a key marks the live queries that read it. The end of the turn evaluates them, after
// the replies to the commands that made the changes (query.go). An evaluation is a Call of a
// session of its own whose handler runs in Call.observe: it leaves no trace in statistics, access
// times or logs. Two ways lead past an evaluation: a query that names members is marked if a change
// names one of them (Command.Named), and one that reads a range of scores is left out if no change
// touches the range (Call.ReadsScores). Ranks are read without the handler, many at once
// (Command.Ranks, queryorder.go).
//
// # Users
//
// A session belongs to a user of package acl. For a user with all permissions a command
// costs one comparison. For other users dispatch calls Session.Permit (users.go), and so
// do EXEC (rights may change between queueing and EXEC), retries of waiters, and scripts,
// whose commands run with the rights of the calling user. The facts of a command
// (Keys, Channels) say how it accesses each key and channel, so a new command needs no
// extra code.
//
// # Time
//
// Deadlines are exact. An index ordered by time knows the next one, and one timer is
// set to it, for ten seconds at most. The timer covers the expiry of keys and members,
// the timeouts of blocked clients and the alarms of waiters (waiting.go), and the end
// of CLIENT PAUSE. Nothing samples and nothing polls. A key or member past its deadline
// is invisible to every command from that instant on, whether or not the timer has
// fired.
//
// The clock is the system clock at start plus the monotonic time since then, so setting
// the system clock moves no deadline (package clock).
//
// If more keys or members are due than one lock hold can remove, commands on the
// affected keys wait until these are clean (backlog.go). All other commands go on.
//
// A member whose deadline passes while the server is down is gone once the data are
// loaded. An expired key is not loaded, and causes no event. Expired members are loaded
// with their value and removed at once; the event goes to the clients that have
// subscribed by then.
//
// COPY, RENAME, MOVE and SWAPDB preserve the deadlines of members. Results of
// ZUNIONSTORE, ZRANGESTORE and similar commands have none. Exports for Redis write
// deadlines as additional sorted sets, which the function library that "zsetd
// functions" prints understands (cmd/zsetd/zsetd.lua).
//
// Scores may be times of the server's clock (package score). The commands that Redis does not
// have are in sortedset_expire.go and sortedset_take.go. Two of their rules exist for
// the patterns that they serve: a member that has drawn a ticket keeps it when ZADDEX
// adds it again, so that checking in again keeps its position; and ZCLAIM can return
// the lease, which the acknowledgement needs.
//
// # Scripts
//
// EVAL and FCALL run Lua (package script) in the commit scope of their command. Each
// redis.call of a script is a Call of a separate session in the same commit scope. It
// takes the same path as every command, so notifications, the journal, statistics and
// refusals are the same (script_run.go). A client with tracking enabled tracks the keys
// that were passed to its script, once the script has read any key, as in Redis 7.0.
//
// A script that runs for longer than busy-reply-threshold lends the lock, between
// two instructions or within a long operation, to transports: their clients receive
// -BUSY and may kill the script. All other users of the lock wait, so no client
// sees, and no checkpoint contains, a half-finished script. Function libraries are
// strings in a database that clients cannot select (keyspace.InternalDB), so they
// persist like all data.
//
// # Persistence
//
// Values record their changes in a journal in memory, independent of the command that
// makes the change (package journal). The keeper (package persist) takes the
// journal when a checkpoint is due, which holds the lock for an instant, and writes it to
// the file in its own goroutine (package snapshot). With appendfsync always, replies to writing
// clients wait in their output queues until the checkpoint is on disk. Changes that
// arrive meanwhile form the next checkpoint, so many clients share one.
//
// # Replication
//
// While there are replicas the keyspace lists the effects of a turn beside the journal, and
// the end of the turn passes them to package replication (replication.go), which makes
// commands of Redis of them. Without replicas a turn costs a comparison more.
//
// On a replica the link to the primary has a session, whose commands pass all checks
// except those that protect data from clients (following.go).
//
// # Forwarding
//
// After the data have moved (parameter forward-to) a check passes the commands on data of
// each session to a connection of its own, by package forward, and the session stalls
// until their replies are there (forward.go). A command that is not on data waits for
// the replies before it, and runs here. While the parameter is empty the check costs a comparison
// for each single command or fast batch.
//
// # Memory
//
// The keyspace knows the size of its keys and values, exact to the byte of the
// allocator's size classes, because each insertion, removal and change is weighed in
// constant time (internal/values/keyspace/weight.go). That sum plus the memory of clients is
// used_memory, which maxmemory limits (maxmemory.go). Before a command, or before a
// batch of short ones, keys are evicted until the sum is below the limit, for half a
// millisecond at most; then the timer continues. Candidates are chosen as in Redis
// (evict.go). For the journal, WATCH, client caches and waiters an evicted key is a
// deleted one.
//
// # Garbage collection
//
// The package leaves the collector's settings alone. It only triggers a collection
// after an UNLINK or FLUSHALL that frees much (lazyfree.go), and moves values together when
// that makes much memory free (compact.go). The program zsetd reduces
// heap headroom while that is cheap, and returns free memory to the system when the
// server becomes idle; cmd/zsetd/heap.go describes how and why. An embedding program
// that wants the same calls debug.SetGCPercent and debug.FreeOSMemory likewise;
// [Engine.UsedMemory] reports how much is in use.
//
// # Transports
//
// Package transport moves bytes between sockets and sessions. It calls the engine; the
// engine knows it as a [Transport], and the connection of a session as a [Conn]. Both are
// small: see transport.go and session.go.
//
// # Output queues
//
// Replies and messages are appended to the output queue of a session in memory, and
// its transport writes them without the lock (outputqueue.go). So a client that does
// not read delays no other client, and may send a whole pipeline before it reads, as
// with Redis. Only above 32 MB of unread replies does the server run no more of its
// commands, and its transport reads on into the input buffer. A client that exceeds
// client-output-buffer-limit is disconnected, and a log line gives the figures.
//
// A client that only receives the replies to its own commands, and takes them however
// slowly, is never disconnected for that: the seconds of the soft limit of its class
// restart whenever it takes data or sends more of a pipeline, which is checked four times
// a second while any client is behind. With Redis's definition of a soft limit any figure would either disconnect
// clients that read 256 MB over a slow line, or allow stopped clients more than they
// should hold.
//
// The memory of all clients is summed only while maxmemory-clients is set
// (clientmemory.go).
package engine
