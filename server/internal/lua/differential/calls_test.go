package differential

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

var librariesN = flag.Int("libraries.n", 2000, "`number` of random calls that each library of scripts is compared with")

// prelude defines show, which returns all of its arguments as a text, and call, which
// shows what a function returns or raises.
const prelude = `
local function text(v)
	if type(v) == 'string' then return string.format('%q', v) end
	if type(v) == 'number' then
		if v == 0 then return '0' end
		if v ~= v then return 'nan' end
		return string.format('%.17g', v)
	end
	if type(v) == 'function' or type(v) == 'thread' then return type(v) end
	if type(v) ~= 'table' then return tostring(v) end
	local keys, parts = {}, {}
	for k in pairs(v) do keys[#keys + 1] = k end
	table.sort(keys, function(a, b)
		if type(a) ~= type(b) then return type(a) < type(b) end
		if type(a) == 'boolean' then return tostring(a) < tostring(b) end
		return a < b
	end)
	for i, k in ipairs(keys) do parts[i] = text(k) .. '=' .. text(v[k]) end
	return '{' .. table.concat(parts, ' ') .. '}'
end
local function show(...)
	local parts = {}
	for i = 1, select('#', ...) do parts[i] = text((select(i, ...))) end
	return table.concat(parts, ', ')
end
local function call(...) return show(pcall(...)) end
local function number(s) return tonumber(s) or s end
`

// libraryScripts draw scripts and their arguments.
var libraryScripts = map[string]func(r luaFuzzer) (source string, args []string){
	"struct":       luaFuzzer.structScript,
	"cjson.decode": luaFuzzer.decodeScript,
	"cjson.encode": luaFuzzer.encodeScript,
	"patterns":     luaFuzzer.patternScript,
	"string":       luaFuzzer.stringScript,
	"table":        luaFuzzer.tableScript,
	"base":         luaFuzzer.baseScript,
	"bit":          luaFuzzer.bitScript,
}

// TestScriptLibraries compares the libraries of scripts with Redis's, in random calls:
// results and errors.
func TestScriptLibraries(t *testing.T) {
	rerun.Skip(t)
	dial := judge.Start(t)
	real := judge.NewPeer(dial(), dial())
	ours := judge.Own(t, server.Options{})
	// Not the length of the reply either, nor what Redis 7.0 lacks.
	address := regexp.MustCompile(`^\$[0-9]+|"decode_array_with_array_mt"=function |(table|function|thread): 0x[0-9a-f]+`)
	for library, script := range libraryScripts {
		t.Run(library, func(t *testing.T) {
			seed := *differentialSeed
			if seed == 0 {
				seed = rand.Uint64()
			}
			r := luaFuzzer{rand.New(rand.NewPCG(seed, 9))}
			reports := 0
			for sent := 0; sent < *librariesN; {
				var lines [][]string
				for ; len(lines) < 100 && sent < *librariesN; sent++ {
					source, args := script(r)
					lines = append(lines, append([]string{"EVAL", prelude + source, "0"}, args...))
				}
				want, err := real.Pipeline(lines)
				if err != nil {
					t.Fatalf("redis: %.2000v", err)
				}
				got, err := ours.Pipeline(lines)
				if err != nil {
					t.Fatalf("zsetd: %.2000v", err)
				}
				for i, line := range lines {
					if address.ReplaceAllString(got[i], "$1") == address.ReplaceAllString(want[i], "$1") {
						continue
					}
					t.Errorf("seed %d: %s\nwith %q\nredis: %.1000q\nzsetd: %.1000q", seed, strings.TrimPrefix(line[1], prelude), line[3:], want[i], got[i])
					if reports++; reports == maxReports {
						return
					}
				}
			}
		})
	}
}

// bytes returns up to n random bytes, of few kinds.
func (r luaFuzzer) bytes(n int) string {
	b := make([]byte, r.IntN(n+1))
	for i := range b {
		b[i] = pick(r, 0, 1, 2, 'a', 127, 128, 255, byte(r.IntN(256)))
	}
	return string(b)
}

