package zset

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestPackedModel compares a packed set with the model under random operations, and
// checks its invariants after each operation or each fifth. Other goroutines read
// and change clones at the same time. Strings that the set returned must not
// change.
func TestPackedModel(t *testing.T) {
	for _, size := range []int{1, 5, 20, 90, packedMax} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(size), 11))
			c := &trial{t: t, r: r, set: new(Set), members: size, short: true, scores: func() float64 { return float64(r.IntN(40)) }}
			var kept retained
			var others sync.WaitGroup
			defer others.Wait()
			for i := range 8000 {
				grow := i%4000 < 3000
				switch k := r.IntN(20); {
				case k < 12 && (grow || k < 4):
					c.put()
				case k < 16 && (!grow || k < 14):
					c.remove()
				case k < 18:
					c.read()
				case k == 18 && r.IntN(4) == 0:
					c.removeRange()
				case k == 19 && r.IntN(20) == 0:
					clone := *c
					clone.set, clone.model, clone.r = c.set.Clone(), slices.Clone(c.model), rand.New(rand.NewPCG(uint64(i), 12))
					clone.scores = func() float64 { return float64(clone.r.IntN(40)) }
					if r.IntN(2) == 0 { // continue with the clone, leave the original to the goroutine
						c.set, clone.set = clone.set, c.set
					}
					others.Go(func() {
						for range 20 {
							if err := clone.model.same(clone.set); err != nil {
								t.Error("clone: ", err)
							}
							runtime.Gosched()
						}
						for range 20 {
							clone.put()
							clone.remove()
							clone.removeRange()
							if clone.r.IntN(5) == 0 {
								clone.set = clone.set.Clone()
							}
						}
						if err := clone.model.same(clone.set); err != nil {
							t.Error("changed clone: ", err)
						}
					})
				}
				if !c.set.isPacked() {
					t.Fatalf("%d elements are indexed", c.set.Len())
				}
				if i%5 > 0 && size > 20 { // a check of a large set is slow
					continue
				}
				if err := c.set.Check(); err != nil {
					t.Fatal(err)
				}
				if got := collect(c.set.All()); !slices.Equal(got, c.model) {
					t.Fatalf("%v, want %v", got, c.model)
				}
				if len(c.model) > 0 {
					e, _ := c.set.At(r.IntN(len(c.model)))
					kept.add(e.Member)
				}
			}
			kept.check(t)
			if f := packedOf(c.set); f != nil && f.bytes() > 2*(packedHeader+f.perElement()*size+f.liveBytes())+200 {
				t.Errorf("%d elements of %d bytes take %d", f.n, f.liveBytes(), f.bytes())
			}
		})
	}
}

// retained is a list of strings that a set returned, with copies to compare them
// with.
type retained struct{ strings, copies []string }

func (h *retained) add(s string) {
	h.strings, h.copies = append(h.strings, s), append(h.copies, strings.Clone(s))
}

func (h *retained) check(t *testing.T) {
	t.Helper()
	runtime.GC()
	for i, s := range h.strings {
		if s != h.copies[i] {
			t.Fatalf("a string was %q and is %q", h.copies[i], s)
		}
	}
}

// TestPackedSlidingWindow adds new events and removes old ones. It bounds the size
// and the number of buffers.
func TestPackedSlidingWindow(t *testing.T) {
	for _, alive := range []int{1, 4, 30, 120} {
		var s Set
		var kept retained
		made, before, most := 0, (*packed)(nil), 0
		const rounds = 3000
		for i := range rounds {
			s.Add(fmt.Sprintf("event:%08d", i), float64(i))
			if e, _ := s.Last(); i%7 == 0 {
				kept.add(e.Member)
			}
			if packedOf(&s) != before {
				made++
			}
			if i >= alive {
				s.RemoveScore(ScoreRange{Min: 0, Max: float64(i - alive)})
			}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			before = packedOf(&s)
			most = max(most, packedOf(&s).bytes())
		}
		if s.Len() != alive {
			t.Fatalf("%d elements, want %d", s.Len(), alive)
		}
		kept.check(t)
		need := packedHeader + (alive+1)*(packedPerElement(false)+15)
		if most > need*3/2+16 {
			t.Errorf("%d elements need %d bytes and had %d", alive, need, most)
		}
		if limit := rounds*4/alive + 50; alive >= 4 && made > limit {
			t.Errorf("%d elements: %d buffers for %d additions, want at most %d", alive, made, rounds, limit)
		}
	}
}

