package server

import (
	"math"
	"slices"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
	"github.com/zsetd/zsetd/zset"
)

// A unit is one hold of the lock as others see it: a command, an EXEC, a
// sweep of expired keys. While it runs it only gathers effects; commit then
// draws every consequence, in order: watched keys, caches of clients, keyspace
// notifications, messages, and the commands that wait for a key.
//
// Redis leaves these consequences to each command (some 170 places). Here a
// handler says Changed once and cannot forget the rest.
//
// A pipeline takes the lock once for several units, one after the other; the
// clock stands still for all of them.
type unit struct {
	srv     *Server
	effects []effect
	ready   []*queue   // of changed keys
	wake    []*Session // sessions to be woken when the lock is free
	changes int64      // since the server started; Redis's rdb_changes_since_last_save
	serving bool
	actor   *Session // whose command is at work, if it is one's
	mark    int      // where in his outbox its reply begins

	members []byte              // that the effects have touched; see appendMember
	told    int                 // so many bytes of them belong to effects
	seen    map[string]struct{} // members that touchedOnce has noted for the next event
}

// effect is one thing that a unit did.
type effect struct {
	key     string // or the channel of a message
	event   string // or the message
	db      int
	class   class
	message messageKind
	members string // that it has touched, if somebody wants to know; see appendMember
	cached  *holders
}

type messageKind uint8

const (
	noMessage messageKind = iota
	channelMessage
	shardMessage
	flushMessage // not a message on a channel: all databases, or one, were emptied
)

// begun serves those for whom time has brought what they wait for.
func (srv *Server) begun() {
	if len(srv.alarms) > 0 && srv.alarms[0].at <= srv.instant {
		srv.soundAlarms()
	}
}

// lock takes the lock when no script has the server for itself.
func (srv *Server) lock() {
	srv.mu.Lock()
	for srv.busy {
		srv.idle.Wait()
	}
}

// settle sets the timer, and does whatever else is due before the lock is given
// back. Every unit must have been committed.
func (srv *Server) settle() {
	u := &srv.unit
	if srv.clientMemory.full() {
		srv.evictClients()
	}
	if len(u.effects) > 0 {
		u.commit()
	}
	if len(srv.released) > 0 {
		srv.runReleased()
	}
	if srv.tracking.on {
		srv.settleTracking()
	}
	srv.setTimer()
	srv.keeper.note()
	if len(u.wake) > 0 && srv.keeper.holds() {
		srv.holdWoken()
	}
}

// unlock gives the lock back and wakes the sessions that have something to do.
func (srv *Server) unlock() {
	u := &srv.unit
	if len(u.wake) == 0 {
		srv.mu.Unlock()
		return
	}
	wake := u.wake
	u.wake = nil
	for _, s := range wake {
		s.waking = false
	}
	srv.mu.Unlock()
	for _, s := range wake {
		s.wake()
	}
}

// holdWoken holds back what others were sent until the changes that it tells of
// are on the disk.
func (srv *Server) holdWoken() {
	u := &srv.unit
	u.wake = slices.DeleteFunc(u.wake, func(s *Session) bool {
		if s.killed || s.waiting() == 0 {
			return false
		}
		s.waking = false
		srv.keeper.hold(s)
		return true
	})
}

// do runs f in a unit of its own.
func (srv *Server) do(f func()) {
	srv.tend(func() {
		srv.begun()
		f()
		srv.unit.commit()
	})
}

// tend runs f with the lock, for those who look after the server, not for those who
// use it: nobody is served before. The clock stands still.
func (srv *Server) tend(f func()) {
	srv.lock()
	srv.locked(f)
}

// locked runs f with the lock, which the caller has taken, and gives that back.
func (srv *Server) locked(f func()) {
	srv.guarded(func() {
		srv.freeze()
		f()
		srv.settle()
	})
	srv.unlock()
}

