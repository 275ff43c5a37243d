package engine

import (
	"sync"
	"time"
)

// The server's one lock is taken in these ways, each for one purpose. The first four are turns,
// with one reading of the clock. The server is busy while a script lends the lock.
//
//	way                 purpose                                 while busy           due waiters  commits     may change
//	Session.Turn,       commands of clients and of Do           runs the commands    are served   after each  anything
//	  RunTurns                                                  that are permitted   before       command
//	InTurn              other work in order with commands:      waits                are served   after f     anything
//	                    replication, forwarding, backups,                            before
//	                    iterators, tests
//	Maintain            work beside commands: the timer (which  waits                wait         after f     sessions, and what
//	                    serves due waiters), the keeper, the                                                  has expired
//	                    end of a session
//	MaintainUnlessBusy  the same in goroutines that serve the   omits f, returns     wait         after f     as Maintain
//	                    clients of a busy server: transports    false
//	OutOfTurn           facts and figures without waiting for   runs f               wait         never       no data that commands
//	                    a script; the loading of data                                                         see; wakes no session
//	Mu.Lock, deferred   the same as the rest of a function: no  runs it              wait         never       as OutOfTurn
//	  Mu.Unlock         closure where transports call often
//
// Session.leave is Maintain that does not wait while busy if it need not. lend is the other side:
// a script lends the lock. Attempt is what goroutines and callbacks run in: when the lock is
// broken each of these ways panics, and Attempt recovers that.

// mainLock is the server's lock. It can break, see fault.go.
type mainLock struct {
	sync.Mutex
	broken bool // guarded by itself
}

// lockBroken is the value that Lock panics with after the lock has broken.
type lockBroken struct{}

// Lock takes the lock, or panics if it is broken.
func (l *mainLock) Lock() {
	l.Mutex.Lock()
	if l.broken {
		l.Mutex.Unlock()
		panic(lockBroken{})
	}
}

// Attempt runs f, which ends early if the lock is broken.
func (srv *Engine) Attempt(f func()) {
	defer srv.recovers()
	f()
}

// InTurn runs f in a turn and a commit scope of its own.
func (srv *Engine) InTurn(f func()) {
	srv.Maintain(func() {
		srv.serveDue()
		f()
		srv.Turn.Scope.Commit()
	})
}

// Maintain runs f in a turn that serves no waiter before f.
func (srv *Engine) Maintain(f func()) {
	srv.Mu.Lock()
	for srv.Scripting.Busy {
		srv.Scripting.idle.Wait()
	}
	srv.maintainLocked(f)
}

// MaintainUnlessBusy is Maintain, unless a script lends the lock: then it returns false, and
// does not run f.
func (srv *Engine) MaintainUnlessBusy(f func()) bool {
	srv.Mu.Lock()
	if srv.Scripting.Busy {
		srv.Mu.Unlock()
		return false
	}
	srv.maintainLocked(f)
	return true
}

// maintainLocked is Maintain with the lock taken, while no script lends it.
func (srv *Engine) maintainLocked(f func()) {
	srv.guarded(func() {
		srv.Freeze()
		f()
		srv.finishTurn()
	})
	srv.unlock()
}

// OutOfTurn runs f with the lock, also while a script lends it, and nothing before or after f.
// f changes no data and wakes no session.
func (srv *Engine) OutOfTurn(f func()) {
	srv.Mu.Lock()
	srv.guarded(f)
	srv.Mu.Unlock()
}

// unlock releases the lock and wakes the sessions with pending work.
func (srv *Engine) unlock() {
	u := &srv.Turn.Scope
	if len(u.wake) == 0 {
		srv.Mu.Unlock()
		return
	}
	wake := u.wake
	u.wake = nil
	for _, s := range wake {
		s.Queue.waking = false
	}
	srv.Mu.Unlock()
	for _, s := range wake {
		s.Peer.Wake()
	}
}

// lend releases the lock for a while, and takes it again. The turn of the script is set aside
// meanwhile. In the one that takes its place, sessions run the commands that are permitted while
// a script is busy (turnWhileBusy), and those that have output so far are woken.
func (srv *Engine) lend() {
	if len(srv.Turn.Scope.wake) > 0 && srv.withholds() {
		srv.withholdWoken()
	}
	outer := srv.Turn
	srv.Turn = turn{began: outer.At, At: outer.At, Instant: outer.Instant, sequence: outer.sequence, effectsBefore: outer.effectsBefore, changesBefore: outer.changesBefore}
	srv.Turn.Scope.srv, srv.Turn.Scope.wake = srv, outer.Scope.wake
	srv.Scripting.Busy, srv.checks.known = true, false
	srv.replaceLoop() // a new goroutine must read the loop's other clients
	if srv.Pauses.Until == 0 {
		srv.Keys.Freeze()
	}
	srv.unlock()
	time.Sleep(busyYieldTime)
	srv.Mu.Mutex.Lock()
	if srv.Mu.broken {
		return // return to interrupt, which ends the script
	}
	outer.Scope.wake = srv.Turn.Scope.wake
	srv.Turn = outer
	if srv.Pauses.Until == 0 {
		srv.Keys.Thaw()
	}
}

// busyYieldTime is how long the lock is free each time.
const busyYieldTime = 200 * time.Microsecond

// busyEnded resumes the goroutines that wait for the end of a script.
func (srv *Engine) busyEnded() {
	srv.Scripting.Busy, srv.checks.known = false, false
	srv.Scripting.idle.Broadcast()
}
