package zset

import (
	"hash/maphash"
	"iter"
	"math"
	"slices"
)

// A Loader makes sets of elements that come one by one, best in the order of the set, with
// little memory beside that of the set. The zero value is ready for use. A Loader is not safe
// for concurrent use.
type Loader struct {
	staged   []stagedElement
	text     []byte // members of staged
	elements []Element
	bulk     *bulk // nil while all elements are staged
}

// stagedElement is an element whose member ends in Loader.text at end.
type stagedElement struct {
	score float64
	end   int
}

// stagedMax and stagedBytes limit the staged elements. Of a set that is staged as a whole
// the size is known before its memory is allocated.
const (
	stagedMax   = 4096
	stagedBytes = 256 << 10
)

// Add adds an element. It copies member. If a member comes more than once, its last score
// counts; an element with NaN as score is skipped. O(1).
func (l *Loader) Add(member []byte, score float64) {
	if math.IsNaN(score) {
		return
	}
	if l.bulk == nil && (len(l.staged) == stagedMax || len(l.text) > stagedBytes) {
		l.bulk = newBulk(leafFill, 0)
		l.flush()
	}
	if l.bulk != nil {
		l.bulk.add(view(member), score)
		return
	}
	l.text = append(l.text, member...)
	l.staged = append(l.staged, stagedElement{score, len(l.text)})
}

// flush moves the staged elements to the bulk.
func (l *Loader) flush() {
	begin := 0
	for _, e := range l.staged {
		l.bulk.add(view(l.text[begin:e.end]), e.score)
		begin = e.end
	}
}

// Set returns the set of the elements since the last call. O(n), O(n log n) if they did not
// come in the order of the set.
func (l *Loader) Set() *Set {
	s := new(Set)
	if l.bulk != nil {
		s.extend().indexed = l.bulk.finish()
	} else {
		begin := 0
		for _, e := range l.staged {
			l.elements = append(l.elements, Element{view(l.text[begin:e.end]), e.score})
			begin = e.end
		}
		s.load(l.elements)
	}
	if cap(l.text) > 2*stagedBytes {
		l.text = nil
	}
	l.staged, l.text, l.elements, l.bulk = l.staged[:0], l.text[:0], l.elements[:0], nil
	return s
}

// Load returns a set of the given elements, in any order. It copies the members and
// may modify the slice. If a member occurs more than once, its last score counts;
// elements with NaN as score are skipped. O(n) for sorted input, ascending or
// descending, else O(n log n). Several times faster than Add for each element.
func Load(elements []Element) *Set {
	s := new(Set)
	s.load(slices.DeleteFunc(elements, func(e Element) bool { return math.IsNaN(e.Score) }))
	return s
}

// load fills an empty set.
func (s *Set) load(elements []Element) {
	if len(elements) <= packedMax && !hasLongMember(elements) {
		s.setPacked(pack(sorted(distinct(elements))))
	} else {
		s.extend().indexed = newIndexed(elements)
	}
}

// newIndexed returns an indexed set of elements in any order. If a member occurs
// more than once, its last score counts.
func newIndexed(elements []Element) *indexed {
	expect := 0
	for _, e := range elements {
		expect += recordSize(len(e.Member), chunkUnit)
	}
	b := newBulk(evenFill(len(elements)), expect)
	for _, e := range elements {
		b.add(e.Member, e.Score)
	}
	return b.finish()
}

// evenFill returns the size of leaves that divides n elements evenly.
func evenFill(n int) int {
	leaves := max(1, (n+leafFill-1)/leafFill)
	return (n + leaves - 1) / leaves
}

// A bulk builds an indexed set. An element goes to its final place at once, if the elements
// come in the order of the set: the member to the arena, its reference and score to the last
// leaf. The index is built at the end, when the number of its entries is known, in one pass
// over the leaves, and then the tree above the leaves. Members that are adjacent in the set
// are adjacent in the arena.
type bulk struct {
	m        *indexed
	fill     int // size of the leaves
	leaves   []*leaf
	unsorted bool // an element does not follow the one before it
}

// newBulk returns a bulk with leaves of fill elements. expect is the size of the records of
// all members, 0 if it is not known.
func newBulk(fill, expect int) *bulk {
	m := &indexed{owner: new(token)}
	m.index.arena.expect = expect
	return &bulk{m: m, fill: fill}
}

