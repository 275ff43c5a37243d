package zset

import (
	"hash/maphash"
	"math"
	"slices"
	"unsafe"
)

// A large set is an index from member to score (index.go) and blocks of up to 128
// elements in order (block.go), which are found through an order (order.go). Members'
// bytes are in an arena (arena.go), where both name them by 32 bits. So an element
// takes 17 bytes in the index, 14 in its block and its member's length and a few in
// the arena, and the garbage collector finds a few objects for each hundred elements.
//
// What came before, in figures of a million elements: one item of a B-tree for each
// element took 4.5 µs for an update and 7 µs for a rank. Blocks as the items of a
// B-tree of tidwall/btree, with strings in blocks and index and a second structure for
// ranks, took 77 bytes for each element, of which the garbage collector had to mark a
// million objects, and a third of the time of updates and ranks went into the tree:
// its items are compared through a function, by branches that are mispredicted, and
// all numbers of blocks behind a new one had to be changed.
type many struct {
	owner *token
	index index
	order *order

	deadlines *Set // members by deadline, or nil

	ready  int    // so many elements at an end that was popped from are in the cache
	warmed uint64 // see warm
}

// newMany makes a large set of elements in any order. Of a member that occurs more
// than once the last counts.
func newMany(elements []Element) *many {
	for {
		sorted := elements
		if !slices.IsSortedFunc(elements, compare) {
			sorted = slices.Clone(elements)
			if slices.IsSortedFunc(elements, func(a, b Element) int { return compare(b, a) }) {
				slices.Reverse(sorted) // as Redis saves sets
			} else {
				slices.SortFunc(sorted, compare)
			}
		}
		if m := build(sorted); m != nil {
			return m
		}
		elements = latest(elements)
	}
}

// latest leaves the last of the elements that have the same member.
func latest(elements []Element) []Element {
	at := make(map[string]int, len(elements))
	unique := elements[:0]
	for _, e := range elements {
		if i, ok := at[e.Member]; ok {
			unique[i] = e
			continue
		}
		at[e.Member] = len(unique)
		unique = append(unique, e)
	}
	return unique
}

// build makes a large set of elements that are in order, in one pass and with memory
// to measure; nil if a member occurs twice. Members that follow each other lie one
// behind the other in the arena.
func build(elements []Element) *many {
	seed := maphash.MakeSeed()
	hashes := make([]uint64, len(elements))
	expect := 0
	for i, e := range elements {
		hashes[i] = maphash.String(seed, e.Member)
		expect += footprint(len(e.Member), chunkUnit)
	}
	m := &many{owner: new(token)}
	m.index = newIndex(m.owner, seed, hashes)
	m.index.arena.expect = expect

	n := (len(elements) + blockHigh - 1) / blockHigh
	blocks := make([]*block, n)
	var f fences
	for k := range blocks {
		lo, hi := k*len(elements)/n, (k+1)*len(elements)/n
		b := newBlock(m.owner, room(hi-lo))
		for i, e := range elements[lo:hi] {
			h := hashes[lo+i]
			if m.index.find(e.Member, h).ok() {
				return nil
			}
			ref := m.index.arena.add(m.owner, e.Member)
			m.index.insert(h, ref, e.Score)
			b.scores, b.refs = append(b.scores, e.Score), append(b.refs, ref)
		}
		blocks[k] = b
		score, member := math.Inf(-1), ""
		if k > 0 {
			before, first := elements[lo-1], elements[lo]
			score, member = fence(before.Score, before.Member, first.Score, first.Member)
		}
		f.insert(k, score, member)
	}
	m.order = &order{owner: m.owner}
	m.order.load(blocks, f)
	return m
}

// clone returns a set with the same elements that shares everything until written to.
func (m *many) clone() *many {
	m.index.arena.cloned()
	c := *m
	if m.deadlines != nil {
		c.deadlines = m.deadlines.Clone()
	}
	m.owner, c.owner = new(token), new(token)
	m.index.owner, c.index.owner = m.owner, c.owner
	return &c
}

