package transport_test

import (
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
	"github.com/zsetd/zsetd/server/internal/peers/transport"
	"github.com/zsetd/zsetd/server/internal/wiring"
)

// TestPreAuthOutputLimit checks that an unauthenticated client that sends commands and
// does not read the replies is disconnected at a small limit of pending output.
func TestPreAuthOutputLimit(t *testing.T) {
	for _, transport := range []string{"epoll", "net"} {
		srv, addr := enginetest.Start(t, map[string]string{"requirepass": "secret", "transport": transport})
		c := enginetest.Dial(t, addr)
		sent := 0
		pings := strings.Repeat("PING\r\n", 2000)
		for sent < 200<<20 {
			n, err := io.WriteString(c, pings)
			sent += n
			if err != nil {
				break
			}
		}
		if sent >= 200<<20 {
			t.Errorf("%s: an unauthenticated client can leave the replies to %d bytes unread", transport, sent)
		}
		srv.Mu.Lock()
		if srv.Stats.OutputLimitDisconnections != 1 || len(srv.Clients.Sessions) != 0 {
			t.Errorf("%s: %d clients disconnected, %d connected, want 1 and 0", transport, srv.Stats.OutputLimitDisconnections, len(srv.Clients.Sessions))
		}
		srv.Mu.Unlock()
		// A client that reads the replies may send any number of commands, and log in then.
		d := enginetest.Dial(t, addr)
		go d.Conn.Write([]byte(strings.Repeat("PING\r\n", 5000) + "AUTH secret\r\nPING\r\n"))
		for range 5000 {
			if got, err := d.R.ReadString('\n'); got != "-NOAUTH Authentication required.\r\n" {
				t.Fatalf("%q, %v", got, err)
			}
		}
		for _, want := range []string{"+OK\r\n", "+PONG\r\n"} {
			if got, err := d.R.ReadString('\n'); got != want {
				t.Errorf("%q, %v", got, err)
			}
		}
	}
}

// TestHTTPWarning checks that clients that speak HTTP are logged once a minute.
func TestHTTPWarning(t *testing.T) {
	log := new(enginetest.LogBuffer)
	srv, err := enginetest.New(engine.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for i, want := range []int{1, 1, 2} {
		if i == 2 {
			srv.Advance(61 * time.Second)
		}
		for _, line := range []string{"POST / HTTP/1.1\r\n", "Host: x\r\n", "pOsT / HTTP/1.1\r\nHost: x\r\n\r\nPING\r\n"} {
			c := enginetest.Pipe(t, srv)
			go io.WriteString(c, line)
			if got := c.All(); got != "" {
				t.Errorf("reply to %q: %q", line, got)
			}
		}
		if got := strings.Count(log.String(), "closing client: it sends HTTP"); got != want {
			t.Errorf("%d warnings, want %d: %s", got, want, log)
		}
	}
}

// TestInheritedListeners checks that the listeners passed to the server are served in
// place of those that the parameters name.
func TestInheritedListeners(t *testing.T) {
	p := enginetest.NewPKI(t, t.TempDir(), "ca")
	cert := p.Client(p.Issue("server", &x509.Certificate{}))
	var ls [2]net.Listener
	for i := range ls {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ls[i] = l
	}
	config := p.Config()
	config["port"], config["tls-port"], config["unixsocket"] = "1", "1", "/nowhere/s" // these addresses cannot be listened on
	_, srv, err := wiring.New(engine.Options{Config: config}, transport.Options{Listeners: ls[:1], TLSListeners: ls[1:]}, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.ListenAndServe() }()
	c := enginetest.Dial(t, ls[0].Addr().String())
	c.Send("PING\r\nCONFIG SET port 2\r\n")
	if got, _ := c.R.ReadString('\n'); got != "+PONG\r\n" {
		t.Errorf("PING: %q", got)
	}
	if got, _ := c.R.ReadString('\n'); !strings.Contains(got, "Unable to listen on this port") {
		t.Errorf("CONFIG SET port: %q", got)
	}
	if _, err := enginetest.PingTLS(ls[1].Addr().String(), cert); err != nil {
		t.Error(err)
	}
	srv.Close()
	if err := <-done; err != engine.ErrServerClosed {
		t.Error(err)
	}
}

// TestProtectedMode checks that without a password no client of another machine is served,
// on any transport, and that clients are served with a password or with protected-mode no.
func TestProtectedMode(t *testing.T) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	host := ""
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			host = n.IP.String()
		}
	}
	if host == "" {
		t.Skip("this machine has only a loopback interface")
	}
	for _, kind := range []string{"epoll", "net"} {
		srv, err := enginetest.New(engine.Options{Config: map[string]string{"transport": kind}})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Skip(err)
		}
		go srv.Serve(l)
		ask := func() string {
			t.Helper()
			c := enginetest.Dial(t, l.Addr().String())
			defer c.Close()
			io.WriteString(c, "PING\r\n")
			got, err := c.R.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		do := func(args ...any) {
			t.Helper()
			if _, err := srv.Do(t.Context(), args...); err != nil {
				t.Fatal(err)
			}
		}
		if got := ask(); !strings.HasPrefix(got, "-DENIED Redis is running in protected mode ") {
			t.Errorf("%s: %q", kind, got)
		}
		do("CONFIG", "SET", "requirepass", "secret")
		if got := ask(); got != "-NOAUTH Authentication required.\r\n" {
			t.Errorf("%s, with a password: %q", kind, got)
		}
		do("CONFIG", "SET", "requirepass", "")
		if got := ask(); !strings.HasPrefix(got, "-DENIED Redis is running in protected mode ") {
			t.Errorf("%s, without it: %q", kind, got)
		}
		do("CONFIG", "SET", "protected-mode", "no")
		if got := ask(); got != "+PONG\r\n" {
			t.Errorf("%s, without protected mode: %q", kind, got)
		}
	}
}

