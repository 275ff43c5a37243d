package engine

import (
	"cmp"
	"context"
	"net"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine/config"
)

// Transport is the part of a server that opens listeners and serves connections, as far
// as commands reach it: CONFIG SET, SHUTDOWN, and a command that panics. An engine has
// one, see [Parts].
//
// A transport calls the engine as follows. NewSessionAt makes the session of a
// connection, and Session.Close ends it. Input is parsed within Session.ReaderLimits,
// and Session.InputGrew checks its size; commands run in Session.Turn, or for a loop
// that serves many sessions in Engine.RunTurns. Output of a session is claimed by the
// return of Turn or RunTurns, or by Session.Take; the transport writes it and calls
// Session.Written, which returns more output or releases the claim. Peer.Wake tells the
// transport that a session has output or has ended.
type Transport interface {
	// ApplyTLS applies the TLS parameters of c to new connections. After an error
	// everything is unchanged; undo restores the previous state. It is called with the
	// lock held.
	ApplyTLS(c *config.Settings) (undo func(), err error)

	// Relisten replaces the listeners if the addresses of next are not those of
	// Engine.Config. On failure the old ones stay. It is called with the lock held.
	Relisten(next *config.Settings) error

	// Dial connects to another server, with TLS by the parameters that p is, or without
	// it if p is nil. The network is tcp or unix. It is called without the lock.
	Dial(ctx context.Context, network, addr string, timeout time.Duration, p *config.TLS) (net.Conn, error)

	// ShutdownSoon starts the shutdown of the server once ready has returned nil. It is
	// called with the lock held, and does not wait.
	ShutdownSoon(ready func(context.Context) error)

	// CloseAfterPanic closes all listeners and connections, and returns when none of
	// their goroutines is left. It is called once, without the lock.
	CloseAfterPanic()
}

// MaxClients returns the parameter maxclients. It may be called without the lock, as
// may KeepAlive and RefusesRemote.
func (srv *Engine) MaxClients() int { return srv.limits.Load().maxclients }

// Ports returns the ports for clients without TLS and with it, 0 for none: those of the latest
// listeners, as a program may serve elsewhere than its configuration says, or of the configuration
// before there are any. The lock is held.
func (srv *Engine) Ports() (plain, secure int64) {
	plain, secure = srv.Config.Port, srv.Config.TLSPort
	if served := srv.Transports.TCPPort.Load(); plain != 0 && served != 0 {
		plain = served
	}
	return plain, cmp.Or(srv.Transports.TLSServed.Load(), secure)
}

// KeepAlive returns the parameter tcp-keepalive; 0 disables keepalive.
func (srv *Engine) KeepAlive() time.Duration {
	return time.Duration(srv.limits.Load().keepalive) * time.Second
}

// RefusesRemote reports whether protected mode refuses clients of other machines.
func (srv *Engine) RefusesRemote() bool {
	return srv.limits.Load().protected && srv.ACL.Open()
}

// Err returns nil while the engine serves, and then the reason why it no longer does:
// ErrServerClosed or a *PanicError.
func (srv *Engine) Err() error {
	select {
	case <-srv.Ending.Stopped:
		return srv.closedError()
	default:
		return nil
	}
}

// BeginStop makes the engine refuse new calls of Do, and ends blocked ones. Connections
// continue until their transport closes them.
func (srv *Engine) BeginStop() {
	srv.OutOfTurn(func() { srv.Ending.closed = true })
	srv.Ending.refuseCalls()
}

// refuseCalls closes Stopped, and makes enterCall fail.
func (e *ending) refuseCalls() {
	e.lifecycle.Lock()
	defer e.lifecycle.Unlock()
	if !e.stopping {
		e.stopping = true
		close(e.Stopped)
	}
}

// AwaitCalls waits for the calls of Do, after BeginStop.
func (e *ending) AwaitCalls() { e.running.Wait() }

// EndsAtOnce reports whether SHUTDOWN NOW, or its equivalent for a signal, asks to close
// connections at once.
func (srv *Engine) EndsAtOnce() bool {
	srv.Mu.Lock()
	defer srv.Mu.Unlock()
	return srv.Ending.Flags.now
}

// Finish stops the timer, writes the last changes to the file, if the save rules or the
// options of the shutdown ask for that, and closes it. Every session has been closed by
// then. Only the first call has an effect; all return its error.
func (srv *Engine) Finish() error {
	srv.OutOfTurn(func() {
		srv.Timers.TimerStopped = true
		srv.Timers.timer.Stop()
	})
	srv.closeForwarding()
	srv.Replication.Close()
	srv.Freeing.collector.Wait()
	return srv.closeKeeper()
}

// AwaitPanicClosed waits, if the engine has panicked, until everything is closed or ctx
// ends, and returns the panic.
func (srv *Engine) AwaitPanicClosed(ctx context.Context) error {
	e := srv.fault.first.Load()
	if e == nil {
		return nil
	}
	select {
	case <-srv.fault.closed:
	case <-ctx.Done():
	}
	return e
}

// Await waits until woken has a value, which a session sends by Peer.Wake. It panics as
// Lock does when the lock breaks.
func (srv *Engine) Await(woken <-chan struct{}) {
	select {
	case <-woken:
	case <-srv.fault.broken:
		panic(lockBroken{})
	}
}

// PanicReason returns the panic that broke the lock; p is the recovered panic of a call
// that needed the lock. Any other p is a panic without the lock, in a caller's goroutine,
// which continues.
func (srv *Engine) PanicReason(p any) error {
	if !LockBroken(p) {
		panic(p)
	}
	return srv.fault.first.Load()
}

// LockBroken reports whether a recovered panic is that of an attempt to take the broken
// lock.
func LockBroken(p any) bool {
	_, is := p.(lockBroken)
	return is
}

// Dial connects to another server, see [Transport].
func (t *transports) Dial(ctx context.Context, network, addr string, timeout time.Duration, p *config.TLS) (net.Conn, error) {
	return t.transport.Dial(ctx, network, addr, timeout, p)
}
