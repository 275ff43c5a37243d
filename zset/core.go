package zset

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
)

// Set is an ordered set. The zero value is empty and ready to use.
type Set struct {
	few []Element
}

// Load returns a set of the elements, which it may reorder.
func Load(elements []Element) *Set {
	s := new(Set)
	for _, e := range elements {
		s.Add(e.Member, e.Score)
	}
	return s
}

func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.few)
}

func (s *Set) Score(member string) (float64, bool) {
	if i := s.index(member); i >= 0 {
		return s.few[i].Score, true
	}
	return 0, false
}

func (s *Set) index(member string) int {
	return slices.IndexFunc(s.few, func(e Element) bool { return e.Member == member })
}

func (s *Set) put(member string, borrowed bool, score float64, cond Cond, incr bool) (o Outcome, old, now float64) {
	i := s.index(member)
	if i < 0 {
		if o = cond.judgeNew(score); o != Added {
			return o, 0, 0
		}
		member = strings.Clone(member)
	} else {
		old = s.few[i].Score
		if incr {
			score += old
		}
		if o = cond.judge(old, score); o != Updated {
			return o, old, old
		}
		member = s.few[i].Member
		s.few = slices.Delete(slices.Clone(s.few), i, i+1)
	}
	s.few = slices.Insert(slices.Clone(s.few), s.below(score, member), Element{member, score})
	return o, old, score
}

func (s *Set) Remove(member string) (score float64, ok bool) {
	i := s.index(member)
	if i < 0 {
		return 0, false
	}
	score = s.few[i].Score
	s.cut(i, i+1)
	return score, true
}

func (s *Set) Rank(member string) (int, bool) {
	i := s.index(member)
	return max(i, 0), i >= 0
}

func (s *Set) at(rank int) (Element, bool) {
	if rank < 0 || rank >= s.Len() {
		return Element{}, false
	}
	return s.few[rank], true
}

func (s *Set) below(score float64, member string) int {
	i := 0
	for i < len(s.few) && less(s.few[i].Score, s.few[i].Member, score, member) {
		i++
	}
	return i
}

func (s *Set) ascend(lo, hi int, yield func(string, float64) bool) {
	for ; lo < hi && yield(s.few[lo].Member, s.few[lo].Score); lo++ {
	}
}

func (s *Set) descend(lo, hi int, yield func(string, float64) bool) {
	for hi--; lo <= hi && yield(s.few[hi].Member, s.few[hi].Score); hi-- {
	}
}

func (s *Set) cut(lo, hi int) { s.few = slices.Delete(slices.Clone(s.few), lo, hi) }

func (s *Set) Clone() *Set { return &Set{few: s.few} }
func (s *Set) Clear()      { s.few = nil }
func (s *Set) Check() error {
	if !slices.IsSortedFunc(s.few, func(a, b Element) int {
		if less(a.Score, a.Member, b.Score, b.Member) {
			return -1
		}
		return 1
	}) {
		return errors.New("out of order")
	}
	return nil
}
func (s *Set) Bytes() int { return 24 + 24*cap(s.few) }

func (s *Set) Scan(cursor uint64, count int, yield func(member string, score float64)) (next uint64) {
	for _, e := range s.few {
		yield(e.Member, e.Score)
	}
	return 0
}

func (s *Set) Random(r *rand.Rand) (Element, bool) {
	if s.Len() == 0 {
		return Element{}, false
	}
	return s.At(r.IntN(s.Len()))
}
