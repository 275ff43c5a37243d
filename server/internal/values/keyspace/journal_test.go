package keyspace

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// spaceKey is a key in a space.
type spaceKey struct {
	space uint64
	key   string
}

// content is all data of a key that must be restored, in an independent
// representation: a clone would share the bugs of Clone.
type content struct {
	kind     string
	items    []string
	encoding string
	deadline int64

	free    bool   // the items are unordered, and the encoding may differ after a reload
	another string // alternative encoding
}

func contentOf(value any, deadline int64, l *Limits) content {
	c := content{kind: fmt.Sprintf("%T", value), deadline: deadline}
	switch v := value.(type) {
	case *String:
		c.items, c.encoding = []string{string(v.Content())}, v.Encoding(l)
		c.another = NewString(v.Content()).Encoding(l)
	case *sequence.List:
		var again sequence.List
		for b := range v.Forward(0) {
			c.items = append(c.items, string(b))
			again.PushBack(b)
		}
		c.encoding, c.another = v.Encoding(l.ListMaxListpackSize), again.Encoding(l.ListMaxListpackSize)
	case *Set:
		for m := range v.Members {
			c.items = append(c.items, strings.Clone(m.String()))
		}
		c.encoding, c.free = v.Encoding(l), v.Table() != nil
	case *Hash:
		for field, value := range v.All() {
			at, _ := v.DeadlineBytes([]byte(field))
			c.items = append(c.items, fmt.Sprintf("%q %q %d", field, value, at))
		}
		c.encoding, c.free = v.Encoding(l), v.Table() != nil
		if c.encoding == "listpackex" && v.Deadlines() == nil {
			c.another = "listpack" // a field has had a deadline
		}
	case *sequence.Stream:
		c.items = streamItems(v)
	case *zset.Set:
		for member, score := range v.All() {
			at, _ := v.Deadline(member)
			item := fmt.Sprintf("%q %v %x", member, score, math.Float64bits(score))
			if at != 0 {
				item += fmt.Sprintf(" until %d", at)
			}
			c.items = append(c.items, item)
		}
	}
	if c.free {
		slices.Sort(c.items)
	}
	return c
}

// streamItems returns all data of a stream that must be restored.
func streamItems(s *sequence.Stream) []string {
	blocks, nodes := s.Blocks()
	items := []string{fmt.Sprint(s.LastID(), s.Added(), s.MaxDeletedID(), blocks, nodes)}
	var w journal.Writer
	s.Write(&w)
	items = append(items, string(w.Buf)) // with the boundaries and sizes of the blocks
	for e := range s.Ascend(sequence.StreamID{}, sequence.MaxStreamID()) {
		items = append(items, e.ID.String())
		for field, value := range e.Pairs {
			items = append(items, string(field), string(value))
		}
	}
	for _, g := range s.Groups() {
		items = append(items, fmt.Sprintf("group %q %v %d", g.Name(), g.LastID(), g.Read()))
		for _, c := range g.Consumers() {
			items = append(items, fmt.Sprintf("consumer %q %d %d %d", c.Name(), c.Seen(), c.Active(), c.Len()))
		}
		for p := range g.Ascend(sequence.StreamID{}) {
			items = append(items, fmt.Sprintf("%v with %q since %d, %d times", p.ID, g.Owner(p).Name(), p.Time, p.Count))
		}
	}
	return items
}

// restoredAs compares a content with its restored form.
func (c content) restoredAs(got content) error {
	if c.kind != got.kind || c.deadline != got.deadline {
		return fmt.Errorf("%s until %d, want %s until %d", got.kind, got.deadline, c.kind, c.deadline)
	}
	if !c.free && got.encoding != c.encoding && got.encoding != c.another {
		return fmt.Errorf("%s is %s, want %s", got.kind, got.encoding, c.encoding)
	}
	items := got.items
	if c.free {
		items = slices.Sorted(slices.Values(items))
	}
	if len(items) != len(c.items) {
		return fmt.Errorf("%s of %d elements, want %d", got.kind, len(items), len(c.items))
	}
	for i, item := range items {
		if item != c.items[i] {
			return fmt.Errorf("%s: element %d of %d is %s, want %s", got.kind, i, len(items), abridged(item), abridged(c.items[i]))
		}
	}
	return nil
}

