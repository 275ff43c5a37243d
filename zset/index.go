package zset

import (
	"fmt"
	"hash/maphash"
	"iter"
	"math/bits"
	"math/rand/v2"
	"slices"
	"unsafe"
)

// An index is a hash table from member to score that uses extendible hashing (Fagin
// et al., 1979), as package table does: a directory of hash prefixes refers to
// pages, and a full page splits in two. Hence Scan has a stateless cursor, Random
// is uniform, and a write after a clone copies only a page or two. It differs from
// package table in two points: it holds no pointers, because members are references
// into the arena, and its layout is made for the cache.
//
//	directory    prefix 00 │ 01 │ 10 │ 11           2^depth entries
//	                     │    │    └─┬──┘
//	page                 p    p      p              groups of slots, then scores
//	group        refs[10] │ tags[10] │ overflow     one cache line
//	scores       float64 × 10 × groups
//
// A group has 10 slots. The references and the 16-bit tags (parts of the hashes) of
// a group are one cache line. A lookup reads this line, and then the member and the
// score in parallel. Separate arrays of references and tags cost one more cache
// miss, a quarter of a lookup at a million members. A slot takes 14.4 bytes, and
// pages are 84 % full on average.
//
// Collisions use linear probing over groups: an entry is in the home group of its
// tag or, if that is full, in the next group with a free slot. A group counts in
// overflow the entries that probed past it. A search stops at a group with overflow
// 0, and removal only clears a slot and decrements counters; there are no
// tombstones.
//
// Invariants (index.check): each tag and page prefix matches the hash of its
// member; each entry is found at its slot, by member and by reference; overflow
// counts the entries that probed past the group; a page has at most
// entriesIn(groups) entries; all directory entries of a page's prefix refer to it;
// n, groups and deepest agree with the pages.
type index struct {
	arena  arena
	seed   maphash.Seed
	owner  *token // pages, directories and chunks with another owner are shared: copied before a write
	dir    *directory
	n      int
	groups int // number of groups in all pages
}

// directory maps each hash prefix of depth bits to a page. A page with a shorter
// prefix occupies several consecutive entries.
type directory struct {
	owner   *token
	depth   uint8
	deepest int // number of pages with the directory's depth; at 0 the directory halves
	pages   []*page
}

type page struct {
	owner  *token
	data   *group // array of groups, followed by the scores
	prefix uint32 // hash bits that all entries of the page share
	groups uint16
	used   uint16 // number of entries
	depth  uint8  // length of prefix in bits
}

const groupSlots = 10 // slots of a group

type group struct {
	refs     [groupSlots]uint32
	tags     [groupSlots]uint16 // 0: free; else the lowest 16 bits of the hash, with bit 0 set
	overflow uint16             // number of entries that probed past this group
	_        uint16
}

const (
	maxGroups = 28
	maxUsed   = 9 * maxGroups
	mergedMax = 108 // two sibling pages merge when they have this many entries or fewer
)

// groupsFor returns the number of groups of a page for n entries. The sizes fit
// Go's size classes, and a page of several groups keeps a tenth of its slots free.
func groupsFor(n int) uint16 {
	for _, g := range [...]uint16{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 21, 24} {
		if n <= entriesIn(g) {
			return g
		}
	}
	return maxGroups
}

// entriesIn returns the maximum number of entries in a page of the given number of
// groups.
func entriesIn(groups uint16) int {
	if groups == 1 {
		return groupSlots
	}
	return int(groups) * 9
}

// newPage returns an empty page for n entries.
func newPage(owner *token, depth uint8, prefix uint32, n int) *page {
	p := &page{owner: owner, depth: depth, prefix: prefix}
	p.allocate(groupsFor(n))
	return p
}

func (p *page) allocate(groups uint16) {
	p.groups, p.used = groups, 0
	p.data = unsafe.SliceData(make([]group, pageLines(groups)))
}

// pageLines returns the size of a page in units of a group, including the scores.
func pageLines(groups uint16) int {
	const scores = groupSlots * unsafe.Sizeof(float64(0)) // of a group
	return int(groups) + int((uintptr(groups)*scores+unsafe.Sizeof(group{})-1)/unsafe.Sizeof(group{}))
}

func (p *page) group(g int) *group {
	return (*group)(unsafe.Add(unsafe.Pointer(p.data), g*int(unsafe.Sizeof(group{}))))
}

