package engine

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine/config"
)

// The output queue of a session: bytes that wait to be written to its client, and
// the limits on them.
//
// Output that cannot be written at once waits in blocks, so a slow client costs as
// much memory as waits for it. A single growing buffer costs twice that, and is
// copied whenever it grows. The last block is the Reply that handlers write to.
//
// There are three bounds.
//
//   - The server runs no more commands of a client with more than maxUnsent bytes
//     of unread replies (ExceedsLimit). It continues to read commands, up to
//     client-query-buffer-limit: many clients read no reply before they have written
//     all of a pipeline. At that limit it closes a client that takes no output for
//     stuckSeconds, and lets another one wait. maxUnsent is not a parameter: it harms
//     no client.
//   - client-output-buffer-limit closes a client: at once above the hard limit,
//     even in the middle of a command (Reply.SetLimit), or after some seconds above
//     the soft limit.
//   - Output that a client has not requested (lines of MONITOR, invalidations of
//     cached keys) falls under the hard limit of the class pubsub, whatever the
//     client's class: ExceedsLimit does not stop it.
//
// The soft limit of the class normal is about progress: its seconds restart when
// the client takes data, or sends at least 4 KB, more than a sign of life. So with the
// default, 1 MB and 60 s, a client that reads a pipeline's 300 MB over a slow line is
// served for as long as it takes, and a stopped client (a debugger, a suspended
// machine) has a minute. But a client that no longer reads does not hold its 32 MB
// without limit. The seconds of Redis count waiting bytes whether or not they move; so
// Redis has no limit at all for this class by default, as any limit would also
// disconnect well-behaved slow clients. Rejected: 10 s, which disconnects a client
// that is stopped in a debugger for a moment; and 300 s, the tcp-keepalive, which lets a thousand such connections hold
// 32 GB for five minutes. The hard limit, 1 GB, corresponds to
// client-query-buffer-limit for input. It effectively bounds single replies, of
// which a string of 512 MB must be one.
//
// Where the system can report it, bytes count as taken only once they have left the
// kernel's send buffer: the socket of a slow client becomes writable only after a
// third of some megabytes has gone.

const (
	// maxUnsent is how many bytes of unread replies may wait before the server runs
	// no more commands of that client.
	maxUnsent = 32 << 20
	// blockSize is the size up to which a block of an output queue grows before the
	// next one begins.
	blockSize = 64 << 10
	// firstReplies is how many bytes never count against a limit. Redis, too, has a
	// buffer of that size ahead of those that it counts.
	firstReplies = 16 << 10
	// preAuthOutputLimit is how many bytes of replies may wait for a client that must
	// authenticate and has not: no login needs more. (Redis up to 7.2.7 does not
	// limit them.)
	preAuthOutputLimit = 16 << 10
	// slowCheckInterval is the interval between checks of slow consumers.
	slowCheckInterval = 250 * time.Millisecond
	// softLimitSlack is how long after the seconds of its soft limit a client is
	// closed. Redis counts whole seconds of its clock and closes between 0 and 1 s
	// after them, never before. A client's own clock may start a little later than the
	// server's, because omem drops below the limit between two measurements.
	softLimitSlack = 500 * time.Millisecond
	// halfClosedSeconds is how many seconds a client that sends no more may take nothing
	// of its remaining output, if no soft limit applies.
	halfClosedSeconds = 60
	// stuckSeconds is how many seconds a client whose unrun commands exceed its query
	// buffer may take nothing of its output.
	stuckSeconds = 1
)

// outputQueue is the state of a session's output queue besides Out. The server's lock
// guards fields without a note.
type outputQueue struct {
	blocks  [][]byte     // sealed blocks, ahead of the bytes in out
	Sealed  int          // bytes in blocks
	garbage atomic.Int64 // bytes of buffers that were released when the client left
	spare   []byte       // buffer passed to turn and not used; returned to the caller
	held    *held        // what has arrived while replying
	pushed  int64        // unrequested bytes since the queue was last empty
	owed    int64        // bytes that wait elsewhere, see Owe
	stream  int64        // bytes that Append has queued

	softSince time.Time // since when the queue has been above its soft limit
	seen      int64     // the last value of progress
	seenAt    time.Time // when it last changed

	waking     bool // in the wake list of the commit scope
	replying   bool // a command of the client runs, so that its reply may be incomplete
	halfClosed bool // the client sends no more
	overran    bool // closed because it exceeded a limit

	Flushing  atomic.Uint32 // see claim
	inSlow    atomic.Bool   // is in clients.slow
	Unsent    atomic.Int64  // bytes that the transport has taken and could not write yet
	queuedOut atomic.Int64  // bytes that turns have added since
	late      atomic.Int64  // bytes written later than at the first attempt
}

