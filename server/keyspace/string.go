package keyspace

import (
	"fmt"
	"slices"
	"strconv"
	"unsafe"
)

// String is a sequence of bytes: the value of an entry, and then the entry itself
// in another role (see Entry), or one that is in no entry, as NewString makes it.
//
// It is changed by [DB.SetString], [DB.AppendString] and [DB.WriteString], which
// may put another in its place.
//
// Its buffer is used again when it is overwritten, so that setting a value of
// the same size costs no allocation. That of a long string is shared with clones
// until one side changes it.
type String struct{ e Entry }

// wasteful is how many times larger than its content a buffer may be.
const wasteful = 2

// NewString returns a string of a copy of b.
func NewString(b []byte) *String { return freeString(append([]byte(nil), b...), 0) }

// RawString returns a string of b itself, which is the string's from now on.
// Encoding calls it raw whatever it holds.
func RawString(b []byte) *String { return freeString(b, editedFlag) }

// freeString returns a string that is in no entry.
func freeString(b []byte, flags uint8) *String {
	s := new(boxedString)
	s.flags = isString | apartLayout | flags
	s.setBuffer(b)
	return (*String)(unsafe.Pointer(s))
}

func (s *String) box() *boxedString { return (*boxedString)(unsafe.Pointer(s)) }

// entry makes an entry of s. A long string's buffer becomes the entry's.
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

// Content returns the bytes. They must not be changed, and are good until the
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
		return int(s.e.vlen)
	}
	return s.box().size
}

// MarkText makes Encoding call the content text even if it is an integer, until
// it is set anew. Redis does so with what INCRBYFLOAT computes.
func (s *String) MarkText() { s.e.flags |= textFlag }

func (s *boxedString) buffer() []byte { return unsafe.Slice((*byte)(s.value), s.room)[:s.size] }

func (s *boxedString) setBuffer(b []byte) {
	s.value, s.size, s.room = unsafe.Pointer(unsafe.SliceData(b)), len(b), cap(b)
}

// set makes a copy of b the content. O(len(b)).
func (s *boxedString) set(b []byte) {
	if s.shared || s.room < len(b) || s.room > wasteful*len(b)+64 {
		s.setBuffer(append([]byte(nil), b...))
		s.shared = false
		return
	}
	s.setBuffer(append(s.buffer()[:0], b...))
}

// extend makes the string n bytes long at least, with zero bytes, and its buffer
// its alone. Amortized O(n-Len), O(n) if the buffer is shared.
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

// SetString makes a copy of b the content of the string of e, and returns the
// entry as it is now. O(len(b)).
func (db *DB) SetString(e *Entry, b []byte) *Entry {
	switch {
	case db.ks.rec == nil:
	case len(b) > pinBytes:
		db.ks.rec.anew(db, e)
	default:
		db.ks.rec.string(db, e, opString, 0, b)
	}
	e.flags &^= stringFlags
	if e.packed() {
		if room := e.room(); len(b) <= room && room <= wasteful*len(b)+64 {
			e.vlen = uint8(len(b))
			copy(e.text(), b)
			return e
		}
	} else if len(b) > packedMax/2 || !packable(len(e.Key()), len(b)) {
		(*String)(unsafe.Pointer(e)).box().set(b)
		return e
	}
	return db.relocate(e, newString(e.Key(), b, e.volatile()))
}

// SetOwnString is SetString with b itself in place of a copy, if it is long: nobody
// else may change it from now on.
func (db *DB) SetOwnString(e *Entry, b []byte) *Entry {
	if e.packed() || len(b) <= pinBytes {
		return db.SetString(e, b)
	}
	if db.ks.rec != nil {
		db.ks.rec.anew(db, e)
	}
	e.flags &^= stringFlags
	s := (*String)(unsafe.Pointer(e)).box()
	s.setBuffer(b)
	s.shared = false
	return e
}

// AppendString adds b at the end of the string of e and returns the entry as it
// is now, and the new length. Amortized O(len(b)).
func (db *DB) AppendString(e *Entry, b []byte) (now *Entry, n int) {
	old := (*String)(unsafe.Pointer(e)).Len()
	if db.ks.rec != nil {
		db.ks.rec.string(db, e, opWrite, old, b)
	}
	return db.overwrite(e, old, b)
}

// WriteString overwrites the string of e from offset on with b and returns the
// entry as it is now, and the new length. What lies between the old end and
// offset becomes zero bytes. Amortized O(len(b)) and the bytes in between.
func (db *DB) WriteString(e *Entry, offset int, b []byte) (now *Entry, n int) {
	switch {
	case db.ks.rec == nil:
	case offset > (*String)(unsafe.Pointer(e)).Len()+maxGap:
		db.ks.rec.anew(db, e)
	default:
		db.ks.rec.string(db, e, opWrite, offset, b)
	}
	return db.overwrite(e, offset, b)
}

func (db *DB) overwrite(e *Entry, offset int, b []byte) (now *Entry, n int) {
	n = max((*String)(unsafe.Pointer(e)).Len(), offset+len(b))
	switch {
	case !e.packed():
		(*String)(unsafe.Pointer(e)).box().extend(n)
	case n <= e.room():
		if old := int(e.vlen); n > old {
			e.vlen = uint8(n)
			clear(e.text()[old:])
		}
	default:
		var grown *Entry
		if packable(len(e.Key()), n) {
			grown = newPacked(e.Key(), n, e.volatile())
		} else {
			room := n
			if e.vlen > 0 { // it grows, and may go on
				room += n / 4
			}
			grown = boxString(e.Key(), make([]byte, n, room))
		}
		copy((*String)(unsafe.Pointer(grown)).Content(), e.text())
		e = db.relocate(e, grown)
	}
	e.flags |= editedFlag
	copy((*String)(unsafe.Pointer(e)).Content()[offset:], b)
	return e, n
}

// Clone returns a copy, which is in no entry. That of a long string shares the
// buffer until one of the two changes. O(1).
func (s *String) Clone() *String {
	if s.e.packed() {
		return freeString(append([]byte(nil), s.Content()...), s.e.flags&stringFlags)
	}
	s.box().shared = true
	c := freeString(s.box().buffer(), s.e.flags&stringFlags)
	c.box().shared = true
	return c
}

// maxEmbedded is the length up to which Redis keeps a string in one piece with
// its header.
const maxEmbedded = 44

// Encoding returns what OBJECT ENCODING says: int, embstr or raw.
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

// Bytes returns an estimate of the memory that the string takes besides its
// entry.
func (s *String) Bytes() int {
	switch {
	case !s.e.packed():
		return s.box().room
	case s.e.units == 0:
		return 0
	}
	return int(s.e.units)*8 - headSize - int(s.e.klen)
}

// Check verifies the invariants.
func (s *String) Check() error {
	if s.e.packed() && int(s.e.vlen) > max(s.e.room(), 0) {
		return fmt.Errorf("string of %d bytes in %d", s.e.vlen, s.e.room())
	}
	return nil
}
