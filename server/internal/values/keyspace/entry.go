package keyspace

import (
	"strings"
	"unsafe"
)

// Entry is a key with its value, in one allocation. With many short strings most
// memory is overhead of the keys, which these layouts minimize. All of them begin
// with the same header of 12 bytes.
//
// Packed: a short string, or a small hash or set. Header, key and value share an
// allocation without pointers, which the garbage collector does not scan:
//
//	header (12) │ key │ value │ free │ deadline (8, optional)
//
// The value of a hash or set is its size in bytes (2) followed by its texts. The
// allocation has a size class of Go's allocator, and the rest of it is free space
// for the value. A key and a value of 16 bytes take 48 bytes, plus 13.5 bytes in
// the key table. Rejected alternatives: a key slot of 32 bytes with a pointer to an
// Entry, which points to the key and to a String with a separate buffer, takes 145
// bytes in four allocations; an Entry with a string header takes 92 bytes in three.
//
// Boxed with inline key: any other value except a long string. The key follows the
// fields:
//
//	header (12) │ shared (4) │ deadline (8) │ value pointer (8) │ key (up to 96)
//
// Boxed with separate key: the same with a string header for a long key, and for
// all strings that are not packed.
//
// An entry cannot change its layout or size in place. So functions that change a
// string, hash or set in its entry, and SetDeadline, return the current entry. The
// old one is then stale: it is marked, and changing it panics. Other collections
// keep their entries.
type Entry struct {
	access   uint32 // last access, or access count: see access.go
	state    uint32 // index of the entry's record in the recorder, from 1, 0 = none; and the bits below
	flags    uint8  // kind, layout and other flags
	words    uint8  // size of a packed entry in words of 8 bytes
	keyLen   uint8  // length of the key, unless it is separate
	valueLen uint8  // of a packed entry: length of the string, or number of fields or members
}

// The kinds of values, in the lowest bits of flags.
const (
	isString = iota
	isList
	isSet
	isHash
	isZset
	isStream
	kindBits = 7
)

// Layouts and other flags.
const (
	packedLayout    = 0 << 3
	inlineKeyLayout = 1 << 3
	longKeyLayout   = 2 << 3
	layoutBits      = 3 << 3

	editedFlag   = 1 << 5 // a string modified in place, which Redis reports as raw
	textFlag     = 1 << 6 // see String.MarkText
	deadlineFlag = 1 << 7 // the entry has a deadline
	stringFlags  = editedFlag | textFlag
	textsFlag    = editedFlag // a packed set has texts, not integers
)

// boxed is an entry with a pointer to its value.
type boxed struct {
	Entry
	shared   bool           // a clone shares the buffer of a string
	deadline int64          // milliseconds since 1970; 0 = none
	value    unsafe.Pointer // the value, or the buffer of a string; of a sorted set all of the Set
}

// longKeyEntry is a boxed entry with a separate key.
type longKeyEntry struct {
	boxed
	key string
}

// boxedString is a string that is not packed; without a key it belongs to no entry.
type boxedString struct {
	longKeyEntry
	size, capacity int // of the buffer
}

const (
	headerSize      = int(unsafe.Sizeof(Entry{}))
	boxedSize       = int(unsafe.Sizeof(boxed{}))
	deadlineSize    = 8
	packedStringMax = 255 // maximum bytes of a packed string
	maxPackedString = 512 // maximum bytes of a packed string's entry
)

// stale is the state of an entry that was replaced by another.
const stale = 1<<32 - 1

// timedBit marks entries that are in the database's index of member deadlines.
const timedBit = 1 << 31

// weighedBit marks entries that weigh measures; see weight.go.
const weighedBit = 1 << 30

const entryBits = timedBit | weighedBit

func (e *Entry) timed() bool      { return e.state&timedBit != 0 }
func (e *Entry) open() uint32     { return e.state &^ entryBits }
func (e *Entry) setOpen(n uint32) { e.state = e.state&entryBits | n }

