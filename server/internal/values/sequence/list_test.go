package sequence

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// sameList compares a list with a slice.
func sameList(t *testing.T, l *List, model []string) {
	t.Helper()
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	var forward, backward []string
	for b := range l.Forward(0) {
		forward = append(forward, string(b))
	}
	for b := range l.Backward(l.Len() - 1) {
		backward = append(backward, string(b))
	}
	slices.Reverse(backward)
	if l.Len() != len(model) || !slices.Equal(forward, model) || !slices.Equal(backward, model) {
		t.Fatalf("list of %d elements differs from its model of %d", l.Len(), len(model))
	}
}

// TestListModel compares random operations on a list and its clones with slices.
func TestListModel(t *testing.T) {
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 1))
		type pair struct {
			l     *List
			model []string
		}
		pairs := []*pair{{l: new(List)}}
		longest := []int{5, 70, 900, 9000}[seed%4]
		element := func() []byte {
			switch r.IntN(10) {
			case 0:
				return bytes.Repeat([]byte("x"), r.IntN(longest))
			case 1:
				return fmt.Append(nil, int64(r.Uint64()))
			}
			return fmt.Append(nil, r.IntN(20))
		}
		for range 800 {
			p := pairs[r.IntN(len(pairs))]
			l, n := p.l, len(p.model)
			switch op := r.IntN(16); {
			case op < 3:
				for range r.IntN(50) {
					b := element()
					l.PushBack(b)
					p.model = append(p.model, string(b))
				}
			case op < 6:
				for range r.IntN(50) {
					b := element()
					l.PushFront(b)
					p.model = slices.Insert(p.model, 0, string(b))
				}
			case op == 6 && n > 0:
				if b := l.PopFront(); string(b) != p.model[0] {
					t.Fatalf("PopFront %q, want %q", b, p.model[0])
				}
				p.model = p.model[1:]
			case op == 7 && n > 0:
				if b := l.PopBack(); string(b) != p.model[n-1] {
					t.Fatalf("PopBack %q, want %q", b, p.model[n-1])
				}
				p.model = p.model[:n-1]
			case op == 8 && n > 0:
				i := r.IntN(n)
				if b := l.At(i); string(b) != p.model[i] {
					t.Fatalf("At(%d) %q, want %q", i, b, p.model[i])
				}
			case op == 9 && n > 0:
				for range r.IntN(20) {
					i, b := r.IntN(n), element()
					l.Set(i, b)
					p.model[i] = string(b)
				}
			case op == 10:
				for range r.IntN(50) {
					i, b := r.IntN(len(p.model)+1), element()
					l.Insert(i, b)
					p.model = slices.Insert(p.model, i, string(b))
				}
			case op == 11:
				i := r.IntN(n + 1)
				n := r.IntN(n - i + 1)
				if r.IntN(2) == 0 {
					n = min(n, 10)
				}
				l.Delete(i, n)
				p.model = slices.Delete(p.model, i, i+n)
			case op == 12:
				b, count := string(element()), r.IntN(21)-10
				want := removeModel(&p.model, b, count)
				if got := l.Remove([]byte(b), count); got != want {
					t.Fatalf("Remove(%q, %d) = %d, want %d", b, count, got, want)
				}
			case op == 13 && len(pairs) < 4:
				pairs = append(pairs, &pair{l.Clone(), slices.Clone(p.model)})
			case op == 14 && len(pairs) > 1:
				pairs = slices.DeleteFunc(pairs, func(q *pair) bool { return q == p })
			}
			if r.IntN(20) == 0 {
				for _, p := range pairs {
					sameList(t, p.l, p.model)
				}
			}
		}
	}
}

func removeModel(model *[]string, b string, count int) (removed int) {
	if count < 0 {
		slices.Reverse(*model)
		defer func() { slices.Reverse(*model) }()
		count = -count
	}
	kept := (*model)[:0]
	for _, e := range *model {
		if e == b && (count == 0 || removed < count) {
			removed++
		} else {
			kept = append(kept, e)
		}
	}
	*model = kept
	return removed
}

// TestListEncoding checks that a list keeps its encoding between half of the limit
// and the limit.
func TestListEncoding(t *testing.T) {
	for _, test := range []struct {
		size, entries, shrunk int
		element               string
	}{
		{-2, 8185 / 12, 4089 / 12, "a123456789"},
		{-1, 4089 / 7, 2041 / 7, "hello"},
		{-2, 8185 / 2, 4089 / 2, "5"}, // an integer takes one byte, and one byte for the length
		{128, 128, 64, "hello"},
		{0, 1, 0, "hello"},
	} {
		var l List
		grown, back := 0, 0
		for l.Encoding(test.size) == "listpack" {
			grown = l.Len()
			l.PushBack([]byte(test.element))
			l.Fit(test.size)
		}
		for l.Encoding(test.size) == "quicklist" {
			l.PopFront()
			l.Fit(test.size)
			back = l.Len()
		}
		if grown != test.entries || back != test.shrunk {
			t.Errorf("list-max-listpack-size %d, %q: up to %d and down to %d, want %d and %d",
				test.size, test.element, grown, back, test.entries, test.shrunk)
		}
	}
}

// TestListBytes checks the overhead of short elements.
func TestListBytes(t *testing.T) {
	var l List
	const n = 100000
	for i := range n {
		l.PushBack(fmt.Appendf(nil, "element%06d", i))
	}
	if each := float64(l.Bytes()) / n; each > 13+2+2 {
		t.Errorf("%.1f bytes for an element of 13", each)
	}
	l.Delete(10, n-10)
	if l.Bytes() > 1000 {
		t.Errorf("%d bytes for 10 elements that are left", l.Bytes())
	}
}

func BenchmarkList(b *testing.B) {
	const n = 1 << 20
	var full List
	for i := range n {
		full.PushBack(fmt.Append(nil, i))
	}
	element := []byte(strings.Repeat("x", 10))
	b.Run("queue", func(b *testing.B) {
		var l List
		for b.Loop() {
			l.PushFront(element)
			if l.Len() > 1000 {
				l.PopBack()
			}
		}
	})
	b.Run("at", func(b *testing.B) {
		for b.Loop() {
			full.At(rand.IntN(n))
		}
	})
	b.Run("set", func(b *testing.B) {
		for b.Loop() {
			full.Set(rand.IntN(n), element)
		}
	})
	b.Run("insert", func(b *testing.B) {
		for b.Loop() {
			full.Insert(rand.IntN(n), element)
		}
	})
	b.Run("search", func(b *testing.B) {
		for b.Loop() {
			for e := range full.Forward(0) {
				if bytes.Equal(e, []byte("none")) {
					b.Fatal()
				}
			}
		}
	})
	b.Run("clone and push", func(b *testing.B) {
		for b.Loop() {
			full.Clone()
			full.PushBack(element)
		}
	})
}