// unlessBusy is do for a transport that must not wait for a script, and for what need
// not be done then.
func (srv *Server) unlessBusy(f func()) {
	srv.mu.Lock()
	if srv.busy {
		srv.mu.Unlock()
		return
	}
	srv.locked(func() {
		srv.begun()
		f()
		srv.unit.commit()
	})
}

func (u *unit) changed(db int, key string, class class, event string) {
	u.changes++
	srv := u.srv
	if len(srv.watched) == 0 && len(srv.waiting) == 0 && srv.notify == 0 && !srv.tracking.on {
		return // nobody listens
	}
	e := effect{key: key, event: event, db: db, class: class}
	if srv.tracking.on {
		e.cached = srv.changing(key, u.actor, class == classExpired)
	}
	if u.told < len(u.members) {
		// The buffer may move, what is written in it never changes before
		// the effects are forgotten.
		e.members = protocol.View(u.members[u.told:])
		u.told = len(u.members)
		clear(u.seen)
	}
	u.effects = append(u.effects, e)
}

// touched says that the change of which changed will tell next, an event of the
// given class, has touched a member of a sorted set or a set, or a field of a
// hash. It is copied, unless nobody is to be told. Not only commands tell: a sweep
// calls touched for each member that it removes from a key, and then changed.
func (u *unit) touched(class class, member []byte) {
	if u.srv.subkeys&class != 0 {
		u.members = appendMember(u.members, u.told == len(u.members), member)
	}
}

// touchedOnce is touched for a command that may touch a member several times,
// though an event names it only once. It borrows the member until changed, which
// must follow: only when somebody is to be told is it to be called.
func (u *unit) touchedOnce(class class, member []byte) {
	if _, again := u.seen[protocol.View(member)]; again {
		return
	}
	if u.seen == nil {
		u.seen = map[string]struct{}{}
	}
	u.seen[protocol.View(member)] = struct{}{}
	u.touched(class, member)
}

// keepMembers is the largest buffer of members that is kept for the next unit.
const keepMembers = 64 << 10

// forgetMembers makes room for the members of the next unit.
func (u *unit) forgetMembers() {
	if cap(u.members) > keepMembers {
		u.members, u.seen = nil, nil
	}
	u.members, u.told = u.members[:0], 0
}

// event notes a keyspace event that changed nothing.
func (u *unit) event(db int, key string, class class, event string) {
	if u.srv.notify&class != 0 {
		u.effects = append(u.effects, effect{key: key, event: event, db: db, class: class | classUnchanged})
	}
}

// replacing notes that database db is about to have the keys of by, or none if
// by is nil, instead of its own. Who watches or waits for a key that is in
// either hears of it.
func (u *unit) replacing(db, by *keyspace.DB) {
	var keys []string
	note := func(k waitKey) {
		if key := bytesOf(k.key); k.db == db.ID() && (db.Peek(key) != nil || by != nil && by.Peek(key) != nil) {
			keys = append(keys, k.key)
		}
	}
	for k := range u.srv.watched {
		note(k)
	}
	for k := range u.srv.waiting {
		note(k)
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		u.effects = append(u.effects, effect{key: key, db: db.ID()})
	}
}

// publish notes a message, so that it stands in order among the other effects.
// The message is borrowed until the unit commits.
func (u *unit) publish(kind messageKind, channel, message []byte) {
	u.effects = append(u.effects, effect{key: protocol.View(channel), event: protocol.View(message), message: kind})
}

// forget drops the event of a key that was created and vanished again.
func (u *unit) forget(db int, key string) {
	for i := len(u.effects) - 1; i >= 0; i-- {
		if e := &u.effects[i]; e.class == classNew|classUnchanged && e.db == db && e.key == key {
			u.effects = append(u.effects[:i], u.effects[i+1:]...)
			return
		}
	}
}

