package keyspace

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/zset"
)

var _ zset.Source = (*Set)(nil)

func member(s string) Member { return MemberOf([]byte(s)) }

func membersOf(s *Set) []string {
	var list []string
	for m := range s.Members {
		list = append(list, strings.Clone(m.String()))
	}
	return list
}

func sameSet(t *testing.T, s *Set, model map[string]bool) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	got, want := membersOf(s), slices.Sorted(maps.Keys(model))
	slices.Sort(got)
	if s.Len() != len(model) || !slices.Equal(got, want) {
		t.Fatalf("%s of %d: %q, want %q", s.Encoding(nil), s.Len(), got, want)
	}
	all := map[string]bool{}
	for text, score := range s.All() {
		if score != 1 || !model[text] {
			t.Fatalf("All yields %q with %v", text, score)
		}
		all[text] = true
	}
	if len(all) != len(model) {
		t.Fatalf("All yields %d of %d", len(all), len(model))
	}
}

func TestSetModel(t *testing.T) {
	limits := DefaultLimits()
	limits.SetMaxIntsetEntries, limits.SetMaxListpackEntries, limits.SetMaxListpackValue = 40, 30, 10
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		type pair struct {
			s     *Set
			model map[string]bool
		}
		pairs := []*pair{{new(Set), map[string]bool{}}}
		variety := []int{10, 35, 100, 1000}[seed%4]
		texts := seed%3 > 0
		element := func() string {
			switch n := r.IntN(variety); {
			case texts && n%3 == 0:
				return strings.Repeat("m", n%12) + fmt.Sprint(n)
			case texts && n%5 == 0:
				return fmt.Sprintf("%03d", n)
			case n%7 == 0:
				return fmt.Sprint(math.MinInt64 + n)
			default:
				return fmt.Sprint(n)
			}
		}
		for range 600 {
			p := pairs[r.IntN(len(pairs))]
			switch op := r.IntN(20); {
			case op < 8:
				m := element()
				if got := p.s.Add(&limits, member(m)); got == p.model[m] {
					t.Fatalf("Add(%q) = %v", m, got)
				}
				p.model[m] = true
			case op < 13:
				m := element()
				if got := p.s.Remove(member(m)); got != p.model[m] {
					t.Fatalf("Remove(%q) = %v", m, got)
				}
				delete(p.model, m)
			case op < 15:
				m := element()
				_, scored := p.s.Score(m)
				if got := p.s.Has(member(m)); got != p.model[m] || scored != got {
					t.Fatalf("Has(%q) = %v", m, got)
				}
			case op == 15 && p.s.Len() > 0:
				if m := p.s.Random(r); !p.model[m.String()] {
					t.Fatalf("Random %q", m.String())
				}
			case op == 16 && p.s.Len() > 0:
				n := 0
				p.s.Pop(r, r.IntN(p.s.Len()), func(m Member) {
					if !p.model[m.String()] {
						t.Fatalf("Pop %q", m.String())
					}
					delete(p.model, strings.Clone(m.String()))
					n++
				})
			case op == 17 && len(pairs) < 4:
				pairs = append(pairs, &pair{p.s.Clone(), maps.Clone(p.model)})
			case op == 18 && r.IntN(4) == 0:
				p.s, p.model = new(Set), map[string]bool{}
				if r.IntN(2) == 0 {
					p.s.KeepOrder()
				} else {
					p.s.Expect(&limits, member(element()), r.IntN(50))
				}
			case op == 19 && r.IntN(4) == 0:
				p.s.Sort(&limits)
			}
			if r.IntN(20) == 0 {
				for _, p := range pairs {
					sameSet(t, p.s, p.model)
				}
			}
		}
	}
}

