package transport

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/commands/admin"
	"github.com/zsetd/zsetd/server/internal/commands/data"
	"github.com/zsetd/zsetd/server/internal/commands/pubsub"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// kinds are the kinds of connections to each transport.
func kinds() [][2]string {
	return [][2]string{{"epoll", "tcp"}, {"epoll", "unix"}, {"net", "tcp"}, {"net", "unix"}, {"net", "tls"}, {"net", "pipe"}}
}

// served is a server with some commands, and one kind of connection to it.
type served struct {
	*Transport
	t    *testing.T
	dial func() net.Conn
	done chan error // the result of Serve
}

// serve serves one kind of connection until the test ends.
func serve(t *testing.T, kind [2]string, config map[string]string, file string) *served {
	t.Helper()
	values := map[string]string{"transport": kind[0]}
	for name, value := range config {
		values[name] = value
	}
	s := &served{t: t, done: make(chan error, 1)}
	_, err := engine.New(engine.Options{Config: values, File: file}, engine.Parts{
		Commands: [][]engine.Command{admin.ConnectionCommands(), admin.ClientCommands(), admin.ConfigCommands(), data.StringCommands(), data.ListCommands(), pubsub.Commands()},
		Libraries: func(*engine.Engine, *keyspace.Keyspace, engine.LibraryLimits) engine.Functions {
			return engine.Functions{}
		},
		Transport: func(e *engine.Engine) (_ engine.Transport, err error) {
			s.Transport, err = New(e, Options{})
			return s.Transport, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.engine.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if kind[1] == "pipe" {
		s.done <- engine.ErrServerClosed
		s.dial = func() net.Conn {
			nc, err := s.Dialer()(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			return nc
		}
		return s
	}
	network, addr := "tcp", "127.0.0.1:0"
	if kind[1] == "unix" {
		network, addr = "unix", filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	s.dial = func() net.Conn {
		nc, err := net.Dial(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		if kind[1] == "tls" {
			nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
		}
		return nc
	}
	if kind[1] == "tls" {
		pair := httptest.NewTLSServer(nil)
		pair.Close()
		l = tls.NewListener(l, &tls.Config{Certificates: pair.TLS.Certificates})
	}
	go func() { s.done <- s.Serve(l) }()
	return s
}

// client is a connection of a test.
type client struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func (s *served) client() *client {
	nc := s.dial()
	nc.SetDeadline(time.Now().Add(time.Minute))
	s.t.Cleanup(func() { nc.Close() })
	return &client{nc, s.t, bufio.NewReader(nc)}
}

// send writes without waiting for the server.
func (c *client) send(parts ...string) {
	for _, p := range parts {
		io.WriteString(c, p) // a server that has closed the connection does not reply
	}
}

// expect reads as many bytes as want has, and compares them.
func (c *client) expect(want string) {
	c.t.Helper()
	b := make([]byte, len(want))
	if n, err := io.ReadFull(c.r, b); err != nil || string(b) != want {
		c.t.Fatalf("got %.200q, want %.200q: %v", b[:n], want, err)
	}
}

// ends expects the end of the connection.
func (c *client) ends() {
	c.t.Helper()
	if b, err := io.ReadAll(c.r); len(b) > 0 || err != nil {
		c.t.Fatalf("in place of the end: %.200q, %v", b, err)
	}
}

// until waits for a condition under the engine's lock.
func (s *served) until(what string, ok func() bool) {
	s.t.Helper()
	wait.Until(s.t, what, func() bool {
		s.engine.Mu.Lock()
		defer s.engine.Mu.Unlock()
		return ok()
	})
}

// left waits until a number of sessions is left, and of connections.
func (s *served) left(n int) {
	s.t.Helper()
	s.until(fmt.Sprint(n, " clients are left"), func() bool { return len(s.engine.Clients.Sessions) == n })
	wait.Until(s.t, "no more connections are left", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.conns) == n
	})
}

// eachKind runs a test with each kind of connection.
func eachKind(t *testing.T, config map[string]string, test func(t *testing.T, s *served)) {
	for _, kind := range kinds() {
		t.Run(kind[0]+" "+kind[1], func(t *testing.T) { test(t, serve(t, kind, config, "")) })
	}
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// TestInput checks that commands run however their bytes arrive.
func TestInput(t *testing.T) {
	large := strings.Repeat("large", 200_000)
	eachKind(t, nil, func(t *testing.T, s *served) {
		c := s.client()
		c.send("PING\r\n")
		c.expect("+PONG\r\n")
		for _, b := range []byte("*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n") {
			c.send(string(b))
		}
		c.expect(bulk("hello"))
		go c.send("*2\r\n$4\r\nECHO\r\n", bulk(large), "PING\r\n")
		c.expect(bulk(large) + "+PONG\r\n")
		many := 3 * engine.TurnLimit
		go c.send(strings.Repeat("*2\r\n$4\r\nECHO\r\n"+bulk(large[:1000]), many))
		c.expect(strings.Repeat(bulk(large[:1000]), many))
		c.Close()
		s.left(0)
		if in := s.engine.Stats.Input.Load(); in < int64(len(large)+many*1000) || in > int64(len(large)+many*1100) {
			t.Errorf("%d bytes of input counted", in)
		}
		if out := s.engine.Stats.Output.Load(); out < int64(len(large)+many*1000) || out > int64(len(large)+many*1100) {
			t.Errorf("%d bytes of output counted", out)
		}
		if s.engine.Stats.Reads.Load() == 0 || s.engine.Stats.Writes.Load() == 0 {
			t.Error("no reads or writes counted")
		}
	})
}

// TestBadInput checks that the commands before bad input are answered, and then the error.
func TestBadInput(t *testing.T) {
	eachKind(t, nil, func(t *testing.T, s *served) {
		c := s.client()
		c.send("PING\r\n*1\r\nx\r\nPING\r\n")
		c.expect("+PONG\r\n-ERR Protocol error: expected '$', got 'x'\r\n")
		c.ends()
		s.left(0)
	})
}

// TestQuit checks that nothing runs after QUIT.
func TestQuit(t *testing.T) {
	eachKind(t, nil, func(t *testing.T, s *served) {
		c := s.client()
		c.send("QUIT\r\nSET k v\r\n")
		c.expect("+OK\r\n")
		c.ends()
		d := s.client()
		d.send("GET k\r\n")
		d.expect("$-1\r\n")
		d.Close()
		s.left(0)
	})
}

// TestEndOfInput checks that a client that ends its side after its last command receives all
// replies, and with appendfsync always not before the change is on the disk.
func TestEndOfInput(t *testing.T) {
	for _, config := range []map[string]string{nil, {"appendonly": "yes", "appendfsync": "always"}} {
		for _, kind := range kinds() {
			t.Run(fmt.Sprint(kind, config), func(t *testing.T) {
				file := ""
				if config != nil {
					file = filepath.Join(t.TempDir(), "data")
				}
				s := serve(t, kind, config, file)
				if kind[1] == "pipe" {
					return // it cannot end one side
				}
				for i, in := range []string{"", "SET k v\r\n", "SET k v\r\nSET k w\r\nGET k\r\n", "SET k", "SET k v\r\nBLPOP list 0\r\n"} {
					c := s.client()
					c.send(in)
					if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
						t.Fatal(err)
					}
					c.expect([]string{"", "+OK\r\n", "+OK\r\n+OK\r\n$1\r\nw\r\n", "", "+OK\r\n"}[i])
					c.ends()
				}
				s.left(0)
			})
		}
	}
}

// TestWoken checks that a client that is blocked or subscribed is woken by others, and runs the
// rest of its pipeline.
func TestWoken(t *testing.T) {
	eachKind(t, nil, func(t *testing.T, s *served) {
		blocked, listening, other := s.client(), s.client(), s.client()
		other.send("PING\r\n")
		other.expect("+PONG\r\n")
		for range 3 {
			blocked.send("BLPOP list 0\r\nPING\r\nPING\r\n")
			s.until("it is blocked", func() bool { return s.engine.Stats.BlockedClients == 1 })
			blocked.send("ECHO x\r\n")
			other.send("RPUSH list a\r\n")
			other.expect(":1\r\n")
			blocked.expect("*2\r\n$4\r\nlist\r\n$1\r\na\r\n+PONG\r\n+PONG\r\n$1\r\nx\r\n")
		}
		// What is left of its pipeline stays as it was sent, though more input arrives meanwhile.
		for rest := range 4 {
			word := func(c byte) string { return strings.Repeat(string(c), 100) }
			blocked.send("BLPOP list 0\r\n" + strings.Repeat("ECHO "+word('a')+"\r\n", rest))
			s.until("it is blocked", func() bool { return s.engine.Stats.BlockedClients == 1 })
			arrived := func() (n int64) {
				for _, x := range s.engine.Clients.Sessions {
					n += x.Peer.Conn.Arrived()
				}
				return n
			}
			var before int64
			s.until("its input has arrived", func() bool { before = arrived(); return true })
			more := strings.Repeat("ECHO "+word('b')+"\r\n", 10)
			blocked.send(more)
			s.until("more has arrived", func() bool { return arrived() == before+int64(len(more)) })
			other.send("RPUSH list a\r\n")
			other.expect(":1\r\n")
			blocked.expect("*2\r\n$4\r\nlist\r\n$1\r\na\r\n" + strings.Repeat(bulk(word('a')), rest) + strings.Repeat(bulk(word('b')), 10))
		}
		listening.send("SUBSCRIBE news\r\n")
		listening.expect("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
		for _, size := range []int{1, 100, 200_000, 1} {
			message := strings.Repeat("m", size)
			go other.send(strings.Repeat("*3\r\n$7\r\nPUBLISH\r\n$4\r\nnews\r\n"+bulk(message), 3))
			other.expect(strings.Repeat(":1\r\n", 3))
			listening.expect(strings.Repeat("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n"+bulk(message), 3))
		}
		// A blocked client that leaves takes nothing.
		blocked.send("BLPOP list 0\r\n")
		s.until("it is blocked", func() bool { return s.engine.Stats.BlockedClients == 1 })
		blocked.Close()
		s.left(2)
		other.send("RPUSH list a\r\n")
		other.expect(":1\r\n")
		listening.Close()
		s.left(1)
		other.send("PUBLISH news x\r\n")
		other.expect(":0\r\n")
	})
}

// TestKill checks that a client is disconnected at once: one that waits for input, a blocked one,
// and one that has not taken its output.
func TestKill(t *testing.T) {
	eachKind(t, nil, func(t *testing.T, s *served) {
		other := s.client()
		other.send("PING\r\n")
		other.expect("+PONG\r\n")
		for _, before := range []string{"", "BLPOP list 0\r\n", strings.Repeat("GET large\r\n", 50)} {
			if before != "" {
				go other.send("*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n" + bulk(strings.Repeat("x", 1<<20)))
				other.expect("+OK\r\n")
			}
			c := s.client()
			c.send("PING\r\n")
			c.expect("+PONG\r\n")
			c.send(before)
			if strings.Contains(before, "GET") {
				s.until("its replies wait", func() bool {
					for _, s := range s.engine.Clients.Sessions {
						if s.Queue.ExceedsLimit() {
							return true
						}
					}
					return false
				})
			} else if before != "" {
				s.until("it is blocked", func() bool { return s.engine.Stats.BlockedClients == 1 })
			}
			other.send("CLIENT KILL SKIPME yes TYPE normal\r\n")
			other.expect(":1\r\n")
			s.left(1)
			io.Copy(io.Discard, c) // no more than what was on its way
		}
	})
}

// TestLeaves checks that the session of a client ends that leaves with replies unread.
func TestLeaves(t *testing.T) {
	eachKind(t, nil, func(t *testing.T, s *served) {
		c := s.client()
		go c.send("*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n" + bulk(strings.Repeat("x", 1<<20)))
		c.expect("+OK\r\n")
		c.send(strings.Repeat("GET large\r\n", 50))
		s.until("its replies wait", func() bool {
			for _, s := range s.engine.Clients.Sessions {
				return s.Queue.ExceedsLimit()
			}
			return false
		})
		c.Close()
		s.left(0)
	})
}

// TestReadsOn checks that all of a pipeline is read whose replies wait, that CLIENT LIST shows
// its size, and that all replies arrive.
func TestReadsOn(t *testing.T) {
	eachKind(t, nil, func(t *testing.T, s *served) {
		c := s.client()
		large := strings.Repeat("x", 1<<20)
		go c.send("*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n" + bulk(large))
		c.expect("+OK\r\n")
		long := "*2\r\n$4\r\nECHO\r\n" + bulk(large)
		half := long[:len(long)/2]
		c.send(strings.Repeat("GET large\r\n", 40), strings.Repeat(long, 12), strings.Repeat("PING\r\n", 100_000), half)
		s.until("it is read", func() bool {
			for _, s := range s.engine.Clients.Sessions {
				used, free := s.Peer.InputBuffer()
				return used >= 11<<20+600_000 && used < 14<<20 && free < 3<<20
			}
			return false
		})
		c.expect(strings.Repeat(bulk(large), 40))
		c.expect(strings.Repeat(bulk(large), 12))
		c.expect(strings.Repeat("+PONG\r\n", 100_000))
		c.send(long[len(half):])
		c.expect(bulk(large))
		s.until("no input is left", func() bool {
			for _, s := range s.engine.Clients.Sessions {
				used, free := s.Peer.InputBuffer()
				return used == 0 && free <= 2<<20
			}
			return false
		})
	})
}

// TestMaxClients checks that a client beyond maxclients is refused, and that the next one is
// served once one has left.
func TestMaxClients(t *testing.T) {
	eachKind(t, map[string]string{"maxclients": "2"}, func(t *testing.T, s *served) {
		a, b := s.client(), s.client()
		for _, c := range []*client{a, b} {
			c.send("PING\r\n")
			c.expect("+PONG\r\n")
		}
		if _, secure := a.Conn.(*tls.Conn); !secure {
			c := s.client()
			c.expect("-ERR max number of clients reached\r\n")
			c.ends()
		} else if _, err := s.client().Read(make([]byte, 1)); err == nil {
			t.Error("a client of TLS is served")
		}
		if n := s.engine.Stats.Rejected.Load(); n != 1 {
			t.Errorf("%d clients rejected", n)
		}
		b.Close()
		d := s.client() // at once
		d.send("PING\r\n")
		d.expect("+PONG\r\n")
	})
}

// TestShutdown checks that a shutdown answers what has arrived, disconnects blocked clients, and
// refuses new ones.
func TestShutdown(t *testing.T) {
	eachKind(t, nil, func(t *testing.T, s *served) {
		idle, blocked, busy := s.client(), s.client(), s.client()
		for _, c := range []*client{idle, blocked, busy} {
			c.send("PING\r\n")
			c.expect("+PONG\r\n")
		}
		blocked.send("BLPOP list 0\r\nPING\r\n")
		s.until("it is blocked", func() bool { return s.engine.Stats.BlockedClients == 1 })
		s.engine.Mu.Lock()
		busy.send("PING\r\nECHO x\r\nSET")
		stopped := make(chan error, 1)
		go func() { stopped <- s.Shutdown(t.Context()) }()
		s.engine.Mu.Unlock()
		busy.expect("+PONG\r\n$1\r\nx\r\n")
		for _, c := range []*client{idle, blocked, busy} {
			c.ends()
			c.Close()
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if err := <-s.done; !errors.Is(err, engine.ErrServerClosed) {
			t.Error(err)
		}
		if _, err := s.Dialer()(t.Context(), "", ""); !errors.Is(err, engine.ErrServerClosed) {
			t.Error(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Serve(l); !errors.Is(err, engine.ErrServerClosed) {
			t.Error(err)
		}
		if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
			t.Error("the listener is open")
		}
	})
}

// TestShutdownLimit checks that a shutdown abandons the replies that a client does not take once
// its context ends, and returns the context's error.
func TestShutdownLimit(t *testing.T) {
	eachKind(t, nil, func(t *testing.T, s *served) {
		c := s.client()
		go c.send("*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n" + bulk(strings.Repeat("x", 1<<20)))
		c.expect("+OK\r\n")
		c.send(strings.Repeat("GET large\r\n", 50))
		s.until("its replies wait", func() bool {
			for _, s := range s.engine.Clients.Sessions {
				return s.Queue.ExceedsLimit()
			}
			return false
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Shutdown(ctx); err != context.Canceled {
			t.Error(err)
		}
		s.left(0)
	})
}

// TestPeer checks what CLIENT INFO shows of a connection.
func TestPeer(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind[0]+" "+kind[1], func(t *testing.T) {
			s := serve(t, kind, nil, "")
			c := s.client()
			c.send("PING\r\n")
			c.expect("+PONG\r\n")
			s.engine.Mu.Lock()
			defer s.engine.Mu.Unlock()
			for _, session := range s.engine.Clients.Sessions {
				p := session.Peer
				remote, local, fd := c.LocalAddr().String(), c.RemoteAddr().String(), p.FD > 0
				if kind[1] == "unix" {
					local += ":0"
					remote = local
				}
				if kind[1] == "pipe" {
					fd = p.FD == -1
				}
				if p.Addr != remote || p.LocalAddr != local || !fd || p.Unix != (kind[1] == "unix") || p.Secure != (kind[1] == "tls") {
					t.Errorf("%s to %s: %+v", remote, local, p)
				}
				if n := p.Conn.Arrived(); n != int64(len("PING\r\n")) {
					t.Errorf("%d bytes have arrived", n)
				}
				if p.Conn.Ended() {
					t.Error("the client has ended")
				}
			}
		})
	}
}

// TestLinger checks that the last replies of a shutdown arrive, although the client is still
// sending. The server waits a second for the client to take them, which the client of a busy
// machine may miss: one of several tries succeeds.
func TestLinger(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind[0]+" "+kind[1], func(t *testing.T) {
			var err error
			for range 5 {
				if err = lingers(t, serve(t, kind, nil, "")); err == nil {
					return
				}
			}
			t.Error(err)
		})
	}
}

// lingers reads the replies to pings until the end of the connection, while it sends more.
func lingers(t *testing.T, s *served) (err error) {
	c := s.client()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for err := error(nil); err == nil; {
			_, err = io.WriteString(c, strings.Repeat("PING\r\n", 1000))
		}
	}()
	c.expect(strings.Repeat("+PONG\r\n", 10_000))
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(t.Context()) }()
	rest, err := io.ReadAll(c.r)
	if err == nil && !bytes.Equal(rest, bytes.Repeat([]byte("+PONG\r\n"), len(rest)/7)) {
		err = fmt.Errorf("a reply is cut: %d bytes", len(rest))
	}
	c.Close()
	<-ended
	return errors.Join(err, <-stopped)
}

// TestHeld checks the input that waits behind a reader.
func TestHeld(t *testing.T) {
	var h held
	var r protocol.Reader
	want := strings.Repeat("*2\r\n$4\r\nECHO\r\n$30000\r\n"+strings.Repeat("x", 30000)+"\r\n", 10)
	for rest := want; len(rest) > 0; {
		space := h.space()
		if len(space) < minHeldSpace || len(space) > heldBlock {
			t.Fatalf("%d bytes of space", len(space))
		}
		n := copy(space[:min(len(space), 10_000)], rest)
		h.filled(n)
		rest = rest[n:]
	}
	if h.size != len(want) || len(h.blocks) != (len(want)+heldBlock-minHeldSpace-1)/(heldBlock-minHeldSpace) && len(h.blocks) != (len(want)+heldBlock-1)/heldBlock {
		t.Errorf("%d bytes in %d blocks", h.size, len(h.blocks))
	}
	got := 0
	for h.size > 0 {
		before := h.size
		if n := h.feed(&r); n == 0 || h.size != before-n {
			t.Fatalf("fed %d of %d bytes, %d are left", n, before, h.size)
		}
		for {
			args, ok, err := r.Next(nil)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if got++; len(args) != 2 || string(args[0]) != "ECHO" || len(args[1]) != 30000 {
				t.Fatalf("got %d arguments", len(args))
			}
		}
	}
	if got != 10 || h.blocks != nil {
		t.Errorf("got %d commands; %d blocks are left", got, len(h.blocks))
	}
}
