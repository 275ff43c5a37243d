package zset

import (
	"encoding/binary"
	"math"
	"slices"
	"sync/atomic"
	"unsafe"
)

// An arena keeps the bytes of a set's members, one after the other, in chunks. A
// member is named by 32 bits, and nothing that has one member each holds a pointer: a
// string header for each would be 16 bytes in the index and 16 in a block, and a
// million objects for the garbage collector to mark.
//
// Bytes are never overwritten, so a string that was handed out is good for as long as
// somebody holds it; it keeps its chunk in memory. Members that were removed are
// garbage until less than half of their chunk is alive: then what lives is appended
// again elsewhere (many.tidy) and the chunk is forgotten. With deaths at random that
// is less than one move for each removal, and chunks are 72 % alive on average: 1.4
// times the bytes of the members. Free lists, which would reuse a place at once, have
// to overwrite what callers and clones may still read.
//
// A record is the length of the member, as a varint, and the member. References count
// in units of 4 bytes, 64 KB being a chunk: 16 GB if they all were like that. Chunks
// of the upper half of the numbers count in units of 64 bytes, so that a set may have
// some 64 GB of members, and more if they are long.
type arena struct {
	owner  *token
	chunks []chunk
	free   []uint32       // numbers of chunks that are gone
	sparse []uint32       // numbers of chunks to be rewritten, the first from byte next
	tail   int            // one more than the number of the chunk that is appended to
	fork   *atomic.Uint32 // what clones that share the tail have written of it
	size   int            // of all chunks
	live   int            // bytes in them of records that are in the set
	expect int            // bytes that are known to come
	next   uint32
	debt   int // how many bytes of sparse chunks are to be looked at soon
}

type chunk struct {
	data   unsafe.Pointer // nil: no chunk has this number
	size   uint32
	end    uint32 // bytes written
	live   uint32 // bytes of records that are in the set
	unit   uint8  // references count in units of 1<<unit bytes
	sparse bool   // is among arena.sparse
}

const (
	refBits   = 14 // of a reference say where in a chunk, the others which chunk
	chunkMin  = 512
	chunkUnit = 2
	wideUnit  = 6 // of the chunks from wideFrom on
	wideFrom  = 1 << 17
	chunkEnd  = 1 << (32 - refBits)
	// For each byte that becomes garbage so many of sparse chunks are looked at: 2 are
	// enough to keep up, as half of what is looked at was garbage.
	tidyRate = 3
	// With less garbage than this part of all nothing is done: where members go in the
	// order in which they came, chunks die without.
	garbageShare = 4
)

// record returns where a record begins.
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

// is reports whether a reference is that of member.
func (a *arena) is(ref uint32, member string) bool {
	p := a.record(ref)
	if n := len(member); n < 0x80 {
		return *(*byte)(p) == byte(n) && unsafe.String((*byte)(unsafe.Add(p, 1)), n) == member
	}
	return a.string(ref) == member
}

// strings is string for up to so many references.
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

// footprint is how many bytes a record takes, in units of a chunk.
func footprint(length int, unit uint8) int {
	n := 1 + length
	for rest := length >> 7; rest > 0; rest >>= 7 {
		n++
	}
	return (n + 1<<unit - 1) >> unit << unit
}

// own makes what clones share writable.
func (a *arena) own(owner *token) {
	if a.owner != owner {
		a.owner = owner
		a.chunks, a.free, a.sparse = slices.Clone(a.chunks), slices.Clone(a.free), slices.Clone(a.sparse)
	}
}

// cloned is called before a copy of the arena is made. Either may go on with the
// tail, the one that is the first to do so.
func (a *arena) cloned() {
	if a.tail > 0 && a.fork == nil {
		a.fork = new(atomic.Uint32)
		a.fork.Store(a.chunks[a.tail-1].end)
	}
}

