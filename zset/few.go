package zset

import (
	"encoding/binary"
	"math"
	"strings"
)

// Most sets are small, and there may be a million of them, so a set of up to 16
// elements is one string: a byte that counts them, then for each, in order, 8 bytes
// of score, a byte of length and the member. Members that are handed out are parts of
// that string, so reading allocates nothing; a change writes a new string. 5 members
// of 8 bytes take 96 bytes in one allocation without pointers, where a slice of
// elements takes 208 in 6, and Redis's listpack about 70 of its 283 per key.
const (
	fewMax       = 16
	fewMemberMax = 64 // longer members are not worth copying with each change
	fewHeader    = 8 + 1
)

// few is an ordered set of up to fewMax elements; "" is the empty one.
type few string

func (f few) len() int {
	if f == "" {
		return 0
	}
	return int(f[0])
}

// next splits the first element from the elements.
func next(rest few) (member string, score float64, _ few) {
	end := fewHeader + int(rest[8])
	return string(rest[fewHeader:end]), rest.score(), rest[end:]
}

// score is the score of the first element.
func (rest few) score() float64 {
	return math.Float64frombits(uint64(rest[0]) | uint64(rest[1])<<8 | uint64(rest[2])<<16 | uint64(rest[3])<<24 |
		uint64(rest[4])<<32 | uint64(rest[5])<<40 | uint64(rest[6])<<48 | uint64(rest[7])<<56)
}

// find returns the rank and the score of member, or -1.
func (f few) find(member string) (rank int, score float64) {
	if f == "" {
		return -1, 0
	}
	rest := f[1:]
	for rank := 0; len(rest) > 0; rank++ {
		end := fewHeader + int(rest[8])
		if string(rest[fewHeader:end]) == member {
			return rank, rest.score()
		}
		rest = rest[end:]
	}
	return -1, 0
}

// unpack puts the elements into buf.
func (f few) unpack(buf *[fewMax + 1]Element) []Element {
	n := f.len()
	if n == 0 {
		return buf[:0]
	}
	rest := f[1:]
	for i := range n {
		buf[i].Member, buf[i].Score, rest = next(rest)
	}
	return buf[:n]
}

// pack is the inverse of unpack.
func pack(elements []Element) few {
	if len(elements) == 0 {
		return ""
	}
	size := 1
	for _, e := range elements {
		size += fewHeader + len(e.Member)
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteByte(byte(len(elements)))
	for _, e := range elements {
		var header [fewHeader]byte
		binary.LittleEndian.PutUint64(header[:], math.Float64bits(e.Score))
		header[8] = byte(len(e.Member))
		b.Write(header[:])
		b.WriteString(e.Member)
	}
	return few(b.String())
}
