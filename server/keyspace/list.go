package keyspace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"unsafe"
)

// A list is a deque of chunks, each up to 4 KB of packed elements; an element
// that is larger has a chunk to itself. Beside the pointer to a chunk stands
// how many elements it has, so an index is found by adding up numbers that lie
// side by side in memory: a list of a million short elements has some 3000 of
// them, which takes about a microsecond. A tree of sums would be faster in
// lists of very many millions, and slower at the ends, where lists are used.

// chunkBytes is how many bytes of elements a chunk holds at most, unless it
// has only one. More would make a copy on write and an insertion dearer, less
// would make more chunks to walk over.
const chunkBytes = 4096

// List is a sequence of byte strings. Both ends are reached in constant time,
// an index in O(n / 300), and Clone is O(1). The zero value is empty and ready
// to use.
//
// Elements are passed out as views of the list's memory: they must not be
// written to, and are good until the list is changed.
type List struct {
	n      int // elements
	size   int // bytes that they would take in a listpack
	nodes  deque[node]
	owner  *token   // chunks of other owners are shared: copied before a write
	shared bool     // so are the nodes
	large  bool     // see Fit
	log    *changes // told of what changes; nil for nobody
}

// node is a place in the sequence of chunks.
type node struct {
	*chunk
	n, size int // as those of List
}

type chunk struct {
	owner *token
	deque[byte]
}

func (nd *node) fits(size int) bool { return nd.len()+size <= chunkBytes }

// offset returns where element j begins, or for j = n the end.
func (nd *node) offset(j int) int {
	d := nd.all()
	if j <= nd.n/2 {
		at := 0
		for range j {
			_, size := firstEntry(d[at:])
			at += size
		}
		return at
	}
	at := len(d)
	for range nd.n - j {
		_, size := lastEntry(d[:at])
		at -= size
	}
	return at
}

// Len returns the number of elements. O(1).
func (l *List) Len() int { return l.n }

// find returns the node that holds element i, and which of its elements that is.
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

// At returns element i, which must be in [0, Len).
func (l *List) At(i int) []byte {
	k, j := l.find(i)
	nd := &l.nodes.all()[k]
	b, _ := firstEntry(nd.all()[nd.offset(j):])
	return b
}

// Forward yields the elements from i on to the end. The list must not be
// changed meanwhile.
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
			b, size := firstEntry(d[at:])
			if !yield(b) {
				return
			}
			at += size
		}
		at = 0
	}
}

// Backward yields the elements from i on to the beginning.
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
			b, size := lastEntry(d[:end])
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

// ownNodes makes the nodes ready for writing.
func (l *List) ownNodes() {
	if l.shared {
		l.nodes.clone()
		l.shared = false
	}
}

// own makes chunk k ready for writing. The node is good until one is added or
// removed.
func (l *List) own(k int) *node {
	l.ownNodes()
	nd := &l.nodes.all()[k]
	if nd.owner != l.owner {
		nd.chunk = &chunk{l.owner, nd.deque}
		nd.clone()
	}
	return nd
}

// count notes that n elements, which take size bytes in a listpack, have come
// into a node, or have left it.
func (l *List) count(nd *node, n, size int) {
	nd.n += n
	nd.size += size
	l.n += n
	l.size += size
}

// addChunk puts an empty chunk before node k. size is what its first element
// will take, front whether others will come before or behind that.
func (l *List) addChunk(k, size int, front bool) {
	l.ownNodes()
	c := &chunk{owner: l.owner}
	if l.n > 0 && size <= chunkBytes/8 { // it need not grow step by step
		c.room = make([]byte, chunkBytes)
		if front {
			c.lo, c.hi = chunkBytes, chunkBytes
		}
	}
	l.nodes.open(k, 1, math.MaxInt)[0] = node{chunk: c}
}

// dropChunks removes n chunks from node k on.
func (l *List) dropChunks(k, n int) {
	l.ownNodes()
	for _, nd := range l.nodes.all()[k : k+n] {
		l.n -= nd.n
		l.size -= nd.size
	}
	clear(l.nodes.cut(k, n))
	l.nodes.fit()
}

// put adds an element as number j of node k, which has room for it.
func (l *List) put(k, j int, b []byte) {
	nd := l.own(k)
	putEntry(nd.open(nd.offset(j), entrySize(len(b)), chunkBytes), b)
	l.count(nd, 1, listpackSize(b))
}

