package server

import (
	"slices"

	"github.com/zsetd/zsetd/protocol"
)

// When a million members of one key expire at the same instant, removing them
// takes seconds. The sweep does it in pieces, between which others get the lock;
// but a command that opens this key must find none of them, and the door would
// have to remove all of them first, under the lock. So such a command waits,
// like one that CLIENT PAUSE holds back, until the sweep is done; commands on
// other keys do not.

// dueAtOnce is how many members one command may find past their deadlines, and
// have removed: a millisecond or two.
const dueAtOnce = 1000

// overdue reports whether a command names a key of which more members are past
// their deadlines than it can have removed. Callers ask only when something is
// due.
func (srv *Server) overdue(s *Session, cmd *Command, argv [][]byte) bool {
	if !srv.sweeps() {
		return false
	}
	if cmd.Name == "exec" {
		return slices.ContainsFunc(s.queue, func(q queued) bool { return srv.overdueKeys(s, q.cmd, q.argv) })
	}
	return !s.multi && srv.overdueKeys(s, cmd, argv)
}

func (srv *Server) overdueKeys(s *Session, cmd *Command, argv [][]byte) bool {
	var few [8]protocol.KeyRef
	for _, ref := range cmd.spec.AppendKeys(few[:0], argv) {
		if s.db.DueMembers(argv[ref.Index]) > dueAtOnce {
			return true
		}
	}
	return false
}

// delay holds back a command until the sweep has done what is due.
func (srv *Server) delay(s *Session, argv [][]byte) {
	s.postponed = copyArgs(argv)
	s.stalled.Store(true)
	srv.delayed = append(srv.delayed, s)
	srv.blockedClients++
}

// swept lets the commands go on that waited for the sweep, if it is done.
func (srv *Server) swept() {
	if len(srv.delayed) > 0 && srv.keys.Head() >= srv.keys.Now() {
		srv.released = append(srv.released, srv.delayed...)
		srv.delayed = nil
	}
}
