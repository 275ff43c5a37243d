package keyspace

import (
	"github.com/zsetd/zsetd/server/internal/values/packed"
	"github.com/zsetd/zsetd/zset"
)

// Members of sorted sets and fields of hashes may have deadlines. The value has an
// index of them (zset.Set.SetDeadline, Hash.SetDeadlineBytes). The database has an
// index of keys by the earliest deadline of their members, like that of the keys'
// own deadlines, so a single timer, set to the head of both, suffices.
//
// The accessors remove expired members from a key before they return it; Sweep
// removes them at their deadline. Seal updates the index at the end of a command
// for the keys that the command opened for writing.

// edited is an entry that was opened for writing.
type edited struct {
	db    *DB
	entry *Entry
}

// opened registers e as open for writing.
func (db *DB) opened(e *Entry) {
	db.changing(e)
	if db.views != nil {
		delete(db.views, e.Key())
	}
	db.noteEdited(e)
	if !e.packed() && e.state&weighedBit == 0 {
		db.trackWeight(e, e.figures())
	}
	if db.ks.rec != nil {
		db.ks.rec.observe(db, e)
	}
}

// noteEdited makes Seal examine e if its members can have deadlines. Those of
// packed hashes cannot.
func (db *DB) noteEdited(e *Entry) {
	if k := e.kind(); k == isZset || k == isHash && !e.packed() {
		db.ks.edited = append(db.ks.edited, edited{db, e})
	}
}

// reschedule updates the index of member deadlines for all entries that were opened
// for writing.
func (ks *Keyspace) reschedule() {
	for i := range ks.edited {
		x := ks.edited[i]
		if x.entry.timed() || deadlinesOf(x.entry.Value()) != nil {
			if e := x.db.entries.get(x.entry.Key()); e == x.entry {
				x.db.schedule(e)
			}
		}
	}
	clear(ks.edited)
	if ks.edited = ks.edited[:0]; cap(ks.edited) > 1024 {
		ks.edited = nil
	}
}

// schedule updates e in the index of member deadlines.
func (db *DB) schedule(e *Entry) {
	d := deadlinesOf(e.Value())
	if d == nil {
		if e.timed() {
			db.unschedule(e)
		}
		return
	}
	first, _ := d.First()
	if at, ok := db.members.Score(e.Key()); !ok || at != first.Score {
		before := db.members.Internal().Weight()
		db.members.Add(e.Key(), first.Score)
		db.addUsedBytes(int64(db.members.Internal().Weight() - before))
		db.ks.moved = true
	}
	e.state |= timedBit
}

func (db *DB) unschedule(e *Entry) {
	before := db.members.Internal().Weight()
	db.members.Remove(e.Key())
	db.addUsedBytes(int64(db.members.Internal().Weight() - before))
	db.ks.moved = true
	e.state &^= timedBit
}

// deadlinesOf returns the deadline index of a value's members, or nil if there are
// none.
func deadlinesOf(value any) *zset.Set {
	switch v := value.(type) {
	case *zset.Set:
		return v.Deadlines()
	case *Hash:
		return v.Deadlines()
	}
	return nil
}

// dueMembers returns the number of expired members. O(log n).
func dueMembers(value any, now int64) int {
	d := deadlinesOf(value)
	if d == nil {
		return 0
	}
	if first, _ := d.First(); int64(first.Score) >= now {
		return 0
	}
	return d.CountScore(zset.ScoreRange{Min: 0, Max: float64(now), MaxExclusive: true})
}

// DueMembers returns the number of expired members of a key that are not removed
// yet and that a command with this use of fields would remove; while the keyspace is
// frozen, of the readers' view of the key. O(log n).
func (db *DB) DueMembers(key []byte, use FieldUse) int {
	e := db.entries.get(packed.View(key))
	if e == nil || !e.timed() || db.keepsFields(e) && use != FieldsSwept {
		return 0
	}
	if v, ok := db.views[e.Key()]; ok && v.of == e.Value() {
		e = v.shown
	}
	return dueMembers(e.Value(), db.ks.due)
}

