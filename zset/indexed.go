package zset

import (
	"slices"
	"unsafe"
)

// An indexed set has two structures over the same elements:
//
//	            ┌ index: hash table      member → (ref, score)      index.go
//	indexed set ┤
//	            └ tree:  counted B+ tree (score, ref) in order      order.go, root.go, leaf.go
//
//	ref ──→ arena: member bytes                                     arena.go
//
// Lookups by member use the index; ranks, ranges and order use the tree. Both refer
// to the member by a 32-bit reference into the arena. An element takes 17 bytes in
// the index, 14 bytes in its leaf, and the member plus a few bytes in the arena.
// The garbage collector marks a few objects for each hundred elements.
//
// Rejected alternatives, at a million elements: a B-tree with one item for each
// element takes 4.5 µs for an update and 7 µs for a rank. With leaves instead of nodes
// as items of the B-tree, a third of the time of updates and ranks is spent in the
// B-tree, which compares items through a function with mispredicted branches, and each
// new leaf renumbers all leaves after it.
//
// Invariants (indexed.check): those of the index, the tree and the arena; the index
// and the tree have the same elements; each element has the same reference and
// score in both.
type indexed struct {
	owner *token
	index index
	tree  *tree

	deadlines *Set   // members by deadline, or nil
	reach     *Reach // of the changes, or nil
	marked    bool   // see Set.SetMark
	version   uint32 // number of changes of elements, modulo 2^32

	prefetched int    // number of elements at the popped end that are already in the cache
	sink       uint64 // see prefetch
}

// clone returns a copy-on-write copy. Original and copy get new owner tokens, so
// both copy shared structures before a write.
func (m *indexed) clone() *indexed {
	m.index.arena.prepareClone()
	c := *m
	c.reach = nil
	if m.tree != nil {
		c.tree = m.tree.clone()
	}
	if m.deadlines != nil {
		c.deadlines = m.deadlines.Clone()
	}
	m.owner, c.owner = new(token), new(token)
	m.index.owner, c.index.owner = m.owner, c.owner
	return &c
}

// writableTree returns the tree for writing: it copies the arrays of the root if a clone
// shares them.
func (m *indexed) writableTree() *tree {
	if o := m.tree; o.owner != m.owner {
		o.owner = m.owner
		o.root.makeWritable()
	}
	return m.tree
}

// at returns the element at a rank.
func (m *indexed) at(rank int) Element {
	at, i := m.tree.findRank(rank)
	b := at.leaf()
	return Element{m.index.arena.string(b.refs[i]), b.scores[i]}
}

// below returns the number of elements that order before (score, member).
func (m *indexed) below(score float64, member string) int {
	to := m.locate(score, member)
	return m.tree.countBefore(to.leafPos) + to.i
}

// put implements Set.put.
//
// It searches the new position in the tree before the member in the index. The two
// searches are independent chains of cache misses. In this order (the one without
// unpredictable branches first) the processor overlaps them, which saves a tenth of
// the time of an addition to a million elements.
func (m *indexed) put(member string, score float64, cond Cond, incr bool) (o Outcome, old, now float64) {
	var have entryPos
	var to elementPos
	if o = cond.judgeNew(score); o == Added {
		if !incr {
			to = m.locate(score, member)
		}
		var added bool
		if have, added = m.index.getOrAdd(member, score); added {
			if incr {
				to = m.locate(score, member)
			}
			m.version++
			m.insert(to, score, *have.ref())
			m.compact()
			return o, 0, score
		}
	} else {
		h := m.index.hash(member)
		if have = m.index.find(member, h); !have.ok() {
			return o, 0, 0
		}
		have = m.index.writable(have, h)
	}
	old = *have.score()
	if incr {
		score += old
	}
	if o = cond.judge(old, score); o != Updated {
		return o, old, old
	}
	*have.score() = score
	m.version++
	if to.leaf == nil {
		to = m.locate(score, member)
	}
	m.update(member, *have.ref(), old, score, to)
	return o, old, score
}

