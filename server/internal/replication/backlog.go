package replication

// A backlog is a ring buffer with the last bytes of the stream.
//
//	stream   ... first ............... end
//	                └── at most cap(buf) ──┘
type backlog struct {
	buf []byte // ring: the byte of offset o is at o % len
	end int64  // offset after the last byte
	n   int    // bytes that are there
}

// minBacklog is the smallest backlog in bytes, as in Redis.
const minBacklog = 16 << 10

// newBacklog returns an empty backlog of a size in bytes for a stream that continues at
// an offset.
func newBacklog(size, end int64) *backlog {
	return &backlog{buf: make([]byte, max(size, minBacklog)), end: end}
}

// first returns the offset of the oldest byte that is there.
func (b *backlog) first() int64 { return b.end - int64(b.n) }

// append appends bytes of the stream.
func (b *backlog) append(p []byte) {
	b.end += int64(len(p))
	b.n = min(b.n+len(p), len(b.buf))
	if len(p) > len(b.buf) {
		p = p[len(p)-len(b.buf):]
	}
	at := int((b.end - int64(len(p))) % int64(len(b.buf)))
	copied := copy(b.buf[at:], p)
	copy(b.buf, p[copied:])
}

// has reports whether the stream from an offset on is there; at the end it is, empty.
func (b *backlog) has(offset int64) bool { return b.first() <= offset && offset <= b.end }

// from returns a copy of the stream from an offset on, which must be there.
func (b *backlog) from(offset int64) []byte {
	out := make([]byte, 0, b.end-offset)
	for offset < b.end {
		at := int(offset % int64(len(b.buf)))
		n := min(int64(len(b.buf)-at), b.end-offset)
		out = append(out, b.buf[at:at+int(n)]...)
		offset += n
	}
	return out
}

// resize changes the size in bytes and keeps as much as fits.
func (b *backlog) resize(size int64) {
	next := newBacklog(size, 0)
	keep := max(b.first(), b.end-int64(len(next.buf)))
	next.end = keep
	next.append(b.from(keep))
	*b = *next
}