func (r luaFuzzer) structScript() (source string, args []string) {
	var format strings.Builder
	for range r.IntN(7) {
		format.WriteString(pick(r, "<", ">", "!", "!4", "!8", "!1", "!2", "!16", "!3", "!0", " ", "b", "B", "h", "H", "i", "I", "l", "L", "T", "f", "d", "x",
			"s", "c", "c0", "c1", "c3", "c12", "Bc0", "bc0", "i1", "i2", "i3", "I5", "i8", "I8", "i9", "i12", "i16", "I32", "i33", "i0", "I99999999999", "c2147483648",
			"q", "\x00", "_", "9", "%", "X"))
	}
	value := func() string {
		switch r.IntN(4) {
		case 0:
			return r.bytes(20)
		case 1:
			return fmt.Sprint(r.IntN(6))
		}
		return fmt.Sprintf("%.17g", r.number())
	}
	switch r.IntN(4) {
	case 0:
		return "return call(struct.size, ARGV[1])", []string{format.String()}
	case 1:
		return "return call(struct.unpack, ARGV[1], ARGV[2], tonumber(ARGV[3]))",
			[]string{format.String(), r.bytes(40), pick(r, "", "", "1", "2", "5", "41", "0", "-1", "1e18")}
	case 2:
		args = []string{format.String()}
		for range r.IntN(8) {
			args = append(args, value())
		}
		return "local list = {} for i = 2, #ARGV do list[i - 1] = number(ARGV[i]) end return call(struct.pack, ARGV[1], unpack(list))", args
	}
	args = []string{format.String()}
	for range 7 {
		args = append(args, value())
	}
	return `
local list = {} for i = 2, #ARGV do list[i - 1] = number(ARGV[i]) end
local ok, packed = pcall(struct.pack, ARGV[1], unpack(list))
return show(ok, packed) .. call(struct.unpack, ARGV[1], packed)`, args
}

// json draws a text that is valid.
func (r luaFuzzer) json(depth int) string {
	space := func() string { return pick(r, "", "", "", "", " ", "\t", "\r\n ") }
	text := func() string {
		return `"` + r.join(4, "", "a", "key", "k1", `\"`, `\\`, `\/`, `\b\f\n\r\t`, `\u0041`, `\u00e9`, `\u20AC`, `\ud83d\ude00`, `\u0000`, "\xc3\xa9", "\x7f", "/", "\x01") + `"`
	}
	var inner string
	switch n := r.IntN(12); {
	case n < 3:
		inner = pick(r, "0", "-0", "1", "-1", "12", "0.5", "-1.25e3", "1E+2", "1e-7", "123456789012345678901234567890", "9007199254740993", "1e400", "0.1",
			"999999999999999", "1234567890123456", fmt.Sprintf("%.17g", r.number()))
	case n < 6:
		inner = text()
	case n < 7 || depth == 0:
		inner = pick(r, "true", "false", "null")
	case n < 9:
		list := make([]string, r.IntN(5))
		for i := range list {
			list[i] = r.json(depth - 1)
		}
		inner = "[" + space() + strings.Join(list, ",") + "]"
	default:
		list := make([]string, r.IntN(4))
		for i := range list {
			list[i] = space() + text() + space() + ":" + r.json(depth-1)
		}
		inner = "{" + strings.Join(list, ",") + space() + "}"
	}
	return space() + inner + space()
}

// mutated changes a text in some places.
func (r luaFuzzer) mutated(s string, parts ...string) string {
	for range r.IntN(4) {
		i := r.IntN(len(s) + 1)
		j := min(len(s), i+r.IntN(3))
		s = s[:i] + pick(r, parts...) + s[j:]
	}
	return s
}

func (r luaFuzzer) decodeScript() (source string, args []string) {
	text := r.json(4)
	if r.IntN(3) > 0 {
		text = r.mutated(text, "", "", "{", "}", "[", "]", ",", ":", `"`, "\\", `\u`, `\u12g4`, `\ud800`, `\udc00`, `\ud800\u0041`, `\q`, "0", "-", "+", ".", "e", "x", "0x1p3", "01",
			"1.", ".5", "1e", "--1", "inf", "-Infinity", "nan", "NaN", "nan(1)", "+nan", "infinit", "true", "nul", "False", "tru", "null", "\x00", "\n", "\v", "/*", "'",
			"\xff", " ", "1_0", "0x", "0xg", "-0x.8", "0b1", "1p3", "\t")
	}
	return pick(r, "return call(cjson.decode, ARGV[1])",
		"local c = cjson.new() c.decode_invalid_numbers(false) return call(c.decode, ARGV[1])",
		"local c = cjson.new() return show(c.decode_max_depth(2)) .. call(c.decode, ARGV[1])"), []string{text}
}

