package server

// BlockedClients returns how many clients are blocked.
func (srv *Server) BlockedClients() int {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.blockedClients
}
