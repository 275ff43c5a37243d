package lua_test

import (
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/compiler"
)

// machine returns a machine with the few functions that the tests need.
func machine() *lua.Machine {
	vm := lua.New()
	define := func(name string, f lua.GoFunction) {
		vm.Globals.SetText(vm, name, lua.NewFunction(f).Value())
	}
	next := lua.NewNext(func(vm *lua.Machine, a lua.Args) (int, *lua.Error) {
		k, v, ok := a.At(1).Table().Next(a.At(2))
		if !ok {
			return 0, vm.RaisePlain("invalid key to 'next'")
		}
		return a.Return(k, v)
	}).Value()
	vm.Globals.SetText(vm, "next", next)
	define("pairs", func(vm *lua.Machine, a lua.Args) (int, *lua.Error) { return a.Return(next, a.At(1), lua.Nil) })
	define("pcall", func(vm *lua.Machine, a lua.Args) (int, *lua.Error) {
		results, err := vm.Try(a.At(1), lua.Nil, a.Slice(2)...)
		if err != nil && err.Fatal {
			return 0, err
		} else if err != nil {
			return a.Return(lua.False, err.Value)
		}
		n := len(results) + 1
		room := a.Room(n)
		copy(room[1:], results)
		room[0] = lua.True
		return n, nil
	})
	define("xpcall", func(vm *lua.Machine, a lua.Args) (int, *lua.Error) {
		results, err := vm.Try(a.At(1), a.At(2))
		if err != nil && err.Fatal {
			return 0, err
		} else if err != nil {
			return a.Return(lua.False, err.Value)
		}
		return a.Return(append([]lua.Value{lua.True}, results...)...)
	})
	define("error", func(vm *lua.Machine, a lua.Args) (int, *lua.Error) {
		v := a.At(1)
		if s, ok := v.Str(); ok {
			level := 1
			if f, ok := a.At(2).Number(); ok {
				level = int(f)
			}
			v = lua.Text(vm.Where(level) + s)
		}
		return 0, vm.Throw(v)
	})
	define("tostring", func(vm *lua.Machine, a lua.Args) (int, *lua.Error) { return a.Return(lua.Text(lua.Display(a.At(1)))) })
	define("select", func(vm *lua.Machine, a lua.Args) (int, *lua.Error) {
		if s, ok := a.At(1).Str(); ok && s == "#" {
			return a.Return(lua.Number(float64(a.Len() - 1)))
		}
		n, _ := a.At(1).Number()
		return a.From(int(n) + 1)
	})
	define("setmetatable", func(vm *lua.Machine, a lua.Args) (int, *lua.Error) {
		a.At(1).Table().Meta = a.At(2).Table()
		return a.Return(a.At(1))
	})
	define("create", func(vm *lua.Machine, a lua.Args) (int, *lua.Error) {
		return a.Return(vm.NewCoroutine(a.At(1).Function()).Value())
	})
	define("yield", func(vm *lua.Machine, a lua.Args) (int, *lua.Error) { return vm.Yield(a) })
	define("status", func(vm *lua.Machine, a lua.Args) (int, *lua.Error) {
		return a.Return(lua.Text(vm.Status(a.At(1).Coroutine())))
	})
	define("resume", func(vm *lua.Machine, a lua.Args) (int, *lua.Error) {
		results, err := vm.Resume(a.At(1).Coroutine(), a.Slice(2)...)
		if err != nil && err.Fatal {
			return 0, err
		} else if err != nil {
			return a.Return(lua.False, err.Value)
		}
		return a.Return(append([]lua.Value{lua.True}, results...)...)
	})
	return vm
}

func never() bool { return false }

