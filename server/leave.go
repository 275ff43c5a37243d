package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// What becomes of connections when the server is told to stop. Whatever has reached
// the machine until then is run and answered, to the end: what a client has sent and
// the server has read, and what lay in the socket when the order came; no more of it
// is read, so that a client that goes on sending keeps nobody. Then the connection is
// closed, and when all are, the last Cut is taken. A command of which only a part has
// arrived is not run.
//
// Who waits for others, in BLPOP or a CLIENT PAUSE, is disconnected, and what is behind
// that in his pipeline is not run. Replies that the client does not take end with the
// time that Shutdown is given.
//
// To close a socket that has unread input, or gets more, would make the kernel throw
// away replies that are on their way: so the connection is closed to one side first, and
// what still comes is read and forgotten until the client has closed it, for a second
// at most. Who has taken everything is not waited for.

// stopFlags say how the server ends: the options of SHUTDOWN, or the words of
// shutdown-on-sigint and shutdown-on-sigterm.
type stopFlags struct {
	save, nosave bool
	now          bool // close the connections at once
	force        bool // stop even if the data cannot be saved
}

// parseStopFlags reads the value of shutdown-on-sigint or shutdown-on-sigterm.
func parseStopFlags(words string) (f stopFlags) {
	for _, word := range strings.Fields(words) {
		switch word {
		case "save":
			f.save = true
		case "nosave":
			f.nosave = true
		case "now":
			f.now = true
		case "force":
			f.force = true
		}
	}
	return f
}

