package keyspace

import (
	"encoding/binary"
	"math"

	"github.com/zsetd/zsetd/zset"
)

// A journal is the changes of a keyspace, as records in order. A record belongs to
// one key and describes how its value changes, independent of the command:
//
//	record   = space key length operations
//	space    = uvarint, see DB.Space
//	key      = text
//	length   = uvarint, of the operations in bytes
//	text     = uvarint length, bytes
//
// and the operations, each a letter and its arguments, are
//
//	N kind           the value is a new, empty one of the kind s, l, t, h, z or x
//	D                the key is deleted
//	E uvarint        the key expires then (milliseconds since 1970); 0 for never
//	S text           the string is this
//	W uvarint text   the string has these bytes from this offset on; zeros before it if it was shorter
//	P text text      the hash has this field with this value
//	P text           the set has this member
//	P text 8 bytes   the sorted set has this member with this score (IEEE 754, little endian)
//	O                the set, so far empty, keeps small integers in the order they come, too
//	R text           the hash, set or sorted set has no such field or member
//	T text uvarint   the member of the sorted set, or field of the hash, expires then; 0 for never
//	C                the sorted set has no members
//	L text           the list has this element in front; A text: at the end
//	l, a             the list has lost its first, its last element
//	= uvarint text   element i of the list is this
//	I uvarint text   the list has this before element i
//	X uvarint uvarint  n elements of the list are removed, from element i on
//	M varint text    elements equal to this are removed: all if 0, the first n, or the last -n
//
// and of streams, where an id is two numbers,
//
//	P id uvarint { text text }  there is this entry of so many fields at the end; B: in a new block
//	R id                        the entry was deleted
//	X uvarint uvarint           so many blocks, and then so many entries, are removed from the beginning
//	# id uvarint id             its last id, how many entries were added, and the highest that was deleted
//	K id id uvarint uvarint uvarint text text   there is this block at the end; see streamBlock
//	G text           the following operations apply to this group, which may be new
//	> id varint      it has delivered everything up to this, and so many entries
//	g                it is deleted
//	U text varint varint  the following operations apply to this consumer of it, which may be new and was seen, and active, then
//	u                it is deleted with its pending entries
//	V id varint varint  the entry is pending with it since then, and was delivered so often
//	v id             the entry is not pending in the group
//
// A whole value is written in the same way, as the operations that build it from
// nothing. So one interpreter reads bases and journals alike, it needs no code of
// commands, and keys do not depend on each other: they may be restored in any order
// and in parallel. For that reason renaming and copying a key write the whole
// value.
//
// Operations are changes, so each must be applied exactly once: an element that is
// pushed twice is there twice. The rejected alternative is entries that are states
// ("this field now has this value"), which may be replayed twice. Lists rule it out.
// The elements of a list have no names but their positions, which every push at the
// front shifts, so the state that a push changes is the whole list; and one push
// onto a list of a million must cost one element. (The order matters for other
// types, too: small values keep their members in it.) Replay is exact instead: every
// record is applied once, to the very value that it was recorded from. Package
// snapshot ensures that by generations. A journal has that of its checkpoint and is
// in the file as a whole or not at all; a base has the generation as of which it is
// the value; and the records of a key that are of a later generation apply, in
// order.
//
// The operations are written, into memory, by the methods that change a value (so a
// command cannot omit one), while the command runs. The rejected alternative, to
// keep the set of dirty fields and to look up their values when the journal is
// taken, would write a field that changes often only once; but the look-up must
// happen under the lock, or the values must be pinned, and a cost of 50 ns at each
// change would become a pause of 20 ms at 100 000 changes.
const (
	opNew         = 'N'
	opDeleteKey   = 'D'
	opDeadline    = 'E'
	opString      = 'S'
	opWrite       = 'W'
	opPut         = 'P'
	opOrdered     = 'O'
	opRemove      = 'R'
	opMember      = 'T'
	opClear       = 'C'
	opFront       = 'L'
	opBack        = 'A'
	opPopFront    = 'l'
	opPopBack     = 'a'
	opIndex       = '='
	opInsert      = 'I'
	opRemoveRange = 'X'
	opMatching    = 'M'

	opPutNewBlock    = 'B'
	opID             = '#'
	opBlock          = 'K'
	opGroup          = 'G'
	opDelivered      = '>'
	opRemoveGroup    = 'g'
	opConsumer       = 'U'
	opRemoveConsumer = 'u'
	opDeliver        = 'V'
	opAcknowledge    = 'v'
)

// recorder writes the journal.
type recorder struct {
	file     bool      // there is a journal for the file; see Record
	follower *follower // collects effects, or nil; see Follow

	parts   []part
	buf     []byte // the records since the last part
	records uint64 // number of changes recorded
	size    int    // bytes in parts, those of pinned values estimated
	open    []*changes
	free    []*changes

	scratch     []byte
	whole       valueWriter // encodes values that are written as a whole
	spacesDirty bool        // databases were swapped or cleared
}

