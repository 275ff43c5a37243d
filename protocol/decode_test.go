package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

var replies = []struct {
	in   string
	want any
}{
	{"+OK\r\n", Status("OK")},
	{"+\r\n", Status("")},
	{"-ERR no\r\n", ReplyError("ERR no")},
	{"!5\r\nERR \n\r\n", ReplyError("ERR \n")},
	{":0\r\n", int64(0)},
	{":-9223372036854775808\r\n", int64(math.MinInt64)},
	{"$-1\r\n", nil},
	{"$0\r\n\r\n", ""},
	{"$5\r\na\r\nb\x00\r\n", "a\r\nb\x00"},
	{"*-1\r\n", nil},
	{"*0\r\n", []any{}},
	{"*3\r\n$1\r\na\r\n*1\r\n:1\r\n$-1\r\n", []any{"a", []any{int64(1)}, nil}},
	{"_\r\n", nil},
	{"#t\r\n", true},
	{"#f\r\n", false},
	{",1.5\r\n", 1.5},
	{",-1e+20\r\n", -1e20},
	{",inf\r\n", math.Inf(1)},
	{",-inf\r\n", math.Inf(-1)},
	{"(-3492890328409238509324850943850943825024385\r\n", BigNumber("-3492890328409238509324850943850943825024385")},
	{"=8\r\ntxt:some\r\n", "some"},
	{"=4\r\nmkd:\r\n", ""},
	{"~2\r\n:2\r\n:1\r\n", Set{int64(2), int64(1)}},
	{"%2\r\n+b\r\n:1\r\n+a\r\n*1\r\n_\r\n", Map{{Status("b"), int64(1)}, {Status("a"), []any{nil}}}},
	{">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", Push{"invalidate", []any{"k"}}},
	{"|1\r\n+ttl\r\n:3600\r\n$1\r\nv\r\n", "v"},
	{"*2\r\n|1\r\n+a\r\n%1\r\n:1\r\n:2\r\n|0\r\n:7\r\n:8\r\n", []any{int64(7), int64(8)}},
	{"+" + strings.Repeat("x", 10_000) + "\r\n", Status(strings.Repeat("x", 10_000))},
	{"$200000\r\n" + strings.Repeat("x", 200_000) + "\r\n", strings.Repeat("x", 200_000)},
}

func TestDecode(t *testing.T) {
	for _, c := range replies {
		v, n, err := Decode([]byte(c.in + "+next"))
		if err != nil || n != len(c.in) || !reflect.DeepEqual(v, c.want) {
			t.Errorf("%.60q: %.60v (%T), %d bytes, %v", c.in, v, v, n, err)
		}
		r := bufio.NewReaderSize(strings.NewReader(c.in+c.in), 16)
		for range 2 {
			if v, err := DecodeFrom(r); err != nil || !reflect.DeepEqual(v, c.want) {
				t.Errorf("%.60q, from a reader: %.60v (%T), %v", c.in, v, v, err)
			}
		}
		if _, err := DecodeFrom(r); err != io.EOF {
			t.Errorf("%.60q: then %v", c.in, err)
		}
	}
	if v, _, err := Decode([]byte(",nan\r\n")); err != nil || !math.IsNaN(v.(float64)) {
		t.Error(v, err)
	}
}

func TestDecodeIncomplete(t *testing.T) {
	for _, c := range replies {
		for i := 0; i < len(c.in); i += 1 + len(c.in)/500 {
			if v, n, err := Decode([]byte(c.in[:i])); v != nil || n != 0 || err != io.ErrUnexpectedEOF {
				t.Fatalf("%.60q cut at %d: %v, %d, %v", c.in, i, v, n, err)
			}
			if i == 0 {
				continue
			}
			r := bufio.NewReader(strings.NewReader(c.in[:i]))
			if v, err := DecodeFrom(r); v != nil || err != io.ErrUnexpectedEOF {
				t.Fatalf("%.60q cut at %d, from a reader: %v, %v", c.in, i, v, err)
			}
		}
	}
	broken := errors.New("broken")
	r := bufio.NewReader(io.MultiReader(strings.NewReader("*2\r\n:1\r\n"), iotest.ErrReader(broken)))
	if _, err := DecodeFrom(r); err != broken {
		t.Errorf("got %v, want the reader's own error", err)
	}
}

