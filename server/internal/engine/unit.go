package engine

import (
	"slices"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/clock"
	"github.com/zsetd/zsetd/server/internal/engine/tracking"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// commitScope is the commit scope: one command, one EXEC, one script, one sweep of expired
// keys. While a command runs, it only collects effects. When it has ended, also within EXEC
// or a script, apply applies their consequences, in one order: watched keys, client-side
// caches, keyspace notifications, messages. So the state at that time decides which clients
// receive them: they are in the output queues, which are written once the lock is released.
// Commit then serves the commands that wait for a key.
//
// Redis leaves these consequences to each command (some 170 places). Here a handler
// calls Changed once and cannot forget the rest.
//
// There is one per turn, guarded by the server's lock. A turn runs several commit
// scopes in one lock hold, one after the other, under one reading of the clock.
type commitScope struct {
	srv     *Engine
	effects []effect
	ready   []*queue   // queues of changed keys
	wake    []*Session // sessions to wake once the lock is released
	serving bool
	Shown   clock.Held // the time that commands show
	running

	Members      []byte              // members that the effects touch; see memberlist.go
	MembersTaken int                 // how many bytes of members belong to effects
	seen         map[string]struct{} // members that touchedOnce has recorded for the next event
}

// effect is one change or message of a commit scope.
type effect struct {
	key     string // or the channel of a message
	event   string // or the message
	db      int
	class   EventClass
	message messageKind
	members string // members that it touches, if a subscriber needs them; see memberlist
	cached  *tracking.Holders
}

type messageKind uint8

// The kinds of messages for subscribers.
const (
	noMessage messageKind = iota
	channelMessage
	shardMessage
	flushMessage // no channel message: all databases, or one, were emptied
)

// serveDue serves the waiters whose alarm is due.
func (srv *Engine) serveDue() {
	if len(srv.Waits.alarms) > 0 && srv.Waits.alarms[0].at <= srv.Turn.Instant {
		srv.serveAlarms()
	}
}

// finishTurn does all work that is due before the lock is released, and sets the timer.
// It commits effects that were not committed, as those of Maintain.
func (srv *Engine) finishTurn() {
	u := &srv.Turn.Scope
	srv.Stats.Turns++
	srv.Stats.TurnTime += srv.Turn.At.Sub(srv.Turn.began)
	if srv.Clients.memory.full() {
		srv.Stats.EvictedClients += srv.Clients.memory.evict(srv.Log)
	}
	if len(u.effects) > 0 {
		u.Commit()
	}
	if len(srv.Pauses.released) > 0 {
		srv.runReleased()
	}
	if srv.Queries.byName != nil {
		srv.evaluateQueries()
	}
	if srv.Tracking.On() {
		srv.finishTracking()
	}
	if srv.Keys.Following() {
		srv.feed()
	}
	srv.setTimer()
	srv.sampleIfDue(srv.Turn.At)
	srv.Keeper.Note(srv.Stats.Changes)
	if len(u.wake) > 0 && srv.withholds() {
		srv.withholdWoken()
	}
}

// withholdWoken withholds the output for other sessions until the changes that it
// reports are on disk.
func (srv *Engine) withholdWoken() {
	u := &srv.Turn.Scope
	u.wake = slices.DeleteFunc(u.wake, func(s *Session) bool {
		if s.End == Killed || s.waiting() == 0 {
			return false
		}
		s.Queue.waking = false
		srv.withhold(s)
		return true
	})
}

// changed is Call.Changed for a key of any database.
func (u *commitScope) changed(db int, key string, class EventClass, event string) {
	u.srv.Stats.Changes++
	u.followed(db, key, class, event)
}

// followed tells the listeners an event that follows from another change of the key. It does not
// count as a change.
func (u *commitScope) followed(db int, key string, class EventClass, event string) {
	srv := u.srv
	if srv.Memory.byChange {
		srv.Keys.DB(db).Written(protocol.BytesOf(key))
	}
	if len(srv.Queries.byKey) > 0 {
		srv.Queries.mark(WaitKey{db, key}, u.Members[u.MembersTaken:])
	}
	if len(srv.Waits.Watched) == 0 && len(srv.Waits.Waiting) == 0 && srv.events.notify == 0 && !srv.Tracking.On() {
		if u.MembersTaken < len(u.Members) {
			u.Members = u.Members[:u.MembersTaken]
			clear(u.seen)
		}
		return // no listener
	}
	e := effect{key: key, event: event, db: db, class: class}
	if srv.Tracking.On() {
		e.cached = srv.untrackKey(key, u.actor, class == classExpired)
	}
	if u.MembersTaken < len(u.Members) {
		// The buffer may move, but bytes in it never change before the effects are
		// discarded.
		e.members = protocol.View(u.Members[u.MembersTaken:])
		u.MembersTaken = len(u.Members)
		clear(u.seen)
	}
	u.effects = append(u.effects, e)
}

// touched records a member of a sorted set or a set, or a field of a hash, for the
// event of the given class that the next call of changed reports. It copies the
// member, unless no subscriber needs it. Sweeps call it too: touched for each
// member that they remove from a key, then changed.
func (u *commitScope) touched(class EventClass, member []byte) {
	if u.srv.events.subkeys&class != 0 {
		u.Members = appendMember(u.Members, u.MembersTaken == len(u.Members), member)
	}
}

// touchedOnce adds a member to the next event, unless the event names it already. It borrows the
// member until changed, which must follow. Call it only if a subscriber needs members.
func (u *commitScope) touchedOnce(class EventClass, member []byte) {
	if _, again := u.seen[protocol.View(member)]; again {
		return
	}
	if u.seen == nil {
		u.seen = map[string]struct{}{}
	}
	u.seen[protocol.View(member)] = struct{}{}
	u.touched(class, member)
}

// KeepMembers is the largest buffer of members that is kept for the next commit
// scope.
const KeepMembers = 64 << 10

// forgetMembers resets the buffer of members for the next commit scope.
func (u *commitScope) forgetMembers() {
	if cap(u.Members) > KeepMembers {
		u.Members, u.seen = nil, nil
	}
	u.Members, u.MembersTaken = u.Members[:0], 0
}

// event records a keyspace event without a change.
func (u *commitScope) event(db int, key string, class EventClass, event string) {
	if u.srv.events.notify&class != 0 {
		u.effects = append(u.effects, effect{key: key, event: event, db: db, class: class | classUnchanged})
	}
}

// Replacing records that database db is about to get the keys of by, or none if by
// is nil, in place of its own. The watches and waiters of each key that exists in
// either are affected.
func (u *commitScope) Replacing(db, by *keyspace.DB) {
	u.srv.Queries.markAll(db.ID())
	var keys []string
	note := func(k WaitKey) {
		if key := protocol.BytesOf(k.Key); k.Db == db.ID() && (db.Peek(key) != nil || by != nil && by.Peek(key) != nil) {
			keys = append(keys, k.Key)
		}
	}
	for k := range u.srv.Waits.Watched {
		note(k)
	}
	for k := range u.srv.Waits.Waiting {
		note(k)
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		u.effects = append(u.effects, effect{key: key, db: db.ID()})
	}
}

// publish records a message, which keeps its order among the other effects. The
// message is borrowed until apply.
func (u *commitScope) publish(kind messageKind, channel, message []byte) {
	u.effects = append(u.effects, effect{key: protocol.View(channel), event: protocol.View(message), message: kind})
}

// forget drops the event of a key that was created and removed again.
func (u *commitScope) forget(db int, key string) {
	for i := len(u.effects) - 1; i >= 0; i-- {
		if e := &u.effects[i]; e.class == classNew|classUnchanged && e.db == db && e.key == key {
			u.effects = append(u.effects[:i], u.effects[i+1:]...)
			return
		}
	}
}

// apply applies the consequences of the effects so far. It only marks the commands that wait
// for a key.
func (u *commitScope) apply() {
	if len(u.effects) == 0 {
		return
	}
	srv := u.srv
	for i := range u.effects {
		e := &u.effects[i]
		if e.message == flushMessage {
			srv.Clients.invalidateAll()
			continue
		}
		if e.message != noMessage {
			srv.deliver(e.message, e.key, e.event)
			continue
		}
		if e.class&classUnchanged == 0 {
			if len(srv.Waits.Watched) > 0 {
				srv.Waits.touch(e.db, e.key)
			}
			if e.cached != nil {
				srv.Clients.invalidate(e.key, e.cached)
			}
			if len(srv.Waits.Waiting) > 0 {
				if q := srv.Waits.Waiting[WaitKey{e.db, e.key}]; q != nil {
					u.markLines(q, e)
				}
			}
		}
		if srv.events.notify&e.class&classAny != 0 {
			srv.notifyKeyspace(e)
		}
	}
	clear(u.effects)
	u.effects = u.effects[:0]
	if len(u.Members) > 0 {
		u.forgetMembers()
	}
}

// Commit applies the consequences of the effects so far. It then retries the
// waiting commands that can now complete, each in a commit scope of its own.
func (u *commitScope) Commit() {
	u.apply()
	if len(u.ready) == 0 {
		return
	}
	srv := u.srv
	if u.serving {
		return // the loop below, in an outer call, continues
	}
	u.serving = true
	srv.SetClock(srv.Turn.At) // the commands before may have taken long
	for i := 0; i < len(u.ready); i++ {
		u.serve(u.ready[i])
	}
	u.serving = false
	u.ready = u.ready[:0]
}
