package differential

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

var (
	differentialN     = flag.Int("differential.n", 10_000, "four times the `number` of random programs")
	differentialSeed  = flag.Uint64("differential.seed", 1, "`seed` of the random programs; 0: another each time")
	differentialJudge = flag.String("differential.judge", "", "`server` to compare with: 8.6, which ZSETD_JUDGE_REDIS8 names, or valkey, which ZSETD_JUDGE_VALKEY9 names; without it, 8.6")
	scriptsN          = flag.Int("scripts.n", 300, "`number` of rounds of random values that the libraries of Lua are compared with")
)

const maxReports = 40

// opponent returns what programs are compared with.
func opponent() string { return judge.Opponent(*differentialJudge) }

// luaFuzzer draws inputs for the libraries of scripts.
type luaFuzzer struct{ *rand.Rand }

func pick[T any](r luaFuzzer, list ...T) T { return list[r.IntN(len(list))] }

func (r luaFuzzer) number() float64 {
	switch r.IntN(10) {
	case 0, 1, 2:
		return float64(r.IntN(600) - 300)
	case 3, 4:
		return pick(r, 0, 1, -1, 127, 128, 255, 256, -128, -129, 32767, 32768, 65535, 65536, 1<<31, 1<<31-1, -1<<31, 1<<32, 1<<32-1,
			1<<53, 1<<53+2, 1<<63, -1<<63, 1<<64, 1e14, 1e15, 1e16)
	case 5, 6:
		return (r.Float64() - 0.5) * 2000
	case 7, 8:
		return (r.Float64() - 0.5) * math.Pow(10, float64(r.IntN(45)-20))
	}
	return pick(r, 0.5, 1.5, 2.5, -0.5, -1.5, 1e308, 5e-324, 1.0/3)
}

func (r luaFuzzer) literal() string { return fmt.Sprintf("(%.17g)", r.number()) }

// text is a string in Lua of at most n bytes.
func (r luaFuzzer) text(n int) string {
	var b strings.Builder
	b.WriteByte('"')
	for range r.IntN(n + 1) {
		fmt.Fprintf(&b, "\\%03d", pick(r, 0, 1, 9, 10, 13, 31, 34, 47, 92, 65, 97, 127, 128, 200, 255, r.IntN(256)))
	}
	return b.String() + `"`
}

// value is a value in Lua.
func (r luaFuzzer) value(depth int, null string) string {
	switch n := r.IntN(10); {
	case n < 3:
		return r.literal()
	case n < 6:
		return r.text(8)
	case n < 7 || depth == 0:
		return pick(r, "true", "false", null)
	case n < 9:
		list := make([]string, r.IntN(5))
		for i := range list {
			list[i] = r.value(depth-1, null)
		}
		return "{" + strings.Join(list, ",") + "}"
	}
	return "{[" + r.text(4) + "]=" + r.value(depth-1, null) + pick(r, "", ",["+r.text(4)+"]="+r.value(depth-1, null)) + "}"
}

func (r luaFuzzer) join(n int, parts ...string) string {
	var b strings.Builder
	for range 1 + r.IntN(n) {
		b.WriteString(pick(r, parts...))
	}
	return b.String()
}

func (r luaFuzzer) layout() (format, args string) {
	format = pick(r, "<", ">", "!", " ") + pick(r, "", "!4", "!8", "!2")
	var list []string
	for range 1 + r.IntN(4) {
		option := pick(r, "b", "B", "h", "H", "i", "I", "l", "L", "i3", "I5", "f", "d", "x", "i8", "I1", "T")
		format += option
		if option != "x" {
			list = append(list, r.literal())
		}
	}
	return format, strings.Join(append(list, "0"), ",")
}

