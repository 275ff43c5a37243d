package zset

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unsafe"
)

// Set is a sorted set of members with scores. The zero value is an empty set, ready
// to use. Copy it only with Clone. Concurrent reads are safe; a write needs
// exclusive access.
//
// A set is packed or indexed (see the package documentation). An indexed set
// becomes packed again only when it becomes empty, because a Scan cursor is a
// position in its hash table.
type Set struct {
	_    noCopy
	form *form // nil if the set is empty
}

// noCopy makes go vet report copies of a struct that contains it: the copylocks check
// looks for these methods. It has no size, and is not the last field, which would be
// padded.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Observer receives every change of a set, in order (see Internal.Observe), for a
// journal or a replica. All fields must be set. The functions run synchronously
// during the change, must not modify the set, and may use the strings only until
// they return.
type Observer struct {
	Put      func(member string, score float64) // member is new, or has a new score
	Deadline func(member string, at int64)      // member has a new deadline; 0: none
	Removed  func(member string)                // member was removed, with its deadline
	Cleared  func()                             // all members were removed
}

// Element is a member with its score.
type Element struct {
	Member string
	Score  float64
}

// less reports whether (aScore, aMember) orders before (bScore, bMember): by score,
// then by the bytes of the member.
func less(aScore float64, aMember string, bScore float64, bMember string) bool {
	return aScore < bScore || aScore == bScore && aMember < bMember
}

// Cond is a set of conditions on an addition, as the options of ZADD. All of them
// must hold. The caller rejects contradictory combinations, such as NX with XX.
type Cond uint8

const (
	NX Cond = 1 << iota // only add new members
	XX                  // only update members that exist
	GT                  // only update to a score that is greater; new members are added
	LT                  // only update to a score that is less; new members are added
)

// String returns the names of the conditions, such as "NX" or "XX|GT", and "none"
// if there are none.
func (c Cond) String() string {
	if c == 0 {
		return "none"
	}
	var names []string
	for i, name := range [...]string{"NX", "XX", "GT", "LT"} {
		if bit := Cond(1) << i; c&bit != 0 {
			names = append(names, name)
			c &^= bit
		}
	}
	if c != 0 {
		names = append(names, fmt.Sprintf("Cond(%#x)", uint8(c)))
	}
	return strings.Join(names, "|")
}

// Outcome is the result of an addition.
type Outcome uint8

const (
	Rejected   Outcome = iota // a condition was not met; nothing changed
	NotANumber                // the score would be NaN; nothing changed
	Unchanged                 // the member had this score
	Updated                   // the member had another score
	Added                     // the member is new
)

