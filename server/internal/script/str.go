package script

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

func bytesString(b []byte) string { return unsafe.String(&b[0], len(b)) }

func (st *State) stringLibrary() *lua.LTable {
	functions := map[string]lua.LGFunction{
		"byte": st.strByte, "char": st.strChar, "dump": st.strDump, "find": st.strFind, "format": st.strFormat,
		"gmatch": st.strGmatch, "gsub": st.strGsub, "len": st.strLen, "lower": st.strLower, "match": st.strMatch,
		"rep": st.strRep, "reverse": st.strReverse, "sub": st.strSub, "upper": st.strUpper,
	}
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

// place converts a position that may count from the end to one that counts from the
// start.
func place(i, n int) int {
	if i < 0 {
		i += n + 1
	}
	return max(i, 0)
}

func (st *State) strByte(L *lua.LState) int {
	s := st.checkString(L, 1)
	i := place(st.optInt(L, 2, 1), len(s))
	j := place(st.optInt(L, 3, i), len(s))
	i, j = max(i, 1), min(j, len(s))
	if i > j {
		return 0
	}
	if j-i+1 >= maxUnpack {
		st.Raise(L, "string slice too long")
	}
	for k := i; k <= j; k++ {
		L.Push(lua.LNumber(s[k-1]))
	}
	return j - i + 1
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
	i := place(st.checkInt(L, 2), len(s))
	j := place(st.optInt(L, 3, -1), len(s))
	i, j = max(i, 1), min(j, len(s))
	if i > j {
		L.Push(lua.LString(""))
	} else {
		L.Push(lua.LString(s[i-1 : j]))
	}
	return 1
}

func (st *State) strFind(L *lua.LState) int { return st.search(L, true) }

func (st *State) strMatch(L *lua.LState) int { return st.search(L, false) }

func (st *State) search(L *lua.LState, find bool) int {
	s, p := st.checkString(L, 1), st.checkString(L, 2)
	init := place(st.optInt(L, 3, 1), len(s)) - 1
	init = min(max(init, 0), len(s))
	if find && (lua.LVAsBool(L.Get(4)) || !strings.ContainsAny(p, "^$*+?.([%-")) {
		if i := strings.Index(s[init:], p); i >= 0 {
			L.Push(lua.LNumber(init + i + 1))
			L.Push(lua.LNumber(init + i + len(p)))
			return 2
		}
		L.Push(lua.LNil)
		return 1
	}
	anchor := strings.HasPrefix(p, "^")
	if anchor {
		p = p[1:]
	}
	m := &matcher{st: st, L: L, src: s, pat: p}
	for at := init; at <= len(s); at++ {
		m.level = 0
		if e := m.match(at, 0); e >= 0 {
			if find {
				L.Push(lua.LNumber(at + 1))
				L.Push(lua.LNumber(e))
				return m.pushCaptures(at, e, false) + 2
			}
			return m.pushCaptures(at, e, true)
		}
		if anchor {
			break
		}
	}
	L.Push(lua.LNil)
	return 1
}

func (st *State) strGmatch(L *lua.LState) int {
	s, p := st.checkString(L, 1), st.checkString(L, 2)
	at := 0
	L.Push(st.function(func(L *lua.LState) int {
		m := &matcher{st: st, L: L, src: s, pat: p}
		for ; at <= len(s); at++ {
			m.level = 0
			if e := m.match(at, 0); e >= 0 {
				start := at
				if at = e; e == start {
					at++
				}
				return m.pushCaptures(start, e, true)
			}
		}
		return 0
	}))
	return 1
}

func (st *State) strGsub(L *lua.LState) int {
	s, p := st.checkString(L, 1), st.checkString(L, 2)
	replacement := L.Get(3)
	if t, ok := replacement.(*lua.LTable); ok {
		replacement = t
	}
	switch replacement.(type) {
	case lua.LNumber, lua.LString, *lua.LFunction, *lua.LTable:
	default:
		st.argError(L, 3, "string/function/table expected")
	}
	limit := st.optInt(L, 4, len(s)+1)
	anchor := strings.HasPrefix(p, "^")
	if anchor {
		p = p[1:]
	}
	m := &matcher{st: st, L: L, src: s, pat: p}
	var b []byte
	at, n := 0, 0
	for n < limit {
		m.level = 0
		e := m.match(at, 0)
		if e >= 0 {
			n++
			b = m.replace(b, at, e, replacement)
		}
		switch {
		case e >= 0 && e > at:
			at = e
		case at < len(s):
			b = append(b, s[at])
			at++
		default:
			at = len(s) + 1
		}
		if at > len(s) || anchor {
			break
		}
	}
	if at < len(s) {
		b = append(b, s[at:]...)
	}
	st.make(L, len(b))
	L.Push(lua.LString(view(b)))
	L.Push(lua.LNumber(n))
	return 2
}

// replace appends the replacement of a match from s to e.
func (m *matcher) replace(b []byte, s, e int, by lua.LValue) []byte {
	var v lua.LValue
	switch by := by.(type) {
	case *lua.LFunction:
		m.L.Push(by)
		m.L.Call(m.pushCaptures(s, e, true), 1)
		v = m.L.Get(-1)
		m.L.Pop(1)
	case *lua.LTable:
		v = m.L.GetTable(by, m.capture(0, s, e))
	default:
		text, _ := ToString(by)
		for i := 0; i < len(text); i++ {
			if m.st.Spend(m.L, 1); len(b) > m.st.most {
				m.st.checkLength(m.L, len(b))
			}
			if text[i] != patternEscape {
				b = append(b, text[i])
				continue
			}
			i++
			switch {
			case i >= len(text): // C reads the NUL at the end
				b = append(b, 0)
			case !isDigit(int(text[i])):
				b = append(b, text[i])
			case text[i] == '0':
				b = append(b, m.src[s:e]...)
			default:
				c, _ := ToString(m.capture(int(text[i]-'1'), s, e))
				b = append(b, c...)
			}
		}
		return b
	}
	if !lua.LVAsBool(v) {
		return append(b, m.src[s:e]...)
	}
	text, ok := ToString(v)
	if !ok {
		m.fail("invalid replacement value (a " + v.Type().String() + ")")
	}
	m.st.checkLength(m.L, len(b)+len(text))
	return append(b, text...)
}

func (st *State) strFormat(L *lua.LState) int {
	format := st.checkString(L, 1)
	b := &bytes.Buffer{}
	arg := 1
	for i := 0; i < len(format); i++ {
		st.Spend(L, 1)
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		i++
		if i < len(format) && format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		if arg++; arg > L.GetTop() {
			st.argError(L, arg, "no value")
		}
		start := i
		for i < len(format) && strings.IndexByte("-+ #0", format[i]) >= 0 {
			i++
		}
		if i-start >= 6 {
			st.Raise(L, "invalid format (repeated flags)")
		}
		s := spec{flags: format[start:i], precision: -1}
		digits := func() (n int) {
			for k := 0; k < 2 && i < len(format) && isDigit(int(format[i])); k++ {
				n = 10*n + int(format[i]-'0')
				i++
			}
			return n
		}
		s.width = digits()
		if i < len(format) && format[i] == '.' {
			i++
			s.precision = digits()
		}
		if i < len(format) && isDigit(int(format[i])) {
			st.Raise(L, "invalid format (width or precision too long)")
		}
		verb := byte(0)
		if i < len(format) {
			verb = format[i]
		}
		switch verb {
		case 'c':
			s.pad(b, string([]byte{byte(toInt32(st.checkNumber(L, arg)))}))
		case 'd', 'i':
			s.integer(b, toInt(st.checkNumber(L, arg)))
		case 'o', 'u', 'x', 'X':
			s.unsigned(b, toUint(st.checkNumber(L, arg)), verb)
		case 'e', 'E', 'f', 'g', 'G':
			s.float(b, st.checkNumber(L, arg), verb)
		case 'q':
			text := st.checkString(L, arg)
			st.checkLength(L, b.Len()+len(text))
			writeQuoted(b, text)
		case 's':
			text := st.checkString(L, arg)
			st.checkLength(L, b.Len()+len(text))
			if s.precision < 0 && len(text) >= 100 {
				b.WriteString(text) // unchanged, including NULs
				break
			}
			text = cString(text)
			if s.precision >= 0 && s.precision < len(text) {
				text = text[:s.precision]
			}
			s.pad(b, text)
		default:
			st.Raise(L, "invalid option '%"+cString(string([]byte{verb}))+"' to 'format'")
		}
	}
	st.make(L, b.Len())
	L.Push(lua.LString(view(b.Bytes())))
	return 1
}

// toUint converts as C does on amd64.
func toUint(f float64) uint64 {
	if f >= 1<<63 {
		return uint64(toInt(f-1<<63)) ^ 1<<63
	}
	return uint64(toInt(f))
}

// spec is a directive of format.
type spec struct {
	flags            string
	width, precision int
}

func (s *spec) has(flag byte) bool { return strings.IndexByte(s.flags, flag) >= 0 }

func (s *spec) pad(b *bytes.Buffer, text string) {
	n := s.width - len(text)
	if !s.has('-') {
		for ; n > 0; n-- {
			b.WriteByte(' ')
		}
	}
	b.WriteString(text)
	for ; n > 0; n-- {
		b.WriteByte(' ')
	}
}

// number writes a sign, a prefix and digits, padded with zeros if requested.
func (s *spec) number(b *bytes.Buffer, sign, digits string, zeros bool) {
	if zeros && !s.has('-') {
		if n := s.width - len(sign) - len(digits); n > 0 {
			digits = strings.Repeat("0", n) + digits
		}
	}
	s.pad(b, sign+digits)
}

func (s *spec) digits(text string) string {
	if s.precision == 0 && text == "0" {
		return ""
	}
	if n := s.precision - len(text); n > 0 {
		return strings.Repeat("0", n) + text
	}
	return text
}

func (s *spec) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case s.has('+'):
		return "+"
	case s.has(' '):
		return " "
	}
	return ""
}

