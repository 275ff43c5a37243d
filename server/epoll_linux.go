package server

import (
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The epoll transport: a few goroutines, each of which looks after many plain
// sockets. It reads all that have something to say, runs their commands under
// one hold of the lock, and writes the replies when it has given the lock back.
//
// Only the loop of a connection reads, writes or closes it. Who has something for
// its session from elsewhere (a message, an element that it has waited for, the
// order to end) posts the connection to the loop, and wakes it by its eventfd if
// it sleeps. So nothing polls, and a connection needs no goroutine.
//
// Readiness is asked for by level: a client whose pipeline is long, or whose
// replies nobody takes, is left alone by asking no more for its input.
//
// A script that lends the lock keeps the goroutine that runs it. So that the other
// clients of its loop can be told -BUSY, another goroutine becomes the loop then
// (replace); the old one posts its client when the script has ended, and is gone.

const (
	// maxLoops is how many loops there are at most. There is one for every two
	// cores: on two cores, with 50 clients, one loop took 5.1 to 5.6 µs for PING
	// and 0.60 to 0.67 µs in pipelines of 16, two loops 6.7 to 7.3 and 0.72 to
	// 0.83, for they contend for the lock and find fewer clients ready at a time.
	// A goroutine for each client took 8.4 to 8.8 and 0.83 to 0.87.
	maxLoops = 4
	// maxEvents is how many sockets a loop learns of at once.
	maxEvents = 128
	// flushBytes is how large replies grow in all before those of the clients that
	// have had their turn are written: while they are in the cache, and the buffers
	// can be used again.
	flushBytes = 128 << 10
	// keepSpares is how many bytes of written output buffers a loop keeps.
	keepSpares = 1 << 20
)

// loops are those of a server. They are begun with the first connection.
type loops struct {
	all  []*loop
	next int
	gone sync.WaitGroup
}

type loop struct {
	srv   *Server
	epoll int
	event int // the eventfd that wakes it

	conns  []*polled // by descriptor
	ready  []*polled // have commands to run
	done   []*polled // have run some, and what they reply is to be written
	cur    *polled   // whose commands run
	spares [][]byte
	spared int // bytes in spares
	events [maxEvents]unix.EpollEvent

	mu       sync.Mutex
	posts    []*polled
	sleeping bool // nobody has woken it yet
	quit     bool
}

// polled is a connection of a loop. What has no note belongs to the loop.
type polled struct {
	input
	loop   *loop
	fd     int
	asked  uint32 // the events that epoll was asked for; 0: none, and not registered
	queued bool   // in ready
	away   bool   // its script runs outside the loop
	ending bool   // runs no more commands; to be closed when the rest is written
	gone   bool   // closed
	out    []byte // to be written
	rest   []byte // of what the socket did not take
	last   *time.Timer

	posted bool        // in loop.posts, guarded by loop.mu
	back   atomic.Bool // its script has ended
	dead   atomic.Bool // to be closed at once
}

// serveSocket serves a plain socket with a loop. It is called with the lifecycle
// lock held, and returns false if nc is something else.
func (srv *Server) serveSocket(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	p := peer{addr: nc.RemoteAddr().String(), laddr: nc.LocalAddr().String(), fd: -1}
	switch nc := nc.(type) {
	case *net.TCPConn:
		srv.keepAlive(nc)
	case *net.UnixConn:
		p.laddr += ":0" // as Redis has it
		p.addr, p.unix = p.laddr, true
	default:
		return false
	}
	l, err := srv.nextLoop()
	if err != nil {
		srv.log.Warn("no epoll; a goroutine serves the client", "error", err)
		return false
	}
	// A descriptor that the runtime does not poll, too.
	raw, err := sc.SyscallConn()
	if err == nil {
		e := raw.Control(func(fd uintptr) { p.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
		err = errors.Join(e, err)
	}
	if err != nil {
		return false
	}
	nc.Close()
	c := &polled{input: input{srv: srv}, loop: l, fd: p.fd, posted: true}
	p.wake, p.query = c.wake, c.query
	srv.conns[c] = struct{}{}
	srv.running.Add(1)
	c.sess = srv.newSession(p)
	l.mu.Lock()
	c.posted = false // until now wake could not have told who it is
	l.mu.Unlock()
	c.wake()
	return true
}

// nextLoop returns the loop for the next connection.
func (srv *Server) nextLoop() (*loop, error) {
	ls := &srv.loops
	if len(ls.all) < max(1, min(maxLoops, runtime.GOMAXPROCS(0)/2)) {
		l, err := newLoop(srv)
		if err != nil {
			return nil, err
		}
		ls.all = append(ls.all, l)
		ls.gone.Add(1)
		go l.run()
		return l, nil
	}
	ls.next++
	return ls.all[ls.next%len(ls.all)], nil
}

func newLoop(srv *Server) (*loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, event, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(event)})
		if err != nil {
			unix.Close(event)
		}
	}
	if err != nil {
		unix.Close(epoll)
		return nil, err
	}
	return &loop{srv: srv, epoll: epoll, event: event}, nil
}

