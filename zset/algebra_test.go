package zset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestAlgebra(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	for range 300 {
		in := make([]Input, r.IntN(4))
		for i := range in {
			s := new(Set)
			for range []int{0, 5, 40, 600}[r.IntN(4)] {
				s.Add(fmt.Sprint(r.IntN(800)), special[r.IntN(len(special))])
			}
			if in[i].Source = s; i > 0 && r.IntN(5) == 0 {
				in[i].Source = in[0].Source
			}
			if r.IntN(10) == 0 {
				in[i].Source = nil
			}
			in[i].Weight = []float64{1, 2, -1, 0, math.Inf(1)}[r.IntN(5)]
		}
		agg := Aggregate(r.IntN(4))
		// The expected results, computed member by member in the order of
		// cardinalities.
		sources := make([]Source, len(in))
		for i := range in {
			sources[i] = in[i].Source
		}
		sorted := bySize(in)
		scores, counts := map[string]float64{}, map[string]int{}
		common := map[string]float64{}
		aggregate := func(have, score float64) float64 {
			switch {
			case (agg == Sum || agg == Count) && math.IsNaN(have+score):
				return 0
			case agg == Sum || agg == Count:
				return have + score
			case agg == Min && score < have, agg == Max && score > have:
				return score
			}
			return have
		}
		for _, input := range sorted {
			for member, score := range input.Source.All() {
				if score *= input.Weight; agg == Count {
					score = input.Weight
				}
				product := score // in an intersection Redis aggregates NaN as such
				if math.IsNaN(score) {
					score = 0
				}
				if counts[member]++; counts[member] == 1 {
					scores[member], common[member] = score, score
				} else {
					scores[member] = aggregate(scores[member], score)
					common[member] = aggregate(common[member], product)
				}
			}
		}
		var union, inter, diff model
		for member, score := range scores {
			union = append(union, Element{member, score})
			if counts[member] == len(in) {
				inter = append(inter, Element{member, common[member]})
			}
		}
		if len(in) > 0 && in[0].Source != nil {
		next:
			for member, score := range in[0].Source.All() {
				for _, s := range sources[1:] {
					if s != nil {
						if _, ok := s.Score(member); ok {
							continue next
						}
					}
				}
				diff = append(diff, Element{member, score})
			}
		}
		slices.SortFunc(union, compare)
		slices.SortFunc(inter, compare)
		if err := union.same(Union(agg, in...)); err != nil {
			t.Fatal("union: ", err)
		}
		if err := inter.same(Inter(agg, in...)); err != nil {
			t.Fatal("intersection: ", err)
		}
		if err := diff.same(Diff(sources...)); err != nil {
			t.Fatal("difference: ", err)
		}
		if n := InterCard(0, sources...); n != len(inter) {
			t.Fatalf("cardinality %d, want %d", n, len(inter))
		}
		if n := InterCard(3, sources...); n != min(len(inter), 3) {
			t.Fatalf("limited cardinality %d of %d", n, len(inter))
		}
	}
}

// Diff gathers the members of many small sources where that takes fewer steps; the
// result is the same.
func TestDiffOfManySources(t *testing.T) {
	first := new(Set)
	for i := range 1000 {
		first.Add(fmt.Sprint(i), float64(i))
	}
	sources := []Source{first, nil, new(Set)}
	for i := range 400 {
		s := new(Set)
		s.Add(fmt.Sprint(3*i), 1)
		s.Add("other"+fmt.Sprint(i), 1)
		sources = append(sources, s, s)
	}
	diff := Diff(sources...)
	n := 0
	for i := range 1000 {
		_, has := diff.Score(fmt.Sprint(i))
		if wanted := i%3 != 0; has != wanted {
			t.Errorf("%d: %v", i, has)
		} else if has {
			n++
		}
	}
	if diff.Len() != n {
		t.Errorf("%d members, not %d", diff.Len(), n)
	}
	if d := Diff(append(sources, first)...); d.Len() != 0 {
		t.Errorf("%d members without those of the set itself", d.Len())
	}
}
