package protocol

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// FuzzReader checks that commands and errors do not depend on the boundaries of
// reads, and that memory is proportional to the received bytes.
func FuzzReader(f *testing.F) {
	for _, c := range requests {
		if len(c.in) < 1000 {
			f.Add([]byte(c.in), uint16(1), false)
		}
	}
	f.Add([]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9000\r\n"+string(make([]byte, 9002))+ping), uint16(5000), true)
	f.Fuzz(func(t *testing.T, in []byte, cut uint16, unauthenticated bool) {
		limits := Limits{Unauthenticated: unauthenticated}
		whole := &Reader{Limits: limits}
		want := feed(t, whole, string(in))
		var pieces []int // random lengths with a uniform logarithm
		rnd := rand.New(rand.NewPCG(uint64(cut), 1))
		for n := 0; n <= len(in); n += pieces[len(pieces)-1] {
			pieces = append(pieces, 1+rnd.IntN(1<<rnd.IntN(12)))
		}
		for _, sizes := range [][]int{{1}, {int(cut), len(in) + 1}, {int(cut%97) + 1}, pieces} {
			r := &Reader{Limits: limits}
			if got := feed(t, r, string(in), sizes...); !slices.Equal(got, want) {
				t.Fatalf("in pieces of %v:\n got %.300q\nwant %.300q", sizes, got, want)
			}
			if r.Buffered() != whole.Buffered() {
				t.Fatalf("in pieces of %v: %d bytes left, of the whole %d", sizes, r.Buffered(), whole.Buffered())
			}
			r.Space()
			if most := 2*bufferSize + maxFirstLarge + 32*len(in); r.Size() > most {
				t.Fatalf("%d bytes held for %d", r.Size(), len(in))
			}
		}
	})
}
