package keyspace

import (
	"strings"
	"time"
)

// Snapshot is the content of a keyspace as of one instant, which [Snapshot.Next] reads
// in pieces while the keyspace goes on changing. Its memory is bounded by the values
// that change meanwhile.
//
// It copies before change. Next passes through the key table of each database in the
// order of a cursor, see keyTable.scan. A key that the cursor has passed may change
// freely. Before a key that it has not passed changes for the first time, the keyspace
// saves the old value, and Next delivers it:
//
//	positions   0 ────────────── cursor ───────────────── 2^52
//	                visited        │   current, or saved
//
// The position of a key is its hash, with a seed that the table never changes. A split
// or merge of pages regroups adjacent positions and moves no key to another position.
// So the cursor passes each position exactly once, and a comparison of the hash with
// the cursor tells whether a key was visited.
//
// The keys that are in the table, not passed, and not to be visited there are in a set:
// those that were saved and changed, and those that were created after the instant. A
// key leaves the set when it is removed or passed. A removed key needs no mark, because
// a new key of the same name gets its own.
//
// The keyspace calls a hook in the functions through which every change goes: DB.opened,
// DB.SetDeadline, DB.purge, DB.insert, DB.remove, DB.Clear, Swap and Adopt. Opening a key
// for writing saves it, so handlers may change its value until Seal. Reading and the
// relocation of an entry save nothing. Without a snapshot a hook costs a comparison with
// nil.
//
// A Snapshot is not safe for concurrent use, like its Keyspace: all methods need
// exclusive access to the keyspace.
type Snapshot struct {
	ks     *Keyspace
	tables []*snapshotTable // those that are not entirely visited
	old    []savedKey       // saved and not yet visited, in any order
	bytes  int              // see Saved
}

// SnapshotKey is a key of a snapshot, with the value and the deadline that it had.
type SnapshotKey struct {
	DB       int // number of the database at the instant; may be InternalDB
	Key      string
	Value    any
	Deadline int64 // in milliseconds since 1970; 0 = none

	// Shared reports that the value and the key are the visitor's: it may read them
	// after the visit, in any goroutine, without the lock of the keyspace. Otherwise
	// they are valid during the visit only.
	Shared bool
}

// savedKey is a key that changed after the instant, as it was before.
type savedKey struct {
	SnapshotKey
	bytes int
}

// snapshotTable is the keys of one database in a snapshot.
type snapshotTable struct {
	s      *Snapshot
	id     int                 // number of the database at the instant
	db     *DB                 // the database that has the keys now; nil if it was cleared
	kept   keyTable            // the keys if db is nil
	bytes  int                 // bytes of kept and its entries, estimated
	cursor uint64              // the first position that is not passed
	skip   map[string]struct{} // keys in the table that are not passed and not to be visited
}

// Snapshot begins a snapshot of all keys as of now, including expired keys that are not
// removed yet. There can be one at a time; a second one panics. O(databases), plus the
// values that are open for writing, which it seals.
func (ks *Keyspace) Snapshot() *Snapshot {
	if ks.snapshot != nil {
		panic("BUG: a keyspace has two snapshots")
	}
	ks.Seal()
	s := &Snapshot{ks: ks}
	ks.snapshot = s
	for i := InternalDB; i < ks.Len(); i++ {
		if db := ks.DB(i); db.entries.n > 0 {
			db.snapshot = &snapshotTable{s: s, id: i, db: db, skip: map[string]struct{}{}}
			s.tables = append(s.tables, db.snapshot)
		}
	}
	return s
}

// Next visits some more keys, in unspecified order, and returns false when all were
// visited and the snapshot is closed. Every key of the snapshot is visited exactly once,
// unless Close ends it. Next stops after n keys that are current, or when the budget is
// used; keys that were saved do not count for n. Every call makes progress, of one key or
// one page of the key table, even if n or the budget is 0; it may visit no key and
// return true. visit must not change the keyspace or close the snapshot.
//
// A saved value, and a large one, of more than 64 KB or 256 elements, is a clone that is
// Shared. A call exceeds the budget by at most a page (224 keys) without its visits, some
// 50 µs, and by at most 16 visits of small values. O(visited keys), plus O(page).
func (s *Snapshot) Next(n int, budget time.Duration, visit func(k SnapshotKey)) (more bool) {
	end := time.Now().Add(budget)
	for len(s.old) > 0 {
		last := len(s.old) - 1
		k := s.old[last]
		s.old[last] = savedKey{}
		s.old = s.old[:last]
		s.bytes -= k.bytes
		visit(k.SnapshotKey)
		if len(s.old)+len(s.tables) > 0 && !time.Now().Before(end) {
			return true
		}
	}
	s.old = nil
	for n = max(n, 1); len(s.tables) > 0; {
		t := s.tables[0]
		visited, done := t.next(n, end, visit)
		if done {
			t.finish()
			s.tables = s.tables[1:]
		}
		if n -= visited; len(s.tables) > 0 && (!done || n <= 0 || !time.Now().Before(end)) {
			return true
		}
	}
	s.Close()
	return false
}

