package server_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/rerun"
)

var librariesN = flag.Int("libraries.n", 2000, "`number` of random calls that each library of scripts is compared with")

// prelude defines show, which returns all of its arguments as a text, and call, which
// shows what a function returns or raises.
const prelude = `
local function text(v)
	if type(v) == 'string' then return string.format('%q', v) end
	if type(v) == 'number' then
		if v == 0 then return '0' end
		if v ~= v then return 'nan' end
		return string.format('%.17g', v)
	end
	if type(v) ~= 'table' then return tostring(v) end
	local keys, parts = {}, {}
	for k in pairs(v) do keys[#keys + 1] = k end
	table.sort(keys, function(a, b)
		if type(a) ~= type(b) then return type(a) < type(b) end
		if type(a) == 'boolean' then return tostring(a) < tostring(b) end
		return a < b
	end)
	for i, k in ipairs(keys) do parts[i] = text(k) .. '=' .. text(v[k]) end
	return '{' .. table.concat(parts, ' ') .. '}'
end
local function show(...)
	local parts = {}
	for i = 1, select('#', ...) do parts[i] = text((select(i, ...))) end
	return table.concat(parts, ', ')
end
local function call(...) return show(pcall(...)) end
local function number(s) return tonumber(s) or s end
`

// librarySources are scripts by library, and for each what draws its arguments.
func (r luaFuzzer) libraryScript(library string) (source string, args []string) {
	switch library {
	case "struct":
		return r.structScript()
	}
	panic(library)
}

var scriptLibraries = []string{"struct"}

// TestScriptLibraries compares the libraries of scripts with Redis's, in random calls:
// results and errors.
func TestScriptLibraries(t *testing.T) {
	rerun.Skip(t)
	dial := startRedis(t)
	real := newPeer(dial(), dial())
	ours := ownPeer(t, server.Options{})
	address := regexp.MustCompile(`(table|function|thread): 0x[0-9a-f]+`)
	for _, library := range scriptLibraries {
		t.Run(library, func(t *testing.T) {
			seed := *differentialSeed
			if seed == 0 {
				seed = rand.Uint64()
			}
			r := luaFuzzer{rand.New(rand.NewPCG(seed, 9))}
			reports := 0
			for sent := 0; sent < *librariesN; {
				var lines [][]string
				for ; len(lines) < 100 && sent < *librariesN; sent++ {
					source, args := r.libraryScript(library)
					lines = append(lines, append([]string{"EVAL", prelude + source, "0"}, args...))
				}
				want, err := real.pipeline(lines)
				if err != nil {
					t.Fatalf("redis: %.2000v", err)
				}
				got, err := ours.pipeline(lines)
				if err != nil {
					t.Fatalf("zsetd: %.2000v", err)
				}
				for i, line := range lines {
					if address.ReplaceAllString(got[i], "$1") == address.ReplaceAllString(want[i], "$1") {
						continue
					}
					t.Errorf("seed %d: %s\nwith %q\nredis: %.1000q\nzsetd: %.1000q", seed, strings.TrimPrefix(line[1], prelude), line[3:], want[i], got[i])
					if reports++; reports == maxReports {
						return
					}
				}
			}
		})
	}
}

// bytes returns up to n random bytes, of few kinds.
func (r luaFuzzer) bytes(n int) string {
	b := make([]byte, r.IntN(n+1))
	for i := range b {
		b[i] = pick(r, 0, 1, 2, 'a', 127, 128, 255, byte(r.IntN(256)))
	}
	return string(b)
}

func (r luaFuzzer) structScript() (source string, args []string) {
	var format strings.Builder
	for range r.IntN(7) {
		format.WriteString(pick(r, "<", ">", "!", "!4", "!8", "!1", "!2", "!16", "!3", "!0", " ", "b", "B", "h", "H", "i", "I", "l", "L", "T", "f", "d", "x",
			"s", "c", "c0", "c1", "c3", "c12", "Bc0", "bc0", "i1", "i2", "i3", "I5", "i8", "I8", "i9", "i12", "i16", "I32", "i33", "i0", "I99999999999", "c2147483648",
			"q", "\x00", "_", "9", "%", "X"))
	}
	value := func() string {
		switch r.IntN(4) {
		case 0:
			return r.bytes(20)
		case 1:
			return fmt.Sprint(r.IntN(6))
		}
		return fmt.Sprintf("%.17g", r.number())
	}
	switch r.IntN(4) {
	case 0:
		return "return call(struct.size, ARGV[1])", []string{format.String()}
	case 1:
		return "return call(struct.unpack, ARGV[1], ARGV[2], tonumber(ARGV[3]))",
			[]string{format.String(), r.bytes(40), pick(r, "", "", "1", "2", "5", "41", "0", "-1", "1e18")}
	case 2:
		args = []string{format.String()}
		for range r.IntN(8) {
			args = append(args, value())
		}
		return "local list = {} for i = 2, #ARGV do list[i - 1] = number(ARGV[i]) end return call(struct.pack, ARGV[1], unpack(list))", args
	}
	args = []string{format.String()}
	for range 7 {
		args = append(args, value())
	}
	return `
local list = {} for i = 2, #ARGV do list[i - 1] = number(ARGV[i]) end
local ok, packed = pcall(struct.pack, ARGV[1], unpack(list))
return show(ok, packed) .. call(struct.unpack, ARGV[1], packed)`, args
}
