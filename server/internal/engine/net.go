package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// The net transport: a goroutine per connection over any net.Conn.
//
// The goroutine reads, parses commands, runs them in a turn and tries to write the
// replies at once. A second goroutine, which exists only while there is output,
// writes whatever the socket does not accept, and output from other sessions that
// arrives while the first one reads. So the first goroutine never waits for a slow
// reader (Redis's behaviour: a client may send a whole pipeline before it reads),
// and an idle connection costs one goroutine.
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
	// maxUnread is how many bytes of unparsed input a blocked client may have.
	maxUnread = 1 << 20
	// lastWrite is how long a closing connection waits for the client to take its
	// last replies.
	lastWrite = 5 * time.Second
	// writePiece is the size of each write to a client that does not take all output at
	// once. A small size makes the client's progress visible.
	writePiece = 64 << 10
	// keepOut is the largest output buffer that an idle connection keeps.
	keepOut = 16 << 10
	// keepArena is the largest capacity of an argument list, in arguments, that a
	// connection keeps.
	keepArena = 1 << 10
)

// transport is a connection of either transport. Its methods may be called from any
// goroutine.
type transport interface {
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

// netConn is a connection that goroutines of its own serve.
type netConn struct {
	Input
	nc        net.Conn
	socket    net.Conn        // the connection under nc, or nc itself
	raw       syscall.RawConn // of a plain socket; nil for others
	rawSocket syscall.RawConn // of the socket, also under TLS; nil if there is none
	spare     []byte          // a written output buffer, for reuse

	buffers *ioBuffers // nil while it waits for input
	ready   func(fd uintptr) bool
	got     int // bytes that ready has read
	failed  error

	recheck chan struct{} // capacity 1: check the session again
	dead    atomic.Bool   // closed
}

// ioBuffers is the set of I/O buffers of a connection with work to do.
type ioBuffers struct {
	input, output []byte
	lists         *lists
}

// Input is the data that a connection has read and its session has not run yet.
type Input struct {
	Srv    *Engine
	Sess   *Session
	Reader protocol.Reader

	lists       *lists
	Batch       [][][]byte // the rest of lists.commands
	kept        bool       // batch no longer refers to the reader's buffer
	weighedSize int        // size of the input buffer at the session's last weighing; see filled

	buffer  atomic.Uint64 // size and used bytes of the input buffer; see InputBuffer
	arrived atomic.Int64  // total bytes

	leaving  atomic.Bool // finish was called
	measured bool        // unread is valid
	unread   int         // bytes that had arrived at finish and are still to be read
}

// lists holds the storage of a batch of commands.
type lists struct {
	arena    [][]byte // the arguments, one after the other
	ends     []int    // end offset of each command in arena
	commands [][][]byte
}

// forget drops the references to the arguments. It does not keep a large arena.
func (l *lists) forget() {
	if cap(l.arena) > keepArena {
		l.arena = nil
	}
	clear(l.arena)
	clear(l.commands)
	l.arena, l.ends, l.commands = l.arena[:0], l.ends[:0], l.commands[:0]
}

// Serve accepts clients on l until Shutdown or Close, and closes l. It always
// returns an error; after these two, ErrServerClosed, and a *PanicError if the
// server has panicked.
func (srv *Engine) Serve(l net.Listener) (err error) {
	defer srv.setClosedError(&err)
	srv.Lifecycle.Lock()
	if srv.stopping {
		srv.Lifecycle.Unlock()
		l.Close()
		return srv.closedError()
	}
	srv.listeners[l] = struct{}{}
	if addr, ok := l.Addr().(*net.TCPAddr); ok {
		if _, secure := l.(tlsListener); secure {
			srv.TLSServed.Store(int64(addr.Port))
		} else {
			srv.TCPPort.Store(int64(addr.Port))
		}
	}
	srv.Lifecycle.Unlock()
	defer func() {
		l.Close()
		srv.Lifecycle.Lock()
		delete(srv.listeners, l)
		srv.Lifecycle.Unlock()
	}()
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		if err != nil {
			srv.Lifecycle.Lock()
			stopping := srv.stopping
			srv.Lifecycle.Unlock()
			if stopping {
				return srv.closedError()
			}
			// Out of descriptors, or a client that has already gone: no reason to
			// stop, nor to spin.
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			srv.acceptFailed(err)
			srv.AwaitLeave(pause)
			continue
		}
		pause = 0
		srv.awaitSlot()
		srv.ServeConn(nc)
	}
}

