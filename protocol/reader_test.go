package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// feed passes data to r in pieces of the given sizes (the last one repeats) and
// returns a copy of each command, formatted, and the text of the error as the last
// entry.
func feed(t testing.TB, r *Reader, data string, sizes ...int) []string {
	t.Helper()
	var got []string
	var arena [][]byte
	for len(data) > 0 {
		size := len(data)
		if len(sizes) > 0 {
			size = sizes[0]
			if len(sizes) > 1 {
				sizes = sizes[1:]
			}
		}
		buf := r.Space()
		if r.large == nil && len(buf) < minSpace {
			t.Fatalf("Space gave %d bytes", len(buf))
		}
		n := copy(buf[:min(size, len(buf))], data)
		r.Filled(n)
		data = data[n:]

		arena = arena[:0]
		var commands [][][]byte
		var failure error
		for {
			from := len(arena)
			var ok bool
			arena, ok, failure = r.Next(arena)
			if !ok {
				if len(arena) != from {
					t.Fatal("Next appended without a command")
				}
				break
			}
			commands = append(commands, arena[from:])
		}
		for _, c := range commands {
			got = append(got, fmt.Sprintf("%q", c))
		}
		if failure != nil {
			if _, _, again := r.Next(nil); again != failure {
				t.Fatalf("a second error: %v", again)
			}
			return append(got, failure.Error())
		}
	}
	return got
}

const ping = "*1\r\n$4\r\nPING\r\n"

