//go:build linux

package faults

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestStreams checks that viewers of the console's streams use less than 10 KB each, also where
// each is the only one of its channel, that all receive an event, that their limits hold, and
// that everything is released when they end.
func TestStreams(t *testing.T) {
	const viewers = 1500
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	console := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(console)
	k := zsetdEpoll
	for name, path := range map[string]string{
		"one channel":      "/events?channel=news",
		"a channel each":   "/events?channel=news-%d&channel=news",
		"members of a set": "/rank?key=z&member=m%d",
		"two queries each": "/live?q=ZRANK+z+m%d&q=ZCARD+z",
	} {
		t.Run(name, func(t *testing.T) {
			p := k.start(t, "--http-port", port, "--http-streams-per-address", fmt.Sprint(viewers), "--maxclients", "10000")
			other := p.dial()
			defer other.close()
			other.want("OK", "CONFIG", "SET", "protected-mode", "no")
			wait.Elapse(2 * time.Second) // a sample of the console
			before, base := p.state(other), p.rss()
			var conns []net.Conn
			view := func(i int) string {
				nc, err := net.DialTimeout("tcp", console, patience)
				if err != nil {
					t.Fatal(err)
				}
				conns = append(conns, nc)
				path := path
				if strings.Contains(path, "%d") {
					path = fmt.Sprintf(path, i)
				}
				fmt.Fprintf(nc, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
				return until(t, nc, "retry: ", `"error"`)
			}
			for i := range viewers {
				if got := view(i); !strings.Contains(got, "200 OK") {
					t.Fatalf("viewer %d: %s", i, got)
				}
			}
			if got := view(viewers); !strings.Contains(got, "429 ") || !strings.Contains(got, "http-streams-per-address is 1500") {
				t.Errorf("above the limit: %s", got)
			}
			wait.Elapse(2 * time.Second)
			each := func() float64 { return float64(p.rss()-base) / viewers / 1024 }
			wait.Holds(func() bool { return each() <= 10 }) // the process returns memory in the background
			atMost(p, "KB for each viewer", each(), 10)
			other.do("PUBLISH", "news", "message")
			other.do("EVAL", "for i = 0, ARGV[1] do redis.call('ZADD', 'z', i, 'm' .. i) end", "0", fmt.Sprint(viewers))
			for _, nc := range conns[:viewers] {
				until(t, nc, "message", `"rank":`, `"query":0,"result":`)
			}
			for _, nc := range conns {
				nc.Close()
			}
			p.returns(before, 2*time.Second+10*lateness(t), other)
			p.alive()
		})
	}
}

// until reads until one of several texts has come, and returns all.
func until(t *testing.T, nc net.Conn, texts ...string) string {
	t.Helper()
	var all bytes.Buffer
	b := make([]byte, 4096)
	nc.SetReadDeadline(time.Now().Add(patience))
	for {
		n, err := nc.Read(b)
		all.Write(b[:n])
		for _, text := range texts {
			if strings.Contains(all.String(), text) {
				return all.String()
			}
		}
		if err != nil {
			t.Fatalf("%q, %v", all.String(), err)
		}
	}
}
