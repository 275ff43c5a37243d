package sequence

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"unsafe"

	"github.com/tidwall/btree"
	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/packed"
)

// A group stores its pending entries (delivered, not acknowledged) in a B-tree by
// ID, and each consumer stores the IDs of its own pending entries in another. A
// pending entry refers to its consumer by number instead of by pointer, so a group
// is copied without visiting its entries: the B-trees are copied on write.
//
// A third B-tree has the pending entries by the time of their last delivery, once
// they were requested in that order (ByTime).

// Group is a consumer group of a stream. A group is modified through the stream
// that returned it from EditGroup or AddGroup, until that stream is cloned.
type Group struct {
	name      string
	last      StreamID // ID of the last delivered entry
	read      int64    // number of entries up to last; -1 if unknown
	pending   *btree.BTreeG[Pending]
	byTime    *btree.BTreeG[Pending] // nil until it is requested
	consumers []*Consumer            // sorted by name
	numbers   []*Consumer            // by number; nil for an unused number
	owner     *token
	s         *Stream
}

// Consumer is a member of a group.
type Consumer struct {
	name    string
	number  uint32
	seen    int64
	active  int64
	pending *btree.BTreeG[StreamID]
}

// Pending is an entry that was delivered to a consumer and is not acknowledged.
type Pending struct {
	ID       StreamID
	Time     int64 // of the last delivery, in milliseconds since 1970
	Count    int64 // number of deliveries
	consumer uint32
}

func pendingLess(a, b Pending) bool { return a.ID.Less(b.ID) }

func deliveredBefore(a, b Pending) bool {
	return a.Time < b.Time || a.Time == b.Time && a.ID.Less(b.ID)
}

func newIDs() *btree.BTreeG[StreamID] {
	return btree.NewBTreeGOptions(StreamID.Less, btree.Options{NoLocks: true})
}

// UnknownRead is the value of Group.Read if the number of entries is unknown.
const UnknownRead = -1

// Groups returns the groups, sorted by name. The caller must not modify the slice.
func (s *Stream) Groups() []*Group { return s.groups }

func (s *Stream) findGroup(name string) (int, bool) {
	return slices.BinarySearchFunc(s.groups, name, func(g *Group, name string) int { return strings.Compare(g.name, name) })
}

// Group returns a group by name for reading, or nil if there is none.
func (s *Stream) Group(name []byte) *Group {
	if i, ok := s.findGroup(packed.View(name)); ok {
		return s.groups[i]
	}
	return nil
}

// EditGroup returns a group by name for writing, or nil if there is none.
// O(consumers) after the stream was cloned.
func (s *Stream) EditGroup(name []byte) *Group {
	i, ok := s.findGroup(packed.View(name))
	if !ok {
		return nil
	}
	return s.editGroup(i)
}

func (s *Stream) editGroup(i int) *Group {
	s.writableGroups()
	g := s.groups[i]
	if g.owner != s.owner || g.s != s {
		g = g.clone(s)
		s.groups[i] = g
	}
	return g
}

// writableGroups copies the slice of groups if a clone shares it.
func (s *Stream) writableGroups() {
	if s.groupsShared {
		s.groups = slices.Clone(s.groups)
		s.groupsShared = false
	}
}

// AddGroup adds a group, which must not exist. It has delivered all entries up to
// last; read is their number, or UnknownRead.
func (s *Stream) AddGroup(name []byte, last StreamID, read int64) *Group {
	g := s.addGroup(string(name))
	if s.log != nil {
		s.newcomer = true
	}
	g.SetID(last, read)
	return g
}

func (s *Stream) addGroup(name string) *Group {
	i, _ := s.findGroup(name)
	g := &Group{
		name: name, owner: s.owner, s: s, read: UnknownRead,
		pending: btree.NewBTreeGOptions(pendingLess, btree.Options{NoLocks: true}),
	}
	s.writableGroups()
	s.groups = slices.Insert(s.groups, i, g)
	return g
}

// RemoveGroup removes a group and reports whether it existed.
func (s *Stream) RemoveGroup(name []byte) bool {
	i, ok := s.findGroup(packed.View(name))
	if !ok {
		return false
	}
	if s.log != nil {
		s.logGroup(s.groups[i])
		s.log.Op(journal.OpRemoveGroup)
	}
	s.removeGroup(i)
	return true
}

func (s *Stream) removeGroup(i int) {
	s.writableGroups()
	s.groups = slices.Delete(s.groups, i, i+1)
	s.group, s.consumer = nil, nil
}

