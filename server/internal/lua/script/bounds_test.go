package script

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/lua"
)

// Constants are found by their place, however many there are.
func TestManyConstants(t *testing.T) {
	var b strings.Builder
	b.WriteString("local t, u = {}, {} ")
	for i := range 3000 {
		fmt.Fprintf(&b, "t.k%d = 'v%d' u[%d.5] = t.k%d ", i, i, i, i)
	}
	b.WriteString("return t.k0 .. t.k299 .. t.k2999 .. u[2999.5] .. u[7.5]")
	if got := machine().eval(t, b.String()); got != "v0v299v2999v2999v7" {
		t.Error(got)
	}
}

// Go functions that go through much count what they do, so that a script can end within
// them though the timer does not come: the looks are counted.
func TestLooksWithinFunctions(t *testing.T) {
	const mb = "local s = string.rep('a', 2^20) "
	for source, least := range map[string]int{
		"local t = {} for i = 1, 400000 do t[i * 2] = i end return #cjson.encode(t)":                                                     15 + 18,
		"local t = {} for i = 1, 400000 do t['k' .. i] = i end return #cjson.encode(t)":                                                  15 + 18,
		"local t = {} for i = 1, 400000 do t[i] = i end return #cmsgpack.pack(t)":                                                        15 + 18,
		"local t = {} for i = 1, 400000 do t[i] = i end return table.maxn(t)":                                                            15 + 9,
		mb + "return #cjson.encode((s:gsub('a', '\\1')))":                                                                                100,
		mb + "return #cjson.decode('\"' .. s .. '\"')":                                                                                   3,
		mb + "return cjson.decode(s:gsub('a', ' ') .. '1')":                                                                              100,
		"local s = string.rep('a', 3000) return s:find('a*b')":                                                                           20,
		mb + "return s:find('^[^b]*b')":                                                                                                  5,
		"return string.find('a', '[' .. string.rep('b', 2^20) .. ']')":                                                                   5,
		mb + "return s:find('^%bab')":                                                                                                    3,
		"return #string.format(string.rep('x', 2^24))":                                                                                   2,
		"return #string.format(string.rep('%%', 2^20))":                                                                                  50,
		"return #struct.pack(string.rep('x', 2^20))":                                                                                     50,
		"return struct.unpack(string.rep('<', 2^20), '')":                                                                                50,
		"return struct.size(string.rep('x', 2^20))":                                                                                      50,
		"local s = string.rep('x', 2^24) for i = 1, 5 do s = s:upper() s = s:lower() end":                                                20,
		"local s = string.rep('x', 2^24) for i = 1, 5 do s = s:reverse() end":                                                            10,
		"return loadstring(string.rep('x = 1 ', 50000)) == nil":                                                                          50,
		"local s = string.rep('x', 2^24) for i = 1, 100 do local y = s .. i end":                                                         10,
		"local s = string.rep('x', 2^24) for i = 1, 100 do local y = string.format('%s', s) end":                                         10,
		"local t = {} for i = 1, 100000 do t[i] = 'x' end for i = 1, 10 do table.concat(t, ',') end":                                     40,
		"local s = cmsgpack.pack({1, 2, 3}) s = '\\221\\0\\6\\0\\0' .. string.rep(s, 2 * 196608) return #cmsgpack.unpack(s)":             10,
		"local s = '[' .. string.rep('1,', 400000) .. '1]' return #cjson.decode(s)":                                                      30,
		"local t = {} for j = 1, 20 do for i = 1, 2000 do t[i] = i * 7919 % 2003 end table.sort(t, function(a, b) return a < b end) end": 20,
		"local t = {} for i = 1, 3000 do table.insert(t, 1, i) end":                                                                      10,
	} {
		st := machine()
		looks := 0
		st.Interrupt = func() *lua.Table {
			looks++
			return nil
		}
		got := st.eval(t, source)
		if looks < least {
			t.Errorf("%s: %d looks, at least %d expected (%.80s)", source, looks, least, got)
		}
	}
}

// A short script ends before the first look, which takes as long as the script. A
// longer one does not.
func TestShortScriptsDoNotLook(t *testing.T) {
	for source, want := range map[string]bool{"return 1": false, "for i = 1, 1000 do end return 1": true} {
		st := machine()
		looks := 0
		st.Interrupt = func() *lua.Table { looks++; return nil }
		if got := st.eval(t, source); got != "1" || looks > 0 != want {
			t.Errorf("%s: %s, with %d looks", source, got, looks)
		}
	}
}
