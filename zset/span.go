package zset

import (
	"iter"
	"math"
)

// ScoreRange is an interval of scores. As in Redis, both bounds belong to it unless
// they are exclusive:
//
//	ScoreRange{Min: 1, Max: 5}                       1 ≤ score ≤ 5    ZRANGEBYSCORE key 1 5
//	ScoreRange{Min: 1, Max: 5, MaxExclusive: true}   1 ≤ score < 5    ZRANGEBYSCORE key 1 (5
//	HalfOpen(1, 5)                                   the same
//	ScoreRange{Min: 1, Max: math.Inf(1)}             1 ≤ score        ZRANGEBYSCORE key 1 +inf
//
// Ranks are counted both ways: ByRank(1, 5) and RemoveRank(1, 5) include both, as ZRANGE
// key 1 5 does, and take negative ranks from the end; Span(1, 5) is half-open, as a slice
// s[1:5], and what RankSpan, ScoreSpan and LexSpan return.
//
// A bound of ±Inf includes infinite scores unless it is exclusive. A range with a NaN
// bound, or with Min above Max, is empty.
type ScoreRange struct {
	Min, Max                   float64
	MinExclusive, MaxExclusive bool
}

// HalfOpen returns the range of the scores that are at least from and less than to: of consecutive
// half-open ranges each score is in one.
func HalfOpen(from, to float64) ScoreRange { return ScoreRange{Min: from, Max: to, MaxExclusive: true} }

// LexBound is a bound on members. With Inf -1 it orders before every member
// (Redis's "-"), with Inf +1 after every member ("+"); with Inf 0 the bound is
// Member.
type LexBound struct {
	Member    string
	Exclusive bool
	Inf       int8
}

// LexRange is an interval of members in byte order.
type LexRange struct {
	Min, Max LexBound
}

// RankSpan converts the inclusive ranks start and stop to a span. Negative ranks
// count from the end: -1 is the last element. All values are valid; ranks outside
// the set are clamped. O(1).
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

// ScoreSpan returns the span of the elements with scores in r. O(log n).
func (s *Set) ScoreSpan(r ScoreRange) (lo, hi int) {
	if !(r.Min <= r.Max) {
		return 0, 0
	}
	lo = s.scoresBelow(r.Min, r.MinExclusive)
	hi = s.scoresBelow(r.Max, !r.MaxExclusive)
	return lo, max(lo, hi)
}

// scoresBelow returns the number of scores below x, or up to x if inclusive.
func (s *Set) scoresBelow(x float64, inclusive bool) int {
	if inclusive {
		if math.IsInf(x, 1) {
			return s.Len()
		}
		x = math.Nextafter(x, math.Inf(1))
	}
	return s.below(x, "")
}

// LexSpan returns the span of the elements with members in r. All scores must be
// equal, as for ZRANGEBYLEX; otherwise members are not ordered, and the result is
// an unspecified valid span. O(log n) if all scores are equal, else O(log² n).
func (s *Set) LexSpan(r LexRange) (lo, hi int) {
	lo = s.membersBelow(r.Min, r.Min.Exclusive)
	hi = s.membersBelow(r.Max, !r.Max.Exclusive)
	return lo, max(lo, hi)
}

// membersBelow returns the number of members below b, or up to b if inclusive.
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

// Span yields the elements at ranks [lo, hi) in ascending order. Ranks outside the
// set are ignored. O(log n + m) for m elements.
//
// Members and scores must not be changed during an iteration of this or any other
// kind. If the body of a loop changes them, the iteration panics, at once or after
// some further elements, unless the loop ends before.
func (s *Set) Span(lo, hi int) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) { s.ascend(max(lo, 0), min(hi, s.Len()), yield) }
}

// SpanBackward is Span in descending order.
func (s *Set) SpanBackward(lo, hi int) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) { s.descend(max(lo, 0), min(hi, s.Len()), yield) }
}

// RemoveSpan removes the elements at ranks [lo, hi) and returns their number. O(m
// log n) for m elements.
func (s *Set) RemoveSpan(lo, hi int) int {
	lo, hi = max(lo, 0), min(hi, s.Len())
	if lo >= hi {
		return 0
	}
	s.removeRange(lo, hi)
	return hi - lo
}

// All yields all elements in ascending order.
func (s *Set) All() iter.Seq2[string, float64] { return s.Span(0, math.MaxInt) }

// Backward yields all elements in descending order.
func (s *Set) Backward() iter.Seq2[string, float64] { return s.SpanBackward(0, math.MaxInt) }

// ByRank yields the elements of RankSpan(start, stop) in ascending order.
func (s *Set) ByRank(start, stop int) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		lo, hi := s.RankSpan(start, stop)
		s.ascend(lo, hi, yield)
	}
}

// ByRankBackward yields the elements of RankSpan(start, stop) in descending order.
// Unlike in ZREVRANGE, ranks count from the lowest element.
func (s *Set) ByRankBackward(start, stop int) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		lo, hi := s.RankSpan(start, stop)
		s.descend(lo, hi, yield)
	}
}

// ByScore yields the elements with scores in r in ascending order.
func (s *Set) ByScore(r ScoreRange) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		lo, hi := s.ScoreSpan(r)
		s.ascend(lo, hi, yield)
	}
}

// ByScoreBackward yields the elements with scores in r in descending order.
func (s *Set) ByScoreBackward(r ScoreRange) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		lo, hi := s.ScoreSpan(r)
		s.descend(lo, hi, yield)
	}
}

// ByLex yields the elements with members in r in ascending order; see LexSpan.
func (s *Set) ByLex(r LexRange) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		lo, hi := s.LexSpan(r)
		s.ascend(lo, hi, yield)
	}
}

// ByLexBackward yields the elements with members in r in descending order; see
// LexSpan.
func (s *Set) ByLexBackward(r LexRange) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		lo, hi := s.LexSpan(r)
		s.descend(lo, hi, yield)
	}
}

// CountScore returns the number of elements with scores in r. O(log n).
func (s *Set) CountScore(r ScoreRange) int {
	lo, hi := s.ScoreSpan(r)
	return hi - lo
}

// CountLex returns the number of elements with members in r; see LexSpan for the
// cost.
func (s *Set) CountLex(r LexRange) int {
	lo, hi := s.LexSpan(r)
	return hi - lo
}

// RemoveRank removes the elements of RankSpan(start, stop) and returns their
// number.
func (s *Set) RemoveRank(start, stop int) int { return s.RemoveSpan(s.RankSpan(start, stop)) }

// RemoveScore removes the elements with scores in r and returns their number.
func (s *Set) RemoveScore(r ScoreRange) int { return s.RemoveSpan(s.ScoreSpan(r)) }

// RemoveLex removes the elements with members in r and returns their number; see
// LexSpan.
func (s *Set) RemoveLex(r LexRange) int { return s.RemoveSpan(s.LexSpan(r)) }
