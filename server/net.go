package server

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
// The goroutine reads, finds the commands, runs them in a turn and tries to
// write the replies at once. What the socket does not take, and everything
// that arrives from others while it reads, is written by a second goroutine
// that lives only while there is something to write. So the first one never
// waits for a slow reader (Redis's behaviour: a client may send a whole
// pipeline before it reads), and an idle connection costs one goroutine.
//
// While its session is blocked it goes on reading, so that a client that hangs
// up during BZPOPMIN is noticed at once and takes no element with it.
//
// While it waits for input of a plain socket it has no buffers: it borrows a kit
// when there is something to read (ready), and gives it back when there is no more.
// With buffers of their own 10 000 idle clients took 11.9 KB each, now it is some 7. One
// that speaks TLS keeps them, for only crypto/tls knows what it has in store.

const (
	// maxUnread is how many bytes of input a blocked client may have waiting.
	maxUnread = 1 << 20
	// lastWrite is how long a connection that is to be closed waits for its
	// last replies to be taken.
	lastWrite = 5 * time.Second
	// piece is how much is written at a time to a client who does not take it at once,
	// so that it can be seen whether it takes anything.
	piece = 64 << 10
	// largeInput is the size of an input buffer from which on it matters for
	// maxmemory-clients while a command arrives.
	largeInput = 32 << 10
	// keepOut is the largest output buffer that an idle connection keeps.
	keepOut = 16 << 10
	// keepArena is the largest number of arguments for which it keeps the room.
	keepArena = 1 << 10
)

// transport is a connection of either kind. Both methods may be called from any
// goroutine.
type transport interface {
	// finish closes the connection when what has arrived until now is run and
	// answered: see leave.go.
	finish()
	// abort closes the connection at once.
	abort()
	// ended reports whether the client has closed its side.
	ended() bool
	// bury tells the client what there is to be told and closes the connection,
	// when the server has panicked, which ends the loops.
	bury()
}

type conn struct {
	input
	nc     net.Conn
	socket net.Conn        // what nc stands on, or nc
	raw    syscall.RawConn // of a plain socket; nil for others
	below  syscall.RawConn // of the socket, also under TLS; nil if there is none
	spare  []byte          // a written output buffer, to be used again

	kit    *kit // nil while it waits
	ready  func(fd uintptr) bool
	got    int // what ready has read
	failed error

	again chan struct{} // capacity 1: look at the session again
	dead  atomic.Bool   // closed
}

// kit is what a connection needs while it has something to do.
type kit struct {
	input, output []byte
	lists         *lists
}

// input is what a connection has read and its session has not run yet.
type input struct {
	srv    *Server
	sess   *Session
	reader protocol.Reader

	lists *lists
	batch [][][]byte // what is left of lists.commands
	kept  bool       // batch does not depend on reader any more
	told  int        // size of the input buffer that its session was weighed with; see filled

	buffer  atomic.Uint64 // size and taken bytes of the input buffer; see query
	arrived atomic.Int64  // bytes in all

	leaving  atomic.Bool // finish was called
	measured bool        // and unread
	unread   int         // bytes that had arrived then and are still to be read
}

// lists are what a batch of commands is made of.
type lists struct {
	arena    [][]byte // the arguments, one after the other
	ends     []int    // where in arena each command ends
	commands [][][]byte
}

// forget lets go of the arguments. Large lists are not kept.
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
func (srv *Server) Serve(l net.Listener) (err error) {
	defer srv.fallen(&err)
	srv.lifecycle.Lock()
	if srv.stopping {
		srv.lifecycle.Unlock()
		l.Close()
		return srv.closedError()
	}
	srv.listeners[l] = struct{}{}
	if addr, ok := l.Addr().(*net.TCPAddr); ok {
		if _, secure := l.(secureListener); secure {
			srv.tlsServed.Store(int64(addr.Port))
		} else {
			srv.tcpPort.Store(int64(addr.Port))
		}
	}
	srv.lifecycle.Unlock()
	defer func() {
		l.Close()
		srv.lifecycle.Lock()
		delete(srv.listeners, l)
		srv.lifecycle.Unlock()
	}()
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		if err != nil {
			srv.lifecycle.Lock()
			stopping := srv.stopping
			srv.lifecycle.Unlock()
			if stopping {
				return srv.closedError()
			}
			// Out of descriptors, or a client that is gone already: not a
			// reason to stop, nor to spin.
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			srv.acceptFailed(err)
			srv.awaitLeave(pause)
			continue
		}
		pause = 0
		srv.awaitPlace()
		srv.serveConn(nc)
	}
}