// clone returns a copy of g for s. It writes to the B-trees of g, but not to
// structures that readers of a cloned stream use.
func (g *Group) clone(s *Stream) *Group {
	c := *g
	c.owner, c.s = s.owner, s
	c.pending = g.pending.Copy()
	if g.byTime != nil {
		c.byTime = g.byTime.Copy()
	}
	c.consumers = make([]*Consumer, len(g.consumers))
	c.numbers = make([]*Consumer, len(g.numbers))
	for i, old := range g.consumers {
		x := *old
		if old.pending != nil {
			x.pending = old.pending.Copy()
		}
		c.consumers[i], c.numbers[x.number] = &x, &x
	}
	return &c
}

// Name returns the name of the group.
func (g *Group) Name() string { return g.name }

// LastID returns the ID of the last delivered entry.
func (g *Group) LastID() StreamID { return g.last }

// Read returns the number of entries up to LastID, or UnknownRead.
func (g *Group) Read() int64 { return g.read }

// SetID sets the values of LastID and Read.
func (g *Group) SetID(last StreamID, read int64) {
	g.last, g.read = last, read
	g.logID()
}

// Len returns the number of pending entries. O(1).
func (g *Group) Len() int { return g.pending.Len() }

// Pending returns the pending entry with an ID. O(log n).
func (g *Group) Pending(id StreamID) (p Pending, ok bool) { return g.pending.Get(Pending{ID: id}) }

// Ends returns the first and the last pending entry, zero values if there is none.
// O(log n).
func (g *Group) Ends() (first, last Pending) {
	first, _ = g.pending.Min()
	last, _ = g.pending.Max()
	return first, last
}

// Ascend yields the pending entries from an ID on. The group must not be modified
// during the iteration.
func (g *Group) Ascend(from StreamID) iter.Seq[Pending] {
	return func(yield func(Pending) bool) { g.pending.Ascend(Pending{ID: from}, yield) }
}

// AscendOf yields the pending entries of a consumer from an ID on. The group must
// not be modified during the iteration.
func (g *Group) AscendOf(c *Consumer, from StreamID) iter.Seq[Pending] {
	return func(yield func(Pending) bool) {
		if c.pending == nil {
			return
		}
		c.pending.Ascend(from, func(id StreamID) bool {
			p, _ := g.Pending(id)
			return yield(p)
		})
	}
}

// ByTime yields the pending entries by the time of their last delivery, the earliest
// first, and those of one time by their IDs. The group must not be modified during the
// iteration. The first call needs a group for writing, and takes O(n log n).
func (g *Group) ByTime(yield func(Pending) bool) {
	if g.byTime == nil {
		g.byTime = btree.NewBTreeGOptions(deliveredBefore, btree.Options{NoLocks: true})
		g.pending.Scan(func(p Pending) bool {
			g.byTime.Set(p)
			return true
		})
	}
	g.byTime.Scan(yield)
}

// OrderedByTime reports whether ByTime was called, so that it needs no group for writing.
func (g *Group) OrderedByTime() bool { return g.byTime != nil }

// Owner returns the consumer of a pending entry.
func (g *Group) Owner(p Pending) *Consumer { return g.numbers[p.consumer] }

// Consumers returns the consumers, sorted by name. The caller must not modify the
// slice.
func (g *Group) Consumers() []*Consumer { return g.consumers }

func (g *Group) findConsumer(name string) (int, bool) {
	return slices.BinarySearchFunc(g.consumers, name, func(c *Consumer, name string) int { return strings.Compare(c.name, name) })
}

// Consumer returns a consumer by name, or nil if there is none.
func (g *Group) Consumer(name []byte) *Consumer {
	if i, ok := g.findConsumer(packed.View(name)); ok {
		return g.consumers[i]
	}
	return nil
}

// AddConsumer adds a consumer, which must not exist. seen is its last attempt to
// read, in milliseconds since 1970; it has never received an entry.
func (g *Group) AddConsumer(name []byte, seen int64) *Consumer {
	c := g.addConsumer(string(name))
	c.seen = seen
	if log := g.s.log; log != nil {
		g.s.logGroup(g)
		g.s.newcomer = true
	}
	g.logConsumer(c, true)
	return c
}

func (g *Group) addConsumer(name string) *Consumer {
	i, _ := g.findConsumer(name)
	number := slices.Index(g.numbers, nil)
	if len(g.consumers) == len(g.numbers) {
		number = len(g.numbers)
		g.numbers = append(g.numbers, nil)
	}
	c := &Consumer{name: name, number: uint32(number), active: NeverActive}
	g.numbers[number] = c
	g.consumers = slices.Insert(g.consumers, i, c)
	return c
}

