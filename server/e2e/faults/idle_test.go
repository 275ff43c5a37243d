//go:build linux

package faults

import (
	"fmt"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestIdleClients checks that ten thousand idle clients use less than 10 KB each, do
// not slow other clients down, and release everything when they disconnect.
func TestIdleClients(t *testing.T) {
	n := 10_000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if room := int(min(limit.Cur, 1<<20)) - 500; room < n { // Go has raised it as far as it may
		t.Logf("only %d clients: the limit of open files is %d", room, limit.Cur)
		n = room
	}
	run(t, all, func(t *testing.T, k kind) {
		p := k.start(t, "--maxclients", fmt.Sprint(n+10), "--protected-mode", "no") // Redis trusts 127.0.0.1 only
		other := p.dial()
		defer other.close()
		other.want("PONG", "PING")
		before, base := p.state(other), p.rss()
		begin := time.Now()
		clients := make([]*client, n)
		for i := range clients {
			// Enough ports for that, whatever else is going on.
			d := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%8))}}
			nc, err := d.Dial("tcp", p.addr)
			if err != nil {
				t.Fatal(err)
			}
			clients[i] = &client{Conn: nc, p: p}
			defer nc.Close()
			clients[i].write([]byte("PING\r\n"))
		}
		buf := make([]byte, 64)
		for _, c := range clients {
			c.SetReadDeadline(time.Now().Add(patience))
			if m, err := c.Read(buf); string(buf[:m]) != "+PONG\r\n" {
				t.Fatalf("%q, %v", buf[:m], err)
			}
		}
		t.Logf("%s: %d clients after %v", p.name, n, time.Since(begin).Round(time.Millisecond))
		wait.Elapse(time.Second)
		atMost(p, "KB for each client", float64(p.rss()-base)/float64(n)/1024, 10)
		late := startProbe()
		var took []time.Duration
		for range 200 {
			begin := time.Now()
			other.want("PONG", "PING")
			took = append(took, time.Since(begin))
			wait.Pace(time.Millisecond)
		}
		slices.Sort(took)
		atMost(p, "PING beside them, median", quantile(took, 0.5), time.Millisecond+3*quantile(late.stop(), 0.5))
		used := p.cpu()
		wait.Elapse(500 * time.Millisecond)
		atMost(p, "CPU in half a second of idleness", p.cpu()-used, 50*time.Millisecond)
		for i, c := range clients {
			if i%2 == 0 {
				c.close()
			} else {
				c.dies()
			}
		}
		p.returns(before, 2*time.Second+10*lateness(t), other)
		if k.ours() {
			p.expectMemory("when they are gone", base+16<<20, 20*time.Second)
		}
		p.alive()
	})
}
