package keysizes

import (
	"iter"
	"math/bits"
)

const sizeBits = 6 // of a Class

// Class is a kind of values and a range of sizes.
type Class uint16

// None is the class of what is not counted.
const None Class = 7 << sizeBits

// Of returns the class of a value. kind is below 7, and size not negative.
func Of(kind uint8, size int) Class {
	return Class(kind)<<sizeBits | Class(bits.Len(uint(size)))&(1<<sizeBits-1)
}

// With returns the class of a size of the same kind; None remains None.
func (c Class) With(size int) Class {
	if c == None {
		return None
	}
	return Of(uint8(c>>sizeBits), size)
}

// Alike reports whether two sizes of a kind, neither negative, are in one class.
func Alike(a, b int) bool { return a^b <= a&b }

// Histogram counts the values of each class. The zero value has none.
type Histogram [8 << sizeBits]int64

// Move counts a value of class from in class to.
func (h *Histogram) Move(from, to Class) {
	h[from%Class(len(h))]--
	h[to%Class(len(h))]++
}

// Kind yields the least size of each class of a kind that has values, and their number,
// with growing sizes.
func (h *Histogram) Kind(kind uint8) iter.Seq2[uint64, int64] {
	return func(yield func(least uint64, values int64) bool) {
		for i, n := range h[int(kind)<<sizeBits:][:1<<sizeBits] {
			if n != 0 && !yield(uint64(1)<<i>>1, n) {
				return
			}
		}
	}
}
