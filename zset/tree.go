package zset

import (
	"math"
	"math/bits"
	"slices"
)

// A tree is a counted B+ tree of fixed height three: the root is an array of nodes,
// a node has up to 128 leaves, a leaf up to 128 elements (leaf.go).
//
//	root        separators │ -∞ │ s1 │ s2 │ …      prefixSums (Fenwick tree) of node sizes
//	                          │    │    │
//	nodes       separators │ -∞ │ s… │ … │         sizes of leaves
//	                          │    │
//	leaves      scores │ 1 │ 2 │ 2 │ … │  refs │ … │
//
// Separator i of a node, with its (score, member), is a lower bound of leaf i and
// an upper bound of all leaves before it. The scores of the separators lie in one
// array, so a lookup is three binary searches in contiguous memory. The leaf sizes
// in a node and the prefix sums of the node sizes in the root give the rank on the
// same path. The Fenwick tree is from Fenwick, "A New Data Structure for Cumulative
// Frequency Tables" (1994).
//
// The root is an array whose length is not bounded. At a million elements it has
// 120 nodes, at 100 million 12 000, and then one in 4 000 additions inserts into
// it.
//
// Nodes and leaves are copy-on-write: a tree writes only to those with its own
// owner token.
//
// Invariants (indexed.check): the first separator is (-Inf, ""); separators are in
// strictly ascending order; the first separator of a node equals its separator in
// the root; nodes and leaves are not empty and not larger than nodeMax and leafMax;
// sizes, n, leaves and prefixSums agree with the elements; elements are in strictly
// ascending order; locate finds each element at its position.
type tree struct {
	owner      *token
	separators separators
	nodes      []*node
	prefixSums []int // element counts of the nodes as a Fenwick tree
	leaves     int   // number of leaves
}

type node struct {
	owner      *token     // a node with another owner is shared: copied before a write
	separators separators // the first is the separator of the node in the root
	leaves     []*leaf
	sizes      []uint8 // number of elements of each leaf
	n          int     // number of elements in all leaves
}

const (
	nodeMax  = 128
	nodeLow  = 24 // a node with fewer leaves merges with a neighbour if possible
	nodeFill = 96 // maximum size of merged nodes, and size of bulk-loaded ones
)

// separators are lower bounds of leaves, or of nodes: no element of a leaf orders
// before its separator, and all elements of the leaves to the left do. The first
// separator is (-Inf, ""), so every element has a leaf. The member is "" unless the
// element to the left has the same score.
type separators struct {
	scores  []float64
	members []string
}

// separatorBetween returns a separator between two adjacent elements: the score of
// the second, with "" if the scores differ, else with the shortest prefix of next
// that orders after member.
func separatorBetween(score float64, member string, nextScore float64, next string) (float64, string) {
	if score < nextScore {
		return nextScore, ""
	}
	n := 0
	for n < len(member) && member[n] == next[n] {
		n++
	}
	return nextScore, string([]byte(next[:n+1])) // a copy, because the chunk of next may be freed
}

