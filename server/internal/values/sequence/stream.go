package sequence

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"unsafe"

	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/packed"
)

// A stream is a deque of nodes, each with a block of entries, in ascending order of
// IDs. A block is one slice of up to 4 KB or 100 entries. The entries are packed
// elements (package packed), which can be walked from either end:
//
//	entry = n ms seq { field value }   n > 0: number of fields, which follow with their values
//	entry = 0 ms seq { value }         the fields are those of the block
//	n, ms = uvarint                    ms is relative to the ID of the block
//	seq   = varint                     relative to the ID of the block
//	field, value = uvarint length, bytes
//
//	nodes   │ first ID, *block │ first ID, *block │ …     deque of nodes
//	block   names │ data: entry │ entry │ …
//
// A lookup is a binary search over the first IDs, which are adjacent in memory, and
// then a walk over at most 99 entries.
//
// Blocks have the same boundaries as in Redis, because XADD and XTRIM with MAXLEN ~
// remove whole blocks. A boundary depends on the size of the block in Redis,
// including deleted entries, so a block tracks that size although it frees their
// memory. A tree of blocks is the rejected alternative: removals from the middle of
// streams of many millions would be cheaper, and all other operations more
// expensive.
//
// Invariants (Stream.Check): IDs ascend within and across blocks and do not exceed
// last; live is the number of entries in data; every entry decodes completely; n is
// the sum of live; groups and consumers are sorted by name, and their pending
// entries agree.

// Stream is a sequence of entries with ascending IDs, and the consumer groups that
// share them. It may be empty. The zero value is ready to use. A Stream is not safe
// for concurrent use, except that a clone and its original are independent.
//
// Fields and values are returned as slices of the stream's memory: they must not be
// modified, and are valid until the stream changes.
type Stream struct {
	n            int
	last         StreamID // highest ID of any entry so far
	maxDeleted   StreamID // highest ID of a deleted entry
	added        int64    // number of entries added so far
	nodes        deque[streamNode]
	groups       []*Group     // sorted by name
	owner        *token       // blocks and groups with another owner are shared: copied before a write
	shared       bool         // the nodes are shared with a clone: copied before a write
	groupsShared bool         // the slice of groups is shared with a clone: copied before a write
	producers    *producers   // nil while they have left nothing
	log          *journal.Log // receives all changes; may be nil

	// Group and consumer of the last operation that was written to the log, or
	// replayed.
	group    *Group
	consumer *Consumer
	newcomer bool // it is new; for the log
}

// streamNode is a block with its ID.
type streamNode struct {
	first StreamID // ID of the first entry, which may be deleted
	*streamBlock
}

type streamBlock struct {
	owner *token
	last  StreamID // ID of the last entry, which may be deleted
	live  int      // number of entries
	dead  int      // number of deleted entries
	size  int      // bytes of all entries in Redis, without live and dead
	names []byte   // number of fields, and the fields; adjacent blocks share it
	data  []byte
}

// listpackFrame is the size of the header and the end of a listpack.
const listpackFrame = 7

// redisSize returns the size of the block in Redis.
func (b *streamBlock) redisSize() int {
	return listpackFrame + packed.ListpackIntSize(int64(b.live)) + packed.ListpackIntSize(int64(b.dead)) + b.size
}

// StreamEntry is an entry of a stream. Its fields and values are slices of the
// stream's memory.
type StreamEntry struct {
	ID    StreamID
	n     int
	names []byte // fields of the block, or nil if data has fields and values
	data  []byte
}

// Len returns the number of fields.
func (e *StreamEntry) Len() int { return e.n }

// Pairs yields fields and their values. It is an iterator: range over e.Pairs.
func (e *StreamEntry) Pairs(yield func(field, value []byte) bool) {
	names, data := e.names, e.data
	for range e.n {
		var field, value []byte
		if e.names != nil {
			field, names = splitText(names)
		} else {
			field, data = splitText(data)
		}
		value, data = splitText(data)
		if !yield(field, value) {
			return
		}
	}
}

// splitText splits a length-prefixed text from the beginning of b.
func splitText(b []byte) (text, rest []byte) {
	if n := int(b[0]); n < 0x80 {
		return b[1 : 1+n : 1+n], b[1+n:]
	}
	n, w := binary.Uvarint(b)
	end := w + int(n)
	return b[w:end:end], b[end:]
}

