package keyspace

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/zsetd/zsetd/zset"
)

// Entry is a key with its value. What a key costs besides the bytes that it and
// its value have is what this file is about: of half a million short strings it
// is most of the memory. An entry is one allocation with a common head, and has
// one of three layouts.
//
// Packed: a short string, or a small hash or set. Head, key and value stand in one
// allocation without pointers, so the garbage collector does not look into it:
//
//	head (12) | key | value | room | deadline (8), if there is one
//
// A hash stands there as the bytes that its pairs take (2), and the pairs; a set
// likewise.
// The allocation has one of the sizes that Go's allocator has anyway, what is
// left of it is room for the value. A key and a value of 16 bytes take 48 bytes,
// and 12.5 in the table of keys; before it was 145 in four allocations (the slot
// 32, an Entry of 48 with pointers to the key, 16, and to a String, 32, and its
// bytes, 16). The alternative, a string header of 16 bytes in an Entry of 48
// with key and value apart, would take 92 in three.
//
// Inline: any other value, or a long string. There are pointers, to the value and
// its like, and a deadline, and the key stands behind:
//
//	head (12) | shared (4) | deadline (8) | value (8) | key (up to 96)
//
// Apart: the same with a string for a long key.
//
// The price is that an entry whose layout, or whose size, is no longer right for
// what it is to hold cannot be changed in place: another takes its place. So
// what changes a string, hash or set in its entry, and SetDeadline, return the
// entry as it is from then on; the old one must not be used any more. (A stale
// entry is marked, and changing it panics.) Other collections keep their entries.
type Entry struct {
	access uint32 // the last access through a door, or how many there were: see access.go
	state  uint32 // the number of its changes in the recorder, from 1, 0 = none; and the bits below
	flags  uint8  // what it is; see below
	units  uint8  // of a packed entry: its size, of 8 bytes each
	klen   uint8  // the length of the key, unless it stands apart
	vlen   uint8  // of a packed entry: the length of the string, or how many fields or members there are
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

// The other flags.
const (
	packedLayout = 0 << 3
	inlineLayout = 1 << 3
	apartLayout  = 2 << 3
	layoutBits   = 3 << 3

	editedFlag   = 1 << 5 // a string that was changed in place: Redis says raw of it
	textFlag     = 1 << 6 // see String.MarkText
	deadlineFlag = 1 << 7 // there is a deadline
	stringFlags  = editedFlag | textFlag
	textsFlag    = editedFlag // a packed set has texts, not integers
)

// boxed is an entry that is not packed.
type boxed struct {
	Entry
	shared   bool           // the buffer of a string belongs to a clone too
	deadline int64          // milliseconds since 1970; 0 = none
	value    unsafe.Pointer // the value, or the buffer of a string
}

// apart is an entry whose key is not in it.
type apart struct {
	boxed
	key string
}

// boxedString is a string in an entry of its own; without a key it is one that
// is in no entry.
type boxedString struct {
	apart
	size, room int // of the buffer
}

const (
	headSize     = int(unsafe.Sizeof(Entry{}))
	deadlineSize = 8
	packedMax    = 255 // a value that is longer is not packed
	packedTotal  = 512 // nor is an entry that would be larger
)

// stale is the state of an entry in whose place there is another.
const stale = 1<<32 - 1

// timedBit marks entries whose values have members with deadlines, as the
// database's index of them knows.
const timedBit = 1 << 31

// growingBit marks entries whose weight is looked at when the command is done; see
// weight.go.
const growingBit = 1 << 30

const entryBits = timedBit | growingBit

func (e *Entry) timed() bool      { return e.state&timedBit != 0 }
func (e *Entry) open() uint32     { return e.state &^ entryBits }
func (e *Entry) setOpen(n uint32) { e.state = e.state&entryBits | n }

func (e *Entry) kind() uint8    { return e.flags & kindBits }
func (e *Entry) packed() bool   { return e.flags&layoutBits == packedLayout }
func (e *Entry) volatile() bool { return e.flags&deadlineFlag != 0 }
func (e *Entry) box() *boxed    { return (*boxed)(unsafe.Pointer(e)) }

// at returns a place in the memory of e.
func (e *Entry) at(offset int) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(e), offset) }

// Key returns the key.
func (e *Entry) Key() string {
	switch e.flags & layoutBits {
	case packedLayout:
		return unsafe.String((*byte)(e.at(headSize)), int(e.klen))
	case inlineLayout:
		return unsafe.String((*byte)(e.at(int(unsafe.Sizeof(boxed{})))), int(e.klen))
	}
	return (*apart)(unsafe.Pointer(e)).key
}

// Value returns the value: a *String, *List, *Set, *Hash, *Stream or *zset.Set. A
// string is good until it is changed.
func (e *Entry) Value() any {
	switch e.kind() {
	case isString:
		return (*String)(unsafe.Pointer(e))
	case isHash:
		if e.packed() {
			return (*Hash)(unsafe.Pointer(e))
		}
		return (*Hash)(e.box().value)
	case isZset:
		return (*zset.Set)(e.box().value)
	case isList:
		return (*List)(e.box().value)
	case isSet:
		if e.packed() {
			return (*Set)(unsafe.Pointer(e))
		}
		return (*Set)(e.box().value)
	}
	return (*Stream)(e.box().value)
}

// Deadline returns when the key expires, in milliseconds since 1970, or 0 if
// it does not.
func (e *Entry) Deadline() int64 {
	if !e.volatile() {
		return 0
	}
	if e.packed() {
		return *(*int64)(e.at(int(e.units)*8 - deadlineSize))
	}
	return e.box().deadline
}

