//go:build linux

package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// pings returns how long a client waits for each of n replies to PING.
func pings(p *process, n int) []time.Duration {
	p.t.Helper()
	c := p.dial()
	defer c.close()
	var took []time.Duration
	for range n {
		begin := time.Now()
		c.want("PONG", "PING")
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took
}

// Live queries that ask for too much delay no other client, and leave nothing: a hundred thousand of a
// client that reads none of its messages, a million members with each change, and a script that loops.
func TestHostileQueries(t *testing.T) {
	run(t, []kind{zsetdEpoll}, func(t *testing.T, k kind) {
		p := k.start(t)
		writer := p.dial()
		defer writer.close()
		large(writer, "zset", "board", 1_000_000)
		quiet := quantile(pings(p, 5000), 0.99)
		before, memory := p.state(), p.rss()

		queries := func(n int) []string {
			args := []string{"SUBSCRIBE"}
			for i := range n {
				args = append(args, fmt.Sprintf("__query@0__:ZRANGE board %d %d", i, i+1))
			}
			return args
		}
		var hostile []*client
		for _, args := range [][]string{
			{"SUBSCRIBE", "__query@0,1ms__:ZRANGE board 0 -1"},
			{"SUBSCRIBE", "__query@0__:EVAL_RO \"while true do end\" 1 board"},
			{"SUBSCRIBE", "__query@0__:ZINTERCARD 2 board board"},
			queries(100_000),
		} {
			c := p.dial()
			c.send(args...)
			hostile = append(hostile, c)
		}
		eventually(patience, func() bool { return p.info("live_query_subscriptions") == "100003" })

		stop, changed := make(chan struct{}), make(chan int)
		go func() {
			n := 0
			for ; ; n++ {
				select {
				case <-stop:
					changed <- n
					return
				case <-time.After(time.Millisecond):
					writer.do("ZINCRBY", "board", "1", "member:7")
				}
			}
		}()
		pr := startProbe()
		took := pings(p, 5000)
		late := quantile(pr.stop(), 0.99)
		close(stop)
		t.Logf("%s: 99th percentile of PING without them %v; the longest with them %v; %d changes; %s evaluations in %s us; the probe was %v late",
			p.name, quiet, took[len(took)-1], <-changed, p.info("live_query_evaluations"), p.info("live_query_time_usec"), late)
		atMost(p, "99th percentile of PING", quantile(took, 0.99), 10*time.Millisecond+2*(quiet+late))
		for _, c := range hostile {
			c.close()
		}
		if !eventually(patience, func() bool { return p.info("live_queries") == "0" && p.info("live_query_subscriptions") == "0" }) {
			t.Errorf("%s: %s live queries are left", p.name, p.info("live_queries"))
		}
		p.returns(before, 5*time.Second)
		if list, _ := writer.do("CLIENT", "LIST").(string); strings.Contains(list, "cmd=subscribe") {
			t.Errorf("%s: a client is left: %s", p.name, list)
		}
		p.expectMemory("when they are gone", memory+64<<20, patience)
		p.alive()
	})
}