func TestDecodeMalformed(t *testing.T) {
	for _, in := range []string{
		"\r\n", "x\r\n", "OK\r\n", "+OK\n",
		":\r\n", ":1.5\r\n", ":9223372036854775808\r\n",
		"$-2\r\n", "$+1\r\na\r\n", "$01\r\na\r\n", "$1\r\nabc", "$\r\n",
		"*-2\r\n", "*x\r\n", "*1\r\n+\n", "*9223372036854775807\r\n",
		"~-1\r\n", "%-1\r\n", ">-1\r\n", "!-1\r\n",
		"_x\r\n", "#x\r\n", "#\r\n", ",\r\n", ",x\r\n", "(\r\n", "(1x\r\n", "(-+1\r\n",
		"=3\r\ntxt\r\n", "=5\r\ntxt-x\r\n",
		"*?\r\n", "$?\r\n",
		strings.Repeat("*1\r\n", 2000), strings.Repeat("|1\r\n", 2000),
	} {
		for _, from := range []string{"Decode", "DecodeFrom"} {
			v, n, err := Decode([]byte(in))
			if from == "DecodeFrom" {
				v, err = DecodeFrom(bufio.NewReaderSize(strings.NewReader(in), 16))
			}
			if v != nil || n != 0 || err == nil || err == io.EOF || err == io.ErrUnexpectedEOF {
				t.Errorf("%s(%.40q): %v, %d, %v", from, in, v, n, err)
			}
		}
	}
	if _, err := DecodeFrom(bufio.NewReader(io.LimitReader(endless('x'), 1<<30))); err == nil || err == io.ErrUnexpectedEOF {
		t.Error("a line without end:", err)
	}
}

type endless byte

func (e endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(e)
	}
	return len(b), nil
}

// TestDecodeUnsentElements checks that announced lengths allocate nothing.
func TestDecodeUnsentElements(t *testing.T) {
	for _, in := range []string{
		"*1000000000\r\n:1\r\n", "%1000000000\r\n", "$1000000000\r\nabc",
		strings.Repeat("*1000000000\r\n", 1000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, _, err := Decode([]byte(in)); err != io.ErrUnexpectedEOF {
			t.Fatal(err)
		}
		if _, err := DecodeFrom(bufio.NewReader(strings.NewReader(in))); err != io.ErrUnexpectedEOF {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		got := after.TotalAlloc - before.TotalAlloc
		if most := uint64(40_000 + 100*len(in)); got > most {
			t.Errorf("%.20q: %d bytes allocated, at most %d expected", in, got, most)
		}
	}
}

// TestDecodeRequest decodes a request, which has the format of a reply.
func TestDecodeRequest(t *testing.T) {
	in := bulks("ZADD", "k", "1", "a\r\nb")
	v, n, err := Decode([]byte(in))
	if err != nil || n != len(in) || !reflect.DeepEqual(v, []any{"ZADD", "k", "1", "a\r\nb"}) {
		t.Error(v, n, err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range replies {
		if len(c.in) < 1000 {
			f.Add([]byte(c.in))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		v, n, err := Decode(in)
		r := bufio.NewReaderSize(iotest.OneByteReader(bytes.NewReader(in)), 16)
		w, errFrom := DecodeFrom(r)
		if len(in) == 0 {
			return
		}
		if (err == nil) != (errFrom == nil) || (err == io.ErrUnexpectedEOF) != (errFrom == io.ErrUnexpectedEOF) {
			t.Fatalf("Decode: %v; DecodeFrom: %v", err, errFrom)
		}
		if err != nil {
			return
		}
		if n <= 0 || n > len(in) {
			t.Fatalf("%d bytes of %d", n, len(in))
		}
		if !bytes.Contains(bytes.ToLower(in), []byte("nan")) && !reflect.DeepEqual(v, w) {
			t.Fatalf("Decode: %v; DecodeFrom: %v", v, w)
		}
		if rest, _ := io.ReadAll(r); len(rest) != len(in)-n {
			t.Fatalf("%d bytes of %d taken by Decode, %d by DecodeFrom", n, len(in), len(in)-len(rest))
		}
	})
}