func abridged(s string) string {
	if len(s) > 60 {
		return fmt.Sprintf("%q... (%d bytes)", s[:60], len(s))
	}
	return fmt.Sprintf("%q", s)
}

func contentsOf(ks *Keyspace) map[spaceKey]content {
	all := map[spaceKey]content{}
	for _, db := range ks.dbs {
		for e := range db.entries.all() {
			all[spaceKey{db.space, e.Key()}] = contentOf(e.Value(), e.Deadline(), &ks.Limits)
		}
	}
	return all
}

// drained is the result of Chunks, collected immediately or later, after further
// changes of the value.
type drained struct {
	chunks iter.Seq[[]byte]
	pieces [][]byte
	done   chan struct{}
}

// later returns chunks that are collected on demand or, at random, in parallel with
// subsequent operations.
func later(r *rand.Rand, chunks iter.Seq[[]byte]) *drained {
	d := &drained{chunks: chunks}
	if chunks != nil && r.IntN(2) == 0 {
		d.done = make(chan struct{})
		go func() {
			d.drain()
			close(d.done)
		}()
	}
	return d
}

func (d *drained) drain() {
	for piece := range d.chunks {
		d.pieces = append(d.pieces, bytes.Clone(piece))
	}
	d.chunks = nil
}

func (d *drained) all() [][]byte {
	if d.done != nil {
		<-d.done
	} else if d.chunks != nil {
		d.drain()
	}
	return d.pieces
}

// history is the content of a data file: bases and journals.
type history struct {
	journals []*drained
	bases    map[spaceKey][]base
	reloaded bool // a keyspace was restored, and execution continued with it
}

// base is a snapshot of a key after a number of journals; nil if it does not exist.
type base struct {
	journals int
	value    *drained
}

// moment is the expected content of a keyspace after a number of journals.
type moment struct {
	journals int
	spaces   []uint64
	contents map[spaceKey]content
}

// apply applies operations, and overwrites them afterwards.
func apply(t *testing.T, b *Builder, ops []byte) {
	t.Helper()
	borrowed := bytes.Clone(ops)
	if err := b.Apply(borrowed); err != nil {
		t.Fatalf("%v in %.200q", err, ops)
	}
	for i := range borrowed {
		borrowed[i] = 0xff
	}
}

// restore returns the keyspace at a moment.
func (h *history) restore(t *testing.T, m *moment, l Limits) *Keyspace {
	t.Helper()
	ks := New(len(m.spaces), Hooks{})
	ks.Limits = l
	ks.SetSpaces(m.spaces, 0)
	if !slices.Equal(ks.Spaces(), m.spaces) {
		t.Fatalf("spaces %v, want %v", ks.Spaces(), m.spaces)
	}
	begin := map[spaceKey]int{}
	builders := map[spaceKey]*Builder{}
	for at, bases := range h.bases {
		for _, base := range slices.Backward(bases) {
			if base.journals <= m.journals {
				begin[at] = base.journals
				b := &Builder{Limits: &ks.Limits}
				builders[at] = b
				if base.value != nil {
					for _, ops := range base.value.all() {
						apply(t, b, ops)
					}
				}
				break
			}
		}
	}
	for i, taken := range h.journals[:m.journals] {
		for _, chunk := range taken.all() {
			for len(chunk) > 0 {
				record, rest, err := journal.NextRecord(chunk)
				if err != nil {
					t.Fatal(err)
				}
				chunk = rest
				at := spaceKey{record.Space, string(record.Key)}
				if i < begin[at] || !slices.Contains(m.spaces, at.space) {
					continue
				}
				b := builders[at]
				if b == nil {
					b = &Builder{Limits: &ks.Limits}
					builders[at] = b
				}
				apply(t, b, record.Operations)
			}
		}
	}
	for at, b := range builders {
		i := slices.Index(m.spaces, at.space)
		if i < 0 {
			continue
		}
		value, deadline, err := b.Value()
		if err != nil {
			t.Fatalf("%v: %v", at, err)
		}
		if value != nil {
			ks.DB(i).Restore(at.key, value, deadline)
		}
	}
	return ks
}

