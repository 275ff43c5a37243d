package keyspace

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"unsafe"
)

// keyTable is a hash table from keys to entries. It uses extendible hashing, as
// package table does: a directory of hash prefixes refers to pages, and a full page
// splits in two.
//
//	directory  prefix 00 │ 01 │ 10 │ 11          2^depth entries
//	                   │    │    └─┬──┘
//	page       tags   │ 0 │ t1 │ 0 │ t2 │        16 bits of each hash; 0: free
//	           slots  │   │ *  │   │ *  │        pointers to entries with their keys
//
// A page is open addressing with linear probing, without tombstones; see package
// table for growth, scans, random draws and sources. A slot is only a pointer to
// the entry, which contains its key: 10 bytes for each slot instead of 26. A lookup
// whose tag matches reads the entry, which the caller needs anyway. The table has
// no clones and no special form for few entries. The documentation of package table
// compares the costs of one implementation for both.
//
// Invariants (keyTable.check): a slot and its tag are both set or both free; the
// tag is the low 16 bits of the hash with bit 0 set; all hashes of a page begin
// with its prefix; find returns the slot of each key; a page is at most 7/8 full;
// all directory entries of a page's prefix refer to the page; deepest, n and
// capacity are the sums over all pages; an empty table has no pages.
type keyTable struct {
	seed     maphash.Seed
	pageOf   []int32 // by hash prefix of depth bits: index in pages
	pages    []*keyPage
	deepest  int // number of pages with the directory's depth; at 0 the directory halves
	n        int
	capacity int // slots of all pages
	depth    uint8
	expected int // number of entries for which the first insertion makes pages
}

func newKeyTable() keyTable { return keyTable{seed: maphash.MakeSeed()} }

// keyPage is a page of the table.
type keyPage struct {
	tags   []uint16 // by slot: 0 if free, else the lowest 16 bits of the hash with bit 0 set
	slots  []*Entry
	prefix uint32 // hash bits that all entries of the page share
	depth  uint8  // length of prefix in bits
	used   uint16
}

const (
	minSlots  = 16
	maxSlots  = 255
	maxUsed   = maxSlots - maxSlots/8
	mergedMax = 96 // two sibling pages merge when they have this many entries or fewer
)

// slotsFor returns the number of slots of a page for n entries. Arrays of them fill size
// classes of Go's allocator, which has 8 bytes before pointers of more than 512 bytes.
func slotsFor(n int) int {
	size := minSlots
	for size-size/8 < n && size < 64 {
		size += 8
	}
	for size-size/8 < n && size < maxSlots {
		size = (size + 1) | 31 // 95, 127, 159, …
	}
	return size
}

func newKeyPage(depth uint8, prefix uint32, n int) *keyPage {
	p := &keyPage{prefix: prefix, depth: depth}
	p.allocate(n)
	return p
}

// allocate gives the page free slots for n entries.
func (p *keyPage) allocate(n int) {
	size := slotsFor(n)
	p.tags, p.slots, p.used = make([]uint16, size), make([]*Entry, size), 0
}

// home returns the home slot of a tag in a page of the given size, at which probing
// starts.
func home(tag uint16, size int) int { return int(tag>>8) * size >> 8 }

// find returns the slot of key, or -1.
func (p *keyPage) find(key string, h uint64) int {
	want := uint16(h) | 1
	tags := p.tags
	slots := p.slots[:len(tags)]
	for i := home(want, len(tags)); ; {
		if tags[i] == want && slots[i].Key() == key {
			return i
		}
		if tags[i] == 0 {
			return -1
		}
		if i++; i == len(tags) {
			i = 0
		}
	}
}

// store adds an entry to a page that has a free slot, by linear probing.
func (p *keyPage) store(tag uint16, e *Entry) {
	i := home(tag, len(p.tags))
	for p.tags[i] != 0 {
		if i++; i == len(p.tags) {
			i = 0
		}
	}
	p.tags[i], p.slots[i] = tag, e
	p.used++
}

// resize reallocates the page for n entries, which must not be fewer than it has.
func (p *keyPage) resize(n int) {
	tags, slots := p.tags, p.slots
	p.allocate(n)
	p.storeAll(tags, slots)
}

