package zset

import (
	"bytes"
	"encoding/binary"
	"unsafe"
)

// Most sets are small, and there may be a million of them, so up to 128 elements with
// members of up to 64 bytes lie in one allocation without pointers, which is changed
// in place:
//
//	head | scores | offsets | tags | free | members
//
// Scores, offsets and tags are arrays in the order of the set, with room for as many
// elements as the head says. Members grow from the back, each followed by its length;
// an offset is the distance of that byte from the end, so a larger copy keeps it. A
// tag is 8 bits of the member's hash: a member is looked for by bytes.IndexByte among
// them, and where it is found is its rank.
//
// Bytes of members are never overwritten. So the strings that are handed out are parts
// of the buffer, cost nothing, and stay what they are, as strings must; a string that
// is kept keeps the whole buffer, 12 KB at most. The price is that the bytes of
// removed members are lost until the buffer is full and copied without them, with up
// to an eighth more room. So where members come and go, as in a window of events, a
// buffer lasts for about a quarter as many additions as there are elements, and then
// takes a seventh more than before; with a quarter more room it lasted twice as long,
// and took twice that. Where they only come, there is no room but what Go's size
// classes leave: 100 additions allocate 23 KB in 31 pieces. With an eighth more it was
// 14 KB in 20, but sets of 100 took a quarter more than Redis's.
//
// A clone shares the buffer, which is marked so and not written to any more: whoever
// changes first, or next, does it in a copy.
//
// Before, up to 16 elements were an immutable string that was written anew with each
// change, and all others had the large shape: 10 000 sets of 100 took 166 MB.
const (
	fewMax       = 128
	fewMemberMax = 64 // as in Redis; longer ones are not worth copying
	fewHead      = 8
	fewEach      = 8 + 2 + 1 // score, offset and tag
)

// few is the head of the buffer; nil is the empty set.
type few struct {
	size uint16 // of the buffer, a multiple of 8: the lowest bit says that it is shared
	low  uint16 // where the bytes of members begin
	live uint16 // bytes of the members that there are, with their lengths
	n    uint8
	room uint8 // elements for which the arrays are large enough
}

const fewShared = 1

// newFew returns a buffer for so many elements and bytes of members.
func newFew(room, space int) *few {
	// append rounds up to what will be allocated anyway.
	buf := append([]byte(nil), make([]byte, fewHead+fewEach*room+space)...)
	f := (*few)(unsafe.Pointer(unsafe.SliceData(buf)))
	f.size = uint16(cap(buf) &^ 7)
	f.low = f.size
	f.room = uint8(room)
	return f
}

func (f *few) len() int {
	if f == nil {
		return 0
	}
	return int(f.n)
}

func (f *few) at(i int) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(f), i) }
func (f *few) bytes() int              { return int(f.size &^ fewShared) }

// scores, offsets and tags are as long as there is room.
func (f *few) scores() []float64 { return unsafe.Slice((*float64)(f.at(fewHead)), int(f.room)) }
func (f *few) offsets() []uint16 {
	return unsafe.Slice((*uint16)(f.at(fewHead+8*int(f.room))), int(f.room))
}
func (f *few) tags() []uint8 {
	return unsafe.Slice((*uint8)(f.at(fewHead+10*int(f.room))), int(f.room))
}

// members are the bytes of all members, those removed too.
func (f *few) members() []byte {
	return unsafe.Slice((*byte)(f.at(int(f.low))), f.bytes()-int(f.low))
}

func (f *few) member(i int) string {
	end := f.at(f.bytes() - int(f.offsets()[i]))
	n := int(*(*uint8)(end))
	return unsafe.String((*byte)(unsafe.Add(end, -n)), n)
}

func (f *few) element(i int) Element { return Element{f.member(i), f.scores()[i]} }

// waste is how many bytes of removed members there are.
func (f *few) waste() int { return f.bytes() - int(f.low) - int(f.live) }

// free is how many bytes there are between tags and members.
func (f *few) free() int { return int(f.low) - fewHead - fewEach*int(f.room) }

