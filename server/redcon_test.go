package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/redcon"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// serveRedcon serves srv through a redcon server until the end of the test.
func serveRedcon(t *testing.T, srv *server.Server) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler, accept, closed := server.Redcon(srv)
	ended := make(chan error, 1)
	go func() { ended <- redcon.Serve(l, handler, accept, closed) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-ended; err != nil {
			t.Errorf("redcon: %v", err)
		}
	})
	return l.Addr().String()
}

func dialTCP(t *testing.T, addr string) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return nc
}

// redconClient is a connection that is closed at the end of the test.
type redconClient struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func newRedconClient(t *testing.T, addr string) *redconClient {
	nc := dialTCP(t, addr)
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(judge.Patience))
	return &redconClient{t, nc, bufio.NewReader(nc)}
}

func (c *redconClient) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\r\n"); err != nil {
		c.t.Fatal(err)
	}
}

// expect reads the given bytes; "" is the end of the connection.
func (c *redconClient) expect(want string) {
	c.t.Helper()
	if want == "" {
		if b, err := c.r.ReadByte(); err == nil || errors.Is(err, context.DeadlineExceeded) {
			c.t.Fatalf("the connection is open: %q, %v", b, err)
		}
		return
	}
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c.r, got); err != nil || string(got) != want {
		c.t.Fatalf("got %q (%v), want %q", got[:n], err, want)
	}
}

func newServer(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	srv, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	return srv
}

// awaitClients waits until so many clients are left, and so many of them blocked.
func awaitClients(t *testing.T, srv *server.Server, clients, blocked int) {
	t.Helper()
	var s server.Stats
	if !wait.Holds(func() bool { s = srv.Stats(); return s.Clients == clients && s.BlockedClients == blocked }) {
		t.Fatalf("%d clients, %d blocked", s.Clients, s.BlockedClients)
	}
}

