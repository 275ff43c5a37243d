package keyspace

import (
	"container/list"
	"fmt"
	"iter"
	"strings"
)

// slotIndex is a set of keys by slot. It takes some 100 bytes for each key and, from the first
// key on, some 70 for each slot. It is not safe for concurrent use.
type slotIndex struct {
	slots    int
	slotOf   func(key string) int
	keys     []list.List // keys, by slot; the newest first. Nil before the first key
	elements map[string]*list.Element
}

// newSlotIndex returns an empty index with n slots. of returns the slot of a key, from 0 to n-1.
func newSlotIndex(n int, of func(key string) int) *slotIndex {
	return &slotIndex{slots: n, slotOf: of, elements: map[string]*list.Element{}}
}

// Reset replaces the keys by others. O(keys).
func (x *slotIndex) Reset(keys iter.Seq[string]) {
	x.keys = nil
	x.elements = map[string]*list.Element{}
	for key := range keys {
		x.Add(key)
	}
}

// Add adds a copy of a key, which must be absent. O(1).
func (x *slotIndex) Add(key string) {
	if x.keys == nil {
		x.keys = make([]list.List, x.slots)
	}
	key = strings.Clone(key)
	x.elements[key] = x.keys[x.slotOf(key)].PushFront(key)
}

// Remove removes a key, which must be there. O(1).
func (x *slotIndex) Remove(key string) {
	x.keys[x.slotOf(key)].Remove(x.elements[key])
	delete(x.elements, key)
}

// Len returns the number of keys in a slot. O(1).
func (x *slotIndex) Len(slot int) int {
	if x.keys == nil {
		return 0
	}
	return x.keys[slot].Len()
}

// Keys yields the keys of a slot, the newest first.
func (x *slotIndex) Keys(slot int) iter.Seq[string] {
	return func(yield func(string) bool) {
		if x.keys == nil {
			return
		}
		for e := x.keys[slot].Front(); e != nil; e = e.Next() {
			if !yield(e.Value.(string)) {
				return
			}
		}
	}
}

// Check verifies that each key of all is in its slot, and that there are n, the number of
// these, in total. For tests. O(n).
func (x *slotIndex) Check(n int, all iter.Seq[string]) error {
	for key := range all {
		if e := x.elements[key]; e == nil || e.Value.(string) != key {
			return fmt.Errorf("key %q is absent", key)
		}
	}
	listed := 0
	for slot := range x.keys {
		for key := range x.Keys(slot) {
			if listed++; x.slotOf(key) != slot {
				return fmt.Errorf("key %q is in slot %d", key, slot)
			}
		}
	}
	if listed != n || len(x.elements) != n {
		return fmt.Errorf("%d keys in slots, %d elements, for %d keys", listed, len(x.elements), n)
	}
	return nil
}
