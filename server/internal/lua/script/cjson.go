package script

import (
	"fmt"
	"math"

	lua "github.com/yuin/gopher-lua"
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

// jsonLibrary is cjson 2.1 in Redis's version.
func (st *State) jsonLibrary() *lua.LTable {
	st.null = &lua.LUserData{Metatable: lua.LNil}
	return st.newJSON()
}

// jsonSetting changes a setting to argument n, unless that is nil, and returns its value.
type jsonSetting func(L *lua.LState, n int) lua.LValue

func (st *State) jsonInteger(v *int, lo, hi int) jsonSetting {
	return func(L *lua.LState, n int) lua.LValue {
		if L.Get(n) != lua.LNil {
			number := st.checkInt32(L, n)
			if number < lo || number > hi {
				st.argError(L, 1, fmt.Sprintf("expected integer between %d and %d", lo, hi))
			}
			*v = number
		}
		return lua.LNumber(*v)
	}
}

func (st *State) jsonFlag(v *bool) jsonSetting {
	return func(L *lua.LState, n int) lua.LValue {
		switch arg := L.Get(n).(type) {
		case *lua.LNilType:
		case lua.LBool:
			*v = bool(arg)
		default:
			*v = st.checkOption(L, n, "", "off", "on") == "on"
		}
		return lua.LBool(*v)
	}
}

func (st *State) jsonInvalid(v *string) jsonSetting {
	return func(L *lua.LState, n int) lua.LValue {
		switch arg := L.Get(n); arg {
		case lua.LNil:
		case lua.LTrue:
			*v = "on"
		case lua.LFalse:
			*v = "off"
		default:
			*v = st.checkOption(L, n, "", "off", "on", "null")
		}
		if *v == "null" {
			return lua.LString("null")
		}
		return lua.LBool(*v == "on")
	}
}

// newJSON returns a module with settings of its own.
func (st *State) newJSON() *lua.LTable {
	s := &jsonSettings{
		sparseRatio: 2, sparseSafe: 10, encodeDepth: 1000, decodeDepth: 1000, encodeInvalid: "off", decodeInvalid: true,
		precision: 14, keepBuffer: true,
	}
	one := func(f func(L *lua.LState) lua.LValue) lua.LGFunction {
		return func(L *lua.LState) int {
			if L.GetTop() != 1 {
				st.argError(L, 1, "expected 1 argument")
			}
			L.Push(f(L))
			return 1
		}
	}
	t := st.library(map[string]lua.LGFunction{
		"encode": one(func(L *lua.LState) lua.LValue { return st.encodeJSON(L, s, L.Get(1)) }),
		"decode": one(func(L *lua.LState) lua.LValue { return st.decodeJSON(L, s, st.checkString(L, 1)) }),
		"new": func(L *lua.LState) int {
			L.Push(st.newJSON())
			return 1
		},
	})
	for name, settings := range map[string][]jsonSetting{
		"encode_sparse_array": {
			st.jsonFlag(&s.sparseConvert), st.jsonInteger(&s.sparseRatio, 0, math.MaxInt32), st.jsonInteger(&s.sparseSafe, 0, math.MaxInt32),
		},
		"encode_max_depth":           {st.jsonInteger(&s.encodeDepth, 1, math.MaxInt32)},
		"decode_max_depth":           {st.jsonInteger(&s.decodeDepth, 1, math.MaxInt32)},
		"encode_number_precision":    {st.jsonInteger(&s.precision, 1, 14)},
		"decode_array_with_array_mt": {st.jsonFlag(&s.arrayTables)},
		"encode_keep_buffer":         {st.jsonFlag(&s.keepBuffer)},
		"encode_invalid_numbers":     {st.jsonInvalid(&s.encodeInvalid)},
		"decode_invalid_numbers":     {st.jsonFlag(&s.decodeInvalid)},
	} {
		t.RawSetString(name, st.function(func(L *lua.LState) int {
			if L.GetTop() > len(settings) {
				st.argError(L, len(settings)+1, "found too many arguments")
			}
			L.SetTop(len(settings))
			for i, setting := range settings {
				L.Push(setting(L, i+1))
			}
			return len(settings)
		}))
	}
	t.RawSetString("null", st.null)
	t.RawSetString("_NAME", lua.LString("cjson"))
	t.RawSetString("_VERSION", lua.LString("2.1.0"))
	return t
}