func (r luaFuzzer) encodeScript() (source string, args []string) {
	if r.IntN(8) == 0 {
		setting := pick(r, "encode_sparse_array", "encode_max_depth", "decode_max_depth", "encode_number_precision", "encode_keep_buffer", "decode_invalid_numbers",
			"encode_invalid_numbers", "encode", "decode", "new")
		list := make([]string, r.IntN(5))
		for i := range list {
			list[i] = pick(r, "nil", "true", "false", "'on'", "'off'", "'null'", "'x'", "0", "1", "14", "15", "-1", "2.7", "'3'", "1e10", "{}", "function() end")
		}
		// The module is its own state, so nothing remains of it.
		return "local c = cjson.new() return call(c." + setting + strings.Join(append([]string{""}, list...), ", ") + ")", nil
	}
	value := r.value(4, "cjson.null")
	switch r.IntN(4) {
	case 0:
		value = fmt.Sprintf("{[%s]=%s}", pick(r, "1", "2", "11", "21", "0", "-1", "1.5", "2^31", "2^53", "1e300", "true", "'x'", "1/0", "''"), value)
	case 1:
		value = fmt.Sprintf("{%s, %s, [%d]=%s}", value, value, r.IntN(40), value)
	case 2:
		value = pick(r, "function() end", "{cjson.null, nil, 1}", "{{{}}}", "0/0", "-1/0", "1/0", "nil", "print or 1", "{[{}]=1}", "coroutine.create(function() end)",
			"{1, 2, nil, 4}", "{nil, nil, 3}", "string.rep('\\\\', 50)", "setmetatable({1}, {__index = {2, 3}})", value)
	}
	config := pick(r, "", "", "c.encode_sparse_array(true) ", "c.encode_sparse_array(true, 1, 3) ", "c.encode_sparse_array(false, 0) ", "c.encode_max_depth(2) ",
		fmt.Sprintf("c.encode_number_precision(%d) ", 1+r.IntN(14)), "c.encode_invalid_numbers(true) ", "c.encode_invalid_numbers('null') ")
	return "local c = cjson.new() " + config + "return call(c.encode, " + value + ")", nil
}

func (r luaFuzzer) patternScript() (source string, args []string) {
	repeat := func() string { return pick(r, "", "", "", "*", "+", "-", "?") }
	one := func() string {
		return pick(r, "a", "b", "x", " ", ".", ".", "%a", "%d", "%s", "%w", "%W", "%p", "%x", "%l", "%u", "%c", "%z", "%Z", "%%", "%.", "%y", "[ab]", "[^a]", "[a-c%d]",
			"[%w_]", "[]]", "[^]]", "[a-]", "[%a-z]", "[+--]", "[a-%%]", "[^%s]", "%[", "-", "]", "^", "$", "\xff", "\x80", "[\x80-\xff]", "ab", "aab")
	}
	var pattern strings.Builder
	if r.IntN(4) == 0 {
		pattern.WriteString("^")
	}
	for range r.IntN(6) {
		switch r.IntN(14) {
		case 0:
			pattern.WriteString("(" + one() + repeat() + ")")
		case 1:
			pattern.WriteString("(" + one() + repeat() + "(" + one() + repeat() + ")" + one() + ")")
		case 2:
			pattern.WriteString(pick(r, "()", "(", ")", "%1", "%2", "%0", "%b()", "%bab", "%baa", "%b", "%b(", "%f[%a]", "%f[^a]", "%f", "%f[", "[", "[^", "[a", "[%", "%", "[]", "\x00",
				strings.Repeat("(a*)", 33), strings.Repeat("()", 32)))
		default:
			pattern.WriteString(one() + repeat())
		}
	}
	if r.IntN(6) == 0 {
		pattern.WriteString("$")
	}
	p := pattern.String()
	if r.IntN(10) == 0 {
		p = r.mutated(p, "", "%", "[", "]", "(", ")", "-", "*", "^", "$", "a", "\x00")
	}
	subject := r.join(12, "", "a", "a", "b", "ab", "aab", "x", "(", ")", "1", " ", ".", "_", "]", "%", "A", "\xff", "\x80", "\x00", "\n", "-")
	at := pick(r, "nil", "nil", "1", "2", "-3", "0", "100", "-100", "'2'", "2^40", "1.7")
	switch r.IntN(6) {
	case 0, 1:
		source = "return call(string.find, ARGV[1], ARGV[2], " + at + pick(r, "", "", ", false", ", true") + ")"
	case 2:
		source = "return call(string.match, ARGV[1], ARGV[2], " + at + ")"
	case 3:
		source = `return call(function()
	local found, n = {}, 0
	for a, b, c in string.gmatch(ARGV[1], ARGV[2]) do n = n + 1 found[n] = show(a, b, c) if n > 50 then break end end
	return table.concat(found, ';')
end)`
	default:
		by := pick(r, "ARGV[3]", "ARGV[3]", "ARGV[3]", "{a = 'A', [1] = 'one', b = false, ab = 5}", "function(a, b) return b or a end",
			"function(...) return show(...) end", "function() end", "function() return false end", "function() return {} end", "function() return true end",
			"function(a) return #string.gsub(a, 'a', 'b') end", "5", "{a = {}}", "nil", "true")
		source = "return call(string.gsub, ARGV[1], ARGV[2], " + by + pick(r, "", "", ", 1", ", 0", ", -1", ", 2", ", 'x'", ", 2^32 + 1", ", 1.9") + ")"
	}
	return source, []string{subject, p, r.join(4, "", "x", "%0", "%1", "%2", "%9", "%%", "%", "%a", "\x00", "<", ">")}
}