// stop ends the loops, whose connections are closed, and waits for that. There are
// no more connections then.
func (ls *loops) stop() {
	for _, l := range ls.all {
		l.mu.Lock()
		if !l.quit {
			l.quit = true
			l.rouse()
		}
		l.mu.Unlock()
	}
	ls.gone.Wait()
}

// rouse wakes the loop. Its lock is held, so that it has not ended.
func (l *loop) rouse() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	unix.Write(l.event, one[:])
}

// wake is called from any goroutine when the loop should look at the session.
func (c *polled) wake() {
	l := c.loop
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.posted {
		return
	}
	c.posted = true
	l.posts = append(l.posts, c)
	if l.sleeping {
		l.sleeping = false
		l.rouse()
	}
}

func (c *polled) abort() {
	c.dead.Store(true)
	c.wake()
}

func (l *loop) run() {
	for l.turns() {
		l.flush()
		if !l.wait() {
			unix.Close(l.event)
			unix.Close(l.epoll)
			l.srv.loops.gone.Done()
			return
		}
	}
}

// turns gives everybody who has commands a turn. It returns false if another
// goroutine has become the loop meanwhile.
func (l *loop) turns() bool {
	srv := l.srv
	turn := l.ready
	l.ready = nil
	for i := 0; i < len(turn); {
		srv.mu.Lock()
		if srv.busy {
			c := turn[i]
			i++
			c.queued = false
			if c.gone {
				srv.mu.Unlock()
				continue
			}
			done, out, ending := c.sess.turnWhileBusy(c.batch)
			c.worked(done, out, ending)
			continue
		}
		srv.looping = l
		srv.freeze()
		bytes := 0
		for first := srv.at; i < len(turn); {
			c := turn[i]
			i++
			c.queued = false
			if c.gone {
				continue
			}
			l.cur, l.ready = c, turn[i:]
			srv.begun()
			done, out, ending := c.sess.work(c.batch, l.spare())
			if srv.looping != l {
				srv.end()
				c.out, c.batch, c.ending = out, c.batch[done:], ending
				c.back.Store(true)
				c.wake()
				return false
			}
			l.cur = nil
			c.worked(done, out, ending)
			srv.settle()
			if srv.looping != l { // a command that a pause had held back has run for long
				srv.unlock()
				return false
			}
			if bytes += len(out); bytes > flushBytes || srv.at.Sub(first) > turnTime {
				break
			}
			srv.setClock(srv.at) // it was read when the last command ended
			srv.keeper.before = srv.keys.Sequence()
		}
		srv.looping = nil
		srv.unlock()
		if i < len(turn) {
			l.ready = turn[i:] // when those who have had their turn are answered
			return true
		}
	}
	clear(turn)
	l.ready = turn[:0]
	return true
}

