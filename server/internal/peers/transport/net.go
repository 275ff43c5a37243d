package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
)

// The net transport: a goroutine per connection over any net.Conn.
//
// The goroutine reads, parses commands, runs them in a turn and tries to write the
// replies at once. A second goroutine, which exists only while there is output,
// writes whatever the socket does not accept, and output from other sessions that
// arrives while the first one reads. So the first goroutine never waits for a slow
// reader, and an idle connection costs one goroutine.
//
// While its session is blocked, the goroutine continues to read, so that it notices
// at once when a client disconnects during BZPOPMIN, and the client takes no
// element with it.
//
// A connection of a plain socket has no buffers while it waits for input: it
// borrows I/O buffers when there is input (ready), and returns them when there is
// no more. With buffers of their own 10 000 idle clients take 11.9 KB each instead
// of about 7. A TLS connection keeps its buffers, because only crypto/tls knows
// what input it has buffered.

const (
	// maxUnread is how many bytes of unparsed input are read while a client waits for
	// the server.
	maxUnread = 1 << 20
	// lastWrite is how long a closing connection waits for a client that takes none of
	// its last replies.
	lastWrite = 5 * time.Second
	// writePiece is the size of each write to a client that does not take all output at
	// once. A small size makes the client's progress visible.
	writePiece = 64 << 10
	// lastReplyTime is how long a client may take to receive the reason for its
	// disconnection after a panic.
	lastReplyTime = 200 * time.Millisecond
	// keepOut is the largest output buffer that an idle connection keeps.
	keepOut = 16 << 10
	// keepArena is the largest capacity of an argument list, in arguments, that a
	// connection keeps.
	keepArena = 1 << 10
)

// netConn is a connection that goroutines of its own serve.
type netConn struct {
	input
	t         *Transport
	nc        net.Conn
	socket    net.Conn        // the connection under nc, or nc itself
	raw       syscall.RawConn // of a plain socket; nil for others
	rawSocket syscall.RawConn // of the socket, also under TLS; nil if there is none
	spare     []byte          // a written output buffer, for reuse

	buffers *ioBuffers // nil while it waits for input
	ready   func(fd uintptr) bool
	got     int // bytes that ready has read
	failed  error

	recheck    chan struct{} // capacity 1: check the session again
	awaitsEase atomic.Bool   // see choked
}

// ioBuffers is the set of I/O buffers of a connection with work to do.
type ioBuffers struct {
	input, output []byte
	lists         *lists
}

// Untaken returns how many written bytes the client has not received yet; 0 if the
// connection is not a socket.
func (c *netConn) Untaken() (n int64) {
	if c.rawSocket != nil {
		c.rawSocket.Control(func(fd uintptr) { n = notTaken(int(fd)) })
	}
	return n
}

// Ended reports whether the client has closed its side of the connection.
func (c *netConn) Ended() bool {
	if c.state.load() == dead {
		return true
	}
	if p, ok := c.nc.(*pipeEnd); ok {
		return p.peerClosed.Load()
	}
	if c.rawSocket == nil {
		return false
	}
	ended := true // if the descriptor is closed
	c.rawSocket.Control(func(fd uintptr) { ended = peerEnded(fd) })
	return ended
}

func (c *netConn) serve() {
	if c.talkRecovering() {
		return // Engine.closeAllAfterPanic does the rest
	}
	c.forget()
	c.sess.Engine.Attempt(func() {
		if out := c.sess.Close(); out != nil {
			c.try(out) // the part that does not fit is lost
		}
	})
	c.nc.Close()
	c.t.leave(c)
	c.sess.Engine.Attempt(c.sess.Released)
}

// talkRecovering is talk. A panic of this goroutine without the engine's lock has
// damaged state of this client only, so it ends no other client. It returns true if
// the server has stopped.
func (c *netConn) talkRecovering() (broken bool) {
	defer func() {
		switch p := recover(); {
		case p == nil:
		case engine.LockBroken(p):
			broken = true
		default:
			lostClient(c.sess, p)
		}
	}()
	c.talk()
	return false
}