func (r luaFuzzer) stringScript() (source string, args []string) {
	text := r.mutated(r.join(6, "", "a", "Zz", "\x00", "0x1F", "12", "\"\\\r\n", "\xff", " "), "", "q", "\x00")
	position := func() string {
		return pick(r, "nil", "1", "2", "-1", "-2", "0", "5", "100", "-100", "2^31", "-2^31", "2^53", "1/0", "0/0", "1.5", "'3'", "'x'", "{}")
	}
	calls := func(name string, list ...string) string {
		return "return call(string." + name + ", " + strings.Join(list, ", ") + ")"
	}
	switch r.IntN(7) {
	case 0:
		return calls("sub", "ARGV[1]", position(), position()), []string{text}
	case 1:
		return calls("byte", "ARGV[1]", position(), position()), []string{text}
	case 2:
		list := make([]string, r.IntN(4))
		for i := range list {
			list[i] = pick(r, "65", "0", "255", "256", "-1", "1.9", "'66'", "'x'", "2^32", "nil")
		}
		return "return call(" + strings.Join(append([]string{"string.char"}, list...), ", ") + ")", nil
	case 3:
		return calls(pick(r, "upper", "lower", "reverse", "len"), pick(r, "ARGV[1]", "ARGV[1]", "12.5", "nil", "{}")), []string{text}
	case 4:
		return calls("rep", "ARGV[1]", pick(r, "0", "1", "3", "-1", "'2'", "2.9", "nil", "2^32", "2^32 + 2")), []string{text}
	case 5:
		return "local s = ARGV[1] return call(function() return " + pick(r, "s:upper()", "s:sub(2)", "s.x", "s:nosuch()", "s:rep('x')", "#s", "s .. 1", "s + 1", "('x'):rep({})",
			"string.sub()", "s:find()", "s:format({})", "string.gsub(s)", "string.dump(print or 1)") + " end)", []string{text}
	}
	var format strings.Builder
	var list []string
	for range 1 + r.IntN(4) {
		format.WriteString(pick(r, "", "", " ", "x:", "%%", "\x00"))
		format.WriteString("%" + pick(r, "", "", "", "-", "+", " ", "#", "0", "-0", "+ ", "-+ #0", "-+ #0-") + pick(r, "", "", "1", "5", "12", "99", "100") +
			pick(r, "", "", ".", ".0", ".3", ".10", ".99", ".100") + pick(r, "d", "i", "u", "o", "x", "X", "c", "e", "E", "f", "g", "G", "s", "q", "a", "p", "", "%", "\x00"))
		if r.IntN(12) > 0 {
			list = append(list, pick(r, r.literal(), r.literal(), r.text(6), "'12'", "'x'", "nil", "true", "{}", "1/0", "-1/0", "string.rep('long ', 30)"))
		}
	}
	return calls("format", append([]string{"ARGV[1]"}, list...)...), []string{format.String()}
}

// arguments draws arguments in Lua, fewer or more than a function has.
func (r luaFuzzer) arguments(most int, values ...string) string {
	list := make([]string, r.IntN(most+1))
	for i := range list {
		list[i] = pick(r, values...)
	}
	return strings.Join(list, ", ")
}