// waiting returns how many bytes no transport has taken yet.
func (s *Session) waiting() int { return s.Out.Len() + s.Queue.Sealed }

// backlog returns how many bytes of output the client has not taken yet.
func (s *Session) backlog() int64 {
	n := int64(s.Out.Len()+s.Queue.Sealed) + s.Queue.Unsent.Load() + s.Queue.owed
	if s.Queue.held != nil {
		n += int64(len(s.Queue.held.messages))
	}
	return n
}

// replied returns how many bytes of its output, written or not, replies to a replica have.
func (s *Session) replied() int64 { return s.Activity.written + int64(s.waiting()) - s.Queue.stream }

// seal begins a new block.
func (s *Session) seal(next []byte) {
	b := s.Out.Swap(next)
	s.Queue.blocks = append(s.Queue.blocks, b)
	s.Queue.Sealed += len(b)
}

// Recycle takes back output that a transport has written. Any goroutine may call it.
func (s *Session) Recycle(out []byte) {
	if cap(out) == blockSize {
		s.Engine.Clients.written.Put((*[blockSize]byte)(out[:blockSize]))
	}
}

// post appends a message that other code has encoded.
func (s *Session) post(b []byte) {
	if n := s.Out.Len(); n > blockSize/2 && n+len(b) > blockSize {
		s.seal(s.Engine.Clients.written.Get().(*[blockSize]byte)[:0])
	}
	s.Out.Raw(b)
	s.pending()
	s.Weigh()
}

// message appends a message that the client has not requested: after the reply, if one of
// its commands runs.
func (s *Session) message(b []byte) {
	if !s.Queue.replying {
		s.post(b)
		return
	}
	h := s.Queue.hold()
	h.messages = append(h.messages, b...)
}

// held are messages and invalidations for the client whose command runs.
type held struct {
	messages []byte
	stale    [][]string // the arguments of sendInvalidation
}

func (q *outputQueue) hold() *held {
	if q.held == nil {
		q.held = new(held)
	}
	return q.held
}

// sendHeld appends what has arrived while a command of the client ran. As in Redis, the
// messages come first, and the invalidations have the protocol version of the end.
func (s *Session) sendHeld() {
	h := s.Queue.held
	s.Queue.held = nil
	if s.End == Killed {
		return
	}
	if len(h.messages) > 0 {
		s.post(h.messages)
	}
	for _, keys := range h.stale {
		s.sendInvalidation(keys)
	}
}

// leaveWaiting stores the replies of a turn that cannot be written yet. It copies them,
// unless they are large, so that the turn's buffer, which has grown, can be reused.
func (s *Session) leaveWaiting() {
	switch n := s.Out.Len(); {
	case n > 4*turnBytes:
		s.seal(nil)
	case n >= blockSize:
		s.Queue.blocks = append(s.Queue.blocks, bytes.Clone(s.Out.Bytes()))
		s.Queue.Sealed += n
		s.Out.Truncate(0)
	}
	s.Queue.queuedOut.Store(int64(s.waiting()))
}

// next returns the block to write next; the caller has the claim. If it is the last
// block, spare becomes the new one.
func (s *Session) next(spare []byte) (out []byte) {
	if len(s.Queue.blocks) == 0 {
		if spare == nil && s.Modes.Replica {
			spare = s.Engine.Clients.written.Get().(*[blockSize]byte)[:0]
		}
		out = s.Out.Swap(spare)
	} else {
		out, s.Queue.blocks[0] = s.Queue.blocks[0], nil
		s.Queue.blocks = s.Queue.blocks[1:]
		s.Queue.Sealed -= len(out)
		if len(s.Queue.blocks) == 0 {
			s.Queue.blocks = nil
		}
	}
	s.Activity.written += int64(len(out))
	if s.waiting() > 0 || s.live != nil && len(s.live.late) > 0 {
		s.Queue.Flushing.Store(2)
	}
	s.Queue.queuedOut.Store(int64(s.waiting()))
	return out
}

