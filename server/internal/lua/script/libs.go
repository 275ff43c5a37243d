package script

import (
	"math"
	"time"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// entry is a function of a library.
type entry struct {
	name string
	run  func(c *call)
}

// library returns a table of functions. Their order is that of pairs where they collide.
func (st *State) library(functions ...entry) *lua.Table {
	t := lua.NewTable(0, len(functions))
	for _, e := range st.entries(functions...) {
		t.SetText(nil, e.Name, e.Value)
	}
	return t
}

// entries returns functions as entries.
func (st *State) entries(functions ...entry) (list []Entry) {
	for _, f := range functions {
		list = append(list, Entry{f.name, st.function(f.run)})
	}
	return list
}

// mathLibrary is section 5.6 of the manual of Lua 5.1. The sign of a result that is not a
// number is that of C on amd64.
func (st *State) mathLibrary() *lua.Table {
	nan := conv.NaN()
	negative := math.Copysign(nan, -1)
	one := func(name string, invalid float64, f func(float64) float64) entry {
		return entry{name, func(c *call) {
			x := c.number(1)
			if x == x {
				if x = f(x); x != x {
					x = invalid
				}
			}
			c.push(lua.Number(x))
		}}
	}
	two := func(name string, f func(a, b float64) float64) entry {
		return entry{name, func(c *call) {
			b := c.number(2) // first, as in Redis
			c.push(lua.Number(f(c.number(1), b)))
		}}
	}
	firstNaN := func(a, b, invalid float64) float64 {
		switch {
		case a != a:
			return a
		case b != b:
			return b
		}
		return invalid
	}
	mod := func(a, b float64) float64 {
		if f := math.Mod(a, b); f == f {
			return f
		}
		return firstNaN(a, b, negative)
	}
	extreme := func(name string, better func(a, b float64) bool) entry {
		return entry{name, func(c *call) {
			best := c.number(1)
			for i := 2; i <= c.len(); i++ {
				if v := c.number(i); better(v, best) {
					best = v
				}
			}
			c.push(lua.Number(best))
		}}
	}
	t := st.library(
		entry{"abs", func(c *call) { c.push(lua.Number(math.Abs(c.number(1)))) }},
		one("acos", nan, math.Acos), one("asin", nan, math.Asin),
		two("atan2", func(a, b float64) float64 {
			if f := math.Atan2(a, b); f == f {
				return f
			}
			return firstNaN(b, a, nan)
		}),
		one("atan", nan, math.Atan), one("ceil", nan, math.Ceil), one("cosh", nan, math.Cosh), one("cos", negative, math.Cos),
		one("deg", nan, func(f float64) float64 { return f / (math.Pi / 180) }),
		one("exp", nan, math.Exp), one("floor", nan, math.Floor), two("fmod", mod),
		entry{"frexp", func(c *call) {
			m, e := math.Frexp(c.number(1))
			c.push(lua.Number(m))
			c.push(lua.Number(float64(e)))
		}},
		entry{"ldexp", func(c *call) {
			exponent := c.int32(2)
			c.push(lua.Number(math.Ldexp(c.number(1), exponent)))
		}},
		one("log10", nan, math.Log10), one("log", negative, logarithm),
		extreme("max", func(a, b float64) bool { return a > b }), extreme("min", func(a, b float64) bool { return a < b }),
		entry{"modf", func(c *call) {
			f := c.number(1)
			i, part := math.Trunc(f), math.Copysign(0, f)
			if !math.IsInf(f, 0) {
				part = math.Copysign(f-i, f)
			}
			c.push(lua.Number(i))
			c.push(lua.Number(part))
		}},
		two("pow", lua.Power),
		one("rad", nan, func(f float64) float64 { return f * (math.Pi / 180) }),
		entry{"random", mathRandom}, entry{"randomseed", mathRandomseed},
		one("sinh", nan, math.Sinh), one("sin", negative, math.Sin), one("sqrt", negative, math.Sqrt), one("tanh", nan, math.Tanh),
		one("tan", negative, math.Tan),
	)
	t.SetText(nil, "pi", lua.Number(math.Pi))
	t.SetText(nil, "huge", lua.Number(math.Inf(1)))
	t.SetText(nil, "mod", t.GetText("fmod"))
	return t
}

// logarithm is math.Log, which is wrong for subnormal numbers on amd64.
func logarithm(f float64) float64 {
	const shift = 54
	if f > 0 && f < 0x1p-1022 {
		return math.Log(f*(1<<shift)) - shift*math.Ln2
	}
	return math.Log(f)
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

func mathRandom(c *call) {
	if !c.Running {
		c.raise("math.random can only be called inside a script invocation")
		return
	}
	r := float64(c.random.next()%rand48Max) / rand48Max
	switch c.len() {
	case 0:
		c.push(lua.Number(r))
	case 1:
		u := c.int32(1)
		if u < 1 {
			c.argError(1, "interval is empty")
		}
		c.push(lua.Number(math.Floor(r*float64(u)) + 1))
	case 2:
		l, u := c.int32(1), c.int32(2)
		if l > u {
			c.argError(2, "interval is empty")
		}
		c.push(lua.Number(math.Floor(r*float64(int32(u-l+1))) + float64(l)))
	default:
		c.raise("wrong number of arguments")
	}
}

func mathRandomseed(c *call) {
	if !c.Running {
		c.raise("math.randomseed can only be called inside a script invocation")
		return
	}
	if n := c.int32(1); c.err == nil {
		c.random.seed(int32(n))
	}
}

// osLibrary is the part of os that Redis provides.
func (st *State) osLibrary() *lua.Table {
	start := time.Now()
	return st.library(entry{"clock", func(c *call) { c.push(lua.Number(time.Since(start).Seconds())) }})
}
