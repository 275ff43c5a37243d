package lua_test

import (
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/compiler"
)

// Loops, calls and coroutines end when Interrupt says so, and no script catches that.
func TestInterrupt(t *testing.T) {
	for _, source := range []string{
		"while true do end",
		"repeat until false",
		"repeat local x = a and b until x",
		"for i = 1, 1e300 do end",
		"for i = 2, 1, 0 do end",
		"local function f() return f() end f()",
		"local function f() pcall(f) f() end f()",
		"while true do pcall(function() while true do end end) end",
		"xpcall(function() while true do end end, function() return 1 end)",
		"for k in function() return 1 end do end",
		"local c = create(function() while true do yield() end end) while true do resume(c) end",
		"local c = create(function() while true do end end) resume(c)",
		"local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) while true do pcall(function() return t[1] end) end",
		"local s = 'x' while true do local t = s .. s end",
		"local function f(...) return f(1, ...) end f()",
		"local t = {} for i = 1, 1e9 do t[i] = {} end",
	} {
		vm := machine()
		asked := 0
		vm.Interrupt = func() *lua.Error {
			if asked++; asked < 3 {
				return nil
			}
			return &lua.Error{Value: lua.Text("ended")}
		}
		if got := run(t, vm, source); got != "error: ended" || asked != 3 {
			t.Errorf("%s: %s after %d questions", source, got, asked)
		}
	}
}

// What a script allocates is counted, so that Interrupt is asked before there is too much.
func TestMemoryIsCounted(t *testing.T) {
	for _, source := range []string{
		"local t = {} while true do t[#t + 1] = 1 end",
		"local t = {} for i = 1, 1e9 do t[i .. ''] = i end",
		"local t = {} while true do t = {t} end",
		"local t while true do local f = t t = function() return f end end",
		"local s = 'x' while true do s = s .. s end",
		"local t while true do t = {create(function() end), t} end",
	} {
		vm := machine()
		const limit = 8 << 20
		vm.AskAt = limit
		vm.Interrupt = func() *lua.Error {
			if vm.Allocated > limit {
				return &lua.Error{Value: lua.Text("too much")}
			}
			return nil
		}
		if got := run(t, vm, source); got != "error: too much" {
			t.Errorf("%s: %.100s", source, got)
		} else if vm.Allocated > 4*limit {
			t.Errorf("%s: %d bytes", source, vm.Allocated)
		}
	}
}

// The limits of calls are those of Lua.
func TestDepths(t *testing.T) {
	vm := machine()
	for source, want := range map[string]string{
		"local n = 0 local function f() n = n + 1 f() end local ok, e = pcall(f) return n, e":                            "16381 user_script:1: stack overflow",
		"local n = 0 local function f() n = n + 1 return pcall(f) end pcall(f) return n":                                 "198",
		"local n = 0 local function f() n = n + 1 local c = create(f) return resume(c) end f() return n":                 "200",
		"local n = 0 local r = {xpcall(function() error('x') end, function(e) n = n + 1 error('y') end)} return n, r[2]": "221 error in error handling",
		"local t = {} for i = 1, 101 do t = setmetatable({}, {__index = t}) end return pcall(function() return t.x end)": "false user_script:1: loop in gettable",
	} {
		if got := run(t, vm, source); got != want {
			t.Errorf("%s\n got %s\nwant %s", source, got, want)
		}
	}
}

// A function of Go that panics leaves a machine that works after Reset.
func TestPanic(t *testing.T) {
	vm := machine()
	vm.Globals.SetText(vm, "panic", lua.NewFunction(func(*lua.Machine, lua.Args) (int, *lua.Error) { panic("bug") }).Value())
	func() {
		defer func() {
			if r := recover(); r != "bug" {
				t.Errorf("recovered %v", r)
			}
		}()
		run(t, vm, "local x = 1 local function f() x = x + 1 panic() end resume(create(function() pcall(f) end))")
	}()
	vm.Reset()
	if got := run(t, vm, "local x = 1 return pcall(function() return x end)"); got != "true 1" {
		t.Error(got)
	}
}

// Short scripts allocate nothing.
func TestNothingIsAllocated(t *testing.T) {
	vm := machine()
	var c compiler.Compiler
	p, err := c.Compile(strings.Repeat("local s = 0 for i = 1, 10 do s = s + i end ", 3)+"return tostring(true) == 'true', pcall(next, {})", "user_script", 0, never)
	if err != nil {
		t.Fatal(err)
	}
	f := lua.NewClosure(p).Value()
	if n := testing.AllocsPerRun(100, func() { vm.Begin(1000); vm.Call(f) }); n > 3 { // a string, a table
		t.Errorf("%v allocations", n)
	}
}