func (e *Entry) kind() uint8    { return e.flags & kindBits }
func (e *Entry) packed() bool   { return e.flags&layoutBits == packedLayout }
func (e *Entry) volatile() bool { return e.flags&deadlineFlag != 0 }

// Key returns the key.
func (e *Entry) Key() string {
	switch e.flags & layoutBits {
	case packedLayout:
		return e.stringAt(headerSize, int(e.keyLen))
	case inlineKeyLayout:
		return e.stringAt(boxedSize, int(e.keyLen))
	}
	return e.longKey()
}

// Deadline returns the deadline of the key in milliseconds since 1970, or 0 if it
// has none.
func (e *Entry) Deadline() int64 {
	if !e.volatile() {
		return 0
	}
	if e.packed() {
		return *e.packedDeadline()
	}
	return e.box().deadline
}

// setDeadline sets the deadline, 0 for none. It returns false if a packed entry has
// no space for it.
func (e *Entry) setDeadline(ms int64) bool {
	switch {
	case ms == 0:
		e.flags &^= deadlineFlag
		return true
	case !e.packed():
		e.box().deadline = ms
	case !e.volatile() && e.valueCapacity()-e.valueSize() < deadlineSize:
		return false
	default:
		*e.packedDeadline() = ms
	}
	e.flags |= deadlineFlag
	return true
}

// Access returns the time of the last access in milliseconds since 1970, with a
// resolution of one second.
func (e *Entry) Access() int64 { return int64(e.access) * 1000 }

// SetAccess sets the time of the last access, in milliseconds since 1970.
func (e *Entry) SetAccess(ms int64) { e.access = uint32(max(0, ms) / 1000) }

// valueSize returns the number of bytes that the value of a packed entry occupies.
func (e *Entry) valueSize() int {
	if e.kind() == isString {
		return int(e.valueLen)
	}
	return pairsHeader + e.pairsSize()
}

// stringCapacity returns the maximum length of the string in a packed entry.
func (e *Entry) stringCapacity() int { return min(e.valueCapacity(), packedStringMax) }

// valueCapacity returns the number of bytes for the value in a packed entry.
func (e *Entry) valueCapacity() int {
	n := int(e.words)*8 - headerSize - int(e.keyLen)
	if e.volatile() {
		n -= deadlineSize
	}
	return n
}

// text returns the string in a packed entry.
func (e *Entry) text() []byte {
	if e.valueLen == 0 {
		return []byte{}
	}
	return e.bytesAt(headerSize+int(e.keyLen), int(e.valueLen))
}

// packable reports whether a string of the given length can be packed.
func packable(key, value int) bool {
	return value <= packedStringMax && key <= packedStringMax && headerSize+key+value+deadlineSize <= maxPackedString
}

// newPacked returns a packed entry with a string of n zero bytes. If timed is true,
// it has space for a deadline.
func newPacked(key string, n int, timed bool) *Entry {
	e := allocate(key, n, timed)
	e.valueLen = uint8(n)
	return e
}

// allocate returns a packed entry with size bytes for the value and, if timed is
// true, space for a deadline.
func allocate(key string, size int, timed bool) *Entry {
	size += headerSize + len(key)
	if timed {
		size += deadlineSize
	}
	b := append([]byte(nil), make([]byte, size)...) // rounded up to a size class
	e := entryIn(b)
	e.words, e.keyLen = uint8(cap(b)/8), uint8(len(key))
	copy(b[headerSize:], key)
	return e
}