// TestIdleTimeoutWhileSending checks that a client that makes progress with a long command
// is not idle, and that one that sends a few bytes at a time is disconnected.
func TestIdleTimeoutWhileSending(t *testing.T) {
	for _, transport := range []string{"epoll", "net"} {
		srv, addr := enginetest.Start(t, map[string]string{"timeout": "100", "transport": transport})
		dripping, sending, waiting := enginetest.Dial(t, addr), enginetest.Dial(t, addr), enginetest.Dial(t, addr)
		waiting.Send("BLPOP nothing 0\r\n")
		dripping.Send("*1\r\n$100000\r\n")
		sending.Send("*2\r\n$4\r\nECHO\r\n$100000\r\n")
		enginetest.Until(t, srv, "the one that waits is there", func() bool { return len(srv.Waits.Waiting) == 1 })
		clients := func() int {
			srv.Mu.Lock()
			defer srv.Mu.Unlock()
			return len(srv.Clients.Sessions)
		}
		arrived := func(n int) { // of one of them
			t.Helper()
			enginetest.Until(t, srv, "what was sent", func() bool {
				for _, s := range srv.Clients.Sessions {
					if s.Peer.Conn.Arrived() == int64(n) {
						return true
					}
				}
				return false
			})
		}
		drops, sent := len("*1\r\n$100000\r\n"), len("*2\r\n$4\r\nECHO\r\n$100000\r\n")
		for i := range 5 {
			if i < 2 {
				dripping.Send("x")
				drops++
				arrived(drops)
			}
			sending.Send(strings.Repeat("x", 20000))
			sent += 20000
			arrived(sent)
			srv.Advance(90 * time.Second)
			if i == 0 && clients() != 3 {
				t.Errorf("%s: %d clients are left after 90 s", transport, clients())
			}
		}
		enginetest.Until(t, srv, "the slow sender is disconnected", func() bool { return len(srv.Clients.Sessions) == 2 })
		sending.Send("\r\n")
		sending.SetReadDeadline(time.Now().Add(time.Minute))
		if got, err := sending.R.ReadString('\n'); got != "$100000\r\n" {
			t.Errorf("%s: the reply to a long command: %q, %v", transport, got, err)
		}
	}
}
