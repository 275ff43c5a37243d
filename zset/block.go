package zset

import (
	"slices"
	"unsafe"
)

// A block holds elements that follow each other, scores and references to members
// apart: 12 bytes for each, without pointers. Looking for a place reads one or two
// kilobytes of scores, and members only where scores are equal.
const (
	blockMax  = 128
	blockLow  = 48  // with fewer elements a block looks for one to join
	blockHigh = 96  // what loaded blocks hold
	blockJoin = 112 // what joined blocks may hold
)

type block struct {
	owner  *token // blocks of other owners are shared: copied before a write
	front  int    // unused places before the first element, in both arrays
	scores []float64
	refs   []uint32
}

// token is an identity; it has a size, for pointers to empty structs may be equal.
type token struct{ _ byte }

func newBlock(owner *token, room int) *block {
	return &block{owner: owner, scores: make([]float64, 0, room), refs: make([]uint32, 0, room)}
}

func (b *block) len() int { return len(b.scores) }

// room is how many elements to allocate for n: an eighth more, and what fills one of
// Go's size classes.
func room(n int) int {
	if n < 16 {
		return n
	}
	return min((n+n/8+15)&^15, blockMax)
}

// copyOf returns a block of the elements of ranks lo to hi-1, with room for more.
func (b *block) copyOf(owner *token, lo, hi, room int) *block {
	c := newBlock(owner, room)
	c.scores = append(c.scores, b.scores[lo:hi]...)
	c.refs = append(c.refs, b.refs[lo:hi]...)
	return c
}

// search counts the elements below (score, member).
func (b *block) search(a *arena, score float64, member string) int {
	lo := below(b.scores, score)
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

// below counts the scores below x, which are in order.
//
// Bisection without a branch that depends on the scores: the compiler makes a
// conditional move of it, where a branch would be mispredicted every other time.
func below(scores []float64, x float64) int {
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

// replace makes the elements those of c, which nobody else uses.
func (b *block) replace(c *block) { b.front, b.scores, b.refs = 0, c.scores, c.refs }

// insert puts an element at i; there must be fewer than blockMax.
//
// The fewer elements are moved, those before i or those behind it, as far as there is
// room on their side: removals leave it on both.
func (b *block) insert(i int, score float64, ref uint32) {
	n := len(b.scores)
	if n == cap(b.scores) && b.front == 0 {
		b.replace(b.copyOf(b.owner, 0, n, max(room(n+1), 2)))
	}
	if b.front > 0 && (i < n/2 || n == cap(b.scores)) {
		b.front--
		b.scores, b.refs = before(b.scores), before(b.refs)
		copy(b.scores, b.scores[1:i+1])
		copy(b.refs, b.refs[1:i+1])
	} else {
		b.scores, b.refs = b.scores[:n+1], b.refs[:n+1]
		copy(b.scores[i+1:], b.scores[i:])
		copy(b.refs[i+1:], b.refs[i:])
	}
	b.scores[i], b.refs[i] = score, ref
}

// before returns s with the place before its first element, which must be part of the
// same array.
func before[T any](s []T) []T {
	first := (*T)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s)), -int(unsafe.Sizeof(*new(T)))))
	return unsafe.Slice(first, cap(s)+1)[:len(s)+1]
}

// cut removes the elements lo to hi-1, and gives memory back when most of it is unused.
func (b *block) cut(lo, hi int) {
	if n := hi - lo; lo < b.len()-hi {
		copy(b.scores[n:], b.scores[:lo])
		copy(b.refs[n:], b.refs[:lo])
		b.scores, b.refs = b.scores[n:], b.refs[n:]
		b.front += n
	} else {
		b.scores = slices.Delete(b.scores, lo, hi)
		b.refs = slices.Delete(b.refs, lo, hi)
	}
	if n := b.len(); b.front+cap(b.scores) > room(n)+n/2+8 {
		b.replace(b.copyOf(b.owner, 0, n, room(n)))
	}
}

// move gives element i a score with which it belongs at j, j counted with it in place.
func (b *block) move(i, j int, score float64) {
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
