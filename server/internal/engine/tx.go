package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// Tx calls f in a turn of its own, with the lock held: its commands see each other's changes, and
// other clients see all of them or none. If f returns an error or panics, the changes are rolled
// back, and Tx returns the error or panics with the same value.
//
// The keyspace saves each key before its first change, and the effects wait in the commit scope until
// f has returned: keyspace events, messages, the journal.
func (srv *Engine) Tx(ctx context.Context, f func(*ProgramCall) error) error {
	var failed error
	var panicked any
	replies, err := srv.direct(ctx, [][][]byte{{[]byte(transactionName)}}, func(c *Call) {
		p := newProgramCall(c)
		p.run.Atomic, p.run.Flags = true, scriptCrossSlot
		before := srv.savepoint()
		_, panicked, failed = p.handle(func(p *ProgramCall) (any, error) { return nil, f(p) })
		if failed != nil || panicked != nil {
			srv.rollBack(before)
		} else {
			srv.Keys.Release()
		}
		c.Reply.OK()
	})
	switch {
	case panicked != nil:
		panic(panicked)
	case failed != nil:
		return failed
	case err != nil:
		return err
	}
	if e, refused := replies[0].(protocol.ReplyError); refused {
		return e
	}
	return nil
}

// transactionName is what logs and statistics call a transaction.
const transactionName = "go transaction"

// newTransaction returns the row of transactions, which is not in the table.
func newTransaction() *Command {
	return NewTable([][]Command{{{
		Facts: protocol.Facts{Name: transactionName, Arity: 1, Flags: "write module", Group: "module"},
		Run:   func(c *Call) { c.Session.Peer.Conn.(caller).program(c) },
	}}}).Rows[0]
}

// isProgram reports whether the session is that of a transaction.
func (s *Session) isProgram() bool {
	c, direct := s.Peer.Conn.(caller)
	return direct && c.program != nil
}

// scopeMark is a state of the commit scope and of the counters of changes.
type scopeMark struct {
	effects                                     int
	changes, uncounted, expired, expiredMembers int64
}

// savepoint prepares a rollback.
func (srv *Engine) savepoint() scopeMark {
	srv.Keys.Savepoint()
	st := &srv.Stats
	return scopeMark{len(srv.Turn.Scope.effects), st.Changes, st.Uncounted, st.ExpiredKeys, st.ExpiredMembers}
}

// rollBack returns to the savepoint. Clients that cache a changed key are told that it has changed, as
// the server has forgotten them.
func (srv *Engine) rollBack(to scopeMark) {
	u, st := &srv.Turn.Scope, &srv.Stats
	srv.Keys.Rollback()
	for _, e := range u.effects[to.effects:] {
		if e.cached != nil {
			srv.Clients.invalidate(e.key, e.cached)
		}
	}
	u.effects = slices.Delete(u.effects, to.effects, len(u.effects))
	st.Changes, st.Uncounted, st.ExpiredKeys, st.ExpiredMembers = to.changes, to.uncounted, to.expired, to.expiredMembers
}

// own copies what the effects from an index on have borrowed from their command, so that they outlast
// it.
func (u *commitScope) own(from int) {
	for i := range u.effects[from:] {
		e := &u.effects[from+i]
		e.key = strings.Clone(e.key)
		if e.message != noMessage {
			e.event = strings.Clone(e.event)
		}
	}
}
