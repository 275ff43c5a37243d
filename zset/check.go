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
	switch m := s.indexed; {
	case s.packed == nil && m == nil:
		return nil
	case s.packed == nil:
		return m.check()
	case m != nil && (m.deadlines == nil || m.index.Len() > 0 || m.tree != nil):
		return fmt.Errorf("the set is both packed and indexed")
	}
	return s.packed.check()
}

func (f *packed) check() error {
	n, size := int(f.n), f.bytes()
	if n == 0 || n > packedMax || n > int(f.capacity) || f.free() < 0 || int(f.start) > size {
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
	if live != int(f.liveBytes) {
		return fmt.Errorf("packed: %d live member bytes, counted %d", live, f.liveBytes)
	}
	return nil
}

func (m *indexed) check() error {
	if err := m.index.check(); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	o := m.tree
	n, leaves := 0, 0
	for k, g := range o.nodes {
		if l := len(g.leaves); l == 0 || l > nodeMax || len(g.sizes) != l || !g.separators.valid(l) {
			return fmt.Errorf("node %d has %d leaves and %d sizes", k, l, len(g.sizes))
		}
		if g.separators.scores[0] != o.separators.scores[k] || g.separators.members[0] != o.separators.members[k] {
			return fmt.Errorf("the first separator of node %d differs from the separator in the root", k)
		}
		in := 0
		for i, b := range g.leaves {
			at := leafPos{k, i}
			if int(g.sizes[i]) != b.len() || o.countBefore(at) != n {
				return fmt.Errorf("leaf %v has %d elements after %d, counted %d after %d", at, b.len(), n, g.sizes[i], o.countBefore(at))
			}
			if err := m.checkLeaf(at, b); err != nil {
				return fmt.Errorf("leaf %v: %w", at, err)
			}
			n += b.len()
			in += b.len()
			leaves++
		}
		if in != g.n {
			return fmt.Errorf("%d elements in node %d, counted %d", in, k, g.n)
		}
	}
	switch {
	case !o.separators.valid(len(o.nodes)) || len(o.prefixSums) != len(o.nodes):
		return fmt.Errorf("%d nodes, %d prefix sums", len(o.nodes), len(o.prefixSums))
	case o.separators.scores[0] != math.Inf(-1) || o.separators.members[0] != "":
		return fmt.Errorf("the first separator is %v %q", o.separators.scores[0], o.separators.members[0])
	case n != m.index.Len() || n == 0 || leaves != o.leaves:
		return fmt.Errorf("%d elements, %d in the index; %d leaves, counted %d", n, m.index.Len(), leaves, o.leaves)
	}
	return nil
}

// valid reports whether there are n separators in strictly ascending order.
func (f *separators) valid(n int) bool {
	if len(f.scores) != n || len(f.members) != n {
		return false
	}
	for i := 1; i < n; i++ {
		if !less(f.scores[i-1], f.members[i-1], f.scores[i], f.members[i]) {
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
			return fmt.Errorf("%v %q is found at %v, %d, not at %d", score, member, found.leafPos, found.i, i)
		}
		if have := m.index.find(member, m.index.hash(member)); !have.ok() || *have.ref() != ref || *have.score() != score {
			return fmt.Errorf("%v %q differs in the index", score, member)
		}
	}
	return nil
}