// drop discards the output of a client that is gone.
func (s *Session) drop() {
	s.Queue.garbage.Add(int64(s.waiting()))
	s.Queue.held = nil
	s.Out.Swap(nil)
	s.Queue.blocks, s.Queue.Sealed = nil, 0
	s.Queue.queuedOut.Store(0)
}

// claim reports whether the caller is to write the waiting output. If not, another
// goroutine is writing and will find it. It is called with the lock held.
//
// The state is 0 without a writer, 1 with one, and 2 if there is more output for
// that writer. So in the common case, one writer that finds no further output, it
// releases the claim without the lock.
func (q *outputQueue) claim() bool {
	for {
		if q.Flushing.CompareAndSwap(0, 1) {
			return true
		}
		if q.Flushing.CompareAndSwap(1, 2) || q.Flushing.Load() == 2 {
			return false
		}
	}
}

// again makes the writer, if there is one, look for more output under the lock.
func (q *outputQueue) again() { q.Flushing.CompareAndSwap(1, 2) }

// Written is called by the transport, without the lock, after it has written its
// output. It returns the next output, or nil if there is none; then it has released
// the claim.
func (s *Session) Written() []byte {
	if s.Queue.Flushing.CompareAndSwap(1, 0) {
		return nil
	}
	s.Engine.Mu.Lock()
	defer s.Engine.Mu.Unlock()
	s.Queue.Flushing.Store(1)
	if s.waiting() == 0 || s.Stall.withheld || s.End == Killed {
		s.Queue.Flushing.Store(0)
		s.queriesDrained()
		return nil
	}
	return s.next(nil)
}

// ExceedsLimit reports whether so much output waits that the server is to run
// no more commands of the client.
func (q *outputQueue) ExceedsLimit() bool {
	return q.Unsent.Load()+q.queuedOut.Load() > maxUnsent
}

// Take returns the output to write, if the caller is to write. A transport calls it
// on wake, without the lock. killed reports that the connection must be closed at
// once; closed, that it must be closed and all output is written.
func (s *Session) Take() (out []byte, killed, closed bool) {
	s.Engine.Mu.Lock()
	defer s.Engine.Mu.Unlock()
	return s.TakeLocked(nil)
}

// TakeLocked is Take with the lock held. If it takes output, spare becomes the queue's
// new buffer.
func (s *Session) TakeLocked(spare []byte) (out []byte, killed, closed bool) {
	if s.waiting() > 0 && s.End != Killed && !s.Stall.withheld && s.Queue.claim() {
		out = s.next(spare)
	}
	return out, s.End == Killed, s.End == Closing && s.waiting() == 0 && s.Queue.Flushing.Load() == 0
}

// pending schedules a wake of the session after its output queue or state changed
// outside its own turn.
func (s *Session) pending() {
	if s.Engine.Turn.current != s && !s.Queue.waking {
		s.Queue.waking = true
		s.Engine.Turn.Scope.wake = append(s.Engine.Turn.Scope.wake, s)
	}
}

// RecordUnsent records that a client has not taken n bytes of a write. Transports call it
// without the lock.
func (s *Session) RecordUnsent(n int) {
	s.Queue.Unsent.Store(int64(n))
	limits := s.Engine.limits.Load()
	if int64(n) > limits.lagging {
		s.addSlow()
	}
	if limits.weighClients {
		s.Engine.MaintainUnlessBusy(s.Weigh)
	}
}

// RecordTaken records that a client has taken n bytes later than at the first attempt
// to write them. Transports call it without the lock.
func (q *outputQueue) RecordTaken(n int64) { q.late.Add(n) }

// outputLimit returns the limit for a client with a backlog of n bytes.
func (s *Session) outputLimit(n int64) config.OutputLimit {
	switch limits := &s.Engine.Config.OutputLimits; {
	case n > preAuthOutputLimit && !s.Login.Authenticated && s.Engine.ACL.LoginRequired():
		return config.OutputLimit{Hard: preAuthOutputLimit}
	case s.Modes.direct:
		return config.OutputLimit{}
	case s.Modes.Replica: // up to the size of the backlog its output costs nothing, see Owe
		l := limits[config.ReplicaClient]
		if l.Hard != 0 {
			l.Hard = max(l.Hard, s.Engine.Config.ReplBacklogSize)
		}
		return l
	case s.subscriptions.Len() > 0:
		return limits[config.PubSubClient]
	default:
		return limits[config.NormalClient]
	}
}