// own makes the order writable.
func (m *many) own() *order {
	if o := m.order; o.owner != m.owner {
		m.order = &order{m.owner, o.fences.clone(), slices.Clone(o.groups), slices.Clone(o.sums), o.n}
	}
	return m.order
}

// at returns the element of a rank.
func (m *many) at(rank int) Element {
	at, i := m.order.find(rank)
	b := m.order.block(at)
	return Element{m.index.arena.string(b.refs[i]), b.scores[i]}
}

// below counts the elements below (score, member).
func (m *many) below(score float64, member string) int {
	to := m.locate(score, member)
	return m.order.before(to.seat) + to.i
}

// put is Set.put.
//
// Where the element is to go is looked up before the member. The two have nothing to
// do with each other, and each is a chain of cache misses; in this order, the one
// without unpredictable branches first, the processor works on both at once, which
// takes a tenth off an addition to a million.
func (m *many) put(member string, score float64, cond Cond, incr bool) (o Outcome, old, now float64) {
	var have spot
	var to place
	if o = cond.judgeNew(score); o == Added {
		if !incr {
			to = m.locate(score, member)
		}
		var added bool
		if have, added = m.index.getOrAdd(member, score); added {
			if incr {
				to = m.locate(score, member)
			}
			m.insert(to, score, *have.ref())
			m.tidy()
			return o, 0, score
		}
	} else {
		h := m.index.hash(member)
		if have = m.index.find(member, h); !have.ok() {
			return o, 0, 0
		}
		have = m.index.own(have, h)
	}
	old = *have.score()
	if incr {
		score += old
	}
	if o = cond.judge(old, score); o != Updated {
		return o, old, old
	}
	*have.score() = score
	if to.block == nil {
		to = m.locate(score, member)
	}
	m.update(member, *have.ref(), old, score, to)
	return o, old, score
}

// place is where an element is or belongs.
type place struct {
	seat
	block *block
	i     int // in the block
}

// locate returns the place of (score, member).
func (m *many) locate(score float64, member string) place {
	at, b := m.order.seat(score, member)
	return place{at, b, b.search(&m.index.arena, score, member)}
}

// whereIs returns the place of an element. Where no other has its score, members are
// not looked at.
func (m *many) whereIs(score float64, member string, ref uint32) place {
	at, b := m.order.seat(score, member)
	i := below(b.scores, score)
	if i == b.len() || b.refs[i] != ref {
		i = b.search(&m.index.arena, score, member)
	}
	return place{at, b, i}
}

// update moves an element from its old score to another, which belongs at to.
func (m *many) update(member string, ref uint32, old, score float64, to place) {
	from := m.whereIs(old, member, ref)
	b := m.own().ownBlock(from.seat)
	if to.seat == from.seat {
		b.move(from.i, to.i, score)
		return
	}
	if m.take(from) {
		to = m.locate(score, member)
	}
	m.insert(to, score, ref)
}

// insert puts a new element where it belongs.
func (m *many) insert(to place, score float64, ref uint32) {
	o := m.own()
	b, i := o.ownBlock(to.seat), to.i
	if b.len() == blockMax {
		m.split(to, score, ref)
		return
	}
	b.insert(i, score, ref)
	o.resized(to.seat)
}

// split makes two blocks of a full one and inserts an element. At either end of a set
// elements tend to come in order, as times do, and blocks that stay full are better
// there than halves.
func (m *many) split(to place, score float64, ref uint32) {
	o, a := m.order, &m.index.arena
	b, i := o.block(to.seat), to.i
	right, end := (*block)(nil), false
	switch {
	case i == blockMax && to.seat == o.end():
		right = newBlock(m.owner, 16)
		right.insert(0, score, ref)
		end = true
	case i == 0 && to.seat == seat{}:
		right = b.copyOf(m.owner, 0, blockMax, blockMax)
		b.replace(newBlock(m.owner, 16))
		b.insert(0, score, ref)
		end = true
	default:
		const half = blockMax / 2
		right = b.copyOf(m.owner, half, blockMax, room(half+1))
		b.replace(b.copyOf(m.owner, 0, half, room(half+1)))
	}
	last := b.len() - 1
	nextScore, next := fence(b.scores[last], a.string(b.refs[last]), right.scores[0], a.string(right.refs[0]))
	o.resized(to.seat)
	o.insert(to.seat, nextScore, next, right)
	if !end {
		m.insert(m.locate(score, a.string(ref)), score, ref)
	}
}