// talk reads, runs and answers commands until the connection is to be closed.
func (c *netConn) talk() {
	if !c.handshake() {
		return
	}
	for c.process() {
		if c.state.load() == leaving {
			if !c.readLast() {
				break
			}
			continue
		}
		if !c.reads() {
			<-c.recheck
			continue
		}
		n, err := c.read()
		c.t.countInput(n)
		if !c.filled(n) {
			return
		}
		if err != nil {
			if err == io.EOF {
				for c.process() {
					idle := c.sess.Queue.Flushing.Load() == 0 && !c.waits() // the common case, which needs no lock
					if idle || !c.sess.FinishHalfClosed() {
						return
					}
					<-c.recheck
				}
				break
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) || c.state.load() == dead {
				return
			}
			// Woken: the session may continue, or must end.
			c.nc.SetReadDeadline(time.Time{})
			if c.sess.Ending() {
				break
			}
		}
	}
	if !c.over() {
		c.awaitLastReplies()
	}
	if c.state.load() == leaving {
		c.linger()
	}
}

// awaitLastReplies waits while another goroutine writes the last replies, and the client takes
// them.
func (c *netConn) awaitLastReplies() {
	seen, limit := c.sess.Progress(), time.NewTimer(lastWrite)
	defer limit.Stop()
	for !c.over() {
		select {
		case <-c.recheck:
		case <-limit.C:
			last := seen
			if seen = c.sess.Progress(); seen == last {
				c.abort()
			}
			limit.Reset(lastWrite)
		}
	}
}

// read reads the next input.
func (c *netConn) read() (n int, err error) {
	if c.raw == nil || !canReadNow {
		space := c.space()
		c.note()
		return c.nc.Read(space)
	}
	c.got, c.failed = 0, nil
	err = c.raw.Read(c.ready)
	c.borrow()
	if err == nil {
		err = c.failed
	}
	return c.got, err
}

// readReady reads the input that has arrived. It returns false if there is none and
// the connection must wait.
func (c *netConn) readReady(fd uintptr) bool {
	c.borrow()
	n, wait, err := readNow(fd, c.space())
	if wait {
		c.lend()
		return false
	}
	if c.got, c.failed = n, err; n == 0 && err == nil {
		c.failed = io.EOF
	}
	return true
}

// borrow provides the connection with I/O buffers.
func (c *netConn) borrow() {
	if c.buffers != nil {
		return
	}
	k, ok := c.t.bufferPool.Get().(*ioBuffers)
	if !ok {
		k = new(ioBuffers)
	}
	c.buffers = k
	if c.reader.Adopt(k.input) {
		k.input = nil
	}
	if c.lists == nil {
		c.lists, k.lists = k.lists, nil
	}
	if c.spare == nil {
		c.spare, k.output = k.output, nil
	}
}

// lend returns the I/O buffers, unless part of a command has arrived or commands
// wait.
func (c *netConn) lend() {
	k := c.buffers
	if k == nil || len(c.batch) > 0 {
		return
	}
	buf, none := c.release()
	if !none {
		return
	}
	if buf != nil {
		k.input = buf
	}
	if c.lists != nil {
		k.lists, c.lists = c.lists, nil
	}
	if c.spare != nil {
		k.output, c.spare = c.spare, nil
	}
	c.buffers = nil
	c.t.bufferPool.Put(k)
}

// process runs all commands that have arrived, until the session stalls. It returns
// false when the session is to end.
func (c *netConn) process() bool {
	for c.state.load() != dead && !c.sess.Stall.Stalled.Load() && !c.choked() {
		// The rest of a batch from before the session was blocked comes first.
		if len(c.batch) == 0 {
			if err := c.parse(); err != nil {
				c.sess.FailInput(err)
				return false
			}
		}
		if len(c.batch) == 0 {
			if c.held.buffered() > 0 {
				continue
			}
			break
		}
		done, out, ending := c.sess.Turn(c.batch, c.spare)
		c.spare = nil
		if b := c.sess.Queue.TakeSpare(); b != nil && (done < len(c.batch) || cap(b) <= keepOut) {
			c.spare = b
		}
		if out != nil {
			if c.write(out) && cap(out) <= keepOut {
				c.spare = out[:0]
			}
		}
		if ending {
			return false
		}
		c.batch = c.batch[done:]
	}
	return c.state.load() != dead
}

