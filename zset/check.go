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
	case m != nil && (m.deadlines == nil || m.index.Len() > 0 || m.order != nil):
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
	if err := m.index.check(); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	o := m.order
	n, blocks := 0, 0
	for k, g := range o.groups {
		if l := len(g.blocks); l == 0 || l > groupMax || len(g.sizes) != l || !g.fences.valid(l) {
			return fmt.Errorf("group %d of %d blocks, %d sizes", k, l, len(g.sizes))
		}
		if g.fences.scores[0] != o.fences.scores[k] || g.fences.members[0] != o.fences.members[k] {
			return fmt.Errorf("group %d begins elsewhere than its first block", k)
		}
		in := 0
		for i, b := range g.blocks {
			at := seat{k, i}
			if int(g.sizes[i]) != b.len() || o.before(at) != n {
				return fmt.Errorf("block %v of %d after %d, counted %d after %d", at, b.len(), n, g.sizes[i], o.before(at))
			}
			if err := m.checkBlock(at, b); err != nil {
				return fmt.Errorf("block %v: %w", at, err)
			}
			n += b.len()
			in += b.len()
			blocks++
		}
		if in != g.n {
			return fmt.Errorf("%d elements in group %d, counted %d", in, k, g.n)
		}
	}
	switch {
	case !o.fences.valid(len(o.groups)) || len(o.sums) != len(o.groups):
		return fmt.Errorf("%d groups, %d sums", len(o.groups), len(o.sums))
	case o.fences.scores[0] != math.Inf(-1) || o.fences.members[0] != "":
		return fmt.Errorf("the first fence is %v %q", o.fences.scores[0], o.fences.members[0])
	case n != m.index.Len() || n == 0 || blocks != o.n:
		return fmt.Errorf("%d elements, %d in the index; %d blocks, counted %d", n, m.index.Len(), blocks, o.n)
	}
	return nil
}

// valid reports whether there are n fences, in order.
func (f *fences) valid(n int) bool {
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

// checkBlock checks a block and each of its elements.
func (m *many) checkBlock(at seat, b *block) error {
	if b.len() == 0 || b.len() > blockMax || len(b.refs) != b.len() {
		return fmt.Errorf("%d scores, %d references", b.len(), len(b.refs))
	}
	a := &m.index.arena
	for i, score := range b.scores {
		ref := b.refs[i]
		member := a.string(ref)
		if i > 0 && !less(b.scores[i-1], a.string(b.refs[i-1]), score, member) {
			return fmt.Errorf("%v %q is out of order", score, member)
		}
		if found := m.locate(score, member); found.seat != at || found.i != i {
			return fmt.Errorf("%v %q is found at %v, %d, not at %d", score, member, found.seat, found.i, i)
		}
		if have := m.index.find(member, m.index.hash(member)); !have.ok() || *have.ref() != ref || *have.score() != score {
			return fmt.Errorf("%v %q is not so in the index", score, member)
		}
	}
	return nil
}
