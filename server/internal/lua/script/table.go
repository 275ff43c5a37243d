package script

import (
	"math"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// tableLibrary is section 5.5 of the manual of Lua 5.1, with what it calls obsolete.
func (st *State) tableLibrary() *lua.Table {
	return st.library(
		entry{"concat", tableConcat}, entry{"foreach", foreach}, entry{"foreachi", foreachi},
		entry{"getn", func(c *call) { c.push(lua.Number(float64(c.table(1).Len()))) }},
		entry{"maxn", maxn}, entry{"insert", tableInsert}, entry{"remove", tableRemove},
		entry{"setn", func(c *call) {
			c.table(1)
			c.raise("'setn' is obsolete")
		}},
		entry{"sort", tableSort},
	)
}

func tableConcat(c *call) {
	separator := ""
	if c.given(2) {
		separator = c.text(2)
	}
	t := c.table(1)
	first := c.optInt32(3, 1)
	last := c.optInt32(4, t.Len())
	b := c.buffer()
	for i := first; i <= last && c.tick(1); i++ {
		if i > first {
			b = append(b, separator...)
		}
		v := t.GetInt(i)
		if s, ok := v.Str(); ok {
			b = append(b, s...)
		} else if f, ok := v.Number(); ok {
			b = conv.AppendNumber(b, f)
		} else {
			c.raise("invalid value (" + v.Kind().String() + ") at index " + conv.NumberString(float64(i)) + " in table for 'concat'")
		}
		c.fits(len(b))
	}
	c.pushBuffer(b)
}

func foreach(c *call) {
	t, f := c.table(1), c.function(2)
	for k, v, ok := t.Next(lua.Nil); c.err == nil; k, v, ok = t.Next(k) {
		if !ok {
			c.raisePlain("invalid key to 'next'")
		}
		if k.IsNil() {
			break
		}
		if v = c.invoke(f.Value(), k, v); !v.IsNil() {
			c.push(v)
			break
		}
	}
}

func foreachi(c *call) {
	t, f := c.table(1), c.function(2)
	n := t.Len()
	for i := 1; i <= n && c.err == nil; i++ {
		if v := c.invoke(f.Value(), lua.Number(float64(i)), t.GetInt(i)); !v.IsNil() {
			c.push(v)
			break
		}
	}
}

func tableInsert(c *call) {
	t := c.table(1)
	n := t.Len()
	switch c.len() {
	case 2:
		c.setInt(t, n+1, c.at(2))
	case 3:
		at := c.int32(2)
		for i := max(n+1, at); i > at && c.tick(1); i-- {
			c.setInt(t, i, t.GetInt(i-1))
		}
		c.setInt(t, at, c.at(3))
	default:
		c.raise("wrong number of arguments to 'insert'")
	}
}

func tableRemove(c *call) {
	t := c.table(1)
	n := t.Len()
	at := c.optInt32(2, n)
	if at < 1 || at > n {
		return
	}
	c.push(t.GetInt(at))
	for ; at < n && c.tick(1); at++ {
		c.setInt(t, at, t.GetInt(at+1))
	}
	c.setInt(t, n, lua.Nil)
}

func maxn(c *call) {
	most := 0.0
	t := c.table(1)
	for at := 0; c.tick(1); {
		k, _, after := t.Entry(at)
		if k.IsNil() {
			break
		}
		if f, ok := k.Number(); ok {
			most = math.Max(most, f)
		}
		at = after
	}
	c.push(lua.Number(most))
}

// sorting sorts a table in place, in an order that a function of Lua decides, or <.
type sorting struct {
	*call
	t      *lua.Table
	before lua.Value
}

func tableSort(c *call) {
	s := sorting{call: c, t: c.table(1)}
	if c.given(2) {
		s.before = c.function(2).Value()
	}
	if c.err == nil {
		s.sort(1, s.t.Len())
	}
}

// less reports whether a comes before b.
func (s *sorting) less(a, b lua.Value) bool {
	if !s.tick(1) {
		return false
	}
	if !s.before.IsNil() {
		return s.invoke(s.before, a, b).Truth()
	}
	if f, ok := a.Number(); ok {
		if g, ok := b.Number(); ok {
			return f < g
		}
	}
	less, err := s.vm.Less(a, b)
	s.err = err
	return less
}

// put stores two elements.
func (s *sorting) put(i int, a lua.Value, j int, b lua.Value) {
	s.setInt(s.t, i, a)
	s.setInt(s.t, j, b)
}

// sort sorts the elements from lo to hi: quicksort as in Sedgewick's Algorithms, with the median of
// the first, the middle and the last as the pivot, and recursion into the smaller part.
func (s *sorting) sort(lo, hi int) {
	for lo < hi && s.err == nil {
		if a, b := s.t.GetInt(lo), s.t.GetInt(hi); s.less(b, a) {
			s.put(lo, b, hi, a)
		}
		if hi-lo == 1 {
			return
		}
		middle := (lo + hi) / 2
		if m, a := s.t.GetInt(middle), s.t.GetInt(lo); s.less(m, a) {
			s.put(middle, a, lo, m)
		} else if b := s.t.GetInt(hi); s.less(b, m) {
			s.put(middle, b, hi, m)
		}
		if hi-lo == 2 || s.err != nil {
			return
		}
		pivot := s.t.GetInt(middle)
		s.put(middle, s.t.GetInt(hi-1), hi-1, pivot)
		i, j := lo, hi-1
		for {
			i++
			a := s.t.GetInt(i)
			for s.less(a, pivot) {
				if i > hi {
					s.raise("invalid order function for sorting")
				}
				i++
				a = s.t.GetInt(i)
			}
			j--
			b := s.t.GetInt(j)
			for s.less(pivot, b) {
				if j < lo {
					s.raise("invalid order function for sorting")
				}
				j--
				b = s.t.GetInt(j)
			}
			if s.err != nil {
				return
			}
			if j < i {
				break
			}
			s.put(i, b, j, a)
		}
		s.put(hi-1, s.t.GetInt(i), i, s.t.GetInt(hi-1))
		if i-lo < hi-i {
			s.sort(lo, i-1)
			lo = i + 1
		} else {
			s.sort(i+1, hi)
			hi = i - 1
		}
	}
}
