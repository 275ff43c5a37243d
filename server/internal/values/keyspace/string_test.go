package keyspace

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestStringModel compares strings with byte slices, for keys of all lengths, with
// and without a deadline, and with clones.
func TestStringModel(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		ks := New(1, Hooks{})
		if seed%2 == 0 {
			ks.Record(true)
		}
		db := ks.DB(0)
		model := map[string][]byte{}
		edited := map[string]bool{}
		deadlines := map[string]int64{}
		type pair struct {
			s     *String
			model []byte
		}
		var clones []pair
		some := func() []byte {
			b := make([]byte, r.IntN([]int{4, 20, 50, 300, 700}[r.IntN(5)]))
			for i := range b {
				b[i] = 'a' + byte(r.IntN(26))
			}
			return b
		}
		for range 800 {
			key := strings.Repeat("k", 1+r.IntN(3)*150)
			b := some()
			e := db.Edit([]byte(key))
			if e == nil {
				e = db.AddString([]byte(key), nil, r.IntN(2) == 0)
				model[key], edited[key] = nil, false
			}
			switch r.IntN(9) {
			case 0, 1:
				e = db.SetString(e, b)
				model[key], edited[key] = bytes.Clone(b), false
			case 2:
				b = bytes.Clone(model[key]) // of the same length
				e = db.SetString(e, b)
				edited[key] = false
			case 3:
				model[key], edited[key] = append(model[key], b...), true
				var n int
				if e, n = db.AppendString(e, b); n != len(model[key]) {
					t.Fatalf("append says %d, want %d", n, len(model[key]))
				}
			case 4:
				m := model[key]
				offset := r.IntN(2*len(m) + 2)
				if grow := offset + len(b) - len(m); grow > 0 {
					m = append(m, make([]byte, grow)...)
				}
				copy(m[offset:], b)
				model[key], edited[key] = m, true
				var n int
				if e, n = db.WriteString(e, offset, b); n != len(m) {
					t.Fatalf("write says %d, want %d", n, len(m))
				}
			case 5:
				if len(clones) < 8 {
					clones = append(clones, pair{e.Value().(*String).Clone(), bytes.Clone(model[key])})
				}
			case 6:
				at := r.Int64N(2) * (1 + r.Int64N(math.MaxInt64-1))
				e, _ = db.SetDeadline(e, at)
				deadlines[key] = at
			case 7:
				if len(clones) > 0 {
					c := clones[len(clones)-1]
					clones = clones[:len(clones)-1]
					e = db.Put([]byte(key), c.s, true)
					model[key] = c.model
					edited[key] = e.Value().(*String).e.flags&editedFlag != 0
				}
			case 8:
				if r.IntN(10) == 0 {
					db.Delete([]byte(key))
					delete(deadlines, key)
					delete(model, key)
					e = nil
				}
			}
			clear(b) // arguments are valid during the call only
			if e != nil && db.Peek([]byte(key)) != e {
				t.Fatal("the key has a different entry")
			}
			ks.Seal()
			for key, want := range model {
				e := db.Peek([]byte(key))
				s := e.Value().(*String)
				if s.Len() != len(want) || !bytes.Equal(s.Content(), want) || e.Key() != key || e.Deadline() != deadlines[key] ||
					edited[key] != (s.e.flags&editedFlag != 0) {
					t.Fatalf("seed %d: %q until %d, want %q until %d", seed, s.Content(), e.Deadline(), want, deadlines[key])
				}
			}
			for _, c := range clones {
				if !bytes.Equal(c.s.Content(), c.model) {
					t.Fatalf("seed %d: a clone is %q, want %q", seed, c.s.Content(), c.model)
				}
			}
			if err := ks.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestStringEncoding(t *testing.T) {
	db := New(1, Hooks{}).DB(0)
	given := func(s string) *String { return NewString([]byte(s)) }
	edited := func(s, more string) *String {
		e, _ := db.AppendString(db.Put([]byte("k"), given(s), false), []byte(more))
		return e.Value().(*String).Clone()
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
		e := db.SetString(db.Put([]byte("k"), s, false), []byte("12"))
		if got := e.Value().(*String).Encoding(nil); got != "int" {
			t.Errorf("a string that is overwritten is %s", got)
		}
	}
}

// TestStringBuffer checks that an overwrite reuses the buffer unless it is much too
// large.
func TestStringBuffer(t *testing.T) {
	db := New(1, Hooks{}).DB(0)
	for _, size := range []int{1, 8, 20, 100, 1000} {
		b := make([]byte, size-size/8)
		e := db.Put([]byte("k"), NewString(make([]byte, size)), false)
		if n := testing.AllocsPerRun(100, func() { e = db.SetString(e, b) }); n != 0 {
			t.Errorf("setting %d bytes in place of %d allocates %v times", len(b), size, n)
		}
		e = db.SetString(e, make([]byte, 1<<20))
		e = db.SetString(e, b)
		if n := e.Bytes() + e.Value().(*String).Bytes(); n > 200+2*size {
			t.Errorf("%d bytes are kept for %d", n, len(b))
		}
	}
	e := db.Put([]byte("k"), NewString(nil), false)
	allocations := testing.AllocsPerRun(1, func() {
		for range 10_000 {
			e, _ = db.AppendString(e, []byte("x"))
		}
	})
	if allocations > 100 {
		t.Errorf("growing a string byte by byte allocates %v times", allocations)
	}
}

func BenchmarkString(b *testing.B) {
	for _, size := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprintf("set/%d", size), func(b *testing.B) {
			db := New(1, Hooks{}).DB(0)
			key, value := []byte("key"), make([]byte, size)
			e := db.AddString(key, value, false)
			for b.Loop() {
				e = db.SetString(e, value)
			}
		})
	}
}

// TestEmptyStringDeadline gives deadlines to empty strings whose keys fill their entries,
// which -race checks for pointers behind the allocation.
func TestEmptyStringDeadline(t *testing.T) {
	db := New(1, Hooks{}).DB(0)
	for n := range 64 {
		key := make([]byte, n)
		if e, _ := db.SetDeadline(db.AddString(key, nil, false), 1000); e.Deadline() != 1000 || e.Key() != string(key) {
			t.Errorf("key %q expires at %d", e.Key(), e.Deadline())
		}
	}
}