// shutdown implements SHUTDOWN: see [Server.Shutdown]. Nothing is in progress that
// ABORT could end: the command saves while it runs.
func shutdown(c *Call) {
	var f stopFlags
	abort := false
	for c.More() {
		switch {
		case c.Is("SAVE"):
			f.save = true
		case c.Is("NOSAVE"):
			f.nosave = true
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
	if f.save && f.nosave || abort && f != (stopFlags{}) {
		c.Fail(protocol.ErrSyntax)
	}
	if !c.ok() {
		return
	}
	if abort {
		c.Reply.Error("ERR No shutdown in progress.")
		return
	}
	if c.srv.busy && !f.nosave {
		c.Reply.Error(c.srv.scripting.running.busyError())
		return
	}
	if err := c.srv.prepareStop(f); err != nil {
		c.srv.log.Error("the data cannot be saved: the server goes on", "error", err)
		c.Reply.Error("ERR Errors trying to SHUTDOWN. Check logs.")
		return
	}
	c.srv.log.Info("stopping", "reason", "SHUTDOWN", "client", c.sess.addr)
	c.sess.closing = true // no reply
	c.srv.shutdownSoon()
}

// shutdownSoon begins to shut down while the lock is held. Serve and
// ListenAndServe return.
func (srv *Server) shutdownSoon() {
	go func() {
		limit, cancel := context.WithTimeout(context.Background(), lastWrite)
		defer cancel()
		switch err := srv.Shutdown(limit); {
		case errors.Is(err, context.DeadlineExceeded):
			srv.log.Warn("clients did not take their last replies in time", "limit", lastWrite)
		case err != nil:
			srv.log.Error("stopped", "error", err)
		}
	}()
}

// Signaled prepares the server for the end that SIGINT, or else SIGTERM, asks for:
// it saves the data, as shutdown-on-sigint and shutdown-on-sigterm say. The caller
// then calls Shutdown, which saves what clients change until they are disconnected.
// If the data cannot be saved, and the parameter has not the word force, Signaled
// returns the error, and the server goes on: the caller is not to end it.
func (srv *Server) Signaled(interrupt bool) (err error) {
	defer srv.fallen(&err)
	srv.mu.Lock()
	flags := parseStopFlags(srv.config.shutdownOnSigterm)
	if interrupt {
		flags = parseStopFlags(srv.config.shutdownOnSigint)
	}
	if srv.busy { // a script runs, and the data are half changed: it ends by the shutdown
		srv.ending = flags
		srv.mu.Unlock()
		return nil
	}
	srv.locked(func() { err = srv.prepareStop(flags) })
	return err
}

// prepareStop saves the data, if the server is to save them when it ends as f says,
// and remembers f. After an error the server goes on. The lock is held.
func (srv *Server) prepareStop(f stopFlags) error {
	k := srv.keeper
	if k.path != "" && k.loading == nil && !srv.busy && k.savesAtEnd(f) {
		if err := k.saveNow(); err != nil && !f.force {
			return fmt.Errorf("the data were not saved: %w", err)
		}
	}
	srv.ending = f
	return nil
}

// hurries reports whether connections are to be closed at once.
func (srv *Server) hurries() bool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.ending.now
}

// closedChannel returns a channel that is closed.
func closedChannel() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

const (
	// lingerTime is how long a client may take to take the last replies.
	lingerTime = time.Second
	// lastUnread is how much is read of a connection of which nobody can tell what has
	// arrived (TLS, a pipe), and lastPause how long nothing may come.
	lastUnread = 1 << 20
	lastPause  = 20 * time.Millisecond
)

// measure notes how much there is to be read.
func (c *input) measure(fd uintptr) {
	c.measured = true
	c.unread = unreadBytes(fd)
}

// waitsForOthers reports whether a stalled session would have to wait for others.
func (s *Session) waitsForOthers() bool {
	s.srv.mu.Lock()
	defer s.srv.mu.Unlock()
	return s.blocked != nil || s.paused()
}

// paused reports whether CLIENT PAUSE holds back a command of the session.
func (s *Session) paused() bool {
	return s.postponed != nil && !slices.Contains(s.srv.delayed, s) && !slices.Contains(s.srv.released, s)
}

// conclude makes a session that runs nothing any more end when its outbox is written.
func (s *Session) conclude() {
	s.srv.mu.Lock()
	defer s.srv.mu.Unlock()
	s.closing = true
}

func (c *conn) finish() {
	c.leaving.Store(true)
	c.signal()
	c.nc.SetReadDeadline(time.Unix(1, 0)) // ends a Read
}

// readLast reads what there is to be read at the end, or waits until the session may
// go on. It returns false when there is nothing more to be run.
func (c *conn) readLast() bool {
	if c.sess.ending() {
		return false
	}
	if c.sess.stalled.Load() {
		if c.sess.waitsForOthers() {
			c.sess.conclude()
			return false
		}
		<-c.again
		return true
	}
	if !c.measured {
		if c.measured, c.unread = true, lastUnread; c.raw != nil {
			c.raw.Control(c.measure)
		}
	}
	for tries := 0; c.unread > 0 && tries < 10; tries++ {
		c.nc.SetReadDeadline(time.Now().Add(lastPause))
		space := c.space()
		n, err := c.nc.Read(space[:min(len(space), c.unread)])
		c.srv.countInput(n)
		c.unread -= n
		if !c.filled(n) || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			c.unread = 0
		}
		if n > 0 {
			return true
		}
		if c.raw == nil || unreadOf(c) == 0 {
			break // but if somebody has only ended the Read, once more
		}
	}
	c.sess.conclude()
	return false
}

// unreadOf returns what can be read from a plain socket.
func unreadOf(c *conn) (n int) {
	c.raw.Control(func(fd uintptr) { n = unreadBytes(fd) })
	return n
}

// linger waits until the client has taken what was written, if closing now would keep
// him from it.
func (c *conn) linger() {
	if c.raw == nil {
		return
	}
	wait := false
	c.raw.Control(func(fd uintptr) { wait = unfinished(fd) })
	if !wait {
		return
	}
	limit := time.AfterFunc(lingerTime, c.abort)
	defer limit.Stop()
	c.nc.SetReadDeadline(time.Time{})
	c.outlast()
}

// outlast says to the client that no more will come, and waits until it has closed its
// side, too.
func (c *conn) outlast() {
	if s, ok := c.socket.(interface{ CloseWrite() error }); ok && s.CloseWrite() == nil {
		io.Copy(io.Discard, c.socket)
	}
}
