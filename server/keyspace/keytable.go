package keyspace

import (
	"fmt"
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"slices"
	"unsafe"
)

// keyTable finds entries by their keys. It is the extendible hashing of package
// table (see there for the way it grows, scans and draws at random), with slots
// that hold nothing but a pointer to the entry, which knows its key: 10 bytes a
// slot in place of 26, and a search that has found the right 16 bits of hash
// looks at the entry, which is wanted anyway, where it looked at the bytes of a
// key somewhere else. It does without what databases do not need, which is most
// of package table's code: clones, and shapes for a few entries. Table itself made
// generic over its slots was the alternative; the methods of type parameters are
// called through a dictionary, and sorted sets would have paid for that.
//
// The zero value is empty and ready to use.
type keyTable struct {
	seed    maphash.Seed
	of      []int32 // by the first depth bits of the hash: the number of its page
	pages   []*keyPage
	deepest int // pages with the directory's depth; without any it halves
	n       int
	room    int // slots, in all pages
	depth   uint8
}

// keyPage is open addressing with linear probing, without tombstones, as the
// pages of package table.
type keyPage struct {
	meta   []uint16 // by slot: 0 if it is empty, else the lowest 16 bits of the hash, bit 0 set
	slots  []*Entry
	prefix uint32 // the bits of the hash that the entries have in common
	depth  uint8  // how many those are
	used   uint16
}

const (
	minSlots  = 16
	maxSlots  = 256
	maxUsed   = maxSlots - maxSlots/8
	mergedMax = 96 // two pages become one that has this many entries or fewer
)

func newKeyPage(depth uint8, prefix uint32, n int) *keyPage {
	p := &keyPage{prefix: prefix, depth: depth}
	p.allocate(n)
	return p
}

// allocate gives the page empty slots for n entries.
func (p *keyPage) allocate(n int) {
	size := minSlots
	for size-size/8 < n {
		switch {
		case size < 64:
			size += 8
		case size < 128:
			size += 16
		default:
			size += 32
		}
	}
	p.meta = make([]uint16, size)
	p.slots = make([]*Entry, size)
	p.used = 0
}

// home is where an entry would like to be in a page of some size.
func home(meta uint16, size int) int { return int(meta>>8) * size >> 8 }

// find returns the slot of key, or -1.
func (p *keyPage) find(key string, h uint64) int {
	want := uint16(h) | 1
	meta := p.meta
	slots := p.slots[:len(meta)]
	for i := home(want, len(meta)); ; {
		if meta[i] == want && slots[i].Key() == key {
			return i
		}
		if meta[i] == 0 {
			return -1
		}
		if i++; i == len(meta) {
			i = 0
		}
	}
}

// place adds an entry for which there is a slot.
func (p *keyPage) place(meta uint16, e *Entry) {
	i := home(meta, len(p.meta))
	for p.meta[i] != 0 {
		if i++; i == len(p.meta) {
			i = 0
		}
	}
	p.meta[i], p.slots[i] = meta, e
	p.used++
}

// resize gives the page slots for n entries, which is no fewer than it has.
func (p *keyPage) resize(n int) {
	meta, slots := p.meta, p.slots
	p.allocate(n)
	for i, e := range slots {
		if meta[i] != 0 {
			p.place(meta[i], e)
		}
	}
}

// remove empties slot i, and gives memory back when three quarters are empty.
func (p *keyPage) remove(i int) {
	size := len(p.meta)
	for j := i; ; {
		if j++; j == size {
			j = 0
		}
		if p.meta[j] == 0 {
			break
		}
		// The entry at j may move to i unless its home lies cyclically in (i, j].
		if h := home(p.meta[j], size); i <= j && (h <= i || j < h) || j < h && h <= i {
			p.meta[i], p.slots[i] = p.meta[j], p.slots[j]
			i = j
		}
	}
	p.meta[i], p.slots[i] = 0, nil
	if p.used--; size > minSlots && int(p.used) < size/4 {
		p.resize(int(p.used) + int(p.used)/2)
	}
}

func (t *keyTable) hash(key string) uint64 { return maphash.String(t.seed, key) }

// page returns the page for a hash. There must be one.
func (t *keyTable) page(h uint64) *keyPage { return t.pages[t.of[h>>(64-t.depth)]] }

// get returns the entry of key, or nil. O(1).
func (t *keyTable) get(key string) *Entry {
	if t.n == 0 {
		return nil
	}
	h := t.hash(key)
	p := t.page(h)
	if i := p.find(key, h); i >= 0 {
		return p.slots[i]
	}
	return nil
}

