package keyspace

import (
	"fmt"
	"unsafe"

	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// The accessors of this file interpret the memory of an entry: only they convert
// pointers to an Entry to other types, or access bytes behind it. Each names the
// layout that it requires. The other uses of package unsafe in this package are sizes,
// and views of byte slices as strings (package packed).

// asString returns the string in e, of any layout.
func (e *Entry) asString() *String { return (*String)(unsafe.Pointer(e)) }

// asHash returns the hash embedded in e, which must be packed.
func (e *Entry) asHash() *Hash { return (*Hash)(unsafe.Pointer(e)) }

// asSet returns the set embedded in e, which must be packed.
func (e *Entry) asSet() *Set { return (*Set)(unsafe.Pointer(e)) }

// box returns e with the pointer to its value. e must not be packed.
func (e *Entry) box() *boxed { return (*boxed)(unsafe.Pointer(e)) }

// longKey returns the separate key of e, which must have the long-key layout.
func (e *Entry) longKey() string { return (*longKeyEntry)(unsafe.Pointer(e)).key }

// setLongKey replaces the separate key of e by an equal one.
func (e *Entry) setLongKey(key string) { (*longKeyEntry)(unsafe.Pointer(e)).key = key }

// duplicate returns a copy of e in other memory. A separate key, and what a boxed entry points to,
// belong to both.
func (e *Entry) duplicate() *Entry {
	switch {
	case e.packed():
		return entryIn(append([]byte(nil), e.bytesAt(0, int(e.words)*8)...))
	case e.flags&layoutBits == inlineKeyLayout:
		n := newBoxed(e.Key())
		*n.box() = *e.box()
		return n
	case e.kind() == isString:
		s := *e.asString().box()
		return &s.Entry
	}
	b := *(*longKeyEntry)(unsafe.Pointer(e))
	return &b.Entry
}

// box returns s with its buffer. s must not be packed.
func (s *String) box() *boxedString { return (*boxedString)(unsafe.Pointer(s)) }

// asString returns s as a string of any layout.
func (s *boxedString) asString() *String { return (*String)(unsafe.Pointer(s)) }

// buffer returns the buffer of a string, with its capacity.
func (s *boxedString) buffer() []byte { return unsafe.Slice((*byte)(s.value), s.capacity)[:s.size] }

// setBuffer replaces the buffer of a string.
func (s *boxedString) setBuffer(b []byte) {
	s.value, s.size, s.capacity = unsafe.Pointer(unsafe.SliceData(b)), len(b), cap(b)
}

// Value returns the value: a *String, *sequence.List, *Set, *Hash, *sequence.Stream or *zset.Set. It
// is valid until the entry is replaced; a string, until it changes.
func (e *Entry) Value() any {
	switch e.kind() {
	case isString:
		return e.asString()
	case isHash:
		if e.packed() {
			return e.asHash()
		}
		return (*Hash)(e.box().value)
	case isZset:
		return e.box().sorted()
	case isList:
		return (*sequence.List)(e.box().value)
	case isSet:
		if e.packed() {
			return e.asSet()
		}
		return (*Set)(e.box().value)
	}
	return (*sequence.Stream)(e.box().value)
}

// sorted returns the sorted set in b, whose kind must be isZset. A set is one pointer, so
// it takes the place of the pointer to the value.
func (b *boxed) sorted() *zset.Set { return (*zset.Set)(unsafe.Pointer(&b.value)) }

// setValue sets the value of a boxed entry that is not a string. It takes the elements of
// a sorted set, and leaves v empty.
func (e *Entry) setValue(value any) {
	b := e.box()
	e.flags &^= kindBits
	switch v := value.(type) {
	case *sequence.List:
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
		b.value = nil
		b.sorted().Internal().Swap(v)
	case *sequence.Stream:
		e.flags |= isStream
		b.value = unsafe.Pointer(v)
	default:
		panic(fmt.Sprintf("BUG: unexpected value of type %T", value))
	}
}

// bytesAt returns n bytes at an offset in the allocation of e.
func (e *Entry) bytesAt(offset, n int) []byte { return unsafe.Slice((*byte)(e.at(offset)), n) }

// stringAt returns n bytes at an offset in the allocation of e as a string.
func (e *Entry) stringAt(offset, n int) string { return unsafe.String((*byte)(e.at(offset)), n) }

// at returns a pointer to an offset in the allocation of e.
func (e *Entry) at(offset int) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(e), offset) }

// packedDeadline returns a pointer to the deadline at the end of a packed entry.
func (e *Entry) packedDeadline() *int64 { return (*int64)(e.at(int(e.words)*8 - deadlineSize)) }

// entryIn returns the packed entry in an allocation.
func entryIn(b []byte) *Entry { return (*Entry)(unsafe.Pointer(unsafe.SliceData(b))) }
