package script

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/compiler"
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
	st.Seal(Library(Function("crash", func(*lua.Machine, lua.Args) (int, *lua.Error) {
		var p *int
		return *p, nil
	})), Library(), true)
	const source = "local n = 1 local f = function() n = n + 1 return n end "
	if got := st.eval(t, source+"redis.crash()"); !strings.HasPrefix(got, compiler.InternalError) {
		t.Error(got)
	}
	if got := st.eval(t, source+"pcall(redis.crash) return f()"); !strings.HasPrefix(got, compiler.InternalError) {
		t.Error(got)
	}
	if got := st.eval(t, source+"return f()"); got != "2" {
		t.Error(got)
	}
}

// TestFixedGlobals checks that code contains the values of globals that never change, and
// looks up others; and that this changes no result.
func TestFixedGlobals(t *testing.T) {
	st := New()
	library := Library(Function("f", func(_ *lua.Machine, a lua.Args) (int, *lua.Error) {
		return a.Return(lua.Number(float64(a.Len())))
	}), Entry{"seven", lua.Number(7)})
	plain := library.GetText("f").Function()
	st.Bound = func(f *lua.Function, first string) *lua.Function {
		if f != plain || first != "bound" {
			return nil
		}
		return lua.NewFunction(func(_ *lua.Machine, a lua.Args) (int, *lua.Error) {
			return a.Return(lua.Number(float64(100 + a.Len())))
		})
	}
	st.Seal(library, Library(), true)
	st.SetArguments([][]byte{[]byte("one")}, nil)
	for _, test := range []struct {
		source, want string
		lookups      int // of globals and fields
	}{
		{"return redis.f(1, 2)", "2", 0},
		{"return redis.seven + redis['seven'] * math.floor(2.5)", "21", 0},
		{"local f = redis.f return f(tonumber('3'))", "1", 0},
		{"return _G.redis.f()", "0", 0},
		{"return type(redis)", "table", 0},
		{"return ({f = redis.f}).f()", "0", 1},
		{"return KEYS[1]", "one", 0},
		{"return _G.KEYS[1]", "one", 0},
		{"return #KEYS + #ARGV .. redis.seven", "17", 0},
		{"KEYS.x = 2 return KEYS.x", "2", 1},
		{"KEYS = nil", "x:1: Attempt to modify a readonly table", 0},
		{"return KEYS()", "x:1: attempt to call global 'KEYS' (a table value)", 0},
		{"return redis.f('bound')", "100", 0},
		{"return (redis.f('bound', 1, 2))", "102", 0},
		{"return redis.f 'bound'", "100", 0},
		{"local function g() return 1, 2, 3 end return redis.f('bound', g())", "103", 0},
		{"return _G['redis'].f('bound', redis.f('bound'))", "101", 0},
		{"return redis.f(('bound'))", "100", 0},
		{"return redis.f('unbound', 1)", "2", 0},
		{"return redis.f('bound' .. '')", "1", 0},
		{"local f = redis.f return f('bound')", "100", 0},
		{"local r, n = redis, 1 local f = r.f return f('bound', n)", "101", 0},
		{"local f = redis.f return (function() return f('bound') end)()", "100", 0},
		{"local f = redis.f f = function() return 5 end return f('bound')", "5", 0},
		{"local f = redis.f function f() return 5 end return f('bound')", "5", 0},
		{"local f = redis.f local function g() f = nil end g() return f('bound')", "x:1: attempt to call local 'f' (a nil value)", 0},
		{"local f = redis.f for i = 1, 2 do if i == 2 then return f('bound') end f = math.max end", "x:1: bad argument #1 to 'f' (number expected, got string)", 0},
		{"local g, f = redis.f return f('bound')", "x:1: attempt to call local 'f' (a nil value)", 0},
		{"local f = redis.f do local f = math.max return f(1, 3) end", "3", 0},
		{"local f = redis.f local function g(f) return f('bound') end return g(function(s) return s end)", "bound", 0},
		{"local f = redis return f('bound')", "x:1: attempt to call local 'f' (a table value)", 0},
		{"local f = redis return (function() return f.f.g end)()", "x:1: attempt to index field 'f' (a function value)", 1},
		{"local f = redis.seven return (function() return f.g end)()", "x:1: attempt to index upvalue 'f' (a number value)", 1},
		{"return redis.f(1, 'bound')", "2", 0},
		{"return redis.seven('bound')", "x:1: attempt to call field 'seven' (a number value)", 0},
		{"local redis = {f = function() return 'mine' end} return redis.f()", "mine", 1},
		{"local function g(redis) return redis.seven end return g({seven = 8})", "8", 1},
		{"local redis = redis local function g() return redis.f(1) end return g()", "1", 0},
		{"return redis.absent", "nil", 1},
		{"return redis.absent()", "x:1: attempt to call field 'absent' (a nil value)", 1},
		{"return redis.seven()", "x:1: attempt to call field 'seven' (a number value)", 0},
		{"return redis.f.g", "x:1: attempt to index field 'f' (a function value)", 1},
		{"return tonumber.g.h", "x:1: attempt to index global 'tonumber' (a function value)", 2},
		{"return redis.seven.x()", "x:1: attempt to index field 'seven' (a number value)", 1},
		{"return redis + 1", "x:1: attempt to perform arithmetic on global 'redis' (a table value)", 0},
		{"return redis.f .. 'x'", "x:1: attempt to concatenate field 'f' (a function value)", 0},
		{"return redis:f()", "1", 1},
		{"redis.f = nil", "x:1: Attempt to modify a readonly table", 0},
		{"redis.f.x = 1", "x:1: attempt to index field 'f' (a function value)", 0},
		{"redis = nil", "x:1: Attempt to modify a readonly table", 0},
		{"math.pi, redis.seven = 1, 2", "x:1: Attempt to modify a readonly table", 0},
		{"return absent", "x:1: Script attempted to access nonexistent global variable 'absent'", 1},
		{"local n = 0 for k, v in pairs({redis.seven, redis.f}) do n = n + k end return n", "3", 0},
	} {
		fn, err := st.Compile(test.source, "x")
		if err != nil {
			t.Fatal(err)
		}
		if n := lookups(fn.Proto); n != test.lookups {
			t.Errorf("%s: %d look-ups, want %d", test.source, n, test.lookups)
		}
		result, failed := st.Call(fn)
		got := ""
		if failed != nil {
			got = lua.Display(failed.Value)
		} else {
			got = lua.Display(result)
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.source, got, test.want)
		}
	}
}

