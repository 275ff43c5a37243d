package zset

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestObserver applies the notifications of an observer to a copy, which must
// always equal the set.
func TestObserver(t *testing.T) {
	for _, members := range []int{3, 14, 40, 300, 2000} {
		r := rand.New(rand.NewPCG(uint64(members), 7))
		scores := func() float64 {
			if r.IntN(4) == 0 {
				return special[r.IntN(len(special))]
			}
			return float64(r.IntN(50))
		}
		c := &trial{t: t, r: r, set: new(Set), members: members, scores: scores}
		follower := map[string]uint64{} // scores as bits
		calls := 0
		o := &Observer{
			Put: func(member string, score float64) {
				if old, ok := follower[member]; ok && math.Float64frombits(old) == score {
					t.Fatalf("Put for %q with its old score %v", member, score)
				}
				follower[strings.Clone(member)] = math.Float64bits(score)
				calls++
			},
			Deadline: func(string, int64) { t.Fatal("Deadline without a deadline") },
			Removed: func(member string) {
				if _, ok := follower[member]; !ok {
					t.Fatalf("Removed for %q, which does not exist", member)
				}
				delete(follower, member)
				calls++
			},
			Cleared: func() {
				if len(follower) == 0 {
					t.Fatal("Cleared for an empty set")
				}
				clear(follower)
				calls++
			},
		}
		observe := func() {
			clear(follower)
			for member, score := range c.set.All() {
				follower[strings.Clone(member)] = math.Float64bits(score)
			}
			c.set.Internal().Observe(o)
		}
		observe()
		var clone *trial
		for i := range 6000 {
			grow := i%3000 < 2000
			switch k := r.IntN(40); {
			case k < 20 && (grow || k < 5):
				c.put()
			case k < 32 && (!grow || k < 26):
				c.remove()
			case k < 36:
				c.removeRange()
			case k == 36:
				c.read()
			case k == 37 && r.IntN(40) == 0:
				c.set.Clear()
				c.model = nil
			case k == 38 && r.IntN(10) == 0: // clones are not observed
				other := *c
				other.set, other.model = c.set.Clone(), append(model{}, c.model...)
				clone = &other
			case k == 39 && r.IntN(100) == 0: // the observer moves to another set
				c.set.Internal().Observe(nil)
				before := calls
				c.put()
				c.remove()
				if calls != before {
					t.Fatal("a set without an observer notified one")
				}
				if r.IntN(2) == 0 {
					c.set = Load(c.model)
				}
				observe()
			}
			if clone != nil {
				before := calls
				clone.put()
				clone.remove()
				clone.removeRange()
				if calls != before {
					t.Fatal("a clone notified the observer")
				}
			}
			if i%20 == 0 || len(c.model) < 20 {
				want := map[string]uint64{}
				for member, score := range c.set.All() {
					want[member] = math.Float64bits(score)
				}
				if len(want) != len(c.model) || !maps.Equal(follower, want) {
					t.Fatalf("%d members, step %d: the follower has %d, the set %d, the model %d", members, i, len(follower), len(want), len(c.model))
				}
			}
		}
	}
}

// TestObserverAllocations checks that notifications do not allocate.
func TestObserverAllocations(t *testing.T) {
	var s Set
	for i := range 1000 {
		s.Add(fmt.Sprint("m", i), float64(i))
	}
	observed, member := 0, []byte("m500")
	s.Internal().Observe(&Observer{
		Put:      func(string, float64) { observed++ },
		Deadline: func(string, int64) {},
		Removed:  func(string) {},
		Cleared:  func() {},
	})
	// The score alternates within one leaf, so no leaf splits.
	score := 0.0
	if n := testing.AllocsPerRun(100, func() {
		score = 1 - score
		s.Internal().AddIf(member, 500+score/2, 0)
	}); n != 0 || observed < 100 {
		t.Errorf("%v allocations in %d notifications", n, observed)
	}
}
