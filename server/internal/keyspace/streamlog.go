package keyspace

import "encoding/binary"

// Journal operations on groups and consumers. An operation applies to the group and
// the consumer named last in the record, or in the value. So reading a hundred
// entries writes two names.

func (c *changes) id(id StreamID) {
	c.ops = appendID(c.ops, id)
}

func (c *changes) signed(n int64) { c.ops = binary.AppendVarint(c.ops, n) }

func appendID(b []byte, id StreamID) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, id.Ms), id.Seq)
}

// logGroup selects g for the following operations. There must be a log.
func (s *Stream) logGroup(g *Group) {
	if s.group != g {
		s.group, s.consumer = g, nil
		s.log.op(opGroup)
		s.log.text(g.name)
		s.log.selected()
	}
}

// logID records LastID and Read.
func (g *Group) logID() {
	if log := g.s.log; log != nil {
		g.s.logGroup(g)
		log.op(opDelivered)
		log.id(g.last)
		log.signed(g.read)
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
		log.op(opConsumer)
		log.text(c.name)
		log.signed(c.seen)
		log.signed(c.active)
		log.selected()
	}
}

// observe makes c the receiver of all changes of the stream; nil stops recording.
func (s *Stream) observe(c *changes) { s.log, s.group, s.consumer = c, nil, nil }

// stream writes a whole stream.
func (w *valueWriter) stream(s *Stream) {
	var names []byte
	for _, nd := range s.nodes.all() {
		w.buf = appendID(append(w.buf, opBlock), nd.first)
		w.buf = appendID(w.buf, nd.last)
		for _, n := range []int{nd.live, nd.dead, nd.size} {
			w.buf = binary.AppendUvarint(w.buf, uint64(n))
		}
		if viewOf(nd.names) == viewOf(names) {
			w.buf = appendText(w.buf, "") // the same fields as the previous block
		} else {
			w.buf = appendText(w.buf, nd.names)
		}
		names = nd.names
		w.buf = appendText(w.buf, nd.data)
		if !w.full(chunkOps) {
			return
		}
	}
	w.buf = appendID(append(w.buf, opID), s.last)
	w.buf = binary.AppendUvarint(w.buf, uint64(s.added))
	w.buf = appendID(w.buf, s.maxDeleted)
	for _, g := range s.groups {
		w.buf = appendText(append(w.buf, opGroup), g.name)
		w.buf = appendID(append(w.buf, opDelivered), g.last)
		w.buf = binary.AppendVarint(w.buf, g.read)
		for _, c := range g.consumers {
			w.buf = appendText(append(w.buf, opConsumer), c.name)
			w.buf = binary.AppendVarint(w.buf, c.seen)
			w.buf = binary.AppendVarint(w.buf, c.active)
			for p := range g.AscendOf(c, StreamID{}) {
				w.buf = appendID(append(w.buf, opDeliver), p.ID)
				w.buf = binary.AppendVarint(w.buf, p.Time)
				w.buf = binary.AppendVarint(w.buf, p.Count)
				if !w.full(chunkOps) {
					return
				}
			}
			if !w.full(chunkOps) {
				return
			}
		}
	}
}

func (o *operands) id() StreamID { return StreamID{o.number(), o.number()} }

// texts skips n texts and reports whether all of them exist.
func (o *operands) texts(n int) bool {
	for range n {
		if o.failed {
			break
		}
		o.text()
	}
	return !o.failed
}

func (s *Stream) replay(op byte, o *operands) bool {
	switch op {
	case opPut, opPutNewBlock:
		id, n := o.id(), o.number()
		if o.failed || n == 0 || n > uint64(len(o.rest)) || !s.last.Less(id) || op == opPut && s.nodes.len() == 0 {
			return false
		}
		fields := make([][]byte, 2*n)
		for i := range fields {
			fields[i] = o.text()
		}
		if !o.failed {
			s.add(id, fields, op == opPutNewBlock)
		}
	case opRemove:
		return s.Delete(o.id())
	case opRemoveRange:
		blocks := o.position(s.nodes.len())
		n := o.number()
		if o.failed || n > 0 && (blocks == s.nodes.len() || n > uint64(s.nodes.all()[blocks].live)) {
			return false
		}
		s.trimFront(blocks, int(n))
	case opID:
		last, added, maxDeleted := o.id(), o.number(), o.id()
		if e, ok := s.Last(); ok && last.Less(e.ID) {
			return false
		}
		s.SetID(last, int64(added), maxDeleted)
	case opBlock:
		return s.replayBlock(o)
	case opGroup:
		name := o.text()
		if s.group = s.EditGroup(name); s.group == nil {
			s.group = s.addGroup(string(name))
		}
		s.consumer = nil
	default:
		return s.group != nil && s.group.replay(op, o)
	}
	return true
}

func (s *Stream) replayBlock(o *operands) bool {
	nd := streamNode{o.id(), &streamBlock{owner: s.owner}}
	nd.last = o.id()
	nd.live, nd.dead, nd.size = int(o.number()), int(o.number()), int(o.number())
	names, data := o.text(), o.text()
	k := s.nodes.len()
	if o.failed || k > 0 && !s.nodes.all()[k-1].last.Less(nd.first) {
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
	if s.last.Less(nd.last) { // preliminary: opID may be missing in foreign data
		s.last = nd.last
	}
	return true
}

func (g *Group) replay(op byte, o *operands) bool {
	c := g.s.consumer
	switch op {
	case opRemoveGroup:
		i, _ := g.s.findGroup(g.name)
		g.s.removeGroup(i)
	case opDelivered:
		g.last, g.read = o.id(), o.signed()
	case opConsumer:
		name := o.text()
		if c = g.Consumer(name); c == nil {
			c = g.addConsumer(string(name))
		}
		c.seen, c.active = o.signed(), o.signed()
		g.s.consumer = c
	case opAcknowledge:
		return g.Acknowledge(o.id())
	case opRemoveConsumer:
		if c == nil {
			return false
		}
		g.removeConsumer(c)
	case opDeliver:
		id, time, count := o.id(), o.signed(), o.signed()
		if c == nil || o.failed {
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
		p, size := firstEntry(b.nd.data[at:])
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
