package keyspace

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/zset"
)

// pagesOf returns the pages of the heap with objects that a compaction counts.
func pagesOf(ks *Keyspace) map[uintptr]bool {
	pages := map[uintptr]bool{}
	for i := InternalDB; i < ks.Len(); i++ {
		for e := range ks.DB(i).entries.all() {
			for _, o := range e.objects() {
				if o.onPages() {
					pages[o.at/heapPageBytes] = true
				}
			}
		}
	}
	return pages
}

// compactable is a value of each kind whose objects a compaction moves, of about n bytes.
var compactable = map[string]func(ks *Keyspace, key []byte, n int){
	"string": func(ks *Keyspace, key []byte, n int) { ks.DB(0).AddString(key, make([]byte, n), false) },
	"string with a deadline": func(ks *Keyspace, key []byte, n int) {
		ks.DB(0).SetDeadline(ks.DB(0).AddString(key, make([]byte, n), true), 1<<40)
	},
	"hash": func(ks *Keyspace, key []byte, n int) {
		h := new(Hash)
		h.Set([]byte("field"), make([]byte, min(n, 400)), &ks.Limits)
		ks.DB(0).Add(key, h)
	},
	"set": func(ks *Keyspace, key []byte, n int) {
		s := new(Set)
		for i := range min(n, 400) / 10 {
			s.Add(&ks.Limits, member(fmt.Sprint("member:", i)))
		}
		s.Add(&ks.Limits, MemberOf(key[:min(len(key), 40)]))
		ks.DB(0).Add(key, s)
	},
	"sorted set": func(ks *Keyspace, key []byte, n int) {
		z := new(zset.Set)
		for i := range 1 + min(n, 1200)/20 {
			z.Add(fmt.Sprint("member:", i), float64(i))
		}
		ks.DB(0).Add(key, z)
	},
}

// TestCompact removes most keys, of each kind and size, and expects that a compaction moves the
// rest to few pages, and that it changes nothing else.
func TestCompact(t *testing.T) {
	for kind, add := range compactable {
		for _, size := range []struct{ key, value, keys int }{{12, 16, 20_000}, {60, 60, 10_000}, {140, 200, 8000}, {300, 900, 4000}} {
			t.Run(fmt.Sprint(kind, size), func(t *testing.T) {
				ks := New(2, Hooks{})
				r := rand.New(rand.NewPCG(1, uint64(size.key)))
				key := func(i int) []byte { return fmt.Append(nil, i, ":", strings.Repeat("k", size.key-8)) }
				for i := range size.keys {
					add(ks, key(i), size.value)
				}
				for i := range size.keys {
					if r.IntN(10) > 0 {
						ks.DB(0).Delete(key(i))
					}
				}
				ks.Seal()
				runtime.GC()
				before, want, used := pagesOf(ks), databases(ks), ks.UsedBytes()
				c := ks.Compact()
				steps := 1
				for ; c.Next(0); steps++ {
				}
				after := pagesOf(ks)
				if len(after) > len(before)/3 {
					t.Errorf("%d keys on %d pages, before on %d", ks.DB(0).Len(), len(after), len(before))
				}
				if steps < 2*len(ks.DB(0).entries.pages) {
					t.Errorf("%d steps for %d pages of keys", steps, len(ks.DB(0).entries.pages))
				}
				if int(c.Keys+c.KeysLeft) != ks.DB(0).Len() || c.Keys == 0 || c.Objects < c.Keys || c.ObjectsLeft < 0 {
					t.Errorf("%+v of %d keys", c.Moves, ks.DB(0).Len())
				}
				if got := databases(ks); !reflect.DeepEqual(got, want) {
					t.Error("the content changed")
				}
				if err := ks.Check(); err != nil || ks.UsedBytes() != used {
					t.Errorf("%v; %d bytes, before %d", err, ks.UsedBytes(), used)
				}
			})
		}
	}
}

// TestChoose checks which pages are to become free: as many as the free room of all is worth, those
// with the fewest objects, and none if these are few.
func TestChoose(t *testing.T) {
	for _, test := range []struct {
		pages       map[int]int // with so many objects of 10
		limit, part int
		chosen      bool
	}{
		{map[int]int{10: 100}, 0, 0, false},
		{map[int]int{1: 100}, 1, 14, true},
		{map[int]int{2: 50, 9: 50}, 2, 14, true},
		{map[int]int{1: 20, 5: 20, 10: 60}, 5, 6, true},
		{map[int]int{1: 20, 8: 10, 10: 50}, 8, 0, true},
		{map[int]int{1: 10}, 0, 0, false},
		{map[int]int{1: 20, 10: 960}, 0, 0, false},
		{map[int]int{1: 40, 10: 960}, 1, 14, true},
	} {
		class := heapClass{pages: make([]int, 11)}
		for n, pages := range test.pages {
			class.pages[n] = pages
		}
		if chosen := class.choose(); chosen != test.chosen || class.limit != test.limit || class.part != test.part {
			t.Errorf("%v: %v, less than %d, and %d of 16 with as many", test.pages, chosen, class.limit, class.part)
		}
	}
}

// TestCompactDuring changes the keyspace at random between the steps of a compaction that moves
// every object. The tests of journals and snapshots have such compactions among their commands, too.
func TestCompactDuring(t *testing.T) {
	for seed := range uint64(12) {
		ks := New(4, Hooks{})
		c := &client{r: rand.New(rand.NewPCG(seed, 3)), ks: ks, now: 1_700_000_000_000, keys: []int{5, 30, 400}[seed%3]}
		ks.Record(seed%2 == 0)
		for range 5 {
			for range c.keys {
				c.command()
			}
			want := databases(ks)
			compactAll(ks, func() {})
			if got := databases(ks); !reflect.DeepEqual(got, want) {
				t.Fatal("a compaction changes the content")
			}
			compactAll(ks, c.command)
			if err := ks.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// compactAll moves every object that a compaction can move, in steps, and calls between after each.
func compactAll(ks *Keyspace, between func()) {
	c := ks.Compact()
	for slots := c.slots(); slots != nil; slots = c.slots() {
		c.count(slots)
		c.page++
	}
	for class := range maps.Values(c.classes) {
		class.limit = math.MaxUint16
	}
	for c.moving, c.db, c.page = true, InternalDB, 0; c.Next(0); {
		between()
	}
}
