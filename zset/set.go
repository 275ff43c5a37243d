package zset

import (
	"math"
	"unsafe"
)

// Element is a member with its score.
type Element struct {
	Member string
	Score  float64
}

// less is the order of a set: by score, then by the bytes of the member.
func less(aScore float64, aMember string, bScore float64, bMember string) bool {
	return aScore < bScore || aScore == bScore && aMember < bMember
}

// Cond restricts an addition, as ZADD's options do. NX with any other is for the
// caller to refuse; here every condition has to hold.
type Cond uint8

const (
	NX Cond = 1 << iota // only add new members
	XX                  // only update members that exist
	GT                  // only update to a score that is greater; new members are added
	LT                  // only update to a score that is less; new members are added
)

// Outcome says what an addition did.
type Outcome uint8

const (
	Rejected   Outcome = iota // a condition was not met; nothing changed
	NotANumber                // the score would be NaN; nothing changed
	Unchanged                 // the member had this score
	Updated                   // the member had another score
	Added                     // the member is new
)

// judge decides what becomes of a member that has the score old and is to have score.
func (c Cond) judge(old, score float64) Outcome {
	switch {
	case math.IsNaN(score):
		return NotANumber
	case c&NX != 0, c&GT != 0 && !(score > old), c&LT != 0 && !(score < old):
		return Rejected
	case score == old:
		return Unchanged
	}
	return Updated
}

// judgeNew decides what becomes of a member that does not exist.
func (c Cond) judgeNew(score float64) Outcome {
	switch {
	case math.IsNaN(score):
		return NotANumber
	case c&XX != 0:
		return Rejected
	}
	return Added
}

// view is b as a string for as long as a call lasts: nothing may keep it.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Add gives member its score, adding it if it is new. O(log n).
func (s *Set) Add(member string, score float64) Outcome {
	o, _, _ := s.put(member, false, score, 0, false)
	return o
}

// AddIf is Add under conditions. It also returns the score that member had, 0 if it
// is new.
func (s *Set) AddIf(member string, score float64, cond Cond) (o Outcome, old float64) {
	o, old, _ = s.put(member, false, score, cond, false)
	return o, old
}

// AddIfBytes is AddIf; member is copied only if it becomes a new element.
func (s *Set) AddIfBytes(member []byte, score float64, cond Cond) (o Outcome, old float64) {
	o, old, _ = s.put(view(member), true, score, cond, false)
	return o, old
}

// Incr adds delta to the score of member, which is 0 if it is new, under conditions,
// and returns the score that it now has. O(log n).
func (s *Set) Incr(member string, delta float64, cond Cond) (o Outcome, score float64) {
	o, _, score = s.put(member, false, delta, cond, true)
	return o, score
}

// IncrBytes is Incr; member is copied only if it becomes a new element.
func (s *Set) IncrBytes(member []byte, delta float64, cond Cond) (o Outcome, score float64) {
	o, _, score = s.put(view(member), true, delta, cond, true)
	return o, score
}

// ScoreBytes is Score.
func (s *Set) ScoreBytes(member []byte) (float64, bool) { return s.Score(view(member)) }

// RemoveBytes is Remove.
func (s *Set) RemoveBytes(member []byte) (score float64, ok bool) { return s.Remove(view(member)) }

// RankBytes is Rank.
func (s *Set) RankBytes(member []byte) (int, bool) { return s.Rank(view(member)) }

// RevRank is Rank counted from the highest element, which has 0.
func (s *Set) RevRank(member string) (int, bool) {
	rank, ok := s.Rank(member)
	if !ok {
		return 0, false
	}
	return s.Len() - 1 - rank, true
}

// At returns the element of a rank, of which negative ones count from the end: -1 is
// the last. O(log n).
func (s *Set) At(rank int) (Element, bool) {
	if rank < 0 {
		rank += s.Len()
	}
	return s.at(rank)
}

// First returns the lowest element.
func (s *Set) First() (Element, bool) { return s.at(0) }

// Last returns the highest element.
func (s *Set) Last() (Element, bool) { return s.at(s.Len() - 1) }

// PopMin removes the n lowest elements, or all if there are fewer, and returns them,
// the lowest first.
func (s *Set) PopMin(n int) []Element {
	n = min(n, s.Len())
	if n <= 0 {
		return nil
	}
	popped := make([]Element, 0, n)
	for member, score := range s.Span(0, n) {
		popped = append(popped, Element{member, score})
	}
	s.cut(0, n)
	return popped
}

// PopMax removes the n highest elements, or all if there are fewer, and returns them,
// the highest first.
func (s *Set) PopMax(n int) []Element {
	size := s.Len()
	n = min(n, size)
	if n <= 0 {
		return nil
	}
	popped := make([]Element, 0, n)
	for member, score := range s.SpanBackward(size-n, size) {
		popped = append(popped, Element{member, score})
	}
	s.cut(size-n, size)
	return popped
}
