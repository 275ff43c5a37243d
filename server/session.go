package server

import (
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
)

// Session is one client: its database, protocol version, transaction, watches,
// subscriptions and output queue. It takes commands and appends replies to its
// output queue; it does no I/O. A transport moves the bytes.
//
// One transport goroutine at a time uses a session. The server's lock guards fields
// without a note.
type Session struct {
	srv  *Server
	id   int64
	call Call
	db   *keyspace.DB
	out  protocol.Reply

	peer             // fixed before the first command
	created          time.Time
	lastUsed         time.Time
	lastMoved        time.Time // see closeIdle
	moved            struct{ input, unsent int64 }
	last             *Command
	name             string
	libName, libVer  string
	user             *user
	authenticated    bool
	noEvict, noTouch bool
	readonly         bool // READONLY, in a cluster
	monitoring       bool
	noBlock          bool // commands that would block reply as at their timeout
	script           bool // the session that runs the commands of scripts
	direct           bool // in-process use by the embedding program, without a connection

	replies replyMode

	multi   bool
	aborted bool // a command was refused while queueing: EXEC must fail
	queue   []queued
	queued  int64 // bytes
	execing int   // commands in the transaction that EXEC is running; 0 outside EXEC
	watches []waitKey
	touched bool // a watched key changed

	channels, patterns, shards positions
	listens                    int    // number of subscriptions, of all three kinds
	cache                      *cache // state of CLIENT TRACKING; nil without tracking

	blocked          *Waiter
	postponed        [][]byte    // a command that CLIENT PAUSE or overdue keys hold back, copied
	runningPostponed bool        // the postponed command is running
	held             bool        // output waits for a checkpoint
	heldFor          uint64      // the epoch of that checkpoint
	stalled          atomic.Bool // blocked, postponed or held: the transport must not run commands

	closing bool // close once the output queue is written
	killed  bool // close now

	waking bool   // in the wake list of the commit scope
	spare  []byte // buffer passed to turn and not used; returned to the caller
	outputQueue
	weight
}

// peer is the transport's side of a session: addresses, descriptor and callbacks.
type peer struct {
	addr, laddr string
	fd          int  // -1 if there is none
	unix        bool // a unix socket
	secure      bool // it speaks TLS

	// wake notifies the transport that the session has output from outside its own
	// turn, may continue after having been blocked, or is to be closed. It is
	// called without the lock, possibly from any goroutine.
	wake func()

	// polled is the connection, if a loop of the epoll transport serves it.
	polled *polled

	// input is the parser of the session's commands; nil if no transport reads
	// them.
	input *input

	// query returns the used and the free bytes of the input buffer. May be nil.
	query func() (taken, free int)

	// inKernel returns how many written bytes the client has not received yet. May
	// be nil.
	inKernel func() int64

	// ended reports whether the client has closed its side of the connection, even
	// if the transport has not read that far. May be nil.
	ended func() bool
}

// replyMode is the mode that CLIENT REPLY sets.
type replyMode uint8

const (
	replyOn replyMode = iota
	replyOff
	replySkipNext // suppress the reply of the next command
	replySkip     // suppress the reply of the current command
)

type queued struct {
	cmd   *Command
	argv  [][]byte
	names int // how many of argv are the command's name
}

// newSession returns a session for a client.
func (srv *Server) newSession(p peer) *Session {
	var s *Session
	srv.newSessionAt(&s, p)
	return s
}

// newSessionAt is newSession for a transport. It stores the session in place before
// other goroutines can find it: they may kill it at once, which calls wake.
func (srv *Server) newSessionAt(place **Session, p peer) {
	srv.mu.Lock() // also while a script lends the lock
	defer srv.mu.Unlock()
	now := srv.clock()
	srv.lastID++
	s := &Session{
		srv: srv, id: srv.lastID, db: srv.keys.DB(0),
		peer: p, created: now, lastUsed: now,
	}
	s.setDefaultUser()
	s.call = Call{sess: s, srv: srv, Reply: &s.out}
	*place = s
	srv.sessions[s.id] = s
	srv.connections++
	s.weigh()
}

