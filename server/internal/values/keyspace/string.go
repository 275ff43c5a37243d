package keyspace

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/zsetd/zsetd/server/internal/values/journal"
)

// String is a byte string: the value of an entry, in which case it is the same
// memory viewed as a String (see Entry), or a separate string made by NewString. A
// String is not safe for concurrent use, except that a clone and its original are
// independent.
//
// Strings of entries are changed by [DB.SetString], [DB.AppendString] and
// [DB.WriteString], which may replace the entry.
//
// An overwrite reuses the buffer, so that setting a value of the same size does not
// allocate. Clones share the buffer of a long string copy-on-write.
type String struct{ e Entry }

// wasteful is the maximum ratio of the size of a buffer to its content.
const wasteful = 2

// NewString returns a string with a copy of b.
func NewString(b []byte) *String { return freeString(append([]byte(nil), b...), 0) }

// RawString returns a string that takes ownership of b. Its encoding is raw
// regardless of its content.
func RawString(b []byte) *String { return freeString(b, editedFlag) }

// freeString returns a string without an entry.
func freeString(b []byte, flags uint8) *String {
	s := new(boxedString)
	s.flags = isString | longKeyLayout | flags
	s.setBuffer(b)
	return s.asString()
}

// entry returns an entry with the content of s. A long string's buffer becomes the
// entry's.
func (s *String) entry(key string, timed bool) *Entry {
	var e *Entry
	if b := s.Content(); s.e.packed() || packable(len(key), len(b)) {
		e = newString(key, b, timed)
	} else {
		e = boxString(key, s.box().buffer())
		e.box().shared = s.box().shared
	}
	e.flags |= s.e.flags & stringFlags
	return e
}

// Content returns the bytes. They must not be modified, and are valid until the
// string changes.
func (s *String) Content() []byte {
	if s.e.packed() {
		return s.e.text()
	}
	return s.box().buffer()
}

// Len returns the number of bytes.
func (s *String) Len() int {
	if s.e.packed() {
		return int(s.e.valueLen)
	}
	return s.box().size
}

// MarkText makes Encoding report text even if the content is an integer, until the
// string is set again. Redis does so for the result of INCRBYFLOAT.
func (s *String) MarkText() { s.e.flags |= textFlag }

// set sets the content to a copy of b. O(len(b)).
func (s *boxedString) set(b []byte) {
	if s.shared || s.capacity < len(b) || s.capacity > wasteful*len(b)+64 {
		s.setBuffer(append([]byte(nil), b...))
		s.shared = false
		return
	}
	s.setBuffer(append(s.buffer()[:0], b...))
}

// extend extends the string to at least n bytes, with zero bytes, and copies a
// shared buffer. Amortized O(n-Len), O(n) if the buffer is shared.
func (s *boxedString) extend(n int) {
	b := s.buffer()
	if s.shared {
		b, s.shared = append(make([]byte, 0, max(n, len(b))), b...), false
	}
	if old := len(b); n > old {
		b = slices.Grow(b, n-old)[:n]
		clear(b[old:])
	}
	s.setBuffer(b)
}

// SetString sets the string of e to a copy of b, and returns the current entry.
// O(len(b)).
func (db *DB) SetString(e *Entry, b []byte) *Entry {
	switch {
	case db.ks.rec == nil:
	case len(b) > pinBytes:
		db.ks.rec.replaced(db, e)
	default:
		db.ks.rec.string(db, e, journal.OpString, 0, b)
	}
	e.flags &^= stringFlags
	if e.packed() {
		if capacity := e.stringCapacity(); len(b) <= capacity && capacity <= wasteful*len(b)+64 {
			db.resize(e, len(b))
			copy(e.text(), b)
			return e
		}
	} else if len(b) > packedStringMax/2 || !packable(len(e.Key()), len(b)) {
		e.asString().box().set(b)
		return e
	}
	return db.relocate(e, newString(e.Key(), b, e.volatile()))
}

