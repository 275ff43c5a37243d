package server

import (
	"encoding/binary"
	"errors"
	"math"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/zsetd/zsetd/protocol"
	"golang.org/x/sys/unix"
)

// The epoll transport: a goroutine or a few, each of which looks after many plain
// sockets. It reads some that have something to say, runs their commands under one
// hold of the lock, and writes the replies when it has given the lock back; so a
// request costs a read, a write, and its part of an epoll_wait. None of these tells
// the scheduler, for they do not wait: with 50 clients that takes 4.5 µs for PING
// instead of 5.1, of which the kernel has six sevenths.
//
// Only the loop of a connection reads, writes or closes it. What its own commands
// have for others (a message, an element that was waited for) the loop writes when
// nobody has commands to run any more, once for each receiver however many
// messages there were: PUBLISH in pipelines of 16 took 3.4 times as much for 1000
// subscribers when each was written to as soon as the lock was free. Who has
// something for a session from elsewhere (another goroutine, the order to end) posts
// the connection to the loop, and wakes it by its eventfd if it sleeps. So nothing
// polls, and a connection needs no goroutine.
//
// Nor does an idle one need buffers: the loop lends it one to read into, one for its
// replies and the lists of its commands, and takes them back when all is answered.
// That leaves 1.5 KB of an idle client of 10 000, where redis-server has 9.5.
//
// Readiness is asked for by level: a client whose pipeline is long, or whose
// replies nobody takes, is left alone by asking no more for its input. As in Redis a
// reply waits for commands of others that were ready at the same time, but only for
// a millisecond, or for the one that takes longer.
//
// The socket is a duplicate of the one that was accepted, which is closed: the
// runtime's own poller knows nothing of it. Where there is no descriptor left for
// that, a goroutine serves the client.
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
	maxEvents = 256
	// portion is how many of them are read before their commands run: the buffers
	// of so many stay in a processor's cache, and the first clients go on while the
	// others are served. With all at once PING took 6.7 µs instead of 6.0.
	portion = 32
	// keepInputs is how many buffers to read into, and lists of commands, a loop
	// keeps.
	keepInputs = 2 * portion
	// largeReads is how often a large argument is read from, besides, before others are
	// looked at: what a socket holds of it fits in that many reads, each some times as large.
	largeReads = 4
	// keepOutputs is how many bytes of written output buffers a loop keeps.
	keepOutputs = 1 << 20
	// flushBytes is how large replies grow in all before those of the clients that
	// have had their turn are written: while they are in the cache, and the buffers
	// can be used again.
	flushBytes = 128 << 10
	// maxQuiet is how long messages wait for more while there are commands to run.
	maxQuiet = 4 * time.Millisecond
)

// loops are those of a server. They are begun with the first connection.
type loops struct {
	all  []*loop
	next int
	gone sync.WaitGroup

	closed sync.Once
}

type loop struct {
	srv   *Server
	epoll int
	event int // the eventfd that wakes it

	conns  []*polled // by descriptor
	ready  []*polled // have commands to run
	turn   []*polled // those of them who get a turn now
	at     int       // so many of these have had it
	done   []*polled // have run some, and what they reply is to be written
	told   []*polled // were sent something, or changed, by others: see tell
	since  time.Time // when the first of these was, at the latest
	cur    *polled   // whose commands run
	busy   bool      // epoll had much to tell
	events [maxEvents]unix.EpollEvent
	news   []unix.EpollEvent // those of them that nobody has looked at yet

	inputs  [][]byte // buffers to read into
	outputs [][]byte // buffers for replies
	room    int      // bytes in outputs
	lists   []*lists
	traffic traffic

	mu       sync.Mutex
	posts    []*polled
	sleeping bool // nobody has woken it yet
	quit     bool
}

// traffic is what a loop has counted and not told the server yet.
type traffic struct{ input, output, reads, writes int64 }