// scripts returns one of each kind: a source and an argument.
func (r luaFuzzer) scripts() [][2]string {
	layout, args := r.layout()
	found := func(f string) string {
		return "local r={pcall(string." + f + ")} for i=1,#r do r[i]=tostring(r[i]) end return r"
	}
	pattern := r.join(6, "a", "b", ".", "%a", "%d", "[ab]", "[^a]", "(", ")", "()", "*", "+", "-", "?", "%1", "%b()", "%f[%a]", "$", "^", "%")
	json := r.join(6, "{", "}", "[", "]", ",", ":", `"a"`, `"b"`, "1", "-1", "1.5", "true", "null", "nul", "01", "0x1F", "1e5", "+1",
		"inf", "nan", "-inf", `"\u0041\n"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\q"`, `"`, "[1,2]", `{"a":1}`, " ")
	number := r.join(6, "0", "1", "2", "7", "8", "9", "a", "b", "c", "x", "X", "E", "e", "+", "-", ".", " ", "p")
	packed := r.join(10, "\x90", "\x91", "\x80", "\x81", "\xc0", "\xc3", "\xa1", "\xd9", "\xcc", "\xcd", "\xca", "\xcb", "\x01", "\x02", "A",
		string([]byte{byte(r.IntN(256))}))
	return [][2]string{
		{"return tostring(" + r.literal() + ")"},
		{"return {string.format('%" + pick(r, "", "5", "-8", "+", "08", ".3", "10.2", "#", " ", ".0", "+.10") +
			pick(r, "d", "i", "e", "E", "f", "g", "G", "x", "X", "o", "u") + "', " + r.literal() + ")}"},
		{"return " + r.literal() + " .. '|' .. " + r.literal()},
		{"local a,b=" + r.literal() + "," + r.literal() + " return {tostring(a%b), tostring(a+b), tostring(a-b), tostring(a*b), tostring(a/b), string.format('%.12g', a^2)}"},
		{"return cjson.encode(" + r.value(3, "cjson.null") + ")"},
		{"return cjson.encode(cjson.decode(cjson.encode(" + r.value(3, "cjson.null") + ")))"},
		{"return cmsgpack.pack(" + r.value(3, "nil") + ")"},
		{"return cmsgpack.pack(cmsgpack.unpack(cmsgpack.pack(" + r.value(3, "false") + ")))"},
		{"return tostring(bit." + pick(r, "band", "bor", "bxor", "lshift", "rshift", "arshift", "rol", "ror", "tohex") +
			"(" + r.literal() + "," + r.literal() + "))"},
		{"return tostring(bit." + pick(r, "tobit", "bnot", "bswap", "tohex") + "(" + r.literal() + "))"},
		{"local p=struct.pack('" + layout + "'," + args + ") local r={p, struct.size('" + layout + "'), struct.unpack('" + layout +
			"',p)} for i=2,#r do r[i]=tostring(r[i]) end return r"},
		{"local function f(ok,...) if not ok then return (...) end return cmsgpack.pack(...) end return f(pcall(cmsgpack.unpack,ARGV[1]))", packed},
		{"local ok,r=pcall(cjson.decode,ARGV[1]) if not ok then return r end local ok,e=pcall(cjson.encode,r) return e", json},
		{found("find,'" + r.join(8, "a", "a", "b", "(", ")", "1", " ") + "',ARGV[1]"), pattern},
		{found("gsub,'" + r.join(8, "a", "a", "b", "(", ")", "1", " ") + "',ARGV[1],'<%0>'"), pattern},
		{"return tostring(tonumber(ARGV[1]))", number},
		{fmt.Sprintf("return tostring(tonumber(ARGV[1],%d))", pick(r, 2, 8, 10, 16, 36)), number},
	}
}

// luaPeers returns a redis-server and a zsetd server that are to reply the same to
// scripts, and what draws them.
func luaPeers(t *testing.T) (real, ours *judge.Peer, seed uint64, r luaFuzzer) {
	dial := judge.StartOpponent(t, opponent())
	seed = *differentialSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	return judge.NewPeer(dial(), dial()), judge.Own(t, server.Options{Config: map[string]string{"dialect": judge.Dialect(opponent())}}), seed, luaFuzzer{rand.New(rand.NewPCG(seed, 5))}
}