// RemoveConsumer removes a consumer and its pending entries.
func (g *Group) RemoveConsumer(c *Consumer) {
	if log := g.s.log; log != nil {
		g.logConsumer(c, false)
		log.Op(journal.OpRemoveConsumer)
	}
	g.removeConsumer(c)
}

func (g *Group) removeConsumer(c *Consumer) {
	if c.pending != nil {
		c.pending.Scan(func(id StreamID) bool {
			p, _ := g.pending.Delete(Pending{ID: id})
			g.untime(p)
			return true
		})
	}
	i, _ := g.findConsumer(c.name)
	g.consumers = slices.Delete(g.consumers, i, i+1)
	g.numbers[c.number] = nil
	if g.s.consumer == c {
		g.s.consumer = nil
	}
}

// Name returns the name of the consumer.
func (c *Consumer) Name() string { return c.name }

// Seen returns the time of the consumer's last attempt to read, in milliseconds
// since 1970.
func (c *Consumer) Seen() int64 { return c.seen }

// NeverActive is the value of Active for a consumer that has never received an
// entry.
const NeverActive = -1

// Active returns the time at which the consumer last received an entry, in
// milliseconds since 1970, or NeverActive.
func (c *Consumer) Active() int64 { return c.active }

// Len returns the number of the consumer's pending entries. O(1).
func (c *Consumer) Len() int {
	if c.pending == nil {
		return 0
	}
	return c.pending.Len()
}

// SetTimes sets the values of Seen and Active.
func (g *Group) SetTimes(c *Consumer, seen, active int64) {
	c.seen, c.active = seen, active
	g.logConsumer(c, true)
}

// RecordRead records an attempt of a consumer to read; got reports whether it
// received an entry.
func (g *Group) RecordRead(c *Consumer, now int64, got bool) {
	if c.seen == now && (!got || c.active == now) {
		return
	}
	if c.seen = now; got {
		c.active = now
	}
	g.logConsumer(c, true)
}

// Deliver records the delivery of an entry to a consumer, and removes the entry
// from a previous consumer. time is in milliseconds since 1970. O(log n).
func (g *Group) Deliver(c *Consumer, id StreamID, time, count int64) {
	if log := g.s.log; log != nil {
		g.logConsumer(c, false)
		log.Op(journal.OpDeliver)
		g.s.logEntryID(id)
		log.Signed(time)
		log.Signed(count)
	}
	g.deliver(c, id, time, count)
}

func (g *Group) deliver(c *Consumer, id StreamID, time, count int64) {
	p := Pending{id, time, count, c.number}
	old, ok := g.pending.Load(p)
	if g.byTime != nil {
		if ok {
			g.byTime.Delete(old)
		}
		g.byTime.Set(p)
	}
	if ok {
		if old.consumer == c.number {
			return
		}
		g.numbers[old.consumer].pending.Delete(id)
	}
	if c.pending == nil {
		c.pending = newIDs()
	}
	c.pending.Load(id)
}

// untime removes an entry that is no longer pending from the order by time.
func (g *Group) untime(p Pending) {
	if g.byTime != nil {
		g.byTime.Delete(p)
	}
}

// Acknowledge removes a pending entry and reports whether it existed. O(log n).
func (g *Group) Acknowledge(id StreamID) bool {
	p, ok := g.pending.Delete(Pending{ID: id})
	if !ok {
		return false
	}
	g.untime(p)
	c := g.numbers[p.consumer]
	if c.pending.Delete(id); c.pending.Len() == 0 {
		c.pending = nil
	}
	if log := g.s.log; log != nil {
		g.s.logGroup(g)
		log.Op(journal.OpAcknowledge)
		g.s.logEntryID(id)
	}
	return true
}

// Refs selects the handling of pending entries when their stream entry is removed.
type Refs uint8

const (
	KeepRefs  Refs = iota // they stay pending
	DropRefs              // they are removed from all groups
	OnlyAcked             // the entry is kept while it is Referenced
)

// Referenced reports whether an entry is pending in a group, or not yet delivered
// by a group. O(groups·log n).
func (s *Stream) Referenced(id StreamID) bool {
	for _, g := range s.groups {
		if _, pending := g.Pending(id); pending || g.last.Less(id) {
			return true
		}
	}
	return false
}

// Forget acknowledges an entry in all groups, and reports whether it was pending in
// any. O(groups·log n).
func (s *Stream) Forget(id StreamID) (found bool) {
	for i, g := range s.groups {
		if _, pending := g.Pending(id); pending {
			s.editGroup(i).Acknowledge(id)
			found = true
		}
	}
	return found
}