func (b *bulk) add(member string, score float64) {
	a := &b.m.index.arena
	if l := b.last(); l != nil && !b.unsorted {
		i := l.len() - 1
		b.unsorted = !(l.scores[i] < score || l.scores[i] == score && a.string(l.refs[i]) < member)
	}
	b.append(score, a.add(b.m.owner, member))
}

// last returns the last leaf, or nil.
func (b *bulk) last() *leaf {
	if len(b.leaves) == 0 {
		return nil
	}
	return b.leaves[len(b.leaves)-1]
}

// append adds an element to the last leaf, or to a new one.
func (b *bulk) append(score float64, ref uint32) {
	l := b.last()
	if l == nil || l.len() == b.fill {
		l = newLeaf(b.m.owner, capacityFor(b.fill))
		b.leaves = append(b.leaves, l)
	}
	l.scores, l.refs = append(l.scores, score), append(l.refs, ref)
}

// finish returns the set. There must be an element.
func (b *bulk) finish() *indexed {
	m := b.m
	n := b.fill*(len(b.leaves)-1) + b.last().len()
	m.index = newIndex(m.owner, m.index.arena, n, b.hashes)
	if again := b.index(); again || b.unsorted {
		b.sort(again)
	}
	b.joinLast()
	m.tree = &tree{owner: m.owner}
	m.tree.bulkLoad(b.leaves, b.separators())
	return m
}

// hashes yields the hash of each member.
func (b *bulk) hashes(seed maphash.Seed) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, l := range b.leaves {
			for _, ref := range l.refs {
				if !yield(maphash.String(seed, b.m.index.arena.string(ref))) {
					return
				}
			}
		}
	}
}

// index adds the elements to the index, in batches that overlap their cache misses. It
// reports whether a member came again: its last score is that in the index.
func (b *bulk) index() (again bool) {
	m := b.m
	for _, l := range b.leaves {
		for lo := 0; lo < l.len(); lo += batch {
			refs := l.refs[lo:min(lo+batch, l.len())]
			var hashes [batch]uint64
			m.prefetch(refs, &hashes)
			for i, ref := range refs {
				member, h := m.index.arena.string(ref), hashes[i&(batch-1)]
				if have := m.index.find(member, h); have.ok() {
					*have.score() = l.scores[lo+i]
					m.index.arena.remove(m.owner, ref, len(member))
					again = true
					continue
				}
				m.index.insert(h, ref, l.scores[lo+i])
			}
		}
	}
	return again
}

// sort sorts the elements of the leaves, or if members came again, those of the index.
func (b *bulk) sort(again bool) {
	type element struct {
		score float64
		ref   uint32
	}
	t := &b.m.index
	elements := make([]element, 0, t.n)
	if again {
		for i := 0; i < len(t.dir.pages); {
			p := t.dir.pages[i]
			for g, k := range p.each {
				elements = append(elements, element{*p.score(g, k), p.group(g).refs[k]})
			}
			i += 1 << (t.dir.depth - p.depth)
		}
	} else {
		for _, l := range b.leaves {
			for i, ref := range l.refs {
				elements = append(elements, element{l.scores[i], ref})
			}
		}
	}
	slices.SortFunc(elements, func(x, y element) int {
		return compare(Element{t.arena.string(x.ref), x.score}, Element{t.arena.string(y.ref), y.score})
	})
	b.leaves, b.fill = nil, evenFill(len(elements))
	for _, e := range elements {
		b.append(e.score, e.ref)
	}
}

// joinLast makes the last leaf as large as the one before it if it is sparse.
func (b *bulk) joinLast() {
	k := len(b.leaves) - 1
	if k == 0 || b.leaves[k].len() >= leafLow {
		return
	}
	left, right := b.leaves[k-1], b.leaves[k]
	scores, refs := append(left.scores, right.scores...), append(left.refs, right.refs...)
	half := len(scores) / 2
	for i := range 2 {
		lo, hi := i*half, half+i*(len(scores)-half)
		l := newLeaf(b.m.owner, capacityFor(hi-lo))
		l.scores, l.refs = append(l.scores, scores[lo:hi]...), append(l.refs, refs[lo:hi]...)
		b.leaves[k-1+i] = l
	}
}

// separators returns the separators of the leaves.
func (b *bulk) separators() (f separators) {
	a := &b.m.index.arena
	for k, l := range b.leaves {
		score, member := math.Inf(-1), ""
		if k > 0 {
			before := b.leaves[k-1]
			last := before.len() - 1
			score, member = separatorBetween(before.scores[last], a.string(before.refs[last]), l.scores[0], a.string(l.refs[0]))
		}
		f.insert(k, score, member)
	}
	return f
}
