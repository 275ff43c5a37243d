package table

import (
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"unsafe"
)

// The table is extendible hashing (Fagin, Nievergelt, Pippenger and Strong 1979): the
// top bits of a key's hash choose an entry of a directory, which names a page of up
// to 256 slots; a full page splits in two, and the directory doubles when it must.
// So growing never moves more than one page at a time, pages are the unit of copying
// on write, pages in the order of the directory are in the order of hashes (which is
// what the cursor of Scan counts in), and a page and a slot drawn at random are a
// fair draw. A Swiss table (as Go's map is one) would save some memory in pages that
// are between two sizes; it has to give up either the order or the O(1) clone.
//
// Tables that small sets and hashes use stay below 256 entries: those have one page
// and no directory, and up to 8 entries no hashes either.

// Table maps strings to values. The zero value is empty and ready to use.
type Table[V any] struct {
	seed  maphash.Seed  // shared with clones; set with the first page
	owner *token        // pages and directories of other owners are shared: copied before a write
	sole  *page[V]      // the only page, or nil
	dir   *directory[V] // of two pages and more, or nil
	n     int
	room  int // slots allocated, in all pages
}

// token is an identity; it has a size, for pointers to empty structs may be equal.
type token struct{ _ byte }

// directory names the page of each prefix of depth bits.
type directory[V any] struct {
	owner   *token
	depth   uint8
	deepest int     // pages with the directory's depth; without any it halves
	of      []int32 // by prefix: the number of its page
	pages   []*page[V]
}

// Len returns the number of entries. O(1).
func (t *Table[V]) Len() int { return t.n }

// view is b as a string for as long as a call lasts: nothing may keep it.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// page returns the page for a hash. There must be one.
func (t *Table[V]) page(h uint64) *page[V] {
	if t.dir == nil {
		return t.sole
	}
	return t.dir.pages[t.dir.of[h>>(64-t.dir.depth)]]
}

// find returns the page where key belongs, nil in an empty table; its slot, or -1;
// and the key's hash, unless the page is the only one and does not need it.
func (t *Table[V]) find(key string) (p *page[V], i int, h uint64) {
	if t.n == 0 {
		return nil, -1, 0
	}
	if t.dir == nil && t.sole.meta == nil {
		return t.sole, t.sole.find(key, 0), 0
	}
	h = maphash.String(t.seed, key)
	p = t.page(h)
	return p, p.find(key, h), h
}

// Get returns the value of key. O(1), no allocation.
func (t *Table[V]) Get(key string) (v V, ok bool) {
	p, i, _ := t.find(key)
	if i < 0 {
		return v, false
	}
	return p.slots[i].value, true
}

// GetBytes is Get.
func (t *Table[V]) GetBytes(key []byte) (V, bool) { return t.Get(view(key)) }

// Batch is how many keys Warm takes at once.
const Batch = 16

// Warm brings what Get reads of up to Batch keys, and the keys themselves, into the
// processor's cache, and returns a number of no meaning, without which the compiler
// would leave that out. In a large table a key, its page and the key that is there lie
// at random places: six reads of which each waits for the one before. Here each step is
// taken for all keys side by side: looking up all keys of a table of a million in
// another takes 0.6 of the time.
func (t *Table[V]) Warm(keys []string) (read uint64) {
	if t.dir == nil {
		return 0 // there are few enough for the cache
	}
	keys = keys[:min(len(keys), Batch)]
	var hashes [Batch]uint64
	var pages [Batch]*page[V]
	for _, key := range keys {
		if key != "" {
			read += uint64(key[len(key)-1])
		}
	}
	for i, key := range keys {
		hashes[i&(Batch-1)] = maphash.String(t.seed, key)
	}
	for i := range keys {
		pages[i&(Batch-1)] = t.page(hashes[i&(Batch-1)])
	}
	for i := range keys {
		p := pages[i&(Batch-1)]
		read += uint64(len(p.meta)) + uint64(len(p.slots))
	}
	var slots [Batch]int
	for i := range keys {
		p, want := pages[i&(Batch-1)], uint16(hashes[i&(Batch-1)])|1
		at := 0
		if p.meta != nil {
			for at = home(want, len(p.meta)); p.meta[at] != 0 && p.meta[at] != want; {
				if at++; at == len(p.meta) {
					at = 0
				}
			}
		}
		slots[i&(Batch-1)] = at
	}
	for i := range keys {
		if p, at := pages[i&(Batch-1)], slots[i&(Batch-1)]; at < len(p.slots) && p.slots[at].key != "" {
			read += uint64(p.slots[at].key[0])
		}
	}
	return read
}

