package console

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
)

// TestHeartbeat checks that a silent stream writes a comment line, one that was written to does
// not, and a client that is gone is noticed.
func TestHeartbeat(t *testing.T) {
	srv := servertest.Run(t, server.Options{})
	c, err := New(srv.Server, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go c.Serve(l, nil)
	for _, path := range []string{"/events?channel=a", "/rank?key=z&member=m"} {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(nc, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
		r := bufio.NewReader(nc)
		line := func() string {
			t.Helper()
			s, err := r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSuffix(s, "\n")
		}
		for line() != "retry: 2000" {
		}
		if line(); path[1] == 'r' {
			line()
			line()
		}
		c.beat(time.Now())
		c.beat(time.Now().Add(heartbeat))
		if got := line() + line(); got != ": " {
			t.Errorf("%s: %q", path, got)
		}
		srv.Must("PUBLISH", "a", "x")
		srv.Must("ZINCRBY", "z", 1, "m")
		if got := line(); !strings.HasPrefix(got, "data: ") {
			t.Errorf("%s: %q", path, got)
		}
		if path[1] == 'e' { // more than a request is no viewer
			fmt.Fprint(nc, strings.Repeat("x", maxViewerInput-1))
			line()
			srv.Must("PUBLISH", "a", "y")
			if got := line(); !strings.HasPrefix(got, "data: ") {
				t.Errorf("%s: %q", path, got)
			}
			line()
			fmt.Fprint(nc, "x")
		} else {
			nc.(*net.TCPConn).CloseWrite()
		}
		for err = nil; err == nil; {
			_, err = r.ReadByte()
		}
	}
}
