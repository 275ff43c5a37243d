package differential

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/judge"
	"github.com/zsetd/zsetd/server/servertest/rerun"
)

// TestDifferentialLimits compares what programs at the limits of Lua reply, and the lines
// and names of errors that random programs seldom reach.
func TestDifferentialLimits(t *testing.T) {
	rerun.Skip(t)
	real, ours, _, _ := luaPeers(t)
	written := luaWritten()
	many := func(n int, format, separator string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = format
			if strings.Contains(format, "%d") {
				list[i] = fmt.Sprintf(format, i)
			}
		}
		return strings.Join(list, separator)
	}
	around := func(n int, before, repeated, middle, after, end string) (list []string) {
		for i := n - 3; i <= n+3; i++ {
			list = append(list, before+strings.Repeat(repeated, i)+middle+strings.Repeat(after, i)+end)
		}
		return list
	}
	var sources []string
	add := func(list ...string) { sources = append(sources, list...) }
	// Nesting.
	add(around(198, "return ", "(", "1", ")", "")...)
	add(around(198, "return ", "{", "1", "}", " ~= nil")...)
	add(around(198, "return ", "- ", "1", "", "")...)
	add(around(198, "return ", "not ", "1", "", "")...)
	add(around(198, "return 'a'", " .. 'a'", "", "", "")...)
	add(around(198, "return 1", " ^ 1", "", "", "")...)
	add(around(198, "", "do ", "", " end", " return 1")...)
	add(around(198, "", "if true then ", "", " end", " return 1")...)
	add(around(198, "", "while true do ", " break ", " break end", " return 1")...)
	add(around(99, "return type(", "function() return ", "1", " end", ")")...)
	add(around(198, "return tostring(", "tostring(", "1", ")", ")")...)
	add(around(198, "local t = {} t[1] = 1 return ", "t[", "1", "]", "")...)
	add(around(197, "local a ", "\n, b", "", "", " = 1 return 1")...)
	add(around(197, "local a a", "\n, a", " = 1", "", " return a")...)
	add(around(197, "local a do do a", ", a", " = 1 end end", "", " return a")...)
	// Local variables, upvalues, registers.
	for _, n := range []int{196, 197, 198, 199, 200, 201, 202} {
		locals := "local " + many(n, "v%d", ",\n")
		add(locals+"\nreturn 1", locals+"\nfor i = 1, 2 do end return 1", locals+"\nfor k, v in pairs({}) do end return 1",
			"local function f(\n"+many(n, "v%d", ",\n")+"\n) return 1 end return f()", locals+"\nlocal function f() end return 1",
			"return (function(...) "+locals+"\n return arg end)() == nil", "local function f() return\n function("+many(n, "v%d", ", ")+") return 1 end end return 2")
	}
	for _, n := range []int{59, 60, 61, 62} {
		add("local "+many(n, "v%d", ",")+"\nlocal function f()\nreturn\n"+many(n, "v%d", ",\n")+"\nend return 1",
			"local "+many(n, "v%d", ",")+"\nlocal function f()\nreturn function()\nreturn\n"+many(n, "v%d", ",\n")+"\nend end return 1")
	}
	for _, n := range []int{40, 48, 49, 50, 51, 52, 100, 200, 243, 244, 245, 246, 247, 248, 249, 250, 251, 252, 300} {
		add("return #{"+many(n, "1", ", ")+"}", "return select('#', "+many(n, "1", ",\n")+")", "local t = {} t.x = {f(\n"+many(n, "'%d'", ", ")+")}",
			"local a = 1 return a, "+many(n, "'%d'", ",\n"), "local a, b = "+many(n, "%d", ", ")+" return {a, b}", "return #{"+many(n, "{}", ";\n")+"}",
			"local f = redis.sha1hex f(\n"+many(n, "g()", ",\n")+")")
	}
	for _, n := range []int{255, 256, 257, 300, 511, 512, 513, 600, 30000} {
		add("local t = {"+many(n, "'%d'", ", ")+"} return #t .. t["+fmt.Sprint(n)+"]", "local t = {"+many(n, "k%d = %[1]d", ", ")+"} return t.k7 + t.k254",
			"local t = {"+many(min(n, 600), "'x%d'", ", ")+"} local s = 'text' t.last = 'l' return t.last .. s:upper() .. (t.nosuch or 'none') .. (t.x1 == nil and 1 or 2)",
			"local t = {"+many(min(n, 600), "'x%d'", ", ")+"} return t.nosuch.x", "local t = {"+many(min(n, 600), "'x%d'", ", ")+"} return t:nosuch()",
			"local t = {"+many(min(n, 600), "'x%d'", ", ")+"} return t.x + 7.25", "local t = {"+many(min(n, 600), "'x%d'", ", ")+"} nosuch = nil")
	}
	// Control structures. A judge takes seconds for some of them.
	const long = 140_000
	body := strings.Repeat("x = 1 ", long)
	add("local x while x do "+body+"\nend\nreturn x", "local x repeat "+body+"\nuntil\nx\nreturn x", "local x for i = 1, 2 do "+body+"\nend\nreturn x",
		"local x for i in pairs({}) do "+body+"\nend\nreturn x", "local x if x then "+body+"\nend\nreturn 7", "local x if x then "+body+"\nelse x = 1\nend\nreturn 7",
		"local x = 1 while true do if x then break end\n"+body+"end")
	add(luaLines()...)
	reports := 0
	for _, source := range sources {
		for _, argv := range [][]string{{"EVAL", source, "0"}, {"EVAL", "local f, e = loadstring(ARGV[1], '@x') return e or 'compiled'", "0", source}} {
			want, got := written(real.Do(argv...)), judge.InWordsOf(opponent(), written(ours.Do(argv...)))
			if want == got {
				continue
			}
			t.Errorf("%.4000q\nwant %.300q\ngot  %.300q", argv[1:], want, got)
			if reports++; reports == maxReports {
				return
			}
		}
	}
}

