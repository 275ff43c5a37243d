package engine

import (
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
	"github.com/zsetd/zsetd/server/internal/engine/tracking"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// Session is one client: its database, protocol version, transaction, watches,
// subscriptions and output queue. It takes commands and appends replies to its
// output queue; it does no I/O. A transport moves the bytes.
//
// One transport goroutine at a time uses a session. The server's lock guards fields
// without a note.
type Session struct {
	Engine *Engine
	ID     int64
	Call   Call
	DB     *keyspace.DB
	Out    protocol.Reply

	Peer          Peer // fixed before the first command
	Login         login
	Modes         modes
	Activity      activity
	Transaction   transaction
	subscriptions subscription.Names
	live          *liveSubscriptions // nil unless it subscribes to live queries
	Metered       metered
	forwarded     *forwarded       // nil unless commands were forwarded
	cache         *tracking.Client // state of CLIENT TRACKING; nil without tracking
	fieldsets     map[string][][]byte

	Stall  stall
	End    EndState
	Queue  outputQueue
	Weight weight
}

// login is the user of a session, and the names that the client has given itself.
type login struct {
	User                *acl.User
	Name                string
	LibName, LibVersion string
	Authenticated       bool
	Redirectable        bool // it understands a redirection of a server that is no cluster; see CLIENT CAPA
}

// EndState is how far a session has ended. A session never returns to an earlier one.
type EndState uint8

// Serving is the state of a session that has not ended.
const (
	Serving EndState = iota
	Closing          // it runs no more commands, and closes once its output queue is written
	Killed           // it closes now, and its output queue is discarded
)

// CloseAfterReply ends the session once its output queue is written.
func (s *Session) CloseAfterReply() { s.End = max(s.End, Closing) }

// modes are the modes of a session.
type modes struct {
	NoEvict, NoTouch bool
	Readonly         bool // READONLY, in a cluster
	monitoring       bool
	Replica          bool // a replica's: it receives the stream of effects
	Primary          bool // the link to the primary of this server, which is a replica
	Link             any  // state of package replication about the client; nil for clients without REPLCONF
	NoBlock          bool // commands that would block reply as at their timeout
	Script           bool // the session that runs the commands of scripts
	direct           bool // in-process use by the embedding program, without a connection
	Replies          replyMode
}

// Peer is the transport's side of a session: addresses, descriptor and connection.
type Peer struct {
	Addr, LocalAddr string
	FD              int  // -1 if there is none
	Unix            bool // a unix socket
	Secure          bool // it speaks TLS
	Apart           bool // see Session.countsApart

	// Wake notifies the transport that the session has output from outside its own
	// turn, may continue after having been blocked, or is to be closed. It is
	// called without the lock, possibly from any goroutine.
	Wake func()

	// HangUp closes the connection of a session without a transport. Kill calls it with the
	// lock held, so it does not wait: the other end learns at once that the session is over,
	// however long the turn is. It may be nil.
	HangUp func()

	// Reader is the parser of the session's commands; nil if no transport reads
	// them.
	Reader *protocol.Reader

	// Conn is the connection; nil if there is none.
	Conn Conn
}

// Conn is the state of a session's connection that only its transport knows. The
// methods are called with the lock held, and do not wait.
type Conn interface {
	// Ended reports whether the client has closed its side of the connection, even
	// if the transport has not read that far.
	Ended() bool

	// InputBuffer returns the used and the free bytes of the input buffer.
	InputBuffer() (used, free int)

	// Arrived returns how many bytes of input there have been.
	Arrived() int64

	// Untaken returns how many written bytes the client has not received yet; 0 if
	// that is unknown.
	Untaken() int64
}

// replyMode is the mode that CLIENT REPLY sets.
type replyMode uint8

// ReplyOn is a mode of CLIENT REPLY.
const (
	ReplyOn replyMode = iota
	ReplyOff
	ReplySkipNext // suppress the reply of the next command
	ReplySkip     // suppress the reply of the current command
)

type queued struct {
	cmd   *Command
	argv  [][]byte
	names int // how many of argv are the command's name
}

// NewSession returns a session for a client.
func (srv *Engine) NewSession(p Peer) *Session {
	var s *Session
	srv.NewSessionAt(&s, p)
	return s
}

// NewSessionAt adds a session and stores it in place before other goroutines can find it: they may
// kill it at once, which calls Wake of the peer.
func (srv *Engine) NewSessionAt(place **Session, p Peer) { srv.NewSessionAs(place, p, "") }

// NewSessionAs is NewSessionAt for a user, who needs no password; "" is the default user, if that
// needs none.
func (srv *Engine) NewSessionAs(place **Session, p Peer, user string) {
	srv.Mu.Lock() // also while a script lends the lock
	defer srv.Mu.Unlock()
	srv.addSession(place, p)
	if user != "" {
		(*place).setUser(user)
	}
}

// addSession is NewSessionAt with the lock held.
func (srv *Engine) addSession(place **Session, p Peer) {
	now := srv.Clock()
	srv.Clients.lastID++
	s := &Session{
		Engine: srv, ID: srv.Clients.lastID, DB: srv.Keys.DB(0),
		Peer: p, Activity: activity{Created: now, lastUsed: now},
	}
	s.SetDefaultUser()
	s.Call = Call{Session: s, Engine: srv, Reply: &s.Out}
	*place = s
	srv.Clients.Sessions[s.ID] = s
	srv.Stats.Connections++
	s.Weigh()
}

// Close ends the session and removes its watches, waits and subscriptions. The transport
// calls it once. It returns output that arrived while the transport found out that the
// client sends no more: an element, for instance, that exists nowhere else now. A client
// that has closed only its half of the connection still reads it.
func (s *Session) Close() (out []byte) {
	s.Engine.Maintain(func() { out = s.remove() }) // not InTurn, which may serve s an element that it waits for
	return out
}

// remove is Close with the lock held.
func (s *Session) remove() (out []byte) {
	s.Queue.garbage.Add(s.Queue.Unsent.Load() + int64(s.Peer.inputSize()))
	out, _, _ = s.TakeLocked(nil)
	s.drop()
	s.Reset()
	s.untrackRemoved()
	s.End = Killed
	s.Weigh()
	delete(s.Engine.Clients.Sessions, s.ID)
	s.Engine.Turn.Scope.Commit()
	return out
}

// Released accounts the session's freed buffers to the garbage collector's trigger. The
// transport calls it once it has closed the connection and holds no buffer of it; of two
// goroutines that have held one, each calls it.
func (s *Session) Released() {
	if n := s.Queue.garbage.Load(); n >= minCollect {
		s.Engine.Maintain(func() { s.Engine.bytesFreed(int(n)) })
	}
}

// Reset returns the session to the state of a new connection, except for
// authentication.
func (s *Session) Reset() {
	if s.Stall.Blocked != nil {
		s.Engine.unblock(s.Stall.Blocked)
	}
	s.Engine.forgetPostponed(s)
	s.leaveUpstream()
	s.discard()
	s.unsubscribeAll()
	s.Untrack()
	s.dropFieldsets()
	s.Modes.Readonly = false
	s.Engine.Clients.stopMonitor(s)
	if s.Modes.Replica {
		s.Modes.Replica = false
		s.Engine.Replication.Left(s)
	}
}

// Limits of one turn before other clients get theirs: the number of commands, the
// time, and the size of the replies.
const (
	TurnLimit = 64
	turnTime  = time.Millisecond
	turnBytes = 256 << 10
)

// Owns reports whether an argument of the running command is in memory that no
// other code uses after the command. It returns false for a postponed command
// without asking the client's reader, which may be in use by then.
func (s *Session) Owns(arg []byte) bool {
	return s.Peer.Reader != nil && !s.Stall.runningPostponed && s.Peer.Reader.Apart(arg)
}

// Turn runs commands in order until all are done, the session blocks or is to close, or
// the turn is over, and returns how many are done. A non-nil out is the output that the
// caller must write; it must call Written afterwards. The replies are written to spare,
// which becomes out or is released. So a few buffers of sufficient size serve all clients,
// and an idle client has none. ending reports that the session runs no more commands.
func (s *Session) Turn(batch [][][]byte, spare []byte) (done int, out []byte, ending bool) {
	srv := s.Engine
	srv.Mu.Lock()
	if srv.Scripting.Busy {
		return s.turnWhileBusy(batch)
	}
	done, out, ending = s.turnLocked(batch, spare)
	srv.unlock()
	return done, out, ending
}

// turnLocked runs one turn of the session. The lock is held, and no script lends it.
func (s *Session) turnLocked(batch [][][]byte, spare []byte) (done int, out []byte, ending bool) {
	srv := s.Engine
	defer srv.guard()
	srv.Freeze()
	srv.serveDue()
	done, out, ending = s.work(batch, spare)
	s.Queue.spare = s.unused()
	srv.finishTurn()
	return done, out, ending
}

// ReaderLimits returns the limits of the client's input, and how many commands to parse
// at once: an unauthenticated client sends one, as AUTH changes the limits.
func (s *Session) ReaderLimits() (limits protocol.Limits, commands int) {
	limits = s.Engine.limits.Load().reader
	if !s.Login.Authenticated && s.Engine.ACL.LoginRequired() {
		limits.Unauthenticated = true
		return limits, 1
	}
	return limits, TurnLimit
}

// InputGrew checks the size of the client's input buffer, which was before bytes large
// when the session was weighed. held reports that commands in it wait for the session. It
// reports whether it has weighed the session again, and whether the size is permitted.
func (s *Session) InputGrew(before, size int, held bool) (weighed, ok bool) {
	limits := s.Engine.limits.Load()
	switch {
	case size <= unauthenticatedInput || !s.InputExceedsLimit(size):
	case held && !(s.Stall.Stalled.Load() && s.WaitsForOthers()):
		s.addSlow() // checkSlow closes it, unless it reads
	default:
		s.Engine.Stats.QueryLimitDisconnections.Add(1)
		s.logInputLimit("a command or its pipeline exceeds it", size)
		return false, false
	}
	if limits.weighClients && size != before && (size > largeInput || before > largeInput) {
		// No command runs before it has arrived completely, so no other code would
		// notice.
		s.Engine.MaintainUnlessBusy(s.Weigh)
		return true, true
	}
	return false, true
}

// InputExceedsLimit reports whether an input buffer of that size is larger than the client's
// limit.
func (s *Session) InputExceedsLimit(size int) bool { return size > s.inputLimit() }

func (s *Session) inputLimit() int {
	limit := s.Engine.limits.Load().queryBuffer
	if !s.Login.Authenticated && s.Engine.ACL.LoginRequired() {
		return min(limit, unauthenticatedInput)
	}
	return limit
}

// unauthenticatedInput is the size of the input buffer of a client that must authenticate and
// has not.
const unauthenticatedInput = 1 << 20

func (s *Session) logInputLimit(reason string, size int) {
	s.Engine.Log.Warn("closing client: its input exceeds client-query-buffer-limit", "reason", reason,
		"client", s.Peer.Addr, "bytes", size, "client-query-buffer-limit", s.inputLimit())
}

// largeInput is the size from which an input buffer counts for maxmemory-clients while
// a command arrives.
const largeInput = 32 << 10

// FailInput replies the error of a client's input and closes the session once that is
// written. It waits for a busy script.
func (s *Session) FailInput(err error) {
	s.Engine.InTurn(func() {
		mark, msg := s.Out.Len(), "ERR "+err.Error()
		s.Out.Error(msg)
		s.Engine.countError(msg, false)
		if s.EndStream(); s.Modes.Replica {
			s.Engine.Replication.Replied(s, s.Activity.last, mark)
		}
	})
}

// TakeSpare returns the buffer that was passed to the last turn, or nil if the turn has
// used it.
func (q *outputQueue) TakeSpare() []byte {
	b := q.spare
	q.spare = nil
	return b
}

// unused takes back the buffer that was lent to the last turn, or nil if the turn
// used it.
func (s *Session) unused() []byte {
	if s.Out.Len() > 0 {
		return nil
	}
	return s.Out.Swap(nil)
}

// work runs commands for Turn, or for a loop of a transport.
func (s *Session) work(batch [][][]byte, spare []byte) (done int, out []byte, ending bool) {
	srv := s.Engine
	srv.Turn.current = s
	if s.Out.Len() == 0 {
		s.Out.Swap(spare)
	}
	s.Out.SetLimit(s.replyLimit())
	start := srv.Turn.At
	for done < len(batch) && !s.Stall.Stalled.Load() && s.End == Serving {
		n := s.runFastBatch(batch[done:])
		if n == 0 {
			s.Exec(batch[done])
			srv.Turn.Scope.Commit()
			s.checkOutput()
			n = 1
		}
		done += n
		if s.Out.Len() > turnBytes || srv.Turn.At.Sub(start) > turnTime {
			break
		}
	}
	if srv.Tracking.On() {
		srv.finishTracking()
	}
	if s.awaitsReplies() {
		s.Stall.Stalled.Store(true)
	}
	srv.Turn.current = nil
	s.noteChanges()
	if s.Out.Len() > 0 && srv.withholds() {
		srv.withhold(s)
	}
	switch {
	case s.End == Killed:
		s.drop()
	case s.waiting() == 0:
	case !s.Stall.withheld && s.Queue.claim():
		out = s.next(nil)
	default:
		s.leaveWaiting()
	}
	s.Weigh()
	s.Call.Argv, s.Call.Args = nil, protocol.Args{} // others reuse this memory from now on
	return done, out, s.End != Serving
}

// Ending reports whether the session runs no more commands.
func (s *Session) Ending() bool {
	s.Engine.Mu.Lock()
	defer s.Engine.Mu.Unlock()
	return s.End != Serving
}

// Receives reports whether the session waits for other clients, or receives output
// that it has not requested.
func (s *Session) Receives() bool {
	s.Engine.Mu.Lock()
	defer s.Engine.Mu.Unlock()
	return s.Stall.Blocked != nil || s.Stall.postponed != nil || s.awaitsReplies() || s.subscriptions.Len() > 0 || s.Modes.monitoring || s.cache != nil
}

// WasKilled reports whether the connection is to be closed at once.
func (s *Session) WasKilled() bool {
	s.Engine.Mu.Lock()
	defer s.Engine.Mu.Unlock()
	return s.End == Killed
}

// resume allows the transport to run commands again.
func (s *Session) resume() {
	s.Stall.Stalled.Store(false)
	s.pending()
}

// Kill ends the connection as soon as possible and discards its output queue. From
// now on the session receives nothing more: no element, no message.
func (s *Session) Kill() {
	s.End = Killed
	s.Engine.Memory.NonKeyBytesAt = time.Time{} // its memory no longer counts: evict no key because of it
	s.Reset()
	s.Weigh()
	s.pending()
	if s.Peer.HangUp != nil {
		s.Peer.HangUp()
	}
}

// Find returns the session with an ID, or nil: a client that was killed does not exist any
// more, though its transport has not closed it yet. The lock is held.
func (t *clients) Find(id int64) *Session {
	if s := t.Sessions[id]; s != nil && s.End != Killed {
		return s
	}
	return nil
}

// InputBuffer returns the used and the free bytes of the connection's input buffer.
func (p *Peer) InputBuffer() (used, free int) {
	if p.Conn == nil {
		return 0, 0
	}
	return p.Conn.InputBuffer()
}

// inputSize returns the memory of that buffer.
func (p *Peer) inputSize() int {
	used, free := p.InputBuffer()
	return used + free
}

// Clip returns at most n bytes of b, up to the first NUL, as C prints it.
func Clip(b []byte, n int) string {
	b = b[:min(n, len(b))]
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// SetDefaultUser gives the session the default user, as a new session has.
func (s *Session) SetDefaultUser() {
	s.Login.User, s.Login.Authenticated = s.Engine.ACL.Standard, !s.Engine.ACL.LoginRequired()
}

// setUser gives a new session a user without a password. A user that does not exist, or is
// disabled, has no permissions.
func (s *Session) setUser(name string) {
	u := s.Engine.ACL.Users[name]
	if u == nil || !u.Enabled() {
		u = s.Engine.ACL.NewUser(name)
		u.DeriveFields()
	}
	s.Login.User, s.Login.Authenticated = u, true
}

// SetOwner gives the session the embedding program's user, which is unrestricted.
func (s *Session) SetOwner() { s.Login.User, s.Login.Authenticated = s.Engine.ACL.Owner, true }
