package zset

import (
	"fmt"
	"math"
)

// Members may have deadlines. The index of them is a set again, of members scored by
// their deadlines, so the next is known at once. It hangs on the large shape, which
// beside a few has nothing else: so a set without deadlines has one pointer more if it
// is large, and nothing if it is small, and a small one with deadlines stays packed.
//
// A set does not look at a clock: Expire is told the time.

// MaxDeadline is the latest deadline that there can be: beyond, not every integer is
// a score.
const MaxDeadline = 1 << 53

// SetDeadline gives member a deadline, from 1 to MaxDeadline in whatever unit the
// caller counts time in, or with 0 takes it away. It returns the one that member had,
// 0 for none, and whether there is such a member. The score, and what changes it,
// leave the deadline alone; it goes with the member. O(log n).
func (s *Set) SetDeadline(member string, at int64) (had int64, ok bool) {
	had, ok = s.Deadline(member)
	if !ok || had == at {
		return had, ok
	}
	if at < 0 || at > MaxDeadline {
		panic(fmt.Sprintf("BUG: zset: a deadline of %d", at))
	}
	switch {
	case at == 0:
		s.dropDeadline(member)
	default:
		if s.many == nil {
			s.many = new(many)
		}
		m := s.many
		if m.deadlines == nil {
			m.deadlines = new(Set)
		}
		m.deadlines.put(member, float64(at), 0, false)
	}
	if s.observer != nil {
		s.observer.Deadline(member, at)
	}
	return had, true
}

// SetDeadlineBytes is SetDeadline.
func (s *Set) SetDeadlineBytes(member []byte, at int64) (had int64, ok bool) {
	return s.SetDeadline(view(member), at)
}

// dropDeadline takes the deadline of a member away, if it has one; some member must.
func (s *Set) dropDeadline(member string) {
	s.many.dropDeadline(member)
	if s.few != nil && s.many.deadlines == nil {
		s.many = nil
	}
}

func (m *many) dropDeadline(member string) {
	if _, had := m.deadlines.Remove(member); had && m.deadlines.Len() == 0 {
		m.deadlines = nil
	}
}

// Deadline returns the deadline of member, 0 if it has none, and whether there is
// such a member. O(1).
func (s *Set) Deadline(member string) (at int64, ok bool) {
	if _, ok = s.Score(member); !ok || s.many == nil || s.many.deadlines == nil {
		return 0, ok
	}
	score, _ := s.many.deadlines.Score(member)
	return int64(score), true
}

// DeadlineBytes is Deadline.
func (s *Set) DeadlineBytes(member []byte) (at int64, ok bool) { return s.Deadline(view(member)) }

// NextDeadline returns the earliest deadline, and whether there is one. O(log n).
func (s *Set) NextDeadline() (at int64, ok bool) {
	if s.many == nil || s.many.deadlines == nil {
		return 0, false
	}
	e, ok := s.many.deadlines.First()
	return int64(e.Score), ok
}

// Deadlines returns the members that have deadlines, scored by them, or nil. It must
// not be changed, and is good until the set is.
func (s *Set) Deadlines() *Set {
	if s.many == nil {
		return nil
	}
	return s.many.deadlines
}

// Due returns how many members have a deadline before now. O(log n).
func (s *Set) Due(now int64) int {
	if d := s.Deadlines(); d != nil {
		return d.CountScore(ScoreRange{Min: math.Inf(-1), Max: float64(now), MaxExclusive: true})
	}
	return 0
}

// Expire removes members whose deadline is before now, the earliest first, at most
// limit of them, and passes each to gone, which may be nil. It returns how many there
// were. O(log n) for each.
func (s *Set) Expire(now int64, limit int, gone func(Element)) int {
	n := 0
	for ; n < limit; n++ {
		if at, ok := s.NextDeadline(); !ok || at >= now {
			break
		}
		first, _ := s.many.deadlines.First()
		score, _ := s.Remove(first.Member)
		if gone != nil {
			gone(Element{first.Member, score})
		}
	}
	return n
}

// checkDeadlines is the part of Check that is about deadlines.
func (s *Set) checkDeadlines() error {
	d := s.Deadlines()
	if d == nil {
		return nil
	}
	if err := d.Check(); err != nil {
		return fmt.Errorf("deadlines: %w", err)
	}
	if d.Len() == 0 || d.Deadlines() != nil {
		return fmt.Errorf("an index of %d deadlines", d.Len())
	}
	for member, at := range d.All() {
		if _, ok := s.Score(member); !ok || at < 1 || at > MaxDeadline {
			return fmt.Errorf("the deadline of %q is %v, the member's being there is %v", member, at, ok)
		}
	}
	return nil
}
