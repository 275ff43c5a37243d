//go:build linux

package faults

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// However busy its clients keep it, and whether they read their replies or not, a
// server that gets SIGTERM ends within five seconds.
func TestStop(t *testing.T) {
	for _, keep := range []string{"", "--appendonly yes --appendfsync always --dbfilename dump"} {
		run(t, both, func(t *testing.T, k kind) {
			late := lateness(t)
			p := k.start(t, strings.Fields(keep)...)
			for i := range 8 {
				c := p.dial()
				defer c.close()
				go func() {
					pipeline := bytes.Repeat(command("RPUSH", fmt.Sprint("list:", i), "x"), 20)
					for {
						if _, err := c.Write(pipeline); err != nil {
							return
						}
						if i == 0 {
							continue // it does not read
						}
						for range 20 {
							if _, err := c.tryReceive(patience); err != nil {
								return
							}
						}
					}
				}()
			}
			other := p.dial()
			if !eventually(patience, func() bool { n, _ := other.do("LLEN", "list:7").(int64); return n > 100 }) {
				t.Fatal("the clients are not served")
			}
			begin := time.Now()
			if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			select {
			case <-p.done:
				took := time.Since(begin)
				t.Logf("%s: ends after %v", p.name, took)
				if took > 5*time.Second+late {
					t.Errorf("%s: ends after %v", p.name, took)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s does not end", p.name)
			}
			if status := p.cmd.ProcessState.ExitCode(); status != 0 {
				t.Errorf("%s ends with status %d: %s", p.name, status, p.log())
			}
		})
	}
}

// Events of keys that expire come soon after their deadlines.
func TestExpiredOnTime(t *testing.T) {
	run(t, both, func(t *testing.T, k kind) {
		p := k.start(t, "--notify-keyspace-events", "Ex")
		c, sub := p.dial(), p.dial()
		sub.do("SUBSCRIBE", "__keyevent@0__:expired")
		var lags []time.Duration
		for i := range 50 {
			deadline := time.Now().Add(20 * time.Millisecond).Truncate(time.Millisecond)
			key := fmt.Sprint("soon:", i)
			c.want("OK", "SET", key, "x", "PXAT", fmt.Sprint(deadline.UnixMilli()))
			if got := fmt.Sprint(sub.receive()); got != fmt.Sprintf("[message __keyevent@0__:expired %s]", key) {
				t.Fatal(got)
			}
			lags = append(lags, time.Since(deadline))
		}
		slices.Sort(lags)
		atMost(p, "from the deadline to the event, half of the times", lags[len(lags)/2], 50*time.Millisecond+lateness(t))
	})
}