// run returns the results of a source, or its error.
func run(t testing.TB, vm *lua.Machine, source string) string {
	t.Helper()
	var c compiler.Compiler
	p, err := c.Compile(source, "user_script", 0, never)
	if err != nil {
		return err.Error()
	}
	vm.Begin(1000)
	results, failed := vm.Call(lua.NewClosure(p).Value())
	if failed != nil {
		return "error: " + lua.Display(failed.Value)
	}
	var texts []string
	for _, v := range results {
		texts = append(texts, lua.Display(v))
	}
	return strings.Join(texts, " ")
}

// What programs return, or their error.
func TestPrograms(t *testing.T) {
	vm := machine()
	for source, want := range map[string]string{
		"return 1+2, 7%3, -7%3, 2^10, 10/4, 1-2*3":                                                                   "3 1 2 1024 2.5 -5",
		"local a, b = 5, '7' return a+b, a*b, b-a, -b, 1 ..a, a..b..a":                                               "12 35 2 -7 15 575",
		"local a = {1,2,3,x=4,[10]=5} return #a, a[1], a[3], a.x, a[10], a.y":                                        "3 1 3 4 5 nil",
		"local t = {} for i = 1, 100 do t[i] = i end local s = 0 for k, v in pairs(t) do s = s + v end return s, #t": "5050 100",
		"local function f(...) return select('#', ...), ... end return f(1, nil, 3)":                                 "3 1 nil 3",
		"local function f(n) if n == 0 then return 0 end return f(n-1) end return f(100000)":                         "0",
		"local function f(n) if n == 0 then return 0 end return 1 + f(n-1) end return f(10000)":                      "10000",
		"local function fib(n) if n < 2 then return n end return fib(n-1) + fib(n-2) end return fib(15)":             "610",
		"local f = {} for i = 1, 3 do f[i] = function() i = i + 1 return i end end return f[1](), f[1](), f[2]()":    "2 3 3",
		"local t = setmetatable({}, {__index = function(t, k) return k .. '!' end}) return t.x, t[1]":                "x! 1!",
		"local t = setmetatable({}, {__call = function(self, a, b) return a + b end}) return t(1, 2)":                "3",
		"local m = {__add = function(a, b) return 'sum' end, __lt = function() return true end, __eq = function() return true end, __concat = function() return 'joined' end, __unm = function() return 'minus' end} local a, b = setmetatable({}, m), setmetatable({}, m) return a + 1, 1 + a, a < b, a == b, a .. 1, 'x' .. a, -a, a <= b": "sum sum true true joined joined minus false",
		"return not nil == true, 1 < 2, 'a' < 'b', 2 <= 1, 1 ~= 1, nil == false, 3 > 2, 2 >= 3": "true true true false false false true false",
		"local x return x and 1 or 2, (x or 3) and 4, not x":                                    "2 4 true",
		"local x = 5 return x > 3, x < 3, 3 < x, 3 > x, x >= 5, 5 <= x, x == 5, 5 == x, x ~= 5": "true false true false true true true true false",
		"return pcall(error, 'x')":                                                                                    "false x",
		"return pcall(function() error('x') end)":                                                                     "false user_script:1: x",
		"return pcall(function() error({}) end) == false":                                                             "true",
		"return pcall(function() local t t.x = 1 end)":                                                                "false user_script:1: attempt to index local 't' (a nil value)",
		"return pcall(function() return y.x end)":                                                                     "false user_script:1: attempt to index global 'y' (a nil value)",
		"return pcall(function() local t = {} return t.x.y end)":                                                      "false user_script:1: attempt to index field 'x' (a nil value)",
		"return pcall(function() local t = {} t:go() end)":                                                            "false user_script:1: attempt to call method 'go' (a nil value)",
		"local u return pcall(function() return u + 1 end)":                                                           "false user_script:1: attempt to perform arithmetic on upvalue 'u' (a nil value)",
		"return pcall(function() local a = {} return a < a end)":                                                      "false user_script:1: attempt to compare two table values",
		"return pcall(function() local a = {} return a < 1 end)":                                                      "false user_script:1: attempt to compare table with number",
		"local t = setmetatable({}, {__concat = function() end}) return pcall(function() return 'x' .. t .. 'y' end)": "false user_script:1: attempt to concatenate upvalue 't' (a nil value)",
		"return pcall(function() return 'x' .. {} end)":                                                               "false user_script:1: attempt to concatenate a table value",
		"return pcall(function() for i = 'x', 2 do end end)":                                                          "false user_script:1: 'for' initial value must be a number",
		"return pcall(function() return #5 end)":                                                                      "false user_script:1: attempt to get length of a number value",
		"local s = '' for i = 3, 1, -1 do s = s .. i end for i = '1', '2' do s = s .. i end return s":                 "32112",
		"return xpcall(function() local x = nil + 1 end, function(e) return 'handled ' .. e end)":                     "false handled user_script:1: attempt to perform arithmetic on a nil value",
		"local c = create(function(a, b) local x, y = yield(a + b) local z = yield(x * y) return z, 'end' end) local r = {} for i, args in pairs{{1,2},{3,4},{5},{6}} do local ok, a, b = resume(c, args[1], args[2]) r[#r+1] = tostring(ok) .. tostring(a) .. tostring(b) end return r[1], r[2], r[3], r[4], status(c)": "true3nil true12nil true5end falsecannot resume dead coroutinenil dead",
		"local c = create(function(...) return (yield(...)) end) return resume(c, 1, 2, 3)":                                    "true 1 2 3",
		"local c = create(function() return yield(1) end) resume(c) return resume(c, 7, 8)":                                    "true 7 8",
		"local c = create(function() return pcall(yield, 1) end) return resume(c)":                                             "true false attempt to yield across metamethod/C-call boundary",
		"local c = create(function() error('x') end) return resume(c)":                                                         "false user_script:1: x",
		"local function f(...) return arg.n, arg[1] end return f(5, 6)":                                                        "2 5",
		"local t = {f = function(self, x) return self.v + x end, v = 1} return t:f(2)":                                         "3",
		"local t = {} t.x, t.y = 1, 2 local a, b = t.x, t.y a, b = b, a return a, b":                                           "2 1",
		"local i = 1 while true do i = i * 2 if i > 100 then break end end repeat local j = i i = i - 1 until j < 50 return i": "48",
		"local t = {} for i = 1, 10 do t[i] = i end for i = 1, 10 do t[i] = nil end return next(t), #t":                        "nil 0",
	} {
		if got := run(t, vm, source); got != want {
			t.Errorf("%s\n got %s\nwant %s", source, got, want)
		}
	}
}