// entry decodes a packed element of the block.
func (nd *streamNode) entry(b []byte) StreamEntry {
	n, w := binary.Uvarint(b)
	id, size := nd.idAt(b[w:])
	e := StreamEntry{ID: id, n: int(n), data: b[w+size:]}
	if n == 0 {
		n, w = binary.Uvarint(nd.names)
		e.n, e.names = int(n), nd.names[w:]
	}
	return e
}

// id decodes the ID of a packed element of the block.
func (nd *streamNode) id(b []byte) StreamID {
	w := 1
	if b[0] >= 0x80 {
		_, w = binary.Uvarint(b)
	}
	id, _ := nd.idAt(b[w:])
	return id
}

func (nd *streamNode) idAt(b []byte) (id StreamID, size int) {
	ms, w := binary.Uvarint(b)
	seq, v := binary.Varint(b[w:])
	return StreamID{nd.first.Ms + ms, nd.first.Seq + uint64(seq)}, w + v
}

// seek returns the offset of the first entry in the block with an ID of at least
// id, and the number of entries before it.
func (nd *streamNode) seek(id StreamID) (at, before int) {
	if !nd.first.Less(id) {
		return 0, 0
	}
	for at < len(nd.data) {
		b, size := packed.FirstEntry(nd.data[at:])
		if !nd.id(b).Less(id) {
			break
		}
		at += size
		before++
	}
	return at, before
}

// Len returns the number of entries. O(1).
func (s *Stream) Len() int { return s.n }

// LastID returns the highest ID of any entry so far, or the one set by SetID. O(1).
func (s *Stream) LastID() StreamID { return s.last }

// MaxDeletedID returns the highest ID of a deleted entry, excluding trimmed ones.
// O(1).
func (s *Stream) MaxDeletedID() StreamID { return s.maxDeleted }

// Added returns the number of entries added so far. O(1).
func (s *Stream) Added() int64 { return s.added }

// First returns the first entry. O(1).
func (s *Stream) First() (e StreamEntry, ok bool) {
	for e = range s.Ascend(StreamID{}, MaxStreamID()) {
		return e, true
	}
	return e, false
}

// Last returns the last entry. O(1).
func (s *Stream) Last() (e StreamEntry, ok bool) {
	for e = range s.Descend(StreamID{}, MaxStreamID()) {
		return e, true
	}
	return e, false
}

// FirstID returns the ID of the first entry, or 0-0 if there is none. O(1).
func (s *Stream) FirstID() StreamID {
	e, _ := s.First()
	return e.ID
}

// find returns the index of the last node with a first ID of at most id, or 0.
func (s *Stream) find(id StreamID) int {
	nodes := s.nodes.all()
	k := sort.Search(len(nodes), func(i int) bool { return id.Less(nodes[i].first) })
	return max(k-1, 0)
}

// Ascend yields the entries with IDs from lo to hi, inclusive, in ascending order.
// O(log n) for the first entry. The stream must not be modified during the
// iteration.
func (s *Stream) Ascend(lo, hi StreamID) iter.Seq[StreamEntry] {
	return func(yield func(StreamEntry) bool) {
		nodes := s.nodes.all()
		if len(nodes) == 0 {
			return
		}
		k := s.find(lo)
		at, _ := nodes[k].seek(lo)
		for ; k < len(nodes); k++ {
			nd := &nodes[k]
			for at < len(nd.data) {
				b, size := packed.FirstEntry(nd.data[at:])
				e := nd.entry(b)
				if hi.Less(e.ID) || !yield(e) {
					return
				}
				at += size
			}
			at = 0
		}
	}
}

// Descend yields the entries with IDs from hi down to lo, inclusive. O(log n) for
// the first entry. The stream must not be modified during the iteration.
func (s *Stream) Descend(lo, hi StreamID) iter.Seq[StreamEntry] {
	return func(yield func(StreamEntry) bool) {
		nodes := s.nodes.all()
		if len(nodes) == 0 {
			return
		}
		for k := s.find(hi); k >= 0; k-- {
			nd := &nodes[k]
			for end := len(nd.data); end > 0; {
				b, size := packed.LastEntry(nd.data[:end])
				end -= size
				e := nd.entry(b)
				if hi.Less(e.ID) {
					continue
				}
				if e.ID.Less(lo) || !yield(e) {
					return
				}
			}
		}
	}
}