// replace makes another goroutine the loop, for the one that calls it, which holds
// the server's lock, will not be back soon.
func (l *loop) replace() {
	l.srv.looping = nil
	if c := l.cur; c != nil {
		l.cur, c.away = nil, true
		c.ask(0)
	}
	go l.run()
}

// worked notes what a turn has left.
func (c *polled) worked(done int, out []byte, ending bool) {
	c.batch = c.batch[done:]
	c.out = out
	c.ending = c.ending || ending
	c.loop.done = append(c.loop.done, c)
}

// flush writes the replies of the turns.
func (l *loop) flush() {
	for i := 0; i < len(l.done); i++ {
		c := l.done[i]
		if c.out != nil {
			out := c.out
			c.out = nil
			c.write(out)
		}
		l.proceed(c)
	}
	clear(l.done)
	l.done = l.done[:0]
}

// wait waits until there is something to do, and reads what clients have sent. It
// returns false if the loop is to end.
func (l *loop) wait() bool {
	n := l.poll(0)
	if n == 0 && len(l.ready) == 0 {
		l.mu.Lock()
		if l.quit {
			l.mu.Unlock()
			return false
		}
		sleep := len(l.posts) == 0
		l.sleeping = sleep
		l.mu.Unlock()
		if sleep {
			n = l.poll(-1)
		}
	}
	for i := range l.events[:n] {
		e := &l.events[i]
		if int(e.Fd) == l.event {
			var b [8]byte
			unix.Read(l.event, b[:])
			continue
		}
		if c := l.conns[e.Fd]; c != nil {
			l.happened(c, e.Events)
		}
	}
	l.mu.Lock()
	l.sleeping = false
	posts := l.posts
	l.posts = nil
	for _, c := range posts {
		c.posted = false
	}
	l.mu.Unlock()
	for _, c := range posts {
		l.look(c)
	}
	return true
}

// poll returns how many events there are. Without timeout it does not tell the
// scheduler, which is cheaper.
func (l *loop) poll(timeout int) int {
	for {
		var n int
		var err error
		if timeout == 0 {
			r, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&l.events)), maxEvents, 0, 0, 0)
			if n = int(r); e != 0 {
				err = e
			}
		} else {
			n, err = unix.EpollWait(l.epoll, l.events[:], timeout)
		}
		if err == nil {
			return n
		}
		if err != unix.EINTR {
			panic("BUG: epoll: " + err.Error())
		}
	}
}

// happened is called when epoll has something to tell of c.
func (l *loop) happened(c *polled, events uint32) {
	if events&unix.EPOLLOUT != 0 && c.rest != nil {
		out := c.rest
		c.rest = nil
		c.write(out)
	}
	switch {
	case c.asked&unix.EPOLLIN != 0:
		if events&^unix.EPOLLOUT != 0 && !c.queued {
			c.read()
		}
	case events&(unix.EPOLLERR|unix.EPOLLHUP) != 0:
		c.dead.Store(true) // there is nobody who would read what is still to be said
	}
	l.proceed(c)
}

// look is called for a connection that was posted.
func (l *loop) look(c *polled) {
	if c.back.Load() {
		c.back.Store(false)
		c.away = false
		l.done = append(l.done, c)
		if out := c.out; out != nil {
			c.out = nil
			c.write(out)
		}
	}
	if c.gone || c.away {
		return
	}
	for !c.dead.Load() {
		out, killed, closed := c.sess.take()
		if killed || closed {
			c.dead.Store(true)
		}
		if out == nil {
			break
		}
		c.write(out)
	}
	if !c.ending && c.sess.ending() {
		c.ending = true
	}
	l.proceed(c)
}

