package zset

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

// model is a reference implementation of a set: a sorted slice.
type model []Element

func (m model) find(member string) int {
	return slices.IndexFunc(m, func(e Element) bool { return e.Member == member })
}

func (m *model) put(member string, score float64, cond Cond, incr bool) (o Outcome, old, now float64) {
	i := m.find(member)
	if i >= 0 {
		old = (*m)[i].Score
		if incr {
			score += old
		}
	}
	switch {
	case score != score:
		return NotANumber, old, old
	case i < 0 && cond&XX != 0, i >= 0 && cond&NX != 0,
		i >= 0 && cond&GT != 0 && score <= old, i >= 0 && cond&LT != 0 && score >= old:
		return Rejected, old, old
	case i >= 0 && score == old:
		return Unchanged, old, old
	}
	o = Added
	if i >= 0 {
		o = Updated
		*m = slices.Delete(*m, i, i+1)
	}
	e := Element{member, score}
	at, _ := slices.BinarySearchFunc(*m, e, compare)
	*m = slices.Insert(*m, at, e)
	return o, old, score
}

// span returns the span from the first to the last element for which keep is true.
func (m model) span(keep func(Element) bool) (lo, hi int) {
	lo = slices.IndexFunc(m, keep)
	if lo < 0 {
		return 0, 0
	}
	for hi = lo; hi < len(m) && keep(m[hi]); hi++ {
	}
	return lo, hi
}

func (m model) inScores(r ScoreRange) (lo, hi int) {
	return m.span(func(e Element) bool {
		return (e.Score > r.Min || e.Score == r.Min && !r.MinExclusive) && (e.Score < r.Max || e.Score == r.Max && !r.MaxExclusive)
	})
}

func (m model) inMembers(r LexRange) (lo, hi int) {
	return m.span(func(e Element) bool {
		return (r.Min.Inf < 0 || r.Min.Inf == 0 && (e.Member > r.Min.Member || e.Member == r.Min.Member && !r.Min.Exclusive)) &&
			(r.Max.Inf > 0 || r.Max.Inf == 0 && (e.Member < r.Max.Member || e.Member == r.Max.Member && !r.Max.Exclusive))
	})
}

func collect(seq iter.Seq2[string, float64]) []Element {
	out := []Element{}
	for member, score := range seq {
		out = append(out, Element{member, score})
	}
	return out
}

func reversed(m []Element) []Element {
	m = slices.Clone(m)
	slices.Reverse(m)
	return m
}

// same compares the results of all read operations of a set with the model.
func (m model) same(s *Set) error {
	if err := s.Check(); err != nil {
		return err
	}
	if s.Len() != len(m) {
		return fmt.Errorf("%d elements, want %d", s.Len(), len(m))
	}
	if got := collect(s.All()); !slices.Equal(got, m) {
		return fmt.Errorf("%v, want %v", got, m)
	}
	if got := collect(s.Backward()); !slices.Equal(got, reversed(m)) {
		return fmt.Errorf("backward %v, want %v", got, reversed(m))
	}
	step := 1 + len(m)/100
	for i := 0; i < len(m); i += step {
		e := m[i]
		if rank, ok := s.Rank(e.Member); !ok || rank != i {
			return fmt.Errorf("rank of %v is %d, %v; want %d", e, rank, ok, i)
		}
		if rank, ok := s.RevRank(e.Member); !ok || rank != len(m)-1-i {
			return fmt.Errorf("reverse rank of %v is %d, %v; want %d", e, rank, ok, len(m)-1-i)
		}
		if got, ok := s.At(i - len(m)); !ok || got != e {
			return fmt.Errorf("at %d is %v, %v; want %v", i-len(m), got, ok, e)
		}
		if score, ok := s.Score(e.Member); !ok || score != e.Score {
			return fmt.Errorf("score of %v is %v, %v", e, score, ok)
		}
	}
	seen := map[string]float64{}
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		cursor = s.Scan(cursor, 20, func(member string, score float64) { seen[member] = score })
	}
	if len(seen) != len(m) {
		return fmt.Errorf("%d elements scanned, want %d", len(seen), len(m))
	}
	return nil
}