// SetOwnedString is SetString that takes ownership of a long b instead of copying it.
func (db *DB) SetOwnedString(e *Entry, b []byte) *Entry {
	if e.packed() || len(b) <= pinBytes {
		return db.SetString(e, b)
	}
	if db.ks.rec != nil {
		db.ks.rec.replaced(db, e)
	}
	e.flags &^= stringFlags
	s := e.asString().box()
	s.setBuffer(b)
	s.shared = false
	return e
}

// AppendString appends b to the string of e. It returns the current entry and the
// new length. Amortized O(len(b)).
func (db *DB) AppendString(e *Entry, b []byte) (now *Entry, n int) {
	old := e.asString().Len()
	if db.ks.rec != nil {
		db.ks.rec.string(db, e, journal.OpWrite, old, b)
	}
	return db.overwrite(e, old, b)
}

// WriteString overwrites the string of e with b from offset on. It returns the
// current entry and the new length. Bytes between the old end and offset become
// zero. Amortized O(len(b)), plus those bytes.
func (db *DB) WriteString(e *Entry, offset int, b []byte) (now *Entry, n int) {
	switch {
	case db.ks.rec == nil:
	case offset > e.asString().Len()+maxGap:
		db.ks.rec.replaced(db, e)
	default:
		db.ks.rec.string(db, e, journal.OpWrite, offset, b)
	}
	return db.overwrite(e, offset, b)
}

func (db *DB) overwrite(e *Entry, offset int, b []byte) (now *Entry, n int) {
	n = max(e.asString().Len(), offset+len(b))
	switch {
	case !e.packed():
		e.asString().box().extend(n)
	case n <= e.stringCapacity():
		if old := int(e.valueLen); n > old {
			db.resize(e, n)
			clear(e.text()[old:])
		}
	default:
		var grown *Entry
		if packable(len(e.Key()), n) {
			grown = newPacked(e.Key(), n, e.volatile())
		} else {
			capacity := n
			if e.valueLen > 0 { // strings that grow once tend to grow again
				capacity += n / 4
			}
			grown = boxString(e.Key(), make([]byte, n, capacity))
		}
		copy(grown.asString().Content(), e.text())
		e = db.relocate(e, grown)
	}
	e.flags |= editedFlag
	copy(e.asString().Content()[offset:], b)
	return e, n
}

// Clone returns a separate copy. A long string shares its buffer copy-on-write.
// O(1).
func (s *String) Clone() *String {
	if s.e.packed() {
		return freeString(append([]byte(nil), s.Content()...), s.e.flags&stringFlags)
	}
	s.box().shared = true
	c := freeString(s.box().buffer(), s.e.flags&stringFlags)
	c.box().shared = true
	return c
}

// maxEmbedded is the maximum length of a string that Redis allocates together with
// its header.
const maxEmbedded = 44

// Encoding returns the encoding for OBJECT ENCODING: "int", "embstr" or "raw".
func (s *String) Encoding(*Limits) string {
	switch {
	case s.e.flags&editedFlag != 0:
		return "raw"
	case s.e.flags&textFlag == 0 && isInt(s.Content()):
		return "int"
	case s.Len() <= maxEmbedded:
		return "embstr"
	}
	return "raw"
}

// isInt reports whether b is a 64-bit integer in the form in which Redis writes it.
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

// Bytes estimates the memory of the string in bytes, without its entry.
func (s *String) Bytes() int {
	switch {
	case !s.e.packed():
		return s.box().capacity
	case s.e.words == 0:
		return 0
	}
	return int(s.e.words)*8 - headerSize - int(s.e.keyLen)
}

// Check verifies the invariants and returns an error if one is violated. For tests.
func (s *String) Check() error {
	if s.e.packed() && int(s.e.valueLen) > max(s.e.stringCapacity(), 0) {
		return fmt.Errorf("string of %d bytes in %d", s.e.valueLen, s.e.stringCapacity())
	}
	return nil
}
