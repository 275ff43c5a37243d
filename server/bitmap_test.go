package server

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/zsetd/zsetd/server/internal/command"
	"github.com/zsetd/zsetd/server/internal/keyspace"
)

// TestBits compares the functions that process 8 bytes at a time with reference
// functions that process one bit.
func TestBits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() []byte {
		b := make([]byte, r.IntN(40))
		if fill := byte(r.IntN(3) - 1); fill != 1 {
			for i := range b { // long runs of one kind
				b[i] = fill
			}
			if len(b) > 0 && r.IntN(4) > 0 {
				b[r.IntN(len(b))] = byte(r.IntN(256))
			}
			return b
		}
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		return b
	}
	at := func(b []byte, i int64) byte { return b[i>>3] >> (7 - i&7) & 1 }
	for range 20_000 {
		b := random()
		size := int64(len(b)) * 8
		lo := r.Int64N(size + 1)
		hi := lo + r.Int64N(size-lo+1)
		count, first := int64(0), [2]int64{-1, -1}
		for i := lo; i < hi; i++ {
			bit := at(b, i)
			count += int64(bit)
			if first[bit] < 0 {
				first[bit] = i
			}
		}
		if got := command.CountBits(b, lo, hi); got != count {
			t.Fatalf("countBits(%x, %d, %d) = %d, want %d", b, lo, hi, got, count)
		}
		for bit, want := range first {
			if got := command.FindBit(b, lo, hi, byte(bit)); got != want {
				t.Fatalf("findBit(%x, %d, %d, %d) = %d, want %d", b, lo, hi, bit, got, want)
			}
		}
		a := random()[:0]
		a = append(a, b[:r.IntN(len(b)+1)]...)
		for _, op := range []byte("AOXWN") {
			got := bytes.Clone(a)
			command.Combine(op, got, b)
			for i, x := range a {
				want := map[byte]byte{'A': x & b[i], 'O': x | b[i], 'X': x ^ b[i], 'W': x &^ b[i], 'N': ^b[i]}[op]
				if got[i] != want {
					t.Fatalf("combine %c, byte %d: %x, want %x", op, i, got[i], want)
				}
			}
		}
	}
}

// TestSetbitIsSmall checks that SETBIT in a long string neither copies the string nor
// journals all of it.
func TestSetbitIsSmall(t *testing.T) {
	ks := keyspace.New(1, keyspace.Hooks{})
	ks.Record(true)
	db := ks.DB(0)
	e := db.Add([]byte("k"), keyspace.RawString(make([]byte, 8<<20)))
	ks.TakeJournal()
	e, _ = db.WriteString(e, 0, []byte{1}) // the journal still has the string as it was: this copies it
	content := &e.Value().(*keyspace.String).Content()[0]
	for i := range 100 {
		e, _ = db.WriteString(e, i*1000, []byte{1})
	}
	if n := ks.Recorded(); n > 4000 {
		t.Errorf("100 bytes changed, %d in the journal", n)
	}
	if &e.Value().(*keyspace.String).Content()[0] != content {
		t.Error("the string was copied")
	}
}

func BenchmarkBits(b *testing.B) {
	data, other := make([]byte, 1<<20), make([]byte, 1<<20)
	b.Run("count", func(b *testing.B) {
		b.SetBytes(1 << 20)
		for b.Loop() {
			command.CountBits(data, 0, 8<<20)
		}
	})
	b.Run("find", func(b *testing.B) {
		b.SetBytes(1 << 20)
		for b.Loop() {
			command.FindBit(data, 0, 8<<20, 1)
		}
	})
	b.Run("combine", func(b *testing.B) {
		b.SetBytes(1 << 20)
		for b.Loop() {
			command.Combine('X', data, other)
		}
	})
}