// replyLimit returns how large the replies of a turn may grow before the client is
// closed, if need be in the middle of a command; 0 for no limit.
func (s *Session) replyLimit() int {
	hard := s.outputLimit(0).Hard
	if hard == 0 {
		return 0
	}
	return ClampInt(max(hard, firstReplies))
}

// checkOutput closes a client whose backlog exceeds the limit of its class.
func (s *Session) checkOutput() {
	if s.exceedsLimit() {
		s.tooFarBehind()
	}
}

// exceedsLimit reports whether a client's backlog exceeds the limit of its class.
func (s *Session) exceedsLimit() bool {
	n := s.backlog()
	if n <= firstReplies && s.Queue.softSince.IsZero() && !s.Out.Over() {
		return false
	}
	return s.overLimit(n)
}

// overLimit reports whether a backlog of n bytes exceeds the client's limit.
func (s *Session) overLimit(n int64) bool {
	if n <= firstReplies {
		n = 0
	}
	l := s.outputLimit(n)
	if l.Soft != 0 && n > l.Soft {
		s.addSlow()
		if s.Queue.softSince.IsZero() {
			s.Queue.softSince = s.Engine.Turn.At
			s.Queue.seen, s.Queue.seenAt = s.progress(), s.Engine.Turn.At
		}
	} else if !s.Queue.softSince.IsZero() {
		s.Queue.softSince = time.Time{}
	}
	return l.Hard != 0 && n > l.Hard || s.Out.Over() || s.pushedTooMuch() ||
		!s.Queue.softSince.IsZero() && s.Engine.Turn.At.Sub(s.Queue.softSince) > time.Duration(l.Seconds)*time.Second+softLimitSlack
}

// pushedTooMuch reports whether too much unrequested output waits.
func (s *Session) pushedTooMuch() bool {
	hard := s.Engine.Config.OutputLimits[config.PubSubClient].Hard
	return hard != 0 && s.Queue.pushed > hard && s.backlog() > hard
}

// tooFarBehind closes a client that exceeds a limit, and logs which limit.
func (s *Session) tooFarBehind() {
	n := s.backlog()
	l := s.outputLimit(n)
	args := []any{"client", s.Peer.Addr, "name", s.Login.Name, "class", s.Class(), "unsent", n}
	switch {
	case s.Out.Over():
		args = append(args, "limit", "hard", "bytes", l.Hard, "reason", "one reply exceeds it")
	case s.pushedTooMuch():
		args = append(args, "limit", "hard, class pubsub", "bytes", s.Engine.Config.OutputLimits[config.PubSubClient].Hard, "pushed", s.Queue.pushed)
	case l.Hard != 0 && n > l.Hard:
		args = append(args, "limit", "hard", "bytes", l.Hard)
	case l.Soft != 0 && n > l.Soft:
		args = append(args, "limit", "soft", "bytes", l.Soft, "seconds", l.Seconds)
	default:
		args = append(args, "limit", "no progress after its end of input", "seconds", halfClosedSeconds)
	}
	s.Engine.Log.Warn("closing client: its output queue exceeds a limit", args...)
	s.Engine.Stats.OutputLimitDisconnections++
	s.Queue.overran = true
	s.Kill()
}

// outgrown reports whether the client was closed because it exceeded a limit.
func (s *Session) outgrown() bool {
	s.Engine.Mu.Lock()
	defer s.Engine.Mu.Unlock()
	return s.Queue.overran
}

// slowConsumers are the slow consumers: clients with a backlog above some soft limit. A
// timer checks them at each slowCheckInterval while there are any.
type slowConsumers struct {
	mu    sync.Mutex
	all   []*Session
	timer *time.Timer
}