// score returns a pointer to the score of slot k of group g.
func (p *page) score(g, k int) *float64 {
	scores := int(p.groups) * int(unsafe.Sizeof(group{}))
	return (*float64)(unsafe.Add(unsafe.Pointer(p.data), scores+(g*groupSlots+k)*int(unsafe.Sizeof(float64(0)))))
}

// home returns the home group of a tag, at which probing starts.
func (p *page) home(tag uint16) int { return int(tag>>8) * int(p.groups) >> 8 }

// entryPos is the position of an entry: page, group and slot.
type entryPos struct {
	page        *page
	group, slot int // slot is -1 if there is no such entry
}

func (s entryPos) ok() bool        { return s.slot >= 0 }
func (s entryPos) ref() *uint32    { return &s.page.group(s.group).refs[s.slot] }
func (s entryPos) score() *float64 { return s.page.score(s.group, s.slot) }

// page returns the page for a hash. The index must have a directory.
func (t *index) page(h uint64) *page { return t.dir.pages[h>>(64-t.dir.depth)] }

func (t *index) hash(member string) uint64 { return maphash.String(t.seed, member) }

// match compares a tag with all slots of a group. Bit 16i+15-j of the result stands
// for slot i+4j. The result can contain a false positive after a true match with
// the same j.
//
// It compares four tags at a time (SIMD within a register) and has no
// data-dependent branch.
func (l *group) match(tag uint16) uint64 {
	const ones, highs = 0x0001000100010001, 0x8000800080008000
	t, want := &l.tags, uint64(tag)*ones
	a := want ^ (uint64(t[0]) | uint64(t[1])<<16 | uint64(t[2])<<32 | uint64(t[3])<<48)
	b := want ^ (uint64(t[4]) | uint64(t[5])<<16 | uint64(t[6])<<32 | uint64(t[7])<<48)
	c := want ^ (uint64(t[8]) | uint64(t[9])<<16) | 0xffffffff<<32
	return (a-ones)&^a&highs | (b-ones)&^b&highs>>1 | (c-ones)&^c&highs>>2
}

// firstSlot returns the slot of the lowest bit of a match.
func firstSlot(match uint64) int {
	bit := bits.TrailingZeros64(match)
	return (bit>>4 + 4*(15-bit&15)) & 15
}

// find returns the position of a member with hash h.
func (t *index) find(member string, h uint64) entryPos {
	p, tag := t.page(h), uint16(h)|1
	g := p.home(tag)
	for range p.groups {
		l := p.group(g)
		for m := l.match(tag); m != 0; m &= m - 1 {
			if k := firstSlot(m); k < groupSlots && l.tags[k] == tag && t.arena.equal(l.refs[k], member) {
				return entryPos{p, g, k}
			}
		}
		if l.overflow == 0 {
			break
		}
		if g++; g == int(p.groups) {
			g = 0
		}
	}
	return entryPos{p, 0, -1}
}

// findRef returns the position of the entry with a reference, whose member has hash
// h. It does not read the member.
func (t *index) findRef(ref uint32, h uint64) entryPos {
	p, tag := t.page(h), uint16(h)|1
	g := p.home(tag)
	for range p.groups {
		l := p.group(g)
		for m := l.match(tag); m != 0; m &= m - 1 {
			if k := firstSlot(m); k < groupSlots && l.refs[k] == ref && l.tags[k] == tag {
				return entryPos{p, g, k}
			}
		}
		if l.overflow == 0 {
			break
		}
		if g++; g == int(p.groups) {
			g = 0
		}
	}
	return entryPos{p, 0, -1}
}

// Len returns the number of members.
func (t *index) Len() int { return t.n }

// Get returns the score of a member.
func (t *index) Get(member string) (float64, bool) {
	at := t.find(member, t.hash(member))
	if !at.ok() {
		return 0, false
	}
	return *at.score(), true
}

