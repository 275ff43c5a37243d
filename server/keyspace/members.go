package keyspace

import (
	"github.com/zsetd/zsetd/zset"
)

// Members of sorted sets and fields of hashes may have deadlines of their own.
// The value knows them in their order (zset.Set.SetDeadline, Hash.SetDeadlineBytes);
// the database knows of each key the earliest, in an index like that of the
// keys' own deadlines; so one timer, set to the head of both, serves all.
//
// Whoever opens a key finds it without the members that are past their
// deadlines: the doors remove them. A sweep does so at the deadline if nobody
// comes. The index is brought up to date when a command is done (Seal), for the
// keys that it opened for changing.

// edited is a key that was opened for changing.
type edited struct {
	db    *DB
	entry *Entry
}

// opened notes that e is open for changing.
func (db *DB) opened(e *Entry) {
	if db.views != nil {
		delete(db.views, e.Key())
	}
	db.noteEdited(e)
	if !e.packed() && e.state&growingBit == 0 {
		db.grows(e, e.weight())
	}
	if db.ks.rec != nil {
		db.ks.rec.observe(db, e)
	}
}

// noteEdited has Seal look at e, if it can have members with deadlines. Packed
// hashes have none.
func (db *DB) noteEdited(e *Entry) {
	if k := e.kind(); k == isZset || k == isHash && !e.packed() {
		db.ks.edited = append(db.ks.edited, edited{db, e})
	}
}

// reschedule brings the index of the deadlines of members up to date.
func (ks *Keyspace) reschedule() {
	for i, x := range ks.edited {
		ks.edited[i] = edited{}
		if x.entry.timed() || deadlinesOf(x.entry.Value()) != nil {
			if e := x.db.entries.get(x.entry.Key()); e == x.entry {
				x.db.schedule(e)
			}
		}
	}
	if ks.edited = ks.edited[:0]; cap(ks.edited) > 1024 {
		ks.edited = nil
	}
}

// schedule puts e where it belongs in the index.
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
		before := db.members.Weight()
		db.members.Add(e.Key(), first.Score)
		db.hold(int64(db.members.Weight() - before))
		db.ks.moved = true
	}
	e.state |= timedBit
}

func (db *DB) unschedule(e *Entry) {
	before := db.members.Weight()
	db.members.Remove(e.Key())
	db.hold(int64(db.members.Weight() - before))
	db.ks.moved = true
	e.state &^= timedBit
}

// deadlinesOf returns the deadlines of the members of a value, nil if there are
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

// dueMembers counts the members whose deadline has passed.
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

// DueMembers returns how many members of a key are past their deadlines and not
// removed yet; while the keyspace is frozen, from the view of it that readers
// are shown. O(log n).
func (db *DB) DueMembers(key []byte) int {
	e := db.entries.get(viewOf(key))
	if e == nil || !e.timed() {
		return 0
	}
	if v, ok := db.views[e.Key()]; ok && v.of == e.Value() {
		e = v.shown
	}
	return dueMembers(e.Value(), db.ks.now)
}

// Purge removes members of a key whose deadline has passed, at most limit of
// them, and returns how many it did; while the keyspace is frozen, from the view.
func (db *DB) Purge(key []byte, limit int) int {
	e := db.entries.get(viewOf(key))
	switch {
	case e == nil || !e.timed():
		return 0
	case db.ks.frozen:
		return expireMembers(db.view(e).Value(), db.ks.now, limit, func(string) {})
	}
	n, _ := db.purge(e, limit)
	return n
}

// expireMembers removes members whose deadline has passed.
func expireMembers(value any, now int64, limit int, gone func(member string)) int {
	switch v := value.(type) {
	case *zset.Set:
		return v.Expire(now, limit, func(e zset.Element) { gone(e.Member) })
	case *Hash:
		return v.expire(now, limit, gone)
	}
	return 0
}

// expiredAtOnce is how many members the hook is told of together.
const expiredAtOnce = 1000

// purge removes members of e whose deadline has passed, at most limit of them,
// and e if none is left. It returns how many it removed.
func (db *DB) purge(e *Entry, limit int) (n int, emptied bool) {
	if d := deadlinesOf(e.Value()); d == nil { // the index is brought up to date with the end of the command
		return 0, false
	} else if first, _ := d.First(); int64(first.Score) >= db.ks.now {
		return 0, false
	}
	if db.ks.rec != nil {
		db.ks.rec.observe(db, e)
	}
	if e.state&growingBit == 0 {
		db.grows(e, e.weight())
	}
	var members []string
	tell := db.ks.hooks.ExpiredMembers
	for more := true; more; {
		members = members[:0]
		got := expireMembers(e.Value(), db.ks.now, min(limit-n, expiredAtOnce), func(member string) {
			if tell != nil {
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
		if tell != nil && got > 0 {
			tell(db, e.Key(), e.Value(), members, emptied)
		}
	}
	return n, emptied
}

// view is what readers are shown of an entry while the keyspace is frozen.
type view struct {
	of    any // the value
	shown *Entry
}

// view returns the view of e: a copy, from which members are removed instead.
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

// withoutDue returns e as it is without the members whose deadline has passed,
// and leaves e alone.
func (db *DB) withoutDue(e *Entry) *Entry {
	if dueMembers(e.Value(), db.ks.now) == 0 {
		return e
	}
	shown := db.view(e)
	expireMembers(shown.Value(), db.ks.now, sizeOf(shown.Value()), func(string) {})
	return shown
}

// HashField returns the value of a field of a hash, false if there is none. Other
// than Get it leaves members past their deadlines where they are: it is for those
// who ask many keys for one field each.
func (db *DB) HashField(key, field []byte) (value string, ok bool) {
	if e := db.entries.get(viewOf(key)); e == nil || !e.timed() {
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
		if at, _ := h.DeadlineBytes(field); at == 0 || at >= db.ks.now {
			return h.Get(field)
		}
		return "", false
	}
	if db.ks.hooks.Missed != nil {
		db.ks.hooks.Missed(db, key)
	}
	return "", false
}
