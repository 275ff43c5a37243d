//go:build linux

package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// patterns are patterns for which a backtracking matcher takes exponential time.
var patterns = map[string][2]string{ // the pattern, and what it nearly matches
	"stars":      {"*a*a*a*a*a*a*b*", strings.Repeat("a", 64)},
	"many stars": {strings.Repeat("*a", 300) + "*b*", strings.Repeat("a", 64)},
	"unclosed":   {strings.Repeat("*?[a-", 13_000) + "b", strings.Repeat("a", 64)},
	"a long set": {"*[" + strings.Repeat("b", 64_000) + "]*", strings.Repeat("a", 64)},
}

// TestPatterns checks that each command with a pattern matches or rejects it in little
// time. It measures the CPU time of the server, which other processes do not affect.
func TestPatterns(t *testing.T) {
	run(t, []kind{zsetdEpoll, redisServer}, func(t *testing.T, k kind) {
		for name, x := range patterns {
			pattern, text := x[0], x[1]
			p := k.start(t)
			c, listener := p.dial(), p.dial()
			c.want("OK", "SET", text, "v")
			c.want(int64(1), "HSET", "hash", text, "v")
			c.want(int64(1), "SADD", "set", text)
			c.want(int64(1), "ZADD", "zset", "1", text)
			listener.do("SUBSCRIBE", text)
			subscriber := p.dial()
			subscriber.do("PSUBSCRIBE", pattern)
			c.want("OK", "ACL", "SETUSER", "limited", "on", "nopass", "+@all", "~"+pattern, "&"+pattern)
			limited := p.dial()
			limited.want("OK", "AUTH", "limited", "x")
			times := time.Duration(5) // ticks of the clock are of 10 ms
			if !p.ours() {
				times = 1 // it takes a second for some of them
			}
			for _, line := range [][]string{
				{"KEYS", pattern},
				{"SCAN", "0", "MATCH", pattern, "COUNT", "100"},
				{"HSCAN", "hash", "0", "MATCH", pattern},
				{"SSCAN", "set", "0", "MATCH", pattern},
				{"ZSCAN", "zset", "0", "MATCH", pattern},
				{"PUBLISH", text, "m"},
				{"PUBSUB", "CHANNELS", pattern},
				{"CONFIG", "GET", pattern},
				{"COMMAND", "LIST", "FILTERBY", "PATTERN", pattern},
				{"FUNCTION", "LIST", "LIBRARYNAME", pattern},
				{"GET", text},
			} {
				who := c
				if line[0] == "GET" {
					who = limited
				}
				before := p.cpu()
				for range int(times) {
					who.do(line...)
				}
				took := (p.cpu() - before) / times
				const limit = 10 * time.Millisecond
				atMost(p, fmt.Sprintf("%s in %.30s", name, strings.Join(line[:min(2, len(line))], " ")), took, limit)
			}
			p.stop()
		}
	})
}
