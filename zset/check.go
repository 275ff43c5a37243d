package zset

import (
	"fmt"
	"math"
)

// Check returns an error if the set is not what its code relies on. For tests. O(n log n).
func (s *Set) Check() error {
	if err := s.checkDeadlines(); err != nil {
		return err
	}
	switch m := s.many; {
	case s.few == nil && m == nil:
		return nil
	case s.few == nil:
		return m.check()
	case m != nil && (m.deadlines == nil || m.index.Len() > 0 || m.sole != nil || m.tree != nil):
		return fmt.Errorf("both a few and many")
	}
	return s.few.check()
}

func (f *few) check() error {
	n, size := int(f.n), f.bytes()
	if n == 0 || n > fewMax || n > int(f.room) || f.free() < 0 || int(f.low) > size {
		return fmt.Errorf("a few of %d with room for %d: %d bytes, members begin at %d", n, f.room, size, f.low)
	}
	live, taken := 0, make([]bool, size)
	for i := range n {
		e, offset := f.element(i), int(f.offsets()[i])
		if math.IsNaN(e.Score) || i > 0 && compare(f.element(i-1), e) >= 0 {
			return fmt.Errorf("element %d of a few, %v, is out of order", i, e)
		}
		if len(e.Member) > fewMemberMax {
			return fmt.Errorf("member of %d bytes in a few", len(e.Member))
		}
		if rank := f.find(e.Member, tagOf(e.Member)); rank != i {
			return fmt.Errorf("%q of a few is at %d and %d", e.Member, rank, i)
		}
		for at := size - offset - len(e.Member); at <= size-offset; at++ {
			if at < int(f.low) || taken[at] {
				return fmt.Errorf("element %d of a few, %v, is where another is, or none should be", i, e)
			}
			taken[at] = true
		}
		live += len(e.Member) + 1
	}
	if live != int(f.live) {
		return fmt.Errorf("the members of a few take %d bytes, and not %d", live, f.live)
	}
	return nil
}

func (m *many) check() error {
	if err := m.index.Check(); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	if m.tree == nil {
		if m.sole == nil || m.ranks != nil {
			return fmt.Errorf("neither a block nor a tree, or ranks without a tree")
		}
		if n := m.sole.len(); n != m.index.Len() || n == 0 {
			return fmt.Errorf("%d elements, %d in the index", n, m.index.Len())
		}
		return m.checkBlock(fence{math.Inf(-1), "", m.sole}, nil)
	}
	if m.sole != nil || m.tree.Len() < 2 || len(m.ranks.sizes) != m.tree.Len() ||
		len(m.ranks.ord) != len(m.ranks.sizes)+len(m.ranks.free) {
		return fmt.Errorf("%d blocks in the tree, %d in ranks, of %d ids %d free",
			m.tree.Len(), len(m.ranks.sizes), len(m.ranks.ord), len(m.ranks.free))
	}
	n, ids := 0, map[int32]bool{}
	for ord := range m.tree.Len() {
		f := m.nth(ord)
		if ord == 0 && (f.score != math.Inf(-1) || f.member != "") {
			return fmt.Errorf("the first fence is %v %q", f.score, f.member)
		}
		switch id := f.block.id; {
		case ids[id]:
			return fmt.Errorf("two blocks of id %d", id)
		case m.ord(f.block) != ord || int(m.ranks.sizes[ord]) != f.block.len() || m.ranks.before(ord) != n:
			return fmt.Errorf("block %d of %d after %d is ranked as block %d of %d after %d", ord, f.block.len(), n,
				m.ord(f.block), m.ranks.sizes[ord], m.ranks.before(ord))
		}
		ids[f.block.id] = true
		var end *fence
		if ord+1 < m.tree.Len() {
			after := m.nth(ord + 1)
			end = &after
		}
		if err := m.checkBlock(f, end); err != nil {
			return fmt.Errorf("block %d: %w", ord, err)
		}
		n += f.block.len()
	}
	for _, id := range m.ranks.free {
		if ids[id] {
			return fmt.Errorf("block id %d is in use, and free", id)
		}
		ids[id] = true
	}
	if n != m.index.Len() || len(ids) != len(m.ranks.ord) {
		return fmt.Errorf("%d elements, %d in the index; %d ids of %d known", n, m.index.Len(), len(ids), len(m.ranks.ord))
	}
	return nil
}

// checkBlock checks a block that may go up to the fence end, if there is one.
func (m *many) checkBlock(f fence, end *fence) error {
	b := f.block
	if b.len() == 0 || b.len() > blockMax || len(b.members) != b.len() {
		return fmt.Errorf("%d scores, %d members", b.len(), len(b.members))
	}
	for i, score := range b.scores {
		member := b.members[i]
		if i > 0 && !less(b.scores[i-1], b.members[i-1], score, member) {
			return fmt.Errorf("%v %q is out of order", score, member)
		}
		if less(score, member, f.score, f.member) || end != nil && !less(score, member, end.score, end.member) {
			return fmt.Errorf("%v %q is outside its fence", score, member)
		}
		if indexed, ok := m.index.Get(member); !ok || indexed != score {
			return fmt.Errorf("%v %q has score %v in the index, %v", score, member, indexed, ok)
		}
	}
	return nil
}
