package engine

import (
	"slices"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// The expiry backlog. When a million members of one key expire at the same instant,
// removing them takes a second. The sweep removes them in pieces and releases the
// lock in between. But a command that opens this key must see none of them, so
// opening would have to remove all of them first, under the lock. Therefore such a
// command waits, like one that CLIENT PAUSE holds back, until its keys are clean;
// the timer cleans those keys before all others. Commands on other keys continue.
//
// While CLIENT PAUSE freezes the data, the timer does not clean the key but a view
// of it, which readers see (keyspace.Freeze).

// maxDueInline is how many expired members one commit scope may find and remove: a
// millisecond.
const maxDueInline = 1000

// overdue reports whether the keys of a command have more expired members than the
// command may remove itself. Callers ask only when something is due.
func (srv *Engine) overdue(s *Session, cmd *Command, argv [][]byte) bool {
	if s.Transaction.Multi && !cmd.RunsQueue {
		return false // it is only queued
	}
	n := 0
	srv.eachDue(s, cmd, argv, func(_ *keyspace.DB, _ []byte, due int) bool {
		n += due
		return n <= maxDueInline
	})
	return n > maxDueInline
}

// eachDue yields the keys that a command opens and that have expired members, and
// how many. A command that may open keys of another database counts as opening that
// key in all. For RANDOMKEY, which may open any key, key is nil.
func (srv *Engine) eachDue(s *Session, cmd *Command, argv [][]byte, yield func(db *keyspace.DB, key []byte, due int) bool) {
	dbs := []*keyspace.DB{s.DB}
	switch {
	case cmd.RunsQueue:
		if slices.ContainsFunc(s.Transaction.queue, func(q queued) bool { return q.cmd.OtherDatabases }) {
			dbs = srv.Keys.DBs()
		}
		for _, q := range s.Transaction.queue {
			if !q.cmd.eachDue(dbs, q.argv, yield) {
				return
			}
		}
	case cmd.OtherDatabases:
		dbs = srv.Keys.DBs()
		fallthrough
	default:
		cmd.eachDue(dbs, argv, yield)
	}
}

// eachDue is Engine.eachDue for a command outside a transaction, in databases.
func (c *Command) eachDue(dbs []*keyspace.DB, argv [][]byte, yield func(*keyspace.DB, []byte, int) bool) bool {
	if c.AnyKey {
		for _, db := range dbs {
			if keys, withMembers := db.DueKeys(); keys+withMembers > 0 && !yield(db, nil, keys+withMembers) {
				return false
			}
		}
		return true
	}
	var few [8]protocol.KeyRef
	for _, ref := range c.Spec.AppendKeys(few[:0], argv) {
		for _, db := range dbs {
			if due := db.DueMembers(argv[ref.Index], c.Fields); due > 0 && !yield(db, argv[ref.Index], due) {
				return false
			}
		}
	}
	return true
}

// delay postpones a command until its keys are clean.
func (p *pauses) delay(s *Session, argv [][]byte) {
	s.holdBack(argv)
	p.delayed = append(p.delayed, s)
}

// hasBacklog reports whether the waiters for a key must wait until it is clean. If so,
// the timer cleans it.
func (srv *Engine) hasBacklog(k WaitKey) bool {
	if srv.Keys.DB(k.Db).DueMembers(protocol.BytesOf(k.Key), keyspace.FieldsStay) <= maxDueInline {
		return false
	}
	if !slices.Contains(srv.Pauses.keysToPurge, k) {
		srv.Pauses.keysToPurge = append(srv.Pauses.keysToPurge, k)
	}
	return true
}

// HasDelayed reports whether any command or waiter waits for keys to be cleaned.
func (p *pauses) HasDelayed() bool {
	return len(p.delayed) > 0 || len(p.keysToPurge) > 0 && p.Until == 0
}

// Limits of one lock hold of the sweep: it removes pieces until a time has passed,
// then runs some delayed commands.
const (
	sweepPiece    = 64
	sweepTime     = time.Millisecond
	delayedAtOnce = 64
)

// sweepDue removes expired keys and members for a limited time, first those that
// delayed commands must not find.
func (srv *Engine) sweepDue(start time.Time) {
	more := func() bool { return srv.since(start) < sweepTime }
	for len(srv.Pauses.keysToPurge) > 0 && srv.Pauses.Until == 0 && more() {
		k := srv.Pauses.keysToPurge[0]
		if srv.Keys.DB(k.Db).Purge(protocol.BytesOf(k.Key), sweepPiece) < sweepPiece {
			srv.Pauses.keysToPurge = srv.Pauses.keysToPurge[1:]
			if q := srv.Waits.Waiting[k]; q != nil {
				srv.Turn.Scope.addReady(q)
			}
		}
	}
	for n := 0; len(srv.Pauses.delayed) > 0 && n < delayedAtOnce && more(); n++ {
		s := srv.Pauses.delayed[0]
		if s.Stall.postponed == nil { // the session has ended
			srv.Pauses.delayed = srv.Pauses.delayed[1:]
			continue
		}
		for more() && srv.cleanFor(s) == sweepPiece {
		}
		if cmd, _ := srv.Table.Find(s.Stall.postponed); srv.overdue(s, cmd, s.Stall.postponed) {
			break // time limit
		}
		srv.Pauses.delayed = srv.Pauses.delayed[1:]
		srv.Pauses.released = append(srv.Pauses.released, s)
	}
	for srv.Sweeps() && more() && srv.Keys.Sweep(sweepPiece) == sweepPiece {
	}
}

// cleanFor removes members that the delayed command of s must not find, and returns
// how many, at most sweepPiece.
func (srv *Engine) cleanFor(s *Session) int {
	cmd, _ := srv.Table.Find(s.Stall.postponed)
	n := 0
	srv.eachDue(s, cmd, s.Stall.postponed, func(db *keyspace.DB, key []byte, _ int) bool {
		if key == nil {
			n += srv.Keys.Sweep(sweepPiece - n)
		} else {
			n += db.Purge(key, sweepPiece-n)
		}
		return n < sweepPiece
	})
	return n
}