// close ends the session and removes its watches, waits and subscriptions. The
// transport calls it once. It returns output that arrived while the transport found
// out that the client sends no more: an element, for instance, that exists nowhere
// else now. A client that has closed only its half of the connection still reads
// it.
func (s *Session) close() (out []byte) {
	s.srv.maintain(func() { // not do, which may serve s an element that it waits for
		s.garbage += int(s.unsent.Load())
		if s.query != nil {
			taken, free := s.query()
			s.garbage += taken + free
		}
		out, _, _ = s.taken(nil)
		s.drop()
		s.reset()
		s.untrack(true)
		s.killed = true
		s.weigh()
		delete(s.srv.sessions, s.id)
		s.srv.scope.commit()
	})
	return out
}

// released accounts the session's freed buffers to the garbage collector's trigger.
// The transport calls it once it has closed the connection and holds no buffer of
// it.
func (s *Session) released() {
	if n := s.garbage; n >= minCollect {
		s.srv.maintain(func() { s.srv.bytesFreed(n) })
	}
}

// reset returns the session to the state of a new connection, except for
// authentication.
func (s *Session) reset() {
	if s.blocked != nil {
		s.srv.unblock(s.blocked)
	}
	s.srv.forgetPostponed(s)
	s.discard()
	s.srv.unsubscribeAll(s)
	s.untrack(false)
	s.readonly = false
	s.srv.stopMonitor(s)
}

// Limits of one turn before other clients get theirs: the number of commands, the
// time, and the size of the replies.
const (
	turnLimit = 64
	turnTime  = time.Millisecond
	turnBytes = 256 << 10
)

// owns reports whether an argument of the running command is in memory that no
// other code uses after the command. It returns false for a postponed command
// without asking the client's reader, which may be in use by then.
func (s *Session) owns(arg []byte) bool {
	return s.peer.input != nil && !s.runningPostponed && s.peer.input.reader.Apart(arg)
}

// turn runs commands in order until all are done, the session blocks or is to
// close, or the turn is over, and returns how many are done. A non-nil out is the
// output that the caller must write; it must call written afterwards. The replies
// are written to spare, which becomes out or is released. So a few buffers of
// sufficient size serve all clients, and an idle client has none. ending reports
// that the session runs no more commands.
func (s *Session) turn(batch [][][]byte, spare []byte) (done int, out []byte, ending bool) {
	srv := s.srv
	srv.mu.Lock()
	if srv.busy {
		return s.turnWhileBusy(batch)
	}
	done, out, ending = s.turnLocked(batch, spare)
	srv.unlock()
	return done, out, ending
}

// turnLocked is turn with the lock held, while no script lends it.
func (s *Session) turnLocked(batch [][][]byte, spare []byte) (done int, out []byte, ending bool) {
	srv := s.srv
	defer srv.guard()
	srv.freeze()
	srv.serveDue()
	done, out, ending = s.work(batch, spare)
	s.spare = s.unused()
	srv.finishTurn()
	return done, out, ending
}

// unused takes back the buffer that was lent to the last turn, or nil if the turn
// used it.
func (s *Session) unused() []byte {
	if s.out.Len() > 0 {
		return nil
	}
	return s.out.Swap(nil)
}

// work runs commands for turn, or for an epoll loop.
func (s *Session) work(batch [][][]byte, spare []byte) (done int, out []byte, ending bool) {
	srv := s.srv
	srv.current = s
	if s.out.Len() == 0 {
		s.out.Swap(spare)
	}
	s.out.SetLimit(s.replyLimit())
	start := srv.at
	for done < len(batch) && !s.stalled.Load() && !s.closing && !s.killed {
		n := s.runFastBatch(batch[done:])
		if n == 0 {
			s.exec(batch[done])
			srv.scope.commit()
			s.checkOutput()
			n = 1
		}
		done += n
		if s.out.Len() > turnBytes || srv.at.Sub(start) > turnTime {
			break
		}
	}
	if srv.tracking.on {
		srv.finishTracking()
	}
	srv.current = nil
	if s.out.Len() > 0 && srv.keeper.holds() {
		srv.keeper.hold(s)
	}
	switch {
	case s.killed:
		s.drop()
	case s.waiting() == 0:
	case !s.held && s.claim():
		out = s.next(nil)
	default:
		s.leaveWaiting()
	}
	s.weigh()
	s.call.argv, s.call.Args = nil, protocol.Args{} // others reuse this memory from now on
	return done, out, s.closing || s.killed
}

