package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// overAll runs a test with each kind of connection to each transport.
func overAll(t *testing.T, config map[string]string, test func(t *testing.T, srv *enginetest.Server, log *enginetest.LogBuffer, dial func() *enginetest.Client)) {
	p := enginetest.NewPKI(t, t.TempDir(), "ca")
	p.Issue("server", &x509.Certificate{})
	for _, c := range []struct{ transport, network string }{
		{"epoll", "tcp"}, {"epoll", "unix"}, {"net", "tcp"}, {"net", "unix"}, {"net", "tls"}, {"net", "pipe"},
	} {
		t.Run(c.transport+" "+c.network, func(t *testing.T) {
			values := p.Config()
			values["tls-auth-clients"], values["transport"] = "no", c.transport
			for name, value := range config {
				values[name] = value
			}
			log := new(enginetest.LogBuffer)
			srv, err := enginetest.New(engine.Options{Config: values, Logger: slog.New(slog.NewTextHandler(log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Close()
			network, addr, serve := "tcp", "127.0.0.1:0", srv.Serve
			switch c.network {
			case "unix":
				network, addr = "unix", filepath.Join(t.TempDir(), "s")
			case "tls":
				serve = srv.ServeTLS
			}
			l, err := net.Listen(network, addr)
			if err != nil {
				t.Fatal(err)
			}
			go serve(l)
			test(t, srv, log, func() *enginetest.Client {
				var nc net.Conn
				switch c.network {
				case "pipe":
					nc, err = srv.Dialer()(context.Background(), "", "")
				case "tls":
					nc, err = tls.Dial("tcp", l.Addr().String(), p.Client())
				default:
					nc, err = net.Dial(network, l.Addr().String())
				}
				if err != nil {
					t.Fatal(err)
				}
				return enginetest.NewClient(t, nc)
			})
		})
	}
}

// request returns a command in the format of the protocol.
func request(args ...string) string {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return string(b)
}

// A pipeline of tests has more replies than may wait, and then more commands than the socket
// buffers of the system hold.
const (
	gets    = 40
	getSize = 1 << 20
	sets    = 400
	setSize = 64_000
)

func largeReplies() string { return strings.Repeat(request("GET", "large"), gets) }
func manyCommands() string {
	return strings.Repeat(request("SET", "k", strings.Repeat("v", setSize)), sets)
}

// expectLarge reads the replies to largeReplies, and expectMany those to manyCommands.
func expectLarge(t *testing.T, c *enginetest.Client) {
	t.Helper()
	for i := range gets {
		if got, _ := c.Reply().(string); len(got) != getSize {
			t.Fatalf("reply %d has %d bytes", i, len(got))
		}
	}
}

func expectMany(t *testing.T, c *enginetest.Client, want string) {
	t.Helper()
	for range sets {
		c.Expect(want)
	}
}

// setLarge sets the value that largeReplies reads.
func setLarge(t *testing.T, srv *enginetest.Server) {
	t.Helper()
	if _, err := srv.Do(t.Context(), "SET", "large", strings.Repeat("x", getSize)); err != nil {
		t.Fatal(err)
	}
}

// TestPipelineIsReadOn checks that a client that writes all of a pipeline before it reads
// receives all replies, however many there are, whatever the pipeline consists of.
func TestPipelineIsReadOn(t *testing.T) {
	for _, test := range []struct {
		name, pipeline string
		acts           []string // another client's command once all is written
		expect         func(c *enginetest.Client)
	}{
		{"plain", largeReplies() + manyCommands(), nil, func(c *enginetest.Client) {
			expectLarge(t, c)
			expectMany(t, c, "OK")
		}},
		{"a transaction", request("MULTI") + largeReplies() + request("EXEC") + request("MULTI") + manyCommands() + request("EXEC"), nil, func(c *enginetest.Client) {
			c.Expect("OK")
			for range gets {
				c.Expect("QUEUED")
			}
			if got, _ := c.Reply().([]any); len(got) != gets || got[gets-1] != strings.Repeat("x", getSize) {
				t.Fatalf("got %d replies", len(got))
			}
			c.Expect("OK")
			expectMany(t, c, "QUEUED")
			if got, _ := c.Reply().([]any); len(got) != sets || got[sets-1] != protocol.Status("OK") {
				t.Fatalf("got %d replies", len(got))
			}
		}},
		{"one argument", largeReplies() + request("SET", "k", strings.Repeat("v", sets*setSize)) + request("STRLEN", "k"), nil, func(c *enginetest.Client) {
			expectLarge(t, c)
			c.Expect("OK")
			c.Expect(strconv.Itoa(sets * setSize))
		}},
		{"a subscriber", request("HELLO", "3") + request("SUBSCRIBE", "news") + largeReplies() + request("PUBLISH", "news", "x") + manyCommands() + request("UNSUBSCRIBE", "news"), nil, func(c *enginetest.Client) {
			c.Reply()
			c.Expect("[subscribe news 1]")
			expectLarge(t, c)
			got := fmt.Sprint(c.Reply(), c.Reply())
			if got != "[message news x] 1" && got != "1 [message news x]" {
				t.Fatal(got)
			}
			expectMany(t, c, "OK")
			c.Expect("[unsubscribe news 0]")
		}},
		{"without replies", largeReplies() + request("CLIENT", "REPLY", "OFF") + manyCommands() + request("CLIENT", "REPLY", "ON"), nil, func(c *enginetest.Client) {
			expectLarge(t, c)
			c.Expect("OK")
		}},
		{"a blocked client", request("BLPOP", "list", "0") + manyCommands() + request("PING"), []string{"RPUSH", "list", "a"}, func(c *enginetest.Client) {
			c.Expect("[list a]")
			expectMany(t, c, "OK")
			c.Expect("PONG")
		}},
		{"blocked behind replies", largeReplies() + request("BLPOP", "list", "0") + manyCommands(), []string{"RPUSH", "list", "a"}, func(c *enginetest.Client) {
			expectLarge(t, c)
			c.Expect("[list a]")
			expectMany(t, c, "OK")
		}},
		{"a pause", request("CLIENT", "PAUSE", "3600000", "WRITE") + manyCommands() + request("PING"), []string{"CLIENT", "UNPAUSE"}, func(c *enginetest.Client) {
			c.Expect("OK")
			expectMany(t, c, "OK")
			c.Expect("PONG")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			overAll(t, map[string]string{"client-output-buffer-limit": "pubsub 0 0 0"}, func(t *testing.T, srv *enginetest.Server, _ *enginetest.LogBuffer, dial func() *enginetest.Client) {
				setLarge(t, srv)
				c, other := dial(), dial()
				other.Send("PING\r\n")
				other.Expect("PONG")
				c.Send(test.pipeline)
				if test.acts != nil {
					other.Send(request(test.acts...))
					other.Reply()
				} else {
					other.Send("PING\r\n")
					other.Expect("PONG")
				}
				test.expect(c)
				// The connection works as before.
				c.Send(request("PING"))
				c.Expect("PONG")
			})
		})
	}
}

// TestPipelineHalfClosed checks that a client that ends its side after a long pipeline
// receives all replies, and then the end.
func TestPipelineHalfClosed(t *testing.T) {
	overAll(t, map[string]string{"client-output-buffer-limit": "pubsub 0 0 0"}, func(t *testing.T, srv *enginetest.Server, _ *enginetest.LogBuffer, dial func() *enginetest.Client) {
		setLarge(t, srv)
		for _, last := range []string{"", request("QUIT"), request("SUBSCRIBE", "news")} {
			c := dial()
			half, can := c.Conn.(interface{ CloseWrite() error })
			if !can {
				return
			}
			c.Send(largeReplies() + manyCommands() + last)
			half.CloseWrite()
			expectLarge(t, c)
			expectMany(t, c, "OK")
			switch rest := c.All(); {
			case last == "" && rest != "", last == request("QUIT") && rest != "+OK\r\n", strings.Contains(last, "SUBSCRIBE") && !strings.HasSuffix(rest, ":1\r\n"):
				t.Errorf("after %q: %q", last, rest)
			}
		}
	})
}

// heldBack makes a client that has written a long pipeline and reads nothing, and waits until
// the server has read part of it.
func heldBack(t *testing.T, srv *enginetest.Server, dial func() *enginetest.Client) (c *enginetest.Client, s *engine.Session) {
	t.Helper()
	setLarge(t, srv)
	c = dial()
	c.Send(request("CLIENT", "SETNAME", "held"))
	c.Expect("OK")
	go io.WriteString(c, largeReplies()+manyCommands())
	enginetest.Until(t, srv, "it is held back", func() bool {
		for _, s = range srv.Clients.Sessions {
			if used, _ := s.Peer.InputBuffer(); s.Login.Name == "held" && used > 10<<20 {
				return true
			}
		}
		return false
	})
	return c, s
}

// TestPipelineHeldBack checks what other clients see of one whose pipeline is read on, and
// that it ends at once when it is to.
func TestPipelineHeldBack(t *testing.T) {
	overAll(t, nil, func(t *testing.T, srv *enginetest.Server, log *enginetest.LogBuffer, dial func() *enginetest.Client) {
		other := dial()
		other.Send("PING\r\n")
		other.Expect("PONG")
		ends := func(c *enginetest.Client, s *engine.Session) {
			t.Helper()
			enginetest.Until(t, srv, "the client has gone", func() bool { return srv.Clients.Sessions[s.ID] == nil })
			io.Copy(io.Discard, c)
		}

		c, s := heldBack(t, srv, dial)
		other.Send(request("CLIENT", "LIST", "ID", strconv.FormatInt(s.ID, 10)))
		line, _ := other.Reply().(string)
		number := func(name string) int {
			n, _ := strconv.Atoi(regexp.MustCompile(" " + name + `=(\d+)`).FindStringSubmatch(line)[1])
			return n
		}
		qbuf, omem, total := number("qbuf"), number("omem"), number("tot-mem")
		if qbuf < 10<<20 || qbuf > sets*(setSize+100) || omem < 31<<20 || total < qbuf+omem || total > qbuf+omem+2<<20 || !strings.Contains(line, "events=rw") {
			t.Errorf("CLIENT LIST: %s", line)
		}
		for range 100 {
			other.Send("PING\r\n")
			other.Expect("PONG")
		}
		other.Send(request("CLIENT", "KILL", "ID", strconv.FormatInt(s.ID, 10)))
		other.Expect("1")
		ends(c, s)

		c, s = heldBack(t, srv, dial)
		other.Send(request("CONFIG", "SET", "maxmemory-clients", "20mb"))
		other.Expect("OK")
		ends(c, s)
		other.Send(request("CONFIG", "SET", "maxmemory-clients", "0"))
		other.Expect("OK")
		if srv.Stats.EvictedClients != 1 {
			t.Errorf("%d clients evicted", srv.Stats.EvictedClients)
		}

		c, s = heldBack(t, srv, dial)
		c.Close()
		ends(c, s)

		heldBack(t, srv, dial)
		stopped := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		go func() { stopped <- srv.Shutdown(ctx) }()
		if err := <-stopped; err != context.Canceled {
			t.Errorf("Shutdown: %v", err)
		}
		if strings.Contains(log.String(), "panic") {
			t.Error(log.String())
		}
	})
}

// TestPipelineAtShutdown checks that a server that stops answers the pipeline that it has read
// on, if the client reads.
func TestPipelineAtShutdown(t *testing.T) {
	overAll(t, nil, func(t *testing.T, srv *enginetest.Server, _ *enginetest.LogBuffer, dial func() *enginetest.Client) {
		c, s := heldBack(t, srv, dial)
		// With all of it read, the end of the connection discards nothing.
		all := int64(len(request("CLIENT", "SETNAME", "held") + largeReplies() + manyCommands()))
		enginetest.Until(t, srv, "all is read", func() bool { return s.Peer.Conn.Arrived() == all })
		stopped := make(chan error, 1)
		go func() { stopped <- srv.Shutdown(t.Context()) }()
		var replies bytes.Buffer // all before any is parsed: the server waits a second for what is in the sockets
		io.Copy(&replies, c.R)
		c.R = bufio.NewReader(&replies)
		expectLarge(t, c)
		expectMany(t, c, "OK")
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// TestQueryBufferLimit checks that a client is disconnected whose commands, while they do not
// run, exceed client-query-buffer-limit, unless it reads the replies to those before.
func TestQueryBufferLimit(t *testing.T) {
	overAll(t, map[string]string{"client-query-buffer-limit": "1mb"}, func(t *testing.T, srv *enginetest.Server, log *enginetest.LogBuffer, dial func() *enginetest.Client) {
		setLarge(t, srv)
		for i, c := range []struct{ name, pipeline string }{
			{"its replies wait", largeReplies() + manyCommands()},
			{"it is blocked", request("BLPOP", "list", "0") + manyCommands()},
			{"it waits for the end of a pause", request("CLIENT", "PAUSE", "3600000", "WRITE") + manyCommands()},
			{"one command", request("SET", "k", strings.Repeat("v", 2<<20))},
			{"one command behind others", largeReplies() + request("SET", "k", strings.Repeat("v", 20<<20))},
		} {
			before := strings.Count(log.String(), "its input exceeds client-query-buffer-limit")
			bad := dial()
			io.WriteString(bad, c.pipeline) // fails when the client is disconnected
			wait.Until(t, c.name+", and the client is disconnected", func() bool {
				return srv.Stats.QueryLimitDisconnections.Load() == int64(i+1)
			})
			io.Copy(io.Discard, bad)
			wait.Until(t, "the log says so", func() bool {
				return strings.Count(log.String(), "its input exceeds client-query-buffer-limit") == before+1
			})
			if _, err := srv.Do(t.Context(), "CLIENT", "UNPAUSE"); err != nil {
				t.Fatal(err)
			}
		}
		c := dial()
		go io.WriteString(c, largeReplies()+manyCommands())
		expectLarge(t, c)
		expectMany(t, c, "OK")
		if n := srv.Stats.QueryLimitDisconnections.Load(); n != 5 {
			t.Errorf("%d disconnections", n)
		}
	})
}

// TestPipelineProgress checks when a client that reads nothing is disconnected: once it has
// neither read nor sent a part of a pipeline for the seconds of its soft limit.
func TestPipelineProgress(t *testing.T) {
	for _, c := range []struct {
		name   string
		every  time.Duration // the client sends
		bytes  int
		leaves bool
	}{
		{"sends nothing", 0, 0, true},
		{"sends signs of life", 5 * time.Second, 100, true},
		{"continues its pipeline", 50 * time.Second, 8 << 10, false},
	} {
		for _, large := range []int{2, gets} { // below and above the bound of unread replies
			t.Run(fmt.Sprint(c.name, " ", large), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv, err := enginetest.New(engine.Options{Config: map[string]string{"client-output-buffer-limit": "normal 1gb 1mb 60"}})
					if err != nil {
						t.Fatal(err)
					}
					defer srv.Close()
					setLarge(t, srv)
					nc, err := srv.Dialer()(t.Context(), "", "")
					if err != nil {
						t.Fatal(err)
					}
					defer nc.Close()
					io.WriteString(nc, strings.Repeat(request("GET", "large"), large))
					synctest.Wait()
					for began := time.Now(); time.Since(began) < 5*time.Minute; {
						wait.Elapse(max(c.every, time.Second))
						if c.bytes > 0 {
							if _, err := io.WriteString(nc, request("ECHO", strings.Repeat("x", c.bytes))); err != nil {
								break
							}
						}
						synctest.Wait()
					}
					srv.Mu.Lock()
					defer srv.Mu.Unlock()
					if left := srv.Stats.OutputLimitDisconnections == 1; left != c.leaves {
						t.Errorf("disconnected: %v", left)
					}
				})
			})
		}
	}
}

// TestLastReplies checks that a client that has quit receives all replies, though it reads
// slowly, and is disconnected when it reads nothing.
func TestLastReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := enginetest.New(engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		setLarge(t, srv)
		dial := func() net.Conn {
			nc, err := srv.Dialer()(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(nc, strings.Repeat(request("GET", "large"), 25)+request("QUIT"))
			return nc
		}
		slow, stopped := dial(), dial()
		defer stopped.Close()
		b := make([]byte, getSize)
		total := 0
		for range 10 {
			wait.Elapse(4 * time.Second)
			n, err := io.ReadFull(slow, b)
			if total += n; err != nil {
				t.Fatalf("after %d bytes: %v", total, err)
			}
		}
		srv.Mu.Lock()
		if n := len(srv.Clients.Sessions); n != 1 {
			t.Errorf("%d clients, want that which reads", n)
		}
		srv.Mu.Unlock()
		n, err := io.Copy(io.Discard, slow)
		if want := 25*(getSize+len("$1048576\r\n\r\n")) + len("+OK\r\n"); total+int(n) != want || err != nil {
			t.Errorf("got %d bytes, want %d: %v", total+int(n), want, err)
		}
	})
}
