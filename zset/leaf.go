package zset

import (
	"slices"
	"unsafe"
)

// A leaf is a sorted run of elements in two parallel arrays, scores and references
// to members: 12 bytes for each element, without pointers. A search reads one or
// two kilobytes of scores, and reads members only to break ties.
//
//	        frontFree    len        cap
//	scores │░░░░░░░░░│ 1 │ 2 │ 5 │░░░░░│
//	refs   │░░░░░░░░░│ a │ b │ c │░░░░░│
//
// Free slots on both sides, as in a deque, let an insertion or removal shift the
// shorter side.
const (
	leafMax       = 128
	leafLow       = 48  // a leaf with fewer elements merges with a neighbour if possible
	leafFill      = 96  // size of bulk-loaded leaves
	leafMergedMax = 112 // maximum size of merged leaves
)

type leaf struct {
	owner     *token // a leaf with another owner is shared: copied before a write
	frontFree int    // free slots before the first element, in both arrays
	scores    []float64
	refs      []uint32
}

// token identifies the owner of copy-on-write structures by its address. It has a
// size, because pointers to distinct zero-size variables may be equal.
type token struct{ _ byte }

func newLeaf(owner *token, capacity int) *leaf {
	return &leaf{owner: owner, scores: make([]float64, 0, capacity), refs: make([]uint32, 0, capacity)}
}

func (b *leaf) len() int { return len(b.scores) }

// capacityFor returns the capacity to allocate for n elements: an eighth more,
// rounded up to a multiple of 16, which suits Go's size classes.
func capacityFor(n int) int {
	if n < 16 {
		return n
	}
	return min((n+n/8+15)&^15, leafMax)
}

// copyOf returns a copy of elements [lo, hi) with the given capacity.
func (b *leaf) copyOf(owner *token, lo, hi, capacity int) *leaf {
	c := newLeaf(owner, capacity)
	c.scores = append(c.scores, b.scores[lo:hi]...)
	c.refs = append(c.refs, b.refs[lo:hi]...)
	return c
}

// search returns the number of elements of the leaf that order before (score,
// member).
func (b *leaf) search(a *arena, score float64, member string) int {
	lo := lowerBound(b.scores, score)
	if lo == len(b.scores) || b.scores[lo] != score || a.string(b.refs[lo]) >= member {
		return lo
	}
	hi := len(b.scores)
	for lo < hi {
		h := int(uint(lo+hi) >> 1)
		if b.scores[h] == score && a.string(b.refs[h]) < member {
			lo = h + 1
		} else {
			hi = h
		}
	}
	return lo
}

// lowerBound returns the number of scores below x in ascending scores.
//
// It is a branchless binary search: the compiler emits a conditional move, where a
// branch would be mispredicted every other time.
func lowerBound[T int32 | float64](scores []T, x T) int {
	lo, n := 0, len(scores)
	for n > 0 {
		half := int(uint(n) >> 1)
		next := lo + half + 1
		if !(scores[lo+half] < x) {
			next = lo
		}
		n -= half + 1
		if next == lo {
			n = half
		}
		lo = next
	}
	return lo
}

// setElements replaces the arrays of the leaf by those of c, which must not be used
// afterwards.
func (b *leaf) setElements(c *leaf) { b.frontFree, b.scores, b.refs = 0, c.scores, c.refs }

// insert inserts an element at index i. The leaf must have fewer than leafMax
// elements.
//
// It shifts the shorter side, left or right of i, if there is a free slot on that
// side.
func (b *leaf) insert(i int, score float64, ref uint32) {
	n := len(b.scores)
	if n == cap(b.scores) && b.frontFree == 0 {
		b.setElements(b.copyOf(b.owner, 0, n, max(capacityFor(n+1), 2)))
	}
	if b.frontFree > 0 && (i < n/2 || n == cap(b.scores)) {
		b.frontFree--
		b.scores, b.refs = extendFront(b.scores), extendFront(b.refs)
		copy(b.scores, b.scores[1:i+1])
		copy(b.refs, b.refs[1:i+1])
	} else {
		b.scores, b.refs = b.scores[:n+1], b.refs[:n+1]
		copy(b.scores[i+1:], b.scores[i:])
		copy(b.refs[i+1:], b.refs[i:])
	}
	b.scores[i], b.refs[i] = score, ref
}

// extendFront returns s extended by the slot before its first element, which must
// belong to the same array.
func extendFront[T any](s []T) []T {
	first := (*T)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s)), -int(unsafe.Sizeof(*new(T)))))
	return unsafe.Slice(first, cap(s)+1)[:len(s)+1]
}

// removeRange removes elements [lo, hi), and reallocates the arrays when most of
// their slots are free.
func (b *leaf) removeRange(lo, hi int) {
	if n := hi - lo; lo < b.len()-hi {
		copy(b.scores[n:], b.scores[:lo])
		copy(b.refs[n:], b.refs[:lo])
		b.scores, b.refs = b.scores[n:], b.refs[n:]
		b.frontFree += n
	} else {
		b.scores = slices.Delete(b.scores, lo, hi)
		b.refs = slices.Delete(b.refs, lo, hi)
	}
	if n := b.len(); b.frontFree+cap(b.scores) > capacityFor(n)+n/2+8 {
		b.setElements(b.copyOf(b.owner, 0, n, capacityFor(n)))
	}
}

// move sets the score of element i and moves it to its new index. j is the number
// of elements below the new (score, member), counted with element i at its old
// index.
func (b *leaf) move(i, j int, score float64) {
	ref := b.refs[i]
	if i < j {
		j--
		copy(b.scores[i:j], b.scores[i+1:])
		copy(b.refs[i:j], b.refs[i+1:])
	} else {
		copy(b.scores[j+1:i+1], b.scores[j:])
		copy(b.refs[j+1:i+1], b.refs[j:])
	}
	b.scores[j], b.refs[j] = score, ref
}
