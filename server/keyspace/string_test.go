package keyspace

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// A string does what a slice of bytes does, and its clones go their own ways.
func TestStringModel(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		type pair struct {
			s     *String
			model []byte
		}
		pairs := []*pair{{new(String), nil}}
		some := func() []byte {
			b := make([]byte, r.IntN([]int{4, 50, 300}[r.IntN(3)]))
			for i := range b {
				b[i] = 'a' + byte(r.IntN(26))
			}
			return b
		}
		for range 500 {
			p := pairs[r.IntN(len(pairs))]
			b := some()
			switch r.IntN(6) {
			case 0:
				p.s.set(b)
				p.model = bytes.Clone(b)
			case 1:
				p.s.set(b)
				p.s.MarkText()
				p.model = bytes.Clone(b)
			case 2:
				p.model = append(p.model, b...)
				if n := p.s.append(b); n != len(p.model) {
					t.Fatalf("append says %d, want %d", n, len(p.model))
				}
			case 3:
				offset := r.IntN(2*len(p.model) + 2)
				if grow := offset + len(b) - len(p.model); grow > 0 {
					p.model = append(p.model, make([]byte, grow)...)
				}
				copy(p.model[offset:], b)
				if n := p.s.write(offset, b); n != len(p.model) {
					t.Fatalf("write says %d, want %d", n, len(p.model))
				}
			case 4:
				if len(pairs) < 8 {
					pairs = append(pairs, &pair{p.s.Clone(), bytes.Clone(p.model)})
				}
			case 5:
				p.s, p.model = NewString(b), bytes.Clone(b)
			}
			clear(b) // arguments are only borrowed
			for _, p := range pairs {
				if p.s.Len() != len(p.model) || !bytes.Equal(p.s.Content(), p.model) {
					t.Fatalf("seed %d: %q, want %q", seed, p.s.Content(), p.model)
				}
				if err := p.s.Check(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestStringEncoding(t *testing.T) {
	given := func(s string) *String { return NewString([]byte(s)) }
	edited := func(s, more string) *String {
		e := given(s)
		e.append([]byte(more))
		return e
	}
	text := func(s string) *String {
		e := given(s)
		e.MarkText()
		return e
	}
	for _, test := range []struct {
		s    *String
		want string
	}{
		{given("0"), "int"},
		{given("-9223372036854775808"), "int"},
		{given("9223372036854775807"), "int"},
		{given("9223372036854775808"), "embstr"},
		{given("-0"), "embstr"},
		{given("007"), "embstr"},
		{given("+1"), "embstr"},
		{given(" 1"), "embstr"},
		{given(""), "embstr"},
		{given(strings.Repeat("x", 44)), "embstr"},
		{given(strings.Repeat("x", 45)), "raw"},
		{edited("1", "2"), "raw"},
		{edited("", ""), "raw"},
		{edited("1", "2").Clone(), "raw"},
		{text("12"), "embstr"},
		{text("12").Clone(), "embstr"},
		{text(strings.Repeat("1", 45)), "raw"},
	} {
		if got := test.s.Encoding(nil); got != test.want {
			t.Errorf("%q is %s, want %s", test.s.Content(), got, test.want)
		}
	}
	for _, s := range []*String{edited("1", "2"), text("12")} {
		s.set([]byte("12"))
		if got := s.Encoding(nil); got != "int" {
			t.Errorf("a string that is overwritten is %s", got)
		}
	}
}

// The buffer is used again, but not one that is far too large.
func TestStringBuffer(t *testing.T) {
	s, b := NewString(make([]byte, 100)), make([]byte, 90)
	if n := testing.AllocsPerRun(100, func() { s.set(b) }); n != 0 {
		t.Errorf("set allocates %v times", n)
	}
	s.set(make([]byte, 1<<20))
	s.set(b)
	if n := s.Bytes(); n > 1000 {
		t.Errorf("%d bytes are kept for 90", n)
	}
	grown := new(String)
	allocations := testing.AllocsPerRun(1, func() {
		for range 10_000 {
			grown.write(grown.Len(), []byte("x"))
		}
	})
	if allocations > 100 {
		t.Errorf("growing a string byte by byte allocates %v times", allocations)
	}
}

func BenchmarkString(b *testing.B) {
	for _, size := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprintf("set/%d", size), func(b *testing.B) {
			s, value := new(String), make([]byte, size)
			for b.Loop() {
				s.set(value)
			}
		})
	}
}
