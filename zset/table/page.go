package table

import "hash/maphash"

// A page is a hash table with open addressing and linear probing. Deletion shifts
// later entries back (Knuth, The Art of Computer Programming, section 6.4,
// algorithm R), so there are no tombstones.
//
//	tags    │ 0 │ h5 │ h5'│ 0 │ h9 │     16 bits of each hash; 0: free
//	slots   │   │ kv │ kv │   │ kv │
//
// Each slot has a 16-bit tag. Its upper 8 bits give the home slot, so shifting and
// resizing do not hash keys again. All 16 bits filter lookups: a search for an
// absent key compares a key once in 2^15 probes. Sizes grow in steps of an eighth
// to a quarter, and at most 7/8 of the slots are used: 0.8 on average, where
// doubling gives 0.65. A page of up to tinySlots entries is a plain array without
// tags that a lookup scans.
//
// Invariants (page.check): tags[i] is the low 16 bits of the hash of slots[i] with
// bit 0 set, or 0 if the slot is free; all hashes begin with prefix; find returns
// the slot of each key; used is the number of entries and at most 7/8 of the slots.
const (
	maxSlots  = 256
	maxUsed   = maxSlots - maxSlots/8
	tinySlots = 8  // up to this size a page has no tags
	mergedMax = 96 // two sibling pages merge when they have this many entries or fewer
)

type slot[V any] struct {
	value V // first, because a zero-size last field would be padded
	key   string
}

type page[V any] struct {
	owner  *token
	tags   []uint16  // by slot: 0 if free, else the lowest 16 bits of the hash with bit 0 set; nil for a tiny page
	slots  []slot[V] // as many as tags; in a tiny page only the entries
	prefix uint32    // hash bits that all entries of the page share
	depth  uint8     // length of prefix in bits
	used   uint16    // number of entries, unless the page is tiny
}

// newPage returns an empty page for n entries.
func newPage[V any](owner *token, depth uint8, prefix uint32, n int) *page[V] {
	p := &page[V]{owner: owner, prefix: prefix, depth: depth}
	if n <= tinySlots {
		p.slots = make([]slot[V], 0, n)
	} else {
		p.allocate(n)
	}
	return p
}

// allocate gives the page free slots for n entries, more than tinySlots.
func (p *page[V]) allocate(n int) {
	size := 12
	for size-size/8 < n {
		switch {
		case size < 16:
			size += 4
		case size < 64:
			size += 8
		case size < 128:
			size += 16
		default:
			size += 32
		}
	}
	p.tags = make([]uint16, size)
	p.slots = make([]slot[V], size)
	p.used = 0
}

func (p *page[V]) len() int {
	if p.tags == nil {
		return len(p.slots)
	}
	return int(p.used)
}

func (p *page[V]) full() bool { return p.used == maxUsed }

func (p *page[V]) occupied(i int) bool { return p.tags == nil || p.tags[i] != 0 }

// home returns the home slot of a tag in a page of the given size, at which probing
// starts.
func home(tag uint16, size int) int { return int(tag>>8) * size >> 8 }

// find returns the slot of key, or -1.
func (p *page[V]) find(key string, h uint64) int {
	if p.tags == nil {
		for i := range p.slots {
			if p.slots[i].key == key {
				return i
			}
		}
		return -1
	}
	want := uint16(h) | 1
	tags := p.tags
	slots := p.slots[:len(tags)]
	for i := home(want, len(tags)); ; {
		if tags[i] == want && slots[i].key == key {
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

// insert adds an entry with an absent key to a page that is not full, and grows the
// page if necessary. h is the hash of the key; a tiny page ignores it.
func (p *page[V]) insert(seed maphash.Seed, h uint64, s slot[V]) {
	if p.tags == nil && len(p.slots) < tinySlots {
		if len(p.slots) == cap(p.slots) {
			p.slots = append(make([]slot[V], 0, len(p.slots)+2), p.slots...)
		}
		p.slots = append(p.slots, s)
		return
	}
	if p.tags == nil || int(p.used) == len(p.tags)-len(p.tags)/8 {
		p.resize(seed, p.len()+1)
	}
	p.store(uint16(h)|1, s)
}

// store adds an entry to a page that has a free slot, by linear probing.
func (p *page[V]) store(tag uint16, s slot[V]) {
	if p.tags == nil {
		p.slots = append(p.slots, s)
		return
	}
	i := home(tag, len(p.tags))
	for p.tags[i] != 0 {
		if i++; i == len(p.tags) {
			i = 0
		}
	}
	p.tags[i], p.slots[i] = tag, s
	p.used++
}

// resize reallocates the page for n entries, which must not be fewer than it has.
func (p *page[V]) resize(seed maphash.Seed, n int) {
	tags, slots := p.tags, p.slots
	if n <= tinySlots {
		p.tags, p.slots, p.used = nil, make([]slot[V], 0, n), 0
	} else {
		p.allocate(n)
	}
	for i := range slots {
		switch {
		case tags == nil:
			p.store(uint16(maphash.String(seed, slots[i].key))|1, slots[i])
		case tags[i] != 0:
			p.store(tags[i], slots[i])
		}
	}
}

// remove removes the entry in slot i, and shrinks the page when three quarters of
// its slots are free.
func (p *page[V]) remove(seed maphash.Seed, i int) {
	if p.tags == nil {
		last := len(p.slots) - 1
		p.slots[i] = p.slots[last]
		p.slots[last] = slot[V]{}
		p.slots = p.slots[:last]
		return
	}
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
	p.tags[i], p.slots[i] = 0, slot[V]{}
	if p.used--; int(p.used) < size/4 {
		p.resize(seed, p.len()+p.len()/2)
	}
}
