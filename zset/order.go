package zset

import (
	"encoding/binary"
	"math"
	"slices"
)

// The order of the elements of an indexed set is a counted B+ tree: a root of nodes
// (root.go), nodes of up to 512 leaves, leaves of up to 128 elements (leaf.go).
//
//	root        separators │ -∞ │ s1 │ s2 │ …      B-tree of nodes; prefix sums of their counts
//	                          │    │    │
//	nodes       separators │ -∞ │ s… │ … │         sizes of leaves, sums of 64 sizes
//	                          │    │
//	leaves      scores │ 1 │ 2 │ 2 │ … │  refs │ … │
//
// Separator i of a node, with its (score, member), is a lower bound of leaf i and
// an upper bound of all leaves before it. The scores of the separators of a node lie
// in one array, so a lookup is a search in the B-tree of the root and two binary
// searches in contiguous memory. The prefix sums in the root, and the sums and sizes
// in a node, give the rank on the same path. B-tree and separators are those of Bayer
// and Unterauer, "Prefix B-Trees" (1977), which keep only as much of a key as
// distinguishes two leaves.
//
// Nodes are large because the search in a node has no unpredictable branch, and each
// comparison in the B-tree has one: a million elements have about 25 nodes. A new leaf
// moves up to 9 KB of its node, once in some 50 additions.
//
// Nodes and leaves are copy-on-write: a tree writes only to those with its own
// owner token.
//
// Invariants (indexed.check, root.check): the first separator is (-Inf, "");
// separators are in strictly ascending order; the first separator of a node equals
// that of its item in the root; nodes and leaves are not empty and not larger than
// nodeMax and leafMax; sizes, sums, leaves and prefix sums agree with the elements;
// byScore has the nodes whose separator has no member; ordinals has the ordinal of
// each node at its slot, and -1 in other slots; elements are in strictly ascending
// order; locate finds each element at its position.
type tree struct {
	owner  *token
	root   root
	leaves int // number of leaves
}

type node struct {
	owner      *token     // a node with another owner is shared: copied before a write
	separators separators // the first is the separator of the node in the root
	leaves     []*leaf
	sizes      []uint8                   // number of elements of each leaf
	sums       [nodeMax / sumSpan]uint16 // number of elements of each sumSpan leaves
	slot       int32                     // see root
}

const (
	nodeMax  = 512
	nodeLow  = 96  // a node with fewer leaves merges with a neighbour if possible
	nodeFill = 384 // maximum size of merged nodes, and size of bulk-loaded ones
	sumSpan  = 64  // leaves of a sum in a node
	// splitSlack is the maximum number of leaves between the best position for a
	// split of a node and a position with a separator without a member.
	splitSlack = (nodeMax - nodeFill) / 2
)

// separators are lower bounds of leaves, or of nodes: no element of a leaf orders
// before its separator, and all elements of the leaves to the left do. The first
// separator is (-Inf, ""), so every element has a leaf. The member is "" unless the
// element to the left had the same score when the separator was made.
type separators struct {
	scores  []float64
	members []string // nil if all are ""
}

// at returns separator i.
func (f *separators) at(i int) (score float64, member string) {
	if f.members != nil {
		member = f.members[i]
	}
	return f.scores[i], member
}

