package script

import (
	"math"
	"sort"

	lua "github.com/yuin/gopher-lua"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// tableLibrary is section 5.5 of the manual of Lua 5.1, with what it calls obsolete.
func (st *State) tableLibrary() *lua.LTable {
	return st.library(map[string]lua.LGFunction{
		"concat": st.tableConcat, "foreach": st.foreach, "foreachi": st.foreachi, "getn": st.getn, "insert": st.insert,
		"maxn": st.maxn, "remove": st.remove, "setn": st.setn, "sort": st.sort,
	})
}

// optInt32 reads an argument as Lua reads an int; nil is missing.
func (st *State) optInt32(L *lua.LState, n, missing int) int {
	if L.Get(n) == lua.LNil {
		return missing
	}
	return st.checkInt32(L, n)
}

func (st *State) tableConcat(L *lua.LState) int {
	separator := ""
	if L.Get(2) != lua.LNil {
		separator = st.checkString(L, 2)
	}
	t := st.checkTable(L, 1)
	first := st.optInt32(L, 3, 1)
	last := st.optInt32(L, 4, t.Len())
	var b []byte
	for i := first; i <= last; i++ {
		if i > first {
			b = append(b, separator...)
		}
		switch v := t.RawGetInt(i).(type) {
		case lua.LString:
			b = append(b, v...)
		case lua.LNumber:
			b = conv.AppendNumber(b, float64(v))
		default:
			st.Raise(L, "invalid value ("+v.Type().String()+") at index "+conv.NumberString(float64(i))+" in table for 'concat'")
		}
		if st.Spend(L, 1); len(b) > st.most {
			st.checkLength(L, len(b))
		}
	}
	st.make(L, len(b))
	L.Push(lua.LString(view(b)))
	return 1
}

// visit calls the function with a key and a value, and reports whether it returned
// something, which stays on the stack.
func visit(L *lua.LState, f *lua.LFunction, k, v lua.LValue) bool {
	L.Push(f)
	L.Push(k)
	L.Push(v)
	L.Call(2, 1)
	if L.Get(-1) != lua.LNil {
		return true
	}
	L.Pop(1)
	return false
}

func (st *State) foreach(L *lua.LState) int {
	t, f := st.checkTable(L, 1), st.checkFunction(L, 2)
	for k, v := next(t, lua.LNil); k != lua.LNil; k, v = next(t, k) {
		if visit(L, f, k, v) {
			return 1
		}
	}
	return 0
}

func (st *State) foreachi(L *lua.LState) int {
	t, f := st.checkTable(L, 1), st.checkFunction(L, 2)
	for i := range t.Len() {
		if visit(L, f, lua.LNumber(i+1), t.RawGetInt(i+1)) {
			return 1
		}
	}
	return 0
}

func (st *State) getn(L *lua.LState) int {
	L.Push(lua.LNumber(st.checkTable(L, 1).Len()))
	return 1
}

func (st *State) setn(L *lua.LState) int {
	st.checkTable(L, 1)
	st.Raise(L, "'setn' is obsolete")
	return 0
}

func (st *State) insert(L *lua.LState) int {
	t := st.checkOpenTable(L, 1)
	n := t.Len()
	switch L.GetTop() {
	case 2:
		t.RawSetInt(n+1, L.Get(2))
	case 3:
		at, v := st.checkInt32(L, 2), L.Get(3)
		if 1 <= at && at <= n {
			st.Spend(L, 1+(n-at)/16)
			t.Insert(at, v)
			break
		}
		for i := n; i >= at; i-- { // from 0 or less on
			st.Spend(L, 1)
			t.RawSet(lua.LNumber(i+1), t.RawGet(lua.LNumber(i)))
		}
		t.RawSet(lua.LNumber(at), v)
	default:
		st.Raise(L, "wrong number of arguments to 'insert'")
	}
	return 0
}

func (st *State) remove(L *lua.LState) int {
	t := st.checkOpenTable(L, 1)
	n := t.Len()
	at := st.optInt32(L, 2, n)
	if at < 1 || at > n {
		return 0
	}
	v := t.RawGetInt(at)
	if at == n {
		t.RawSetInt(n, lua.LNil)
	} else {
		st.Spend(L, (n-at)/16)
	}
	t.Remove(at)
	L.Push(v)
	return 1
}

func (st *State) maxn(L *lua.LState) int {
	most := 0.0
	st.checkTable(L, 1).ForEach(func(k, _ lua.LValue) {
		st.Spend(L, 1)
		if n, ok := k.(lua.LNumber); ok {
			most = math.Max(most, float64(n))
		}
	})
	L.Push(lua.LNumber(most))
	return 1
}

// sorting is the values of a table, in an order that a function of Lua decides, or <.
type sorting struct {
	st     *State
	L      *lua.LState
	before *lua.LFunction
	values []lua.LValue
}

// Len implements sort.Interface.
func (s *sorting) Len() int { return len(s.values) }

// Swap implements sort.Interface.
func (s *sorting) Swap(i, j int) { s.values[i], s.values[j] = s.values[j], s.values[i] }

// Less implements sort.Interface. It may raise an error.
func (s *sorting) Less(i, j int) bool {
	s.st.Spend(s.L, 1)
	a, b := s.values[i], s.values[j]
	if s.before == nil {
		return s.L.LessThan(a, b)
	}
	s.L.Push(s.before)
	s.L.Push(a)
	s.L.Push(b)
	s.L.Call(2, 1)
	less := lua.LVAsBool(s.L.Get(-1))
	s.L.Pop(1)
	return less
}

// sort sorts a copy of the values, and returns them to the table if there was no error.
// A function that is not a consistent order leaves any order.
func (st *State) sort(L *lua.LState) int {
	t := st.checkOpenTable(L, 1)
	s := &sorting{st: st, L: L, values: make([]lua.LValue, t.Len())}
	if L.Get(2) != lua.LNil {
		s.before = st.checkFunction(L, 2)
	}
	for i := range s.values {
		s.values[i] = t.RawGetInt(i + 1)
	}
	sort.Sort(s)
	for i, v := range s.values {
		t.RawSetInt(i+1, v)
	}
	return 0
}
