package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// stopFlags are the options of a shutdown, from SHUTDOWN or the values of
// shutdown-on-sigint and shutdown-on-sigterm.
type stopFlags struct {
	Save, Nosave bool
	now          bool // close the connections at once
	force        bool // stop even if the data cannot be saved
}

// parseStopFlags reads the value of shutdown-on-sigint or shutdown-on-sigterm.
func parseStopFlags(words string) (f stopFlags) {
	for _, word := range strings.Fields(words) {
		switch word {
		case "save":
			f.Save = true
		case "nosave":
			f.Nosave = true
		case "now":
			f.now = true
		case "force":
			f.force = true
		}
	}
	return f
}

// Shutdown implements SHUTDOWN: see Shutdown of package server. It saves while it runs. If
// replicas lack changes, it waits for them, unless NOW is given, and ABORT aborts that.
func Shutdown(c *Call) {
	var f stopFlags
	abort := false
	for c.More() {
		switch {
		case c.Is("SAVE"):
			f.Save = true
		case c.Is("NOSAVE"):
			f.Nosave = true
		case c.Is("ABORT"):
			abort = true
		case c.Is("NOW"):
			f.now = true
		case c.Is("FORCE"):
			f.force = true
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	if f.Save && f.Nosave || abort && f != (stopFlags{}) {
		c.Fail(protocol.ErrSyntax)
	}
	if !c.OK() {
		return
	}
	if abort {
		if c.Engine.abortStop() {
			c.Reply.OK()
		} else {
			c.Reply.Error("ERR No shutdown in progress.")
		}
		return
	}
	if c.Engine.Scripting.Busy && !f.Nosave {
		c.Reply.Error(c.Engine.Scripting.Running.busyError())
		return
	}
	if err := c.Engine.prepareStop(f); err != nil {
		c.Engine.Log.Error("cannot save the data; shutdown canceled", "error", err)
		replyStopFailed(c.Reply)
		return
	}
	c.Engine.Log.Info("stopping", "reason", "SHUTDOWN", "client", c.Session.Peer.Addr)
	other := c.Engine.Ending.stopWait
	if c.Engine.waitsForReplicas() && !f.now && c.MayBlock() {
		c.waitToStop()
	} else {
		c.Session.CloseAfterReply() // no reply
	}
	switch w := c.Engine.Ending.stopWait; {
	case other == nil:
		c.Engine.Transports.transport.ShutdownSoon(func(ctx context.Context) error { return c.Engine.awaitReplicas(ctx, w) })
	case f.now:
		other.end()
	}
}

// Signaled prepares the server for the shutdown after a SIGINT, or else a SIGTERM:
// it saves the data as shutdown-on-sigint or shutdown-on-sigterm demands. The
// caller then calls Shutdown, which saves later changes of clients that are still
// connected. If the data cannot be saved, and the parameter does not contain force,
// Signaled returns the error and the server continues: the caller must not stop it.
func (srv *Engine) Signaled(interrupt bool) (err error) {
	defer srv.setClosedError(&err)
	var flags stopFlags
	srv.OutOfTurn(func() {
		flags = parseStopFlags(srv.Config.ShutdownOnSigterm)
		if interrupt {
			flags = parseStopFlags(srv.Config.ShutdownOnSigint)
		}
	})
	if !srv.MaintainUnlessBusy(func() { err = srv.prepareStop(flags) }) { // a script is half done; the shutdown ends it
		srv.OutOfTurn(func() { srv.Ending.Flags = flags })
	}
	return err
}

// prepareStop saves the data, if a shutdown with f saves, and stores f. After an
// error the server continues. It is called with the lock held.
func (srv *Engine) prepareStop(f stopFlags) error {
	k := srv.Keeper
	if k.Path != "" && k.Loading == nil && !k.Suspended() && !srv.Scripting.Busy && srv.savesAtEnd(f) {
		if err := srv.SaveNow(); err != nil && !f.force {
			return fmt.Errorf("cannot save the data: %w", err)
		}
	}
	srv.Ending.Flags = f
	return nil
}

// WaitsForOthers reports whether only other clients can make a stalled session
// continue.
func (s *Session) WaitsForOthers() bool {
	s.Engine.Mu.Lock()
	defer s.Engine.Mu.Unlock()
	return s.Stall.Blocked != nil || s.paused() || s.blockedUpstream()
}

// paused reports whether CLIENT PAUSE holds back a command of the session.
func (s *Session) paused() bool {
	return s.Stall.postponed != nil && !s.awaitsReplies() && !slices.Contains(s.Engine.Pauses.delayed, s) && !slices.Contains(s.Engine.Pauses.released, s)
}

// Conclude closes a session that runs no more commands, once its output queue is
// written.
func (s *Session) Conclude() {
	s.Engine.Mu.Lock()
	defer s.Engine.Mu.Unlock()
	s.CloseAfterReply()
}
