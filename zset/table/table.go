package table

import (
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"unsafe"
)

// A table uses extendible hashing (Fagin, Nievergelt, Pippenger and Strong, 1979).
// The top bits of a key's hash select an entry of the directory, which refers to a
// page of up to 256 slots (page.go).
//
//	directory    prefix 00 │ 01 │ 10 │ 11     2^depth entries
//	                     │    │    └─┬──┘
//	pages                p0   p1     p2         each with a prefix of its own depth
//
// A full page splits in two. If its depth equals the directory's, the directory
// doubles first. So growth moves the entries of one page at a time, and a page is
// the unit of copy-on-write. The directory orders pages by hash, which gives Scan
// its cursor. A random page and a random slot give Random a uniform sample. A Swiss
// table, such as Go's map, saves some memory in pages between two sizes, but
// provides either the order or the O(1) clone, not both.
//
// A table of fewer than 256 entries, as in small sets and hashes, has one page and
// no directory; up to 8 entries it has no hashes either.
//
// Invariants (Table.Check): a table has no page if it is empty, else either one
// page (sole) or a directory of at least two; all directory entries of a page's
// prefix refer to the page; deepest is the number of pages with the directory's
// depth and not 0; n and capacity are the sums over all pages.

// Table maps strings to values. The zero value is empty and ready to use.
type Table[V any] struct {
	seed     maphash.Seed  // shared with clones; set with the first page
	owner    *token        // pages and directories with another owner are shared: copied before a write
	sole     *page[V]      // the only page, or nil
	dir      *directory[V] // directory of two or more pages, or nil
	n        int
	capacity int // slots of all pages
}

// token identifies the owner of copy-on-write structures by its address. It has a
// size, because pointers to distinct zero-size variables may be equal.
type token struct{ _ byte }

// directory maps each hash prefix of depth bits to a page. A page with a shorter
// prefix occupies several consecutive entries.
type directory[V any] struct {
	owner   *token
	depth   uint8
	deepest int     // number of pages with the directory's depth; at 0 the directory halves
	pageOf  []int32 // by prefix: index in pages
	pages   []*page[V]
}

// Len returns the number of entries. O(1).
func (t *Table[V]) Len() int { return t.n }

// view returns b as a string without copying. The string is valid until b changes,
// so no structure may retain it.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// page returns the page for a hash. The table must not be empty.
func (t *Table[V]) page(h uint64) *page[V] {
	if t.dir == nil {
		return t.sole
	}
	return t.dir.pages[t.dir.pageOf[h>>(64-t.dir.depth)]]
}