// same restores the keyspace at a moment and compares it with the expected content.
func (h *history) same(t *testing.T, m *moment, l Limits) *Keyspace {
	t.Helper()
	ks := h.restore(t, m, l)
	if err := ks.Check(); err != nil {
		t.Fatal(err)
	}
	got := contentsOf(ks)
	for at, want := range m.contents {
		if c, ok := got[at]; !ok {
			t.Fatalf("%v is missing, a %s of %d", at, want.kind, len(want.items))
		} else if err := want.restoredAs(c); err != nil {
			t.Fatalf("%v: %v", at, err)
		}
	}
	for at, c := range got {
		if _, ok := m.contents[at]; !ok {
			t.Fatalf("%v exists: a %s of %d", at, c.kind, len(c.items))
		}
	}
	return ks
}

// restored returns the content of a key according to the journal since the previous
// one.
func restored(t *testing.T, ks *Keyspace, key string) content {
	t.Helper()
	b := Builder{Limits: &ks.Limits}
	for chunk := range ks.TakeJournal().Chunks {
		for len(chunk) > 0 {
			record, rest, err := journal.NextRecord(chunk)
			if err != nil {
				t.Fatal(err)
			}
			if chunk = rest; string(record.Key) == key {
				apply(t, &b, record.Operations)
			}
		}
	}
	value, deadline, err := b.Value()
	if err != nil {
		t.Fatal(err)
	}
	return contentOf(value, deadline, &ks.Limits)
}

// TestJournalShape empties and refills a set in one command; it must have the
// encoding that was selected for it.
func TestJournalShape(t *testing.T) {
	for name, test := range map[string]struct {
		shape func(s *Set, l *Limits)
		want  string
	}{
		"as it is": {func(*Set, *Limits) {}, "[1 2 3] intset"},
		"in order": {func(s *Set, _ *Limits) { s.KeepOrder() }, "[2 1 3] listpack"},
		"expected": {func(s *Set, l *Limits) { s.Expect(l, MemberOf([]byte("a")), 3) }, "[2 1 3] listpack"},
	} {
		ks := New(1, Hooks{})
		ks.Record(true)
		s := ks.DB(0).Unpacked(ks.DB(0).Add([]byte("s"), new(Set))).Value().(*Set)
		s.Add(&ks.Limits, MemberOf([]byte("7")))
		ks.Seal()
		ks.DB(0).Edit([]byte("s"))
		s.Remove(MemberOf([]byte("7")))
		test.shape(s, &ks.Limits)
		for _, m := range []string{"2", "1", "3"} {
			s.Add(&ks.Limits, MemberOf([]byte(m)))
		}
		if c := restored(t, ks, "s"); fmt.Sprint(c.items, " ", c.encoding) != test.want {
			t.Errorf("%s: %v, %s, want %s", name, c.items, c.encoding, test.want)
		}
	}
	// The same for an embedded set.
	for first, want := range map[string]string{"7": "[1 2 3] intset", "a": "[2 1 3] listpack"} {
		ks := New(1, Hooks{})
		ks.Record(true)
		db := ks.DB(0)
		e, _ := db.AddMember(db.AddSet([]byte("s"), 0), MemberOf([]byte("7")))
		ks.Seal()
		e, _ = db.RemoveMember(db.Edit([]byte(e.Key())), MemberOf([]byte("7")))
		e = db.ExpectMembers(e, MemberOf([]byte(first)), 3)
		for _, m := range []string{"2", "1", "3"} {
			e, _ = db.AddMember(e, MemberOf([]byte(m)))
		}
		if c := restored(t, ks, "s"); fmt.Sprint(c.items, " ", c.encoding) != want || !e.packed() {
			t.Errorf("%s: %v, %s, want %s", first, c.items, c.encoding, want)
		}
	}
}

