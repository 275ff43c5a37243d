package zset

import (
	"cmp"
	"math"
	"slices"
)

// Reach is the range of the scores that changes of a set touch: those of the elements which they
// add, remove or move, before and after, and of those whose deadlines they set. A reader of
// other scores has seen no change.
type Reach struct {
	Min, Max float64 // no score if Min > Max
	Changes  uint64  // how many there were
}

// NoReach returns a range without a score.
func NoReach() Reach { return Reach{Min: math.Inf(1), Max: math.Inf(-1)} }

// Add extends the range by a score.
func (r *Reach) Add(score float64) {
	r.Min, r.Max = min(r.Min, score), max(r.Max, score)
	r.Changes++
}

// Track makes each change of the set extend r from now on, in place of another range; nil stops
// it. It ends when the set becomes empty, and clones are not tracked. Only an indexed set can be
// tracked: of another one Track returns false. O(1).
func (s *Set) Track(r *Reach) bool {
	if s.isPacked() {
		return false
	}
	s.indexed().reach = r
	return true
}

// Tracked returns the range that changes of the set extend, or nil.
func (s *Set) Tracked() *Reach {
	if s.isPacked() {
		return nil
	}
	return s.indexed().reach
}

// touch extends the range of a tracked set by a score.
func (s *Set) touch(score float64) {
	if m := s.indexed(); m != nil && m.reach != nil {
		m.reach.Add(score)
	}
}

// Place is the position of a member: the number of elements before it, or -1 if there is no such
// member, and its score.
type Place struct {
	Rank  int
	Score float64
}

// Places sets places[i] to that of members[i], for as many members as places has room for. It
// visits them in the order of the set: of members near one another it takes half the time of
// Rank for each. O(n log n) for n members, no allocation.
func (s *Set) Places(members []string, places []Place) {
	members = members[:min(len(members), len(places))]
	if m := s.indexed(); !s.isPacked() {
		for len(members) > 0 {
			n := min(len(members), placesAtOnce)
			m.places(members[:n], places[:n])
			members, places = members[n:], places[n:]
		}
		return
	}
	f, _ := s.packed()
	for i, member := range members {
		places[i] = Place{Rank: -1}
		if at := f.find(member, tagOf(member)); at >= 0 {
			places[i] = Place{at, f.score(at)}
		}
	}
}

// placesAtOnce is how many members places sorts together.
const placesAtOnce = 256

// places implements Set.Places for up to placesAtOnce members. Behind an element that it has found
// it looks for the next one in the same leaf, by its reference.
func (m *indexed) places(members []string, places []Place) {
	type found struct {
		score float64
		ref   uint32
		i     int32 // in members
	}
	var list [placesAtOnce]found
	n := 0
	for i, member := range members {
		if i%batch == 0 {
			m.index.prefetch(members[i:])
		}
		places[i] = Place{Rank: -1}
		if e := m.index.find(member, m.index.hash(member)); e.ok() {
			list[n] = found{*e.score(), *e.ref(), int32(i)}
			n++
		}
	}
	slices.SortFunc(list[:n], func(a, b found) int { return cmp.Compare(a.score, b.score) })
	var pos elementPos
	before := 0 // elements before the leaf of pos
	for _, e := range list[:n] {
		next := -1
		if b := pos.leaf; b != nil && e.score <= b.scores[b.len()-1] {
			next = slices.Index(b.refs[pos.i:], e.ref)
		}
		if next >= 0 {
			pos.i += next
		} else {
			pos = m.locateRef(e.score, members[e.i], e.ref)
			before = m.tree.countBefore(pos.leafPos)
		}
		places[e.i] = Place{before + pos.i, e.score}
	}
}