// prefetch is Internal.Prefetch.
func (t *index) prefetch(members []string) (read uint64) {
	var (
		hashes [Batch]uint64
		pages  [Batch]*page
		refs   [Batch]uint32 // of the first entry with the tag of the member, plus 1
	)
	members = members[:min(len(members), Batch)]
	for i, member := range members {
		hashes[i] = t.hash(member)
		pages[i] = t.page(hashes[i])
	}
	for _, p := range pages[:len(members)] {
		read += uint64(p.groups)
	}
	for i, p := range pages[:len(members)] {
		tag := uint16(hashes[i]) | 1
		g := p.home(tag)
		l := p.group(g)
		if m := l.match(tag); m != 0 {
			if k := firstSlot(m); k < groupSlots {
				refs[i] = l.refs[k] + 1
				read += uint64(*p.score(g, k))
			}
		}
	}
	for _, ref := range refs[:len(members)] {
		if ref != 0 {
			if member := t.arena.string(ref - 1); member != "" {
				read += uint64(member[0])
			}
		}
	}
	return read
}

// getOrAdd returns the writable entry of member, and adds it with score if it is
// absent.
func (t *index) getOrAdd(member string, score float64) (at entryPos, added bool) {
	h := t.hash(member)
	if at = t.find(member, h); at.ok() {
		return t.writable(at, h), false
	}
	return t.insert(h, t.arena.add(t.owner, member), score), true
}

// insert adds an entry for a member that is absent.
func (t *index) insert(h uint64, ref uint32, score float64) entryPos {
	p := t.page(h)
	for p.used == maxUsed {
		t.split(p, h)
		p = t.page(h)
	}
	p = t.writable(entryPos{page: p}, h).page
	if int(p.used) == entriesIn(p.groups) {
		t.resize(p, int(p.used)+1)
	}
	t.n++
	return p.insert(uint16(h)|1, ref, score)
}

// insert adds an entry to a page with a free slot, by linear probing.
func (p *page) insert(tag uint16, ref uint32, score float64) entryPos {
	for g := p.home(tag); ; {
		l := p.group(g)
		if m := l.match(0); m != 0 {
			k := firstSlot(m)
			l.tags[k], l.refs[k] = tag, ref
			*p.score(g, k) = score
			p.used++
			return entryPos{p, g, k}
		}
		l.overflow++
		if g++; g == int(p.groups) {
			g = 0
		}
	}
}

// writable returns a position in a page for writing. It replaces a shared page, the
// page of h, by a copy.
func (t *index) writable(at entryPos, h uint64) entryPos {
	p := at.page
	if p.owner == t.owner {
		return at
	}
	c := *p
	c.owner = t.owner
	n := pageLines(p.groups)
	c.data = unsafe.SliceData(append(make([]group, 0, n), unsafe.Slice(p.data, n)...))
	t.writableDirectory().setPage(&c)
	at.page = &c
	return at
}

// writableDirectory returns the directory for writing. It replaces a shared
// directory by a copy.
func (t *index) writableDirectory() *directory {
	if d := t.dir; d.owner != t.owner {
		c := *d
		c.owner = t.owner
		c.pages = slices.Clone(d.pages)
		t.dir = &c
	}
	return t.dir
}

// setPage makes all directory entries of a page's prefix refer to the page.
func (d *directory) setPage(p *page) {
	span := 1 << (d.depth - p.depth)
	of := d.pages[int(p.prefix)*span:][:span]
	for i := range of {
		of[i] = p
	}
}

// newIndex returns an index without entries above an arena, with pages sized for n entries
// with the hashes that the function yields for its seed.
func newIndex(owner *token, members arena, n int, hashes func(maphash.Seed) iter.Seq[uint64]) index {
	const usual = 160 // maximum average number of entries of a page; the average is at least half of it
	t := index{arena: members, seed: maphash.MakeSeed(), owner: owner}
	depth := uint8(0)
	for n>>depth > usual {
		depth++
	}
	t.dir = &directory{owner: owner, depth: depth, deepest: 1 << depth, pages: make([]*page, 1<<depth)}
	counts := make([]uint16, 1<<depth)
	for h := range hashes(t.seed) {
		if c := &counts[h>>(64-depth)]; *c < maxUsed {
			*c++
		}
	}
	for i := range t.dir.pages {
		p := newPage(owner, depth, uint32(i), int(counts[i]))
		t.dir.pages[i] = p
		t.groups += int(p.groups)
	}
	return t
}

// each yields the occupied slots.
func (p *page) each(yield func(g, k int) bool) {
	for g := range int(p.groups) {
		l := p.group(g)
		for k := range &l.tags {
			if l.tags[k] != 0 && !yield(g, k) {
				return
			}
		}
	}
}

