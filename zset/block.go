package zset

import (
	"slices"
	"unsafe"
)

// A block holds elements that follow each other, scores and members apart, so that
// the bisection of a block runs over one or two kilobytes of scores and touches a
// member only where scores are equal.
const (
	blockMax  = 128
	blockLow  = 32 // with fewer elements a block looks for one to join
	blockHigh = 96 // what joined blocks may hold, and loaded ones do
)

type block struct {
	owner   *token // blocks of other owners are shared: copied before a write
	id      int32  // by which ranks knows it; the same in copies
	front   int32  // unused places before the first element, in both arrays
	scores  []float64
	members []string
}

// token is an identity; it has a size, for pointers to empty structs may be equal.
type token struct{ _ byte }

func newBlock(owner *token, room int) *block {
	return &block{owner: owner, scores: make([]float64, 0, room), members: make([]string, 0, room)}
}

func (b *block) len() int { return len(b.scores) }

// room is how many elements to allocate for n: an eighth more, for large ones.
func room(n int) int {
	if n < 16 {
		return n
	}
	return min((n+n/8+7)&^7, blockMax)
}

// copyOf returns a block of the elements of ranks lo to hi-1, with room for more.
func (b *block) copyOf(owner *token, lo, hi, room int) *block {
	c := newBlock(owner, room)
	c.id = b.id
	c.scores = append(c.scores, b.scores[lo:hi]...)
	c.members = append(c.members, b.members[lo:hi]...)
	return c
}

// search counts the elements below (score, member).
//
// The bisection is by scores alone, without a branch that depends on them: the
// compiler makes a conditional move of it, where a branch would be mispredicted every
// other time. Members are looked at only among equal scores.
func (b *block) search(score float64, member string) int {
	scores := b.scores
	lo, n := 0, len(scores)
	for n > 0 {
		half := int(uint(n) >> 1)
		next := lo + half + 1
		if !(scores[lo+half] < score) {
			next = lo
		}
		n -= half + 1
		if next == lo {
			n = half
		}
		lo = next
	}
	if lo == len(scores) || scores[lo] != score || b.members[lo] >= member {
		return lo
	}
	return b.searchEqual(lo, score, member)
}

// searchEqual is search where lo is the first element of that score.
func (b *block) searchEqual(lo int, score float64, member string) int {
	hi := len(b.scores)
	for lo < hi {
		h := int(uint(lo+hi) >> 1)
		if b.scores[h] == score && b.members[h] < member {
			lo = h + 1
		} else {
			hi = h
		}
	}
	return lo
}

// replace makes the elements those of c, which nobody else uses.
func (b *block) replace(c *block) { b.front, b.scores, b.members = 0, c.scores, c.members }

// insert puts an element at i; there must be fewer than blockMax.
//
// The fewer elements are moved, those before i or those behind it, as far as there is
// room on their side: removals leave it on both. Half of the bytes moved were a fifth
// of the time of an update in a set of a million.
func (b *block) insert(i int, score float64, member string) {
	n := len(b.scores)
	if n == cap(b.scores) && b.front == 0 {
		b.replace(b.copyOf(b.owner, 0, n, max(room(n+1), 2)))
	}
	if b.front > 0 && (i < n/2 || n == cap(b.scores)) {
		b.front--
		b.scores, b.members = before(b.scores), before(b.members)
		copy(b.scores, b.scores[1:i+1])
		copy(b.members, b.members[1:i+1])
	} else {
		b.scores, b.members = b.scores[:n+1], b.members[:n+1]
		copy(b.scores[i+1:], b.scores[i:])
		copy(b.members[i+1:], b.members[i:])
	}
	b.scores[i], b.members[i] = score, member
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
		copy(b.members[n:], b.members[:lo])
		clear(b.members[:n]) // for the garbage collector
		b.scores, b.members = b.scores[n:], b.members[n:]
		b.front += int32(n)
	} else {
		b.scores = slices.Delete(b.scores, lo, hi)
		b.members = slices.Delete(b.members, lo, hi)
	}
	if n := b.len(); int(b.front)+cap(b.scores) > 2*room(n)+8 {
		b.replace(b.copyOf(b.owner, 0, n, room(n)))
	}
}

// move gives element i a score with which it belongs at j, j counted with it in place.
func (b *block) move(i, j int, score float64) {
	member := b.members[i]
	if i < j {
		j--
		copy(b.scores[i:j], b.scores[i+1:])
		copy(b.members[i:j], b.members[i+1:])
	} else {
		copy(b.scores[j+1:i+1], b.scores[j:])
		copy(b.members[j+1:i+1], b.members[j:])
	}
	b.scores[j], b.members[j] = score, member
}
