package server

import "github.com/zsetd/zsetd/protocol"

// BlockedClients returns how many clients are blocked.
func (srv *Server) BlockedClients() int {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.blockedClients
}

// Commands returns the facts of all commands, subcommands in place of their
// containers.
func (srv *Server) Commands() []*protocol.Command {
	var specs []*protocol.Command
	for _, c := range srv.table.rows {
		if len(c.subcommands) == 0 {
			specs = append(specs, c.spec)
		}
		for i := range c.subcommands {
			specs = append(specs, c.subcommands[i].spec)
		}
	}
	return specs
}
