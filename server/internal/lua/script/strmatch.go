package script

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// patternFunctions are the functions of string that match patterns. They use matchers
// again, with the pattern that these have compiled.
type patternFunctions struct {
	st    *State
	spare []*matcher
}

// matcher returns a matcher of s with a pattern, and whether it is anchored if it may be.
func (f *patternFunctions) matcher(L *lua.LState, s, pattern string, mayAnchor bool) (m *matcher, anchored bool) {
	if n := len(f.spare); n > 0 {
		m, f.spare = f.spare[n-1], f.spare[:n-1]
	} else {
		m = &matcher{st: f.st}
	}
	if mayAnchor {
		pattern, anchored = strings.CutPrefix(pattern, "^")
	}
	m.L, m.src = L, s
	m.compile(pattern)
	return m, anchored
}

// release makes a matcher available, if it is small. After an error it is not released.
func (f *patternFunctions) release(m *matcher) {
	const most = 256
	if m.src, m.L = "", nil; len(m.pat) <= most && cap(m.items) <= most && len(f.spare) < 4 {
		f.spare = append(f.spare, m)
	}
}

func (f *patternFunctions) find(L *lua.LState) int {
	s, pattern, from := f.arguments(L)
	if !lua.LVAsBool(L.Get(4)) && strings.ContainsAny(conv.CString(pattern), "^$*+?.([%-") {
		m, anchored := f.matcher(L, s, pattern, true)
		start, end := m.search(from, anchored)
		if start < 0 {
			f.release(m)
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LNumber(start + 1))
		L.Push(lua.LNumber(end))
		n := m.pushCaptures(start, end, false)
		f.release(m)
		return 2 + n
	}
	at := strings.Index(s[from:], pattern)
	if at < 0 {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(lua.LNumber(from + at + 1))
	L.Push(lua.LNumber(from + at + len(pattern)))
	return 2
}

// arguments returns a subject, a pattern, and the index at which the search begins.
func (f *patternFunctions) arguments(L *lua.LState) (s, pattern string, from int) {
	s, pattern = f.st.checkString(L, 1), f.st.checkString(L, 2)
	return s, pattern, min(max(offset(s, f.st.optInt(L, 3, 1)), 0), len(s))
}

func (f *patternFunctions) match(L *lua.LState) int {
	s, pattern, from := f.arguments(L)
	m, anchored := f.matcher(L, s, pattern, true)
	n := 1
	if start, end := m.search(from, anchored); start >= 0 {
		n = m.pushCaptures(start, end, true)
	} else {
		L.Push(lua.LNil)
	}
	f.release(m)
	return n
}

func (f *patternFunctions) gmatch(L *lua.LState) int {
	s, pattern := f.st.checkString(L, 1), f.st.checkString(L, 2)
	from := 0
	L.Push(f.st.function(func(L *lua.LState) int {
		if from > len(s) {
			return 0
		}
		m, _ := f.matcher(L, s, pattern, false)
		start, end := m.search(from, false)
		n := 0
		switch {
		case start < 0:
			from = len(s) + 1
		default:
			if from = end; start == end { // an empty match is not found again
				from++
			}
			n = m.pushCaptures(start, end, true)
		}
		f.release(m)
		return n
	}))
	return 1
}

func (f *patternFunctions) gsub(L *lua.LState) int {
	st := f.st
	s, pattern, by := st.checkString(L, 1), st.checkString(L, 2), L.Get(3)
	limit := len(s) + 1
	if L.Get(4) != lua.LNil {
		limit = st.checkInt32(L, 4)
	}
	switch by.(type) {
	case lua.LNumber, lua.LString, *lua.LFunction, *lua.LTable:
	default:
		st.argError(L, 3, "string/function/table expected")
	}
	m, anchored := f.matcher(L, s, pattern, true)
	var b []byte
	copied, n := 0, 0 // b replaces s[:copied]
	for from := 0; n < limit && from <= len(s); {
		start, end := m.search(from, anchored)
		if start < 0 {
			break
		}
		n++
		b = m.replace(append(b, s[copied:start]...), start, end, by)
		copied = end
		if from = end; start == end {
			from++
		}
		if anchored {
			break
		}
	}
	f.release(m)
	b = append(b, s[copied:]...)
	st.make(L, len(b))
	L.Push(lua.LString(view(b)))
	L.Push(lua.LNumber(n))
	return 2
}

// replace appends the replacement of a match.
func (m *matcher) replace(b []byte, start, end int, by lua.LValue) []byte {
	var v lua.LValue
	switch by := by.(type) {
	case *lua.LFunction:
		m.L.Push(by)
		m.L.Call(m.pushCaptures(start, end, true), 1)
		v = m.L.Get(-1)
		m.L.Pop(1)
	case *lua.LTable:
		v = m.L.GetTable(by, m.capture(0, start, end))
	default:
		text, _ := conv.ToString(by)
		return m.expand(b, text, start, end)
	}
	if !lua.LVAsBool(v) {
		return append(b, m.src[start:end]...)
	}
	text, ok := conv.ToString(v)
	if !ok {
		m.fail("invalid replacement value (a " + v.Type().String() + ")")
	}
	m.st.checkLength(m.L, len(b)+len(text))
	return append(b, text...)
}

// expand appends a text in which %0 stands for the match, %1 to %9 for captures, and %
// before any other byte for that byte.
func (m *matcher) expand(b []byte, text string, start, end int) []byte {
	for {
		plain, escaped, found := strings.Cut(text, "%")
		m.st.Spend(m.L, 1+len(plain)/16)
		m.st.checkLength(m.L, len(b)+len(plain))
		b = append(b, plain...)
		if !found {
			return b
		}
		c := byte(0) // beyond the end, as in Redis
		if escaped != "" {
			c, escaped = escaped[0], escaped[1:]
		}
		switch {
		case c == '0':
			b = append(b, m.src[start:end]...)
		case conv.IsDigit(int(c)):
			captured, _ := conv.ToString(m.capture(int(c-'1'), start, end))
			b = append(b, captured...)
		default:
			b = append(b, c)
		}
		text = escaped
	}
}
