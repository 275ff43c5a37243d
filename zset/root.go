package zset

import (
	"math/bits"
	"slices"

	"github.com/tidwall/btree"
)

// The root of a tree is a directory of its nodes in order, in two B-trees of
// github.com/tidwall/btree, with the prefix sums of their element counts beside them.
//
//	nodes         │ (-∞, ""), node │ (s1, ""), node │ (s2, "m"), node │ …    BTreeG
//	byScore       │ -∞, node       │ s1, node       │ …                      Map
//	                     │                │                  │
//	node.slot            0                2                  1
//
//	ordinals      │ 0 │ 2 │ 1 │ …                          by slot
//	prefixSums    │ Fenwick tree of the counts             by ordinal
//
// The BTreeG has all nodes by separator, and returns the node with an ordinal (its
// position in the order). The Map has the nodes whose separators are scores alone, and
// finds them with half of the instructions: it compares scores inline, where BTreeG
// calls a function for each comparison. find uses it unless a separator has a member:
// a node splits between two leaves with different scores if there are such near its
// middle.
//
// The counts are in arrays, because a B-tree finds an item by key or by ordinal, but
// does not return the ordinal of a key. A node keeps its slot as long as it is in the
// tree; ordinals maps the slot to the ordinal. If items contained their ordinals, each
// new node would rewrite the items of all nodes after it, with a search for each.
//
// A lookup takes O(log n) for n nodes, and so does a change of a count. Insertion and
// removal of a node take O(n) on the two arrays, which have 12 bytes for each node: at
// 100 million elements there are about 3 000 nodes, and one in 15 000 additions inserts
// one.
//
// A set with up to 40 000 elements or so has one node, and no B-tree.
//
// The B-trees are copy-on-write by themselves, once clone has copied their headers; the
// arrays are copied by makeWritable. The Fenwick tree is from Fenwick, "A New Data
// Structure for Cumulative Frequency Tables" (1994).
type root struct {
	only       *node // the node, if there was never another; else nil
	nodes      *btree.BTreeG[entry]
	byScore    *btree.Map[float64, *node]
	ordinals   []int32 // by slot; -1: the slot is unused
	prefixSums []int   // by ordinal
}

// entry is an item of the B-tree of all nodes: a node with its separator, a lower
// bound of all its elements.
type entry struct {
	score  float64
	member string
	node   *node
}

func entryLess(a, b entry) bool { return less(a.score, a.member, b.score, b.member) }

// degree is the minimum number of children of an inner node of the B-trees. The nodes
// of up to 30 million elements fit into one array, in which an ordinal is an index. A
// path hint of the library allows 128, but hints, and DeleteAt, are not used.
const degree = 512

// newRoot returns a root of at least one node.
func newRoot(nodes []*node) root {
	d := root{only: nodes[0]}
	if len(nodes) > 1 {
		d.grow()
		for k, g := range nodes[1:] {
			g.slot = int32(k + 1)
			d.ordinals = append(d.ordinals, g.slot)
			d.prefixSums = append(d.prefixSums, g.count())
			d.put(g)
		}
		fenwick(d.prefixSums, 0)
	}
	return d
}

// grow makes the B-trees, of the only node.
func (d *root) grow() {
	d.nodes = btree.NewBTreeGOptions(entryLess, btree.Options{Degree: degree, NoLocks: true})
	d.byScore = btree.NewMap[float64, *node](degree)
	d.put(d.only)
	d.ordinals, d.prefixSums = []int32{0}, []int{d.only.count()}
	d.only = nil
}

// clone returns a copy, of which the arrays must not be written before makeWritable.
// It counts as a write of the original.
func (d *root) clone() root {
	c := *d
	if d.nodes != nil {
		c.nodes, c.byScore = d.nodes.Copy(), d.byScore.Copy()
	}
	return c
}

// makeWritable copies the arrays, which a clone shares.
func (d *root) makeWritable() {
	d.ordinals, d.prefixSums = slices.Clone(d.ordinals), slices.Clone(d.prefixSums)
}

// put adds a node to the B-trees, or puts a copy of a node, with the same slot and
// separator, in its place.
func (d *root) put(g *node) {
	if d.nodes == nil {
		d.only = g
		return
	}
	score, member := g.separators.at(0)
	d.nodes.Set(entry{score, member, g})
	if member == "" {
		d.byScore.Set(score, g)
	}
}

// drop removes a node from the B-trees.
func (d *root) drop(g *node) {
	score, member := g.separators.at(0)
	d.nodes.Delete(entry{score: score, member: member})
	if member == "" {
		d.byScore.Delete(score)
	}
}

// len returns the number of nodes.
func (d *root) len() int {
	if d.nodes == nil {
		return 1
	}
	return d.nodes.Len()
}

