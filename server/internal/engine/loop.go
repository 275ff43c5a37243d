package engine

// Loop is a goroutine of a transport that serves many sessions, and runs the commands
// of several of them in one lock hold: see RunTurns. Its methods are called with the
// lock held.
type Loop interface {
	// Next returns the session of the next turn, its commands, and a buffer for the
	// replies, see Session.Turn. It returns nil if no session has commands.
	Next() (s *Session, batch [][][]byte, spare []byte)

	// Ran receives the results of that turn, see Session.Turn, and the buffer if the
	// turn has not used it. It returns false if the loop is to write replies before
	// further turns. While a script lends the lock it is called without the lock.
	Ran(done int, out, unused []byte, ending bool) (more bool)

	// Woken reports whether the loop serves a session, which has pending work: see
	// Peer.Wake. If so it is Wake that does not wait for the end of the lock hold.
	Woken(s *Session) bool

	// Replace starts another goroutine as the loop: a script of the turn lends the
	// lock, and occupies the goroutine that has called RunTurns.
	Replace()

	// Detached receives the results of a turn in place of Ran if the loop was replaced
	// during the turn. The calling goroutine is no longer the loop.
	Detached(s *Session, done int, out []byte, ending bool)
}

// RunTurns gives turns to the sessions of a loop in one lock hold, until they have no
// more commands, Ran returns false, or the time of a turn is over. mine is false if
// another goroutine has become the loop meanwhile. If unwritten is true, the caller writes the
// changes of the turns to the disk, by WriteDirect, after the replies that need not wait for it.
// While a script lends the lock RunTurns gives one session a turn, see turnWhileBusy.
func (srv *Engine) RunTurns(l Loop) (mine, unwritten bool) {
	srv.Mu.Lock()
	if srv.Scripting.Busy {
		s, batch, spare := l.Next()
		if s == nil {
			srv.Mu.Unlock()
			return true, false
		}
		done, out, ending := s.turnWhileBusy(batch)
		l.Ran(done, out, spare, ending)
		return true, false
	}
	mine, unwritten = srv.runTurns(l)
	srv.unlock()
	return mine, unwritten
}

// WriteDirect writes the changes that RunTurns has left to the caller.
func (srv *Engine) WriteDirect() { srv.Keeper.WriteDirect() }

// Gathering reports whether changes of loops wait for more of them, until a loop calls Gathered.
func (srv *Engine) Gathering() bool { return srv.Keeper.Gathering() }

// Gathered is called by a loop that has no more input. If unwritten is true, it then calls
// WriteDirect.
func (srv *Engine) Gathered() (unwritten bool) {
	srv.MaintainUnlessBusy(func() { unwritten = srv.Keeper.TakeGathered() })
	return unwritten
}

// runTurns is RunTurns with the lock held, while no script lends it.
func (srv *Engine) runTurns(l Loop) (mine, unwritten bool) {
	defer srv.guard()
	srv.Transports.looping = l
	srv.Keeper.Defer() // until TakeDirect, or until a script replaces the loop
	srv.Freeze()
	for first := srv.Turn.At; ; {
		s, batch, spare := l.Next()
		if s == nil {
			break
		}
		srv.serveDue()
		done, out, ending := s.work(batch, spare)
		if srv.Transports.looping != l {
			srv.finishTurn()
			l.Detached(s, done, out, ending)
			return false, false
		}
		more := l.Ran(done, out, s.unused(), ending)
		srv.finishTurn()
		if srv.Transports.looping != l { // a postponed command has run for long
			return false, false
		}
		if !more || srv.Turn.At.Sub(first) > turnTime {
			break
		}
		srv.begin(srv.Turn.At) // the reading from the end of the last command
	}
	srv.Transports.looping = nil
	srv.Turn.passWoken(l)
	return true, srv.Keeper.TakeDirect(len(srv.withheld))
}

// passWoken passes the loop its sessions in the wake list, so that unlock need not
// wake them. It is called with the lock held.
func (t *turn) passWoken(l Loop) {
	u := &t.Scope
	if len(u.wake) == 0 {
		return
	}
	others := u.wake[:0]
	for _, s := range u.wake {
		if l.Woken(s) {
			s.Queue.waking = false
		} else {
			others = append(others, s)
		}
	}
	u.wake = others
}

// replaceLoop starts another goroutine for the loop that holds the lock, if any: the
// script of its turn is about to lend the lock.
func (srv *Engine) replaceLoop() {
	if l := srv.Transports.looping; l != nil {
		srv.Transports.looping = nil
		srv.Keeper.EndDefer()
		l.Replace()
	}
}
