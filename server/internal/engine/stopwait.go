package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// ErrShutdownAborted is the error of Shutdown after SHUTDOWN ABORT. The server continues.
var ErrShutdownAborted = errors.New("zsetd: shutdown aborted")

// stopWait is a stop of the server that waits for replicas. SHUTDOWN ABORT aborts it.
type stopWait struct {
	caughtUp <-chan struct{} // see Replication.BeginStop; nil until the stream is ended and writes are paused
	until    time.Time       // then the server stops in any case
	over     chan struct{}   // closed by end: SHUTDOWN ABORT, or SHUTDOWN NOW
	end      func()
	aborted  bool
	resume   func() // the writes

	callers []blockedCall // clients in SHUTDOWN
}

// blockedCall is a call that waits.
type blockedCall struct {
	session *Session
	waiter  *Waiter
}

// waitsForReplicas reports whether a stop now would wait for replicas.
func (srv *Engine) waitsForReplicas() bool {
	return srv.Ending.stopWait != nil ||
		srv.Config.ShutdownTimeout > 0 && !srv.Replica.Following.Load() && len(srv.Replication.Status().Replicas) > 0
}

// waitToStop blocks a call of SHUTDOWN until the server stops, which ends the connection
// without a reply, or the shutdown is aborted.
func (c *Call) waitToStop() {
	srv := c.Engine
	if srv.Ending.stopWait == nil {
		srv.Ending.stopWait = newStopWait()
	}
	c.WaitFor(0, Want{}, replyStopFailed, nil)
	srv.Ending.stopWait.callers = append(srv.Ending.stopWait.callers, blockedCall{c.Session, c.Session.Stall.Blocked})
}

// StopsIn returns after which time a server that waits for replicas stops, and whether it
// waits.
func (e *ending) StopsIn() (left time.Duration, waits bool) {
	w := e.stopWait
	if w == nil || w.caughtUp == nil {
		return 0, false
	}
	return max(0, time.Until(w.until)), true
}

func newStopWait() *stopWait {
	over := make(chan struct{})
	return &stopWait{over: over, end: sync.OnceFunc(func() { close(over) })}
}

func replyStopFailed(r *protocol.Reply) { r.Error("ERR Errors trying to SHUTDOWN. Check logs.") }

// abortStop implements SHUTDOWN ABORT, and reports whether there was a shutdown to abort.
func (srv *Engine) abortStop() bool {
	w := srv.Ending.stopWait
	if w == nil {
		return false
	}
	srv.Ending.stopWait, srv.Ending.Flags, w.aborted = nil, stopFlags{}, true
	if w.caughtUp != nil {
		srv.Replication.CancelStop()
		w.resume()
	}
	srv.Log.Warn("shutdown aborted")
	for _, call := range w.callers {
		if call.session.Stall.Blocked == call.waiter {
			call.session.EndWait(call.waiter, replyStopFailed)
		}
	}
	w.end()
	return true
}

// AwaitReplicas waits until the replicas have all changes, before the server stops, for
// shutdown-timeout seconds or until ctx ends. From then on commands that write wait, and
// their connections end before they run. After SHUTDOWN ABORT it returns
// ErrShutdownAborted: the server must not stop. It may be called concurrently.
func (srv *Engine) AwaitReplicas(ctx context.Context) error { return srv.awaitReplicas(ctx, nil) }

// awaitReplicas is AwaitReplicas for a stop that is w, or nil for one that begins, or joins
// another.
func (srv *Engine) awaitReplicas(ctx context.Context, w *stopWait) (err error) {
	srv.Attempt(func() {
		srv.MaintainUnlessBusy(func() {
			srv.serveDue() // before writes are paused
			w = srv.beginStopWait(w)
		})
	})
	if w == nil {
		return nil
	}
	if w.caughtUp != nil {
		select {
		case <-w.caughtUp:
		case <-w.over:
		case <-time.After(time.Until(w.until)):
			srv.Log.Warn("stopping although a replica has not acknowledged all changes")
		case <-ctx.Done():
		}
	}
	srv.Attempt(func() {
		srv.Mu.Lock()
		defer srv.Mu.Unlock()
		if w.aborted {
			err = ErrShutdownAborted
		} else if srv.Ending.stopWait == w { // from here on the server stops
			srv.Ending.stopWait = nil
		}
	})
	return err
}

// beginStopWait ends the stream, and returns the stop that waits for the replicas: w, or
// if w is nil another one; nil if none is necessary.
func (srv *Engine) beginStopWait(w *stopWait) *stopWait {
	if w == nil {
		if srv.Ending.stopWait == nil && srv.waitsForReplicas() && !srv.Ending.Flags.now {
			srv.Ending.stopWait = newStopWait()
		}
		w = srv.Ending.stopWait
	}
	if w == nil || w.aborted || w.caughtUp != nil {
		return w
	}
	timeout := time.Duration(srv.Config.ShutdownTimeout) * time.Second
	if w.caughtUp = srv.Replication.BeginStop(); w.caughtUp != nil {
		w.until = time.Now().Add(timeout)
		w.resume = srv.PauseWrites()
		srv.Log.Info("waiting for replicas before stopping", "limit", timeout)
	}
	return w
}