// take removes the element at a place, whose block must be writable. It reports
// whether that has changed where others are.
func (m *many) take(from place) (joined bool) {
	o := m.order
	b := o.block(from.seat)
	b.cut(from.i, from.i+1)
	o.resized(from.seat)
	return b.len() < blockLow && m.join(from.seat)
}

// join removes a block if it is empty, or if it and a neighbour of its group fit into
// one, and reports whether it did.
func (m *many) join(at seat) bool {
	o := m.order
	g := o.groups[at.g]
	n := int(g.sizes[at.i])
	switch {
	case n == 0:
		o.remove(at)
	case at.i+1 < len(g.blocks) && n+int(g.sizes[at.i+1]) <= blockJoin:
		m.merge(at)
	case at.i > 0 && n+int(g.sizes[at.i-1]) <= blockJoin:
		at.i--
		m.merge(at)
	default:
		return false
	}
	return true
}

// merge moves the elements of a block's right neighbour in its group to it.
func (m *many) merge(at seat) {
	o := m.order
	b, right := o.ownBlock(at), seat{at.g, at.i + 1}
	from := o.block(right)
	grown := b.copyOf(m.owner, 0, b.len(), room(b.len()+from.len()))
	grown.scores = append(grown.scores, from.scores...)
	grown.refs = append(grown.refs, from.refs...)
	b.replace(grown)
	o.resized(at)
	o.remove(right)
}

// remove removes a member. It must not be the last.
func (m *many) remove(member string) (score float64, ok bool) {
	h := m.index.hash(member)
	have := m.index.find(member, h)
	if !have.ok() {
		return 0, false
	}
	score, ref := *have.score(), *have.ref()
	m.index.remove(have, h)
	if m.deadlines != nil {
		m.dropDeadline(member)
	}
	from := m.whereIs(score, member, ref)
	m.own().ownBlock(from.seat)
	m.take(from)
	m.index.arena.remove(m.owner, ref, len(member))
	m.tidy()
	return score, true
}

// cut removes the elements of ranks lo to hi-1, which must not be all.
func (m *many) cut(lo, hi int) {
	front := lo == 0
	popped := front || hi == m.index.n
	o := m.own()
	at, i := o.find(lo)
	for left := hi - lo; left > 0; {
		b := o.block(at)
		n := min(left, b.len()-i)
		m.forget(b.refs[i : i+n])
		left -= n
		if n == b.len() {
			o.remove(at)
		} else {
			o.ownBlock(at).cut(i, i+n)
			o.resized(at)
		}
		at, i = o.find(min(lo, m.index.n-1)) // behind what was removed
	}
	// Of the blocks left and right of the cut either may be short.
	for range 2 {
		if b := o.block(at); b.len() < blockLow {
			m.join(at)
		}
		at, _ = o.find(max(lo-1, 0))
	}
	m.tidy()
	if popped {
		m.expectPops(hi-lo, front)
	}
}

// warmFrom is how many elements a set must have for the cache to be asked for
// anything: what is needed of fewer is there.
const warmFrom = 10_000

// expectPops notes that n elements were taken from an end. Whoever does that does it
// again: so what is needed to take the next ones is brought into the cache, some at a
// time.
func (m *many) expectPops(n int, front bool) {
	if m.ready -= n; m.ready >= 0 || m.index.n < warmFrom {
		return
	}
	o := m.order
	if front {
		refs := o.block(seat{}).refs
		m.ready = min(batch, len(refs))
		m.warm(refs[:m.ready], nil)
	} else {
		refs := o.block(o.end()).refs
		m.ready = min(batch, len(refs))
		m.warm(refs[len(refs)-m.ready:], nil)
	}
}

