package protocol

import (
	"encoding/binary"
	"slices"
	"strconv"
	"unsafe"

	"github.com/tidwall/redcon"
)

// Reply is a buffer of encoded replies with their RESP version. Callers write typed
// values (a double, a map, a null); Reply alone chooses the encoding in RESP2 or
// RESP3.
//
// The zero value encodes RESP2. A Reply is not safe for concurrent use.
type Reply struct {
	buf   []byte
	v3    bool
	over  bool
	limit int
}

// NewReply returns an empty reply buffer over b[:0] for RESP version 2 or 3.
func NewReply(b []byte, version int) Reply { return Reply{buf: b[:0], v3: version == 3} }

// Version returns the RESP version, 2 or 3.
func (r *Reply) Version() int {
	if r.v3 {
		return 3
	}
	return 2
}

// SetVersion sets the RESP version, 2 or 3, of the following values.
func (r *Reply) SetVersion(version int) { r.v3 = version == 3 }

// Bytes returns the encoded bytes, valid until the next write.
func (r *Reply) Bytes() []byte { return r.buf }

// Len returns the number of encoded bytes.
func (r *Reply) Len() int { return len(r.buf) }

// Cap returns the capacity of the buffer in bytes.
func (r *Reply) Cap() int { return cap(r.buf) }

// IsErrorAt reports whether the value that begins at byte mark is an error.
func (r *Reply) IsErrorAt(mark int) bool { return mark < len(r.buf) && r.buf[mark] == '-' }

// Truncate drops all but the first n bytes, and resets Over.
func (r *Reply) Truncate(n int) { r.buf, r.over = r.buf[:min(n, len(r.buf))], false }

// SetLimit bounds the number of encoded bytes; 0 means no limit. When the buffer
// has to grow beyond the limit, its content is dropped and Over returns true. So
// callers need no check while they encode, memory is bounded by the limit plus one
// string, and a long loop can stop early.
func (r *Reply) SetLimit(n int) { r.limit = n }

// Over reports whether content was dropped because of SetLimit. The bytes are then
// incomplete and must not be sent.
func (r *Reply) Over() bool { return r.over }

// Swap returns the buffer and continues with b[:0], where b may be nil.
func (r *Reply) Swap(b []byte) []byte {
	old := r.buf
	r.buf = b[:0]
	return old
}

// Raw appends bytes that are already encoded.
func (r *Reply) Raw(b []byte) { r.buf = append(r.buf, b...) }

// OK appends the status OK.
func (r *Reply) OK() { r.buf = append(r.buf, "+OK\r\n"...) }

// Status appends a simple string, which must not contain line breaks.
func (r *Reply) Status(s string) { r.buf = redcon.AppendString(r.buf, s) }

// Error appends an error, such as "ERR syntax error". Line breaks in it become
// spaces.
func (r *Reply) Error(s string) { r.buf = redcon.AppendError(r.buf, s) }

// Int appends an integer.
func (r *Reply) Int(n int64) {
	if uint64(n) <= 9 {
		r.buf = append(r.buf, ':', '0'+byte(n), '\r', '\n')
		return
	}
	b := append(r.reserve(1+maxIntDigits+2), ':')
	r.buf = append(AppendInt(b, n), '\r', '\n')
}

// reserve returns the buffer with capacity for n more bytes, so that a value in
// several parts needs one capacity check.
func (r *Reply) reserve(n int) []byte {
	if cap(r.buf)-len(r.buf) < n {
		r.grow(n)
	}
	return r.buf
}

// grow enlarges the buffer, and drops its content first if it exceeds the limit.
func (r *Reply) grow(n int) {
	if r.limit > 0 && len(r.buf)+n > r.limit {
		r.buf, r.over = r.buf[:0], true
	}
	r.buf = slices.Grow(r.buf, n)
}

// Bulk appends a bulk string.
func (r *Reply) Bulk(b []byte) { r.BulkString(View(b)) }

// BulkString appends a bulk string.
//
// Most replies consist of bulk strings. A header of one or two digits is one store
// of eight bytes, of which the excess is overwritten afterwards. A string of up to
// 32 bytes is copied by two or four loads and stores, which avoids the call of
// memmove (a third of the total time for 14 bytes).
func (r *Reply) BulkString(s string) {
	n := len(s)
	b := r.reserve(n + 1 + maxIntDigits + 4)
	at := len(b)
	b = b[:cap(b)]
	switch {
	case n < 10:
		binary.LittleEndian.PutUint64(b[at:], '$'|uint64('0'+n)<<8|'\r'<<16|'\n'<<24)
		at += 4
	case n < 100:
		binary.LittleEndian.PutUint64(b[at:], '$'|uint64('0'+n/10)<<8|uint64('0'+n%10)<<16|'\r'<<24|'\n'<<32)
		at += 5
	default:
		b[at] = '$'
		at = len(append(AppendInt(b[:at+1], int64(n)), '\r', '\n'))
	}
	body := b[at : at+n]
	switch {
	case n < 8 || n > 32:
		copy(body, s)
	default:
		p := unsafe.Slice(unsafe.StringData(s), n)
		if n > 16 {
			second, third := binary.LittleEndian.Uint64(p[8:]), binary.LittleEndian.Uint64(p[n-16:])
			binary.LittleEndian.PutUint64(body[8:], second)
			binary.LittleEndian.PutUint64(body[n-16:], third)
		}
		first, last := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[n-8:])
		binary.LittleEndian.PutUint64(body, first)
		binary.LittleEndian.PutUint64(body[n-8:], last)
	}
	b[at+n], b[at+n+1] = '\r', '\n'
	r.buf = b[:at+n+2]
}

