package server

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// What happens when something panics, which is always a mistake in this program.
//
// Under the lock any part of the data may be half changed then, and nobody can tell
// which. So the lock breaks: whoever wants it from now on panics himself, up to the
// end of his goroutine, and so no command runs and no Cut is taken any more. The
// file keeps what it has. The client whose command it was is told, the others lose
// their connections, Serve and all the rest return a *PanicError, and the program
// around the server goes on; zsetd ends, with a status of its own.
//
// Elsewhere a panic ends the server in the same way, unless nothing that it may have
// spoilt belongs to anybody else: while one client's input is parsed, and in the
// goroutine of a connection that no loop serves. Then it ends that client.
//
// Rejected: to recover for each command and go on, which saves the process and loses
// the data (the next Cut would have what the command has left), and Go's own way,
// which kills the program that the server is a part of and tells no client
// anything. Each goroutine of the server defers one function, and so does each hold
// of the lock: 2 ns for as many commands as it is held for.
//
// Nobody can catch what the runtime calls fatal: a stack of 1 GB, memory that the
// system does not give, a map that two goroutines write to. The process ends as by
// SIGKILL then, and the file has what was saved last.

// PanicError is what Serve, Do, Shutdown, Close and their like return when something
// in the server has panicked. The server is over then: nothing runs, and nothing that
// was changed since the last save is written. The file can be opened by another.
type PanicError struct {
	Value   any    // what it has panicked with
	Stack   []byte // as debug.Stack formats it
	Command string // that was running, without what is secret; empty if there was none
	Client  string // whose it was
}

// Error says in one line where and with what.
func (e *PanicError) Error() string {
	where := ""
	if e.Command != "" {
		name, _, _ := strings.Cut(e.Command, " ")
		where = " in " + name
	}
	return fmt.Sprintf("zsetd: the server has panicked%s: %v", where, e.Value)
}

// Unwrap returns what it has panicked with if that was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// errInternal is the reply to a command that has panicked.
const errInternal = "ERR internal error: the server has to stop, its log tells more"

// mainLock is the server's lock.
type mainLock struct {
	sync.Mutex
	broken bool // guarded by itself
}

// lockBroken is what Lock panics with when the lock is broken.
type lockBroken struct{}

// Lock takes the lock, if it is not broken.
func (l *mainLock) Lock() {
	l.Mutex.Lock()
	if l.broken {
		l.Mutex.Unlock()
		panic(lockBroken{})
	}
}

// guard is deferred by whoever does more with the lock than to look: if he panics the
// lock breaks, and is given back.
func (srv *Server) guard() {
	if p := recover(); p != nil {
		srv.breakLock(p)
		srv.mu.Unlock()
		panic(lockBroken{})
	}
}

// guarded runs f, with the lock held.
func (srv *Server) guarded(f func()) {
	defer srv.guard()
	f()
}

// ends is deferred by each goroutine of the server: there ends what has panicked, or
// has found the lock broken.
func (srv *Server) ends() {
	if p := recover(); p != nil {
		srv.panicked(p)
	}
}

// panicked is called with what was recovered without the lock.
func (srv *Server) panicked(p any) {
	if _, known := p.(lockBroken); known {
		return
	}
	srv.mu.Mutex.Lock()
	srv.breakLock(p)
	srv.mu.Unlock()
}

// attempt runs f, which ends early if the lock is broken.
func (srv *Server) attempt(f func()) {
	defer srv.ends()
	f()
}

// fallen is deferred by what others call, and returns an error: if the lock is broken
// that is why.
func (srv *Server) fallen(err *error) {
	if p := recover(); p != nil {
		if _, known := p.(lockBroken); !known {
			panic(p) // without the lock, and in a goroutine of theirs
		}
		*err = srv.fault.Load()
	}
}

// closedError is why the server does not serve any more.
func (srv *Server) closedError() error {
	if e := srv.fault.Load(); e != nil {
		return e
	}
	return ErrServerClosed
}

