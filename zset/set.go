package zset

import (
	"bytes"
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"unsafe"
)

// Set is an ordered set of members with scores. The zero value is empty and ready to
// use. It must not be copied other than by Clone.
//
// It takes one of two shapes, a few elements or many, and does not go back from the
// second unless it becomes empty: a cursor of Scan belongs to the table of its set.
type Set struct {
	few      *few  // nil if there are none, or many
	many     *many // beside a few it has their deadlines and nothing else
	observer *Observer
}

// small reports whether the set is a few, or empty.
func (s *Set) small() bool { return s.few != nil || s.many == nil }

// Observer is told of what changes in the sets that it is given to (see
// Set.Observe), in order: for a journal, or a copy that is to follow. None of
// them may be nil. Strings are borrowed for the call.
type Observer struct {
	Put      func(member string, score float64) // member is new, or has another score
	Deadline func(member string, at int64)      // member has another deadline; 0: none
	Removed  func(member string)                // with its deadline
	Cleared  func()                             // every member was removed
}

// Observe makes the set tell o, and nobody else, of every change from now on;
// nobody if o is nil. Clones are not observed.
func (s *Set) Observe(o *Observer) { s.observer = o }

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

// Load returns a set of the elements, whose order does not matter; it may change the
// slice, and keeps copies of the members. Of a member that occurs more than once the
// last score counts; elements whose score is NaN are left out. O(n) if they are in
// order, this way or the other, else O(n log n); several times faster than adding them.
func Load(elements []Element) *Set {
	s := new(Set)
	elements = slices.DeleteFunc(elements, func(e Element) bool { return math.IsNaN(e.Score) })
	if len(elements) <= fewMax && !long(elements) {
		s.few = pack(inOrder(distinct(elements)))
		return s
	}
	s.many = newMany(elements)
	return s
}

// long reports whether a member is too long for a small set.
func long(elements []Element) bool {
	for _, e := range elements {
		if len(e.Member) > fewMemberMax {
			return true
		}
	}
	return false
}

// distinct leaves of the elements with the same member one, with the last one's
// score. There must be at most fewMax.
func distinct(elements []Element) []Element {
	var tags [fewMax]uint8
	n := 0
next:
	for _, e := range elements {
		tag := tagOf(e.Member)
		for i := 0; ; i++ {
			found := bytes.IndexByte(tags[i:n], tag)
			if found < 0 {
				break
			}
			if i += found; elements[i].Member == e.Member {
				elements[i].Score = e.Score
				continue next
			}
		}
		elements[n], tags[n] = e, tag
		n++
	}
	return elements[:n]
}

// inOrder sorts elements.
func inOrder(elements []Element) []Element {
	if !slices.IsSortedFunc(elements, compare) {
		slices.SortFunc(elements, compare)
	}
	return elements
}

// compare is the order of a set.
func compare(a, b Element) int {
	switch {
	case a.Score < b.Score:
		return -1
	case a.Score > b.Score:
		return 1
	}
	return cmp.Compare(a.Member, b.Member)
}

// Len returns the number of elements. O(1).
func (s *Set) Len() int {
	if s.small() {
		return s.few.len()
	}
	return s.many.index.Len()
}

// Score returns the score of member. O(1), no allocation.
func (s *Set) Score(member string) (float64, bool) {
	if s.small() {
		if i := s.few.find(member, tagOf(member)); i >= 0 {
			return s.few.scores()[i], true
		}
		return 0, false
	}
	return s.many.index.Get(member)
}

// put is what all ways to add an element have in common. The member is copied if it is
// new. With incr, score is added to that of the member.
func (s *Set) put(member string, score float64, cond Cond, incr bool) (o Outcome, old, now float64) {
	o, old, now = s.change(member, score, cond, incr)
	if s.observer != nil && o >= Updated {
		s.observer.Put(member, now)
	}
	return o, old, now
}

