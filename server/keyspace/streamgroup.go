package keyspace

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"unsafe"

	"github.com/tidwall/btree"
)

// A group has the entries that were delivered and not yet acknowledged in a
// B-tree by ID, and each of its consumers has the IDs of its own in another. An
// entry names its consumer by a number, not by a pointer, so that a group is
// copied without looking at each of them: the trees are copied on write.

// Group is a number of consumers that share the entries of a stream among
// themselves. It is changed through the stream that returned it from EditGroup
// or AddGroup, until that stream is cloned.
type Group struct {
	name      string
	last      StreamID // the last that was delivered
	read      int64    // how many entries were read up to that one; -1 if that is not known
	pending   *btree.BTreeG[Pending]
	consumers []*Consumer // by name
	numbers   []*Consumer // by number; nil where there is none
	owner     *token
	s         *Stream
}

// Consumer is one of a group.
type Consumer struct {
	name    string
	number  uint32
	seen    int64
	active  int64
	pending *btree.BTreeG[StreamID]
}

// Pending is an entry that was delivered to a consumer, and not acknowledged.
type Pending struct {
	ID       StreamID
	Time     int64 // of the last delivery, in milliseconds since 1970
	Count    int64 // of deliveries
	consumer uint32
}

func pendingLess(a, b Pending) bool { return a.ID.Less(b.ID) }

func newIDs() *btree.BTreeG[StreamID] {
	return btree.NewBTreeGOptions(StreamID.Less, btree.Options{NoLocks: true})
}

// UnknownRead is what a group says that does not know how many entries it has
// read.
const UnknownRead = -1

// Groups returns the groups by their names. The slice is the stream's own.
func (s *Stream) Groups() []*Group { return s.groups }

func (s *Stream) findGroup(name string) (int, bool) {
	return slices.BinarySearchFunc(s.groups, name, func(g *Group, name string) int { return strings.Compare(g.name, name) })
}

// Group returns the group of that name for reading, nil if there is none.
func (s *Stream) Group(name []byte) *Group {
	if i, ok := s.findGroup(viewOf(name)); ok {
		return s.groups[i]
	}
	return nil
}

// EditGroup returns the group of that name for changing, nil if there is none.
// Where the stream was cloned before, O(consumers).
func (s *Stream) EditGroup(name []byte) *Group {
	i, ok := s.findGroup(viewOf(name))
	if !ok {
		return nil
	}
	return s.editGroup(i)
}

func (s *Stream) editGroup(i int) *Group {
	s.ownGroups()
	g := s.groups[i]
	if g.owner != s.owner || g.s != s {
		g = g.clone(s)
		s.groups[i] = g
	}
	return g
}

// ownGroups makes the slice of groups ready for writing.
func (s *Stream) ownGroups() {
	if s.alike {
		s.groups = slices.Clone(s.groups)
		s.alike = false
	}
}

// AddGroup adds a group, which must not exist. It has delivered everything up
// to last; read is how many entries that were, or UnknownRead.
func (s *Stream) AddGroup(name []byte, last StreamID, read int64) *Group {
	g := s.addGroup(string(name))
	g.SetID(last, read)
	return g
}

func (s *Stream) addGroup(name string) *Group {
	i, _ := s.findGroup(name)
	g := &Group{
		name: name, owner: s.owner, s: s, read: UnknownRead,
		pending: btree.NewBTreeGOptions(pendingLess, btree.Options{NoLocks: true}),
	}
	s.ownGroups()
	s.groups = slices.Insert(s.groups, i, g)
	return g
}

// RemoveGroup removes a group and reports whether there was one.
func (s *Stream) RemoveGroup(name []byte) bool {
	i, ok := s.findGroup(viewOf(name))
	if !ok {
		return false
	}
	if s.log != nil {
		s.logGroup(s.groups[i])
		s.log.op(opRemoveGroup)
	}
	s.removeGroup(i)
	return true
}

func (s *Stream) removeGroup(i int) {
	s.ownGroups()
	s.groups = slices.Delete(s.groups, i, i+1)
	s.group, s.consumer = nil, nil
}

