package keyspace

import (
	"encoding/binary"

	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
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
	whole       journal.Writer // encodes values that are written as a whole
	spacesDirty bool           // databases were swapped or cleared
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
	observer zset.Observer
	added    bool      // the key did not exist
	sorted   *zset.Set // the value, if it is a sorted set
	journal.Log
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
	if len(ks.growing) > maxWeighed {
		ks.weighLast()
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
		header = journal.AppendText(binary.AppendUvarint(header, p.space), p.pinned.key)
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
	r.buf = journal.AppendText(binary.AppendUvarint(r.buf, space), key)
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
				c.Put(member)
				c.Score(score)
				if !c.Followed {
					return
				}
				if d := c.sorted.Deadlines(); d != nil { // ZADD removes the deadline, Put does not
					if at, ok := d.Score(member); ok {
						c.Deadline(member, int64(at))
					}
				}
			},
			Deadline: c.Deadline,
			Removed:  c.Remove,
			Cleared: func() {
				c.Op(journal.OpClear)
				if c.Followed { // as a whole: the command may add members again
					c.Rewrite()
				}
			},
		}
	}
	c.entry, c.space = e, db.space
	c.added, c.Followed = false, r.follower != nil
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
func (r *recorder) replaced(db *DB, e *Entry) { r.openEntry(db, e).Rewrite() }

// added records the value of e, whose key is new.
func (r *recorder) added(db *DB, e *Entry) {
	c := r.openEntry(db, e)
	c.added = true
	c.Rewrite()
}

// string records a change of a string.
func (r *recorder) string(db *DB, e *Entry, op byte, offset int, b []byte) {
	if e.open() != 0 { // new, and written as a whole when this command is done
		return
	}
	r.scratch = append(r.scratch[:0], op)
	if op == journal.OpWrite {
		r.scratch = binary.AppendUvarint(r.scratch, uint64(offset))
	}
	r.scratch = journal.AppendText(r.scratch, b)
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
		c.Reset()
	}
	r.record(db.space, e.Key(), []byte{journal.OpDeleteKey}, aboutExisted, nil)
}

// deadline records the new deadline of e.
func (r *recorder) deadline(db *DB, e *Entry) {
	if e.open() != 0 {
		if c := r.open[e.open()-1]; !c.Whole {
			c.Op(journal.OpDeadline)
			c.Number(uint64(e.Deadline()))
		}
		return
	}
	var b [1 + binary.MaxVarintLen64]byte
	b[0] = journal.OpDeadline
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
			c.entry = nil
			c.Reset()
		}
	}
}

// attach makes a value report its changes to c; nil detaches it.
func attach(value any, c *changes) {
	var log *journal.Log
	if c != nil {
		log = &c.Log
	}
	switch v := value.(type) {
	case *sequence.List:
		v.Observe(log)
	case *Set:
		if !v.inEntry() && (log != nil || v.o != nil) {
			v.object().log = log
		}
	case *Hash:
		// DB.SetField and similar methods record the changes of a value within its
		// entry.
		if !v.inEntry() && (log != nil || v.o != nil) {
			v.object().log = log
		}
	case *sequence.Stream:
		v.Observe(log)
	case *zset.Set:
		if c == nil {
			v.Internal().Observe(nil)
		} else {
			c.sorted = v
			v.Internal().Observe(&c.observer)
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
			case c.Whole || c.Count > pinAt && c.Count > sizeOf(e.Value()):
				r.value(c)
			case c.Count > 0:
				r.record(c.space, e.Key(), c.Ops, c.about(), c.Hints)
			}
		}
		c.entry, c.sorted = nil, nil
		if c.Reset(); cap(c.Ops) > keepOps {
			c.Ops = nil
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
	r.whole.Buf = c.Ops[:0]
	writeValue(&r.whole, e.Value(), e.Deadline())
	c.Ops, r.whole.Buf = r.whole.Buf, nil
	r.record(c.space, e.Key(), c.Ops, c.about(), nil)
}
