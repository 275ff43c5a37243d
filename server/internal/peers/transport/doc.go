// Package transport moves bytes between sockets and sessions: it opens listeners, accepts
// clients, reads and parses their input, passes commands to sessions, and writes
// replies. It knows no commands, keys or values, and sessions do no I/O.
//
// # Two transports
//
// On Linux epoll loops (epoll_linux.go) serve plain sockets, unless the parameter
// transport is net: one at first, and more while they are busy and cores are idle, to which
// clients then move (loops_linux.go). A goroutine per connection (net.go) serves every
// other connection: TLS, a pipe, another operating system. Both parse input in the same way
// (input.go); they differ in which goroutine reads and writes. Tests run with either: the
// build tag zsetd_net makes net the default. With the tag zsetd_unsettled clients go from
// loop to loop all the time. The first loop also keeps the server's timer, so that an event
// of expiry costs no switch of threads (alarm_linux.go).
//
// # Sessions
//
// A connection has one session of the engine, and calls its methods: Turn (or
// Engine.RunTurns for a loop), Take and Written for output, Close. The session knows its
// connection as an engine.Conn, and wakes it by Peer.Wake when it has output, may
// continue, or has ended. Each turn costs a loop two calls through an interface; a
// command costs none.
//
// The engine reaches the listeners through engine.Transport: for CONFIG SET of addresses
// and of TLS, for SHUTDOWN, and after a panic.
//
// # Input that waits
//
// A client whose commands do not run for now is read on, up to client-query-buffer-limit: it
// may write all of a pipeline before it reads (input.reads). Beyond a full reader such input
// waits in blocks (held.go).
//
// # Accepting clients
//
// A client beyond maxclients is refused, but not while a client that has closed its side
// is about to leave (accept.go). Protected mode refuses clients of other machines.
//
// # Goroutines
//
//   - ListenAndServe has one for each listener and one that waits until the data are
//     loaded. It joins them before it returns.
//   - A connection of the net transport has one, and a second one while output waits that
//     the socket has not accepted. A loop is one; each closed connection of a loop has one
//     until its session has ended. While loops have work one more measures their load
//     (followLoad). Close and Shutdown join them, and then the loops.
//   - SHUTDOWN starts one that runs the shutdown. Close and Shutdown join it.
//   - After a panic, one of the engine closes all connections; Close and Shutdown wait for
//     its end.
//
// Shutdown runs and answers all input that has arrived, and reads no more (leave.go).
//
// # Locks
//
// Transport.mu guards the listeners and the set of connections. It is taken before the
// engine's lock, as a new session needs that. These are taken after the engine's lock, and
// no other lock with them: the lock of the listeners of ListenAndServe, that of the TLS
// configuration, and that of a loop's posted connections. The last is also taken after
// Transport.mu. A connection has no lock: its fields belong to its goroutine or loop,
// except atomic ones.
//
// # TLS
//
// The TLS parameters become an immutable tls.Config, which CONFIG SET or a changed file
// replaces by another (tls.go). The handshake is the first step of the connection's own
// goroutine.
package transport
