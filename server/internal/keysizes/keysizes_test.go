package keysizes

import (
	"fmt"
	"math"
	"testing"
)

func TestHistogram(t *testing.T) {
	var h Histogram
	for _, size := range []int{0, 1, 2, 3, 4, 1023, 1024, math.MaxInt} {
		h.Move(None, Of(1, size))
	}
	h.Move(None, Of(0, 5))
	h.Move(None, Of(2, 5))
	got := ""
	for least, n := range h.Kind(1) {
		got += fmt.Sprint(" ", least, "=", n)
	}
	if want := " 0=1 1=1 2=2 4=1 512=1 1024=1 4611686018427387904=1"; got != want {
		t.Errorf("got%s, want%s", got, want)
	}
	for range h.Kind(3) {
		t.Error("a kind without values has some")
	}
	h.Move(Of(1, 3), Of(1, 2)) // the same class
	h.Move(Of(1, 3), None)
	h.Move(Of(1, 2), Of(1, 1000))
	got = ""
	for least, n := range h.Kind(1) {
		got += fmt.Sprint(" ", least, "=", n)
	}
	if want := " 0=1 1=1 4=1 512=2 1024=1 4611686018427387904=1"; got != want {
		t.Errorf("got%s, want%s", got, want)
	}
}

func TestClass(t *testing.T) {
	for a := range 300 {
		for b := range 300 {
			if Alike(a, b) != (Of(4, a) == Of(4, b)) {
				t.Fatalf("Alike(%d, %d) is %v", a, b, Alike(a, b))
			}
		}
		if Of(3, 7).With(a) != Of(3, a) || None.With(a) != None {
			t.Fatalf("With(%d) is wrong", a)
		}
	}
}