// add appends a record and returns its reference.
func (a *arena) add(owner *token, member string) uint32 {
	a.own(owner)
	k := a.tail - 1
	if k < 0 {
		k = a.open(len(member))
	}
	c := &a.chunks[k]
	n := footprint(len(member), c.unit)
	if n > int(c.size-c.end) || a.fork != nil && !a.fork.CompareAndSwap(c.end, c.end+uint32(n)) {
		k = a.open(len(member))
		c = &a.chunks[k]
		n = footprint(len(member), c.unit)
	}
	at := c.end
	b := unsafe.Slice((*byte)(c.data), c.size)[at:]
	copy(b[binary.PutUvarint(b[:min(len(b), binary.MaxVarintLen64)], uint64(len(member))):], member)
	c.end += uint32(n)
	c.live += uint32(n)
	a.live += n
	return uint32(k)<<refBits | at>>c.unit
}

// open returns the number of a new chunk, which has room for a member of a length.
//
// Chunks have an eighth of the size of what lives, up to 64 KB, so that little is unused. A
// member of a quarter of a chunk gets one of its own.
func (a *arena) open(length int) int {
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
	whole, own := 1<<(refBits+c.unit), footprint(length, c.unit)
	if k >= chunkEnd || own > math.MaxUint32 {
		panic("zset: a set of more than 64 GB, or a member of more than 4")
	}
	if own > whole/4 {
		c.size = uint32(own)
	} else {
		size := min(max(a.live/8, a.expect, chunkMin, own), whole)
		a.expect = max(a.expect-size, 0)
		a.close()
		a.tail, a.fork = k+1, nil
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

// close ends the tail. If others have written to most of it, or if most of it is
// garbage by now, it is sparse.
func (a *arena) close() {
	if k := a.tail - 1; k >= 0 {
		a.tail = 0
		a.look(k)
		if a.chunks[k].sparse {
			a.debt += int(min(a.chunks[k].end, chunkMin))
		}
	}
}

// remove makes a record garbage.
func (a *arena) remove(owner *token, ref uint32, length int) {
	a.own(owner)
	k := int(ref >> refBits)
	c := &a.chunks[k]
	n := footprint(length, c.unit)
	c.live -= uint32(n)
	a.live -= n
	if k != a.tail-1 {
		a.look(k)
	} else if c.end-c.live > c.size/2 || int(c.size) > 2*a.live+chunkMin {
		a.close()
	}
	a.debt += tidyRate * n
}

// look notes that a chunk that is no longer the tail may be sparse.
func (a *arena) look(k int) {
	if c := &a.chunks[k]; c.live == 0 {
		if c.sparse {
			i := slices.Index(a.sparse, uint32(k))
			if a.sparse = slices.Delete(a.sparse, i, i+1); i == 0 {
				a.next = 0
			}
		}
		a.forget(k)
	} else if c.live < c.size/2 && !c.sparse {
		c.sparse = true
		a.sparse = append(a.sparse, uint32(k))
	}
}

// forget lets a chunk go.
func (a *arena) forget(k int) {
	a.size -= int(a.chunks[k].size)
	a.chunks[k] = chunk{}
	a.free = append(a.free, uint32(k))
}

// tidy walks through sparse chunks, as far as debts go, and has move append what is
// alive to the tail; move reports whether a record was.
func (a *arena) tidy(owner *token, move func(member string, ref uint32) bool) {
	a.own(owner)
	for a.debt > 0 && len(a.sparse) > 0 && a.size-a.live > a.size/garbageShare {
		k := a.sparse[0]
		c := a.chunks[k]
		if c.live == 0 || a.next == c.end {
			a.debt -= int(c.end-a.next) / 8
			a.next = 0
			a.sparse = slices.Delete(a.sparse, 0, 1)
			a.forget(int(k))
			continue
		}
		ref := k<<refBits | a.next>>c.unit
		member := a.string(ref)
		n := footprint(len(member), c.unit)
		a.next += uint32(n)
		a.debt -= n
		if move(member, ref) {
			a.chunks[k].live -= uint32(n)
			a.live -= n
		}
	}
	a.debt = min(a.debt, 0)
}
