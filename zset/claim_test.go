package zset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPopScoreAndClaim compares PopScoreMin, PopScoreMax and Claim with a sorted
// slice.
func TestPopScoreAndClaim(t *testing.T) {
	for _, size := range []int{0, 5, 16, 17, 500} {
		rnd := rand.New(rand.NewPCG(uint64(size), 1))
		for range 200 {
			var s Set
			var model []Element
			for i := range size {
				e := Element{fmt.Sprint("m", i), float64(rnd.IntN(20))}
				s.Add(e.Member, e.Score)
				if rnd.IntN(4) == 0 {
					s.SetDeadline(e.Member, int64(1+i))
				}
				model = append(model, e)
			}
			less := func(a, b Element) int { return compare(a, b) }
			slices.SortFunc(model, less)
			r := ScoreRange{Min: float64(rnd.IntN(20)), Max: float64(rnd.IntN(22)), MinExclusive: rnd.IntN(2) == 0, MaxExclusive: rnd.IntN(2) == 0}
			n := rnd.IntN(size+3) - 1
			in := func(e Element) bool {
				return (e.Score > r.Min || e.Score == r.Min && !r.MinExclusive) && (e.Score < r.Max || e.Score == r.Max && !r.MaxExclusive)
			}
			var hits []Element
			for _, e := range model {
				if in(e) {
					hits = append(hits, e)
				}
			}
			var got []Element
			what := rnd.IntN(3)
			take := min(max(n, 0), len(hits))
			switch what {
			case 0:
				got, hits = s.PopScoreMin(r, n), hits[:take]
			case 1:
				got, hits = s.PopScoreMax(r, n), slices.Clone(hits[len(hits)-take:])
				slices.Reverse(hits)
			case 2:
				got, hits = s.Claim(r, 7.5, n), hits[:take]
			}
			if !slices.Equal(got, hits) {
				t.Fatalf("%d of %d in %+v: %v, want %v", n, size, r, got, hits)
			}
			for _, e := range hits {
				at, there := s.Deadline(e.Member)
				if score, ok := s.Score(e.Member); ok != (what == 2) || there != ok || ok && score != 7.5 {
					t.Fatalf("%s is left: %t with %v until %d", e.Member, ok, score, at)
				}
			}
			if want := size - take; what != 2 && s.Len() != want {
				t.Fatalf("%d are left, want %d", s.Len(), want)
			}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestRemoveIf(t *testing.T) {
	var s Set
	s.Add("a", 1)
	s.Add("b", math.Inf(1))
	for _, test := range []struct {
		member string
		score  float64
		want   bool
	}{{"a", 2, false}, {"x", 0, false}, {"a", math.NaN(), false}, {"a", 1, true}, {"a", 1, false}, {"b", math.Inf(1), true}} {
		if got := s.Internal().RemoveIf([]byte(test.member), test.score); got != test.want {
			t.Errorf("%s at %v: %t", test.member, test.score, got)
		}
	}
	if s.Len() != 0 {
		t.Errorf("%d are left", s.Len())
	}
}

func ExampleSet_Claim() {
	var jobs Set
	jobs.Add("mail", 100) // due at 100
	jobs.Add("backup", 200)

	now := 150.0
	due := ScoreRange{Min: math.Inf(-1), Max: now}
	for _, job := range jobs.Claim(due, now+30, 10) {
		fmt.Println(job.Member, "was due at", job.Score)
		// The worker processes the job. If it crashes, the job is due again at 180.
		fmt.Println("done:", jobs.RemoveIf(job.Member, now+30))
	}
	// Output:
	// mail was due at 100
	// done: true
}
