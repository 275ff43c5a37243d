package zset

import (
	"math"
	"math/bits"
	"slices"
)

// The blocks of a set are in groups of up to 128, and the groups in one array: what
// is looked for is bisected three times, in arrays of scores that lie close together,
// and the numbers of elements in blocks and groups give ranks on the same way.
//
// An order is a tree of three levels, then, where the widths of two are fixed. At a
// million elements there are 120 groups; at 100 million an array of 12 000, into
// which one is inserted once in 4 000 insertions of elements.
type order struct {
	owner  *token
	fences fences
	groups []*group
	sums   []int // of elements: a binary indexed tree (Fenwick 1994), by group
	n      int   // blocks
}

type group struct {
	owner  *token // groups of other owners are shared: copied before a write
	fences fences // the first is that of the group
	blocks []*block
	sizes  []uint8 // elements of each block
	n      int     // in all blocks
}

const (
	groupMax  = 128
	groupLow  = 24 // with fewer blocks a group looks for one to join
	groupHigh = 96 // what joined groups may hold, and loaded ones do
)

// fences say where blocks, or groups of them, begin: no element of a block is below
// its (score, member), and all elements of the blocks before are. The first begins
// at (-Inf, ""), so every element belongs to some block. The member is "" unless the
// element before has the same score.
type fences struct {
	scores  []float64
	members []string
}

// fence returns one that stands between two elements.
func fence(score float64, member string, nextScore float64, next string) (float64, string) {
	if score < nextScore {
		return nextScore, ""
	}
	n := 0
	for n < len(member) && member[n] == next[n] {
		n++
	}
	return nextScore, string([]byte(next[:n+1])) // a copy: what it is taken from may go
}

// last returns the last fence that is not above (score, member).
func (f *fences) last(score float64, member string) int {
	lo := below(f.scores, score)
	if lo == len(f.scores) || f.scores[lo] != score {
		return lo - 1
	}
	hi := len(f.scores)
	for lo < hi {
		h := int(uint(lo+hi) >> 1)
		if f.scores[h] == score && f.members[h] <= member {
			lo = h + 1
		} else {
			hi = h
		}
	}
	return lo - 1
}

func (f *fences) insert(i int, score float64, member string) {
	f.scores = slices.Insert(f.scores, i, score)
	f.members = slices.Insert(f.members, i, member)
}

func (f *fences) remove(i int) {
	f.scores = slices.Delete(f.scores, i, i+1)
	f.members = slices.Delete(f.members, i, i+1)
}

func (f *fences) clone() fences {
	return fences{slices.Clone(f.scores), slices.Clone(f.members)}
}

// cut leaves the first i fences and returns the others.
func (f *fences) cut(i int) fences {
	rest := fences{slices.Clone(f.scores[i:]), slices.Clone(f.members[i:])}
	clear(f.members[i:])
	f.scores, f.members = f.scores[:i], f.members[:i]
	return rest
}

// seat is where a block is: in which group, and where there.
type seat struct{ g, i int }

// seat returns the block where (score, member) is or belongs.
func (o *order) seat(score float64, member string) (at seat, b *block) {
	if len(o.groups) > 1 {
		at.g = o.fences.last(score, member)
	}
	g := o.groups[at.g]
	at.i = g.fences.last(score, member)
	return at, g.blocks[at.i]
}

func (o *order) block(at seat) *block { return o.groups[at.g].blocks[at.i] }

// before counts the elements before a block.
func (o *order) before(at seat) int {
	n := 0
	for i := at.g; i > 0; i &= i - 1 {
		n += o.sums[i-1]
	}
	for _, size := range o.groups[at.g].sizes[:at.i] {
		n += int(size)
	}
	return n
}

// find returns the block that has the element of a rank, and its place in the block.
func (o *order) find(rank int) (at seat, i int) {
	for step := 1 << (bits.Len(uint(len(o.sums))) - 1); step > 0; step >>= 1 {
		if at.g+step < len(o.sums)+1 && o.sums[at.g+step-1] <= rank {
			at.g += step
			rank -= o.sums[at.g-1]
		}
	}
	for _, size := range o.groups[at.g].sizes {
		if rank < int(size) {
			break
		}
		rank -= int(size)
		at.i++
	}
	return at, rank
}

// next returns the block behind another, or nil.
func (o *order) next(at seat) (seat, *block) {
	if at.i++; at.i == len(o.groups[at.g].blocks) {
		if at.g, at.i = at.g+1, 0; at.g == len(o.groups) {
			return at, nil
		}
	}
	return at, o.block(at)
}

// previous returns the block before another, or nil.
func (o *order) previous(at seat) (seat, *block) {
	if at.i == 0 {
		if at.g == 0 {
			return at, nil
		}
		at.g--
		at.i = len(o.groups[at.g].blocks)
	}
	at.i--
	return at, o.block(at)
}

// own makes a group writable, in an order that is.
func (o *order) own(g int) *group {
	at := o.groups[g]
	if at.owner != o.owner {
		at = &group{o.owner, at.fences.clone(), slices.Clone(at.blocks), slices.Clone(at.sizes), at.n}
		o.groups[g] = at
	}
	return at
}