// find returns the last node whose separator does not order after (score, member).
func (d *root) find(score float64, member string) (g *node) {
	switch {
	case d.nodes == nil:
		return d.only
	case d.byScore.Len() == d.nodes.Len():
		d.byScore.Descend(score, func(_ float64, last *node) bool {
			g = last
			return false
		})
	default:
		d.nodes.Descend(entry{score, member, nil}, func(last entry) bool {
			g = last.node
			return false
		})
	}
	return g
}

// at returns the node with an ordinal.
func (d *root) at(ordinal int) *node {
	if d.nodes == nil {
		return d.only
	}
	e, _ := d.nodes.GetAt(ordinal)
	return e.node
}

// ordinal returns the ordinal of a node.
func (d *root) ordinal(g *node) int {
	if d.nodes == nil {
		return 0
	}
	return int(d.ordinals[g.slot])
}

// split inserts a node after the node left, from which it has its elements.
func (d *root) split(left, right *node) {
	n := right.count()
	if d.nodes == nil {
		d.grow() // counts only the elements that left still has
		d.prefixSums[0] += n
	}
	k := d.ordinal(left)
	d.shift(k+1, 1)
	free := len(d.ordinals)
	if free > d.nodes.Len() {
		free = slices.Index(d.ordinals, -1)
	} else {
		d.ordinals = append(d.ordinals, 0)
	}
	right.slot = int32(free)
	d.ordinals[free] = int32(k + 1)
	d.put(right)

	unfenwick(d.prefixSums, k)
	d.prefixSums[k] -= n
	d.prefixSums = slices.Insert(d.prefixSums, k+1, n)
	fenwick(d.prefixSums, k)
}

// remove removes a node that has no elements; its elements may have moved to the node
// into, if that is not nil. If the node is the first, the next one becomes the first:
// the caller copies that, and calls setFirst.
func (d *root) remove(g, into *node) {
	k := d.ordinal(g)
	from := k
	if into != nil {
		from = min(k, d.ordinal(into))
	}
	unfenwick(d.prefixSums, from)
	if into != nil {
		d.prefixSums[d.ordinal(into)] += d.prefixSums[k]
	}
	d.prefixSums = slices.Delete(d.prefixSums, k, k+1)
	fenwick(d.prefixSums, from)
	d.drop(g)
	d.ordinals[g.slot] = -1
	d.shift(k+1, -1)
}

// shift adds delta to the ordinals from k on, without branches: the order of slots is
// random.
func (d *root) shift(k, delta int) {
	for slot, ordinal := range d.ordinals {
		d.ordinals[slot] += int32(delta) & ((int32(k) - 1 - ordinal) >> 31) // all bits if k-1 < ordinal
	}
}

// setFirst makes the separator of the first node, which must be writable, (-Inf, "").
func (d *root) setFirst(g *node) {
	d.drop(g)
	g.separators.setFirst()
	d.put(g)
}

// add adds delta to the element count of a node. O(log n) for n nodes.
func (d *root) add(g *node, delta int) {
	if d.nodes == nil {
		return
	}
	for i := int(d.ordinals[g.slot]) + 1; i <= len(d.prefixSums); i += i & -i {
		d.prefixSums[i-1] += delta
	}
}

// countBefore returns the number of elements in all nodes before one. O(log n) for n
// nodes.
func (d *root) countBefore(g *node) int {
	n := 0
	for i := d.ordinal(g); i > 0; i &= i - 1 {
		n += d.prefixSums[i-1]
	}
	return n
}

// findRank returns the node with the element at a rank, and the rank of the element
// in the node. O(log n) for n nodes.
func (d *root) findRank(rank int) (g *node, rest int) {
	if d.nodes == nil {
		return d.only, rank
	}
	k := 0
	for step := 1 << (bits.Len(uint(len(d.prefixSums))) - 1); step > 0; step >>= 1 {
		if k+step <= len(d.prefixSums) && d.prefixSums[k+step-1] <= rank {
			k += step
			rank -= d.prefixSums[k-1]
		}
	}
	return d.at(k), rank
}

// fenwick replaces the counts from index k on by prefix sums. The sums before k must be
// a Fenwick tree. O(n).
func fenwick(sums []int, k int) {
	for i := k; i > 0; i &= i - 1 {
		addToParent(sums, i, sums[i-1])
	}
	for i := k + 1; i <= len(sums); i++ {
		addToParent(sums, i, sums[i-1])
	}
}

// unfenwick undoes fenwick: it replaces the prefix sums from index k on by the counts.
func unfenwick(sums []int, k int) {
	for i := len(sums); i > k; i-- {
		addToParent(sums, i, -sums[i-1])
	}
	for i := k; i > 0; i &= i - 1 {
		addToParent(sums, i, -sums[i-1])
	}
}

// addToParent adds delta to the sum that includes sum i, where the first sum has
// number 1.
func addToParent(sums []int, i, delta int) {
	if parent := i + i&-i; parent <= len(sums) {
		sums[parent-1] += delta
	}
}
