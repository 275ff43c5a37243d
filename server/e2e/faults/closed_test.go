//go:build linux

package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestClosedWaiters: 500 clients wait and close, and at once as many elements come. None
// of these goes to a client that has closed, on either transport; so it is with Redis.
func TestClosedWaiters(t *testing.T) {
	const n = 500
	ways := []struct{ wait, add, count string }{
		{"BZPOPMIN k 0", "ZADD", "ZCARD k"},
		{"BZMPOP 0 1 k MIN COUNT 1", "ZADD", "ZCARD k"},
		{"BZPOPBYSCORE 0 1 k -inf +inf", "ZADD", "ZCARD k"},
		{"BZCLAIM 0 1 k -inf 1000 5000", "ZADD", "ZCOUNT k 0 1000"},
		{"BLPOP k 0", "RPUSH", "LLEN k"},
		{"BLMOVE k other LEFT LEFT 0", "RPUSH", "LLEN k"},
		{"BLMPOP 0 1 k LEFT", "RPUSH", "LLEN k"},
		{"XREADGROUP GROUP g c BLOCK 0 COUNT 1 STREAMS s >", "XADD", "XPENDING s g"},
	}
	run(t, all, func(t *testing.T, k kind) {
		p := k.start(t)
		owner, adder := p.dial(), p.dial()
		defer owner.close()
		defer adder.close()
		for _, way := range ways {
			if name, _, _ := strings.Cut(way.wait, " "); !p.ours() && (name == "BZPOPBYSCORE" || name == "BZCLAIM") {
				continue
			}
			owner.want("OK", "FLUSHALL")
			if way.add == "XADD" {
				owner.want("OK", "XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
			}
			var clients []*client
			for range n {
				c := p.dial()
				c.send(strings.Fields(way.wait)...)
				clients = append(clients, c)
			}
			if !eventually(patience, func() bool { return p.info("blocked_clients", owner) == fmt.Sprint(n) }) {
				t.Fatalf("%s: %s clients are blocked", way.wait, p.info("blocked_clients", owner))
			}
			var commands []byte
			switch way.add {
			case "ZADD":
				commands = command(repeat(n, func(i int) []string { return []string{fmt.Sprint(i), fmt.Sprint("m", i)} }, "ZADD", "k")...)
			case "RPUSH":
				commands = command(repeat(n, func(i int) []string { return []string{fmt.Sprint("m", i)} }, "RPUSH", "k")...)
			case "XADD":
				for range n {
					commands = append(commands, command("XADD", "s", "*", "f", "v")...)
				}
			}
			for _, c := range clients {
				c.close()
			}
			adder.write(commands)
			adder.receive()
			for range n - 1 {
				if way.add != "XADD" {
					break
				}
				adder.receive()
			}
			left := 0
			switch reply := owner.do(strings.Fields(way.count)...).(type) {
			case int64:
				left = int(reply)
			case []any: // of XPENDING: the delivered entries
				left = n - int(reply[0].(int64))
			}
			atMost(p, way.wait+": elements lost to clients that have closed", n-left, 0)
		}
		p.alive()
	})
}

// TestReconnectWhenFull: with maxclients connected a client may close and connect again
// at once; it is never refused.
func TestReconnectWhenFull(t *testing.T) {
	const clients, times = 50, 300
	run(t, all, func(t *testing.T, k kind) {
		p := k.start(t, "--maxclients", fmt.Sprint(clients))
		var list []*client
		connect := func() (refused bool) {
			for {
				c := p.dial()
				if _, err := c.Write(command("PING")); err == nil {
					if reply, err := c.tryReceive(patience); err == nil && reply == "PONG" {
						list = append(list, c)
						return refused
					}
				}
				c.close()
				refused = true
			}
		}
		for range clients {
			connect()
		}
		begin, refusals := time.Now(), 0
		for range times {
			list[0].close()
			list = list[1:]
			if connect() {
				refusals++
			}
		}
		t.Logf("%s: %d times in %v", p.name, times, time.Since(begin).Round(time.Millisecond))
		atMost(p, "clients refused that had made room for themselves", refusals, 0)
		c := p.dial()
		if reply, err := c.tryReceive(patience); err != nil || !strings.Contains(fmt.Sprint(reply), "max number of clients") {
			t.Errorf("%s: one client more: %v, %v", p.name, reply, err)
		}
		c.close()
		for _, c := range list {
			c.close()
		}
		p.alive()
	})
}