func (s *Set) change(member string, score float64, cond Cond, incr bool) (o Outcome, old, now float64) {
	if !s.small() {
		return s.many.put(member, score, cond, incr)
	}
	tag := tagOf(member)
	i := s.few.find(member, tag)
	if i < 0 {
		if o = cond.judgeNew(score); o != Added {
			return o, 0, 0
		}
		if s.few.len() == fewMax || len(member) > fewMemberMax {
			s.grow(Element{member, score})
			return o, 0, score
		}
		s.few = s.few.insert(s.few.search(score, member), score, member, tag)
		return o, 0, score
	}
	old = s.few.scores()[i]
	if incr {
		score += old
	}
	if o = cond.judge(old, score); o != Updated {
		return o, old, old
	}
	s.few = s.few.move(i, s.few.search(score, member), score)
	return o, old, score
}

// grow gives a small set the large shape and a new element.
func (s *Set) grow(e Element) {
	elements := slices.Insert(s.few.unpack(), s.few.search(e.Score, e.Member), e)
	deadlines := s.Deadlines()
	s.few, s.many = nil, newMany(elements)
	s.many.deadlines = deadlines
}

// Add gives member its score, adding it if it is new. O(log n).
func (s *Set) Add(member string, score float64) Outcome {
	o, _, _ := s.put(member, score, 0, false)
	return o
}

// AddIf is Add under conditions. It also returns the score that member had, 0 if it
// is new.
func (s *Set) AddIf(member string, score float64, cond Cond) (o Outcome, old float64) {
	o, old, _ = s.put(member, score, cond, false)
	return o, old
}

// AddIfBytes is AddIf; member is copied only if it becomes a new element.
func (s *Set) AddIfBytes(member []byte, score float64, cond Cond) (o Outcome, old float64) {
	o, old, _ = s.put(view(member), score, cond, false)
	return o, old
}

// Incr adds delta to the score of member, which is 0 if it is new, under conditions,
// and returns the score that it now has. O(log n).
func (s *Set) Incr(member string, delta float64, cond Cond) (o Outcome, score float64) {
	o, _, score = s.put(member, delta, cond, true)
	return o, score
}

// IncrBytes is Incr; member is copied only if it becomes a new element.
func (s *Set) IncrBytes(member []byte, delta float64, cond Cond) (o Outcome, score float64) {
	o, _, score = s.put(view(member), delta, cond, true)
	return o, score
}

// ScoreBytes is Score.
func (s *Set) ScoreBytes(member []byte) (float64, bool) { return s.Score(view(member)) }

// Remove removes member and returns the score that it had. O(log n).
func (s *Set) Remove(member string) (score float64, ok bool) {
	if s.small() {
		i := s.few.find(member, tagOf(member))
		if i < 0 {
			return 0, false
		}
		score = s.few.scores()[i]
		s.cut(i, i+1)
		return score, true
	}
	if s.Len() > 1 {
		if score, ok = s.many.remove(member); ok && s.observer != nil {
			s.observer.Removed(member)
		}
		return score, ok
	}
	if score, ok = s.Score(member); ok {
		s.Clear()
	}
	return score, ok
}

// RemoveBytes is Remove.
func (s *Set) RemoveBytes(member []byte) (score float64, ok bool) { return s.Remove(view(member)) }

// Rank returns how many elements are lower than member's. O(log n), no allocation.
func (s *Set) Rank(member string) (int, bool) {
	if s.small() {
		i := s.few.find(member, tagOf(member))
		return max(i, 0), i >= 0
	}
	score, ok := s.many.index.Get(member)
	if !ok {
		return 0, false
	}
	return s.many.below(score, member), true
}

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

// at is At without negative ranks.
func (s *Set) at(rank int) (Element, bool) {
	if rank < 0 || rank >= s.Len() {
		return Element{}, false
	}
	if s.small() {
		return s.few.element(rank), true
	}
	return s.many.at(rank), true
}

// below counts the elements below (score, member).
func (s *Set) below(score float64, member string) int {
	if !s.small() {
		return s.many.below(score, member)
	}
	return s.few.search(score, member)
}

// ascend yields the elements of ranks lo to hi-1, lowest first.
func (s *Set) ascend(lo, hi int, yield func(string, float64) bool) {
	if !s.small() {
		s.many.ascend(lo, hi, yield)
		return
	}
	s.few.ascend(lo, hi, yield)
}