// Count returns the number of entries with IDs from lo to hi, inclusive, but at
// most limit. O(log n), plus one step for each hundred entries counted.
func (s *Stream) Count(lo, hi StreamID, limit int) int {
	nodes := s.nodes.all()
	if len(nodes) == 0 || hi.Less(lo) {
		return 0
	}
	k := s.find(lo)
	_, before := nodes[k].seek(lo)
	n := -before
	for ; k < len(nodes) && n < limit; k++ {
		if k+1 < len(nodes) && !hi.Less(nodes[k+1].first) || !hi.Less(nodes[k].last) {
			n += nodes[k].live
			continue
		}
		if next, ok := hi.Next(); ok {
			_, upTo := nodes[k].seek(next)
			n += upTo
		}
		break
	}
	return min(max(n, 0), limit)
}

// Get returns the entry with an ID. O(log n).
func (s *Stream) Get(id StreamID) (e StreamEntry, ok bool) {
	for e = range s.Ascend(id, id) {
		return e, true
	}
	return e, false
}

// Has reports whether there is an entry with an ID. O(log n).
func (s *Stream) Has(id StreamID) bool {
	nodes := s.nodes.all()
	if len(nodes) == 0 {
		return false
	}
	nd := &nodes[s.find(id)]
	at, _ := nd.seek(id)
	if at == len(nd.data) {
		return false
	}
	b, _ := packed.FirstEntry(nd.data[at:])
	return nd.id(b) == id
}

// writableNodes copies the nodes if a clone shares them.
func (s *Stream) writableNodes() {
	if s.shared {
		s.nodes.clone()
		s.shared = false
	}
}

// writableBlock returns node k with a block for writing, and copies a shared block. The
// pointer is valid until a node is added or removed.
func (s *Stream) writableBlock(k int) *streamNode {
	s.writableNodes()
	nd := &s.nodes.all()[k]
	if nd.owner != s.owner {
		b := *nd.streamBlock
		b.owner, b.data = s.owner, bytes.Clone(b.data)
		nd.streamBlock = &b
	}
	return nd
}

// StreamLimits are the maximum sizes of a block, as the parameters stream-node-max-bytes
// and stream-node-max-entries set them, 0 for no limit; and the limits of new streams.
type StreamLimits struct {
	MaxBytes, MaxEntries int
	Idempotence          IdempotenceLimits
}

// DefaultStreamLimits returns the default limits of Redis.
func DefaultStreamLimits() StreamLimits { return StreamLimits{4096, 100, DefaultIdempotenceLimits()} }

// maxBlock is the maximum size of a block for any configuration, as in Redis.
const maxBlock = 1 << 30

// fits reports whether the last block accepts another entry with the given number
// of bytes in fields and values.
func (s *Stream) fits(bytes int, l StreamLimits) bool {
	nodes := s.nodes.all()
	if len(nodes) == 0 {
		return false
	}
	b := &nodes[len(nodes)-1]
	limit := l.MaxBytes
	if limit == 0 || limit > maxBlock {
		limit = maxBlock
	}
	if b.redisSize()+bytes >= limit {
		return false
	}
	return l.MaxEntries == 0 || b.live+b.dead < l.MaxEntries
}

// Add appends an entry. Its ID must be higher than LastID. fields alternates fields
// and values, at least one pair. O(1) amortized.
func (s *Stream) Add(id StreamID, fields [][]byte, l StreamLimits) {
	bytes := 0
	for _, b := range fields {
		bytes += len(b)
	}
	op := byte(journal.OpPut)
	if !s.fits(bytes, l) {
		op = journal.OpPutNewBlock
	}
	if s.log != nil {
		s.log.Op(op)
		s.logEntryID(id)
		s.log.Number(uint64(len(fields) / 2))
		for _, b := range fields {
			s.log.Bytes(b)
		}
	}
	s.add(id, fields, op == journal.OpPutNewBlock)
}

