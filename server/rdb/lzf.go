package rdb

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// The format of LZF, by Marc Lehmann, is a sequence of literals and matches, which the
// first byte distinguishes:
//
//	000nnnnn                    n+1 literal bytes follow
//	nnnddddd dddddddd           n+2 bytes from d+1 bytes back, n from 1 to 6
//	111ddddd nnnnnnnn dddddddd  n+9 bytes from d+1 bytes back
const (
	lzfLiterals = 1 << 5         // greatest number of literals after one byte
	lzfWindow   = 1 << 13        // greatest distance
	lzfMatch    = 9 + (1<<8 - 1) // greatest length of a match
	lzfSaving   = 4              // bytes that compression must save

	lzfHashBits = 16
)

// lzf finds matches by a hash table of the last position of three bytes. Positions
// count from base, so those of earlier inputs are recognized and the table need not
// be cleared. The zero value is ready for use.
type lzf struct {
	positions *[1 << lzfHashBits]uint32
	next      uint32 // base of the next input
}

// compress appends in, compressed, to dst; false if that is not at least 4 bytes
// shorter. Matches are greedy: the first one that is found is taken. O(len(in)).
func (z *lzf) compress(dst, in []byte) ([]byte, bool) {
	if len(in) <= lzfSaving || len(in) >= 1<<31 {
		return dst, false
	}
	if z.positions == nil || z.next > math.MaxUint32-uint32(len(in)) {
		z.positions, z.next = new([1 << lzfHashBits]uint32), 1 // 0 is an empty entry
	}
	base := z.next
	z.next += uint32(len(in))
	limit := len(dst) + len(in) - lzfSaving
	out, literals := dst, 0 // in[literals:at] is not in out
	for at := 0; at+4 <= len(in); {
		three := binary.LittleEndian.Uint32(in[at:]) << 8
		position := z.position(three)
		last := *position
		*position = base + uint32(at)
		from := int(last - base)
		if last < base || at-from > lzfWindow || binary.LittleEndian.Uint32(in[from:])<<8 != three {
			at += 1 + (at-literals)>>6 // longer steps through what does not compress
			continue
		}
		n := 3 + commonPrefix(in[from+3:], in[at+3:min(at+lzfMatch, len(in))])
		if literals < at {
			out = appendLiterals(out, in[literals:at])
		}
		out = appendMatch(out, at-from, n)
		if len(out) > limit {
			return dst, false
		}
		at += n
		literals = at
		if at+2 <= len(in) { // matches often continue each other
			four := binary.LittleEndian.Uint32(in[at-2:])
			*z.position(four << 8) = base + uint32(at-2)
			*z.position(four &^ 0xff) = base + uint32(at-1)
		}
	}
	rest := in[literals:]
	if instructions := (len(rest) + lzfLiterals - 1) / lzfLiterals; len(out)+instructions+len(rest) > limit {
		return dst, false
	}
	return appendLiterals(out, rest), true
}

// position returns the entry of three bytes, which are in the high bits.
func (z *lzf) position(three uint32) *uint32 {
	const golden = 2654435769 // 2^32 divided by the golden ratio: Fibonacci hashing
	return &z.positions[three*golden>>(32-lzfHashBits)]
}

// commonPrefix returns the length of the common prefix of b and a, which is longer.
// The first bytes are compared one by one: most matches are short, and the processor
// predicts where they end.
func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(b) && n < 2 {
		if a[n] != b[n] {
			return n
		}
		n++
	}
	for ; n+8 <= len(b); n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func appendLiterals(out, b []byte) []byte {
	for len(b) > lzfLiterals {
		out = append(append(out, lzfLiterals-1), b[:lzfLiterals]...)
		b = b[lzfLiterals:]
	}
	if len(b) > 0 {
		out = append(append(out, byte(len(b)-1)), b...)
	}
	return out
}

func appendMatch(out []byte, distance, n int) []byte {
	d := distance - 1
	if n < 9 {
		return append(out, byte(n-2)<<5|byte(d>>8), byte(d))
	}
	return append(out, 7<<5|byte(d>>8), byte(n-9), byte(d))
}

// decompress returns the contents of in, which must be size bytes.
func decompress(in []byte, size int) ([]byte, bool) {
	if size > len(in)*lzfMatch { // more than the longest possible match per byte
		return nil, false
	}
	out := make([]byte, 0, size)
	for len(in) > 0 {
		n := int(in[0])
		if n < lzfLiterals {
			n++
			if len(in) <= n || len(out)+n > size {
				return nil, false
			}
			out, in = append(out, in[1:1+n]...), in[1+n:]
			continue
		}
		back, used := n&31<<8, 1
		if n >>= 5; n == 7 {
			if len(in) < 2 {
				return nil, false
			}
			n += int(in[1])
			used++
		}
		if len(in) <= used {
			return nil, false
		}
		back += int(in[used]) + 1
		n += 2
		in = in[used+1:]
		if back > len(out) || len(out)+n > size {
			return nil, false
		}
		for range n { // the copy may overlap itself
			out = append(out, out[len(out)-back])
		}
	}
	return out, len(out) == size
}
