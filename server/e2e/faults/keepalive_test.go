//go:build linux

package faults

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// TestKeepAlive checks that the server configures TCP keep-alive of each connection
// with the current value of tcp-keepalive.
func TestKeepAlive(t *testing.T) {
	run(t, all, func(t *testing.T, k kind) {
		p := k.start(t)
		operator := p.dial()
		defer operator.close()
		for _, seconds := range []int{300, 60, 0, 7} {
			if seconds != 300 { // the default
				operator.want("OK", "CONFIG", "SET", "tcp-keepalive", fmt.Sprint(seconds))
			}
			c := p.dial()
			c.want("PONG", "PING")
			limit := time.Duration(seconds) * time.Second
			var left time.Duration
			if !eventually(patience, func() bool {
				left = keepAliveTimer(t, c.RemoteAddr(), c.LocalAddr())
				return left <= limit && left >= limit/2
			}) {
				t.Errorf("%s: tcp-keepalive %d: the kernel would look after %v", p.name, seconds, left)
			}
			c.close()
		}
	})
}

// keepAliveTimer returns in what time the kernel will ask the other end of a connection
// whether it is there, 0 if it will not.
func keepAliveTimer(t *testing.T, local, remote net.Addr) time.Duration {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	port := func(a net.Addr) string { return fmt.Sprintf(":%04X", a.(*net.TCPAddr).Port) }
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line) // local address, remote address and timer are at 1, 2 and 5
		if len(f) < 6 || !strings.HasSuffix(f[1], port(local)) || !strings.HasSuffix(f[2], port(remote)) {
			continue
		}
		var sort, hundredths int
		if _, err := fmt.Sscanf(f[5], "%02X:%X", &sort, &hundredths); err != nil {
			t.Fatal(err)
		}
		switch sort {
		case 0:
			return 0
		case 2:
			return time.Duration(hundredths) * time.Second / 100
		}
		return time.Hour // another timer runs
	}
	t.Fatal("there is no such connection")
	return 0
}