// elementPos is the position of an element, or the position at which an element is
// to be inserted.
type elementPos struct {
	leafPos
	leaf *leaf
	i    int // index in the leaf
}

// locate returns the position of (score, member).
func (m *indexed) locate(score float64, member string) elementPos {
	at, b := m.tree.leafFor(score, member)
	return elementPos{at, b, b.search(&m.index.arena, score, member)}
}

// locateRef returns the position of an existing element. It compares members only
// if several elements have this score.
func (m *indexed) locateRef(score float64, member string, ref uint32) elementPos {
	at, b := m.tree.leafFor(score, member)
	i := lowerBound(b.scores, score)
	if i == b.len() || b.refs[i] != ref {
		i = b.search(&m.index.arena, score, member)
	}
	return elementPos{at, b, i}
}

// update moves an element from its old score to a new score, which belongs at to.
func (m *indexed) update(member string, ref uint32, old, score float64, to elementPos) {
	from := m.locateRef(old, member, ref)
	b := m.writableTree().writableLeaf(&from.leafPos)
	if to.same(from.leafPos) {
		b.move(from.i, to.i, score)
		return
	}
	if m.removeInLeaf(from.leafPos, from.i, 1) {
		to = m.locate(score, member)
	}
	m.insert(to, score, ref)
}

// insert inserts a new element at its position. It splits a full leaf.
func (m *indexed) insert(to elementPos, score float64, ref uint32) {
	o := m.writableTree()
	b, i := o.writableLeaf(&to.leafPos), to.i
	if b.len() == leafMax {
		m.split(to, score, ref)
		return
	}
	b.insert(i, score, ref)
	o.updateSize(to.leafPos)
}

// split splits a full leaf and inserts an element. Additions at either end of a set
// tend to be sequential, such as timestamps. A split at an end therefore leaves a
// full leaf and starts a new one; elsewhere it makes two halves.
func (m *indexed) split(to elementPos, score float64, ref uint32) {
	o, a := m.tree, &m.index.arena
	b, i := to.leafPos.leaf(), to.i
	right, end := (*leaf)(nil), false
	switch {
	case i == leafMax && to.same(o.last()):
		right = newLeaf(m.owner, 16)
		right.insert(0, score, ref)
		end = true
	case i == 0 && to.same(o.first()):
		right = b.copyOf(m.owner, 0, leafMax, leafMax)
		b.setElements(newLeaf(m.owner, 16))
		b.insert(0, score, ref)
		end = true
	default:
		const half = leafMax / 2
		right = b.copyOf(m.owner, half, leafMax, capacityFor(half+1))
		b.setElements(b.copyOf(m.owner, 0, half, capacityFor(half+1)))
	}
	last := b.len() - 1
	nextScore, next := separatorBetween(b.scores[last], a.string(b.refs[last]), right.scores[0], a.string(right.refs[0]))
	o.updateSize(to.leafPos)
	o.insertLeaf(to.leafPos, nextScore, next, right)
	if !end {
		m.insert(m.locate(score, a.string(ref)), score, ref)
	}
}

// removeInLeaf removes n elements of a leaf, from index i on, from the tree. It reports
// whether leaves were merged or removed, which invalidates positions.
func (m *indexed) removeInLeaf(at leafPos, i, n int) (joined bool) {
	o := m.writableTree()
	b := o.writableLeaf(&at)
	b.removeRange(i, i+n)
	o.updateSize(at)
	return b.len() < leafLow && m.rebalance(at)
}

// rebalance removes an empty leaf, or merges a sparse leaf with a neighbour in its
// node. It reports whether it did either.
func (m *indexed) rebalance(at leafPos) bool {
	o := m.tree
	g := at.node
	n := int(g.sizes[at.index])
	switch {
	case n == 0:
		o.removeLeaf(at)
	case at.index+1 < len(g.leaves) && n+int(g.sizes[at.index+1]) <= leafMergedMax:
		m.mergeRight(at)
	case at.index > 0 && n+int(g.sizes[at.index-1]) <= leafMergedMax:
		at.index--
		m.mergeRight(at)
	default:
		return false
	}
	return true
}

