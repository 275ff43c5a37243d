package zset

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"slices"
	"unsafe"
)

// The index leads from member to score. It is the extendible hashing of package
// table: pages in the order of hashes, which split in two, so that Scan has a
// stateless cursor, Random is fair and a clone copies a page or two. But it holds no
// pointers, as members are references to the arena, and is arranged for the cache.
//
// A page is groups of 10 slots. References and 16 bits of each hash of a group are
// one cache line: looking for a member reads that, the member, and the score, the
// last two at once. References and hashes in arrays of their own are a cache miss
// more, which at a million members is a quarter of a lookup. A slot takes 14.4 bytes,
// pages are filled to 84 % on average.
//
// An entry is in the group that its hash names or, if that was full, in the next one
// with room. A group counts how many entries went past it; that ends searches, and
// makes removing one as simple as clearing its slot.
type index struct {
	arena arena
	seed  maphash.Seed
	owner *token // pages, directories and chunks of other owners are shared: copied before a write
	dir   *directory
	n     int
	room  int // groups in all pages
}

// directory names the page of each prefix of depth bits. A page of fewer bits fills
// several entries.
type directory struct {
	owner   *token
	depth   uint8
	deepest int // pages with the directory's depth; without any it halves
	of      []*page
}

type page struct {
	owner  *token
	lines  *line  // of as many groups, and behind them the scores
	prefix uint32 // the bits of the hash that the entries have in common
	groups uint16
	used   uint16 // entries
	depth  uint8  // how many bits prefix has
}

const slots = 10 // in a group

type line struct {
	refs [slots]uint32
	tags [slots]uint16 // 0: empty; else the lowest 16 bits of the hash, bit 0 set
	past uint16        // entries of this group and of those before that are in groups behind it
	_    uint16
}

const (
	maxGroups = 28
	maxUsed   = 9 * maxGroups
	joinedMax = 108 // two pages become one that has this many entries or fewer
)

// groupsFor returns how many groups a page of n entries has: sizes that fill Go's
// size classes, and leave a tenth of the slots free if there is more than one.
func groupsFor(n int) uint16 {
	for _, g := range [...]uint16{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 21, 24} {
		if n <= entriesIn(g) {
			return g
		}
	}
	return maxGroups
}

// entriesIn is how many entries so many groups may have.
func entriesIn(groups uint16) int {
	if groups == 1 {
		return slots
	}
	return int(groups) * 9
}

// newPage returns an empty page with room for n entries.
func newPage(owner *token, depth uint8, prefix uint32, n int) *page {
	p := &page{owner: owner, depth: depth, prefix: prefix}
	p.allocate(groupsFor(n))
	return p
}

func (p *page) allocate(groups uint16) {
	p.groups, p.used = groups, 0
	p.lines = unsafe.SliceData(make([]line, lines(groups)))
}

// lines is how many lines a page has, those that are scores included.
func lines(groups uint16) int {
	const scores = slots * unsafe.Sizeof(float64(0)) // of a group
	return int(groups) + int((uintptr(groups)*scores+unsafe.Sizeof(line{})-1)/unsafe.Sizeof(line{}))
}

func (p *page) line(g int) *line {
	return (*line)(unsafe.Add(unsafe.Pointer(p.lines), g*int(unsafe.Sizeof(line{}))))
}

// score returns where the score of slot k of group g is.
func (p *page) score(g, k int) *float64 {
	scores := int(p.groups) * int(unsafe.Sizeof(line{}))
	return (*float64)(unsafe.Add(unsafe.Pointer(p.lines), scores+(g*slots+k)*int(unsafe.Sizeof(float64(0)))))
}

// home is the group where an entry would like to be.
func (p *page) home(tag uint16) int { return int(tag>>8) * int(p.groups) >> 8 }

// spot is where an entry is.
type spot struct {
	page *page
	g, k int // k is -1 if there is no such entry
}

func (s spot) ok() bool        { return s.k >= 0 }
func (s spot) ref() *uint32    { return &s.page.line(s.g).refs[s.k] }
func (s spot) score() *float64 { return s.page.score(s.g, s.k) }

