package server

func clientCommands() []Command { return nil }

func (srv *Server) stopMonitor(s *Session)     {}
func (srv *Server) forgetPostponed(s *Session) {}
func (srv *Server) unpause()                   {}

func (srv *Server) holdsBack(s *Session, cmd *Command, argv [][]byte) bool { return false }