// find returns the page for key, nil if the table is empty; the slot of key, or -1;
// and the hash of key, or 0 if the table is a single tiny page.
func (t *Table[V]) find(key string) (p *page[V], i int, h uint64) {
	if t.n == 0 {
		return nil, -1, 0
	}
	if t.dir == nil && t.sole.tags == nil {
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

// Find is Get, and returns the table's copy of key, too.
func (t *Table[V]) Find(key string) (stored string, v V, ok bool) {
	p, i, _ := t.find(key)
	if i < 0 {
		return "", v, false
	}
	return p.slots[i].key, p.slots[i].value, true
}

// Batch is the maximum number of keys of a call of Prefetch.
const Batch = 16

// Prefetch fetches up to Batch keys of a table, which may be nil, and the entries that Get
// reads for them, into the processor's cache. A lookup in a large table is a chain of six dependent
// cache misses; Prefetch overlaps those of the batch. A lookup of all keys of a table
// of a million in another such table takes 0.6 of the time. The result has no
// meaning: it keeps the compiler from removing the reads.
func (t *Table[V]) Prefetch(keys []string) (read uint64) {
	if t == nil || t.dir == nil {
		return 0 // a table of one page is in the cache
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
		read += uint64(len(p.tags)) + uint64(len(p.slots))
	}
	var slots [Batch]int
	for i := range keys {
		p, want := pages[i&(Batch-1)], uint16(hashes[i&(Batch-1)])|1
		at := 0
		if p.tags != nil {
			for at = home(want, len(p.tags)); p.tags[at] != 0 && p.tags[at] != want; {
				if at++; at == len(p.tags) {
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

// Ref returns a pointer to the value of key for modification in place, nil if key
// is absent. The pointer is valid until the next write, Clone included. O(1).
func (t *Table[V]) Ref(key string) *V {
	p, i, h := t.find(key)
	if i < 0 {
		return nil
	}
	return &t.writable(p, h).slots[i].value
}

// RefBytes is Ref for a byte slice.
func (t *Table[V]) RefBytes(key []byte) *V { return t.Ref(view(key)) }

// Set sets the value of key and returns the previous value. O(1) amortized:
// occasionally a page splits, and the directory, 4 bytes for every 50 or more
// entries, doubles.
func (t *Table[V]) Set(key string, v V) (old V, replaced bool) {
	value, _, added := t.GetOrAdd(key, false, v)
	if added {
		return old, false
	}
	old, *value = *value, v
	return old, true
}

// Put is Set, but stores key even in the place of an equal key, for values that depend on the memory
// of their key.
func (t *Table[V]) Put(key string, v V) (old V, replaced bool) {
	p, i, h := t.find(key)
	if i < 0 {
		t.add(p, h, key, v)
		return old, false
	}
	s := &t.writable(p, h).slots[i]
	old = s.value
	*s = slot[V]{v, key}
	return old, true
}

// GetOrAdd returns a pointer to the value of key, as Ref does, and the table's copy
// of key. If key is absent, it adds key with the value v and returns nil, the
// stored key and true. A borrowed key is copied before it is stored. O(1)
// amortized, with one search instead of two for Ref and Set.
func (t *Table[V]) GetOrAdd(key string, borrowed bool, v V) (value *V, stored string, added bool) {
	p, i, h := t.find(key)
	if i >= 0 {
		s := &t.writable(p, h).slots[i]
		return &s.value, s.key, false
	}
	if borrowed {
		key = strings.Clone(key)
	}
	t.add(p, h, key, v)
	return nil, key, true
}

// add adds an absent key. p and h are the results of find.
func (t *Table[V]) add(p *page[V], h uint64, key string, v V) {
	if p == nil {
		if t.seed == (maphash.Seed{}) {
			t.seed = maphash.MakeSeed()
		}
		p = &page[V]{owner: t.owner}
		t.sole = p
	} else if t.dir == nil && p.tags == nil {
		h = maphash.String(t.seed, key)
	}
	for p.full() {
		t.split(p, h)
		p = t.page(h)
	}
	p = t.writable(p, h)
	before := cap(p.slots)
	p.insert(t.seed, h, slot[V]{v, key})
	t.capacity += cap(p.slots) - before
	t.n++
}

// writable returns p, the page for h, for writing. It replaces a shared page by a
// copy.
func (t *Table[V]) writable(p *page[V], h uint64) *page[V] {
	if p.owner == t.owner {
		return p
	}
	c := *p
	c.owner = t.owner
	c.tags = slices.Clone(p.tags)
	c.slots = append(make([]slot[V], 0, cap(p.slots)), p.slots...)
	if t.dir == nil {
		t.sole = &c
	} else {
		d := t.writableDirectory()
		d.pages[d.pageOf[h>>(64-d.depth)]] = &c
	}
	return &c
}

// writableDirectory returns the directory for writing. It creates a missing one and
// replaces a shared one by a copy.
func (t *Table[V]) writableDirectory() *directory[V] {
	d := t.dir
	switch {
	case d == nil:
		t.dir = &directory[V]{owner: t.owner, deepest: 1, pageOf: []int32{0}, pages: []*page[V]{t.sole}}
		t.sole = nil
	case d.owner != t.owner:
		c := *d
		c.owner = t.owner
		c.pageOf = slices.Clone(d.pageOf)
		c.pages = slices.Clone(d.pages)
		t.dir = &c
	}
	return t.dir
}

// split replaces p, the page for h, by two pages, according to the next bit of the
// hash. If all entries go to one side, the caller splits again, which is rare with
// random hashes.
func (t *Table[V]) split(p *page[V], h uint64) {
	d := t.writableDirectory()
	if p.depth == d.depth {
		of := make([]int32, 2*len(d.pageOf))
		for i := range of {
			of[i] = d.pageOf[i/2]
		}
		d.pageOf = of
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
			to.store(uint16(hashes[i])|1, p.slots[i])
		}
	}
	d.pages[d.pageOf[h>>(64-d.depth)]] = low
	d.pages = append(d.pages, high)
	d.setPage(len(d.pages) - 1)
	if low.depth == d.depth {
		d.deepest += 2
	}
	t.capacity += cap(low.slots) + cap(high.slots) - cap(p.slots)
}

// setPage makes all directory entries of the prefix of page k refer to it.
func (d *directory[V]) setPage(k int) {
	p := d.pages[k]
	first, span := int(p.prefix)<<(d.depth-p.depth), 1<<(d.depth-p.depth)
	for i := first; i < first+span; i++ {
		d.pageOf[i] = int32(k)
	}
}

// Delete removes key and returns its value. O(1) amortized.
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
	p = t.writable(p, h)
	before := cap(p.slots)
	p.remove(t.seed, i)
	t.capacity += cap(p.slots) - before
	t.n--
	if t.dir != nil && p.len() <= mergedMax/2 {
		t.merge(p)
	}
	return old, true
}

// DeleteBytes is Delete for a byte slice.
func (t *Table[V]) DeleteBytes(key []byte) (V, bool) { return t.Delete(view(key)) }

// merge merges p with its sibling, the page whose prefix differs only in the last
// bit, if there is one and the two are sparse. It halves the directory while no
// page has its depth.
func (t *Table[V]) merge(p *page[V]) {
	d := t.writableDirectory()
	at := int(p.prefix) << (d.depth - p.depth)
	k, l := d.pageOf[at], d.pageOf[at^1<<(d.depth-p.depth)]
	sibling := d.pages[l]
	if sibling.depth != p.depth || p.len()+sibling.len() > mergedMax {
		return
	}
	merged := newPage[V](t.owner, p.depth-1, p.prefix>>1, p.len()+sibling.len())
	for _, from := range []*page[V]{p, sibling} {
		for i := range from.slots {
			if from.occupied(i) {
				merged.store(uint16(maphash.String(t.seed, from.slots[i].key))|1, from.slots[i])
			}
		}
	}
	t.capacity += cap(merged.slots) - cap(p.slots) - cap(sibling.slots)
	d.pages[k] = merged
	d.setPage(int(k))
	last := len(d.pages) - 1
	d.pages[l] = d.pages[last]
	d.pages[last] = nil
	d.pages = d.pages[:last]
	if int(l) < last {
		d.setPage(int(l))
	}
	if p.depth == d.depth {
		d.deepest -= 2
	}
	for d.deepest == 0 {
		d.depth--
		of := make([]int32, len(d.pageOf)/2)
		for i := range of {
			of[i] = d.pageOf[2*i]
		}
		d.pageOf = of
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

// Clear removes all entries. O(1).
func (t *Table[V]) Clear() { *t = Table[V]{seed: t.seed, owner: t.owner} }

// Clone returns a copy of the table. O(1): the two tables share pages
// copy-on-write. The first write after it copies the directory and a page, later
// writes at most a page.
func (t *Table[V]) Clone() *Table[V] {
	c := *t
	t.owner, c.owner = new(token), new(token)
	return &c
}

// All yields all entries in unspecified order. The table must not be modified
// during the iteration.
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

// each yields each page once.
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

// A cursor is a hash without its lowest 12 bits, so it survives clients that
// represent numbers as float64.
const (
	cursorBits = 52
	cursorEnd  = 1 << cursorBits
)

// Scan passes about count entries to yield and returns the next cursor. A scan
// begins with cursor 0 and ends when Scan returns 0. Entries come in the order of
// their hashes, so an entry that is present during the whole scan is passed exactly
// once, regardless of changes and clones between the calls. Entries with equal
// hashes come in one call. Any cursor value is safe. O(count), at least O(256) in a
// large table; an empty page costs O(1). yield must not modify the table.
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

// Random returns an entry with uniform probability. O(1) on average.
func (t *Table[V]) Random(r *rand.Rand) (key string, v V, ok bool) {
	if t.n == 0 {
		return "", v, false
	}
	// Rejection sampling: a random page, and one of as many slots as the largest
	// page has. Every entry has the same probability. About half of the draws hit
	// an entry.
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
	// Fallback after 64 misses, in a sparse table: select an entry by its ordinal.
	// Both methods are uniform, so their combination is, too.
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

// Bytes estimates the memory of the table in bytes, without the bytes of keys and
// the memory that values point to. O(1).
func (t *Table[V]) Bytes() int {
	pages, directory := 0, 0
	if t.sole != nil {
		pages = 1
	}
	if t.dir != nil {
		pages = len(t.dir.pages)
		directory = int(unsafe.Sizeof(*t.dir)) + 8*cap(t.dir.pages) + 4*cap(t.dir.pageOf)
	}
	return int(unsafe.Sizeof(*t)) + directory + pages*int(unsafe.Sizeof(page[V]{})) +
		t.capacity*int(unsafe.Sizeof(slot[V]{})+unsafe.Sizeof(uint16(0)))
}