func BenchmarkLoop(b *testing.B) {
	for name, source := range map[string]string{
		"modulo":  "local s = 0 for i = 1, 1000 do if i % 3 == 0 then s = s + i end end return s",
		"fields":  "local t = {n = 0} for i = 1, 1000 do t.n = t.n + 1 end return t.n",
		"array":   "local t = {} for i = 1, 1000 do t[i] = i end local s = 0 for i = 1, #t do s = s + t[i] end return s",
		"calls":   "local function f(x) return x + 1 end local s = 0 for i = 1, 1000 do s = f(s) end return s",
		"join":    "local s for i = 1, 1000 do s = 'key:' .. i end return s",
		"pairs":   "local t = {} for i = 1, 100 do t['k' .. i] = i end local s = 0 for j = 1, 10 do for k, v in pairs(t) do s = s + v end end return s",
		"globals": "for i = 1, 1000 do tostring(i) end",
	} {
		b.Run(name, func(b *testing.B) {
			vm := machine()
			var c compiler.Compiler
			p, err := c.Compile(source, "user_script", 0, never)
			if err != nil {
				b.Fatal(err)
			}
			f := lua.NewClosure(p).Value()
			b.ReportAllocs()
			for b.Loop() {
				vm.Begin(1000)
				if _, err := vm.Call(f); err != nil {
					b.Fatal(lua.Display(err.Value))
				}
			}
		})
	}
}