// ending reports whether the session runs no more commands.
func (s *Session) ending() bool {
	s.srv.mu.Lock()
	defer s.srv.mu.Unlock()
	return s.closing || s.killed
}

// resume allows the transport to run commands again.
func (s *Session) resume() {
	s.stalled.Store(false)
	s.pending()
}

// kill ends the connection as soon as possible and discards its output queue. From
// now on the session receives nothing more: no element, no message.
func (s *Session) kill() {
	s.killed = true
	s.srv.memoryLimit.nonKeyBytesAt = time.Time{} // its memory no longer counts: evict no key because of it
	s.reset()
	s.weigh()
	s.pending()
}

// exec runs one command line: all checks that Redis makes before a command runs, in
// Redis's order, then the command.
func (s *Session) exec(argv [][]byte) {
	srv := s.srv
	s.lastUsed = srv.at
	mark := s.out.Len()
	srv.scope.actor, srv.scope.mark = s, mark
	s.dispatch(argv)
	srv.scope.actor = nil
	if s.cache != nil && !s.multi && (s.last == nil || !strings.HasPrefix(s.last.Name, "client|")) {
		s.cache.caching = false
	}
	if s.replies != replyOn && s.blocked == nil && s.postponed == nil {
		s.suppressReply(mark)
	}
}

