package zset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestReturnedStringsAreImmutable retains strings of a set while members are added
// and removed and chunks are compacted. Clones must stay intact, too.
func TestReturnedStringsAreImmutable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s Set
	kept := map[string]string{} // by a copy of the string
	clones := []*Set{}
	for i := range 60_000 {
		switch i % 10 {
		case 0, 1, 2, 3, 4:
			s.Add(fmt.Sprint("member ", i, strings.Repeat("+", r.IntN(1+i%7*40))), r.Float64())
		case 5, 6, 7, 8:
			if e, ok := s.Random(r); ok && (s.Len() > 500 || i%40 == 5) {
				if r.IntN(10) == 0 {
					kept[strings.Clone(e.Member)] = e.Member
				}
				s.Remove(e.Member)
			}
		case 9:
			if e, ok := s.At(r.IntN(s.Len())); ok && r.IntN(4) == 0 {
				kept[strings.Clone(e.Member)] = e.Member
			}
		}
		if i%5000 == 0 {
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			clones = append(clones, s.Clone())
			runtime.GC()
		}
	}
	for want, got := range kept {
		if got != want {
			t.Fatalf("%q became %q", want, got)
		}
	}
	for i, c := range clones {
		if err := c.Check(); err != nil {
			t.Fatalf("clone %d: %v", i, err)
		}
	}
}

// TestMemberLengths covers all widths of the length prefix, and members with a
// chunk of their own.
func TestMemberLengths(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var s Set
	var m model
	lengths := []int{0, 1, 2, 3, 4, 5, 7, 8, 127, 128, 129, 1000, 16_000, 16_383, 16_384, 17_000, 65_536, 200_000}
	for round := range 300 {
		n := lengths[r.IntN(len(lengths))]
		b := make([]byte, n)
		for i := range b {
			b[i] = byte('a' + r.IntN(3))
		}
		switch member := string(b); {
		case round%3 < 2:
			m.put(member, float64(n%5), 0, false)
			s.Add(member, float64(n%5))
		case len(m) > 5:
			i := r.IntN(len(m))
			s.Remove(m[i].Member)
			m = slices.Delete(m, i, i+1)
		}
	}
	if err := m.same(&s); err != nil {
		t.Fatal(err)
	}
	if err := m.same(s.Clone()); err != nil {
		t.Fatal(err)
	}
}

// TestWideChunks covers an arena beyond 8 GB, where chunks are larger and
// references have larger units.
func TestWideChunks(t *testing.T) {
	a := arena{owner: new(token), chunks: make([]chunk, wideFrom-2), expect: 1 << 30}
	want := map[uint32]string{}
	for i := range 4000 {
		member := fmt.Sprint(i, strings.Repeat("-", i%300))
		if i%1000 == 999 {
			member = strings.Repeat(member, 2000)
		}
		ref := a.add(a.owner, member)
		if _, twice := want[ref]; twice {
			t.Fatalf("reference %x twice", ref)
		}
		want[ref] = member
	}
	for ref, member := range want {
		if got := a.string(ref); got != member || !a.equal(ref, member) || a.equal(ref, member+"?") {
			t.Fatalf("%x: %.50q, want %.50q", ref, got, member)
		}
	}
	if last := a.chunks[len(a.chunks)-1]; len(a.chunks) < wideFrom+1 || last.unit != wideUnit {
		t.Fatalf("%d chunks, the last of unit %d", len(a.chunks), last.unit)
	}
	for ref, member := range want {
		a.remove(a.owner, ref, len(member))
	}
	if a.liveBytes != 0 || a.size > 2<<20 {
		t.Fatalf("%d bytes live of %d after everything was removed", a.liveBytes, a.size)
	}
}

