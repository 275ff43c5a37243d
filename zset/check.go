package zset

import (
	"fmt"
	"math"
)

// Check verifies the invariants of the set and returns an error if one is violated.
// For tests. O(n log n).
func (s *Set) Check() error {
	if err := s.checkDeadlines(); err != nil {
		return err
	}
	if x := s.extended(); x != nil && x.indexed == nil && x.observer == nil {
		return fmt.Errorf("the set is extended without need")
	}
	f, _ := s.packed()
	switch m := s.indexed(); {
	case f == nil && m == nil:
		return nil
	case f == nil:
		return m.check()
	case m != nil && (m.deadlines == nil || m.index.Len() > 0 || m.tree != nil):
		return fmt.Errorf("the set is both packed and indexed")
	}
	return f.check()
}

func (f *packed) check() error {
	n, size := int(f.n), f.bytes()
	if n > packedMax || n > int(f.capacity) || f.free() < 0 || int(f.start) > size {
		return fmt.Errorf("packed: %d elements, capacity %d, %d bytes, members start at %d", n, f.capacity, size, f.start)
	}
	live, taken := 0, make([]bool, size)
	for i := range n {
		e, offset := f.element(i), int(f.offsets()[i])
		if math.IsNaN(e.Score) || i > 0 && compare(f.element(i-1), e) >= 0 {
			return fmt.Errorf("packed: element %d, %v, is out of order", i, e)
		}
		if len(e.Member) > packedMemberMax {
			return fmt.Errorf("packed: a member of %d bytes", len(e.Member))
		}
		if rank := f.find(e.Member, tagOf(e.Member)); rank != i {
			return fmt.Errorf("packed: find returns %[2]d for %[1]q, want %[3]d", e.Member, rank, i)
		}
		for at := size - offset - len(e.Member); at <= size-offset; at++ {
			if at < int(f.start) || taken[at] {
				return fmt.Errorf("packed: the member of element %d, %v, overlaps another or lies outside the member area", i, e)
			}
			taken[at] = true
		}
		live += len(e.Member) + 1
	}
	for end := size; end > int(f.start); {
		length := f.buffer()[end-1]
		if dead := length&packedDead != 0; dead == taken[end-1] {
			return fmt.Errorf("packed: the member that ends at byte %d is removed: %v", end-1, dead)
		}
		if end -= 1 + int(length&^packedDead); end < int(f.start) {
			return fmt.Errorf("packed: a member begins before byte %d", f.start)
		}
	}
	if live != f.liveBytes() {
		return fmt.Errorf("packed: %d live member bytes, counted %d", live, f.liveBytes())
	}
	return nil
}

func (m *indexed) check() error {
	if err := m.index.check(); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	o := m.tree
	n, leaves := 0, 0
	d := &o.root
	if err := d.check(); err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	for k := range d.len() {
		g := d.at(k)
		if l := len(g.leaves); l == 0 || l > nodeMax || len(g.sizes) != l || !g.separators.valid(l) {
			return fmt.Errorf("node %d has %d leaves and %d sizes", k, l, len(g.sizes))
		}
		for i, sum := range g.sums {
			lo, hi := min(i*sumSpan, len(g.sizes)), min((i+1)*sumSpan, len(g.sizes))
			if sumSizes(g.sizes[lo:hi]) != int(sum) {
				return fmt.Errorf("node %d has sum %d from leaf %d on", k, sum, lo)
			}
		}
		for i, b := range g.leaves {
			at := leafPos{g, i}
			if int(g.sizes[i]) != b.len() || o.countBefore(at) != n {
				return fmt.Errorf("leaf %d of node %d has %d elements after %d, counted %d after %d", i, k, b.len(), n, g.sizes[i], o.countBefore(at))
			}
			if err := m.checkLeaf(at, b); err != nil {
				return fmt.Errorf("leaf %d of node %d: %w", i, k, err)
			}
			n += b.len()
			leaves++
		}
	}
	if n != m.index.Len() || n == 0 || leaves != o.leaves {
		return fmt.Errorf("%d elements, %d in the index; %d leaves, counted %d", n, m.index.Len(), leaves, o.leaves)
	}
	return nil
}

