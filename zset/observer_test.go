package zset

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// A copy that does what an observer is told is always what the set is.
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
		follower := map[string]uint64{} // the bits of scores
		calls := 0
		o := &Observer{
			Put: func(member string, score float64) {
				if old, ok := follower[member]; ok && math.Float64frombits(old) == score {
					t.Fatalf("%q is told to have %v, which it had", member, score)
				}
				follower[strings.Clone(member)] = math.Float64bits(score)
				calls++
			},
			Deadline: func(string, int64) { t.Fatal("told of a deadline that nobody has set") },
			Removed: func(member string) {
				if _, ok := follower[member]; !ok {
					t.Fatalf("%q is told to be removed, and was not there", member)
				}
				delete(follower, member)
				calls++
			},
			Cleared: func() {
				if len(follower) == 0 {
					t.Fatal("an empty set is told to be cleared")
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
			c.set.Observe(o)
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
				c.cut()
			case k == 36:
				c.read()
			case k == 37 && r.IntN(40) == 0:
				c.set.Clear()
				c.model = nil
			case k == 38 && r.IntN(10) == 0: // a clone is its own
				other := *c
				other.set, other.model = c.set.Clone(), append(model{}, c.model...)
				clone = &other
			case k == 39 && r.IntN(100) == 0: // another set is observed, the one so far is not
				c.set.Observe(nil)
				before := calls
				c.put()
				c.remove()
				if calls != before {
					t.Fatal("an observer is told of a set that has none")
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
				clone.cut()
				if calls != before {
					t.Fatal("an observer is told of a clone")
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

// An observer costs nothing but what it does itself.
func TestObserverAllocations(t *testing.T) {
	var s Set
	for i := range 1000 {
		s.Add(fmt.Sprint("m", i), float64(i))
	}
	told, member := 0, []byte("m500")
	s.Observe(&Observer{
		Put:      func(string, float64) { told++ },
		Deadline: func(string, int64) {},
		Removed:  func(string) {},
		Cleared:  func() {},
	})
	// To and fro within a block, so that none is split.
	score := 0.0
	if n := testing.AllocsPerRun(100, func() {
		score = 1 - score
		s.AddIfBytes(member, 500+score/2, 0)
	}); n != 0 || told < 100 {
		t.Errorf("%v allocations, told %d times", n, told)
	}
}