// acceptLogTime is how often the log tells at most that clients cannot be accepted.
const acceptLogTime = 10 * time.Second

// acceptFailed tells the log so.
func (srv *Server) acceptFailed(err error) {
	srv.lifecycle.Lock()
	defer srv.lifecycle.Unlock()
	f := &srv.acceptFailures
	if f.times++; time.Since(f.told) < acceptLogTime {
		return
	}
	srv.log.Warn("Accepting client connection", "error", err, "times", f.times, "clients", len(srv.conns))
	f.told, f.times = time.Now(), 0
}

// awaitLeave waits until a client has left, whose descriptor is free then, but no
// longer than limit. All listeners that wait go on then, so that none of them has to
// see others take every place while it waits for its time.
func (srv *Server) awaitLeave(limit time.Duration) {
	srv.lifecycle.Lock()
	left := srv.leaving()
	srv.lifecycle.Unlock()
	srv.await(left, limit)
}

// leaving returns a channel that is closed when the next client has left. The lifecycle
// lock is held.
func (srv *Server) leaving() <-chan struct{} {
	if srv.left == nil {
		srv.left = make(chan struct{})
	}
	return srv.left
}

// await waits until a client has left, but no longer than limit, and reports whether one
// has.
func (srv *Server) await(left <-chan struct{}, limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-left:
		return true
	case <-t.C:
	case <-srv.stopped:
	}
	return false
}

const (
	// endTime is how long a client that has closed its side may take to leave before
	// its place does not count as free any more: a script may keep it, or replies that
	// are still to be written.
	endTime = time.Second
	// lookShare bounds the share of its time for which a listener looks for clients
	// that have closed when there are none.
	lookShare = 10
)

// awaitPlace is called before a client is served. When there are as many clients as may
// be, and one of them has closed its side, it waits until that has left: so a client may
// close and connect again at once. As in Redis, what has arrived first counts.
func (srv *Server) awaitPlace() {
	for {
		srv.lifecycle.Lock()
		if srv.stopping || len(srv.conns) < srv.maxClients() {
			srv.lifecycle.Unlock()
			return
		}
		left := srv.leaving()
		begin := time.Now()
		if rest := srv.lookAgain.Sub(begin); rest > 0 {
			srv.lifecycle.Unlock()
			srv.await(left, rest)
			continue
		}
		ended := srv.anyEnded()
		if !ended {
			now := time.Now()
			srv.lookAgain = now.Add((lookShare - 1) * now.Sub(begin))
		}
		srv.lifecycle.Unlock()
		if !ended {
			return
		}
		if !srv.await(left, endTime) {
			srv.giveUpEnded()
			return
		}
	}
}

// anyEnded reports whether a client has closed its side that may leave soon. The
// lifecycle lock is held.
func (srv *Server) anyEnded() bool {
	for c := range srv.conns {
		if _, stays := srv.staying[c]; !stays && c.ended() {
			return true
		}
	}
	return false
}

// giveUpEnded notes which clients have closed their side and do not leave.
func (srv *Server) giveUpEnded() {
	srv.lifecycle.Lock()
	defer srv.lifecycle.Unlock()
	if srv.staying == nil {
		srv.staying = map[transport]struct{}{}
	}
	for c := range srv.conns {
		if c.ended() {
			srv.staying[c] = struct{}{}
		}
	}
}

// leave forgets a connection, which is closed.
func (srv *Server) leave(c transport) {
	srv.lifecycle.Lock()
	defer srv.lifecycle.Unlock()
	delete(srv.conns, c)
	delete(srv.staying, c)
	if srv.left != nil {
		close(srv.left)
		srv.left = nil
	}
}

