package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
)

// ErrWithin is returned by methods that are called from code of the program which the
// server itself has called and waits for: the handler of Options.Logger, a command of
// Options.Commands, or the function Options.Dial.
var ErrWithin = errors.New("zsetd: called from within the server, by a log handler, a command or a function of the program: call it from another goroutine, without waiting for it")

// callbacks are the goroutines in which the server has called code of the program.
// Such code may hold the lock, or be what Close waits for, so a call from there would wait
// for itself for ever. While no such code runs, a check costs a comparison.
type callbacks struct {
	running atomic.Int32
	mu      sync.Mutex
	by      map[int64][]callback // by the number of the goroutine, the outermost first
}

// callback is what the called code may not do.
type callback uint8

const (
	mustNotStop callback = iota // the server, which waits for the goroutine
	mustNotWait                 // for anything of the server
)

// enter records that the goroutine runs code of the program, until leave.
func (c *callbacks) enter(kind callback) (goroutine int64) {
	goroutine = goroutineID()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[int64][]callback{}
	}
	c.by[goroutine] = append(c.by[goroutine], kind)
	c.running.Add(1)
	return goroutine
}

// leave reverses enter.
func (c *callbacks) leave(goroutine int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running.Add(-1)
	if kinds := c.by[goroutine]; len(kinds) > 1 {
		c.by[goroutine] = kinds[:len(kinds)-1]
	} else {
		delete(c.by, goroutine)
	}
}

// strictest returns what the code may not do that runs in this goroutine.
func (c *callbacks) strictest() (kind callback, within bool) {
	if c.running.Load() == 0 {
		return 0, false
	}
	goroutine := goroutineID()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.by[goroutine] {
		kind, within = max(kind, k), true
	}
	return kind, within
}

// goroutineID returns the number of the goroutine, which the runtime shows in stacks only.
func goroutineID() int64 {
	var buffer [32]byte
	_, number, _ := bytes.Cut(buffer[:runtime.Stack(buffer[:], false)], []byte(" "))
	number, _, _ = bytes.Cut(number, []byte(" "))
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		panic("BUG: the stack of a goroutine begins with " + strconv.Quote(string(buffer[:])))
	}
	return n
}

// Within returns ErrWithin in code of the program that may not wait for the server, and nil
// anywhere else.
func (srv *Engine) Within() error {
	if kind, within := srv.callbacks.strictest(); within && kind == mustNotWait {
		return ErrWithin
	}
	return nil
}

// StopsWithin returns ErrWithin in code of the program that may not stop the server, and nil
// anywhere else.
func (srv *Engine) StopsWithin() error {
	if _, within := srv.callbacks.strictest(); within {
		return ErrWithin
	}
	return nil
}

// Called calls code of the program that may use the server but not stop it.
func (srv *Engine) Called(f func()) {
	defer srv.callbacks.leave(srv.callbacks.enter(mustNotStop))
	f()
}

// logHandler is the handler of the program's logger. The server may call it with any of its
// locks.
type logHandler struct {
	slog.Handler
	callbacks *callbacks
}

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	defer h.callbacks.leave(h.callbacks.enter(mustNotWait))
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}
