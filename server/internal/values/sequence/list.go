package sequence

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"unsafe"

	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/packed"
)

// A list is a deque of nodes, each with a chunk of up to 4 KB of length-prefixed
// elements (package packed). A larger element has a chunk of its own.
//
//	nodes   │ n, size, *chunk │ n, size, *chunk │ …     deque of nodes
//	                   │
//	chunk   free │ element │ element │ … │ free         deque of bytes
//
// A node has the element count of its chunk, so an index is found by a sum over
// adjacent numbers: a list of a million short elements has some 3000 nodes, which
// takes about a microsecond. A tree with prefix sums is the rejected alternative:
// it is faster for lists of many millions, and slower at the ends, where lists are
// used.
//
// Invariants (List.Check): every chunk has at least one element, and at most
// chunkBytes unless it has exactly one; walking a chunk forward and backward finds
// the same elements; n and size are the sums over all nodes.

// chunkBytes is the maximum size of a chunk with more than one element. Larger
// chunks make copy-on-write and insertions more expensive, smaller ones increase
// the number of nodes.
const chunkBytes = 4096

// List is a sequence of byte strings. Operations at both ends take O(1) amortized,
// access by index takes O(n / 300), and Clone takes O(1). The zero value is an
// empty list, ready to use. A List is not safe for concurrent use, except that a
// clone and its original are independent.
//
// Elements are returned as slices of the list's memory: they must not be modified,
// and are valid until the list changes.
type List struct {
	n      int // number of elements
	size   int // bytes of the elements in a listpack
	nodes  deque[node]
	owner  *token       // chunks with another owner are shared: copied before a write
	shared bool         // the nodes are shared with a clone: copied before a write
	large  bool         // reported as quicklist, see Fit
	log    *journal.Log // receives all changes; may be nil
}

// Move is how an element moves from an end of a list to an end of another, or of the same
// one: without a bit, from the front to the front.
type Move uint8

// The bits of a Move.
const (
	FromBack Move = 1 << iota
	ToBack
	Rpoplpush // by the command of that name, which says the ends
)

// node is a chunk with its counts.
type node struct {
	*chunk
	n, size int // as in List
}

type chunk struct {
	owner *token
	deque[byte]
}

func (nd *node) fits(size int) bool { return nd.len()+size <= chunkBytes }

// offset returns the offset of element j in the chunk, or of the end for j = n.
func (nd *node) offset(j int) int {
	d := nd.all()
	if j <= nd.n/2 {
		at := 0
		for range j {
			_, size := packed.FirstEntry(d[at:])
			at += size
		}
		return at
	}
	at := len(d)
	for range nd.n - j {
		_, size := packed.LastEntry(d[:at])
		at -= size
	}
	return at
}

// Len returns the number of elements. O(1).
func (l *List) Len() int { return l.n }

// find returns the node that contains element i, and the index in the node.
func (l *List) find(i int) (k, j int) {
	nodes := l.nodes.all()
	if i < l.n/2 {
		for i >= nodes[k].n {
			i -= nodes[k].n
			k++
		}
		return k, i
	}
	i = l.n - i
	for k = len(nodes) - 1; i > nodes[k].n; k-- {
		i -= nodes[k].n
	}
	return k, nodes[k].n - i
}

// At returns element i, which must be in [0, Len). O(n / 300).
func (l *List) At(i int) []byte {
	k, j := l.find(i)
	nd := &l.nodes.all()[k]
	b, _ := packed.FirstEntry(nd.all()[nd.offset(j):])
	return b
}

// Forward yields the elements from index i to the end. The list must not be
// modified during the iteration.
func (l *List) Forward(i int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) { l.forward(i, yield) }
}

func (l *List) forward(i int, yield func([]byte) bool) {
	if i >= l.n {
		return
	}
	k, j := l.find(i)
	nodes := l.nodes.all()
	at := nodes[k].offset(j)
	for ; k < len(nodes); k++ {
		for d := nodes[k].all(); at < len(d); {
			b, size := packed.FirstEntry(d[at:])
			if !yield(b) {
				return
			}
			at += size
		}
		at = 0
	}
}

// Backward yields the elements from index i to the beginning. The list must not be
// modified during the iteration.
func (l *List) Backward(i int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) { l.backward(i, yield) }
}

func (l *List) backward(i int, yield func([]byte) bool) {
	if i < 0 {
		return
	}
	k, j := l.find(i)
	nodes := l.nodes.all()
	end := nodes[k].offset(j + 1)
	for ; ; end = nodes[k].len() {
		for d := nodes[k].all(); end > 0; {
			b, size := packed.LastEntry(d[:end])
			if !yield(b) {
				return
			}
			end -= size
		}
		if k--; k < 0 {
			return
		}
	}
}

