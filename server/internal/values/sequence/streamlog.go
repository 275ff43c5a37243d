package sequence

import (
	"encoding/binary"

	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/packed"
)

// Journal operations on groups and consumers. An operation applies to the group and
// the consumer named last in the record, or in the value. So reading a hundred
// entries writes two names.

func (s *Stream) logEntryID(id StreamID) { s.log.Ops = appendID(s.log.Ops, id) }

func appendID(b []byte, id StreamID) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, id.Ms), id.Seq)
}

// logGroup selects g for the following operations. There must be a log.
func (s *Stream) logGroup(g *Group) {
	if s.group != g {
		s.group, s.consumer = g, nil
		s.log.Op(journal.OpGroup)
		s.log.Text(g.name)
		s.logSelected()
	}
}

// logID records LastID and Read.
func (g *Group) logID() {
	if log := g.s.log; log != nil {
		g.s.logGroup(g)
		log.Op(journal.OpDelivered)
		g.s.logEntryID(g.last)
		log.Signed(g.read)
	}
}

// logConsumer selects c for the following operations, and records its times if
// changed is true.
func (g *Group) logConsumer(c *Consumer, changed bool) {
	log := g.s.log
	if log == nil {
		return
	}
	g.s.logGroup(g)
	if changed || g.s.consumer != c {
		g.s.consumer = c
		log.Op(journal.OpConsumer)
		log.Text(c.name)
		log.Signed(c.seen)
		log.Signed(c.active)
		g.s.logSelected()
	}
}

// logSelected adds a hint: whether the group or consumer that was just selected is new.
func (s *Stream) logSelected() {
	if s.log.Followed {
		s.log.Hints = append(s.log.Hints, 0)
		if s.newcomer {
			s.log.Hints[len(s.log.Hints)-1] = 1
		}
	}
	s.newcomer = false
}

// Observe makes log the receiver of all changes of the stream; nil stops recording. It
// also ends the selection of a group and a consumer by operations.
func (s *Stream) Observe(log *journal.Log) { s.log, s.group, s.consumer = log, nil, nil }

// Write writes the operations that construct the stream from nothing.
func (s *Stream) Write(w *journal.Writer) {
	var names []byte
	for _, nd := range s.nodes.all() {
		w.Buf = appendID(append(w.Buf, journal.OpBlock), nd.first)
		w.Buf = appendID(w.Buf, nd.last)
		for _, n := range []int{nd.live, nd.dead, nd.size} {
			w.Buf = binary.AppendUvarint(w.Buf, uint64(n))
		}
		if packed.View(nd.names) == packed.View(names) {
			w.Buf = journal.AppendText(w.Buf, "") // the same fields as the previous block
		} else {
			w.Buf = journal.AppendText(w.Buf, nd.names)
		}
		names = nd.names
		w.Buf = journal.AppendText(w.Buf, nd.data)
		if !w.Full(journal.ChunkSize) {
			return
		}
	}
	w.Buf = appendID(append(w.Buf, journal.OpID), s.last)
	w.Buf = binary.AppendUvarint(w.Buf, uint64(s.added))
	w.Buf = appendID(w.Buf, s.maxDeleted)
	if !s.writeProducers(w) {
		return
	}
	for _, g := range s.groups {
		w.Buf = journal.AppendText(append(w.Buf, journal.OpGroup), g.name)
		w.Buf = appendID(append(w.Buf, journal.OpDelivered), g.last)
		w.Buf = binary.AppendVarint(w.Buf, g.read)
		for _, c := range g.consumers {
			w.Buf = journal.AppendText(append(w.Buf, journal.OpConsumer), c.name)
			w.Buf = binary.AppendVarint(w.Buf, c.seen)
			w.Buf = binary.AppendVarint(w.Buf, c.active)
			for p := range g.AscendOf(c, StreamID{}) {
				w.Buf = appendID(append(w.Buf, journal.OpDeliver), p.ID)
				w.Buf = binary.AppendVarint(w.Buf, p.Time)
				w.Buf = binary.AppendVarint(w.Buf, p.Count)
				if !w.Full(journal.ChunkSize) {
					return
				}
			}
			if !w.Full(journal.ChunkSize) {
				return
			}
		}
	}
}

// ReadID decodes the ID of an entry.
func ReadID(o *journal.Operands) StreamID { return StreamID{o.Number(), o.Number()} }

// skipTexts skips n texts and reports whether all of them exist.
func skipTexts(o *journal.Operands, n int) bool {
	for range n {
		if o.Failed {
			break
		}
		o.Text()
	}
	return !o.Failed
}

// Replay executes an operation of a journal, and reports whether it is valid.
func (s *Stream) Replay(op byte, o *journal.Operands) bool {
	switch op {
	case journal.OpPut, journal.OpPutNewBlock:
		id, n := ReadID(o), o.Number()
		if o.Failed || n == 0 || n > uint64(len(o.Rest)) || !s.last.Less(id) || op == journal.OpPut && s.nodes.len() == 0 {
			return false
		}
		fields := make([][]byte, 2*n)
		for i := range fields {
			fields[i] = o.Text()
		}
		if !o.Failed {
			s.add(id, fields, op == journal.OpPutNewBlock)
		}
	case journal.OpRemove:
		return s.Delete(ReadID(o))
	case journal.OpRemoveRange:
		blocks := o.Position(s.nodes.len())
		n := o.Number()
		if o.Failed || n > 0 && (blocks == s.nodes.len() || n > uint64(s.nodes.all()[blocks].live)) {
			return false
		}
		s.trimFront(blocks, int(n))
	case journal.OpID:
		last, added, maxDeleted := ReadID(o), o.Number(), ReadID(o)
		if e, ok := s.Last(); ok && last.Less(e.ID) {
			return false
		}
		s.SetID(last, int64(added), maxDeleted)
	case journal.OpBlock:
		return s.replayBlock(o)
	case journal.OpIdempotence, journal.OpIdentify, journal.OpOutdate, journal.OpIdentified:
		return s.replayProducers(op, o)
	case journal.OpGroup:
		name := o.Text()
		if s.group = s.EditGroup(name); s.group == nil {
			s.group = s.addGroup(string(name))
		}
		s.consumer = nil
	default:
		return s.group != nil && s.group.replay(op, o)
	}
	return true
}

