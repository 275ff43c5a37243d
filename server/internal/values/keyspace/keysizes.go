package keyspace

import (
	"iter"
	"math/bits"
)

const sizeBits = 6 // of a sizeClass

// sizeClass is a kind of values and a range of sizes.
type sizeClass uint16

// noClass is the class of what is not counted.
const noClass sizeClass = 7 << sizeBits

// classOf returns the class of a value. kind is below 7, and size not negative.
func classOf(kind uint8, size int) sizeClass {
	return sizeClass(kind)<<sizeBits | sizeClass(bits.Len(uint(size)))&(1<<sizeBits-1)
}

// With returns the class of a size of the same kind; noClass remains noClass.
func (c sizeClass) With(size int) sizeClass {
	if c == noClass {
		return noClass
	}
	return classOf(uint8(c>>sizeBits), size)
}

// alike reports whether two sizes of a kind, neither negative, are in one class.
func alike(a, b int) bool { return a^b <= a&b }

// SizeHistogram counts the values of each class. The zero value has none.
type SizeHistogram [8 << sizeBits]int64

// Move counts a value of class from in class to.
func (h *SizeHistogram) Move(from, to sizeClass) {
	h[from%sizeClass(len(h))]--
	h[to%sizeClass(len(h))]++
}

// Kind yields the least size of each class of a kind that has values, and their number,
// with growing sizes.
func (h *SizeHistogram) Kind(kind uint8) iter.Seq2[uint64, int64] {
	return func(yield func(least uint64, values int64) bool) {
		for i, n := range h[int(kind)<<sizeBits:][:1<<sizeBits] {
			if n != 0 && !yield(uint64(1)<<i>>1, n) {
				return
			}
		}
	}
}