// commit draws the consequences of the effects so far. Waiting commands that
// can now do their work are run, each a unit of its own.
func (u *unit) commit() {
	if len(u.effects) == 0 && len(u.ready) == 0 {
		return
	}
	srv := u.srv
	for i := range u.effects {
		e := &u.effects[i]
		if e.message == flushMessage {
			srv.invalidateAll()
			continue
		}
		if e.message != noMessage {
			srv.deliver(e.message, e.key, e.event)
			continue
		}
		if e.class&classUnchanged == 0 {
			if len(srv.watched) > 0 {
				srv.touch(e.db, e.key)
			}
			if e.cached != nil {
				srv.invalidate(e.key, e.cached)
			}
			if len(srv.waiting) > 0 {
				if q := srv.waiting[waitKey{e.db, e.key}]; q != nil {
					u.awake(q, e)
				}
			}
		}
		if srv.notify&e.class&classAny != 0 {
			srv.notifyKeyspace(e)
		}
	}
	clear(u.effects)
	u.effects = u.effects[:0]
	if len(u.members) > 0 {
		u.forgetMembers()
	}
	if u.serving {
		return // the loop below, further out, goes on
	}
	u.serving = true
	for i := 0; i < len(u.ready); i++ {
		u.serve(u.ready[i])
	}
	u.serving = false
	u.ready = u.ready[:0]
}

// kind is the type of a value, in Redis's words.
type kind string

const (
	kindString kind = "string"
	kindList   kind = "list"
	kindSet    kind = "set"
	kindHash   kind = "hash"
	kindZset   kind = "zset"
	kindStream kind = "stream"
)

func kindOf(v any) kind {
	switch v.(type) {
	case *keyspace.String:
		return kindString
	case *keyspace.List:
		return kindList
	case *keyspace.Set:
		return kindSet
	case *keyspace.Hash:
		return kindHash
	case *zset.Set:
		return kindZset
	case *keyspace.Stream:
		return kindStream
	}
	panic("BUG: a value of no kind")
}

// copyArgs returns a copy of argv that does not depend on any buffer.
func copyArgs(argv [][]byte) [][]byte {
	n := 0
	for _, a := range argv {
		n += len(a)
	}
	buf := make([]byte, 0, n)
	out := make([][]byte, len(argv))
	for i, a := range argv {
		buf = append(buf, a...)
		out[i] = buf[len(buf)-len(a) : len(buf) : len(buf)]
	}
	return out
}

// setTimer makes the one timer ring at the next instant at which something is
// due: a key's deadline, a waiter's, what a line waits for, the end of CLIENT
// PAUSE, a look at idle clients.
func (srv *Server) setTimer() {
	if head, changed := srv.keys.Next(); changed {
		srv.nextExpiry = head
		if head != math.MaxInt64 {
			srv.nextExpiry = head + 1 // a key lives through the millisecond of its deadline
		}
	}
	next := int64(math.MaxInt64)
	if srv.sweeps() {
		next = srv.nextExpiry
	}
	if len(srv.deadlines) > 0 {
		next = min(next, srv.deadlines[0].at)
	}
	if srv.pausedUntil != 0 {
		next = min(next, srv.pausedUntil)
	}
	if srv.nextIdle != 0 && !srv.cronPaused {
		next = min(next, srv.nextIdle)
	}
	if next != math.MaxInt64 {
		next = min(next, maxInstant/1000) * 1000 // in microseconds; nothing beyond the end of time
	}
	if len(srv.alarms) > 0 && srv.pausedUntil == 0 {
		next = min(next, srv.alarms[0].at)
	}
	if srv.tracking.on && !srv.cronPaused && srv.overfull() {
		next = min(next, srv.instant+1000)
	}
	if srv.hasDelayed() || srv.evicting() {
		next = min(next, srv.instant)
	}
	if next == srv.timerAt || srv.resting {
		return
	}
	srv.timerAt = next
	if next == math.MaxInt64 {
		srv.timer.Stop()
		return
	}
	srv.timer.Reset(min(time.UnixMicro(next).Sub(srv.clock()), clockRest))
}