// TestLibrariesOfLua compares the libraries of scripts with those of Redis: conversion of
// numbers, cjson, cmsgpack, struct, bit, patterns, string.format.
func TestLibrariesOfLua(t *testing.T) {
	rerun.Skip(t)
	real, ours, seed, r := luaPeers(t)
	address := regexp.MustCompile(`(table|function): 0x[0-9a-f]+`)
	reports := 0
	for range *scriptsN {
		for _, s := range r.scripts() {
			want, got := real.Do("EVAL", s[0], "0", s[1]), ours.Do("EVAL", s[0], "0", s[1])
			if want = address.ReplaceAllString(want, "$1"); want == address.ReplaceAllString(got, "$1") {
				continue
			}
			t.Errorf("seed %d: %s\nwith %q\nwant %q\ngot  %q", seed, s[0], s[1], want, got)
			if reports++; reports == maxReports {
				return
			}
		}
	}
}

// luaWritten replaces what is different in replies of scripts by nature, addresses, and the words
// of Redis 7.0 for a wrong level of redis.log.
func luaWritten() func(string) string {
	address := regexp.MustCompile(`(table|function|thread|userdata): 0x[0-9a-f]+`)
	length := regexp.MustCompile(`^\$\d+\r\n`)
	return func(reply string) string {
		reply = strings.ReplaceAll(reply, "ERR Invalid debug level.", "ERR Invalid log level.")
		return length.ReplaceAllString(address.ReplaceAllString(reply, "$1"), "$$\r\n")
	}
}

// TestDifferentialPrograms compares what random programs of Lua reply, with the messages
// and lines of their errors: assignments, closures, loops, coroutines, metatables, and
// sources with errors in them. There is one program for four commands of
// -differential.n.
func TestDifferentialPrograms(t *testing.T) {
	rerun.Skip(t)
	real, ours, seed, r := luaPeers(t)
	written := luaWritten()
	programs := *differentialN / 4
	t.Logf("%d programs; repeat with -differential.seed %d", programs, seed)
	const batch = 50
	reports := 0
	for done := 0; done < programs; done += batch {
		lines := [][]string{{"SCRIPT", "FLUSH"}}
		for range batch {
			if r.IntN(3) > 0 {
				lines = append(lines, []string{"EVAL", r.program(), "0"})
			} else {
				lines = append(lines, []string{"EVAL", "return select(2, loadstring(ARGV[1], '@user_script')) or 'compiled'", "0", r.mutant()})
			}
		}
		want, err := real.Pipeline(lines)
		if err != nil {
			t.Fatalf("seed %d: redis-server: %v", seed, err)
		}
		got, err := ours.Pipeline(lines)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		differ := func(argv []string) (w, g string, differ bool) {
			w, g = written(real.Do(argv...)), judge.InWordsOf(opponent(), written(ours.Do(argv...)))
			return w, g, w != g
		}
		for i, argv := range lines {
			if written(want[i]) == judge.InWordsOf(opponent(), written(got[i])) {
				continue
			}
			if _, _, ok := differ(argv); ok {
				argv = shrunk(argv, differ)
				w, g, _ := differ(argv)
				t.Errorf("seed %d: %q\nwant %q\ngot  %q", seed, argv, w, g)
			} else {
				t.Errorf("seed %d: %q\nwant %q\ngot  %q, and then the same", seed, argv, want[i], got[i])
			}
			if reports++; reports == maxReports {
				return
			}
		}
	}
}

// shrunk returns a program with fewer words, in the last element of argv or the second
// one, for which two servers still differ after it has been compiled.
func shrunk(argv []string, differ func([]string) (want, got string, differ bool)) []string {
	at := 1
	if len(argv) > 3 {
		at = 3
	}
	space := regexp.MustCompile(`\S+\s*`)
	words := space.FindAllString(argv[at], -1)
	for n := len(words) / 2; n > 0; n /= 2 {
		for i := 0; i+n <= len(words); {
			fewer := slices.Concat(words[:i], words[i+n:])
			try := slices.Clone(argv)
			try[at] = strings.Join(fewer, "")
			if w, g, ok := differ(try); ok && !strings.Contains(w, "rror compiling") && !strings.Contains(g, "rror compiling") {
				words, argv = fewer, try
			} else {
				i += n
			}
		}
	}
	return argv
}
