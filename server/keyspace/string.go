package keyspace

import (
	"slices"
	"strconv"
)

// String is a sequence of bytes. The zero value is an empty string.
//
// It is changed by [DB.SetString], [DB.AppendString] and [DB.WriteString].
//
// Its buffer is used again when it is overwritten, so that setting a value of
// the same size costs no allocation, and is shared with clones until one side
// changes it.
type String struct {
	b      []byte
	edited bool // changed in place: Redis says raw of it
	text   bool // see MarkText
	shared bool // b belongs to a clone too
}

// wasteful is how many times larger than its content a buffer may be.
const wasteful = 2

// NewString returns a string of a copy of b.
func NewString(b []byte) *String {
	s := new(String)
	s.set(b)
	return s
}

// RawString returns a string of b itself, which is the string's from now on.
// Encoding calls it raw whatever it holds.
func RawString(b []byte) *String { return &String{b: b, edited: true} }

// Content returns the bytes. They must not be changed, and are good until the
// string changes.
func (s *String) Content() []byte { return s.b }

// Len returns the number of bytes.
func (s *String) Len() int { return len(s.b) }

// set makes a copy of b the content. O(len(b)).
func (s *String) set(b []byte) {
	s.edited, s.text = false, false
	if s.shared || cap(s.b) < len(b) || cap(s.b) > wasteful*len(b)+64 {
		s.b, s.shared = append(make([]byte, 0, len(b)), b...), false
		return
	}
	s.b = append(s.b[:0], b...)
}

// MarkText makes Encoding call the content text even if it is an integer, until
// it is set anew. Redis does so with what INCRBYFLOAT computes.
func (s *String) MarkText() { s.text = true }

// append adds b at the end and returns the new length. Amortized O(len(b)).
func (s *String) append(b []byte) int {
	s.own(len(s.b) + len(b))
	s.b = append(s.b, b...)
	s.edited = true
	return len(s.b)
}

// write overwrites the content from offset on with b and returns the new
// length. What lies between the old end and offset becomes zero bytes.
// Amortized O(len(b)) and the bytes in between.
func (s *String) write(offset int, b []byte) int {
	end := offset + len(b)
	s.own(max(end, len(s.b)))
	if old := len(s.b); end > old {
		s.b = slices.Grow(s.b, end-old)[:end]
		clear(s.b[old:])
	}
	copy(s.b[offset:], b)
	s.edited = true
	return len(s.b)
}

// SetString makes a copy of b the content of the string of e. O(len(b)).
func (db *DB) SetString(e *Entry, b []byte) {
	e.value.(*String).set(b)
	switch {
	case db.ks.rec == nil:
	case len(b) > pinBytes:
		db.ks.rec.anew(db, e)
	default:
		db.ks.rec.string(db, e, opString, 0, b)
	}
}

// AppendString adds b at the end of the string of e and returns the new
// length. Amortized O(len(b)).
func (db *DB) AppendString(e *Entry, b []byte) int {
	s := e.value.(*String)
	if db.ks.rec != nil {
		db.ks.rec.string(db, e, opWrite, s.Len(), b)
	}
	return s.append(b)
}

// WriteString overwrites the string of e from offset on with b and returns the
// new length. What lies between the old end and offset becomes zero bytes.
// Amortized O(len(b)) and the bytes in between.
func (db *DB) WriteString(e *Entry, offset int, b []byte) int {
	s := e.value.(*String)
	switch {
	case db.ks.rec == nil:
	case offset > s.Len()+maxGap:
		db.ks.rec.anew(db, e)
	default:
		db.ks.rec.string(db, e, opWrite, offset, b)
	}
	return s.write(offset, b)
}

// own makes the buffer this string's alone, with room for n bytes if it has to
// be copied.
func (s *String) own(n int) {
	if s.shared {
		s.b, s.shared = append(make([]byte, 0, n), s.b...), false
	}
}

// Clone returns a copy that shares the buffer until one of the two changes.
// O(1).
func (s *String) Clone() *String {
	s.shared = true
	return &String{b: s.b, edited: s.edited, text: s.text, shared: true}
}

// maxEmbedded is the length up to which Redis keeps a string in one piece with
// its header.
const maxEmbedded = 44

// Encoding returns what OBJECT ENCODING says: int, embstr or raw.
func (s *String) Encoding(*Limits) string {
	switch {
	case s.edited:
		return "raw"
	case !s.text && isInt(s.b):
		return "int"
	case len(s.b) <= maxEmbedded:
		return "embstr"
	}
	return "raw"
}

// isInt reports whether b is a 64-bit integer as Redis would write it.
func isInt(b []byte) bool {
	if len(b) == 0 || len(b) > 20 {
		return false
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return false
	}
	var d [20]byte
	return string(strconv.AppendInt(d[:0], n, 10)) == string(b)
}

// Bytes returns an estimate of the memory that the string takes.
func (s *String) Bytes() int { return 32 + cap(s.b) }

// Check verifies the invariants: there are none that could break.
func (s *String) Check() error { return nil }