// serveConn starts a session for nc, or refuses it.
func (srv *Server) serveConn(nc net.Conn) {
	srv.lifecycle.Lock()
	defer srv.lifecycle.Unlock()
	if srv.stopping {
		nc.Close()
		return
	}
	if srv.limits.Load().protected && srv.acl.open.Load() && fromElsewhere(nc) {
		srv.deny(nc, errProtectedMode)
		return
	}
	if len(srv.conns) >= srv.maxClients() {
		if _, secure := nc.(*tls.Conn); secure { // no handshake for so little, as in Redis
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
	c := &conn{input: input{srv: srv}, nc: nc, socket: socketOf(nc), again: make(chan struct{}, 1)}
	p := peer{addr: nc.RemoteAddr().String(), laddr: nc.LocalAddr().String(), fd: -1, wake: c.wake, input: &c.input, query: c.query}
	var raw syscall.RawConn
	switch nc := c.socket.(type) {
	case *net.TCPConn:
		srv.keepAlive(nc)
		raw, _ = nc.SyscallConn()
	case *net.UnixConn:
		raw, _ = nc.SyscallConn()
		p.laddr += ":0" // as Redis has it
		p.addr, p.unix = p.laddr, true
	}
	c.below, p.ended = raw, c.ended
	if raw != nil {
		raw.Control(func(fd uintptr) { p.fd = int(fd) })
		p.inKernel = func() (n int64) {
			raw.Control(func(fd uintptr) { n = notTaken(int(fd)) })
			return n
		}
	}
	if p.secure = c.socket != c.nc; !p.secure {
		c.raw, c.ready = raw, c.readReady
	}
	srv.conns[c] = struct{}{}
	srv.newSessionAt(&c.sess, p)
	srv.running.Go(c.serve)
}

// ended reports whether the client has closed its side of the connection.
func (c *conn) ended() bool {
	if c.dead.Load() {
		return true
	}
	if p, ok := c.nc.(*pipeEnd); ok {
		return p.peerClosed.Load()
	}
	if c.below == nil {
		return false
	}
	ended := true // if the descriptor is closed
	c.below.Control(func(fd uintptr) { ended = peerEnded(fd) })
	return ended
}

// A pipeEnd is one end of a connection within the process. It knows whether the other
// has been closed before a Read finds that out.
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

// deny tells a client why it is not served.
func (srv *Server) deny(nc net.Conn, reply string) {
	srv.refused()
	srv.running.Go(func() {
		nc.SetDeadline(time.Now().Add(time.Second))
		io.WriteString(nc, reply)
		nc.Close()
	})
}

const errProtectedMode = "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for " +
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

// fromElsewhere reports whether a client is not on this machine.
func fromElsewhere(nc net.Conn) bool {
	addr, ok := nc.RemoteAddr().(*net.TCPAddr)
	return ok && !addr.IP.IsLoopback()
}

func (c *conn) serve() {
	if c.talkSafely() {
		return // bury does the rest
	}
	c.reader, c.lists, c.batch = protocol.Reader{}, nil, nil // which may hold half of a large command
	c.srv.attempt(func() {
		if out := c.sess.close(); out != nil {
			c.try(out) // what does not fit is lost with the client
		}
	})
	c.nc.Close()
	c.srv.leave(c)
	c.srv.attempt(c.sess.released)
}

// talkSafely is talk. Whatever panics in this goroutine without the server's lock has
// spoilt what is this client's only, and ends nobody else. It returns true if the
// server is over.
func (c *conn) talkSafely() (broken bool) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case lockBroken:
			broken = true
		default:
			c.srv.lostClient(c.sess, p)
		}
	}()
	c.talk()
	return false
}

// talk reads, runs and answers commands until the connection is to be closed.
func (c *conn) talk() {
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
		if c.sess.stalled.Load() && c.reader.Buffered() > maxUnread {
			<-c.again
			continue
		}
		n, err := c.read()
		c.srv.countInput(n)
		if !c.filled(n) {
			return
		}
		if err != nil {
			if err == io.EOF {
				for c.process() {
					idle := c.sess.flushing.Load() == 0 && !c.sess.stalled.Load() // as most are; that needs no lock
					if idle || !c.sess.halve() {
						return
					}
					<-c.again
				}
				break
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) || c.dead.Load() {
				return
			}
			// Woken: the session may go on, or is to end.
			c.nc.SetReadDeadline(time.Time{})
			if c.sess.ending() {
				break
			}
		}
	}
	// The last replies may still be on their way, from another goroutine.
	c.nc.SetWriteDeadline(time.Now().Add(lastWrite))
	for !c.over() {
		<-c.again
	}
	if c.leaving.Load() && !c.dead.Load() {
		c.linger()
	}
}

