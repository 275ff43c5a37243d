package protocol

import (
	"encoding/binary"
	"slices"
	"strconv"
	"unsafe"

	"github.com/tidwall/redcon"
)

// Reply is a buffer of encoded replies and the dialect they are encoded in.
// Whoever writes a reply says what it is (a double, a map, a null); whether
// that leaves as RESP2 or RESP3 is decided here alone.
//
// The zero value encodes RESP2. A Reply is not safe for concurrent use.
type Reply struct {
	b     []byte
	v3    bool
	over  bool
	limit int
}

// NewReply returns an empty reply buffer over b[:0] for RESP version 2 or 3.
func NewReply(b []byte, version int) Reply { return Reply{b: b[:0], v3: version == 3} }

// Version returns the RESP version, 2 or 3.
func (r *Reply) Version() int {
	if r.v3 {
		return 3
	}
	return 2
}

// SetVersion chooses RESP 2 or 3 for what follows.
func (r *Reply) SetVersion(version int) { r.v3 = version == 3 }

// Bytes returns what has been encoded. It is good until the next write.
func (r *Reply) Bytes() []byte { return r.b }

// Len returns how many bytes have been encoded.
func (r *Reply) Len() int { return len(r.b) }

// Cap returns the size of the buffer in bytes.
func (r *Reply) Cap() int { return cap(r.b) }

// Truncate drops what was encoded after the first n bytes, and forgets that it was
// too much.
func (r *Reply) Truncate(n int) { r.b, r.over = r.b[:min(n, len(r.b))], false }

// SetLimit says how many bytes may be encoded, 0 for any number. Beyond that, what
// there is is dropped when it would have to be moved, and Over says so: so nobody
// has to ask while he encodes, the memory is bounded by the limit and one string,
// and a loop without an end in sight can be ended.
func (r *Reply) SetLimit(n int) { r.limit = n }

// Over reports whether something was dropped because it was more than SetLimit
// allows. What Bytes returns is then of no use.
func (r *Reply) Over() bool { return r.over }

// Swap returns the buffer and goes on with b[:0], which may be nil.
func (r *Reply) Swap(b []byte) []byte {
	old := r.b
	r.b = b[:0]
	return old
}

// Raw appends bytes that are already encoded.
func (r *Reply) Raw(b []byte) { r.b = append(r.b, b...) }

// OK appends the status OK.
func (r *Reply) OK() { r.b = append(r.b, "+OK\r\n"...) }

// Status appends a simple string. It must not contain line ends.
func (r *Reply) Status(s string) { r.b = redcon.AppendString(r.b, s) }

// Error appends an error line, such as "ERR syntax error". Line ends in it
// become spaces.
func (r *Reply) Error(s string) { r.b = redcon.AppendError(r.b, s) }

// Int appends an integer.
func (r *Reply) Int(n int64) {
	if uint64(n) <= 9 {
		r.b = append(r.b, ':', '0'+byte(n), '\r', '\n')
		return
	}
	b := append(r.room(1+maxInt+2), ':')
	r.b = append(AppendInt(b, n), '\r', '\n')
}

// room returns the buffer with room for n bytes more, so that what is appended to
// it in pieces is checked, and moved, once.
func (r *Reply) room(n int) []byte {
	if cap(r.b)-len(r.b) < n {
		r.grow(n)
	}
	return r.b
}

// grow makes the buffer larger, or begins anew if that is too large.
func (r *Reply) grow(n int) {
	if r.limit > 0 && len(r.b)+n > r.limit {
		r.b, r.over = r.b[:0], true
	}
	r.b = slices.Grow(r.b, n)
}

// Bulk appends a bulk string.
func (r *Reply) Bulk(b []byte) { r.BulkString(View(b)) }

// BulkString appends a bulk string.
//
// It is most of what replies are made of. A header of one or two digits is one store
// of eight bytes, of which those that are too many are overwritten by what follows;
// and a string of up to 32 bytes is copied by two or four of them, which saves a call
// of memmove (a third of all for 14 bytes).
func (r *Reply) BulkString(s string) {
	n := len(s)
	b := r.room(n + 1 + maxInt + 4)
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
	r.b = b[:at+n+2]
}

