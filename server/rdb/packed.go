package rdb

import (
	"encoding/binary"
	"strconv"
)

// The compact encodings of Redis: each is one string. These functions yield the
// elements, in order, and report whether the string is valid, which is known only
// at the end. Integers are yielded as text. The elements are borrowed.

// eachListpack yields the elements of a listpack. The number of elements in its header is not
// looked at: Redis does not, either, unless it verifies payloads in depth.
func eachListpack(b []byte, yield func([]byte)) bool {
	if len(b) < 7 || binary.LittleEndian.Uint32(b) != uint32(len(b)) || b[len(b)-1] != 0xff {
		return false
	}
	for rest := b[6 : len(b)-1]; len(rest) > 0; {
		element, size, ok := packedElement(rest)
		if !ok {
			return false
		}
		var back [5]byte
		sizes := appendBack(back[:0], size)
		if len(rest) < size+len(sizes) || string(rest[size:size+len(sizes)]) != string(sizes) {
			return false
		}
		rest = rest[size+len(sizes):]
		yield(element)
	}
	return true
}

// packedText returns the n bytes of b behind a header, and the size of both.
func packedText(b []byte, head, n int) (element []byte, size int, ok bool) {
	if n < 0 || len(b)-head < n {
		return nil, 0, false
	}
	return b[head : head+n], head + n, true
}

// packedInteger returns the integer of so many bytes behind a header of one byte,
// as text, and the size of both.
func packedInteger(b []byte, bytes int) (element []byte, size int, ok bool) {
	if len(b) < 1+bytes {
		return nil, 0, false
	}
	return appendLittle(nil, b[1:1+bytes]), 1 + bytes, true
}

// packedElement returns the first element of a part of a listpack, and its size
// without the trailing length for backward traversal.
func packedElement(b []byte) (element []byte, size int, ok bool) {
	switch x := b[0]; {
	case x < 0x80:
		return strconv.AppendInt(nil, int64(x), 10), 1, true
	case x < 0xc0:
		return packedText(b, 1, int(x&0x3f))
	case x < 0xe0:
		if len(b) < 2 {
			return nil, 0, false
		}
		n := int64(x&0x1f)<<8 | int64(b[1])
		return strconv.AppendInt(nil, n<<51>>51, 10), 2, true
	case x < 0xf0:
		if len(b) < 2 {
			return nil, 0, false
		}
		return packedText(b, 2, int(x&0x0f)<<8|int(b[1]))
	case x == 0xf0:
		if len(b) < 5 {
			return nil, 0, false
		}
		return packedText(b, 5, int(binary.LittleEndian.Uint32(b[1:])))
	case x == 0xf1:
		return packedInteger(b, 2)
	case x == 0xf2:
		return packedInteger(b, 3)
	case x == 0xf3:
		return packedInteger(b, 4)
	case x == 0xf4:
		return packedInteger(b, 8)
	}
	return nil, 0, false
}

// littleEndian returns a little-endian signed integer.
func littleEndian(b []byte) int64 {
	var n int64
	for i, x := range b {
		n |= int64(x) << (8 * i)
	}
	unused := 64 - 8*len(b)
	return n << unused >> unused
}

func appendLittle(dst, b []byte) []byte { return strconv.AppendInt(dst, littleEndian(b), 10) }

// eachZiplist yields the elements of a ziplist, the listpack of Redis before 7.
func eachZiplist(b []byte, yield func([]byte)) bool {
	if len(b) < 11 || binary.LittleEndian.Uint32(b) != uint32(len(b)) || b[len(b)-1] != 0xff {
		return false
	}
	tail := int64(binary.LittleEndian.Uint32(b[4:]))
	count := int(binary.LittleEndian.Uint16(b[8:]))
	n, before := 0, 0
	last := 10
	at := 10
	for at < len(b)-1 {
		rest := b[at : len(b)-1]
		head := 1
		previous := int(rest[0])
		if previous == 0xff {
			return false
		}
		if previous == 0xfe {
			if len(rest) < 5 {
				return false
			}
			previous, head = int(binary.LittleEndian.Uint32(rest[1:])), 5
		}
		element, size, ok := zipElement(rest[head:])
		if !ok || previous != before {
			return false
		}
		yield(element)
		last, before = at, head+size
		at += before
		n++
	}
	return tail == int64(last) && (count == n || count == 0xffff)
}

// zipElement returns the first element of a part of a ziplist, behind the size of
// the previous element.
func zipElement(b []byte) (element []byte, size int, ok bool) {
	if len(b) == 0 {
		return nil, 0, false
	}
	switch x := b[0]; {
	case x < 0x40:
		return packedText(b, 1, int(x))
	case x < 0x80:
		if len(b) < 2 {
			return nil, 0, false
		}
		return packedText(b, 2, int(x&0x3f)<<8|int(b[1]))
	case x < 0xc0:
		if len(b) < 5 {
			return nil, 0, false
		}
		return packedText(b, 5, int(binary.BigEndian.Uint32(b[1:])))
	case x == 0xc0:
		return packedInteger(b, 2)
	case x == 0xd0:
		return packedInteger(b, 4)
	case x == 0xe0:
		return packedInteger(b, 8)
	case x == 0xf0:
		return packedInteger(b, 3)
	case x == 0xfe:
		return packedInteger(b, 1)
	case x > 0xf0 && x < 0xfe:
		return strconv.AppendInt(nil, int64(x-0xf1), 10), 1, true
	}
	return nil, 0, false
}

// eachZipmap yields the elements of a zipmap, the small hash of Redis before 2.6.
func eachZipmap(b []byte, yield func([]byte)) bool {
	if len(b) < 2 || b[len(b)-1] != 0xff {
		return false
	}
	rest := b[1 : len(b)-1]
	n := 0
	for ; len(rest) > 0; n++ {
		size, head := int(rest[0]), 1
		if size == 0xff {
			return false
		}
		if size == 0xfe {
			if len(rest) < 5 {
				return false
			}
			if size, head = int(binary.LittleEndian.Uint32(rest[1:])), 5; size < 0xfe {
				return false // it fits into one byte
			}
		}
		free := 0
		if n%2 == 1 { // values are followed by some unused bytes
			if len(rest) <= head {
				return false
			}
			free = int(rest[head])
			head++
		}
		if len(rest)-head < size+free {
			return false
		}
		yield(rest[head : head+size])
		rest = rest[head+size+free:]
	}
	return n%2 == 0 && (b[0] == 0xfe || int(b[0]) == n/2)
}

// eachInt yields the elements of an intset.
func eachInt(b []byte, yield func(int64)) bool {
	if len(b) < 8 {
		return false
	}
	size, n := binary.LittleEndian.Uint32(b), int64(binary.LittleEndian.Uint32(b[4:]))
	b = b[8:]
	if size != 2 && size != 4 && size != 8 || n == 0 || int64(len(b)) != n*int64(size) {
		return false
	}
	last := int64(0)
	for i := int64(0); len(b) > 0; i++ {
		x := littleEndian(b[:size])
		if i > 0 && x <= last {
			return false
		}
		last = x
		yield(x)
		b = b[size:]
	}
	return true
}