// A connection that blocks or subscribes is detached, and goes on as before.
func TestRedconDetached(t *testing.T) {
	srv := newServer(t, server.Options{})
	addr := serveRedcon(t, srv)
	a, b := newRedconClient(t, addr), newRedconClient(t, addr)
	a.send("SET k 1\r\nBLPOP list 0\r\nINCR k\r\nSUBSCRIBE news\r\nPING")
	a.expect("+OK\r\n")
	awaitClients(t, srv, 2, 1)
	b.send("RPUSH list x\r\nPUBLISH none 1")
	b.expect(":1\r\n:0\r\n")
	a.expect("*2\r\n$4\r\nlist\r\n$1\r\nx\r\n:2\r\n*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n")
	b.send("PUBLISH news hello")
	b.expect(":1\r\n")
	a.expect("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n")
	a.send("UNSUBSCRIBE\r\nHELLO 3 SETNAME a\r\nCLIENT TRACKING ON\r\nGET k")
	a.expect("*3\r\n$11\r\nunsubscribe\r\n$4\r\nnews\r\n:0\r\n%7\r\n")
	for line := ""; line != "$1\r\n"; { // up to the reply of GET
		var err error
		if line, err = a.r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	a.expect("2\r\n")
	b.send("SET k 3")
	b.expect("+OK\r\n")
	a.expect(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n")
	a.send("QUIT")
	a.expect("+OK\r\n")
	a.expect("")
	b.send("QUIT")
	b.expect("+OK\r\n")
	b.expect("")
	awaitClients(t, srv, 0, 0)
	if err := srv.Check(); err != nil {
		t.Error(err)
	}
}

// TestRedconServedAtOnce checks that a client receives its reply if another one serves it
// before its connection is detached.
func TestRedconServedAtOnce(t *testing.T) {
	srv := newServer(t, server.Options{})
	addr := serveRedcon(t, srv)
	for range 200 {
		c := newRedconClient(t, addr)
		c.send("BLPOP list 0")
		for srv.Stats().BlockedClients == 0 { // without a pause: it is a matter of microseconds
			runtime.Gosched()
		}
		if _, err := srv.Do(t.Context(), "RPUSH", "list", "a"); err != nil {
			t.Fatal(err)
		}
		c.expect("*2\r\n$4\r\nlist\r\n$1\r\na\r\n")
		c.Close()
	}
}

// A client that goes while it is blocked takes no element with it.
func TestRedconClientGone(t *testing.T) {
	srv := newServer(t, server.Options{})
	addr := serveRedcon(t, srv)
	for range 20 {
		c := newRedconClient(t, addr)
		c.send("BLPOP list 0")
		awaitClients(t, srv, 1, 1)
		c.Close()
		if n, err := srv.Do(t.Context(), "RPUSH", "list", "x"); err != nil || n != int64(1) {
			t.Fatal(n, err)
		}
		if got, err := srv.Do(t.Context(), "LPOP", "list"); err != nil || got != "x" {
			t.Fatalf("the list has %v, %v", got, err)
		}
		awaitClients(t, srv, 0, 0)
	}
}

// Close and Shutdown end connections in any state, and the closed function releases them.
func TestRedconStops(t *testing.T) {
	for name, stop := range map[string]func(*server.Server) error{
		"Close":    (*server.Server).Close,
		"Shutdown": func(srv *server.Server) error { return srv.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t, server.Options{})
			addr := serveRedcon(t, srv)
			idle, blocked, subscribed := newRedconClient(t, addr), newRedconClient(t, addr), newRedconClient(t, addr)
			idle.send("PING")
			idle.expect("+PONG\r\n")
			blocked.send("BLPOP list 0")
			awaitClients(t, srv, 3, 1)
			subscribed.send("SUBSCRIBE news")
			subscribed.expect("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
			if err := stop(srv); err != nil {
				t.Fatal(err)
			}
			for _, c := range []*redconClient{idle, blocked, subscribed} {
				c.expect("")
			}
			if n := srv.Stats().Clients; n != 0 {
				t.Errorf("%d clients are left", n)
			}
			late := newRedconClient(t, addr)
			late.expect("")
		})
	}
}

// Replies of writes wait for the file; the limits that do not depend on the parser hold.
func TestRedconLimits(t *testing.T) {
	srv := newServer(t, server.Options{
		File:   filepath.Join(t.TempDir(), "data.db"),
		Config: map[string]string{"appendonly": "yes", "appendfsync": "always", "maxclients": "2", "requirepass": "secret"},
	})
	addr := serveRedcon(t, srv)
	a := newRedconClient(t, addr)
	a.send("GET k\r\nAUTH secret\r\nSET k 1\r\nINCR k\r\nGET k")
	a.expect("-NOAUTH Authentication required.\r\n+OK\r\n+OK\r\n:2\r\n$1\r\n2\r\n")
	b := newRedconClient(t, addr)
	b.send("AUTH default secret\r\nCLIENT ID")
	b.expect("+OK\r\n:")
	c := newRedconClient(t, addr)
	c.expect("-ERR max number of clients reached\r\n")
	c.expect("")
	a.send("CLIENT KILL SKIPME yes")
	a.expect(":1\r\n")
	if _, err := io.Copy(io.Discard, b.r); err != nil {
		t.Logf("the killed client reads %v", err) // a reset is an end, too
	}
	awaitClients(t, srv, 1, 0)
}

// The protocol's errors are redcon's, before and after the connection is detached.
func TestRedconProtocolErrors(t *testing.T) {
	srv := newServer(t, server.Options{})
	addr := serveRedcon(t, srv)
	for _, first := range []string{"PING", "SUBSCRIBE news"} {
		c := newRedconClient(t, addr)
		c.send(first + "\r\n*1\r\n:1")
		line := ""
		for !strings.HasPrefix(line, "-") {
			var err error
			if line, err = c.r.ReadString('\n'); err != nil {
				t.Fatalf("%s: %v", first, err)
			}
		}
		if line != "-ERR Protocol error: expected '$', got ':'\r\n" {
			t.Errorf("%s: %q", first, line)
		}
		c.expect("")
	}
	awaitClients(t, srv, 0, 0)
}

// A pipeline and its replies may be larger than any buffer.
func TestRedconLongPipeline(t *testing.T) {
	srv := newServer(t, server.Options{})
	c := newRedconClient(t, serveRedcon(t, srv))
	const n = 5000
	value := strings.Repeat("v", 1000)
	go func() {
		io.WriteString(c, "SET k "+value+"\r\n"+strings.Repeat("GET k\r\n", n)+"BLPOP none 0.001\r\n"+strings.Repeat("GET k\r\n", n))
	}()
	reply := fmt.Sprintf("$%d\r\n%s\r\n", len(value), value)
	c.expect("+OK\r\n")
	for range n {
		c.expect(reply)
	}
	c.expect("*-1\r\n")
	for range n {
		c.expect(reply)
	}
}

// A connection is detached before it receives anything that it has not requested.
func TestRedconReceives(t *testing.T) {
	srv := newServer(t, server.Options{})
	addr := serveRedcon(t, srv)
	for _, c := range []struct{ send, reply, do, push string }{
		{"SUBSCRIBE news", "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n", "PUBLISH news a", "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\na\r\n"},
		{"PSUBSCRIBE n*", "*3\r\n$10\r\npsubscribe\r\n$2\r\nn*\r\n:1\r\n", "PUBLISH news a", "*4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$4\r\nnews\r\n$1\r\na\r\n"},
		{"MONITOR", "+OK\r\n", "SET k 1", "+"},
		{"HELLO 3\r\nCLIENT TRACKING ON BCAST", "%7\r\n", "SET k 1", ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"},
	} {
		client := newRedconClient(t, addr)
		client.send(c.send)
		client.expect(c.reply)
		for line := ""; strings.HasPrefix(c.reply, "%") && line != "+OK\r\n"; { // the rest of HELLO's, and the next
			var err error
			if line, err = client.r.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		var args []any
		for _, word := range strings.Fields(c.do) {
			args = append(args, word)
		}
		if _, err := srv.Do(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
		client.expect(c.push)
		client.Close()
		awaitClients(t, srv, 0, 0)
	}
}

// After a panic of the server its clients receive their last replies.
func TestRedconPanic(t *testing.T) {
	srv := newServer(t, server.Options{Commands: []server.Command{{Name: "fail", Arity: 1, Flags: "write", Run: func(c *server.Call) (any, error) {
		c.Do("SET", "k", 1)
		panic("for the test")
	}}}})
	addr := serveRedcon(t, srv)
	a, b, idle := newRedconClient(t, addr), newRedconClient(t, addr), newRedconClient(t, addr)
	idle.send("PING")
	idle.expect("+PONG\r\n")
	b.send("SUBSCRIBE news")
	b.expect("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
	a.send("PING\r\nFAIL\r\nPING")
	a.expect("+PONG\r\n-ERR internal error: the server is stopping, see its log\r\n")
	for _, c := range []*redconClient{a, b, idle} {
		c.expect("")
	}
	if err, ok := errors.AsType[*server.PanicError](srv.Close()); !ok || err.Value != "for the test" {
		t.Errorf("Close: %v", err)
	}
}
