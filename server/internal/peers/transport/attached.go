package transport

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
)

// Attached is the transport of a connection that a server of another library accepts
// and parses: see server.Redcon. It is given commands and a function that writes.
//
// At first the library's goroutine calls Run with each pipeline, and all output of the
// session is that of its own turns. Once the session waits for other clients or
// receives messages, Run returns Detach, and the connection needs a goroutine of its
// own that also calls Run when Woken has a value.
type Attached struct {
	t         *Transport
	sess      *engine.Session
	nc        net.Conn
	rawSocket syscall.RawConn // nil if the connection is not a socket
	spare     []byte          // a written output buffer, for reuse
	arrived   atomic.Int64    // total bytes of commands

	serving sync.Mutex    // held by Run
	Woken   chan struct{} // capacity 1: the session has output, may continue or must end
	state   connState
}

// Progress is the state of a session after Run.
type Progress int

// The values of Progress.
const (
	Idle   Progress = iota // all commands are run and all replies written
	Detach                 // the session waits, or receives messages
	Ended                  // the connection is to be closed
)

// Attach starts a session for a connection. If the client is refused, the result is
// nil, and refusal is the line to reply, or empty.
func (t *Transport) Attach(nc net.Conn) (c *Attached, refusal string) {
	c = &Attached{t: t, nc: nc, Woken: make(chan struct{}, 1)}
	p := engine.Peer{Addr: nc.RemoteAddr().String(), LocalAddr: nc.LocalAddr().String(), FD: -1, Wake: c.wake, Conn: c}
	switch nc := socketOf(nc).(type) {
	case *net.TCPConn:
		c.rawSocket, _ = nc.SyscallConn()
	case *net.UnixConn:
		c.rawSocket, _ = nc.SyscallConn()
		p.LocalAddr += ":0" // as in Redis
		p.Addr, p.Unix = p.LocalAddr, true
	}
	if c.rawSocket != nil {
		c.rawSocket.Control(func(fd uintptr) { p.FD = int(fd) })
	}
	p.Secure = socketOf(nc) != nc
	t.engine.Attempt(func() { refusal = t.attach(c, p) })
	if c.sess == nil {
		return nil, refusal
	}
	return c, ""
}

// attach registers c, or returns the reason for a refusal.
func (t *Transport) attach(c *Attached, p engine.Peer) (refusal string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.stopping:
		return ""
	case t.engine.RefusesRemote() && isRemote(c.nc):
		t.engine.Stats.Rejected.Add(1)
		return errProtectedMode
	case len(t.conns) >= t.engine.MaxClients():
		t.engine.Stats.Rejected.Add(1)
		return "-ERR max number of clients reached\r\n"
	}
	t.conns[c] = struct{}{}
	t.engine.NewSessionAt(&c.sess, p)
	t.running.Add(1) // until Done
	return ""
}

// Run runs commands in order and passes their replies, and any other output of the
// session, to write; write(nil) flushes what the library has buffered. rest are the
// commands that are not run yet. After Detach, the caller keeps them for the next
// call. bytes is the size of the input, for INFO.
func (c *Attached) Run(commands [][][]byte, bytes int, write func([]byte) error) (rest [][][]byte, p Progress) {
	c.serving.Lock()
	defer c.serving.Unlock()
	c.arrived.Add(int64(bytes))
	c.t.countInput(bytes)
	defer func() {
		switch v := recover(); {
		case v == nil:
		case engine.LockBroken(v): // the command has panicked, or another one
			if out := c.sess.LastReply(false); out != nil {
				write(out)
			}
			write(nil)
			rest, p = nil, Ended
		default:
			c.Lost(v)
			rest, p = nil, Ended
		}
	}()
	if !c.flush(write) {
		return nil, Ended
	}
	for len(commands) > 0 && c.state.load() != dead {
		if c.sess.Stall.Stalled.Load() {
			if c.sess.WaitsForOthers() {
				return commands, Detach
			}
			c.t.engine.Await(c.Woken)
			if !c.flush(write) {
				return nil, Ended
			}
			continue
		}
		done, out, ending := c.sess.Turn(commands[:min(len(commands), engine.TurnLimit)], c.spare)
		c.spare = c.sess.Queue.TakeSpare()
		if !c.write(out, write) || ending {
			return nil, Ended
		}
		commands = commands[done:]
	}
	for c.sess.Stall.Stalled.Load() && c.state.load() != dead && !c.sess.WaitsForOthers() { // the file is waited for
		c.t.engine.Await(c.Woken)
		if !c.flush(write) {
			return nil, Ended
		}
	}
	switch {
	case c.state.load() == dead:
		return nil, Ended
	case c.sess.Receives():
		return nil, Detach
	case !c.flush(write): // it may have waited for another client, which has served it meanwhile
		return nil, Ended
	case c.state.load() == leaving:
		return nil, Ended
	}
	return nil, Idle
}

