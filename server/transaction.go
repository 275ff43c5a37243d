package server

// enqueue keeps a command for EXEC.
func (s *Session) enqueue(cmd *Command, argv [][]byte) {
	argv = copyArgs(argv)
	for _, a := range argv {
		s.queued += int64(len(a))
	}
	s.queue = append(s.queue, queued{cmd, argv})
}

// discard ends a transaction and forgets what is watched.
func (s *Session) discard() {
	s.multi, s.aborted = false, false
	s.queue, s.queued = nil, 0
	s.unwatch()
}

// unwatch forgets what is watched.
func (s *Session) unwatch() {
	for _, k := range s.watches {
		subs := s.srv.watched[k]
		delete(subs, s)
		if len(subs) == 0 {
			delete(s.srv.watched, k)
		}
	}
	s.watches, s.touched = s.watches[:0], false
}

func transactionCommands() []Command { return nil }
