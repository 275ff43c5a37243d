package keyspace

import (
	"math"
	"strings"
	"time"
	"unsafe"

	"github.com/zsetd/zsetd/server/internal/values/packed"
	"github.com/zsetd/zsetd/zset"
)

// Compaction moves keys and small values together, so that pages of the heap become free.
//
// Go's collector moves nothing. A page of 8 KB, which has objects of one size, stays with the
// process as long as one of them lives. After many keys were removed or replaced most pages are
// sparse: of 300 000 sorted sets of 5 members, of which nine in ten are then removed, the rest
// keeps all pages but 5 %.
//
// A compaction passes through the keys twice. It counts the objects on each page of the heap, and
// chooses of each size the sparsest pages, as many as the free room of the others can take. Then it
// moves the objects on them: to new allocations, which the allocator places. As long as it places
// a copy on a page that is to become free, the copy is kept, and another one made, so the copies
// fill these pages until the allocator comes to the others. The next collection frees the pages,
// with the old objects and the copies that were kept.
//
//	counted   ███··█·█  ·█······  ████·███  ··█·····  ██·█████     objects on pages, and free room
//	moved     ███·██·█  ········  ████████  ········  ████████
//
// It moves entries, long keys, strings of up to 2 KB and packed sorted sets of up to 4 KB: all that
// a small string, hash, set or sorted set consists of. It does not move the elements of lists,
// streams and large collections. Objects that it does not know only make it free fewer pages. A move
// changes no value: nothing is recorded, and a snapshot reads the same. Strings, buffers and clones
// that refer to the old object stay valid.
//
// A Compaction is not safe for concurrent use, like its Keyspace, which may change in any way
// between two calls of Next.
type Compaction struct {
	Moves // so far

	ks      *Keyspace
	moving  bool
	db      int // number of the database, and
	page    int // number of the page of its key table, and
	slot    int // number of the slot there that Next continues with
	regions map[uintptr]*heapRegion
	classes map[uint16]*heapClass
	copies  int   // made so far
	check   int   // number of copies at which the clock is read next
	done    int64 // objects that were moved before the current key

	// All copies.
	entries pile[*Entry]
	texts   pile[*byte]
	sets    pile[zset.Set]
}

// pile is a list that grows without moving what it has.
type pile[T any] struct {
	full [][]T
	last []T
}

// add adds a zero value, and returns its address.
func (p *pile[T]) add() *T {
	if len(p.last) == cap(p.last) {
		p.full = append(p.full, p.last)
		p.last = make([]T, 0, pileBytes/unsafe.Sizeof(*new(T)))
	}
	p.last = p.last[:len(p.last)+1]
	return &p.last[len(p.last)-1]
}

// Moves are the numbers of a compaction.
type Moves struct {
	Objects, ObjectsLeft int64 // that were moved, or not
	Keys, KeysLeft       int64 // of which an object was moved, or none
}

// Add adds the moves of a compaction since before.
func (m *Moves) Add(now, before Moves) {
	m.Objects += now.Objects - before.Objects
	m.ObjectsLeft += now.ObjectsLeft - before.ObjectsLeft
	m.Keys += now.Keys - before.Keys
	m.KeysLeft += now.KeysLeft - before.KeysLeft
}

// heapRegion is a piece of the address space.
type heapRegion [8 << 10]heapPage

// heapPage is what a compaction knows of a page of the heap.
type heapPage struct {
	class uint16 // of its objects, see object.class
	n     uint16 // objects that were counted
}

// heapClass is what a compaction knows of the pages that have objects of one class.
type heapClass struct {
	pages  []int // number of pages with so many objects
	limit  int   // a page with fewer objects is to become free,
	part   int   // and of those with as many this part, in sixteenths
	moved  int   // objects
	opened int   // pages that had no counted object before one moved there
}

const (
	heapPageBytes = 8 << 10
	leastCompact  = 16 // pages of a class that are worth a compaction, and
	compactShare  = 32 // one part in so many of all pages of the class
	copiesAtOnce  = 64 // between two readings of the clock
	pileBytes     = 16 << 10
)

// object is an allocation in the heap, or none.
type object struct {
	at       uintptr
	size     int // bytes of its size class
	pointers bool
}

// onPages reports whether the object lies on one page with others of its class. The allocator has
// runs of two or three pages for other sizes of more than 1280 bytes, and puts several of less than
// 16 bytes into one object.
func (o object) onPages() bool {
	return 16 <= o.size && o.size <= 1280 || o.size == 1536 || o.size == 2048 || o.size == 2688 || o.size == 4096
}

