package engine

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
)

// Handling of panics. A panic is always a bug in this program.
//
// A panic under the lock may leave any part of the data half changed, and no code
// can tell which. So the lock breaks: each later attempt to take it panics, up to
// the end of its goroutine. No further command runs and no further checkpoint is
// taken, so the file keeps its last consistent state. The client of the panicking
// command receives an error, all other clients are disconnected, Serve and the
// other methods return a *PanicError, and the embedding program continues; zsetd
// exits with a status of its own.
//
// Elsewhere a panic stops the server in the same way, except where it can only have
// damaged the state of one client: in the parsing of its input, and in the
// goroutine of a connection that no loop serves. There it ends that client.
//
// Rejected: to recover per command and continue, which saves the process and loses
// the data (the next checkpoint would contain the command's partial changes); and
// Go's default, which kills the embedding program and sends clients nothing. Each
// goroutine of the server defers one function, and so does each lock hold: 2 ns,
// shared by the commands of that lock hold.
//
// The runtime's fatal errors cannot be recovered: a stack of 1 GB, memory
// exhaustion, concurrent map writes. The process then ends as by SIGKILL, and the
// file contains the last save.

// PanicError is the error of Serve, Do, Shutdown, Close and similar methods after
// code of the server has panicked. The server has then stopped: no command runs,
// and changes since the last save are not written. Another server may open the
// file.
type PanicError struct {
	Value   any    // the value passed to panic
	Stack   []byte // as debug.Stack formats it
	Command string // the command that ran, with secrets redacted; empty if there was none
	Client  string // its client
}

// Error returns one line with the command and the panic value.
func (e *PanicError) Error() string {
	where := ""
	if e.Command != "" {
		name, _, _ := strings.Cut(e.Command, " ")
		where = " in " + name
	}
	return fmt.Sprintf("zsetd: the server has panicked%s: %v", where, e.Value)
}

// Unwrap returns the panic value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrInternal is the reply to a command that has panicked.
const ErrInternal = "ERR internal error: the server is stopping, see its log"

// fault is the panic that broke the server's lock, if any.
type fault struct {
	first  atomic.Pointer[PanicError]
	broken chan struct{} // closed once first is set
	closed chan struct{} // closed once everything else is closed after that
}

// guard breaks and releases the lock after a panic. Every holder of the lock that
// may modify state defers it.
func (srv *Engine) guard() {
	if p := recover(); p != nil {
		srv.breakLock(p)
		srv.Mu.Unlock()
		panic(lockBroken{})
	}
}

// guarded runs f with the lock held. If f panics, the lock breaks and is released.
func (srv *Engine) guarded(f func()) {
	defer srv.guard()
	f()
}

// recovers is deferred by each goroutine of the server. It recovers panics, and those
// of a broken lock.
func (srv *Engine) recovers() {
	if p := recover(); p != nil {
		srv.Panicked(p)
	}
}

// Panicked handles a panic that was recovered without the lock held.
func (srv *Engine) Panicked(p any) {
	if LockBroken(p) {
		return
	}
	srv.Mu.Mutex.Lock()
	srv.breakLock(p)
	srv.Mu.Unlock()
}

// setClosedError is deferred by exported methods that return an error. If the lock is
// broken, it sets the error to the reason.
func (srv *Engine) setClosedError(err *error) {
	if p := recover(); p != nil {
		*err = srv.PanicReason(p)
	}
}

// closedError returns the reason why the server no longer serves.
func (srv *Engine) closedError() error {
	if e := srv.fault.first.Load(); e != nil {
		return e
	}
	return ErrServerClosed
}