// TestRepeatedClones clones a set before each change, as a program that publishes
// versions does. Old versions must stay intact, and arena space must not leak.
func TestRepeatedClones(t *testing.T) {
	for name, both := range map[string]bool{"only the clone changes": false, "both change": true} {
		r := rand.New(rand.NewPCG(5, 6))
		s := new(Set)
		var m model
		add := func(s *Set, m *model) {
			member, score := fmt.Sprint("member ", r.IntN(600)), r.Float64()
			if r.IntN(3) == 0 {
				s.Remove(member)
				if i := m.find(member); i >= 0 {
					*m = slices.Delete(*m, i, i+1)
				}
				return
			}
			s.Add(member, score)
			m.put(member, score, 0, false)
		}
		for range 500 {
			add(s, &m)
		}
		for i := range 3000 {
			old, frozen := s, m
			s, m = s.Clone(), slices.Clone(m)
			if both {
				frozen = slices.Clone(frozen)
				add(old, &frozen)
			}
			add(s, &m)
			if i%200 == 0 {
				if err := frozen.same(old); err != nil {
					t.Fatalf("%s: old: %v", name, err)
				}
				if err := m.same(s); err != nil {
					t.Fatalf("%s: new: %v", name, err)
				}
			}
		}
		if a := &s.indexed().index.arena; a.size > 4*a.liveBytes {
			t.Errorf("%s: %d bytes live of %d", name, a.liveBytes, a.size)
		}
	}
}