// acceptLogTime is the shortest interval between log lines about clients that
// cannot be accepted.
const acceptLogTime = 10 * time.Second

// acceptFailed logs that a client cannot be accepted.
func (srv *Engine) acceptFailed(err error) {
	srv.Lifecycle.Lock()
	defer srv.Lifecycle.Unlock()
	f := &srv.acceptFailures
	if f.times++; time.Since(f.told) < acceptLogTime {
		return
	}
	srv.Log.Warn("Accepting client connection", "error", err, "times", f.times, "clients", len(srv.Conns))
	f.told, f.times = time.Now(), 0
}

// AwaitLeave waits until a client has left, which frees a descriptor, but no longer
// than limit. A departure resumes all waiting listeners, so none of them loses
// every free descriptor to others while it sleeps out its limit.
func (srv *Engine) AwaitLeave(limit time.Duration) {
	srv.Lifecycle.Lock()
	left := srv.leaving()
	srv.Lifecycle.Unlock()
	srv.await(left, limit)
}

// leaving returns a channel that is closed when the next client has left. It is
// called with the lifecycle lock held.
func (srv *Engine) leaving() <-chan struct{} {
	if srv.left == nil {
		srv.left = make(chan struct{})
	}
	return srv.left
}

// await waits until a client has left, but no longer than limit, and reports
// whether one has.
func (srv *Engine) await(left <-chan struct{}, limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-left:
		return true
	case <-t.C:
	case <-srv.Stopped:
	}
	return false
}

const (
	// endTime is how long a client that has closed its side may take to leave
	// before its slot no longer counts as about to become free: a script may keep
	// it, or unwritten replies.
	endTime = time.Second
	// lookShare limits the share of a listener's time for checks for closed clients
	// that find none: 1/lookShare.
	lookShare = 4
)

// awaitSlot waits for a free client slot before a client is served. If all slots
// are taken and one of their clients has closed its side, it waits until that has
// left. So a client may close and reconnect at once; as in Redis, the order of
// arrival decides.
func (srv *Engine) awaitSlot() {
	for {
		srv.Lifecycle.Lock()
		if srv.stopping || len(srv.Conns) < srv.maxClients() {
			srv.Lifecycle.Unlock()
			return
		}
		left := srv.leaving()
		begin := time.Now()
		if rest := srv.nextClosedCheck.Sub(begin); rest > 0 {
			srv.Lifecycle.Unlock()
			srv.await(left, rest)
			continue
		}
		ended := srv.anyEnded()
		if !ended {
			now := time.Now()
			srv.nextClosedCheck = now.Add((lookShare - 1) * now.Sub(begin))
		}
		srv.Lifecycle.Unlock()
		if !ended {
			return
		}
		if !srv.await(left, endTime) {
			srv.markStaying()
			return
		}
	}
}

// anyEnded reports whether a client that is about to leave has closed its side. It
// is called with the lifecycle lock held.
func (srv *Engine) anyEnded() bool {
	var sockets pollSet
	for c := range srv.Conns {
		if _, stays := srv.staying[c]; !stays && !sockets.add(c) && c.Ended() {
			return true
		}
	}
	return sockets.anyEnded()
}

// markStaying records the clients that have closed their side and do not leave.
func (srv *Engine) markStaying() {
	srv.Lifecycle.Lock()
	defer srv.Lifecycle.Unlock()
	if srv.staying == nil {
		srv.staying = map[transport]struct{}{}
	}
	for c := range srv.Conns {
		if c.Ended() {
			srv.staying[c] = struct{}{}
		}
	}
}

// leave removes a closed connection.
func (srv *Engine) leave(c transport) {
	srv.Lifecycle.Lock()
	defer srv.Lifecycle.Unlock()
	delete(srv.Conns, c)
	delete(srv.staying, c)
	if srv.left != nil {
		close(srv.left)
		srv.left = nil
	}
}

