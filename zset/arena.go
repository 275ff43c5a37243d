package zset

import (
	"encoding/binary"
	"math"
	"slices"
	"sync/atomic"
	"unsafe"
)

// An arena stores the member bytes of a set, append-only, in chunks with a copying
// garbage collector. A 32-bit reference names a member, so no structure holds a
// pointer for each member: string headers would take 16 bytes in the index and 16
// bytes in a leaf, and would be a million objects to mark at a million members.
//
//	reference   18 bits chunk │ 14 bits offset in units
//	chunk       record │ record │ record │ free
//	record      varint length │ member │ padding to a unit
//
// Bytes are never overwritten, so a returned string stays valid; it retains its
// chunk. A removed member is garbage until less than half of its chunk is live.
// Then the live records of the chunk are appended to the tail (indexed.compact) and
// the chunk is dropped. With random removals this costs less than one move for each
// removal, and chunks are 72 % live on average, which is 1.4 times the member
// bytes. Free lists, which reuse space immediately, are rejected: they overwrite
// bytes that callers and clones may still read.
//
// The offset unit is 4 bytes, so a chunk has up to 64 KB, and the lower half of the
// chunk numbers addresses 8 GB. Chunks with numbers from wideFrom have units of 64
// bytes, which raises the limit of a set to some 64 GB of short members, and more
// of long ones.
//
// Clones share chunks. A shared atomic counter (sharedEnd) reserves space in a
// shared tail: the first clone to append continues with it, the other opens a new
// chunk.
//
// Invariants (arena.check): the live bytes of each chunk agree with the index;
// liveBytes <= end <= size; a chunk that is less than half live is in sparse,
// unless it is the tail; free lists the unused chunk numbers; size is the sum of
// the chunk sizes.
type arena struct {
	owner       *token
	chunks      []chunk
	free        []uint32       // unused chunk numbers
	sparse      []uint32       // numbers of chunks to compact; the first is processed from byte next
	tail        int            // number of the chunk that records are appended to, plus 1; 0: none
	sharedEnd   *atomic.Uint32 // end of the tail as shared by clones, or nil
	size        int            // bytes of all chunks
	liveBytes   int            // bytes of live records
	expect      int            // bytes that a bulk load is going to append
	next        uint32
	compactDebt int // bytes of sparse chunks that compact has to process
}

type chunk struct {
	data      unsafe.Pointer // nil: the number is unused
	size      uint32
	end       uint32 // bytes written
	liveBytes uint32 // bytes of live records
	unit      uint8  // the offset unit is 1<<unit bytes
	sparse    bool   // the chunk is in arena.sparse
}

const (
	refBits   = 14 // bits of a reference for the offset; the others are the chunk number
	chunkMin  = 512
	chunkUnit = 2
	wideUnit  = 6 // unit of the chunks from wideFrom
	wideFrom  = 1 << 17
	chunkEnd  = 1 << (32 - refBits)
	// compactRate is the number of bytes of sparse chunks to process for each byte
	// that becomes garbage. A rate of 2 suffices, because at least half of the
	// processed bytes are garbage.
	compactRate = 3
	// compactStep is the debt in bytes at which compaction begins: that of some five removals,
	// so that it moves several records at a time.
	compactStep = 512
	// garbageShare limits compaction: it runs only while more than this fraction
	// (one in 4) of the arena is garbage. If members are removed in insertion
	// order, chunks become empty without compaction.
	garbageShare = 4
)

// record returns a pointer to the record of a reference.
func (a *arena) record(ref uint32) unsafe.Pointer {
	c := &a.chunks[ref>>refBits]
	return unsafe.Add(c.data, ref&(1<<refBits-1)<<(c.unit&31))
}

// string returns the member of a reference.
func (a *arena) string(ref uint32) string {
	p := a.record(ref)
	if n := *(*byte)(p); n < 0x80 {
		return unsafe.String((*byte)(unsafe.Add(p, 1)), int(n))
	}
	c := &a.chunks[ref>>refBits]
	left := uintptr(c.data) + uintptr(c.size) - uintptr(p)
	n, width := binary.Uvarint(unsafe.Slice((*byte)(p), min(left, binary.MaxVarintLen64)))
	return unsafe.String((*byte)(unsafe.Add(p, width)), int(n))
}