func TestSetShapes(t *testing.T) {
	limits := DefaultLimits()
	var s Set
	add := func(m string, encoding string) {
		t.Helper()
		s.Add(&limits, member(m))
		if got := s.Encoding(&limits); got != encoding {
			t.Fatalf("after %q, the %dth: %s, want %s", m, s.Len(), got, encoding)
		}
	}
	for i := range 512 {
		add(fmt.Sprint(1000-i), "intset")
	}
	c := s.Clone()
	add("0", "hashtable")
	s = *c
	add("x", "hashtable") // too many members for a listpack
	s = Set{}
	add("10", "intset")
	add("9", "intset")
	add("b", "listpack")
	add("1", "listpack")
	add("a", "listpack")
	if got := membersOf(&s); !slices.Equal(got, []string{"9", "10", "b", "1", "a"}) {
		t.Errorf("order %q", got)
	}
	for i := range 123 {
		add(fmt.Sprint(i, "."), "listpack")
	}
	add("the 129th", "hashtable")
	s = Set{}
	add(strings.Repeat("x", 64), "listpack")
	add(strings.Repeat("x", 65), "hashtable")
	for _, test := range []struct {
		have  []string
		first string
		n     int
		want  string
	}{
		{nil, "1", 512, "intset"},
		{nil, "1", 513, "hashtable"},
		{nil, "a", 128, "listpack"},
		{nil, "a", 129, "hashtable"},
		{[]string{"1"}, "a", 512, "intset"}, // until the member is added
		{[]string{"1"}, "1", 513, "hashtable"},
		{[]string{"a"}, "a", 128, "listpack"},
		{[]string{"a"}, "1", 129, "hashtable"},
	} {
		s = Set{}
		for _, m := range test.have {
			s.Add(&limits, member(m))
		}
		s.Expect(&limits, member(test.first), test.n)
		if got := s.Encoding(&limits); got != test.want {
			t.Errorf("%v, expecting %d such as %s: %s, want %s", test.have, test.n, test.first, got, test.want)
		}
	}
}

// TestSetSamplingIsUniform checks that random members and subsets are uniform.
func TestSetSamplingIsUniform(t *testing.T) {
	limits := DefaultLimits()
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{5, 100, 1000} {
		for _, form := range []string{"%d", "m%d"} {
			var s Set
			for i := range n {
				s.Add(&limits, member(fmt.Sprintf(form, i)))
			}
			const rounds = 200
			single, sampled := map[string]int{}, map[string]int{}
			for range rounds * n {
				single[s.Random(r).String()]++
			}
			take := n/5 + 1
			for range rounds * n / take {
				seen := map[string]bool{}
				for m := range s.Sample(r, take) {
					seen[m.String()] = true
					sampled[strings.Clone(m.String())]++
				}
				if len(seen) != take {
					t.Fatalf("%d different members of %d", len(seen), take)
				}
			}
			for m := range s.Members {
				for how, got := range map[string]int{"Random": single[m.String()], "Sample": sampled[m.String()]} {
					// Six standard deviations of a binomial distribution.
					if math.Abs(float64(got-rounds)) > 6*math.Sqrt(rounds) {
						t.Errorf("%s of %d: %s came %d times, not about %d", how, n, m, got, rounds)
					}
				}
			}
		}
	}
}

func TestSetScan(t *testing.T) {
	limits := DefaultLimits()
	var s Set
	for i := range 3000 {
		s.Add(&limits, member(fmt.Sprint("m", i)))
	}
	seen := map[string]int{}
	calls := 0
	for cursor := uint64(0); ; {
		cursor = s.Scan(cursor, 10, func(m Member) { seen[m.String()]++ })
		if calls++; cursor == 0 {
			break
		}
	}
	if len(seen) != 3000 || calls < 100 {
		t.Errorf("%d members in %d calls", len(seen), calls)
	}
	s = Set{}
	s.Add(&limits, member("7"))
	if next := s.Scan(99, 10, func(m Member) { seen[m.String()]++ }); next != 0 || seen["7"] != 1 {
		t.Errorf("scan of an intset: cursor %d, %d times", next, seen["7"])
	}
}

