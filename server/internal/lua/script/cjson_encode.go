package script

import (
	"fmt"
	"math"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// jsonEncoder appends values to a text.
type jsonEncoder struct {
	*call
	*jsonSettings
	text []byte
}

func (c *call) encodeJSON(s *jsonSettings) {
	e := jsonEncoder{call: c, jsonSettings: s, text: c.buffer()}
	e.value(c.at(1), 0)
	c.pushBuffer(e.text)
}

func (e *jsonEncoder) refuse(v lua.Value, reason string) {
	e.raise("Cannot serialise " + v.Kind().String() + ": " + reason)
}

func (e *jsonEncoder) add(text string) { e.text = append(e.text, text...) }

// value appends a value that is inside depth tables.
func (e *jsonEncoder) value(v lua.Value, depth int) {
	switch v.Kind() {
	case lua.KindString:
		s, _ := v.Str()
		e.string(s)
	case lua.KindNumber:
		f, _ := v.Number()
		e.number(f)
	case lua.KindBool:
		if v.Truth() {
			e.add("true")
		} else {
			e.add("false")
		}
	case lua.KindTable:
		e.table(v.Table(), depth+1)
	case lua.KindNil, lua.KindUserdata:
		e.add("null")
	default:
		e.refuse(v, "type not supported")
	}
	if e.tick(1) {
		e.fits(len(e.text))
	}
}

// string appends a string. Besides what JSON demands, it escapes / and DEL, as cjson.
func (e *jsonEncoder) string(s string) {
	if !e.fits(len(e.text)+len(s)) || !e.tick(len(s)>>8) {
		return
	}
	text := append(e.text, '"')
	plain := 0 // s[plain:i] needs no escapes
	for i := range len(s) {
		c := s[i]
		if c > '/' && c != '\\' && c != 127 || c >= ' ' && c != '"' && c < '/' {
			continue
		}
		if !e.tick(1) || !e.fits(len(text)) {
			return
		}
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
		e.refuse(lua.Number(f), "must not be NaN or Inf")
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
func (e *jsonEncoder) length(t *lua.Table) int {
	longest, items := 0, 0
	for at := 0; e.tick(1); {
		k, _, next := t.Entry(at)
		if k.IsNil() {
			break
		}
		at = next
		f, ok := k.Number()
		if !ok || f < 1 || math.Floor(f) != f {
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
			e.refuse(t.Value(), "excessively sparse array")
		}
		return 0
	}
	return max(longest, 0)
}

// jsonArray is the field of the metatable of a table that is encoded as an array, also if it
// is empty: see decode_array_with_array_mt.
const jsonArray = "__is_cjson_array"

// table appends a table, the depth-th inside each other.
func (e *jsonEncoder) table(t *lua.Table, depth int) {
	if depth > e.encodeDepth || depth > maxUnpack {
		e.raise(fmt.Sprintf("Cannot serialise, excessive nesting (%d)", depth))
		return
	}
	if t.Meta != nil && t.Meta.GetText(jsonArray).Truth() {
		e.array(t, t.Len(), depth)
	} else if n := e.length(t); n > 0 {
		e.array(t, n, depth)
	} else if e.err == nil {
		e.object(t, depth)
	}
}

func (e *jsonEncoder) array(t *lua.Table, n, depth int) {
	if n == 0 {
		e.add("[]")
		return
	}
	separator := byte('[')
	for i := 1; i <= n && e.err == nil; i++ {
		e.text = append(e.text, separator)
		separator = ','
		e.value(t.GetInt(i), depth)
	}
	e.text = append(e.text, ']')
}

func (e *jsonEncoder) object(t *lua.Table, depth int) {
	e.text = append(e.text, '{')
	separator := ""
	for at := 0; e.err == nil; {
		k, v, next := t.Entry(at)
		if k.IsNil() {
			break
		}
		at = next
		e.add(separator)
		separator = ","
		if s, ok := k.Str(); ok {
			e.string(s)
		} else if f, ok := k.Number(); ok {
			e.text = append(e.text, '"')
			e.number(f)
			e.text = append(e.text, '"')
		} else {
			e.refuse(k, "table key must be a number or string")
		}
		e.text = append(e.text, ':')
		e.value(v, depth)
	}
	e.text = append(e.text, '}')
}