// String returns the name of the outcome, such as "Added".
func (o Outcome) String() string {
	names := [...]string{"Rejected", "NotANumber", "Unchanged", "Updated", "Added"}
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// judge returns the outcome for a member that has the score old and would get
// score.
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

// judgeNew returns the outcome for a member that does not exist.
func (c Cond) judgeNew(score float64) Outcome {
	switch {
	case math.IsNaN(score):
		return NotANumber
	case c&XX != 0:
		return Rejected
	}
	return Added
}

// view returns b as a string without copying. The string is valid until b changes,
// so no structure may retain it.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// hasLongMember reports whether a member is too long for a packed set.
func hasLongMember(elements []Element) bool {
	for _, e := range elements {
		if len(e.Member) > packedMemberMax {
			return true
		}
	}
	return false
}

// distinct removes duplicates from at most packedMax elements. Of the elements with
// the same member one remains, with the last score.
func distinct(elements []Element) []Element {
	var tags [packedMax]uint8
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

// sorted sorts elements in place, if necessary, and returns them.
func sorted(elements []Element) []Element {
	if !slices.IsSortedFunc(elements, compare) {
		slices.SortFunc(elements, compare)
	}
	return elements
}

// compare returns -1, 0 or 1, as a is before b, equal to it or after it in the order of the set.
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
	if f, ok := s.packed(); ok {
		return f.len()
	}
	return s.indexed().index.Len()
}

// Score returns the score of member. O(1), no allocation.
func (s *Set) Score(member string) (float64, bool) {
	if f, ok := s.packed(); ok {
		if i := f.find(member, tagOf(member)); i >= 0 {
			return f.score(i), true
		}
		return 0, false
	}
	return s.indexed().index.Get(member)
}

// put implements all additions: it adds or updates member, or with incr adds score
// to the current score. It copies member if it is new, and notifies the observer.
func (s *Set) put(member string, score float64, cond Cond, incr bool) (o Outcome, old, now float64) {
	o, old, now = s.apply(member, score, cond, incr)
	x := s.extended()
	if x == nil || o < Updated {
		return o, old, now
	}
	if x.observer != nil {
		x.observer.Put(member, now)
	}
	if m := x.indexed; m != nil && m.reach != nil {
		if o == Updated {
			m.reach.Add(old)
		}
		m.reach.Add(now)
	}
	return o, old, now
}

func (s *Set) apply(member string, score float64, cond Cond, incr bool) (o Outcome, old, now float64) {
	f, ok := s.packed()
	if !ok {
		return s.indexed().put(member, score, cond, incr)
	}
	tag := tagOf(member)
	i := f.find(member, tag)
	if i < 0 {
		if o = cond.judgeNew(score); o != Added {
			return o, 0, 0
		}
		if f.len() == packedMax || len(member) > packedMemberMax {
			s.toIndexed(f, Element{member, score})
			return o, 0, score
		}
		s.setPacked(f.insert(f.search(score, member), score, member, tag))
		return o, 0, score
	}
	old = f.score(i)
	if incr {
		score += old
	}
	if o = cond.judge(old, score); o != Updated {
		return o, old, old
	}
	s.setPacked(f.move(i, f.search(score, member), score))
	return o, old, score
}

// toIndexed converts a packed set to the indexed representation and adds e.
func (s *Set) toIndexed(f *packed, e Element) {
	m := newIndexed(slices.Insert(f.unpack(), f.search(e.Score, e.Member), e))
	m.deadlines, m.marked = s.Deadlines(), s.Internal().Marked()
	x := s.extend()
	x.packed, x.indexed = nil, m
}

// Add sets the score of member, and adds member if it is new. O(log n).
func (s *Set) Add(member string, score float64) Outcome {
	o, _, _ := s.put(member, score, 0, false)
	return o
}

// AddIf is Add under conditions. It also returns the previous score of member, 0 if
// member is new.
func (s *Set) AddIf(member string, score float64, cond Cond) (o Outcome, old float64) {
	o, old, _ = s.put(member, score, cond, false)
	return o, old
}

// AddNX adds member if it is new, and reports whether it is: AddIf with NX. O(log n).
func (s *Set) AddNX(member string, score float64) (added bool) {
	o, _ := s.AddIf(member, score, NX)
	return o == Added
}

// AddXX gives member another score if it exists, and reports whether it has changed: AddIf with
// XX. O(log n).
func (s *Set) AddXX(member string, score float64) (changed bool) {
	o, _ := s.AddIf(member, score, XX)
	return o == Updated
}

// AddGT adds member, or raises its score if this one is greater, and reports whether the set has
// changed: AddIf with GT. O(log n).
func (s *Set) AddGT(member string, score float64) (changed bool) {
	o, _ := s.AddIf(member, score, GT)
	return o >= Updated
}

// AddLT is AddGT for scores that are less.
func (s *Set) AddLT(member string, score float64) (changed bool) {
	o, _ := s.AddIf(member, score, LT)
	return o >= Updated
}

// Insert adds the members and scores of an iteration, such as maps.All of a map or the elements of
// another set; of equal members the last one counts. It returns how many are new. Scores that are not a
// number are left out. The iteration must not read the set. O(n log n) for n members.
func (s *Set) Insert(elements iter.Seq2[string, float64]) (added int) {
	for member, score := range elements {
		if s.Add(member, score) == Added {
			added++
		}
	}
	return added
}

// Collect returns a new set of the members and scores of an iteration: see [Set.Insert].
func Collect(elements iter.Seq2[string, float64]) *Set {
	s := new(Set)
	s.Insert(elements)
	return s
}

// Incr adds delta to the score of member under conditions, and returns the new
// score. A new member starts at 0. O(log n).
func (s *Set) Incr(member string, delta float64, cond Cond) (o Outcome, score float64) {
	o, _, score = s.put(member, delta, cond, true)
	return o, score
}

// Batch is the maximum number of members of a call of Prefetch.
const Batch = 16

// Contains reports whether member is in the set. O(1).
func (s *Set) Contains(member string) bool {
	_, ok := s.Score(member)
	return ok
}

// Remove removes member and returns its score. O(log n).
func (s *Set) Remove(member string) (score float64, ok bool) {
	if f, packed := s.packed(); packed {
		i := f.find(member, tagOf(member))
		if i < 0 {
			return 0, false
		}
		score = f.score(i)
		s.removeRange(i, i+1)
		return score, true
	}
	if s.Len() > 1 {
		if score, ok = s.indexed().remove(member); ok {
			if observer := s.observer(); observer != nil {
				observer.Removed(member)
			}
			s.touch(score)
		}
		return score, ok
	}
	if score, ok = s.Score(member); ok {
		s.Clear()
	}
	return score, ok
}

// Rank returns the number of elements that order before member. O(log n), no
// allocation.
func (s *Set) Rank(member string) (int, bool) {
	if f, ok := s.packed(); ok {
		i := f.find(member, tagOf(member))
		return max(i, 0), i >= 0
	}
	m := s.indexed()
	score, ok := m.index.Get(member)
	if !ok {
		return 0, false
	}
	return m.below(score, member), true
}

// RevRank is Rank in descending order: the highest element has 0.
func (s *Set) RevRank(member string) (int, bool) {
	rank, ok := s.Rank(member)
	if !ok {
		return 0, false
	}
	return s.Len() - 1 - rank, true
}

// At returns the element at a rank. Negative ranks count from the end: -1 is the
// last element. O(log n).
func (s *Set) At(rank int) (Element, bool) {
	if rank < 0 {
		rank += s.Len()
	}
	return s.at(rank)
}

// at is At for ranks from 0.
func (s *Set) at(rank int) (Element, bool) {
	if rank < 0 || rank >= s.Len() {
		return Element{}, false
	}
	if f, ok := s.packed(); ok {
		f.expose()
		return f.element(rank), true
	}
	return s.indexed().at(rank), true
}

// below returns the number of elements that order before (score, member).
func (s *Set) below(score float64, member string) int {
	if f, ok := s.packed(); ok {
		return f.search(score, member)
	}
	return s.indexed().below(score, member)
}

// ascend yields the elements at ranks [lo, hi) in ascending order. It panics if the
// set was changed when yield returns true.
func (s *Set) ascend(lo, hi int, yield func(string, float64) bool) {
	f, ok := s.packed()
	if !ok {
		s.indexed().ascend(lo, hi, yield)
		return
	}
	if lo >= hi {
		return
	}
	f.expose()
	was := f.header()
	size := f.bytes()
	for i, offset := range f.offsets()[lo:hi] {
		if !yield(f.memberAt(size-int(offset)), f.score(lo+i)) {
			return
		}
		if now, _ := s.packed(); now != f || f.header() != was {
			panicChanged()
		}
	}
}

// descend yields the elements at ranks [lo, hi) in descending order. It panics as
// ascend does.
func (s *Set) descend(lo, hi int, yield func(string, float64) bool) {
	f, ok := s.packed()
	if !ok {
		s.indexed().descend(lo, hi, yield)
		return
	}
	if lo >= hi {
		return
	}
	f.expose()
	was := f.header()
	size, offsets := f.bytes(), f.offsets()
	for i := hi - 1; i >= lo; i-- {
		if !yield(f.memberAt(size-int(offsets[i])), f.score(i)) {
			return
		}
		if now, _ := s.packed(); now != f || f.header() != was {
			panicChanged()
		}
	}
}

// panicChanged reports a change of a set by the body of a loop over it.
func panicChanged() { panic("BUG: zset: the set was changed during an iteration over it") }

// removeRange removes the elements at ranks [lo, hi), which must exist.
func (s *Set) removeRange(lo, hi int) {
	if hi-lo == s.Len() {
		s.Clear()
		return
	}
	if observer := s.observer(); observer != nil {
		for member := range s.Span(lo, hi) {
			observer.Removed(member)
		}
	}
	f, ok := s.packed()
	if !ok {
		if m := s.indexed(); m.reach != nil {
			m.reach.Add(m.at(lo).Score)
			m.reach.Add(m.at(hi - 1).Score)
		}
		s.indexed().removeRange(lo, hi)
		return
	}
	for i := lo; i < hi && s.indexed() != nil; i++ {
		s.dropDeadline(f.member(i))
	}
	s.setPacked(f.removeRange(lo, hi))
}

// First returns the lowest element.
func (s *Set) First() (Element, bool) { return s.at(0) }

// Last returns the highest element.
func (s *Set) Last() (Element, bool) { return s.at(s.Len() - 1) }

// PopMin removes the n lowest elements, or all if there are fewer, and returns them
// in ascending order.
func (s *Set) PopMin(n int) []Element { return s.popUp(0, min(n, s.Len())) }

// PopMax removes the n highest elements, or all if there are fewer, and returns
// them in descending order.
func (s *Set) PopMax(n int) []Element {
	size := s.Len()
	return s.popDown(size-max(0, min(n, size)), size)
}

// Clear removes all elements. O(1).
func (s *Set) Clear() {
	x := s.extended()
	if x == nil {
		s.form = nil
		return
	}
	if x.observer != nil && s.Len() > 0 {
		x.observer.Cleared()
	}
	if x.indexed != nil {
		x.indexed.version++
	}
	x.packed, x.indexed = nil, nil
	s.reduce()
}

// Clone returns a copy of the set. O(1): the two sets share their structures
// copy-on-write. The first change of a structure copies it: 10 KB or less, and some
// 20 bytes for each 100 elements. Clone counts as a modification of the original;
// afterwards different goroutines may read and modify the two sets without
// synchronization.
func (s *Set) Clone() *Set {
	c := new(Set)
	f, _ := s.packed()
	c.setPacked(f.clone())
	if m := s.indexed(); m != nil {
		c.extend().indexed = m.clone()
	}
	return c
}

// Scan passes about count elements to yield and returns the next cursor. A scan
// begins with cursor 0 and ends when Scan returns 0. An element that is present
// during the whole scan is passed at least once, regardless of changes between the
// calls; it is passed more than once only while the set is packed. The order is
// unspecified. Any cursor value is safe. yield must not modify the set.
func (s *Set) Scan(cursor uint64, count int, yield func(member string, score float64)) (next uint64) {
	if !s.isPacked() {
		return s.indexed().index.Scan(cursor, count, yield)
	}
	for member, score := range s.All() {
		yield(member, score)
	}
	return 0
}

// Random returns an element with uniform probability. O(1).
func (s *Set) Random(r *rand.Rand) (Element, bool) {
	if !s.isPacked() {
		member, score := s.indexed().index.Random(r)
		return Element{member, score}, true
	}
	if s.Len() == 0 {
		return Element{}, false
	}
	return s.at(r.IntN(s.Len()))
}

// Bytes estimates the memory of the set in bytes, without member bytes. O(1).
func (s *Set) Bytes() int {
	size := s.bytes()
	if f, _ := s.packed(); f != nil {
		size += f.bytes() - (f.liveBytes() - int(f.n))
	}
	if d := s.Deadlines(); d != nil {
		size += d.Bytes()
		// The deadline index has its own copies of members.
		if f, ok := d.packed(); ok {
			size += f.liveBytes()
		} else {
			size += d.indexed().index.arena.liveBytes
		}
	}
	return size
}

// bytes estimates the memory of the set in bytes, without a packed buffer, the arena and
// the deadline index.
func (s *Set) bytes() int {
	size := int(unsafe.Sizeof(*s))
	x := s.extended()
	if x == nil {
		return size
	}
	size += int(unsafe.Sizeof(*x))
	switch m := x.indexed; {
	case m == nil:
	case x.packed != nil:
		size += int(unsafe.Sizeof(*m))
	default:
		size += m.bytes()
	}
	return size
}
