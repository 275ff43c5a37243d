package lcs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

func Example() {
	t := New([]byte("ohmytext"), []byte("mynewtext"))
	fmt.Println(t.Len(), string(t.Subsequence()))
	fmt.Println(t.Matches(0))
	// Output:
	// 6 mytext
	// [{4 5 4} {2 0 2}]
}

// TestModel compares the table with the recursive definition, and checks that
// the subsequence and the matches are parts of both strings.
func TestModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		a, b := random(r), random(r)
		table := New(a, b)
		if got, want := table.Len(), length(a, b); got != want {
			t.Fatalf("%q and %q: length %d, want %d", a, b, got, want)
		}
		s := table.Subsequence()
		if len(s) != table.Len() || !isSubsequence(s, a) || !isSubsequence(s, b) {
			t.Fatalf("%q and %q: %q is not a common subsequence of %d bytes", a, b, s, table.Len())
		}
		for _, m := range table.Matches(2) {
			if m.Len < 2 || !bytes.Equal(a[m.A:m.A+m.Len], b[m.B:m.B+m.Len]) {
				t.Fatalf("%q and %q: %+v is not a run of both", a, b, m)
			}
		}
	}
}

func random(r *rand.Rand) []byte {
	s := make([]byte, r.IntN(9))
	for i := range s {
		s[i] = 'a' + byte(r.IntN(3))
	}
	return s
}

func length(a, b []byte) int {
	switch {
	case len(a) == 0 || len(b) == 0:
		return 0
	case a[0] == b[0]:
		return 1 + length(a[1:], b[1:])
	}
	return max(length(a[1:], b), length(a, b[1:]))
}

func isSubsequence(s, of []byte) bool {
	for _, c := range of {
		if len(s) > 0 && s[0] == c {
			s = s[1:]
		}
	}
	return len(s) == 0
}