// resized returns a copy of a packed entry with size bytes for the value, at least
// as many as it uses. It does not copy the deadline.
func (e *Entry) resized(size int, timed bool) *Entry {
	if e.kind() != isString {
		size = max(size, minPackedValue)
	}
	n := allocate(e.Key(), size, timed)
	n.flags, n.valueLen = e.flags&^deadlineFlag, e.valueLen
	// Without a value the key may end at the end of the allocation, and no pointer may
	// point behind it.
	if used := e.valueSize(); used > 0 {
		at := headerSize + int(e.keyLen)
		copy(n.bytesAt(at, size), e.bytesAt(at, used))
	}
	return n
}

// newString returns an entry with a copy of b.
func newString(key string, b []byte, timed bool) *Entry {
	if !packable(len(key), len(b)) {
		return boxString(key, append([]byte(nil), b...))
	}
	e := newPacked(key, len(b), timed)
	copy(e.text(), b)
	return e
}

// boxString returns a boxed entry that takes ownership of b.
func boxString(key string, b []byte) *Entry {
	s := new(boxedString)
	s.flags = isString | longKeyLayout
	s.key = strings.Clone(key)
	s.setBuffer(b)
	return &s.Entry
}

// newBoxed returns a boxed entry without a value, for a value that is not a string.
func newBoxed(key string) *Entry {
	var e *boxed
	switch n := len(key); {
	case n <= 16:
		e = &new(struct {
			boxed
			_ [16]byte
		}).boxed
	case n <= 32:
		e = &new(struct {
			boxed
			_ [32]byte
		}).boxed
	case n <= 48:
		e = &new(struct {
			boxed
			_ [48]byte
		}).boxed
	case n <= 64:
		e = &new(struct {
			boxed
			_ [64]byte
		}).boxed
	case n <= 96:
		e = &new(struct {
			boxed
			_ [96]byte
		}).boxed
	default:
		a := &longKeyEntry{key: strings.Clone(key)}
		a.flags = longKeyLayout
		return &a.Entry
	}
	e.flags, e.keyLen = inlineKeyLayout, uint8(len(key))
	copy(e.bytesAt(boxedSize, len(key)), key)
	return &e.Entry
}

// newEntry returns an entry that takes ownership of value; the elements of a sorted set
// move to the entry. timed is as for newPacked.
func newEntry(key string, value any, timed bool) *Entry {
	switch v := value.(type) {
	case *String:
		return v.entry(key, timed)
	case *Hash:
		if v.packs(len(key)) {
			return v.entry(key, timed)
		}
		if v.inEntry() {
			value = v.Clone()
		}
	case *Set:
		if v.packs(len(key)) {
			return v.entry(key, timed)
		}
		if v.inEntry() {
			value = v.Clone()
		}
	}
	e := newBoxed(key)
	e.setValue(value)
	return e
}

// Bytes estimates the memory of the key without its value, in bytes: the entry with
// the key, and its share of the key table. The free space of a packed entry counts
// as part of the value.
func (e *Entry) Bytes() int {
	const slot = slotBytes * 4 / 3 // slots are 75 % full
	switch {
	case e.packed():
		return slot + headerSize + int(e.keyLen)
	case e.flags&layoutBits == longKeyLayout && e.kind() == isString:
		return slot + int(unsafe.Sizeof(boxedString{})) + len(e.Key())
	case e.flags&layoutBits == longKeyLayout:
		return slot + int(unsafe.Sizeof(longKeyEntry{})) + len(e.Key())
	}
	return slot + int(unsafe.Sizeof(boxed{})) + (int(e.keyLen)+15)&^15
}

// relocate replaces e by n, an entry of the same key, and returns n.
func (db *DB) relocate(e, n *Entry) *Entry {
	if e.state == stale {
		panic("BUG: a stale entry is changed")
	}
	n.access, n.state = e.access, e.state
	db.entries.replace(n)
	if open := e.open(); open != 0 {
		db.ks.rec.open[open-1].entry = n
	}
	if e.volatile() {
		if !n.setDeadline(e.Deadline()) {
			panic("BUG: an entry without room for its deadline")
		}
	}
	db.replaced(e, n)
	e.state = stale
	return n
}