// TestRecordAllocations checks that recording a change does not allocate.
func TestRecordAllocations(t *testing.T) {
	for name, prepare := range updates {
		var allocations [2]float64
		for i, record := range []bool{false, true} {
			ks := New(1, Hooks{})
			ks.Record(record)
			update := prepare(ks)
			for range 1000 { // until the buffers reach their final size
				update()
			}
			ks.TakeJournal()
			for ks.Recorded() < 64<<10 && record {
				update()
			}
			allocations[i] = testing.AllocsPerRun(100, update)
		}
		if allocations[1] > allocations[0] {
			t.Errorf("%s: %v allocations, %v without a journal", name, allocations[1], allocations[0])
		}
	}
}

// updates are commands that change one element of a large value, or a whole small
// value.
var updates = map[string]func(ks *Keyspace) func(){
	"ZADD": func(ks *Keyspace) func() {
		s := new(zset.Set)
		key, member := []byte("z"), []byte("member:00000")
		for i := range 100_000 {
			s.Add(fmt.Sprintf("member:%05d", i), float64(i))
		}
		ks.DB(0).Add(key, s)
		ks.Seal()
		n := 0
		return func() {
			n += 7919
			for i, d := 11, n%100_000; i > 6; i, d = i-1, d/10 {
				member[i] = '0' + byte(d%10)
			}
			ks.DB(0).Edit(key).Value().(*zset.Set).Internal().AddIf(member, float64(n%100_003), 0)
			ks.Seal()
		}
	},
	"SET": func(ks *Keyspace) func() {
		key, value := []byte("s"), []byte("value 0")
		ks.DB(0).Add(key, NewString(value))
		ks.Seal()
		return func() {
			value[6]++
			ks.DB(0).SetString(ks.DB(0).Edit(key), value)
			ks.Seal()
		}
	},
	"new": func(ks *Keyspace) func() {
		key, field, value := []byte("n"), []byte("field"), []byte("value")
		return func() {
			h := new(Hash)
			h.Set(field, value, &ks.Limits)
			ks.DB(0).Put(key, h, false)
			ks.Seal()
		}
	},
	"XADD": func(ks *Keyspace) func() {
		key, fields := []byte("x"), [][]byte{[]byte("field"), []byte("value")}
		ks.DB(0).Add(key, new(sequence.Stream))
		ks.Seal()
		id := sequence.StreamID{Ms: 1, Seq: 0}
		return func() {
			id.Ms++
			s := ks.DB(0).Edit(key).Value().(*sequence.Stream)
			s.Add(id, fields, ks.Limits.Stream)
			s.Trim(sequence.StreamTrim{MaxLen: 1000, Approx: true})
			ks.Seal()
		}
	},
	"XREADGROUP": func(ks *Keyspace) func() {
		key, name, id := []byte("x"), []byte("c"), sequence.StreamID{Ms: 1, Seq: 0}
		s := new(sequence.Stream)
		s.AddGroup(name, sequence.StreamID{}, 0).AddConsumer(name, 0)
		ks.DB(0).Add(key, s)
		ks.Seal()
		return func() {
			id.Ms++
			g := ks.DB(0).Edit(key).Value().(*sequence.Stream).EditGroup(name)
			g.Deliver(g.Consumer(name), id, int64(id.Ms), 1)
			g.Acknowledge(id)
			ks.Seal()
		}
	},
	"HSET": func(ks *Keyspace) func() {
		h := new(Hash)
		key, value := []byte("h"), []byte("value 0")
		for i := range 1000 {
			h.Set(fmt.Append(nil, i), value, &ks.Limits)
		}
		ks.DB(0).Add(key, h)
		ks.Seal()
		field := []byte("500")
		return func() {
			value[6]++
			ks.DB(0).SetField(ks.DB(0).Edit(key), field, value)
			ks.Seal()
		}
	},
}