// BulkInt appends an integer as a bulk string.
func (r *Reply) BulkInt(n int64) {
	var d [maxInt]byte
	r.Bulk(AppendInt(d[:0], n))
}

// Null appends the null: a null bulk string in RESP2.
func (r *Reply) Null() {
	if r.v3 {
		r.b = append(r.b, "_\r\n"...)
		return
	}
	r.b = append(r.b, "$-1\r\n"...)
}

// NullArray appends the null where an array was expected: a null array in
// RESP2.
func (r *Reply) NullArray() {
	if r.v3 {
		r.b = append(r.b, "_\r\n"...)
		return
	}
	r.b = append(r.b, "*-1\r\n"...)
}

// Array appends the header of an array; n elements must follow.
func (r *Reply) Array(n int) { r.header('*', n) }

// Map appends the header of a map; n pairs must follow. In RESP2 it is an
// array of 2n elements.
func (r *Reply) Map(n int) {
	if r.v3 {
		r.header('%', n)
		return
	}
	r.header('*', 2*n)
}

// Pairs appends the header of a map; n pairs must follow. In RESP2 each of them
// is to be an array of its own.
func (r *Reply) Pairs(n int) {
	if r.v3 {
		r.header('%', n)
		return
	}
	r.header('*', n)
}

// Set appends the header of a set; n elements must follow. In RESP2 it is an
// array.
func (r *Reply) Set(n int) {
	if r.v3 {
		r.header('~', n)
		return
	}
	r.header('*', n)
}

// Push appends the header of an out-of-band message; n elements must follow.
// In RESP2 it is an array.
func (r *Reply) Push(n int) {
	if r.v3 {
		r.header('>', n)
		return
	}
	r.header('*', n)
}

func (r *Reply) header(kind byte, n int) {
	if uint(n) <= 9 {
		r.b = append(r.b, kind, '0'+byte(n), '\r', '\n')
		return
	}
	b := append(r.room(1+maxInt+2), kind)
	r.b = append(AppendInt(b, int64(n)), '\r', '\n')
}

// Bool appends a boolean: 1 or 0 in RESP2.
func (r *Reply) Bool(v bool) {
	switch {
	case r.v3 && v:
		r.b = append(r.b, "#t\r\n"...)
	case r.v3:
		r.b = append(r.b, "#f\r\n"...)
	case v:
		r.Int(1)
	default:
		r.Int(0)
	}
}

// Double appends a float64: in RESP2 a bulk string.
func (r *Reply) Double(f float64) {
	var d [32]byte
	t := AppendFloat(d[:0], f)
	if r.v3 {
		r.b = append(r.b, ',')
		r.b = append(append(r.b, t...), '\r', '\n')
		return
	}
	r.Bulk(t)
}

// Decimal appends a number that is written already, for those whose digits are not
// what Double writes: in RESP2 a bulk string.
func (r *Reply) Decimal(digits []byte) {
	if !r.v3 {
		r.Bulk(digits)
		return
	}
	r.b = append(append(append(r.b, ','), digits...), '\r', '\n')
}

// Verbatim appends text of a three-letter format such as "txt": in RESP2 a
// bulk string without the format.
func (r *Reply) Verbatim(format, text string) {
	if !r.v3 {
		r.BulkString(text)
		return
	}
	r.b = append(r.b, '=')
	r.b = append(strconv.AppendInt(r.b, int64(len(text)+4), 10), '\r', '\n')
	r.b = append(append(r.b, format[:3]...), ':')
	r.b = append(append(r.b, text...), '\r', '\n')
}

// BigNumber appends an integer of any size, given in decimal: in RESP2 a bulk
// string.
func (r *Reply) BigNumber(decimal string) {
	if !r.v3 {
		r.BulkString(decimal)
		return
	}
	r.b = append(append(append(r.b, '('), decimal...), '\r', '\n')
}
