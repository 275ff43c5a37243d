package keyspace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSlots compares the slot index with the existing keys, the newest first.
func TestSlots(t *testing.T) {
	const slots = 7
	of := func(key string) int { return int(key[len(key)-1]) % slots }
	ks := New(2, Hooks{})
	db, other := ks.DB(0), ks.DB(1)
	db.Add([]byte("before"), NewString(nil))
	ks.IndexSlots(slots, of)
	model := []string{"before"} // the newest first
	drop := func(key string) {
		model = slices.DeleteFunc(model, func(k string) bool { return k == key })
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		key := fmt.Sprint("k", rnd.IntN(40))
		switch rnd.IntN(10) {
		case 0, 1, 2, 3:
			if db.Peek([]byte(key)) == nil {
				model = slices.Insert(model, 0, key)
			}
			db.Put([]byte(key), NewString(nil), false)
		case 4, 5:
			drop(key)
			db.Delete([]byte(key))
		case 6:
			other.Put([]byte(key), NewString(nil), false)
		case 7:
			if e := db.Edit([]byte(key)); e != nil {
				db.SetDeadline(e, 1)
				ks.SetNow(5)
				ks.Sweep(10)
				ks.SetNow(0)
				drop(key)
			}
		case 8:
			drop(key)
			db.Delete([]byte(key))
			db.Restore(key, NewString(nil), 0)
			model = slices.Insert(model, 0, key)
		case 9:
			if rnd.IntN(50) == 0 {
				db.Clear()
				model = nil
			}
		}
		for slot := range slots {
			var want []string
			for _, key := range model {
				if of(key) == slot {
					want = append(want, key)
				}
			}
			if got := slices.Collect(db.SlotKeys(slot)); !slices.Equal(got, want) || db.SlotLen(slot) != len(want) {
				t.Fatalf("slot %d has %q, want %q", slot, got, want)
			}
		}
	}
}