// read reads what arrives next.
func (c *conn) read() (n int, err error) {
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

// readReady reads what has arrived, or returns false if the connection has to wait
// for that.
func (c *conn) readReady(fd uintptr) bool {
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

// borrow gives the connection what it needs to read and run commands.
func (c *conn) borrow() {
	if c.kit != nil {
		return
	}
	k, ok := c.srv.kits.Get().(*kit)
	if !ok {
		k = new(kit)
	}
	c.kit = k
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

// lend gives it back, unless half a command has arrived, or commands wait.
func (c *conn) lend() {
	k := c.kit
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
	c.kit = nil
	c.srv.kits.Put(k)
}

// release takes the buffer away from a connection that has run all that has
// arrived, and says whether it has none now: it needs it for half a command. The
// lists of commands are empty in any case.
func (c *input) release() (buf []byte, none bool) {
	if c.lists != nil {
		c.lists.forget()
		c.batch = nil
	}
	if c.reader.Partial() {
		return nil, false
	}
	buf = c.reader.Release()
	c.note()
	return buf, true
}

// process runs all commands that have arrived, as far as the session goes on.
// It returns false when the session is to end.
func (c *conn) process() bool {
	for !c.dead.Load() && !c.sess.stalled.Load() {
		// The part of a batch that a blocked session left comes first.
		if len(c.batch) == 0 {
			if err := c.parse(); err != nil {
				c.fail(err)
				return false
			}
		}
		if len(c.batch) == 0 {
			break
		}
		done, out, ending := c.sess.turn(c.batch, c.spare)
		c.spare = nil
		if b := c.sess.spare; b != nil {
			if c.sess.spare = nil; done < len(c.batch) || cap(b) <= keepOut {
				c.spare = b
			}
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
		for c.sess.choked() && !c.dead.Load() {
			<-c.again
		}
	}
	return !c.dead.Load()
}

// keepBatch copies what a session that has to wait has left of a batch, before the
// reader's buffer is used for what arrives next. Others may stall a session at any
// time, so the end of its turn would be too early to know.
func (c *input) keepBatch() {
	if len(c.batch) == 0 || c.kept {
		return
	}
	for i, argv := range c.batch {
		c.batch[i] = copyArgs(argv)
	}
	c.kept = true
}

// space returns where what arrives next is to be read to.
func (c *input) space() []byte {
	c.keepBatch()
	return c.reader.Space()
}

// note notes what is in the input buffer, for those who ask the session.
func (c *input) note() int {
	size := c.reader.Size()
	const most = math.MaxUint32
	c.buffer.Store(uint64(min(size, most))<<32 | uint64(min(c.reader.Buffered(), most)))
	return size
}

// filled says that n bytes were read to where space said. It returns false if the
// client may not send as much.
func (c *input) filled(n int) bool {
	c.reader.Filled(n)
	c.arrived.Store(c.arrived.Load() + int64(n)) // nobody else writes it
	size := c.note()
	limits := c.srv.limits.Load()
	limit := limits.queryBuffer
	if size <= limit {
		if limits.weighs && size != c.told && (size > largeInput || c.told > largeInput) {
			// No command runs as long as it has not arrived, so nobody else would notice.
			c.told = size
			c.srv.unlessBusy(c.sess.weigh)
		}
		return true
	}
	c.srv.queryLimitDisconnections.Add(1)
	c.srv.log.Warn("client sends a command that is too large; connection closed",
		"client", c.sess.addr, "bytes", size, "client-query-buffer-limit", limit)
	return false
}

// parse finds the next commands, at most as many as a turn runs.
func (c *input) parse() (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.srv.lostClient(c.sess, p)
			c.reader, c.lists, c.batch = protocol.Reader{}, nil, nil // nobody else is to have these
			err = errParsing
		}
	}()
	limit := turnLimit
	c.reader.Limits = c.srv.limits.Load().reader
	if !c.sess.authenticated && c.srv.acl.loginRequired.Load() {
		c.reader.Limits.Unauthenticated = true
		limit = 1 // the limits change with AUTH
	}
	if c.lists == nil {
		c.lists = new(lists)
	}
	l := c.lists
	l.forget()
	c.batch, c.kept = nil, false
	for len(l.ends) < limit {
		args, ok, err := c.reader.Next(l.arena)
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
	c.batch = l.commands
	return nil
}

// errParsing is what a client is told whose input cannot be parsed, by a mistake of
// ours.
var errParsing = errors.New("internal error: this connection has to be closed, the server's log tells more")

// lostClient says that a client has to be disconnected after a panic which has spoilt
// nothing else.
func (srv *Server) lostClient(s *Session, p any) {
	srv.log.Error("a panic ends the connection of one client", "panic", fmt.Sprint(p), "client", s.addr, "stack", string(debug.Stack()))
}

// fail answers input that cannot be understood, and closes.
func (c *conn) fail(err error) {
	var out []byte
	c.srv.do(func() {
		c.sess.out.Error("ERR " + err.Error())
		c.sess.closing = true
		if c.sess.claim() {
			out = c.sess.next(nil)
		}
	})
	if out != nil {
		c.write(out)
	}
}

// write sends out what the caller has claimed: as much as the socket takes at
// once, the rest from a goroutine of its own. It reports whether out itself is
// written.
func (c *conn) write(out []byte) bool {
	for first := true; out != nil; first = false {
		n, err := c.try(out)
		c.srv.countOutput(n)
		if err != nil {
			c.abort()
			return false
		}
		if n < len(out) {
			rest := out[n:]
			c.sess.left(len(rest))
			c.srv.running.Go(func() { c.srv.attempt(func() { c.drain(rest) }) })
			return !first
		}
		out = c.sess.written()
	}
	return true
}

// try writes what a socket takes without waiting. Other connections have no
// such thing: they take nothing.
func (c *conn) try(out []byte) (n int, err error) {
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

// drain writes until nothing is left, and waits for the client as long as it
// takes.
func (c *conn) drain(out []byte) {
	for out != nil {
		for len(out) > 0 {
			c.sess.unsent.Store(int64(len(out)))
			n, err := c.nc.Write(out[:min(len(out), piece)])
			c.srv.countOutput(n)
			if err != nil {
				c.abort()
				return
			}
			c.sess.late.Add(int64(n))
			out = out[n:]
		}
		if out = c.sess.written(); out != nil {
			c.sess.left(len(out))
		}
	}
	c.sess.unsent.Store(0)
	c.signal()
}

// wake is called when others have written to the session's outbox, or it may
// go on, or must end.
func (c *conn) wake() {
	out, killed, _ := c.sess.take()
	if killed {
		c.abort()
		return
	}
	if out != nil {
		c.write(out)
	}
	c.signal()
	c.nc.SetReadDeadline(time.Unix(1, 0)) // ends a Read
}

// query tells how much of the input buffer was taken, and how much free, when
// note was called last.
func (c *input) query() (taken, free int) {
	b := c.buffer.Load()
	taken = int(b & math.MaxUint32)
	return taken, max(int(b>>32)-taken, 0)
}

// signal makes serve look at its session again, unless it is reading.
func (c *conn) signal() {
	select {
	case c.again <- struct{}{}:
	default:
	}
}

// over reports whether the connection can be closed: it is dead, or its last
// reply is written.
func (c *conn) over() bool {
	out, killed, closed := c.sess.take()
	if out != nil {
		c.write(out)
	}
	return killed || closed || c.dead.Load()
}

func (c *conn) abort() {
	c.dead.Store(true)
	c.socket.Close() // TLS would take its leave, which can take time
	c.signal()
}

func (c *conn) bury() {
	if out := c.sess.lastReply(false); out != nil {
		limit := time.AfterFunc(lastWords, c.abort) // a deadline its own goroutine may take back
		defer limit.Stop()
		if _, err := c.nc.Write(out); err == nil && c.raw != nil {
			c.outlast()
		}
	}
	c.abort()
	c.nc.Close()
}

// Dialer returns a function that connects to the server without a network, for
// any client library that lets its user dial:
//
//	redis.NewClient(&redis.Options{Dialer: srv.Dialer()})
//
// After Close or Shutdown it returns ErrServerClosed. These close its connections
// as they do those of a network.
func (srv *Server) Dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(context.Context, string, string) (nc net.Conn, err error) {
		defer srv.fallen(&err)
		client, server := newPipe()
		srv.awaitPlace()
		srv.serveConn(server)
		select {
		case <-srv.stopped: // serveConn has refused it, or it is being closed
			client.Close()
			return nil, srv.closedError()
		default:
			return client, nil
		}
	}
}
