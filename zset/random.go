package zset

import (
	"iter"
	"math/rand/v2"
)

// RandomDistinct returns n different elements, every choice of n being equally
// likely, in no particular order; all of them if n is the length or more. O(n log n).
func (s *Set) RandomDistinct(r *rand.Rand, n int) []Element {
	size := s.Len()
	if n <= 0 || size == 0 {
		return nil
	}
	out := make([]Element, 0, min(n, size))
	if n >= size {
		for member, score := range s.All() {
			out = append(out, Element{member, score})
		}
		return out
	}
	// Floyd's sampling (Bentley and Floyd 1987): n draws, none of them in vain.
	chosen := make(map[int]struct{}, n)
	for i := size - n; i < size; i++ {
		rank := r.IntN(i + 1)
		if _, taken := chosen[rank]; taken {
			rank = i
		}
		chosen[rank] = struct{}{}
		e, _ := s.at(rank)
		out = append(out, e)
	}
	return out
}

// RandomRepeat yields n elements, each drawn from the whole set. Nothing if the set
// is empty. Its cost is Random's, n times.
func (s *Set) RandomRepeat(r *rand.Rand, n int) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for range n {
			e, ok := s.Random(r)
			if !ok || !yield(e.Member, e.Score) {
				return
			}
		}
	}
}
