package table

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

func check[V any](t *testing.T, table *Table[V]) {
	t.Helper()
	if err := table.Check(); err != nil {
		t.Fatal(err)
	}
}

// same compares all entries of a table with a map.
func same(table *Table[int], model map[string]int) error {
	if table.Len() != len(model) {
		return fmt.Errorf("%d entries, want %d", table.Len(), len(model))
	}
	seen := 0
	for key, v := range table.All() {
		if want, ok := model[key]; !ok || v != want {
			return fmt.Errorf("%q is %d, want %d, %v", key, v, want, ok)
		}
		seen++
	}
	if seen != len(model) {
		return fmt.Errorf("%d entries seen, want %d", seen, len(model))
	}
	return nil
}

// step applies one operation to a table and its model.
func step(t *testing.T, table *Table[int], model map[string]int, op byte, key string, v int) {
	t.Helper()
	want, exists := model[key]
	var got int
	var ok bool
	switch op % 9 {
	case 0:
		got, ok = table.Set(key, v)
		model[key] = v
	case 1:
		b := []byte(key)
		value, _, added := table.GetOrAdd(view(b), true, v)
		if ok = !added; ok {
			got, *value = *value, v
		}
		clear(b)
		model[key] = v
	case 2:
		got, ok = table.Delete(key)
		delete(model, key)
	case 3:
		got, ok = table.DeleteBytes([]byte(key))
		delete(model, key)
	case 4:
		table.Prefetch([]string{key, "", key + "?"})
		got, ok = table.Get(key)
	case 5, 6:
		p := table.Ref(key)
		if op%9 == 6 {
			p = table.RefBytes([]byte(key))
		}
		if ok = p != nil; ok {
			got, *p = *p, v
			model[key] = v
		}
	case 7:
		own := strings.Clone(key)
		got, ok = table.Put(own, v)
		model[key] = v
		if stored, _, _ := table.Find(key); unsafe.StringData(stored) != unsafe.StringData(own) {
			t.Fatalf("Put of %q kept another key", key)
		}
	case 8:
		var stored string
		if stored, got, ok = table.Find(key); ok && stored != key {
			t.Fatalf("%q is stored as %q", key, stored)
		}
	}
	if ok != exists || got != want {
		t.Fatalf("operation %d on %q: %d, %v; want %d, %v", op%9, key, got, ok, want, exists)
	}
}

