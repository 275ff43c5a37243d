package script

import (
	"fmt"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"github.com/zsetd/zsetd/server/internal/luacompiler"
)

// A caught error closes the upvalues of the functions that it leaves, and no others.
func TestUpvaluesAfterErrors(t *testing.T) {
	for source, want := range map[string]string{
		"local n = 1 local function f() n = n + 1 end pcall(error) f() return n":                                                                                     "2",
		"local n = 1 local function f() n = n + 1 end pcall(pcall, error) pcall(function() pcall(error) error() end) f() return n":                                   "2",
		"local f local n = 1 pcall(function() local y = 1 f = function() y = y + n return y end y = 10 n = 2 error() end) f() n = 3 return f()":                      "15",
		"local n, f = 1 coroutine.wrap(function() local y = 5 pcall(function() f = function() y = y + n return y end error() end) y = 6 end)() n = 2 f() return f()": "10",
		"local f coroutine.resume(coroutine.create(function() local y = 5 f = function() y = y + 1 return y end error() end)) f() return f()":                        "7",
		"local n, f = 1 local function r() local x = n f = function() return x end n = n + 1 return r() + 1 end pcall(r) return type(f())":                           "number",
		"local f xpcall(function() local y = 7 f = function() return y end error() end, function() return f() end) return f()":                                       "7",
	} {
		if got := machine().eval(t, source); got != want {
			t.Errorf("%s: %s, want %s", source, got, want)
		}
	}
}

// A Go panic within a script is an error of the script, and the machine continues.
func TestPanicIsAnError(t *testing.T) {
	st := New()
	st.Seal(st.Library(map[string]lua.LGFunction{"crash": func(*lua.LState) int {
		var p *int
		return *p
	}}), st.Table())
	const source = "local n = 1 local f = function() n = n + 1 return n end "
	if got := st.eval(t, source+"redis.crash()"); !strings.HasPrefix(got, luacompiler.InternalError) {
		t.Error(got)
	}
	if got := st.eval(t, source+"local ok, e = pcall(redis.crash) f() return e:sub(1, 16) .. n"); got != luacompiler.InternalError+"2" {
		t.Error(got)
	}
}

// The names of operands in errors do not depend on how many instructions and constants
// there are before.
func TestNamesOfOperands(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "t.k%d = %d\n", i, i)
	}
	for source, want := range map[string]string{
		"local t = {} " + b.String() + "return u.x":                                "x:5001: Script attempted to access nonexistent global variable 'u'",
		"local t, u = {} " + b.String() + "return u.x":                             "x:5001: attempt to index local 'u' (a nil value)",
		"local t, u = {} return (function() " + b.String() + "\nreturn u() end)()": "x:5002: attempt to call upvalue 'u' (a nil value)",
	} {
		st := machine()
		fn, err := st.Compile(source, "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, failed := st.Call(fn); failed == nil || display(failed.Value) != want {
			t.Errorf("%v, want %s", failed, want)
		}
	}
}
