package server

// HoldFiles keeps the server from writing to its file until release is called.
func (srv *Server) HoldFiles() (release func()) { return srv.engine.Keeper.HoldFiles() }

// BlockedClients returns how many clients are blocked.
func (srv *Server) BlockedClients() int {
	srv.engine.Mu.Lock()
	defer srv.engine.Mu.Unlock()
	return srv.engine.Stats.BlockedClients
}

// Progress is how far the server is with what its clients have sent.
type Progress struct {
	Input    int64 // bytes read
	Commands int64 // executed
	Errors   int64 // error replies; a command that is refused is not executed
	Blocked  int   // blocked clients, of which each has a command that is read and not executed
}

// Progress returns how far the server is. The bytes of a command are counted before it is executed
// or blocks its client.
func (srv *Server) Progress() Progress {
	srv.engine.Mu.Lock()
	defer srv.engine.Mu.Unlock()
	return Progress{srv.engine.Stats.Input.Load(), srv.engine.Stats.Commands, srv.engine.Stats.ErrorReplies, srv.engine.Stats.BlockedClients}
}
