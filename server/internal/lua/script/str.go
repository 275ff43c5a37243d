package script

import (
	"strings"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

func bytesString(b []byte) string { return unsafe.String(&b[0], len(b)) }

func (st *State) stringLibrary() *lua.LTable {
	functions := map[string]lua.LGFunction{
		"byte": st.strByte, "char": st.strChar, "dump": st.strDump, "format": st.strFormat, "len": st.strLen,
		"lower": st.strLower, "rep": st.strRep, "reverse": st.strReverse, "sub": st.strSub, "upper": st.strUpper,
	}
	patterns := &patternFunctions{st: st}
	functions["find"], functions["match"] = patterns.find, patterns.match
	functions["gmatch"], functions["gsub"] = patterns.gmatch, patterns.gsub
	t := st.library(functions)
	t.RawSetString("gfind", t.RawGetString("gmatch"))
	// The methods of strings are in a separate table, so that their lookup bypasses
	// the proxy.
	methods := st.Table()
	t.ForEach(func(k, v lua.LValue) { methods.RawSet(k, v) })
	meta := st.Table()
	meta.RawSetString("__index", methods)
	for name, op := range map[string]int{
		"__add": lua.OP_ADD, "__sub": lua.OP_SUB, "__mul": lua.OP_MUL, "__div": lua.OP_DIV, "__mod": lua.OP_MOD,
		"__pow": lua.OP_POW, "__unm": lua.OP_UNM,
	} {
		meta.RawSetString(name, st.function(st.arithmetic(op)))
	}
	shown := st.Table()
	shown.RawSetString("__index", methods)
	meta.RawSetString("__metatable", st.Guarded(shown, false))
	st.shown = shown
	st.L.SetMetatable(lua.LString(""), meta)
	return t
}

// offset converts a position, from 1 on or if negative from the end, to an index of s.
func offset(s string, position int) int {
	if position < 0 {
		position += len(s) + 1
	}
	return max(position, 0) - 1
}

// part returns the bytes of s from a position to another one, as far as they exist.
func part(s string, first, last int) string {
	from, to := max(offset(s, first), 0), min(offset(s, last)+1, len(s))
	return s[min(from, len(s)):max(min(from, len(s)), to)]
}

func (st *State) strByte(L *lua.LState) int {
	s := st.checkString(L, 1)
	first := st.optInt(L, 2, 1)
	s = part(s, first, st.optInt(L, 3, first))
	if len(s) >= maxUnpack {
		st.Raise(L, "string slice too long")
	}
	for i := range len(s) {
		L.Push(lua.LNumber(s[i]))
	}
	return len(s)
}

func (st *State) strChar(L *lua.LState) int {
	n := L.GetTop()
	b := make([]byte, n)
	for i := range b {
		c := st.checkInt32(L, i+1)
		if c < 0 || c > 255 {
			st.argError(L, i+1, "invalid value")
		}
		b[i] = byte(c)
	}
	L.Push(lua.LString(view(b)))
	return 1
}

func (st *State) strDump(L *lua.LState) int {
	if st.checkFunction(L, 1).IsG {
		st.Raise(L, "unable to dump given function")
	}
	L.Push(lua.LString("\x1bLuaQ\x00")) // a dummy that cannot be loaded
	return 1
}

func (st *State) strLen(L *lua.LState) int {
	L.Push(lua.LNumber(len(st.checkString(L, 1))))
	return 1
}

func mapBytes(s string, from, to byte, delta byte) lua.LString {
	for i := range len(s) {
		if c := s[i]; from <= c && c <= to {
			b := []byte(s)
			for ; i < len(b); i++ {
				if from <= b[i] && b[i] <= to {
					b[i] += delta
				}
			}
			return lua.LString(view(b))
		}
	}
	return lua.LString(s)
}

func (st *State) strLower(L *lua.LState) int {
	s := st.checkString(L, 1)
	st.make(L, len(s))
	L.Push(mapBytes(s, 'A', 'Z', 32))
	return 1
}

func (st *State) strUpper(L *lua.LState) int {
	s := st.checkString(L, 1)
	st.make(L, len(s))
	L.Push(mapBytes(s, 'a', 'z', 256-32))
	return 1
}

func (st *State) strRep(L *lua.LState) int {
	s := st.checkString(L, 1)
	n := max(st.checkInt32(L, 2), 0)
	if len(s) > 0 && n > 0 {
		if n > st.most/len(s) {
			st.checkLength(L, st.most+1)
		}
		st.make(L, n*len(s))
	}
	L.Push(lua.LString(strings.Repeat(s, n)))
	return 1
}

func (st *State) strReverse(L *lua.LState) int {
	s := st.checkString(L, 1)
	st.make(L, len(s))
	b := make([]byte, len(s))
	for i := range b {
		b[i] = s[len(s)-1-i]
	}
	L.Push(lua.LString(view(b)))
	return 1
}

func (st *State) strSub(L *lua.LState) int {
	s := st.checkString(L, 1)
	first := st.checkInt(L, 2)
	L.Push(lua.LString(part(s, first, st.optInt(L, 3, -1))))
	return 1
}
