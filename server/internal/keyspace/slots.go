package keyspace

import (
	"iter"

	"github.com/zsetd/zsetd/server/internal/slotindex"
)

// IndexSlots creates an index of the keys of database 0 by slot. There are n slots;
// of returns the slot of a key. O(keys).
func (ks *Keyspace) IndexSlots(n int, of func(key string) int) {
	ks.slots = slotindex.New(n, of)
	ks.slots.Reset(ks.dbs[0].keys)
}

// keys yields all keys, those past their deadlines, too.
func (db *DB) keys(yield func(string) bool) {
	for e := range db.entries.all() {
		if !yield(e.Key()) {
			return
		}
	}
}

// indexed returns the index if it covers db, else nil.
func (db *DB) indexed() *slotindex.Index {
	if db.id != 0 {
		return nil
	}
	return db.ks.slots
}

// SlotLen returns the number of keys in a slot. IndexSlots must have been called.
// O(1).
func (ks *Keyspace) SlotLen(slot int) int { return ks.slots.Len(slot) }

// SlotKeys yields the keys of a slot, the newest first.
func (ks *Keyspace) SlotKeys(slot int) iter.Seq[string] { return ks.slots.Keys(slot) }
