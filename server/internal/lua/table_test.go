package lua_test

import "testing"

// The order of the fields of a table, and the border that # finds, are those of Redis, whose
// replies these are.
func TestOrderOfTables(t *testing.T) {
	vm := machine()
	for source, want := range map[string]string{
		"local r = '' for n = 1, 12 do local t = {} for j = 1, n do t['k' .. j * 7] = j end for k, v in pairs(t) do r = r .. v .. ' ' end r = r .. '| ' end return r": "1 | 2 1 | 3 1 2 | 3 1 2 4 | 4 2 1 5 3 | 4 2 6 1 5 3 | 4 2 7 6 1 5 3 | 4 8 2 7 6 1 5 3 | 5 2 9 3 8 7 6 1 4 | " +
			"5 2 9 3 8 7 6 1 10 4 | 5 2 11 9 3 8 7 6 1 10 4 | 5 2 11 9 3 8 4 7 6 1 10 12 | ",
		"local t = {} t[true] = 1 t[false] = 2 t.a = 1 t.b = 2 t[0] = 1 t[-1] = 1 t[1.5] = 1 t[2.5] = 1 t[1e100] = 1 local r = '' for k in pairs(t) do r = r .. tostring(k) .. ' ' end return r": "false true b 2.5 -1 1e+100 a 1.5 0 ",
		"local t = {} for i = 1, 60 do local s = 'q' for j = 1, i do s = s .. 'q' end t[s] = i end local r = '' for k, v in pairs(t) do r = r .. v .. ' ' end return r": "28 25 52 16 27 29 26 7 8 3 1 35 60 49 59 58 32 57 50 17 31 38 19 54 42 6 53 45 56 4 47 41 9 12 22 46 20 2 51 44 40 13 43 39 24 34 36 33 55 23 " +
			"11 21 18 30 5 37 10 15 48 14 ",
		"local r = '' for n = 1, 20 do local t = {} for j = 1, n do t[j * 37 % 101] = j end r = r .. #t .. ' ' end return r": "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 ",
		"return #{1, 2, 3, nil, 5, nil, nil, 8}, #{1, 2, 3, nil, 5, nil, nil}, #{nil, nil, 3}, #{n = 1, nil, 2}":             "8 5 3 2",
		"local t = {} t[1] = 1 t[2] = 2 t[4] = 4 return #t":                                                                  "4",
		"local r, t = '', {} for i = 1, 20 do t[i] = i end for i = 20, 1, -2 do t[i] = nil r = r .. #t .. ' ' end return r":  "19 17 15 13 11 9 7 5 3 1 ",
		"local t = {a = 1, b = 2, c = 3, d = 4} local n = 0 for k in pairs(t) do t[k] = nil n = n + 1 end return n, next(t)": "4 nil nil",
		"return pcall(next, {}, 1)": "false invalid key to 'next'",
	} {
		if got := run(t, vm, source); got != want {
			t.Errorf("%s\n got %s\nwant %s", source, got, want)
		}
	}
}
