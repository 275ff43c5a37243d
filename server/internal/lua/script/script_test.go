package script

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/compiler"
)

// machine returns a state whose redis has nothing in it.
func machine() *State {
	st := New()
	st.Seal(Library(), Library(), true)
	return st
}

// eval runs a source and tells what it returns, or fails with.
func (st *State) eval(t *testing.T, source string) string {
	t.Helper()
	fn, err := st.Compile(source, "user_script")
	if err != nil {
		return err.Error()
	}
	return st.outcome(fn)
}

// outcome calls a function and returns its result, or its error.
func (st *State) outcome(fn *lua.Function) string {
	v, failed := st.Call(fn)
	if failed == nil {
		return lua.Display(v)
	}
	if table := failed.Value.Table(); table != nil {
		return lua.Display(table.GetText("err"))
	}
	return lua.Display(failed.Value)
}

func Example() {
	st := New()
	st.Seal(Library(Function("greet", func(_ *lua.Machine, a lua.Args) (int, *lua.Error) {
		name, _ := a.At(1).Str()
		return a.Return(lua.Text("hello " + name))
	})), Library(), true)
	for _, source := range []string{
		"return redis.greet('world')",
		"return '010' + 0.1",
		"return cjson.encode({1, 2.5, 'text'})",
		"return nosuch",
		"redis.greet = nil",
		"return 1 +",
	} {
		fn, err := st.Compile(source, "user_script")
		if err != nil {
			fmt.Println(err)
			continue
		}
		v, failed := st.Call(fn)
		if failed != nil {
			v = failed.Value
		}
		s, _ := lua.ToText(v)
		fmt.Println(s)
	}
	// Output:
	// hello world
	// 10.1
	// [1,2.5,"text"]
	// user_script:1: Script attempted to access nonexistent global variable 'nosuch'
	// user_script:1: Attempt to modify a readonly table
	// user_script:1: unexpected symbol near '<eof>'
}

// Every way to make a long string knows how long a string may be, before it is
// made.
func TestStringsHaveBounds(t *testing.T) {
	const whole = "local s = string.rep('x', 2^20) "
	for _, source := range []string{
		"local s = 'x' while true do s = s .. s end",
		"local s = 'x' while true do s = s .. s .. s end",
		"local s = setmetatable({}, {__concat = function(a, b) return 'x' end}) local l = string.rep('x', 2^20) return l .. s .. l .. l",
		"return string.rep('x', 2^31 - 1)",
		"return string.rep('xy', 2^19 + 1)",
		"return string.rep(string.rep('x', 2^20), 2^31 - 1)",
		whole + "return table.concat({s, s})",
		"local t = {} for i = 1, 2000 do t[i] = '' end return table.concat(t, string.rep('y', 2^10))",
		whole + "return string.format('%s%s', s, s)",
		whole + "return string.format('%q', s)",
		"local s = string.rep('x', 1000) return string.gsub(s, 'x', string.rep('y', 2000))",
		whole + "return string.gsub(s, '.*', '%0%0')",
		whole + "return string.gsub(s, 'x*', string.rep('%0', 1000))",
		"local s = string.rep('x', 2000) return string.gsub(s, 'x', function() return s end)",
		"local s = string.rep('x', 2000) return string.gsub(s, 'x', {x = s})",
		whole + "return cjson.encode({s, s})",
		whole + "return cjson.encode(s)",
		"local t = {} for i = 1, 40 do t = {t, t} end return cjson.encode(t)",
		"local t = {} for i = 1, 14 do t = {t, t, t, t} end return cmsgpack.pack(t)",
		whole + "return cmsgpack.pack(s)",
		whole + "return struct.pack('ss', s, s)",
		whole + "return select(2, load(function() return s end))",
	} {
		st := machine()
		st.vm.MaxString = 1 << 20
		got := st.eval(t, source)
		if !strings.Contains(got, "not enough memory") {
			t.Errorf("%s: %.200s", source, got)
		}
	}
}