// ReadNext delivers up to count entries after LastID to a consumer, and yields
// them. They become pending only if keep is true. valkey is whether Read is counted as by
// Valkey. O(1) for each entry, O(log n) if it becomes pending.
func (g *Group) ReadNext(c *Consumer, count int, now int64, keep, valkey bool, yield func(StreamEntry)) {
	from, ok := g.last.Next()
	if !ok {
		return
	}
	n := 0
	for e := range g.s.Ascend(from, MaxStreamID()) {
		if n == count {
			break
		}
		g.advance(e.ID, valkey)
		yield(e)
		if keep {
			g.Deliver(c, e.ID, now, 1)
		}
		n++
	}
	if n > 0 {
		g.logID()
	}
}

// advance sets LastID to that of a later entry.
func (g *Group) advance(id StreamID, valkey bool) {
	switch s := g.s; {
	case g.read != UnknownRead && !s.deletedFrom(g.last, valkey) && !g.last.Less(s.FirstID()):
		g.read++
	case s.added != 0:
		g.read = s.Position(id)
	}
	g.last = id
}

// deletedFrom reports whether an entry with an ID of at least id may have been deleted. Those
// before the first entry count for Valkey only.
func (s *Stream) deletedFrom(id StreamID, valkey bool) bool {
	return s.n > 0 && !s.maxDeleted.IsZero() && !s.maxDeleted.Less(id) && (valkey || !s.maxDeleted.Less(s.FirstID()))
}

// Position returns the number of entries added up to id, or UnknownRead if it
// cannot be determined. O(1).
func (s *Stream) Position(id StreamID) int64 {
	switch order := id.Compare(s.last); {
	case s.added == 0:
		return 0
	case s.n == 0 && order <= 0, order == 0:
		return s.added
	case order > 0, !id.IsZero() && id.Less(s.maxDeleted):
		return UnknownRead
	}
	first := s.FirstID()
	if s.maxDeleted.IsZero() || s.maxDeleted.Less(first) {
		switch id.Compare(first) {
		case -1:
			return s.added - int64(s.n)
		case 0:
			return s.added - int64(s.n) + 1
		}
	}
	return UnknownRead
}

// Lag returns the number of entries not yet delivered by a group, and whether it is
// known. valkey is whether it is that of Valkey: Read subtracted from Added also where no
// entry, or every one, is to be delivered. O(1).
func (s *Stream) Lag(g *Group, valkey bool) (n int64, known bool) {
	switch first := s.FirstID(); {
	case s.added == 0, s.n == 0 && !valkey:
		return 0, true
	case g.last.Less(first) && s.maxDeleted.Less(first) && !valkey:
		return int64(s.n), true
	}
	read := g.read
	if read == UnknownRead || s.deletedFrom(g.last, valkey) {
		read = s.Position(g.last)
	}
	return s.added - read, read != UnknownRead
}

func (g *Group) bytes() int {
	sum := int(unsafe.Sizeof(*g)) + len(g.name) + len(g.numbers)*8 + len(g.consumers)*8
	sum += g.pending.Len() * (int(unsafe.Sizeof(Pending{})) + int(unsafe.Sizeof(StreamID{})))
	if g.byTime != nil {
		sum += g.pending.Len() * int(unsafe.Sizeof(Pending{}))
	}
	for _, c := range g.consumers {
		sum += int(unsafe.Sizeof(*c)) + len(c.name)
		if c.pending != nil {
			sum += int(unsafe.Sizeof(*c.pending))
		}
	}
	return sum
}

func (g *Group) check() error {
	n := 0
	for i, c := range g.consumers {
		if i > 0 && g.consumers[i-1].name >= c.name {
			return fmt.Errorf("consumer %q after %q", c.name, g.consumers[i-1].name)
		}
		if int(c.number) >= len(g.numbers) || g.numbers[c.number] != c {
			return fmt.Errorf("consumer %q is not number %d", c.name, c.number)
		}
		n += c.Len()
		if c.pending == nil {
			continue
		}
		var err error
		c.pending.Scan(func(id StreamID) bool {
			if p, ok := g.Pending(id); !ok || p.consumer != c.number {
				err = fmt.Errorf("%v is pending with %q, the group has number %d (%v)", id, c.name, p.consumer, ok)
			}
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	if n != g.Len() {
		return fmt.Errorf("%d entries are pending with consumers, %d with the group", n, g.Len())
	}
	if g.byTime != nil && g.byTime.Len() != g.Len() {
		return fmt.Errorf("%d entries by time, %d are pending", g.byTime.Len(), g.Len())
	}
	for i, c := range g.numbers {
		if c != nil && int(c.number) != i {
			return fmt.Errorf("consumer %q is number %d, and not %d", c.name, i, c.number)
		}
	}
	return nil
}