// TestConcurrentClones reads, changes and clones several clones of an indexed set
// in different goroutines. They share chunks, so the race detector covers the
// arena.
func TestConcurrentClones(t *testing.T) {
	s, m := new(Set), model{}
	for i := range 2000 {
		e := Element{fmt.Sprint("member ", i), float64(i % 100)}
		s.Add(e.Member, e.Score)
		m = append(m, e)
	}
	slices.SortFunc(m, compare)
	sets := [4]*Set{s}
	for k := range sets[1:] {
		sets[1+k] = s.Clone() // before any change of s
	}
	var all sync.WaitGroup
	for k, set := range sets {
		c := &trial{t: t, r: rand.New(rand.NewPCG(uint64(k), 7)), set: set, model: slices.Clone(m), members: 3000}
		c.scores = func() float64 { return float64(c.r.IntN(100)) }
		all.Go(func() {
			for range 3 {
				for range 200 {
					c.put()
					c.remove()
				}
				old, frozen := c.set, slices.Clone(c.model)
				c.set = old.Clone()
				c.put()
				c.remove()
				if err := frozen.same(old); err != nil {
					t.Error(err)
				}
			}
			if err := c.model.same(c.set); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestLargeRemovals removes spans that have a large share of the elements. Clones from before must
// stay intact, the deadlines of the removed members must go, and garbage must not accumulate.
func TestLargeRemovals(t *testing.T) {
	const size = 20_000
	for name, draw := range map[string]func(r *rand.Rand) float64{
		"equal": func(*rand.Rand) float64 { return 5 },
		"ties":  func(r *rand.Rand) float64 { return float64(r.IntN(3)) },
		"wide":  func(r *rand.Rand) float64 { return r.NormFloat64() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(9, 10))
			for range 4 {
				s, m := new(Set), make(model, 0, size)
				for _, i := range r.Perm(size) {
					e := Element{fmt.Sprint("member ", i), draw(r)}
					s.Add(e.Member, e.Score)
					m = append(m, e)
				}
				slices.SortFunc(m, compare)
				for len(m) > 100 {
					for range 20 {
						s.SetDeadline(m[r.IntN(len(m))].Member, 1+r.Int64N(MaxDeadline))
					}
					old, frozen := s.Clone(), slices.Clone(m)
					dated := old.Deadlines().Len()
					lo := r.IntN(len(m))
					hi := min(lo+len(m)/20+r.IntN(len(m)), len(m))
					for _, e := range m[lo:hi] {
						if at, _ := s.Deadline(e.Member); at != 0 {
							dated--
						}
					}
					if n := s.RemoveSpan(lo, hi); n != hi-lo {
						t.Fatalf("removed %d of %d", n, hi-lo)
					}
					if m = slices.Delete(m, lo, hi); len(m) == 0 {
						break
					}
					if err := m.same(s); err != nil {
						t.Fatalf("without %d to %d of %d: %v", lo, hi, len(frozen), err)
					}
					if err := frozen.same(old); err != nil {
						t.Fatalf("the clone: %v", err)
					}
					if d := s.Deadlines(); dated > 0 && d.Len() != dated || dated == 0 && d != nil {
						t.Fatalf("deadlines of %d members are left, want %d", d.Len(), dated)
					}
					x := &s.indexed().index
					if a := &x.arena; a.size > 3*a.liveBytes+4*chunkMin || a.compactDebt > compactStep {
						t.Errorf("%d bytes live of %d, %d to be compacted", a.liveBytes, a.size, a.compactDebt)
					}
					if x.groups*groupSlots > 2*x.n+40 {
						t.Errorf("%d entries in %d groups", x.n, x.groups)
					}
				}
			}
		})
	}
}

// TestIndexedShrinks removes all but 50 elements of large sets in several ways.
// Leaves, nodes and pages must merge, and the memory must shrink.
func TestIndexedShrinks(t *testing.T) {
	const size = 120_000 // several nodes of leaves
	for name, remove := range map[string]func(s *Set){
		"the lowest":  func(s *Set) { s.RemoveSpan(0, size-50) },
		"the highest": func(s *Set) { s.RemoveSpan(50, size) },
		"the middle":  func(s *Set) { s.RemoveSpan(20, size-30) },
		"by pops":     func(s *Set) { s.PopMin(size / 2); s.PopMax(size/2 - 50) },
		"one by one": func(s *Set) {
			for i := range size {
				if i%(size/50) > 0 {
					s.Remove(fmt.Sprint("member ", i*7919%size))
				}
			}
		},
		"in stretches": func(s *Set) {
			for i := 0; s.Len() > 50; i++ {
				lo := i * 7919 % s.Len()
				s.RemoveSpan(lo, min(lo+s.Len()/10+1, s.Len()))
				if i%20 == 0 {
					if err := s.Check(); err != nil {
						t.Fatal(err)
					}
				}
				for s.Len() < 50 {
					s.Add(fmt.Sprint("another ", s.Len()), math.Inf(1))
				}
			}
		},
	} {
		elements := make([]Element, size)
		for i := range elements {
			elements[i] = Element{fmt.Sprint("member ", i), float64(i / 3)}
		}
		s := Load(elements)
		if err := s.Check(); err != nil || s.indexed().tree.root.len() < 3 {
			t.Fatalf("%d nodes, %v", s.indexed().tree.root.len(), err)
		}
		remove(s)
		if err := s.Check(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s.Len() != 50 || s.indexed().bytes()+s.indexed().index.arena.size > 60_000 {
			t.Errorf("%s: %d elements, %d bytes and %d of members", name, s.Len(), s.indexed().bytes(), s.indexed().index.arena.size)
		}
	}
}

// TestNodesSplitAndMerge grows sets to many nodes and shrinks them to one, in several
// orders. It checks the root after each change of the number of nodes, and everything
// in between. The nodes without a score of their own are those whose separator has a
// member.
func TestNodesSplitAndMerge(t *testing.T) {
	const size = 150_000
	for name, c := range map[string]struct {
		score  func(r *rand.Rand, i int) float64
		remove func(r *rand.Rand, s *Set)
		tied   func(tied, nodes int) bool
	}{
		"at random": {
			func(r *rand.Rand, _ int) float64 { return r.Float64() },
			func(r *rand.Rand, s *Set) { e, _ := s.Random(r); s.Remove(e.Member) },
			func(tied, _ int) bool { return tied == 0 },
		},
		"at the end": {
			func(_ *rand.Rand, i int) float64 { return float64(i) },
			func(_ *rand.Rand, s *Set) { s.PopMin(7) },
			func(tied, _ int) bool { return tied == 0 },
		},
		"at the front": {
			func(_ *rand.Rand, i int) float64 { return -float64(i) },
			func(_ *rand.Rand, s *Set) { s.PopMax(1000) },
			func(tied, _ int) bool { return tied == 0 },
		},
		"in the middle": {
			func(_ *rand.Rand, i int) float64 { return 1 / float64(2*(i%2)*i-i) },
			func(r *rand.Rand, s *Set) { lo := r.IntN(s.Len()); s.RemoveSpan(lo, lo+20_000) },
			func(tied, _ int) bool { return tied == 0 },
		},
		"equal scores": {
			func(*rand.Rand, int) float64 { return 0 },
			func(r *rand.Rand, s *Set) { lo := r.IntN(s.Len()); s.RemoveSpan(lo, lo+60) },
			func(tied, nodes int) bool { return tied == nodes-1 },
		},
		"scores of 20 elements": { // nodes split between them
			func(r *rand.Rand, _ int) float64 { return float64(r.IntN(size / 20)) },
			func(r *rand.Rand, s *Set) { e, _ := s.Random(r); s.Remove(e.Member) },
			func(tied, _ int) bool { return tied == 0 },
		},
		"a frequent score": {
			func(r *rand.Rand, _ int) float64 { return max(r.Float64(), 0.5) },
			func(r *rand.Rand, s *Set) { e, _ := s.Random(r); s.Remove(e.Member) },
			func(tied, nodes int) bool { return tied > 0 && tied < nodes-1 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(8, 9))
			var s Set
			check := func(s *Set, when string) {
				if err := s.Check(); err != nil {
					t.Fatalf("%s: %v", when, err)
				}
			}
			nodes, changes := 1, 0
			changed := func() {
				if s.isPacked() || s.indexed().tree.root.len() == nodes {
					return
				}
				nodes = s.indexed().tree.root.len()
				changes++
				if err := s.indexed().tree.root.check(); err != nil {
					t.Fatalf("%d elements in %d nodes: %v", s.Len(), nodes, err)
				}
			}
			for _, i := range r.Perm(size) {
				s.Add(fmt.Sprint("member ", i), c.score(r, s.Len()))
				changed()
			}
			if nodes < 3 || changes != nodes-1 {
				t.Fatalf("%d nodes after %d splits", nodes, changes)
			}
			if d := &s.indexed().tree.root; !c.tied(nodes-d.byScore.Len(), nodes) {
				t.Errorf("of %d nodes, %d have a score of their own", nodes, d.byScore.Len())
			}
			check(&s, "grown")
			var elements []Element
			for member, score := range s.All() {
				elements = append(elements, Element{member, score})
			}
			loaded := Load(elements)
			check(loaded, "loaded")
			if n := loaded.indexed().tree.root.len(); n < 3 || !c.tied(n-loaded.indexed().tree.root.byScore.Len(), n) {
				t.Errorf("of %d loaded nodes, %d have a score of their own", n, loaded.indexed().tree.root.byScore.Len())
			}
			before := s.Clone()
			for range 1000 {
				e, _ := s.Random(r)
				s.Add(e.Member, c.score(r, r.IntN(size)))
				changed()
			}
			check(&s, "updated")
			for s.Len() > 100 {
				if c.remove(r, &s); s.Len() > 0 {
					changed()
				}
			}
			check(&s, "shrunk")
			if nodes != 1 {
				t.Errorf("%d elements in %d nodes", s.Len(), nodes)
			}
			check(before, "the clone")
			if before.Len() != size {
				t.Errorf("the clone has %d elements, want %d", before.Len(), size)
			}
			for i := range 40_000 {
				s.Add(fmt.Sprint("member ", i), c.score(r, i))
				before.Remove(fmt.Sprint("member ", i*5))
				changed()
			}
			check(&s, "grown again")
			check(before, "the clone, changed")
		})
	}
}