// BulkInt appends an integer as a bulk string.
func (r *Reply) BulkInt(n int64) {
	var d [maxIntDigits]byte
	r.Bulk(AppendInt(d[:0], n))
}

// Null appends a null, in RESP2 a null bulk string.
func (r *Reply) Null() {
	if r.v3 {
		r.buf = append(r.buf, "_\r\n"...)
		return
	}
	r.buf = append(r.buf, "$-1\r\n"...)
}

// NullArray appends a null in place of an array, in RESP2 a null array.
func (r *Reply) NullArray() {
	if r.v3 {
		r.buf = append(r.buf, "_\r\n"...)
		return
	}
	r.buf = append(r.buf, "*-1\r\n"...)
}

// Array appends the header of an array of n elements, which must follow.
func (r *Reply) Array(n int) { r.header('*', n) }

// Map appends the header of a map of n pairs, which must follow. In RESP2 it is an
// array of 2n elements.
func (r *Reply) Map(n int) {
	if r.v3 {
		r.header('%', n)
		return
	}
	r.header('*', 2*n)
}

// Pairs appends the header of a map of n pairs, which must follow. In RESP2 it is
// an array of n elements, and each pair must be an array.
func (r *Reply) Pairs(n int) {
	if r.v3 {
		r.header('%', n)
		return
	}
	r.header('*', n)
}

// Set appends the header of a set of n elements, which must follow. In RESP2 it is
// an array.
func (r *Reply) Set(n int) {
	if r.v3 {
		r.header('~', n)
		return
	}
	r.header('*', n)
}

// Push appends the header of an out-of-band message of n elements, which must
// follow. In RESP2 it is an array.
func (r *Reply) Push(n int) {
	if r.v3 {
		r.header('>', n)
		return
	}
	r.header('*', n)
}

func (r *Reply) header(kind byte, n int) {
	if uint(n) <= 9 {
		r.buf = append(r.buf, kind, '0'+byte(n), '\r', '\n')
		return
	}
	b := append(r.reserve(1+maxIntDigits+2), kind)
	r.buf = append(AppendInt(b, int64(n)), '\r', '\n')
}

// Bool appends a boolean, in RESP2 the integer 1 or 0.
func (r *Reply) Bool(v bool) {
	switch {
	case r.v3 && v:
		r.buf = append(r.buf, "#t\r\n"...)
	case r.v3:
		r.buf = append(r.buf, "#f\r\n"...)
	case v:
		r.Int(1)
	default:
		r.Int(0)
	}
}

// Double appends a float64, in RESP2 as a bulk string.
func (r *Reply) Double(f float64) {
	var d [32]byte
	t := AppendFloat(d[:0], f)
	if r.v3 {
		r.buf = append(r.buf, ',')
		r.buf = append(append(r.buf, t...), '\r', '\n')
		return
	}
	r.Bulk(t)
}

// Decimal appends a double from its formatted digits, for values with a format
// different from that of Double. In RESP2 it is a bulk string.
func (r *Reply) Decimal(digits []byte) {
	if !r.v3 {
		r.Bulk(digits)
		return
	}
	r.buf = append(append(append(r.buf, ','), digits...), '\r', '\n')
}

// Verbatim appends text with a three-letter format such as "txt". In RESP2 it is a
// bulk string without the format.
func (r *Reply) Verbatim(format, text string) {
	if !r.v3 {
		r.BulkString(text)
		return
	}
	r.buf = append(r.buf, '=')
	r.buf = append(strconv.AppendInt(r.buf, int64(len(text)+4), 10), '\r', '\n')
	r.buf = append(append(r.buf, format[:3]...), ':')
	r.buf = append(append(r.buf, text...), '\r', '\n')
}

// BigNumber appends an integer of any size, given in decimal. In RESP2 it is a bulk
// string.
func (r *Reply) BigNumber(decimal string) {
	if !r.v3 {
		r.BulkString(decimal)
		return
	}
	r.buf = append(append(append(r.buf, '('), decimal...), '\r', '\n')
}
