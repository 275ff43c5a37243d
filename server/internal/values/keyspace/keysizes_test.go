package keyspace

import (
	"fmt"
	"math"
	"testing"
)

func TestSizeHistogram(t *testing.T) {
	var h SizeHistogram
	for _, size := range []int{0, 1, 2, 3, 4, 1023, 1024, math.MaxInt} {
		h.Move(noClass, classOf(1, size))
	}
	h.Move(noClass, classOf(0, 5))
	h.Move(noClass, classOf(2, 5))
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
	h.Move(classOf(1, 3), classOf(1, 2)) // the same class
	h.Move(classOf(1, 3), noClass)
	h.Move(classOf(1, 2), classOf(1, 1000))
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
			if alike(a, b) != (classOf(4, a) == classOf(4, b)) {
				t.Fatalf("alike(%d, %d) is %v", a, b, alike(a, b))
			}
		}
		if classOf(3, 7).With(a) != classOf(3, a) || noClass.With(a) != noClass {
			t.Fatalf("With(%d) is wrong", a)
		}
	}
}
