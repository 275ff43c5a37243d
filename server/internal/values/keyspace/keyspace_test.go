package keyspace

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/values/sequence"
)

// modelKey is a key in the reference implementation.
type modelKey struct {
	value    any
	deadline int64
	access   int64 // in seconds
}

// TestKeyspaceModel compares random operations on a keyspace and on maps.
func TestKeyspaceModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	ks := New(3, Hooks{})
	model := [3]map[string]modelKey{{}, {}, {}}
	now := int64(1000)
	due := func(m modelKey) bool { return m.deadline != 0 && m.deadline < now }
	instant := func() int64 {
		switch r.IntN(10) {
		case 0:
			return math.MaxInt64 - r.Int64N(3)
		case 1:
			return 1<<53 + r.Int64N(3)
		}
		return now + r.Int64N(60) - 10
	}
	// Keys of all lengths cover the layouts of entries.
	name := func() string {
		return strings.Repeat(fmt.Sprint(r.IntN(9)), []int{1, 1, 3, 16, 17, 40, 97, 300}[r.IntN(8)])
	}
	for step := range 20_000 {
		now += int64(r.IntN(3))
		if r.IntN(50) == 0 {
			now += 1000
		}
		ks.SetNow(now)
		i, j := r.IntN(3), r.IntN(3)
		db, m := ks.DB(i), model[i]
		key := name()
		old, exists := m[key]
		exists = exists && !due(old)
		switch r.IntN(12) {
		case 0, 1, 2:
			var v any = new(sequence.Stream)
			if r.IntN(3) > 0 {
				v = NewString(bytes.Repeat([]byte{'a' + byte(r.IntN(26))}, r.IntN(100)*(1+r.IntN(5))))
			}
			keep := r.IntN(2) == 0
			db.Put([]byte(key), v, keep)
			now := modelKey{value: v, access: now / 1000 * 1000}
			if exists && keep {
				now.deadline = old.deadline
			}
			m[key] = now
		case 3:
			if db.Delete([]byte(key)) != exists {
				t.Fatalf("step %d: Delete %s", step, key)
			}
			delete(m, key)
		case 4, 5:
			if e := db.Peek([]byte(key)); e != nil {
				ms := instant()
				if _, had := db.SetDeadline(e, ms); had != (old.deadline != 0) {
					t.Fatalf("step %d: SetDeadline %s: %v", step, key, had)
				}
				old.deadline = ms
				m[key] = old
			}
		case 6:
			if e := db.Peek([]byte(key)); e != nil {
				db.SetDeadline(e, 0)
				old.deadline = 0
				m[key] = old
			}
		case 7, 8:
			if e := db.Look([]byte(key)); e != nil {
				name := name()
				moved := db.Move(e, ks.DB(j), []byte(name))
				if moved.Key() != name || !sameValue(moved.Value(), old.value) {
					t.Fatalf("step %d: Move %s to %s: %q", step, key, name, moved.Key())
				}
				delete(m, key)
				model[j][name] = old
			}
		case 9:
			ks.Swap(i, j)
			model[i], model[j] = model[j], model[i]
		case 10:
			if e := db.Get([]byte(key)); e != nil {
				old.access = now / 1000 * 1000
				m[key] = old
			}
		case 11:
			switch r.IntN(40) {
			case 0:
				if n := db.Clear(); n < len(m)-count(m, due) || n > len(m) {
					t.Fatalf("step %d: Clear: %d", step, n)
				}
				clear(m)
			case 1:
				for ks.Sweep(2) > 0 {
				}
				if ks.Head() < now {
					t.Fatalf("step %d: something is due after Sweep", step)
				}
			}
		}
		if err := ks.Check(); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		for i, m := range model {
			n := 0
			for e := range ks.DB(i).All() {
				n++
				if w, ok := m[e.Key()]; !ok || due(w) || !sameValue(e.Value(), w.value) || e.Deadline() != w.deadline || e.Access() != w.access {
					t.Fatalf("step %d: database %d, key %s: deadline %d, access %d, want %+v", step, i, e.Key(), e.Deadline(), e.Access(), w)
				}
			}
			if want := len(m) - count(m, due); n != want {
				t.Fatalf("step %d: database %d has %d keys, want %d", step, i, n, want)
			}
		}
	}
}

// sameValue reports whether a is the value that was stored; strings may be copies.
func sameValue(a, b any) bool {
	s, ok := a.(*String)
	if !ok {
		return a == b
	}
	t, ok := b.(*String)
	return ok && bytes.Equal(s.Content(), t.Content())
}

func count(m map[string]modelKey, f func(modelKey) bool) (n int) {
	for _, k := range m {
		if f(k) {
			n++
		}
	}
	return n
}
