package script

import (
	"fmt"
	"math"

	"github.com/zsetd/zsetd/server/internal/lua"
)

// jsonSettings are the settings of a cjson module. See the manual of lua-cjson, by Mark
// Pulford, for their meaning.
type jsonSettings struct {
	sparseConvert           bool
	sparseRatio, sparseSafe int
	encodeDepth             int
	decodeDepth             int
	encodeInvalid           string // "off", "on" or "null"
	decodeInvalid           bool
	precision               int
	keepBuffer              bool // without effect
	arrayTables             bool // arrays are decoded to tables that are marked as such
}

// jsonSetting changes a setting to argument n, unless that is nil, and returns its value.
type jsonSetting func(c *call, n int) lua.Value

func jsonInteger(v *int, lo, hi int) jsonSetting {
	return func(c *call, n int) lua.Value {
		if c.given(n) {
			number := c.int32(n)
			if number < lo || number > hi {
				c.argError(1, fmt.Sprintf("expected integer between %d and %d", lo, hi))
			}
			if c.err == nil {
				*v = number
			}
		}
		return lua.Number(float64(*v))
	}
}

func jsonFlag(v *bool) jsonSetting {
	return func(c *call, n int) lua.Value {
		switch arg := c.at(n); arg.Kind() {
		case lua.KindNil:
		case lua.KindBool:
			*v = arg.Truth()
		default:
			if option := c.option(n, "", "off", "on"); c.err == nil {
				*v = option == "on"
			}
		}
		return lua.Bool(*v)
	}
}

func jsonInvalid(v *string) jsonSetting {
	return func(c *call, n int) lua.Value {
		switch arg := c.at(n); {
		case arg.IsNil():
		case arg == lua.True:
			*v = "on"
		case arg == lua.False:
			*v = "off"
		default:
			if option := c.option(n, "", "off", "on", "null"); c.err == nil {
				*v = option
			}
		}
		if *v == "null" {
			return lua.Text("null")
		}
		return lua.Bool(*v == "on")
	}
}

// newJSON returns a module with settings of its own: cjson 2.1 in Redis's version.
func (st *State) newJSON() *lua.Table {
	s := &jsonSettings{
		sparseRatio: 2, sparseSafe: 10, encodeDepth: 1000, decodeDepth: 1000, encodeInvalid: "off", decodeInvalid: true,
		precision: 14, keepBuffer: true,
	}
	one := func(name string, f func(c *call)) entry {
		return entry{name, func(c *call) {
			if c.len() != 1 {
				c.argError(1, "expected 1 argument")
				return
			}
			f(c)
		}}
	}
	setting := func(name string, settings ...jsonSetting) entry {
		return entry{name, func(c *call) {
			if c.len() > len(settings) {
				c.argError(len(settings)+1, "found too many arguments")
			}
			for i, setting := range settings {
				if c.err == nil {
					c.push(setting(c, i+1))
				}
			}
		}}
	}
	t := st.library(
		one("encode", func(c *call) { c.encodeJSON(s) }),
		one("decode", func(c *call) { c.push(c.decodeJSON(s, c.text(1))) }),
		setting("encode_sparse_array", jsonFlag(&s.sparseConvert), jsonInteger(&s.sparseRatio, 0, math.MaxInt32), jsonInteger(&s.sparseSafe, 0, math.MaxInt32)),
		setting("encode_max_depth", jsonInteger(&s.encodeDepth, 1, math.MaxInt32)),
		setting("decode_max_depth", jsonInteger(&s.decodeDepth, 1, math.MaxInt32)),
		setting("encode_number_precision", jsonInteger(&s.precision, 1, 14)),
		setting("encode_keep_buffer", jsonFlag(&s.keepBuffer)),
		setting("encode_invalid_numbers", jsonInvalid(&s.encodeInvalid)),
		setting("decode_invalid_numbers", jsonFlag(&s.decodeInvalid)),
		setting("decode_array_with_array_mt", jsonFlag(&s.arrayTables)),
		entry{"new", func(c *call) { c.push(c.newJSON().Value()) }},
	)
	t.SetText(nil, "null", lua.Null)
	t.SetText(nil, "_NAME", lua.Text("cjson"))
	t.SetText(nil, "_VERSION", lua.Text("2.1.0"))
	return t
}
