package bitmap

import (
	"encoding/binary"
	"math/bits"
)

// CombineAll returns the result of an operation of BITOP on bitmaps, the longest of which
// has size bytes: "AND", "OR", "XOR", "NOT" of one bitmap, "ONE" for the bits that exactly
// one bitmap has; of at least two, "DIFF" for the bits of the first that no other has,
// "DIFF1" for those of others that the first does not have, "ANDOR" for those of the first
// that others have. Bits beyond the end of a bitmap are 0. It takes O(N), N bytes of all.
func CombineAll(op string, sources [][]byte, size int) []byte {
	result := make([]byte, size)
	copy(result, sources[0])
	switch op {
	case "NOT":
		Combine('N', result, result)
	case "AND", "OR", "XOR":
		for _, source := range sources[1:] {
			Combine(op[0], result[:len(source)], source)
			if op == "AND" {
				clear(result[len(source):])
			}
		}
	case "ONE":
		twice, both := make([]byte, size), make([]byte, size)
		for _, source := range sources[1:] {
			n := copy(both, source)
			Combine('A', both[:n], result)
			Combine('O', twice[:n], both)
			Combine('O', result[:n], source)
		}
		Combine('W', result, twice)
	default: // DIFF, DIFF1, ANDOR: the first, and the union of the others
		others := CombineAll("OR", sources[1:], size)
		switch op {
		case "DIFF":
			Combine('W', result, others)
		case "DIFF1":
			Combine('W', others, result)
			return others
		case "ANDOR":
			Combine('A', result, others)
		}
	}
	return result
}

// Combine applies op (And, Or, Xor, Without) to each bit of dst and the bit of src
// at the same offset, where src is at least as long; N is the complement of src.
// The rejected alternative, a function that is called for every 8 bytes, takes
// three times as long.
func Combine(op byte, dst, src []byte) {
	le := binary.LittleEndian
	words := len(dst) &^ 7
	switch op {
	case 'A':
		for i := 0; i < words; i += 8 {
			le.PutUint64(dst[i:], le.Uint64(dst[i:])&le.Uint64(src[i:]))
		}
	case 'O':
		for i := 0; i < words; i += 8 {
			le.PutUint64(dst[i:], le.Uint64(dst[i:])|le.Uint64(src[i:]))
		}
	case 'X':
		for i := 0; i < words; i += 8 {
			le.PutUint64(dst[i:], le.Uint64(dst[i:])^le.Uint64(src[i:]))
		}
	case 'W':
		for i := 0; i < words; i += 8 {
			le.PutUint64(dst[i:], le.Uint64(dst[i:])&^le.Uint64(src[i:]))
		}
	case 'N':
		for i := 0; i < words; i += 8 {
			le.PutUint64(dst[i:], ^le.Uint64(src[i:]))
		}
	}
	for i := words; i < len(dst); i++ {
		switch op {
		case 'A':
			dst[i] &= src[i]
		case 'O':
			dst[i] |= src[i]
		case 'X':
			dst[i] ^= src[i]
		case 'W':
			dst[i] &^= src[i]
		case 'N':
			dst[i] = ^src[i]
		}
	}
}

// Count returns the number of set bits of b from lo up to hi.
func Count(b []byte, lo, hi int64) (n int64) {
	if lo >= hi {
		return 0
	}
	n = -int64(bits.OnesCount8(b[lo>>3] &^ (0xff >> (lo & 7))))
	if hi&7 != 0 {
		n -= int64(bits.OnesCount8(b[hi>>3] & (0xff >> (hi & 7))))
	}
	b = b[lo>>3 : (hi+7)>>3]
	for ; len(b) >= 8; b = b[8:] {
		n += int64(bits.OnesCount64(binary.LittleEndian.Uint64(b)))
	}
	for _, x := range b {
		n += int64(bits.OnesCount8(x))
	}
	return n
}

// Find returns the first bit of b from lo up to hi that equals bit, or -1.
func Find(b []byte, lo, hi int64, bit byte) int64 {
	if lo >= hi {
		return -1
	}
	// After flip the bits to find are 1, and those before lo are 0.
	var flip uint64
	if bit == 0 {
		flip = ^flip
	}
	at := lo &^ 7
	b = b[lo>>3 : (hi+7)>>3]
	first := (b[0] ^ byte(flip)) & (0xff >> (lo & 7))
	if first == 0 {
		b, at = b[1:], at+8
		for ; len(b) >= 8 && binary.LittleEndian.Uint64(b) == flip; b = b[8:] {
			at += 64
		}
		for ; len(b) > 0 && b[0] == byte(flip); b = b[1:] {
			at += 8
		}
		if len(b) == 0 {
			return -1
		}
		first = b[0] ^ byte(flip)
	}
	at += int64(bits.LeadingZeros8(first))
	if at >= hi {
		return -1
	}
	return at
}
