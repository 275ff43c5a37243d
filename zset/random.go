package zset

import (
	"iter"
	"math/rand/v2"
)

// RandomDistinct returns n distinct elements in unspecified order. Every subset of
// n elements has the same probability. It returns all elements if n is Len or more,
// and nil if n is 0 or less. O(n log n).
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
	// Floyd's algorithm (Bentley and Floyd, 1987): n draws without rejection.
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

// RandomRepeat yields n elements, each drawn independently from the whole set, or
// none if the set is empty. O(n).
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