// writableNodes copies the nodes if a clone shares them.
func (l *List) writableNodes() {
	if l.shared {
		l.nodes.clone()
		l.shared = false
	}
}

// writableChunk returns node k with a chunk for writing, and copies a shared chunk. The
// pointer is valid until a node is added or removed.
func (l *List) writableChunk(k int) *node {
	l.writableNodes()
	nd := &l.nodes.all()[k]
	if nd.owner != l.owner {
		nd.chunk = &chunk{l.owner, nd.deque}
		nd.clone()
	}
	return nd
}

// addCounts adds n elements with size bytes in a listpack to the counts of a node and
// of the list; both may be negative.
func (l *List) addCounts(nd *node, n, size int) {
	nd.n += n
	nd.size += size
	l.n += n
	l.size += size
}

// addChunk inserts a node with an empty chunk before node k. size is the size of
// its first element; front tells that further elements will be added before that
// one.
func (l *List) addChunk(k, size int, front bool) {
	l.writableNodes()
	c := &chunk{owner: l.owner}
	if l.n > 0 && size <= chunkBytes/8 { // allocate the whole chunk at once
		c.buf = make([]byte, chunkBytes)
		if front {
			c.lo, c.hi = chunkBytes, chunkBytes
		}
	}
	l.nodes.insertGap(k, 1, math.MaxInt)[0] = node{chunk: c}
}

// dropChunks removes n nodes from node k on.
func (l *List) dropChunks(k, n int) {
	l.writableNodes()
	for _, nd := range l.nodes.all()[k : k+n] {
		l.n -= nd.n
		l.size -= nd.size
	}
	clear(l.nodes.removeRange(k, n))
	l.nodes.shrink()
}

// insertAt inserts an element at index j of node k, whose chunk has space for it.
func (l *List) insertAt(k, j int, b []byte) {
	nd := l.writableChunk(k)
	packed.PutEntry(nd.insertGap(nd.offset(j), packed.EntrySize(len(b)), chunkBytes), b)
	l.addCounts(nd, 1, packed.ListpackSize(b))
}

// PushFront inserts a copy of b at the beginning. b must not alias this list. O(1)
// amortized.
func (l *List) PushFront(b []byte) {
	if l.log != nil {
		l.log.Op(journal.OpFront)
		l.log.Bytes(b)
	}
	l.pushFront(b)
}

func (l *List) pushFront(b []byte) {
	size := packed.EntrySize(len(b))
	if l.n == 0 || !l.nodes.all()[0].fits(size) {
		l.addChunk(0, size, true)
	}
	l.insertAt(0, 0, b)
}

// PushBack appends a copy of b. b must not alias this list. O(1) amortized.
func (l *List) PushBack(b []byte) {
	if l.log != nil {
		l.log.Op(journal.OpBack)
		l.log.Bytes(b)
	}
	l.pushBack(b)
}

func (l *List) pushBack(b []byte) {
	size := packed.EntrySize(len(b))
	k := l.nodes.len() - 1
	if k < 0 || !l.nodes.all()[k].fits(size) {
		k++
		l.addChunk(k, size, false)
	}
	l.insertAt(k, l.nodes.all()[k].n, b)
}

// PopFront removes the first element and returns it. The list must not be empty.
// The element is valid until the next change. O(1).
func (l *List) PopFront() []byte {
	if l.log != nil {
		l.log.Op(journal.OpPopFront)
		l.logTrimmed(0, 1)
	}
	b, size := packed.FirstEntry(l.nodes.all()[0].all())
	l.removeAt(0, 0, size, b)
	return b
}

// PopBack removes the last element and returns it. The list must not be empty. The
// element is valid until the next change. O(1).
func (l *List) PopBack() []byte {
	if l.log != nil {
		l.log.Op(journal.OpPopBack)
		l.logTrimmed(l.n-1, 1)
	}
	k := l.nodes.len() - 1
	nd := &l.nodes.all()[k]
	b, size := packed.LastEntry(nd.all())
	l.removeAt(k, nd.len()-size, size, b)
	return b
}

// removeAt removes the element b of size bytes at offset at of node k.
func (l *List) removeAt(k, at, size int, b []byte) {
	if l.nodes.all()[k].n == 1 {
		l.dropChunks(k, 1)
		return
	}
	gone := packed.ListpackSize(b)
	nd := l.writableChunk(k)
	nd.removeRange(at, size)
	nd.shrink()
	l.addCounts(nd, -1, -gone)
}

