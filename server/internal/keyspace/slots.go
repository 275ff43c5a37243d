package keyspace

import (
	"container/list"
	"iter"
	"strings"
)

// slotIndex is an index of the keys of database 0 by cluster slot. It takes some
// 100 bytes for each key and exists only on request.
type slotIndex struct {
	slotOf   func(key string) int
	keys     []list.List // keys, by slot; the newest first
	elements map[string]*list.Element
}

// IndexSlots creates an index of the keys of database 0 by slot. There are n slots;
// of returns the slot of a key. O(keys).
func (ks *Keyspace) IndexSlots(n int, of func(key string) int) {
	ks.slots = &slotIndex{slotOf: of, keys: make([]list.List, n)}
	ks.slots.rebuild(ks.dbs[0])
}

func (x *slotIndex) rebuild(db *DB) {
	clear(x.keys)
	x.elements = make(map[string]*list.Element, db.entries.n)
	for e := range db.entries.all() {
		x.add(e.Key())
	}
}

// add adds a copy of a key, because its entry may be replaced.
func (x *slotIndex) add(key string) {
	key = strings.Clone(key)
	x.elements[key] = x.keys[x.slotOf(key)].PushFront(key)
}

func (x *slotIndex) remove(key string) {
	x.keys[x.slotOf(key)].Remove(x.elements[key])
	delete(x.elements, key)
}

// Sparse reports whether a database other than 0 has keys.
func (ks *Keyspace) Sparse() bool {
	for _, db := range ks.dbs[1:] {
		if db.Len() > 0 {
			return true
		}
	}
	return false
}

// indexed returns the index if it covers db, else nil.
func (db *DB) indexed() *slotIndex {
	if db.id != 0 {
		return nil
	}
	return db.ks.slots
}

// SlotLen returns the number of keys in a slot. IndexSlots must have been called.
// O(1).
func (ks *Keyspace) SlotLen(slot int) int { return ks.slots.keys[slot].Len() }

// SlotKeys yields the keys of a slot, the newest first.
func (ks *Keyspace) SlotKeys(slot int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for e := ks.slots.keys[slot].Front(); e != nil; e = e.Next() {
			if !yield(e.Value.(string)) {
				return
			}
		}
	}
}