// proceed decides what becomes of a connection after something has happened to it.
func (l *loop) proceed(c *polled) {
	if c.gone || c.away {
		return
	}
	if c.ending && !c.dead.Load() {
		if _, killed, closed := c.sess.take(); killed || closed {
			c.dead.Store(true)
		} else if c.last == nil {
			c.last = time.AfterFunc(lastWrite, c.abort)
		}
	}
	if c.dead.Load() {
		c.close()
		return
	}
	choked := c.sess.choked()
	if !c.ending && !c.queued && !choked && !c.sess.stalled.Load() {
		if len(c.batch) == 0 {
			if err := c.parse(); err != nil {
				c.ending = true
				c.srv.running.Go(func() { c.fail(err) })
			}
		}
		if len(c.batch) > 0 {
			c.queued = true
			l.ready = append(l.ready, c)
		}
	}
	var events uint32
	if !c.ending && !choked && !(c.sess.stalled.Load() && c.reader.Buffered() > maxUnread) {
		events = unix.EPOLLIN
	}
	if c.rest != nil {
		events |= unix.EPOLLOUT
	}
	if events == 0 {
		events = unix.EPOLLET // nothing but the end, once
	}
	if events != c.asked {
		c.ask(events)
	}
}

// ask tells epoll which events are wanted; 0: nothing, not even that it is over.
func (c *polled) ask(events uint32) {
	l := c.loop
	op := unix.EPOLL_CTL_MOD
	switch {
	case events == 0:
		op = unix.EPOLL_CTL_DEL
	case c.asked == 0:
		op = unix.EPOLL_CTL_ADD
		for len(l.conns) <= c.fd {
			l.conns = append(l.conns, nil)
		}
		l.conns[c.fd] = c
	}
	if events == c.asked {
		return
	}
	c.asked = events
	if err := unix.EpollCtl(l.epoll, op, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd)}); err != nil && events != 0 {
		c.srv.log.Warn("epoll refuses a client; connection closed", "client", c.sess.addr, "error", err)
		c.abort()
	}
}

// read reads once.
func (c *polled) read() {
	n, err := unix.Read(c.fd, c.room())
	if err == unix.EAGAIN || err == unix.EINTR {
		c.reader.Filled(0)
		return
	}
	if !c.filled(max(n, 0)) || n <= 0 {
		c.dead.Store(true)
	}
}

// fail answers input that cannot be understood, and closes. It waits for a script
// that is busy.
func (c *polled) fail(err error) {
	c.srv.do(func() {
		c.sess.out.Error("ERR " + err.Error())
		c.sess.closing = true
		c.sess.pending()
	})
}

// write writes what the socket takes, and what has come meanwhile.
func (c *polled) write(out []byte) {
	for out != nil {
		n, err := writeNow(uintptr(c.fd), out)
		c.srv.countOutput(n)
		if err != nil {
			c.dead.Store(true)
			return
		}
		if n < len(out) {
			c.rest = out[n:]
			c.sess.unsent.Store(int64(len(c.rest)))
			return
		}
		if l := c.loop; l.spared+cap(out) <= keepSpares {
			l.spares = append(l.spares, out[:0])
			l.spared += cap(out)
		}
		out = c.sess.written()
	}
	if c.sess.unsent.Load() != 0 {
		c.sess.unsent.Store(0)
	}
}

// spare returns a buffer for the next replies.
func (l *loop) spare() []byte {
	n := len(l.spares)
	if n == 0 {
		return nil
	}
	b := l.spares[n-1]
	l.spares[n-1] = nil
	l.spares = l.spares[:n-1]
	l.spared -= cap(b)
	return b
}

// close closes the connection. The session may have to wait for a script.
func (c *polled) close() {
	c.gone = true
	if c.last != nil {
		c.last.Stop()
	}
	if c.asked != 0 {
		c.ask(0)
	}
	if l := c.loop; c.fd < len(l.conns) {
		l.conns[c.fd] = nil
	}
	c.batch = nil
	go func() {
		c.sess.close()
		unix.Close(c.fd)
		c.srv.lifecycle.Lock()
		delete(c.srv.conns, c)
		c.srv.lifecycle.Unlock()
		c.srv.running.Done()
	}()
}