// equal reports whether a reference refers to the given member.
func (a *arena) equal(ref uint32, member string) bool {
	p := a.record(ref)
	if n := len(member); n < 0x80 {
		return *(*byte)(p) == byte(n) && unsafe.String((*byte)(unsafe.Add(p, 1)), n) == member
	}
	return a.string(ref) == member
}

// strings stores the members of up to batch references in to.
func (a *arena) strings(refs []uint32, to *[batch]string) {
	for i, ref := range refs {
		p := a.record(ref)
		if n := *(*byte)(p); n < 0x80 {
			to[i&(batch-1)] = unsafe.String((*byte)(unsafe.Add(p, 1)), int(n))
		} else {
			to[i&(batch-1)] = a.string(ref)
		}
	}
}

// recordSize returns the size of a record in bytes, rounded up to the unit of its
// chunk.
func recordSize(length int, unit uint8) int {
	n := 1 + length
	for rest := length >> 7; rest > 0; rest >>= 7 {
		n++
	}
	return (n + 1<<unit - 1) >> unit << unit
}

// makeWritable copies the chunk tables if a clone shares them.
func (a *arena) makeWritable(owner *token) {
	if a.owner != owner {
		a.owner = owner
		a.chunks, a.free, a.sparse = slices.Clone(a.chunks), slices.Clone(a.free), slices.Clone(a.sparse)
	}
}

// prepareClone must be called before the arena is copied. It creates the counter by
// which the clones reserve space in the tail.
func (a *arena) prepareClone() {
	if a.tail > 0 && a.sharedEnd == nil {
		a.sharedEnd = new(atomic.Uint32)
		a.sharedEnd.Store(a.chunks[a.tail-1].end)
	}
}

// add appends a record and returns its reference.
func (a *arena) add(owner *token, member string) uint32 {
	a.makeWritable(owner)
	k := a.tail - 1
	if k < 0 {
		k = a.newChunk(len(member))
	}
	c := &a.chunks[k]
	n := recordSize(len(member), c.unit)
	if n > int(c.size-c.end) || a.sharedEnd != nil && !a.sharedEnd.CompareAndSwap(c.end, c.end+uint32(n)) {
		k = a.newChunk(len(member))
		c = &a.chunks[k]
		n = recordSize(len(member), c.unit)
	}
	at := c.end
	b := unsafe.Slice((*byte)(c.data), c.size)[at:]
	copy(b[binary.PutUvarint(b[:min(len(b), binary.MaxVarintLen64)], uint64(len(member))):], member)
	c.end += uint32(n)
	c.liveBytes += uint32(n)
	a.liveBytes += n
	return uint32(k)<<refBits | at>>c.unit
}

// newChunk adds a chunk with space for a member of the given length, and returns
// its number.
//
// The size is an eighth of the live bytes, up to 64 KB, so the unused part of the
// tail stays small. A record larger than a quarter of the maximum chunk size gets a
// chunk of its own.
func (a *arena) newChunk(length int) int {
	k := len(a.chunks)
	if n := len(a.free); n > 0 {
		k = int(a.free[n-1])
		a.free = a.free[:n-1]
	} else {
		a.chunks = append(a.chunks, chunk{})
	}
	c := chunk{unit: chunkUnit}
	if k >= wideFrom {
		c.unit = wideUnit
	}
	whole, record := 1<<(refBits+c.unit), recordSize(length, c.unit)
	if k >= chunkEnd || record > math.MaxUint32 {
		panic("zset: a set of more than 64 GB, or a member of more than 4")
	}
	if record > whole/4 {
		c.size = uint32(record)
	} else {
		size := min(max(a.liveBytes/8, a.expect, chunkMin, record), whole)
		a.expect = max(a.expect-size, 0)
		a.closeTail()
		a.tail, a.sharedEnd = k+1, nil
		c.size = uint32(size)
	}
	b := slices.Grow([]byte(nil), int(c.size))
	if a.tail == k+1 {
		c.size = uint32(min(cap(b), whole))
	}
	c.data = unsafe.Pointer(unsafe.SliceData(b))
	a.size += int(c.size)
	a.chunks[k] = c
	return k
}