// mergeRight moves the elements of the right neighbour, in the same node, into a
// leaf.
func (m *indexed) mergeRight(at leafPos) {
	o := m.tree
	b := o.writableLeaf(&at)
	right := leafPos{at.node, at.index + 1}
	from := right.leaf()
	grown := b.copyOf(m.owner, 0, b.len(), capacityFor(b.len()+from.len()))
	grown.scores = append(grown.scores, from.scores...)
	grown.refs = append(grown.refs, from.refs...)
	b.setElements(grown)
	o.updateSize(at)
	o.removeLeaf(right)
}

// remove removes a member, which must not be the only one.
func (m *indexed) remove(member string) (score float64, ok bool) {
	h := m.index.hash(member)
	have := m.index.find(member, h)
	if !have.ok() {
		return 0, false
	}
	score, ref := *have.score(), *have.ref()
	m.version++
	m.index.remove(have, h)
	if m.deadlines != nil {
		m.dropDeadline(member)
	}
	from := m.locateRef(score, member, ref)
	m.removeInLeaf(from.leafPos, from.i, 1)
	m.index.arena.remove(m.owner, ref, len(member))
	m.compact()
	return score, true
}

// removeRange removes the elements at ranks [lo, hi), which must not be all.
func (m *indexed) removeRange(lo, hi int) {
	m.version++
	front := lo == 0
	popped := front || hi == m.index.n
	at, i := m.writableTree().findRank(lo)
	n := hi - lo
	if n > m.index.n/manyShare {
		m.dropMany(lo, hi)
	} else {
		m.dropSpan(at, i, n)
	}
	if i+n <= at.leaf().len() {
		m.removeInLeaf(at, i, n)
	} else {
		m.removeLeaves(at, i, lo, hi)
	}
	m.compact()
	if popped {
		m.prefetchNextPops(n, front)
	}
}

// removeLeaves removes the elements at ranks [lo, hi), which begin at index i of a
// leaf and end in another, from the tree. It merges leaves.
func (m *indexed) removeLeaves(at leafPos, i, lo, hi int) {
	o := m.tree
	for left := hi - lo; left > 0; {
		n := min(left, at.leaf().len()-i)
		left -= n
		if n == at.leaf().len() {
			o.removeLeaf(at)
		} else {
			m.removeInLeaf(at, i, n)
		}
		at, i = o.findRank(min(lo, m.index.n+left-1)) // the position after the removed elements
	}
	// The leaves on both sides of the removed range may be sparse.
	for range 2 {
		if b := at.leaf(); b.len() < leafLow {
			m.rebalance(at)
		}
		at, _ = o.findRank(max(lo-1, 0))
	}
}

// prefetchMin is the number of elements from which prefetch is worthwhile: the
// structures of smaller sets are in the cache anyway.
const prefetchMin = 10_000

// prefetchNextPops notes that n elements were removed from one end. Such removals
// tend to repeat, so it prefetches the next elements at that end, one batch at a
// time.
func (m *indexed) prefetchNextPops(n int, front bool) {
	if m.prefetched -= n; m.prefetched >= 0 || m.index.n < prefetchMin {
		return
	}
	o := m.tree
	if front {
		refs := o.first().leaf().refs
		m.prefetched = min(batch, len(refs))
		m.prefetch(refs[:m.prefetched], nil)
	} else {
		refs := o.last().leaf().refs
		m.prefetched = min(batch, len(refs))
		m.prefetch(refs[len(refs)-m.prefetched:], nil)
	}
}

