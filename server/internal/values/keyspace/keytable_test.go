package keyspace

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
)

// TestKeyTable compares the key table with a map. A scan during the changes must
// pass each remaining key exactly once.
func TestKeyTable(t *testing.T) {
	for i, size := range []int{3, 40, 300, 5000, 5000, 300} {
		r := rand.New(rand.NewPCG(uint64(size), 1))
		table := newKeyTable()
		if i > 3 {
			table.expected = 2500
		}
		model := map[string]*Entry{}
		stays := map[string]bool{}
		for i := range max(1, size/10) {
			key := fmt.Sprint("stays:", i)
			e := newString(key, nil, false)
			table.insert(e, table.hash(e.Key()))
			model[key], stays[key] = e, true
		}
		seen, cursor := map[string]int{}, uint64(0)
		for i := range 30_000 {
			key := fmt.Sprint("key:", r.IntN(size))
			if table.get(key) != model[key] {
				t.Fatalf("get %q", key)
			}
			grow := i/(8*size+400)%2 == 0
			switch {
			case model[key] == nil && (grow || r.IntN(4) == 0):
				model[key] = newString(key, nil, false)
				table.insert(model[key], table.hash(key))
			case model[key] != nil && r.IntN(4) == 0:
				model[key] = newString(key, nil, true)
				table.replace(model[key])
			case !grow:
				if table.remove(key) != model[key] {
					t.Fatalf("remove %q", key)
				}
				delete(model, key)
			}
			if e := table.random(r); e == nil || model[e.Key()] != e {
				t.Fatal("random")
			}
			if r.IntN(10) == 0 {
				cursor = table.scan(cursor, 1+r.IntN(20), func(e *Entry) { seen[e.Key()]++ })
				if cursor == 0 {
					for key := range stays {
						if seen[key] != 1 {
							t.Fatalf("size %d: %q passed %d times", size, key, seen[key])
						}
					}
					clear(seen)
				}
			}
			if i%1000 == 0 {
				if err := table.check(); err != nil {
					t.Fatal(err)
				}
				all := map[string]*Entry{}
				for e := range table.all() {
					all[e.Key()] = e
				}
				if !maps.Equal(all, model) {
					t.Fatal("all")
				}
			}
		}
		for key := range model {
			table.remove(key)
			if table.n%64 == 0 {
				if err := table.check(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if table.n != 0 || table.bytes() > 200 {
			t.Fatalf("emptied: %d entries, %d bytes", table.n, table.bytes())
		}
	}
}

// TestKeyTableRandom checks that random is uniform for pages of very different
// sizes.
func TestKeyTableRandom(t *testing.T) {
	for _, size := range []int{2, 100, 3000} {
		r := rand.New(rand.NewPCG(7, uint64(size)))
		table := newKeyTable()
		for i := range size {
			e := newString(fmt.Sprint(i), nil, false)
			table.insert(e, table.hash(e.Key()))
		}
		for i := range size {
			if key := fmt.Sprint(i); table.n > 2 && (i%7 > 0 || i < size/2) {
				table.remove(key)
			}
		}
		counts := map[*Entry]int{}
		const each = 60
		for range each * table.n {
			counts[table.random(r)]++
		}
		chi := float64((table.n - len(counts)) * each)
		for _, n := range counts {
			chi += float64((n-each)*(n-each)) / each
		}
		// The cube root of chi-squared is nearly normal for any number of degrees
		// of freedom (Wilson and Hilferty, 1931). The limit is 5 standard
		// deviations.
		free := float64(table.n - 1)
		if d := math.Cbrt(chi/free) - (1 - 2/(9*free)); d*d > 25*2/(9*free) {
			t.Errorf("%d keys: chi-squared %.0f", table.n, chi)
		}
	}
}

// TestKeyPageSizes checks that the arrays of pages fill the size classes of Go's allocator,
// and that nearly all pages of a depth have the same size.
func TestKeyPageSizes(t *testing.T) {
	for used := range maxUsed + 1 {
		n := slotsFor(used)
		if n-n/8 < used {
			t.Errorf("a page of %d slots for %d entries", n, used)
		}
		if got := cap(append([]*Entry(nil), make([]*Entry, n)...)); got != n {
			t.Errorf("a page of %d slots takes the memory of %d", n, got)
		}
	}
	type class struct{ depth, slots int }
	table, pages := newKeyTable(), map[class]int{}
	for i := range 22_000 {
		e := newString(fmt.Sprint(i), nil, false)
		table.insert(e, table.hash(e.Key()))
	}
	for _, p := range table.pages {
		pages[class{int(p.depth), len(p.slots)}]++
	}
	most := map[int]int{}
	for c, n := range pages {
		most[c.depth] = max(most[c.depth], n)
	}
	usual := 0
	for _, n := range most {
		usual += n
	}
	if usual < len(table.pages)*4/5 {
		t.Errorf("pages by depth and slots: %v", pages)
	}
}
