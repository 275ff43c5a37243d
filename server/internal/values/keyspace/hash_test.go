package keyspace

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// hashModel is a map with the order of its fields, and their deadlines.
type hashModel struct {
	order     []string
	values    map[string]string
	deadlines map[string]int64
}

func newHashModel() *hashModel {
	return &hashModel{values: map[string]string{}, deadlines: map[string]int64{}}
}

func (m *hashModel) set(field, value string) (added bool) {
	_, there := m.values[field]
	if !there {
		m.order = append(m.order, field)
	}
	m.values[field] = value
	return !there
}

func (m *hashModel) delete(field string) bool {
	_, there := m.values[field]
	delete(m.values, field)
	delete(m.deadlines, field)
	m.order = slices.DeleteFunc(m.order, func(f string) bool { return f == field })
	return there
}

// expire sets a deadline, 0 for none. The fields that expire earlier come before it.
func (m *hashModel) expire(field string, at int64) (had int64, ok bool) {
	if _, ok = m.values[field]; !ok {
		return 0, false
	}
	if had = m.deadlines[field]; at == 0 && had == 0 {
		return 0, true
	}
	m.order = slices.DeleteFunc(m.order, func(f string) bool { return f == field })
	place := len(m.order)
	if delete(m.deadlines, field); at != 0 {
		place = slices.IndexFunc(append(m.order, field), func(f string) bool { d, timed := m.deadlines[f]; return !timed || d >= at })
		m.deadlines[field] = at
	}
	m.order = slices.Insert(m.order, place, field)
	return had, true
}

func (m *hashModel) clone() *hashModel {
	return &hashModel{slices.Clone(m.order), maps.Clone(m.values), maps.Clone(m.deadlines)}
}

func sameHash(t *testing.T, h *Hash, m *hashModel) {
	t.Helper()
	if err := h.Check(); err != nil {
		t.Fatal(err)
	}
	if h.Len() != len(m.values) {
		t.Fatalf("%d fields, want %d", h.Len(), len(m.values))
	}
	var order []string
	for field, value := range h.All() {
		if want, ok := m.values[field]; !ok || value != want {
			t.Fatalf("%q is %q, want %q, %v", field, value, want, ok)
		}
		order = append(order, field)
	}
	want := m.order
	if h.Encoding(nil) == "hashtable" { // unspecified order
		want = slices.Sorted(slices.Values(want))
		slices.Sort(order)
	}
	if !slices.Equal(order, want) {
		t.Fatalf("%s: %q, want %q", h.Encoding(nil), order, want)
	}
}

func TestHashModel(t *testing.T) {
	limits := DefaultLimits()
	limits.HashMaxListpackEntries, limits.HashMaxListpackValue = 20, 10
	encodings := map[string]int{}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 4))
		type pair struct {
			h     *Hash
			model *hashModel
		}
		pairs := []*pair{{new(Hash), newHashModel()}}
		variety, longest := []int{10, 25, 300}[seed%3], []int{9, 9, 9, 11}[seed%4]
		for range 600 {
			p := pairs[r.IntN(len(pairs))]
			field := fmt.Appendf(nil, "f%d", r.IntN(variety))
			switch op := r.IntN(20); {
			case op < 10:
				value := []byte(strings.Repeat("v", r.IntN(longest+1)))
				if added := p.model.set(string(field), string(value)); p.h.Set(field, value, &limits) != added {
					t.Fatalf("Set(%q) does not say %v", field, added)
				}
				clear(value)
			case op < 15:
				if deleted := p.model.delete(string(field)); p.h.Delete(field) != deleted {
					t.Fatalf("Delete(%q) does not say %v", field, deleted)
				}
			case op < 17:
				want, there := p.model.values[string(field)]
				if got, ok := p.h.Get(field); got != want || ok != there {
					t.Fatalf("Get(%q) = %q, %v, want %q, %v", field, got, ok, want, there)
				}
			case op < 18:
				at := int64(r.IntN(6))
				had, there := p.model.expire(string(field), at)
				if got, ok := p.h.SetDeadlineBytes(field, at); got != had || ok != there {
					t.Fatalf("SetDeadlineBytes(%q, %d) = %d, %v, want %d, %v", field, at, got, ok, had, there)
				}
			case op < 19 && len(pairs) < 6:
				pairs = append(pairs, &pair{Clone(p.h).(*Hash), p.model.clone()})
			case p.h.Len() > 0:
				n := r.IntN(p.h.Len() + 3)
				seen := map[string]bool{}
				p.h.RandomDistinct(r, n, func(field, value string) {
					if want, ok := p.model.values[field]; !ok || want != value || seen[field] {
						t.Fatalf("RandomDistinct yields %q with %q", field, value)
					}
					seen[field] = true
				})
				if len(seen) != min(n, p.h.Len()) {
					t.Fatalf("RandomDistinct(%d) yields %d of %d", n, len(seen), p.h.Len())
				}
				if field, value := p.h.Random(r); p.model.values[field] != value {
					t.Fatalf("Random yields %q with %q", field, value)
				}
				scanned := map[string]bool{}
				for cursor, first := uint64(0), true; first || cursor != 0; first = false {
					cursor = p.h.Scan(cursor, 3, func(field, value string) {
						if p.model.values[field] != value {
							t.Fatalf("Scan yields %q with %q", field, value)
						}
						scanned[field] = true
					})
				}
				if len(scanned) != p.h.Len() {
					t.Fatalf("Scan yields %d of %d", len(scanned), p.h.Len())
				}
			}
			clear(field)
			sameHash(t, p.h, p.model)
		}
		for _, p := range pairs {
			sameHash(t, p.h, p.model)
			encodings[p.h.Encoding(nil)]++
		}
	}
	if encodings["listpack"] == 0 || encodings["hashtable"] == 0 {
		t.Errorf("the test has not met both shapes: %v", encodings)
	}
}

