package keyspace

import "strings"

// savepoint is a state that the keyspace can return to: that of the keys which have changed since,
// and the lengths of the journal and of the list of effects. Keys are saved by the hooks of a
// [Snapshot], before their first change.
type savepoint struct {
	keys    map[place]saved
	journal recorded
	effects recorded
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

// recorded is a length of a journal, or of a list of effects: its parts and the buffer behind them,
// the size of the parts in bytes, and the number of records so far.
type recorded struct {
	parts, buf, size int
	records          uint64
}

// cut cuts parts and the buffer behind them back to a length. bytes returns the buffer that a part
// was.
func cut[P any](parts *[]P, buf *[]byte, to recorded, bytes func(P) []byte) {
	if len(*parts) > to.parts {
		*buf = bytes((*parts)[to.parts])
		clear((*parts)[to.parts:])
		*parts = (*parts)[:to.parts]
	}
	*buf = (*buf)[:to.buf]
}

// Savepoint begins to keep what [Keyspace.Rollback] needs, until that or [Keyspace.Release] is
// called. There can be one at a time, and meanwhile neither Clear, Swap nor Adopt, nor the end
// or beginning of a journal. Each key that changes costs a clone of its value, O(1).
func (ks *Keyspace) Savepoint() {
	if ks.savepoint != nil {
		panic("BUG: a keyspace has two savepoints")
	}
	ks.Seal()
	s := &savepoint{keys: map[place]saved{}}
	if r := ks.rec; r != nil {
		s.journal = recorded{len(r.parts), len(r.buf), r.size, r.records}
		if f := r.follower; f != nil {
			s.effects = recorded{len(f.parts), len(f.buf), f.size, ks.effects}
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
	cut(&rec.parts, &rec.buf, s.journal, func(p part) []byte { return p.records })
	rec.size, rec.records = s.journal.size, s.journal.records
	if f := rec.follower; f != nil {
		cut(&f.parts, &f.buf, s.effects, func(p effectPart) []byte { return p.effects })
		f.size, ks.effects = s.effects.size, s.effects.records
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
