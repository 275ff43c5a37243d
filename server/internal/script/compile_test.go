package script

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
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
	}}))
	const source = "local n = 1 local f = function() n = n + 1 return n end "
	if got := st.eval(t, source+"redis.crash()"); !strings.HasPrefix(got, internalError) {
		t.Error(got)
	}
	if got := st.eval(t, source+"local ok, e = pcall(redis.crash) f() return e:sub(1, 16) .. n"); got != internalError+"2" {
		t.Error(got)
	}
}

// A compilation can be ended at any token, variable, and instruction, and the next one
// is not concerned.
func TestCompilingCanBeInterrupted(t *testing.T) {
	st := machine()
	for _, s := range samples() {
		total := 0
		if _, err := st.workspace.compile(s.source, "x", st.intrinsics, 0, func() { total++ }); err != nil {
			t.Fatal(err)
		}
		for at := 1; at <= total; at++ {
			n := 0
			_, err := st.workspace.compile(s.source, "x", st.intrinsics, 0, func() {
				if n++; n == at {
					panic(&Interrupted{})
				}
			})
			if ended := new(Interrupted); !errors.As(err, &ended) {
				t.Fatalf("%s at %d of %d: %v", s.name, at, total, err)
			}
		}
		if p, err := st.workspace.compile(s.source, "x", st.intrinsics, 0, func() {}); err != nil || size(p) == 0 {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

// The code of usual scripts is no longer than it was measured to be.
func TestSizes(t *testing.T) {
	want := map[string]int{
		"get": 7, "lock": 20, "limiter": 44, "bucket": 83, "queue": 108, "closures": 124, "arithmetic": 15, "calls": 81,
	}
	st := machine()
	for _, s := range samples() {
		fn, err := st.Compile(s.source, "user_script")
		if err != nil {
			t.Fatal(err)
		}
		if n := size(fn.Proto); n > want[s.name] {
			t.Errorf("%s: %d instructions, want at most %d", s.name, n, want[s.name])
		}
	}
}

// A workspace that is in use, as when a source is compiled while another one is, is
// not shared; and a large source leaves no large buffers behind.
func TestWorkspace(t *testing.T) {
	st := machine()
	n := 0
	p, err := st.workspace.compile("local a = 1 return a", "outer", st.intrinsics, 0, func() {
		if n++; n == 4 {
			if _, err := st.workspace.compile("local b = {} b.x = b", "inner", st.intrinsics, 0, func() {}); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || len(p.Code) != 2 {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := st.Compile(strings.Repeat("x.y = z ", 10_000), "large"); err != nil {
		t.Error(err)
	}
	for _, g := range st.workspace.generators {
		if cap(g.code) > 4*keptCode {
			t.Errorf("a buffer of %d instructions is kept", cap(g.code))
		}
	}
	for _, e := range st.workspace.tree.exprs.kept {
		if e != (expr{}) {
			t.Fatal("a node is kept")
		}
	}
}

// The memory that a source takes is bounded, whatever it consists of: the source is not
// read to its end.
func TestSizeOfSources(t *testing.T) {
	st := machine()
	for _, part := range []string{"do end ", "x = 1 + 1 "} {
		tokens := 0
		_, err := st.workspace.compile(strings.Repeat(part, maxNodes+1), "x", st.intrinsics, 0, func() { tokens++ })
		if err == nil || !strings.HasSuffix(err.Error(), "code size overflow") || tokens > 4*maxNodes {
			t.Errorf("%s: %v after %d tokens", part, err, tokens)
		}
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
