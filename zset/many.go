package zset

import (
	"math"

	"github.com/tidwall/btree"
	"github.com/zsetd/zsetd/zset/table"
)

// A large set is a table from member to score and blocks of up to 128 elements, which
// are the items of a B-tree; ranks numbers the blocks. A set of one block has neither
// B-tree nor ranks.
//
// The plain design, one item of the B-tree for each element, was tried first: at a
// million elements an update took 4.5 µs (two descents of 20 comparisons, most of
// them cache misses), and a rank 7 µs. Blocks make the tree 90 times smaller, so that
// it stays in the cache, cost 8 bytes of overhead for each element instead of 40 and
// are iterated at the speed of a slice.
type many struct {
	owner *token
	index table.Table[float64]
	sole  *block               // the only block, or nil
	tree  *btree.BTreeG[fence] // of two blocks and more, or nil
	ranks *ranks               // with the tree

	deadlines *Set // members by deadline, or nil
}

// fence is a block and where it begins: no element of the block is below (score,
// member), and all elements of the blocks before are. The first block begins at
// (-Inf, ""), so every element belongs to some block.
type fence struct {
	score  float64
	member string
	block  *block
}

func fenceLess(a, b fence) bool { return less(a.score, a.member, b.score, b.member) }

// fill makes the blocks for elements that are in order.
func (m *many) fill(elements []Element) {
	n := (len(elements) + blockHigh - 1) / blockHigh
	sizes := make([]int32, n)
	for i := range n {
		part := elements[i*len(elements)/n : (i+1)*len(elements)/n]
		b := newBlock(m.owner, room(len(part)))
		for _, e := range part {
			b.scores = append(b.scores, e.Score)
			b.members = append(b.members, e.Member)
		}
		if n == 1 {
			m.sole = b
			return
		}
		b.id = int32(i)
		sizes[i] = int32(len(part))
		if i == 0 {
			m.plant(b)
		} else {
			m.tree.Load(fence{part[0].Score, part[0].Member, b})
		}
	}
	m.ranks = newRanks(m.owner, sizes)
}

// plant begins the tree with its first block.
func (m *many) plant(first *block) {
	m.tree = btree.NewBTreeGOptions(fenceLess, btree.Options{NoLocks: true})
	m.tree.Set(fence{math.Inf(-1), "", first})
}

// clone returns a set with the same elements that shares everything until written to.
func (m *many) clone() *many {
	c := *m
	c.index = *m.index.Clone()
	if m.tree != nil {
		c.tree = m.tree.Copy()
	}
	if m.deadlines != nil {
		c.deadlines = m.deadlines.Clone()
	}
	m.owner, c.owner = new(token), new(token)
	return &c
}

// seat returns the block where (score, member) is or belongs.
func (m *many) seat(score float64, member string) (at fence) {
	if m.tree == nil {
		return fence{block: m.sole}
	}
	m.tree.Descend(fence{score: score, member: member}, func(f fence) bool {
		at = f
		return false
	})
	return at
}

// ord returns the number of a block.
func (m *many) ord(b *block) int {
	if m.tree == nil {
		return 0
	}
	return int(m.ranks.ord[b.id])
}

// nth returns the block of a number.
func (m *many) nth(ord int) fence {
	if m.tree == nil {
		return fence{block: m.sole}
	}
	at, _ := m.tree.GetAt(ord)
	return at
}

// find returns the block that has the element of a rank, the block's number and the
// element's place in it.
func (m *many) find(rank int) (b *block, ord, i int) {
	if m.tree == nil {
		return m.sole, 0, rank
	}
	ord, i = m.ranks.find(rank)
	return m.nth(ord).block, ord, i
}

// below counts the elements below (score, member).
func (m *many) below(score float64, member string) int {
	b := m.seat(score, member).block
	n := b.search(score, member)
	if m.tree != nil {
		n += m.ranks.before(m.ord(b))
	}
	return n
}

// ownRanks makes the ranks writable.
func (m *many) ownRanks() *ranks {
	if m.ranks.owner != m.owner {
		m.ranks = m.ranks.clone(m.owner)
	}
	return m.ranks
}

// own makes the block of a fence writable, and the ranks, which change with it.
func (m *many) own(at fence) *block {
	if m.tree != nil {
		m.ownRanks()
	}
	b := at.block
	if b.owner == m.owner {
		return b
	}
	return m.replace(at, b.copyOf(m.owner, 0, b.len(), room(b.len())))
}

