package server

import (
	"slices"

	"github.com/zsetd/zsetd/protocol"
)

// CLIENT PAUSE. A command that is held back stays with its session, which
// stalls as a blocked one does. While a pause lasts the data stands still: keys
// that are past their deadline are gone for whoever looks, but they are removed,
// and said to be, when it ends. Commands that wait for a key still time out.

// pause holds back commands until then: those that write, or all. Of two
// pauses the later end and the stricter kind count.
func (srv *Server) pause(until int64, all bool) {
	if until <= srv.keys.Now() && srv.pausedUntil == 0 {
		return
	}
	srv.pausedUntil = max(srv.pausedUntil, until)
	srv.pauseAll = srv.pauseAll || all
	srv.keys.Freeze()
}

// unpause ends the pause. What it held back runs in the order in which it
// came, when the turn that is going on has ended.
func (srv *Server) unpause() {
	srv.pausedUntil, srv.pauseAll = 0, false
	srv.keys.Thaw()
	postponed := srv.postponed
	srv.postponed = nil
	for _, s := range postponed {
		switch {
		case s.postponed == nil: // it has left
		case s.hungUp():
			s.kill()
		default:
			srv.released = append(srv.released, s)
		}
	}
	srv.forgotten = 0
}

// holdsBack reports whether the pause holds a command back.
func (srv *Server) holdsBack(s *Session, cmd *Command, argv [][]byte) bool {
	return srv.pauseAll || s.effectsOf(cmd, argv).Has(protocol.Write|protocol.MayReplicate)
}

// effectsOf returns the flags of a command; EXEC does what has been queued, and
// a script what it says.
func (s *Session) effectsOf(cmd *Command, argv [][]byte) protocol.Flags {
	flags := s.srv.effectsOfScript(cmd, argv)
	if cmd.Name == "exec" {
		for _, q := range s.queue {
			flags |= s.srv.effectsOfScript(q.cmd, q.argv)
		}
	}
	return flags
}

func (srv *Server) postpone(s *Session, argv [][]byte) {
	s.postponed = copyArgs(argv)
	s.stalled.Store(true)
	srv.postponed = append(srv.postponed, s)
	srv.blockedClients++
}

// runReleased runs the commands that a pause has held back, each a unit of its
// own. One of them may begin a pause again.
func (srv *Server) runReleased() {
	for len(srv.released) > 0 {
		s := srv.released[0]
		srv.released = srv.released[1:]
		argv := s.postponed
		if argv == nil {
			continue // it has left
		}
		s.postponed = nil
		srv.blockedClients--
		s.stalled.Store(false)
		s.heldBack = true
		s.exec(argv)
		s.heldBack = false
		srv.unit.commit()
		s.checkOutput()
		if !s.stalled.Load() {
			s.resume()
		}
	}
	srv.released = nil
}

// forgetPostponed drops the command of a session that ends. The session stays in its
// list until its turn comes, or until half of those in the lists have ended: to look for
// it would take time in proportion to them.
func (srv *Server) forgetPostponed(s *Session) {
	if s.postponed == nil {
		return
	}
	s.postponed = nil
	srv.blockedClients--
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