// Ref returns the value of key for changing it in place, nil if there is none. It is
// valid until the next write of any kind, Clone included. O(1).
func (t *Table[V]) Ref(key string) *V {
	p, i, h := t.find(key)
	if i < 0 {
		return nil
	}
	return &t.own(p, h).slots[i].value
}

// RefBytes is Ref.
func (t *Table[V]) RefBytes(key []byte) *V { return t.Ref(view(key)) }

// Set gives key a value and returns the one that it replaces. O(1) on average: now
// and then a page splits, and the directory, 4 bytes for every 50 or more entries,
// doubles.
func (t *Table[V]) Set(key string, v V) (old V, replaced bool) { return t.set(key, false, v) }

// SetBytes is Set; key is copied only if it is new.
func (t *Table[V]) SetBytes(key []byte, v V) (old V, replaced bool) { return t.set(view(key), true, v) }

func (t *Table[V]) set(key string, borrowed bool, v V) (old V, replaced bool) {
	value, _, added := t.GetOrAdd(key, borrowed, v)
	if added {
		return old, false
	}
	old, *value = *value, v
	return old, true
}

// GetOrAdd returns the value of key for changing it in place, as Ref does, and the
// table's own key; or, if there is none, gives key the value v and returns nil. A
// borrowed key is copied if it is new. O(1) on average, with one search in place of
// the two of Ref and Set.
func (t *Table[V]) GetOrAdd(key string, borrowed bool, v V) (value *V, own string, added bool) {
	p, i, h := t.find(key)
	if i >= 0 {
		s := &t.own(p, h).slots[i]
		return &s.value, s.key, false
	}
	if borrowed {
		key = strings.Clone(key)
	}
	if p == nil {
		if t.seed == (maphash.Seed{}) {
			t.seed = maphash.MakeSeed()
		}
		p = &page[V]{owner: t.owner}
		t.sole = p
	} else if t.dir == nil && p.meta == nil {
		h = maphash.String(t.seed, key)
	}
	for p.full() {
		t.split(p, h)
		p = t.page(h)
	}
	p = t.own(p, h)
	before := cap(p.slots)
	p.insert(t.seed, h, slot[V]{v, key})
	t.room += cap(p.slots) - before
	t.n++
	return nil, key, true
}

// own returns p, the page for h, or in its place a copy that the table may write to.
func (t *Table[V]) own(p *page[V], h uint64) *page[V] {
	if p.owner == t.owner {
		return p
	}
	c := *p
	c.owner = t.owner
	c.meta = slices.Clone(p.meta)
	c.slots = append(make([]slot[V], 0, cap(p.slots)), p.slots...)
	if t.dir == nil {
		t.sole = &c
	} else {
		d := t.ownDirectory()
		d.pages[d.of[h>>(64-d.depth)]] = &c
	}
	return &c
}

// ownDirectory returns the directory for writing, after making or copying it if need be.
func (t *Table[V]) ownDirectory() *directory[V] {
	d := t.dir
	switch {
	case d == nil:
		t.dir = &directory[V]{owner: t.owner, deepest: 1, of: []int32{0}, pages: []*page[V]{t.sole}}
		t.sole = nil
	case d.owner != t.owner:
		c := *d
		c.owner = t.owner
		c.of = slices.Clone(d.of)
		c.pages = slices.Clone(d.pages)
		t.dir = &c
	}
	return t.dir
}