func (s *Stream) replayBlock(o *journal.Operands) bool {
	nd := streamNode{ReadID(o), &streamBlock{owner: s.owner}}
	nd.last = ReadID(o)
	nd.live, nd.dead, nd.size = int(o.Number()), int(o.Number()), int(o.Number())
	names, data := o.Text(), o.Text()
	k := s.nodes.len()
	if o.Failed || k > 0 && !s.nodes.all()[k-1].last.Less(nd.first) {
		return false
	}
	if nd.names = append(nd.names, names...); len(names) == 0 && k > 0 {
		nd.names = s.nodes.all()[k-1].names
	}
	nd.data = append(nd.data, data...)
	if nd.check() != nil {
		return false
	}
	s.nodes.insertGap(k, 1, chunkBytes)[0] = nd
	s.n += nd.live
	if s.last.Less(nd.last) { // preliminary: journal.OpID may be missing in foreign data
		s.last = nd.last
	}
	return true
}

func (g *Group) replay(op byte, o *journal.Operands) bool {
	c := g.s.consumer
	switch op {
	case journal.OpRemoveGroup:
		i, _ := g.s.findGroup(g.name)
		g.s.removeGroup(i)
	case journal.OpDelivered:
		g.last, g.read = ReadID(o), o.Signed()
	case journal.OpConsumer:
		name := o.Text()
		if c = g.Consumer(name); c == nil {
			c = g.addConsumer(string(name))
		}
		c.seen, c.active = o.Signed(), o.Signed()
		g.s.consumer = c
	case journal.OpAcknowledge:
		return g.Acknowledge(ReadID(o))
	case journal.OpRemoveConsumer:
		if c == nil {
			return false
		}
		g.removeConsumer(c)
	case journal.OpDeliver:
		id, time, count := ReadID(o), o.Signed(), o.Signed()
		if c == nil || o.Failed {
			return false
		}
		g.deliver(c, id, time, count)
	default:
		return false
	}
	return true
}

// Blocks are exchanged with other programs in the format of Redis.

// StreamBlock is a block of a stream, with the boundaries of Redis.
type StreamBlock struct{ nd *streamNode }

// EachBlock yields the blocks that are not empty. It is an iterator: range over
// s.EachBlock.
func (s *Stream) EachBlock(yield func(StreamBlock) bool) {
	nodes := s.nodes.all()
	for i := range nodes {
		if nodes[i].live > 0 && !yield(StreamBlock{&nodes[i]}) {
			return
		}
	}
}

// First returns the ID of the block's first entry, which may be deleted.
func (b StreamBlock) First() StreamID { return b.nd.first }

// Len returns the number of entries. O(1).
func (b StreamBlock) Len() int { return b.nd.live }

// Fields returns the fields that most entries have.
func (b StreamBlock) Fields() [][]byte {
	n, w := binary.Uvarint(b.nd.names)
	names := b.nd.names[w:]
	fields := make([][]byte, n)
	for i := range fields {
		fields[i], names = splitText(names)
	}
	return fields
}

// All yields the entries. It is an iterator: range over b.All.
func (b StreamBlock) All(yield func(StreamEntry) bool) {
	for at := 0; at < len(b.nd.data); {
		p, size := packed.FirstEntry(b.nd.data[at:])
		if !yield(b.nd.entry(p)) {
			return
		}
		at += size
	}
}

// SharesFields reports whether the entry has the field names of its block.
func (e *StreamEntry) SharesFields() bool { return e.names != nil }

// LoadBlock appends an empty block, and returns false if its first ID is not higher
// than all IDs in the stream. LoadEntry must follow.
func (s *Stream) LoadBlock(first StreamID, fields [][]byte) bool {
	if k := s.nodes.len(); len(fields) == 0 || k > 0 && !s.nodes.all()[k-1].last.Less(first) {
		return false
	}
	pairs := make([][]byte, 0, 2*len(fields))
	for _, field := range fields {
		pairs = append(pairs, field, nil)
	}
	s.addBlock(first, pairs)
	return true
}

// LoadEntry appends an entry, or a deleted entry, to the last block, and returns
// false if its ID is not valid there.
func (s *Stream) LoadEntry(id StreamID, fields [][]byte, deleted bool) bool {
	nd := s.writableBlock(s.nodes.len() - 1)
	if id.Less(nd.first) || !nd.last.Less(id) || len(fields) == 0 {
		return false
	}
	n, own, end := len(fields)/2, 0, len(nd.data)
	if !nd.hasFields(fields) {
		own = n
	}
	nd.append(id, own, fields, n)
	nd.last = id
	if deleted {
		nd.data = nd.data[:end]
		nd.dead++
		return true
	}
	nd.live++
	s.n++
	s.added++
	s.last = id
	return true
}