// flush writes the output that waits. It returns false when the connection is to be
// closed.
func (c *Attached) flush(write func([]byte) error) bool {
	out, killed, closed := c.sess.Take()
	return !killed && c.write(out, write) && !closed && c.state.load() != dead
}

// write writes output that the caller has claimed, and returns false if that fails.
func (c *Attached) write(out []byte, write func([]byte) error) bool {
	for out != nil {
		c.sess.Queue.Unsent.Store(int64(len(out)))
		err := write(out)
		c.sess.Queue.Unsent.Store(0)
		c.t.countOutput(len(out))
		if err != nil {
			c.abort()
			return false
		}
		if cap(out) <= keepOut {
			c.spare = out[:0]
		}
		out = c.sess.Written()
	}
	return true
}

// Leaving reports whether the server is shutting down: the connection ends once the
// commands that have arrived are run, or when one of them waits.
func (c *Attached) Leaving() bool { return c.state.load() != serving }

// Lost logs a panic that has damaged the state of this client only.
func (c *Attached) Lost(p any) { lostClient(c.sess, p) }

// End ends the session and closes the connection. The caller then calls Done, and Run
// no more.
func (c *Attached) End(write func([]byte) error) {
	c.t.engine.Attempt(func() {
		if out := c.sess.Close(); out != nil {
			write(out)
		}
	})
	c.state.die()
	c.nc.Close()
	c.t.leave(c)
	c.t.engine.Attempt(c.sess.Released)
}

// Done tells Close and Shutdown, which wait for it, that the connection has no
// goroutine left.
func (c *Attached) Done() { c.t.running.Done() }

func (c *Attached) wake() {
	if c.sess.WasKilled() {
		c.abort()
	}
	c.signal()
}

func (c *Attached) signal() {
	select {
	case c.Woken <- struct{}{}:
	default:
	}
}

func (c *Attached) finish() {
	c.state.leave()
	c.nc.SetReadDeadline(time.Unix(1, 0)) // interrupts a Read
	c.signal()
}

func (c *Attached) abort() {
	c.state.die()
	socketOf(c.nc).Close() // without TLS close_notify, which may take time
	c.signal()
}

// Ended reports whether the client has closed its side of the connection.
func (c *Attached) Ended() bool {
	if s := c.state.load(); s == dead || c.rawSocket == nil {
		return s == dead
	}
	ended := true // if the descriptor is closed
	c.rawSocket.Control(func(fd uintptr) { ended = peerEnded(fd) })
	return ended
}

// closeAfterPanic closes the connection. Run has written the last reply, if there is
// one: a session without a call of Run has no output.
func (c *Attached) closeAfterPanic() {
	limit := time.AfterFunc(lastReplyTime, c.abort)
	defer limit.Stop()
	c.signal()
	c.serving.Lock()
	defer c.serving.Unlock()
	c.abort()
}

// InputBuffer implements Conn. The memory of input is that of the library.
func (c *Attached) InputBuffer() (used, free int) { return 0, 0 }

// Arrived implements Conn.
func (c *Attached) Arrived() int64 { return c.arrived.Load() }

// Untaken implements Conn.
func (c *Attached) Untaken() (n int64) {
	if c.rawSocket != nil {
		c.rawSocket.Control(func(fd uintptr) { n = notTaken(int(fd)) })
	}
	return n
}