// addSlow adds the session to the slow consumers. It may be called with or without the
// server's lock.
func (s *Session) addSlow() {
	if s.Queue.inSlow.Load() || !s.Queue.inSlow.CompareAndSwap(false, true) {
		return
	}
	l := &s.Engine.Clients.slow
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
	switch {
	case l.timer == nil:
		l.timer = time.AfterFunc(slowCheckInterval, s.Engine.checkSlow)
	case len(l.all) == 1:
		l.timer.Reset(slowCheckInterval)
	}
}

// checkSlow closes slow consumers that have been behind for too long, and
// removes those that have caught up. It is the timer's callback.
func (srv *Engine) checkSlow() {
	srv.Attempt(func() { srv.InTurn(srv.checkSlowLocked) })
}

// checkSlowLocked disconnects clients that have exceeded their limits for too long. The lock is held.
func (srv *Engine) checkSlowLocked() {
	l := &srv.Clients.slow
	l.mu.Lock()
	all := l.all
	l.all = nil
	l.mu.Unlock()
	floor := srv.limits.Load().lagging
	kept := all[:0]
	for _, s := range all {
		s.Queue.inSlow.Store(false) // a write from now on adds it again
		n := s.backlog()
		stuck := s.Queue.ExceedsLimit() && s.InputExceedsLimit(s.Peer.inputSize())
		if s.End == Killed || n == 0 || n <= floor && !s.Queue.halfClosed && s.Queue.softSince.IsZero() && !stuck {
			continue
		}
		s.Weigh()
		if s.checkProgress(n) {
			s.tooFarBehind()
		} else if stuck && srv.Turn.At.Sub(s.Queue.seenAt) > stuckSeconds*time.Second {
			srv.Stats.QueryLimitDisconnections.Add(1)
			s.logInputLimit("it reads no replies to its pipeline", s.Peer.inputSize())
			s.Kill()
		} else if s.Queue.inSlow.CompareAndSwap(false, true) {
			kept = append(kept, s)
		}
	}
	clear(all[len(kept):])
	l.mu.Lock()
	if l.all = append(l.all, kept...); len(l.all) > 0 && !srv.Ending.closed {
		l.timer.Reset(slowCheckInterval)
	}
	l.mu.Unlock()
}

// checkProgress reports whether a slow consumer must be closed: its backlog exceeds a
// limit, or it takes no data after the end of its input. It records its progress.
func (s *Session) checkProgress(n int64) bool {
	if p := s.progress(); p != s.Queue.seen || s.Queue.seenAt.IsZero() {
		s.Queue.seen, s.Queue.seenAt = p, s.Engine.Turn.At
		if s.subscriptions.Len() == 0 && !s.Queue.softSince.IsZero() {
			s.Queue.softSince = s.Engine.Turn.At
		}
	}
	if s.Queue.halfClosed && s.Engine.Turn.At.Sub(s.Queue.seenAt) > halfClosedSeconds*time.Second {
		return true
	}
	return s.overLimit(n)
}

// progress is a number that changes when the client takes data, or goes on with a pipeline.
func (s *Session) progress() int64 {
	n := s.Queue.late.Load() + s.Peer.arrived()>>12
	if s.Peer.Conn != nil && s.End != Killed { // the socket of a killed one may be closed
		n -= s.Peer.Conn.Untaken()
	}
	return n
}

// Progress returns a number that changes when the client takes output. It is called without
// the lock.
func (s *Session) Progress() int64 {
	s.Engine.Mu.Lock()
	defer s.Engine.Mu.Unlock()
	return s.progress()
}

// FinishHalfClosed handles a client that sends no more (half-closed). It is called at that
// moment and after each change to the client's remaining output, and reports
// whether there is more to wait for. A client that is blocked or subscribed is
// closed, as in Redis, once it has taken its output.
func (s *Session) FinishHalfClosed() bool {
	s.Engine.Mu.Lock() // also while a script lends the lock
	defer s.Engine.Mu.Unlock()
	unwritten := s.Queue.Flushing.Load() != 0 || s.Stall.withheld
	if s.End == Killed || !unwritten && (s.Stall.Blocked != nil || s.blockedUpstream() || s.paused() || s.subscriptions.Len() > 0 || s.Modes.monitoring || s.waiting() == 0 && s.Stall.postponed == nil && !s.awaitsReplies()) {
		return false
	}
	if !s.Queue.halfClosed {
		s.Queue.halfClosed = true
		s.Queue.seenAt = time.Time{}
	}
	s.addSlow()
	return true
}