// choked reports whether commands have to wait until the client has taken output. If so,
// eased interrupts what the goroutine does then.
func (c *netConn) choked() bool {
	if !c.sess.Queue.ExceedsLimit() {
		return false
	}
	c.awaitsEase.Store(true)
	return c.sess.Queue.ExceedsLimit() // again: eased may have missed the flag
}

// eased is called after the client has taken output.
func (c *netConn) eased() {
	if c.awaitsEase.Load() && !c.sess.Queue.ExceedsLimit() {
		c.awaitsEase.Store(false)
		c.interrupt()
	}
}

// interrupt makes the connection's goroutine check its session again, also if it reads.
func (c *netConn) interrupt() {
	c.signal()
	c.nc.SetReadDeadline(time.Unix(1, 0))
}

// write sends output that the caller has claimed: as much as the socket accepts at
// once, the rest from a separate goroutine. It reports whether out itself is
// written.
func (c *netConn) write(out []byte) bool {
	for first := true; out != nil; first = false {
		n, err := c.try(out)
		c.t.countOutput(n)
		if err != nil {
			c.abort()
			return false
		}
		if n < len(out) {
			rest := out[n:]
			c.sess.RecordUnsent(len(rest))
			c.t.running.Go(func() {
				c.sess.Engine.Attempt(func() { c.drain(rest) })
				rest = nil // garbage, unless the session counts it before this goroutine ends
				if c.state.load() == dead {
					c.sess.Engine.Attempt(c.sess.Released)
				}
			})
			return !first
		}
		out = c.sess.Written()
	}
	return true
}

// try writes as much as a socket accepts without waiting. Other connections have no
// such operation and accept nothing.
func (c *netConn) try(out []byte) (n int, err error) {
	if c.raw == nil {
		return 0, nil
	}
	werr := c.raw.Write(func(fd uintptr) bool {
		n, err = writeNow(fd, out)
		return true
	})
	if werr != nil {
		return 0, werr
	}
	return n, err
}

// drain writes until no output is left, and waits for the client without a limit.
func (c *netConn) drain(out []byte) {
	for out != nil {
		for len(out) > 0 {
			n, err := c.nc.Write(out[:min(len(out), writePiece)])
			c.t.countOutput(n)
			if err != nil {
				c.abort()
				return
			}
			c.sess.Queue.RecordTaken(int64(n))
			out = out[n:]
			c.sess.Queue.Unsent.Store(int64(len(out)))
			c.eased()
		}
		if out = c.sess.Written(); out != nil {
			c.sess.RecordUnsent(len(out))
		}
	}
	c.sess.Queue.Unsent.Store(0)
	c.signal()
}

// wake is called when other code has written to the session's output queue, or the
// session may continue or must end.
func (c *netConn) wake() {
	out, killed, _ := c.sess.Take()
	if killed {
		c.abort()
		return
	}
	if out != nil {
		c.write(out)
	}
	c.interrupt()
}

// signal makes serve check its session again, unless it is reading.
func (c *netConn) signal() {
	select {
	case c.recheck <- struct{}{}:
	default:
	}
}

// over reports whether the connection can be closed: it is dead, or its last reply
// is written.
func (c *netConn) over() bool {
	out, killed, closed := c.sess.Take()
	if out != nil {
		c.write(out)
	}
	return killed || closed || c.state.load() == dead
}

func (c *netConn) abort() {
	c.state.die()
	c.socket.Close() // without TLS close_notify, which may take time
	c.signal()
}

func (c *netConn) closeAfterPanic() {
	if out := c.sess.LastReply(false); out != nil {
		limit := time.AfterFunc(lastReplyTime, c.abort) // not a deadline: the connection's own goroutine may reset one
		defer limit.Stop()
		if _, err := c.nc.Write(out); err == nil && c.raw != nil {
			c.awaitPeerClose()
		}
	}
	c.abort()
	c.nc.Close()
}
