package transport_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
	"github.com/zsetd/zsetd/server/internal/peers/transport"
	"github.com/zsetd/zsetd/server/servertest/wait"
	"golang.org/x/sys/unix"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// overBoth runs a test with both transports, and epoll with one loop, and with several between
// which clients move.
func overBoth(t *testing.T, config map[string]string, test func(t *testing.T, srv *enginetest.Server, addr string)) {
	for _, c := range []struct {
		transport string
		procs     int
	}{{"net", 2}, {"epoll", 1}, {"epoll", 2}, {"epoll", 16}} {
		t.Run(fmt.Sprintf("%s on %d", c.transport, c.procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.procs))
			values := map[string]string{"transport": c.transport}
			for name, value := range config {
				values[name] = value
			}
			srv, addr := enginetest.Start(t, values)
			if c.procs == 16 {
				srv.Unsettle()
			}
			test(t, srv, addr)
		})
	}
}

// TestManyClients blocks more clients than one epoll_wait reports, and serves them all
// from one client.
func TestManyClients(t *testing.T) {
	overBoth(t, nil, func(t *testing.T, srv *enginetest.Server, addr string) {
		const n = 3*128 + 1
		clients := make([]*enginetest.Client, n)
		for i := range clients {
			clients[i] = enginetest.Dial(t, addr)
			clients[i].Send("SUBSCRIBE news\r\nPING\r\n")
		}
		for _, c := range clients {
			c.Expect("[subscribe news 1]")
			c.Expect("[pong ]")
		}
		publisher := enginetest.Dial(t, addr)
		publisher.Send("PUBLISH news x\r\n")
		publisher.Expect(fmt.Sprint(n))
		for _, c := range clients {
			c.Expect("[message news x]")
			c.Close()
		}
		enginetest.Until(t, srv, "alone", func() bool { return len(srv.Clients.Sessions) == 1 && srv.PubSub.Table.Len(subscription.Channels) == 0 })
	})
}

// oneLoop skips a test that needs the order in which one loop serves its clients.
func oneLoop(t *testing.T) {
	if transport.Unsettled {
		t.Skip("several loops serve")
	}
}

// TestLargeArgumentIsTakenFirst checks that a loop reads all that a client has sent of a
// large argument, though most of it did not fit in the socket buffer, before a later
// command reads the client's memory.
func TestLargeArgumentIsTakenFirst(t *testing.T) {
	oneLoop(t)
	srv, addr := enginetest.Start(t, map[string]string{"transport": "epoll", "maxmemory-clients": "440400"})
	asks := enginetest.Dial(t, addr)
	asks.Send("CLIENT SETNAME asks\r\n")
	asks.Expect("OK")
	for i := range 20 {
		large := enginetest.Dial(t, addr)
		large.Send("CLIENT SETNAME large\r\n")
		large.Expect("OK")
		srv.Mu.Lock() // the loop waits for the lock when it has detected the large argument
		sent := make(chan error, 1)
		go func() {
			_, err := io.WriteString(large, "*1\r\n$440400\r\n"+strings.Repeat("x", 440400))
			sent <- err
		}()
		select {
		case err := <-sent:
			sent <- err
		case <-time.After(time.Second):
			srv.Mu.Unlock()
			t.Skip("the system does not take so much before it is read")
		}
		asks.Send("CLIENT LIST\r\n")
		srv.Mu.Unlock()
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if list := asks.Reply().(string); strings.Contains(list, "name=large") {
			t.Fatalf("client %d is still there:\n%s", i, list)
		}
		large.Close()
	}
}