// ownBlock makes a block writable, and everything that leads to it.
func (o *order) ownBlock(at seat) *block {
	g := o.own(at.g)
	b := g.blocks[at.i]
	if b.owner != o.owner {
		b = b.copyOf(o.owner, 0, b.len(), room(b.len()))
		g.blocks[at.i] = b
	}
	return b
}

// resized notes that a block, which is writable, has another number of elements.
func (o *order) resized(at seat) {
	g := o.groups[at.g]
	delta := g.blocks[at.i].len() - int(g.sizes[at.i])
	g.sizes[at.i] += uint8(delta)
	o.add(at.g, delta)
}

// add notes that a group has delta elements more.
func (o *order) add(g, delta int) {
	o.groups[g].n += delta
	for i := g + 1; i <= len(o.sums); i += i & -i {
		o.sums[i-1] += delta
	}
}

// sum makes the sums anew.
func (o *order) sum() {
	o.sums = o.sums[:0]
	for _, g := range o.groups {
		o.sums = append(o.sums, g.n)
	}
	for i := 1; i <= len(o.sums); i++ {
		if j := i + i&-i; j <= len(o.sums) {
			o.sums[j-1] += o.sums[i-1]
		}
	}
}

// end returns where the last block is.
func (o *order) end() seat {
	g := len(o.groups) - 1
	return seat{g, len(o.groups[g].blocks) - 1}
}

// insert puts a block behind that at a seat.
func (o *order) insert(at seat, score float64, member string, b *block) {
	at.i++
	g := o.own(at.g)
	if len(g.blocks) == groupMax {
		// As blocks, groups at the end stay full.
		half := groupMax / 2
		if at.g == len(o.groups)-1 && at.i == groupMax {
			half = groupMax - 1
		}
		right := &group{owner: o.owner, fences: g.fences.cut(half)}
		right.blocks = slices.Clone(g.blocks[half:])
		right.sizes = slices.Clone(g.sizes[half:])
		clear(g.blocks[half:])
		g.blocks, g.sizes = g.blocks[:half], g.sizes[:half]
		for _, size := range right.sizes {
			right.n += int(size)
		}
		g.n -= right.n
		o.fences.insert(at.g+1, right.fences.scores[0], right.fences.members[0])
		o.groups = slices.Insert(o.groups, at.g+1, right)
		o.sum()
		if at.i > half {
			at = seat{at.g + 1, at.i - half}
			g = right
		}
	}
	g.fences.insert(at.i, score, member)
	g.blocks = slices.Insert(g.blocks, at.i, b)
	g.sizes = slices.Insert(g.sizes, at.i, 0)
	o.n++
	o.resized(at)
}

// remove removes a block. What was between it and the one before belongs to that one
// from now on, or, if it was the first of its group, to the next there. It must not
// be the only one.
func (o *order) remove(at seat) {
	g := o.own(at.g)
	o.n--
	if len(g.blocks) == 1 {
		o.groups = slices.Delete(o.groups, at.g, at.g+1)
		o.fences.remove(at.g)
		if at.g == 0 {
			first := o.own(0)
			o.fences.scores[0], o.fences.members[0] = math.Inf(-1), ""
			first.fences.scores[0], first.fences.members[0] = math.Inf(-1), ""
		}
		o.sum()
		return
	}
	if at.i == 0 {
		g.fences.remove(1)
	} else {
		g.fences.remove(at.i)
	}
	size := int(g.sizes[at.i])
	g.blocks = slices.Delete(g.blocks, at.i, at.i+1)
	g.sizes = slices.Delete(g.sizes, at.i, at.i+1)
	o.add(at.g, -size)
	if len(g.blocks) < groupLow {
		o.join(at.g)
	}
}

// join makes one group of a sparse one and a neighbour, if they fit into one.
func (o *order) join(k int) {
	n := len(o.groups[k].blocks)
	if k+1 == len(o.groups) || n+len(o.groups[k+1].blocks) > groupHigh {
		if k--; k < 0 || n+len(o.groups[k].blocks) > groupHigh {
			return
		}
	}
	left, right := o.own(k), o.groups[k+1]
	left.fences.scores = append(left.fences.scores, right.fences.scores...)
	left.fences.members = append(left.fences.members, right.fences.members...)
	left.blocks = append(left.blocks, right.blocks...)
	left.sizes = append(left.sizes, right.sizes...)
	left.n += right.n
	o.groups = slices.Delete(o.groups, k+1, k+2)
	o.fences.remove(k + 1)
	o.sum()
}

// load makes an order of blocks that are not empty, as from one yields them: with
// what belongs between them and the ones before.
func (o *order) load(blocks []*block, fences fences) {
	o.n = len(blocks)
	n := (len(blocks) + groupHigh - 1) / groupHigh
	for k := range n {
		lo, hi := k*len(blocks)/n, (k+1)*len(blocks)/n
		g := &group{owner: o.owner, blocks: slices.Clone(blocks[lo:hi])}
		g.fences.scores = slices.Clone(fences.scores[lo:hi])
		g.fences.members = slices.Clone(fences.members[lo:hi])
		for _, b := range g.blocks {
			g.sizes = append(g.sizes, uint8(b.len()))
			g.n += b.len()
		}
		o.groups = append(o.groups, g)
		o.fences.scores = append(o.fences.scores, fences.scores[lo])
		o.fences.members = append(o.fences.members, fences.members[lo])
	}
	o.sum()
}