// storeAll stores the entries of other slots.
func (p *keyPage) storeAll(tags []uint16, slots []*Entry) {
	for i, e := range slots {
		if tags[i] != 0 {
			p.store(tags[i], e)
		}
	}
}

// remove removes the entry in slot i, and shrinks the page when three quarters of
// its slots are free.
func (p *keyPage) remove(i int) {
	size := len(p.tags)
	for j := i; ; {
		if j++; j == size {
			j = 0
		}
		if p.tags[j] == 0 {
			break
		}
		// The entry at j may move to i unless its home lies cyclically in (i, j].
		if h := home(p.tags[j], size); i <= j && (h <= i || j < h) || j < h && h <= i {
			p.tags[i], p.slots[i] = p.tags[j], p.slots[j]
			i = j
		}
	}
	p.tags[i], p.slots[i] = 0, nil
	if p.used--; size > minSlots && int(p.used) < size/4 {
		p.resize(int(p.used) + int(p.used)/2)
	}
}

func (t *keyTable) hash(key string) uint64 { return maphash.String(t.seed, key) }

// page returns the page for a hash. The table must not be empty.
func (t *keyTable) page(h uint64) *keyPage { return t.pages[t.pageOf[h>>(64-t.depth)]] }

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

// insert adds the entry of an absent key with hash h. O(1) amortized.
func (t *keyTable) insert(e *Entry, h uint64) {
	if t.pages == nil {
		t.allocate()
	}
	p := t.page(h)
	for p.used == maxUsed {
		t.split(p, h)
		p = t.page(h)
	}
	if size := len(p.tags); int(p.used) == size-size/8 || p.used%8 == 0 && size < slotsFor(usual(t.n, p.depth)) {
		p.resize(max(int(p.used)+1, usual(t.n, p.depth)))
		t.capacity += len(p.tags) - size
	}
	p.store(uint16(h)|1, e)
	t.n++
}

// allocate makes the pages of an empty table. Without splits and with hardly any growth of
// pages, the insertion of a million entries takes half of the time, and produces no garbage.
func (t *keyTable) allocate() {
	const most = 160 // maximum average number of expected entries of a page; the average is at least half of it
	for t.depth = 0; t.expected>>t.depth > most; {
		t.depth++
	}
	n := 1 << t.depth
	t.pageOf, t.pages, t.deepest = make([]int32, n), make([]*keyPage, n), n
	each := usual(t.expected, t.depth)
	for i := range t.pages {
		p := newKeyPage(t.depth, uint32(i), each)
		t.pageOf[i], t.pages[i] = int32(i), p
		t.capacity += len(p.tags)
	}
	t.expected = 0
}

// usual returns the least number of entries for which a page of the given depth has slots
// in a table of n entries: the average, and one and a half standard deviations. So nearly
// all pages of a depth have the same size. Else a few of each size were left behind, each
// of which retains a span of Go's allocator: 500 000 keys took 5 bytes more each.
func usual(n int, depth uint8) int {
	n >>= depth
	return n + int(1.5*math.Sqrt(float64(n)))
}

// replace replaces the entry of e's key by e.
func (t *keyTable) replace(e *Entry) {
	key := e.Key()
	h := t.hash(key)
	p := t.page(h)
	p.slots[p.find(key, h)] = e
}

// split replaces p, the page for h, by two pages, according to the next bit of the
// hash.
func (t *keyTable) split(p *keyPage, h uint64) {
	if p.depth == t.depth {
		pageOf := make([]int32, 2*len(t.pageOf))
		for i := range pageOf {
			pageOf[i] = t.pageOf[i/2]
		}
		t.pageOf = pageOf
		t.depth++
		t.deepest = 0
	}
	var hashes [maxSlots]uint64
	ones := 0
	for i, e := range p.slots {
		if p.tags[i] != 0 {
			hashes[i] = t.hash(e.Key())
			ones += int(hashes[i] << p.depth >> 63)
		}
	}
	least := usual(t.n, p.depth+1)
	low := newKeyPage(p.depth+1, p.prefix<<1, max(int(p.used)-ones, least))
	high := newKeyPage(p.depth+1, p.prefix<<1|1, max(ones, least))
	for i, e := range p.slots {
		switch {
		case p.tags[i] == 0:
		case hashes[i]<<p.depth>>63 == 1:
			high.store(p.tags[i], e)
		default:
			low.store(p.tags[i], e)
		}
	}
	t.pages[t.pageOf[h>>(64-t.depth)]] = low
	t.pages = append(t.pages, high)
	t.setPage(len(t.pages) - 1)
	if low.depth == t.depth {
		t.deepest += 2
	}
	t.capacity += len(low.tags) + len(high.tags) - len(p.tags)
}

