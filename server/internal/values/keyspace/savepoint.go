package keyspace

import "strings"

// savepoint is a state that the keyspace can return to: that of the keys which have changed since,
// and the lengths of the journal and of the list of effects. Keys are saved by the hooks of a
// [Snapshot], before their first change.
type savepoint struct {
	keys    map[place]saved
	journal recorded
	effects recorded
	count   uint64 // Keyspace.effects
}

// place is a key of a database.
type place struct {
	db  *DB
	key string
}

// saved is a key as it was; the value is nil if it did not exist.
type saved struct {
	value    any
	deadline int64
	access   uint32
	own      bool // see DB.own
}

// recorded is a length of a journal, or of a list of effects.
type recorded struct {
	parts, buf, size int
	records          uint64
}

// Savepoint begins to keep what [Keyspace.Rollback] needs, until that or [Keyspace.Release] is
// called. There can be one at a time, and meanwhile neither Clear, Swap nor Adopt, nor the end
// or beginning of a journal. Each key that changes costs a clone of its value, O(1).
func (ks *Keyspace) Savepoint() {
	if ks.savepoint != nil {
		panic("BUG: a keyspace has two savepoints")
	}
	ks.Seal()
	s := &savepoint{keys: map[place]saved{}, count: ks.effects}
	if r := ks.rec; r != nil {
		s.journal = recorded{len(r.parts), len(r.buf), r.size, r.records}
		if f := r.follower; f != nil {
			s.effects = recorded{parts: len(f.parts), buf: len(f.buf), size: f.size}
		}
	}
	ks.savepoint = s
}

// Release forgets the savepoint. The changes since then stay.
func (ks *Keyspace) Release() { ks.savepoint = nil }

// Rollback returns to the savepoint and forgets it: keys have their values and deadlines of then,
// and neither the journal nor the list of effects has the changes since. O(k log n) for k changed keys
// of n.
func (ks *Keyspace) Rollback() {
	ks.Seal()
	s, rec := ks.savepoint, ks.rec
	ks.savepoint, ks.rec = nil, nil // restoring is no change
	for k, was := range s.keys {
		k.db.remove(k.key)
		if was.value != nil {
			e := restoredEntry(k.key, was.value, was.deadline)
			k.db.RestoreEntry(e, k.db.Hash(k.key))
			e.access = was.access
			if was.own {
				k.db.noteOwn(k.key, was.deadline)
			}
		}
	}
	if ks.rec = rec; rec == nil {
		return
	}
	if m := s.journal; len(rec.parts) > m.parts {
		rec.buf = rec.parts[m.parts].records[:m.buf] // it became this part
		clear(rec.parts[m.parts:])
		rec.parts = rec.parts[:m.parts]
	} else {
		rec.buf = rec.buf[:m.buf]
	}
	rec.size, rec.records = s.journal.size, s.journal.records
	if f := rec.follower; f != nil {
		if m := s.effects; len(f.parts) > m.parts {
			f.buf = f.parts[m.parts].effects[:m.buf]
			clear(f.parts[m.parts:])
			f.parts = f.parts[:m.parts]
		} else {
			f.buf = f.buf[:m.buf]
		}
		f.size, ks.effects = s.effects.size, s.count
	}
}

// save keeps e, which is about to change, or was just removed and has not changed otherwise.
func (s *savepoint) save(db *DB, e *Entry) {
	k := place{db, e.Key()}
	if _, again := s.keys[k]; again {
		return
	}
	k.key = strings.Clone(k.key)
	own := false
	if db.own != nil {
		_, own = db.own.Score(k.key)
	}
	s.keys[k] = saved{Clone(e.Value()), e.Deadline(), e.access, own}
}

// absent notes that a key did not exist.
func (s *savepoint) absent(db *DB, key string) {
	if k := (place{db, key}); s.keys[k].value == nil {
		k.key = strings.Clone(key)
		s.keys[k] = saved{}
	}
}

// changing calls the hooks for e, which is about to change.
func (db *DB) changing(e *Entry) {
	if db.snapshot != nil {
		db.snapshot.changing(e)
	}
	if db.ks.savepoint != nil {
		db.ks.savepoint.save(db, e)
	}
}