// Whatever takes long can be interrupted within it: not only between two
// instructions. None of these would end in a lifetime, or they would return.
func TestInterrupt(t *testing.T) {
	for name, source := range map[string]string{
		"a loop":                 "while true do end",
		"a caught loop":          "while true do pcall(function() while true do end end) end",
		"a goal of many":         "return string.find(string.rep('a', 50000), string.rep('a?', 40) .. string.rep('a', 40) .. 'b')",
		"backtracking":           "return string.find(string.rep('a', 5000), string.rep('.-', 20) .. 'b')",
		"nested stars":           "return string.match(string.rep('a', 3000), string.rep('a*', 20) .. 'b')",
		"unbalanced":             "return string.find(string.rep('(', 4000000), '%b()')",
		"gsub":                   "return string.gsub(string.rep('a', 50000), string.rep('a-', 20) .. 'b', '')",
		"gmatch":                 "for m in string.gmatch(string.rep('a', 5000), string.rep('a*', 20) .. 'b') do end",
		"many searches":          "local s = string.rep('a', 3000) while true do string.find(s, '.-.-b') end",
		"insert far below":       "table.insert({}, -2^31, 1)",
		"sort":                   "local t = {} for i = 1, 3000 do t[i] = i end while true do table.sort(t) end",
		"sort with a function":   "table.sort({1, 2, 3}, function() while true do end end)",
		"a table of the same":    "local t = {} for i = 1, 60 do t = {t, t} end while true do pcall(cjson.encode, t) end",
		"decoding":               "local s = '[' .. string.rep('1,', 100000) .. '1]' while true do cjson.decode(s) end",
		"packing":                "local t = {} for i = 1, 15 do t = {t, t, t, t} end while true do pcall(cmsgpack.pack, t) end",
		"unpacking":              "local s = cmsgpack.pack({1, 2, 3}) s = string.rep(s, 2000) while true do cmsgpack.unpack(s) end",
		"joining":                "local t = {} for i = 1, 10000 do t[i] = 'x' end while true do table.concat(t) end",
		"compiling":              "local s = string.rep('x = 1 ', 20000) while true do loadstring(s) end",
		"a coroutine":            "coroutine.wrap(function() while true do end end)()",
		"patterns in a function": "string.gsub('x', 'x', function() while true do string.find('aaa', 'a-b') end end)",
		"the length of holes":    "local t = {} t[1000000] = 1 t[1000000] = nil while true do local n = #t end",
		"arguments that grow":    "local f f = function(...) return f(1, ...) end return f()",
	} {
		t.Run(name, func(t *testing.T) {
			st := machine()
			fn, err := st.Compile(source, "user_script")
			if err != nil {
				t.Fatal(err)
			}
			deadline := time.Now().Add(20 * time.Millisecond) // the compilation must not reach it
			st.Interrupt = func() *lua.Table {
				if time.Now().Before(deadline) {
					return nil
				}
				return Library(Entry{"err", lua.Text("killed")})
			}
			if got := st.outcome(fn); got != "killed" {
				t.Errorf("%.200s", got)
			}
			// The machine is as good as new.
			st.Interrupt = nil
			if got := st.eval(t, "return 6 * 7"); got != "42" {
				t.Errorf("afterwards: %s", got)
			}
		})
	}
}

// TestDepth checks that unbounded recursion and nesting end with an error.
func TestDepth(t *testing.T) {
	for source, want := range map[string]string{
		"local function f() return 1 + f() end return f()":                                              "stack overflow",
		"local t = {} t[1] = t return cjson.encode(t)":                                                  "excessive nesting (1001)",
		"local t = {} t.x = t cjson.encode_max_depth(2^31 - 1) return cjson.encode(t)":                  "excessive nesting",
		"return cjson.decode(string.rep('[', 100000))":                                                  "too many nested",
		"cjson.decode_max_depth(2^31 - 1) return cjson.decode(string.rep('[', 100000))":                 "too many nested",
		"return cmsgpack.unpack(string.rep('\\145', 100000))":                                           "too many return values",
		"local t = {} t[1] = t return #cmsgpack.pack(t)":                                                "17",
		"return string.find(string.rep('a', 300000), string.rep('(a', 40))":                             "too many captures",
		"return loadstring('return ' .. string.rep('(', 300) .. string.rep(')', 300)) == nil":           "true",
		"return loadstring(string.rep('do ', 1000) .. string.rep('end ', 1000)) == nil":                 "true",
		"return loadstring('local ' .. string.rep('a,', 300) .. 'a') == nil":                            "true",
		"return setmetatable({}, {__index = function(t, k) return t[k] end}).x":                         "stack overflow",
		"local a, b = {}, {} setmetatable(a, {__index = b}) setmetatable(b, {__index = a}) return a.x":  "loop in gettable",
		"return select('#', unpack({}, 1, 7999))":                                                       "7999",
		"return unpack({}, 1, 8000)":                                                                    "too many results to unpack",
		"return string.byte(string.rep('x', 8001), 1, -1)":                                              "string slice too long",
		"local t = setmetatable({}, {__tostring = function(t) return tostring(t) end}) tostring(t)":     "stack overflow",
		"local function f(s) return (string.gsub(s, 'x', f)) end return f('x')":                         "stack overflow",
		"local function f() return pcall(f) end return tostring(f())":                                   "true",
		"local co co = coroutine.wrap(function() return co() end) return co()":                          "cannot resume",
		"return tostring(coroutine.resume(coroutine.create(function() return coroutine.yield() end)))":  "true",
		"table.sort({3, 2, 1, 5, 4}, function() return true end)":                                       "",
		"return tostring(setmetatable({}, {__lt = function() return true end}) < setmetatable({}, {}))": "attempt to compare two table values",
	} {
		if got := machine().eval(t, source); !strings.Contains(got, want) {
			t.Errorf("%s: %.200s, want %q", source, got, want)
		}
	}
}