// TestPackedShrinks checks that the buffer shrinks with the set.
func TestPackedShrinks(t *testing.T) {
	var s Set
	for i := range packedMax {
		s.Add(fmt.Sprint("member:", i), float64(i))
	}
	for s.Len() > 1 {
		s.PopMin(1)
		f := packedOf(&s)
		if need := packedHeader + f.perElement()*int(f.n) + f.liveBytes(); f.bytes() > 2*need+32 {
			t.Fatalf("%d elements take %d bytes, and need %d", f.n, f.bytes(), need)
		}
	}
}

// TestPackedMemberLengths covers members of every length, and members with equal
// tags.
func TestPackedMemberLengths(t *testing.T) {
	var s Set
	s.Add("", 2)
	for n := 1; n < packedMemberMax; n++ {
		s.Add(strings.Repeat("\xff", n), 1)
		s.Add(strings.Repeat("\x00", n), 1)
	}
	s.Add(strings.Repeat("\xff", packedMemberMax), 1)
	if s.Len() != packedMax || !s.isPacked() {
		t.Fatalf("%d members, packed: %v", s.Len(), s.isPacked())
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	var same Set
	for i := 0; same.Len() < 100; i++ {
		if member := fmt.Sprint("m", i); tagOf(member) == 7 {
			same.Add(member, float64(-i))
			if err := same.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if i := packedOf(&same).find("another", 7); i >= 0 {
		t.Fatalf("an absent member is found at %d", i)
	}
	same.Add(strings.Repeat("x", packedMemberMax+1), 0)
	if same.isPacked() || same.Len() != 101 {
		t.Fatal("a packed set contains a long member")
	}
	if err := same.Check(); err != nil {
		t.Fatal(err)
	}
}

// TestTagDistribution checks that tags differ for members that differ in one byte.
func TestTagDistribution(t *testing.T) {
	for length := 1; length <= packedMemberMax; length++ {
		for offset := range length {
			seen := map[uint8]bool{}
			b := []byte(strings.Repeat("0", length))
			for _, digit := range "0123456789abcdef" {
				b[offset] = byte(digit)
				seen[tagOf(string(b))] = true
			}
			if len(seen) < 11 { // a random function yields 15.5 of 16 on average
				t.Errorf("%d tags of 16 members of %d bytes that differ at %d", len(seen), length, offset)
			}
		}
	}
}

// TestPackedAllocations bounds the allocations of additions. Other operations must
// not allocate.
func TestPackedAllocations(t *testing.T) {
	perBuffer := testing.AllocsPerRun(20, func() { newPacked(5, 40, false) }) // 2 under the race detector
	for _, size := range []int{5, 16, 100, packedMax} {
		members := make([][]byte, size)
		for i := range members {
			members[i] = fmt.Appendf(nil, "member:%07d", i)
		}
		n := testing.AllocsPerRun(20, func() {
			var s Set
			for i, member := range members {
				s.Internal().AddIf(member, float64(i), 0)
			}
		})
		if limit := perBuffer * float64(min(size, 12+size/5)); n > limit {
			t.Errorf("%v allocations for adding %d members, want at most %v", n, size, limit)
		}
		var s Set
		for i, member := range members {
			s.Internal().AddIf(member, float64(i), 0)
		}
		i := 0
		n = testing.AllocsPerRun(size/2-1, func() { // less than half, so the buffer does not shrink
			i++
			s.Internal().Remove(members[i])
			s.Internal().Incr(members[0], 1000.5, 0)
			s.Internal().AddIf(members[len(members)-1], float64(-i), LT)
		})
		if n > 0 {
			t.Errorf("%v allocations for removing one of %d, and updating two", n, size)
		}
	}
}

// TestGrow checks that members for which a set has grown need one allocation, that Grow
// itself changes nothing, and that clones of the set stay as they are.
func TestGrow(t *testing.T) {
	perBuffer := testing.AllocsPerRun(20, func() { newPacked(5, 40, false) })
	for _, have := range []int{0, 1, 30, packedMax - 10, packedMax, 2 * packedMax} {
		for _, unit := range []float64{1, 0.25} {
			var s Set
			for i := range have {
				s.Add(fmt.Sprintf("old:%03d", i), float64(i))
			}
			var members [][]byte
			var scores []float64
			for i := range 10 {
				members = append(members, fmt.Appendf(nil, "new:%03d", i))
				scores = append(scores, float64(7*i)*unit)
			}
			before, clone := collect(s.All()), s.Clone()
			s.Internal().Grow(len(members), 7*len(members), scores)
			s.Internal().SetMark(true)
			if got := collect(s.All()); !slices.Equal(got, before) || s.Check() != nil || s.Internal().Marked() != (have > 0) {
				t.Fatalf("%d elements became %v: %v", have, got, s.Check())
			}
			allocated := testing.AllocsPerRun(10, func() {
				grown := s.Clone() // a copy in an allocation of its own, with the Set
				grown.Internal().Grow(len(members), 7*len(members), scores)
				for i, member := range members {
					grown.Internal().AddIf(member, scores[i], 0)
				}
				if have+len(members) == grown.Len() {
					return
				}
				t.Errorf("%d elements, want %d", grown.Len(), have+len(members))
			})
			if allocated > 1+perBuffer && have+len(members) <= packedMax {
				t.Errorf("%v allocations for %d members beside %d", allocated, len(members), have)
			}
			for i, member := range members {
				s.Internal().AddIf(member, scores[i], 0)
			}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			if got := collect(clone.All()); !slices.Equal(got, before) {
				t.Errorf("a clone became %v", got)
			}
		}
	}
}

// BenchmarkRepresentations compares packed and indexed sets of the same sizes.
func BenchmarkRepresentations(b *testing.B) {
	for _, size := range []int{5, 16, 64, packedMax - 1} {
		for _, representation := range []string{"packed", "indexed"} {
			r := rand.New(rand.NewPCG(1, 2))
			members := make([][]byte, 2*size)
			elements := make([]Element, size)
			for i, j := range r.Perm(2 * size) {
				members[i] = fmt.Appendf(nil, "member:%07d", j)
			}
			for i := range elements {
				elements[i] = Element{string(members[i]), r.Float64()}
			}
			s := Load(elements)
			if representation == "indexed" {
				m := newIndexed(packedOf(s).unpack())
				s.form = nil
				s.extend().indexed = m
			}
			run := func(name string, f func(b *testing.B)) {
				b.Run(fmt.Sprintf("op=%s/n=%d/representation=%s", name, size, representation), func(b *testing.B) {
					b.ReportAllocs()
					f(b)
				})
			}
			run("Score", func(b *testing.B) {
				for b.Loop() {
					s.Internal().Score(members[r.IntN(size)])
				}
			})
			run("ScoreAbsent", func(b *testing.B) {
				for b.Loop() {
					s.Internal().Score(members[size+r.IntN(size)])
				}
			})
			run("Rank", func(b *testing.B) {
				for b.Loop() {
					s.Internal().Rank(members[r.IntN(size)])
				}
			})
			run("RangeByScore10", func(b *testing.B) {
				for b.Loop() {
					lo, hi := s.ScoreSpan(ScoreRange{Min: r.Float64(), Max: 1})
					for range s.Span(lo, min(hi, lo+10)) {
					}
				}
			})
			run("Update", func(b *testing.B) {
				for b.Loop() {
					s.Internal().AddIf(members[r.IntN(size)], r.Float64(), 0)
				}
			})
			run("Incr", func(b *testing.B) { // small increments, as in games
				for b.Loop() {
					s.Internal().Incr(members[r.IntN(size)], 1e-8, 0)
				}
			})
			run("RemoveAdd", func(b *testing.B) { // each addition adds a new member
				for b.Loop() {
					i, j := r.IntN(size), size+r.IntN(size)
					s.Internal().Remove(members[i])
					s.Internal().AddIf(members[j], r.Float64(), 0)
					members[i], members[j] = members[j], members[i]
				}
			})
			run("Window", func(b *testing.B) { // scores are timestamps; the oldest element is removed
				now := 2.0
				for b.Loop() {
					now++
					member := members[int(now)%len(members)]
					s.Internal().AddIf(member, now, 0)
					if s.Len() > size {
						s.RemoveSpan(0, 1)
					}
				}
			})
		}
	}
}

// The mark stays with a set, whatever its shape, until it is empty; it takes no memory.
func TestMark(t *testing.T) {
	s := new(Set)
	if s.Internal().SetMark(true); s.Internal().Marked() {
		t.Error("an empty set has a mark")
	}
	expect := func(what string, s *Set, want bool) {
		t.Helper()
		if s.Internal().Marked() != want {
			t.Errorf("%s: marked is %v", what, !want)
		}
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range 20 {
		s.Add(fmt.Sprint("member", i), float64(i))
	}
	expect("before", s, false)
	weight := s.Internal().Weight()
	early := s.Clone()
	s.Internal().SetMark(true)
	expect("after", s, true)
	expect("an earlier clone", early, false)
	expect("a later clone", s.Clone(), true)
	if got := s.Internal().Weight(); got != weight {
		t.Errorf("the mark takes %d bytes", got-weight)
	}
	s.SetDeadline("member3", 9)
	for i := range 15 {
		s.Remove(fmt.Sprint("member", i))
	}
	expect("with fewer", s, true)
	for i := range 500 {
		s.Add(fmt.Sprint("more", i), float64(i))
		if i%100 == 0 {
			expect("with more", s, true)
		}
	}
	late := s.Clone()
	s.Internal().SetMark(false)
	expect("a large set", s, false)
	expect("its clone", late, true)
	late.Clear()
	expect("cleared", late, false)
	late.Add("a", 1)
	expect("new", late, false)
	late.Internal().SetMark(true)
	late.PopMin(1)
	late.Add("a", 1)
	expect("new again", late, false)
}

// packedOf returns the buffer of a packed set.
func packedOf(s *Set) *packed {
	f, _ := s.packed()
	return f
}

// TestPackedWidth checks which scores make a buffer wide, that a copy without them is
// narrow again, and the order of scores at the limits of 32 bits.
func TestPackedWidth(t *testing.T) {
	const limit = 1 << 31
	for _, c := range []struct {
		score float64
		wide  bool
	}{
		{0, false}, {1, false}, {-1, false}, {limit - 1, false}, {-limit, false},
		{math.Copysign(0, -1), true}, {0.5, true}, {limit, true}, {-limit - 1, true}, {math.Inf(1), true}, {math.Inf(-1), true}, {1e300, true},
	} {
		var s Set
		s.Add("a", 5)
		s.Add("b", c.score)
		if got := packedOf(&s).wide(); got != c.wide {
			t.Errorf("wide is %v with the score %v", got, c.score)
		}
		if got, _ := s.Score("b"); math.Float64bits(got) != math.Float64bits(c.score) {
			t.Errorf("the score is %v, want %v", got, c.score)
		}
		s.Remove("b")
		for i := range 8 { // until the buffer is full
			s.Add(strings.Repeat(fmt.Sprint(i), 30), float64(i))
		}
		if err := s.Check(); err != nil || packedOf(&s).wide() {
			t.Errorf("wide without the score %v, or %v", c.score, err)
		}
	}
	var s Set
	for i, score := range []float64{-limit, -7, 0, 7, limit - 1} {
		s.Add(fmt.Sprint(i), score)
	}
	for _, c := range []struct {
		min  float64
		rank int
	}{
		{math.Inf(-1), 0}, {-limit - 0.5, 0}, {-limit, 0}, {-limit + 0.5, 1}, {-7.5, 1}, {-7, 1}, {-6.5, 2}, {math.Copysign(0, -1), 2},
		{0.5, 3}, {7, 3}, {7.5, 4}, {limit - 1, 4}, {limit - 0.5, 5}, {limit, 5}, {math.Inf(1), 5},
	} {
		if lo, _ := s.ScoreSpan(ScoreRange{Min: c.min, Max: math.Inf(1)}); lo != c.rank {
			t.Errorf("%d scores are less than %v, want %d", lo, c.min, c.rank)
		}
	}
}

// TestReuseModel changes sets at random that may overwrite removed members, and checks that no string
// that they have returned changes, nor a clone, and that the sets agree with a model.
func TestReuseModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, model := new(Set), map[string]float64{}
		type kept struct{ alias, text string }
		var strs []kept
		keep := func(member string, _ float64) bool {
			strs = append(strs, kept{member, strings.Clone(member)})
			return r.IntN(8) > 0
		}
		var clones []*Set
		var contents [][]Element
		name := func() string {
			n := r.IntN(60)
			return strings.Repeat(string(rune('a'+n%26)), 1+n%9) + fmt.Sprint(n)
		}
		for range 600 {
			switch r.IntN(20) {
			case 0:
				s.ascend(0, s.Len(), keep)
			case 1:
				s.descend(0, s.Len(), keep)
			case 2:
				if e, ok := s.At(r.IntN(60)); ok {
					keep(e.Member, 0)
				}
			case 3:
				clones = append(clones, s.Clone())
				contents = append(contents, elementsOf(s))
			case 4:
				if lo := r.IntN(s.Len() + 1); lo < s.Len() {
					hi := lo + 1 + r.IntN(s.Len()-lo)
					for _, e := range elementsOf(s)[lo:hi] {
						delete(model, e.Member)
					}
					s.removeRange(lo, hi)
				}
			case 5:
				s.Internal().Grow(5, 40, []float64{1})
			case 6, 7, 8, 9, 10, 11:
				member := name()
				_, there := model[member]
				if _, ok := s.Remove(member); ok != there {
					t.Fatalf("seed %d: %q is removed: %v", seed, member, ok)
				}
				delete(model, member)
			default:
				member, score := name(), float64(r.IntN(5))
				if r.IntN(50) == 0 {
					score += 0.5
				}
				s.Add(member, score)
				s.Internal().Reuse()
				model[member] = score
			}
			if err := s.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if s.Len() != len(model) {
				t.Fatalf("seed %d: %d elements, want %d", seed, s.Len(), len(model))
			}
		}
		for member, score := range model {
			if got, ok := s.Score(member); !ok || got != score {
				t.Fatalf("seed %d: %q has %v, %v, want %v", seed, member, got, ok, score)
			}
		}
		for _, k := range strs {
			if k.alias != k.text {
				t.Fatalf("seed %d: %q has become %q", seed, k.text, k.alias)
			}
		}
		for i, c := range clones {
			if got := elementsOf(c); !slices.Equal(got, contents[i]) || c.Check() != nil {
				t.Fatalf("seed %d: a clone has %v, had %v; %v", seed, got, contents[i], c.Check())
			}
		}
	}
}

// elementsOf returns copies of the elements of a packed set, which does not note it.
func elementsOf(s *Set) (all []Element) {
	f, _ := s.packed()
	for i := range f.len() {
		all = append(all, Element{strings.Clone(f.member(i)), f.score(i)})
	}
	return all
}

// TestReuseAllocates checks that replacements of a tenth of a set's members allocate nothing if no
// string was returned, and that members that were returned make it copy the buffer once.
func TestReuseAllocates(t *testing.T) {
	s := new(Set)
	next := 0
	members := make([]string, 4000)
	for i := range members {
		members[i] = fmt.Sprintf("member:%012d", i)
	}
	replace := func() {
		s.Internal().Grow(10, 190, []float64{1})
		for range 10 {
			s.Add(members[next+100], float64(next))
			s.Internal().Reuse()
			s.Remove(members[next])
			next++
		}
	}
	for i, m := range members[:100] {
		s.Add(m, float64(i))
	}
	for range 20 { // the first buffers are those from before Reuse
		replace()
	}
	if n := testing.AllocsPerRun(30, replace); n > 0 {
		t.Errorf("%v allocations", n)
	}
	for range s.All() {
		break
	}
	was, _ := s.packed()
	replace()
	replace()
	if now, _ := s.packed(); now == was || s.Check() != nil {
		t.Errorf("the buffer is the same, or %v", s.Check())
	}
	if n := testing.AllocsPerRun(30, replace); n > 0 {
		t.Errorf("%v allocations after the copy", n)
	}
	c := s.Clone()
	c.Add("m", 1)
	if f, _ := c.packed(); f.size&packedReuse != 0 {
		t.Error("a clone may overwrite members that it has returned to other goroutines")
	}
}

// TestDuplicate checks that a duplicate has all of a packed set, and memory of its own; and of which
// sets there is none.
func TestDuplicate(t *testing.T) {
	var empty, wide, marked, large Set
	wide.Add("a", 0.5)
	wide.Add("b", -1)
	for i := range 30 {
		marked.Add(fmt.Sprint("member:", i), float64(i))
	}
	marked.Internal().SetMark(true)
	marked.Internal().Reuse()
	marked.RemoveRank(3, 6)
	for i := range 200 {
		large.Add(fmt.Sprint("member:", i), float64(i))
	}
	for name, s := range map[string]*Set{"wide": &wide, "marked": &marked} {
		at, size := s.Internal().Block()
		elements, mark := elementsOf(s), s.Internal().Marked()
		var d Set
		s.Internal().Duplicate(&d)
		to, same := d.Internal().Block()
		if at == 0 || size == 0 || to == at || same != size {
			t.Errorf("%s: %d bytes at %x, and %d at %x", name, size, at, same, to)
		}
		d.Internal().Swap(s)
		if d.Add("another", 7); !slices.Equal(elementsOf(s), elements) || s.Internal().Marked() != mark {
			t.Errorf("%s: %v, want %v", name, elementsOf(s), elements)
		}
		for i := range 60 {
			s.Add(fmt.Sprint("next:", i), float64(i))
		}
		for _, e := range elements { // the strings of the memory that was swapped
			if score, ok := s.Score(e.Member); !ok || score != e.Score {
				t.Errorf("%s: %q has %v, %v", name, e.Member, score, ok)
			}
		}
		if err := errors.Join(s.Check(), d.Check()); err != nil {
			t.Error(err)
		}
		c := s.Clone()
		if at, size := s.Internal().Block(); at != 0 || size != 0 {
			t.Errorf("%s: %d bytes at %x with a clone of %d", name, size, at, c.Len())
		}
	}
	var timed Set
	timed.Add("a", 1)
	timed.SetDeadline("a", 5)
	for name, s := range map[string]*Set{"empty": &empty, "large": &large, "with a deadline": &timed} {
		if at, size := s.Internal().Block(); at != 0 || size != 0 {
			t.Errorf("%s: %d bytes at %x", name, size, at)
		}
	}
}