// split puts two pages in the place of p, the page for h, by the next bit of the
// hash. Keys with random hashes need it once; should all go to one side, the caller
// splits again.
func (t *Table[V]) split(p *page[V], h uint64) {
	d := t.ownDirectory()
	if p.depth == d.depth {
		of := make([]int32, 2*len(d.of))
		for i := range of {
			of[i] = d.of[i/2]
		}
		d.of = of
		d.depth++
		d.deepest = 0
	}
	var hashes [maxSlots]uint64
	var ones int
	for i := range p.slots {
		if p.occupied(i) {
			hashes[i] = maphash.String(t.seed, p.slots[i].key)
			ones += int(hashes[i] << p.depth >> 63)
		}
	}
	low := newPage[V](t.owner, p.depth+1, p.prefix<<1, p.len()-ones)
	high := newPage[V](t.owner, p.depth+1, p.prefix<<1|1, ones)
	for i := range p.slots {
		if p.occupied(i) {
			to := low
			if hashes[i]<<p.depth>>63 == 1 {
				to = high
			}
			to.place(uint16(hashes[i])|1, p.slots[i])
		}
	}
	d.pages[d.of[h>>(64-d.depth)]] = low
	d.pages = append(d.pages, high)
	d.point(len(d.pages) - 1)
	if low.depth == d.depth {
		d.deepest += 2
	}
	t.room += cap(low.slots) + cap(high.slots) - cap(p.slots)
}

// point makes the entries of page number k's prefix name it.
func (d *directory[V]) point(k int) {
	p := d.pages[k]
	first, span := int(p.prefix)<<(d.depth-p.depth), 1<<(d.depth-p.depth)
	for i := first; i < first+span; i++ {
		d.of[i] = int32(k)
	}
}

// Delete removes key and returns the value that it had. O(1) on average.
func (t *Table[V]) Delete(key string) (old V, ok bool) {
	p, i, h := t.find(key)
	if i < 0 {
		return old, false
	}
	old = p.slots[i].value
	if t.n == 1 {
		t.Clear()
		return old, true
	}
	p = t.own(p, h)
	before := cap(p.slots)
	p.remove(t.seed, i)
	t.room += cap(p.slots) - before
	t.n--
	if t.dir != nil && p.len() <= mergedMax/2 {
		t.merge(p)
	}
	return old, true
}

// DeleteBytes is Delete.
func (t *Table[V]) DeleteBytes(key []byte) (V, bool) { return t.Delete(view(key)) }

// merge joins p with its buddy, the page that differs in the last bit of the prefix,
// if there is one and both are sparse.
func (t *Table[V]) merge(p *page[V]) {
	d := t.ownDirectory()
	at := int(p.prefix) << (d.depth - p.depth)
	k, l := d.of[at], d.of[at^1<<(d.depth-p.depth)]
	buddy := d.pages[l]
	if buddy.depth != p.depth || p.len()+buddy.len() > mergedMax {
		return
	}
	merged := newPage[V](t.owner, p.depth-1, p.prefix>>1, p.len()+buddy.len())
	for _, from := range []*page[V]{p, buddy} {
		for i := range from.slots {
			if from.occupied(i) {
				merged.place(uint16(maphash.String(t.seed, from.slots[i].key))|1, from.slots[i])
			}
		}
	}
	t.room += cap(merged.slots) - cap(p.slots) - cap(buddy.slots)
	d.pages[k] = merged
	d.point(int(k))
	last := len(d.pages) - 1
	d.pages[l] = d.pages[last]
	d.pages[last] = nil
	d.pages = d.pages[:last]
	if int(l) < last {
		d.point(int(l))
	}
	if p.depth == d.depth {
		d.deepest -= 2
	}
	for d.deepest == 0 {
		d.depth--
		of := make([]int32, len(d.of)/2)
		for i := range of {
			of[i] = d.of[2*i]
		}
		d.of = of
		for _, p := range d.pages {
			if p.depth == d.depth {
				d.deepest++
			}
		}
	}
	if last == 1 {
		t.sole, t.dir = merged, nil
	}
}