// breakLock breaks the lock after a recovered panic: it logs the panic, answers the
// command and starts closeAllAfterPanic in a goroutine. It is called with the lock held.
func (srv *Engine) breakLock(p any) {
	if srv.Mu.broken {
		return
	}
	srv.Mu.broken = true
	e := &PanicError{Value: p, Stack: debug.Stack()}
	if s := srv.Turn.Scope.actor; s != nil {
		e.Client = s.Peer.Addr
		e.Command = s.Call.ForLog()
	}
	if inner, ok := p.(*ScriptPanic); ok {
		e.Value, e.Stack = inner.Value, inner.Stack
		e.Command += " (which has called: " + inner.Command + ")"
	}
	srv.fault.first.Store(e)
	close(srv.fault.broken)
	for _, f := range []func(){
		func() {
			srv.Log.Error("panic: the server stops saving and closes all connections",
				"panic", fmt.Sprint(e.Value), "command", e.Command, "client", e.Client, "stack", string(e.Stack))
		},
		srv.answerPanic,
	} {
		func() {
			defer func() { recover() }() // the data may be in any state
			f()
		}()
	}
	srv.Scripting.Busy = false
	srv.Scripting.idle.Broadcast()
	go srv.closeAllAfterPanic()
}

// answerPanic appends the error reply to the output queue of the panicking
// command's client. Output that waits for a checkpoint is never sent.
func (srv *Engine) answerPanic() {
	s := srv.Turn.Scope.actor
	if s != nil && s.Modes.Replies == ReplyOn && srv.Turn.Scope.mark <= s.Out.Len() {
		s.Out.Truncate(srv.Turn.Scope.mark)
		s.Out.Error(ErrInternal)
	}
	if srv.withholds() {
		for _, w := range srv.Turn.Scope.wake {
			w.Stall.withheld = true
		}
		if s != nil {
			s.Stall.withheld = true
		}
	}
}

// ScriptPanic carries the panic value of a script's command through the Lua
// interpreter.
type ScriptPanic struct {
	Value   any
	Stack   []byte
	Command string
}

// String returns the value of the panic.
func (p *ScriptPanic) String() string { return fmt.Sprint(p.Value) }

// ForLog returns the command with as many arguments, and as much of each, as the
// slow log would keep. For commands that carry passwords it returns only the name,
// because they may have panicked before they marked the arguments to redact.
func (c *Call) ForLog() string {
	if c.Command == nil || len(c.Argv) == 0 {
		return ""
	}
	name := strings.ToUpper(strings.ReplaceAll(c.Command.Name, "|", " "))
	if c.Command.Secret {
		return name + " " + redacted
	}
	var b strings.Builder
	b.WriteString(name)
	for i := strings.Count(c.Command.Name, "|") + 1; i < len(c.Argv); i++ {
		if i == slowlogArgs {
			fmt.Fprintf(&b, " ... (%d more arguments)", len(c.Argv)-i)
			break
		}
		arg := c.shown(i)
		fmt.Fprintf(&b, " %q", arg[:min(len(arg), slowlogArgBytes)])
		if more := len(arg) - slowlogArgBytes; more > 0 {
			fmt.Fprintf(&b, "... (%d more bytes)", more)
		}
	}
	return b.String()
}

// closeAllAfterPanic closes all that a server with a broken lock has open.
func (srv *Engine) closeAllAfterPanic() {
	defer close(srv.fault.closed)
	srv.Timers.timer.Stop()
	srv.Ending.refuseCalls()
	srv.Transports.transport.CloseAfterPanic()
	srv.Ending.running.Wait()
	srv.Replication.Close()
	srv.Freeing.collector.Wait()
	if err := srv.Keeper.Abandon(); err != nil {
		srv.Log.Warn("cannot close the data file", "error", err)
	}
}

// LastReply returns the output to send to a client when no command runs any more.
// mine reports that no other goroutine can be about to write.
func (s *Session) LastReply(mine bool) []byte {
	if s == nil {
		return nil
	}
	s.Engine.Mu.Mutex.Lock()
	defer s.Engine.Mu.Unlock()
	if s.Stall.withheld || s.End == Killed || s.waiting() == 0 || !mine && !s.Queue.claim() {
		return nil
	}
	out := s.next(nil)
	for s.waiting() > 0 {
		out = append(out, s.next(nil)...)
	}
	return out
}