func (s *Session) dispatch(argv [][]byte) {
	srv := s.srv
	cmd, names := srv.table.find(argv)
	if cmd == nil {
		if isHTTP(argv[0]) {
			srv.warnOfHTTP(s)
			s.kill()
			return
		}
		s.last = nil
		s.refuse(nil, unknownCommand(argv))
		return
	}
	s.last = cmd
	if cmd.run == nil || cmd.byArg != nil && len(argv) > 1 {
		if len(argv) == 1 {
			s.refuse(cmd, wrongArity(cmd.Name))
		} else {
			s.last = nil
			s.refuse(nil, "ERR unknown subcommand '"+clip(argv[1], 128)+"'. Try "+strings.ToUpper(string(argv[0]))+" HELP.")
		}
		return
	}
	if cmd.Arity > 0 && len(argv) != cmd.Arity || len(argv) < -cmd.Arity {
		s.refuse(cmd, cmd.wrongArity())
		return
	}
	flags := cmd.spec.Flags()
	if flags&protocol.Protected != 0 && !s.mayUseProtected(cmd) {
		s.refuse(cmd, errProtected(cmd))
		return
	}
	if !s.authenticated && flags&protocol.NoAuth == 0 && srv.acl.loginRequired.Load() {
		s.refuse(cmd, "NOAUTH Authentication required.")
		return
	}
	if s.multi && flags&protocol.NoMulti != 0 {
		s.refuse(cmd, "ERR Command not allowed inside a transaction")
		return
	}
	if !s.user.all {
		if d := s.permit(cmd, argv, s.denialContext()); d != permitted {
			s.refuse(cmd, d.refusal(cmd))
			return
		}
	}
	if srv.cluster != nil {
		if _, refusal := s.misplaced(cmd, argv); refusal != "" {
			s.misroute(cmd, refusal)
			return
		}
	}
	if srv.config.maxmemory != 0 && srv.lacksMemory() && s.needsMemory(cmd, argv) {
		s.refuse(cmd, errOOM)
		return
	}
	if s.out.Version() == 2 && s.subscriptions() > 0 && !allowedWhileSubscribed(cmd.Name) {
		s.refuse(cmd, "ERR Can't execute '"+cmd.Name+"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
		return
	}
	if s.monitoring && s.effectsOf(cmd, argv).Has(protocol.Write|protocol.ReadOnly|protocol.MayReplicate) {
		s.refuse(cmd, "ERR Replica can't interact with the keyspace")
		return
	}
	if srv.keeper.refuses() && (cmd.Name == "ping" || s.effectsOf(cmd, argv).Has(protocol.Write)) {
		s.refuse(cmd, errNotSaved)
		return
	}
	if srv.lacksReplicas() && s.effectsOf(cmd, argv).Has(protocol.Write) {
		s.refuse(cmd, errNoReplicas)
		return
	}
	if srv.keeper.loading != nil && !s.mayWhileLoading(cmd) {
		s.refuse(cmd, errLoading)
		return
	}
	if srv.busy && flags&protocol.AllowBusy == 0 {
		s.refuse(cmd, srv.scripting.running.busyError())
		return
	}
	if srv.pausedUntil != 0 && srv.postpones(s, cmd, argv) {
		srv.postpone(s, argv)
		return
	}
	if srv.nextExpiry <= srv.keys.Now() && srv.overdue(s, cmd, argv) {
		srv.delay(s, argv)
		return
	}
	if s.multi && !runsInMulti(cmd.Name) {
		s.enqueue(cmd, argv, names)
		s.out.Status("QUEUED")
		return
	}
	s.run(cmd, argv, argv[names:])
}

const errNoReplicas = "NOREPLICAS Not enough good replicas to write."

// lacksReplicas reports whether the configuration requires replicas for writes.
// There never are any.
func (srv *Server) lacksReplicas() bool {
	return srv.config.minReplicas > 0 && srv.config.minReplicasMaxLag > 0
}

// run executes a command that has passed all checks.
func (s *Session) run(cmd *Command, argv, args [][]byte) {
	c := &s.call
	c.Args = protocol.NewArgs(args)
	c.cmd, c.argv, c.db, c.secret, c.counted = cmd, argv, s.db, nil, false
	mark, start := s.out.Len(), s.srv.at
	s.srv.keys.NoTouch = s.noTouch && cmd.Name != "touch"
	cmd.run(c)
	c.cmd, c.argv = cmd, argv // EXEC has replaced them meanwhile
	c.removeEmpty()
	if s.cache != nil && cmd.reads() {
		s.trackKeys(cmd, argv)
	}
	s.srv.recordCall(c, mark, start)
}

// retry runs the command of a waiter again. If the command completes, the session
// continues.
func (s *Session) retry(w *Waiter) {
	if s.peerClosed() { // the element is for the next waiter
		s.kill()
		return
	}
	c := &s.call
	mark, start := s.out.Len(), s.srv.at
	if d := s.permit(w.cmd, w.argv, deniedToplevel); d != permitted { // the user has lost permissions since
		s.srv.unblock(w)
		s.refuse(w.cmd, d.refusal(w.cmd))
		s.suppressReply(mark)
		return
	}
	s.srv.keys.NoTouch = s.noTouch
	c.Args = protocol.NewArgs(w.argv[w.names:])
	c.cmd, c.argv, c.db, c.secret = w.cmd, w.argv, w.db, nil
	c.again, c.stillBlocked = true, false
	u := &s.srv.scope
	others, otherMark := u.actor, u.mark
	u.actor, u.mark = s, mark
	w.cmd.run(c)
	c.removeEmpty()
	u.actor, u.mark = others, otherMark
	c.again = false
	if c.stillBlocked {
		s.srv.at = s.srv.clock()
		w.tries++
		w.spent += s.srv.at.Sub(start)
		return
	}
	if s.cache != nil && w.cmd.reads() {
		s.trackKeys(w.cmd, w.argv)
	}
	s.finish(w, mark, start)
}

// peerClosed reports whether the client has closed its side of the connection. Like
// Redis, which has read the end of its input by then, the server serves no element
// to such a client. The check costs a system call.
func (s *Session) peerClosed() bool { return s.ended != nil && s.ended() }

// endWait ends a wait with the given reply: the reply for the timeout, or an error.
func (s *Session) endWait(w *Waiter, reply func(*protocol.Reply)) {
	c := &s.call
	c.cmd, c.argv, c.db, c.secret = w.cmd, w.argv, w.db, nil
	mark := s.out.Len()
	reply(&s.out)
	s.finish(w, mark, s.srv.at)
}

// finish ends a wait whose reply starts at mark. The last attempt began at start.
func (s *Session) finish(w *Waiter, mark int, start time.Time) {
	s.srv.unblock(w)
	s.srv.recordWaiter(w, mark, start)
	s.suppressReply(mark)
}

// suppressReply suppresses the reply of the command that has just completed, as CLIENT REPLY
// demands: it truncates the output to mark. Confirmations of subscriptions are
// messages, not replies, and stay.
func (s *Session) suppressReply(mark int) {
	switch s.replies {
	case replyOn:
		return
	case replySkipNext:
		s.replies = replySkip
		return
	case replySkip:
		s.replies = replyOn
	}
	if s.last == nil || s.last.spec.Flags()&(protocol.PubSub|protocol.NoScript) != protocol.PubSub|protocol.NoScript {
		s.out.Truncate(mark)
	}
}

// refuse replies an error in place of running a command; cmd is nil if no command
// was found. A transaction that is being queued will fail.
func (s *Session) refuse(cmd *Command, msg string) {
	if cmd != nil {
		cmd.stats.rejected++
	}
	switch {
	case cmd != nil && cmd.Name == "exec":
		msg = "EXECABORT Transaction discarded because of: " + strings.TrimPrefix(msg, "ERR ")
		s.discard()
	case s.multi:
		s.aborted = true
	}
	s.out.Error(msg)
	s.srv.countError(msg)
}

// misroute replies the error for a command whose keys are on another node, from the
// view of a cluster client. A transaction that is being queued will fail; EXEC ends
// it.
func (s *Session) misroute(cmd *Command, msg string) {
	cmd.stats.rejected++
	if cmd.Name == "exec" {
		s.discard()
	} else if s.multi {
		s.aborted = true
	}
	s.out.Error(msg)
	s.srv.countError(msg)
}

// errProtected is the error of a command that a parameter has to enable: DEBUG, or
// some subcommands of MODULE.
func errProtected(cmd *Command) string {
	name, _, _ := strings.Cut(cmd.Name, "|")
	return "ERR " + strings.ToUpper(name) + " command not allowed. If the enable-" + name + `-command option is set to "local", ` +
		"you can run it from a local connection, otherwise you need to set this option in the configuration file, " +
		"and then restart the server."
}

// mayUseProtected reports whether enable-debug-command, or enable-module-command,
// permits cmd for this client.
func (s *Session) mayUseProtected(cmd *Command) bool {
	who := s.srv.config.enableDebug
	if cmd.Name != "debug" {
		who = s.srv.config.enableModule
	}
	switch who {
	case "yes":
		return true
	case "local":
		host, _, err := net.SplitHostPort(s.addr)
		return s.unix || err != nil || net.ParseIP(host).IsLoopback() // no address: in this process
	}
	return false
}

func wrongArity(name string) string {
	return "ERR wrong number of arguments for '" + name + "' command"
}

// unknownCommand is Redis's error for a name that is not in the table. It quotes
// the first arguments, up to 128 bytes.
func unknownCommand(argv [][]byte) string {
	var args strings.Builder
	for _, a := range argv[1:] {
		if args.Len() >= 128 {
			break
		}
		args.WriteString("'" + clip(a, 128-args.Len()) + "' ")
	}
	return "ERR unknown command '" + clip(argv[0], 128) + "', with args beginning with: " + args.String()
}

// clip returns at most n bytes of b, up to the first NUL, as C prints it.
func clip(b []byte, n int) string {
	b = b[:min(n, len(b))]
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// isHTTP reports whether a command is the beginning of an HTTP request, which an
// attacker may have tricked a browser into sending.
func isHTTP(name []byte) bool {
	return protocol.EqualFold(name, "POST") || protocol.EqualFold(name, "HOST:")
}

// warnOfHTTP logs that a client speaks HTTP, at most once a minute: such an attack
// sends many requests.
func (srv *Server) warnOfHTTP(s *Session) {
	if !srv.warnedOfHTTP.IsZero() && srv.at.Sub(srv.warnedOfHTTP) < time.Minute {
		return
	}
	srv.warnedOfHTTP = srv.at
	srv.log.Warn("Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands to Redis. "+
		"This is likely due to an attacker attempting to use Cross Protocol Scripting to compromise your Redis instance. "+
		"Connection aborted.", "client", s.addr)
}

func allowedWhileSubscribed(name string) bool {
	switch name {
	case "ping", "subscribe", "ssubscribe", "psubscribe", "unsubscribe", "sunsubscribe", "punsubscribe", "quit", "reset":
		return true
	}
	return false
}

func runsInMulti(name string) bool {
	switch name {
	case "exec", "discard", "multi", "watch", "quit", "reset":
		return true
	}
	return false
}
