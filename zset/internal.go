package zset

import (
	"slices"
	"unsafe"
)

// Internal is a [Set] as the server of this module needs it: with members as byte slices, an
// observer of changes, and control of memory and of the processor's cache. A program needs none
// of it. It is the same set, and its methods may change in any version.
type Internal Set

// Internal returns the set with the methods of Internal. O(1), no allocation.
func (s *Set) Internal() *Internal { return (*Internal)(s) }

// Set returns the set with the methods of Set.
func (in *Internal) Set() *Set { return (*Set)(in) }

// Observe makes o the observer of the set, in place of the previous one. A nil o
// stops observation. Clones are not observed.
func (in *Internal) Observe(o *Observer) {
	s := in.Set()
	if o != nil || s.observer() != nil {
		s.extend().observer = o
		s.reduce()
	}
}

// AddIf is [Set.AddIf] for a byte slice. It copies member only if member is new.
func (in *Internal) AddIf(member []byte, score float64, cond Cond) (o Outcome, old float64) {
	s := in.Set()
	o, old, _ = s.put(view(member), score, cond, false)
	return o, old
}

// Incr is [Set.Incr] for a byte slice. It copies member only if member is new.
func (in *Internal) Incr(member []byte, delta float64, cond Cond) (o Outcome, score float64) {
	s := in.Set()
	o, _, score = s.put(view(member), delta, cond, true)
	return o, score
}

// Remove is [Set.Remove] for a byte slice.
func (in *Internal) Remove(member []byte) (score float64, ok bool) {
	return in.Set().Remove(view(member))
}

// RemoveIf is [Set.RemoveIf] for a byte slice.
func (in *Internal) RemoveIf(member []byte, score float64) bool {
	s := in.Set()
	return s.RemoveIf(view(member), score)
}

// Score is [Set.Score] for a byte slice.
func (in *Internal) Score(member []byte) (float64, bool) { return in.Set().Score(view(member)) }

// Rank is [Set.Rank] for a byte slice.
func (in *Internal) Rank(member []byte) (int, bool) { return in.Set().Rank(view(member)) }

// Prefetch fetches up to Batch members, and the memory that Score reads for them, into the
// processor's cache. A lookup in a large set is a chain of four dependent cache misses;
// Prefetch overlaps those of the batch. It changes nothing, and any number of goroutines may
// call it. The result has no meaning: it keeps the compiler from removing the reads. O(1)
// per member, no allocation.
func (in *Internal) Prefetch(members []string) (read uint64) {
	s := in.Set()
	if _, ok := s.packed(); ok {
		return 0
	}
	return s.indexed().index.prefetch(members)
}

// Grow allocates the memory for n more members of size bytes together, whose scores are
// among scores, as far as the set lacks it and stays small: up to 128 elements. Without it,
// a small set allocates for nearly every member. If fewer members are added, the set keeps
// the memory until its buffer is next copied. It must not be called during an iteration.
// O(Len + len(scores)).
func (in *Internal) Grow(n, size int, scores []float64) {
	s := in.Set()
	if f, ok := s.packed(); ok && n > 0 && f.len()+n <= packedMax && size <= n*packedMemberMax {
		wide := slices.ContainsFunc(scores, func(score float64) bool { return !isNarrow(score) })
		s.setPacked(f.writable(n, n+size, wide))
	}
}

// Reuse allows the set to overwrite removed members, as long as it is small and has returned no
// string since its buffer was made. It is for a set that is read, like written, with exclusive
// access only, for reads then note that they return strings. It has no effect on an empty set, and
// ends with a clone, which others may read: so it is called after additions. O(1).
func (in *Internal) Reuse() {
	if f, _ := in.Set().packed(); f != nil && f.size&(packedShared|packedReuse) == 0 {
		f.size |= packedReuse
		f.live |= packedExposed // before, reads did not note it
	}
}

// SetMark sets or clears a mark, whose meaning is the caller's. The mark stays until
// the set is empty, and clones inherit it. An empty set takes none. O(1); the mark takes
// no memory.
func (in *Internal) SetMark(on bool) {
	s := in.Set()
	switch f, ok := s.packed(); {
	case in.Marked() == on:
	case !ok:
		s.indexed().marked = on
	case f.len() > 0:
		f = f.writable(0, 0, false)
		f.size ^= packedMarked
		s.setPacked(f)
	}
}

// Marked reports whether the set has the mark.
func (in *Internal) Marked() bool {
	s := in.Set()
	f, ok := s.packed()
	if !ok {
		return s.indexed().marked
	}
	return f != nil && f.size&packedMarked != 0
}

// Weight estimates the memory of the set in bytes, with member bytes and unused
// capacity for them. O(1).
func (in *Internal) Weight() int {
	s := in.Set()
	size := s.bytes()
	if f, ok := s.packed(); !ok {
		size += s.indexed().index.arena.size
	} else if f != nil {
		size += f.bytes()
	}
	if d := s.Deadlines(); d != nil {
		size += d.Internal().Weight()
	}
	return size
}

// Block returns the address and the size in bytes of the memory of a packed set that shares it with
// no clone, or 0 and 0 of another one. O(1).
func (in *Internal) Block() (at uintptr, size int) {
	s := in.Set()
	f, _ := s.packed()
	if f == nil || s.extended() != nil || f.size&packedShared != 0 {
		return 0, 0
	}
	return uintptr(unsafe.Pointer(f)), f.bytes()
}

// Duplicate makes other, which must be empty, a copy of a set of which Block returns memory: with
// memory of the same size, which no string aliases, and with all that Swap exchanges. O(size).
func (in *Internal) Duplicate(other *Set) {
	f, _ := in.Set().packed()
	b := append([]byte(nil), f.buffer()...)
	f = (*packed)(unsafe.Pointer(unsafe.SliceData(b)))
	f.live &^= packedExposed
	other.setPacked(f)
}

// Swap exchanges the elements, deadlines, marks and observers of two sets. O(1).
func (in *Internal) Swap(other *Set) { in.form, other.form = other.form, in.form }
