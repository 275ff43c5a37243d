package engine

import (
	"slices"
	"sync/atomic"

	"github.com/zsetd/zsetd/protocol"
)

// CLIENT PAUSE. A postponed command stays with its session, which stalls like a
// blocked one. During a pause the data do not change: expired keys are invisible to
// commands, but their removal, with its events, waits for the end of the pause.
// Blocked commands still time out.

// pauses are the commands that a pause, or an expiry backlog, holds back.
type pauses struct {
	Until       int64 // milliseconds since 1970; 0 = not paused
	pauseAll    bool
	postponed   []*Session // by the pause, in order of arrival
	delayed     []*Session // until their keys are clean, see backlog.go
	keysToPurge []WaitKey  // that waiters need cleaned
	released    []*Session // from the pause; their commands run when this turn ends
	forgotten   int        // lower bound of the sessions in these lists that have ended
}

// stall is what a session waits for before it runs further commands.
type stall struct {
	Blocked          *Waiter
	postponed        [][]byte    // a command that CLIENT PAUSE, overdue keys or forwarding hold back, copied
	runningPostponed bool        // the postponed command is running
	confirmed        bool        // the postponed subscription exists at the new home, see forward.go
	withheld         bool        // output waits for a checkpoint
	withheldFor      uint64      // the epoch of that checkpoint
	Stalled          atomic.Bool // blocked, postponed or withheld: the transport must not run commands
}

// Pause postpones commands until the given time: those that write, or all. Of two
// overlapping pauses the later end and the stricter kind apply. While commands are
// forwarded it does nothing.
func (srv *Engine) Pause(until int64, all bool) {
	if until <= srv.Keys.Now() && srv.Pauses.Until == 0 || srv.Forwarding.forwarder != nil {
		return
	}
	srv.Pauses.Until = max(srv.Pauses.Until, until)
	srv.Pauses.pauseAll = srv.Pauses.pauseAll || all
	srv.Keys.Freeze()
}

// PauseWrites postpones commands that write until resume is called. A pause of before goes on
// then, and keeps what is postponed, unless it is over.
func (srv *Engine) PauseWrites() (resume func()) {
	until, all := srv.Pauses.Until, srv.Pauses.pauseAll
	srv.Pause(endless, false)
	return func() {
		if until > srv.Keys.Now() {
			srv.Pauses.Until, srv.Pauses.pauseAll = until, all
		} else {
			srv.Unpause()
		}
	}
}

// All reports whether a pause postpones all commands, not only those that write.
func (p *pauses) All() bool { return p.pauseAll }

// Unpause ends the pause, except that of forwarding. The postponed commands run in order of arrival, at the
// end of the current turn.
func (srv *Engine) Unpause() {
	srv.Pauses.Until, srv.Pauses.pauseAll = 0, false
	srv.Keys.Thaw()
	if srv.Forwarding.forwarder != nil && !srv.Forwarding.preparing {
		srv.Pauses.Until = endless
		srv.Keys.Freeze()
	}
	postponed := srv.Pauses.postponed
	srv.Pauses.postponed = nil
	srv.Pauses.release(postponed)
	srv.Pauses.forgotten = 0
}

// release makes the commands of sessions run at the end of the current turn.
func (p *pauses) release(postponed []*Session) {
	for _, s := range postponed {
		switch {
		case s.Stall.postponed == nil: // the session has ended
		case s.Peer.Closed():
			s.Kill()
		default:
			p.released = append(p.released, s)
		}
	}
}

// effectsOf returns the flags of a command. For EXEC they include those of the
// queued commands, for a script those that it declares.
func (s *Session) effectsOf(cmd *Command, argv [][]byte) protocol.Flags {
	flags := cmd.effects(s.Engine, argv)
	if cmd.RunsQueue {
		for _, q := range s.Transaction.queue {
			flags |= q.cmd.effects(s.Engine, q.argv)
		}
	}
	return flags
}

// postpone holds a command back until the end of the pause.
func (p *pauses) postpone(s *Session, argv [][]byte) {
	s.holdBack(argv)
	p.postponed = append(p.postponed, s)
}

// holdBack stalls the session with a command that runs later.
func (s *Session) holdBack(argv [][]byte) {
	s.Stall.postponed = protocol.CopyArgs(argv)
	s.Stall.Stalled.Store(true)
	s.Engine.Stats.BlockedClients++
}

// runReleased runs the commands that a pause has postponed, each in a commit scope
// of its own. One of them may start another pause.
func (srv *Engine) runReleased() {
	for len(srv.Pauses.released) > 0 {
		s := srv.Pauses.released[0]
		srv.Pauses.released = srv.Pauses.released[1:]
		argv := s.Stall.postponed
		if argv == nil {
			continue // the session has ended
		}
		s.Stall.postponed = nil
		srv.Stats.BlockedClients--
		s.Stall.Stalled.Store(false)
		s.Stall.runningPostponed = true
		s.Exec(argv)
		s.Stall.runningPostponed = false
		srv.Turn.Scope.Commit()
		s.checkOutput()
		if !s.Stall.Stalled.Load() {
			s.resume()
		}
	}
	srv.Pauses.released = nil
}

// forgetPostponed drops the postponed command of a session that ends. The session
// stays in its list until its turn comes, or until half of the sessions in the
// lists have ended: a search for it would take time linear in their number.
func (srv *Engine) forgetPostponed(s *Session) {
	if s.Stall.postponed == nil {
		return
	}
	s.Stall.postponed = nil
	srv.Stats.BlockedClients--
	srv.Pauses.forgotten++
	if 2*srv.Pauses.forgotten <= len(srv.Pauses.postponed)+len(srv.Pauses.delayed)+len(srv.Pauses.released) {
		return
	}
	srv.Pauses.forgotten = 0
	left := func(s *Session) bool { return s.Stall.postponed == nil }
	srv.Pauses.postponed = slices.DeleteFunc(srv.Pauses.postponed, left)
	srv.Pauses.delayed = slices.DeleteFunc(srv.Pauses.delayed, left)
	srv.Pauses.released = slices.DeleteFunc(srv.Pauses.released, left)
}
