package transport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestLastWrite checks that a client of a loop that has quit is disconnected when it has taken
// nothing since the last check, and not if it has.
func TestLastWrite(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	for _, reads := range []bool{false, true} {
		for _, kind := range kinds()[:2] {
			t.Run(fmt.Sprint(kind, reads), func(t *testing.T) {
				s := serve(t, kind, nil, "")
				c := s.client()
				go c.send("*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n" + bulk(large))
				c.expect("+OK\r\n")
				c.send(strings.Repeat("GET large\r\n", 28) + "QUIT\r\n")
				s.until("it has quit", func() bool {
					for _, s := range s.engine.Clients.Sessions {
						return s.End == engine.Closing
					}
					return false
				})
				check := func() (open bool) {
					s.mu.Lock()
					defer s.mu.Unlock()
					for c := range s.conns {
						p := c.(*polled)
						p.lastDue.Store(true)
						p.wake()
						return true
					}
					return false
				}
				if !reads {
					wait.Until(t, "the client is disconnected", func() bool { return !check() })
					return
				}
				c.expect(strings.Repeat(bulk(large), 12)) // more than the socket's buffers hold
				check()
				c.expect(strings.Repeat(bulk(large), 16) + "+OK\r\n")
				c.ends()
			})
		}
	}
}

// TestServeAfterPanic has the lock break while the first client is accepted: its connection is closed.
func TestServeAfterPanic(t *testing.T) {
	tr := newTransport(t, engine.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	tr.mu.Lock()
	tr.engine.Attempt(func() { panic("BUG: a test") })
	func() {
		defer tr.mu.Unlock()
		tr.engine.Attempt(func() { tr.serveSocket(server) })
	}()
	client.SetDeadline(time.Now().Add(time.Minute))
	if n, err := client.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, is := errors.AsType[*engine.PanicError](tr.Close()); !is {
		t.Error("the server has not panicked")
	}
}