// trial applies the same operations to a set and to its model.
type trial struct {
	t       testing.TB
	r       *rand.Rand
	set     *Set
	model   model
	members int
	short   bool // members are short enough for a packed set
	scores  func() float64
}

func (c *trial) member() string {
	n := c.r.IntN(c.members)
	if n%97 == 13 && !c.short {
		return fmt.Sprintf("a member of more than sixty-four bytes, which is too long for a few: %d", n)
	}
	return fmt.Sprint("m", n)
}

func (c *trial) want(what string, got, want any) {
	c.t.Helper()
	if !reflect.DeepEqual(got, want) {
		c.t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func (c *trial) scoreRange() ScoreRange {
	x := c.r.IntN(4)
	return ScoreRange{Min: c.scores(), Max: c.scores(), MinExclusive: x&1 > 0, MaxExclusive: x&2 > 0}
}

func (c *trial) lexRange() LexRange {
	bound := func() LexBound {
		return LexBound{c.member(), c.r.IntN(2) == 0, []int8{-1, 0, 0, 0, 0, 0, 0, 1}[c.r.IntN(8)]}
	}
	return LexRange{bound(), bound()}
}

// put adds an element by a random variant of addition.
func (c *trial) put() {
	member, score, cond := c.member(), c.scores(), Cond(0)
	if c.r.IntN(2) == 0 {
		cond = []Cond{NX, XX, GT, LT, XX | GT, XX | LT}[c.r.IntN(6)]
	}
	b := []byte(member)
	what := fmt.Sprintf("put %q %v %b", member, score, cond)
	switch c.r.IntN(5) {
	case 0:
		o, _, _ := c.model.put(member, score, 0, false)
		c.want(what, c.set.Add(member, score), o)
	case 1, 2:
		o, old, _ := c.model.put(member, score, cond, false)
		gotO, gotOld := c.set.AddIf(member, score, cond)
		c.want(what, []any{gotO, gotOld}, []any{o, old})
	case 3:
		o, old, _ := c.model.put(member, score, cond, false)
		gotO, gotOld := c.set.Internal().AddIf(b, score, cond)
		c.want(what, []any{gotO, gotOld}, []any{o, old})
	case 4:
		o, _, now := c.model.put(member, score, cond, true)
		gotO, gotNow := c.set.Internal().Incr(b, score, cond)
		c.want("incr "+what, []any{gotO, gotNow}, []any{o, now})
	}
	clear(b)
}

func (c *trial) remove() {
	member := c.member()
	i := c.model.find(member)
	var score float64
	if i >= 0 {
		score = c.model[i].Score
		c.model = slices.Delete(c.model, i, i+1)
	}
	got, ok := c.set.Internal().Remove([]byte(member))
	c.want("remove "+member, []any{got, ok}, []any{score, i >= 0})
}

// read compares the result of one random range query or lookup.
func (c *trial) read() {
	n := len(c.model)
	switch c.r.IntN(5) {
	case 0:
		r := c.scoreRange()
		lo, hi := c.model.inScores(r)
		c.want(fmt.Sprintf("scores %+v", r), collect(c.set.ByScore(r)), append([]Element{}, c.model[lo:hi]...))
		c.want("backward", collect(c.set.ByScoreBackward(r)), append([]Element{}, reversed(c.model[lo:hi])...))
		c.want("count", c.set.CountScore(r), hi-lo)
	case 1:
		r := c.lexRange()
		lo, hi := c.set.LexSpan(r)
		if n > 0 && c.model[0].Score == c.model[n-1].Score {
			lo, hi := c.model.inMembers(r)
			c.want(fmt.Sprintf("lex %+v", r), collect(c.set.ByLex(r)), append([]Element{}, c.model[lo:hi]...))
			c.want("backward", collect(c.set.ByLexBackward(r)), append([]Element{}, reversed(c.model[lo:hi])...))
			c.want("count", c.set.CountLex(r), hi-lo)
		} else if lo < 0 || hi < lo || hi > n {
			c.t.Fatalf("lex span %d, %d of %d", lo, hi, n)
		}
	case 2:
		start, stop := c.r.IntN(2*n+4)-n-2, c.r.IntN(2*n+4)-n-2
		lo, hi := start, stop+1
		if lo < 0 {
			lo = max(lo+n, 0)
		}
		if stop < 0 {
			hi += n
		}
		lo, hi = min(lo, n), max(min(hi, n), 0)
		if lo > hi {
			lo = hi
		}
		c.want(fmt.Sprint("ranks ", start, stop), collect(c.set.ByRank(start, stop)), append([]Element{}, c.model[lo:hi]...))
		c.want("backward", collect(c.set.ByRankBackward(start, stop)), append([]Element{}, reversed(c.model[lo:hi])...))
	case 3:
		member := c.member()
		i := c.model.find(member)
		rank, ok := c.set.Internal().Rank([]byte(member))
		c.want("rank of "+member, []any{rank, ok}, []any{max(i, 0), i >= 0})
		_, ok = c.set.Internal().Score([]byte(member))
		c.want("score of "+member, ok, i >= 0)
	case 4:
		e, ok := c.set.Random(c.r)
		c.want("random", ok, n > 0)
		if ok && c.model.find(e.Member) < 0 {
			c.t.Fatalf("Random returned %v, which does not exist", e)
		}
		distinct := map[Element]bool{}
		for _, e := range c.set.RandomDistinct(c.r, min(n, 5)) {
			distinct[e] = true
		}
		c.want("distinct", len(distinct), min(n, 5))
	}
}

// removeRange removes a random range.
func (c *trial) removeRange() {
	n := len(c.model)
	lo, hi := 0, 0
	switch c.r.IntN(6) {
	case 0:
		n := c.r.IntN(5)
		hi = min(n, len(c.model))
		c.want("popmin", append([]Element{}, c.set.PopMin(n)...), append([]Element{}, c.model[:hi]...))
	case 1:
		k := c.r.IntN(5)
		lo, hi = max(n-k, 0), n
		c.want("popmax", append([]Element{}, c.set.PopMax(k)...), append([]Element{}, reversed(c.model[lo:])...))
	case 2:
		r := c.scoreRange()
		if lo, hi = c.model.inScores(r); hi-lo > n/3 && c.r.IntN(20) > 0 {
			return
		}
		c.want("remove scores", c.set.RemoveScore(r), hi-lo)
	case 3:
		if n == 0 || c.model[0].Score != c.model[n-1].Score {
			return
		}
		r := c.lexRange()
		if lo, hi = c.model.inMembers(r); hi-lo > n/3 && c.r.IntN(20) > 0 {
			return
		}
		c.want("remove members", c.set.RemoveLex(r), hi-lo)
	case 4:
		if n > 0 {
			lo = c.r.IntN(n)
			hi = min(n, lo+1+c.r.IntN(4))
			c.want("remove ranks", c.set.RemoveRank(lo, hi-1), hi-lo)
		}
	case 5:
		if n > 0 && c.r.IntN(10) == 0 {
			lo = c.r.IntN(n)
			hi = min(n, lo+c.r.IntN(n))
			c.want("remove span", c.set.RemoveSpan(lo-n*(1-min(lo, 1)), hi), hi-lo)
		}
	}
	c.model = slices.Delete(c.model, lo, hi)
}

var special = []float64{math.Inf(-1), math.Inf(1), math.Copysign(0, -1), 0, 1, -1, math.MaxFloat64, math.SmallestNonzeroFloat64}

func TestModel(t *testing.T) {
	scores := map[string]func(r *rand.Rand) float64{
		"equal": func(*rand.Rand) float64 { return 5 },
		"ties":  func(r *rand.Rand) float64 { return float64(r.IntN(5)) },
		"wide":  func(r *rand.Rand) float64 { return r.NormFloat64() * 1000 },
		"special": func(r *rand.Rand) float64 {
			if r.IntN(50) == 0 {
				return math.NaN()
			}
			return special[r.IntN(len(special))]
		},
	}
	for name, draw := range scores {
		for _, members := range []int{6, 25, 300, 1200, 6000} {
			t.Run(fmt.Sprint(name, "/", members), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(uint64(members), 3))
				c := &trial{t: t, r: r, set: new(Set), members: members, scores: func() float64 { return draw(r) }}
				var readers sync.WaitGroup
				defer readers.Wait()
				for i := range 6000 {
					grow := i%4000 < 3000
					switch k := r.IntN(20); {
					case k < 12 && (grow || k < 4):
						c.put()
					case k < 16 && (!grow || k < 13):
						c.remove()
					case k < 19:
						c.read()
					case r.IntN(1+members/300) == 0:
						c.removeRange()
					}
					if r.IntN(300) == 0 {
						if err := c.model.same(c.set); err != nil {
							t.Fatal(err)
						}
						// A goroutine reads and changes the clone while the test
						// changes the original.
						clone := *c
						clone.set, clone.model, clone.r = c.set.Clone(), slices.Clone(c.model), rand.New(rand.NewPCG(uint64(i), 4))
						clone.scores = func() float64 { return draw(clone.r) }
						if r.IntN(4) == 0 { // continue with the clone, leave the original to the goroutine
							c.set, clone.set = clone.set, c.set
						}
						readers.Go(func() {
							if err := clone.model.same(clone.set); err != nil {
								t.Error("clone: ", err)
							}
							for range 50 {
								clone.put()
								clone.remove()
								clone.removeRange()
							}
							if err := clone.model.same(clone.set); err != nil {
								t.Error("changed clone: ", err)
							}
						})
					}
				}
				if err := c.model.same(c.set); err != nil {
					t.Fatal(err)
				}
				for len(c.model) > 0 {
					c.model = slices.Delete(c.model, 0, len(c.set.PopMin(1+r.IntN(50))))
					if err := c.set.Check(); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

func FuzzSet(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03"), uint64(1), 400)
	f.Fuzz(func(t *testing.T, ops []byte, seed uint64, members int) {
		r := rand.New(rand.NewPCG(seed, 5))
		c := &trial{t: t, r: r, set: new(Set), members: 1 + int(uint(members)%2000)}
		kind := seed % 4
		c.scores = func() float64 {
			return []float64{5, float64(r.IntN(7)), r.Float64(), special[r.IntN(len(special))]}[kind]
		}
		clone, frozen := c.set.Clone(), model{}
		for _, op := range ops {
			for range 1 + op>>3 {
				switch op % 8 {
				case 0, 1, 2:
					c.put()
				case 3:
					c.remove()
				case 4:
					c.read()
				case 5:
					c.removeRange()
				case 6:
					c.model.put(c.member(), 1, 0, false)
					c.set = Load(slices.Clone(c.model))
				}
			}
			if op == 7 {
				if err := frozen.same(clone); err != nil {
					t.Fatal("clone: ", err)
				}
				clone, frozen = c.set.Clone(), slices.Clone(c.model)
			}
		}
		if err := c.model.same(c.set); err != nil {
			t.Fatal(err)
		}
		if err := frozen.same(clone); err != nil {
			t.Fatal("clone: ", err)
		}
	})
}

// TestInsertionOrders adds elements in orders that split the leaves at either end.
func TestInsertionOrders(t *testing.T) {
	const n = 5000
	for name, score := range map[string]func(i int) float64{
		"ascending":  func(i int) float64 { return float64(i) },
		"descending": func(i int) float64 { return float64(-i) },
		"outward":    func(i int) float64 { return float64(i * (i%2*2 - 1)) },
		"inward":     func(i int) float64 { return float64((n - i) * (i%2*2 - 1)) },
	} {
		var s Set
		var m model
		for i := range n {
			member := fmt.Sprintf("%05d", i)
			s.Add(member, score(i))
			m = append(m, Element{member, score(i)})
		}
		slices.SortFunc(m, compare)
		if err := m.same(&s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if blocks := s.indexed().tree.leaves; name[0] != 'i' && blocks > n/leafMax+2 {
			t.Errorf("%s: %d blocks for %d elements", name, blocks, n)
		}
	}
}

func TestTiesAcrossLeaves(t *testing.T) {
	var s Set
	for i := range 1000 {
		s.Add(fmt.Sprintf("%04d", i), 5)
	}
	inf := math.Inf(1)
	for r, want := range map[ScoreRange]int{
		{5, inf, true, false}:         0,
		{5, inf, false, false}:        1000,
		{-inf, 5, false, true}:        0,
		{-inf, inf, false, false}:     1000,
		{-inf, inf, true, true}:       1000,
		{5, 5, false, false}:          1000,
		{5, 5, true, false}:           0,
		{6, 4, false, false}:          0,
		{math.NaN(), 9, false, false}: 0,
		{0, math.NaN(), false, false}: 0,
		{inf, inf, false, false}:      0,
		{-inf, -inf, false, false}:    0,
	} {
		if n := s.CountScore(r); n != want {
			t.Errorf("%+v: %d, want %d", r, n, want)
		}
	}
	if n := s.CountLex(LexRange{LexBound{Member: "0250"}, LexBound{Member: "0750", Exclusive: true}}); n != 500 {
		t.Errorf("500 members are %d", n)
	}
	s.Add("high", inf)
	s.Add("low", -inf)
	if n := s.CountScore(ScoreRange{-inf, inf, true, true}); n != 1000 {
		t.Errorf("finite scores: %d", n)
	}
	if n := s.CountScore(ScoreRange{5, inf, true, false}); n != 1 {
		t.Errorf("above 5: %d", n)
	}
}

func TestRankSpanExtremes(t *testing.T) {
	s := Load([]Element{{"a", 1}, {"b", 2}, {"c", 3}})
	for ranks, want := range map[[2]int][2]int{
		{math.MinInt, math.MaxInt}: {0, 3},
		{math.MaxInt, math.MinInt}: {0, 0},
		{math.MinInt, math.MinInt}: {0, 0},
		{math.MaxInt, math.MaxInt}: {0, 0},
		{0, -1}:                    {0, 3},
		{-2, -1}:                   {1, 3},
		{-100, 0}:                  {0, 1},
		{2, 1}:                     {0, 0},
		{3, 5}:                     {0, 0},
		{0, -4}:                    {0, 0},
	} {
		if lo, hi := s.RankSpan(ranks[0], ranks[1]); lo != want[0] || hi != want[1] {
			t.Errorf("%v: %d, %d; want %v", ranks, lo, hi, want)
		}
	}
	for _, rank := range []int{3, -4, math.MaxInt, math.MinInt} {
		if e, ok := s.At(rank); ok {
			t.Errorf("at %d: %v", rank, e)
		}
	}
	if n := s.RemoveSpan(math.MinInt, math.MaxInt); n != 3 || s.Len() != 0 {
		t.Errorf("%d removed, %d left", n, s.Len())
	}
}

func TestSpecialScores(t *testing.T) {
	var s Set
	if o := s.Add("a", math.NaN()); o != NotANumber || s.Len() != 0 {
		t.Errorf("NaN: %d", o)
	}
	minus := math.Copysign(0, -1)
	s.Add("a", minus)
	if o := s.Add("a", 0); o != Unchanged {
		t.Errorf("-0 to 0: %d", o)
	}
	if score, _ := s.Score("a"); !math.Signbit(score) {
		t.Error("-0 became 0")
	}
	s.Add("a", math.Inf(1))
	if o, score := s.Incr("a", math.Inf(-1), 0); o != NotANumber || !math.IsInf(score, 1) {
		t.Errorf("Inf-Inf: %d, %v", o, score)
	}
}

// TestChangeDuringIteration changes a set in the body of a loop over it.
func TestChangeDuringIteration(t *testing.T) {
	iterations := map[string]func(s *Set) iter.Seq2[string, float64]{
		"All":      (*Set).All,
		"Backward": (*Set).Backward,
		"ByScore":  func(s *Set) iter.Seq2[string, float64] { return s.ByScore(ScoreRange{Min: -1, Max: 1e9}) },
	}
	changes := map[string]func(s *Set, member string){
		"add":              func(s *Set, member string) { s.Add("new", 0.5) },
		"add many":         func(s *Set, _ string) { addNumbered(s, s.Len()+packedMax) },
		"update":           func(s *Set, member string) { s.Incr(member, 0.25, 0) },
		"update another":   func(s *Set, _ string) { s.Incr("member 1", 1e6, 0) },
		"remove":           func(s *Set, member string) { s.Remove(member) },
		"remove and add":   func(s *Set, _ string) { s.Remove("member 1"); s.Add("member 1", 1) },
		"remove a span":    func(s *Set, _ string) { s.RemoveSpan(1, 3) },
		"pop":              func(s *Set, _ string) { s.PopMin(1) },
		"clear":            func(s *Set, _ string) { s.Clear() },
		"clone and change": func(s *Set, member string) { s.Clone(); s.Remove(member) },
	}
	reads := map[string]func(s *Set, member string){
		"read":         func(s *Set, member string) { s.Rank(member) },
		"nothing":      func(s *Set, member string) { s.AddIf(member, 1, NX); s.Remove("none") },
		"clone":        func(s *Set, _ string) { s.Clone() },
		"mark":         func(s *Set, _ string) { s.Internal().SetMark(!s.Internal().Marked()) },
		"set deadline": func(s *Set, member string) { s.SetDeadline(member, 1) },
		"change a clone": func(s *Set, member string) {
			c := s.Clone()
			c.Remove(member)
			c.Add("new", 1)
		},
	}
	// try reports the panic of a loop of which the first step calls f.
	try := func(s *Set, all func(*Set) iter.Seq2[string, float64], f func(*Set, string), steps int) (message any) {
		defer func() { message = recover() }()
		for member := range all(s) {
			if steps--; f != nil {
				f(s, member)
				f = nil
			}
			if steps == 0 {
				break
			}
		}
		return nil
	}
	for _, size := range []int{3, 16, 100, 1000} {
		filled := func() *Set {
			s := new(Set)
			addNumbered(s, size)
			return s
		}
		for kind, all := range iterations {
			for name, f := range changes {
				const want = "BUG: zset: the set was changed during an iteration over it"
				if got := try(filled(), all, f, 0); got != want {
					t.Errorf("%d elements, %s, %s: panic %v", size, kind, name, got)
				}
				if got := try(filled(), all, f, 1); got != nil {
					t.Errorf("%d elements, %s, %s in the last step: panic %v", size, kind, name, got)
				}
			}
			for name, f := range reads {
				if got := try(filled(), all, f, 0); got != nil {
					t.Errorf("%d elements, %s, %s: panic %v", size, kind, name, got)
				}
			}
		}
	}
}

// addNumbered adds n members with their numbers as scores.
func addNumbered(s *Set, n int) {
	for i := range n {
		s.Add(fmt.Sprint("member ", i), float64(i))
	}
}

var _ sync.Locker = new(noCopy) // the methods that the copylocks check of go vet looks for

// TestSetSize bounds the memory of a Set: one pointer, because a process may have
// millions of packed sets.
func TestSetSize(t *testing.T) {
	if size, want := unsafe.Sizeof(Set{}), unsafe.Sizeof(uintptr(0)); size != want {
		t.Errorf("a Set takes %d bytes, want %d", size, want)
	}
}

func TestStrings(t *testing.T) {
	for _, c := range []struct {
		value fmt.Stringer
		want  string
	}{
		{Rejected, "Rejected"},
		{NotANumber, "NotANumber"},
		{Unchanged, "Unchanged"},
		{Updated, "Updated"},
		{Added, "Added"},
		{Added + 1, "Outcome(5)"},
		{Cond(0), "none"},
		{NX, "NX"},
		{XX | GT, "XX|GT"},
		{XX | LT, "XX|LT"},
		{NX | LT<<2, "NX|Cond(0x20)"},
	} {
		if got := c.value.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestScanAcrossRepresentations starts a scan of a packed set that becomes indexed
// during the scan.
func TestScanAcrossRepresentations(t *testing.T) {
	for _, size := range []int{3, 16, 17, 300, 3000} {
		var s Set
		for i := range size {
			s.Add(fmt.Sprint("stays", i), float64(i))
		}
		seen := map[string]int{}
		cursor := uint64(0)
		for calls := 0; calls == 0 || cursor != 0; calls++ {
			cursor = s.Scan(cursor, 10, func(member string, _ float64) { seen[member]++ })
			for i := range size / 10 {
				if i += calls * 7; calls%3 < 2 {
					s.Add(fmt.Sprint("more", i), 0)
				} else {
					s.Remove(fmt.Sprint("more", i-7))
				}
			}
			if calls%5 == 0 {
				s = *s.Clone()
			}
		}
		for i := range size {
			if seen[fmt.Sprint("stays", i)] != 1 {
				t.Fatalf("size %d: element %d seen %d times", size, i, seen[fmt.Sprint("stays", i)])
			}
		}
	}
}

func TestLoad(t *testing.T) {
	for _, size := range []int{0, 1, 16, 17, 192, 193, 1000} {
		var elements []Element
		var m model
		for i := range size {
			e := Element{fmt.Sprint("m", i), float64(i * 7919 % 100)}
			elements = append(elements, Element{e.Member, -1}, e, Element{"nan", math.NaN()})
			m = append(m, e)
		}
		slices.SortFunc(m, compare)
		if err := m.same(Load(slices.Clone(m))); err != nil {
			t.Errorf("in order: %v", err)
		}
		if err := m.same(Load(elements)); err != nil {
			t.Errorf("in disorder: %v", err)
		}
	}
}

// TestRandomDistinctIsUniform counts how often each element is drawn.
func TestRandomDistinctIsUniform(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for _, size := range []int{10, 40, 600} {
		var s Set
		for i := range size {
			s.Add(fmt.Sprint(i), float64(i))
		}
		n := size / 3
		const rounds = 2000
		counts := map[string]int{}
		for range rounds {
			for _, e := range s.RandomDistinct(r, n) {
				counts[e.Member]++
			}
		}
		p := float64(n) / float64(size)
		deviation := math.Sqrt(rounds * p * (1 - p))
		for i := range size {
			if d := float64(counts[fmt.Sprint(i)]) - rounds*p; math.Abs(d) > 5*deviation {
				t.Errorf("%d of %d: element %d is off by %.0f, deviation %.0f", n, size, i, d, deviation)
			}
		}
		if got := len(s.RandomDistinct(r, size+1)); got != size {
			t.Errorf("%d of %d elements", got, size)
		}
		if got := len(collect(s.RandomRepeat(r, 3*size))); got != 3*size {
			t.Errorf("%d draws, want %d", got, 3*size)
		}
	}
	if n := len(collect(new(Set).RandomRepeat(r, 3))); n != 0 {
		t.Errorf("%d elements of an empty set", n)
	}
}

// TestAllocations bounds the allocations of the hot paths.
func TestAllocations(t *testing.T) {
	for _, size := range []int{10, 100, 10_000} {
		var s Set
		for i := range size {
			s.Add(fmt.Sprint("m", i), float64(i))
		}
		member := []byte("m4")
		read := testing.AllocsPerRun(100, func() {
			s.Score("m3")
			s.Internal().Score(member)
			s.Rank("m5")
			s.RevRank("m6")
			s.At(-1)
			s.CountScore(ScoreRange{Min: 2, Max: 7})
			n := 0.0
			for _, score := range s.ByScore(ScoreRange{Min: 2, Max: 800}) {
				n += score
			}
			for _, score := range s.ByRankBackward(2, 800) {
				n += score
			}
		})
		if read > 0 {
			t.Errorf("size %d: %v allocations for reading", size, read)
		}
		i := 0.0
		update := testing.AllocsPerRun(100, func() {
			i++
			s.Add("m3", i)
			s.Internal().AddIf(member, i, GT)
			s.Incr("m5", 1, 0)
		})
		if update > 0 {
			t.Errorf("size %d: %v allocations for updates", size, update)
		}
	}
}

// TestSwap checks that Swap exchanges sets of all forms with their deadlines, marks and
// observers, and that the sets are independent afterwards.
func TestSwap(t *testing.T) {
	forms := map[string]func() *Set{
		"empty":  func() *Set { return new(Set) },
		"packed": func() *Set { return Load([]Element{{"a", 1}, {"b", 2}}) },
		"timed": func() *Set {
			s := Load([]Element{{"c", 1}, {"d", 2}})
			s.SetDeadline("d", 7)
			s.Internal().SetMark(true)
			return s
		},
		"indexed": func() *Set {
			s := new(Set)
			addNumbered(s, 2*packedMax)
			s.Internal().SetMark(true)
			return s
		},
	}
	for from, one := range forms {
		for to, other := range forms {
			a, b := one(), other()
			var log []string
			a.Internal().Observe(&Observer{
				Put:      func(member string, _ float64) { log = append(log, member) },
				Deadline: func(string, int64) {}, Removed: func(string) {}, Cleared: func() {},
			})
			a.Internal().Swap(b)
			a.Add("of a", 1)
			b.Add("of b", 1)
			b.Internal().Observe(nil)
			wantA, wantB := other(), one()
			wantA.Add("of a", 1)
			wantB.Add("of b", 1)
			if !slices.Equal(log, []string{"of b"}) {
				t.Errorf("%s, %s: observed %q", from, to, log)
			}
			for _, pair := range [][2]*Set{{a, wantA}, {b, wantB}} {
				got, want := pair[0], pair[1]
				if !slices.Equal(collect(got.All()), collect(want.All())) || got.Internal().Marked() != want.Internal().Marked() {
					t.Errorf("%s, %s: %v, marked %v", from, to, collect(got.All()), got.Internal().Marked())
				}
				gotNext, _ := got.NextDeadline()
				if wantNext, _ := want.NextDeadline(); gotNext != wantNext {
					t.Errorf("%s, %s: the next deadline is %d, want %d", from, to, gotNext, wantNext)
				}
				if err := got.Check(); err != nil {
					t.Errorf("%s, %s: %v", from, to, err)
				}
			}
		}
	}
}

// TestPrefetch checks that Prefetch accepts members that are present or absent, of sets of
// all forms, changes nothing, and does not allocate.
func TestPrefetch(t *testing.T) {
	for _, size := range []int{0, 5, packedMax + 1, 20_000} {
		var s Set
		for i := range size {
			s.Add(fmt.Sprint(i), float64(i))
		}
		s.Add(strings.Repeat("long", 100), 1)
		s.Add("", 2)
		members := []string{"", strings.Repeat("long", 100), "absent"}
		for i := range 2 * Batch {
			members = append(members, fmt.Sprint(i*size/Batch))
		}
		before := s.Clone()
		for n := range members {
			if allocated := testing.AllocsPerRun(1, func() { s.Internal().Prefetch(members[:n]) }); allocated > 0 {
				t.Errorf("%d elements: %v allocations", size, allocated)
			}
		}
		if err := s.Check(); err != nil || !slices.Equal(collect(s.All()), collect(before.All())) {
			t.Errorf("%d elements: Prefetch has changed the set, or %v", size, err)
		}
	}
}