// setDeadline sets the deadline, 0 for none, and reports whether there was room
// for it.
func (e *Entry) setDeadline(ms int64) bool {
	switch {
	case ms == 0:
		e.flags &^= deadlineFlag
		return true
	case !e.packed():
		e.box().deadline = ms
	case !e.volatile() && e.space()-e.used() < deadlineSize:
		return false
	default:
		*(*int64)(e.at(int(e.units)*8 - deadlineSize)) = ms
	}
	e.flags |= deadlineFlag
	return true
}

// Access returns when the key was last used, in milliseconds since 1970, to the
// second.
func (e *Entry) Access() int64 { return int64(e.access) * 1000 }

// SetAccess says when the key was last used, in milliseconds since 1970.
func (e *Entry) SetAccess(ms int64) { e.access = uint32(max(0, ms) / 1000) }

// used returns how many of these the value takes.
func (e *Entry) used() int {
	if e.kind() == isString {
		return int(e.vlen)
	}
	return pairsHead + e.pairsSize()
}

// room returns how long the string of a packed entry may become.
func (e *Entry) room() int { return min(e.space(), packedMax) }

// space returns how many bytes a packed entry has for its value.
func (e *Entry) space() int {
	n := int(e.units)*8 - headSize - int(e.klen)
	if e.volatile() {
		n -= deadlineSize
	}
	return n
}

// text returns the bytes of a packed entry's value.
func (e *Entry) text() []byte {
	if e.vlen == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(e.at(headSize+int(e.klen))), int(e.vlen))
}

// packable reports whether a string can be packed.
func packable(key, value int) bool {
	return value <= packedMax && key <= packedMax && headSize+key+value+deadlineSize <= packedTotal
}

// newPacked returns a packed entry of a value of n zero bytes; timed if it is to
// get a deadline, for which there is room then.
func newPacked(key string, n int, timed bool) *Entry {
	e := allocate(key, n, timed)
	e.vlen = uint8(n)
	return e
}

// allocate returns a packed entry with size bytes for the value, and with timed
// for a deadline.
func allocate(key string, size int, timed bool) *Entry {
	size += headSize + len(key)
	if timed {
		size += deadlineSize
	}
	b := append([]byte(nil), make([]byte, size)...) // as large as the allocator makes it
	e := (*Entry)(unsafe.Pointer(unsafe.SliceData(b)))
	e.units, e.klen = uint8(cap(b)/8), uint8(len(key))
	copy(b[headSize:], key)
	return e
}

// resized returns a copy of a packed entry with another number of bytes for the
// value, no fewer than are used. The deadline is not copied.
func (e *Entry) resized(size int, timed bool) *Entry {
	if e.kind() != isString {
		size = max(size, leastHash)
	}
	n := allocate(e.Key(), size, timed)
	n.flags, n.vlen = e.flags&^deadlineFlag, e.vlen
	at := headSize + int(e.klen)
	copy(unsafe.Slice((*byte)(n.at(at)), size), unsafe.Slice((*byte)(e.at(at)), e.used()))
	return n
}

// newString returns an entry of a copy of b.
func newString(key string, b []byte, timed bool) *Entry {
	if !packable(len(key), len(b)) {
		return boxString(key, append([]byte(nil), b...))
	}
	e := newPacked(key, len(b), timed)
	copy(e.text(), b)
	return e
}

// boxString returns an entry of b itself, not packed.
func boxString(key string, b []byte) *Entry {
	s := new(boxedString)
	s.flags = isString | apartLayout
	s.key = strings.Clone(key)
	s.setBuffer(b)
	return &s.Entry
}

// newBoxed returns an entry for a value that is not a string.
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
		a := &apart{key: strings.Clone(key)}
		a.flags = apartLayout
		return &a.Entry
	}
	e.flags, e.klen = inlineLayout, uint8(len(key))
	copy(unsafe.Slice((*byte)(e.at(int(unsafe.Sizeof(boxed{})))), len(key)), key)
	return &e.Entry
}

// newEntry returns an entry of a value, which is the entry's from now on; timed as
// for newPacked.
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

// setValue gives an entry that is not one of a string another value.
func (e *Entry) setValue(value any) {
	b := e.box()
	e.flags &^= kindBits
	switch v := value.(type) {
	case *List:
		e.flags |= isList
		b.value = unsafe.Pointer(v)
	case *Set:
		e.flags |= isSet
		b.value = unsafe.Pointer(v)
	case *Hash:
		e.flags |= isHash
		b.value = unsafe.Pointer(v)
	case *zset.Set:
		e.flags |= isZset
		b.value = unsafe.Pointer(v)
	case *Stream:
		e.flags |= isStream
		b.value = unsafe.Pointer(v)
	default:
		panic(fmt.Sprintf("BUG: a value of type %T", value))
	}
}

// Bytes returns what the key takes besides its value: the entry with the key, and
// its part of the table of keys. Of a packed entry the room for the value belongs
// to the value.
func (e *Entry) Bytes() int {
	const slot = slotBytes * 5 / 4 // four of five are taken
	switch {
	case e.packed():
		return slot + headSize + int(e.klen)
	case e.flags&layoutBits == apartLayout && e.kind() == isString:
		return slot + int(unsafe.Sizeof(boxedString{})) + len(e.Key())
	case e.flags&layoutBits == apartLayout:
		return slot + int(unsafe.Sizeof(apart{})) + len(e.Key())
	}
	return slot + int(unsafe.Sizeof(boxed{})) + (int(e.klen)+15)&^15
}

// relocate puts n, of the same key, in the place of e, and returns it.
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