// setPage makes all directory entries of the prefix of page k refer to it.
func (t *keyTable) setPage(k int) {
	p := t.pages[k]
	first, span := int(p.prefix)<<(t.depth-p.depth), 1<<(t.depth-p.depth)
	for i := first; i < first+span; i++ {
		t.pageOf[i] = int32(k)
	}
}

// remove removes the entry of key and returns it, or nil if there is none. O(1)
// amortized.
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
	size := len(p.tags)
	p.remove(i)
	t.capacity += len(p.tags) - size
	t.n--
	if p.depth > 0 && p.used <= mergedMax/2 {
		t.merge(p)
	}
	return e
}

// merge merges p with its sibling, the page whose prefix differs only in the last
// bit, if there is one and the two are sparse. It halves the directory while no
// page has its depth.
func (t *keyTable) merge(p *keyPage) {
	at := int(p.prefix) << (t.depth - p.depth)
	k, l := t.pageOf[at], t.pageOf[at^1<<(t.depth-p.depth)]
	sibling := t.pages[l]
	if sibling.depth != p.depth || p.used+sibling.used > mergedMax {
		return
	}
	merged := newKeyPage(p.depth-1, p.prefix>>1, int(p.used+sibling.used))
	merged.storeAll(p.tags, p.slots)
	merged.storeAll(sibling.tags, sibling.slots)
	t.capacity += len(merged.tags) - len(p.tags) - len(sibling.tags)
	t.pages[k] = merged
	t.setPage(int(k))
	last := len(t.pages) - 1
	t.pages[l], t.pages[last] = t.pages[last], nil
	t.pages = t.pages[:last]
	if int(l) < last {
		t.setPage(int(l))
	}
	if p.depth == t.depth {
		t.deepest -= 2
	}
	for t.deepest == 0 {
		t.depth--
		pageOf := make([]int32, len(t.pageOf)/2)
		for i := range pageOf {
			pageOf[i] = t.pageOf[2*i]
		}
		t.pageOf = pageOf
		for _, p := range t.pages {
			if p.depth == t.depth {
				t.deepest++
			}
		}
	}
}

// clear removes all entries. O(1).
func (t *keyTable) clear() { *t = keyTable{seed: t.seed} }

// all yields all entries in unspecified order. The table must not be modified
// during the iteration.
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

// A cursor is a hash without its lowest 12 bits, so it survives clients that
// represent numbers as float64.
const (
	cursorBits = 52
	cursorEnd  = 1 << cursorBits
)

// position returns the cursor at which a scan passes a key. The table must have had an
// entry.
func (t *keyTable) position(key string) uint64 { return t.hash(key) >> (64 - cursorBits) }

// positioned is an entry with its position.
type positioned struct {
	position uint64
	entry    *Entry
}

// after appends to buf the entries of the page that contains a cursor, from the cursor
// on and in the order of their positions, and returns the first cursor behind the page.
// The table must not be empty, and the cursor be less than cursorEnd.
func (t *keyTable) after(cursor uint64, buf []positioned) (page []positioned, end uint64) {
	p := t.page(cursor << (64 - cursorBits))
	for _, e := range p.slots {
		if e == nil {
			continue
		}
		if at := t.position(e.Key()); at >= cursor {
			buf = append(buf, positioned{at, e})
		}
	}
	slices.SortFunc(buf, func(a, b positioned) int { return cmp.Compare(a.position, b.position) })
	return buf, uint64(p.prefix+1) << (cursorBits - p.depth)
}

