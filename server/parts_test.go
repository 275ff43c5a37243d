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

// server returns the server that has these parts.
func (srv *testServer) server() *Server { return &Server{srv.Engine, srv.Transport} }

// newEngine returns the parts of a server, as New puts them together.
func newEngine(o Options) (*testServer, error) {
	srv, err := New(o)
	if err != nil {
		return nil, err
	}
	return &testServer{srv.engine, srv.transport}, nil
}
