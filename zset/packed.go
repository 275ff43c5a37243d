package zset

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"unsafe"
)

// A packed set is a slotted page in one allocation without pointers, updated in
// place. It holds up to 128 elements with members of up to 64 bytes. Most sets are
// this small, and a process may hold a million of them.
//
//	header | scores         | offsets        | tags           | free | members
//	8 B    | 4 B × capacity | 2 B × capacity | 1 B × capacity |      | … bytes, length
//
// scores, offsets and tags are parallel arrays in set order. A score takes 4 bytes, as an
// int32, in a narrow buffer, and 8, as a float64, in a wide one. A buffer is narrow if all
// scores are integers of 32 bits when it is made: points, counters, priorities, seconds
// since 1970. A score that is none makes a wide buffer. Member bytes grow
// downwards from the end of the buffer; each member is followed by its length in
// one byte. An offset is the distance of that length byte from the end of the
// buffer, so it stays valid when the buffer is copied to a larger one. A tag is an
// 8-bit hash of the member: a lookup is bytes.IndexByte over the tags, and the
// index of the match is the rank.
//
// Member bytes are not overwritten once a string was returned, so returned strings alias
// the buffer at no cost and stay immutable. A retained string retains the buffer, 12 KB at
// most. The bytes of removed members are garbage until the buffer is full. Then, if no
// string can alias it (Internal.Reuse), it is compacted in place: a set of 100 members of
// which 10 are replaced at a time allocates nothing, and 10 000 such sets take 38 MB after
// all members were replaced, in place of 55. Otherwise it is copied without
// them, with up to an eighth of extra space. Under a sliding window one such
// buffer lasts for about a fifth as many additions as there are elements, and
// takes a seventh more memory than the live data. A quarter of extra space makes a
// buffer last twice as long at twice that overhead. A set that only grows has no
// extra space beyond Go's size classes: 100 additions allocate 17 KB in 34 objects, or
// 2 KB in one object after Set.Grow. With an eighth of extra space it would be 11 KB in 20 objects, but a set that has
// grown would keep that space.
//
// A clone shares the buffer. A flag in the header marks it as shared, and a shared
// buffer is immutable: the next change on either side copies it.
//
// In the indexed representation, 10 000 sets of 100 elements take 166 MB.
//
// Invariants (packed.check): n <= capacity; n is not 0, except after Set.Grow; elements
// are in strictly ascending order; no score is NaN; no member exceeds packedMemberMax;
// find returns the rank of each member; member regions do not overlap and start at or
// above start; liveBytes is their total size. From start to the end there is one member after
// the other, and those that were removed have packedDead.
const (
	packedMax       = 128
	packedMemberMax = 64 // as in Redis; copying longer members is too expensive
	packedHeader    = 8
)

// packed is the header of the buffer. A nil *packed is an empty set.
type packed struct {
	size     uint16 // size of the buffer in units of 8 bytes, shifted by packedShift; below it packedMoves and flags
	start    uint16 // offset of the lowest member byte in the buffer
	live     uint16 // bytes of live members, with their length bytes; and flags
	n        uint8
	capacity uint8 // elements that the arrays have space for
}

// Bits of packed.live.
const (
	packedWide    = 1 << 15 // scores take 8 bytes
	packedExposed = 1 << 14 // strings outside may alias the buffer, which has packedReuse
)

// Bits of packed.size.
const (
	packedShared = 1      // a clone has the buffer, too
	packedMarked = 2      // see Internal.SetMark
	packedReuse  = 4      // see Internal.Reuse
	packedMove   = 8      // the unit of packedMoves
	packedMoves  = 3 << 3 // number of moves of elements, modulo 4
	packedShift  = 5
)

// packedDead is the bit of a length byte that says that the member was removed.
const packedDead = 1 << 7

// header returns the header as an integer. It differs after changes of the elements of a buffer
// that is not compacted, as it is once a string was returned: an addition decreases start, removals
// alone decrease n, and a move changes packedMoves. Only a multiple of 4 moves leaves the header
// unchanged.
func (f *packed) header() uint64 {
	return uint64(f.start)<<32 | uint64(f.size&^(packedShared|packedMarked|packedReuse))<<16 | uint64(f.n)
}