// part is a piece of a journal: records, or a value that is too large to be encoded
// under the lock.
type part struct {
	records []byte
	space   uint64
	pinned  *Pinned
}

// changes collects the operations on one value while it is open for changing.
type changes struct {
	entry    *Entry // nil once the key is deleted
	space    uint64 // space of the entry, even if another database has that space by now
	rewrite  bool   // the value is written as a whole
	ops      []byte
	n        int
	observer zset.Observer

	added    bool      // the key did not exist
	followed bool      // there is a follower
	sorted   *zset.Set // the value, if it is a sorted set
	newcomer bool      // the next group or consumer is new
	hints    []byte    // for the follower
}

// about returns what the follower has to know of the record.
func (c *changes) about() about {
	a := about(c.entry.kind())
	if !c.added {
		a |= aboutExisted
	}
	if c.entry.volatile() {
		a |= aboutVolatile
	}
	return a
}

func (c *changes) op(op byte) {
	c.ops = append(c.ops, op)
	c.n++
}

func (c *changes) number(n int) { c.ops = binary.AppendUvarint(c.ops, uint64(n)) }

func (c *changes) text(s string) { c.ops = appendText(c.ops, s) }

// put records a member of a set, or a field, whose value follows.
func (c *changes) put(text string) {
	c.op(opPut)
	c.text(text)
}

func (c *changes) remove(text string) {
	c.op(opRemove)
	c.text(text)
}

// deadline records the deadline of a member or field.
func (c *changes) deadline(text string, at int64) {
	c.op(opMember)
	c.text(text)
	c.number(int(at))
}

// at records an operation at position i of a list.
func (c *changes) at(op byte, i int, b []byte) {
	c.op(op)
	c.number(i)
	c.text(viewOf(b))
}

// end records an operation at an end of a list.
func (c *changes) end(op byte, b []byte) {
	c.op(op)
	c.text(viewOf(b))
}

// The value has changed in a way that no operation describes: record that it is to be
// written as a whole.
func (c *changes) rewriteValue() {
	c.rewrite = true
	c.ops, c.hints, c.n = c.ops[:0], c.hints[:0], 0
}

func appendText[T string | []byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendScore(dst []byte, score float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(score))
}

// Record begins a journal of all changes from now on, or ends it.
func (ks *Keyspace) Record(on bool) {
	if ks.rec != nil {
		ks.Seal()
	}
	ks.sequence = ks.Sequence()
	r := ks.rec
	if r == nil {
		r = new(recorder)
	}
	ks.rec = &recorder{file: on, follower: r.follower}
	ks.recordFor()
}

// A space is the contents of a database, until it is cleared. Journals and bases
// name spaces instead of databases, so that swapping and clearing databases touches
// no key.

// newSpace returns the number of a space that was never used.
func (ks *Keyspace) newSpace() uint64 {
	ks.spaces++
	return ks.spaces
}

// Space returns the number of the space that the database now has.
func (db *DB) Space() uint64 { return db.space }

// Spaces returns the spaces of all databases, in their order.
func (ks *Keyspace) Spaces() []uint64 {
	spaces := make([]uint64, len(ks.dbs))
	for i, db := range ks.dbs {
		spaces[i] = db.space
	}
	return spaces
}

// LastSpace returns the highest number that was ever given to a space.
func (ks *Keyspace) LastSpace() uint64 { return ks.spaces }

// SetSpaces gives the databases, which must be empty, the spaces of a restored
// file; last is the highest number that was given to a space by then. Databases
// beyond those get new spaces.
func (ks *Keyspace) SetSpaces(spaces []uint64, last uint64) {
	ks.spaces = max(ks.spaces, last)
	for _, space := range spaces {
		ks.spaces = max(ks.spaces, space)
	}
	for i, db := range ks.dbs {
		if i < len(spaces) {
			db.space = spaces[i]
		} else {
			db.space = ks.newSpace()
		}
	}
}

// Recording reports whether there is a journal.
func (ks *Keyspace) Recording() bool { return ks.rec != nil && ks.rec.file }

// Recorded returns the size of the journal in bytes, with values that are pinned in
// it estimated; 0 if there is none.
func (ks *Keyspace) Recorded() int {
	r := ks.rec
	if r == nil || !r.file {
		return 0
	}
	n := r.size + len(r.buf)
	if n == 0 && r.spacesDirty {
		return 1
	}
	return n
}

// Sequence returns a number that grows with every change that is recorded in the
// journal, and not with those that are only followed: a client need not wait until
// these are in the file.
func (ks *Keyspace) Sequence() uint64 {
	if ks.rec == nil {
		return ks.sequence
	}
	return ks.sequence + ks.rec.records
}