// scan passes about count entries to yield and returns the next cursor, 0 at the
// end. As in table.Table.Scan, entries come in the order of their hashes, so an
// entry that is present during the whole scan is passed exactly once.
func (t *keyTable) scan(cursor uint64, count int, yield func(*Entry)) (next uint64) {
	count = max(count, 1)
	var hashes, sorted [maxSlots]uint64
	for t.n > 0 && cursor < cursorEnd {
		p := t.page(cursor << (64 - cursorBits))
		end := uint64(p.prefix+1) << (cursorBits - p.depth)
		left := sorted[:0]
		for i, e := range p.slots {
			if e == nil {
				continue
			}
			if hashes[i] = t.position(e.Key()); hashes[i] >= cursor {
				left = append(left, hashes[i])
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

// random returns an entry with uniform probability, or nil if there is none. O(1)
// on average.
func (t *keyTable) random(r *rand.Rand) *Entry {
	if t.n == 0 {
		return nil
	}
	// Rejection sampling: a random page, and one of as many slots as the largest
	// page has. Every entry has the same probability. About half of the draws hit
	// an entry.
	for range 64 {
		p, width := t.pages[r.IntN(len(t.pages))], maxSlots
		if len(t.pages) == 1 {
			width = len(p.slots)
		}
		if i := r.IntN(width); i < len(p.slots) && p.slots[i] != nil {
			return p.slots[i]
		}
	}
	// Fallback after 64 misses, in a sparse table: select an entry by its ordinal.
	// Both methods are uniform, so their combination is, too.
	k := r.IntN(t.n)
	for e := range t.all() {
		if k == 0 {
			return e
		}
		k--
	}
	panic("BUG: a table of keys has fewer entries than it counts")
}

// sampleRuns appends n entries to buf, in runs of adjacent slots.
func (t *keyTable) sampleRuns(r *rand.Rand, n int, buf []*Entry) []*Entry {
	for tries := 0; n > 0; tries++ {
		if tries > 64 { // a sparse table
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

// bytes estimates the memory of the table in bytes, without the entries. O(1).
func (t *keyTable) bytes() int {
	return int(unsafe.Sizeof(*t)) + 8*cap(t.pages) + 4*cap(t.pageOf) + len(t.pages)*int(unsafe.Sizeof(keyPage{})) + t.capacity*slotBytes
}

// slotBytes is the size of a slot with its tag.
const slotBytes = 8 + 2

// check verifies the invariants of the table. O(n).
func (t *keyTable) check() error {
	n, capacity, deepest, covered := 0, 0, 0, 0
	for k, p := range t.pages {
		used := 0
		for i, e := range p.slots {
			if (e != nil) != (p.tags[i] != 0) {
				return fmt.Errorf("page %d, slot %d: %v, hash %x", k, i, e, p.tags[i])
			}
			if e == nil {
				continue
			}
			used++
			h := t.hash(e.Key())
			if p.tags[i] != uint16(h)|1 || h>>(64-p.depth) != uint64(p.prefix) || p.find(e.Key(), h) != i {
				return fmt.Errorf("page %d, slot %d: find does not return %q", k, i, e.Key())
			}
		}
		if size := len(p.tags); used != int(p.used) || used > size-size/8 || size != len(p.slots) {
			return fmt.Errorf("page %d: %d entries in %d slots, counted %d", k, used, size, p.used)
		}
		n += used
		capacity += len(p.tags)
		if p.depth == t.depth {
			deepest++
		}
		span := 1 << (t.depth - p.depth)
		covered += span
		for i := range span {
			if at := int(p.prefix)*span + i; t.pageOf[at] != int32(k) {
				return fmt.Errorf("page %d: directory entry %d refers to page %d", k, at, t.pageOf[at])
			}
		}
	}
	if n != t.n || capacity != t.capacity || deepest != t.deepest || covered != len(t.pageOf) || n == 0 && t.pages != nil {
		return fmt.Errorf("%d entries, counted %d, %d slots, counted %d, %d pages are deepest, counted %d, %d prefixes of %d",
			n, t.n, capacity, t.capacity, deepest, t.deepest, covered, len(t.pageOf))
	}
	return nil
}
