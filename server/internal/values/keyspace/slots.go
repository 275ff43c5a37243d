package keyspace

import (
	"iter"
)

// IndexSlots creates an index of the keys of each database by slot. There are n slots;
// of returns the slot of a key. O(keys).
func (ks *Keyspace) IndexSlots(n int, of func(key string) int) {
	for _, db := range ks.dbs {
		db.slots = newSlotIndex(n, of)
		db.slots.Reset(db.keys)
	}
}

// keys yields all keys, those past their deadlines, too.
func (db *DB) keys(yield func(string) bool) {
	for e := range db.entries.all() {
		if !yield(e.Key()) {
			return
		}
	}
}

// SlotLen returns the number of keys in a slot. IndexSlots must have been called.
// O(1).
func (db *DB) SlotLen(slot int) int { return db.slots.Len(slot) }

// SlotKeys yields the keys of a slot, the newest first.
func (db *DB) SlotKeys(slot int) iter.Seq[string] { return db.slots.Keys(slot) }