// Seal closes all values that were opened with [DB.Edit] or created since the last
// Seal: it writes the changes of each as one record, and detaches the values from
// the journal. It must be called after every command, and no caller may keep a
// value beyond it to change it without another Edit: such a change would not be in
// the journal. Seal also updates the next deadline among the members of each value.
func (ks *Keyspace) Seal() {
	if ks.rec != nil && len(ks.rec.open) > 0 {
		ks.rec.seal()
	}
	if len(ks.edited) > 0 {
		ks.reschedule()
	}
	if len(ks.growing) > 0 {
		ks.weigh()
	}
}

// Journal is a part of a journal that was taken out of the keyspace.
type Journal struct{ parts []part }

// TakeJournal removes and returns the records since the last call; nil if there are
// none. O(1).
func (ks *Keyspace) TakeJournal() *Journal {
	ks.Seal()
	r := ks.rec
	if r == nil || ks.Recorded() == 0 {
		return nil
	}
	room := min(cap(r.buf), 64<<10)
	r.flush()
	j := &Journal{r.parts}
	r.parts, r.size, r.spacesDirty = nil, 0, false
	r.buf = make([]byte, 0, room)
	return j
}

// Chunks yields the records in order, in pieces of some 10 KB to a few hundred KB.
// It encodes the values that were pinned, and may be called while the keyspace is
// in use. The caller may keep the pieces.
func (j *Journal) Chunks(yield func([]byte) bool) {
	for _, p := range j.parts {
		if p.pinned == nil {
			if !yield(p.records) {
				return
			}
			continue
		}
		var header []byte
		header = appendText(binary.AppendUvarint(header, p.space), p.pinned.key)
		for ops := range p.pinned.Chunks {
			record := make([]byte, 0, len(header)+binary.MaxVarintLen32+len(ops))
			record = append(record, header...)
			record = binary.AppendUvarint(record, uint64(len(ops)))
			if !yield(append(record, ops...)) {
				return
			}
		}
	}
}

// flushAt is the size at which records become a part. A buffer that grows without
// limit would be copied again and again.
const flushAt = 256 << 10

func (r *recorder) flush() {
	if len(r.buf) > 0 {
		r.parts = append(r.parts, part{records: r.buf})
		r.size += len(r.buf)
		r.buf = nil
	}
}

// record writes a record. The follower gets a and the hints with it.
func (r *recorder) record(space uint64, key string, ops []byte, a about, hints []byte) {
	if r.follower != nil {
		r.follower.record(space, key, a, ops, hints)
		if !r.file {
			return
		}
	}
	r.records++
	r.buf = appendText(binary.AppendUvarint(r.buf, space), key)
	r.buf = append(binary.AppendUvarint(r.buf, uint64(len(ops))), ops...)
	if len(r.buf) >= flushAt {
		r.flush()
		r.buf = make([]byte, 0, flushAt+flushAt/4)
	}
}

// openEntry returns the changes of e, which may be new.
func (r *recorder) openEntry(db *DB, e *Entry) *changes {
	if e.open() != 0 {
		return r.open[e.open()-1]
	}
	var c *changes
	if n := len(r.free); n > 0 {
		c = r.free[n-1]
		r.free = r.free[:n-1]
	} else {
		c = new(changes)
		c.observer = zset.Observer{
			Put: func(member string, score float64) {
				c.put(member)
				c.ops = appendScore(c.ops, score)
				if !c.followed {
					return
				}
				if d := c.sorted.Deadlines(); d != nil { // ZADD removes the deadline, Put does not
					if at, ok := d.Score(member); ok {
						c.deadline(member, int64(at))
					}
				}
			},
			Deadline: c.deadline,
			Removed:  c.remove,
			Cleared: func() {
				c.op(opClear)
				c.emptied()
			},
		}
	}
	c.entry, c.space = e, db.space
	c.added, c.followed = false, r.follower != nil
	r.open = append(r.open, c)
	e.setOpen(uint32(len(r.open)))
	return c
}

// observe makes the value of e report its changes.
func (r *recorder) observe(db *DB, e *Entry) {
	if e.open() == 0 {
		if e.kind() != isString { // DB.SetString and similar methods write their records themselves
			attach(e.Value(), r.openEntry(db, e))
		}
	}
}

// The value of e was replaced: record that it is to be written as a whole.
func (r *recorder) replaced(db *DB, e *Entry) { r.openEntry(db, e).rewriteValue() }

// added records the value of e, whose key is new.
func (r *recorder) added(db *DB, e *Entry) {
	c := r.openEntry(db, e)
	c.added = true
	c.rewriteValue()
}