func (s *Stream) add(id StreamID, fields [][]byte, newBlock bool) {
	n := len(fields) / 2
	k := s.nodes.len() - 1
	if newBlock {
		s.addBlock(id, fields)
		k++
	}
	nd := s.writableBlock(k)
	if !nd.hasFields(fields) {
		nd.append(id, n, fields, n)
	} else {
		nd.append(id, 0, fields, n)
	}
	nd.last, nd.live = id, nd.live+1
	s.n++
	s.added++
	s.last = id
}

// addBlock appends an empty block for an entry with the given fields and values.
func (s *Stream) addBlock(id StreamID, fields [][]byte) {
	s.writableNodes()
	b := &streamBlock{owner: s.owner}
	n := len(fields) / 2
	if k := s.nodes.len() - 1; k >= 0 {
		before := &s.nodes.all()[k]
		if before.owner == s.owner && cap(before.data)-len(before.data) > len(before.data)/8 {
			before.data = bytes.Clone(before.data)
		}
		if before.hasFields(fields) {
			b.names = before.names
		}
		b.data = make([]byte, 0, min(len(before.data)+16, chunkBytes)) // avoids reallocation for entries of similar size
	}
	if b.names == nil {
		b.names = binary.AppendUvarint(nil, uint64(n))
		for i := 0; i < len(fields); i += 2 {
			b.names = packed.AppendText(b.names, fields[i])
		}
		b.names = slices.Clip(b.names)
	}
	b.size = packed.ListpackIntSize(int64(n)) + packed.ListpackIntSize(0)
	for i := 0; i < len(fields); i += 2 {
		b.size += packed.ListpackSize(fields[i])
	}
	s.nodes.insertGap(s.nodes.len(), 1, math.MaxInt)[0] = streamNode{id, b}
}

// hasFields reports whether the fields, which alternate with values, equal those of the
// block.
func (nd *streamNode) hasFields(fields [][]byte) bool {
	n, w := binary.Uvarint(nd.names)
	if int(n) != len(fields)/2 {
		return false
	}
	names := nd.names[w:]
	for i := 0; i < len(fields); i += 2 {
		var name []byte
		if name, names = splitText(names); !bytes.Equal(name, fields[i]) {
			return false
		}
	}
	return true
}

// append appends an entry of n fields. own is n, or 0 if the fields equal those of
// the block.
func (nd *streamNode) append(id StreamID, own int, fields [][]byte, n int) {
	var head [3 * binary.MaxVarintLen64]byte
	h := binary.AppendUvarint(head[:0], uint64(own))
	h = binary.AppendUvarint(h, id.Ms-nd.first.Ms)
	h = binary.AppendVarint(h, int64(id.Seq-nd.first.Seq))
	const flags = 2 // bytes of the flags in Redis
	size := len(h)
	redis := flags + packed.ListpackIntSize(int64(id.Ms-nd.first.Ms)) + packed.ListpackIntSize(int64(id.Seq-nd.first.Seq))
	elements := 3 + n
	if own > 0 {
		elements += n + 1
		redis += packed.ListpackIntSize(int64(n))
	}
	redis += packed.ListpackIntSize(int64(elements))
	for i, b := range fields {
		if own > 0 || i%2 == 1 {
			size += packed.TextSize(len(b))
			redis += packed.ListpackSize(b)
		}
	}
	total := packed.EntrySize(size)
	end := len(nd.data)
	nd.data = slices.Grow(nd.data, total)[:end+total]
	b := append(packed.FrameEntry(nd.data[end:], size)[:0], h...)
	for i, text := range fields {
		if own > 0 || i%2 == 1 {
			b = packed.AppendText(b, text)
		}
	}
	nd.size += redis
}

// Delete removes an entry and reports whether it existed. O(log n), plus a copy
// within its block.
func (s *Stream) Delete(id StreamID) bool {
	if !s.Has(id) {
		return false
	}
	if s.log != nil {
		s.log.Op(journal.OpRemove)
		s.logEntryID(id)
	}
	k := s.find(id)
	if s.nodes.all()[k].live == 1 {
		s.dropBlocks(k, 1)
	} else {
		nd := s.writableBlock(k)
		at, _ := nd.seek(id)
		_, size := packed.FirstEntry(nd.data[at:])
		nd.data = slices.Delete(nd.data, at, at+size)
		nd.live--
		nd.dead++
		s.n--
	}
	if s.maxDeleted.Less(id) {
		s.maxDeleted = id
	}
	return true
}

