package table

import "hash/maphash"

// A page is open addressing with linear probing; deletion shifts the entries behind
// back (Knuth 6.4, algorithm R), so there are no tombstones. Beside the slots stand
// 16 bits of each hash: 8 say where the entry would like to be, so that shifting and
// growing need not hash keys again; the rest make that a search for what is absent
// almost never (once in 2^15) looks at a key. Sizes go up in steps of an eighth to a
// quarter rather than by doubling, and at most 7/8 of the slots are used: 0.8 on
// average, where doubling would be 0.65.
const (
	maxSlots  = 256
	maxUsed   = maxSlots - maxSlots/8
	tinySlots = 8  // up to here entries are found by comparing them all
	mergedMax = 96 // two pages become one that has this many entries or fewer
)

type slot[V any] struct {
	value V // first, for a last field of no size would be padded
	key   string
}

type page[V any] struct {
	owner  *token
	meta   []uint16  // by slot: 0 if it is empty, else the lowest 16 bits of the hash, bit 0 set; nil if tiny
	slots  []slot[V] // as many as meta; if tiny the entries without gaps
	prefix uint32    // the bits of the hash that the entries have in common
	depth  uint8     // how many those are
	used   uint16    // entries, unless tiny
}

// newPage returns an empty page with slots for n entries.
func newPage[V any](owner *token, depth uint8, prefix uint32, n int) *page[V] {
	p := &page[V]{owner: owner, prefix: prefix, depth: depth}
	if n <= tinySlots {
		p.slots = make([]slot[V], 0, n)
	} else {
		p.allocate(n)
	}
	return p
}

// allocate gives the page empty slots for n entries, more than tinySlots.
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
	p.meta = make([]uint16, size)
	p.slots = make([]slot[V], size)
	p.used = 0
}

func (p *page[V]) len() int {
	if p.meta == nil {
		return len(p.slots)
	}
	return int(p.used)
}

func (p *page[V]) full() bool { return p.used == maxUsed }

func (p *page[V]) occupied(i int) bool { return p.meta == nil || p.meta[i] != 0 }

// home is where an entry would like to be in a page of some size.
func home(meta uint16, size int) int { return int(meta>>8) * size >> 8 }

// find returns the slot of key, or -1.
func (p *page[V]) find(key string, h uint64) int {
	if p.meta == nil {
		for i := range p.slots {
			if p.slots[i].key == key {
				return i
			}
		}
		return -1
	}
	want := uint16(h) | 1
	meta := p.meta
	slots := p.slots[:len(meta)]
	for i := home(want, len(meta)); ; {
		if meta[i] == want && slots[i].key == key {
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

// insert adds an entry that is not there to a page that is not full, growing it if
// need be. The hash h is that of the key; a tiny page does not look at it.
func (p *page[V]) insert(seed maphash.Seed, h uint64, s slot[V]) {
	if p.meta == nil && len(p.slots) < tinySlots {
		if len(p.slots) == cap(p.slots) {
			p.slots = append(make([]slot[V], 0, len(p.slots)+2), p.slots...)
		}
		p.slots = append(p.slots, s)
		return
	}
	if p.meta == nil || int(p.used) == len(p.meta)-len(p.meta)/8 {
		p.resize(seed, p.len()+1)
	}
	p.place(uint16(h)|1, s)
}

// place adds an entry for which there is a slot.
func (p *page[V]) place(meta uint16, s slot[V]) {
	if p.meta == nil {
		p.slots = append(p.slots, s)
		return
	}
	i := home(meta, len(p.meta))
	for p.meta[i] != 0 {
		if i++; i == len(p.meta) {
			i = 0
		}
	}
	p.meta[i], p.slots[i] = meta, s
	p.used++
}

// resize gives the page slots for n entries, which is no fewer than it has.
func (p *page[V]) resize(seed maphash.Seed, n int) {
	meta, slots := p.meta, p.slots
	if n <= tinySlots {
		p.meta, p.slots, p.used = nil, make([]slot[V], 0, n), 0
	} else {
		p.allocate(n)
	}
	for i := range slots {
		switch {
		case meta == nil:
			p.place(uint16(maphash.String(seed, slots[i].key))|1, slots[i])
		case meta[i] != 0:
			p.place(meta[i], slots[i])
		}
	}
}

// remove empties slot i, and gives memory back when three quarters are empty.
func (p *page[V]) remove(seed maphash.Seed, i int) {
	if p.meta == nil {
		last := len(p.slots) - 1
		p.slots[i] = p.slots[last]
		p.slots[last] = slot[V]{}
		p.slots = p.slots[:last]
		return
	}
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
	p.meta[i], p.slots[i] = 0, slot[V]{}
	if p.used--; int(p.used) < size/4 {
		p.resize(seed, p.len()+p.len()/2)
	}
}