// prefetch loads up to batch members and their index entries into the processor's
// cache, and stores the member hashes in hashes if that is not nil. The path from
// reference to member to entry is two dependent cache misses in a large set;
// prefetch overlaps the misses of the batch. At a million elements a pop takes 1.2
// µs without prefetch and 0.8 µs with it; a pop in a batch of a hundred takes 0.48
// µs and 0.31 µs.
func (m *indexed) prefetch(refs []uint32, hashes *[batch]uint64) {
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
		read += uint64(p.group(p.home(uint16(h) | 1)).overflow)
	}
	m.sink = read // keeps the compiler from removing the reads
}

// dropSpan removes the members of n elements, from index i of a leaf on, from the index, the
// deadlines and the arena, in batches that overlap their cache misses.
func (m *indexed) dropSpan(at leafPos, i, n int) {
	a := &m.index.arena
	for b := at.leaf(); ; i = 0 {
		refs := b.refs[i:min(i+n, b.len())]
		for some := range slices.Chunk(refs, batch) {
			var hashes [batch]uint64
			m.prefetch(some, &hashes)
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
		if n -= len(refs); n == 0 {
			return
		}
		at, b = m.tree.next(at)
	}
}

// manyShare is the share of the elements, one in 16, from which on a removal reads all pages
// of the index instead of looking up each removed member.
const manyShare = 16

// dropMany is dropSpan for the elements at ranks [lo, hi), a large share of all.
func (m *indexed) dropMany(lo, hi int) {
	if m.deadlines != nil {
		m.ascend(lo, hi, func(member string, _ float64) bool {
			m.dropDeadline(member)
			return m.deadlines != nil
		})
	}
	m.index.removeSpan(m.at(lo), m.at(hi-1))
}

// compact continues to move live records out of sparse chunks of the arena, and
// updates their references. It overlaps the cache misses of a batch: of the references in the
// index, then of the scores, then of the leaves.
func (m *indexed) compact() {
	t := &m.index
	if t.arena.compactDebt < compactStep {
		return
	}
	if t.arena.compactDebt > t.arena.liveBytes && t.arena.wasteful() && len(t.arena.chunks) <= wideFrom/2 {
		m.compactAll()
		return
	}
	var refs [batch]uint32
	for {
		n := t.arena.nextSparse(m.owner, &refs)
		if n == 0 {
			return
		}
		var hashes [batch]uint64
		m.prefetch(refs[:n], &hashes)
		var found [batch]*float64
		live := 0
		for i, ref := range refs[:n] {
			if have := t.findRef(ref, hashes[i]); have.ok() {
				refs[live], hashes[live], found[live] = ref, hashes[i], have.score()
				live++
			}
		}
		var scores [batch]float64
		for i, score := range found[:live] {
			scores[i] = *score
		}
		var places [batch]elementPos
		m.locateRefs(refs[:live], scores[:live], &places)
		for i, ref := range refs[:live] {
			member := t.arena.string(ref)
			have := t.writable(t.findRef(ref, hashes[i]), hashes[i])
			*have.ref() = t.arena.add(m.owner, member)
			at := &places[i&(batch-1)]
			m.writableTree().writableLeaf(&at.leafPos).refs[at.i] = *have.ref()
			t.arena.moved(ref, len(member))
		}
	}
}

// compactAll moves the live records out of all sparse chunks, in the order of the set. It
// passes over the leaves once instead of looking up the position of each element. The sparse chunks
// keep their numbers meanwhile, so at most half of those below wideFrom may be in use before.
func (m *indexed) compactAll() {
	t, o := &m.index, m.writableTree()
	a := &t.arena
	a.makeWritable(m.owner)
	var refs [batch]uint32
	var slots [batch]int // of refs in the leaf
	at := o.first()
	for b := at.leaf(); b != nil; at, b = o.next(at) {
		for i := 0; i < b.len(); {
			n := 0
			for ; n < batch && i < b.len(); i++ {
				if ref := b.refs[i]; a.chunks[ref>>refBits].sparse {
					refs[n], slots[n] = ref, i
					n++
				}
			}
			if n == 0 {
				break
			}
			var hashes [batch]uint64
			m.prefetch(refs[:n], &hashes)
			b = o.writableLeaf(&at)
			for j, ref := range refs[:n] {
				member := a.string(ref)
				have := t.writable(t.findRef(ref, hashes[j]), hashes[j])
				*have.ref() = a.add(m.owner, member)
				b.refs[slots[j]] = *have.ref()
				a.moved(ref, len(member))
			}
		}
	}
	a.freeSparse()
}

// locateRefs stores the positions of up to batch elements in to, as locateRef returns them. It
// overlaps the cache misses of the paths to the leaves, then those of the scores that the searches
// compare first, and then the rest.
func (m *indexed) locateRefs(refs []uint32, scores []float64, to *[batch]elementPos) {
	a := &m.index.arena
	for i, ref := range refs {
		at, b := m.tree.leafFor(scores[i], a.string(ref))
		to[i&(batch-1)] = elementPos{at, b, 0}
	}
	read := 0.0
	for i := range refs {
		b := to[i&(batch-1)].leaf.scores
		read += b[len(b)/4] + b[len(b)/2] + b[len(b)*3/4]
	}
	m.sink = uint64(read) // keeps the compiler from removing the reads
	for i := range refs {
		at := &to[i&(batch-1)]
		at.i = lowerBound(at.leaf.scores, scores[i])
	}
	for i, ref := range refs {
		if at := &to[i&(batch-1)]; at.leaf.refs[at.i] != ref {
			at.i = at.leaf.search(a, scores[i], a.string(ref))
		}
	}
}

// batch is the number of members that are processed together to overlap their cache
// misses.
const batch = Batch

// ascend yields the elements at ranks [lo, hi) in ascending order. It panics at the
// end of a batch if the set was changed: a check after each element takes 5 % of the
// time of an iteration.
func (m *indexed) ascend(lo, hi int, yield func(string, float64) bool) {
	if lo >= hi {
		return
	}
	was := m.version
	var members [batch]string
	at, i := m.tree.findRank(lo)
	b := at.leaf()
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
			if m.version != was {
				panicChanged()
			}
			i += n
		}
		if lo == hi {
			return
		}
		at, b = m.tree.next(at)
		i = 0
	}
}

