package transport

import (
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/zsetd/zsetd/server/internal/engine"
	"golang.org/x/sys/unix"
)

// The epoll transport: one or a few goroutines (loops), each of which serves many
// plain sockets. A loop reads some sockets with input, runs their commands in one
// lock hold, and writes the replies after it has released the lock. So a request
// costs a read, a write, and a share of an epoll_wait. None of these system calls
// notifies the Go scheduler, as they do not wait: with 50 clients PING takes 4.5 µs
// that way instead of 5.1, of which the kernel takes six sevenths.
//
// Only the loop of a connection reads, writes or closes it. Output of its commands
// for other sessions (a message, an element for a waiter) is written by the loop
// once no client has commands to run, in one write per receiver however many
// messages there are: with writes right after each lock hold PUBLISH in pipelines
// of 16 takes 3.4 times as much for 1000 subscribers. Other goroutines that have
// output or a shutdown for a session post its connection to the loop, and wake the
// loop by its eventfd if it sleeps. So nothing polls, and a connection needs no
// goroutine.
//
// An idle connection needs no buffers either: the loop lends it an input buffer, an
// output buffer and the lists of its commands, and takes them back when all input
// is answered. That leaves 1.5 KB per idle client of 10 000; redis-server has 9.5.
//
// For a client with a long pipeline, or with more input than its limit, the loop stops
// asking for input events. Readiness is level-triggered, except for the input of TCP
// clients, which is edge-triggered: otherwise each epoll_wait asks the sockets again that
// the previous one has reported. A read that does not fill its buffer has emptied the
// socket; after any other one epoll is asked again (see edges).
//
// As in Redis a reply waits for commands of other clients that were ready at the same
// time, but only for a millisecond, or for the one command that takes longer.
//
// The socket is a duplicate of the accepted one, which is closed: the runtime's own
// poller does not see the duplicate. If no descriptor is left for that, a goroutine
// serves the client.
//
// A script that lends the lock occupies the goroutine that runs it. So that the
// other clients of its loop receive -BUSY, another goroutine becomes the loop
// (Replace); the old one posts its client when the script has ended, and exits.
//
// How many loops there are follows the load: see loops_linux.go.

const (
	// maxEvents is how many events a loop fetches from epoll at once.
	maxEvents = 256
	// readBatch is how many sockets are read before their commands run. The state of
	// so many, here and in the kernel, stays in a processor's cache until the replies
	// are written, and the first clients continue while the others are served.
	readBatch = 8
	// keepInputs is how many input buffers, and lists of commands, a loop keeps.
	keepInputs = 64
	// largeReads is how many additional reads a loop makes for a large argument
	// before it serves other clients. They suffice for all that a socket holds,
	// even if each read is several times as large as the previous one.
	largeReads = 4
	// keepOutputs is how many bytes of written output buffers a loop keeps.
	keepOutputs = 1 << 20
	// flushBytes is the total size of replies from which a loop writes them, before
	// the remaining clients have had their turns: the replies are still in the
	// cache, and the buffers can be reused.
	flushBytes = 128 << 10
	// maxMessageDelay is how long messages wait for further ones while there are commands
	// to run.
	maxMessageDelay = 4 * time.Millisecond
)

type loop struct {
	t     *Transport
	epoll int
	event int    // the eventfd that wakes the loop
	alarm *alarm // the server's timer; nil in all loops but the first

	conns     []*polled // by descriptor
	ready     []*polled // have commands to run
	turn      []*polled // of those, the connections in the current round of turns
	at        int       // how many of turn have had theirs
	done      []*polled // have run commands; their replies are to be written
	notified  []*polled // have output or a new state from other sessions: see flushNotified
	since     time.Time // a lower bound of when the first of these was added
	running   *polled   // the connection whose commands run
	unwritten int       // bytes of replies of the current lock hold
	busy      bool      // the last poll returned several events
	events    [maxEvents]unix.EpollEvent
	unhandled []unix.EpollEvent // events of the last poll that are not handled yet

	inputs  [][]byte // free input buffers
	outputs [][]byte // free output buffers
	room    int      // bytes in outputs
	lists   []*lists
	traffic traffic
	giving  []order // clients to give to other loops
	tries   int     // how many more rounds giving lasts
	rounds  int     // counts waits
	meter   meter

	mu       sync.Mutex
	posts    []*polled
	orders   []order // the next ones of giving
	sleeping bool    // not woken yet
	quit     bool
}