// clone returns a copy for s. It writes to the trees of g, but not to what
// readers of a clone of the stream look at.
func (g *Group) clone(s *Stream) *Group {
	c := *g
	c.owner, c.s = s.owner, s
	c.pending = g.pending.Copy()
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

// LastID returns the last ID that was delivered.
func (g *Group) LastID() StreamID { return g.last }

// Read returns how many entries were read up to LastID, or UnknownRead.
func (g *Group) Read() int64 { return g.read }

// SetID sets what LastID and Read return.
func (g *Group) SetID(last StreamID, read int64) {
	g.last, g.read = last, read
	g.logID()
}

// Len returns how many entries are pending. O(1).
func (g *Group) Len() int { return g.pending.Len() }

// Pending returns what is pending of an ID. O(log n).
func (g *Group) Pending(id StreamID) (p Pending, ok bool) { return g.pending.Get(Pending{ID: id}) }

// Ends returns the first and the last of what is pending. O(log n).
func (g *Group) Ends() (first, last Pending) {
	first, _ = g.pending.Min()
	last, _ = g.pending.Max()
	return first, last
}

// Ascend yields what is pending from an ID on. The group must not be changed
// meanwhile.
func (g *Group) Ascend(from StreamID) iter.Seq[Pending] {
	return func(yield func(Pending) bool) { g.pending.Ascend(Pending{ID: from}, yield) }
}

// AscendOf yields what is pending with a consumer from an ID on. The group must
// not be changed meanwhile.
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

// Owner returns the consumer to which an entry was delivered last.
func (g *Group) Owner(p Pending) *Consumer { return g.numbers[p.consumer] }

// Consumers returns the consumers by their names. The slice is the group's own.
func (g *Group) Consumers() []*Consumer { return g.consumers }

func (g *Group) findConsumer(name string) (int, bool) {
	return slices.BinarySearchFunc(g.consumers, name, func(c *Consumer, name string) int { return strings.Compare(c.name, name) })
}

// Consumer returns the consumer of that name, nil if there is none.
func (g *Group) Consumer(name []byte) *Consumer {
	if i, ok := g.findConsumer(viewOf(name)); ok {
		return g.consumers[i]
	}
	return nil
}

// AddConsumer adds a consumer, which must not exist. It was seen at that time,
// in milliseconds since 1970, and never got anything.
func (g *Group) AddConsumer(name []byte, seen int64) *Consumer {
	c := g.addConsumer(string(name))
	c.seen = seen
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

// RemoveConsumer removes a consumer, and what is pending with it.
func (g *Group) RemoveConsumer(c *Consumer) {
	if log := g.s.log; log != nil {
		g.logConsumer(c, false)
		log.op(opRemoveConsumer)
	}
	g.removeConsumer(c)
}

func (g *Group) removeConsumer(c *Consumer) {
	if c.pending != nil {
		c.pending.Scan(func(id StreamID) bool {
			g.pending.Delete(Pending{ID: id})
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

// Seen returns when the consumer last tried to get something, in milliseconds
// since 1970.
func (c *Consumer) Seen() int64 { return c.seen }

// NeverActive is when a consumer got something last that never did.
const NeverActive = -1

// Active returns when the consumer last got something, in milliseconds since
// 1970, or NeverActive.
func (c *Consumer) Active() int64 { return c.active }

// Len returns how many entries are pending with the consumer. O(1).
func (c *Consumer) Len() int {
	if c.pending == nil {
		return 0
	}
	return c.pending.Len()
}

// SetTimes sets what Seen and Active return.
func (g *Group) SetTimes(c *Consumer, seen, active int64) {
	c.seen, c.active = seen, active
	g.logConsumer(c, true)
}

// Saw notes that a consumer has tried to get something, and whether it did.
func (g *Group) Saw(c *Consumer, now int64, got bool) {
	if c.seen == now && (!got || c.active == now) {
		return
	}
	if c.seen = now; got {
		c.active = now
	}
	g.logConsumer(c, true)
}

// Deliver notes that an entry was delivered to a consumer, whoever had it
// before. O(log n).
func (g *Group) Deliver(c *Consumer, id StreamID, time, count int64) {
	if log := g.s.log; log != nil {
		g.logConsumer(c, false)
		log.op(opDeliver)
		log.id(id)
		log.signed(time)
		log.signed(count)
	}
	g.deliver(c, id, time, count)
}

func (g *Group) deliver(c *Consumer, id StreamID, time, count int64) {
	p := Pending{id, time, count, c.number}
	if old, ok := g.pending.Load(p); ok {
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

// Acknowledge removes an entry from what is pending, and reports whether it was
// there. O(log n).
func (g *Group) Acknowledge(id StreamID) bool {
	p, ok := g.pending.Delete(Pending{ID: id})
	if !ok {
		return false
	}
	c := g.numbers[p.consumer]
	if c.pending.Delete(id); c.pending.Len() == 0 {
		c.pending = nil
	}
	if log := g.s.log; log != nil {
		g.s.logGroup(g)
		log.op(opAcknowledge)
		log.id(id)
	}
	return true
}

// Refs says what becomes of what groups know of an entry that is removed.
type Refs uint8

const (
	KeepRefs  Refs = iota // it stays pending where it is
	DropRefs              // it is pending nowhere any more
	OnlyAcked             // the entry stays while it is Referenced
)

// Referenced reports whether a group has an entry still before it, or pending.
// O(groups·log n).
func (s *Stream) Referenced(id StreamID) bool {
	for _, g := range s.groups {
		if _, pending := g.Pending(id); pending || g.last.Less(id) {
			return true
		}
	}
	return false
}

// Forget acknowledges an entry in all groups, and reports whether it was pending
// in any. O(groups·log n).
func (s *Stream) Forget(id StreamID) (found bool) {
	for i, g := range s.groups {
		if _, pending := g.Pending(id); pending {
			s.editGroup(i).Acknowledge(id)
			found = true
		}
	}
	return found
}

// ReadNext delivers the entries behind LastID, at most count, to a consumer, and
// yields them. Unless keep is true nothing becomes pending. O(1) for each.
func (g *Group) ReadNext(c *Consumer, count int, now int64, keep bool, yield func(StreamEntry)) {
	from, ok := g.last.Next()
	if !ok {
		return
	}
	n := 0
	for e := range g.s.Ascend(from, MaxStreamID()) {
		if n == count {
			break
		}
		g.advance(e.ID)
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

// advance moves on to an entry behind LastID.
func (g *Group) advance(id StreamID) {
	switch s := g.s; {
	case g.read != UnknownRead && !s.deletedFrom(id):
		g.read++
	case s.added != 0:
		g.read = s.Position(id)
	}
	g.last = id
}

// deletedFrom reports whether an entry from id on may have been deleted, the
// stream not being empty.
func (s *Stream) deletedFrom(id StreamID) bool {
	return s.n > 0 && !s.maxDeleted.IsZero() && !s.maxDeleted.Less(s.FirstID()) && !s.maxDeleted.Less(id)
}

// Position returns how many entries were ever added up to id, or UnknownRead if
// that cannot be told. O(1).
func (s *Stream) Position(id StreamID) int64 {
	switch order := id.Compare(s.last); {
	case s.added == 0:
		return 0
	case s.n == 0 && order <= 0, order == 0:
		return s.added
	case order > 0:
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

// Lag returns how many entries are still to be delivered, and whether that is
// known. O(1).
func (s *Stream) Lag(g *Group) (n int64, known bool) {
	if s.added == 0 {
		return 0, true
	}
	read := g.read
	if read == UnknownRead || s.deletedFrom(g.last) {
		read = s.Position(g.last)
	}
	return s.added - read, read != UnknownRead
}

func (g *Group) bytes() int {
	sum := int(unsafe.Sizeof(*g)) + len(g.name) + len(g.numbers)*8 + len(g.consumers)*8
	sum += g.pending.Len() * (int(unsafe.Sizeof(Pending{})) + int(unsafe.Sizeof(StreamID{})))
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
			return fmt.Errorf("consumer %q behind %q", c.name, g.consumers[i-1].name)
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
	for i, c := range g.numbers {
		if c != nil && int(c.number) != i {
			return fmt.Errorf("consumer %q is number %d, and not %d", c.name, i, c.number)
		}
	}
	return nil
}
