package tracking

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
)

type session struct {
	id    int64
	cache *Client
}

func (s *session) Tracking() *Client { return s.cache }

func (s *session) start(t *Table[*session], o Options) { s.cache = t.Start(s, &o) }

func (s *session) stop(t *Table[*session]) {
	t.Stop(s)
	s.cache = nil
}

// TestTable compares the table with plain maps, under random reads, changes and modes.
func TestTable(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	var table Table[*session]
	all := make([]*session, 12)
	for i := range all {
		all[i] = &session{id: int64(i + 1)}
	}
	prefixes := []string{"", "a", "b", "b:1", "c"}
	readers := map[string]map[int64]bool{}                     // key, ids
	wants, broadcasts := map[*session]map[string]*session{}, 0 // client, key, last
	send := func() {
		for c, keys := range table.Broadcasts() {
			broadcasts++
			for _, key := range keys {
				last, due := wants[c][key]
				if !due || c.cache.NoLoop && last == c {
					t.Fatalf("client %d receives %q, which it has changed or does not want", c.id, key)
				}
				delete(wants[c], key)
			}
		}
		for c, keys := range wants {
			for key, last := range keys {
				if !c.cache.NoLoop || last != c {
					t.Fatalf("client %d does not receive %q", c.id, key)
				}
			}
		}
		clear(wants)
	}
	for i := range 30_000 {
		s := all[rnd.IntN(len(all))]
		key := prefixes[rnd.IntN(len(prefixes))] + fmt.Sprint(rnd.IntN(20))
		switch rnd.IntN(8) {
		case 0:
			send() // a client that starts receives what was collected for its prefixes
			if s.cache == nil && s.id%2 == 0 {
				o := Options{Broadcast: true, NoLoop: s.id%4 == 0}
				if s.id > 4 {
					o.Prefixes = []string{prefixes[rnd.IntN(len(prefixes)-1)+1]}
				}
				s.start(&table, o)
			} else if s.cache == nil {
				s.start(&table, Options{})
			}
		case 1:
			if rnd.IntN(4) == 0 && s.cache != nil {
				s.stop(&table)
				delete(wants, s)
			}
		case 2, 3, 4:
			if s.cache != nil && s.cache.Records() {
				table.Record([]byte(key), s.id)
				if readers[key] == nil {
					readers[key] = map[int64]bool{}
				}
				readers[key][s.id] = true
			}
		case 5, 6:
			var got []int64
			if h := table.Changed(key, s); h != nil {
				got = h.IDs
			}
			if want := slices.Sorted(maps.Keys(readers[key])); !slices.Equal(got, want) {
				t.Fatalf("%q has the holders %v, want %v", key, got, want)
			}
			delete(readers, key)
			for _, c := range all {
				if c.cache == nil || !c.cache.Broadcast || !slices.ContainsFunc(c.cache.Prefixes(), func(p string) bool { return strings.HasPrefix(key, p) }) {
					continue
				}
				if wants[c] == nil {
					wants[c] = map[string]*session{}
				}
				wants[c][key] = s
			}
		case 7:
			send()
		}
		if i%100 == 0 {
			if err := table.Check(slices.Values(all)); err != nil {
				t.Fatal(err)
			}
			if table.Keys() != len(readers) {
				t.Fatalf("%d keys, want %d", table.Keys(), len(readers))
			}
		}
	}
	if broadcasts < 1000 {
		t.Errorf("only %d broadcasts", broadcasts)
	}
	table.Clear()
	for _, s := range all {
		s.stop(&table)
	}
	if table.On() || table.Prefixes() != 0 {
		t.Errorf("on: %t, with %d prefixes", table.On(), table.Prefixes())
	}
}