// replace puts another block at a fence.
func (m *many) replace(at fence, b *block) *block {
	at.block = b
	if m.tree == nil {
		m.sole = b
	} else {
		m.tree.Set(at)
	}
	return b
}

// put is Set.put.
//
// Where the element is to go is looked up before the member. The two have nothing to
// do with each other, and each is a chain of cache misses; in this order, the one
// without unpredictable branches first, the processor works on both at once, which
// takes a tenth off an addition to a million.
func (m *many) put(member string, borrowed bool, score float64, cond Cond, incr bool) (o Outcome, old, now float64) {
	var have *float64
	var to place
	if o = cond.judgeNew(score); o == Added {
		if !incr {
			to = m.locate(score, member)
		}
		var own string
		var added bool
		if have, own, added = m.index.GetOrAdd(member, borrowed, score); added {
			if incr {
				to = m.locate(score, own)
			}
			m.insert(to, score, own)
			return o, 0, score
		}
	} else if have = m.index.Ref(member); have == nil {
		return o, 0, 0
	}
	old = *have
	if incr {
		score += old
	}
	if o = cond.judge(old, score); o != Updated {
		return o, old, old
	}
	*have = score
	if to.at.block == nil {
		to = m.locate(score, member)
	}
	m.update(member, old, score, to)
	return o, old, score
}

// place is where an element is or belongs.
type place struct {
	at fence
	i  int // in its block
}

// locate returns the place of (score, member).
func (m *many) locate(score float64, member string) place {
	at := m.seat(score, member)
	return place{at, at.block.search(score, member)}
}

// update moves an element from its old score to another, which belongs at to.
func (m *many) update(member string, old, score float64, to place) {
	from := m.locate(old, member)
	b := m.own(from.at)
	if to.at.block == from.at.block {
		b.move(from.i, to.i, score)
		return
	}
	member = b.members[from.i] // ours, which the caller's may not be
	from.at.block = b
	if m.take(from) {
		to = m.locate(score, member)
	}
	m.insert(to, score, member)
}

// insert puts a new element where it belongs.
func (m *many) insert(to place, score float64, member string) {
	b, i := m.own(to.at), to.i
	if b.len() == blockMax {
		to.at.block = b
		if b, i = m.split(to.at, i, score, member); b == nil {
			return
		}
	}
	b.insert(i, score, member)
	if m.tree != nil {
		m.ranks.add(m.ord(b), 1)
	}
}

// split makes room for an element that belongs at i in the full block of a fence. It
// returns the block and place where to put it, or no block if it has made one of it:
// at either end of a set elements tend to come in order, as times do, and blocks that
// stay full are better there than halves.
func (m *many) split(at fence, i int, score float64, member string) (*block, int) {
	b := at.block
	if m.tree == nil {
		m.plant(b)
		b.id = 0
		at, _ = m.tree.Min()
		m.sole = nil
		m.ranks = newRanks(m.owner, []int32{int32(b.len())})
	}
	ord := m.ord(b)
	if i == b.len() && ord == m.tree.Len()-1 {
		end := newBlock(m.owner, 16)
		end.insert(0, score, member)
		end.id = m.ranks.insert(ord+1, 1)
		m.tree.Set(fence{score, member, end})
		return nil, 0
	}
	if i == 0 && ord == 0 {
		begin := newBlock(m.owner, 16)
		begin.insert(0, score, member)
		begin.id = m.ranks.insert(0, 1)
		m.replace(at, begin)
		m.tree.Set(fence{b.scores[0], b.members[0], b})
		return nil, 0
	}
	const half = blockMax / 2
	right := b.copyOf(m.owner, half, blockMax, room(half+1))
	b.replace(b.copyOf(m.owner, 0, half, room(half+1)))
	m.ranks.add(ord, half-blockMax)
	right.id = m.ranks.insert(ord+1, half)
	m.tree.Set(fence{right.scores[0], right.members[0], right})
	if i > half {
		return right, i - half
	}
	return b, i
}

// take removes the element at a place, whose block must be owned. It reports whether
// that may have joined blocks.
func (m *many) take(from place) (joined bool) {
	b := from.at.block
	b.cut(from.i, from.i+1)
	if m.tree == nil {
		return false
	}
	m.ranks.add(m.ord(b), -1)
	if b.len() >= blockLow {
		return false
	}
	m.join(from.at)
	return true
}