// check verifies the B-trees, the ordinals and the counts.
func (d *root) check() error {
	if d.nodes == nil {
		if score, member := d.only.separators.at(0); score != math.Inf(-1) || member != "" || d.byScore != nil || d.ordinals != nil || d.prefixSums != nil {
			return fmt.Errorf("the only separator is %v %q; %d ordinals, %d prefix sums", score, member, len(d.ordinals), len(d.prefixSums))
		}
		return nil
	}
	items := d.nodes.Items()
	if len(items) == 0 || len(items) != d.nodes.Len() || len(items) != len(d.prefixSums) || d.only != nil {
		return fmt.Errorf("%d items of %d, %d prefix sums", len(items), d.nodes.Len(), len(d.prefixSums))
	}
	n, scores := 0, 0
	for k, e := range items {
		score, member := e.node.separators.at(0)
		switch {
		case k == 0 && (e.score != math.Inf(-1) || e.member != ""):
			return fmt.Errorf("the first separator is %v %q", e.score, e.member)
		case k > 0 && !entryLess(items[k-1], e):
			return fmt.Errorf("item %d, %v %q, is out of order", k, e.score, e.member)
		case score != e.score || member != e.member:
			return fmt.Errorf("the first separator of node %d differs from the separator in the root", k)
		case d.ordinal(e.node) != k:
			return fmt.Errorf("node %d has ordinal %d", k, d.ordinal(e.node))
		case d.countBefore(e.node) != n:
			return fmt.Errorf("node %d has %d elements before it, counted %d", k, n, d.countBefore(e.node))
		}
		if member == "" {
			if g, _ := d.byScore.Get(score); g != e.node {
				return fmt.Errorf("node %d differs by score", k)
			}
			scores++
		}
		n += e.node.count()
	}
	if scores != d.byScore.Len() {
		return fmt.Errorf("%d nodes by score, want %d", d.byScore.Len(), scores)
	}
	unused := 0
	for _, k := range d.ordinals {
		if k < 0 {
			unused++
		}
	}
	if len(d.ordinals)-unused != len(items) {
		return fmt.Errorf("%d slots, %d unused, for %d nodes", len(d.ordinals), unused, len(items))
	}
	return nil
}

// valid reports whether there are n separators in strictly ascending order.
func (f *separators) valid(n int) bool {
	if len(f.scores) != n || f.members != nil && len(f.members) != n {
		return false
	}
	for i := 1; i < n; i++ {
		score, member := f.at(i)
		if before, beforeMember := f.at(i - 1); !less(before, beforeMember, score, member) {
			return false
		}
	}
	return true
}

// checkLeaf verifies the order of a leaf, and that each of its elements is found in
// the tree and in the index.
func (m *indexed) checkLeaf(at leafPos, b *leaf) error {
	if b.len() == 0 || b.len() > leafMax || len(b.refs) != b.len() {
		return fmt.Errorf("%d scores, %d references", b.len(), len(b.refs))
	}
	a := &m.index.arena
	for i, score := range b.scores {
		ref := b.refs[i]
		member := a.string(ref)
		if i > 0 && !less(b.scores[i-1], a.string(b.refs[i-1]), score, member) {
			return fmt.Errorf("%v %q is out of order", score, member)
		}
		if found := m.locate(score, member); found.leafPos != at || found.i != i {
			return fmt.Errorf("%v %q is found at %d, %d, %d, not at %d, %d, %d", score, member, m.tree.root.ordinal(found.node), found.index, found.i, m.tree.root.ordinal(at.node), at.index, i)
		}
		if have := m.index.find(member, m.index.hash(member)); !have.ok() || *have.ref() != ref || *have.score() != score {
			return fmt.Errorf("%v %q differs in the index", score, member)
		}
	}
	return nil
}
