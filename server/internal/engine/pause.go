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
	PausedUntil int64 // milliseconds since 1970; 0 = not paused
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
	if until <= srv.Keys.Now() && srv.PausedUntil == 0 || srv.forwarder != nil {
		return
	}
	srv.PausedUntil = max(srv.PausedUntil, until)
	srv.pauseAll = srv.pauseAll || all
	srv.Keys.Freeze()
}

// PauseWrites postpones commands that write until resume is called. A pause of before goes on
// then, and keeps what is postponed, unless it is over.
func (srv *Engine) PauseWrites() (resume func()) {
	until, all := srv.PausedUntil, srv.pauseAll
	srv.Pause(endless, false)
	return func() {
		if until > srv.Keys.Now() {
			srv.PausedUntil, srv.pauseAll = until, all
		} else {
			srv.Unpause()
		}
	}
}

// PausesAll reports whether a pause postpones all commands, not only those that write.
func (srv *Engine) PausesAll() bool { return srv.pauseAll }

// Unpause ends the pause, except that of forwarding. The postponed commands run in order of arrival, at the
// end of the current turn.
func (srv *Engine) Unpause() {
	srv.PausedUntil, srv.pauseAll = 0, false
	srv.Keys.Thaw()
	if srv.forwarder != nil && !srv.preparing {
		srv.PausedUntil = endless
		srv.Keys.Freeze()
	}
	postponed := srv.postponed
	srv.postponed = nil
	for _, s := range postponed {
		switch {
		case s.postponed == nil: // the session has ended
		case s.PeerClosed():
			s.Kill()
		default:
			srv.released = append(srv.released, s)
		}
	}
	srv.forgotten = 0
}

// effectsOf returns the flags of a command. For EXEC they include those of the
// queued commands, for a script those that it declares.
func (s *Session) effectsOf(cmd *Command, argv [][]byte) protocol.Flags {
	flags := cmd.effects(s.Engine, argv)
	if cmd.RunsQueue {
		for _, q := range s.queue {
			flags |= q.cmd.effects(s.Engine, q.argv)
		}
	}
	return flags
}

func (srv *Engine) postpone(s *Session, argv [][]byte) {
	s.postponed = protocol.CopyArgs(argv)
	s.Stalled.Store(true)
	srv.postponed = append(srv.postponed, s)
	srv.BlockedClients++
}

// runReleased runs the commands that a pause has postponed, each in a commit scope
// of its own. One of them may start another pause.
func (srv *Engine) runReleased() {
	for len(srv.released) > 0 {
		s := srv.released[0]
		srv.released = srv.released[1:]
		argv := s.postponed
		if argv == nil {
			continue // the session has ended
		}
		s.postponed = nil
		srv.BlockedClients--
		s.Stalled.Store(false)
		s.runningPostponed = true
		s.Exec(argv)
		s.runningPostponed = false
		srv.Scope.Commit()
		s.checkOutput()
		if !s.Stalled.Load() {
			s.resume()
		}
	}
	srv.released = nil
}

// forgetPostponed drops the postponed command of a session that ends. The session
// stays in its list until its turn comes, or until half of the sessions in the
// lists have ended: a search for it would take time linear in their number.
func (srv *Engine) forgetPostponed(s *Session) {
	if s.postponed == nil {
		return
	}
	s.postponed = nil
	srv.BlockedClients--
	srv.forgotten++
	if 2*srv.forgotten <= len(srv.postponed)+len(srv.delayed)+len(srv.released) {
		return
	}
	srv.forgotten = 0
	left := func(s *Session) bool { return s.postponed == nil }
	srv.postponed = slices.DeleteFunc(srv.postponed, left)
	srv.delayed = slices.DeleteFunc(srv.delayed, left)
	srv.released = slices.DeleteFunc(srv.released, left)
}
