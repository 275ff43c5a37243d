package server

import (
	"bytes"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// The outbox of a session: what waits to be written to its client, and how much of
// it may.
//
// What does not go out at once waits in blocks, so that a client that reads slowly
// costs as much memory as waits for it: one growing buffer took twice that, and
// was copied whenever it grew. The last block is the Reply that handlers write to.
//
// There are three bounds.
//
//   - A client with more than maxUnsent bytes of unread replies has no more of its
//     commands run (choked). That is not a parameter: nobody loses anything by it.
//   - client-output-buffer-limit closes it: at once above the hard limit, even in the
//     middle of a command (Reply.SetLimit), or when it has been above the soft one for
//     some seconds.
//   - What a client is sent without having asked (the lines of MONITOR, keys that it
//     is to forget) falls under the hard limit of the class pubsub, whichever class
//     it is of: choking does not hold it up.
//
// The soft limit of the class normal is about progress: its seconds begin anew when
// the client takes something. So with the default, 1 MB and 60 s, a client that reads
// a pipeline's 300 MB over a slow line is served for as long as it takes, and one
// that is stopped (a debugger, a suspended machine) has a minute; but whoever has
// stopped reading does not hold his 32 MB for ever. Redis, whose seconds count what
// waits and not whether it moves, has no limit at all for this class by default, for
// any would hit the honest. (10 s would cut whoever looks around in a debugger; 300 s,
// tcp-keepalive's, let a thousand such connections hold 32 GB for five minutes.) The hard limit, 1 GB, is what
// client-query-buffer-limit is for the other direction: what remains bounded by it
// are single replies, of which a string of 512 MB must be one.
//
// What the client has taken is what has left the kernel, too, where that can be
// asked: the socket of a slow client accepts more only when a third of some
// megabytes have gone.

const (
	// maxUnsent is how many bytes of replies may wait before no more commands
	// of that client are run.
	maxUnsent = 32 << 20
	// blockSize is how large a block of an outbox grows before the next is begun.
	blockSize = 64 << 10
	// firstReplies is how many bytes are never too many: Redis, too, has a buffer of that
	// size before those that it counts.
	firstReplies = 16 << 10
	// strangersOutput is how many bytes of replies may wait for a client that has not
	// logged in though it must: no login needs as much. (Redis has let them grow without
	// end up to 7.2.7.)
	strangersOutput = 16 << 10
	// lookEvery is how often those who are behind are looked at.
	lookEvery = time.Second
	// lastSeconds is for how long a client that sends no more may take nothing of
	// what is left for it, if no soft limit says so.
	lastSeconds = 60
)

// outbox is what a session has of it, besides out. Fields without a note are guarded
// by the server's lock.
type outbox struct {
	blocks  [][]byte // before what is in out
	sealed  int      // bytes of them
	garbage int      // bytes of buffers that were dropped when the client left
	pushed  int64    // bytes that it was sent without having asked, since nothing waited last

	softSince time.Time // since when the outbox has been above its soft limit
	seen      int64     // what progress has said last
	seenAt    time.Time // when that had changed last
	halved    bool      // the client sends no more

	flushing  atomic.Uint32 // see claim
	unsent    atomic.Int64  // bytes that the transport could not write yet
	queuedOut atomic.Int64  // bytes that have been added to the outbox meanwhile, by turns
	late      atomic.Int64  // bytes that were written though not at once
	lagging   atomic.Bool   // in laggards
}

// waiting returns how many bytes no transport has taken yet.
func (s *Session) waiting() int { return s.out.Len() + s.sealed }

// backlog returns how many bytes of replies the client has not taken yet.
func (s *Session) backlog() int64 { return int64(s.out.Len()+s.sealed) + s.unsent.Load() }

// seal begins a new block.
func (s *Session) seal(next []byte) {
	b := s.out.Swap(next)
	s.blocks = append(s.blocks, b)
	s.sealed += len(b)
}

// post appends a message that others have encoded.
func (s *Session) post(b []byte) {
	if n := s.out.Len(); n > blockSize/2 && n+len(b) > blockSize {
		s.seal(make([]byte, 0, blockSize))
	}
	s.out.Raw(b)
	s.pending()
	s.weigh()
}

// leaveWaiting is called at the end of a turn whose replies cannot be written yet.
// They are copied, unless they are large, so that the buffer of the turn, which has
// grown for them, can be used again.
func (s *Session) leaveWaiting() {
	switch n := s.out.Len(); {
	case n > 4*turnBytes:
		s.seal(nil)
	case n >= blockSize:
		s.blocks = append(s.blocks, bytes.Clone(s.out.Bytes()))
		s.sealed += n
		s.out.Truncate(0)
	}
	s.queuedOut.Store(int64(s.waiting()))
}

// next returns the block to be written next, to whoever has claimed that. The outbox
// goes on with spare if it was the last.
func (s *Session) next(spare []byte) (out []byte) {
	if len(s.blocks) == 0 {
		out = s.out.Swap(spare)
	} else {
		out, s.blocks[0] = s.blocks[0], nil
		s.blocks = s.blocks[1:]
		s.sealed -= len(out)
		if len(s.blocks) == 0 {
			s.blocks = nil
		}
	}
	if s.waiting() > 0 {
		s.flushing.Store(2)
	}
	s.queuedOut.Store(int64(s.waiting()))
	return out
}

// drop forgets what waits for a client that is gone.
func (s *Session) drop() {
	s.garbage += s.waiting()
	s.out.Swap(nil)
	s.blocks, s.sealed = nil, 0
	s.queuedOut.Store(0)
}

// claim is called with the lock held when there is something to write. It
// reports whether the caller is to write it; if not, somebody is writing and
// will find it.
//
// The state is 0 when nobody writes, 1 while somebody does, 2 when there is
// more for him to write. So the common case, one writer that finds nothing
// new, gives the right back without the lock.
func (s *Session) claim() bool {
	for {
		if s.flushing.CompareAndSwap(0, 1) {
			return true
		}
		if s.flushing.CompareAndSwap(1, 2) || s.flushing.Load() == 2 {
			return false
		}
	}
}

// written is called by the transport without the lock when it has written
// what it was given. It returns what is to be written next, or nil when there
// is nothing and somebody else may write.
func (s *Session) written() []byte {
	if s.flushing.CompareAndSwap(1, 0) {
		return nil
	}
	s.srv.mu.Lock()
	defer s.srv.mu.Unlock()
	s.flushing.Store(1)
	if s.waiting() == 0 || s.held || s.killed {
		s.flushing.Store(0)
		return nil
	}
	return s.next(nil)
}

// choked reports whether so many replies wait for the client to read that no more
// of its commands are to be run.
func (s *Session) choked() bool { return s.unsent.Load()+s.queuedOut.Load() > maxUnsent }

// take is called by a transport without the lock, on being woken. It returns
// what to write, if the caller is to write. killed says that the connection is
// to be closed at once; closed that it is to be closed, and everything is
// written.
func (s *Session) take() (out []byte, killed, closed bool) {
	s.srv.mu.Lock()
	defer s.srv.mu.Unlock()
	return s.taken(nil)
}

// taken is take with the lock held. The outbox goes on with spare if something is
// taken.
func (s *Session) taken(spare []byte) (out []byte, killed, closed bool) {
	if s.waiting() > 0 && !s.killed && !s.held && s.claim() {
		out = s.next(spare)
	}
	return out, s.killed, s.closing && s.waiting() == 0 && s.flushing.Load() == 0
}

// pending is called when something was appended to the outbox, or changed for
// the session, outside its own turn.
func (s *Session) pending() {
	if s.srv.current != s && !s.waking {
		s.waking = true
		s.srv.unit.wake = append(s.srv.unit.wake, s)
	}
}

// left is called by a transport when a client has not taken n bytes that were to be
// written.
func (s *Session) left(n int) {
	s.unsent.Store(int64(n))
	limits := s.srv.limits.Load()
	if int64(n) > limits.lagging {
		s.lag()
	}
	if limits.weighs {
		s.srv.unlessBusy(s.weigh)
	}
}

// outputLimit returns how far a client may be behind that is n bytes behind.
func (s *Session) outputLimit(n int64) outputLimit {
	switch limits := &s.srv.config.outputLimits; {
	case n > strangersOutput && !s.authenticated && s.srv.acl.loginRequired.Load():
		return outputLimit{hard: strangersOutput}
	case s.direct:
		return outputLimit{}
	case s.listens > 0:
		return limits[pubsubClient]
	default:
		return limits[normalClient]
	}
}

// replyLimit returns how large the replies of a turn may grow before the client is
// closed, in the middle of a command if need be; 0 if there is no limit.
func (s *Session) replyLimit() int {
	hard := s.outputLimit(0).hard
	if hard == 0 {
		return 0
	}
	return clampInt(max(hard, firstReplies))
}

// checkOutput closes a client that is further behind with reading than its
// class may be.
func (s *Session) checkOutput() {
	if s.behind() {
		s.tooFarBehind()
	}
}

// behind reports whether a client is further behind with reading than its class
// may be.
func (s *Session) behind() bool {
	n := s.backlog()
	if n <= firstReplies && s.softSince.IsZero() && !s.out.Over() {
		return false
	}
	return s.above(n)
}

// above is behind for a client with n bytes to take.
func (s *Session) above(n int64) bool {
	if n <= firstReplies {
		n = 0
	}
	l := s.outputLimit(n)
	if l.soft != 0 && n > l.soft {
		s.lag()
		if s.softSince.IsZero() {
			s.softSince = s.srv.at
			s.seen, s.seenAt = s.progress(), s.srv.at
		}
	} else if !s.softSince.IsZero() {
		s.softSince = time.Time{}
	}
	return l.hard != 0 && n > l.hard || s.out.Over() || s.pushedTooMuch() ||
		!s.softSince.IsZero() && s.srv.at.Sub(s.softSince) > time.Duration(l.seconds)*time.Second
}

// pushedTooMuch reports whether too much waits that the client has not asked for.
func (s *Session) pushedTooMuch() bool {
	hard := s.srv.config.outputLimits[pubsubClient].hard
	return hard != 0 && s.pushed > hard && s.backlog() > hard
}

// tooFarBehind closes a client that is, and says which limit that was.
func (s *Session) tooFarBehind() {
	n := s.backlog()
	l := s.outputLimit(n)
	args := []any{"client", s.addr, "name", s.name, "class", s.class(), "unsent", n}
	switch {
	case s.out.Over():
		args = append(args, "limit", "hard", "bytes", l.hard, "reply", "larger than that")
	case s.pushedTooMuch():
		args = append(args, "limit", "hard, of pubsub", "bytes", s.srv.config.outputLimits[pubsubClient].hard, "unasked", s.pushed)
	case l.hard != 0 && n > l.hard:
		args = append(args, "limit", "hard", "bytes", l.hard)
	case l.soft != 0 && n > l.soft:
		args = append(args, "limit", "soft", "bytes", l.soft, "seconds", l.seconds)
	default:
		args = append(args, "limit", "no progress after its end of input", "seconds", lastSeconds)
	}
	s.srv.log.Warn("client is too far behind; connection closed", args...)
	s.srv.outputLimitDisconnections++
	s.kill()
}

// laggards are the clients with more to take than some soft limit. They are looked
// at now and then, for as long as there are any.
type laggards struct {
	mu    sync.Mutex
	all   []*Session
	timer *time.Timer
}

// lag makes a session one of them. It is called with the server's lock or without.
func (s *Session) lag() {
	if s.lagging.Load() || !s.lagging.CompareAndSwap(false, true) {
		return
	}
	l := &s.srv.laggards
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
	switch {
	case l.timer == nil:
		l.timer = time.AfterFunc(lookEvery, s.srv.lookAtLaggards)
	case len(l.all) == 1:
		l.timer.Reset(lookEvery)
	}
}

// lookAtLaggards closes those who have been behind for too long, and lets go of those
// who are not any more.
func (srv *Server) lookAtLaggards() {
	srv.attempt(func() { srv.do(srv.weedLaggards) })
}

// weedLaggards is what lookAtLaggards does with the lock.
func (srv *Server) weedLaggards() {
	l := &srv.laggards
	l.mu.Lock()
	all := l.all
	l.all = nil
	l.mu.Unlock()
	floor := srv.limits.Load().lagging
	kept := all[:0]
	for _, s := range all {
		s.lagging.Store(false) // whoever writes for it from now on adds it again
		n := s.backlog()
		if s.killed || n == 0 || n <= floor && !s.halved && s.softSince.IsZero() {
			continue
		}
		s.weigh()
		if s.stuck(n) {
			s.tooFarBehind()
		} else if s.lagging.CompareAndSwap(false, true) {
			kept = append(kept, s)
		}
	}
	clear(all[len(kept):])
	l.mu.Lock()
	if l.all = append(l.all, kept...); len(l.all) > 0 && !srv.closed {
		l.timer.Reset(lookEvery)
	}
	l.mu.Unlock()
}

// stuck is above for one of the laggards. It is told apart here whether the client
// takes something.
func (s *Session) stuck(n int64) bool {
	if p := s.progress(); p != s.seen || s.seenAt.IsZero() {
		s.seen, s.seenAt = p, s.srv.at
		if s.listens == 0 && !s.softSince.IsZero() {
			s.softSince = s.srv.at
		}
	}
	if s.halved && s.srv.at.Sub(s.seenAt) > lastSeconds*time.Second {
		return true
	}
	return s.above(n)
}

// progress is a number that changes when the client takes something.
func (s *Session) progress() int64 {
	n := s.late.Load()
	switch {
	case s.killed: // its socket may be closed
	case s.polled != nil:
		n -= notTaken(s.fd)
	case s.inKernel != nil:
		n -= s.inKernel()
	}
	return n
}

// halve is called when the client sends no more, and whenever something has become of
// what is left for it then. It reports whether there is more to wait for. Who waits for
// something himself, or listens, is gone, as in Redis.
func (s *Session) halve() bool {
	s.srv.mu.Lock() // also while a script has the server for itself
	defer s.srv.mu.Unlock()
	drained := s.waiting() == 0 && s.flushing.Load() == 0
	if s.killed || s.blocked != nil || s.paused() || s.listens > 0 || s.monitoring || drained && !s.held && s.postponed == nil {
		return false
	}
	if !s.halved {
		s.halved = true
		s.seenAt = time.Time{}
	}
	s.lag()
	return true
}

// lagging returns the smallest backlog that matters to a soft limit.
func (c *config) lagging() int64 {
	least := int64(math.MaxInt64)
	for _, l := range c.outputLimits {
		if l.soft != 0 {
			least = min(least, l.soft)
		}
	}
	return least
}
