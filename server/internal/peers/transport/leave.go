package transport

import (
	"crypto/tls"
	"errors"
	"io"
	"os"
	"time"
)

// Graceful shutdown of connections. All input that has reached the machine before
// the shutdown is run and answered: commands that the server has read, and those in
// the socket's receive buffer at that moment. No later input is read, so a client
// that continues to send does not delay the shutdown. Then the connection is
// closed; when all are closed, the last checkpoint is taken. A partial command is
// not run.
//
// A client that is blocked, in BLPOP or by CLIENT PAUSE, is disconnected, and the
// rest of its pipeline is not run. Replies that a client does not take are
// abandoned at the time limit of Shutdown.
//
// Closing a socket that has unread input, or receives more, makes the kernel
// discard replies in flight. So the connection is half-closed first, and further
// input is read and discarded until the client has closed its side, for a second at
// most. A client that has taken everything is not waited for.

// closedChannel returns a channel that is closed.
func closedChannel() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

const (
	// lingerTime is how long a client may take to receive the last replies.
	lingerTime = time.Second
	// lastUnread is how much input is read of a connection that cannot report how
	// much has arrived (TLS, a pipe), and lastPause the silence after which such a
	// connection has no more.
	lastUnread = 1 << 20
	lastPause  = 20 * time.Millisecond
)

// measure records how much input is to be read.
func (c *input) measure(fd uintptr) {
	c.measured = true
	c.unread = unreadBytes(fd)
}

func (c *netConn) finish() {
	c.state.leave()
	c.interrupt()
}

// readLast reads the input that arrived before the shutdown, or waits until the
// session may continue. It returns false when there is no more to run.
func (c *netConn) readLast() bool {
	if c.sess.Ending() {
		return false
	}
	if c.sess.Stall.Stalled.Load() {
		if c.sess.WaitsForOthers() {
			c.sess.Conclude()
			return false
		}
		<-c.recheck
		return true
	}
	if c.choked() {
		<-c.recheck
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
		c.t.countInput(n)
		c.unread -= n
		if !c.filled(n) || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			c.unread = 0
		}
		if n > 0 {
			return true
		}
		if c.raw == nil || unreadOf(c) == 0 {
			break // otherwise wake has interrupted the Read: retry
		}
	}
	c.sess.Conclude()
	return false
}

// unreadOf returns how much can be read from a plain socket.
func unreadOf(c *netConn) (n int) {
	c.raw.Control(func(fd uintptr) { n = unreadBytes(fd) })
	return n
}

// linger waits until the client has taken the written output, if closing now could
// discard it.
func (c *netConn) linger() {
	if c.rawSocket == nil {
		return
	}
	wait := false
	c.rawSocket.Control(func(fd uintptr) { wait = unfinished(fd) })
	if !wait {
		return
	}
	limit := time.AfterFunc(lingerTime, c.abort)
	defer limit.Stop()
	c.nc.SetReadDeadline(time.Time{})
	c.awaitPeerClose()
}

// awaitPeerClose half-closes the connection and waits until the client has closed its
// side, too.
func (c *netConn) awaitPeerClose() {
	if secure, is := c.nc.(*tls.Conn); is {
		secure.CloseWrite() // tells the client that nothing is missing
	}
	if s, ok := c.socket.(interface{ CloseWrite() error }); ok && s.CloseWrite() == nil {
		io.Copy(io.Discard, c.socket)
	}
}