// insert adds the entry of a key that is not there. O(1) on average.
func (t *keyTable) insert(e *Entry) {
	if t.pages == nil {
		if t.seed == (maphash.Seed{}) {
			t.seed = maphash.MakeSeed()
		}
		t.of, t.pages, t.deepest = []int32{0}, []*keyPage{newKeyPage(0, 0, 0)}, 1
		t.room = minSlots
	}
	h := t.hash(e.Key())
	p := t.page(h)
	for p.used == maxUsed {
		t.split(p, h)
		p = t.page(h)
	}
	if size := len(p.meta); int(p.used) == size-size/8 {
		p.resize(int(p.used) + 1)
		t.room += len(p.meta) - size
	}
	p.place(uint16(h)|1, e)
	t.n++
}

// replace puts e in the place of the entry that its key has.
func (t *keyTable) replace(e *Entry) {
	key := e.Key()
	h := t.hash(key)
	p := t.page(h)
	p.slots[p.find(key, h)] = e
}

// split puts two pages in the place of p, the page for h, by the next bit of the
// hash.
func (t *keyTable) split(p *keyPage, h uint64) {
	if p.depth == t.depth {
		of := make([]int32, 2*len(t.of))
		for i := range of {
			of[i] = t.of[i/2]
		}
		t.of = of
		t.depth++
		t.deepest = 0
	}
	var hashes [maxSlots]uint64
	ones := 0
	for i, e := range p.slots {
		if p.meta[i] != 0 {
			hashes[i] = t.hash(e.Key())
			ones += int(hashes[i] << p.depth >> 63)
		}
	}
	low := newKeyPage(p.depth+1, p.prefix<<1, int(p.used)-ones)
	high := newKeyPage(p.depth+1, p.prefix<<1|1, ones)
	for i, e := range p.slots {
		switch {
		case p.meta[i] == 0:
		case hashes[i]<<p.depth>>63 == 1:
			high.place(p.meta[i], e)
		default:
			low.place(p.meta[i], e)
		}
	}
	t.pages[t.of[h>>(64-t.depth)]] = low
	t.pages = append(t.pages, high)
	t.point(len(t.pages) - 1)
	if low.depth == t.depth {
		t.deepest += 2
	}
	t.room += len(low.meta) + len(high.meta) - len(p.meta)
}

// point makes the directory's entries of page number k's prefix name it.
func (t *keyTable) point(k int) {
	p := t.pages[k]
	first, span := int(p.prefix)<<(t.depth-p.depth), 1<<(t.depth-p.depth)
	for i := first; i < first+span; i++ {
		t.of[i] = int32(k)
	}
}

// remove removes the entry of key and returns it, nil if there is none.
func (t *keyTable) remove(key string) *Entry {
	if t.n == 0 {
		return nil
	}
	h := t.hash(key)
	p := t.page(h)
	i := p.find(key, h)
	if i < 0 {
		return nil
	}
	e := p.slots[i]
	if t.n == 1 {
		t.clear()
		return e
	}
	size := len(p.meta)
	p.remove(i)
	t.room += len(p.meta) - size
	t.n--
	if p.depth > 0 && p.used <= mergedMax/2 {
		t.merge(p)
	}
	return e
}

// merge joins p with its buddy, the page that differs in the last bit of the
// prefix, if there is one and both are sparse.
func (t *keyTable) merge(p *keyPage) {
	at := int(p.prefix) << (t.depth - p.depth)
	k, l := t.of[at], t.of[at^1<<(t.depth-p.depth)]
	buddy := t.pages[l]
	if buddy.depth != p.depth || p.used+buddy.used > mergedMax {
		return
	}
	merged := newKeyPage(p.depth-1, p.prefix>>1, int(p.used+buddy.used))
	for _, from := range []*keyPage{p, buddy} {
		for i, e := range from.slots {
			if from.meta[i] != 0 {
				merged.place(from.meta[i], e)
			}
		}
	}
	t.room += len(merged.meta) - len(p.meta) - len(buddy.meta)
	t.pages[k] = merged
	t.point(int(k))
	last := len(t.pages) - 1
	t.pages[l] = t.pages[last]
	t.pages[last] = nil
	t.pages = t.pages[:last]
	if int(l) < last {
		t.point(int(l))
	}
	if p.depth == t.depth {
		t.deepest -= 2
	}
	for t.deepest == 0 {
		t.depth--
		of := make([]int32, len(t.of)/2)
		for i := range of {
			of[i] = t.of[2*i]
		}
		t.of = of
		for _, p := range t.pages {
			if p.depth == t.depth {
				t.deepest++
			}
		}
	}
}

// clear removes every entry. O(1).
func (t *keyTable) clear() { *t = keyTable{seed: t.seed} }

// all yields every entry, in no order. The table must not be changed meanwhile.
func (t *keyTable) all() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, p := range t.pages {
			for _, e := range p.slots {
				if e != nil && !yield(e) {
					return
				}
			}
		}
	}
}

// The cursor of a scan: hashes lose their lowest bits, so that cursors survive
// clients that hold numbers as float64.
const (
	cursorBits = 52
	cursorEnd  = 1 << cursorBits
)