// page returns the page for a hash. There must be one.
func (t *index) page(h uint64) *page { return t.dir.of[h>>(64-t.dir.depth)] }

func (t *index) hash(member string) uint64 { return maphash.String(t.seed, member) }

// match finds the slots with a tag: bit 16i+15-j of what it returns is for slot i+4j.
// There may be a wrong one behind a right one with the same j.
//
// It compares four tags at a time, without a branch that depends on where one is.
func (l *line) match(tag uint16) uint64 {
	const ones, highs = 0x0001000100010001, 0x8000800080008000
	t, want := &l.tags, uint64(tag)*ones
	a := want ^ (uint64(t[0]) | uint64(t[1])<<16 | uint64(t[2])<<32 | uint64(t[3])<<48)
	b := want ^ (uint64(t[4]) | uint64(t[5])<<16 | uint64(t[6])<<32 | uint64(t[7])<<48)
	c := want ^ (uint64(t[8]) | uint64(t[9])<<16) | 0xffffffff<<32
	return (a-ones)&^a&highs | (b-ones)&^b&highs>>1 | (c-ones)&^c&highs>>2
}

// slot is the one that the lowest bit of a match is for.
func slot(match uint64) int {
	bit := bits.TrailingZeros64(match)
	return (bit>>4 + 4*(15-bit&15)) & 15
}

// find returns where a member is.
func (t *index) find(member string, h uint64) spot {
	p, tag := t.page(h), uint16(h)|1
	g := p.home(tag)
	for range p.groups {
		l := p.line(g)
		for m := l.match(tag); m != 0; m &= m - 1 {
			if k := slot(m); k < slots && l.tags[k] == tag && t.arena.is(l.refs[k], member) {
				return spot{p, g, k}
			}
		}
		if l.past == 0 {
			break
		}
		if g++; g == int(p.groups) {
			g = 0
		}
	}
	return spot{p, 0, -1}
}

