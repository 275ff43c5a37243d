package sequence

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zsetd/zsetd/server/internal/values/journal"
)

// naiveStream is a simple reference implementation of a stream.
type naiveStream struct {
	entries []naiveEntry
	last    StreamID
	deleted StreamID
	added   int64
	groups  map[string]*naiveGroup
}

type naiveEntry struct {
	id     StreamID
	fields []string
}

type naiveGroup struct {
	last      StreamID
	consumers map[string]bool
	pending   map[StreamID]naivePending
}

type naivePending struct {
	consumer    string
	time, count int64
}

func (e StreamEntry) texts() (all []string) {
	for field, value := range e.Pairs {
		all = append(all, string(field), string(value))
	}
	return all
}

func (n *naiveStream) clone() *naiveStream {
	c := *n
	c.entries = slices.Clone(n.entries)
	c.groups = map[string]*naiveGroup{}
	for name, g := range n.groups {
		h := &naiveGroup{g.last, map[string]bool{}, map[StreamID]naivePending{}}
		for c := range g.consumers {
			h.consumers[c] = true
		}
		for id, p := range g.pending {
			h.pending[id] = p
		}
		c.groups[name] = h
	}
	return &c
}

// compare compares s with n.
func (n *naiveStream) compare(s *Stream) error {
	if err := s.Check(); err != nil {
		return err
	}
	if s.Len() != len(n.entries) || s.LastID() != n.last || s.MaxDeletedID() != n.deleted || s.Added() != n.added {
		return fmt.Errorf("%d entries up to %v, deleted %v, added %d; want %d, %v, %v, %d", s.Len(), s.LastID(), s.MaxDeletedID(), s.Added(),
			len(n.entries), n.last, n.deleted, n.added)
	}
	i := 0
	for e := range s.Ascend(StreamID{}, MaxStreamID()) {
		if e.ID != n.entries[i].id || !slices.Equal(e.texts(), n.entries[i].fields) {
			return fmt.Errorf("entry %d is %v %q, want %v %q", i, e.ID, e.texts(), n.entries[i].id, n.entries[i].fields)
		}
		i++
	}
	if len(s.Groups()) != len(n.groups) {
		return fmt.Errorf("%d groups, want %d", len(s.Groups()), len(n.groups))
	}
	for _, g := range s.Groups() {
		want := n.groups[g.Name()]
		if want == nil || g.LastID() != want.last || g.Len() != len(want.pending) || len(g.Consumers()) != len(want.consumers) {
			return fmt.Errorf("group %q: last %v, %d pending, %d consumers; want %+v", g.Name(), g.LastID(), g.Len(), len(g.Consumers()), want)
		}
		for p := range g.Ascend(StreamID{}) {
			if w := want.pending[p.ID]; w != (naivePending{g.Owner(p).Name(), p.Time, p.Count}) {
				return fmt.Errorf("group %q: pending %+v with %q, want %+v", g.Name(), p, g.Owner(p).Name(), w)
			}
		}
		if g.OrderedByTime() {
			byTime := slices.SortedStableFunc(g.Ascend(StreamID{}), func(a, b Pending) int { return cmp.Compare(a.Time, b.Time) })
			if got := slices.Collect(g.ByTime); !slices.Equal(got, byTime) {
				return fmt.Errorf("group %q by time: %v, want %v", g.Name(), got, byTime)
			}
		}
		for _, c := range g.Consumers() {
			if !want.consumers[c.Name()] {
				return fmt.Errorf("group %q has a consumer %q", g.Name(), c.Name())
			}
		}
	}
	return nil
}

// streamPair is a stream with its reference.
type streamPair struct {
	s *Stream
	n *naiveStream
}

func (p streamPair) id(r *rand.Rand) StreamID {
	if len(p.n.entries) > 0 && r.IntN(4) > 0 {
		return p.n.entries[r.IntN(len(p.n.entries))].id
	}
	return StreamID{p.n.last.Ms + uint64(r.IntN(3)) - uint64(r.IntN(int(min(p.n.last.Ms, 50))+1)), uint64(r.IntN(4))}
}

