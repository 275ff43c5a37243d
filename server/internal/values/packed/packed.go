package packed

import (
	"math"
	"unsafe"
)

// Packed elements are length-prefixed byte strings in one slice:
//
//	length (varint, 7 bits a byte, lowest first) │ bytes │ length, its bytes in reverse order
//
// The second length allows backward iteration. A short element takes two bytes more
// than its content and no pointer; a string header would take 16 bytes and an
// allocation.

// EntrySize returns the size of an element of n bytes.
func EntrySize(n int) int {
	size := n + 2
	for n >= 0x80 {
		n >>= 7
		size += 2
	}
	return size
}

// PutEntry stores b in dst, which has EntrySize(len(b)) bytes.
func PutEntry(dst, b []byte) { copy(FrameEntry(dst, len(b)), b) }

// FrameEntry stores the lengths of an element of n bytes in dst, which has
// EntrySize(n) bytes, and returns the part for the content.
func FrameEntry(dst []byte, n int) []byte {
	i, left := 0, n
	for ; left >= 0x80; i++ {
		dst[i], dst[len(dst)-1-i] = byte(left)|0x80, byte(left)|0x80
		left >>= 7
	}
	dst[i], dst[len(dst)-1-i] = byte(left), byte(left)
	return dst[i+1 : i+1+n]
}

// FirstEntry returns the element at the beginning of d and its size.
func FirstEntry(d []byte) (b []byte, size int) {
	n, w := int(d[0]), 1
	if n >= 0x80 {
		n &= 0x7f
		for shift := 7; ; shift += 7 {
			c := d[w]
			w++
			n |= int(c&0x7f) << shift
			if c < 0x80 {
				break
			}
		}
	}
	return d[w : w+n : w+n], n + 2*w
}

// LastEntry returns the element at the end of d and its size.
func LastEntry(d []byte) (b []byte, size int) {
	end := len(d) - 1
	n, w := int(d[end]), 1
	if n >= 0x80 {
		n &= 0x7f
		for shift := 7; ; shift += 7 {
			c := d[end-w]
			w++
			n |= int(c&0x7f) << shift
			if c < 0x80 {
				break
			}
		}
	}
	end -= w - 1
	return d[end-n : end : end], n + 2*w
}

// ListpackSize returns the size of b in a listpack of Redis, where integers have
// special encodings. It determines when Redis changes encodings.
func ListpackSize(b []byte) int {
	if v, ok := Integer(View(b)); ok {
		return ListpackIntSize(v)
	}
	n := len(b)
	switch {
	case n < 64:
		n++
	case n < 4096:
		n += 2
	default:
		n += 5
	}
	// Add the size of the backward length, in groups of seven bits.
	switch {
	case n < 128:
		return n + 1
	case n < 1<<14:
		return n + 2
	case n < 1<<21:
		return n + 3
	case n < 1<<28:
		return n + 4
	}
	return n + 5
}

// ListpackIntSize returns the number of bytes of an integer in a listpack of Redis.
func ListpackIntSize(v int64) int {
	switch {
	case 0 <= v && v <= 127:
		return 2
	case -4096 <= v && v <= 4095:
		return 3
	case math.MinInt16 <= v && v <= math.MaxInt16:
		return 4
	case -1<<23 <= v && v < 1<<23:
		return 5
	case math.MinInt32 <= v && v <= math.MaxInt32:
		return 6
	}
	return 10
}

// Integer parses a 64-bit integer in the form in which Redis writes it: no spaces,
// no plus sign, no leading zeros.
func Integer(s string) (int64, bool) {
	if len(s) == 0 || len(s) > 20 {
		return 0, false
	}
	d := s
	if s[0] == '-' {
		d = s[1:]
	}
	if d == "" || d[0] == '0' && len(s) > 1 {
		return 0, false
	}
	var n uint64
	for i := range len(d) {
		c := uint64(d[i] - '0')
		if c > 9 || n > (math.MaxUint64-c)/10 {
			return 0, false
		}
		n = n*10 + c
	}
	if s[0] == '-' {
		return -int64(n), n <= 1<<63
	}
	return int64(n), n <= math.MaxInt64
}

// View returns b as a string without copying. The string is valid until b
// changes.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Bytes returns the bytes of s without copying. They must not be modified.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// Allocated returns the memory of an allocation of n bytes, rounded up to a size
// class; above 2 KB it adds the average waste. Tiny allocations share a block.
func Allocated(n int) int {
	switch {
	case n == 0:
		return 0
	case n <= 8:
		return n + 2
	case 16 < n && n <= 24:
		return 24
	case n <= 256:
		return (n + 15) &^ 15
	case n <= 512:
		return (n + 31) &^ 31
	case n <= 768:
		return (n + 63) &^ 63
	case n <= 1536:
		return (n + 127) &^ 127
	case n <= 2048:
		return (n + 255) &^ 255
	case n <= 32<<10:
		return n + n/16
	}
	return (n + 8<<10 - 1) &^ (8<<10 - 1)
}