// luaLines are programs with errors whose lines and names depend on where the value of an
// operand is needed.
func luaLines() []string {
	return []string{
		"local x = none\n.a\n+\n1", "local t = {}\nlocal x = t\n.a\n.b\n+ 1", "return nosuch\n+ 1", "return 1 +\nnosuch\n\n", "local a\nreturn a\n..\n'x'\n..\n'y'",
		"local t\nt\n.x\n=\n1", "local t = {}\nt.x\n.y\n= 1", "local t\nfunction t.f()\n\nend", "local t = {}\nfunction t.a.f()\n\nend", "local t = {}\nfunction t.a:f()\n\nend",
		"function nosuch()\n\nend", "for i = 1,\n'x'\ndo\nend", "for i =\nnil, 2\ndo end", "for i = 1, 2,\n{}\ndo end", "for k in\nnil\ndo\nend", "for k in\nnext, 5\ndo\nend",
		"for k in\nipairs(nil)\ndo\nend", "local f\nf(\n1,\n2\n)", "local f = {}\nf.x(\n1,\n2\n)", "local f = {}\nf\n.x\n:y(\n1)", "local f = {}\nf:y\n(1)", "redis\n.nosuch(\n1)",
		"redis.call('get',\nnosuch,\n1)", "redis.call('get',\nnosuch\n)", "return {\nnosuch\n,\n1}", "return {\n1,\nnosuch\n}", "return {x =\nnosuch\n}", "return {[\nnosuch\n] = 1}",
		"return {a\n}", "return {a\n(1)\n}", "return {x = 1, a\n.b\n}", "return\n-\nnosuch\n", "return\n-\n{}\n", "return #\nnil\n", "return #\n5\n", "return not\nnosuch\n", "local a = 1\nreturn a <\n{}\n",
		"local a = 1\nreturn {}\n<\n{}\n", "return 1\n<\n'x'\n", "local t = setmetatable({}, {__index = function(t, k)\nerror(k) end})\nreturn t\n.x\n", "error('a')", "error('a', 2)",
		"local function f()\nerror('a', 2)\nend\n\nf()", "local function f()\nerror('a', 3)\nend\n\nf()", "local function f()\nreturn error('a', 2)\nend\n\nf()",
		"local function f()\nreturn error('a', 1)\nend\n\nreturn f()", "string.rep()", "('x'):rep({})", "('x'):rep()", "local s = 'x'\ns:rep({})", "string.rep('x',\n{}\n)",
		"return math.floor('x')", "local m = math.floor\nm('x')", "local t = {m = math.floor}\nt.m('x')", "local t = {m = math.floor}\nt:m('x')", "local t = {{math.floor}}\nt[1][1]('x')",
		"return (math.floor)('x')", "return (math.nosuch or math.floor)('x')", "local a = {} local b = a .. 'x'", "local a = {} local b = 'x' .. a", "local a = {} local b = 'x' .. a .. 'y'", "local a = {} local b = 1 .. a.x .. 'y'",
		"local a = {} local b = a % 2", "local a = {} local b = 2 % a", "local a = {} local b = a.x % a.y", "local a = {} local b = 1 * 2 % a", "local a = {} local b = a * 2 % 3 % a", "local a = 7 return {a % 4 % 3, 2 * a % 5 % 3 % a, a % a, -a % 3, a % 2.5}",
		"local a, t = 1, {} return a + t", "local a, t = 1, {} return t + a", "local a, t = 1, {} return t + t.x", "local t = {} return t.x + t", "local t = {} return 1 + t.x", "local t = {} return t[1] + 1", "local t = {} return t['x'] + 1",
		"local t = {} return t[t].x", "local t = {} local k = 'x' return t[k].x", "local a return (function() return a.x end)()", "local a return (function() a.x = 1 end)()", "local a return (function() a() end)()",
		"local a return (a).x", "local a return ((a)).x", "return (redis).x.y", "local a local b = {a and a.x or a.y}", "return nil .. 'x'", "return 'x' + 1", "return {} .. {}", "return nil + 1", "return 1 + nil", "return ('x').y.z",
		"local a, b = 1, 2; a, b = b, a; return {a, b}", "local i, t = 1, {} i, t[i] = i + 1, 20 return {i, t[1], t[2]}", "local i, t = 1, {} t[i], i = 20, i + 1 return {i, t[1], t[2]}",
		"local t = {1, 2} local u = t t[1], t, t[2] = 3, nil, 4 return {u[1], u[2], t == nil}", "local function f(...) local a = 5 local b = ... a = ... return {a, b} end return f(1, 2)", "local a, b = 1, {} a = (function(...) a = ... return a end)(7) return {a, type(b)}",
		"local function f(...) local a, b = 1, setmetatable({}, {__unm = function() return 'm' end}) a = ... return {a, -b} end return f(3)", "local function f(...) return arg.n, ... end return {f(1, nil, 3)}", "local function f(...) return arg end return {f(1, nil, 3)}",
		"local fs = {} for i = 1, 3 do local j = i fs[i] = function() j = j + 1 return i * 10 + j end end return {fs[1](), fs[1](), fs[2](), fs[3]()}",
		"local fs, i = {}, 0 while i < 3 do i = i + 1 local j = i fs[i] = function() j = j + 1 return j end if i == 2 then break end end return {fs[1](), fs[1](), fs[2](), i}",
		"local fs, i = {}, 0 repeat i = i + 1 local j = i fs[i] = function() j = j + 1 return j end until j == 3 return {fs[1](), fs[1](), fs[2](), fs[3]()}",
		"local n, f = 0 repeat local j = n; f = function() return j end n = n + 1 if n > 5 then break end until j == 9 return {n, f()}", "local a = 1 and nil or 2 and 3 return a", "return {1 and 2, nil and 1, false or nil, not 1 == nil, nil == false, 1 == 1 and 'x' or 'y'}",
		"local a, b, c = 1, nil, false return {a and b, b or c, a and c or b, not (a and b), not a == b, (a or b) and c, a ~= b and a or c, (a == 1) == true, a < 2 == true}", "local x = 1 x = x and x + 1 x = x and nil or x return x", "local x = 5 x = x > 3 and x < 9 or nil return tostring(x)",
		"return 2 ^ 3 ^ 2 .. -2 ^ 2 .. 7 % -3 .. -7 % 3 .. 1e15 .. 2 ^ 53 .. 0.1 + 0.2", "return 1 .. 2 == '12' and 'a' < 'b' and not ('a' > 'b')", "return #'abc' + #{1, 2, 3}", "return -'2' + '0x10' * ' 3 '", "return 'a' --[[c]] .. --[==[\n]]]=]\n]==] 'b' -- end",
		"return [[\nx\r\ny\n\rz\r]]", "return [==[a]]b]=]c]==]", "return 'a\\\nb\\\r\nc\\x\\065\\10\\0z' .. \"\\\"'\" .. '\\'\"'", "return '\\256'", "return 'a\\300'", "return 'open", "return \"open\nx\"", "return 'a\\", "return [[open", "return [==", "--[[open", "--[==[open]]", "return 1 --", "return 0x", "return 0xg", "return 1e", "return 1e+", "return 1..2", "return 1.2.3", "return .5 + 5. + 0x1F + 1e2 + 3E-1", "return 5x", "return 1_0", "return 08 + 010",
		"x = = 1", "x + 1", "x.y", "(x) = 1", "(x).y", "f() = 1", "f().x = 1 + ", "local 1", "local function 1", "local function f.x() end", "function f:x.y() end", "function f(a, ) end", "function f(..., a) end", "function f(1) end", "for 1 = 2", "for i do end", "for i = 1 do end", "for i, j = 1, 2 do end", "for i = 1, 2, 3, 4 do end", "for i in do end", "if x else end", "if x then else elseif y then end", "if x\nthen\nfoo(", "while x\ndo\nfoo()", "repeat\nfoo()\n", "do\n\nfoo()", "function f()\n\nreturn", "f(\n1\n,", "t = {\n1\n", "t[1", "return 1,", "return return", "break", "while x do function f() break end end", "while x do break; end return 1", "while x do break x = 1 end", "return 1 x = 2", "goto x", "f\n(1)", "f{1\n}\n(2)", "a.1 = 2", "a. = 2", "a:b = 2", "a:b", "a:b.c()", "a['x'", "a b", "a, b", "a, b += 1", "a, f() = 1", "local a, = 1", "local a = ", "and", "end", "until x", "...", "function f() return ... end", "return (...)", "x = }", "x = 1 1", "x = 'a' 'b'", "x = #", "x = not", "@", "x = 1 $", "\x00", "x = \x01", "x = \x7f", "x = \xff", "~", "x ~ = 1", "x = 1; ; y = 2", ";", "x = {,}", "x = {1,,2}", "x = {;}", "x = {[1]}", "x = {[1] 2}", "x = {a b}", "x = function() end end", "x = function end", "x = (1", "x = ((1)", "x = f(", "x = f(1,)", "x = f(1 2)", "x = [=[", "x = '\x00", "x = y\x00z",
	}
}