// dropBlocks removes n blocks from node k on.
func (s *Stream) dropBlocks(k, n int) {
	s.writableNodes()
	for _, nd := range s.nodes.all()[k : k+n] {
		s.n -= nd.live
	}
	clear(s.nodes.removeRange(k, n))
	s.nodes.shrink()
}

// StreamTrim selects the entries that Trim removes from the beginning of a stream.
type StreamTrim struct {
	ByID   bool     // remove entries before MinID; otherwise all but the last MaxLen
	Approx bool     // remove whole blocks only
	MaxLen int64    // must not be negative
	MinID  StreamID //
	Limit  int64    // with Approx, maximum number of removals; 0 for no limit
	Refs   Refs     // handling of references by groups
}

// Trim removes entries from the beginning and returns their number. O(1) for each
// removed block, and for each entry of a block that is cut; O(log n) for each entry
// if groups are consulted.
func (s *Stream) Trim(t StreamTrim) int {
	if t.Refs != KeepRefs {
		return s.trimEach(t)
	}
	blocks, removed, part := 0, int64(0), 0
	nodes := s.nodes.all()
	for i := range nodes {
		nd := &nodes[i]
		length, live := int64(s.n)-removed, int64(nd.live)
		if !t.ByID && length <= t.MaxLen || t.Limit != 0 && removed+live > t.Limit {
			break
		}
		if t.ByID && nd.last.Less(t.MinID) || !t.ByID && length-live >= t.MaxLen {
			blocks++
			removed += live
			continue
		}
		switch {
		case t.Approx:
		case t.ByID:
			_, part = nd.seek(t.MinID)
		default:
			part = int(length - t.MaxLen)
		}
		break
	}
	if blocks == 0 && part == 0 {
		return 0
	}
	if s.log != nil {
		s.log.Op(journal.OpRemoveRange)
		s.log.Number(uint64(blocks))
		s.log.Number(uint64(part))
	}
	s.trimFront(blocks, part)
	if s.log != nil && s.log.Followed {
		s.log.Hints = appendID(s.log.Hints, s.FirstID()) // the first entry that remains, 0-0 for none
	}
	return int(removed) + part
}

// trimEach is Trim entry by entry. As in Redis, it trims within the last block even
// if t.Approx is set.
func (s *Stream) trimEach(t StreamTrim) int {
	var gone []StreamID
	nodes := s.nodes.all()
	for i := range nodes {
		nd := &nodes[i]
		length, live := int64(s.n-len(gone)), int64(nd.live)
		if !t.ByID && length <= t.MaxLen || t.Limit != 0 && int64(len(gone))+live > t.Limit {
			break
		}
		whole := t.ByID && nd.last.Less(t.MinID) || !t.ByID && length-live >= t.MaxLen
		for at := 0; at < len(nd.data); {
			e, size := packed.FirstEntry(nd.data[at:])
			id := nd.id(e)
			if t.ByID && !id.Less(t.MinID) || !t.ByID && int64(s.n-len(gone)) <= t.MaxLen {
				break
			}
			if t.Refs != OnlyAcked || !s.Referenced(id) {
				gone = append(gone, id)
			}
			at += size
		}
		if !whole {
			break
		}
	}
	maxDeleted := s.maxDeleted
	for _, id := range gone {
		if t.Refs == DropRefs {
			s.Forget(id)
		}
		s.Delete(id)
	}
	if s.maxDeleted != maxDeleted { // trimming does not change MaxDeletedID
		s.SetID(s.last, s.added, maxDeleted)
	}
	return len(gone)
}

// trimFront removes blocks from the beginning, and then n entries.
func (s *Stream) trimFront(blocks, n int) {
	if blocks > 0 {
		s.dropBlocks(0, blocks)
	}
	if n == 0 {
		return
	}
	nd := s.writableBlock(0)
	for range n {
		_, size := packed.FirstEntry(nd.data)
		nd.data = nd.data[size:]
	}
	nd.live -= n
	nd.dead += n
	s.n -= n
}

