package enginetest

import (
	"errors"
	"net"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/peers/transport"
	"github.com/zsetd/zsetd/server/internal/wiring"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// Server is an engine with its transport.
type Server struct {
	*engine.Engine
	*transport.Transport
}

// New returns a server with these options.
func New(o engine.Options) (*Server, error) {
	e, t, err := wiring.New(o, transport.Options{}, nil)
	if err != nil {
		return nil, err
	}
	return &Server{e, t}, nil
}

// CheckConfig returns the error with which New, or ListenAndServe, would refuse the options.
func CheckConfig(o engine.Options) error { return wiring.Check(o, transport.Options{}, nil) }

// Start returns a server with these parameters and its address. It serves on a loopback port until the test ends.
func Start(t *testing.T, config map[string]string) (srv *Server, addr string) {
	t.Helper()
	return StartWith(t, engine.Options{Config: config})
}

// StartWith is Start with options.
func StartWith(t *testing.T, o engine.Options) (srv *Server, addr string) {
	t.Helper()
	srv, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Close()
		if err := <-served; !errors.Is(err, engine.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
		srv.InTurn(func() { // engine.checkSlow may run
			if err := srv.Keys.Check(); err != nil {
				t.Error(err)
			}
		})
	})
	return srv, l.Addr().String()
}

// Blocked returns how many clients are blocked.
func (srv *Server) Blocked() int {
	srv.Mu.Lock()
	defer srv.Mu.Unlock()
	return srv.Stats.BlockedClients
}

// Connected returns how many clients are connected.
func (srv *Server) Connected() (n int) {
	srv.Mu.Lock()
	defer srv.Mu.Unlock()
	for _, s := range srv.Clients.Sessions {
		if s.End != engine.Killed {
			n++
		}
	}
	return n
}

// Until waits until a condition holds, which it evaluates under the lock.
func Until(t *testing.T, srv *Server, what string, ok func() bool) {
	t.Helper()
	wait.Until(t, what, func() bool {
		srv.Mu.Lock()
		defer srv.Mu.Unlock()
		return ok()
	})
}

// UntilBlocked waits until so many clients are blocked.
func UntilBlocked(t *testing.T, srv *Server, n int) {
	t.Helper()
	if !wait.Holds(func() bool { return srv.Blocked() == n }) {
		t.Fatalf("%d clients are blocked, not %d", srv.Blocked(), n)
	}
}