// join removes the block of a fence if it is empty, or if it and a neighbour fit into
// one block.
func (m *many) join(at fence) {
	ord := m.ord(at.block)
	if ord+1 < m.tree.Len() {
		if right := m.nth(ord + 1); at.block.len()+right.block.len() <= blockHigh || at.block.len() == 0 {
			m.merge(at, right)
			return
		}
	}
	if ord > 0 {
		if left := m.nth(ord - 1); left.block.len()+at.block.len() <= blockHigh || at.block.len() == 0 {
			m.merge(left, at)
		}
	}
}

// merge moves the elements of the block at right to that at left, its neighbour.
func (m *many) merge(left, right fence) {
	b, from := m.own(left), right.block
	grown := b.copyOf(m.owner, 0, b.len(), room(b.len()+from.len()))
	grown.scores = append(grown.scores, from.scores...)
	grown.members = append(grown.members, from.members...)
	b.replace(grown)
	m.tree.Delete(right)
	m.ranks.add(m.ord(b), int32(from.len()))
	m.ranks.remove(from.id)
	m.collapse()
}

// collapse leaves the tree when one block is left.
func (m *many) collapse() {
	if m.tree.Len() == 1 {
		m.sole = m.nth(0).block
		m.tree, m.ranks = nil, nil
	}
}

// remove removes a member. It must not be the last.
func (m *many) remove(member string) (score float64, ok bool) {
	score, ok = m.index.Delete(member)
	if !ok {
		return 0, false
	}
	if m.deadlines != nil {
		m.dropDeadline(member)
	}
	from := m.locate(score, member)
	from.at.block = m.own(from.at)
	m.take(from)
	return score, true
}

// cut removes the elements of ranks lo to hi-1, which must not be all.
func (m *many) cut(lo, hi int) {
	_, begin, i := m.find(lo)
	ord, dropped := begin, false
	for left := hi - lo; left > 0; i = 0 {
		at := m.nth(ord)
		n := min(left, at.block.len()-i)
		for _, member := range at.block.members[i : i+n] {
			m.index.Delete(member)
			if m.deadlines != nil {
				m.dropDeadline(member)
			}
		}
		left -= n
		if n == at.block.len() && ord > 0 {
			m.tree.Delete(at)
			r := m.ownRanks()
			r.free = append(r.free, at.block.id)
			dropped = true
			continue
		}
		b := m.own(at)
		b.cut(i, i+n)
		if m.tree != nil {
			m.ranks.add(m.ord(b), int32(-n))
		}
		ord++
	}
	if dropped { // numbered anew once, not for each block
		m.ranks.sizes = m.ranks.sizes[:0]
		m.tree.Scan(func(f fence) bool {
			m.ranks.ord[f.block.id] = int32(len(m.ranks.sizes))
			m.ranks.sizes = append(m.ranks.sizes, int32(f.block.len()))
			return true
		})
		m.ranks.sum()
		m.collapse()
	}
	// Of the blocks left and right of the cut either may be short, or the first empty.
	for ord := begin + 1; ord >= begin && m.tree != nil; ord-- {
		if at := m.nth(ord); at.block != nil && at.block.len() < blockLow {
			m.join(at)
		}
	}
}

// ascend yields the elements of ranks lo to hi-1, lowest first.
func (m *many) ascend(lo, hi int, yield func(string, float64) bool) {
	if lo >= hi {
		return
	}
	for b, ord, i := m.find(lo); ; b, i = m.nth(ord).block, 0 {
		members := b.members[i:min(b.len(), i+hi-lo)]
		for j, score := range b.scores[i : i+len(members)] {
			if !yield(members[j], score) {
				return
			}
		}
		if lo += len(members); lo == hi {
			return
		}
		ord++
	}
}

// descend yields the elements of ranks hi-1 to lo, highest first.
func (m *many) descend(lo, hi int, yield func(string, float64) bool) {
	if lo >= hi {
		return
	}
	for b, ord, i := m.find(hi - 1); ; i = b.len() - 1 {
		for ; i >= 0; i-- {
			if !yield(b.members[i], b.scores[i]) {
				return
			}
			if hi--; lo == hi {
				return
			}
		}
		ord--
		b = m.nth(ord).block
	}
}
