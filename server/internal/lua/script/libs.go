package script

import (
	"math"
	"time"

	lua "github.com/yuin/gopher-lua"
)

func (st *State) mathLibrary() *lua.LTable {
	one := func(f func(float64) float64) lua.LGFunction {
		return func(L *lua.LState) int {
			L.Push(lua.LNumber(f(st.checkNumber(L, 1))))
			return 1
		}
	}
	two := func(f func(a, b float64) float64) lua.LGFunction {
		return func(L *lua.LState) int {
			b := st.checkNumber(L, 2) // first, as in Redis
			L.Push(lua.LNumber(f(st.checkNumber(L, 1), b)))
			return 1
		}
	}
	extreme := func(better func(a, b float64) bool) lua.LGFunction {
		return func(L *lua.LState) int {
			best := st.checkNumber(L, 1)
			for i := 2; i <= L.GetTop(); i++ {
				if v := st.checkNumber(L, i); better(v, best) {
					best = v
				}
			}
			L.Push(lua.LNumber(best))
			return 1
		}
	}
	t := st.library(map[string]lua.LGFunction{
		"abs": one(math.Abs), "acos": one(math.Acos), "asin": one(math.Asin), "atan": one(math.Atan), "atan2": two(math.Atan2),
		"ceil": one(math.Ceil), "cos": one(math.Cos), "cosh": one(math.Cosh), "exp": one(math.Exp), "floor": one(math.Floor),
		"fmod": two(math.Mod), "mod": two(math.Mod), "log": one(math.Log), "log10": one(math.Log10), "pow": two(math.Pow),
		"sin": one(math.Sin), "sinh": one(math.Sinh), "sqrt": one(math.Sqrt), "tan": one(math.Tan), "tanh": one(math.Tanh),
		"deg": one(func(f float64) float64 { return f / (math.Pi / 180) }),
		"rad": one(func(f float64) float64 { return f * (math.Pi / 180) }),
		"max": extreme(func(a, b float64) bool { return a > b }),
		"min": extreme(func(a, b float64) bool { return a < b }),
		"frexp": func(L *lua.LState) int {
			m, e := math.Frexp(st.checkNumber(L, 1))
			L.Push(lua.LNumber(m))
			L.Push(lua.LNumber(e))
			return 2
		},
		"ldexp": func(L *lua.LState) int {
			exponent := st.checkInt32(L, 2)
			L.Push(lua.LNumber(math.Ldexp(st.checkNumber(L, 1), exponent)))
			return 1
		},
		"modf": func(L *lua.LState) int {
			f := st.checkNumber(L, 1)
			i, part := math.Trunc(f), math.Copysign(0, f)
			if !math.IsInf(f, 0) {
				part = math.Copysign(f-i, f)
			}
			L.Push(lua.LNumber(i))
			L.Push(lua.LNumber(part))
			return 2
		},
		"random": st.mathRandom, "randomseed": st.mathRandomseed,
	})
	t.RawSetString("pi", lua.LNumber(math.Pi))
	t.RawSetString("huge", lua.LNumber(math.Inf(1)))
	return t
}

// rand48 is the generator of drand48, as in Redis: scripts get the same numbers on
// every platform.
type rand48 struct{ x uint64 }

func (r *rand48) seed(n int32) { r.x = uint64(uint32(n))<<16 | 0x330e }

func (r *rand48) next() int32 {
	r.x = (r.x*0x5deece66d + 0xb) & (1<<48 - 1)
	return int32(r.x >> 17)
}

const rand48Max = math.MaxInt32

func (st *State) mathRandom(L *lua.LState) int {
	if !st.Running {
		st.Raise(L, "math.random can only be called inside a script invocation")
	}
	r := float64(st.random.next()%rand48Max) / rand48Max
	switch L.GetTop() {
	case 0:
		L.Push(lua.LNumber(r))
	case 1:
		u := st.checkInt32(L, 1)
		if u < 1 {
			st.argError(L, 1, "interval is empty")
		}
		L.Push(lua.LNumber(math.Floor(r*float64(u)) + 1))
	case 2:
		l, u := st.checkInt32(L, 1), st.checkInt32(L, 2)
		if l > u {
			st.argError(L, 2, "interval is empty")
		}
		L.Push(lua.LNumber(math.Floor(r*float64(int32(u-l+1))) + float64(l)))
	default:
		st.Raise(L, "wrong number of arguments")
	}
	return 1
}

func (st *State) mathRandomseed(L *lua.LState) int {
	if !st.Running {
		st.Raise(L, "math.randomseed can only be called inside a script invocation")
	}
	st.random.seed(int32(st.checkInt32(L, 1)))
	return 0
}

