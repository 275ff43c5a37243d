package transport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
)

// Transport is the listeners and the connections of a server. Create one with [New].
// All methods are safe for concurrent use.
type Transport struct {
	engine     *engine.Engine
	polls      bool      // plain sockets are served by loops
	bufferPool sync.Pool // of *ioBuffers
	dial       Dial
	running    sync.WaitGroup // the connections and what they have started
	shutdowns  sync.WaitGroup // the goroutines of ShutdownSoon
	listening  listening
	tls        tlsState

	mu              sync.Mutex // guards the fields below
	stopping        bool
	listeners       map[net.Listener]struct{}
	conns           map[connection]struct{}
	staying         map[connection]struct{} // those that stay although their clients have closed
	nextClosedCheck time.Time               // earliest next check of awaitSlot for closed clients
	left            chan struct{}           // closed when the next client has left; nil without a waiting listener
	loops           loops
	acceptFailures  struct {
		logged time.Time // time of the last log line
		times  int       // since then
	}
}

// Dial connects to another server, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Options are open sockets for ListenAndServe, and the way to other servers.
type Options struct {
	Listeners    []net.Listener // in place of those that port and unixsocket ask for
	TLSListeners []net.Listener // in place of that of tls-port
	Dial         Dial           // in place of net.Dialer.DialContext
}

// New returns the transport of an engine. It reads the files of TLS, and opens no
// socket.
func New(e *engine.Engine, o Options) (*Transport, error) {
	dial := o.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	t := &Transport{
		engine: e,
		dial: func(ctx context.Context, network, address string) (nc net.Conn, err error) {
			e.Called(func() { nc, err = dial(ctx, network, address) })
			return nc, err
		},
		polls:     e.Config.Transport == "epoll",
		listeners: map[net.Listener]struct{}{},
		conns:     map[connection]struct{}{},
	}
	t.loops.unsettled = unsettled
	for _, l := range slices.Concat(o.Listeners, o.TLSListeners) {
		if isNil(l) {
			return nil, errors.New("zsetd: a listener of the options is nil")
		}
	}
	t.listening.open = make(chan struct{})
	t.listening.handed, t.listening.handedTLS = o.Listeners, o.TLSListeners
	t.tls.wanted = len(o.TLSListeners) > 0
	if _, err := t.ApplyTLS(&e.Config); err != nil {
		return nil, fmt.Errorf("zsetd: TLS: %w", err)
	}
	return t, nil
}

// connection is a connection of either transport. Its methods may be called from any
// goroutine.
type connection interface {
	// finish closes the connection once the input that has arrived so far is run
	// and answered: see leave.go.
	finish()
	// abort closes the connection at once.
	abort()
	// Ended reports whether the client has closed its side.
	Ended() bool
	// closeAfterPanic sends the client its last reply and closes the connection after the
	// server has panicked. The loops have ended by then.
	closeAfterPanic()
}

func (t *Transport) countInput(n int) {
	t.engine.Stats.Input.Add(int64(n))
	t.engine.Stats.Reads.Add(1)
}

func (t *Transport) countOutput(n int) {
	t.engine.Stats.Output.Add(int64(n))
	t.engine.Stats.Writes.Add(1)
}

// recovers is deferred by each loop. It stops the server after a panic.
func (t *Transport) recovers() {
	if p := recover(); p != nil {
		t.engine.Panicked(p)
	}
}

// setClosedError is deferred by exported methods that return an error. If the engine has
// panicked, it sets the error to the reason.
func (t *Transport) setClosedError(err *error) {
	if p := recover(); p != nil {
		*err = t.engine.PanicReason(p)
	}
}

// Shutdown stops accepting clients, runs and answers all commands that have arrived
// so far, whole pipelines, and closes all connections. Blocked clients are
// disconnected. If ctx ends first, the remaining connections are closed at once and
// Shutdown returns ctx's error. Then changes are written to the file, unless the
// save rules are empty; if that fails, the error says so. If SHUTDOWN ABORT aborts the
// wait for replicas, Shutdown returns engine.ErrShutdownAborted and the server continues.
func (t *Transport) Shutdown(ctx context.Context) error {
	if err := t.engine.StopsWithin(); err != nil {
		return err
	}
	defer t.shutdowns.Wait()
	if err := t.engine.AwaitReplicas(ctx); err != nil {
		return err
	}
	return t.shutdown(ctx)
}

func (t *Transport) shutdown(ctx context.Context) (err error) {
	defer t.awaitPanicClosed(ctx, &err)
	defer t.setClosedError(&err)
	t.stop(connection.finish)
	done := make(chan struct{})
	go func() {
		t.running.Wait()
		t.engine.Ending.AwaitCalls()
		close(done)
	}()
	var late error
	wait := ctx.Done()
	if t.engine.EndsAtOnce() {
		wait = closedChannel()
	}
	select {
	case <-done:
	case <-wait:
		t.stop(connection.abort)
		<-done
		late = ctx.Err()
	}
	t.loops.stop()
	t.loops.close()
	if err := t.engine.Finish(); err != nil {
		return err
	}
	return late
}

// ShutdownSoon implements engine.Transport: it starts the shutdown of SHUTDOWN, unless
// ready returns an error. Serve and ListenAndServe return.
func (t *Transport) ShutdownSoon(ready func(context.Context) error) {
	t.shutdowns.Go(func() {
		if ready(context.Background()) != nil {
			return // aborted
		}
		limit, cancel := context.WithTimeout(context.Background(), lastWrite)
		defer cancel()
		switch err := t.shutdown(limit); {
		case errors.Is(err, context.DeadlineExceeded):
			t.engine.Log.Warn("timeout while sending the last replies to clients", "limit", lastWrite)
		case err != nil:
			t.engine.Log.Error("stopped", "error", err)
		}
	})
}

// Close closes all listeners and connections at once. It still writes changes to
// the file.
func (t *Transport) Close() error {
	if err := t.engine.StopsWithin(); err != nil {
		return err
	}
	defer t.shutdowns.Wait()
	return t.close()
}

func (t *Transport) close() (err error) {
	defer t.awaitPanicClosed(context.Background(), &err)
	defer t.setClosedError(&err)
	t.stop(connection.abort)
	t.running.Wait()
	t.engine.Ending.AwaitCalls()
	t.loops.stop()
	t.loops.close()
	return t.engine.Finish()
}

// stop makes the engine refuse calls, closes the listeners, and calls a function for
// each connection.
func (t *Transport) stop(each func(connection)) {
	t.engine.BeginStop()
	for _, c := range t.stopListening() {
		each(c)
	}
}

// stopListening closes the listeners, and returns the open connections. No further
// ones can be added.
func (t *Transport) stopListening() []connection {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopping = true
	for l := range t.listeners {
		l.Close()
	}
	return slices.Collect(maps.Keys(t.conns))
}

// awaitPanicClosed is deferred by methods that close the server. After a panic of the
// engine it waits until everything is closed, and sets the error to the reason.
func (t *Transport) awaitPanicClosed(ctx context.Context, err *error) {
	if e := t.engine.AwaitPanicClosed(ctx); e != nil {
		*err = e
	}
}

// CloseAfterPanic implements engine.Transport: it closes all listeners and connections
// after a panic. It waits for all goroutines of the connections.
func (t *Transport) CloseAfterPanic() {
	conns := t.stopListening()
	t.loops.stop()
	var words sync.WaitGroup
	for _, c := range conns {
		words.Go(c.closeAfterPanic)
	}
	words.Wait()
	t.running.Wait()
	t.loops.close()
}