// class returns the class of the objects that share pages with o, which must be onPages: those of the
// same size, a multiple of 8, with pointers or without.
func (o object) class() uint16 {
	class := uint16(o.size)
	if o.pointers {
		class++
	}
	return class
}

// Compact returns a compaction that has not begun. O(1).
func (ks *Keyspace) Compact() *Compaction {
	return &Compaction{
		ks: ks, db: InternalDB, check: copiesAtOnce,
		regions: map[uintptr]*heapRegion{}, classes: map[uint16]*heapClass{},
	}
}

// Next continues the compaction for about the budget, and reports whether more is to be done. A
// call exceeds the budget by at most a page of the key table (224 keys), some 50 µs. Every call
// makes progress, even if the budget is 0. Commands must not be in progress.
func (c *Compaction) Next(budget time.Duration) (more bool) {
	c.ks.Seal()
	c.ks.weighLast() // else the register of weighed entries has entries that move
	for end := time.Now().Add(budget); ; {
		slots := c.slots()
		switch {
		case slots == nil && c.moving:
			return false
		case slots == nil:
			c.moving, c.db, c.page = true, InternalDB, 0
			if !c.choose() {
				return false
			}
		case !c.moving:
			c.count(slots)
			c.page++
		case !c.move(slots, end):
			return true
		default:
			c.page++
		}
		if !time.Now().Before(end) {
			return true
		}
	}
}

// slots returns the entries of the page of a key table to continue with, or nil after the last one.
func (c *Compaction) slots() []*Entry {
	for ; c.db < c.ks.Len(); c.db, c.page = c.db+1, 0 {
		if pages := c.ks.DB(c.db).entries.pages; c.page < len(pages) {
			return pages[c.page].slots
		}
	}
	return nil
}

// heapPage returns what is known of the page with an object.
func (c *Compaction) heapPage(o object) *heapPage {
	const bytes = uintptr(len(heapRegion{}) * heapPageBytes)
	region := c.regions[o.at/bytes]
	if region == nil {
		region = new(heapRegion)
		c.regions[o.at/bytes] = region
	}
	return &region[o.at%bytes/heapPageBytes]
}

// count counts the objects of entries.
func (c *Compaction) count(slots []*Entry) {
	for _, e := range slots {
		if e == nil {
			continue
		}
		for _, o := range e.objects() {
			if !o.onPages() {
				continue
			}
			class := c.classes[o.class()]
			if class == nil {
				class = &heapClass{pages: make([]int, heapPageBytes/o.size+1)}
				c.classes[o.class()] = class
			}
			p := c.heapPage(o)
			if p.class != o.class() {
				*p = heapPage{class: o.class()} // the page had other objects before
			} else {
				class.pages[p.n]--
			}
			p.n = min(p.n+1, uint16(len(class.pages)-1))
			class.pages[p.n]++
		}
	}
}

// choose chooses the pages that are to become free, and reports whether there are any.
func (c *Compaction) choose() bool {
	chosen := false
	for _, class := range c.classes {
		chosen = class.choose() || chosen
	}
	return chosen
}

// choose chooses as many pages as would be free if all objects were together.
func (class *heapClass) choose() bool {
	each, all, room := len(class.pages)-1, 0, 0
	for n, pages := range class.pages {
		all += pages
		room += pages * (each - n)
	}
	most := room / each
	if most < max(leastCompact, all/compactShare) {
		return false
	}
	for n, pages := range class.pages {
		if most < pages {
			class.limit, class.part = n, 16*most/pages
			break
		}
		most -= pages
	}
	return true
}

// sparse reports whether an object lies on a page that is to become free.
func (c *Compaction) sparse(o object) bool {
	if !o.onPages() {
		return false
	}
	p, class := c.heapPage(o), c.classes[o.class()]
	if class == nil || p.class != o.class() {
		return false
	}
	return int(p.n) < class.limit || int(p.n) == class.limit && int(o.at/heapPageBytes%16) < class.part
}

// move moves objects of entries off pages that are to become free, from c.slot on. It returns
// false if the time is over before the last one.
func (c *Compaction) move(slots []*Entry, end time.Time) bool {
	for ; c.slot < len(slots); c.slot++ {
		e := slots[c.slot]
		if e == nil {
			continue
		}
		if c.over(end) {
			return false
		}
		if !c.moveValue(e, end) || !c.moveKey(e, end) || !c.moveEntry(&slots[c.slot], end) {
			return false
		}
		moved := c.Objects - c.done
		if c.done = c.Objects; moved > 0 {
			c.Keys++
		} else {
			c.KeysLeft++
		}
		for _, o := range slots[c.slot].objects() {
			if o.onPages() {
				c.ObjectsLeft++
			}
		}
		c.ObjectsLeft -= moved
	}
	c.slot = 0
	return true
}