func bulks(args ...string) string {
	b := new(strings.Builder)
	fmt.Fprintf(b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

func formatted(args ...string) string { return fmt.Sprintf("%q", args) }

// Requests with the results of redis-server 7.0.15. A comment "Redis:" gives a
// deviation.
var requests = []struct {
	in   string
	want []string
}{
	// Counts.
	{"*0\r\n" + ping, []string{`["PING"]`}},
	{"*-1\r\n" + ping, []string{`["PING"]`}},
	{"*-5\r\n" + ping, []string{`["PING"]`}},
	{"*-9223372036854775808\r\n" + ping, []string{`["PING"]`}},
	{"*-0\r\n", []string{errMultibulk}},
	{"*+1\r\n", []string{errMultibulk}},
	{"*01\r\n", []string{errMultibulk}},
	{"*00\r\n", []string{errMultibulk}},
	{"*\r\n", []string{errMultibulk}},
	{"*-\r\n", []string{errMultibulk}},
	{"* 1\r\n", []string{errMultibulk}},
	{"*1 \r\n", []string{errMultibulk}},
	{"*x\r\n", []string{errMultibulk}},
	{"*1048576\r\n", nil},
	{"*2147483647\r\n", nil},
	{"*2147483648\r\n", []string{errMultibulk}},
	{"*2147483648\r\n", []string{errMultibulk}},
	{"*9223372036854775808\r\n", []string{errMultibulk}},
	{"*-9223372036854775809\r\n", []string{errMultibulk}},
	{"*18446744073709551617\r\n", []string{errMultibulk}},
	// Lengths.
	{"*1\r\n$-1\r\n", []string{errBulk}},
	{"*1\r\n$-0\r\n", []string{errBulk}},
	{"*1\r\n$+4\r\nPING\r\n", []string{errBulk}},
	{"*1\r\n$04\r\nPING\r\n", []string{errBulk}},
	{"*1\r\n$\r\n", []string{errBulk}},
	{"*1\r\n$x\r\n", []string{errBulk}},
	{"*1\r\n$536870912\r\n", nil},
	{"*1\r\n$536870913\r\n", []string{errBulk}},
	{"*1\r\n$9223372036854775807\r\n", []string{errBulk}},
	{"*1\r\n$18446744073709551620\r\nPING\r\n", []string{errBulk}},
	// Types.
	{"*1\r\n:4\r\n", []string{"Protocol error: expected '$', got ':'"}},
	{"*1\r\nPING\r\n", []string{"Protocol error: expected '$', got 'P'"}},
	{"*1\r\n*1\r\n", []string{"Protocol error: expected '$', got '*'"}},
	{"*1\r\n\r\n$4\r\nPING\r\n", []string{"Protocol error: expected '$', got ' '"}},
	{"*1\r\n\n$4\r\nPING\r\n", []string{"Protocol error: expected '$', got ' '"}},
	{"*1\r\n \r\n", []string{"Protocol error: expected '$', got ' '"}},
	{"*1\r\n'\r\n", []string{"Protocol error: expected '$', got '''"}},
	{"*1\r\n\x01\r\n", []string{"Protocol error: expected '$', got '\x01'"}},
	{"*1\r\n\xff\r\n", []string{"Protocol error: expected '$', got '\xff'"}},
	{"*1\r\nPING", nil}, // the error waits for the end of the line
	// Line ends.
	{"*1\rX$4\rYPINGZZ" + ping, []string{`["PING"]`, `["PING"]`}},
	{"*1\n$4\nPING\n", nil},
	{"*1\r\n$4\r\nPINGxx" + ping, []string{`["PING"]`, `["PING"]`}},
	{"*1\r\n$4\r\nPINGPONG\r\n", []string{`["PING"]`, `["NG"]`}},
	{"*1\r\n$0\r\n\r\n" + ping, []string{`[""]`, `["PING"]`}},
	{"*2\r\n$4\r\nPING\r\n$0\r\n\r\n", []string{`["PING" ""]`}},
	// An invalid frame after valid ones.
	{ping + "*x\r\n" + ping, []string{`["PING"]`, errMultibulk}},
	{ping + ping + "*1\r\n$x\r\n", []string{`["PING"]`, `["PING"]`, errBulk}},
	{ping + "\"\r\n" + ping, []string{`["PING"]`, errQuotes}},
	// Inline.
	{"\r\n" + ping, []string{`["PING"]`}},
	{"\n" + ping, []string{`["PING"]`}},
	{"   \r\n" + ping, []string{`["PING"]`}},
	{"\r\r\n" + ping, []string{`["PING"]`}},
	{"PING\r\n", []string{`["PING"]`}},
	{"PING\n", []string{`["PING"]`}},
	{"PING\r\r\n", []string{`["PING"]`}},
	{"  PING  a  \r\n", []string{`["PING" "a"]`}},
	{"PING\ta\r\n", []string{`["PING" "a"]`}},
	{"PI\rNG\r\n", []string{`["PI" "NG"]`}},
	{"PING\va\r\n", []string{`["PING\va"]`}},
	{"PING\fa\r\n", []string{`["PING\fa"]`}},
	{"\vPING\r\n", []string{`["PING"]`}},
	{"PING \v\r\n", []string{`["PING"]`}},
	{"PING \f \va\r\n", []string{`["PING" "a"]`}},
	{`PING "a b"` + "\r\n", []string{`["PING" "a b"]`}},
	{`PING 'a b'` + "\r\n", []string{`["PING" "a b"]`}},
	{`PING "a\x41\n\r\t\b\a\q\"\\"` + "\r\n", []string{formatted("PING", "aA\n\r\t\b\aq\"\\")}},
	{`PING 'a\'b\n\\'` + "\r\n", []string{errQuotes}}, // the last quote is escaped: \ before \' is a plain byte
	{`PING 'a\'b\n\\ '` + "\r\n", []string{formatted("PING", `a'b\n\\ `)}},
	{`PING "a"b` + "\r\n", []string{errQuotes}},
	{`PING 'a'b` + "\r\n", []string{errQuotes}},
	{`PING "a` + "\r\n", []string{errQuotes}},
	{`PING 'a` + "\r\n", []string{errQuotes}},
	{`PING "a\` + "\r\n", []string{errQuotes}},
	{`PING a"b c"` + "\r\n", []string{`["PING" "ab c"]`}},
	{`PING a"b"c` + "\r\n", []string{errQuotes}},
	{`PING ""` + "\r\n", []string{`["PING" ""]`}},
	{`PING ''` + "\r\n", []string{`["PING" ""]`}},
	{`""` + "\r\n", []string{`[""]`}},
	{`PING "a\x4"` + "\r\n", []string{`["PING" "ax4"]`}},
	{`PING "a\xzz"` + "\r\n", []string{`["PING" "axzz"]`}},
	{`PING a\x41` + "\r\n", []string{formatted("PING", `a\x41`)}},
	{`PING a\"b"` + "\r\n", []string{formatted("PING", `a\b`)}},
	{"PING \"a\"\v\r\n", []string{`["PING" "a"]`}},
	{"PING \"a\"\t\r\n", []string{`["PING" "a"]`}},
	{"PING a\r\"b\"\r\n", []string{`["PING" "a" "b"]`}},
	{"PING \"a\"\r\"b\"\r\n", []string{`["PING" "a" "b"]`}},
	{`PING 'a"b'` + "\r\n", []string{formatted("PING", `a"b`)}},
	{`PING "\x00"` + "\r\n", []string{formatted("PING", "\x00")}},
	{"PING \"\xff\\xFF\"\r\n", []string{formatted("PING", "\xff\xff")}},
	{"PING \x85a\r\n", []string{formatted("PING", "\x85a")}},
	{"$4\r\nPING\r\n", []string{`["$4"]`, `["PING"]`}},
	// A NUL hides the end of its line: the reader waits until the line is too long.
	{"PI\x00NG\r\n", nil},
	{"\x00\r\n" + ping, nil},
	{"PING\r\n\x16\x03\x01\x02\x00\r\nPING\r\n", []string{formatted("PING")}}, // the beginning of a TLS handshake
	{"*1\x00\r\n", nil},
	{"*1\r\n\x00\r\n", nil},
	{"*1\r\n$4\x00\r\nPING\r\n", nil},
	{"*1\r\n$4\r\nPI\x00G\r\n", []string{formatted("PI\x00G")}},
	{"PING \x00\r\n" + strings.Repeat("x", 66_000), []string{errBigInline}},
	{"*1\x00\r\n" + strings.Repeat("\r\n", 33_000), []string{errBigMultibulk}},
	{"*1\r\n\x00" + strings.Repeat("\r\n", 33_000), []string{errBigBulk}},
	// Lines without end. Redis accepts a longer line if its end arrives in the same
	// read.
	{strings.Repeat("x", 65536), nil},
	{strings.Repeat("x", 65536) + "\n", []string{formatted(strings.Repeat("x", 65536))}},
	{strings.Repeat("x", 65535) + "\r\n", []string{formatted(strings.Repeat("x", 65535))}},
	{strings.Repeat("x", 65537), []string{errBigInline}},
	{strings.Repeat("x", 65537) + "\n", []string{errBigInline}},
	{"*" + strings.Repeat("1", 65535), nil},
	{"*" + strings.Repeat("1", 65535) + "\r\n", []string{errMultibulk}},
	{"*" + strings.Repeat("1", 65536), []string{errBigMultibulk}},
	{"*1\r\n$" + strings.Repeat("1", 65535), nil},
	{"*1\r\n$" + strings.Repeat("1", 65536), []string{errBigBulk}},
	{"*1\r\nx" + strings.Repeat("1", 65536), []string{errBigBulk}},
}

func TestReaderMatchesRedis(t *testing.T) {
	for _, c := range requests {
		for _, sizes := range [][]int{nil, {1}, {2}, {3, 1, 5}} {
			if got := feed(t, new(Reader), c.in, sizes...); !slices.Equal(got, c.want) {
				t.Errorf("%.80q in pieces of %v:\n got %.200q\nwant %.200q", c.in, sizes, got, c.want)
			}
		}
	}
}

// TestReaderOfValkey parses requests with Limits.Valkey. The results are those of Valkey 9.1.2.
func TestReaderOfValkey(t *testing.T) {
	long := strings.Repeat("x", 40_000)
	header := fmt.Sprintf("*2\r\n$3\r\nGET\r\n$%d\r\n", len(long))
	for _, c := range []struct {
		in   string
		want []string
	}{
		{ping + "*0\r\n*-1\r\n" + bulks("GET", long) + ping, []string{formatted("PING"), formatted("GET", long), formatted("PING")}},
		{ping + "*1\rx", []string{formatted("PING"), errLineEnd}},
		{"*0\rx" + ping, []string{errLineEnd}},
		{"*x\rx", []string{errLineEnd}},
		{"*1xx", nil},
		{"*1x\n$4\r\nPING\r\n", []string{errMultibulk}},
		{"*1\r\n$4\rxPING\r\n", []string{errLineEnd}},
		{"*1\r\n$4x\nPING\r\n", []string{errBulk}},
		{"*1\r\n:4\rxPING\r\n", []string{"Protocol error: expected '$', got ':'"}},
		{"*1\r\n$4\r\nPING\rx" + ping, []string{errLineEnd}},
		{"*1\r\n$4\r\nPINGx\n" + ping, []string{errLineEnd}},
		{"*2\r\n$4\r\nPINGxx$1\r\na\r\n", []string{errLineEnd}},
		{ping + header + long + "x\n" + ping, []string{formatted("PING"), errLineEnd}},
		{header + long + "\rx", []string{errLineEnd}},
		{header + long + "x", nil},
		{`PING "a"b'c d' e` + "\r\n", []string{formatted("PING", "abc d", "e")}},
		{`SET a'-'b"\x41\""c "" ''` + "\r\n", []string{formatted("SET", `a-bA"c`, "", "")}},
		{`PING """a"` + "\n", []string{formatted("PING", "a")}},
		{`PING "a"b"` + "\r\n", []string{errQuotes}},
		{"PING \"a\"\vb\r\n", []string{formatted("PING", "a\vb")}},
	} {
		for _, sizes := range [][]int{nil, {1}, {2}, {3, 1, 5}, {20, 30_000}} {
			if got := feed(t, &Reader{Limits: Limits{Valkey: true}}, c.in, sizes...); !slices.Equal(got, c.want) {
				t.Errorf("%.80q in pieces of %v:\n got %.200q\nwant %.200q", c.in, sizes, got, c.want)
			}
		}
	}
}

func TestReaderUnauthenticated(t *testing.T) {
	ten := slices.Repeat([]string{"a"}, 10)
	for _, c := range []struct {
		in   string
		want []string
	}{
		{bulks(ten...), []string{formatted(ten...)}},
		{"*11\r\n", []string{errUnauthenticatedMultibulk}},
		{"*2147483648\r\n", []string{errMultibulk}},
		{"*1\r\n$16384\r\n", nil},
		{"*1\r\n$16385\r\n", []string{errUnauthenticatedBulk}},
		{"*1\r\n$536870913\r\n", []string{errBulk}},
	} {
		if got := feed(t, &Reader{Limits: Limits{Unauthenticated: true}}, c.in); !slices.Equal(got, c.want) {
			t.Errorf("%.80q: got %q, want %q", c.in, got, c.want)
		}
	}

	// Commands after AUTH in the same packet have the limits that AUTH sets.
	r := &Reader{Limits: Limits{Unauthenticated: true}}
	r.Filled(copy(r.Space(), bulks("AUTH", "x")+bulks(append(ten, "b")...)))
	if _, ok, err := r.Next(nil); !ok || err != nil {
		t.Fatal(ok, err)
	}
	r.Limits.Unauthenticated = false
	if args, ok, err := r.Next(nil); !ok || err != nil || len(args) != 11 {
		t.Fatal(args, ok, err)
	}
}

func TestReaderLimits(t *testing.T) {
	limits := Limits{MaxBulk: 5, MaxArgs: 3, MaxInline: 8}
	for in, want := range map[string]string{
		bulks("12345", "", "x"):         formatted("12345", "", "x"),
		"*1\r\n$6\r\n":                  errBulk,
		"*4\r\n":                        errMultibulk,
		"12345678\n":                    formatted("12345678"),
		"123456789\n":                   errBigInline,
		"*" + strings.Repeat("1", 8):    errBigMultibulk,
		"*1\r\n$" + "1234567" + "8\r\n": errBigBulk,
	} {
		for _, size := range []int{1, 1000} {
			if got := feed(t, &Reader{Limits: limits}, in, size); len(got) != 1 || got[0] != want {
				t.Errorf("%q in pieces of %d: got %q, want %q", in, size, got, want)
			}
		}
	}
}

func TestReaderError(t *testing.T) {
	r := new(Reader)
	r.Filled(copy(r.Space(), "*x\r\n"+ping))
	_, _, err := r.Next(nil)
	if e, ok := errors.AsType[*Error](err); !ok || e.Text != errMultibulk {
		t.Fatalf("%T %v", err, err)
	}
	for range 100 { // a transport that continues to read
		r.Filled(len(r.Space()))
	}
	if r.Buffered() != 0 || r.Size() > 2*bufferSize {
		t.Fatalf("a failed reader holds %d bytes, %d unparsed", r.Size(), r.Buffered())
	}
}

// stream returns a pipeline of n commands of various sizes, and the expected
// commands.
func stream(rnd *rand.Rand, n int) (in string, want []string) {
	b := new(strings.Builder)
	add := func(args ...string) {
		b.WriteString(bulks(args...))
		want = append(want, formatted(args...))
	}
	text := func(most int) string {
		s := make([]byte, rnd.IntN(most+1))
		for i := range s {
			s[i] = "ab \r\n$*\x00\xff"[rnd.IntN(9)]
		}
		return string(s)
	}
	for range n {
		switch rnd.IntN(12) {
		case 0:
			b.WriteString("PING 'in line' \"\\x41\" c\r\n")
			want = append(want, formatted("PING", "in line", "A", "c"))
		case 1:
			b.WriteString("*0\r\n\r\n")
		case 2:
			add("SET", "key", text(20_000))
		case 3:
			add("MSET", "k1", text(100_000), "k2", text(100), "k3", text(12_000), "k4")
		case 4:
			args := make([]string, rnd.IntN(20_000))
			for i := range args {
				args[i] = strconv.Itoa(i)
			}
			add(append(args, "end")...)
		case 5:
			args := make([]string, rnd.IntN(20))
			for i := range args {
				args[i] = text(9_000)
			}
			add(append(args, "end")...)
		default:
			add("ZADD", text(20), "1", text(10))
		}
	}
	return b.String(), want
}

func TestReaderSplits(t *testing.T) {
	in := bulks("ZADD", "key", "1.5", "member") + "PING \"a\\x41\" b\r\n*0\r\n" + bulks("") +
		bulks("GET", strings.Repeat("x", 300)) + "*1\r\n$x\r\n"
	want := feed(t, new(Reader), in)
	if len(want) != 5 {
		t.Fatal(want)
	}
	for i := range len(in) {
		for j := i; j < len(in); j += 7 {
			if got := feed(t, new(Reader), in, i, j-i, len(in)); !slices.Equal(got, want) {
				t.Fatalf("cut at %d and %d: %q", i, j, got)
			}
		}
	}
}

func TestReaderRandomSplits(t *testing.T) {
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		in, want := stream(rnd, 60)
		for _, most := range []int{7, 1000, 20_000, len(in)} {
			sizes := make([]int, 1+2*len(in)/most)
			for i := range sizes {
				sizes[i] = 1 + rnd.IntN(most)
			}
			r := new(Reader)
			if got := feed(t, r, in, sizes...); !slices.Equal(got, want) {
				t.Fatalf("seed %d, pieces of up to %d bytes: wrong commands", seed, most)
			}
			if r.Buffered() != 0 {
				t.Fatalf("seed %d: %d bytes left over", seed, r.Buffered())
			}
			r.Space()
			if r.Size() > bufferSize+maxIdleArgs*40 {
				t.Fatalf("seed %d: an idle reader holds %d bytes", seed, r.Size())
			}
		}
	}
}

// TestReaderBatch parses many commands without a call of Space in between; all stay
// valid.
func TestReaderBatch(t *testing.T) {
	r := new(Reader)
	r.Filled(copy(r.Space(), strings.Repeat(bulks("A", "bb")+"c 'd e'\n", 50)))
	arena := make([][]byte, 0, 8)
	var ends []int
	for {
		args, ok, err := r.Next(arena)
		if err != nil {
			t.Fatal(err)
		}
		if arena = args; !ok {
			break
		}
		ends = append(ends, len(arena))
	}
	if len(ends) != 100 || ends[99] != 200 {
		t.Fatal(ends)
	}
	for i := 0; i < 200; i += 4 {
		if got := fmt.Sprintf("%q", arena[i:i+4]); got != `["A" "bb" "c" "d e"]` {
			t.Fatal(i, got)
		}
		if cap(arena[i]) != 1 {
			t.Fatal("an append to an argument would overwrite the next one")
		}
	}
}

// TestReaderBackPressure stops the calls of Next early; no command is lost.
func TestReaderBackPressure(t *testing.T) {
	r := new(Reader)
	in := strings.Repeat(ping, 20_000)
	sent, got := 0, 0
	for got < 20_000 {
		n := copy(r.Space(), in[sent:])
		r.Filled(n)
		sent += n
		if want := sent - got*len(ping); r.Buffered() != want {
			t.Fatalf("%d bytes buffered, want %d", r.Buffered(), want)
		}
		for range 64 {
			args, ok, err := r.Next(nil)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if len(args) != 1 || string(args[0]) != "PING" {
				t.Fatalf("%q", args)
			}
			got++
		}
	}
}

func TestReaderBigBulk(t *testing.T) {
	const size = 64 << 20
	value := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	r := new(Reader)
	head := fmt.Sprintf("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$%d\r\n", size)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r.Filled(copy(r.Space(), head))
	in := value
	for len(in) > 0 {
		if _, ok, err := r.Next(nil); ok || err != nil {
			t.Fatal(ok, err)
		}
		got := size - len(in)
		n := copy(r.Space(), in)
		if r.Size() > 100<<10+4*got {
			t.Fatalf("%d bytes arrived, %d held", got, r.Size())
		}
		r.Filled(n)
		in = in[n:]
	}
	tail := r.Space()
	if len(tail) != 2 {
		t.Fatalf("Space offers %d bytes after the value", len(tail))
	}
	r.Filled(copy(tail, "\r\n"))
	args, ok, err := r.Next(nil)
	runtime.ReadMemStats(&after)
	if !ok || err != nil || len(args) != 3 || string(args[1]) != "key" || !bytes.Equal(args[2], value) {
		t.Fatal("a different command")
	}
	if got := float64(after.TotalAlloc-before.TotalAlloc) / size; got > 1.4 {
		t.Errorf("allocated %.2f times the value", got)
	}
	if r.Space(); r.Size() > 2*bufferSize {
		t.Errorf("holds %d bytes when idle", r.Size())
	}
}

func TestReaderUnsentBulk(t *testing.T) {
	r := new(Reader)
	feed(t, r, "*1000000\r\n$536870912\r\nabc")
	r.Space()
	if r.Size() > 100<<10 {
		t.Errorf("%d bytes for an announced bulk", r.Size())
	}
}

// TestReaderLinear checks that time is linear in the number of bytes for any
// boundaries of reads: quadratic time would take hours.
func TestReaderLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	for name, in := range map[string]string{
		"many arguments": "*1000000\r\n" + strings.Repeat("$0\r\n\r\n", 1_000_000),
		"long lines":     strings.Repeat(strings.Repeat("x", 60_000)+"\n", 50),
		"blank lines":    strings.Repeat("\n", 4_000_000),
		"one bulk":       "*1\r\n$4000000\r\n" + strings.Repeat("x", 4_000_002),
	} {
		start := time.Now()
		r := new(Reader)
		var most int
		for i := range len(in) {
			r.Space()[0] = in[i]
			r.Filled(1)
			if _, _, err := r.Next(nil); err != nil {
				t.Fatal(err)
			}
			most = max(most, r.Size())
		}
		if r.Buffered() != 0 || r.remaining != 0 {
			t.Fatalf("%s: the input was not consumed", name)
		}
		per := time.Since(start) / time.Duration(len(in))
		t.Logf("%s: %v a byte, %d KB held at most", name, per, most>>10)
	}
}

func TestReaderAllocations(t *testing.T) {
	in := []byte(strings.Repeat(bulks("ZADD", "key", "1.5", "member"), 15) + "PING \"quoted \\x41\" 'b'\r\n")
	r := new(Reader)
	arena := make([][]byte, 0, 64)
	got := testing.AllocsPerRun(100, func() {
		for _, part := range [][]byte{in[:100], in[100:]} { // the boundary is within a command
			r.Filled(copy(r.Space(), part))
			arena = arena[:0]
			for ok := true; ok; {
				arena, ok, _ = r.Next(arena)
			}
		}
	})
	if got != 0 {
		t.Errorf("%v allocations for 16 commands", got)
	}
}

func TestReaderFilledPanics(t *testing.T) {
	for _, in := range []string{"", "*1\r\n$100000\r\n"} {
		func() {
			r := new(Reader)
			feed(t, r, in)
			n := len(r.Space())
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			r.Filled(n + 1)
		}()
	}
}

func TestSplitArgsKeepsDst(t *testing.T) {
	dst := [][]byte{[]byte("a")}
	if got, ok := SplitArgs(dst, []byte(`b "c`)); ok || len(got) != 1 {
		t.Errorf("%q %v", got, ok)
	}
	if got, ok := SplitArgs(dst, []byte(`b "c\td" `)); !ok || fmt.Sprintf("%q", got) != `["a" "b" "c\td"]` {
		t.Errorf("%q %v", got, ok)
	}
}

func BenchmarkReader(b *testing.B) {
	for _, c := range []struct {
		name string
		in   string
	}{
		{"PING", ping},
		{"ZADD", bulks("ZADD", "key:000000001", "1234.5", "member:000000001")},
		{"PINGx16", strings.Repeat(ping, 16)},
		{"ZADDx16", strings.Repeat(bulks("ZADD", "key:000000001", "1234.5", "member:000000001"), 16)},
		{"inline", "ZADD key:000000001 1234.5 member:000000001\r\n"},
		{"ZADD1000", bulks(append([]string{"ZADD", "key"},
			slices.Repeat([]string{"1234.5", "member:000000001"}, 1000)...)...)},
		{"SET4K", bulks("SET", "key", strings.Repeat("x", 4<<10))},
		{"SET20K", bulks("SET", "key", strings.Repeat("x", 20<<10))},
		{"SET1M", bulks("SET", "key", strings.Repeat("x", 1<<20))},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := new(Reader)
			arena := make([][]byte, 0, 64)
			b.SetBytes(int64(len(c.in)))
			b.ReportAllocs()
			commands := 0
			for b.Loop() {
				for in := c.in; len(in) > 0; {
					n := copy(r.Space(), in)
					r.Filled(n)
					in = in[n:]
					clear(arena)
					arena = arena[:0]
					for ok := true; ok; {
						if arena, ok, _ = r.Next(arena); ok {
							commands++
						}
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(commands), "ns/command")
		})
	}
}

// TestReaderRelease lets many readers share a few buffers. They find the same
// commands, and no idle reader keeps a buffer.
func TestReaderRelease(t *testing.T) {
	const readers = 5
	rnd := rand.New(rand.NewPCG(7, 7))
	var (
		all    [readers]Reader
		in     [readers]string
		want   [readers][]string
		got    [readers][]string
		spares [][]byte
	)
	for i := range all {
		in[i], want[i] = stream(rnd, 60)
	}
	for left := readers; left > 0; {
		i := rnd.IntN(readers)
		if in[i] == "" {
			continue
		}
		r := &all[i]
		if last := len(spares) - 1; last >= 0 && r.Adopt(spares[last]) {
			for j := range spares[last] {
				spares[last][j] = '!' // the old content must not matter
			}
			spares = spares[:last]
		}
		n := min(1+rnd.IntN(3000), len(in[i]))
		got[i] = append(got[i], feed(t, r, in[i][:n])...)
		if in[i] = in[i][n:]; in[i] == "" {
			left--
		}
		partial := r.Partial()
		if b := r.Release(); b != nil {
			if partial {
				t.Fatal("Release returned a buffer with an incomplete command")
			}
			spares = append(spares, b)
		}
		if !partial && (r.buf != nil || r.Buffered() != 0) {
			t.Fatal("Release returned no buffer of an idle reader")
		}
	}
	for i := range all {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("reader %d found wrong commands", i)
		}
	}
	if len(spares) > readers {
		t.Errorf("%d buffers for %d readers", len(spares), readers)
	}
	bad := new(Reader)
	feed(t, bad, "*x\r\n")
	if bad.Release() != nil {
		t.Error("Release returned the buffer of a failed reader")
	}
}