// resize reallocates a page for n entries, which must not be fewer than it has.
func (t *index) resize(p *page, n int) {
	old := *p
	t.groups -= int(p.groups)
	p.allocate(groupsFor(n))
	t.groups += int(p.groups)
	for g, k := range old.each {
		l := old.group(g)
		p.insert(l.tags[k], l.refs[k], *old.score(g, k))
	}
}

// hashes stores the hashes of a page's entries in to, by slot.
func (t *index) hashes(p *page, to *[maxGroups * groupSlots]uint64) {
	for g := range int(p.groups) {
		l := p.group(g)
		for k := range &l.tags {
			if l.tags[k] != 0 {
				to[g*groupSlots+k] = t.hash(t.arena.string(l.refs[k]))
			}
		}
	}
}

// split replaces p, the page of h, by two pages, according to the next bit of the
// hash. If all entries go to one side, the caller splits again, which is rare with
// random hashes.
func (t *index) split(p *page, h uint64) {
	d := t.writableDirectory()
	if p.depth == d.depth {
		of := make([]*page, 2*len(d.pages))
		for i := range of {
			of[i] = d.pages[i/2]
		}
		d.pages = of
		d.depth++
		d.deepest = 0
	}
	var hashes [maxGroups * groupSlots]uint64
	t.hashes(p, &hashes)
	ones := 0
	for g, k := range p.each {
		ones += int(hashes[g*groupSlots+k] << p.depth >> 63)
	}
	half := [2]*page{
		newPage(t.owner, p.depth+1, p.prefix<<1, int(p.used)-ones),
		newPage(t.owner, p.depth+1, p.prefix<<1|1, ones),
	}
	for g, k := range p.each {
		l := p.group(g)
		half[hashes[g*groupSlots+k]<<p.depth>>63].insert(l.tags[k], l.refs[k], *p.score(g, k))
	}
	t.groups -= int(p.groups)
	for _, p := range half {
		d.setPage(p)
		t.groups += int(p.groups)
	}
	if half[0].depth == d.depth {
		d.deepest += 2
	}
}

// remove removes the entry of hash h at a position. It shrinks or merges sparse
// pages.
func (t *index) remove(at entryPos, h uint64) {
	p := t.writable(at, h).page
	p.remove(at.group, at.slot)
	t.n--
	t.shrink(p)
	if t.dir.depth > 0 && int(p.used) <= mergedMax/2 {
		t.merge(p)
	}
}

// remove clears a slot.
func (p *page) remove(group, slot int) {
	l := p.group(group)
	for g := p.home(l.tags[slot]); g != group; {
		p.group(g).overflow--
		if g++; g == int(p.groups) {
			g = 0
		}
	}
	l.tags[slot] = 0
	p.used--
}

// shrink reallocates a sparse page.
func (t *index) shrink(p *page) {
	if n := int(p.used); p.groups > 1 && n < entriesIn(p.groups)*2/3 {
		t.resize(p, n+n/8)
	}
}

// removeSpan removes the members of the elements from first to last, in one pass over the
// pages. It does not read members unless their scores are those of first or last, and then
// those of a page together, which overlaps their cache misses.
func (t *index) removeSpan(first, last Element) {
	for h, end := uint64(0), false; !end; {
		p := t.page(h)
		var refs [maxGroups * groupSlots]uint32
		n := 0
		for g, k := range p.each {
			score, ref := *p.score(g, k), p.group(g).refs[k]
			if score < first.Score || score > last.Score {
				continue
			}
			if score == first.Score || score == last.Score {
				if e := (Element{t.arena.string(ref), score}); compare(e, first) < 0 || compare(e, last) > 0 {
					continue
				}
			}
			p = t.writable(entryPos{page: p}, h).page
			p.remove(g, k)
			refs[n] = ref
			n++
		}
		for _, ref := range refs[:n] {
			t.arena.remove(t.owner, ref, len(t.arena.string(ref)))
		}
		t.n -= n
		if n > 0 {
			t.shrink(p)
		}
		h += 1 << (64 - p.depth)
		end = h == 0
		for p != nil && p.prefix&1 == 1 { // its sibling is done, too
			p = t.merge(p)
		}
	}
}

