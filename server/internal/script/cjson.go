package script

import (
	"fmt"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// jsonConfig holds the settings of a cjson module.
type jsonConfig struct {
	sparseConvert           bool
	sparseRatio, sparseSafe int
	encodeDepth             int
	decodeDepth             int
	encodeInvalid           string // "off", "on" or "null"
	decodeInvalid           bool
	precision               int
	keepBuffer              bool
}

func defaultJSON() jsonConfig {
	return jsonConfig{
		sparseRatio: 2, sparseSafe: 10, encodeDepth: 1000, decodeDepth: 1000, encodeInvalid: "off", decodeInvalid: true,
		precision: 14, keepBuffer: true,
	}
}

// jsonLibrary is cjson 2.1 in Redis's version.
func (st *State) jsonLibrary() *lua.LTable {
	null := &lua.LUserData{Metatable: lua.LNil}
	st.null = null
	return st.newJSON()
}

// newJSON returns a module with settings of its own.
func (st *State) newJSON() *lua.LTable {
	cfg := defaultJSON()
	arguments := func(L *lua.LState, n int) {
		if L.GetTop() > n {
			st.argError(L, n+1, "found too many arguments")
		}
		L.SetTop(n)
	}
	integer := func(L *lua.LState, i int, v *int, lo, hi int) {
		if L.Get(i) != lua.LNil {
			n := st.checkInt32(L, i)
			if n < lo || n > hi {
				st.argError(L, 1, fmt.Sprintf("expected integer between %d and %d", lo, hi))
			}
			*v = n
		}
		L.Push(lua.LNumber(*v))
	}
	option := func(L *lua.LState, i int, v *bool) {
		if b, ok := L.Get(i).(lua.LBool); ok {
			*v = bool(b)
		} else if L.Get(i) != lua.LNil {
			*v = st.checkOption(L, i, "", "off", "on") == "on"
		}
		L.Push(lua.LBool(*v))
	}
	number := func(v *int, lo, hi int) lua.LGFunction {
		return func(L *lua.LState) int {
			arguments(L, 1)
			integer(L, 1, v, lo, hi)
			return 1
		}
	}
	toggle := func(v *bool) lua.LGFunction {
		return func(L *lua.LState) int {
			arguments(L, 1)
			option(L, 1, v)
			return 1
		}
	}
	t := st.library(map[string]lua.LGFunction{
		"encode": func(L *lua.LState) int {
			if L.GetTop() != 1 {
				st.argError(L, 1, "expected 1 argument")
			}
			e := jsonEncoder{st: st, L: L, cfg: &cfg}
			e.value(L.Get(1), 0)
			L.Push(lua.LString(view(e.b)))
			return 1
		},
		"decode": func(L *lua.LState) int {
			if L.GetTop() != 1 {
				st.argError(L, 1, "expected 1 argument")
			}
			L.Push(st.decodeJSON(L, &cfg, st.checkString(L, 1)))
			return 1
		},
		"encode_sparse_array": func(L *lua.LState) int {
			arguments(L, 3)
			option(L, 1, &cfg.sparseConvert)
			integer(L, 2, &cfg.sparseRatio, 0, math.MaxInt32)
			integer(L, 3, &cfg.sparseSafe, 0, math.MaxInt32)
			return 3
		},
		"encode_max_depth":        number(&cfg.encodeDepth, 1, math.MaxInt32),
		"decode_max_depth":        number(&cfg.decodeDepth, 1, math.MaxInt32),
		"encode_number_precision": number(&cfg.precision, 1, 14),
		"encode_keep_buffer":      toggle(&cfg.keepBuffer),
		"decode_invalid_numbers":  toggle(&cfg.decodeInvalid),
		"encode_invalid_numbers": func(L *lua.LState) int {
			arguments(L, 1)
			switch v := L.Get(1).(type) {
			case *lua.LNilType:
			case lua.LBool:
				cfg.encodeInvalid = "off"
				if v {
					cfg.encodeInvalid = "on"
				}
			default:
				cfg.encodeInvalid = st.checkOption(L, 1, "", "off", "on", "null")
			}
			if cfg.encodeInvalid == "null" {
				L.Push(lua.LString("null"))
			} else {
				L.Push(lua.LBool(cfg.encodeInvalid == "on"))
			}
			return 1
		},
		"new": func(L *lua.LState) int {
			L.Push(st.newJSON())
			return 1
		},
	})
	t.RawSetString("null", st.null)
	t.RawSetString("_NAME", lua.LString("cjson"))
	t.RawSetString("_VERSION", lua.LString("2.1.0"))
	return t
}

type jsonEncoder struct {
	st  *State
	L   *lua.LState
	cfg *jsonConfig
	b   []byte
}

func (e *jsonEncoder) fail(v lua.LValue, reason string) {
	e.st.Raise(e.L, "Cannot serialise "+v.Type().String()+": "+reason)
}

func (e *jsonEncoder) value(v lua.LValue, depth int) {
	switch v := v.(type) {
	case lua.LString:
		e.string(string(v))
	case lua.LNumber:
		e.number(v)
	case lua.LBool:
		if v {
			e.b = append(e.b, "true"...)
		} else {
			e.b = append(e.b, "false"...)
		}
	case *lua.LTable:
		e.table(e.st.real(v), depth+1)
	case *lua.LNilType:
		e.b = append(e.b, "null"...)
	default:
		if v != lua.LValue(e.st.null) {
			e.fail(v, "type not supported")
		}
		e.b = append(e.b, "null"...)
	}
	if e.st.Spend(e.L, 1); len(e.b) > e.st.most {
		e.st.checkLength(e.L, len(e.b))
	}
}

func (e *jsonEncoder) string(s string) {
	const hex = "0123456789abcdef"
	e.st.checkLength(e.L, len(e.b)+len(s))
	e.st.make(e.L, len(s))
	e.b = append(e.b, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c != '/' && c != 127 {
			continue
		}
		if e.st.Spend(e.L, 1); len(e.b) > e.st.most {
			e.st.checkLength(e.L, len(e.b))
		}
		e.b = append(e.b, s[start:i]...)
		start = i + 1
		if k := strings.IndexByte("\"\\/\b\f\n\r\t", c); k >= 0 {
			e.b = append(e.b, '\\', `"\/bfnrt`[k])
		} else {
			e.b = append(e.b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	e.b = append(append(e.b, s[start:]...), '"')
}

func (e *jsonEncoder) number(v lua.LNumber) {
	f := float64(v)
	if f != f || math.IsInf(f, 0) {
		switch e.cfg.encodeInvalid {
		case "off":
			e.fail(v, "must not be NaN or Inf")
		case "null":
			e.b = append(e.b, "null"...)
			return
		}
		if f != f {
			e.b = append(e.b, "nan"...)
			return
		}
	}
	if e.cfg.precision == 14 {
		e.b = AppendNumber(e.b, f)
	} else {
		e.b = appendG(e.b, f, e.cfg.precision)
	}
}

// arrayLength returns the length of t as an array; 0 if it is not an array, or
// empty.
func (e *jsonEncoder) arrayLength(t *lua.LTable) int {
	most, items := 0, 0
	for k, _ := next(t, lua.LNil); k != lua.LNil; k, _ = next(t, k) {
		e.st.Spend(e.L, 1)
		f, ok := k.(lua.LNumber)
		if !ok || f < 1 || f != lua.LNumber(math.Floor(float64(f))) {
			return 0
		}
		most = max(most, int(min(f, math.MaxInt32)))
		items++
	}
	if e.cfg.sparseRatio > 0 && most > items*e.cfg.sparseRatio && most > e.cfg.sparseSafe {
		if !e.cfg.sparseConvert {
			e.fail(t, "excessively sparse array")
		}
		return 0
	}
	return most
}

func (e *jsonEncoder) table(t *lua.LTable, depth int) {
	if depth > e.cfg.encodeDepth || depth > maxUnpack {
		e.st.Raise(e.L, fmt.Sprintf("Cannot serialise, excessive nesting (%d)", depth))
	}
	if n := e.arrayLength(t); n > 0 {
		for i := 1; i <= n; i++ {
			if i == 1 {
				e.b = append(e.b, '[')
			} else {
				e.b = append(e.b, ',')
			}
			e.value(t.RawGet(lua.LNumber(i)), depth)
		}
		e.b = append(e.b, ']')
		return
	}
	e.b = append(e.b, '{')
	first := true
	for k, v := next(t, lua.LNil); k != lua.LNil; k, v = next(t, k) {
		if !first {
			e.b = append(e.b, ',')
		}
		first = false
		switch k := k.(type) {
		case lua.LNumber:
			e.b = append(e.b, '"')
			e.number(k)
			e.b = append(e.b, '"', ':')
		case lua.LString:
			e.string(string(k))
			e.b = append(e.b, ':')
		default:
			e.fail(k, "table key must be a number or string")
		}
		e.value(v, depth)
	}
	e.b = append(e.b, '}')
}

// jsonToken is a kind of token, by its name in messages; an error is any other
// text.
type jsonToken string

const (
	jsonObject   jsonToken = "T_OBJ_BEGIN"
	jsonObjEnd   jsonToken = "T_OBJ_END"
	jsonArray    jsonToken = "T_ARR_BEGIN"
	jsonArrayEnd jsonToken = "T_ARR_END"
	jsonString   jsonToken = "T_STRING"
	jsonNumber   jsonToken = "T_NUMBER"
	jsonBool     jsonToken = "T_BOOLEAN"
	jsonNull     jsonToken = "T_NULL"
	jsonColon    jsonToken = "T_COLON"
	jsonComma    jsonToken = "T_COMMA"
	jsonEnd      jsonToken = "T_END"
)

type jsonDecoder struct {
	st    *State
	L     *lua.LState
	cfg   *jsonConfig
	s     string
	at    int
	depth int

	token  jsonToken
	index  int // where it begins, or what is wrong with it
	text   string
	number float64
}

func (st *State) decodeJSON(L *lua.LState, cfg *jsonConfig, s string) lua.LValue {
	if len(s) >= 2 && (s[0] == 0 || s[1] == 0) {
		st.Raise(L, "JSON parser does not support UTF-16 or UTF-32")
	}
	d := &jsonDecoder{st: st, L: L, cfg: cfg, s: s}
	d.next()
	v := d.value()
	d.next()
	if d.token != jsonEnd {
		d.unexpected("the end")
	}
	return v
}

func (d *jsonDecoder) unexpected(want string) {
	d.st.Raise(d.L, fmt.Sprintf("Expected %s but found %s at character %d", want, d.token, d.index+1))
}

// char returns a byte of the source, NUL beyond its end.
func (d *jsonDecoder) char(i int) byte {
	if i >= len(d.s) {
		return 0
	}
	return d.s[i]
}

func (d *jsonDecoder) bad(msg string) { d.token, d.index = jsonToken(msg), d.at }

func (d *jsonDecoder) next() {
	d.st.Spend(d.L, 1)
	for strings.IndexByte(" \t\n\r", d.char(d.at)) >= 0 {
		if d.at++; d.at%4096 == 0 {
			d.st.Spend(d.L, 4096/16)
		}
	}
	d.index = d.at
	rest := d.s[min(d.at, len(d.s)):]
	single := jsonToken("")
	switch c := d.char(d.at); c {
	case '{':
		single = jsonObject
	case '}':
		single = jsonObjEnd
	case '[':
		single = jsonArray
	case ']':
		single = jsonArrayEnd
	case ',':
		single = jsonComma
	case ':':
		single = jsonColon
	case 0:
		d.token = jsonEnd
		return
	case '"':
		d.string()
		return
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if !d.cfg.decodeInvalid && d.invalidNumber() {
			d.bad("invalid number")
			return
		}
		d.scanNumber()
		return
	default:
		switch {
		case strings.HasPrefix(rest, "true"):
			d.token, d.number, d.at = jsonBool, 1, d.at+4
		case strings.HasPrefix(rest, "false"):
			d.token, d.number, d.at = jsonBool, 0, d.at+5
		case strings.HasPrefix(rest, "null"):
			d.token, d.at = jsonNull, d.at+4
		case d.cfg.decodeInvalid && strings.IndexByte("fiInNt+", c) >= 0 && d.invalidNumber():
			d.scanNumber()
		default:
			d.bad("invalid token")
		}
		return
	}
	d.token = single
	d.at++
}

// invalidNumber reports whether C would parse a number that JSON does not allow.
func (d *jsonDecoder) invalidNumber() bool {
	p := d.at
	switch d.char(p) {
	case '+':
		return true
	case '-':
		p++
	}
	switch c := d.char(p); {
	case c == '0':
		c2 := d.char(p + 1)
		return c2|32 == 'x' || isDigit(int(c2))
	case c <= '9':
		return false
	}
	word := strings.ToLower(d.s[p:min(p+3, len(d.s))])
	return word == "inf" || word == "nan"
}

// scanNumber reads as much as C's strtod does.
func (d *jsonDecoder) scanNumber() {
	n := numberPrefix(d.s[d.at:])
	if n == 0 {
		d.bad("invalid number")
		return
	}
	f, _ := parseNumber(d.s[d.at : d.at+n])
	d.token, d.number = jsonNumber, f
	d.at += n
}

// numberPrefix returns the length of the prefix of s that C's strtod parses as a
// number.
func numberPrefix(s string) int {
	i := 0
	at := func(k int) byte {
		if k < len(s) {
			return s[k]
		}
		return 0
	}
	if at(i) == '-' || at(i) == '+' {
		i++
	}
	lower := strings.ToLower(s[i:min(len(s), i+8)])
	switch {
	case strings.HasPrefix(lower, "infinity"):
		return i + 8
	case strings.HasPrefix(lower, "inf"):
		return i + 3
	case strings.HasPrefix(lower, "nan"):
		return i + 3
	}
	digit := func(c byte) bool { return isDigit(int(c)) }
	exponent := byte('e')
	if at(i) == '0' && at(i+1)|32 == 'x' {
		hex := func(c byte) bool { return isDigit(int(c)) || 'a' <= c|32 && c|32 <= 'f' }
		if hex(at(i+2)) || at(i+2) == '.' && hex(at(i+3)) {
			i, digit, exponent = i+2, hex, 'p'
		}
	}
	start, digits := i, 0
	for ; digit(at(i)); i++ {
		digits++
	}
	if at(i) == '.' {
		i++
		for ; digit(at(i)); i++ {
			digits++
		}
	}
	if digits == 0 {
		return 0
	}
	if i > start && at(i)|32 == exponent {
		j := i + 1
		if at(j) == '-' || at(j) == '+' {
			j++
		}
		if isDigit(int(at(j))) {
			for isDigit(int(at(j))) {
				j++
			}
			i = j
		}
	}
	return i
}

func (d *jsonDecoder) string() {
	d.at++
	var b []byte
	start := d.at
	for {
		c := d.char(d.at)
		switch c {
		case '"':
			if b == nil {
				d.text = d.s[start:d.at]
			} else {
				d.text = view(append(b, d.s[start:d.at]...))
			}
			d.at++
			d.token = jsonString
			return
		case 0:
			d.bad("unexpected end of string")
			return
		case '\\':
			b = append(b, d.s[start:d.at]...)
			if b == nil {
				b = []byte{}
			}
			c := d.char(d.at + 1)
			if c == 'u' {
				r, n := d.unicode(d.at)
				if n == 0 {
					d.bad("invalid unicode escape code")
					return
				}
				b = appendUTF8(b, r)
				d.at += n
			} else {
				k := strings.IndexByte(`"\/bfnrt`, c)
				if k < 0 {
					d.bad("invalid escape code")
					return
				}
				b = append(b, "\"\\/\b\f\n\r\t"[k])
				d.at += 2
			}
			d.st.Spend(d.L, 1)
			start = d.at
		default:
			if d.at++; d.at%4096 == 0 {
				d.st.Spend(d.L, 4096/16)
			}
		}
	}
}

func (d *jsonDecoder) hex4(p int) int {
	v := 0
	for i := range 4 {
		c := d.char(p + i)
		k := strings.IndexByte("0123456789abcdef", c)
		if k < 0 {
			k = strings.IndexByte("0123456789ABCDEF", c)
		}
		if k < 0 {
			return -1
		}
		v = v<<4 | k
	}
	return v
}

// unicode parses an escape at p, and returns its length; 0 if it is invalid.
func (d *jsonDecoder) unicode(p int) (r, n int) {
	r = d.hex4(p + 2)
	if r < 0 {
		return 0, 0
	}
	if r&0xf800 != 0xd800 {
		return r, 6
	}
	if r&0x400 != 0 || d.char(p+6) != '\\' || d.char(p+7) != 'u' {
		return 0, 0
	}
	low := d.hex4(p + 8)
	if low < 0 || low&0xfc00 != 0xdc00 {
		return 0, 0
	}
	return (r&0x3ff)<<10 | low&0x3ff + 0x10000, 12
}

func appendUTF8(b []byte, r int) []byte {
	switch {
	case r <= 0x7f:
		return append(b, byte(r))
	case r <= 0x7ff:
		return append(b, byte(r>>6|0xc0), byte(r&0x3f|0x80))
	case r <= 0xffff:
		return append(b, byte(r>>12|0xe0), byte(r>>6&0x3f|0x80), byte(r&0x3f|0x80))
	}
	return append(b, byte(r>>18|0xf0), byte(r>>12&0x3f|0x80), byte(r>>6&0x3f|0x80), byte(r&0x3f|0x80))
}

func (d *jsonDecoder) descend() {
	if d.depth++; d.depth > d.cfg.decodeDepth || d.depth > maxUnpack/3 {
		d.st.Raise(d.L, fmt.Sprintf("Found too many nested data structures (%d) at character %d", d.depth, d.at))
	}
}

func (d *jsonDecoder) value() lua.LValue {
	switch d.token {
	case jsonString:
		return lua.LString(d.text)
	case jsonNumber:
		return lua.LNumber(d.number)
	case jsonBool:
		return lua.LBool(d.number != 0)
	case jsonObject:
		return d.object()
	case jsonArray:
		return d.array()
	case jsonNull:
		return d.st.null
	}
	d.unexpected("value")
	return nil
}

func (d *jsonDecoder) object() lua.LValue {
	d.descend()
	t := d.st.Table()
	d.next()
	if d.token == jsonObjEnd {
		d.depth--
		return t
	}
	for {
		if d.token != jsonString {
			d.unexpected("object key string")
		}
		key := d.text
		d.next()
		if d.token != jsonColon {
			d.unexpected("colon")
		}
		d.next()
		t.RawSetString(key, d.value())
		d.next()
		switch d.token {
		case jsonObjEnd:
			d.depth--
			return t
		case jsonComma:
		default:
			d.unexpected("comma or object end")
		}
		d.next()
	}
}

func (d *jsonDecoder) array() lua.LValue {
	d.descend()
	t := d.st.Table()
	d.next()
	if d.token == jsonArrayEnd {
		d.depth--
		return t
	}
	for i := 1; ; i++ {
		t.RawSetInt(i, d.value())
		d.next()
		switch d.token {
		case jsonArrayEnd:
			d.depth--
			return t
		case jsonComma:
		default:
			d.unexpected("comma or array end")
		}
		d.next()
	}
}