// TestChangedBorrows checks that the table keeps no part of the key passed to Changed, whose
// memory the caller uses again.
func TestChangedBorrows(t *testing.T) {
	var table Table[*session]
	audience, one, other := &session{id: 1}, &session{id: 2}, &session{id: 3}
	audience.start(&table, Options{Broadcast: true})
	for _, by := range []*session{one, one, other, nil} {
		line := []byte("key")
		table.Changed(protocol.View(line), by)
		copy(line, "xxx")
	}
	var got []string
	for _, keys := range table.Broadcasts() {
		got = append(got, keys...)
	}
	if !slices.Equal(got, []string{"key"}) {
		t.Errorf("the client receives %q", got)
	}
}

// TestTrim checks that trimming stops at the limit, and after a number of keys.
func TestTrim(t *testing.T) {
	var table Table[*session]
	s := &session{id: 7}
	s.start(&table, Options{})
	for i := range 100 {
		table.Record(fmt.Append(nil, i), s.id)
	}
	if table.Exceeds(0) || table.Exceeds(100) || !table.Exceeds(99) {
		t.Error("Exceeds is wrong")
	}
	for _, left := range []int{70, 50, 50} {
		for key, h := range table.Trim(50, 30) {
			if key == "" || !slices.Equal(h.IDs, []int64{7}) {
				t.Fatalf("%q is held by %v", key, h.IDs)
			}
		}
		if table.Keys() != left || table.Items() != left {
			t.Errorf("%d keys with %d holders, want %d", table.Keys(), table.Items(), left)
		}
	}
}

// TestRecords checks which reads are recorded in each mode.
func TestRecords(t *testing.T) {
	for _, x := range []struct {
		c    Client
		want bool
	}{
		{Client{}, true},
		{Client{Broadcast: true}, false},
		{Client{OptIn: true}, false},
		{Client{OptIn: true, Caching: true}, true},
		{Client{OptOut: true}, true},
		{Client{OptOut: true, Caching: true}, false},
	} {
		if got := x.c.Records(); got != x.want {
			t.Errorf("%+v: %t", x.c, got)
		}
	}
}

func TestConflict(t *testing.T) {
	var table Table[*session]
	s := &session{}
	s.start(&table, Options{Broadcast: true, Prefixes: []string{"news", "sport:"}})
	for _, x := range []struct {
		o     Options
		fresh bool // for a client that does not track
		want  string
	}{
		{Options{}, true, ""},
		{Options{Prefixes: []string{"a"}}, true, "requires BCAST"},
		{Options{Broadcast: true, OptIn: true}, true, "not compatible"},
		{Options{OptIn: true, OptOut: true}, true, "both"},
		{Options{Broadcast: true, Prefixes: []string{"a", "b", "ab"}}, true, "'a' overlaps with another provided prefix 'ab'"},
		{Options{Broadcast: true, Prefixes: []string{"a", "b"}}, true, ""},
		{Options{}, false, "switch BCAST"},
		{Options{Broadcast: true, Prefixes: []string{"x", "ne"}}, false, "'ne' overlaps with an existing prefix 'news'"},
		{Options{Broadcast: true, Prefixes: []string{"sport:\x00x"}}, false, "'sport:' overlaps with an existing prefix 'sport:'"},
		{Options{Broadcast: true, Prefixes: []string{"sports"}}, false, ""},
	} {
		c := s.cache
		if x.fresh {
			c = nil
		}
		if got := x.o.Conflict(c); !strings.Contains(got, x.want) || (got == "") != (x.want == "") {
			t.Errorf("%+v: %q, want %q", x.o, got, x.want)
		}
	}
}

func ExampleTable() {
	var table Table[*session]
	reader := &session{id: 1}
	reader.start(&table, Options{})
	table.Record([]byte("k"), reader.id)
	fmt.Println(table.Changed("k", nil).IDs, table.Changed("k", nil) == nil)

	audience := &session{id: 2}
	audience.start(&table, Options{Broadcast: true, Prefixes: []string{"news:"}})
	table.Changed("news:1", nil)
	table.Changed("news:2", nil)
	for s, keys := range table.Broadcasts() {
		fmt.Println(s.id, keys)
	}
	// Output:
	// [1] true
	// 2 [news:1 news:2]
}
