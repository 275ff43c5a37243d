package engine

import "time"

// turn is the state of one lock hold: the reading of the clock that its commit scopes
// share, the session that it serves, and its effects so far. There is one turn at a
// time. While a script lends the lock, another one takes the place of the script's.
type turn struct {
	began         time.Time // the reading of the clock for the turn
	At            time.Time // the latest reading of the clock
	Instant       int64     // the reading for the turn, in microseconds since 1970
	sequence      uint64    // the journal's sequence when the turn began
	effectsBefore uint64    // keyspace.Keyspace.EffectCount when the turn began
	changesBefore int64     // stats.Changes when the turn began
	current       *Session  // the session that is served
	Scope         commitScope
	memory        memoryCheck

	// dropped are the sessions that the turn has ended because it deleted their users, with
	// their lines of CLIENT LIST. As in Redis, they stay in the list until the turn ends.
	dropped map[*Session][]byte
}

// memoryCheck is the latest check of maxmemory in a turn.
type memoryCheck struct {
	valid bool
	used  int64 // bytes of all keys after it
}

// begin starts a turn at the given reading of the clock.
func (srv *Engine) begin(at time.Time) {
	srv.SetClock(at)
	srv.Turn.began = at
	srv.Turn.sequence, srv.Turn.effectsBefore = srv.Keys.Sequence(), srv.Keys.EffectCount()
	srv.Turn.changesBefore = srv.Stats.Changes
	srv.Turn.memory.valid = false
	srv.Turn.dropped = nil
}

// running is the session whose command runs in a commit scope, and its reply.
type running struct {
	actor *Session // nil if no client's command runs
	mark  int      // offset in the actor's output queue at which its reply begins
}

// enter makes s the session whose command runs. It returns the previous one, for leave.
func (u *commitScope) enter(s *Session, mark int) (outer running) {
	outer = u.running
	u.running = running{s, mark}
	return outer
}

// leave reverses enter.
func (u *commitScope) leave(outer running) { u.running = outer }
