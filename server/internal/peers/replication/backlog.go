package replication

import "sort"

// A backlog is the last bytes of the stream, in blocks. All replicas share it: each has a
// position in it (replica.next), and the bytes behind that wait here, not in its output
// queue. So the stream takes its memory once, however many replicas wait for it.
//
//	blocks   │ … first ……… next │ ………… next │ ……… end │ free
//	                   └─ of a replica ─┘
//	             └── at least size bytes ──┘
//
// Without replicas that wait, the backlog has the last size bytes, for those that return. A
// replica that waits keeps what it lacks: replicas that return may use that, too.
type backlog struct {
	blocks []block // in order, none empty
	size   int64
	from   int64 // offset of the oldest byte that counts; the first block may have older ones
	end    int64 // offset after the last byte
	room   int64 // capacity of the blocks
}

// block is a part of a backlog. Its bytes do not change.
type block struct {
	start int64 // offset of its first byte
	bytes []byte
}

const (
	// minBacklog is the smallest backlog in bytes, as in Redis.
	minBacklog = 16 << 10
	// streamBlock is the size of a block for bytes that are copied. Larger pieces of the
	// stream are blocks of their own.
	streamBlock = 16 << 10
)

// newBacklog returns an empty backlog of a size in bytes for a stream that continues at
// an offset.
func newBacklog(size, end int64) *backlog {
	return &backlog{size: max(size, minBacklog), from: end, end: end}
}

// first returns the offset of the oldest byte that is there.
func (b *backlog) first() int64 { return b.from }

// append appends bytes of the stream. The caller does not change them any more.
func (b *backlog) append(p []byte) {
	last := len(b.blocks) - 1
	switch {
	case len(p) == 0:
		return
	case last >= 0 && len(p) <= cap(b.blocks[last].bytes)-len(b.blocks[last].bytes):
		b.blocks[last].bytes = append(b.blocks[last].bytes, p...)
	case len(p) >= streamBlock/2:
		b.add(p)
	default:
		b.add(append(make([]byte, 0, streamBlock), p...))
	}
	b.end += int64(len(p))
}

// add adds a block.
func (b *backlog) add(p []byte) {
	b.blocks = append(b.blocks, block{b.end, p})
	b.room += int64(cap(p))
}

// trim drops what neither the size nor a replica needs, whose oldest position is given.
func (b *backlog) trim(needed int64) {
	b.from = max(b.from, min(b.end-b.size, needed))
	n := 0
	for n < len(b.blocks) && b.blocks[n].start+int64(len(b.blocks[n].bytes)) <= b.from {
		b.room -= int64(cap(b.blocks[n].bytes))
		n++
	}
	clear(b.blocks[:n])
	b.blocks = b.blocks[n:]
}

// has reports whether the stream from an offset on is there; at the end it is, empty.
func (b *backlog) has(offset int64) bool { return b.from <= offset && offset <= b.end }

// at returns the bytes from an offset on, which must be there, up to the end of their block;
// none at the end of the stream.
func (b *backlog) at(offset int64) []byte {
	i := len(b.blocks) - 1
	if i >= 0 && b.blocks[i].start > offset {
		i = sort.Search(i, func(i int) bool { return b.blocks[i].start > offset }) - 1
	}
	if i < 0 || offset == b.end {
		return nil
	}
	return b.blocks[i].bytes[offset-b.blocks[i].start:]
}

// resize changes the size in bytes.
func (b *backlog) resize(size int64) { b.size = max(size, minBacklog) }
