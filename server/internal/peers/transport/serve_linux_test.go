package transport

import (
	"fmt"
	"strings"
	"testing"

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