// TestPackedSetModel compares embedded sets with separate ones, including order and
// encoding, and restores them from the journal.
func TestPackedSetModel(t *testing.T) {
	met := map[string]int{}
	for seed := range uint64(36) {
		r := rand.New(rand.NewPCG(seed, 9))
		ks := New(1, Hooks{})
		l := &ks.Limits
		l.SetMaxIntsetEntries, l.SetMaxListpackEntries = []int{12, 512, 300}[seed%3], []int{10, 128}[seed%2]
		ks.Record(seed%4 > 0)
		db := ks.DB(0)
		model := new(Set)
		key := []byte(strings.Repeat("k", []int{1, 30, 300}[r.IntN(3)]))
		ints, wide := r.IntN(3) > 0, r.IntN(3)
		element := func() []byte {
			switch {
			case !ints && r.IntN(2) == 0:
				return bytes.Repeat([]byte{'a' + byte(r.IntN(26))}, r.IntN(70))
			case wide == 1 && r.IntN(20) == 0:
				return fmt.Append(nil, r.IntN(1<<30)-1<<29)
			case wide == 2 && r.IntN(20) == 0:
				return fmt.Append(nil, int64(r.Uint64()))
			}
			return fmt.Append(nil, r.IntN(600)-300)
		}
		for range 400 {
			e := db.Edit(key)
			if e == nil {
				e = db.AddSet(key, r.IntN(60))
				model = new(Set)
			}
			b := element()
			var did, want bool
			switch op := r.IntN(20); {
			case op < 11:
				want = model.Add(l, MemberOf(b))
				e, did = db.AddMember(e, MemberOf(b))
			case op < 15:
				want = model.Remove(MemberOf(b))
				e, did = db.RemoveMember(e, MemberOf(b))
			case op == 15:
				n := 1 + r.IntN(15)
				model.Expect(l, MemberOf(b), n)
				e = db.ExpectMembers(e, MemberOf(b), n)
				want = model.Add(l, MemberOf(b))
				e, did = db.AddMember(e, MemberOf(b))
			case op == 16 && model.Len() > 0:
				m := e.Value().(*Set).Random(r)
				model.Remove(MemberOf([]byte(m.String())))
				e, _ = db.RemoveMember(e, m)
			case op == 17:
				e, _ = db.SetDeadline(e, r.Int64N(2)*(1+r.Int64N(1e15)))
			case op == 18:
				e = db.Put(key, Clone(e.Value()), true)
			case op == 19:
				e = db.Unpacked(e)
				want = model.Remove(MemberOf(b))
				did = e.Value().(*Set).Remove(MemberOf(b))
				e = db.Put(key, e.Value(), true)
			}
			clear(b)
			if did != want {
				t.Fatalf("seed %d: %v, want %v", seed, did, want)
			}
			if db.Peek(key) != e {
				t.Fatal("the key has a different entry")
			}
			s := e.Value().(*Set)
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			if s.Len() != model.Len() || s.Encoding(l) != model.Encoding(l) {
				t.Fatalf("seed %d: %s of %d, want %s of %d", seed, s.Encoding(l), s.Len(), model.Encoding(l), model.Len())
			}
			got, wanted := membersOf(s), membersOf(model)
			if s.Table() != nil {
				slices.Sort(got)
				slices.Sort(wanted)
			}
			if !slices.Equal(got, wanted) {
				t.Fatalf("seed %d: %q, want %q", seed, got, wanted)
			}
			for _, m := range got {
				if !s.Has(MemberOf([]byte(m))) {
					t.Fatalf("%q is not found", m)
				}
			}
			met[fmt.Sprint(s.inEntry(), " ", s.Encoding(l))]++
			if s.Len() == 0 {
				db.Delete(key)
			}
			ks.Seal()
		}
		if e := db.Peek(key); ks.Recording() && e != nil {
			want := contentOf(e.Value(), e.Deadline(), l)
			if err := want.restoredAs(restored(t, ks, string(key))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if met["true listpack"] == 0 || met["true intset"] == 0 || met["false listpack"] == 0 || met["false intset"] == 0 || met["false hashtable"] == 0 {
		t.Errorf("the test has not met all shapes: %v", met)
	}
}