// sweeps reports whether the timer removes what is past its deadline. Not while data
// are loaded: the journal is not written yet, so the file would go on to have what
// was removed, and what comes in its place would be replayed on top of that. A field
// would get its old deadline back, and be lost with the next load.
func (srv *Server) sweeps() bool {
	return srv.activeExpire && srv.pausedUntil == 0 && !srv.cronPaused && srv.keeper.loading == nil
}

// sweep removes keys and members whose deadline has passed.
func (srv *Server) sweep() {
	start := srv.clock()
	srv.sweepDue(start)
	srv.keys.Seal()
	took := srv.clock().Sub(start)
	srv.sweepTime += took
	if limit := srv.config.latencyMonitorThreshold; limit > 0 && took.Milliseconds() >= limit {
		srv.latency.add("expire-cycle", srv.at, took)
	}
}

// ring is what the timer does.
func (srv *Server) ring() {
	srv.attempt(func() { srv.do(srv.rung) })
}

func (srv *Server) rung() {
	srv.timerAt = math.MinInt64 // whatever is next, set the timer anew
	if srv.sweeps() || srv.hasDelayed() {
		srv.sweep()
		srv.unit.commit()
	}
	if srv.memoryLimit.going {
		srv.lacksMemory()
	}
	for len(srv.deadlines) > 0 && srv.deadlines[0].at <= srv.keys.Now() {
		w := srv.deadlines[0]
		w.sess.giveUp(w, w.timeout)
	}
	if srv.pausedUntil != 0 && srv.pausedUntil <= srv.keys.Now() {
		srv.unpause()
	}
	if srv.nextIdle != 0 && !srv.cronPaused && srv.nextIdle <= srv.keys.Now() {
		srv.closeIdle()
	}
}

// closeIdle disconnects the clients that have said nothing for as long as the
// parameter timeout allows, and decides when to look again. Clients that
// listen or wait are not idle, nor those that are about to send a command, or to
// receive a reply, and get on with it.
func (srv *Server) closeIdle() {
	srv.nextIdle = 0
	if srv.config.timeout == 0 {
		return
	}
	limit := time.Duration(srv.config.timeout) * time.Second
	next := srv.at.Add(limit)
	for _, s := range srv.sessions {
		if s.blocked != nil || s.postponed != nil || s.monitoring || s.subscriptions() > 0 {
			continue
		}
		due := s.lastUsed.Add(limit)
		if s.lastMoved.After(s.lastUsed) {
			due = s.lastMoved.Add(limit)
		}
		if due.After(srv.at) {
			if due.Before(next) {
				next = due
			}
			continue
		}
		if s.proceeds() {
			s.lastMoved = srv.at
			continue
		}
		srv.log.Info("closing idle client", "client", s.addr, "name", s.name)
		s.kill()
	}
	srv.nextIdle = next.UnixMilli() + 1
}

// leastProgress is how many bytes of a command or a reply must go over a connection
// in the time that timeout allows, so that it is not idle. For Redis one is enough:
// whoever sends one a minute keeps his place for ever.
const leastProgress = 1 << 10

// proceeds reports whether the client has sent so much of half a command, or received
// so much of a reply, since this was asked last. The first time it is enough that
// there is one.
func (s *Session) proceeds() bool {
	input, unsent := int64(0), s.unsent.Load()
	if s.query != nil {
		if half, _ := s.query(); half > 0 {
			input = s.peer.input.arrived.Load()
		}
	}
	moved := input > 0 && (s.moved.input == 0 || input-s.moved.input >= leastProgress) ||
		unsent > 0 && (s.moved.unsent == 0 || max(unsent-s.moved.unsent, s.moved.unsent-unsent) >= leastProgress)
	s.moved.input, s.moved.unsent = input, unsent
	return moved
}