func (t *traffic) tell(srv *Server) {
	if t.reads > 0 {
		srv.input.Add(t.input)
		srv.reads.Add(t.reads)
	}
	if t.writes > 0 {
		srv.output.Add(t.output)
		srv.writes.Add(t.writes)
	}
	*t = traffic{}
}

// polled is a connection of a loop. What has no note belongs to the loop.
type polled struct {
	input
	loop    *loop
	fd      int
	asked   uint32 // the events that epoll was asked for; 0: none, and not registered
	more    bool   // the last read has brought something
	queued  bool   // in ready
	told    bool   // in told
	away    bool   // its script runs outside the loop
	ending  bool   // runs no more commands; to be closed when the rest is written
	halved  bool   // sends no more; likewise
	lingers bool   // is closed when the client has taken everything
	gone    bool   // closed
	out     []byte // to be written
	rest    []byte // of what the socket did not take
	spare   []byte // for what it is sent by others
	last    *time.Timer

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
	p.wake, p.input, p.query, p.polled, p.ended = c.wake, &c.input, c.query, c, c.ended
	srv.conns[c] = struct{}{}
	srv.running.Add(1)
	srv.newSessionAt(&c.sess, p)
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
		ls.gone.Go(l.run)
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

// close closes what the loops had, which have ended.
func (ls *loops) close() {
	ls.closed.Do(func() {
		for _, l := range ls.all {
			unix.Close(l.event)
			unix.Close(l.epoll)
		}
	})
}

// rouse wakes the loop. Its lock is held.
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

// ended reports whether the client has closed its side of the connection.
func (c *polled) ended() bool { return c.dead.Load() || peerEnded(uintptr(c.fd)) }

func (c *polled) abort() {
	c.dead.Store(true)
	c.wake()
}

func (l *loop) run() {
	defer l.srv.ends()
	l.flush() // what was done when this goroutine became the loop
	for {
		for i := 1; len(l.news) > 0; i++ {
			e := &l.news[0]
			l.news = l.news[1:]
			l.happened(e)
			if i%portion == 0 && !l.turns() {
				return
			}
		}
		l.collect()
		if !l.turns() {
			return
		}
		if len(l.told) > 0 && (len(l.ready) == 0 || l.waited() > maxQuiet) {
			l.tell()
		}
		n, ok := l.wait()
		if !ok {
			break
		}
		l.news = l.events[:n]
	}
}

// turns gives everybody who has commands a turn, and writes what they reply. Who
// has more to run is ready again. It returns false if another goroutine has become
// the loop meanwhile.
func (l *loop) turns() bool {
	if l.at == len(l.turn) {
		l.turn, l.ready, l.at = l.ready, l.turn[:0], 0
	}
	if len(l.turn) == 0 {
		return true
	}
	l.traffic.tell(l.srv)
	for l.at < len(l.turn) {
		if !l.hold() {
			return false
		}
		l.flush()
	}
	clear(l.turn)
	l.turn, l.at = l.turn[:0], 0
	return true
}

// next returns who gets a turn now, or nil if that is nobody any more.
func (l *loop) next() *polled {
	for l.at < len(l.turn) {
		c := l.turn[l.at]
		l.at++
		c.queued = false
		if !c.gone {
			return c
		}
	}
	return nil
}

// hold is one hold of the lock, for as many as there is time for. It returns false
// if another goroutine has become the loop.
func (l *loop) hold() bool {
	srv := l.srv
	srv.mu.Lock()
	if srv.busy {
		c := l.next()
		if c == nil {
			srv.mu.Unlock()
			return true
		}
		done, out, ending := c.sess.turnWhileBusy(c.batch)
		c.worked(done, out, ending)
		return true
	}
	away, mine := l.work()
	srv.unlock()
	if away != nil {
		away.back.Store(true)
		away.wake()
	}
	return mine
}

// work is what hold does with the lock. It returns mine == false if another goroutine
// has become the loop, and away, the client whose script that was.
func (l *loop) work() (away *polled, mine bool) {
	srv := l.srv
	defer srv.guard()
	srv.looping = l
	srv.freeze()
	bytes := 0
	for first := srv.at; ; {
		c := l.next()
		if c == nil {
			break
		}
		l.cur = c
		srv.begun()
		done, out, ending := c.sess.work(c.batch, l.output())
		if srv.looping != l {
			srv.settle()
			c.out, c.batch, c.ending = out, c.batch[done:], ending
			return c, false
		}
		l.cur = nil
		l.keepOutput(c.sess.unused())
		c.worked(done, out, ending)
		srv.settle()
		if srv.looping != l { // a command that a pause had held back has run for long
			return nil, false
		}
		if bytes += len(out); bytes > flushBytes || srv.at.Sub(first) > turnTime {
			break
		}
		srv.setClock(srv.at) // it was read when the last command ended
		srv.keeper.before = srv.keys.Sequence()
	}
	srv.looping = nil
	l.gather()
	return nil, true
}

// replace makes another goroutine the loop, for the one that calls it, which holds
// the server's lock, will not be back soon.
func (l *loop) replace() {
	l.srv.looping = nil
	if c := l.cur; c != nil {
		l.cur, c.away = nil, true
		c.ask(0)
	}
	l.srv.loops.gone.Go(l.run)
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
	for _, c := range l.done {
		c.reply()
		l.proceed(c)
	}
	clear(l.done)
	l.done = l.done[:0]
}

// gather notes which clients of this loop are to be woken, so that unlock need not
// tell it. The server's lock is held.
func (l *loop) gather() {
	u := &l.srv.unit
	if len(u.wake) == 0 {
		return
	}
	others := u.wake[:0]
	for _, s := range u.wake {
		if c := s.polled; c != nil && c.loop == l {
			s.waking = false
			if len(l.told) == 0 {
				l.since = l.srv.at
			}
			l.tells(c)
		} else {
			others = append(others, s)
		}
	}
	u.wake = others
}

// waited returns how long somebody may have waited for what tell tells him.
func (l *loop) waited() time.Duration {
	d := l.srv.since(l.since)
	if d < 0 {
		return math.MaxInt64 // the clock was put back
	}
	return d
}

// tells notes that c is to be looked at.
func (l *loop) tells(c *polled) {
	if !c.told {
		c.told = true
		l.told = append(l.told, c)
	}
}

// tell looks at those who have been sent something by others, may go on, or are to
// end, and writes what they are sent.
func (l *loop) tell() {
	l.srv.mu.Lock()
	l.srv.guarded(l.takeTold)
	l.srv.mu.Unlock()
	told := l.told
	l.told = nil
	for i, c := range told {
		told[i] = nil
		if c.gone || c.away {
			continue
		}
		if out := c.out; out != nil {
			c.out = nil
			if c.write(out) && c.spare == nil && cap(out) <= keepOut {
				c.spare = out[:0] // who is told something will be told more
			}
		}
		l.proceed(c)
	}
	if l.told == nil {
		l.told = told[:0]
	}
}

// takeTold takes what the clients of tell are to be told. The server's lock is held.
func (l *loop) takeTold() {
	for _, c := range l.told {
		c.told = false
		if c.gone || c.away {
			continue
		}
		out, killed, closed := c.sess.taken(c.spare)
		if out != nil {
			c.out, c.spare = out, nil
		}
		if killed || closed && !c.leaving.Load() {
			c.dead.Store(true)
		}
		if c.sess.closing {
			c.ending = true
		}
	}
}

// wait waits until there is something to do, and returns how many events there
// are. It returns false if the loop is to end.
func (l *loop) wait() (n int, ok bool) {
	if l.busy || len(l.ready) > 0 || len(l.told) > 0 {
		n = l.poll(0)
	}
	if n == 0 && len(l.ready) == 0 && len(l.told) == 0 {
		l.traffic.tell(l.srv)
		l.mu.Lock()
		if l.quit {
			l.mu.Unlock()
			return 0, false
		}
		sleep := len(l.posts) == 0
		l.sleeping = sleep
		l.mu.Unlock()
		if sleep {
			n = l.poll(-1)
		}
	}
	l.busy = n > 1
	return n, true
}

// collect notes who was posted.
func (l *loop) collect() {
	l.mu.Lock()
	l.sleeping = false
	posts := l.posts
	l.posts = nil
	for _, c := range posts {
		c.posted = false
	}
	l.mu.Unlock()
	if len(posts) > 0 && len(l.told) == 0 {
		l.since = l.srv.clock()
	}
	for _, c := range posts {
		if c.back.Load() {
			c.back.Store(false)
			c.away = false
			c.reply()
		}
		l.tells(c)
	}
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

// happened is called with what epoll has to tell of a connection.
func (l *loop) happened(e *unix.EpollEvent) {
	if int(e.Fd) == l.event {
		var b [8]byte
		unix.Read(l.event, b[:])
		return
	}
	c := l.conns[e.Fd]
	if c == nil {
		return
	}
	if e.Events&unix.EPOLLOUT != 0 && c.rest != nil {
		out, before := c.rest, l.traffic.output
		c.rest = nil
		c.write(out)
		c.sess.late.Add(l.traffic.output - before)
	}
	switch {
	case c.asked&unix.EPOLLIN != 0:
		if e.Events&^unix.EPOLLOUT != 0 && !c.queued {
			c.read()
		}
	case e.Events&(unix.EPOLLERR|unix.EPOLLHUP) != 0:
		c.dead.Store(true) // there is nobody who would read what is still to be said
	}
	l.proceed(c)
	// Of a large argument all is taken that is there, and what the client could not send
	// before there was room for it: who looks at this client next is to see what was sent
	// before he asked, as in Redis.
	for n := 0; n < largeReads && c.more && !c.queued && c.reader.Missing() > 0 && !c.gone && !c.away && c.asked&unix.EPOLLIN != 0; n++ {
		c.read()
		l.proceed(c)
	}
}

// proceed decides what becomes of a connection after something has happened to it.
func (l *loop) proceed(c *polled) {
	if c.gone || c.away {
		return
	}
	if c.ending {
		c.leave()
	}
	if c.dead.Load() {
		c.close()
		return
	}
	choked := c.sess.choked()
	stalled := c.sess.stalled.Load()
	if !c.ending && !c.queued && !choked && !stalled {
		if len(c.batch) == 0 {
			if err := c.parse(); err != nil {
				c.ending = true
				c.srv.running.Go(func() { c.srv.attempt(func() { c.fail(err) }) })
			}
		}
		if len(c.batch) > 0 {
			c.queued = true
			l.ready = append(l.ready, c)
		} else {
			l.release(c)
		}
	} else if stalled && len(c.batch) == 0 {
		l.release(c) // who waits has a copy of his command
	}
	if c.halved && !c.ending && !c.queued && c.rest == nil && !c.sess.halve() {
		c.close()
		return
	}
	leaving := c.leaving.Load() && !c.ending
	if leaving && c.departs() {
		c.sess.conclude()
		c.ending = true
		l.proceed(c)
		return
	}
	var events uint32
	if c.lingers || !c.ending && !c.halved && !choked && !(stalled && c.reader.Buffered() > maxUnread) && (!leaving || c.unread > 0) {
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

// leave writes what is left for a connection that is to end, as far as the client
// takes it, and says when it is over.
func (c *polled) leave() {
	for !c.dead.Load() {
		out, killed, closed := c.sess.take()
		if killed || closed && !c.staysOn() {
			c.dead.Store(true)
		}
		if out == nil {
			break
		}
		c.write(out)
	}
	if c.last == nil && !c.dead.Load() {
		c.last = time.AfterFunc(lastWrite, c.abort)
	}
}

// departs reports whether everything is run that there was to be run, or can be.
func (c *polled) departs() bool {
	if !c.measured {
		c.measure(uintptr(c.fd))
	}
	switch {
	case c.queued:
		return false
	case c.sess.stalled.Load():
		return c.sess.waitsForOthers()
	case c.sess.choked():
		return false
	}
	return c.unread <= 0
}

// staysOn reports whether a connection that could be closed has to wait for its client
// to take what was written.
func (c *polled) staysOn() bool {
	if !c.leaving.Load() {
		return false
	}
	if !c.lingers {
		if !unfinished(uintptr(c.fd)) {
			return false
		}
		c.lingers = true
		unix.Shutdown(c.fd, unix.SHUT_WR)
		if c.last != nil {
			c.last.Stop()
		}
		c.last = time.AfterFunc(lingerTime, c.abort)
	}
	return true
}

// discard reads what nobody wants any more.
func (c *polled) discard() {
	var b [4 << 10]byte
	n, err := unix.Read(c.fd, b[:])
	if n <= 0 && err != unix.EAGAIN && err != unix.EINTR {
		c.dead.Store(true)
	}
}

func (c *polled) finish() {
	c.leaving.Store(true)
	c.wake()
}

// unreadBytes returns how much can be read from a socket without waiting.
func unreadBytes(fd uintptr) int {
	n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
	if err != nil {
		return 0
	}
	return n
}

// unfinished reports whether closing a socket now would keep its client from what was
// written: there is input that nobody has read, or the client's side has not confirmed
// everything.
func unfinished(fd uintptr) bool {
	unsent, err := unix.IoctlGetInt(int(fd), unix.TIOCOUTQ)
	return unreadBytes(fd) > 0 || err == nil && unsent > 0
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
	l := c.loop
	c.more = false
	if c.lingers {
		c.discard()
		return
	}
	if last := len(l.inputs) - 1; last >= 0 && c.reader.Adopt(l.inputs[last]) {
		l.inputs = l.inputs[:last]
	}
	if c.lists == nil {
		if last := len(l.lists) - 1; last >= 0 {
			c.lists, l.lists = l.lists[last], l.lists[:last]
		}
	}
	space := c.space()
	if c.leaving.Load() {
		if !c.measured {
			c.measure(uintptr(c.fd))
		}
		if space = space[:min(len(space), c.unread)]; len(space) == 0 {
			return
		}
	}
	r, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(c.fd), uintptr(unsafe.Pointer(&space[0])), uintptr(len(space)))
	n := int(r)
	if e != 0 {
		if e != unix.EAGAIN && e != unix.EINTR {
			c.dead.Store(true)
		}
		return
	}
	l.traffic.reads++
	l.traffic.input += int64(n)
	c.unread -= n
	c.more = n > 0
	switch {
	case n == 0:
		if c.halved = c.rest != nil || c.sess.stalled.Load(); !c.halved { // most have nothing left to be told
			c.dead.Store(true)
		}
	case !c.filled(n):
		c.dead.Store(true)
	}
}

// release takes back what an idle connection does not need.
func (l *loop) release(c *polled) {
	if buf, _ := c.input.release(); buf != nil && len(l.inputs) < keepInputs {
		l.inputs = append(l.inputs, buf)
	}
	if c.lists != nil {
		if len(l.lists) < keepInputs {
			l.lists = append(l.lists, c.lists)
		}
		c.lists = nil
	}
}

// output returns a buffer for replies.
func (l *loop) output() []byte {
	last := len(l.outputs) - 1
	if last < 0 {
		return make([]byte, 0, 1<<10)
	}
	b := l.outputs[last]
	l.outputs[last] = nil
	l.outputs = l.outputs[:last]
	l.room -= cap(b)
	return b
}

func (l *loop) keepOutput(b []byte) {
	if cap(b) > 0 && l.room+cap(b) <= keepOutputs {
		l.outputs = append(l.outputs, b[:0])
		l.room += cap(b)
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

// reply writes what the last turn has left to write.
func (c *polled) reply() {
	if out := c.out; out != nil {
		c.out = nil
		if c.write(out) {
			c.loop.keepOutput(out)
		}
	}
}

// longWrite is how many bytes may take so long to be written that the scheduler is
// told.
const longWrite = 32 << 10

// write writes what the socket takes, and what has come meanwhile. It reports
// whether out itself is written.
func (c *polled) write(out []byte) (written bool) {
	for {
		n, err := c.try(out)
		if err != nil {
			c.dead.Store(true)
			return written
		}
		if n < len(out) {
			c.rest = out[n:]
			c.sess.left(len(c.rest))
			return written
		}
		written = true
		if out = c.sess.written(); out == nil {
			break
		}
	}
	if c.sess.unsent.Load() != 0 {
		c.sess.unsent.Store(0)
	}
	return written
}

// try writes what the socket takes at once.
func (c *polled) try(out []byte) (n int, err error) {
	t := &c.loop.traffic
	if len(out) > longWrite {
		n, err = writeNow(uintptr(c.fd), out)
	} else {
		r, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(c.fd), uintptr(unsafe.Pointer(unsafe.SliceData(out))), uintptr(len(out)))
		switch e {
		case 0:
			n = int(r)
		case unix.EAGAIN, unix.EINTR: // in which case epoll says at once that it can be written
		default:
			return 0, e
		}
	}
	t.writes++
	t.output += int64(n)
	return n, err
}

// close closes the connection. The session may have to wait for a script.
func (c *polled) close() {
	c.gone = true
	c.dead.Store(true)
	if c.last != nil {
		c.last.Stop()
	}
	if c.asked != 0 {
		c.ask(0)
	}
	if l := c.loop; c.fd < len(l.conns) {
		l.conns[c.fd] = nil
	}
	behind := c.rest != nil
	c.batch, c.lists, c.rest, c.out, c.spare = nil, nil, nil, nil, nil
	c.reader = protocol.Reader{} // which may hold half of a large command
	go c.closed(behind)
}

// closed is close without what belongs to the loop. behind says that the client has not
// taken everything yet.
func (c *polled) closed(behind bool) {
	c.srv.attempt(func() {
		if c.sess == nil {
			return // the lock broke before it had one
		}
		if out := c.sess.close(); out != nil && !behind {
			writeNow(uintptr(c.fd), out) // what does not fit is lost with the client
		}
	})
	unix.Close(c.fd)
	c.srv.leave(c)
	if c.sess != nil {
		c.srv.attempt(c.sess.released)
	}
	c.srv.running.Done()
}

func (c *polled) bury() {
	if c.gone {
		return // and closed will do what is left
	}
	if out := slices.Concat(c.rest, c.out, c.sess.lastReply(true)); len(out) > 0 {
		c.lastWrite(out)
	}
	c.closed(true)
}

// lastWrite writes what the client takes of out, and waits for it to be taken: to
// close what has unread input would throw it away.
func (c *polled) lastWrite(out []byte) {
	for end := time.Now().Add(lastWords); ; {
		n, err := writeNow(uintptr(c.fd), out)
		if err != nil {
			return
		}
		if out = out[n:]; len(out) == 0 {
			break
		}
		if !c.ready(unix.POLLOUT, end) {
			return
		}
	}
	unix.Shutdown(c.fd, unix.SHUT_WR)
	for end, b := time.Now().Add(lastWords), make([]byte, 4<<10); c.ready(unix.POLLIN, end); {
		if n, err := unix.Read(c.fd, b); n == 0 || err != nil && err != unix.EAGAIN && err != unix.EINTR {
			return
		}
	}
}

// ready waits until something can be done with the socket, and returns false if that
// takes too long.
func (c *polled) ready(what int16, end time.Time) bool {
	for {
		left := time.Until(end)
		if left <= 0 {
			return false
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: what}}, int(left.Milliseconds())+1)
		if n > 0 {
			return true
		}
		if err != nil && err != unix.EINTR {
			return false
		}
	}
}