// scoreNear returns the index nearest to i, and at most splitSlack from it, of a
// separator without a member. If there is none, it returns i.
func (f *separators) scoreNear(i int) int {
	if f.members == nil {
		return i
	}
	for d := range splitSlack + 1 {
		if i-d > 0 && f.members[i-d] == "" {
			return i - d
		}
		if i+d < len(f.members) && f.members[i+d] == "" {
			return i + d
		}
	}
	return i
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
	if f.members == nil {
		return lo
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
	if member != "" && f.members == nil {
		f.members = make([]string, len(f.scores), cap(f.scores))
	}
	f.scores = slices.Insert(f.scores, i, score)
	if f.members != nil {
		f.members = slices.Insert(f.members, i, member)
	}
}

func (f *separators) remove(i int) {
	f.scores = slices.Delete(f.scores, i, i+1)
	if f.members != nil {
		f.members = slices.Delete(f.members, i, i+1)
	}
}

// setFirst makes the first separator (-Inf, "").
func (f *separators) setFirst() {
	f.scores[0] = math.Inf(-1)
	if f.members != nil {
		f.members[0] = ""
	}
}

// append appends the separators from.
func (f *separators) append(from separators) {
	if f.members == nil && from.members != nil {
		f.members = make([]string, len(f.scores))
	}
	f.scores = append(f.scores, from.scores...)
	if from.members != nil {
		f.members = append(f.members, from.members...)
	} else if f.members != nil {
		f.members = append(f.members, make([]string, len(from.scores))...)
	}
}

// copyOf returns a copy of separators [lo, hi).
func (f *separators) copyOf(lo, hi int) separators {
	c := separators{scores: slices.Clone(f.scores[lo:hi])}
	if f.members != nil && slices.ContainsFunc(f.members[lo:hi], func(m string) bool { return m != "" }) {
		c.members = slices.Clone(f.members[lo:hi])
	}
	return c
}

// splitAt truncates the separators to the first i and returns the others.
func (f *separators) splitAt(i int) separators {
	rest := f.copyOf(i, len(f.scores))
	f.scores = f.scores[:i]
	if f.members != nil {
		clear(f.members[i:])
		f.members = f.members[:i]
	}
	return rest
}

// leafPos is the position of a leaf: its node, and its index in the node. It is valid
// until nodes or leaves are added or removed; but if the node was copied since, only
// writableNode and writableLeaf may use it.
type leafPos struct {
	node  *node
	index int
}

func (at leafPos) leaf() *leaf { return at.node.leaves[at.index] }

// same reports whether two positions are those of the same leaf. Copies of a node
// have the same slot.
func (at leafPos) same(to leafPos) bool { return at.index == to.index && at.node.slot == to.node.slot }

// leafFor returns the leaf that contains (score, member), or would.
func (o *tree) leafFor(score float64, member string) (at leafPos, b *leaf) {
	at.node = o.root.find(score, member)
	at.index = at.node.separators.last(score, member)
	return at, at.leaf()
}

// clone returns a copy. Both trees need a new owner before the next write.
func (o *tree) clone() *tree { return &tree{o.owner, o.root.clone(), o.leaves} }

// Sums of leaf sizes add eight bytes at a time, in four lanes of 16 bits.
const (
	evenBytes = 0x00ff00ff00ff00ff
	allLanes  = 0x0001000100010001
)

// sumSizes returns the sum of the sizes of up to sumSpan leaves.
func sumSizes(sizes []uint8) int {
	if len(sizes) < 8 {
		n := 0
		for _, size := range sizes {
			n += int(size)
		}
		return n
	}
	rest := binary.LittleEndian.Uint64(sizes[len(sizes)-8:]) >> (64 - len(sizes)&7*8)
	lanes := rest&evenBytes + rest>>8&evenBytes
	for ; len(sizes) >= 8; sizes = sizes[8:] {
		x := binary.LittleEndian.Uint64(sizes)
		lanes += x&evenBytes + x>>8&evenBytes
	}
	return int(lanes * allLanes >> 48)
}

// count returns the number of elements of the node.
func (g *node) count() int {
	n := 0
	for _, sum := range g.sums {
		n += int(sum)
	}
	return n
}

// updateSums recomputes the sums from that of leaf i on.
func (g *node) updateSums(i int) {
	for k := i / sumSpan; k < len(g.sums); k++ {
		lo := min(k*sumSpan, len(g.sizes))
		g.sums[k] = uint16(sumSizes(g.sizes[lo:min(lo+sumSpan, len(g.sizes))]))
	}
}

// countBefore returns the number of elements in all leaves before a leaf. O(log n).
func (o *tree) countBefore(at leafPos) int {
	g, k := at.node, at.index/sumSpan
	n := o.root.countBefore(g)
	for i := range g.sums { // all, without an unpredictable branch
		if i < k {
			n += int(g.sums[i])
		}
	}
	return n + sumSizes(g.sizes[k*sumSpan:at.index])
}

// findRank returns the leaf with the element at a rank, and the element's index in
// the leaf. O(log n).
func (o *tree) findRank(rank int) (at leafPos, i int) {
	if rank == 0 {
		return o.first(), 0
	}
	at.node, rank = o.root.findRank(rank)
	for k := 0; k < len(at.node.sums)-1 && rank >= int(at.node.sums[k]); k++ {
		rank -= int(at.node.sums[k])
		at.index += sumSpan
	}
	sizes := at.node.sizes[at.index:]
	for ; len(sizes) > 8; sizes = sizes[8:] {
		x := binary.LittleEndian.Uint64(sizes)
		n := int((x&evenBytes + x>>8&evenBytes) * allLanes >> 48)
		if rank < n {
			break
		}
		rank -= n
		at.index += 8
	}
	for _, size := range sizes {
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
	if at.index++; at.index == len(at.node.leaves) {
		k := o.root.ordinal(at.node) + 1
		if k == o.root.len() {
			return at, nil
		}
		at = leafPos{o.root.at(k), 0}
	}
	return at, at.leaf()
}

// previous returns the leaf before at, or nil.
func (o *tree) previous(at leafPos) (leafPos, *leaf) {
	if at.index == 0 {
		k := o.root.ordinal(at.node)
		if k == 0 {
			return at, nil
		}
		at.node = o.root.at(k - 1)
		at.index = len(at.node.leaves)
	}
	at.index--
	return at, at.leaf()
}

// first returns the position of the first leaf.
func (o *tree) first() leafPos { return leafPos{o.root.at(0), 0} }

// last returns the position of the last leaf.
func (o *tree) last() leafPos {
	g := o.root.at(o.root.len() - 1)
	return leafPos{g, len(g.leaves) - 1}
}

// writableNode returns the node of a position for writing, and updates the position:
// it copies a shared node. The tree itself must be writable.
func (o *tree) writableNode(at *leafPos) *node {
	if at.node.owner != o.owner {
		g := o.root.at(o.root.ordinal(at.node)) // the node may have been copied since
		if g.owner != o.owner {
			g = &node{o.owner, g.separators.copyOf(0, len(g.leaves)), slices.Clone(g.leaves), slices.Clone(g.sizes), g.sums, g.slot}
			o.root.put(g)
		}
		at.node = g
	}
	return at.node
}

// writableLeaf returns the leaf of a position for writing, and updates the position:
// it copies the leaf and its node if they are shared.
func (o *tree) writableLeaf(at *leafPos) *leaf {
	g := o.writableNode(at)
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
	g := at.node
	delta := g.leaves[at.index].len() - int(g.sizes[at.index])
	g.sizes[at.index] += uint8(delta)
	g.sums[at.index/sumSpan] += uint16(delta)
	o.root.add(g, delta)
}

// insertLeaf inserts a leaf, with its separator, after the leaf at a position. It
// splits a full node.
func (o *tree) insertLeaf(at leafPos, score float64, member string, b *leaf) {
	g := o.writableNode(&at)
	at.index++
	if len(g.leaves) == nodeMax {
		// A split at the end of the set leaves a full node on the left: appends
		// then fill all nodes.
		half := nodeMax / 2
		if at.index == nodeMax && o.root.ordinal(g) == o.root.len()-1 {
			half = nodeMax - 1
		}
		half = g.separators.scoreNear(half)
		right := &node{owner: o.owner, separators: g.separators.splitAt(half)}
		right.leaves = slices.Clone(g.leaves[half:])
		right.sizes = slices.Clone(g.sizes[half:])
		clear(g.leaves[half:])
		g.leaves, g.sizes = g.leaves[:half], g.sizes[:half]
		g.updateSums(0)
		right.updateSums(0)
		o.root.split(g, right)
		if at.index > half {
			at = leafPos{right, at.index - half}
			g = right
		}
	}
	g.separators.insert(at.index, score, member)
	g.leaves = slices.Insert(g.leaves, at.index, b)
	g.sizes = slices.Insert(g.sizes, at.index, 0)
	g.updateSums(at.index)
	o.leaves++
	o.updateSize(at)
}

// removeLeaf removes a leaf, which must not be the only one. The range of the leaf
// goes to the leaf on its left or, if it is the first of its node, to the next leaf
// of the node.
func (o *tree) removeLeaf(at leafPos) {
	g := o.writableNode(&at)
	o.leaves--
	o.root.add(g, -int(g.sizes[at.index]))
	if len(g.leaves) == 1 {
		first := o.root.ordinal(g) == 0
		o.root.remove(g, nil)
		if first {
			next := o.first()
			o.root.setFirst(o.writableNode(&next))
		}
		return
	}
	g.separators.remove(max(at.index, 1))
	g.leaves = slices.Delete(g.leaves, at.index, at.index+1)
	g.sizes = slices.Delete(g.sizes, at.index, at.index+1)
	g.updateSums(at.index)
	if len(g.leaves) < nodeLow {
		o.mergeNode(at)
	}
}

// mergeNode merges a sparse node with a neighbour if the two have at most nodeFill
// leaves.
func (o *tree) mergeNode(at leafPos) {
	k, n := o.root.ordinal(at.node), len(at.node.leaves)
	fits := func(g *node) bool { return n+len(g.leaves) <= nodeFill }
	var right *node
	if k+1 < o.root.len() && fits(o.root.at(k+1)) {
		right = o.root.at(k + 1)
	} else if k > 0 && fits(o.root.at(k-1)) {
		at.node, right = o.root.at(k-1), at.node
	} else {
		return
	}
	left := o.writableNode(&at)
	left.separators.append(right.separators)
	left.leaves = append(left.leaves, right.leaves...)
	left.sizes = append(left.sizes, right.sizes...)
	left.updateSums(0)
	o.root.remove(right, left)
}

// bulkLoad builds the tree from leaves that are not empty, and their separators.
func (o *tree) bulkLoad(leaves []*leaf, seps separators) {
	o.leaves = len(leaves)
	nodes := make([]*node, (len(leaves)+nodeFill-1)/nodeFill)
	lo := 0
	for k := range nodes {
		hi := len(leaves)
		if k+1 < len(nodes) {
			hi = seps.scoreNear((k + 1) * len(leaves) / len(nodes))
		}
		g := &node{owner: o.owner, separators: seps.copyOf(lo, hi), leaves: slices.Clone(leaves[lo:hi])}
		for _, b := range g.leaves {
			g.sizes = append(g.sizes, uint8(b.len()))
		}
		g.updateSums(0)
		nodes[k] = g
		lo = hi
	}
	o.root = newRoot(nodes)
}
