package zset

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
)

// TestDeadlines compares deadlines under random operations with a map. Clones must
// not change with the original, and an observer must receive every change.
func TestDeadlines(t *testing.T) {
	for _, members := range []int{5, 30, 125, 250, 600} {
		r := rand.New(rand.NewPCG(uint64(members), 1))
		s := new(Set)
		want, observed := map[string]int64{}, map[string]int64{}
		s.Internal().Observe(&Observer{
			Put: func(string, float64) {},
			Deadline: func(member string, at int64) {
				if observed[member] = at; at == 0 {
					delete(observed, member)
				}
			},
			Removed: func(member string) { delete(observed, member) },
			Cleared: func() { clear(observed) },
		})
		now := int64(1)
		type frozen struct {
			set  *Set
			want map[string]int64
		}
		var clones []frozen
		check := func(s *Set, want map[string]int64) {
			t.Helper()
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			n, first := 0, int64(math.MaxInt64)
			for member, at := range want {
				if got, ok := s.Deadline(member); got != at || !ok {
					t.Fatalf("deadline of %q: %d, %v, want %d", member, got, ok, at)
				}
				n++
				first = min(first, at)
			}
			if d := s.Deadlines(); (d == nil) != (n == 0) || d != nil && d.Len() != n {
				t.Fatalf("%d members should have deadlines, not %v", n, d)
			}
			if at, ok := s.NextDeadline(); ok != (n > 0) || ok && at != first {
				t.Fatalf("next deadline %d, %v, want %d", at, ok, first)
			}
		}
		for i := range 20_000 {
			member := fmt.Sprint("m", r.IntN(members))
			_, there := s.Score(member)
			switch k := r.IntN(100); {
			case k < 30:
				s.Add(member, float64(r.IntN(20)))
			case k < 60:
				at := now + int64(r.IntN(50))
				if k < 35 {
					at = 0
				}
				had, ok := s.SetDeadlineBytes([]byte(member), at)
				if had != want[member] || ok != there {
					t.Fatalf("SetDeadline(%q): had %d, %v, want %d, %v", member, had, ok, want[member], there)
				}
				if want[member] = at; at == 0 || !ok {
					delete(want, member)
				}
			case k < 70:
				s.Remove(member)
				delete(want, member)
			case k < 72:
				for _, e := range s.PopMin(r.IntN(4)) {
					delete(want, e.Member)
				}
			case k < 74:
				lo := r.IntN(s.Len() + 1)
				hi := lo + r.IntN(5)
				for member := range s.Span(lo, hi) {
					delete(want, member)
				}
				s.RemoveSpan(lo, hi)
			case k < 95:
				now += int64(r.IntN(3))
				limit := r.IntN(5)
				due := 0
				for _, at := range want {
					if at < now {
						due++
					}
				}
				if got := s.Due(now); got != due {
					t.Fatalf("%d are due, want %d", got, due)
				}
				last := int64(0)
				n := s.Expire(now, limit, func(e Element) {
					at, ok := want[e.Member]
					if !ok || at >= now || at < last {
						t.Fatalf("%q expires at %d, it is %d, the one before %d", e.Member, at, now, last)
					}
					last = at
					delete(want, e.Member)
				})
				if n != min(limit, due) {
					t.Fatalf("%d expired, want %d of %d", n, limit, due)
				}
			case k < 96:
				clones = append(clones, frozen{s.Clone(), maps.Clone(want)})
			case k == 96 && i%500 == 0:
				s.Clear()
				clear(want)
			}
			if members <= packedMax && !s.isPacked() {
				t.Fatal("deadlines converted the set to indexed")
			}
			if i%50 == 0 || members < 10 {
				check(s, want)
				if !maps.Equal(observed, want) {
					t.Fatalf("step %d: observed %v, want %v", i, observed, want)
				}
			}
		}
		for _, c := range clones {
			check(c.set, c.want)
		}
	}
}

func TestDeadlineBounds(t *testing.T) {
	s := new(Set)
	s.Add("m", 1)
	for _, at := range []int64{1, MaxDeadline} {
		if _, ok := s.SetDeadline("m", at); !ok {
			t.Fatal("the member does not exist")
		}
		if got, _ := s.Deadline("m"); got != at {
			t.Errorf("deadline %d, want %d", got, at)
		}
	}
	if _, ok := s.SetDeadline("n", 5); ok {
		t.Error("an absent member got a deadline")
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	s.SetDeadline("m", MaxDeadline+1)
}

// TestDeadlinesSurviveConversion converts a packed set with deadlines to an indexed
// one, before and after cloning it.
func TestDeadlinesSurviveConversion(t *testing.T) {
	s := new(Set)
	for i := range packedMax {
		s.Add(fmt.Sprint("m", i), float64(i))
		s.SetDeadline(fmt.Sprint("m", i), int64(1000-i))
	}
	clone := s.Clone()
	if d := s.Deadlines(); !s.isPacked() || d.Len() != packedMax || !d.isPacked() {
		t.Fatalf("%d members, %d deadlines, small: %v", s.Len(), d.Len(), s.isPacked())
	}
	s.Add("one more", -1)
	s.SetDeadline("m7", 0)
	for _, s := range []*Set{s, clone, clone.Clone()} {
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		for i := range packedMax {
			want := int64(1000 - i)
			if i == 7 && !s.isPacked() {
				want = 0
			}
			if at, ok := s.Deadline(fmt.Sprint("m", i)); !ok || at != want {
				t.Errorf("deadline of %d: %d, %v, want %d", i, at, ok, want)
			}
		}
	}
	if clone.Expire(1001, packedMax, nil) != packedMax || clone.Len() != 0 || s.Len() != packedMax+1 {
		t.Errorf("%d of the clone are left, %d of the set", clone.Len(), s.Len())
	}
}