// TestSpaceAfterLargeArgument continues to read without calls of Next, as a
// transport under backpressure does. Space must always offer room, even after a
// complete large argument.
func TestSpaceAfterLargeArgument(t *testing.T) {
	for _, size := range []int{minLarge, 3 * minLarge, 200 << 10} {
		large := strings.Repeat("x", size)
		for _, end := range []string{"", "$1\r\nz\r\n"} { // the large argument is the last one, or not
			n := 2 + len(end)/7
			input := fmt.Sprintf("*1\r\n$4\r\nPING\r\n*%d\r\n$3\r\nSET\r\n$%d\r\n%s\r\n%s*1\r\n$3\r\nGET\r\n", n, size, large, end)
			var r Reader
			for sent := 0; sent < len(input); {
				space := r.Space()
				if len(space) == 0 {
					t.Fatalf("Space is empty after %d of %d bytes", sent, len(input))
				}
				if sent == 0 {
					space = space[:40] // within the large argument
				}
				n := copy(space, input[sent:])
				r.Filled(n)
				if sent += n; sent == n {
					if args, ok, err := r.Next(nil); !ok || err != nil || string(args[0]) != "PING" {
						t.Fatalf("%q, %v, %v", args, ok, err)
					}
					if _, ok, err := r.Next(nil); ok || err != nil {
						t.Fatal(ok, err)
					}
				}
			}
			if !r.Partial() || r.Release() != nil {
				t.Error("Partial is false within a command")
			}
			args, ok, err := r.Next(nil)
			if !ok || err != nil || len(args) != n || string(args[1]) != large {
				t.Fatalf("%d arguments, %v, %v", len(args), ok, err)
			}
			if args, ok, err := r.Next(nil); !ok || err != nil || len(args) != 1 || string(args[0]) != "GET" {
				t.Fatalf("%q, %v, %v", args, ok, err)
			}
			if r.Partial() {
				t.Error("Partial is true after the last command")
			}
		}
	}
}