// SetID sets the values of LastID, Added and MaxDeletedID. No entry may have a
// higher ID than last.
func (s *Stream) SetID(last StreamID, added int64, maxDeleted StreamID) {
	if s.log != nil {
		s.log.Op(journal.OpID)
		s.logEntryID(last)
		s.log.Number(uint64(added))
		s.logEntryID(maxDeleted)
	}
	s.last, s.added, s.maxDeleted = last, added, maxDeleted
}

// Clone returns a copy of the stream. O(1): the two streams share memory
// copy-on-write.
func (s *Stream) Clone() *Stream {
	s.owner, s.shared, s.groupsShared = new(token), true, true
	c := *s
	c.owner, c.log, c.group, c.consumer = new(token), nil, nil, nil
	return &c
}

// Encoding returns the encoding for OBJECT ENCODING: "stream".
func (s *Stream) Encoding() string { return "stream" }

// Blocks returns the number of blocks, and the number of nodes in the radix tree by
// which Redis finds them. O(blocks).
func (s *Stream) Blocks() (blocks, treeNodes int) {
	nodes := s.nodes.all()
	if len(nodes) == 0 {
		return 0, 1
	}
	// The tree branches where keys diverge. Each branch leads, through one node for
	// its common bytes if there are any, to the next branch point, or to a node for
	// the end of a key.
	const length = 16
	treeNodes = len(nodes)
	var open []int // branch points above the current key, the deepest last
	run := func(from, to int) {
		if from < to {
			treeNodes++
		}
	}
	closeTo := func(depth int) {
		for len(open) > 0 && open[len(open)-1] > depth {
			at := open[len(open)-1]
			open = open[:len(open)-1]
			above := depth
			if len(open) > 0 {
				above = max(above, open[len(open)-1])
			}
			treeNodes++
			run(above+1, at)
		}
	}
	before := -1
	for i := range nodes {
		common := -1
		if i+1 < len(nodes) {
			common = commonBytes(nodes[i].first, nodes[i+1].first)
		}
		run(max(before, common)+1, length)
		closeTo(common)
		if common >= 0 && (len(open) == 0 || open[len(open)-1] < common) {
			open = append(open, common)
		}
		before = common
	}
	return len(nodes), treeNodes
}

// commonBytes returns the length of the common prefix of two IDs in big-endian
// form.
func commonBytes(a, b StreamID) int {
	var x, y [16]byte
	for i, id := range []StreamID{a, b} {
		to := [][]byte{x[:], y[:]}[i]
		binary.BigEndian.PutUint64(to, id.Ms)
		binary.BigEndian.PutUint64(to[8:], id.Seq)
	}
	n := 0
	for n < 16 && x[n] == y[n] {
		n++
	}
	return n
}

// Bytes estimates the memory of the stream in bytes. O(blocks + consumers).
func (s *Stream) Bytes() int {
	sum := int(unsafe.Sizeof(*s)) + len(s.nodes.buf)*int(unsafe.Sizeof(streamNode{}))
	var names *byte
	for _, nd := range s.nodes.all() {
		sum += int(unsafe.Sizeof(streamBlock{})) + cap(nd.data)
		if p := unsafe.SliceData(nd.names); p != names {
			names = p
			sum += len(nd.names)
		}
	}
	for _, g := range s.groups {
		sum += g.bytes()
	}
	return sum + s.producers.bytes()
}

// Size returns the number of entries, groups, consumers, pending entries and identifiers.
func (s *Stream) Size() int {
	n := s.n
	if s.producers != nil {
		n += s.producers.names.Len()
	}
	for _, g := range s.groups {
		n += 1 + len(g.consumers) + g.Len()
	}
	return n
}