// PushFront adds a copy of b, which is no view of this list, at the beginning.
// O(1).
func (l *List) PushFront(b []byte) {
	if l.log != nil {
		l.log.end(opFront, b)
	}
	l.pushFront(b)
}

func (l *List) pushFront(b []byte) {
	size := entrySize(len(b))
	if l.n == 0 || !l.nodes.all()[0].fits(size) {
		l.addChunk(0, size, true)
	}
	l.put(0, 0, b)
}

// PushBack adds a copy of b, which is no view of this list, at the end. O(1).
func (l *List) PushBack(b []byte) {
	if l.log != nil {
		l.log.end(opBack, b)
	}
	l.pushBack(b)
}

func (l *List) pushBack(b []byte) {
	size := entrySize(len(b))
	k := l.nodes.len() - 1
	if k < 0 || !l.nodes.all()[k].fits(size) {
		k++
		l.addChunk(k, size, false)
	}
	l.put(k, l.nodes.all()[k].n, b)
}

// PopFront removes the first element, of which there must be one, and returns
// it. O(1).
func (l *List) PopFront() []byte {
	if l.log != nil {
		l.log.op(opPopFront)
	}
	b, size := firstEntry(l.nodes.all()[0].all())
	l.take(0, 0, size, b)
	return b
}

// PopBack removes the last element, of which there must be one, and returns
// it. O(1).
func (l *List) PopBack() []byte {
	if l.log != nil {
		l.log.op(opPopBack)
	}
	k := l.nodes.len() - 1
	nd := &l.nodes.all()[k]
	b, size := lastEntry(nd.all())
	l.take(k, nd.len()-size, size, b)
	return b
}

// take removes the element b, which takes size bytes at some place in node k.
func (l *List) take(k, at, size int, b []byte) {
	if l.nodes.all()[k].n == 1 {
		l.dropChunks(k, 1)
		return
	}
	gone := listpackSize(b)
	nd := l.own(k)
	nd.cut(at, size)
	nd.fit()
	l.count(nd, -1, -gone)
}

// Set replaces element i, which must be in [0, Len), by a copy of b, which is
// no view of this list.
func (l *List) Set(i int, b []byte) {
	if l.log != nil {
		l.log.at(opIndex, i, b)
	}
	k, j := l.find(i)
	nd := l.own(k)
	at := nd.offset(j)
	old, was := firstEntry(nd.all()[at:])
	size := entrySize(len(b))
	if nd.n > 1 && !nd.fits(size-was) {
		l.take(k, at, was, old)
		l.insert(i, b)
		return
	}
	l.count(nd, 0, listpackSize(b)-listpackSize(old))
	if size < was {
		nd.cut(at, was-size)
	} else {
		nd.open(at, size-was, chunkBytes)
	}
	putEntry(nd.all()[at:at+size], b)
	nd.fit()
}