// ServeConn starts a session for nc, or refuses it.
func (srv *Engine) ServeConn(nc net.Conn) {
	srv.Lifecycle.Lock()
	defer srv.Lifecycle.Unlock()
	if srv.stopping {
		nc.Close()
		return
	}
	if srv.limits.Load().protected && srv.ACL.Open() && isRemote(nc) {
		srv.deny(nc, ErrProtectedMode)
		return
	}
	if len(srv.Conns) >= srv.maxClients() {
		if _, secure := nc.(*tls.Conn); secure { // no handshake only to refuse, as in Redis
			srv.refused()
			nc.Close()
			return
		}
		srv.deny(nc, "-ERR max number of clients reached\r\n")
		return
	}
	if srv.polls && srv.serveSocket(nc) {
		return
	}
	c := &netConn{Input: Input{Srv: srv}, nc: nc, socket: socketOf(nc), recheck: make(chan struct{}, 1)}
	p := Peer{Addr: nc.RemoteAddr().String(), LocalAddr: nc.LocalAddr().String(), FD: -1, Wake: c.wake, Reader: &c.Reader, Conn: c}
	var raw syscall.RawConn
	switch nc := c.socket.(type) {
	case *net.TCPConn:
		srv.keepAlive(nc)
		raw, _ = nc.SyscallConn()
	case *net.UnixConn:
		raw, _ = nc.SyscallConn()
		p.LocalAddr += ":0" // as in Redis
		p.Addr, p.Unix = p.LocalAddr, true
	}
	c.rawSocket = raw
	if raw != nil {
		raw.Control(func(fd uintptr) { p.FD = int(fd) })
	}
	if p.Secure = c.socket != c.nc; !p.Secure {
		c.raw, c.ready = raw, c.readReady
	}
	srv.Conns[c] = struct{}{}
	srv.NewSessionAt(&c.Sess, p)
	srv.running.Go(c.serve)
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
	if c.dead.Load() {
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

// A pipeEnd is one end of an in-process connection. It reports the closing of the
// other end before a Read detects it.
type pipeEnd struct {
	net.Conn
	closed, peerClosed *atomic.Bool
}

func newPipe() (client, server *pipeEnd) {
	a, b := net.Pipe()
	var ofClient, ofServer atomic.Bool
	return &pipeEnd{a, &ofClient, &ofServer}, &pipeEnd{b, &ofServer, &ofClient}
}

// Close implements net.Conn.
func (p *pipeEnd) Close() error {
	p.closed.Store(true)
	return p.Conn.Close()
}

// deny sends a client the reason for its refusal and closes the connection.
func (srv *Engine) deny(nc net.Conn, reply string) {
	srv.refused()
	srv.running.Go(func() {
		nc.SetDeadline(time.Now().Add(time.Second))
		io.WriteString(nc, reply)
		nc.Close()
	})
}

// ErrProtectedMode is the error for remote clients in protected mode.
const ErrProtectedMode = "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for " +
	"the default user. In this mode connections are only accepted from the loopback interface. If you want to " +
	"connect from external computers to Redis you may adopt one of the following solutions: 1) Just disable " +
	"protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by " +
	"connecting to Redis from the same host the server is running, however MAKE SURE Redis is not publicly " +
	"accessible from internet if you do so. Use CONFIG REWRITE to make this change permanent. 2) " +
	"Alternatively you can just disable the protected mode by editing the Redis configuration file, and " +
	"setting the protected mode option to 'no', and then restarting the server. 3) If you started the server " +
	"manually just for testing, restart it with the '--protected-mode no' option. 4) Setup a an " +
	"authentication password for the default user. NOTE: You only need to do one of the above things in order " +
	"for the server to start accepting connections from the outside.\r\n"

// isRemote reports whether a client is on another machine.
func isRemote(nc net.Conn) bool {
	addr, ok := nc.RemoteAddr().(*net.TCPAddr)
	return ok && !addr.IP.IsLoopback()
}

func (c *netConn) serve() {
	if c.talkRecovering() {
		return // closeAllAfterPanic does the rest
	}
	c.Reader, c.lists, c.Batch = protocol.Reader{}, nil, nil // which may hold part of a large command
	c.Srv.Attempt(func() {
		if out := c.Sess.Close(); out != nil {
			c.try(out) // the part that does not fit is lost
		}
	})
	c.nc.Close()
	c.Srv.leave(c)
	c.Srv.Attempt(c.Sess.Released)
}

// talkRecovering is talk. A panic of this goroutine without the server's lock has
// damaged state of this client only, so it ends no other client. It returns true if
// the server has stopped.
func (c *netConn) talkRecovering() (broken bool) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case lockBroken:
			broken = true
		default:
			c.Srv.lostClient(c.Sess, p)
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
		if c.leaving.Load() {
			if !c.readLast() {
				break
			}
			continue
		}
		if c.Sess.Stalled.Load() && c.Reader.Buffered() > maxUnread {
			<-c.recheck
			continue
		}
		n, err := c.read()
		c.Srv.countInput(n)
		if !c.filled(n) {
			return
		}
		if err != nil {
			if err == io.EOF {
				for c.process() {
					idle := c.Sess.Flushing.Load() == 0 && !c.Sess.Stalled.Load() // the common case, which needs no lock
					if idle || !c.Sess.FinishHalfClosed() {
						return
					}
					<-c.recheck
				}
				break
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) || c.dead.Load() {
				return
			}
			// Woken: the session may continue, or must end.
			c.nc.SetReadDeadline(time.Time{})
			if c.Sess.Ending() {
				break
			}
		}
	}
	// Another goroutine may still be writing the last replies.
	c.nc.SetWriteDeadline(time.Now().Add(lastWrite))
	for !c.over() {
		<-c.recheck
	}
	if c.leaving.Load() && !c.dead.Load() {
		c.linger()
	}
}