// TestBackPressure checks that the server stops reading a client that does not read its
// replies, that this delays no other client, and that all replies arrive in the end.
func TestBackPressure(t *testing.T) {
	overBoth(t, nil, func(t *testing.T, srv *enginetest.Server, addr string) {
		lazy, other := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
		echo := strings.Repeat("x", 1<<20)
		lazy.Send("SET big " + echo[:60000] + "\r\nAPPEND big " + echo[:60000] + "\r\n")
		lazy.SetDeadline(time.Now().Add(2 * time.Minute))
		const n, pings = 320, 300_000 // 38 MB of replies, then 1.8 MB of commands
		lazy.Send(strings.Repeat("GET big\r\n", n))
		sent := make(chan error, 1)
		go func() {
			_, err := io.WriteString(lazy, strings.Repeat("PING\r\n", pings))
			sent <- err
		}()
		enginetest.Until(t, srv, "choked", func() bool {
			for _, s := range srv.Clients.Sessions {
				if s.Queue.ExceedsLimit() {
					return true
				}
			}
			return false
		})
		for range 100 {
			other.Send("PING\r\n")
			other.Expect("PONG")
		}
		lazy.Expect("OK")
		lazy.Expect("120000")
		for range n {
			if got := lazy.Reply(); len(got.(string)) != 120000 {
				t.Fatalf("got %d bytes", len(got.(string)))
			}
		}
		for range pings {
			if got := lazy.Reply(); got != protocol.Status("PONG") {
				t.Fatalf("got %v", got)
			}
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
	})
}

// TestServedBeforeBusy checks that clients of the same turn as a long script receive their
// replies and messages while the script runs.
func TestServedBeforeBusy(t *testing.T) {
	overBoth(t, map[string]string{"busy-reply-threshold": "10"}, func(t *testing.T, srv *enginetest.Server, addr string) {
		first, early, slow, told := enginetest.Dial(t, addr), enginetest.Dial(t, addr), enginetest.Dial(t, addr), enginetest.Dial(t, addr)
		for _, c := range []*enginetest.Client{first, early, slow} {
			c.Send("PING\r\n")
			c.Expect("PONG")
		}
		told.Send("SUBSCRIBE news\r\n")
		told.Expect("[subscribe news 1]")
		isBusy := func(reply any) bool { return strings.HasPrefix(fmt.Sprint(reply), "BUSY") }
		for range 5 {
			srv.Mu.Lock()
			first.Send("PING\r\n")
			wait.Pace(10 * time.Millisecond) // a loop now waits for the lock, or the replies say BUSY
			early.Send("PUBLISH news x\r\n")
			slow.Send("EVAL 'while true do end' 0\r\n")
			srv.Mu.Unlock()
			if got := first.Reply(); got != protocol.Status("PONG") && !isBusy(got) {
				t.Errorf("got %v", got)
			}
			if got := early.Reply(); got == int64(1) {
				told.Expect("[message news x]")
			} else if !isBusy(got) {
				t.Errorf("got %v", got)
			}
			kill(t, first)
			slow.Reply()
		}
	})
}

// kill kills a script as soon as it can be killed.
func kill(t *testing.T, c *enginetest.Client) {
	t.Helper()
	wait.Until(t, "a script can be killed", func() bool {
		c.Send("SCRIPT KILL\r\n")
		return c.Reply() == protocol.Status("OK")
	})
}

// TestBusyLoop checks that the other clients of a loop get BUSY while a script runs, and
// that later commands of the script's client run when it has ended.
func TestBusyLoop(t *testing.T) {
	overBoth(t, map[string]string{"busy-reply-threshold": "10"}, func(t *testing.T, srv *enginetest.Server, addr string) {
		clients := make([]*enginetest.Client, 8)
		for i := range clients {
			clients[i] = enginetest.Dial(t, addr)
			clients[i].Send("PING\r\n")
			clients[i].Expect("PONG")
		}
		for round := range 3 {
			slow := clients[round]
			slow.Send("EVAL 'while true do end' 0\r\nECHO after\r\n")
			enginetest.Until(t, srv, "busy", func() bool { return srv.Scripting.Busy })
			slow.Send("ECHO later\r\n")
			gone := enginetest.Dial(t, addr) // a new client, which does not stay
			gone.Send("GET k\r\n")
			gone.Expect("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")
			gone.Close()
			bad := enginetest.Dial(t, addr)
			bad.Send("*1\r\n$x\r\n")
			for i, c := range clients {
				if i != round {
					c.Send("GET k\r\n")
					c.Expect("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")
				}
			}
			clients[7].Send("SCRIPT KILL\r\n")
			clients[7].Expect("OK")
			if got := fmt.Sprint(slow.Reply()); !strings.Contains(got, "killed by user") {
				t.Errorf("the script ends with %q", got)
			}
			slow.Expect("after")
			slow.Expect("later")
			if got := bad.All(); got != "-ERR Protocol error: invalid bulk length\r\n" {
				t.Errorf("bad input is answered %q", got)
			}
		}
		enginetest.Until(t, srv, "back", func() bool { return len(srv.Clients.Sessions) == len(clients) })
	})
}

// TestHalfClosed checks that a half-closed client receives all replies, and that a client
// that closes while it is blocked removes no element.
func TestHalfClosed(t *testing.T) {
	overBoth(t, nil, func(t *testing.T, srv *enginetest.Server, addr string) {
		c := enginetest.Dial(t, addr)
		c.Send(strings.Repeat("PING\r\n", 1000))
		c.Conn.(*net.TCPConn).CloseWrite()
		if got := c.All(); got != strings.Repeat("+PONG\r\n", 1000) {
			t.Errorf("got %d bytes", len(got))
		}
		waiting, other := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
		waiting.Send("BLPOP list 0\r\n")
		enginetest.Until(t, srv, "waiting", func() bool { return srv.Stats.BlockedClients == 1 })
		waiting.Close()
		enginetest.Until(t, srv, "gone", func() bool { return srv.Stats.BlockedClients == 0 })
		other.Send("RPUSH list a\r\nLLEN list\r\n")
		other.Expect("1")
		other.Expect("1")
	})
}

// TestArrivedBefore checks that a loop serves all input that has arrived before it reads any,
// more than its buffer holds, and then sees the end of the connection, though no packet arrives
// any more.
func TestArrivedBefore(t *testing.T) {
	overBoth(t, nil, func(t *testing.T, srv *enginetest.Server, addr string) {
		for _, size := range []int{1, 16<<10 - 1, 16 << 10, 16<<10 + 1, 100 << 10} {
			c := enginetest.Dial(t, addr)
			c.Send("PING\r\n")
			c.Expect("PONG")
			srv.Mu.Lock() // a loop waits with the first of its commands
			c.Send("PING\r\n")
			c.Send("PING\r\n\n" + strings.Repeat("\n", size-1) + "ECHO last\r\n")
			c.Conn.(*net.TCPConn).CloseWrite()
			for acked := false; !acked; { // all of it is at the server
				raw, _ := c.Conn.(*net.TCPConn).SyscallConn()
				raw.Control(func(fd uintptr) {
					n, err := unix.IoctlGetInt(int(fd), unix.TIOCOUTQ)
					acked = n == 0 || err != nil
				})
				runtime.Gosched()
			}
			srv.Mu.Unlock()
			if got := c.All(); got != "+PONG\r\n+PONG\r\n$4\r\nlast\r\n" {
				t.Errorf("after %d bytes: got %q", size, got)
			}
		}
		enginetest.Until(t, srv, "gone", func() bool { return len(srv.Clients.Sessions) == 0 })
	})
}

// TestFanOut checks that messages arrive complete, in order, and in each receiver's
// protocol version, with long pipelines of PUBLISH and with commands of the receivers.
func TestFanOut(t *testing.T) {
	overBoth(t, nil, func(t *testing.T, srv *enginetest.Server, addr string) {
		const receivers, publishers, messages = 40, 3, 2000
		clients := make([]*enginetest.Client, receivers)
		for i := range clients {
			c := enginetest.Dial(t, addr)
			clients[i] = c
			if i%2 == 1 {
				c.Send("HELLO 3\r\n")
				c.Reply()
			}
			c.Send("SUBSCRIBE news\r\nPING\r\n")
			c.Expect("[subscribe news 1]")
			c.Reply()
		}
		var got sync.WaitGroup
		for i, c := range clients {
			got.Go(func() {
				var next [publishers]int
				pongs := 0
				for n := range publishers * messages {
					if n%500 == 0 && i%3 == 0 {
						c.Send("PING\r\n")
						pongs++
					}
					var v []any
					for {
						reply, err := protocol.DecodeFrom(c.R)
						if err != nil {
							t.Error(err)
							return
						}
						if push, ok := reply.(protocol.Push); ok {
							v = push
						} else if v, ok = reply.([]any); !ok {
							v = nil
						}
						if v != nil && v[0] == "message" {
							break
						}
						pongs--
					}
					var publisher, m int
					fmt.Sscanf(v[2].(string), "%d:%d", &publisher, &m)
					if m != next[publisher] {
						t.Errorf("client %d got message %d of %d, not %d", i, m, publisher, next[publisher])
						return
					}
					next[publisher]++
				}
				for range pongs {
					c.Reply()
				}
			})
		}
		for p := range publishers {
			got.Go(func() {
				c := enginetest.Dial(t, addr)
				var b strings.Builder
				for m := range messages {
					fmt.Fprintf(&b, "PUBLISH news %d:%d\r\n", p, m)
				}
				c.Send(b.String())
				for range messages {
					c.Expect(fmt.Sprint(receivers))
				}
			})
		}
		got.Wait()
	})
}

func TestUnixSocket(t *testing.T) {
	for _, transport := range []string{"net", "epoll"} {
		path := filepath.Join(t.TempDir(), "s")
		srv, err := enginetest.New(engine.Options{Config: map[string]string{"transport": transport}})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(l) }()
		nc, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		c := enginetest.NewClient(t, nc)
		c.Send("CLIENT INFO\r\n")
		if got := fmt.Sprint(c.Reply()); !strings.Contains(got, "addr="+path+":0 laddr="+path+":0 ") || strings.Contains(got, "fd=-1") {
			t.Errorf("%s: %s", transport, got)
		}
		srv.Close()
		if err := <-served; !errors.Is(err, engine.ErrServerClosed) {
			t.Error(err)
		}
	}
}

// TestLargeArgumentIsSeen checks that the reported memory of a client includes all that it
// has sent before, also a part of a large argument.
func TestLargeArgumentIsSeen(t *testing.T) {
	oneLoop(t)
	_, addr := enginetest.Start(t, map[string]string{"transport": "epoll"})
	other := enginetest.Dial(t, addr)
	const size = 40_000 // more may wait at the sender, for a window
	data := fmt.Appendf(nil, "*1\r\n$%d\r\n%s", size+1, strings.Repeat("v", size))
	for range 300 {
		c := enginetest.Dial(t, addr)
		c.Send("CLIENT SETNAME large\r\n")
		c.Expect("OK")
		for piece := range slices.Chunk(data, 4096) {
			c.Send(string(piece))
		}
		other.Send("CLIENT LIST\r\n")
		var seen int
		for line := range strings.Lines(fmt.Sprint(other.Reply())) {
			if strings.Contains(line, " name=large ") {
				fmt.Sscanf(line[strings.Index(line, " qbuf="):], " qbuf=%d", &seen)
			}
		}
		if seen != size {
			t.Fatalf("%d bytes of %d are seen", seen, size)
		}
		c.Close()
	}
}
