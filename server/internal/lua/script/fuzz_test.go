package script

import (
	"fmt"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/lua"
)

// libraries calls the library functions that decode, format or match with two arbitrary strings. A value that can be
// decoded is encoded and decoded again, twice, and stays the same in the second round, but for what cjson decodes and
// does not encode, as in Redis: infinity. The order of an object's names may change with each round, as in Redis: names
// whose hashes collide stand in the order of their insertion.
const libraries = `
local how, data = ARGV[1], ARGV[2]
local function same(a, b)
	if type(a) ~= 'table' or type(b) ~= 'table' then return a == b end
	for k, v in pairs(a) do if not same(v, b[k]) then return false end end
	for k in pairs(b) do if a[k] == nil then return false end end
	return true
end
local function both(decode, encode)
	local ok, v = pcall(decode, data)
	local can, again = pcall(encode, v)
	if not can and not again:find('must not be NaN or Inf', 1, true) then error(again) end
	if ok and can then
		local w = decode(again)
		if not same(w, decode(encode(w))) then error('BUG: ' .. again .. ' is then ' .. encode(w)) end
	end
end
both(cjson.decode, cjson.encode)
pcall(cmsgpack.pack, data, how, {[data] = how, 1, 2.5})
local unpacked = {pcall(cmsgpack.unpack, data)}
if unpacked[1] then cmsgpack.pack(unpack(unpacked)) end
pcall(cmsgpack.unpack_one, data, #how)
pcall(cmsgpack.unpack_limit, data, #how, #how)
local fields = {pcall(struct.unpack, how, data)}
if fields[1] then pcall(struct.pack, how, unpack(fields, 2)) end
pcall(struct.pack, how, data, #data, data, 1, 2, 3)
pcall(struct.size, how)
pcall(string.format, how, data, #data, 1.5, data, -1, 2^53)
pcall(string.find, data, how)
pcall(string.match, data, how)
pcall(string.gsub, data, how, data)
pcall(string.gsub, data, how, '%0%1')
pcall(function() for a, b in string.gmatch(data, how) do end end)
pcall(tonumber, data, #how)
pcall(loadstring, data)
pcall(bit.tohex, tonumber(data) or 0, tonumber(how) or 0)
`

// FuzzLibraries: whatever the libraries of scripts are given, they end with a value or an error, in bounded time
// and memory.
func FuzzLibraries(f *testing.F) {
	for _, seed := range [][2]string{
		{"", `{"a": [1, 2.5e3, "\u00e9\ud83d\ude00", null, true], "b": {}}`}, {"", `[[[[[1]]]]]`},
		{"<i4>dc0s!8Hx", "\x04\x00\x00\x00abcdefgh\x03text\x00abc"}, {"I32c3", "0123456789012345678901234567890123456789"},
		{"", "\x93\x01\xa3abc\x82\xa1k\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00\xc0\xd9\x02xy"}, {"", "\xdd\xff\xff\xff\xff\xdd\xff\xff\xff\xff"},
		{"", "\xdf\x00\x00\x00\x01\xc4\x01"}, {"%5.3d|%-10s|%q|%g|%%|%x|%c", "text"}, {"(%a+)%s*=%s*(%b{})[^%d]-$", "key = {a{b}c} 1"},
		{"%f[%w]%w+()", "THE (quick) fox"}, {".-.-.-.-.-b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, {"16", "0xff"},
		{"", `[1E1000, -1E1000]`}, {"", `{"0": 1, "2": 2}`},
		{"", strings.Repeat("\xdd\xff\xff\xff\xff", 2000) + strings.Repeat("x", 100_000)},
	} {
		f.Add(seed[0], seed[1])
	}
	st := machine()
	st.vm.MaxString = 1 << 20
	fn, err := st.Compile(libraries, "libraries")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, how, data string) {
		deadline := time.Now().Add(100 * time.Millisecond)
		st.Running, st.Interrupt = true, func() *lua.Table {
			if time.Now().Before(deadline) {
				return nil
			}
			return Library()
		}
		st.SetArguments(nil, [][]byte{[]byte(how), []byte(data)})
		hung := time.AfterFunc(2*time.Minute, func() { panic(fmt.Sprintf("hangs: %q, %q", how, data)) })
		before := allocated()
		_, failed := st.Call(fn)
		hung.Stop()
		if failed != nil && time.Now().Before(deadline) {
			t.Fatalf("%q, %q: %s", how, data, lua.Display(failed.Value))
		}
		if took := allocated() - before; took > 64<<20 {
			t.Fatalf("%.300q, %.300q: %d MB", how, data, took>>20)
		}
	})
}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