// Check verifies the invariants and returns an error if one is violated. For tests.
// O(n).
func (s *Stream) Check() error {
	n := 0
	before := StreamID{}
	for k, nd := range s.nodes.all() {
		if k > 0 && !before.Less(nd.first) {
			return fmt.Errorf("block %v after %v", nd.first, before)
		}
		if err := nd.check(); err != nil {
			return err
		}
		before = nd.last
		n += nd.live
	}
	if n != s.n {
		return fmt.Errorf("%d entries, counted as %d", n, s.n)
	}
	if e, ok := s.Last(); ok && s.last.Less(e.ID) {
		return fmt.Errorf("entry %v after the last ID %v", e.ID, s.last)
	}
	for i, g := range s.groups {
		if i > 0 && s.groups[i-1].name >= g.name {
			return fmt.Errorf("group %q after %q", g.name, s.groups[i-1].name)
		}
		if err := g.check(); err != nil {
			return fmt.Errorf("group %q: %w", g.name, err)
		}
	}
	return s.producers.check()
}

// check verifies a block with arbitrary content. It does not panic.
func (nd *streamNode) check() error {
	names := journal.Operands{Rest: nd.names}
	if fields := names.Number(); fields == 0 || fields > uint64(len(nd.names)) || !skipTexts(&names, int(fields)) || len(names.Rest) > 0 {
		return fmt.Errorf("block %v: fields %.50q", nd.first, nd.names)
	}
	if nd.live < 0 || nd.dead < 0 || nd.live+nd.dead < 1 || nd.size < 0 {
		return fmt.Errorf("block %v: %d entries, and %d deleted, of %d bytes", nd.first, nd.live, nd.dead, nd.size)
	}
	n := 0
	for at := 0; at < len(nd.data); n++ {
		o := journal.Operands{Rest: nd.data[at:]}
		b := o.Text()
		if size := packed.EntrySize(len(b)); o.Failed || size > len(nd.data)-at || !bytes.Equal(frameOf(b), nd.data[at+packed.TextSize(len(b)):at+size]) {
			return fmt.Errorf("block %v: no entry at byte %d", nd.first, at)
		}
		if err := nd.checkEntry(b); err != nil {
			return err
		}
		id := nd.id(b)
		if nd.last.Less(id) || id.Less(nd.first) {
			return fmt.Errorf("block %v to %v: entry %v", nd.first, nd.last, id)
		}
		if n > 0 {
			if prev, _ := packed.LastEntry(nd.data[:at]); !nd.id(prev).Less(id) {
				return fmt.Errorf("block %v: entry %v after %v", nd.first, id, nd.id(prev))
			}
		}
		at += packed.EntrySize(len(b))
	}
	if n != nd.live {
		return fmt.Errorf("block %v: %d entries, counted as %d", nd.first, n, nd.live)
	}
	return nil
}

// frameOf returns the trailing length of a packed element.
func frameOf(b []byte) []byte {
	frame := binary.AppendUvarint(nil, uint64(len(b)))
	slices.Reverse(frame)
	return frame
}

// checkEntry verifies the content of a packed element.
func (nd *streamNode) checkEntry(b []byte) error {
	o := journal.Operands{Rest: b}
	own := o.Number()
	o.Number()
	o.Signed()
	n := own * 2
	if own == 0 {
		n, _ = binary.Uvarint(nd.names)
	}
	if own > uint64(len(b)) || !skipTexts(&o, int(n)) || len(o.Rest) > 0 {
		return fmt.Errorf("block %v: no fields and values: %.50q", nd.first, b)
	}
	return nil
}

// Weight estimates Bytes from a sample of the blocks of a long stream.
func (s *Stream) Weight() int {
	const samples = 4
	all := s.nodes.all()
	n := int(unsafe.Sizeof(*s)) + len(s.nodes.buf)*int(unsafe.Sizeof(streamNode{})) + len(all)*int(unsafe.Sizeof(streamBlock{}))
	if len(all) > 0 {
		n += cap(all[len(all)-1].data) + packed.Allocated(cap(all[0].names))
	}
	if full := len(all) - 1; full > 0 {
		size, looked := 0, min(samples, full)
		for i := range looked {
			size += cap(all[i*full/looked].data)
		}
		n += size * full / looked
	}
	for _, g := range s.groups {
		n += int(unsafe.Sizeof(*g)) + g.Len()*pendingBytes + len(g.consumers)*consumerBytes
		if g.byTime != nil {
			n += g.Len() * int(unsafe.Sizeof(Pending{}))
		}
	}
	return n + s.producers.bytes()
}

// Approximate bytes of a pending entry and of a consumer.
const (
	pendingBytes  = 96
	consumerBytes = 256
)