// Set replaces element i, which must be in [0, Len), by a copy of b. b must not
// alias this list. O(n / 300).
func (l *List) Set(i int, b []byte) {
	if l.log != nil {
		l.log.Op(journal.OpIndex)
		l.log.Number(uint64(i))
		l.log.Bytes(b)
	}
	k, j := l.find(i)
	nd := l.writableChunk(k)
	at := nd.offset(j)
	old, was := packed.FirstEntry(nd.all()[at:])
	size := packed.EntrySize(len(b))
	if nd.n > 1 && !nd.fits(size-was) {
		l.removeAt(k, at, was, old)
		l.insert(i, b)
		return
	}
	l.addCounts(nd, 0, packed.ListpackSize(b)-packed.ListpackSize(old))
	if size < was {
		nd.removeRange(at, was-size)
	} else {
		nd.insertGap(at, size-was, chunkBytes)
	}
	packed.PutEntry(nd.all()[at:at+size], b)
	nd.shrink()
}

// Insert inserts a copy of b before element i, or at the end if i is Len. b must
// not alias this list. O(n / 300).
func (l *List) Insert(i int, b []byte) {
	if l.log != nil {
		l.log.Op(journal.OpInsert)
		l.log.Number(uint64(i))
		l.log.Bytes(b)
		l.logPivot(i)
	}
	l.insert(i, b)
}

func (l *List) insert(i int, b []byte) {
	switch i {
	case 0:
		l.pushFront(b)
		return
	case l.n:
		l.pushBack(b)
		return
	}
	k, j := l.find(i)
	size := packed.EntrySize(len(b))
	if !l.nodes.all()[k].fits(size) {
		if j > 0 {
			l.split(k, j)
			k++
			j = 0
		}
		switch nodes := l.nodes.all(); {
		case nodes[k-1].fits(size): // exists, because i > 0
			k--
			j = nodes[k].n
		case !nodes[k].fits(size):
			l.addChunk(k, size, false)
		}
	}
	l.insertAt(k, j, b)
}

// split moves the elements of node k from index j on to a new node.
func (l *List) split(k, j int) {
	nd := l.writableChunk(k)
	at := nd.offset(j)
	tail := nd.all()[at:]
	moved := node{&chunk{owner: l.owner}, nd.n - j, listpackSizes(tail)}
	copy(moved.insertGap(0, len(tail), chunkBytes), tail)
	nd.removeRange(at, len(tail))
	nd.shrink()
	nd.n, nd.size = j, nd.size-moved.size
	l.nodes.insertGap(k+1, 1, math.MaxInt)[0] = moved
}

// listpackSizes returns the size of the elements in d in a listpack.
func listpackSizes(d []byte) (sum int) {
	for len(d) > 0 {
		b, size := packed.FirstEntry(d)
		sum += packed.ListpackSize(b)
		d = d[size:]
	}
	return sum
}

// Delete removes n elements from index i on, which must exist. O(n / 300).
func (l *List) Delete(i, n int) {
	if l.log != nil && n > 0 {
		l.log.Op(journal.OpRemoveRange)
		l.log.Number(uint64(i))
		l.log.Number(uint64(n))
		l.logTrimmed(i, n)
	}
	for n > 0 {
		k, j := l.find(i)
		nodes := l.nodes.all()
		chunks := 0
		for j == 0 && k+chunks < len(nodes) && nodes[k+chunks].n <= n {
			n -= nodes[k+chunks].n
			chunks++
		}
		if chunks > 0 {
			l.dropChunks(k, chunks)
			continue
		}
		nd := l.writableChunk(k)
		here := min(n, nd.n-j)
		from, to := nd.offset(j), nd.offset(j+here)
		gone := listpackSizes(nd.all()[from:to])
		nd.removeRange(from, to-from)
		nd.shrink()
		l.addCounts(nd, -here, -gone)
		n -= here
	}
}