// descend yields the elements at ranks [lo, hi) in descending order. It panics as
// ascend does.
func (m *indexed) descend(lo, hi int, yield func(string, float64) bool) {
	if lo >= hi {
		return
	}
	was := m.version
	var members [batch]string
	at, i := m.tree.findRank(hi - 1)
	b := at.leaf()
	for {
		begin := max(i+1-(hi-lo), 0)
		hi -= i + 1 - begin
		for i >= begin {
			n := min(batch, i+1-begin)
			m.index.arena.strings(b.refs[i+1-n:i+1], &members)
			scores := b.scores[i+1-n : i+1]
			for j := n - 1; j >= 0; j-- {
				if !yield(members[j&(batch-1)], scores[j]) {
					return
				}
			}
			if m.version != was {
				panicChanged()
			}
			i -= n
		}
		if lo == hi {
			return
		}
		at, b = m.tree.previous(at)
		i = b.len() - 1
	}
}

// bytes estimates the memory of the set in bytes, without the arena.
func (m *indexed) bytes() int {
	const perLeaf = int(unsafe.Sizeof(leaf{})) + (8+8+1)*5/4 // with the leaf's share of its node
	const perNode = int(unsafe.Sizeof(node{})+unsafe.Sizeof(entry{})*3/2) + 2*16 + 4 + 8
	return int(unsafe.Sizeof(*m)+unsafe.Sizeof(*m.tree)) + m.index.Bytes() + 12*m.index.n*9/8 +
		m.tree.leaves*perLeaf + m.tree.root.len()*perNode
}