// merge merges p with its sibling, the page whose prefix differs only in the last
// bit, if there is one and the two are sparse. It halves the directory while no
// page has its depth. It returns the new page, nil if there is none.
func (t *index) merge(p *page) *page {
	sibling := t.dir.pages[int(p.prefix^1)<<(t.dir.depth-p.depth)]
	if sibling.depth != p.depth || int(p.used+sibling.used) > mergedMax {
		return nil
	}
	d := t.writableDirectory()
	joined := newPage(t.owner, p.depth-1, p.prefix>>1, int(p.used+sibling.used))
	for _, from := range [...]*page{p, sibling} {
		for g, k := range from.each {
			l := from.group(g)
			joined.insert(l.tags[k], l.refs[k], *from.score(g, k))
		}
		t.groups -= int(from.groups)
	}
	t.groups += int(joined.groups)
	d.setPage(joined)
	if p.depth == d.depth {
		d.deepest -= 2
	}
	for d.deepest == 0 && d.depth > 0 {
		d.depth--
		of := make([]*page, len(d.pages)/2)
		for i := range of {
			of[i] = d.pages[2*i]
			if of[i].depth == d.depth {
				d.deepest++
			}
		}
		d.pages = of
	}
	return joined
}

// pages yields each page once.
func (t *index) pages(yield func(*page) bool) {
	for i := 0; i < len(t.dir.pages); {
		p := t.dir.pages[i]
		if !yield(p) {
			return
		}
		i += 1 << (t.dir.depth - p.depth)
	}
}

// A cursor is a hash without its lowest 12 bits, so it survives clients that
// represent numbers as float64.
const (
	cursorBits = 52
	cursorEnd  = 1 << cursorBits
)

