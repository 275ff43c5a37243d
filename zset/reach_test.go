package zset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestReach checks that the range of a tracked set has the scores of all elements that random
// changes add, remove or move, and that clones and sets that were cleared extend it no more.
func TestReach(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 7))
	c := &trial{t: t, r: r, set: new(Set), members: 900, scores: func() float64 {
		if r.IntN(9) == 0 {
			return special[r.IntN(len(special))]
		}
		return float64(r.IntN(500))
	}}
	reach, touched := NoReach(), 0
	for i := range 12_000 {
		tracked, changes := c.set.Tracked() == &reach, reach.Changes
		before := slices.Clone(c.model)
		switch k := r.IntN(100); {
		case k < 60 && (i%4000 < 3000 || k < 20):
			c.put()
		case k < 90:
			c.remove()
		case k < 95:
			c.removeRange()
		case k == 95:
			clone := *c
			clone.set, clone.model = c.set.Clone(), slices.Clone(c.model)
			clone.put()
			clone.remove()
		case k == 96 && i%10 == 0:
			c.set.Clear()
			c.model = nil
		case k == 97 && len(c.model) > 0:
			e := c.model[r.IntN(len(c.model))]
			old, _ := c.set.Deadline(e.Member)
			c.set.SetDeadline(e.Member, old+1)
			if tracked && (reach.Min > e.Score || reach.Max < e.Score || reach.Changes == changes) {
				t.Fatalf("a deadline of %v is not in %v", e, reach)
			}
			continue
		}
		if !tracked {
			if c.set.Track(&reach) == c.set.isPacked() {
				t.Fatal("an indexed set is not tracked, or a packed one is")
			}
			reach = NoReach()
			continue
		}
		gone := slices.DeleteFunc(slices.Clone(before), func(e Element) bool { i := c.model.find(e.Member); return i >= 0 && c.model[i] == e })
		come := slices.DeleteFunc(slices.Clone(c.model), func(e Element) bool { i := model(before).find(e.Member); return i >= 0 && before[i] == e })
		if len(c.model) == 0 {
			if c.set.Tracked() != nil {
				t.Fatal("an empty set is tracked")
			}
			continue
		}
		if changed := len(gone)+len(come) > 0; changed != (reach.Changes > changes) {
			t.Fatalf("step %d: %d and %d elements changed, and the range counts %d changes", i, len(gone), len(come), reach.Changes-changes)
		}
		for _, e := range append(gone, come...) {
			touched++
			if e.Score < reach.Min || e.Score > reach.Max {
				t.Fatalf("step %d: %v has changed, out of %v", i, e, reach)
			}
		}
		if r.IntN(3) == 0 {
			reach = NoReach()
		}
	}
	if touched < 1000 {
		t.Errorf("only %d elements have changed", touched)
	}
}

// TestPlaces compares Places with Rank and Score, for members in any order, in the set or not, with equal scores.
func TestPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for _, size := range []int{0, 1, 100, 300, 5000} {
		for _, scores := range []int{1, 10, 1 << 20} {
			s := new(Set)
			for i := range size {
				s.Add(fmt.Sprint("m", i), float64(r.IntN(scores)))
			}
			for range 20 {
				members := make([]string, r.IntN(700))
				from := r.IntN(size + 1)
				for i := range members {
					members[i] = fmt.Sprint("m", r.IntN(size+5))
					if from%2 == 0 && i > 0 {
						if e, ok := s.At(from + i); ok {
							members[i] = e.Member
						}
					}
				}
				places := make([]Place, len(members))
				s.Places(members, places)
				for i, member := range members {
					want := Place{Rank: -1}
					if rank, ok := s.Rank(member); ok {
						want.Rank = rank
						want.Score, _ = s.Score(member)
					}
					if places[i] != want {
						t.Fatalf("%d elements with %d scores: the place of %q is %v, want %v", size, scores, member, places[i], want)
					}
				}
			}
		}
	}
}

// BenchmarkPlaces compares the ranks of 256 members of 100 000, by Places and by Rank: of neighbours and
// of members that are far from one another.
func BenchmarkPlaces(b *testing.B) {
	s := new(Set)
	const size, n = 100_000, 256
	for i := range size {
		s.Add(fmt.Sprintf("user:%07d", i), float64(i))
	}
	r := rand.New(rand.NewPCG(1, 2))
	lists := map[string][][]string{}
	for range 50 {
		near, far := make([]string, n), make([]string, n)
		from := r.IntN(size - n)
		for i := range n {
			near[i], far[i] = fmt.Sprintf("user:%07d", from+i), fmt.Sprintf("user:%07d", r.IntN(size))
		}
		lists["near"], lists["far"] = append(lists["near"], near), append(lists["far"], far)
	}
	var places [n]Place
	for _, name := range []string{"near", "far"} {
		b.Run("Places/"+name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				s.Places(lists[name][i%50], places[:])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/rank")
		})
		b.Run("Rank/"+name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				for j, member := range lists[name][i%50] {
					places[j].Rank, _ = s.Rank(member)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/rank")
		})
	}
}