// string records a change of a string.
func (r *recorder) string(db *DB, e *Entry, op byte, offset int, b []byte) {
	if e.open() != 0 { // new, and written as a whole when this command is done
		return
	}
	r.scratch = append(r.scratch[:0], op)
	if op == opWrite {
		r.scratch = binary.AppendUvarint(r.scratch, uint64(offset))
	}
	r.scratch = appendText(r.scratch, b)
	a := aboutExisted
	if e.volatile() {
		a |= aboutVolatile
	}
	r.record(db.space, e.Key(), r.scratch, a, nil)
	if cap(r.scratch) > keepOps {
		r.scratch = nil
	}
}

// deleted records that e is no longer in db.
func (r *recorder) deleted(db *DB, e *Entry) {
	if e.open() != 0 {
		c := r.open[e.open()-1]
		attach(e.Value(), nil)
		e.setOpen(0)
		c.entry = nil
		c.ops, c.hints, c.n, c.rewrite = c.ops[:0], c.hints[:0], 0, false
	}
	r.record(db.space, e.Key(), []byte{opDeleteKey}, aboutExisted, nil)
}

// deadline records the new deadline of e.
func (r *recorder) deadline(db *DB, e *Entry) {
	if e.open() != 0 {
		if c := r.open[e.open()-1]; !c.rewrite {
			c.ops = binary.AppendUvarint(append(c.ops, opDeadline), uint64(e.Deadline()))
			c.n++
		}
		return
	}
	var b [1 + binary.MaxVarintLen64]byte
	b[0] = opDeadline
	r.record(db.space, e.Key(), binary.AppendUvarint(b[:1], uint64(e.Deadline())), aboutExisted, nil)
}

// spacesChanged records that the spaces of databases have changed.
func (r *recorder) spacesChanged() {
	if r.file {
		r.spacesDirty = true
		r.records++
	}
}

// swapped records that databases i and j were swapped.
func (r *recorder) swapped(i, j int) {
	r.spacesChanged()
	if r.follower != nil {
		r.follower.swapped(i, j)
	}
}

// cleared records that a space has no keys any more.
func (r *recorder) cleared(space uint64) {
	r.spacesChanged()
	if r.follower != nil {
		r.follower.cleared(space)
	}
	for _, c := range r.open {
		if c.entry != nil && c.space == space {
			attach(c.entry.Value(), nil)
			c.entry, c.rewrite, c.n, c.ops, c.hints = nil, false, 0, c.ops[:0], c.hints[:0]
		}
	}
}

// attach makes a value report its changes to c; nil detaches it.
func attach(value any, c *changes) {
	switch v := value.(type) {
	case *List:
		v.log = c
	case *Set:
		if !v.inEntry() && (c != nil || v.o != nil) {
			v.object().log = c
		}
	case *Hash:
		// DB.SetField and similar methods record the changes of a value within its
		// entry.
		if !v.inEntry() && (c != nil || v.o != nil) {
			v.object().log = c
		}
	case *Stream:
		v.observe(c)
	case *zset.Set:
		if c == nil {
			v.Observe(nil)
		} else {
			c.sorted = v
			v.Observe(&c.observer)
		}
	}
}

// keepOps is the largest buffer of operations that is kept for the next value.
const keepOps = 64 << 10

func (r *recorder) seal() {
	for _, c := range r.open {
		e := c.entry
		if e != nil {
			e.setOpen(0)
			attach(e.Value(), nil)
			switch {
			case c.rewrite || c.n > pinAt && c.n > sizeOf(e.Value()):
				r.value(c)
			case c.n > 0:
				r.record(c.space, e.Key(), c.ops, c.about(), c.hints)
			}
		}
		c.entry, c.sorted, c.rewrite, c.n, c.hints = nil, nil, false, 0, c.hints[:0]
		if c.ops = c.ops[:0]; cap(c.ops) > keepOps {
			c.ops = nil
		}
	}
	r.free = append(r.free, r.open[:min(len(r.open), 16)]...)
	clear(r.open)
	if r.open = r.open[:0]; cap(r.open) > 1024 {
		r.open = nil
	}
}

// value writes a whole value, or pins it if encoding would take long.
func (r *recorder) value(c *changes) {
	e := c.entry
	if p := pin(e); p != nil {
		if r.follower != nil {
			r.follower.pin(c.space, c.about(), p)
		}
		if r.file {
			r.flush()
			r.records++
			r.parts = append(r.parts, part{space: c.space, pinned: p})
			r.size += p.bytes
		}
		return
	}
	r.whole.buf = c.ops[:0]
	r.whole.value(e.Value(), e.Deadline())
	c.ops, r.whole.buf = r.whole.buf, nil
	r.record(c.space, e.Key(), c.ops, c.about(), nil)
}
