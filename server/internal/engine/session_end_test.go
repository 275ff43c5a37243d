package engine_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// Tests that a client that has closed its side of the connection receives no element,
// though the server has not read up to the end of its input.

// under runs command lines with the server's lock, so that no transport handles an event
// in between.
func under(srv *enginetest.Server, s *engine.Session, lines ...string) {
	for _, line := range lines {
		var argv [][]byte
		for _, word := range strings.Fields(line) {
			argv = append(argv, []byte(word))
		}
		s.Exec(argv)
		srv.Turn.Scope.Commit()
	}
}

// dials are ways to connect to a server.
func dials(t *testing.T) map[string]func(*testing.T) (*enginetest.Server, func() net.Conn) {
	tcp := func(transport string) func(*testing.T) (*enginetest.Server, func() net.Conn) {
		return func(t *testing.T) (*enginetest.Server, func() net.Conn) {
			srv, addr := enginetest.Start(t, map[string]string{"transport": transport})
			return srv, func() net.Conn { return enginetest.Dial(t, addr).Conn }
		}
	}
	ways := map[string]func(*testing.T) (*enginetest.Server, func() net.Conn){
		"net": tcp("net"),
		"unix": func(t *testing.T) (*enginetest.Server, func() net.Conn) {
			srv, _ := enginetest.Start(t, nil)
			dir, err := os.MkdirTemp("", "socket") // not t.TempDir: the path of a socket must be short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			l, err := net.Listen("unix", filepath.Join(dir, "s"))
			if err != nil {
				t.Fatal(err)
			}
			go srv.Serve(l)
			return srv, func() net.Conn {
				nc, err := net.Dial("unix", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				return enginetest.NewClient(t, nc).Conn
			}
		},
		"pipe": func(t *testing.T) (*enginetest.Server, func() net.Conn) {
			srv, _ := enginetest.Start(t, nil)
			return srv, func() net.Conn {
				nc, err := srv.Dialer()(context.Background(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				return enginetest.NewClient(t, nc).Conn
			}
		},
		"tls": func(t *testing.T) (*enginetest.Server, func() net.Conn) {
			p := enginetest.NewPKI(t, t.TempDir(), "ca")
			p.Issue("server", &x509.Certificate{})
			alice := p.Issue("alice", &x509.Certificate{})
			srv, addr, _ := enginetest.StartTLS(t, p.Config())
			return srv, func() net.Conn {
				nc, err := tls.Dial("tcp", addr, p.Client(alice))
				if err != nil {
					t.Fatal(err)
				}
				return enginetest.NewClient(t, nc).Conn
			}
		},
	}
	if runtime.GOOS == "linux" {
		ways["epoll"] = tcp("epoll")
	}
	return ways
}

// TestElementsStay checks that elements that are added after all blocked clients have
// closed stay in place, for all blocking commands.
func TestElementsStay(t *testing.T) {
	commands := []struct{ wait, add, count string }{
		{"BZPOPMIN k 0", "ZADD k %d m%[1]d", "ZCARD k"},
		{"BZPOPMAX k 0", "ZADD k %d m%[1]d", "ZCARD k"},
		{"BZMPOP 0 1 k MIN", "ZADD k %d m%[1]d", "ZCARD k"},
		{"BZPOPBYSCORE 0 1 k -inf +inf", "ZADD k %d m%[1]d", "ZCARD k"},
		{"BZCLAIM 0 1 k -inf 100 1000 LEASE", "ZADD k %d m%[1]d", "ZCOUNT k 0 100"},
		{"BLPOP k 0", "RPUSH k m%d", "LLEN k"},
		{"BRPOP k 0", "RPUSH k m%d", "LLEN k"},
		{"BLMOVE k l LEFT LEFT 0", "RPUSH k m%d", "LLEN k"},
		{"BRPOPLPUSH k l 0", "RPUSH k m%d", "LLEN k"},
		{"BLMPOP 0 1 k LEFT", "RPUSH k m%d", "LLEN k"},
	}
	const n = 20
	for name, open := range dials(t) {
		if runtime.GOOS == "windows" && name != "pipe" {
			continue // there is no way to ask
		}
		t.Run(name, func(t *testing.T) {
			srv, dial := open(t)
			for _, c := range commands {
				enginetest.Must(t, srv, "DEL k")
				var clients []net.Conn
				for i := range n {
					nc := dial()
					if _, err := fmt.Fprint(nc, c.wait, "\r\n"); err != nil {
						t.Fatal(err)
					}
					enginetest.UntilBlocked(t, srv, i+1)
					clients = append(clients, nc)
				}
				adder := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
				adder.SetOwner()
				srv.InTurn(func() {
					for _, nc := range clients {
						if err := nc.Close(); err != nil {
							t.Error(err)
						}
					}
					for i := range n {
						under(srv, adder, fmt.Sprintf(c.add, i))
					}
				})
				adder.Close()
				enginetest.Must(t, srv, fmt.Sprint(c.count, " -> ", n))
				enginetest.UntilBlocked(t, srv, 0)
			}
		})
	}
}

// TestEndedSessionsLeaveNothing checks that a session that ends while commands of it wait or
// run is in no table of the server afterwards.
func TestEndedSessionsLeaveNothing(t *testing.T) {
	joins := []string{"CLIENT TRACKING ON BCAST", "SUBSCRIBE news late", "PSUBSCRIBE n*"}
	most := slices.Concat([]string{"HELLO 3", "WATCH k", "SSUBSCRIBE shard"}, joins)
	all := append(slices.Clone(most), "MONITOR") // such a client can use no key
	const kill, killSelf = "other: CLIENT KILL ID #", "CLIENT KILL ID # SKIPME NO"
	const pause, unpause = "other: CLIENT PAUSE 1000000 WRITE", "other: CLIENT UNPAUSE"
	queue := func(first ...string) []string {
		return slices.Concat([]string{"HELLO 3", "WATCH k", "SSUBSCRIBE shard", "MULTI"}, first, joins)
	}
	for _, x := range []struct {
		name  string
		steps [][]string // # stands for the ID of the session
	}{
		{"leaves", [][]string{all}},
		{"kills itself in a transaction", [][]string{queue(killSelf), {"EXEC"}, all}},
		{"deletes its user in a transaction", [][]string{{"AUTH u p"}, queue("ACL DELUSER u"), {"EXEC"}, all}},
		{"exceeds its limit in a transaction", [][]string{queue("GET large", "GET large", "PUBLISH news x"), {"EXEC"}, all}},
		{"is killed", [][]string{all, {kill}, all}},
		{"is killed before EXEC", [][]string{queue(), {kill, "EXEC"}, all}},
		{"is killed while blocked", [][]string{most, {"BLPOP k l 0", kill}, all}},
		{"leaves while blocked", [][]string{most, {"BLPOP k l 0"}}},
		{"is killed in a pause", [][]string{most, {pause, "BLPOP k l 0", kill}, all, {"close", unpause}}},
		{"leaves in a pause", [][]string{most, {pause, "BLPOP k l 0", "close", unpause}}},
		{"kills itself after a pause", [][]string{queue("DEL k", killSelf), {pause, "EXEC", unpause}, all}},
	} {
		t.Run(x.name, func(t *testing.T) {
			srv, c := newSessions(t, 3)
			s, other, stays := c[0], c[1], c[2]
			tell(t, other, "ACL SETUSER u on >p ~* &* +@all")
			tell(t, other, "SET large "+strings.Repeat("x", 20<<10))
			tell(t, other, "CONFIG SET client-output-buffer-limit 'pubsub 32768 0 0'")
			tell(t, stays, "SUBSCRIBE news")
			closed := false
			for _, step := range slices.Concat(x.steps...) {
				line, of := strings.CutPrefix(strings.ReplaceAll(step, "#", strconv.FormatInt(s.ID, 10)), "other: ")
				switch {
				case of:
					tell(t, other, line)
				case step == "close":
					s.Close()
					closed = true
				default:
					tell(t, s, line)
				}
			}
			if !closed {
				s.Close()
			}
			tell(t, other, "SET k v")
			tell(t, other, "PUBLISH news x")
			if err := srv.Check(); err != nil {
				t.Error(err)
			}
			stays.Close()
			names := slices.Concat(srv.PubSub.Table.Names(subscription.Channels), srv.PubSub.Table.Names(subscription.Patterns), srv.PubSub.Table.Names(subscription.Shards))
			rest := []int{srv.Tracking.Clients(), len(srv.Clients.Monitors), len(srv.Waits.Watched), len(srv.Waits.Waiting), srv.Stats.BlockedClients, len(srv.Clients.Sessions) - 1}
			if len(names) > 0 || slices.Max(rest) > 0 {
				t.Errorf("subscriptions to %q remain; clients that track, with MONITOR, watched keys, awaited keys, blocked clients, further clients: %d", names, rest)
			}
		})
	}
}

// TestHalfClosedWaiter checks that a half-closed client counts as closed, as in Redis, and
// that the element goes to the next client.
func TestHalfClosedWaiter(t *testing.T) {
	for _, transport := range []string{"epoll", "net"} {
		t.Run(transport, func(t *testing.T) {
			if runtime.GOOS != "linux" {
				t.Skip("only Linux sees the end behind unread input")
			}
			srv, addr := enginetest.Start(t, map[string]string{"transport": transport})
			first, second := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
			first.Send("BLPOP k 0\r\n")
			enginetest.UntilBlocked(t, srv, 1)
			second.Send("BLPOP k 0\r\n")
			enginetest.UntilBlocked(t, srv, 2)
			adder := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
			adder.SetOwner()
			srv.InTurn(func() {
				first.Send("PING\r\n")
				if err := first.Conn.(*net.TCPConn).CloseWrite(); err != nil {
					t.Error(err)
				}
				under(srv, adder, "RPUSH k m")
			})
			adder.Close()
			if got := fmt.Sprint(second.Reply()); got != "[k m]" {
				t.Errorf("the second waiter gets %v", got)
			}
			if n, err := first.R.ReadByte(); err == nil {
				t.Errorf("the first waiter gets %q", n)
			}
		})
	}
}

// TestPausedAndClosed checks that commands that CLIENT PAUSE has delayed do not run when
// their client has closed.
func TestPausedAndClosed(t *testing.T) {
	srv, addr := enginetest.Start(t, nil)
	enginetest.Must(t, srv, "RPUSH k m")
	enginetest.Must(t, srv, "CLIENT PAUSE 100000")
	c := enginetest.Dial(t, addr)
	c.Send("LPOP k\r\n")
	enginetest.UntilBlocked(t, srv, 1)
	srv.InTurn(func() {
		c.Close()
		srv.Unpause()
	})
	if runtime.GOOS != "windows" {
		enginetest.Must(t, srv, "LLEN k -> 1")
	}
	enginetest.UntilBlocked(t, srv, 0)
}

// TestDoEnds checks that a call of Do whose context has ended removes no element, and that
// a call that has removed one returns it.
func TestDoEnds(t *testing.T) {
	srv, _ := enginetest.Start(t, nil)
	for range 20 {
		ctx, cancel := context.WithCancel(context.Background())
		type result struct {
			reply any
			err   error
		}
		done := make(chan result)
		wait := func() {
			reply, err := srv.Do(ctx, "BLPOP", "k", "0")
			done <- result{reply, err}
		}
		adder := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
		adder.SetOwner()
		go wait()
		enginetest.UntilBlocked(t, srv, 1)
		srv.InTurn(func() {
			cancel()
			under(srv, adder, "RPUSH k m")
		})
		if r := <-done; !errors.Is(r.err, context.Canceled) {
			t.Errorf("%v, %v", r.reply, r.err)
		}
		enginetest.Must(t, srv, "LPOP k -> m")

		ctx, cancel = context.WithCancel(context.Background())
		go wait()
		enginetest.UntilBlocked(t, srv, 1)
		srv.InTurn(func() {
			under(srv, adder, "RPUSH k m")
			cancel()
		})
		if r := <-done; fmt.Sprint(r.reply, r.err) != "[k m] <nil>" {
			t.Errorf("%v, %v", r.reply, r.err)
		}
		adder.Close()
	}
}

// TestReconnectWhenFull checks that at maxclients a client can close and reconnect at once.
func TestReconnectWhenFull(t *testing.T) {
	const clients, times = 5, 200
	for _, transport := range []string{"epoll", "net"} {
		t.Run(transport, func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("there is no way to ask")
			}
			_, addr := enginetest.Start(t, map[string]string{"transport": transport, "maxclients": fmt.Sprint(clients)})
			var list []*enginetest.Client
			connect := func() {
				c := enginetest.Dial(t, addr)
				c.Send("PING\r\n")
				if got := fmt.Sprint(c.Reply()); got != "PONG" {
					t.Fatalf("client %d: %v", len(list), got)
				}
				list = append(list, c)
			}
			for range clients {
				connect()
			}
			for range times {
				list[0].Close()
				list = list[1:]
				connect()
			}
			c := enginetest.Dial(t, addr)
			if got := fmt.Sprint(c.Reply()); !strings.Contains(got, "max number of clients") {
				t.Errorf("one client more: %v", got)
			}
		})
	}
}
