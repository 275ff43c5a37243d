package keyspace

import (
	"container/list"
	"iter"
	"strings"
)

// slotIndex knows the keys of database 0 by their slot in a cluster. It is there
// only where that is asked for: it takes some 100 bytes for each key.
type slotIndex struct {
	of   func(key string) int
	keys []list.List // of strings, by slot; the newest first
	at   map[string]*list.Element
}

// IndexSlots keeps account of the keys of database 0 by slot, of which there
// are n, as of tells.
func (ks *Keyspace) IndexSlots(n int, of func(key string) int) {
	ks.slots = &slotIndex{of: of, keys: make([]list.List, n)}
	ks.slots.rebuild(ks.dbs[0])
}

func (x *slotIndex) rebuild(db *DB) {
	clear(x.keys)
	x.at = make(map[string]*list.Element, db.entries.n)
	for e := range db.entries.all() {
		x.add(e.Key())
	}
}

// add notes a key. It keeps a copy, for the entry may be replaced.
func (x *slotIndex) add(key string) {
	key = strings.Clone(key)
	x.at[key] = x.keys[x.of(key)].PushFront(key)
}

func (x *slotIndex) remove(key string) {
	x.keys[x.of(key)].Remove(x.at[key])
	delete(x.at, key)
}

// Sparse reports whether there are keys in other databases than the first.
func (ks *Keyspace) Sparse() bool {
	for _, db := range ks.dbs[1:] {
		if db.Len() > 0 {
			return true
		}
	}
	return false
}

// indexed returns the index if it is about db.
func (db *DB) indexed() *slotIndex {
	if db.id != 0 {
		return nil
	}
	return db.ks.slots
}

// SlotLen returns how many keys a slot has. IndexSlots must have been called.
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