// findRef returns where the entry of a reference is, whose member's hash is h: it
// does not look at the member.
func (t *index) findRef(ref uint32, h uint64) spot {
	p, tag := t.page(h), uint16(h)|1
	g := p.home(tag)
	for range p.groups {
		l := p.line(g)
		for m := l.match(tag); m != 0; m &= m - 1 {
			if k := slot(m); k < slots && l.refs[k] == ref && l.tags[k] == tag {
				return spot{p, g, k}
			}
		}
		if l.past == 0 {
			break
		}
		if g++; g == int(p.groups) {
			g = 0
		}
	}
	return spot{p, 0, -1}
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

// getOrAdd returns where member is, for writing, or adds it.
func (t *index) getOrAdd(member string, score float64) (at spot, added bool) {
	h := t.hash(member)
	if at = t.find(member, h); at.ok() {
		return t.own(at, h), false
	}
	return t.insert(h, t.arena.add(t.owner, member), score), true
}

// insert adds an entry that is not there.
func (t *index) insert(h uint64, ref uint32, score float64) spot {
	p := t.page(h)
	for p.used == maxUsed {
		t.split(p, h)
		p = t.page(h)
	}
	p = t.own(spot{page: p}, h).page
	if int(p.used) == entriesIn(p.groups) {
		t.resize(p, int(p.used)+1)
	}
	t.n++
	return p.place(uint16(h)|1, ref, score)
}

// place adds an entry to a page with room.
func (p *page) place(tag uint16, ref uint32, score float64) spot {
	for g := p.home(tag); ; {
		l := p.line(g)
		if m := l.match(0); m != 0 {
			k := slot(m)
			l.tags[k], l.refs[k] = tag, ref
			*p.score(g, k) = score
			p.used++
			return spot{p, g, k}
		}
		l.past++
		if g++; g == int(p.groups) {
			g = 0
		}
	}
}

// own returns a spot in a page that the index may write to, that of h: the page
// itself, or a copy in its place.
func (t *index) own(at spot, h uint64) spot {
	p := at.page
	if p.owner == t.owner {
		return at
	}
	c := *p
	c.owner = t.owner
	n := lines(p.groups)
	c.lines = unsafe.SliceData(append(make([]line, 0, n), unsafe.Slice(p.lines, n)...))
	t.ownDirectory().point(&c)
	at.page = &c
	return at
}

// ownDirectory returns the directory for writing, after copying it if need be.
func (t *index) ownDirectory() *directory {
	if d := t.dir; d.owner != t.owner {
		c := *d
		c.owner = t.owner
		c.of = slices.Clone(d.of)
		t.dir = &c
	}
	return t.dir
}

// point makes the entries of a page's prefix name it.
func (d *directory) point(p *page) {
	span := 1 << (d.depth - p.depth)
	of := d.of[int(p.prefix)*span:][:span]
	for i := range of {
		of[i] = p
	}
}

// newIndex returns an index with pages for n entries, of which each has the hash that
// hashes yields.
func newIndex(owner *token, seed maphash.Seed, hashes []uint64) index {
	const usual = 160 // at most, of entries in a page: half of that to all
	depth := uint8(0)
	for len(hashes)>>depth > usual {
		depth++
	}
	t := index{seed: seed, owner: owner}
	t.dir = &directory{owner: owner, depth: depth, deepest: 1 << depth, of: make([]*page, 1<<depth)}
	counts := make([]uint16, 1<<depth)
	for _, h := range hashes {
		if c := &counts[h>>(64-depth)]; *c < maxUsed {
			*c++
		}
	}
	for i := range t.dir.of {
		p := newPage(owner, depth, uint32(i), int(counts[i]))
		t.dir.of[i] = p
		t.room += int(p.groups)
	}
	return t
}

// each yields the slots that are taken.
func (p *page) each(yield func(g, k int) bool) {
	for g := range int(p.groups) {
		l := p.line(g)
		for k := range &l.tags {
			if l.tags[k] != 0 && !yield(g, k) {
				return
			}
		}
	}
}

// resize gives a page groups for n entries, which is no fewer than it has.
func (t *index) resize(p *page, n int) {
	old := *p
	t.room -= int(p.groups)
	p.allocate(groupsFor(n))
	t.room += int(p.groups)
	for g, k := range old.each {
		l := old.line(g)
		p.place(l.tags[k], l.refs[k], *old.score(g, k))
	}
}

// hashes returns the hashes of a page's entries, by slot.
func (t *index) hashes(p *page, to *[maxGroups * slots]uint64) {
	for g := range int(p.groups) {
		l := p.line(g)
		for k := range &l.tags {
			if l.tags[k] != 0 {
				to[g*slots+k] = t.hash(t.arena.string(l.refs[k]))
			}
		}
	}
}

// split puts two pages in the place of p, the page for h, by the next bit of the
// hash. Members with random hashes need it once; should all go to one side, the
// caller splits again.
func (t *index) split(p *page, h uint64) {
	d := t.ownDirectory()
	if p.depth == d.depth {
		of := make([]*page, 2*len(d.of))
		for i := range of {
			of[i] = d.of[i/2]
		}
		d.of = of
		d.depth++
		d.deepest = 0
	}
	var hashes [maxGroups * slots]uint64
	t.hashes(p, &hashes)
	ones := 0
	for g, k := range p.each {
		ones += int(hashes[g*slots+k] << p.depth >> 63)
	}
	half := [2]*page{
		newPage(t.owner, p.depth+1, p.prefix<<1, int(p.used)-ones),
		newPage(t.owner, p.depth+1, p.prefix<<1|1, ones),
	}
	for g, k := range p.each {
		l := p.line(g)
		half[hashes[g*slots+k]<<p.depth>>63].place(l.tags[k], l.refs[k], *p.score(g, k))
	}
	t.room -= int(p.groups)
	for _, p := range half {
		d.point(p)
		t.room += int(p.groups)
	}
	if half[0].depth == d.depth {
		d.deepest += 2
	}
}

// remove removes the entry of a hash.
func (t *index) remove(at spot, h uint64) {
	at = t.own(at, h)
	p := at.page
	l := p.line(at.g)
	for g := p.home(l.tags[at.k]); g != at.g; {
		p.line(g).past--
		if g++; g == int(p.groups) {
			g = 0
		}
	}
	l.tags[at.k] = 0
	t.n--
	p.used--
	if n := int(p.used); p.groups > 1 && n < entriesIn(p.groups)*2/3 {
		t.resize(p, n+n/8)
	}
	if t.dir.depth > 0 && int(p.used) <= joinedMax/2 {
		t.join(p)
	}
}

// join makes one page of p and its buddy, the page that differs in the last bit of
// the prefix, if there is one and both are sparse.
func (t *index) join(p *page) {
	buddy := t.dir.of[int(p.prefix^1)<<(t.dir.depth-p.depth)]
	if buddy.depth != p.depth || int(p.used+buddy.used) > joinedMax {
		return
	}
	d := t.ownDirectory()
	joined := newPage(t.owner, p.depth-1, p.prefix>>1, int(p.used+buddy.used))
	for _, from := range [...]*page{p, buddy} {
		for g, k := range from.each {
			l := from.line(g)
			joined.place(l.tags[k], l.refs[k], *from.score(g, k))
		}
		t.room -= int(from.groups)
	}
	t.room += int(joined.groups)
	d.point(joined)
	if p.depth == d.depth {
		d.deepest -= 2
	}
	for d.deepest == 0 && d.depth > 0 {
		d.depth--
		of := make([]*page, len(d.of)/2)
		for i := range of {
			of[i] = d.of[2*i]
			if of[i].depth == d.depth {
				d.deepest++
			}
		}
		d.of = of
	}
}

// pages yields every page.
func (t *index) pages(yield func(*page) bool) {
	for i := 0; i < len(t.dir.of); {
		p := t.dir.of[i]
		if !yield(p) {
			return
		}
		i += 1 << (t.dir.depth - p.depth)
	}
}

// The cursor of a scan: hashes lose their lowest bits, so that cursors survive
// clients that hold numbers as float64.
const (
	cursorBits = 52
	cursorEnd  = 1 << cursorBits
)

// Scan is Set.Scan. Entries come by the order of hashes, those of equal hash
// together. O(count), and O(252) at least; empty stretches cost O(1) for a page.
func (t *index) Scan(cursor uint64, count int, yield func(member string, score float64)) (next uint64) {
	count = max(count, 1)
	var hashes, sorted [maxGroups * slots]uint64
	for cursor < cursorEnd {
		p := t.page(cursor << (64 - cursorBits))
		end := uint64(p.prefix+1) << (cursorBits - p.depth)
		t.hashes(p, &hashes)
		left := sorted[:0]
		for g, k := range p.each {
			h := &hashes[g*slots+k]
			if *h >>= 64 - cursorBits; *h >= cursor {
				left = append(left, *h)
			}
		}
		if len(left) > count {
			slices.Sort(left)
			end = left[count-1] + 1
		}
		for g, k := range p.each {
			if h := hashes[g*slots+k]; h >= cursor && h < end {
				yield(t.arena.string(p.line(g).refs[k]), *p.score(g, k))
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

// Random is Set.Random.
//
// An entry of the directory that is its page's first, and one of the most slots that
// pages may have: each member has the same chance to be hit, whatever else there is.
// About a quarter of the draws hit one.
func (t *index) Random(r *rand.Rand) (member string, score float64) {
	d := t.dir
	for range 128 {
		i := r.IntN(len(d.of))
		p, width := d.of[i], maxGroups
		if len(d.of) == 1 {
			width = int(p.groups)
		}
		if i != int(p.prefix)<<(d.depth-p.depth) {
			continue
		}
		if i = r.IntN(width * slots); i < int(p.groups)*slots && p.line(i / slots).tags[i%slots] != 0 {
			return t.arena.string(p.line(i / slots).refs[i%slots]), *p.score(i/slots, i%slots)
		}
	}
	// So sparse, or so unlucky: count entries. As this too is fair, so are both together.
	n := r.IntN(t.n)
	for p := range t.pages {
		if n >= int(p.used) {
			n -= int(p.used)
			continue
		}
		for g, k := range p.each {
			if n == 0 {
				return t.arena.string(p.line(g).refs[k]), *p.score(g, k)
			}
			n--
		}
	}
	panic("BUG: index has fewer entries than it counts")
}

// Bytes estimates the memory that the index takes, without the members' bytes. O(1).
func (t *index) Bytes() int {
	perGroup := int(unsafe.Sizeof(line{})) + slots*8
	return int(unsafe.Sizeof(*t)+unsafe.Sizeof(*t.dir)) + t.room*perGroup + 8*len(t.dir.of) +
		len(t.dir.of)/2*int(unsafe.Sizeof(page{})) + len(t.arena.chunks)*int(unsafe.Sizeof(chunk{}))
}

// check returns an error if the index or the arena is not what the code relies on.
func (t *index) check() error {
	a := &t.arena
	n, room, deepest, covered := 0, 0, 0, 0
	live := make([]uint32, len(a.chunks))
	for p := range t.pages {
		pos := 0
		past := make([]uint16, p.groups)
		for g, k := range p.each {
			l := p.line(g)
			k2 := l.refs[k] >> refBits
			if int(k2) >= len(a.chunks) || l.refs[k]&(1<<refBits-1)<<a.chunks[k2].unit >= a.chunks[k2].end {
				return fmt.Errorf("reference %x to chunk %d of %d", l.refs[k], k2, len(a.chunks))
			}
			member := a.string(l.refs[k])
			live[k2] += uint32(footprint(len(member), a.chunks[k2].unit))
			h := t.hash(member)
			switch at := t.find(member, h); {
			case l.tags[k] != uint16(h)|1:
				return fmt.Errorf("hash %x of %q, noted %x", h, member, l.tags[k])
			case p.depth > 0 && h>>(64-p.depth) != uint64(p.prefix):
				return fmt.Errorf("%q is in the page of another prefix", member)
			case at != spot{p, g, k} || at != t.findRef(l.refs[k], h):
				return fmt.Errorf("%q is at %d of group %d, found at %d of %d", member, k, g, at.k, at.g)
			}
			for h := p.home(l.tags[k]); h != g; h = (h + 1) % int(p.groups) {
				past[h]++
			}
			pos++
		}
		for g, want := range past {
			if got := p.line(g).past; got != want {
				return fmt.Errorf("%d entries went past group %d, counted %d", want, g, got)
			}
		}
		if pos != int(p.used) || pos > entriesIn(p.groups) {
			return fmt.Errorf("%d entries in a page of %d groups, counted %d", pos, p.groups, p.used)
		}
		span := 1 << (t.dir.depth - p.depth)
		for i := range span {
			if t.dir.of[int(p.prefix)*span+i] != p {
				return fmt.Errorf("an entry of prefix %x of %d bits does not name its page", p.prefix, p.depth)
			}
		}
		if p.depth == t.dir.depth {
			deepest++
		}
		n += pos
		room += int(p.groups)
		covered += span
	}
	if n != t.n || room != t.room || deepest != t.dir.deepest || covered != 1<<t.dir.depth {
		return fmt.Errorf("%d entries in %d groups, counted %d in %d; %d pages are deepest, counted %d; %d covered",
			n, room, t.n, t.room, deepest, t.dir.deepest, covered)
	}
	return a.check(live)
}

// check is the part of index.check that is about chunks, of which live are so many bytes.
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
		case c.live != live[k] || c.live > c.end || c.end > c.size:
			return fmt.Errorf("chunk %d: %d bytes live, counted %d, of %d of %d", k, live[k], c.live, c.end, c.size)
		case c.data != nil && !c.sparse && k != a.tail-1 && (c.live < c.size/2 || c.live == 0):
			return fmt.Errorf("chunk %d: %d of %d bytes live, but not among the sparse", k, c.live, c.size)
		case c.sparse != slices.Contains(a.sparse, uint32(k)):
			return fmt.Errorf("chunk %d: sparse is %v, and not so", k, c.sparse)
		}
	}
	if gone != len(a.free) || size != a.size || sparse != len(a.sparse) {
		return fmt.Errorf("%d chunks gone of %d free, %d bytes of %d, %d sparse of %d", gone, len(a.free), size, a.size, sparse, len(a.sparse))
	}
	return nil
}