// Insert adds a copy of b, which is no view of this list, before element i; at
// the end if i is Len.
func (l *List) Insert(i int, b []byte) {
	if l.log != nil {
		l.log.at(opInsert, i, b)
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
	size := entrySize(len(b))
	if !l.nodes.all()[k].fits(size) {
		if j > 0 {
			l.split(k, j)
			k++
			j = 0
		}
		switch nodes := l.nodes.all(); {
		case nodes[k-1].fits(size): // there is one, for i > 0
			k--
			j = nodes[k].n
		case !nodes[k].fits(size):
			l.addChunk(k, size, false)
		}
	}
	l.put(k, j, b)
}

// split moves the elements of node k from number j on to a new node.
func (l *List) split(k, j int) {
	nd := l.own(k)
	at := nd.offset(j)
	tail := nd.all()[at:]
	moved := node{&chunk{owner: l.owner}, nd.n - j, listpackSizes(tail)}
	copy(moved.open(0, len(tail), chunkBytes), tail)
	nd.cut(at, len(tail))
	nd.fit()
	nd.n, nd.size = j, nd.size-moved.size
	l.nodes.open(k+1, 1, math.MaxInt)[0] = moved
}

// listpackSizes adds up what the elements in d would take in a listpack.
func listpackSizes(d []byte) (sum int) {
	for len(d) > 0 {
		b, size := firstEntry(d)
		sum += listpackSize(b)
		d = d[size:]
	}
	return sum
}

// Delete removes n elements from element i on. They must be there. O(n/300).
func (l *List) Delete(i, n int) {
	if l.log != nil && n > 0 {
		l.log.op(opCut)
		l.log.number(i)
		l.log.number(n)
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
		nd := l.own(k)
		here := min(n, nd.n-j)
		from, to := nd.offset(j), nd.offset(j+here)
		gone := listpackSizes(nd.all()[from:to])
		nd.cut(from, to-from)
		nd.fit()
		l.count(nd, -here, -gone)
		n -= here
	}
}

// Remove removes elements equal to b, which is no view of this list, and
// returns how many: the first count, or the last -count, or all if count is 0.
// O(n).
func (l *List) Remove(b []byte, count int) int {
	if l.log != nil {
		l.log.op(opMatching)
		l.log.ops = binary.AppendVarint(l.log.ops, int64(count))
		l.log.text(viewOf(b))
	}
	from, limit := 0, count
	if count <= 0 {
		limit = l.n
	}
	if count < 0 {
		// Those are all that come from the -count'th last on.
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

// removeIn removes up to limit elements equal to b from node k, from its
// element j on.
func (l *List) removeIn(k, j int, b []byte, limit int) (removed int) {
	nd := &l.nodes.all()[k]
	d := nd.all()
	at := nd.offset(j)
	to := at // what stays moves to here
	for at < len(d) && removed < limit {
		e, size := firstEntry(d[at:])
		switch {
		case bytes.Equal(e, b):
			if removed == 0 {
				nd = l.own(k)
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
		nd.cut(to, at-to)
		nd.fit()
		l.count(nd, -removed, -removed*listpackSize(b))
	}
	return removed
}

// merge moves the elements of node k+1 into node k.
func (l *List) merge(k int) {
	nd := l.own(k)
	next := &l.nodes.all()[k+1]
	copy(nd.open(nd.len(), next.len(), chunkBytes), next.all())
	nd.n += next.n
	nd.size += next.size
	clear(l.nodes.cut(k+1, 1))
	l.nodes.fit()
}

// Clone returns a list with the same elements. O(1): the two share memory
// until one of them is changed.
func (l *List) Clone() *List {
	l.owner, l.shared = new(token), true
	c := *l
	c.owner, c.log = new(token), nil
	return &c
}

// Fit decides, after elements have come or gone, whether Redis would now hold
// the list as a listpack or as a quicklist: as a quicklist once the list is
// beyond the limit, as a listpack again when it is within half of it.
func (l *List) Fit(limits *Limits) {
	l.large = !l.within(limits, 1) || l.large && !l.within(limits, 2)
}

// within reports whether the list is within part of what
// list-max-listpack-size allows a listpack.
func (l *List) within(limits *Limits, part int) bool {
	bytes, entries := limits.listNode()
	const frame = 7 // header and end of a listpack
	return l.size+frame <= bytes/part && l.n <= entries/part
}

// listNode returns what list-max-listpack-size allows a listpack to have.
func (l *Limits) listNode() (bytes, entries int) {
	if l.ListMaxListpackSize >= 0 {
		return 8192, max(1, l.ListMaxListpackSize)
	}
	return 2048 << min(-l.ListMaxListpackSize, 5), math.MaxInt
}

// Encoding returns what OBJECT ENCODING says: "listpack" or "quicklist".
func (l *List) Encoding(limits *Limits) string {
	if l.large || !l.within(limits, 1) {
		return "quicklist"
	}
	return "listpack"
}

// Bytes estimates the memory that the list takes. O(n/300).
func (l *List) Bytes() int {
	sum := int(unsafe.Sizeof(*l)) + len(l.nodes.room)*int(unsafe.Sizeof(node{}))
	for _, nd := range l.nodes.all() {
		sum += int(unsafe.Sizeof(chunk{})) + len(nd.room)
	}
	return sum
}

// Check verifies the invariants. O(n).
func (l *List) Check() error {
	n, size := 0, 0
	for k, nd := range l.nodes.all() {
		if nd.n < 1 || nd.len() > chunkBytes && nd.n != 1 {
			return fmt.Errorf("chunk %d: %d bytes, %d elements", k, nd.len(), nd.n)
		}
		forward, backward, entries := 0, nd.len(), 0
		for ; forward < nd.len() && backward > 0; entries++ {
			_, size := firstEntry(nd.all()[forward:])
			forward += size
			_, size = lastEntry(nd.all()[:backward])
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
