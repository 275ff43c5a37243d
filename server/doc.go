// Package server is a store that speaks the Redis protocol: sessions, the
// command table, the handlers of the commands, and the transports that carry
// bytes to and from them. It runs without Redis and without a network: see
// [Server.Do] and [Server.Dialer].
//
//	srv, err := server.New(server.Options{})
//	...
//	go srv.ListenAndServe()
//	defer srv.Shutdown(ctx)
//
// # Where to start reading
//
// table.go, the command table; call.go, all that a handler sees; sortedset.go,
// the handlers that the store is named after; unit.go, where the consequences
// of a change are drawn; keyspace/keyspace.go, the doors to the data. Then
// session.go and net.go, how commands get there.
//
// # Seven words
//
// A [Command] is a row of facts and the function that runs it. A [Call] is one
// execution. The keyspace holds typed values behind two doors. A unit is one
// hold of the lock; it ends in commit. A [Waiter] is a call that changed
// nothing and will be tried again. A [Session] is one client. A Cut is what has
// changed since the last one, on its way to the file.
//
// # One lock
//
// Commands run one at a time under one mutex, as in Redis; so transactions,
// commands on several keys, the order of blocked clients and the order of
// events are right by construction. Reading sockets, finding commands in what
// was read and writing replies happen outside it, in parallel. (MIGRATE alone
// talks to another server under the lock, as in Redis.) Measured on two
// cores with 50 connections, ZADD took 1.35–2.3 µs under one mutex, 1.65–3.0
// with one mutex for each of 16 shards, 2.7–3.8 with an engine goroutine fed by
// channels, and 20–24 with a copy-on-write tree published for every write.
//
// A pipeline takes the lock once for as many as 64 commands or 1 ms. Each of
// them is a unit of its own, with its own commit; only the clock stands still
// for all of them, as it does for the commands of a transaction.
//
// A panic under the lock breaks it: the server is over, and nothing that may be half
// changed reaches the file (fault.go).
//
// # One commit point
//
// A handler that has changed a key says Changed, once. Watched keys, keyspace
// notifications, messages and blocked commands all follow from that line, when
// the unit commits. Of a collection it says first, with Touched, which members
// the event is about. But for time (below) nothing else marks, notifies or
// wakes, and while nobody listens an effect costs a comparison.
//
// # Users
//
// A session belongs to a user (acl.go). One who may do everything costs a
// command a comparison; for others dispatch asks Session.permit, and so do EXEC,
// which comes later than the queueing, waiters that are tried again, and
// scripts, whose commands are those of the user who runs them. What a command does
// to which key is in its facts (Keys), so a new command needs nothing more.
//
// # Time
//
// Deadlines are exact. An index ordered by time knows the next one, and one
// timer is set to it, for ten seconds at most: for keys and members that expire, for
// blocked clients that give up or wait for what time brings (waiting.go), and for
// CLIENT PAUSE. Nothing is sampled and nothing polls. A key or member that is past its
// deadline is gone for every command from that instant on, whether or not the
// timer has run yet.
//
// The clock is the system's at the start and the time that has passed since: who
// sets the system's clock moves no deadline (clock.go).
//
// When more is due than one hold of the lock can remove, commands on the keys
// concerned wait until these are clean (backlog.go); all others go on.
//
// A member whose deadline passes while the server is down is gone when the data
// are there again. Of a key nothing is said then: it is not even loaded. Members
// are loaded with their value and removed at once, and the event goes to
// whoever has subscribed by then.
//
// Deadlines of members go with COPY, RENAME, MOVE and SWAPDB. What ZUNIONSTORE,
// ZRANGESTORE and their like store has none. Exports for Redis write them as other
// sorted sets, which the library of functions reads that zsetd functions prints
// (cmd/zsetd/zsetd.lua).
//
// Scores may be times of the server's clock (now.go). The commands that Redis
// does not have are in sortedset_expire.go and sortedset_take.go. In two points
// they are more than was first planned, for the patterns that they are made
// for need it: a member that has drawn a ticket keeps it when ZADDEX comes
// again, so that checking in again does not cost one's place; and ZCLAIM can
// return the lease, which the acknowledgement needs.
//
// # Scripts
//
// EVAL and FCALL run Lua (package script) in the unit of their command. What a
// script calls with redis.call are Calls of a session of its own, in the same
// unit: one path for every command, so what is notified, journaled, counted and
// refused is the same (script_run.go). A client that tracks is told of the keys
// that its script was given, once that has read anything, as in Redis 7.0. A
// script that runs for longer than busy-reply-threshold lends the lock, between
// two instructions or within what takes long, to those who are to be told -BUSY
// and may kill it; everything else that wants the lock waits, so that nobody
// sees, saves or is served by half of what it does. Libraries of functions are
// strings in a database that clients do not see (keyspace.Own), so they are kept
// as everything else.
//
// # Keeping data
//
// The values write what happens to them into a journal in memory, whatever
// command it is that changes them (keyspace/journal.go). The keeper (keep.go)
// takes the journal when a Cut is due, which costs the lock for an instant, and
// writes it to the file in a goroutine of its own (package snapshot). With
// appendfsync always, replies wait in the outboxes of those who changed
// something until the Cut is on the disk; whatever comes meanwhile makes up the
// next Cut, so that many clients share one.
//
// # Memory
//
// The keyspace knows what its keys and values take, to the byte that the allocator
// gives, because whoever comes, goes or changes is weighed, in constant time
// (keyspace/weight.go). That, and what clients take, is used_memory, and what maxmemory
// limits (maxmemory.go). Before a command, or a series of quick ones, keys are evicted until the sum
// is below the limit, for half a millisecond at most; then the timer goes on. Which
// key goes is found as in Redis (evict.go). An evicted key is a deleted one to the
// journal, to WATCH, to caches and to whoever waits.
//
// # The garbage collector
//
// The package leaves it as it is, but that it calls it after an UNLINK or
// FLUSHALL of much (lazyfree.go). The program
// zsetd gives the heap less room when that is cheap, and free memory back when
// the server has gone quiet; cmd/zsetd/heap.go says how and why. Who embeds a
// server and wants the same of a process calls debug.SetGCPercent and
// debug.FreeOSMemory as it does; [Server.UsedMemory] says how much is in use.
//
// # Transports
//
// A plain socket on Linux is served by one of a few loops (epoll_linux.go), unless
// the parameter transport is net; every other connection (TLS, a pipe, another
// system) by a goroutine of its own (net.go). Both parse and run what they have read
// in the same way (input); they differ in who reads and who writes. All tests pass
// with either: the environment variable ZSETD_TRANSPORT=net chooses for tests.
//
// When the server is told to stop, what has arrived until then is run and answered,
// and no more is read (leave.go).
//
// # TLS
//
// The parameters of TLS become a tls.Config that is never changed, but replaced by
// another when CONFIG SET or a changed file asks for it (tls.go). The handshake is
// the first thing that a connection's own goroutine does.
//
// # Outboxes
//
// Replies, and messages from others, are appended to a session's outbox in
// memory and written by its transport without the lock (outbox.go). So a client
// that does not read delays nobody else, and may send a whole pipeline before it
// reads, as with Redis; only above 32 MB of unread replies are no more of its
// commands run. When it is further behind than client-output-buffer-limit allows,
// it is disconnected, and the log says so with the figures.
//
// A client that asks for what it gets, and takes it however slowly, is never
// disconnected for that: the seconds of its class begin anew when it takes
// something, which is looked at once a second while somebody is behind. With Redis's
// reading of a soft limit any figure would either hit those who read 256 MB over a
// slow line or allow those who have stopped reading more than they should have.
//
// What all clients take is summed up while maxmemory-clients is set
// (clientmemory.go); otherwise nobody counts.
package server
