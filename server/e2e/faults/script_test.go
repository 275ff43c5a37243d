//go:build linux

package faults

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// A script does not make the process grow by more than 5 GB, whatever it holds and
// however much a single step of it takes.
func TestScriptMemory(t *testing.T) {
	const limit = 5 << 30
	if free := available(t); free < 6<<30 {
		t.Skipf("%s of memory are available", mb(free))
	}
	for name, source := range map[string]string{
		"an array":                 "local t, i = {}, 1 while true do t[i] = i i = i + 1 end",
		"fields":                   "local t, i = {}, 1 while true do t[i + 0.5] = i i = i + 1 end",
		"strings and large tables": "local k = {} for i = 1, 100 do k[i] = string.rep('x', 9*2^20) end local ts = {} for i = 1, 50 do local t = {} for j = 1, 2^23 do t[j] = j end ts[i] = t end",
		"strings":                  "local t, s = {}, string.rep('X', 2^29) while true do t[#t+1] = s:lower() end",
		"small tables":             "local t, i = {}, 1 while true do t[i] = {i} i = i + 1 end",
		"cjson.encode":             "local t, s = {}, string.rep('\\1', 2^26) while true do t[#t+1] = cjson.encode(s) end",
	} {
		t.Run(name, func(t *testing.T) {
			p := zsetdEpoll.start(t, "--busy-reply-threshold", "100000")
			p.watch()
			begin := time.Now()
			c := p.dial()
			c.send("EVAL", source, "0")
			if got, err := c.tryReceive(3 * time.Minute); !strings.Contains(fmt.Sprint(got), "not enough memory") {
				t.Errorf("the script: %.100v (%v)", got, err)
			}
			t.Logf("in %v", time.Since(begin).Round(time.Millisecond))
			atMost(p, "peak of memory", p.peak(), limit)
			p.alive()
		})
	}
}

// available returns how much memory the machine has to give.
func available(t *testing.T) int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemAvailable:" {
			var kb int64
			for _, d := range f[1] {
				kb = kb*10 + int64(d-'0')
			}
			return kb << 10
		}
	}
	return 0
}