// tagOf hashes a member. Every byte counts; that someone may choose members of one tag
// does not matter, for then they are compared, all 128 at worst.
func tagOf(member string) uint8 {
	const k = 0x9e3779b97f4a7c15 // odd, and without a pattern
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
func (f *few) find(member string, tag uint8) int {
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

// search counts the elements below (score, member), as block.search does.
func (f *few) search(score float64, member string) int {
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

// copyOf returns a copy without the bytes of removed members, with room for so many
// elements and so many bytes of members.
func (f *few) copyOf(room, space int) *few {
	c := newFew(room, space)
	c.n, c.live = f.n, f.live
	copy(c.scores(), f.scores()[:f.n])
	copy(c.tags(), f.tags()[:f.n])
	if f.waste() == 0 {
		copy(c.offsets(), f.offsets()[:f.n])
		c.low -= f.live
		copy(c.members(), f.members())
		return c
	}
	offsets := c.offsets()
	for i := range int(f.n) {
		offsets[i] = c.keep(f.member(i))
	}
	return c
}

// clone marks the buffer as shared and returns it.
func (f *few) clone() *few {
	if f != nil && f.size&fewShared == 0 { // once: who has it already may be reading it
		f.size |= fewShared
	}
	return f
}

// keep copies a member to where there is room for it, and returns its offset.
func (f *few) keep(member string) (offset uint16) {
	end := int(f.low) - 1
	f.low -= uint16(1 + len(member))
	*(*uint8)(f.at(end)) = uint8(len(member))
	copy(f.members(), member)
	return uint16(f.bytes() - end)
}

// writable returns the elements in a buffer that may be written to, with room for one
// more whose member takes so many bytes, with its length; none if that is 0.
func (f *few) writable(more int) *few {
	n := 0
	if more > 0 {
		n = 1
	}
	if f == nil {
		return newFew(n, more)
	}
	widen := 0
	if n += int(f.n); n > int(f.room) {
		widen = fewEach
	}
	if f.size&fewShared == 0 && f.free() >= more+widen {
		if widen > 0 {
			f.widen(more)
		}
		return f
	}
	space := int(f.live) + more
	all := fewEach*n + space
	return f.copyOf(n, space+min(all/8, f.waste()))
}

// widen makes room in the arrays for one element or more, as many as there is free
// room for when their members take so many bytes each.
func (f *few) widen(each int) {
	room := int(f.room)
	wider := min(room+max(1, min(room/8, f.free()/(fewEach+each))), fewMax)
	// Backwards, for the new places of one array are the old ones of the next.
	copy(unsafe.Slice((*uint8)(f.at(fewHead+10*wider)), room), f.tags())
	copy(unsafe.Slice((*uint16)(f.at(fewHead+8*wider)), room), f.offsets())
	f.room = uint8(wider)
}

// insert adds an element at i; there must be fewer than fewMax. Like all that change
// a few, it returns the buffer where it then is.
func (f *few) insert(i int, score float64, member string, tag uint8) *few {
	f = f.writable(1 + len(member))
	n := int(f.n)
	f.n++
	f.live += uint16(1 + len(member))
	scores, offsets, tags := f.scores()[:n+1], f.offsets()[:n+1], f.tags()[:n+1]
	if i < n {
		copy(scores[i+1:], scores[i:])
		copy(offsets[i+1:], offsets[i:])
		copy(tags[i+1:], tags[i:])
	}
	scores[i], offsets[i], tags[i] = score, f.keep(member), tag
	return f
}

// move gives element i a score with which it belongs at j, j counted with it in place.
func (f *few) move(i, j int, score float64) *few {
	f = f.writable(0)
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

// cut removes the elements lo to hi-1, which are not all, and gives memory back when
// about a third of it is unused: less than that, writable may have left on purpose.
// With a half, sets of 5 that had 10 for a moment kept what 10 take.
func (f *few) cut(lo, hi int) *few {
	f = f.writable(0)
	n := int(f.n)
	for i := lo; i < hi; i++ {
		f.live -= uint16(1 + len(f.member(i)))
	}
	scores, offsets, tags := f.scores()[:n], f.offsets()[:n], f.tags()[:n]
	copy(scores[lo:], scores[hi:])
	copy(offsets[lo:], offsets[hi:])
	copy(tags[lo:], tags[hi:])
	n -= hi - lo
	f.n = uint8(n)
	if all := fewHead + fewEach*n + int(f.live); f.bytes() > all+all/2+64 {
		return f.copyOf(n, int(f.live))
	}
	return f
}

// pack makes a few of elements that are in order, of different members.
func pack(elements []Element) *few {
	if len(elements) == 0 {
		return nil
	}
	space := 0
	for _, e := range elements {
		space += 1 + len(e.Member)
	}
	f := newFew(len(elements), space)
	f.n, f.live = f.room, uint16(space)
	scores, offsets, tags := f.scores(), f.offsets(), f.tags()
	for i, e := range elements {
		scores[i], offsets[i], tags[i] = e.Score, f.keep(e.Member), tagOf(e.Member)
	}
	return f
}

// unpack returns the elements. Their members are parts of one new string: the buffer
// is about to go.
func (f *few) unpack() []Element {
	if f == nil {
		return nil
	}
	elements := make([]Element, f.n, int(f.n)+1)
	joined := make([]byte, 0, int(f.live)-int(f.n))
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

// ascend yields the elements of ranks lo to hi-1, lowest first.
func (f *few) ascend(lo, hi int, yield func(string, float64) bool) {
	for ; lo < hi && yield(f.member(lo), f.scores()[lo]); lo++ {
	}
}

// descend yields the elements of ranks hi-1 to lo, highest first.
func (f *few) descend(lo, hi int, yield func(string, float64) bool) {
	for ; lo < hi && yield(f.member(hi-1), f.scores()[hi-1]); hi-- {
	}
}
