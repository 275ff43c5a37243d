package script_test

import (
	"os"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/judge"
)

// manualPrelude defines outcome, which returns the results of pcall as a text of one line: strings quoted, tables
// with their elements, functions without their addresses.
const manualPrelude = `local function text(v)
	if type(v) == 'string' then
		return (('%q'):format(v):gsub('\\\n', '\\n'):gsub('[%z\1-\31\127-\255]', function(c) return '<' .. c:byte() .. '>' end))
	end
	if type(v) == 'function' or type(v) == 'thread' then return type(v) end
	if type(v) ~= 'table' then return tostring(v) end
	local parts = {}
	for i = 1, #v do parts[i] = type(v[i]) == 'table' and 'table' or tostring(v[i]) end
	return '{' .. table.concat(parts, ', ') .. '}'
end
local function show(...)
	local parts = {}
	for i = 1, select('#', ...) do parts[i] = text((select(i, ...))) end
	return table.concat(parts, ', ')
end
local function outcome(ok, ...) return (ok and '' or 'error ') .. show(...) end
`

// TestManual runs the programs of testdata/manual.txt, which goes through the reference manual of Lua 5.1, section
// by section: each line is the body of a function, and what it returns, or raises, is the next line. The judge
// of the results is Redis 8.6, which runs them, too, where it is installed.
func TestManual(t *testing.T) {
	b, err := os.ReadFile("testdata/manual.txt")
	if err != nil {
		t.Fatal(err)
	}
	servers := map[string]*judge.Peer{"zsetd": judge.Own(t, server.Options{})}
	if redis := judge.NewerServers()[0]; redis.Path(t) != "" {
		servers[redis.Name] = redis.Start(t)
	}
	// The programs are in the first line, whose number is in errors.
	prelude := strings.NewReplacer("\n", " ", "\t", "").Replace(manualPrelude)
	programs, section, source := 0, "", ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		want, found := strings.CutPrefix(line, "\t")
		switch {
		case strings.HasPrefix(line, "## "):
			section = line
			continue
		case !found:
			source = line
			continue
		}
		programs++
		for name, p := range servers {
			reply := p.Do("EVAL", prelude+"return outcome(pcall(function(...) "+source+" end))", "0")
			got := reply
			if strings.HasPrefix(reply, "$") {
				_, got, _ = strings.Cut(strings.TrimSuffix(reply, "\r\n"), "\r\n")
			}
			if got != want {
				t.Errorf("%s, %s: %s\ngives %s\nwant  %s", name, section, source, got, want)
			}
		}
	}
	if programs < 300 {
		t.Errorf("%d programs", programs)
	}
}