// scan passes about count entries to yield and returns the cursor with which to go
// on, 0 at the end, as table.Table.Scan does: by the order of hashes, so that an
// entry that is there from begin to end is passed exactly once.
func (t *keyTable) scan(cursor uint64, count int, yield func(*Entry)) (next uint64) {
	count = max(count, 1)
	var hashes, sorted [maxSlots]uint64
	for t.n > 0 && cursor < cursorEnd {
		p := t.page(cursor << (64 - cursorBits))
		end := uint64(p.prefix+1) << (cursorBits - p.depth)
		left := sorted[:0]
		for i, e := range p.slots {
			if e != nil {
				hashes[i] = t.hash(e.Key()) >> (64 - cursorBits)
				if hashes[i] >= cursor {
					left = append(left, hashes[i])
				}
			}
		}
		if len(left) > count {
			slices.Sort(left)
			end = left[count-1] + 1
		}
		for i, e := range p.slots {
			if e != nil && hashes[i] >= cursor && hashes[i] < end {
				yield(e)
				count--
			}
		}
		cursor = end
		if count <= 0 {
			return end % cursorEnd
		}
	}
	return 0
}

// random returns an entry, every one being equally likely, nil if there is none.
// O(1) on average.
func (t *keyTable) random(r *rand.Rand) *Entry {
	if t.n == 0 {
		return nil
	}
	// A page and one of the most slots that pages may have: each entry has the same
	// chance to be hit, whatever else there is. About half of the draws hit one.
	for range 64 {
		p, width := t.pages[0], maxSlots
		if len(t.pages) > 1 {
			p = t.pages[r.IntN(len(t.pages))]
		} else {
			width = len(p.slots)
		}
		if i := r.IntN(width); i < len(p.slots) && p.slots[i] != nil {
			return p.slots[i]
		}
	}
	// So sparse, or so unlucky: count entries. As this too is fair, so are both together.
	k := r.IntN(t.n)
	for e := range t.all() {
		if k == 0 {
			return e
		}
		k--
	}
	panic("BUG: a table of keys has fewer entries than it counts")
}

// some appends n entries to buf, neighbours as far as there are any.
func (t *keyTable) some(r *rand.Rand, n int, buf []*Entry) []*Entry {
	for tries := 0; n > 0; tries++ {
		if tries > 64 { // so sparse
			buf = append(buf, t.random(r))
			n--
			continue
		}
		p := t.pages[r.IntN(len(t.pages))]
		for i := r.IntN(len(p.slots)); n > 0 && i < len(p.slots); i++ {
			if e := p.slots[i]; e != nil {
				buf = append(buf, e)
				n--
			}
		}
	}
	return buf
}

// bytes estimates the memory that the table takes, without the entries. O(1).
func (t *keyTable) bytes() int {
	return int(unsafe.Sizeof(*t)) + 8*cap(t.pages) + 4*cap(t.of) + len(t.pages)*int(unsafe.Sizeof(keyPage{})) + t.room*slotBytes
}

// slotBytes is the size of a slot.
const slotBytes = 8 + 2

// check returns an error if the table is not what its code relies on. O(n).
func (t *keyTable) check() error {
	n, room, deepest, covered := 0, 0, 0, 0
	for k, p := range t.pages {
		used := 0
		for i, e := range p.slots {
			if (e != nil) != (p.meta[i] != 0) {
				return fmt.Errorf("page %d, slot %d: %v, hash %x", k, i, e, p.meta[i])
			}
			if e == nil {
				continue
			}
			used++
			h := t.hash(e.Key())
			if p.meta[i] != uint16(h)|1 || h>>(64-p.depth) != uint64(p.prefix) || p.find(e.Key(), h) != i {
				return fmt.Errorf("page %d, slot %d: %q is not found there", k, i, e.Key())
			}
		}
		if size := len(p.meta); used != int(p.used) || used > size-size/8 || size != len(p.slots) {
			return fmt.Errorf("page %d: %d entries in %d slots, counted %d", k, used, size, p.used)
		}
		n += used
		room += len(p.meta)
		if p.depth == t.depth {
			deepest++
		}
		span := 1 << (t.depth - p.depth)
		covered += span
		for i := range span {
			if at := int(p.prefix)*span + i; t.of[at] != int32(k) {
				return fmt.Errorf("page %d: directory entry %d names page %d", k, at, t.of[at])
			}
		}
	}
	if n != t.n || room != t.room || deepest != t.deepest || covered != len(t.of) || n == 0 && t.pages != nil {
		return fmt.Errorf("%d entries, counted %d, %d slots, counted %d, %d pages are deepest, counted %d, %d prefixes of %d",
			n, t.n, room, t.room, deepest, t.deepest, covered, len(t.of))
	}
	return nil
}