// Saved estimates the memory of the old values that the snapshot holds, in bytes: those
// of keys that changed and were not visited since, and the content of databases that
// were cleared. It counts values that share memory with the current ones entirely. O(1).
func (s *Snapshot) Saved() int { return s.bytes }

// Close ends the snapshot, before its end or at it, and releases its memory. Afterwards
// Next visits nothing. It may be called again.
func (s *Snapshot) Close() {
	if s.ks.snapshot != s {
		return
	}
	for _, t := range s.tables {
		if t.db != nil {
			t.db.snapshot = nil
		}
	}
	s.ks.snapshot, s.tables, s.old, s.bytes = nil, nil, nil, 0
}

// save keeps the current state of e.
func (s *Snapshot) save(k SnapshotKey, e *Entry) {
	k.Value, k.Deadline, k.Shared = Clone(e.Value()), e.Deadline(), true
	bytes := e.figures().weight
	s.old = append(s.old, savedKey{k, bytes})
	s.bytes += bytes
}

// table returns the table with the keys.
func (t *snapshotTable) table() *keyTable {
	if t.db != nil {
		return &t.db.entries
	}
	return &t.kept
}

const (
	// timeCheck is the number of small keys that are visited between two readings of the
	// clock.
	timeCheck = 16
	// smallBytes is the memory of a value that counts as one small key more.
	smallBytes = 256
)

// next visits at most n keys until end, but at least one key or the rest of a page. It
// returns the number of keys, and whether the table is done.
func (t *snapshotTable) next(n int, end time.Time, visit func(k SnapshotKey)) (visited int, done bool) {
	var buf [maxSlots]positioned
	table, unchecked := t.table(), 0 // small keys since the clock was read
	for table.n > 0 && t.cursor < cursorEnd {
		page, after := table.after(t.cursor, buf[:0])
		for _, x := range page { // reads from memory overlap here, and not between visits
			if !x.entry.packed() {
				sizeOf(x.entry.Value())
			}
		}
		for i, x := range page {
			t.cursor = x.position
			key := x.entry.Key()
			if _, ok := t.skip[key]; ok {
				delete(t.skip, key)
				continue
			}
			k, bytes := current(t.id, x.entry)
			visit(k)
			visited++
			unchecked += 1 + bytes/smallBytes
			if i+1 < len(page) && page[i+1].position == x.position {
				continue // the cursor passes equal positions together
			}
			expired := false
			if unchecked >= timeCheck {
				unchecked, expired = 0, !time.Now().Before(end)
			}
			if visited >= n || expired {
				t.cursor++
				return visited, false
			}
		}
		t.cursor = after
		if !time.Now().Before(end) {
			break
		}
	}
	return visited, table.n == 0 || t.cursor >= cursorEnd
}

// current returns an entry for a visitor, and the bytes of a value that has memory of its own.
func current(db int, e *Entry) (k SnapshotKey, bytes int) {
	k = SnapshotKey{DB: db, Key: e.Key(), Value: e.Value(), Deadline: e.Deadline()}
	if e.packed() {
		return k, 0
	}
	bytes = bytesIn(k.Value)
	if large(k.Value, bytes) {
		k.Value, k.Shared = Clone(k.Value), true
	}
	return k, bytes
}

// finish detaches the table from its database after the last key.
func (t *snapshotTable) finish() {
	if len(t.skip) > 0 {
		panic("BUG: a snapshot skips keys that do not exist")
	}
	if t.db != nil {
		t.db.snapshot = nil
	}
	t.s.bytes -= t.bytes
}

// passed reports whether the cursor has passed a key. O(1).
func (t *snapshotTable) passed(key string) bool { return t.table().position(key) < t.cursor }

// changing saves e, which is about to change.
func (t *snapshotTable) changing(e *Entry) {
	key := e.Key()
	if t.passed(key) {
		return
	}
	if _, ok := t.skip[key]; ok {
		return
	}
	k := SnapshotKey{DB: t.id, Key: strings.Clone(key)}
	t.skip[k.Key] = struct{}{}
	t.s.save(k, e)
}

// removed saves e, which is no longer in the table and otherwise unchanged.
func (t *snapshotTable) removed(e *Entry) {
	key := e.Key()
	if t.passed(key) {
		return
	}
	if _, ok := t.skip[key]; ok {
		delete(t.skip, key)
		return
	}
	t.s.save(SnapshotKey{DB: t.id, Key: strings.Clone(key)}, e)
}

// created notes that a key did not exist at the instant, or was removed since.
func (t *snapshotTable) created(key string) {
	if !t.passed(key) {
		t.skip[strings.Clone(key)] = struct{}{}
	}
}

// detachSnapshot gives the key table, which the database is about to lose, to the
// snapshot. O(1).
func (db *DB) detachSnapshot() {
	if t := db.snapshot; t != nil {
		t.kept, t.db, t.bytes = db.entries, nil, int(db.UsedBytes())
		t.s.bytes += t.bytes
		db.snapshot = nil
	}
}

// swapSnapshots exchanges the tables of a snapshot, along with the keys.
func swapSnapshots(a, b *DB) {
	a.snapshot, b.snapshot = b.snapshot, a.snapshot
	for _, db := range []*DB{a, b} {
		if db.snapshot != nil {
			db.snapshot.db = db
		}
	}
}
