package keyspace

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// hashModel is a map that knows the order in which its fields were added.
type hashModel struct {
	order  []string
	values map[string]string
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
	m.order = slices.DeleteFunc(m.order, func(f string) bool { return f == field })
	return there
}

func (m *hashModel) clone() *hashModel {
	return &hashModel{slices.Clone(m.order), maps.Clone(m.values)}
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
	if h.Encoding(nil) == "hashtable" { // in no order
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
		pairs := []*pair{{new(Hash), &hashModel{values: map[string]string{}}}}
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
			case op < 18 && len(pairs) < 6:
				pairs = append(pairs, &pair{p.h.Clone(), p.model.clone()})
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

// Every field is as likely as any other, whatever the shape and the number.
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

// A hash without deadlines has no room for them: 48 bytes are what the allocator
// gives, one more would make it 64.
func TestSizeOfHash(t *testing.T) {
	if size := unsafe.Sizeof(Hash{}); size > 48 {
		t.Errorf("%d bytes", size)
	}
	h := new(Hash)
	l := DefaultLimits()
	h.Set([]byte("f"), []byte("v"), &l)
	if h.SetDeadlineBytes([]byte("f"), 0); h.more != nil {
		t.Error("taking no deadline away has made room for one")
	}
}