// Purge removes at most limit expired members of a key, and returns their number;
// while the keyspace is frozen, from the readers' view. O(log n) for each.
func (db *DB) Purge(key []byte, limit int) int {
	e := db.entries.get(packed.View(key))
	switch {
	case e == nil || !e.timed():
		return 0
	case db.ks.frozen:
		return expireMembers(db.view(e).Value(), db.ks.due, limit, func(string) {})
	}
	n, _ := db.purge(e, limit)
	return n
}

// expireMembers removes at most limit expired members and calls gone for each.
func expireMembers(value any, now int64, limit int, gone func(member string)) int {
	switch v := value.(type) {
	case *zset.Set:
		return v.Expire(now, limit, func(e zset.Element) { gone(e.Member) })
	case *Hash:
		return v.expire(now, limit, gone)
	}
	return 0
}

// expiredAtOnce is the maximum number of members in a call of Hooks.ExpiredMembers.
const expiredAtOnce = 1000

// purge removes at most limit expired members of e and, if no member remains, e
// itself. It returns the number of removals.
func (db *DB) purge(e *Entry, limit int) (n int, emptied bool) {
	if d := deadlinesOf(e.Value()); d == nil { // Seal has not updated the index yet
		return 0, false
	} else if first, _ := d.First(); int64(first.Score) >= db.ks.due {
		return 0, false
	}
	db.purging(e)
	var members []string
	hook := db.ks.hooks.ExpiredMembers
	for more := true; more; {
		members = members[:0]
		got := expireMembers(e.Value(), db.ks.due, min(limit-n, expiredAtOnce), func(member string) {
			if hook != nil {
				members = append(members, member)
			}
		})
		n += got
		emptied = sizeOf(e.Value()) == 0
		more = !emptied && got == expiredAtOnce && n < limit
		if emptied {
			db.remove(e.Key())
		} else if !more {
			db.schedule(e)
		}
		if hook != nil && got > 0 {
			hook(db, e.Key(), e.Value(), members, emptied)
		}
	}
	return n, emptied
}

// purging prepares the removal of expired members of e.
func (db *DB) purging(e *Entry) {
	db.changing(e)
	if db.ks.rec != nil {
		db.ks.rec.observe(db, e)
	}
	if e.state&weighedBit == 0 {
		db.trackWeight(e, e.figures())
	}
}

// view is the form of an entry that readers see while the keyspace is frozen.
type view struct {
	of    any // the value that shown is a copy of
	shown *Entry
}

// view returns the readers' view of e: a copy, from which expired members are
// removed.
func (db *DB) view(e *Entry) *Entry {
	v, ok := db.views[e.Key()]
	if !ok || v.of != e.Value() {
		shown := newEntry(e.Key(), Clone(e.Value()), false)
		shown.setDeadline(e.Deadline())
		shown.access = e.access
		v = view{e.Value(), shown}
		if db.views == nil {
			db.views = map[string]view{}
		}
		db.views[e.Key()] = v
	}
	return v.shown
}

// withoutDue returns e without its expired members, and does not modify e.
func (db *DB) withoutDue(e *Entry) *Entry {
	if dueMembers(e.Value(), db.ks.due) == 0 {
		return e
	}
	shown := db.view(e)
	expireMembers(shown.Value(), db.ks.due, sizeOf(shown.Value()), func(string) {})
	return shown
}

// HashField returns the value of a field of a hash. Unlike Get it does not remove
// expired members, which makes it suitable for reading one field each of many keys.
func (db *DB) HashField(key, field []byte) (value string, ok bool) {
	if e := db.entries.get(packed.View(key)); e == nil || !e.timed() {
		e = db.Get(key)
		if e == nil {
			return "", false
		}
		if h, isHash := e.Value().(*Hash); isHash {
			return h.Get(field)
		}
		return "", false
	} else if h, isHash := e.Value().(*Hash); isHash && !db.Due(e) {
		db.ks.hits++
		if at, _ := h.DeadlineBytes(field); at == 0 || at >= db.ks.due {
			return h.Get(field)
		} else if db.ks.lazy && !db.ks.frozen {
			db.purgeFields(e, [][]byte{field}, false)
		}
		return "", false
	}
	if db.ks.hooks.Missed != nil {
		db.ks.hooks.Missed(db, key)
	}
	return "", false
}
