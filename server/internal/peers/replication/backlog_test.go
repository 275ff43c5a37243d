package replication

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestBacklog compares backlogs of random contents, sizes and positions of replicas with the
// stream itself.
func TestBacklog(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	start := r.Int64N(1 << 40)
	b := newBacklog(1, start)
	var stream []byte
	needed := []int64{start, start, start} // by replicas
	largest, from := int64(streamBlock), start
	check := func() {
		t.Helper()
		end := start + int64(len(stream))
		least := min(end-b.size, needed[0], needed[1], needed[2])
		if b.end != end || b.first() > max(least, from) || b.first() < from {
			t.Fatalf("from %d to %d of a stream from %d to %d, of which a replica needs all from %d", b.first(), b.end, start, end, least)
		}
		from = b.first()
		kept := int64(0)
		for _, x := range b.blocks {
			kept += int64(cap(x.bytes))
		}
		if kept != b.room || len(b.blocks) > 0 && b.blocks[0].start+largest < from {
			t.Fatalf("%d bytes in blocks from %d on, counted %d, for those from %d on", kept, b.blocks[0].start, b.room, from)
		}
		for _, offset := range []int64{from, from + (end-from)/2, max(from, end-1), end} {
			var got []byte
			for at := offset; at < end; {
				part := b.at(at)
				got, at = append(got, part...), at+int64(len(part))
			}
			if !b.has(offset) || !bytes.Equal(got, stream[offset-start:]) {
				t.Fatalf("the stream from %d on is wrong", offset)
			}
		}
		if b.has(from-1) || b.has(end+1) || b.at(end) != nil {
			t.Fatal("the backlog has bytes that are not there")
		}
	}
	for range 200 {
		p := make([]byte, r.IntN(3000))
		switch r.IntN(20) {
		case 0:
			b.resize(r.Int64N(100_000))
		case 1:
			p = make([]byte, r.IntN(200_000), 200_000)
			largest = 200_000
		}
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		stream = append(stream, p...)
		b.append(p)
		for i := range needed { // one is far behind for a while
			if i > 0 || r.IntN(50) == 0 {
				needed[i] += r.Int64N(b.end - needed[i] + 1)
			}
		}
		b.trim(min(needed[0], needed[1], needed[2]))
		check()
	}
}
