package hyperloglog

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func add(t *testing.T, b []byte, limit int, element string) ([]byte, bool) {
	t.Helper()
	register, count := RegisterOf([]byte(element))
	b, changed, err := Raise(b, register, count, limit)
	if err != nil {
		t.Fatal(err)
	}
	return b, changed
}

// TestRaise compares strings of both encodings with an array of registers.
func TestRaise(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		var model Union
		limit := []int{0, 200, 3000, DenseSize}[seed%4]
		few := []int{50, 2000, Registers}[seed%3] // few registers lead to runs of equal values
		b, wasDense := New(), false
		for i := range 4000 {
			register, count := r.IntN(few), uint8(1+r.IntN(4))
			if r.IntN(1000) == 0 {
				count = uint8(1 + r.IntN(hashBits+1))
			}
			long := len(b)
			var changed bool
			var err error
			b, changed, err = Raise(b, register, count, limit)
			if err != nil || changed != (count > model[register]) {
				t.Fatalf("seed %d, step %d: changed is %v, error %v", seed, i, changed, err)
			}
			model[register] = max(model[register], count)
			if _, upToDate := Cardinality(b); changed && upToDate {
				t.Fatalf("seed %d, step %d: the cardinality is not marked as out of date", seed, i)
			}
			if !Valid(b) || wasDense && !IsDense(b) || !IsDense(b) && len(b) > max(long, limit) {
				t.Fatalf("seed %d, step %d: %d bytes of encoding %d after %d", seed, i, len(b), b[4], long)
			}
			if wasDense = IsDense(b); i%200 != 0 {
				continue
			}
			var u Union
			if err := u.Add(b); err != nil || u != model {
				t.Fatalf("seed %d, step %d: the registers are wrong (%v)", seed, i, err)
			}
			d, err := Dense(b)
			if err != nil {
				t.Fatal(err)
			}
			for register := r.IntN(50); register < Registers; register += 50 {
				want := model[register]
				got := DenseRegister(d, register)
				if !IsDense(b) {
					if got, err = SparseRegister(b, register); err != nil {
						t.Fatal(err)
					}
				}
				if got != want || DenseRegister(d, register) != want {
					t.Fatalf("seed %d, step %d: register %d is %d, want %d", seed, i, register, got, want)
				}
			}
			n, err := Count(b)
			if dn, derr := Count(d); err != nil || derr != nil || n != dn || n != model.Count() {
				t.Fatalf("seed %d, step %d: %d (%v), %d (%v) in the dense encoding, %d for the array", seed, i, n, err, dn, derr, model.Count())
			}
		}
	}
}

// TestDenseChange compares the change of DenseChange with the effect of Raise.
func TestDenseChange(t *testing.T) {
	b, err := Dense(New())
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		register, count := r.IntN(Registers), uint8(r.IntN(hashBits+2))
		if DenseRegister(b, register) >= count {
			continue
		}
		at, change, n := DenseChange(b, register, count)
		want := bytes.Clone(b)
		copy(want[at:], change[:n])
		b, _, _ = Raise(b, register, count, 0)
		if !bytes.Equal(b[HeaderSize:], want[HeaderSize:]) {
			t.Fatalf("register %d, count %d: DenseChange differs from Raise", register, count)
		}
	}
}

// TestEstimate checks that the error stays within four standard errors for all
// sizes.
func TestEstimate(t *testing.T) {
	b, n := New(), 0
	for size := 1; size <= 1_000_000; size *= 10 {
		for ; n < size; n++ {
			b, _ = add(t, b, 3000, fmt.Sprint("element:", n))
		}
		got, err := Count(b)
		if off := math.Abs(float64(got)-float64(n)) / float64(n); err != nil || off > 4*0.0081 {
			t.Errorf("%d elements are counted as %d (%v)", n, got, err)
		}
	}
	same := bytes.Clone(b)
	for i := range 1000 {
		if _, changed := add(t, b, 3000, fmt.Sprint("element:", i)); changed {
			t.Fatalf("adding element %d twice changes the string", i)
		}
	}
	if !bytes.Equal(b, same) {
		t.Error("adding a known element changes the string")
	}
}

// FuzzCorrupted feeds arbitrary strings, as clients can: the result is an error or
// an estimate, never a panic.
func FuzzCorrupted(f *testing.F) {
	b := New()
	for i := range 100 {
		register, count := RegisterOf(fmt.Append(nil, i))
		b, _, _ = Raise(b, register, count, 3000)
	}
	f.Add(b, 5, uint8(3))
	f.Add(New(), Registers-1, uint8(50))
	f.Add(append(New(), 0x80), 0, uint8(1))
	f.Add(New()[:HeaderSize+1], 16000, uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, register int, count uint8) {
		if !Valid(b) {
			return
		}
		register &= Registers - 1
		count %= hashBits + 2
		Describe(b)
		n, err := Count(b)
		var u Union
		if uerr := u.Add(b); err == nil && (uerr != nil || u.Count() != n) {
			t.Errorf("Count is %d, and %d (%v) by registers", n, u.Count(), uerr)
		}
		if !IsDense(b) {
			SparseRegister(b, register)
		}
		if after, _, rerr := Raise(bytes.Clone(b), register, count, 3000); err == nil && rerr == nil {
			if _, err := Count(after); err != nil {
				t.Errorf("after a change: %v", err)
			}
		}
	})
}
