package server

import (
	"slices"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
)

// When a million members of one key expire at the same instant, removing them
// takes a second. The sweep does it in pieces, between which others get the lock;
// but a command that opens this key must find none of them, and the door would
// have to remove all of them first, under the lock. So such a command waits,
// like one that CLIENT PAUSE holds back, until its keys are clean; the timer
// cleans them before it looks for anything else. Commands on other keys go on.
//
// While CLIENT PAUSE keeps the data as they are, it is not the key that is
// cleaned but a view of it, which readers are shown (keyspace.Freeze).

// dueAtOnce is how many members one unit may find past their deadlines, and
// have removed: a millisecond.
const dueAtOnce = 1000

// overdue reports whether a command names keys of which more members are past
// their deadlines than it can have removed. Callers ask only when something is
// due.
func (srv *Server) overdue(s *Session, cmd *Command, argv [][]byte) bool {
	if s.multi && cmd.Name != "exec" {
		return false // it is only queued
	}
	n := 0
	srv.eachDue(s, cmd, argv, func(_ *keyspace.DB, _ []byte, due int) bool {
		n += due
		return n <= dueAtOnce
	})
	return n > dueAtOnce
}

// eachDue yields the keys that a command opens and that have members past
// their deadlines, and how many. A command that may open keys of another
// database is taken to open that key in all. For RANDOMKEY, which may open any,
// key is nil.
func (srv *Server) eachDue(s *Session, cmd *Command, argv [][]byte, yield func(db *keyspace.DB, key []byte, due int) bool) {
	dbs := []*keyspace.DB{s.db}
	switch cmd.Name {
	case "exec":
		if slices.ContainsFunc(s.queue, func(q queued) bool { return opensElsewhere(q.cmd) }) {
			dbs = srv.keys.DBs()
		}
		for _, q := range s.queue {
			if !srv.eachDueOf(dbs, q.cmd, q.argv, yield) {
				return
			}
		}
	case "move", "copy":
		dbs = srv.keys.DBs()
		fallthrough
	default:
		srv.eachDueOf(dbs, cmd, argv, yield)
	}
}

func opensElsewhere(cmd *Command) bool {
	switch cmd.Name {
	case "select", "swapdb", "move", "copy":
		return true
	}
	return false
}

func (srv *Server) eachDueOf(dbs []*keyspace.DB, cmd *Command, argv [][]byte, yield func(*keyspace.DB, []byte, int) bool) bool {
	if cmd.Name == "randomkey" {
		for _, db := range dbs {
			if due := db.DueKeys(); due > 0 && !yield(db, nil, due) {
				return false
			}
		}
		return true
	}
	var few [8]protocol.KeyRef
	for _, ref := range cmd.spec.AppendKeys(few[:0], argv) {
		for _, db := range dbs {
			if due := db.DueMembers(argv[ref.Index]); due > 0 && !yield(db, argv[ref.Index], due) {
				return false
			}
		}
	}
	return true
}

// delay holds back a command until its keys are clean.
func (srv *Server) delay(s *Session, argv [][]byte) {
	s.postponed = copyArgs(argv)
	s.stalled.Store(true)
	srv.delayed = append(srv.delayed, s)
	srv.blockedClients++
}

// behind reports whether those who wait for a key must wait until it is clean.
// The timer sees to it.
func (srv *Server) behind(k waitKey) bool {
	if srv.keys.DB(k.db).DueMembers(bytesOf(k.key)) <= dueAtOnce {
		return false
	}
	if !slices.Contains(srv.unclean, k) {
		srv.unclean = append(srv.unclean, k)
	}
	return true
}

// hasDelayed reports whether somebody waits for keys to be cleaned.
func (srv *Server) hasDelayed() bool {
	return len(srv.delayed) > 0 || len(srv.unclean) > 0 && srv.pausedUntil == 0
}

// How much is removed under one hold of the lock: pieces, until a time has
// passed; and how many delayed commands run after it.
const (
	sweepPiece    = 64
	sweepTime     = time.Millisecond
	delayedAtOnce = 64
)

// sweepDue removes what is past its deadline, for a while: first what delayed
// commands must not find.
func (srv *Server) sweepDue(start time.Time) {
	more := func() bool { return srv.since(start) < sweepTime }
	for len(srv.unclean) > 0 && srv.pausedUntil == 0 && more() {
		k := srv.unclean[0]
		if srv.keys.DB(k.db).Purge(bytesOf(k.key), sweepPiece) < sweepPiece {
			srv.unclean = srv.unclean[1:]
			if q := srv.waiting[k]; q != nil {
				srv.unit.await(q)
			}
		}
	}
	for n := 0; len(srv.delayed) > 0 && n < delayedAtOnce && more(); n++ {
		s := srv.delayed[0]
		if s.postponed == nil { // it has left
			srv.delayed = srv.delayed[1:]
			continue
		}
		for more() && srv.cleanFor(s) == sweepPiece {
		}
		if cmd, _ := srv.table.find(s.postponed); srv.overdue(s, cmd, s.postponed) {
			break // the time is up
		}
		srv.delayed = srv.delayed[1:]
		srv.released = append(srv.released, s)
	}
	for srv.sweeps() && more() && srv.keys.Sweep(sweepPiece) == sweepPiece {
	}
}

// cleanFor removes members that the delayed command of s must not find, and
// returns how many it did, at most sweepPiece.
func (srv *Server) cleanFor(s *Session) int {
	cmd, _ := srv.table.find(s.postponed)
	n := 0
	srv.eachDue(s, cmd, s.postponed, func(db *keyspace.DB, key []byte, _ int) bool {
		if key == nil {
			n += srv.keys.Sweep(sweepPiece - n)
		} else {
			n += db.Purge(key, sweepPiece-n)
		}
		return n < sweepPiece
	})
	return n
}