func (r luaFuzzer) tableScript() (source string, args []string) {
	list := make([]string, r.IntN(12))
	words := r.IntN(2) == 0
	for i := range list {
		if words {
			list[i] = r.text(2)
		} else {
			list[i] = fmt.Sprint(r.IntN(30))
		}
	}
	if r.IntN(15) == 0 && len(list) > 0 { // of several kinds: two elements, as it is not specified which are compared
		list = append(list[:1], pick(r, "'x'", "5", "{}", "true", "print or 1"))
	}
	table := "{" + strings.Join(list, ", ") + "}"
	values := []string{"nil", "1", "2", "3", "0", "-1", "5", "'2'", "'x'", "1.9", "13", "{}", "','", "''", "true"}
	call := ""
	switch r.IntN(9) {
	case 0:
		call = "table.concat(t, " + pick(r, "nil", "''", "', '", "1", "{}") + pick(r, "", ", "+pick(r, values...)+", "+pick(r, values...)) + ")"
	case 1:
		call = "table.insert(t, " + pick(r, "'v'", pick(r, values...)+", 'v'", pick(r, values...)+", nil", "1, 2, 3") + ")"
	case 2:
		call = "table.remove(t, " + pick(r, values...) + ")"
	case 3, 4:
		call = "table.sort(t" + pick(r, "", ", nil", ", function(a, b) return a > b end", ", function(a, b) return tostring(a) < tostring(b) end", ", {}", ", 1",
			", function() error('no') end", ", function() error({}) end") + ")"
	case 5:
		call = "unpack(t, " + pick(r, values...) + ", " + pick(r, values...) + ")"
	case 6:
		call = pick(r, "table.getn(t)", "table.setn(t, 1)", "table.maxn(t)", "#t", "select('#', unpack(t))", "unpack(t)", "table.remove(t)", "table.concat(t)")
	case 7:
		call = "table.foreach" + pick(r, "", "i") + "(t, " + pick(r, "function(k, v) if k == 3 then return v end end", "function(k, v) t[k] = k end", "1", "nil") + ")"
	default:
		call = "table." + pick(r, "concat", "insert", "remove", "sort", "getn", "maxn", "foreach") + "(" + r.arguments(4, append(values, "t")...) + ")"
	}
	return "local t = " + table + " return call(function() return " + call + " end) .. show(t)", nil
}

func (r luaFuzzer) baseScript() (source string, args []string) {
	values := []string{"nil", "true", "false", "0", "1", "-1", "2", "10", "16", "36", "37", "1.5", "'10'", "'0x10'", "'z'", "''", "'x'", "{}", "{1, 2}", "{x = 1}", "ARGV[1]",
		"function(...) return ... end", "function() error('e') end", "setmetatable({}, {__tostring = function() return 'T' end, __metatable = 'M'})", "'#'", "1/0", "2^53", "cjson.null", r.literal()}
	digits := r.join(8, "0", "1", "7", "9", "a", "F", "g", "Z", "z", "x", "X", "-", "+", " ", "\t", ".", "e", "p", "_", "\x00", "inf", "nan", "0x")
	name := pick(r, "tonumber", "tostring", "type", "select", "unpack", "assert", "error", "pcall", "xpcall", "rawequal", "rawget", "rawset", "pairs", "ipairs",
		"getmetatable", "setmetatable", "loadstring", "load", "math.floor", "math.ceil", "math.abs", "math.max", "math.min", "math.fmod", "math.modf", "math.frexp", "math.ldexp",
		"math.sqrt", "math.deg", "collectgarbage")
	chunk := strings.ReplaceAll(digits, "\x00", "") // the lexer is not compared here
	switch {
	case r.IntN(3) == 0:
		return "return call(tonumber, ARGV[1], " + pick(r, "nil", "2", "8", "10", "16", "36", "1", "37", "0", "-16", "'16'", "16.5", "2^32 + 16") + ")", []string{digits}
	case name == "collectgarbage":
		return "return call(collectgarbage, " + pick(r, "'stop'", "'x'", "5", "{}") + ")", nil
	case name == "load":
		return "local parts = {'return ', ARGV[1], nil} local i = 0 return call(function() local f, e = load(function() i = i + 1 return " +
			pick(r, "parts[i]", "parts[i] and 1", "{}", "nil", "error('r')") + " end" + pick(r, "", ", '=name'", ", '@name'", ", 'name'") + ") return e or f() end)", []string{chunk}
	}
	return "return call(" + strings.TrimSuffix(name+", "+r.arguments(4, values...), ", ") + ")", []string{chunk}
}

func (r luaFuzzer) bitScript() (source string, args []string) {
	name := pick(r, "band", "bor", "bxor", "lshift", "rshift", "arshift", "rol", "ror", "tohex", "tohex", "tobit", "bnot", "bswap")
	values := []string{"0", "1", "-1", "8", "-8", "4", "31", "32", "33", "2^31", "2^32", "-2^31", "2^53", "2^52 + 0.5", "0.5", "1.5", "2.5", "-0.5", "'0xff'", "'x'", "nil", "{}", "1/0", "0/0",
		"1e300", r.literal(), r.literal(), r.literal()}
	return "return call(" + strings.TrimSuffix("bit."+name+", "+r.arguments(3, values...), ", ") + ")", nil
}
