package server

import (
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/peers/transport"
)

// testServer is the parts of a server, for the tests in this package.
type testServer struct {
	*engine.Engine
	*transport.Transport
}

// Blocked returns how many clients are blocked.
func (srv *testServer) Blocked() int {
	srv.Mu.Lock()
	defer srv.Mu.Unlock()
	return srv.BlockedClients
}

// Clients returns how many clients are connected, as Stats does.
func (srv *testServer) Clients() (n int) {
	srv.Mu.Lock()
	defer srv.Mu.Unlock()
	for _, s := range srv.Sessions {
		if s.End != engine.Killed {
			n++
		}
	}
	return n
}

// newEngine returns the parts of a server, as New puts them together.
func newEngine(o Options) (*testServer, error) {
	srv, err := New(o)
	if err != nil {
		return nil, err
	}
	return &testServer{srv.engine, srv.transport}, nil
}
