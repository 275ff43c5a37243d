package packed

import (
	"encoding/binary"
	"math/bits"
)

// A text is a byte string with its length before it, as a uvarint. Small hashes and sets
// are texts one after another in one slice: of a hash, fields and values alternate.

// AppendText appends a text.
func AppendText[T string | []byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// TextSize returns the size of a length-prefixed text of n bytes.
func TextSize(n int) int { return n + (bits.Len(uint(n|1))+6)/7 }

// ReadText returns the text at p[at:] and the offset of the next one.
func ReadText(p []byte, at int) (text []byte, next int) {
	n := int(p[at])
	at++
	if n >= 0x80 {
		long, w := binary.Uvarint(p[at-1:])
		n = int(long)
		at += w - 1
	}
	return p[at : at+n : at+n], at + n
}

// EachPair yields the pairs of p, as views of its memory.
func EachPair(p []byte, yield func(field, value string) bool) {
	for at := 0; at < len(p); {
		var field, value []byte
		field, at = ReadText(p, at)
		value, at = ReadText(p, at)
		if !yield(View(field), View(value)) {
			return
		}
	}
}

// FindField returns the offsets of the value of a field in p, -1 if the field is
// absent.
func FindField(p []byte, field string) (value, end int) {
	for at := 0; at < len(p); {
		text, value := ReadText(p, at)
		_, end := ReadText(p, value)
		if string(text) == field {
			return value, end
		}
		at = end
	}
	return -1, -1
}

// splice replaces p[at:end] by a length-prefixed text. The capacity of p must
// suffice.
func splice(p []byte, at, end int, text []byte) []byte {
	size := TextSize(len(text))
	now := p[:len(p)+size-(end-at)]
	if size != end-at {
		copy(now[at+size:], p[end:])
	}
	AppendText(now[:at], text)
	return now
}

// SetPair replaces the value at p[value:end] or, if value is -1, appends a pair.
// The capacity of p must suffice.
func SetPair(p []byte, value, end int, field, to []byte) []byte {
	if value < 0 {
		return AppendText(AppendText(p, field), to)
	}
	return splice(p, value, end, to)
}

// Growth returns the number of bytes by which SetPair extends p.
func Growth(value, end int, field, to []byte) int {
	if value < 0 {
		return TextSize(len(field)) + TextSize(len(to))
	}
	return TextSize(len(to)) - (end - value)
}

// RemovePair removes the pair whose value is at p[value:end].
func RemovePair(p []byte, value, end int, field []byte) []byte {
	at := value - TextSize(len(field))
	return append(p[:at], p[end:]...)
}

// MovePair moves the pair of field, whose value is at p[value:end], behind the first n of
// the other pairs. O(len(p)).
func MovePair(p []byte, value, end int, field []byte, n int) {
	at := value - TextSize(len(field))
	pair := append([]byte(nil), p[at:end]...)
	others := append(p[:at], p[end:]...)
	to := 0
	for ; n > 0; n-- {
		_, to = ReadText(others, to)
		_, to = ReadText(others, to)
	}
	copy(p[to+len(pair):], others[to:])
	copy(p[to:], pair)
}

// FindText returns the offsets of a text in p, -1 if it is absent.
func FindText(p []byte, text string) (at, end int) {
	for at := 0; at < len(p); {
		b, end := ReadText(p, at)
		if string(b) == text {
			return at, end
		}
		at = end
	}
	return -1, -1
}