// polled is a connection of a loop. Fields without a note belong to its holder.
type polled struct {
	input
	t          *Transport
	loop       atomic.Pointer[loop] // changed by the loop itself, with its lock: see give
	fd         int
	interest   uint32 // the events requested from epoll; 0: none, and not registered
	more       bool   // the last read returned data
	pending    bool   // the socket may have input that epoll does not report again; see edges
	hungUp     bool   // epoll has reported the end of the input
	queued     bool   // in ready
	inNotified bool   // in loop.notified
	phase      phase
	out        []byte      // output to write
	rest       []byte      // the part that the socket has not accepted
	spare      []byte      // buffer for output from other sessions
	last       *time.Timer // of lastWrite, then of lingerTime
	taken      int64       // the client's progress when last was set

	lastDue atomic.Bool  // last has fired
	posted  bool         // in loop.posts, guarded by loop.mu
	holder  atomic.Int32 // loopHolds, scriptHolds or scriptEnded
}

// serveSocket serves a plain socket with a loop. It is called with the lock
// held, and returns false for any other connection.
func (t *Transport) serveSocket(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	p := engine.Peer{Addr: nc.RemoteAddr().String(), LocalAddr: nc.LocalAddr().String(), FD: -1}
	switch nc := nc.(type) {
	case *net.TCPConn:
		t.keepAlive(nc)
	case *net.UnixConn:
		p.LocalAddr += ":0" // as in Redis
		p.Addr, p.Unix = p.LocalAddr, true
	default:
		return false
	}
	l, err := t.nextLoop()
	if err != nil {
		t.engine.Log.Warn("epoll is unavailable; serving the client with a goroutine", "error", err)
		return false
	}
	// A descriptor that the runtime's poller does not watch as well.
	raw, err := sc.SyscallConn()
	if err == nil {
		e := raw.Control(func(fd uintptr) { p.FD, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
		err = errors.Join(e, err)
	}
	if err != nil {
		return false
	}
	nc.Close()
	c := &polled{t: t, fd: p.FD, posted: true}
	c.loop.Store(l)
	p.Wake, p.Reader, p.Conn = c.wake, &c.reader, c
	t.conns[c] = struct{}{}
	t.running.Add(1)
	t.engine.NewSessionAt(&c.sess, p)
	l.mu.Lock()
	c.posted = false // wake can report the session from here on
	l.mu.Unlock()
	c.wake()
	return true
}

func newLoop(t *Transport) (*loop, error) {
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
	return &loop{t: t, epoll: epoll, event: event}, nil
}

// rouse wakes the loop. It is called with the loop's lock held.
func (l *loop) rouse() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	unix.Write(l.event, one[:])
}

// wake posts the connection to its loop, which then checks the session. Any
// goroutine may call it.
func (c *polled) wake() {
	l := c.loop.Load()
	l.mu.Lock()
	for l != c.loop.Load() { // l has given it away
		l.mu.Unlock()
		l = c.loop.Load()
		l.mu.Lock()
	}
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

// Ended reports whether the client has closed its side of the connection.
func (c *polled) Ended() bool { return c.state.load() == dead || peerEnded(uintptr(c.fd)) }

// Untaken returns how many written bytes the client has not received yet.
func (c *polled) Untaken() int64 { return notTaken(c.fd) }

func (c *polled) abort() {
	c.state.die()
	c.wake()
}

func (l *loop) run() {
	defer l.t.recovers()
	l.flush() // the work of the turn in which this goroutine became the loop
	for n, ok := 0, false; ; {
		for i := 1; len(l.unhandled) > 0; i++ {
			if i%readBatch == 1 {
				l.prefetch(l.unhandled[:min(readBatch, len(l.unhandled))])
			}
			e := &l.unhandled[0]
			l.unhandled = l.unhandled[1:]
			l.handleEvent(e)
			if i%readBatch == 0 && !l.turns() {
				return
			}
		}
		l.collect()
		if !l.turns() {
			return
		}
		if len(l.notified) > 0 && (len(l.ready) == 0 || l.waited() > maxMessageDelay) {
			l.flushNotified()
		}
		if len(l.giving) > 0 {
			l.giveAway()
		}
		if l.t.loops.unsettled {
			l.giveServed(n)
		}
		if n, ok = l.wait(); !ok {
			break
		}
		l.unhandled = l.events[:n]
	}
}

// prefetch prefetches the state of the connections that have events.
func (l *loop) prefetch(events []unix.EpollEvent) {
	for i := range events {
		prefetch(l.conn(&events[i]))
	}
	for i := range events {
		if c := l.conn(&events[i]); c != nil {
			prefetch(c.sess)
		}
	}
}

// conn returns the connection that has an event, or nil.
func (l *loop) conn(e *unix.EpollEvent) *polled {
	if int(e.Fd) < len(l.conns) {
		return l.conns[e.Fd]
	}
	return nil
}

// turns gives a turn to each client with commands, and writes the replies. A client
// with further commands becomes ready again. It returns false if another goroutine
// has become the loop meanwhile.
func (l *loop) turns() bool {
	if l.at == len(l.turn) {
		l.turn, l.ready, l.at = l.ready, l.turn[:0], 0
	}
	if len(l.turn) == 0 {
		return true
	}
	l.traffic.flushTo(l.t.engine)
	l.meter.publish()
	for l.at < len(l.turn) {
		l.unwritten = 0
		mine, unwritten := l.t.engine.RunTurns(l)
		if !mine {
			return false
		}
		l.flush()
		if unwritten {
			l.t.engine.WriteDirect()
		}
	}
	clear(l.turn)
	l.turn, l.at = l.turn[:0], 0
	return true
}

// Next implements engine.Loop.
func (l *loop) Next() (s *engine.Session, batch [][][]byte, spare []byte) {
	for l.at < len(l.turn) {
		c := l.turn[l.at]
		l.at++
		c.queued = false
		if c.phase != closed {
			l.running = c
			return c.sess, c.batch, l.output()
		}
	}
	return nil, nil, nil
}

// Ran implements engine.Loop.
func (l *loop) Ran(done int, out, unused []byte, ending bool) (more bool) {
	c := l.running
	l.running = nil
	l.meter.ran += int64(done)
	l.keepOutput(unused)
	c.worked(done, out, ending)
	l.done = append(l.done, c)
	l.unwritten += len(out)
	return l.unwritten <= flushBytes
}

// Replace implements engine.Loop.
func (l *loop) Replace() {
	if c := l.running; c != nil {
		l.running = nil
		c.holder.Store(scriptHolds)
		c.setInterest(0)
	}
	l.t.loops.gone.Go(l.run)
}

// Detached implements engine.Loop. The connection returns to the loop.
func (l *loop) Detached(s *engine.Session, done int, out []byte, ending bool) {
	c := s.Peer.Conn.(*polled)
	c.worked(done, out, ending)
	c.holder.Store(scriptEnded)
	c.wake()
}

// Woken implements engine.Loop.
func (l *loop) Woken(s *engine.Session) bool {
	c, ok := s.Peer.Conn.(*polled)
	if !ok || c.loop.Load() != l {
		return false
	}
	if len(l.notified) == 0 {
		l.since = l.t.engine.Turn.At
	}
	l.markNotified(c)
	return true
}

// worked records the result of a turn.
func (c *polled) worked(done int, out []byte, ending bool) {
	c.batch = c.batch[done:]
	c.out = out
	if ending {
		c.advance(draining)
	}
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

// wait waits until there is work, and returns the number of events. It returns
// false if the loop is to end.
func (l *loop) wait() (n int, ok bool) {
	if l.busy || len(l.ready) > 0 || len(l.notified) > 0 || l.t.engine.Gathering() {
		n = l.poll(0)
	}
	if n == 0 && len(l.ready) == 0 && len(l.notified) == 0 {
		if l.t.engine.Gathering() && l.t.engine.Gathered() {
			l.t.engine.WriteDirect()
			return 0, true
		}
		l.traffic.flushTo(l.t.engine)
		l.mu.Lock()
		if l.quit {
			l.mu.Unlock()
			return 0, false
		}
		sleep := len(l.posts) == 0 && len(l.orders) == 0
		l.sleeping = sleep
		l.mu.Unlock()
		if sleep {
			l.meter.sleeps()
			n = l.poll(-1)
			l.meter.wakes()
		}
	}
	if l.rounds++; l.rounds%watchedRounds == 0 && l.meter.on {
		l.t.watchLoad()
	}
	l.busy = n > 1
	return n, true
}

// collect takes the connections that other goroutines have posted.
func (l *loop) collect() {
	l.mu.Lock()
	l.sleeping = false
	posts := l.posts
	l.posts = nil
	for _, c := range posts {
		c.posted = false
	}
	if len(l.orders) > 0 {
		l.giving, l.orders, l.tries = l.orders, nil, giveTries
	}
	l.mu.Unlock()
	if len(posts) > 0 && len(l.notified) == 0 {
		l.since = l.t.engine.Clock()
	}
	for _, c := range posts {
		if c.holder.CompareAndSwap(scriptEnded, loopHolds) {
			c.reply()
		}
		l.markNotified(c)
	}
}

// poll returns the number of events. With timeout 0 it does not notify the Go
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

// handleEvent handles an event of a connection.
func (l *loop) handleEvent(e *unix.EpollEvent) {
	if int(e.Fd) == l.event {
		var b [8]byte
		unix.Read(l.event, b[:])
		return
	}
	if l.alarm != nil && int(e.Fd) == l.alarm.fd {
		l.fire()
		return
	}
	c := l.conn(e)
	if c == nil {
		return
	}
	if e.Events&unix.EPOLLOUT != 0 && c.rest != nil {
		out, before := c.rest, l.traffic.output
		c.rest = nil
		c.write(out)
		c.sess.Queue.RecordTaken(l.traffic.output - before)
	}
	switch {
	case c.interest&unix.EPOLLIN != 0:
		c.pending = c.interest == edges
		c.hungUp = c.hungUp || e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
		if e.Events&^unix.EPOLLOUT != 0 && !c.queued {
			c.read()
		}
	case e.Events&(unix.EPOLLERR|unix.EPOLLHUP) != 0:
		c.state.die() // no client is left to read the remaining output
	}
	l.proceed(c)
	// Of a large argument the loop reads all bytes that have arrived, and those
	// that the client could not send before there was room for them. As in Redis, a
	// client whose commands run later then observes all bytes that were sent before
	// its command.
	for n := 0; n < largeReads && c.more && !c.queued && c.reader.Missing() > 0 && c.inLoop() && c.interest&unix.EPOLLIN != 0; n++ {
		c.read()
		l.proceed(c)
	}
}

// proceed decides the next step of a connection after an event: close it, run its
// commands, or wait for events.
func (l *loop) proceed(c *polled) {
	if !c.inLoop() {
		return
	}
	if c.phase >= draining {
		c.leave()
	}
	if c.state.load() == dead {
		c.close()
		return
	}
	choked := c.sess.Queue.ExceedsLimit()
	stalled := c.sess.Stall.Stalled.Load()
	if c.phase < draining && !c.queued && !choked && !stalled {
		if len(c.batch) == 0 {
			if err := c.parse(); err != nil {
				c.advance(draining)
				c.t.running.Go(func() { c.sess.Engine.Attempt(func() { c.sess.FailInput(err) }) })
			}
		}
		if len(c.batch) > 0 || c.held.buffered() > 0 {
			c.queued = true
			l.ready = append(l.ready, c)
		} else {
			l.release(c)
		}
	} else if stalled && len(c.batch) == 0 {
		l.release(c) // a waiter holds a copy of its command
	}
	if c.phase == halfClosed && !c.queued && c.rest == nil && !c.sess.FinishHalfClosed() {
		c.close()
		return
	}
	last := c.state.load() == leaving && c.phase < draining
	if last && c.hasRunAll() {
		c.sess.Conclude()
		c.advance(draining)
		l.proceed(c)
		return
	}
	var events uint32
	if c.phase == lingering || c.phase == receiving && (!choked && !stalled || c.reads()) && (!last || c.unread > 0) {
		events = unix.EPOLLIN
	}
	if c.rest != nil {
		events |= unix.EPOLLOUT
	}
	if events == 0 {
		events = unix.EPOLLET // only the end of the connection, once
	}
	if events == unix.EPOLLIN && c.phase == receiving && !last && !c.sess.Peer.Unix {
		events = edges
	}
	if events != c.interest || c.pending && !c.queued {
		c.setInterest(events)
	}
}

// leave writes the remaining output of a connection that is to end, as far as the
// client takes it, and marks the connection dead when that is done.
func (c *polled) leave() {
	for c.state.load() != dead {
		out, killed, closed := c.sess.Take()
		if killed || closed && !c.mustLinger() {
			c.state.die()
		}
		if out == nil {
			break
		}
		c.write(out)
	}
	switch {
	case c.state.load() == dead:
	case c.last == nil:
		c.taken = c.sess.Progress()
		c.last = time.AfterFunc(lastWrite, func() {
			c.lastDue.Store(true)
			c.wake()
		})
	case c.lastDue.Swap(false):
		before := c.taken
		if c.taken = c.sess.Progress(); c.taken == before {
			c.state.die()
		}
		c.last.Reset(lastWrite)
	}
}

// hasRunAll reports whether all commands that can run have run.
func (c *polled) hasRunAll() bool {
	if !c.measured {
		c.measure(uintptr(c.fd))
	}
	switch {
	case c.queued:
		return false
	case c.sess.Stall.Stalled.Load():
		return c.sess.WaitsForOthers()
	case c.sess.Queue.ExceedsLimit():
		return false
	}
	return c.unread <= 0
}

// mustLinger reports whether a connection that could be closed must wait for its
// client to take the written output.
func (c *polled) mustLinger() bool {
	if c.state.load() != leaving {
		return false
	}
	if c.phase < lingering {
		if !unfinished(uintptr(c.fd)) {
			return false
		}
		c.advance(lingering)
		unix.Shutdown(c.fd, unix.SHUT_WR)
		if c.last != nil {
			c.last.Stop()
		}
		c.last = time.AfterFunc(lingerTime, c.abort)
	}
	return true
}

// discard reads and drops input of a client that is being disconnected.
func (c *polled) discard() {
	var b [4 << 10]byte
	n, err := unix.Read(c.fd, b[:])
	if n <= 0 && err != unix.EAGAIN && err != unix.EINTR {
		c.state.die()
	}
}

func (c *polled) finish() {
	c.state.leave()
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

// unfinished reports whether closing a socket now would keep written output from
// its client: unread input is left, or the peer has not acknowledged everything.
func unfinished(fd uintptr) bool {
	unsent, err := unix.IoctlGetInt(int(fd), unix.TIOCOUTQ)
	return unreadBytes(fd) > 0 || err == nil && unsent > 0
}

// read reads once.
func (c *polled) read() {
	l := c.loop.Load()
	c.more = false
	if c.phase == lingering {
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
	if c.state.load() == leaving {
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
			c.state.die()
		}
		return
	}
	c.pending = c.pending && (n == len(space) || c.hungUp)
	l.traffic.reads++
	l.traffic.input += int64(n)
	c.unread -= n
	c.more = n > 0
	switch {
	case n == 0:
		if c.rest != nil || c.waits() { // few clients have output left
			c.advance(halfClosed)
		} else {
			c.state.die()
		}
	case !c.filled(n):
		c.state.die()
	}
}

// release takes back the buffers that an idle connection does not need.
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

// reply writes the output of the last turn.
func (c *polled) reply() {
	if out := c.out; out != nil {
		c.out = nil
		if c.write(out) {
			c.loop.Load().keepOutput(out)
		}
	}
}

// longWrite is the size from which a write takes long enough to notify the Go
// scheduler.
const longWrite = 32 << 10

// write writes as much as the socket accepts, and output that has arrived
// meanwhile. It reports whether out itself is written.
func (c *polled) write(out []byte) (written bool) {
	for {
		n, err := c.try(out)
		if err != nil {
			c.state.die()
			return written
		}
		if n < len(out) {
			c.rest = out[n:]
			c.sess.RecordUnsent(len(c.rest))
			return written
		}
		if written {
			c.sess.Recycle(out)
		}
		written = true
		if out = c.sess.Written(); out == nil {
			break
		}
	}
	if c.sess.Queue.Unsent.Load() != 0 {
		c.sess.Queue.Unsent.Store(0)
	}
	return written
}

// try writes as much as the socket accepts without waiting.
func (c *polled) try(out []byte) (n int, err error) {
	t := &c.loop.Load().traffic
	if len(out) > longWrite {
		n, err = writeNow(uintptr(c.fd), out)
	} else {
		r, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(c.fd), uintptr(unsafe.Pointer(unsafe.SliceData(out))), uintptr(len(out)))
		switch e {
		case 0:
			n = int(r)
		case unix.EAGAIN, unix.EINTR: // epoll then reports at once that the socket is writable
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
	c.advance(closed)
	c.state.die()
	if c.last != nil {
		c.last.Stop()
	}
	if c.interest != 0 {
		c.setInterest(0)
	}
	c.loop.Load().forget(c)
	behind := c.rest != nil
	c.rest, c.out, c.spare = nil, nil, nil
	c.forget()
	go c.closed(behind)
}

// closed is the part of close outside the loop. behind reports that the client has
// not taken everything yet.
func (c *polled) closed(behind bool) {
	c.t.engine.Attempt(func() {
		if c.sess == nil {
			return // the lock broke before the session existed
		}
		if out := c.sess.Close(); out != nil && !behind {
			writeNow(uintptr(c.fd), out) // the part that does not fit is lost
		}
	})
	unix.Close(c.fd)
	c.t.leave(c)
	if c.sess != nil {
		c.sess.Engine.Attempt(c.sess.Released)
	}
	c.t.running.Done()
}

func (c *polled) closeAfterPanic() {
	if c.phase == closed {
		return // closed does the rest
	}
	if out := slices.Concat(c.rest, c.out, c.sess.LastReply(true)); len(out) > 0 {
		c.lastWrite(out)
	}
	c.closed(true)
}

// lastWrite writes out as far as the client takes it, and waits until it is taken:
// closing a socket with unread input discards its output.
func (c *polled) lastWrite(out []byte) {
	for end := time.Now().Add(lastReplyTime); ; {
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
	for end, b := time.Now().Add(lastReplyTime), make([]byte, 4<<10); c.ready(unix.POLLIN, end); {
		if n, err := unix.Read(c.fd, b); n == 0 || err != nil && err != unix.EAGAIN && err != unix.EINTR {
			return
		}
	}
}

// ready waits until the socket is ready for an operation. It returns false at the
// time limit.
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