// Scan implements Set.Scan. Entries come in the order of their hashes; entries with
// equal hashes come in one call. O(count + 252); an empty page costs O(1).
func (t *index) Scan(cursor uint64, count int, yield func(member string, score float64)) (next uint64) {
	count = max(count, 1)
	var hashes, sorted [maxGroups * groupSlots]uint64
	for cursor < cursorEnd {
		p := t.page(cursor << (64 - cursorBits))
		end := uint64(p.prefix+1) << (cursorBits - p.depth)
		t.hashes(p, &hashes)
		left := sorted[:0]
		for g, k := range p.each {
			h := &hashes[g*groupSlots+k]
			if *h >>= 64 - cursorBits; *h >= cursor {
				left = append(left, *h)
			}
		}
		if len(left) > count {
			slices.Sort(left)
			end = left[count-1] + 1
		}
		for g, k := range p.each {
			if h := hashes[g*groupSlots+k]; h >= cursor && h < end {
				yield(t.arena.string(p.group(g).refs[k]), *p.score(g, k))
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

// Random implements Set.Random by rejection sampling.
//
// It draws a directory entry, rejects it if it is not the first entry of its page,
// and draws one of as many slots as the largest page has. Every member has the same
// probability. About a quarter of the draws hit an entry.
func (t *index) Random(r *rand.Rand) (member string, score float64) {
	d := t.dir
	for range 128 {
		i := r.IntN(len(d.pages))
		p, width := d.pages[i], maxGroups
		if len(d.pages) == 1 {
			width = int(p.groups)
		}
		if i != int(p.prefix)<<(d.depth-p.depth) {
			continue
		}
		if i = r.IntN(width * groupSlots); i < int(p.groups)*groupSlots && p.group(i / groupSlots).tags[i%groupSlots] != 0 {
			return t.arena.string(p.group(i / groupSlots).refs[i%groupSlots]), *p.score(i/groupSlots, i%groupSlots)
		}
	}
	// Fallback after 128 misses, in a sparse index: select an entry by its ordinal.
	// Both methods are uniform, so their combination is, too.
	n := r.IntN(t.n)
	for p := range t.pages {
		if n >= int(p.used) {
			n -= int(p.used)
			continue
		}
		for g, k := range p.each {
			if n == 0 {
				return t.arena.string(p.group(g).refs[k]), *p.score(g, k)
			}
			n--
		}
	}
	panic("BUG: index has fewer entries than it counts")
}

// Bytes estimates the memory of the index in bytes, without the arena's chunks.
// O(1).
func (t *index) Bytes() int {
	perGroup := int(unsafe.Sizeof(group{})) + groupSlots*8
	return int(unsafe.Sizeof(*t)+unsafe.Sizeof(*t.dir)) + t.groups*perGroup + 8*len(t.dir.pages) +
		len(t.dir.pages)/2*int(unsafe.Sizeof(page{})) + len(t.arena.chunks)*int(unsafe.Sizeof(chunk{}))
}

// check verifies the invariants of the index and of the arena.
func (t *index) check() error {
	a := &t.arena
	n, room, deepest, covered := 0, 0, 0, 0
	live := make([]uint32, len(a.chunks))
	for p := range t.pages {
		pos := 0
		past := make([]uint16, p.groups)
		for g, k := range p.each {
			l := p.group(g)
			k2 := l.refs[k] >> refBits
			if int(k2) >= len(a.chunks) || l.refs[k]&(1<<refBits-1)<<a.chunks[k2].unit >= a.chunks[k2].end {
				return fmt.Errorf("reference %x is outside of chunk %d of %d", l.refs[k], k2, len(a.chunks))
			}
			member := a.string(l.refs[k])
			live[k2] += uint32(recordSize(len(member), a.chunks[k2].unit))
			h := t.hash(member)
			switch at := t.find(member, h); {
			case l.tags[k] != uint16(h)|1:
				return fmt.Errorf("hash %x of %q, tag %x", h, member, l.tags[k])
			case p.depth > 0 && h>>(64-p.depth) != uint64(p.prefix):
				return fmt.Errorf("%q is in the page of another prefix", member)
			case at != entryPos{p, g, k} || at != t.findRef(l.refs[k], h):
				return fmt.Errorf("%q is in slot %d of group %d, found in slot %d of group %d", member, k, g, at.slot, at.group)
			}
			for h := p.home(l.tags[k]); h != g; h = (h + 1) % int(p.groups) {
				past[h]++
			}
			pos++
		}
		for g, want := range past {
			if got := p.group(g).overflow; got != want {
				return fmt.Errorf("%d entries probed past group %d, counted %d", want, g, got)
			}
		}
		if pos != int(p.used) || pos > entriesIn(p.groups) {
			return fmt.Errorf("%d entries in a page of %d groups, counted %d", pos, p.groups, p.used)
		}
		span := 1 << (t.dir.depth - p.depth)
		for i := range span {
			if t.dir.pages[int(p.prefix)*span+i] != p {
				return fmt.Errorf("a directory entry of prefix %x of %d bits does not refer to its page", p.prefix, p.depth)
			}
		}
		if p.depth == t.dir.depth {
			deepest++
		}
		n += pos
		room += int(p.groups)
		covered += span
	}
	if n != t.n || room != t.groups || deepest != t.dir.deepest || covered != 1<<t.dir.depth {
		return fmt.Errorf("%d entries in %d groups, counted %d in %d; %d pages are deepest, counted %d; %d covered",
			n, room, t.n, t.groups, deepest, t.dir.deepest, covered)
	}
	return a.check(live)
}

// check verifies the invariants of the chunks. live has the number of live bytes of
// each chunk.
func (a *arena) check(live []uint32) error {
	gone, size, sparse := 0, 0, 0
	for k, c := range a.chunks {
		if c.data == nil {
			gone++
		}
		if c.sparse {
			sparse++
		}
		size += int(c.size)
		switch {
		case c.liveBytes != live[k] || c.liveBytes > c.end || c.end > c.size:
			return fmt.Errorf("chunk %d: %d bytes live, counted %d, of %d of %d", k, live[k], c.liveBytes, c.end, c.size)
		case c.data != nil && !c.sparse && k != a.tail-1 && (c.liveBytes < c.size/2 || c.liveBytes == 0):
			return fmt.Errorf("chunk %d: %d of %d bytes live, but not in sparse", k, c.liveBytes, c.size)
		case c.sparse != slices.Contains(a.sparse, uint32(k)):
			return fmt.Errorf("chunk %d: sparse is %v, in contrast to the list", k, c.sparse)
		}
	}
	if gone != len(a.free) || size != a.size || sparse != len(a.sparse) {
		return fmt.Errorf("%d unused chunks, counted %d; %d bytes, counted %d; %d sparse, counted %d", gone, len(a.free), size, a.size, sparse, len(a.sparse))
	}
	return nil
}