// step applies a random operation to both.
func (p streamPair) step(r *rand.Rand, l StreamLimits) error {
	s, n := p.s, p.n
	names := []string{"a", "g", "", "zz"}
	name := []byte(names[r.IntN(len(names))])
	switch op := r.IntN(30); {
	case op < 12:
		for range 1 + r.IntN(20) {
			id := n.last
			if id.Seq += 1 + uint64(r.IntN(2)); r.IntN(2) == 0 {
				id = StreamID{id.Ms + uint64(r.IntN(300)), uint64(r.IntN(3))}
			}
			if !n.last.Less(id) {
				continue
			}
			var fields [][]byte
			for i := range 1 + r.IntN(3) {
				fields = append(fields, fmt.Append(nil, "field", i+r.IntN(2)*r.IntN(2)), fmt.Append(nil, r.IntN(1<<r.IntN(30))))
			}
			if r.IntN(50) == 0 {
				fields[1] = make([]byte, r.IntN(5000))
			}
			e := naiveEntry{id: id}
			for _, b := range fields {
				e.fields = append(e.fields, string(b))
			}
			s.Add(id, fields, l)
			for _, b := range fields {
				clear(b)
			}
			n.entries, n.last, n.added = append(n.entries, e), id, n.added+1
		}
	case op < 15:
		id := p.id(r)
		i := slices.IndexFunc(n.entries, func(e naiveEntry) bool { return e.id == id })
		if got := s.Delete(id); got != (i >= 0) {
			return fmt.Errorf("Delete(%v) = %v", id, got)
		}
		if i >= 0 {
			n.entries = slices.Delete(n.entries, i, i+1)
			if n.deleted.Less(id) {
				n.deleted = id
			}
		}
	case op == 15:
		t := StreamTrim{ByID: r.IntN(2) == 0, MinID: p.id(r), MaxLen: r.Int64N(int64(len(n.entries) + 2)), Approx: r.IntN(2) == 0}
		if r.IntN(4) == 0 && t.Approx {
			t.Limit = r.Int64N(30)
		}
		if t.Refs = Refs(r.IntN(6)); t.Refs > OnlyAcked {
			t.Refs = KeepRefs
		}
		if t.Refs != KeepRefs {
			return p.trimEach(t)
		}
		before := s.Len()
		got := s.Trim(t)
		if t.Approx {
			n.entries = n.entries[got:]
			if t.Limit > 0 && int64(got) > t.Limit || !t.ByID && int64(before) > t.MaxLen && int64(s.Len()) < t.MaxLen {
				return fmt.Errorf("%+v removed %d of %d", t, got, before)
			}
			break
		}
		want := max(0, len(n.entries)-int(t.MaxLen))
		if t.ByID {
			want = len(n.entries)
			if i := slices.IndexFunc(n.entries, func(e naiveEntry) bool { return !e.id.Less(t.MinID) }); i >= 0 {
				want = i
			}
		}
		if got != want {
			return fmt.Errorf("%+v removed %d, want %d", t, got, want)
		}
		n.entries = n.entries[want:]
	case op == 16 && r.IntN(4) == 0:
		n.last, n.added, n.deleted = StreamID{n.last.Ms + 1, 0}, n.added+r.Int64N(3), p.id(r)
		s.SetID(n.last, n.added, n.deleted)
	case op < 19:
		lo, hi, limit := p.id(r), p.id(r), 1+r.IntN(200)
		if r.IntN(3) == 0 {
			hi = MaxStreamID()
		}
		var want []StreamID
		for _, e := range n.entries {
			if !e.id.Less(lo) && !hi.Less(e.id) {
				want = append(want, e.id)
			}
		}
		var up, down []StreamID
		for e := range s.Ascend(lo, hi) {
			up = append(up, e.ID)
		}
		for e := range s.Descend(lo, hi) {
			down = append(down, e.ID)
		}
		slices.Reverse(down)
		if !slices.Equal(up, want) || !slices.Equal(down, want) || s.Count(lo, hi, limit) != min(limit, len(want)) {
			return fmt.Errorf("from %v to %v: %d up, %d down, %d counted up to %d, want %d", lo, hi, len(up), len(down), s.Count(lo, hi, limit), limit, len(want))
		}
		e, ok := s.Get(lo)
		found := slices.ContainsFunc(n.entries, func(e naiveEntry) bool { return e.id == lo })
		if ok != found || s.Has(lo) != found || found && e.ID != lo {
			return fmt.Errorf("Get(%v) = %v", lo, ok)
		}
	case op == 19:
		if r.IntN(2) == 0 && s.Group(name) == nil {
			last := p.id(r)
			s.AddGroup(name, last, UnknownRead)
			n.groups[string(name)] = &naiveGroup{last, map[string]bool{}, map[StreamID]naivePending{}}
		} else if r.IntN(4) == 0 {
			_, had := n.groups[string(name)]
			if delete(n.groups, string(name)); s.RemoveGroup(name) != had {
				return fmt.Errorf("RemoveGroup(%q): %v", name, had)
			}
		}
	default:
		if g := s.EditGroup(name); g != nil {
			p.group(r, g, n.groups[string(name)])
		}
	}
	return nil
}