// lookups counts the instructions of a function that look up a global or a field.
func lookups(p *lua.Proto) (n int) {
	for _, in := range p.Code {
		switch in.Op() {
		case lua.OpGetGlobal, lua.OpGetField, lua.OpSelf:
			n++
		}
	}
	for _, inner := range p.Protos {
		n += lookups(inner)
	}
	return n
}

// TestNumbersOfJSON checks that decoded numbers are the nearest ones.
func TestNumbersOfJSON(t *testing.T) {
	st := machine()
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 20_000 {
		digits := strconv.FormatInt(r.Int64N(1<<(1+i%60)), 10)
		text := digits
		if point := 1 + r.IntN(len(digits)); point < len(digits) {
			text = digits[:point] + "." + digits[point:]
		} else if r.IntN(2) == 0 {
			text += [...]string{".0", "e3", ".5e-7", ".000"}[r.IntN(4)]
		}
		if r.IntN(3) == 0 {
			text = "-" + text
		}
		want, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		c := call{State: st}
		if got, _ := c.decodeJSON(&jsonSettings{decodeDepth: 1}, text).Number(); got != want {
			t.Fatalf("%s: %v, want %v", text, got, want)
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
		if _, failed := st.Call(fn); failed == nil || lua.Display(failed.Value) != want {
			t.Errorf("%v, want %s", failed, want)
		}
	}
}
