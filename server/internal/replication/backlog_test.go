package replication

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestBacklog compares backlogs of random contents and sizes with the stream itself.
func TestBacklog(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	start := r.Int64N(1 << 40)
	b := newBacklog(1, start)
	var stream []byte
	check := func() {
		t.Helper()
		end := start + int64(len(stream))
		if b.end != end || b.first() < start || b.n > len(b.buf) || b.n < min(len(stream), minBacklog) && b.first() != start {
			t.Fatalf("%d bytes up to %d of a stream of %d up to %d", b.n, b.end, len(stream), end)
		}
		for _, offset := range []int64{b.first(), b.first() + int64(b.n)/2, b.end} {
			if !b.has(offset) || !bytes.Equal(b.from(offset), stream[offset-start:]) {
				t.Fatalf("the stream from %d on is wrong", offset)
			}
		}
		if b.has(b.first()-1) || b.has(b.end+1) {
			t.Fatal("the backlog has bytes that are not there")
		}
	}
	for range 2000 {
		switch r.IntN(20) {
		case 0:
			b.resize(r.Int64N(100_000))
		case 1:
			p := make([]byte, r.IntN(200_000))
			stream = append(stream, p...)
			b.append(p)
		default:
			p := make([]byte, r.IntN(3000))
			for i := range p {
				p[i] = byte(r.Uint32())
			}
			stream = append(stream, p...)
			b.append(p)
		}
		check()
	}
}
