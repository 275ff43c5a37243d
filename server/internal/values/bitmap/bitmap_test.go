package bitmap

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
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
		if got := Count(b, lo, hi); got != count {
			t.Fatalf("Count(%x, %d, %d) = %d, want %d", b, lo, hi, got, count)
		}
		for bit, want := range first {
			if got := Find(b, lo, hi, byte(bit)); got != want {
				t.Fatalf("Find(%x, %d, %d, %d) = %d, want %d", b, lo, hi, bit, got, want)
			}
		}
		a := random()[:0]
		a = append(a, b[:r.IntN(len(b)+1)]...)
		for _, op := range []byte("AOXWN") {
			got := bytes.Clone(a)
			Combine(op, got, b)
			for i, x := range a {
				want := map[byte]byte{'A': x & b[i], 'O': x | b[i], 'X': x ^ b[i], 'W': x &^ b[i], 'N': ^b[i]}[op]
				if got[i] != want {
					t.Fatalf("combine %c, byte %d: %x, want %x", op, i, got[i], want)
				}
			}
		}
	}
}

func Benchmark(b *testing.B) {
	data, other := make([]byte, 1<<20), make([]byte, 1<<20)
	b.Run("count", func(b *testing.B) {
		b.SetBytes(1 << 20)
		for b.Loop() {
			Count(data, 0, 8<<20)
		}
	})
	b.Run("find", func(b *testing.B) {
		b.SetBytes(1 << 20)
		for b.Loop() {
			Find(data, 0, 8<<20, 1)
		}
	})
	b.Run("combine", func(b *testing.B) {
		b.SetBytes(1 << 20)
		for b.Loop() {
			Combine('X', data, other)
		}
	})
}

// TestCombineAll compares the operations with their definitions, bit by bit.
func TestCombineAll(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		sources, size := make([][]byte, r.IntN(4)+2), 1
		for i := range sources {
			sources[i] = make([]byte, r.IntN(20))
			for j := range sources[i] {
				sources[i][j] = byte(r.IntN(256))
			}
			size = max(size, len(sources[i]))
		}
		for _, op := range []string{"AND", "OR", "XOR", "DIFF", "DIFF1", "ANDOR", "ONE"} {
			got := CombineAll(op, sources, size)
			for bit := range size * 8 {
				first, n := false, 0
				for i, s := range sources {
					if bit>>3 < len(s) && s[bit>>3]>>(7-bit&7)&1 == 1 {
						n++
						first = first || i == 0
					}
				}
				want := map[string]bool{
					"AND": n == len(sources), "OR": n > 0, "XOR": n%2 == 1, "ONE": n == 1,
					"DIFF": first && n == 1, "DIFF1": !first && n > 0, "ANDOR": first && n > 1,
				}[op]
				if (got[bit>>3]>>(7-bit&7)&1 == 1) != want {
					t.Fatalf("%s of %x is %x: bit %d is wrong", op, sources, got, bit)
				}
			}
		}
	}
}

// TestField compares fields with arithmetic without limits.
func TestField(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 50_000 {
		f := Field{Offset: r.Int64N(80), Signed: r.IntN(2) == 0}
		f.Width = r.Int64N(63) + 1
		if f.Signed {
			f.Width = r.Int64N(64) + 1
		}
		b := make([]byte, 20)
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		before := bytes.Clone(b)
		w := f.Window(b)
		old := f.Get(&w)
		x := []int64{r.Int64(), -r.Int64(), r.Int64N(100) - 50, math.MaxInt64, math.MinInt64}[r.IntN(5)]
		lo, hi := f.limits()
		sum := new(big.Int).Add(big.NewInt(old), big.NewInt(x))
		over, under := sum.Cmp(big.NewInt(hi)) > 0, sum.Cmp(big.NewInt(lo)) < 0
		value, write := f.Add(old, x, Saturate)
		if want := min(max(lo, clamp(sum)), hi); !write || value != want {
			t.Fatalf("%+v: %d + %d = %d, want %d", f, old, x, value, want)
		}
		if _, write := f.Add(old, x, Fail); write == (over || under) {
			t.Fatalf("%+v: %d + %d is written: %t", f, old, x, write)
		}
		value, _ = f.Add(old, x, Wrap)
		mod := new(big.Int).Lsh(big.NewInt(1), uint(f.Width))
		if rest := new(big.Int).Mod(new(big.Int).Sub(sum, big.NewInt(value)), mod); rest.Sign() != 0 || value < lo || value > hi {
			t.Fatalf("%+v: %d + %d wraps to %d", f, old, x, value)
		}
		f.Set(&w, value)
		copy(b[f.Offset>>3:], w[:f.Bytes()])
		w = f.Window(b)
		if got := f.Get(&w); got != value {
			t.Fatalf("%+v: %d is read as %d", f, value, got)
		}
		for bit := range int64(len(b) * 8) {
			if (bit < f.Offset || bit >= f.Offset+f.Width) && (b[bit>>3]^before[bit>>3])>>(7-bit&7)&1 == 1 {
				t.Fatalf("%+v has changed bit %d", f, bit)
			}
		}
	}
}

// clamp returns the nearest int64.
func clamp(x *big.Int) int64 {
	switch {
	case x.IsInt64():
		return x.Int64()
	case x.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

func ExampleField() {
	b := make([]byte, 2)
	f := Field{Offset: 4, Width: 4}
	w := f.Window(b)
	value, _ := f.Add(f.Get(&w), 100, Saturate)
	f.Set(&w, value)
	copy(b, w[:f.Bytes()])
	fmt.Printf("%d %08b\n", value, b)
	// Output: 15 [00001111 00000000]
}
