package keyspace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/values/journal"
)

// ops concatenates operations: letters and numbers unchanged, texts with their
// lengths.
type ops []byte

func (o ops) op(letters string) ops { return append(o, letters...) }
func (o ops) n(n uint64) ops        { return binary.AppendUvarint(o, n) }
func (o ops) signed(n int64) ops    { return binary.AppendVarint(o, n) }
func (o ops) text(s string) ops     { return journal.AppendText(o, s) }
func (o ops) score(f float64) ops   { return journal.AppendScore(o, f) }

// TestBuilder applies valid operations and compares the values.
func TestBuilder(t *testing.T) {
	limits := DefaultLimits()
	for name, test := range map[string]struct {
		ops      ops
		want     string
		deadline int64
	}{
		"nothing":          {nil, "", 0},
		"string":           {ops{}.op("NsS").text("abc"), "abc", 0},
		"empty string":     {ops{}.op("NsS").text(""), "", 0},
		"write":            {ops{}.op("NsW").n(2).text("b").op("W").n(1).text("a"), "\x00ab", 0},
		"deadline":         {ops{}.op("NsE").n(7).op("S").text("x"), "x", 7},
		"last deadline":    {ops{}.op("NsE").n(math.MaxInt64).op("S").text("x"), "x", math.MaxInt64},
		"deadline removed": {ops{}.op("NsE").n(7).op("E").n(0).op("S").text("x"), "x", 0},
		"begun anew":       {ops{}.op("NsE").n(7).op("S").text("x").op("NlA").text("y"), "y", 0},
		"gone":             {ops{}.op("NsE").n(7).op("S").text("x").op("D"), "", 0},
		"gone twice":       {ops{}.op("DD"), "", 0},
		"list":             {ops{}.op("NlA").text("b").op("L").text("a").op("I").n(2).text("c").op("=").n(1).text("B"), "a B c", 0},
		"list cut":         {ops{}.op("NlA").text("a").op("A").text("b").op("A").text("c").op("X").n(0).n(2), "c", 0},
		"list popped":      {ops{}.op("NlA").text("a").op("A").text("b").op("A").text("c").op("la"), "b", 0},
		"list matching":    {ops{}.op("NlA").text("a").op("A").text("b").op("A").text("a").op("M").signed(-1).text("a"), "a b", 0},
		"set":              {ops{}.op("NtP").text("2").op("P").text("1").op("P").text("3").op("R").text("3").op("R").text("4"), "1 2", 0},
		"ordered set":      {ops{}.op("NtOP").text("2").op("P").text("1"), "2 1", 0},
		"hash":             {ops{}.op("NhP").text("f").text("v").op("P").text("g").text("").op("R").text("h"), `"f" "v" 0 "g" "" 0`, 0},
		"sorted set": {ops{}.op("NzP").text("b").score(1).op("P").text("a").score(1).op("P").text("b").score(0.5),
			`"b" 0.5 3fe0000000000000 "a" 1 3ff0000000000000`, 0},
		"sorted set cleared": {ops{}.op("NzP").text("b").score(1).op("CP").text("a").score(math.Inf(-1)).op("R").text("x"),
			`"a" -Inf fff0000000000000`, 0},
	} {
		b := Builder{Limits: &limits}
		for range 2 { // a builder is reusable
			apply(t, &b, test.ops)
			value, deadline, err := b.Value()
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			got := strings.Join(contentOf(value, deadline, &limits).items, " ")
			if got != test.want || deadline != test.deadline {
				t.Errorf("%s: %q until %d, want %q until %d", name, got, deadline, test.want, test.deadline)
			}
		}
	}
}