// read reads the next input.
func (c *netConn) read() (n int, err error) {
	if c.raw == nil || !canReadNow {
		return c.nc.Read(c.space())
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
	k, ok := c.Srv.bufferPool.Get().(*ioBuffers)
	if !ok {
		k = new(ioBuffers)
	}
	c.buffers = k
	if c.Reader.Adopt(k.input) {
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
	if k == nil || len(c.Batch) > 0 {
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
	c.Srv.bufferPool.Put(k)
}

// release takes the input buffer from a connection that has run all its input. none
// is false if the connection needs the buffer for a partial command. The lists of
// commands are empty in either case.
func (c *Input) release() (buf []byte, none bool) {
	if c.lists != nil {
		c.lists.forget()
		c.Batch = nil
	}
	if c.Reader.Partial() {
		return nil, false
	}
	buf = c.Reader.Release()
	c.note()
	return buf, true
}

// process runs all commands that have arrived, until the session stalls. It returns
// false when the session is to end.
func (c *netConn) process() bool {
	for !c.dead.Load() && !c.Sess.Stalled.Load() {
		// The rest of a batch from before the session was blocked comes first.
		if len(c.Batch) == 0 {
			if err := c.Parse(); err != nil {
				c.Sess.FailInput(err)
				return false
			}
		}
		if len(c.Batch) == 0 {
			break
		}
		done, out, ending := c.Sess.Turn(c.Batch, c.spare)
		c.spare = nil
		if b := c.Sess.TakeSpare(); b != nil && (done < len(c.Batch) || cap(b) <= keepOut) {
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
		c.Batch = c.Batch[done:]
		for c.Sess.OutputExceedsLimit() && !c.dead.Load() {
			<-c.recheck
		}
	}
	return !c.dead.Load()
}

// keepBatch copies the rest of a stalled session's batch before the reader's buffer
// is reused for new input. Other sessions may stall a session at any time, so the
// end of its turn would be too early to decide.
func (c *Input) keepBatch() {
	if len(c.Batch) == 0 || c.kept {
		return
	}
	for i, argv := range c.Batch {
		c.Batch[i] = CopyArgs(argv)
	}
	c.kept = true
}

// space returns the memory to read the next input into.
func (c *Input) space() []byte {
	c.keepBatch()
	return c.Reader.Space()
}

// note publishes the size and fill of the input buffer, for InputBuffer.
func (c *Input) note() int {
	size := c.Reader.Size()
	const most = math.MaxUint32
	c.buffer.Store(uint64(min(size, most))<<32 | uint64(min(c.Reader.Buffered(), most)))
	return size
}

// filled records that n bytes were read into the memory from space. It returns
// false if the input exceeds the client's limit.
func (c *Input) filled(n int) bool {
	c.Reader.Filled(n)
	c.arrived.Store(c.arrived.Load() + int64(n)) // only this goroutine writes it
	size := c.note()
	weighed, ok := c.Sess.InputGrew(c.weighedSize, size)
	if weighed {
		c.weighedSize = size
	}
	return ok
}

// Parse parses the next commands, at most as many as a turn runs.
func (c *Input) Parse() (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.Srv.lostClient(c.Sess, p)
			c.Reader, c.lists, c.Batch = protocol.Reader{}, nil, nil // possibly damaged: do not reuse
			err = ErrParsing
		}
	}()
	limit := 0
	c.Reader.Limits, limit = c.Sess.ReaderLimits()
	if c.lists == nil {
		c.lists = new(lists)
	}
	l := c.lists
	l.forget()
	c.Batch, c.kept = nil, false
	for len(l.ends) < limit {
		args, ok, err := c.Reader.Next(l.arena)
		if err != nil && len(l.ends) == 0 {
			return err
		}
		if !ok {
			break
		}
		l.arena = args
		l.ends = append(l.ends, len(args))
	}
	start := 0
	for _, end := range l.ends {
		l.commands = append(l.commands, l.arena[start:end:end])
		start = end
	}
	c.Batch = l.commands
	return nil
}

// ErrParsing is the reply to a client whose input triggers a bug in the parser.
var ErrParsing = errors.New("internal error: closing the connection, see the server's log")

// lostClient logs that a client must be disconnected after a panic that has damaged
// no other state.
func (srv *Engine) lostClient(s *Session, p any) {
	srv.Log.Error("closing client after a panic", "panic", fmt.Sprint(p), "client", s.Addr, "stack", string(debug.Stack()))
}

// write sends output that the caller has claimed: as much as the socket accepts at
// once, the rest from a separate goroutine. It reports whether out itself is
// written.
func (c *netConn) write(out []byte) bool {
	for first := true; out != nil; first = false {
		n, err := c.try(out)
		c.Srv.countOutput(n)
		if err != nil {
			c.abort()
			return false
		}
		if n < len(out) {
			rest := out[n:]
			c.Sess.RecordUnsent(len(rest))
			c.Srv.running.Go(func() { c.Srv.Attempt(func() { c.drain(rest) }) })
			return !first
		}
		out = c.Sess.Written()
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
			c.Sess.Unsent.Store(int64(len(out)))
			n, err := c.nc.Write(out[:min(len(out), writePiece)])
			c.Srv.countOutput(n)
			if err != nil {
				c.abort()
				return
			}
			c.Sess.RecordTaken(int64(n))
			out = out[n:]
		}
		if out = c.Sess.Written(); out != nil {
			c.Sess.RecordUnsent(len(out))
		}
	}
	c.Sess.Unsent.Store(0)
	c.signal()
}

// wake is called when other code has written to the session's output queue, or the
// session may continue or must end.
func (c *netConn) wake() {
	out, killed, _ := c.Sess.Take()
	if killed {
		c.abort()
		return
	}
	if out != nil {
		c.write(out)
	}
	c.signal()
	c.nc.SetReadDeadline(time.Unix(1, 0)) // interrupts a Read
}

// InputBuffer returns the used and the free bytes of the input buffer, as of the
// last note.
func (c *Input) InputBuffer() (used, free int) {
	b := c.buffer.Load()
	used = int(b & math.MaxUint32)
	return used, max(int(b>>32)-used, 0)
}

// Arrived returns how many bytes have been read.
func (c *Input) Arrived() int64 { return c.arrived.Load() }

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
	out, killed, closed := c.Sess.Take()
	if out != nil {
		c.write(out)
	}
	return killed || closed || c.dead.Load()
}

func (c *netConn) abort() {
	c.dead.Store(true)
	c.socket.Close() // without TLS close_notify, which may take time
	c.signal()
}

func (c *netConn) closeAfterPanic() {
	if out := c.Sess.LastReply(false); out != nil {
		limit := time.AfterFunc(lastReplyTime, c.abort) // not a deadline: the connection's own goroutine may reset one
		defer limit.Stop()
		if _, err := c.nc.Write(out); err == nil && c.raw != nil {
			c.awaitPeerClose()
		}
	}
	c.abort()
	c.nc.Close()
}

// Dialer returns a function that connects to the server without a network, for any
// client library with a configurable dialer:
//
//	redis.NewClient(&redis.Options{Dialer: srv.Dialer()})
//
// After Close or Shutdown it returns ErrServerClosed. These close its connections
// as they close those of a network.
func (srv *Engine) Dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(context.Context, string, string) (nc net.Conn, err error) {
		defer srv.setClosedError(&err)
		client, server := newPipe()
		srv.awaitSlot()
		srv.ServeConn(server)
		select {
		case <-srv.Stopped: // ServeConn has refused it, or it is being closed
			client.Close()
			return nil, srv.closedError()
		default:
			return client, nil
		}
	}
}