// closeTail ends appending to the tail. The tail becomes sparse if most of it is
// garbage or belongs to other clones.
func (a *arena) closeTail() {
	if k := a.tail - 1; k >= 0 {
		a.tail = 0
		a.noteSparse(k)
		if a.chunks[k].sparse {
			a.compactDebt += int(min(a.chunks[k].end, chunkMin))
		}
	}
}

// remove makes a record garbage.
func (a *arena) remove(owner *token, ref uint32, length int) {
	a.makeWritable(owner)
	k := int(ref >> refBits)
	c := &a.chunks[k]
	n := recordSize(length, c.unit)
	c.liveBytes -= uint32(n)
	a.liveBytes -= n
	if k != a.tail-1 {
		a.noteSparse(k)
	} else if c.end-c.liveBytes > c.size/2 || int(c.size) > 2*a.liveBytes+chunkMin {
		a.closeTail()
	}
	a.compactDebt += compactRate * n
}

// noteSparse frees a chunk without live records, or adds a chunk that is less than
// half live to sparse. The chunk must not be the tail.
func (a *arena) noteSparse(k int) {
	if c := &a.chunks[k]; c.liveBytes == 0 {
		if c.sparse {
			i := slices.Index(a.sparse, uint32(k))
			if a.sparse = slices.Delete(a.sparse, i, i+1); i == 0 {
				a.next = 0
			}
		}
		a.freeChunk(k)
	} else if c.liveBytes < c.size/2 && !c.sparse {
		c.sparse = true
		a.sparse = append(a.sparse, uint32(k))
	}
}

// freeChunk drops a chunk and makes its number available.
func (a *arena) freeChunk(k int) {
	a.size -= int(a.chunks[k].size)
	a.chunks[k] = chunk{}
	a.free = append(a.free, uint32(k))
}

// wasteful reports whether there are sparse chunks to compact.
func (a *arena) wasteful() bool {
	return len(a.sparse) > 0 && a.size-a.liveBytes > a.size/garbageShare
}

// freeSparse drops the sparse chunks without live records, and ends compaction.
func (a *arena) freeSparse() {
	a.sparse = slices.DeleteFunc(a.sparse, func(k uint32) bool {
		empty := a.chunks[k].liveBytes == 0
		if empty {
			a.freeChunk(int(k))
		}
		return empty
	})
	a.next, a.compactDebt = 0, 0
}

// nextSparse stores the references of the records of a sparse chunk that compaction
// processes next in refs, and returns how many: up to a batch, 0 if there is nothing to do.
// The caller appends those that are live again, and calls moved for each.
func (a *arena) nextSparse(owner *token, refs *[batch]uint32) int {
	a.makeWritable(owner)
	for a.compactDebt > 0 && a.wasteful() {
		k := a.sparse[0]
		c := &a.chunks[k]
		n := 0
		for ; n < batch && c.liveBytes > 0 && a.next < c.end && a.compactDebt > 0; n++ {
			refs[n] = k<<refBits | a.next>>c.unit
			size := recordSize(len(a.string(refs[n])), c.unit)
			a.next += uint32(size)
			a.compactDebt -= size
		}
		if n > 0 {
			return n
		}
		a.compactDebt -= int(c.end-a.next) / 8
		a.next = 0
		a.sparse = slices.Delete(a.sparse, 0, 1)
		a.freeChunk(int(k))
	}
	a.compactDebt = min(a.compactDebt, 0)
	return 0
}

// moved notes that the member of a reference of nextSparse has another record now.
func (a *arena) moved(ref uint32, length int) {
	c := &a.chunks[ref>>refBits]
	n := recordSize(length, c.unit)
	c.liveBytes -= uint32(n)
	a.liveBytes -= n
}