// newPacked returns a buffer for capacity elements and space bytes of members, wide or
// narrow.
func newPacked(capacity, space int, wide bool) *packed {
	each, live := packedPerElement(wide), uint16(0)
	if wide {
		live = packedWide
	}
	// append rounds up to the size class that the allocator uses anyway.
	buf := append([]byte(nil), make([]byte, packedHeader+each*capacity+space)...)
	f := (*packed)(unsafe.Pointer(unsafe.SliceData(buf)))
	f.live = live
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
func (f *packed) buffer() []byte             { return unsafe.Slice((*byte)(unsafe.Pointer(f)), f.bytes()) }
func (f *packed) bytes() int                 { return int(f.size>>packedShift) * 8 }
func (f *packed) wide() bool                 { return f.live&packedWide != 0 }
func (f *packed) liveBytes() int             { return int(f.live &^ (packedWide | packedExposed)) }

// scoreSize returns the size of a score in bytes: 4 or 8.
func (f *packed) scoreSize() int { return 4 + int(f.live>>15)*4 }

// packedPerElement returns the size of an element without its member: score, offset, tag.
func packedPerElement(wide bool) int {
	if wide {
		return 8 + 2 + 1
	}
	return 4 + 2 + 1
}

// perElement returns the number of bytes of the buffer for each element.
func (f *packed) perElement() int { return packedPerElement(f.wide()) }

// wideScores or narrowScores, offsets and tags return the whole arrays: capacity elements.
func (f *packed) wideScores() []float64 {
	return unsafe.Slice((*float64)(f.field(packedHeader)), int(f.capacity))
}
func (f *packed) narrowScores() []int32 {
	return unsafe.Slice((*int32)(f.field(packedHeader)), int(f.capacity))
}
func (f *packed) offsets() []uint16 {
	return unsafe.Slice((*uint16)(f.field(packedHeader+f.scoreSize()*int(f.capacity))), int(f.capacity))
}
func (f *packed) tags() []uint8 {
	return unsafe.Slice((*uint8)(f.field(packedHeader+(f.scoreSize()+2)*int(f.capacity))), int(f.capacity))
}

// score returns the score of element i.
func (f *packed) score(i int) float64 {
	if f.wide() {
		return f.wideScores()[i]
	}
	return float64(f.narrowScores()[i])
}

// setScore sets the score of element i. A narrow buffer must be able to hold it.
func (f *packed) setScore(i int, score float64) {
	if f.wide() {
		f.wideScores()[i] = score
	} else {
		f.narrowScores()[i] = int32(score)
	}
}

// scoreBytes returns the array of scores, wide or narrow, as bytes.
func (f *packed) scoreBytes() []byte {
	return unsafe.Slice((*byte)(f.field(packedHeader)), f.scoreSize()*int(f.capacity))
}

// moveScores moves the scores of n elements from index from to index to.
func (f *packed) moveScores(to, from, n int) {
	b, size := f.scoreBytes(), f.scoreSize()
	copy(b[to*size:], b[from*size:(from+n)*size])
}

// isNarrow reports whether a narrow buffer can hold a score: an integer of 32 bits, and
// not -0.
func isNarrow(score float64) bool {
	return math.Float64bits(float64(int32(score))) == math.Float64bits(score)
}

// needsWide reports whether the scores of the buffer need a wide one. O(n).
func (f *packed) needsWide() bool {
	return f.wide() && slices.ContainsFunc(f.wideScores()[:f.n], func(score float64) bool { return !isNarrow(score) })
}

// members returns the bytes of all members, including removed ones.
func (f *packed) members() []byte {
	return f.buffer()[f.start:]
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

func (f *packed) element(i int) Element { return Element{f.member(i), f.score(i)} }

// garbage returns the number of bytes of removed members.
func (f *packed) garbage() int { return f.bytes() - int(f.start) - f.liveBytes() }

// reusable returns the number of bytes of removed members that no string can alias.
func (f *packed) reusable() int {
	if f.size&packedReuse == 0 || f.live&packedExposed != 0 {
		return 0
	}
	return f.garbage()
}

// free returns the number of unused bytes between tags and members.
func (f *packed) free() int { return int(f.start) - packedHeader - f.perElement()*int(f.capacity) }

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
	switch {
	case f == nil:
		return 0
	case f.wide():
		scores := f.wideScores()[:f.n]
		return tieBreak(f, scores, score, lowerBound(scores, score), member)
	}
	scores, least := f.narrowScores()[:f.n], math.Ceil(score)
	switch {
	case least > math.MaxInt32:
		return len(scores)
	case least < math.MinInt32:
		return 0
	}
	lo := lowerBound(scores, int32(least))
	if least != score {
		return lo
	}
	return tieBreak(f, scores, int32(score), lo, member)
}

// tieBreak returns the first index from lo on whose element does not order before (score,
// member). No score from lo on is less than score.
func tieBreak[T int32 | float64](f *packed, scores []T, score T, lo int, member string) int {
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
// space for member bytes. The copy is wide if its elements or wide say so.
func (f *packed) copyOf(capacity, space int, wide bool) *packed {
	c := newPacked(capacity, space, wide || f.needsWide())
	c.size |= f.size & packedMarked
	if f.size&packedShared == 0 { // else others may read the copy, too
		c.size |= f.size & packedReuse
	}
	c.n = f.n
	c.live |= uint16(f.liveBytes())
	if size := f.scoreSize(); c.scoreSize() == size {
		copy(c.scoreBytes(), f.scoreBytes()[:size*int(f.n)])
	} else {
		for i := range int(f.n) {
			c.setScore(i, f.score(i))
		}
	}
	copy(c.tags(), f.tags()[:f.n])
	offsets := c.offsets()
	// Often the removed members are those that were added first, as in a sliding window:
	// then they lie at the end, and the others are copied as a whole.
	if garbage := f.garbage(); f.allBelow(garbage) {
		for i, offset := range f.offsets()[:f.n] {
			offsets[i] = offset - uint16(garbage)
		}
		c.start -= uint16(f.liveBytes())
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

// writable returns the elements in a buffer that is not shared, is wide if wide says so,
// and has space for as many more elements, whose members take space bytes, length bytes
// included.
func (f *packed) writable(more, space int, wide bool) *packed {
	if f == nil {
		return newPacked(more, space, wide)
	}
	n := int(f.n) + more
	arrays := f.perElement() * max(0, n-int(f.capacity))
	if needed := space + arrays; f.size&packedShared == 0 && (f.wide() || !wide) && needed <= f.free()+f.reusable() {
		if f.free() < needed {
			f.compact()
		}
		if arrays > 0 {
			f.growArrays(n, space)
		}
		return f
	}
	space += f.liveBytes()
	extra := 0
	if more <= 1 {
		extra = min((f.perElement()*n+space)/8, f.garbage())
	}
	return f.copyOf(n, space+extra, wide)
}

// compact overwrites the bytes of removed members by those of the others. No string may alias the
// buffer, and it must not be shared. O(bytes) for each run of removed members.
func (f *packed) compact() {
	buffer, size, offsets := f.buffer(), f.bytes(), f.offsets()[:f.n]
	for end := size; end > int(f.start); {
		length := buffer[end-1]
		if length&packedDead == 0 {
			end -= 1 + int(length)
			continue
		}
		gap := 0
		for end-gap > int(f.start) && buffer[end-gap-1]&packedDead != 0 {
			gap += 1 + int(buffer[end-gap-1]&^packedDead)
		}
		copy(buffer[int(f.start)+gap:end], buffer[f.start:end-gap])
		f.start += uint16(gap)
		for i, offset := range offsets {
			if int(offset) > size-end {
				offsets[i] = offset - uint16(gap)
			}
		}
	}
}

// expose notes that a string that aliases the buffer leaves the package.
func (f *packed) expose() {
	if f.size&(packedShared|packedReuse) == packedReuse {
		f.live |= packedExposed
	}
}

// growArrays increases the capacity of the arrays to at least n elements: to as many as
// fit into the free space if each of their members takes space bytes.
func (f *packed) growArrays(n, space int) {
	capacity := int(f.capacity)
	grown := min(max(n, capacity+min(capacity/8, f.free()/(f.perElement()+space))), packedMax)
	// From the last array to the first, because the new area of each array overlaps
	// the old area of the next.
	copy(unsafe.Slice((*uint8)(f.field(packedHeader+(f.scoreSize()+2)*grown)), capacity), f.tags())
	copy(unsafe.Slice((*uint16)(f.field(packedHeader+f.scoreSize()*grown)), capacity), f.offsets())
	f.capacity = uint8(grown)
}

// insert inserts an element at index i. The set must have fewer than packedMax
// elements. Like every update of a packed set it returns the current buffer.
func (f *packed) insert(i int, score float64, member string, tag uint8) *packed {
	f = f.writable(1, 1+len(member), !isNarrow(score))
	n := int(f.n)
	f.n++
	f.live += uint16(1 + len(member))
	offsets, tags := f.offsets()[:n+1], f.tags()[:n+1]
	if i < n {
		f.moveScores(i+1, i, n-i)
		copy(offsets[i+1:], offsets[i:])
		copy(tags[i+1:], tags[i:])
	}
	f.setScore(i, score)
	offsets[i], tags[i] = f.appendMember(member), tag
	return f
}

// move sets the score of element i and moves it to its new rank. j is the number of
// elements below the new (score, member), counted with element i at its old
// position.
func (f *packed) move(i, j int, score float64) *packed {
	f = f.writable(0, 0, !isNarrow(score))
	f.size = f.size&^packedMoves | (f.size+packedMove)&packedMoves
	if j == i || j == i+1 {
		f.setScore(i, score)
		return f
	}
	offsets, tags := f.offsets(), f.tags()
	offset, tag := offsets[i], tags[i]
	if i < j {
		j--
		f.moveScores(i, i+1, j-i)
		copy(offsets[i:j], offsets[i+1:])
		copy(tags[i:j], tags[i+1:])
	} else {
		f.moveScores(j+1, j, i-j)
		copy(offsets[j+1:i+1], offsets[j:])
		copy(tags[j+1:i+1], tags[j:])
	}
	f.setScore(j, score)
	offsets[j], tags[j] = offset, tag
	return f
}

// removeRange removes the elements at ranks [lo, hi), which must not be all. It
// shrinks the buffer when about a third is unused. Up to that much can be extra
// space from writable. With a threshold of one half, a set that shrinks from 10 to
// 5 elements keeps the memory for 10.
func (f *packed) removeRange(lo, hi int) *packed {
	f = f.writable(0, 0, false)
	n := int(f.n)
	for i := lo; i < hi; i++ {
		f.live -= uint16(1 + len(f.member(i)))
		*(*uint8)(f.field(f.bytes() - int(f.offsets()[i]))) |= packedDead
	}
	offsets, tags := f.offsets()[:n], f.tags()[:n]
	f.moveScores(lo, hi, n-hi)
	copy(offsets[lo:], offsets[hi:])
	copy(tags[lo:], tags[hi:])
	n -= hi - lo
	f.n = uint8(n)
	if needed := packedHeader + f.perElement()*n + f.liveBytes(); f.bytes() > needed+needed/2+64 {
		return f.copyOf(n, f.liveBytes(), false)
	}
	return f
}

// pack returns a packed set of distinct elements in ascending order.
func pack(elements []Element) *packed {
	if len(elements) == 0 {
		return nil
	}
	space, wide := 0, false
	for _, e := range elements {
		space += 1 + len(e.Member)
		wide = wide || !isNarrow(e.Score)
	}
	f := newPacked(len(elements), space, wide)
	f.n = f.capacity
	f.live |= uint16(space)
	offsets, tags := f.offsets(), f.tags()
	for i, e := range elements {
		f.setScore(i, e.Score)
		offsets[i], tags[i] = f.appendMember(e.Member), tagOf(e.Member)
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
	joined := make([]byte, 0, f.liveBytes()-int(f.n))
	for i := range elements {
		joined = append(joined, f.member(i)...)
	}
	rest := view(joined)
	for i := range elements {
		n := len(f.member(i))
		elements[i] = Element{rest[:n], f.score(i)}
		rest = rest[n:]
	}
	return elements
}
