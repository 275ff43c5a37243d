package zset

// Taking by score: what lies in a range of scores is removed, or is claimed by
// getting another score, in one step. With times as scores that is a queue of
// what is due: the caller hands in the time, as the upper bound of the range.

// PopScoreMin removes the n lowest of the elements whose scores are in r, or all of
// those if there are fewer, and returns them, the lowest first. O(log n) and O(log n)
// for each.
func (s *Set) PopScoreMin(r ScoreRange, n int) []Element {
	lo, hi := s.ScoreSpan(r)
	return s.popUp(lo, lo+min(max(n, 0), hi-lo))
}

// PopScoreMax removes the n highest of the elements whose scores are in r, or all of
// those if there are fewer, and returns them, the highest first. O(log n) and
// O(log n) for each.
func (s *Set) PopScoreMax(r ScoreRange, n int) []Element {
	lo, hi := s.ScoreSpan(r)
	return s.popDown(hi-min(max(n, 0), hi-lo), hi)
}

// popUp removes the elements of ranks lo to hi-1 and returns them, the lowest first.
func (s *Set) popUp(lo, hi int) []Element {
	if lo >= hi {
		return nil
	}
	popped := s.list(lo, hi)
	s.cut(lo, hi)
	return popped
}

// popDown is popUp, the highest first.
func (s *Set) popDown(lo, hi int) []Element {
	if lo >= hi {
		return nil
	}
	popped := make([]Element, 0, hi-lo)
	for member, score := range s.SpanBackward(lo, hi) {
		popped = append(popped, Element{member, score})
	}
	s.cut(lo, hi)
	return popped
}

func (s *Set) list(lo, hi int) []Element {
	list := make([]Element, 0, hi-lo)
	for member, score := range s.Span(lo, hi) {
		list = append(list, Element{member, score})
	}
	return list
}

// Claim gives the n lowest of the elements whose scores are in r, or all of those if
// there are fewer, the given score, which must not be NaN. It returns them as they
// were, the lowest first. Their deadlines stay. So a worker takes what is due and
// leaves it in the set, due again at the time that is the new score, unless by then
// it has been removed with RemoveIf. O(log n) and O(log n) for each.
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

// RemoveIf removes member if its score is still the one given, and reports whether it
// was. O(log n).
func (s *Set) RemoveIf(member string, score float64) bool {
	if at, ok := s.Score(member); !ok || at != score {
		return false
	}
	s.Remove(member)
	return true
}

// RemoveIfBytes is RemoveIf.
func (s *Set) RemoveIfBytes(member []byte, score float64) bool {
	return s.RemoveIf(view(member), score)
}