// Remove removes elements equal to b and returns their number: the first count, or
// the last -count if count is negative, or all if count is 0. b must not alias this
// list. O(n).
func (l *List) Remove(b []byte, count int) int {
	if l.log != nil {
		l.log.Op(journal.OpMatching)
		l.log.Signed(int64(count))
		l.log.Bytes(b)
	}
	from, limit := 0, count
	if count <= 0 {
		limit = l.n
	}
	if count < 0 {
		// The last -count matches are all matches from the -count'th last one on.
		from = l.n
		for e := range l.Backward(l.n - 1) {
			from--
			if bytes.Equal(e, b) {
				if count++; count == 0 {
					break
				}
			}
		}
	}
	if from >= l.n {
		return 0
	}
	removed := 0
	for k, j := l.find(from); k < l.nodes.len() && removed < limit; j = 0 {
		n := l.removeIn(k, j, b, limit-removed)
		removed += n
		switch nodes := l.nodes.all(); {
		case nodes[k].n == 0:
			l.dropChunks(k, 1)
		case n > 0 && k > 0 && nodes[k-1].len()+nodes[k].len() <= chunkBytes*3/4:
			l.merge(k - 1)
		default:
			k++
		}
	}
	return removed
}

// removeIn removes up to limit elements equal to b from node k, from index j on.
func (l *List) removeIn(k, j int, b []byte, limit int) (removed int) {
	nd := &l.nodes.all()[k]
	d := nd.all()
	at := nd.offset(j)
	to := at // write position of remaining elements
	for at < len(d) && removed < limit {
		e, size := packed.FirstEntry(d[at:])
		switch {
		case bytes.Equal(e, b):
			if removed == 0 {
				nd = l.writableChunk(k)
				d = nd.all()
				to = at
			}
			removed++
		case removed > 0:
			copy(d[to:], d[at:at+size])
			to += size
		}
		at += size
	}
	if removed > 0 {
		nd.removeRange(to, at-to)
		nd.shrink()
		l.addCounts(nd, -removed, -removed*packed.ListpackSize(b))
	}
	return removed
}

// merge moves the elements of node k+1 to node k.
func (l *List) merge(k int) {
	nd := l.writableChunk(k)
	next := &l.nodes.all()[k+1]
	copy(nd.insertGap(nd.len(), next.len(), chunkBytes), next.all())
	nd.n += next.n
	nd.size += next.size
	clear(l.nodes.removeRange(k+1, 1))
	l.nodes.shrink()
}

// Clone returns a copy of the list. O(1): the two lists share memory copy-on-write,
// so different goroutines may use them.
func (l *List) Clone() *List {
	l.owner, l.shared = new(token), true
	c := *l
	c.owner, c.log = new(token), nil
	return &c
}

// Fit updates, after changes, whether Redis would encode the list as a listpack or
// as a quicklist: it becomes a quicklist beyond the limit, and a listpack again
// within half of the limit.
func (l *List) Fit(listMaxListpackSize int) {
	l.large = !l.within(listMaxListpackSize, 1) || l.large && !l.within(listMaxListpackSize, 2)
}

// Expect makes the list large if it exceeds the limit with one more element of so many bytes,
// which is inserted or replaces another. Redis counts both then, and also an element that finds
// no place.
func (l *List) Expect(size, listMaxListpackSize int) {
	bytes, entries := listNode(listMaxListpackSize)
	l.large = l.large || l.size+frame+size > bytes || l.n+1 > entries
}

// frame is the size of the header and the end of a listpack.
const frame = 7

// within reports whether the list fits 1/part of the limit list-max-listpack-size.
func (l *List) within(listMaxListpackSize, part int) bool {
	bytes, entries := listNode(listMaxListpackSize)
	return l.size+frame <= bytes/part && l.n <= entries/part
}

// listNode returns the maximum size of a listpack according to
// list-max-listpack-size.
func listNode(listMaxListpackSize int) (bytes, entries int) {
	if listMaxListpackSize >= 0 {
		return 8192, max(1, listMaxListpackSize)
	}
	return 2048 << min(-listMaxListpackSize, 5), math.MaxInt
}

// Encoding returns the encoding for OBJECT ENCODING: "listpack" or "quicklist".
func (l *List) Encoding(listMaxListpackSize int) string {
	if l.large || !l.within(listMaxListpackSize, 1) {
		return "quicklist"
	}
	return "listpack"
}

// Bytes estimates the memory of the list in bytes. O(n / 300).
func (l *List) Bytes() int {
	sum := int(unsafe.Sizeof(*l)) + len(l.nodes.buf)*int(unsafe.Sizeof(node{}))
	for _, nd := range l.nodes.all() {
		sum += int(unsafe.Sizeof(chunk{})) + len(nd.buf)
	}
	return sum
}

