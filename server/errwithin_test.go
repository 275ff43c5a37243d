package server

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// calledWithin calls each method of srv, and then call, and reports the methods of Server
// that return no error of their own, or another one than ErrWithin.
func calledWithin(t *testing.T, srv *Server) {
	ctx := t.Context()
	for _, name := range slices.Sorted(maps.Keys(methodCalls(""))) {
		if name != "Advance" { // it panics
			methodCalls("")[name](ctx, srv)
		}
	}
	_, do := srv.Do(ctx, "PING")
	_, many := srv.DoMany(ctx, []any{"PING"})
	_, subscribe := srv.Subscribe(ctx, "c")
	_, dial := srv.Dialer()(ctx, "", "")
	var keys error
	for _, keys = range srv.Keys(ctx, 0, "*") {
	}
	for name, err := range map[string]error{
		"Do": do, "DoMany": many, "Tx": srv.Tx(ctx, func(*Tx) error { return nil }), "Subscribe": subscribe, "Dialer": dial, "Keys": keys, "Save": srv.Save(ctx), "Close": srv.Close(), "Shutdown": srv.Shutdown(ctx),
		"Check": srv.Check(), "Ready": srv.Ready(ctx), "Listening": srv.Listening(ctx), "ListenAndServe": srv.ListenAndServe(), "Signaled": srv.Signaled(false),
		"BackupFile": srv.BackupFile(ctx, ""), "Simulation": srv.Simulation().StopClock(true),
	} {
		if !errors.Is(err, ErrWithin) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := srv.Stats(); s.Uptime != 0 || srv.UsedMemory() != 0 {
		t.Errorf("Stats: %v", s)
	}
	if srv.IsReplica() || srv.MemoryLimit() != 0 || srv.CommandName("get") != "get" || srv.Now().IsZero() {
		t.Error("methods without a lock fail")
	}
}

// callingHandler is a log handler that calls a function.
type callingHandler struct {
	slog.Handler
	call func(message string)
}

func (h callingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h callingHandler) Handle(_ context.Context, r slog.Record) error {
	h.call(r.Message)
	return nil
}

func (h callingHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

// TestWithin checks that code of the program which the server calls gets an error at once
// from the methods that would wait for the server, and that other goroutines get none.
func TestWithin(t *testing.T) {
	var srv *Server
	var called sync.Map
	var err error
	srv, err = New(Options{
		Config: map[string]string{"enable-debug-command": "yes"},
		Logger: slog.New(callingHandler{slog.DiscardHandler, func(message string) {
			if srv != nil {
				called.Store("log: "+message, true)
				calledWithin(t, srv)
			}
		}}).With("a", "b"),
		Commands: []Command{{Name: "within", Arity: 1, Run: func(c *Call) (any, error) {
			calledWithin(t, srv)
			if got, err := c.Do("PING"); err != nil || got == nil {
				t.Errorf("PING by Call.Do: %v, %v", got, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			other := make(chan error)
			go func() { other <- srv.Ready(ctx) }()
			if err := <-other; err != nil {
				t.Errorf("another goroutine: %v", err)
			}
			_, err := srv.Do(t.Context(), "PING")
			return nil, err
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := srv.Do(t.Context(), "within"); err == nil || err.Error() != "ERR "+ErrWithin.Error() {
		t.Errorf("the command: %v", err)
	}
	for _, line := range [][]any{{"DEBUG", "LOG", "here"}, {"EVAL", "redis.log(redis.LOG_WARNING, 'script')", 0}, {"REPLICAOF", "NO", "ONE"}} {
		if _, err := srv.Do(t.Context(), line...); err != nil {
			t.Errorf("%v: %v", line, err)
		}
	}
	if _, is := called.Load("log: script"); !is {
		t.Error("the handler was not called")
	}
	if s := srv.Stats(); s.Uptime == 0 || srv.UsedMemory() == 0 {
		t.Errorf("afterwards: %v", s)
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
}

// TestWithinDial checks that Options.Dial may use the server and not stop it.
func TestWithinDial(t *testing.T) {
	var srv *Server
	made, dialed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	srv, err := New(Options{
		Config: map[string]string{"replicaof": "localhost 1"},
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-made
			once.Do(func() {
				defer close(dialed)
				if _, err := srv.Do(ctx, "CLIENT", "LIST"); err != nil || srv.Stats().Uptime == 0 {
					t.Errorf("Do: %v", err)
				}
				if err := srv.Close(); !errors.Is(err, ErrWithin) {
					t.Errorf("Close: %v", err)
				}
				if err := srv.Shutdown(ctx); !errors.Is(err, ErrWithin) {
					t.Errorf("Shutdown: %v", err)
				}
			})
			return nil, errors.New("no primary")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	close(made)
	<-dialed
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
}

// brokenListener is a listener that panics.
type brokenListener struct{ net.Listener }

func (brokenListener) Addr() net.Addr { panic("no address") }

// TestServeFailures checks that Serve and its like return errors for what they cannot serve,
// and that the server closes afterwards.
func TestServeFailures(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	srv, err := New(Options{Config: map[string]string{"port": port, "bind": "127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for _, x := range []struct {
		name  string
		serve func() error
	}{
		{"Serve of nil", func() error { return srv.Serve(nil) }},
		{"Serve of a nil pointer", func() error { return srv.Serve((*net.TCPListener)(nil)) }},
		{"ServeTLS of nil", func() error { return srv.ServeTLS(nil) }},
		{"ServeTLS of a nil pointer", func() error { return srv.ServeTLS((*net.UnixListener)(nil)) }},
		{"New with a nil listener", func() error { _, err := New(Options{Listeners: []net.Listener{nil}}); return err }},
		{"New with a nil TLS listener", func() error { _, err := New(Options{TLSListeners: []net.Listener{nil}}); return err }},
		{"ListenAndServe at a port", srv.ListenAndServe},
		{"Listening after that", func() error { return srv.Listening(t.Context()) }},
		{"ListenAndServe at it again", srv.ListenAndServe},
		{"ServeTLS without certificate", func() error { return srv.ServeTLS(taken) }},
	} {
		if err := x.serve(); err == nil || errors.Is(err, ErrServerClosed) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	func() {
		defer func() {
			if recover() != "no address" {
				t.Error("the panic of a listener does not reach the caller")
			}
		}()
		srv.Serve(brokenListener{})
	}()
	if _, err := srv.Do(t.Context(), "PING"); err != nil {
		t.Error(err)
	}
	go srv.ListenAndServe()
	wait.Until(t, "the port, which ServeTLS has closed, is served", func() bool { return srv.Listening(t.Context()) == nil })
	if err := srv.ListenAndServe(); err == nil || errors.Is(err, ErrServerClosed) {
		t.Errorf("ListenAndServe twice: %v", err)
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	handed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"ListenAndServe": srv.ListenAndServe(), "Serve": srv.Serve(handed), "Listening": srv.Listening(t.Context()), "Ready": srv.Ready(t.Context()),
		"Save": srv.Save(t.Context()), "BackupFile": srv.BackupFile(t.Context(), t.TempDir()+"/copy"),
	} {
		if !errors.Is(err, ErrServerClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	if _, err := handed.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve after Close leaves its listener open: %v", err)
	}
	if _, err := srv.Subscribe(t.Context(), "c"); !errors.Is(err, ErrServerClosed) {
		t.Errorf("Subscribe after Close: %v", err)
	}
	if _, err := srv.Dialer()(t.Context(), "", ""); !errors.Is(err, ErrServerClosed) {
		t.Errorf("Dialer after Close: %v", err)
	}
	for _, err := range srv.Keys(t.Context(), 0, "*") {
		if !errors.Is(err, ErrServerClosed) {
			t.Errorf("Keys after Close: %v", err)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if err := errors.Join(srv.Close(), srv.Shutdown(t.Context()), srv.Shutdown(canceled)); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Close once more: %v", err)
		}
	}
}