func BenchmarkRecord(b *testing.B) {
	for _, name := range []string{"ZADD", "SET", "HSET", "new"} {
		for _, record := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/%v", name, record), func(b *testing.B) {
				ks := New(1, Hooks{})
				ks.Record(record)
				update := updates[name](ks)
				for b.Loop() {
					if update(); ks.Recorded() > 64<<20 {
						ks.TakeJournal()
					}
				}
			})
		}
	}
}

// TestJournalModel restores the keyspace from bases and journals of random
// commands, compares it with the content at the last journal, continues with the
// restored keyspace, and restores again.
func TestJournalModel(t *testing.T) {
	const seeds = 40
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 4))
			ks := New(4, Hooks{})
			ks.Limits = Limits{
				HashMaxListpackEntries: 10, HashMaxListpackValue: 50,
				SetMaxIntsetEntries: 12, SetMaxListpackEntries: 10, SetMaxListpackValue: 20,
				ListMaxListpackSize: 12, Stream: sequence.StreamLimits{MaxBytes: 300, MaxEntries: 7},
			}
			h := &history{bases: map[spaceKey][]base{}}
			c := &client{r: r, ks: ks, now: 1_700_000_000_000}
			for range 2 { // generations
				c.ks.Record(true)
				var moments []*moment
				for range 100 {
					for range r.IntN(8) {
						c.command()
					}
					if r.IntN(4) == 0 {
						if m := h.checkpoint(c, r.IntN(10) == 0); m.contents != nil {
							moments = append(moments, m)
						}
					}
					if len(moments) > 0 && r.IntN(60) == 0 {
						h.same(t, moments[r.IntN(len(moments))], c.ks.Limits)
					}
				}
				m := h.checkpoint(c, true)
				if err := c.ks.Check(); err != nil {
					t.Fatal(err)
				}
				sequence := c.ks.Sequence()
				h.reloaded = true
				if ks := h.same(t, m, c.ks.Limits); r.IntN(2) == 0 {
					c.ks.Adopt(ks)
					if c.ks.Recording() || c.ks.Sequence() < sequence {
						t.Fatal("the journal is recorded, or its sequence was reset")
					}
					if err := c.ks.Check(); err != nil {
						t.Fatal(err)
					}
				} else {
					c.ks = ks
					c.ks.SetNow(c.now)
				}
			}
		})
	}
}

// forgetOrder makes the elements of sets and hashes unordered. A reload converts a
// small hash table to an intset or a listpack, in any order, and the journal has no
// record of it. A second reload from the same base may therefore have another order
// and encoding.
func (m *moment) forgetOrder() {
	for at, c := range m.contents {
		if c.kind == "*keyspace.Set" || c.kind == "*keyspace.Hash" {
			c.free = true
			slices.Sort(c.items)
			m.contents[at] = c
		}
	}
}

// checkpoint takes a journal and some bases and, if contents is true, the expected
// content.
func (h *history) checkpoint(c *client, contents bool) *moment {
	m := &moment{spaces: c.ks.Spaces()}
	if contents {
		m.contents = contentsOf(c.ks)
		if h.reloaded {
			m.forgetOrder()
		}
	}
	if j := c.ks.TakeJournal(); j != nil {
		h.journals = append(h.journals, later(c.r, j.Chunks))
	}
	if c.ks.Recorded() != 0 || c.ks.Recording() && c.ks.TakeJournal() != nil {
		panic("something is left of a journal that was taken")
	}
	m.journals = len(h.journals)
	odds := []int{1, 10, 10, 1000, 1000}[c.r.IntN(5)]
	for _, db := range c.ks.dbs {
		for i := range names {
			if c.r.IntN(odds) > 0 {
				continue
			}
			at, b := spaceKey{db.space, names[i : i+1]}, base{journals: m.journals}
			// Expired keys exist until they are removed.
			if e := db.entries.get(at.key); e != nil {
				p := db.Pin(e)
				if p.Key() != at.key {
					panic("the pinned value has a different key")
				}
				b.value = later(c.r, p.Chunks)
			}
			h.bases[at] = append(h.bases[at], b)
		}
	}
	return m
}