// last returns the index of the last separator that does not order after (score,
// member).
func (f *separators) last(score float64, member string) int {
	lo := lowerBound(f.scores, score)
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

func (f *separators) insert(i int, score float64, member string) {
	f.scores = slices.Insert(f.scores, i, score)
	f.members = slices.Insert(f.members, i, member)
}

func (f *separators) remove(i int) {
	f.scores = slices.Delete(f.scores, i, i+1)
	f.members = slices.Delete(f.members, i, i+1)
}

func (f *separators) clone() separators {
	return separators{slices.Clone(f.scores), slices.Clone(f.members)}
}

// splitAt truncates the separators to the first i and returns the others.
func (f *separators) splitAt(i int) separators {
	rest := separators{slices.Clone(f.scores[i:]), slices.Clone(f.members[i:])}
	clear(f.members[i:])
	f.scores, f.members = f.scores[:i], f.members[:i]
	return rest
}

// leafPos is the position of a leaf: the index of its node, and its index in the
// node.
type leafPos struct{ node, index int }

// leafFor returns the leaf that contains (score, member), or would.
func (o *tree) leafFor(score float64, member string) (at leafPos, b *leaf) {
	if len(o.nodes) > 1 {
		at.node = o.separators.last(score, member)
	}
	g := o.nodes[at.node]
	at.index = g.separators.last(score, member)
	return at, g.leaves[at.index]
}

func (o *tree) leaf(at leafPos) *leaf { return o.nodes[at.node].leaves[at.index] }

// countBefore returns the number of elements in all leaves before a leaf. O(log n).
func (o *tree) countBefore(at leafPos) int {
	n := 0
	for i := at.node; i > 0; i &= i - 1 {
		n += o.prefixSums[i-1]
	}
	for _, size := range o.nodes[at.node].sizes[:at.index] {
		n += int(size)
	}
	return n
}

// findRank returns the leaf with the element at a rank, and the element's index in
// the leaf. O(log n).
func (o *tree) findRank(rank int) (at leafPos, i int) {
	for step := 1 << (bits.Len(uint(len(o.prefixSums))) - 1); step > 0; step >>= 1 {
		if at.node+step < len(o.prefixSums)+1 && o.prefixSums[at.node+step-1] <= rank {
			at.node += step
			rank -= o.prefixSums[at.node-1]
		}
	}
	for _, size := range o.nodes[at.node].sizes {
		if rank < int(size) {
			break
		}
		rank -= int(size)
		at.index++
	}
	return at, rank
}

// next returns the leaf after at, or nil.
func (o *tree) next(at leafPos) (leafPos, *leaf) {
	if at.index++; at.index == len(o.nodes[at.node].leaves) {
		if at.node, at.index = at.node+1, 0; at.node == len(o.nodes) {
			return at, nil
		}
	}
	return at, o.leaf(at)
}

// previous returns the leaf before at, or nil.
func (o *tree) previous(at leafPos) (leafPos, *leaf) {
	if at.index == 0 {
		if at.node == 0 {
			return at, nil
		}
		at.node--
		at.index = len(o.nodes[at.node].leaves)
	}
	at.index--
	return at, o.leaf(at)
}

// writableNode returns a node for writing: it copies a shared one. The tree itself
// must be writable.
func (o *tree) writableNode(g int) *node {
	at := o.nodes[g]
	if at.owner != o.owner {
		at = &node{o.owner, at.separators.clone(), slices.Clone(at.leaves), slices.Clone(at.sizes), at.n}
		o.nodes[g] = at
	}
	return at
}

// writableLeaf returns a leaf for writing: it copies the leaf and its node if they
// are shared.
func (o *tree) writableLeaf(at leafPos) *leaf {
	g := o.writableNode(at.node)
	b := g.leaves[at.index]
	if b.owner != o.owner {
		b = b.copyOf(o.owner, 0, b.len(), capacityFor(b.len()))
		g.leaves[at.index] = b
	}
	return b
}

// updateSize updates the counts after the number of elements of a leaf changed. The
// node must be writable.
func (o *tree) updateSize(at leafPos) {
	g := o.nodes[at.node]
	delta := g.leaves[at.index].len() - int(g.sizes[at.index])
	g.sizes[at.index] += uint8(delta)
	o.addCount(at.node, delta)
}

// addCount adds delta to the element count of a node, and to the prefix sums. O(log
// n) for n nodes.
func (o *tree) addCount(g, delta int) {
	o.nodes[g].n += delta
	for i := g + 1; i <= len(o.prefixSums); i += i & -i {
		o.prefixSums[i-1] += delta
	}
}

// rebuildSums recomputes the prefix sums. O(n) for n nodes.
func (o *tree) rebuildSums() {
	o.prefixSums = o.prefixSums[:0]
	for _, g := range o.nodes {
		o.prefixSums = append(o.prefixSums, g.n)
	}
	for i := 1; i <= len(o.prefixSums); i++ {
		if j := i + i&-i; j <= len(o.prefixSums) {
			o.prefixSums[j-1] += o.prefixSums[i-1]
		}
	}
}

// last returns the position of the last leaf.
func (o *tree) last() leafPos {
	g := len(o.nodes) - 1
	return leafPos{g, len(o.nodes[g].leaves) - 1}
}

// insertLeaf inserts a leaf, with its separator, after the leaf at a position. It
// splits a full node.
func (o *tree) insertLeaf(at leafPos, score float64, member string, b *leaf) {
	at.index++
	g := o.writableNode(at.node)
	if len(g.leaves) == nodeMax {
		// A split at the end of the set leaves a full node on the left: appends
		// then fill all nodes.
		half := nodeMax / 2
		if at.node == len(o.nodes)-1 && at.index == nodeMax {
			half = nodeMax - 1
		}
		right := &node{owner: o.owner, separators: g.separators.splitAt(half)}
		right.leaves = slices.Clone(g.leaves[half:])
		right.sizes = slices.Clone(g.sizes[half:])
		clear(g.leaves[half:])
		g.leaves, g.sizes = g.leaves[:half], g.sizes[:half]
		for _, size := range right.sizes {
			right.n += int(size)
		}
		g.n -= right.n
		o.separators.insert(at.node+1, right.separators.scores[0], right.separators.members[0])
		o.nodes = slices.Insert(o.nodes, at.node+1, right)
		o.rebuildSums()
		if at.index > half {
			at = leafPos{at.node + 1, at.index - half}
			g = right
		}
	}
	g.separators.insert(at.index, score, member)
	g.leaves = slices.Insert(g.leaves, at.index, b)
	g.sizes = slices.Insert(g.sizes, at.index, 0)
	o.leaves++
	o.updateSize(at)
}

// removeLeaf removes a leaf, which must not be the only one. The range of the leaf
// goes to the leaf on its left or, if it is the first of its node, to the next leaf
// of the node.
func (o *tree) removeLeaf(at leafPos) {
	g := o.writableNode(at.node)
	o.leaves--
	if len(g.leaves) == 1 {
		o.nodes = slices.Delete(o.nodes, at.node, at.node+1)
		o.separators.remove(at.node)
		if at.node == 0 {
			first := o.writableNode(0)
			o.separators.scores[0], o.separators.members[0] = math.Inf(-1), ""
			first.separators.scores[0], first.separators.members[0] = math.Inf(-1), ""
		}
		o.rebuildSums()
		return
	}
	if at.index == 0 {
		g.separators.remove(1)
	} else {
		g.separators.remove(at.index)
	}
	size := int(g.sizes[at.index])
	g.leaves = slices.Delete(g.leaves, at.index, at.index+1)
	g.sizes = slices.Delete(g.sizes, at.index, at.index+1)
	o.addCount(at.node, -size)
	if len(g.leaves) < nodeLow {
		o.mergeNode(at.node)
	}
}

// mergeNode merges a sparse node with a neighbour if the two have at most nodeFill
// leaves.
func (o *tree) mergeNode(k int) {
	n := len(o.nodes[k].leaves)
	if k+1 == len(o.nodes) || n+len(o.nodes[k+1].leaves) > nodeFill {
		if k--; k < 0 || n+len(o.nodes[k].leaves) > nodeFill {
			return
		}
	}
	left, right := o.writableNode(k), o.nodes[k+1]
	left.separators.scores = append(left.separators.scores, right.separators.scores...)
	left.separators.members = append(left.separators.members, right.separators.members...)
	left.leaves = append(left.leaves, right.leaves...)
	left.sizes = append(left.sizes, right.sizes...)
	left.n += right.n
	o.nodes = slices.Delete(o.nodes, k+1, k+2)
	o.separators.remove(k + 1)
	o.rebuildSums()
}

// bulkLoad builds the tree from leaves that are not empty, and their separators.
func (o *tree) bulkLoad(leaves []*leaf, seps separators) {
	o.leaves = len(leaves)
	n := (len(leaves) + nodeFill - 1) / nodeFill
	for k := range n {
		lo, hi := k*len(leaves)/n, (k+1)*len(leaves)/n
		g := &node{owner: o.owner, leaves: slices.Clone(leaves[lo:hi])}
		g.separators.scores = slices.Clone(seps.scores[lo:hi])
		g.separators.members = slices.Clone(seps.members[lo:hi])
		for _, b := range g.leaves {
			g.sizes = append(g.sizes, uint8(b.len()))
			g.n += b.len()
		}
		o.nodes = append(o.nodes, g)
		o.separators.scores = append(o.separators.scores, seps.scores[lo])
		o.separators.members = append(o.separators.members, seps.members[lo])
	}
	o.rebuildSums()
}