// trimEach trims the stream and verifies the removed entries and the remaining
// references of groups.
func (p streamPair) trimEach(t StreamTrim) error {
	n := p.n
	referenced := func(id StreamID) bool {
		for _, g := range n.groups {
			if _, ok := g.pending[id]; ok || g.last.Less(id) {
				return true
			}
		}
		return false
	}
	got := p.s.Trim(t)
	var left []naiveEntry
	for _, e := range n.entries {
		switch gone := !p.s.Has(e.id); {
		case !gone:
			left = append(left, e)
		case t.ByID && !e.id.Less(t.MinID), t.Refs == OnlyAcked && referenced(e.id):
			return fmt.Errorf("%+v removed %v", t, e.id)
		case t.Refs == DropRefs:
			for _, g := range n.groups {
				delete(g.pending, e.id)
			}
		}
	}
	if got != len(n.entries)-len(left) || !t.ByID && got > 0 && int64(len(left)) < t.MaxLen {
		return fmt.Errorf("%+v removed %d, %d are left", t, got, len(left))
	}
	if whole := max(0, len(n.entries)-int(t.MaxLen)); t.Refs == DropRefs && !t.Approx && !t.ByID && got != whole {
		return fmt.Errorf("%+v removed %d, want %d", t, got, whole)
	}
	n.entries = left
	return nil
}

// group applies a random operation to a group.
func (p streamPair) group(r *rand.Rand, g *Group, n *naiveGroup) {
	names := []string{"c", "b", "", "long name", "x"}
	name := []byte(names[r.IntN(len(names))])
	c := g.Consumer(name)
	if c == nil {
		c = g.AddConsumer(name, 5)
		n.consumers[string(name)] = true
	}
	now := r.Int64N(1000)
	switch r.IntN(9) {
	case 8:
		for range g.ByTime {
			break
		}
	case 0:
		g.SetID(p.id(r), r.Int64N(10))
		n.last = g.LastID()
	case 1:
		g.RemoveConsumer(c)
		delete(n.consumers, string(name))
		for id, q := range n.pending {
			if q.consumer == string(name) {
				delete(n.pending, id)
			}
		}
	case 2, 3:
		id := p.id(r)
		g.Deliver(c, id, now, 7)
		n.pending[id] = naivePending{string(name), now, 7}
	case 4, 5:
		for p := range g.AscendOf(c, StreamID{}) {
			if r.IntN(2) == 0 && g.Acknowledge(p.ID) {
				delete(n.pending, p.ID)
				break
			}
		}
	default:
		g.ReadNext(c, 1+r.IntN(10), now, true, false, func(e StreamEntry) {
			n.last = e.ID
			n.pending[e.ID] = naivePending{string(name), now, 1}
		})
		g.RecordRead(c, now, true)
	}
}

// replay executes operations, and reports whether all are valid.
func replay(s *Stream, ops []byte) bool {
	o := journal.Operands{Rest: ops}
	for len(o.Rest) > 0 {
		op := o.Rest[0]
		o.Rest = o.Rest[1:]
		if !s.Replay(op, &o) || o.Failed {
			return false
		}
	}
	return true
}

