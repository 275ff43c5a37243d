package script

import (
	"fmt"
	"math"

	lua "github.com/yuin/gopher-lua"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// jsonEncoder appends values to a text.
type jsonEncoder struct {
	*jsonSettings
	st   *State
	L    *lua.LState
	text []byte
}

func (st *State) encodeJSON(L *lua.LState, s *jsonSettings, v lua.LValue) lua.LValue {
	e := jsonEncoder{jsonSettings: s, st: st, L: L, text: make([]byte, 0, 64)}
	e.value(v, 0)
	return lua.LString(view(e.text))
}

func (e *jsonEncoder) fail(v lua.LValue, reason string) {
	e.st.Raise(e.L, "Cannot serialise "+v.Type().String()+": "+reason)
}

func (e *jsonEncoder) add(text string) { e.text = append(e.text, text...) }

// value appends a value that is inside depth tables.
func (e *jsonEncoder) value(v lua.LValue, depth int) {
	switch v := v.(type) {
	case lua.LString:
		e.string(string(v))
	case lua.LNumber:
		e.number(float64(v))
	case lua.LBool:
		e.add(v.String())
	case *lua.LTable:
		e.table(e.st.real(v), depth+1)
	case *lua.LNilType:
		e.add("null")
	default:
		if v != lua.LValue(e.st.null) {
			e.fail(v, "type not supported")
		}
		e.add("null")
	}
	e.st.Spend(e.L, 1)
	e.st.checkLength(e.L, len(e.text))
}

// string appends a string. Besides what JSON demands, it escapes / and DEL, as cjson.
func (e *jsonEncoder) string(s string) {
	e.st.checkLength(e.L, len(e.text)+len(s))
	e.st.make(e.L, len(s))
	text := append(e.text, '"')
	plain := 0 // s[plain:i] needs no escapes
	for i := range len(s) {
		c := s[i]
		if c > '/' && c != '\\' && c != 127 || c >= ' ' && c != '"' && c < '/' {
			continue
		}
		e.st.Spend(e.L, 1)
		e.st.checkLength(e.L, len(text))
		text = append(text, s[plain:i]...)
		plain = i + 1
		letter := c
		switch c {
		case '"', '\\', '/':
		case '\n':
			letter = 'n'
		case '\t':
			letter = 't'
		case '\r':
			letter = 'r'
		case '\b':
			letter = 'b'
		case '\f':
			letter = 'f'
		default:
			const hex = "0123456789abcdef"
			text = append(text, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			continue
		}
		text = append(text, '\\', letter)
	}
	e.text = append(append(text, s[plain:]...), '"')
}

func (e *jsonEncoder) number(f float64) {
	switch special := math.IsNaN(f) || math.IsInf(f, 0); {
	case special && e.encodeInvalid == "off":
		e.fail(lua.LNumber(f), "must not be NaN or Inf")
	case special && e.encodeInvalid == "null":
		e.add("null")
	case math.IsNaN(f):
		e.add("nan")
	case e.precision == 14:
		e.text = conv.AppendNumber(e.text, f)
	default:
		e.text = conv.AppendG(e.text, f, e.precision)
	}
}

// length returns the length of t as an array; 0 if it is an object: if it has other
// keys than positive integers, or too few of these and such tables are converted.
func (e *jsonEncoder) length(t *lua.LTable) int {
	longest, items := t.MaxN(), 0
	for i := 1; i <= longest; i++ {
		e.st.Spend(e.L, 1)
		if t.RawGetInt(i) != lua.LNil {
			items++
		}
	}
	var last lua.LValue = lua.LNil
	if longest > 0 {
		last = lua.LNumber(longest)
	}
	for k, _ := next(t, last); k != lua.LNil; k, _ = next(t, k) { // keys outside of the table's array
		e.st.Spend(e.L, 1)
		f, ok := k.(lua.LNumber)
		if !ok || f < 1 || math.Floor(float64(f)) != float64(f) {
			return 0
		}
		items++
		switch {
		case f > math.MaxInt32: // its conversion to a C int is the lowest one
			longest = math.MinInt32
		case int(f) > longest:
			longest = int(f)
		}
	}
	if e.sparseRatio > 0 && longest > e.sparseSafe && longest > items*e.sparseRatio {
		if !e.sparseConvert {
			e.fail(t, "excessively sparse array")
		}
		return 0
	}
	return max(longest, 0)
}

// jsonArray is the field of the metatable of a table that is encoded as an array, also if it
// is empty: see decode_array_with_array_mt.
const jsonArray = "__is_cjson_array"

// table appends a table, the depth-th inside each other.
func (e *jsonEncoder) table(t *lua.LTable, depth int) {
	if depth > e.encodeDepth || depth > maxUnpack {
		e.st.Raise(e.L, fmt.Sprintf("Cannot serialise, excessive nesting (%d)", depth))
	}
	if meta, ok := t.Metatable.(*lua.LTable); ok && lua.LVAsBool(e.st.real(meta).RawGetString(jsonArray)) {
		e.array(t, t.Len(), depth)
	} else if n := e.length(t); n > 0 {
		e.array(t, n, depth)
	} else {
		e.object(t, depth)
	}
}

func (e *jsonEncoder) array(t *lua.LTable, n, depth int) {
	if n == 0 {
		e.add("[]")
		return
	}
	separator := byte('[')
	for i := 1; i <= n; i++ {
		e.text = append(e.text, separator)
		separator = ','
		v := t.RawGetInt(i)
		if v == lua.LNil { // or it is outside of the table's array
			v = t.RawGet(lua.LNumber(i))
		}
		e.value(v, depth)
	}
	e.text = append(e.text, ']')
}

func (e *jsonEncoder) object(t *lua.LTable, depth int) {
	e.text = append(e.text, '{')
	separator := ""
	for k, v := next(t, lua.LNil); k != lua.LNil; k, v = next(t, k) {
		e.add(separator)
		separator = ","
		switch k := k.(type) {
		case lua.LString:
			e.string(string(k))
		case lua.LNumber:
			e.text = append(e.text, '"')
			e.number(float64(k))
			e.text = append(e.text, '"')
		default:
			e.fail(k, "table key must be a number or string")
		}
		e.text = append(e.text, ':')
		e.value(v, depth)
	}
	e.text = append(e.text, '}')
}