func TestModel(t *testing.T) {
	for _, size := range []int{4, 9, 40, 300, 5000} {
		r := rand.New(rand.NewPCG(uint64(size), 1))
		var table Table[int]
		model := map[string]int{}
		var readers sync.WaitGroup
		for i := range 40_000 {
			// The table grows and shrinks alternately.
			op := byte(r.IntN(9))
			if grow := i/(8*size+400)%2 == 0; grow && op == 3 {
				op = 0
			} else if !grow && op <= 1 {
				op = 2
			}
			step(t, &table, model, op, fmt.Sprint("key:", r.IntN(size)), i)
			if r.IntN(1000) == 0 || size < 50 && r.IntN(50) == 0 {
				check(t, &table)
				clone, frozen := table.Clone(), maps.Clone(model)
				readers.Go(func() {
					if err := same(clone, frozen); err != nil {
						t.Error("clone: ", err)
					}
					for j := range 20 {
						op, key := byte(j), fmt.Sprint("key:", j*size/20)
						step(t, clone, frozen, op, key, -j)
					}
					if err := clone.Check(); err != nil {
						t.Error("clone: ", err)
					}
				})
			}
		}
		readers.Wait()
		check(t, &table)
		if err := same(&table, model); err != nil {
			t.Fatal(err)
		}
		for key := range model {
			table.Delete(key)
			if table.Len()%64 == 0 {
				check(t, &table)
			}
		}
		if table.Len() != 0 || table.Bytes() > 100 {
			t.Fatalf("emptied: %d entries, %d bytes", table.Len(), table.Bytes())
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add([]byte("\x00a\x01b\x02a\x08c\x04b"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		var table Table[int]
		model := map[string]int{}
		clone, frozen := table.Clone(), map[string]int{}
		for i := 0; i+1 < len(ops); i += 2 {
			// One byte of the input selects 16 keys, so that short inputs fill
			// pages.
			for j := range 16 {
				step(t, &table, model, ops[i], fmt.Sprint(ops[i+1], j), i)
			}
			if ops[i] > 240 {
				if err := same(clone, frozen); err != nil {
					t.Fatal(err)
				}
				clone, frozen = table.Clone(), maps.Clone(model)
			}
		}
		check(t, &table)
		check(t, clone)
		if err := same(&table, model); err != nil {
			t.Fatal(err)
		}
	})
}

func TestScanReturnsWhatStays(t *testing.T) {
	for _, size := range []int{1, 5, 8, 9, 100, 1000, 5000} {
		for _, count := range []int{-1, 1, 10, 1000} {
			r := rand.New(rand.NewPCG(uint64(size), uint64(count)))
			var table Table[int]
			for i := range size {
				table.Set(fmt.Sprint("stays:", i), i)
			}
			seen := map[string]int{}
			cursor, calls := uint64(0), 0
			for {
				passed := 0
				cursor = table.Scan(cursor, count, func(key string, _ int) {
					seen[key]++
					passed++
				})
				if passed > max(count, 1) {
					t.Fatalf("%d passed, asked for %d", passed, count)
				}
				if calls++; cursor == 0 {
					break
				}
				if calls%8 > 0 && size > 1000 || calls%64 > 0 && count < 10 {
					continue
				}
				for range size / 20 { // grow and shrink alternately
					key := fmt.Sprint("comes and goes:", r.IntN(4*size))
					if calls/16%2 == 0 {
						table.Set(key, 0)
					} else {
						table.Delete(key)
					}
				}
				if r.IntN(10) == 0 {
					table = *table.Clone()
				}
			}
			check(t, &table)
			for i := range size {
				if key := fmt.Sprint("stays:", i); seen[key] != 1 {
					t.Fatalf("size %d, count %d: %q returned %d times", size, count, key, seen[key])
				}
			}
		}
	}
}

func TestScanArbitraryCursors(t *testing.T) {
	var table Table[int]
	none := func(string, int) { t.Error("passed an entry of an empty table") }
	for _, cursor := range []uint64{0, 1, 1 << 51, 1<<52 - 1, 1 << 52, 1<<64 - 1} {
		if next := table.Scan(cursor, 10, none); next != 0 {
			t.Errorf("empty: %d after %d", next, cursor)
		}
	}
	for i := range 2000 {
		table.Set(fmt.Sprint(i), i)
	}
	for _, cursor := range []uint64{1 << 52, 1<<52 + 5, 1<<64 - 1} {
		if next := table.Scan(cursor, 10, none); next != 0 {
			t.Errorf("%d after %d", next, cursor)
		}
	}
	// A mass deletion merges the sparse pages.
	for i := range 1990 {
		table.Delete(fmt.Sprint(i))
	}
	check(t, &table)
	if table.dir != nil {
		t.Errorf("%d pages for 10 entries", len(table.dir.pages))
	}
}

// fair checks with a chi-squared test that counts fit a uniform distribution.
func fair(t *testing.T, counts map[string]int, kinds, draws int) {
	t.Helper()
	expected := float64(draws) / float64(kinds)
	chi := float64(kinds-len(counts)) * expected
	for _, n := range counts {
		chi += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	// The cube root of chi-squared is nearly normal for any number of degrees of
	// freedom (Wilson and Hilferty, 1931). The limit is 5 standard deviations.
	free := float64(kinds - 1)
	if d := math.Cbrt(chi/free) - (1 - 2/(9*free)); d*d > 25*2/(9*free) {
		t.Errorf("%d kinds, %d draws: chi-squared %.0f", kinds, draws, chi)
	}
}

func TestRandomIsUniform(t *testing.T) {
	for _, size := range []int{2, 8, 9, 100, 1000, 3000} {
		for _, remove := range []bool{false, true} {
			r := rand.New(rand.NewPCG(7, uint64(size)))
			var table Table[int]
			for i := range size {
				table.Set(fmt.Sprint(i), i)
			}
			if remove { // leaves pages of very different sizes
				for i := range size {
					if key := fmt.Sprint(i); table.Len() > 2 && (i%7 > 0 || i < size/2) {
						table.Delete(key)
					}
				}
			}
			counts := map[string]int{}
			draws := 40 * table.Len()
			for range draws {
				key, _, ok := table.Random(r)
				if !ok {
					t.Fatal("Random found no entry")
				}
				counts[key]++
			}
			fair(t, counts, table.Len(), draws)
		}
	}
	if _, _, ok := new(Table[int]).Random(rand.New(rand.NewPCG(1, 1))); ok {
		t.Error("drew from an empty table")
	}
}

func TestAllocations(t *testing.T) {
	for _, size := range []int{5, 100, 10_000} {
		var table Table[int]
		for i := range size {
			table.Set(fmt.Sprint("key:", i), i)
		}
		key, absent := []byte("key:3"), []byte("key:x")
		if n := testing.AllocsPerRun(100, func() {
			table.Get("key:3")
			table.Get("key:x")
			*table.RefBytes(key) = 3
			table.GetOrAdd(view(key), true, 4)
			table.DeleteBytes(absent)
		}); n > 0 {
			t.Errorf("size %d: %v allocations", size, n)
		}
	}
}

func Benchmark(b *testing.B) {
	for _, size := range []int{5, 100, 10_000, 1_000_000} {
		keys := make([]string, size)
		for i := range keys {
			keys[i] = fmt.Sprintf("member:%07d", i)
		}
		var table Table[float64]
		for _, key := range keys {
			table.Set(key, 1)
		}
		r := rand.New(rand.NewPCG(1, 2))
		b.Run(fmt.Sprintf("Get/n=%d", size), func(b *testing.B) {
			for b.Loop() {
				table.Get(keys[r.IntN(size)])
			}
		})
		b.Run(fmt.Sprintf("Miss/n=%d", size), func(b *testing.B) {
			for b.Loop() {
				table.Get(keys[r.IntN(size)][1:])
			}
		})
		b.Run(fmt.Sprintf("SetDelete/n=%d", size), func(b *testing.B) {
			for b.Loop() {
				key := keys[r.IntN(size)]
				table.Delete(key)
				table.Set(key, 1)
			}
		})
		b.Run(fmt.Sprintf("Scan10/n=%d", size), func(b *testing.B) {
			cursor := uint64(0)
			for b.Loop() {
				cursor = table.Scan(cursor, 10, func(string, float64) {})
			}
		})
		b.Run(fmt.Sprintf("Random/n=%d", size), func(b *testing.B) {
			for b.Loop() {
				table.Random(r)
			}
		})
	}
}