// Nothing compiled can be loaded, environments cannot be had, and the guards of
// globals and libraries hold.
func TestNoWayOut(t *testing.T) {
	st := machine()
	for source, want := range map[string]string{
		"return tostring(loadstring(string.dump(function() return 1 end)))":       "nil",
		"return select(2, loadstring('\\27Lua'))":                                 "unexpected symbol near 'char(27)'",
		"return tostring(load(coroutine.wrap(function() return '\\27LuaQ' end)))": "nil",
		"return setfenv(1, {})":                   "nonexistent global variable 'setfenv'",
		"return getfenv(0)":                       "nonexistent global variable 'getfenv'",
		"return newproxy(true)":                   "nonexistent global variable 'newproxy'",
		"return io.open('/etc/passwd')":           "nonexistent global variable 'io'",
		"return os.execute('true')":               "attempt to call field 'execute'",
		"return os.getenv('HOME')":                "attempt to call field 'getenv'",
		"return debug.getregistry()":              "nonexistent global variable 'debug'",
		"return package.loaded":                   "nonexistent global variable 'package'",
		"return require('os')":                    "nonexistent global variable 'require'",
		"return dofile('/etc/passwd')":            "nonexistent global variable 'dofile'",
		"setmetatable(_G, {})":                    "Attempt to modify a readonly table",
		"rawset(_G, 'x', 1)":                      "Attempt to modify a readonly table",
		"rawset(getmetatable(_G), '__index', {})": "Attempt to modify a readonly table",
		"getmetatable('').__index = {}":           "Attempt to modify a readonly table",
		"string.format = nil":                     "Attempt to modify a readonly table",
		"cjson.decode_array_with_array_mt(true) getmetatable(cjson.decode('[]')).x = 1": "Attempt to modify a readonly table",
		"local _ENV = {x = 1} return tostring(rawget(_G, 'x'))":                         "nil",
		"local f = function() y = 1 end return select(2, pcall(f))":                     "Attempt to modify a readonly table",
		"return select(2, xpcall(function() y = 1 end, function(e) return e end))":      "Attempt to modify a readonly table",
		"return select(2, coroutine.resume(coroutine.create(function() y = 1 end)))":    "Attempt to modify a readonly table",
		"table.foreach(_G, function(k) rawset(_G, k, nil) end)":                         "Attempt to modify a readonly table",
		"return setmetatable({}, {__index = _G}).nosuch":                                "nonexistent global variable 'nosuch'",
		"return math.random()":                      "only be called inside a script invocation",
		"cjson.encode = nil":                        "Attempt to modify a readonly table",
		"return tostring(getmetatable(cjson.null))": "nil",
		"local t = {} t.__metatable = 'x' setmetatable(t, t) setmetatable(t, {})":      "cannot change a protected metatable",
		"return table.concat(setmetatable({}, {__index = function() return 'x' end}))": "",
	} {
		if got := st.eval(t, source); !strings.Contains(got, want) {
			t.Errorf("%s: %.200s, want %q", source, got, want)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		"return 1", "local a, b = ... return a .. b", "for i = 1, 10 do if i % 2 == 0 then break end end", "return {1, 2, x = 3, [4] = 5}",
		"local function f(...) return select('#', ...) end return f(1, nil)", "repeat local x = 1 until x", "return 'a' .. 1 .. [[b]]",
		"while false do end", "return -2 ^ 2, not nil, #'x'", "for k, v in pairs({}) do end", "a.b:c'd'", "--[==[ ]==] return 0x10",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		st := machine()
		deadline := time.Now().Add(50 * time.Millisecond)
		st.vm.MaxString = 1 << 20
		st.Interrupt = func() *lua.Table {
			if time.Now().Before(deadline) {
				return nil
			}
			return Library()
		}
		if got := st.eval(t, source); strings.Contains(got, compiler.InternalError) && !strings.Contains(source, compiler.InternalError) {
			t.Errorf("%q: %s", source, got)
		}
	})
}