// osLibrary is the part of os that Redis provides.
func (st *State) osLibrary() *lua.LTable {
	start := time.Now()
	return st.library(map[string]lua.LGFunction{
		"clock": func(L *lua.LState) int {
			L.Push(lua.LNumber(time.Since(start).Seconds()))
			return 1
		},
	})
}

func (st *State) coroutineLibrary() *lua.LTable {
	// A coroutine's errors must pass panicked, and its instructions be counted. The
	// machine sets another Panic when it starts a coroutine, so each one begins by
	// setting panicked.
	setup := st.function(func(L *lua.LState) int {
		L.Panic = st.panicked
		return 0
	})
	makeBody, err := st.Compile("local setup, f = ... return function(...) setup() return f(...) end", "=coroutine")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	lib := st.Table()
	lua.OpenCoroutine(st.L)
	original := st.L.Get(-1).(*lua.LTable)
	st.L.Pop(1)
	create := original.RawGetString("create").(*lua.LFunction).GFunction
	resume := original.RawGetString("resume").(*lua.LFunction).GFunction
	newThread := func(L *lua.LState) *lua.LState {
		f := L.Get(1)
		if fn, ok := f.(*lua.LFunction); !ok || fn.IsG {
			st.argError(L, 1, "Lua function expected")
		}
		L.Push(makeBody)
		L.Push(setup)
		L.Push(f)
		L.Call(2, 1)
		body := L.Get(-1)
		L.SetTop(0)
		L.Push(body)
		create(L)
		th := L.Get(-1).(*lua.LState)
		th.SetContext(st.ticks)
		th.Panic = st.panicked
		return th
	}
	doResume := func(L *lua.LState) (n int, ok bool) {
		if L.Get(1).(*lua.LState).Dead {
			L.Push(lua.LString("cannot resume dead coroutine"))
			return 1, false
		}
		if status := L.Status(L.Get(1).(*lua.LState)); status != "suspended" {
			L.Push(lua.LString("cannot resume " + status + " coroutine"))
			return 1, false
		}
		if st.depth >= maxDepth {
			L.Push(lua.LString("C stack overflow"))
			return 1, false
		}
		st.depth++
		n = resume(L)
		st.depth--
		if n == 0 { // a body without results
			return 0, true
		}
		first := L.GetTop() - n + 1
		ok = lua.LVAsBool(L.Get(first))
		L.Remove(first)
		return n - 1, ok
	}
	for name, f := range map[string]lua.LGFunction{
		"create": func(L *lua.LState) int {
			L.Push(newThread(L))
			return 1
		},
		"resume": func(L *lua.LState) int {
			if _, ok := L.Get(1).(*lua.LState); !ok {
				st.argError(L, 1, "coroutine expected")
			}
			n, ok := doResume(L)
			if st.bug != nil {
				panic(st.bug)
			}
			L.Insert(lua.LBool(ok), L.GetTop()-n+1)
			return n + 1
		},
		"wrap": func(L *lua.LState) int {
			th := newThread(L)
			L.Push(st.function(func(L *lua.LState) int {
				L.Insert(th, 1)
				n, ok := doResume(L)
				if st.bug != nil {
					panic(st.bug)
				}
				if !ok {
					v := L.Get(-1)
					if s, isString := v.(lua.LString); isString {
						v = lua.LString(where(L, 1)) + s
					}
					L.Error(v, 0)
				}
				return n
			}))
			return 1
		},
		"yield": func(L *lua.LState) int {
			if L.G.CurrentThread == L.G.MainThread || !st.mayYield(L) {
				st.raisePlain(L, "attempt to yield across metamethod/C-call boundary")
			}
			return -1
		},
		"running": func(L *lua.LState) int {
			if L.G.CurrentThread == L.G.MainThread {
				L.Push(lua.LNil)
			} else {
				L.Push(L.G.CurrentThread)
			}
			return 1
		},
		"status": func(L *lua.LState) int {
			th, ok := L.Get(1).(*lua.LState)
			if !ok {
				st.argError(L, 1, "coroutine expected")
			}
			L.Push(lua.LString(L.Status(th)))
			return 1
		},
	} {
		lib.RawSetString(name, st.function(f))
	}
	return lib
}

// mayYield reports whether the stack below yield has Lua functions only: a Go
// function or a metamethod cannot be suspended.
func (st *State) mayYield(L *lua.LState) bool {
	for level := 1; ; level++ {
		f, ok := frameAt(L, level)
		if !ok {
			return true
		}
		if f.fn.IsG {
			return false
		}
		switch f.instruction().Op() {
		case lua.OP_CALL, lua.OP_TAILCALL:
		default:
			return false
		}
	}
}

// view returns the bytes as a string without copying. They must not be changed.
func view(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return bytesString(b)
}