// Check verifies the invariants and returns an error if one is violated. For tests.
// O(n).
func (l *List) Check() error {
	n, size := 0, 0
	for k, nd := range l.nodes.all() {
		if nd.n < 1 || nd.len() > chunkBytes && nd.n != 1 {
			return fmt.Errorf("chunk %d: %d bytes, %d elements", k, nd.len(), nd.n)
		}
		forward, backward, entries := 0, nd.len(), 0
		for ; forward < nd.len() && backward > 0; entries++ {
			_, size := packed.FirstEntry(nd.all()[forward:])
			forward += size
			_, size = packed.LastEntry(nd.all()[:backward])
			backward -= size
		}
		if forward != nd.len() || backward != 0 || entries != nd.n {
			return fmt.Errorf("chunk %d: %d elements, counted %d", k, entries, nd.n)
		}
		if size := listpackSizes(nd.all()); size != nd.size {
			return fmt.Errorf("chunk %d: %d bytes as a listpack, counted %d", k, size, nd.size)
		}
		n += nd.n
		size += nd.size
	}
	if n != l.n || size != l.size {
		return fmt.Errorf("%d elements of %d bytes, counted %d of %d", n, size, l.n, l.size)
	}
	return nil
}

// Weight estimates Bytes in O(1) from the ends of a long list: inner chunks are
// full, or have one large element.
func (l *List) Weight() int {
	n := int(unsafe.Sizeof(*l)) + len(l.nodes.buf)*int(unsafe.Sizeof(node{}))
	all := l.nodes.all()
	if len(all) <= 2 {
		for _, nd := range all {
			n += int(unsafe.Sizeof(chunk{})) + len(nd.buf)
		}
		return n
	}
	first, last := all[0], all[len(all)-1]
	between := len(all) - 2
	return n + len(all)*int(unsafe.Sizeof(chunk{})) + len(first.buf) + len(last.buf) +
		max(between*chunkBytes, l.size-first.size-last.size)
}

// Write writes the operations that construct the list from nothing.
func (l *List) Write(w *journal.Writer) {
	for b := range l.Forward(0) {
		w.Buf = journal.AppendText(append(w.Buf, journal.OpBack), b)
		if !w.Full(journal.ChunkSize) {
			return
		}
	}
}

// Replay executes an operation of a journal, and reports whether it is valid.
func (l *List) Replay(op byte, o *journal.Operands) bool {
	switch op {
	case journal.OpFront:
		l.PushFront(o.Text())
	case journal.OpBack:
		l.PushBack(o.Text())
	case journal.OpPopFront, journal.OpPopBack:
		if l.n == 0 {
			return false
		}
		if op == journal.OpPopFront {
			l.PopFront()
		} else {
			l.PopBack()
		}
	case journal.OpIndex, journal.OpInsert:
		i, text := o.Position(l.n), o.Text()
		if o.Failed || op == journal.OpIndex && i == l.n {
			return false
		}
		if op == journal.OpIndex {
			l.Set(i, text)
		} else {
			l.Insert(i, text)
		}
	case journal.OpRemoveRange:
		i := o.Position(l.n)
		n := o.Position(l.n - i)
		if o.Failed {
			return false
		}
		l.Delete(i, n)
	case journal.OpMatching:
		n, text := o.Signed(), o.Text()
		if !o.Failed {
			l.Remove(text, int(n))
		}
	default:
		return false
	}
	return true
}

// logPivot records how LINSERT inserts an element before element i: before or after
// the first element that equals the pivot.
func (l *List) logPivot(i int) {
	if !l.log.Followed {
		return
	}
	if i == 0 || i == l.n {
		l.log.Hints = append(l.log.Hints, journal.AtEnd)
		return
	}
	at, side := i, journal.BeforePivot
	if l.first(l.At(at)) != at {
		at, side = i-1, journal.AfterPivot
	}
	if b := l.At(at); l.first(b) == at {
		l.log.Hints = journal.AppendText(append(l.log.Hints, side), b)
		return
	}
	l.log.Rewrite()
}

// first returns the index of the first element that equals b.
func (l *List) first(b []byte) int {
	i := 0
	for e := range l.Forward(0) {
		if packed.View(e) == packed.View(b) {
			return i
		}
		i++
	}
	return math.MaxInt
}

// logTrimmed makes the record of a list begin with the whole value if the removal of n
// elements from index i on leaves nothing, because the command may add elements again,
// or if it leaves elements on both sides.
func (l *List) logTrimmed(i, n int) {
	if l.log.Followed && (n == l.n || i > 0 && i+n < l.n) {
		l.log.Rewrite()
	}
}

// Observe makes log the receiver of all changes of the list; nil stops recording.
func (l *List) Observe(log *journal.Log) { l.log = log }