func (s *spec) integer(b *bytes.Buffer, n int64) {
	text := strings.TrimPrefix(strconv.FormatInt(n, 10), "-")
	s.number(b, s.sign(n < 0), s.digits(text), s.has('0') && s.precision < 0)
}

func (s *spec) unsigned(b *bytes.Buffer, n uint64, verb byte) {
	var text, prefix string
	switch verb {
	case 'o':
		text = s.digits(strconv.FormatUint(n, 8))
		if s.has('#') && !strings.HasPrefix(text, "0") {
			text = "0" + text
		}
	case 'u':
		text = s.digits(strconv.FormatUint(n, 10))
	default:
		text = s.digits(strconv.FormatUint(n, 16))
		if s.has('#') && n != 0 {
			prefix = "0x"
		}
		if verb == 'X' {
			text, prefix = strings.ToUpper(text), strings.ToUpper(prefix)
		}
	}
	s.number(b, prefix, text, s.has('0') && s.precision < 0)
}

func (s *spec) float(b *bytes.Buffer, f float64, verb byte) {
	upper := verb < 'a'
	sign := s.sign(math.Signbit(f))
	f = math.Abs(f)
	if math.IsInf(f, 0) || f != f {
		text := "inf"
		if f != f {
			text = "nan"
		}
		if upper {
			text = strings.ToUpper(text)
		}
		s.pad(b, sign+text)
		return
	}
	precision := s.precision
	if precision < 0 {
		precision = 6
	}
	var text string
	switch verb | 32 {
	case 'g':
		if precision == 0 {
			precision = 1
		}
		if s.has('#') {
			text = fmt.Sprintf("%#.*g", precision, f)
		} else {
			text = strconv.FormatFloat(f, 'g', precision, 64)
		}
	default:
		text = strconv.FormatFloat(f, verb|32, precision, 64)
		if precision == 0 && s.has('#') {
			if i := strings.IndexByte(text, 'e'); i >= 0 {
				text = text[:i] + "." + text[i:]
			} else {
				text += "."
			}
		}
	}
	if upper {
		text = strings.ToUpper(text)
	}
	s.number(b, sign, text, s.has('0'))
}

func writeQuoted(b *bytes.Buffer, s string) {
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\', '\n':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\r':
			b.WriteString("\\r")
		case 0:
			b.WriteString("\\000")
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}
