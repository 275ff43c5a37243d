package keyspace

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"

	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// client executes random commands on a keyspace.
type client struct {
	r    *rand.Rand
	ks   *Keyspace
	now  int64
	keys int      // number of keys that it uses in each database, or 0 for the names
	open []*Entry // opened for writing by the current command
	gone []any    // values that the current command removed from their keys

	undoing bool // the keyspace has a savepoint
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

// command executes some operations and then the work at the end of a command. Before some,
// others are executed and rolled back.
func (c *client) command() {
	if !c.undoing && c.keys == 0 && c.r.IntN(8) == 0 {
		c.rollback()
	}
	if !c.undoing && c.r.IntN(1000) == 0 {
		compactAll(c.ks, func() {})
	}
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

// rollback executes some commands after a savepoint, and mostly returns to it.
func (c *client) rollback() {
	type state struct {
		keys               map[snapshotKey]content
		recorded           int
		sequence, effects  uint64
		volatile, deadline [4]int
	}
	now := func() state {
		s := state{keys: databases(c.ks), recorded: c.ks.Recorded(), sequence: c.ks.Sequence(), effects: c.ks.EffectCount()}
		for i, db := range c.ks.dbs {
			s.volatile[i], s.deadline[i] = db.Volatile(), db.members.Len()
		}
		return s
	}
	c.ks.Seal()
	before := now()
	c.ks.Savepoint()
	c.undoing = true
	for range 1 + c.r.IntN(4) {
		c.command()
	}
	c.undoing = false
	if c.r.IntN(4) == 0 {
		c.ks.Release()
		return
	}
	c.ks.Rollback()
	after := now()
	for k, v := range before.keys {
		if !reflect.DeepEqual(after.keys[k], v) {
			panic(fmt.Sprintf("%v rolled back to %+v, not %+v", k, after.keys[k], v))
		}
	}
	if len(after.keys) != len(before.keys) {
		panic(fmt.Sprintf("rolled back to %d keys, not %d", len(after.keys), len(before.keys)))
	}
	if after.keys, before.keys = nil, nil; !reflect.DeepEqual(after, before) {
		panic(fmt.Sprintf("rolled back to %+v, not %+v", after, before))
	}
	if err := c.ks.Check(); err != nil {
		panic(err)
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
		switch how := c.r.IntN(12); {
		case c.undoing || how > 3:
			c.ks.Sweep(c.r.IntN(3))
		case how < 3:
			c.ks.Swap(c.r.IntN(c.ks.Len()), c.r.IntN(c.ks.Len()))
		default:
			db.Clear()
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
		n = []int{pinBytes, pinBytes, journal.StringChunk, 2 * journal.StringChunk}[c.r.IntN(4)] + c.r.IntN(5) - 2
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
		g.ReadNext(x, 1+c.r.IntN(9), c.now, c.r.IntN(3) > 0, false, func(sequence.StreamEntry) {})
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
		s.Internal().AddIf([]byte(member), score, 0)
	case 4:
		s.AddIf(member, score, []zset.Cond{zset.NX, zset.XX, zset.GT, zset.LT}[c.r.IntN(4)])
	case 5:
		s.Incr(member, score, 0)
	case 6:
		s.Internal().Incr([]byte(member), score, zset.GT)
	case 7, 8:
		s.Remove(member)
	case 9:
		s.Internal().Remove([]byte(member))
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
