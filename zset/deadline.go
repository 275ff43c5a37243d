package zset

import (
	"fmt"
	"math"
)

// Members may have deadlines. The deadline index is a set of the same members with
// their deadlines as scores, so the next deadline is its first element. The indexed
// struct holds it. A packed set with deadlines has an indexed struct that is
// otherwise empty and stays packed. So a set without deadlines pays one nil pointer
// if it is indexed, and nothing if it is packed.
//
// A set reads no clock: Expire takes the time.

// MaxDeadline is the maximum deadline: the range in which float64 represents every
// integer.
const MaxDeadline = 1 << 53

// SetDeadline sets the deadline of member, from 1 to MaxDeadline in the caller's
// time unit; 0 removes it. Other values panic. It returns the previous deadline, 0
// for none, and whether member exists. Score changes keep the deadline; removal of
// the member removes it. O(log n).
func (s *Set) SetDeadline(member string, at int64) (had int64, ok bool) {
	had, ok = s.Deadline(member)
	if !ok || had == at {
		return had, ok
	}
	if at < 0 || at > MaxDeadline {
		panic(fmt.Sprintf("BUG: zset: deadline %d is out of range", at))
	}
	switch {
	case at == 0:
		s.dropDeadline(member)
	default:
		x := s.extend()
		if x.indexed == nil {
			x.indexed = new(indexed)
		}
		m := x.indexed
		if m.deadlines == nil {
			m.deadlines = new(Set)
		}
		m.deadlines.put(member, float64(at), 0, false)
	}
	if observer := s.observer(); observer != nil {
		observer.Deadline(member, at)
	}
	if s.Tracked() != nil {
		score, _ := s.Score(member)
		s.touch(score)
	}
	return had, true
}

// SetDeadlineBytes is SetDeadline for a byte slice.
func (s *Set) SetDeadlineBytes(member []byte, at int64) (had int64, ok bool) {
	return s.SetDeadline(view(member), at)
}

// dropDeadline removes the deadline of member, if any. The set must have deadlines.
func (s *Set) dropDeadline(member string) {
	x := s.extended()
	x.indexed.dropDeadline(member)
	if x.packed != nil && x.indexed.deadlines == nil {
		x.indexed = nil
		s.reduce()
	}
}

func (m *indexed) dropDeadline(member string) {
	if _, had := m.deadlines.Remove(member); had && m.deadlines.Len() == 0 {
		m.deadlines = nil
	}
}

// Deadline returns the deadline of member, 0 if it has none, and whether member
// exists. O(1).
func (s *Set) Deadline(member string) (at int64, ok bool) {
	if _, ok = s.Score(member); ok {
		if d := s.Deadlines(); d != nil {
			score, _ := d.Score(member)
			at = int64(score)
		}
	}
	return at, ok
}

// DeadlineBytes is Deadline for a byte slice.
func (s *Set) DeadlineBytes(member []byte) (at int64, ok bool) { return s.Deadline(view(member)) }

// NextDeadline returns the earliest deadline, and whether there is one. O(log n).
func (s *Set) NextDeadline() (at int64, ok bool) {
	d := s.Deadlines()
	if d == nil {
		return 0, false
	}
	e, ok := d.First()
	return int64(e.Score), ok
}

// Deadlines returns the deadline index, a set of members with deadlines as scores,
// or nil. The caller must not modify it. It is valid until the set changes.
func (s *Set) Deadlines() *Set {
	if m := s.indexed(); m != nil {
		return m.deadlines
	}
	return nil
}

// Due returns the number of members with a deadline before now. O(log n).
func (s *Set) Due(now int64) int {
	if d := s.Deadlines(); d != nil {
		return d.CountScore(ScoreRange{Min: math.Inf(-1), Max: float64(now), MaxExclusive: true})
	}
	return 0
}

// Expire removes members with a deadline before now in the order of their
// deadlines, at most limit of them, and returns their number. It calls gone for
// each removed element, unless gone is nil. O(m log n) for m removals.
func (s *Set) Expire(now int64, limit int, gone func(Element)) int {
	n := 0
	for ; n < limit; n++ {
		if at, ok := s.NextDeadline(); !ok || at >= now {
			break
		}
		first, _ := s.Deadlines().First()
		score, _ := s.Remove(first.Member)
		if gone != nil {
			gone(Element{first.Member, score})
		}
	}
	return n
}

// checkDeadlines verifies the invariants of the deadline index: it is not empty,
// its members exist, and its scores are valid deadlines.
func (s *Set) checkDeadlines() error {
	d := s.Deadlines()
	if d == nil {
		return nil
	}
	if err := d.Check(); err != nil {
		return fmt.Errorf("deadlines: %w", err)
	}
	if d.Len() == 0 || d.Deadlines() != nil {
		return fmt.Errorf("the deadline index has %d elements, or deadlines of its own", d.Len())
	}
	for member, at := range d.All() {
		if _, ok := s.Score(member); !ok || at < 1 || at > MaxDeadline {
			return fmt.Errorf("the deadline of %q is %v, and the member exists: %v", member, at, ok)
		}
	}
	return nil
}