// TestHashTexts has fields and values of all lengths in a table, also none. A clone keeps its texts
// when the original changes, and the garbage collector keeps them.
func TestHashTexts(t *testing.T) {
	limits := Limits{}
	h, m := new(Hash), newHashModel()
	put := func(i, value int) {
		field := strings.Repeat("f", i)
		if text := strings.Repeat("v", value); h.Set([]byte(field), []byte(text), &limits) != m.set(field, text) {
			t.Fatalf("whether the field of %d bytes is new", i)
		}
	}
	for i := range 300 {
		put(i, i%7*20)
	}
	clone, frozen := h.Clone(), m.clone()
	for i := range 300 {
		put(i, (i+3)%7*30)
	}
	for range 3 {
		runtime.GC()
		h.Set([]byte("another"), make([]byte, 1000), &limits)
		h.Delete([]byte("another"))
	}
	for name, x := range map[string]struct {
		h *Hash
		m *hashModel
	}{"the hash": {h, m}, "the clone": {clone, frozen}} {
		if x.h.Table() == nil {
			t.Fatalf("%s has no table", name)
		}
		sameHash(t, x.h, x.m)
	}
}

func TestHashEncoding(t *testing.T) {
	fill := func(l *Limits, n, size int) *Hash {
		h := new(Hash)
		for i := range n {
			h.Set(fmt.Append(nil, i), make([]byte, size), l)
		}
		return h
	}
	limits := DefaultLimits()
	none := limits
	none.HashMaxListpackEntries = 0
	lowered := limits
	lowered.HashMaxListpackEntries = 4
	fewer := fill(&limits, 513, 1)
	for i := range 512 {
		fewer.Delete(fmt.Append(nil, i))
	}
	updated, deleted := fill(&limits, 5, 1), fill(&limits, 5, 1)
	updated.Set([]byte("0"), []byte("x"), &lowered)
	deleted.Delete([]byte("0"))
	deleted.Set([]byte("1"), []byte("x"), &lowered)
	longField := fill(&limits, 1, 1)
	longField.Set(make([]byte, 65), nil, &limits)
	for _, test := range []struct {
		name string
		h    *Hash
		want string
	}{
		{"512 fields", fill(&limits, 512, 64), "listpack"},
		{"513 fields", fill(&limits, 513, 64), "hashtable"},
		{"a long value", fill(&limits, 1, 65), "hashtable"},
		{"a long field", longField, "hashtable"},
		{"no fields allowed", fill(&none, 1, 1), "hashtable"},
		{"once large", fewer, "hashtable"},
		{"updated when too large by now", updated, "hashtable"},
		{"shrunk below a limit that was lowered", deleted, "listpack"},
	} {
		if got := test.h.Encoding(&limits); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestHashRandomIsUniform checks the distribution of Random and RandomDistinct for
// all encodings and sizes.
func TestHashRandomIsUniform(t *testing.T) {
	limits := DefaultLimits()
	limits.HashMaxListpackEntries = 50
	r := rand.New(rand.NewPCG(5, 5))
	for _, size := range []int{40, 60} {
		h := new(Hash)
		for i := range size {
			h.Set(fmt.Append(nil, i), nil, &limits)
		}
		for _, n := range []int{1, size / 10, size / 2, size - 1} {
			const rounds = 4000
			counts := map[string]int{}
			for range rounds {
				h.RandomDistinct(r, n, func(field, _ string) { counts[field]++ })
			}
			want := float64(rounds*n) / float64(size)
			chi := 0.0
			for i := range size {
				d := float64(counts[fmt.Sprint(i)]) - want
				chi += d * d / want
			}
			if limit := float64(size) * 2.2; chi > limit {
				t.Errorf("%d of %d: χ² is %.0f, more than %.0f", n, size, chi, limit)
			}
		}
	}
}

// TestHashObjectSize checks that hashObject fits its size class: one more byte would
// cost 16.
func TestHashObjectSize(t *testing.T) {
	if a, b := unsafe.Sizeof(Hash{}), unsafe.Sizeof(hashObject{}); a > 24 || b > 64 {
		t.Errorf("%d and %d bytes", a, b)
	}
}

// TestPackedHashModel compares embedded hashes with separate ones, for keys of all
// lengths, with and without a deadline, and restores them from the journal.
func TestPackedHashModel(t *testing.T) {
	met := map[string]int{}
	for seed := range uint64(36) {
		r := rand.New(rand.NewPCG(seed, 7))
		ks := New(1, Hooks{})
		ks.Limits.HashMaxListpackEntries = []int{20, 512}[seed%2]
		ks.Record(seed%3 > 0)
		db := ks.DB(0)
		models := map[string]*hashModel{}
		type clone struct {
			h *Hash
			m *hashModel
		}
		var clones []clone
		variety, longest := []int{5, 25, 600}[seed%3], []int{9, 30, 63, 70}[seed%4]
		for range 800 {
			key := strings.Repeat("k", []int{1, 30, 300}[r.IntN(3)])
			field := fmt.Appendf(nil, "f%d", r.IntN(variety))
			e := db.Edit([]byte(key))
			if e == nil {
				e = db.AddHash([]byte(key), r.IntN(100))
				models[key] = newHashModel()
			}
			m := models[key]
			switch op := r.IntN(24); {
			case op < 14:
				value := bytes.Repeat([]byte{'a' + byte(r.IntN(26))}, r.IntN(longest+1))
				want := m.set(string(field), string(value))
				var added bool
				if e, added = db.SetField(e, field, value); added != want {
					t.Fatalf("SetField(%q) does not say %v", field, want)
				}
				clear(value)
			case op < 18:
				want := m.delete(string(field))
				var deleted bool
				if e, deleted = db.DeleteField(e, field); deleted != want {
					t.Fatalf("DeleteField(%q) does not say %v", field, want)
				}
			case op == 18:
				e, _ = db.SetDeadline(e, r.Int64N(2)*(1+r.Int64N(1e15)))
			case op == 19 && len(clones) < 5:
				clones = append(clones, clone{Clone(e.Value()).(*Hash), m.clone()})
			case op == 20 && len(clones) > 0:
				c := clones[len(clones)-1]
				clones = clones[:len(clones)-1]
				e = db.Put([]byte(key), c.h, true)
				models[key] = c.m
			case op == 21 && r.IntN(20) == 0:
				e = db.Unpacked(e)
				h := e.Value().(*Hash)
				if want := m.delete(string(field)); h.Delete(field) != want {
					t.Fatalf("Delete(%q) does not say %v", field, want)
				}
			case op == 22 && m.values[string(field)] != "" && r.IntN(10) == 0:
				e = db.Unpacked(e)
				e.Value().(*Hash).SetDeadlineBytes(field, 1e15)
				m.expire(string(field), 1e15)
			case op == 23:
				to := strings.Repeat("k", []int{1, 30, 300}[r.IntN(3)])
				e = db.Move(e, db, []byte(to))
				delete(models, key)
				models[to], key = m, to
			}
			clear(field)
			if db.Peek([]byte(key)) != e || e.Key() != key {
				t.Fatal("the key has a different entry")
			}
			if e.Value().(*Hash).Len() == 0 {
				db.Delete([]byte(key))
				delete(models, key)
			}
			ks.Seal()
			for key, m := range models {
				h := db.Peek([]byte(key)).Value().(*Hash)
				sameHash(t, h, m)
				met[fmt.Sprint(h.inEntry(), " ", h.Encoding(nil))]++
			}
			for _, c := range clones {
				sameHash(t, c.h, c.m)
			}
		}
		if err := ks.Check(); err != nil {
			t.Fatal(err)
		}
		if ks.Recording() {
			for key, m := range models {
				got, want := restored(t, ks, key), contentOf(db.Peek([]byte(key)).Value(), db.Peek([]byte(key)).Deadline(), &ks.Limits)
				if err := want.restoredAs(got); err != nil {
					t.Fatalf("%s of %d fields: %v", key, len(m.order), err)
				}
				break // the journal has ended
			}
		}
	}
	if met["true listpack"] == 0 || met["false listpack"] == 0 || met["false hashtable"] == 0 || met["false listpackex"] == 0 {
		t.Errorf("the test has not met all shapes: %v", met)
	}
}

// TestPackedHashAllocations checks that changes of embedded hashes with free space
// do not allocate.
func TestPackedHashAllocations(t *testing.T) {
	ks := New(1, Hooks{})
	db := ks.DB(0)
	e := db.AddHash([]byte("key"), 0)
	for i := range 5 {
		e, _ = db.SetField(e, fmt.Append(nil, "field:", i), []byte("value"))
	}
	value, field, other := []byte("value"), []byte("field:2"), []byte("field:3")
	if allocs := testing.AllocsPerRun(100, func() {
		value[0]++
		e, _ = db.SetField(e, field, value)
		e, _ = db.DeleteField(e, other)
		e, _ = db.SetField(e, other, value)
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}
