package zset

import (
	"bytes"
	"encoding/binary"
	"unsafe"
)

// A packed set is a slotted page in one allocation without pointers, updated in
// place. It holds up to 128 elements with members of up to 64 bytes. Most sets are
// this small, and a process may hold a million of them.
//
//	header | scores         | offsets        | tags           | free | members
//	8 B    | 8 B × capacity | 2 B × capacity | 1 B × capacity |      | … bytes, length
//
// scores, offsets and tags are parallel arrays in set order. Member bytes grow
// downwards from the end of the buffer; each member is followed by its length in
// one byte. An offset is the distance of that length byte from the end of the
// buffer, so it stays valid when the buffer is copied to a larger one. A tag is an
// 8-bit hash of the member: a lookup is bytes.IndexByte over the tags, and the
// index of the match is the rank.
//
// Member bytes are never overwritten, so returned strings alias the buffer at no
// cost and stay immutable. A retained string retains the buffer, 12 KB at most. The
// bytes of removed members are garbage until the buffer is full and is copied
// without them, with up to an eighth of extra space. Under a sliding window one
// buffer lasts for about a quarter as many additions as there are elements, and
// takes a seventh more memory than the live data. A quarter of extra space makes a
// buffer last twice as long at twice that overhead. A set that only grows has no
// extra space beyond Go's size classes: 100 additions allocate 23 KB in 31 objects.
// With an eighth of extra space it would be 14 KB in 20 objects, but sets of 100
// elements would take a quarter more memory than in Redis.
//
// A clone shares the buffer. A flag in the header marks it as shared, and a shared
// buffer is immutable: the next change on either side copies it.
//
// In the indexed representation, 10 000 sets of 100 elements take 166 MB.
//
// Invariants (packed.check): 0 < n <= capacity; elements are in strictly ascending
// order; no score is NaN; no member exceeds packedMemberMax; find returns the rank
// of each member; member regions do not overlap and start at or above start;
// liveBytes is their total size.
const (
	packedMax        = 128
	packedMemberMax  = 64 // as in Redis; copying longer members is too expensive
	packedHeader     = 8
	packedPerElement = 8 + 2 + 1 // score, offset, tag
)

// packed is the header of the buffer. A nil *packed is an empty set.
type packed struct {
	size      uint16 // size of the buffer in units of 8 bytes, shifted by packedShift; below it packedMoves and the flags
	start     uint16 // offset of the lowest member byte in the buffer
	liveBytes uint16 // bytes of live members, with their length bytes
	n         uint8
	capacity  uint8 // elements that the arrays have space for
}

// Bits of packed.size.
const (
	packedShared = 1      // a clone has the buffer, too
	packedMarked = 2      // see Set.SetMark
	packedMove   = 4      // the unit of packedMoves
	packedMoves  = 7 << 2 // number of moves of elements, modulo 8
	packedShift  = 5
)

// header returns the header as an integer. It differs after changes of the elements:
// an addition decreases start, removals alone decrease n, and a move changes
// packedMoves. Only a multiple of 8 moves leaves the header unchanged.
func (f *packed) header() uint64 {
	return uint64(f.start)<<32 | uint64(f.size&^(packedShared|packedMarked))<<16 | uint64(f.n)
}

// newPacked returns a buffer for capacity elements and space bytes of members.
func newPacked(capacity, space int) *packed {
	// append rounds up to the size class that the allocator uses anyway.
	buf := append([]byte(nil), make([]byte, packedHeader+packedPerElement*capacity+space)...)
	f := (*packed)(unsafe.Pointer(unsafe.SliceData(buf)))
	f.size = uint16(cap(buf)/8) << packedShift
	f.start = uint16(f.bytes())
	f.capacity = uint8(capacity)
	return f
}

func (f *packed) len() int {
	if f == nil {
		return 0
	}
	return int(f.n)
}

func (f *packed) field(i int) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(f), i) }
func (f *packed) bytes() int                 { return int(f.size>>packedShift) * 8 }

// scores, offsets and tags return the whole arrays: capacity elements.
func (f *packed) scores() []float64 {
	return unsafe.Slice((*float64)(f.field(packedHeader)), int(f.capacity))
}
func (f *packed) offsets() []uint16 {
	return unsafe.Slice((*uint16)(f.field(packedHeader+8*int(f.capacity))), int(f.capacity))
}
func (f *packed) tags() []uint8 {
	return unsafe.Slice((*uint8)(f.field(packedHeader+10*int(f.capacity))), int(f.capacity))
}

// members returns the bytes of all members, including removed ones.
func (f *packed) members() []byte {
	return unsafe.Slice((*byte)(f.field(int(f.start))), f.bytes()-int(f.start))
}

