package server

func sortedSetCommands() []Command   { return nil }
func keyCommands() []Command         { return nil }
func sortCommands() []Command        { return nil }
func stringCommands() []Command      { return nil }
func hashCommands() []Command        { return nil }
func setCommands() []Command         { return nil }
func listCommands() []Command        { return nil }
func pubsubCommands() []Command      { return nil }
func transactionCommands() []Command { return nil }
func connectionCommands() []Command  { return nil }
func clientCommands() []Command      { return nil }
func commandCommands() []Command     { return nil }
func serverCommands() []Command      { return nil }

func (srv *Server) unsubscribeAll(s *Session)                              {}
func (srv *Server) stopMonitor(s *Session)                                 {}
func (srv *Server) forgetPostponed(s *Session)                             {}
func (srv *Server) unpause()                                               {}
func (srv *Server) holdsBack(s *Session, cmd *Command, argv [][]byte) bool { return false }
