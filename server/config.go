package server

import (
	"fmt"
	"net"
	"sync/atomic"

	"github.com/zsetd/zsetd/protocol"
)

// config holds the values of the parameters.
type config struct {
	databases         int
	requirepass       string
	maxclients        int
	pubsubOutputLimit int64
}

func defaultConfig() config {
	return config{databases: 16, maxclients: 10000, pubsubOutputLimit: 32 << 20}
}

// inputLimits are what transports ask for without the lock.
type inputLimits struct {
	reader     protocol.Limits
	maxclients int
}

type limitsPointer = atomic.Pointer[inputLimits]

// configure applies parameters before the server starts.
func (srv *Server) configure(values map[string]string) error {
	for name := range values {
		return fmt.Errorf("zsetd: unknown parameter %q", name)
	}
	srv.limits.Store(&inputLimits{maxclients: srv.config.maxclients})
	return nil
}

// applyLimits hands the sizes of small values to the keyspace.
func (srv *Server) applyLimits() {}

func (srv *Server) maxClients() int { return srv.limits.Load().maxclients }

func (srv *Server) listen() ([]net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:6379")
	return []net.Listener{l}, err
}

func configCommands() []Command { return nil }
