package zset

import "slices"

// Operations that remove, or lease, the elements in a score range. With timestamps
// as scores they make a set a queue of due work; the caller passes the current time
// as the upper bound of the range.

// PopScoreMin removes the n lowest elements with scores in r, or all of them if
// there are fewer, and returns them in ascending order. O((m+1) log n) for m
// results.
func (s *Set) PopScoreMin(r ScoreRange, n int) []Element {
	lo, hi := s.ScoreSpan(r)
	return s.popUp(lo, lo+min(max(n, 0), hi-lo))
}

// PopScoreMax removes the n highest elements with scores in r, or all of them if
// there are fewer, and returns them in descending order. O((m+1) log n) for m
// results.
func (s *Set) PopScoreMax(r ScoreRange, n int) []Element {
	lo, hi := s.ScoreSpan(r)
	return s.popDown(hi-min(max(n, 0), hi-lo), hi)
}

// popUp removes the elements at ranks [lo, hi) and returns them in ascending order.
func (s *Set) popUp(lo, hi int) []Element {
	if lo >= hi {
		return nil
	}
	popped := s.list(lo, hi)
	s.removeRange(lo, hi)
	return popped
}

// popDown removes the elements at ranks [lo, hi) and returns them in descending
// order.
func (s *Set) popDown(lo, hi int) []Element {
	if lo >= hi {
		return nil
	}
	popped := s.list(lo, hi)
	slices.Reverse(popped)
	s.removeRange(lo, hi)
	return popped
}

// list returns the elements at ranks [lo, hi) in ascending order.
func (s *Set) list(lo, hi int) []Element {
	if hi-lo == 1 {
		e, _ := s.at(lo)
		return []Element{e}
	}
	list := make([]Element, 0, hi-lo)
	for member, score := range s.Span(lo, hi) {
		list = append(list, Element{member, score})
	}
	return list
}

// Claim leases elements: it gives the n lowest elements with scores in r, or all of
// them if there are fewer, a new score, which must not be NaN. It returns them with
// their previous scores, in ascending order. Deadlines stay unchanged. With
// timestamps as scores a worker claims due elements and they stay in the set, due
// again at the time given by score, unless RemoveIf removes them before. O((m+1)
// log n) for m results.
func (s *Set) Claim(r ScoreRange, score float64, n int) []Element {
	lo, hi := s.ScoreSpan(r)
	hi = lo + min(max(n, 0), hi-lo)
	if lo >= hi {
		return nil
	}
	claimed := s.list(lo, hi)
	for _, e := range claimed {
		s.Add(e.Member, score)
	}
	return claimed
}

// RemoveIf removes member if it has the given score, and reports whether it did.
// O(log n).
func (s *Set) RemoveIf(member string, score float64) bool {
	if at, ok := s.Score(member); !ok || at != score {
		return false
	}
	s.Remove(member)
	return true
}
