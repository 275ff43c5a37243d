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

	"github.com/zsetd/zsetd/server/internal/journal"
	"github.com/zsetd/zsetd/server/internal/sequence"
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
		c.encoding, c.free = v.Encoding(l), v.tabled()
	case *Hash:
		for field, value := range v.All() {
			at, _ := v.DeadlineBytes([]byte(field))
			c.items = append(c.items, fmt.Sprintf("%q %q %d", field, value, at))
		}
		c.encoding, c.free = v.Encoding(l), v.tabled()
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
	for i, journal := range h.journals[:m.journals] {
		for _, chunk := range journal.all() {
			for len(chunk) > 0 {
				record, rest, err := NextRecord(chunk)
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

// client executes random commands on a keyspace.
type client struct {
	r    *rand.Rand
	ks   *Keyspace
	now  int64
	keys int      // number of keys that it uses in each database, or 0 for the names
	open []*Entry // opened for writing by the current command
	gone []any    // values that the current command removed from their keys
}

const names = "abcde"

func (c *client) db() *DB { return c.ks.DB(c.r.IntN(c.ks.Len())) }

func (c *client) key() []byte {
	if c.keys > 0 {
		return fmt.Append(nil, "key:", c.r.IntN(c.keys))
	}
	i := c.r.IntN(len(names))
	return []byte(names[i : i+1])
}

// home returns the database that contains an entry, or nil.
func (c *client) home(e *Entry) *DB {
	for _, db := range c.ks.dbs {
		if db.Peek([]byte(e.Key())) == e {
			return db
		}
	}
	return nil
}

// command executes some operations and then the work at the end of a command.
func (c *client) command() {
	c.now += int64(c.r.IntN(4))
	c.ks.SetNow(c.now)
	recorded, sequence := c.ks.Recorded(), c.ks.Sequence()
	for range 1 + c.r.IntN(4) {
		c.step()
	}
	for _, e := range c.open {
		if MayBeEmpty(e.Value()) || sizeOf(e.Value()) > 0 {
			continue
		}
		if db := c.home(e); db != nil {
			db.Delete([]byte(e.Key()))
		}
	}
	c.open, c.gone = c.open[:0], c.gone[:0]
	c.ks.Seal()
	// A journal that only reorders spaces takes one byte.
	if c.ks.Recorded() > recorded && c.ks.Sequence() <= sequence || c.ks.Recorded() < recorded || c.ks.Sequence() < sequence {
		panic("the sequence does not say what is recorded")
	}
}

func (c *client) instant() int64 {
	switch c.r.IntN(12) {
	case 0:
		return math.MaxInt64
	case 1:
		return c.now - 1
	}
	return c.now + c.r.Int64N(1000)
}

func (c *client) step() {
	db, key := c.db(), c.key()
	switch c.r.IntN(40) {
	default:
		e := db.Edit(key)
		switch {
		case e != nil:
		case c.r.IntN(4) == 0:
			e = db.AddString(key, c.text(false), c.r.IntN(2) == 0)
		default:
			e = db.Add(key, c.value())
		}
		c.open = append(c.open, e)
		c.change(db, e)
	case 0, 1: // an entry that is already open
		if len(c.open) > 0 {
			e := c.open[c.r.IntN(len(c.open))]
			if db := c.home(e); db != nil {
				c.change(db, e)
			}
		}
	case 2, 3:
		if e := db.Edit(key); e != nil {
			c.gone = append(c.gone, e.Value())
		}
		e := db.Put(key, c.value(), c.r.IntN(2) == 0)
		c.open = append(c.open, e)
		if c.r.IntN(2) == 0 {
			c.change(db, e)
		}
	case 4:
		if e := db.Edit(key); e != nil {
			c.gone = append(c.gone, e.Value())
		}
		db.Delete(key)
	case 5: // a value without a key
		if len(c.gone) > 0 {
			if v := c.gone[c.r.IntN(len(c.gone))]; !is[*String](v) && !isPacked(v) {
				c.many(v)
			}
		}
	case 6, 7:
		e := db.Edit(key)
		if c.r.IntN(2) == 0 {
			e = db.Peek(key)
		}
		if e != nil {
			db.SetDeadline(e, c.instant())
		}
	case 8:
		if e := db.Peek(key); e != nil {
			db.SetDeadline(e, 0)
		}
	case 9, 10:
		if e := db.Edit(key); e != nil {
			to, name := c.db(), c.key()
			if c.r.IntN(2) == 0 {
				to.Edit(name)
			}
			c.open = append(c.open, e, db.Move(e, to, name))
		}
	case 11: // COPY
		to, name := c.db(), c.key()
		if e := db.Edit(key); e != nil && (to != db || !bytes.Equal(key, name)) && sizeOf(e.Value()) > 0 {
			to.Delete(name)
			to.SetDeadline(to.Add(name, Clone(e.Value())), e.Deadline())
		}
	case 12:
		switch c.r.IntN(12) {
		case 0, 1, 2:
			c.ks.Swap(c.r.IntN(c.ks.Len()), c.r.IntN(c.ks.Len()))
		case 3:
			db.Clear()
		default:
			c.ks.Sweep(c.r.IntN(3))
		}
	}
}

// isPacked reports whether v is, or was converted to, a part of an entry.
func isPacked(v any) bool {
	switch v := v.(type) {
	case *Hash:
		return v.inEntry() || v.e.state == stale
	case *Set:
		return v.inEntry() || v.e.state == stale
	}
	return false
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// value returns a random value, possibly empty.
func (c *client) value() any {
	var v any
	switch c.r.IntN(12) {
	case 0, 1:
		return NewString(c.text(c.r.IntN(15) == 0))
	case 2, 3:
		v = new(sequence.List)
	case 4, 5:
		v = new(Set)
	case 6, 7:
		v = new(Hash)
	case 8, 9:
		v = new(sequence.Stream)
	default:
		v = new(zset.Set)
	}
	if c.r.IntN(3) == 0 {
		c.many(v)
	}
	return v
}

func (c *client) change(db *DB, e *Entry) {
	s, ok := e.Value().(*String)
	switch {
	case !ok && is[*Hash](e.Value()) && c.r.IntN(3) > 0:
		for range 1 + c.r.IntN(8) {
			field := c.element(false)
			if c.r.IntN(3) > 0 {
				e, _ = db.SetField(e, field, c.text(false))
			} else {
				e, _ = db.DeleteField(e, field)
			}
			clear(field)
		}
		c.open = append(c.open, e)
	case !ok && is[*Set](e.Value()) && c.r.IntN(3) > 0:
		for range 1 + c.r.IntN(8) {
			b := c.element(false)
			switch c.r.IntN(7) {
			case 0, 1:
				e, _ = db.RemoveMember(e, MemberOf(b))
			case 2:
				e = db.ExpectMembers(e, MemberOf(b), 1+c.r.IntN(14))
				e, _ = db.AddMember(e, MemberOf(b))
			case 3:
				if s := e.Value().(*Set); s.Len() > 0 {
					e, _ = db.RemoveMember(e, s.Random(c.r))
				}
			default:
				e, _ = db.AddMember(e, MemberOf(b))
			}
			clear(b)
		}
		c.open = append(c.open, e)
	case !ok:
		e = db.Unpacked(e)
		c.many(e.Value())
		c.open = append(c.open, e)
	case c.r.IntN(3) == 0:
		e = db.SetString(e, c.text(c.r.IntN(40) == 0))
		if c.r.IntN(4) == 0 {
			e.Value().(*String).MarkText()
		}
	case c.r.IntN(2) == 0:
		db.AppendString(e, c.text(c.r.IntN(40) == 0))
	default:
		offset := c.r.IntN(s.Len() + 20)
		if c.r.IntN(40) == 0 {
			offset = s.Len() + pinBytes - 10 + c.r.IntN(20)
		}
		db.WriteString(e, offset, c.text(false))
	}
}

// text returns random bytes; with large, more than the thresholds for chunks and
// pins.
func (c *client) text(large bool) []byte {
	if !large && c.r.IntN(3) == 0 {
		return fmt.Append(nil, c.r.IntN(1000)-500)
	}
	n := c.r.IntN(60)
	if large {
		n = []int{pinBytes, pinBytes, textChunk, 2 * textChunk}[c.r.IntN(4)] + c.r.IntN(5) - 2
	}
	b := bytes.Repeat([]byte{'a' + byte(c.r.IntN(26))}, n)
	if n > 0 {
		b[c.r.IntN(n)] = '!'
	}
	return b
}

// element returns one of few elements: some integers, some too long for compact
// encodings and, if long is true, rarely one larger than a list chunk.
func (c *client) element(long bool) []byte {
	n := c.r.IntN(9)
	switch k := c.r.IntN(14); {
	case long && k == 0 && c.r.IntN(4) == 0:
		return bytes.Repeat([]byte{'a' + byte(n)}, 4096-10+n*4)
	case k < 3:
		return fmt.Append(nil, "m", n)
	case k == 3:
		return bytes.Repeat([]byte{'z'}, n)
	case k == 4:
		return fmt.Append(nil, math.MinInt64+n)
	}
	return fmt.Append(nil, n-5)
}

// many changes a collection once, a few times, or so often that it becomes large or
// has more changes than elements.
func (c *client) many(value any) {
	n := 1 + c.r.IntN(8)
	if c.r.IntN(20) == 0 {
		n = pinAt + c.r.IntN(40)
	}
	grow := n >= pinAt && c.r.IntN(3) > 0
	// Some sets get integers only, so that they stay intsets.
	ints := c.r.IntN(3) > 0
	for i := range n {
		b := c.element(true)
		if grow {
			b = fmt.Append(nil, i)
		}
		switch v := value.(type) {
		case *sequence.List:
			c.list(v, b, grow)
		case *Set:
			if ints && v.view().encoding == intset {
				b = fmt.Append(nil, i+c.r.IntN(9)-4)
			}
			c.set(v, b[:min(len(b), 40)], grow)
		case *Hash:
			if c.r.IntN(4) == 0 {
				v.SetDeadlineBytes(b[:min(len(b), 40)], c.memberDeadline())
			} else if grow || c.r.IntN(3) > 0 {
				v.Set(b[:min(len(b), 40)], c.text(false), &c.ks.Limits)
			} else {
				v.Delete(b)
			}
		case *sequence.Stream:
			c.stream(v, b, grow)
		case *zset.Set:
			if member := string(b[:min(len(b), 100)]); c.r.IntN(4) == 0 {
				v.SetDeadline(member, c.memberDeadline())
			} else {
				c.zset(v, member, grow)
			}
		}
		clear(b) // arguments are valid during the call only
	}
}

// memberDeadline returns no deadline, an early one, or a late one.
func (c *client) memberDeadline() int64 {
	switch c.r.IntN(4) {
	case 0:
		return 0
	case 1:
		return c.ks.Now() + int64(c.r.IntN(30))
	}
	return c.ks.Now() + 1_000_000
}

func (c *client) list(l *sequence.List, b []byte, grow bool) {
	op := c.r.IntN(10)
	if grow {
		op %= 2
	}
	n := l.Len()
	if len(b) < 100 && c.r.IntN(2) == 0 {
		b = []byte{'a' + byte(c.r.IntN(3))}
	}
	switch {
	case op == 0:
		l.PushFront(b)
	case op == 1 || op == 2:
		l.PushBack(b)
	case op == 3:
		l.Insert(c.r.IntN(n+1), b)
	case op == 4:
		i := c.r.IntN(n + 1)
		l.Delete(i, min(n-i, c.r.IntN(5)))
	case op == 5 && c.r.IntN(10) == 0:
		i := c.r.IntN(n + 1)
		l.Delete(i, c.r.IntN(n-i+1))
	case op == 6:
		l.Remove(b, c.r.IntN(7)-3)
	case n == 0:
	case op == 7:
		l.PopFront()
	case op == 8:
		l.PopBack()
	case op == 9:
		l.Set(c.r.IntN(n), b)
	}
	l.Fit(c.ks.Limits.ListMaxListpackSize)
}

func (c *client) set(s *Set, b []byte, grow bool) {
	l := &c.ks.Limits
	op := c.r.IntN(30)
	if grow {
		op = 0
	}
	n := s.Len()
	switch {
	case op < 15:
		s.Add(l, MemberOf(b))
	case op < 22:
		s.Remove(MemberOf(b))
	case op == 22:
		s.Expect(l, MemberOf(b), 1+c.r.IntN(30))
		s.Add(l, MemberOf(b))
	case op == 23:
		s.Sort(l)
	case op == 24 && n == 0:
		s.KeepOrder()
	case op == 25 || op == 26 && c.r.IntN(3) == 0: // replaced by another set, as by a STORE command
		if e := c.db().Peek(c.key()); e != nil {
			if other, ok := e.Value().(*Set); ok && other != s {
				for m := range other.Members {
					s.Add(l, m)
				}
			}
		}
	case n == 0:
	case op == 26:
		s.Remove(s.Random(c.r))
	case op == 27:
		s.Pop(c.r, c.r.IntN(min(n, 5)), func(Member) {})
	case op == 28 && c.r.IntN(4) == 0:
		s.Pop(c.r, c.r.IntN(n), func(Member) {})
	}
}

func (c *client) stream(s *sequence.Stream, b []byte, grow bool) {
	id := sequence.StreamID{Ms: s.LastID().Ms - uint64(c.r.IntN(int(min(s.LastID().Ms, 40))+1)), Seq: uint64(c.r.IntN(3))}
	op := c.r.IntN(20)
	if grow {
		op = 0
	}
	name := []byte{names[c.r.IntN(3)]}
	g := s.EditGroup(name)
	switch {
	case op < 6:
		next := sequence.StreamID{Ms: s.LastID().Ms + uint64(c.r.IntN(2)), Seq: s.LastID().Seq + 1}
		s.Add(next, [][]byte{{names[c.r.IntN(2)]}, b}, c.ks.Limits.Stream)
	case op < 8:
		s.Delete(id)
	case op == 8:
		s.Trim(sequence.StreamTrim{ByID: c.r.IntN(2) == 0, MinID: id, MaxLen: int64(max(0, s.Len()-c.r.IntN(20))), Approx: c.r.IntN(2) == 0})
	case op == 9:
		s.SetID(sequence.StreamID{Ms: s.LastID().Ms + 1, Seq: 0}, s.Added()+c.r.Int64N(3), id)
	case g == nil:
		s.AddGroup(name, id, c.r.Int64N(9)-1)
	case op == 10 && c.r.IntN(4) == 0:
		s.RemoveGroup(name)
	case op == 11:
		g.SetID(id, c.r.Int64N(9)-1)
	default:
		c.group(g, id)
	}
}

func (c *client) group(g *sequence.Group, id sequence.StreamID) {
	name := []byte{names[c.r.IntN(len(names))]}
	x := g.Consumer(name)
	if x == nil {
		x = g.AddConsumer(name, c.now)
	}
	switch c.r.IntN(6) {
	case 0:
		g.RemoveConsumer(x)
	case 1, 2:
		g.Deliver(x, id, c.now, 1+c.r.Int64N(9))
	case 3:
		if first, _ := g.Ends(); g.Len() > 0 {
			g.Acknowledge(first.ID)
		}
	default:
		g.RecordRead(x, c.now, c.r.IntN(2) == 0)
		g.ReadNext(x, 1+c.r.IntN(9), c.now, c.r.IntN(3) > 0, func(sequence.StreamEntry) {})
	}
}

func (c *client) zset(s *zset.Set, member string, grow bool) {
	scores := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), 1, 2, 2.5, -7e300, 5e-324}
	score := scores[c.r.IntN(len(scores))]
	n := s.Len()
	op := c.r.IntN(16)
	if grow {
		op = c.r.IntN(4)
	}
	switch op {
	case 0, 1:
		s.Add(member, score)
	case 2, 3:
		s.AddIfBytes([]byte(member), score, 0)
	case 4:
		s.AddIf(member, score, []zset.Cond{zset.NX, zset.XX, zset.GT, zset.LT}[c.r.IntN(4)])
	case 5:
		s.Incr(member, score, 0)
	case 6:
		s.IncrBytes([]byte(member), score, zset.GT)
	case 7, 8:
		s.Remove(member)
	case 9:
		s.RemoveBytes([]byte(member))
	case 10:
		if lo := c.r.IntN(n + 1); c.r.IntN(4) == 0 {
			s.RemoveSpan(lo, c.r.IntN(n+1))
		} else {
			s.RemoveSpan(lo, lo+3)
		}
	case 11:
		if c.r.IntN(10) == 0 {
			s.RemoveScore(zset.ScoreRange{Min: score, Max: scores[c.r.IntN(len(scores))]})
		}
	case 12:
		s.PopMin(c.r.IntN(4))
	case 13:
		s.PopMax(c.r.IntN(4))
	case 14:
		if c.r.IntN(10) == 0 {
			s.Clear()
		}
	case 15:
		s.RemoveRank(-1, -1)
	}
}

// restored returns the content of a key according to the journal since the previous
// one.
func restored(t *testing.T, ks *Keyspace, key string) content {
	t.Helper()
	b := Builder{Limits: &ks.Limits}
	for chunk := range ks.TakeJournal().Chunks {
		for len(chunk) > 0 {
			record, rest, err := NextRecord(chunk)
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
			ks.DB(0).Edit(key).Value().(*zset.Set).AddIfBytes(member, float64(n%100_003), 0)
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