// moveEntry moves an entry.
func (c *Compaction) moveEntry(slot **Entry, end time.Time) bool {
	e := *slot
	var n *Entry
	return c.place(e.object(), end, func() object {
		n = e.duplicate()
		*c.entries.add() = n
		return n.object()
	}, func() { *slot, e.state = n, stale })
}

// moveKey moves a key that is not in its entry.
func (c *Compaction) moveKey(e *Entry, end time.Time) bool {
	var key string
	return c.place(e.keyObject(), end, func() object {
		key = strings.Clone(e.longKey())
		*c.texts.add() = unsafe.StringData(key)
		return textObject(unsafe.Pointer(unsafe.StringData(key)), len(key))
	}, func() { e.setLongKey(key) })
}

// moveValue moves the buffer of a string or of a packed sorted set.
func (c *Compaction) moveValue(e *Entry, end time.Time) bool {
	if e.kind() == isZset {
		set := e.box().sorted().Internal()
		var n *zset.Set
		return c.place(e.valueObject(), end, func() object {
			n = c.sets.add()
			set.Duplicate(n)
			return sortedObject(n)
		}, func() { set.Swap(n) })
	}
	var text []byte
	return c.place(e.valueObject(), end, func() object {
		s := e.asString().box()
		text = append(make([]byte, 0, s.capacity), s.buffer()...)
		*c.texts.add() = unsafe.SliceData(text)
		return textObject(unsafe.Pointer(unsafe.SliceData(text)), cap(text))
	}, func() { e.asString().box().setBuffer(text) })
}

// place moves an object, if it lies on a page that is to become free: it calls another, which makes a
// copy that the compaction keeps, until the copy lies elsewhere, and then use. It returns false if
// the time is over before.
func (c *Compaction) place(o object, end time.Time, another func() object, use func()) bool {
	if !c.sparse(o) {
		return true
	}
	class := c.classes[o.class()]
	for {
		c.copies++
		n := another()
		if !c.sparse(n) {
			use()
			c.Objects++
			class.moved++
			if p := c.heapPage(n); p.class != n.class() { // a page that was not counted
				*p = heapPage{n.class(), math.MaxUint16}
				class.opened++
				if class.opened > leastCompact && 2*class.opened*max(class.limit, 1) > class.moved {
					class.limit, class.part = 0, 0 // unknown objects fill the others
				}
			}
			return true
		}
		if c.over(end) {
			return false
		}
	}
}

// over reports whether the time is over. It reads the clock once in so many copies.
func (c *Compaction) over(end time.Time) bool {
	if c.copies < c.check {
		return false
	}
	c.check = c.copies + copiesAtOnce
	return !time.Now().Before(end)
}

// objects returns the allocations of an entry, its key and its value that can move.
func (e *Entry) objects() [3]object { return [...]object{e.object(), e.keyObject(), e.valueObject()} }

// object returns the allocation of an entry.
func (e *Entry) object() object {
	o := object{at: uintptr(unsafe.Pointer(e)), pointers: true}
	switch {
	case e.packed():
		o.size, o.pointers = int(e.words)*8, false
	case e.flags&layoutBits == inlineKeyLayout:
		o.size = packed.Allocated(boxedSize + max(int(e.keyLen), 1))
	case e.kind() == isString:
		o.size = int(unsafe.Sizeof(boxedString{}))
	default:
		o.size = int(unsafe.Sizeof(longKeyEntry{}))
	}
	return o
}

// keyObject returns the allocation of a key that is not in its entry.
func (e *Entry) keyObject() object {
	if e.flags&layoutBits != longKeyLayout {
		return object{}
	}
	key := e.longKey()
	return textObject(unsafe.Pointer(unsafe.StringData(key)), len(key))
}

// valueObject returns the allocation of a string that is not in its entry, or of a packed sorted
// set, unless a clone shares it.
func (e *Entry) valueObject() object {
	switch {
	case e.packed():
	case e.kind() == isZset:
		return sortedObject(e.box().sorted())
	case e.kind() == isString && !e.asString().box().shared:
		s := e.asString().box()
		return textObject(s.value, s.capacity)
	}
	return object{}
}

// textObject returns an allocation of n bytes.
func textObject(at unsafe.Pointer, n int) object {
	if n > 2<<10 { // packed.Allocated estimates these
		return object{}
	}
	return object{at: uintptr(at), size: packed.Allocated(n)}
}

// sortedObject returns the allocation of a packed sorted set.
func sortedObject(s *zset.Set) object {
	at, size := s.Internal().Block()
	return object{at: at, size: size}
}