var malformed = map[string]ops{
	"unknown operation":       ops{}.op("?"),
	"unknown of a value":      ops{}.op("NlA").text("a").op("?"),
	"no kind":                 ops{}.op("N"),
	"unknown kind":            ops{}.op("N?"),
	"no value":                ops{}.op("A").text("a"),
	"no value any more":       ops{}.op("NlDA").text("a"),
	"deadline of nothing":     ops{}.op("E").n(7),
	"no deadline":             ops{}.op("NsE"),
	"negative deadline":       ops{}.op("NsE").n(1 << 63),
	"endless number":          ops{}.op("NsE\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
	"number cut off":          ops{}.op("NsE\xff"),
	"no text":                 ops{}.op("NsS"),
	"text cut off":            ops{}.op("NsS\x05abcd"),
	"text of 2^63 bytes":      ops{}.op("NsS").n(1 << 63).op("abcd"),
	"offset without text":     ops{}.op("NsW").n(7),
	"offset far away":         ops{}.op("NsW").n(math.MaxInt64).text("a"),
	"offset beyond integers":  ops{}.op("NsW").n(math.MaxUint64).text("a"),
	"gap of 4 GB":             ops{}.op("NsW").n(4 << 30).text("a"),
	"string has no put":       ops{}.op("NsP").text("a"),
	"list has no put":         ops{}.op("NlP").text("a"),
	"hash has no push":        ops{}.op("NhA").text("a"),
	"hash has no order":       ops{}.op("NhO"),
	"set has no clear":        ops{}.op("NtC"),
	"sorted set has no order": ops{}.op("NzO"),
	"pop of nothing":          ops{}.op("Nll"),
	"pop of nothing, behind":  ops{}.op("Nla"),
	"element beyond the end":  ops{}.op("NlA").text("a").op("=").n(1).text("b"),
	"insert beyond the end":   ops{}.op("NlA").text("a").op("I").n(2).text("b"),
	"insert far away":         ops{}.op("NlA").text("a").op("I").n(math.MaxUint64).text("b"),
	"cut beyond the end":      ops{}.op("NlA").text("a").op("X").n(2).n(0),
	"too much cut":            ops{}.op("NlA").text("a").op("X").n(0).n(2),
	"cut without a number":    ops{}.op("NlA").text("a").op("X").n(0),
	"matching nothing":        ops{}.op("NlA").text("a").op("M").signed(1),
	"field without value":     ops{}.op("NhP").text("f"),
	"score cut off":           ops{}.op("NzP").text("a").op("1234567"),
	"not a number":            ops{}.op("NzP").text("a").score(math.NaN()),
	"not a number, later":     ops{}.op("NzP").text("a").score(1).op("R").text("b").op("P").text("a").score(math.NaN()),
	"member without a score":  ops{}.op("NzCP").text("a"),
}

func TestMalformedOperations(t *testing.T) {
	limits := DefaultLimits()
	for name, ops := range malformed {
		b := Builder{Limits: &limits}
		if err := b.Apply(ops); !errors.Is(err, journal.ErrOperations) {
			t.Errorf("%s: %q: %v", name, ops, err)
		}
	}
	for _, kind := range []string{"l", "t", "h", "z"} {
		b := Builder{Limits: &limits}
		if err := b.Apply(ops{}.op("N" + kind)); err != nil {
			t.Fatal(err)
		}
		if value, _, err := b.Value(); !errors.Is(err, journal.ErrOperations) {
			t.Errorf("an empty value of kind %s: %v, %v", kind, value, err)
		}
	}
	whole := ops{}.n(300).text("key").text("NsS\x01x")
	if r, rest, err := journal.NextRecord(append(whole, "rest"...)); err != nil || r.Space != 300 || string(r.Key) != "key" ||
		string(r.Operations) != "NsS\x01x" || string(rest) != "rest" {
		t.Errorf("record %+v, rest %q: %v", r, rest, err)
	}
	for n := range whole {
		if _, _, err := journal.NextRecord(whole[:n]); !errors.Is(err, journal.ErrOperations) {
			t.Errorf("record of %q: %v", whole[:n], err)
		}
	}
}

// FuzzBuilder applies arbitrary operations. The result is a value that satisfies
// its invariants, or an error.
func FuzzBuilder(f *testing.F) {
	for _, ops := range malformed {
		f.Add([]byte(ops))
	}
	r := rand.New(rand.NewPCG(1, 6))
	c := &client{r: r, ks: New(2, Hooks{})}
	c.ks.Record(true)
	for range 200 {
		c.command()
	}
	for chunk := range c.ks.TakeJournal().Chunks {
		for n := 0; len(chunk) > 0; n++ {
			record, rest, err := journal.NextRecord(chunk)
			if err != nil {
				f.Fatal(err)
			}
			if n%10 == 0 && len(chunk)-len(rest) < 500 {
				f.Add(chunk[:len(chunk)-len(rest)])
				f.Add(record.Operations)
			}
			chunk = rest
		}
	}
	for _, db := range c.ks.dbs {
		for e := range db.All() {
			if p := db.Pin(e); p.Size() < 1000 {
				for ops := range p.Chunks {
					f.Add(bytes.Clone(ops))
				}
			}
		}
	}
	limits := DefaultLimits()
	f.Fuzz(func(t *testing.T, data []byte) {
		for rest := data; len(rest) > 0; {
			r, next, err := journal.NextRecord(rest)
			if err != nil {
				if !errors.Is(err, journal.ErrOperations) {
					t.Fatal(err)
				}
				break
			}
			if len(r.Key)+len(r.Operations)+len(next) >= len(rest) {
				t.Fatalf("%d bytes of key, %d of operations and %d of rest in %d", len(r.Key), len(r.Operations), len(next), len(rest))
			}
			rest = next
			build(t, &limits, r.Operations)
		}
		build(t, &limits, data)
	})
}

func build(t *testing.T, l *Limits, ops []byte) {
	b := Builder{Limits: l}
	err := b.Apply(ops)
	if err == nil {
		var value any
		if value, _, err = b.Value(); err == nil && value != nil {
			if err := value.(checker).Check(); err != nil {
				t.Fatal(err)
			}
			if s, ok := value.(*String); ok && s.Bytes() > 2*len(ops)*(maxGap+64) {
				t.Fatalf("%d bytes of %d", s.Bytes(), len(ops))
			}
		}
	}
	if err != nil && !errors.Is(err, journal.ErrOperations) {
		t.Fatal(err)
	}
}