// Clear removes every entry. O(1).
func (t *Table[V]) Clear() { *t = Table[V]{seed: t.seed, owner: t.owner} }

// Clone returns a table with the same entries. O(1): the two share pages until one
// writes to them; its first write then copies the directory and a page, later ones
// a page at most.
func (t *Table[V]) Clone() *Table[V] {
	c := *t
	t.owner, c.owner = new(token), new(token)
	return &c
}

// All yields every entry, in no particular order. The table must not be changed
// meanwhile.
func (t *Table[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for p := range t.each {
			for i := range p.slots {
				if p.occupied(i) && !yield(p.slots[i].key, p.slots[i].value) {
					return
				}
			}
		}
	}
}

// each yields every page.
func (t *Table[V]) each(yield func(*page[V]) bool) {
	if t.sole != nil {
		yield(t.sole)
	}
	if t.dir != nil {
		for _, p := range t.dir.pages {
			if !yield(p) {
				return
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

// Scan passes about count entries to yield and returns the cursor with which to go
// on; 0 begins, and 0 is returned at the end. Entries come by the order of hashes, so
// one that is there from begin to end is passed exactly once, whatever else is added,
// removed or cloned between the calls. Entries of equal hash come together. A cursor
// that no Scan returned does no harm. O(count), and O(256) at least in a large table;
// empty stretches cost O(1) for a page. The table must not be changed by yield.
func (t *Table[V]) Scan(cursor uint64, count int, yield func(key string, v V)) (next uint64) {
	count = max(count, 1)
	var hashes, sorted [maxSlots]uint64
	for t.n > 0 && cursor < cursorEnd {
		p := t.page(cursor << (64 - cursorBits))
		end := uint64(p.prefix+1) << (cursorBits - p.depth)
		left := sorted[:0]
		for i := range p.slots {
			if p.occupied(i) {
				hashes[i] = maphash.String(t.seed, p.slots[i].key) >> (64 - cursorBits)
				if hashes[i] >= cursor {
					left = append(left, hashes[i])
				}
			}
		}
		if len(left) > count {
			slices.Sort(left)
			end = left[count-1] + 1
		}
		for i := range p.slots {
			if p.occupied(i) && hashes[i] >= cursor && hashes[i] < end {
				yield(p.slots[i].key, p.slots[i].value)
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

// Random returns an entry, every one being equally likely. O(1) on average.
func (t *Table[V]) Random(r *rand.Rand) (key string, v V, ok bool) {
	if t.n == 0 {
		return "", v, false
	}
	// A page and one of the most slots that pages may have: each entry has the same
	// chance to be hit, whatever else there is. About half of the draws hit one.
	for range 64 {
		p, width := t.sole, maxSlots
		if p == nil {
			p = t.dir.pages[r.IntN(len(t.dir.pages))]
		} else {
			width = len(p.slots)
		}
		if i := r.IntN(width); i < len(p.slots) && p.occupied(i) {
			return p.slots[i].key, p.slots[i].value, true
		}
	}
	// So sparse, or so unlucky: count entries. As this too is fair, so are both together.
	k := r.IntN(t.n)
	for p := range t.each {
		if k >= p.len() {
			k -= p.len()
			continue
		}
		for i := range p.slots {
			if p.occupied(i) {
				if k == 0 {
					return p.slots[i].key, p.slots[i].value, true
				}
				k--
			}
		}
	}
	panic("BUG: table has fewer entries than it counts")
}

// Bytes estimates the memory that the table takes, without that of the keys' bytes
// and of what values point to. O(1).
func (t *Table[V]) Bytes() int {
	pages, directory := 0, 0
	if t.sole != nil {
		pages = 1
	}
	if t.dir != nil {
		pages = len(t.dir.pages)
		directory = int(unsafe.Sizeof(*t.dir)) + 8*cap(t.dir.pages) + 4*cap(t.dir.of)
	}
	return int(unsafe.Sizeof(*t)) + directory + pages*int(unsafe.Sizeof(page[V]{})) +
		t.room*int(unsafe.Sizeof(slot[V]{})+unsafe.Sizeof(uint16(0)))
}
