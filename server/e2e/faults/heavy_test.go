//go:build linux

package faults

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// large makes a value of so many members under a key.
func large(c *client, kind, key string, members int) {
	c.p.t.Helper()
	const batch = 1000
	var b bytes.Buffer
	sent := 0
	flush := func() {
		c.write(b.Bytes())
		b.Reset()
		for ; sent > 0; sent-- {
			if e, bad := c.receive().(errorReply); bad {
				c.p.t.Fatal(e)
			}
		}
	}
	for at := 0; at < members; {
		args := []string{map[string]string{"zset": "ZADD", "set": "SADD", "hash": "HSET", "list": "RPUSH", "stream": "XADD"}[kind], key}
		if kind == "stream" {
			args = append(args, "*", "field", strconv.Itoa(at))
			at++
		} else {
			for range min(batch, members-at) {
				if member := "member:" + strconv.Itoa(at); kind == "zset" || kind == "hash" {
					args = append(args, strconv.Itoa(at*7919%1_000_003), member)
				} else {
					args = append(args, member)
				}
				at++
			}
		}
		b.Write(command(args...))
		if sent++; b.Len() > 256<<10 {
			flush()
		}
	}
	flush()
}

// others returns how long the others wait at most, one who sends PING all the time, while
// f runs and shortly after.
func others(p *process, f func()) time.Duration {
	p.t.Helper()
	quit, worst := make(chan struct{}), make(chan time.Duration)
	began := make(chan struct{})
	c := p.dial()
	go func() {
		defer c.close()
		most, n := time.Duration(0), 0
		for {
			select {
			case <-quit:
				worst <- most
				return
			default:
			}
			begin := time.Now()
			if c.do("PING") != "PONG" {
				p.t.Error("no PONG")
			}
			if n++; n == 20 {
				close(began)
			}
			if n > 20 {
				most = max(most, time.Since(begin))
			}
		}
	}()
	<-began
	f()
	wait.Elapse(100 * time.Millisecond)
	close(quit)
	return <-worst
}

// removals are ways in which a large value goes, of the kinds of values that it is tried with,
// and other work on large values. The first four are for every run of the tests.
var removals = []struct {
	kinds, name string
	run         func(c *client, members int)
	long        bool // it replies or compares as many: its time is logged only
}{
	{"zset set hash list stream", "DEL", func(c *client, _ int) { c.want(int64(1), "DEL", "k") }, false},
	{"zset", "FLUSHALL SYNC", func(c *client, _ int) { c.want("OK", "FLUSHALL", "SYNC") }, false},
	{"zset", "expiry", func(c *client, _ int) {
		c.want(int64(1), "PEXPIRE", "k", "20")
		wait.Elapse(40 * time.Millisecond)
		c.want(int64(0), "EXISTS", "k")
	}, false},
	{"zset", "SET", func(c *client, _ int) { c.want("OK", "SET", "k", "v") }, false},

	{"zset set hash list stream", "UNLINK", func(c *client, _ int) { c.want(int64(1), "UNLINK", "k") }, false},
	{"zset", "FLUSHALL ASYNC", func(c *client, _ int) { c.want("OK", "FLUSHALL", "ASYNC") }, false},
	{"zset", "FLUSHDB", func(c *client, _ int) { c.want("OK", "FLUSHDB") }, false},
	{"zset", "RENAME", func(c *client, _ int) { c.want("OK", "SET", "l", "v"); c.want("OK", "RENAME", "l", "k") }, false},
	{"zset", "ZUNIONSTORE", func(c *client, _ int) { c.want(int64(0), "ZUNIONSTORE", "k", "1", "nosuch") }, false},
	{"zset", "ZREMRANGEBYRANK", func(c *client, n int) { c.want(int64(n), "ZREMRANGEBYRANK", "k", "0", "-1") }, false},
	{"zset", "ZREMRANGEBYSCORE", func(c *client, n int) { c.want(int64(n), "ZREMRANGEBYSCORE", "k", "-inf", "inf") }, false},
	{"zset", "ZPOPMIN", func(c *client, n int) { c.do("ZPOPMIN", "k", fmt.Sprint(n)) }, true},
	{"set", "SPOP", func(c *client, n int) { c.do("SPOP", "k", fmt.Sprint(n)) }, true},
	{"list", "LTRIM", func(c *client, n int) { c.want("OK", "LTRIM", "k", "1", "0") }, false},
	{"list", "LREM", func(c *client, n int) { c.want(int64(0), "LREM", "k", "0", "nosuch") }, true},
	{"stream", "XTRIM", func(c *client, n int) { c.want(int64(n), "XTRIM", "k", "MAXLEN", "0") }, false},
	{"zset set hash list stream", "COPY", func(c *client, n int) { c.want(int64(1), "COPY", "k", "l") }, false},
	{"zset", "ZINTERCARD", func(c *client, n int) { c.do("ZINTERCARD", "2", "k", "k") }, true},
	{"set", "SDIFF", func(c *client, n int) { c.do("SDIFFSTORE", "l", "k", "k") }, true},
}

// TestHeavy checks that clients do not wait while another one removes a large value.
// With HEAVY=10000000 the value has that many members, and all commands and types are
// measured, also on redis-server.
func TestHeavy(t *testing.T) {
	members, ways, kinds, servers := 1_000_000, removals[:4], []string{"zset"}, []kind{zsetdEpoll}
	if n, err := strconv.Atoi(os.Getenv("HEAVY")); err == nil {
		members, ways, kinds, servers = n, removals, strings.Fields("zset set hash list stream"), []kind{zsetdEpoll, redisServer}
	}
	run(t, servers, func(t *testing.T, k kind) {
		p := k.start(t)
		c := p.dial()
		for _, way := range ways {
			for _, kind := range strings.Fields(way.kinds) {
				if !slices.Contains(kinds, kind) {
					continue
				}
				// Others of this machine can delay anything, but not each time.
				const limit = 50 * time.Millisecond
				wait, most := time.Duration(0), limit
				for range 3 {
					c.want("OK", "FLUSHALL")
					large(c, kind, "k", members)
					most = limit + lateness(t)
					if wait = others(p, func() { way.run(c, members) }); !p.ours() || wait <= most || len(ways) > 4 {
						break
					}
				}
				what := fmt.Sprintf("%s of a %s of %d: others wait", way.name, kind, members)
				if way.long {
					t.Logf("%s: %s: %v", p.name, what, wait)
				} else {
					atMost(p, what, wait, most)
				}
			}
		}
	})
}