// TestStreamModel compares streams and their clones with references, and with
// streams restored from their operations.
func TestStreamModel(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 5))
		l := StreamLimits{MaxBytes: []int{0, 200, 4096}[r.IntN(3)], MaxEntries: []int{0, 1, 5, 30}[r.IntN(4)]}
		all := []streamPair{{new(Stream), &naiveStream{groups: map[string]*naiveGroup{}}}}
		for range 400 {
			p := all[r.IntN(len(all))]
			if err := p.step(r, l); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if r.IntN(60) == 0 && len(all) < 5 {
				all = append(all, streamPair{p.s.Clone(), p.n.clone()})
			}
			if r.IntN(25) > 0 {
				continue
			}
			for i, p := range all {
				if err := p.n.compare(p.s); err != nil {
					t.Fatalf("seed %d, stream %d: %v", seed, i, err)
				}
				restored := new(Stream)
				w := journal.Writer{Yield: func(ops []byte) bool {
					if !replay(restored, ops) {
						t.Fatalf("seed %d, stream %d: not restored", seed, i)
					}
					return true
				}}
				p.s.Write(&w)
				w.Full(1)
				restored.Observe(nil)
				if err := p.n.compare(restored); err != nil {
					t.Fatalf("seed %d, stream %d, restored: %v", seed, i, err)
				}
				blocks, nodes := p.s.Blocks()
				if b, n := restored.Blocks(); b != blocks || n != nodes {
					t.Fatalf("seed %d: %d blocks, restored %d", seed, blocks, b)
				}
			}
		}
	}
}

// TestStreamTree compares the number of radix tree nodes with a tree of single
// bytes whose chains are merged.
func TestStreamTree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	l := StreamLimits{MaxEntries: 1}
	for range 300 {
		s := new(Stream)
		var keys []string
		shift := r.IntN(60)
		for range r.IntN(40) {
			id := StreamID{s.LastID().Ms + r.Uint64N(1<<shift), s.LastID().Seq + r.Uint64N(1<<r.IntN(20))}
			if s.LastID().Less(id) {
				s.Add(id, [][]byte{nil, nil}, l)
				keys = append(keys, fmt.Sprintf("%016x%016x", id.Ms, id.Seq))
			}
		}
		if _, n := s.Blocks(); n != max(1, treeNodes(keys, 0)) {
			t.Fatalf("%d nodes, want %d: %q", n, treeNodes(keys, 0), keys)
		}
	}
}

// treeNodes counts the nodes for keys, in hexadecimal, that have a common prefix of
// at bytes.
func treeNodes(keys []string, at int) int {
	if len(keys) == 0 {
		return 0
	}
	if at == 16 {
		return 1
	}
	children := map[string][]string{}
	for _, k := range keys {
		c := k[2*at : 2*at+2]
		children[c] = append(children[c], k)
	}
	sum := 1
	if len(children) > 1 {
		for _, c := range children {
			sum += treeNodes(c, at+1)
		}
		return sum
	}
	for at < 16 && len(children) == 1 {
		at++
		children = map[string][]string{}
		for _, k := range keys {
			if at < 16 {
				c := k[2*at : 2*at+2]
				children[c] = append(children[c], k)
			}
		}
	}
	return sum + treeNodes(keys, at)
}

func TestStreamIDs(t *testing.T) {
	zero, last := StreamID{}, MaxStreamID()
	if id, ok := last.Next(); ok || id != zero {
		t.Error(id, ok)
	}
	if id, ok := zero.Prev(); ok || id != last {
		t.Error(id, ok)
	}
	for _, id := range []StreamID{{0, 1}, {1, 0}, {5, 1<<64 - 1}, {1<<64 - 1, 0}} {
		next, ok := id.Next()
		if back, ok2 := next.Prev(); !ok || !ok2 || back != id || !id.Less(next) || id.Compare(next) != -1 || next.Less(id) {
			t.Errorf("%v is followed by %v", id, next)
		}
	}
}

// TestStreamInvalidBlocks checks that invalid operations of a block are refused, or leave a
// stream that can be read.
func TestStreamInvalidBlocks(t *testing.T) {
	s := new(Stream)
	l := StreamLimits{MaxBytes: 4096, MaxEntries: 100}
	for i := range 5 {
		s.Add(StreamID{uint64(i + 1), 0}, [][]byte{[]byte("f"), fmt.Append(nil, i), []byte("g"), nil}, l)
	}
	s.AddGroup([]byte("g"), StreamID{}, 0)
	var w journal.Writer
	s.Write(&w)
	ops := w.Buf
	for i := range ops {
		for bit := range 8 {
			bad := slices.Clone(ops)
			bad[i] ^= 1 << bit
			if s := new(Stream); replay(s, bad) {
				for range s.Ascend(StreamID{}, MaxStreamID()) {
				}
			}
		}
	}
}