func (f *packed) member(i int) string {
	return f.memberAt(f.bytes() - int(f.offsets()[i]))
}

// memberAt returns the member whose length byte is at a position of the buffer.
func (f *packed) memberAt(end int) string {
	p := f.field(end)
	n := int(*(*uint8)(p))
	return unsafe.String((*byte)(unsafe.Add(p, -n)), n)
}

func (f *packed) element(i int) Element { return Element{f.member(i), f.scores()[i]} }

// garbage returns the number of bytes of removed members.
func (f *packed) garbage() int { return f.bytes() - int(f.start) - int(f.liveBytes) }

// free returns the number of unused bytes between tags and members.
func (f *packed) free() int { return int(f.start) - packedHeader - packedPerElement*int(f.capacity) }

// tagOf returns an 8-bit hash of a member. All bytes of the member count. The hash
// is not keyed: an attacker can choose members with equal tags, which costs at most
// 128 comparisons for each lookup.
func tagOf(member string) uint8 {
	const k = 0x9e3779b97f4a7c15 // odd, and without a regular bit pattern
	b := unsafe.Slice(unsafe.StringData(member), len(member))
	h := uint64(len(b)) * k
	for ; len(b) >= 8; b = b[8:] {
		h = (h ^ binary.LittleEndian.Uint64(b)) * k
		h ^= h >> 32
	}
	switch n := len(b); {
	case n >= 4:
		h ^= uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32
	case n > 0:
		h ^= uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	return uint8(h * k >> 56)
}

// find returns the rank of member, or -1.
func (f *packed) find(member string, tag uint8) int {
	if f == nil {
		return -1
	}
	tags := f.tags()[:f.n]
	for i := 0; ; i++ {
		next := bytes.IndexByte(tags[i:], tag)
		if next < 0 {
			return -1
		}
		i += next
		if f.member(i) == member {
			return i
		}
	}
}

// search returns the number of elements that order before (score, member). It is
// leaf.search for a packed set.
func (f *packed) search(score float64, member string) int {
	if f == nil {
		return 0
	}
	scores := f.scores()[:f.n]
	lo, n := 0, len(scores)
	for n > 0 {
		half := int(uint(n) >> 1)
		next := lo + half + 1
		if !(scores[lo+half] < score) {
			next = lo
		}
		n -= half + 1
		if next == lo {
			n = half
		}
		lo = next
	}
	for hi := len(scores); lo < hi && scores[lo] == score; {
		h := int(uint(lo+hi) >> 1)
		switch {
		case scores[h] != score || f.member(h) >= member:
			hi = h
		default:
			lo = h + 1
		}
	}
	return lo
}

// copyOf returns a copy without garbage, with the given capacity for elements and
// space for member bytes.
func (f *packed) copyOf(capacity, space int) *packed {
	c := newPacked(capacity, space)
	c.size |= f.size & packedMarked
	c.n, c.liveBytes = f.n, f.liveBytes
	copy(c.scores(), f.scores()[:f.n])
	copy(c.tags(), f.tags()[:f.n])
	offsets := c.offsets()
	// Often the removed members are those that were added first, as in a sliding window:
	// then they lie at the end, and the others are copied as a whole.
	if garbage := f.garbage(); f.allBelow(garbage) {
		for i, offset := range f.offsets()[:f.n] {
			offsets[i] = offset - uint16(garbage)
		}
		c.start -= f.liveBytes
		copy(c.members(), f.members())
		return c
	}
	for i := range int(f.n) {
		offsets[i] = c.appendMember(f.member(i))
	}
	return c
}

// allBelow reports whether no member lies in the last n bytes of the buffer.
func (f *packed) allBelow(n int) bool {
	for _, offset := range f.offsets()[:f.n] {
		if int(offset) <= n {
			return false
		}
	}
	return true
}

// clone marks the buffer as shared and returns it.
func (f *packed) clone() *packed {
	if f != nil && f.size&packedShared == 0 { // write once: other goroutines may already read a shared buffer
		f.size |= packedShared
	}
	return f
}

// appendMember copies a member into the free space, and returns its offset.
func (f *packed) appendMember(member string) (offset uint16) {
	end := int(f.start) - 1
	f.start -= uint16(1 + len(member))
	*(*uint8)(f.field(end)) = uint8(len(member))
	copy(f.members(), member)
	return uint16(f.bytes() - end)
}

// writable returns the elements in a buffer that is not shared and, if more is not
// 0, has space for one more element whose member takes more bytes, length byte
// included.
func (f *packed) writable(more int) *packed {
	n := 0
	if more > 0 {
		n = 1
	}
	if f == nil {
		return newPacked(n, more)
	}
	arrays := 0
	if n += int(f.n); n > int(f.capacity) {
		arrays = packedPerElement
	}
	if f.size&packedShared == 0 && f.free() >= more+arrays {
		if arrays > 0 {
			f.growArrays(more)
		}
		return f
	}
	space := int(f.liveBytes) + more
	needed := packedPerElement*n + space
	return f.copyOf(n, space+min(needed/8, f.garbage()))
}

// growArrays increases the capacity of the arrays by one element or more: as many
// as fit into the free space if each of their members takes the given number of
// bytes.
func (f *packed) growArrays(each int) {
	capacity := int(f.capacity)
	grown := min(capacity+max(1, min(capacity/8, f.free()/(packedPerElement+each))), packedMax)
	// From the last array to the first, because the new area of each array overlaps
	// the old area of the next.
	copy(unsafe.Slice((*uint8)(f.field(packedHeader+10*grown)), capacity), f.tags())
	copy(unsafe.Slice((*uint16)(f.field(packedHeader+8*grown)), capacity), f.offsets())
	f.capacity = uint8(grown)
}

// insert inserts an element at index i. The set must have fewer than packedMax
// elements. Like every update of a packed set it returns the current buffer.
func (f *packed) insert(i int, score float64, member string, tag uint8) *packed {
	f = f.writable(1 + len(member))
	n := int(f.n)
	f.n++
	f.liveBytes += uint16(1 + len(member))
	scores, offsets, tags := f.scores()[:n+1], f.offsets()[:n+1], f.tags()[:n+1]
	if i < n {
		copy(scores[i+1:], scores[i:])
		copy(offsets[i+1:], offsets[i:])
		copy(tags[i+1:], tags[i:])
	}
	scores[i], offsets[i], tags[i] = score, f.appendMember(member), tag
	return f
}

// move sets the score of element i and moves it to its new rank. j is the number of
// elements below the new (score, member), counted with element i at its old
// position.
func (f *packed) move(i, j int, score float64) *packed {
	f = f.writable(0)
	f.size = f.size&^packedMoves | (f.size+packedMove)&packedMoves
	scores := f.scores()
	if j == i || j == i+1 {
		scores[i] = score
		return f
	}
	offsets, tags := f.offsets(), f.tags()
	offset, tag := offsets[i], tags[i]
	if i < j {
		j--
		copy(scores[i:j], scores[i+1:])
		copy(offsets[i:j], offsets[i+1:])
		copy(tags[i:j], tags[i+1:])
	} else {
		copy(scores[j+1:i+1], scores[j:])
		copy(offsets[j+1:i+1], offsets[j:])
		copy(tags[j+1:i+1], tags[j:])
	}
	scores[j], offsets[j], tags[j] = score, offset, tag
	return f
}

// removeRange removes the elements at ranks [lo, hi), which must not be all. It
// shrinks the buffer when about a third is unused. Up to that much can be extra
// space from writable. With a threshold of one half, a set that shrinks from 10 to
// 5 elements keeps the memory for 10.
func (f *packed) removeRange(lo, hi int) *packed {
	f = f.writable(0)
	n := int(f.n)
	for i := lo; i < hi; i++ {
		f.liveBytes -= uint16(1 + len(f.member(i)))
	}
	scores, offsets, tags := f.scores()[:n], f.offsets()[:n], f.tags()[:n]
	copy(scores[lo:], scores[hi:])
	copy(offsets[lo:], offsets[hi:])
	copy(tags[lo:], tags[hi:])
	n -= hi - lo
	f.n = uint8(n)
	if needed := packedHeader + packedPerElement*n + int(f.liveBytes); f.bytes() > needed+needed/2+64 {
		return f.copyOf(n, int(f.liveBytes))
	}
	return f
}

// pack returns a packed set of distinct elements in ascending order.
func pack(elements []Element) *packed {
	if len(elements) == 0 {
		return nil
	}
	space := 0
	for _, e := range elements {
		space += 1 + len(e.Member)
	}
	f := newPacked(len(elements), space)
	f.n, f.liveBytes = f.capacity, uint16(space)
	scores, offsets, tags := f.scores(), f.offsets(), f.tags()
	for i, e := range elements {
		scores[i], offsets[i], tags[i] = e.Score, f.appendMember(e.Member), tagOf(e.Member)
	}
	return f
}

// unpack returns the elements. Their members alias one new string, not the buffer,
// which the caller is about to drop.
func (f *packed) unpack() []Element {
	if f == nil {
		return nil
	}
	elements := make([]Element, f.n, int(f.n)+1)
	joined := make([]byte, 0, int(f.liveBytes)-int(f.n))
	for i := range elements {
		joined = append(joined, f.member(i)...)
	}
	rest := view(joined)
	for i := range elements {
		n := len(f.member(i))
		elements[i] = Element{rest[:n], f.scores()[i]}
		rest = rest[n:]
	}
	return elements
}