// warm brings up to batch members and their entries in the index into the processor's
// cache, and tells their hashes if hashes is not nil. A reference leads to the member
// and that to its entry, two cache misses in a large set; here each step is taken for
// all of them side by side. Of a million elements a pop took 1.2 µs without, and takes
// 0.8; one of a hundred that go together 0.48 and 0.31.
func (m *many) warm(refs []uint32, hashes *[batch]uint64) {
	var own [batch]uint64
	if hashes == nil {
		hashes = &own
	}
	refs = refs[:min(len(refs), batch)]
	t, read := &m.index, uint64(0)
	for _, ref := range refs {
		read += uint64(*(*byte)(t.arena.record(ref)))
	}
	for i, ref := range refs {
		hashes[i&(batch-1)] = t.hash(t.arena.string(ref))
	}
	for i := range refs {
		h := hashes[i&(batch-1)]
		p := t.page(h)
		read += uint64(p.line(p.home(uint16(h) | 1)).past)
	}
	m.warmed = read // what nobody asks for the compiler would leave out
}

// forget takes members out of the index, their deadlines and the arena, some at once:
// what is needed of one does not wait for the others.
func (m *many) forget(refs []uint32) {
	a := &m.index.arena
	for some := range slices.Chunk(refs, batch) {
		var hashes [batch]uint64
		m.warm(some, &hashes)
		for i, ref := range some {
			m.index.remove(m.index.findRef(ref, hashes[i]), hashes[i])
		}
		for _, ref := range some {
			member := a.string(ref)
			if m.deadlines != nil {
				m.dropDeadline(member)
			}
			a.remove(m.owner, ref, len(member))
		}
	}
}

// tidy goes on with rewriting sparse chunks of the arena, if there are any.
func (m *many) tidy() {
	t := &m.index
	if t.arena.debt <= 0 {
		return
	}
	t.arena.tidy(m.owner, func(member string, ref uint32) bool {
		h := t.hash(member)
		have := t.findRef(ref, h)
		if !have.ok() {
			return false
		}
		have = t.own(have, h)
		now := t.arena.add(m.owner, member)
		at := m.whereIs(*have.score(), member, ref)
		m.own().ownBlock(at.seat).refs[at.i] = now
		*have.ref() = now
		return true
	})
}

// batch is how many members are looked up at once: their cache misses overlap.
const batch = 16

// ascend yields the elements of ranks lo to hi-1, lowest first.
func (m *many) ascend(lo, hi int, yield func(string, float64) bool) {
	if lo >= hi {
		return
	}
	var members [batch]string
	at, i := m.order.find(lo)
	b := m.order.block(at)
	for {
		end := min(b.len(), i+hi-lo)
		lo += end - i
		for i < end {
			n := min(batch, end-i)
			m.index.arena.strings(b.refs[i:i+n], &members)
			for j, score := range b.scores[i : i+n] {
				if !yield(members[j&(batch-1)], score) {
					return
				}
			}
			i += n
		}
		if lo == hi {
			return
		}
		at, b = m.order.next(at)
		i = 0
	}
}

// descend yields the elements of ranks hi-1 to lo, highest first.
func (m *many) descend(lo, hi int, yield func(string, float64) bool) {
	if lo >= hi {
		return
	}
	var members [batch]string
	at, i := m.order.find(hi - 1)
	b := m.order.block(at)
	for {
		begin := max(i+1-(hi-lo), 0)
		hi -= i + 1 - begin
		for i >= begin {
			n := min(batch, i+1-begin)
			m.index.arena.strings(b.refs[i+1-n:i+1], &members)
			for j := n - 1; j >= 0; j-- {
				if !yield(members[j&(batch-1)], b.scores[i]) {
					return
				}
				i--
			}
		}
		if lo == hi {
			return
		}
		at, b = m.order.previous(at)
		i = b.len() - 1
	}
}

// bytes estimates the memory that the set takes, without that of the members' bytes.
func (m *many) bytes() int {
	const perBlock = int(unsafe.Sizeof(block{})) + 8*3/2 + 24*5/4 // with its place in a group
	return int(unsafe.Sizeof(*m)+unsafe.Sizeof(*m.order)) + m.index.Bytes() + 12*m.index.n*9/8 + m.order.n*perBlock
}