// breakLock is called with the lock held, by whoever has recovered from a panic. All
// that comes after is what is left to do.
func (srv *Server) breakLock(p any) {
	if srv.mu.broken {
		return
	}
	srv.mu.broken = true
	e := &PanicError{Value: p, Stack: debug.Stack()}
	if s := srv.unit.actor; s != nil {
		e.Client = s.addr
		e.Command = s.call.forLog()
	}
	if inner, ok := p.(*scriptPanic); ok {
		e.Value, e.Stack = inner.value, inner.stack
		e.Command += " (which has called: " + inner.command + ")"
	}
	srv.fault.Store(e)
	close(srv.broken)
	for _, f := range []func(){
		func() {
			srv.log.Error("the server has panicked; nothing is saved any more, and all connections are closed",
				"panic", fmt.Sprint(e.Value), "command", e.Command, "client", e.Client, "stack", string(e.Stack))
		},
		srv.answerPanic,
	} {
		func() {
			defer func() { recover() }() // who knows what is left of the data
			f()
		}()
	}
	srv.busy = false
	srv.idle.Broadcast()
	go srv.bury()
}

// answerPanic appends the reply to the command that has panicked to the outbox of its
// client. What would have had to wait for a Cut is not sent any more.
func (srv *Server) answerPanic() {
	s := srv.unit.actor
	if s != nil && s.replies == replyOn && srv.unit.mark <= s.out.Len() {
		s.out.Truncate(srv.unit.mark)
		s.out.Error(errInternal)
	}
	if srv.keeper.holds() {
		for _, w := range srv.unit.wake {
			w.held = true
		}
		if s != nil {
			s.held = true
		}
	}
}

// scriptPanic is what a command of a script has panicked with, on its way through the
// machine that runs the script.
type scriptPanic struct {
	value   any
	stack   []byte
	command string
}

func (p *scriptPanic) String() string { return fmt.Sprint(p.value) }

// forLog returns the command with as many arguments, and as much of each, as the slow
// log would keep. Of commands that carry passwords it is the name alone, for they may
// have come to nothing before they could say which argument that is.
func (c *Call) forLog() string {
	if c.cmd == nil || len(c.argv) == 0 {
		return ""
	}
	name := strings.ToUpper(strings.ReplaceAll(c.cmd.Name, "|", " "))
	switch c.cmd.Name {
	case "auth", "hello", "acl|setuser", "config|set", "migrate":
		return name + " " + redacted
	}
	var b strings.Builder
	b.WriteString(name)
	for i := strings.Count(c.cmd.Name, "|") + 1; i < len(c.argv); i++ {
		if i == slowlogArgs {
			fmt.Fprintf(&b, " ... (%d more arguments)", len(c.argv)-i)
			break
		}
		arg := c.shown(i)
		fmt.Fprintf(&b, " %q", arg[:min(len(arg), slowlogBytes)])
		if more := len(arg) - slowlogBytes; more > 0 {
			fmt.Fprintf(&b, "... (%d more bytes)", more)
		}
	}
	return b.String()
}

// lastWords is how long a client may take to receive why it is disconnected.
const lastWords = 200 * time.Millisecond

// bury closes everything that is left of a server whose lock is broken.
func (srv *Server) bury() {
	defer close(srv.buried)
	srv.timer.Stop()
	conns := srv.stopListening()
	srv.loops.stop()
	var words sync.WaitGroup
	for _, c := range conns {
		words.Go(c.bury)
	}
	words.Wait()
	srv.running.Wait()
	srv.loops.close()
	if err := srv.keeper.abandon(); err != nil {
		srv.log.Warn("closing the file", "error", err)
	}
}

// lastReply returns what a client is still to be sent, when no command runs any more.
// mine says that nobody else can be about to write.
func (s *Session) lastReply(mine bool) []byte {
	if s == nil {
		return nil
	}
	s.srv.mu.Mutex.Lock()
	defer s.srv.mu.Unlock()
	if s.held || s.killed || s.waiting() == 0 || !mine && !s.claim() {
		return nil
	}
	out := s.next(nil)
	for s.waiting() > 0 {
		out = append(out, s.next(nil)...)
	}
	return out
}
