package zset

import (
	"iter"
	"math"
)

// ScoreRange bounds scores from below and above. Infinite bounds are ±Inf, which
// include members whose score is infinite unless exclusive. A range with a NaN
// bound, or with Min above Max, is empty.
type ScoreRange struct {
	Min, Max                   float64
	MinExclusive, MaxExclusive bool
}

// LexBound bounds members. Inf -1 lies before every member (Redis's "-"), Inf +1
// after every member ("+"); with Inf 0 the bound is Member.
type LexBound struct {
	Member    string
	Exclusive bool
	Inf       int8
}

// LexRange bounds members from below and above, in the order of their bytes.
type LexRange struct {
	Min, Max LexBound
}

// RankSpan turns the inclusive ranks start and stop, of which negative ones count
// from the end (-1 is the last), into a span. Any values are fine. O(1).
func (s *Set) RankSpan(start, stop int) (lo, hi int) {
	n := s.Len()
	if start < 0 {
		start = max(start+n, 0)
	}
	if stop < 0 {
		stop += n
	}
	if start >= n || start > stop {
		return 0, 0
	}
	return start, min(stop, n-1) + 1
}

// ScoreSpan gives the span of the elements whose scores are in r. O(log n).
func (s *Set) ScoreSpan(r ScoreRange) (lo, hi int) {
	if !(r.Min <= r.Max) {
		return 0, 0
	}
	lo = s.scoresBelow(r.Min, r.MinExclusive)
	hi = s.scoresBelow(r.Max, !r.MaxExclusive)
	return lo, max(lo, hi)
}

// scoresBelow counts the scores below x, or those up to x if inclusive.
func (s *Set) scoresBelow(x float64, inclusive bool) int {
	if inclusive {
		if math.IsInf(x, 1) {
			return s.Len()
		}
		x = math.Nextafter(x, math.Inf(1))
	}
	return s.below(x, "")
}

// LexSpan gives the span of the elements whose members are in r, provided that all
// scores are equal, as for ZRANGEBYLEX; otherwise it gives some valid span, for
// then the members as a whole are in no order. O(log n) when the scores are equal.
func (s *Set) LexSpan(r LexRange) (lo, hi int) {
	lo = s.membersBelow(r.Min, r.Min.Exclusive)
	hi = s.membersBelow(r.Max, !r.Max.Exclusive)
	return lo, max(lo, hi)
}

// membersBelow counts the members below b, or those up to b if inclusive.
func (s *Set) membersBelow(b LexBound, inclusive bool) int {
	first, ok := s.First()
	switch {
	case !ok || b.Inf < 0:
		return 0
	case b.Inf > 0:
		return s.Len()
	}
	last, _ := s.Last()
	var n int
	if first.Score == last.Score {
		n = s.below(first.Score, b.Member)
	} else {
		hi := s.Len()
		for n < hi {
			h := int(uint(n+hi) >> 1)
			if e, _ := s.At(h); e.Member < b.Member {
				n = h + 1
			} else {
				hi = h
			}
		}
	}
	if inclusive {
		if e, ok := s.at(n); ok && e.Member == b.Member {
			n++
		}
	}
	return n
}

// Span yields the elements of ranks lo to hi-1, lowest first; ranks outside the set
// are left out. O(log n) to begin, O(1) for each. The set must not be changed
// meanwhile.
func (s *Set) Span(lo, hi int) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) { s.ascend(max(lo, 0), min(hi, s.Len()), yield) }
}

// SpanBackward yields the elements of ranks hi-1 down to lo. Otherwise as Span.
func (s *Set) SpanBackward(lo, hi int) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) { s.descend(max(lo, 0), min(hi, s.Len()), yield) }
}

// RemoveSpan removes the elements of ranks lo to hi-1 and returns how many they were.
// O(log n) for each.
func (s *Set) RemoveSpan(lo, hi int) int {
	lo, hi = max(lo, 0), min(hi, s.Len())
	if lo >= hi {
		return 0
	}
	s.cut(lo, hi)
	return hi - lo
}

// All yields every element, lowest first. The set must not be changed meanwhile.
func (s *Set) All() iter.Seq2[string, float64] { return s.Span(0, math.MaxInt) }

// Backward yields every element, highest first. The set must not be changed meanwhile.
func (s *Set) Backward() iter.Seq2[string, float64] { return s.SpanBackward(0, math.MaxInt) }

// ByRank yields the elements of RankSpan(start, stop), lowest first.
func (s *Set) ByRank(start, stop int) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		lo, hi := s.RankSpan(start, stop)
		s.ascend(lo, hi, yield)
	}
}

// ByRankBackward yields the elements of RankSpan(start, stop), highest first: as
// everywhere here ranks count from the lowest, other than in ZREVRANGE.
func (s *Set) ByRankBackward(start, stop int) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		lo, hi := s.RankSpan(start, stop)
		s.descend(lo, hi, yield)
	}
}

// ByScore yields the elements whose scores are in r, lowest first.
func (s *Set) ByScore(r ScoreRange) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		lo, hi := s.ScoreSpan(r)
		s.ascend(lo, hi, yield)
	}
}

// ByScoreBackward yields the elements whose scores are in r, highest first.
func (s *Set) ByScoreBackward(r ScoreRange) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		lo, hi := s.ScoreSpan(r)
		s.descend(lo, hi, yield)
	}
}

// ByLex yields the elements whose members are in r, lowest first; see LexSpan.
func (s *Set) ByLex(r LexRange) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		lo, hi := s.LexSpan(r)
		s.ascend(lo, hi, yield)
	}
}

// ByLexBackward yields the elements whose members are in r, highest first; see LexSpan.
func (s *Set) ByLexBackward(r LexRange) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		lo, hi := s.LexSpan(r)
		s.descend(lo, hi, yield)
	}
}

// CountScore counts the elements whose scores are in r, without visiting them.
func (s *Set) CountScore(r ScoreRange) int {
	lo, hi := s.ScoreSpan(r)
	return hi - lo
}

// CountLex counts the elements whose members are in r, without visiting them; see LexSpan.
func (s *Set) CountLex(r LexRange) int {
	lo, hi := s.LexSpan(r)
	return hi - lo
}

// RemoveRank removes the elements of RankSpan(start, stop) and returns how many they were.
func (s *Set) RemoveRank(start, stop int) int { return s.RemoveSpan(s.RankSpan(start, stop)) }

// RemoveScore removes the elements whose scores are in r and returns how many they were.
func (s *Set) RemoveScore(r ScoreRange) int { return s.RemoveSpan(s.ScoreSpan(r)) }

// RemoveLex removes the elements whose members are in r and returns how many they
// were; see LexSpan.
func (s *Set) RemoveLex(r LexRange) int { return s.RemoveSpan(s.LexSpan(r)) }