// descend yields the elements of ranks hi-1 to lo, highest first.
func (s *Set) descend(lo, hi int, yield func(string, float64) bool) {
	if !s.small() {
		s.many.descend(lo, hi, yield)
		return
	}
	s.few.descend(lo, hi, yield)
}

// cut removes the elements of ranks lo to hi-1, which must exist.
func (s *Set) cut(lo, hi int) {
	if hi-lo == s.Len() {
		s.Clear()
		return
	}
	if s.observer != nil {
		for member := range s.Span(lo, hi) {
			s.observer.Removed(member)
		}
	}
	if !s.small() {
		s.many.cut(lo, hi)
		return
	}
	for i := lo; i < hi && s.many != nil; i++ {
		s.dropDeadline(s.few.member(i))
	}
	s.few = s.few.cut(lo, hi)
}

// First returns the lowest element.
func (s *Set) First() (Element, bool) { return s.at(0) }

// Last returns the highest element.
func (s *Set) Last() (Element, bool) { return s.at(s.Len() - 1) }

// PopMin removes the n lowest elements, or all if there are fewer, and returns them,
// the lowest first.
func (s *Set) PopMin(n int) []Element { return s.popUp(0, min(n, s.Len())) }

// PopMax removes the n highest elements, or all if there are fewer, and returns them,
// the highest first.
func (s *Set) PopMax(n int) []Element {
	size := s.Len()
	return s.popDown(size-max(0, min(n, size)), size)
}

// Clear removes every element. O(1).
func (s *Set) Clear() {
	if s.observer != nil && s.Len() > 0 {
		s.observer.Cleared()
	}
	*s = Set{observer: s.observer}
}

// Clone returns a set with the same elements. O(1): the two share what neither has
// changed since; a first change after it copies what it touches, 10 KB or less, and
// some 20 bytes for each 100 elements. Clone counts as a change of the original;
// afterwards each of the two may be read or changed without regard to the other.
func (s *Set) Clone() *Set {
	c := &Set{few: s.few.clone()}
	if s.many != nil {
		c.many = s.many.clone()
	}
	return c
}

// Scan passes about count elements to yield and returns the cursor with which to go
// on; 0 begins, and 0 is returned at the end. An element that is there from begin to
// end is passed at least once, whatever else is added or removed between the calls,
// and more than once only while there are few. Elements come in no useful order. A
// cursor that no Scan returned does no harm. The set must not be changed by yield.
func (s *Set) Scan(cursor uint64, count int, yield func(member string, score float64)) (next uint64) {
	if !s.small() {
		return s.many.index.Scan(cursor, count, yield)
	}
	for member, score := range s.All() {
		yield(member, score)
	}
	return 0
}

// Random returns an element, every one being equally likely. O(1).
func (s *Set) Random(r *rand.Rand) (Element, bool) {
	if !s.small() {
		member, score := s.many.index.Random(r)
		return Element{member, score}, true
	}
	if s.few == nil {
		return Element{}, false
	}
	return s.at(r.IntN(s.few.len()))
}

// Weight is Bytes with the members' bytes, and room for more of them. O(1).
func (s *Set) Weight() int {
	size := int(unsafe.Sizeof(*s))
	if s.few != nil {
		size += s.few.bytes()
	}
	switch m := s.many; {
	case m == nil:
	case s.few != nil:
		size += int(unsafe.Sizeof(*m))
	default:
		size += m.bytes() + m.index.arena.size
	}
	if d := s.Deadlines(); d != nil {
		size += d.Weight()
	}
	return size
}

// Bytes estimates the memory that the set takes, without that of the members' bytes. O(1).
func (s *Set) Bytes() int {
	size := int(unsafe.Sizeof(*s))
	if s.few != nil {
		size += s.few.bytes() - (int(s.few.live) - int(s.few.n))
	}
	switch m := s.many; {
	case m == nil:
	case s.few != nil:
		size += int(unsafe.Sizeof(*m))
	default:
		size += m.bytes()
	}
	if d := s.Deadlines(); d != nil {
		size += d.Bytes()
		if d.few != nil { // it has its own copies of members
			size += int(d.few.live)
		} else {
			size += d.many.index.arena.live
		}
	}
	return size
}
