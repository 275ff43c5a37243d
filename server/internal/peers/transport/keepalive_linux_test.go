package transport

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// TestKeepAlive checks the options of sockets by tcp-keepalive, in seconds: three probes, a third
// of the time apart.
func TestKeepAlive(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for value, want := range map[string][4]int{"0": {0, 0, 0, 0}, "1": {1, 1, 1, 3}, "300": {1, 300, 100, 3}} {
		s := serve(t, [2]string{"net", "pipe"}, map[string]string{"tcp-keepalive": value}, "")
		nc, err := net.DialTimeout("tcp", l.Addr().String(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		s.keepAlive(nc.(*net.TCPConn))
		raw, err := nc.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var got [4]int
		raw.Control(func(fd uintptr) {
			got[0], _ = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_KEEPALIVE)
			if got[0] != 0 {
				got[1], _ = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE)
				got[2], _ = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL)
				got[3], _ = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT)
			}
		})
		if got != want {
			t.Errorf("tcp-keepalive %s: on, idle, interval, count %d, not %d", value, got, want)
		}
	}
}
