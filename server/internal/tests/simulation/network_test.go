package simulation

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// window is how many bytes of a direction may be on their way or unread, as the
	// buffers of two sockets.
	window = 256 << 10
	// shortDelay and longDelay bound the time of a segment on its way.
	shortDelay, longDelay = 20 * time.Microsecond, 3 * time.Millisecond
	// longSegment is the most bytes of a segment, slowSegment of one on a slow link.
	longSegment, slowSegment = 16 << 10, 100
)

// network is a network in memory between hosts, which have names. All methods may be
// called concurrently.
type network struct {
	mu        sync.Mutex
	seed      uint64
	opened    map[[2]string]uint64 // number of connections from one host to another
	listeners map[string]*listener
	conns     []*conn // in the order in which they are woken
	stalled   map[way]bool
	slow      map[way]bool
	healed    chan struct{} // closed when a stalled link is whole again, and replaced

	start   time.Time
	traffic []event
}

// way is a direction of the link between two hosts.
type way struct{ from, to string }

// back returns the other direction.
func (w way) back() way { return way{w.to, w.from} }

func newNetwork(seed uint64) *network {
	return &network{
		seed:      seed,
		opened:    map[[2]string]uint64{},
		listeners: map[string]*listener{},
		stalled:   map[way]bool{},
		slow:      map[way]bool{},
		healed:    make(chan struct{}),
		start:     time.Now(),
	}
}

// source returns the random source of the next connection from one host to another. Each
// has its own, so that the order of events at the same instant on two connections has no
// effect on either. The lock is held.
func (n *network) source(from, to string) *rand.Rand {
	n.opened[[2]string{from, to}]++
	h := fnv.New64a()
	fmt.Fprint(h, n.seed, from, " ", to, " ", n.opened[[2]string{from, to}])
	return rand.New(rand.NewPCG(n.seed, h.Sum64()))
}

// delay returns the time of a segment on its way: in general short, sometimes long.
func delay(random *rand.Rand) time.Duration {
	d := longDelay
	if random.IntN(10) > 0 {
		d = 10 * shortDelay
	}
	return shortDelay + time.Duration(random.Int64N(int64(d)))
}

// event is what was sent at an instant.
type event struct {
	at       time.Duration // since the start
	from, to string
	size     int // bytes; 0 is the end of a connection, -1 its beginning
}

// record adds an event to the traffic. The lock is held.
func (n *network) record(from, to string, size int) {
	e := event{time.Since(n.start), from, to, size}
	for i := len(n.traffic) - 1; size > 0 && i >= 0 && n.traffic[i].at == e.at; i-- {
		if same := &n.traffic[i]; same.from == from && same.to == to && same.size > 0 {
			same.size += size
			return
		}
	}
	n.traffic = append(n.traffic, e)
}

// stall keeps all that two hosts send each other, and connections that they open, until
// heal is called.
func (n *network) stall(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stalled[way{a, b}], n.stalled[way{b, a}] = true, true
}

// stallWay keeps all that one host sends another one, until heal is called. Replies of the
// other one arrive.
func (n *network) stallWay(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stalled[way{from, to}] = true
}

// slowWay makes what one host sends another one arrive in small segments, one after the
// other, until heal is called.
func (n *network) slowWay(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slow[way{from, to}] = true
}

// heal makes a stalled or slow link whole.
func (n *network) heal(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range []way{{a, b}, {b, a}} {
		delete(n.stalled, w)
		delete(n.slow, w)
	}
	close(n.healed)
	n.healed = make(chan struct{})
	n.wake()
}

// wake makes all connections look again. The lock is held.
func (n *network) wake() {
	for _, c := range n.conns {
		c.changed.Broadcast()
	}
}

// reset breaks all connections between two hosts at once.
func (n *network) reset(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		if c.way() == (way{a, b}) || c.way() == (way{b, a}) {
			c.broken = true
		}
	}
	n.wake()
}

// remove takes a host away: it listens no more, and its connections end on its side. The
// other sides notice that if tell is set, else when they send something.
func (n *network) remove(host string, tell bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.listeners[host]; l != nil {
		l.end()
	}
	for _, c := range n.conns {
		switch {
		case c.local == host:
			c.closed = true
		case c.remote == host:
			c.gone = true
			c.broken = c.broken || tell
		}
		c.changed.Broadcast()
	}
	n.conns = slices.DeleteFunc(n.conns, func(c *conn) bool { return c.closed })
}

// listen returns the listener of a host.
func (n *network) listen(host string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &listener{n: n, host: host, arrived: make(chan net.Conn, 128), ended: make(chan struct{})}
	n.listeners[host] = l
	return l
}

// dial connects two hosts.
func (n *network) dial(ctx context.Context, from, to string) (net.Conn, error) {
	n.mu.Lock()
	random := n.source(from, to)
	n.mu.Unlock()
	select {
	case <-time.After(delay(random)):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		n.mu.Lock()
		healed := n.healed
		if !n.stalled[way{from, to}] && !n.stalled[way{to, from}] {
			break
		}
		n.mu.Unlock()
		select {
		case <-healed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer n.mu.Unlock()
	l := n.listeners[to]
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	here, there := newConn(n, from, to, random), newConn(n, to, from, rand.New(rand.NewPCG(random.Uint64(), 0)))
	here.peer, there.peer = there, here
	select {
	case l.arrived <- there:
	default:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	n.conns = append(n.conns, here, there)
	n.record(from, to, -1)
	return here, nil
}

// listener is a net.Listener.
type listener struct {
	n       *network
	host    string
	arrived chan net.Conn
	ended   chan struct{}
	over    bool
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.arrived:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// end makes the listener refuse connections. The network's lock is held.
func (l *listener) end() {
	if !l.over {
		l.over = true
		close(l.ended)
		if l.n.listeners[l.host] == l {
			delete(l.n.listeners, l.host)
		}
	}
}

func (l *listener) Close() error {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	l.end()
	return nil
}

func (l *listener) Addr() net.Addr { return address(l.host) }

// address is the address of a host.
type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) + ":6379" }

// segment is bytes on their way, of one instant.
type segment struct {
	sent, at time.Time
	bytes    []byte
	end      bool // the sender has closed the connection
}

// conn is one end of a connection. The network's lock guards its fields.
type conn struct {
	n             *network
	local, remote string
	peer          *conn
	random        *rand.Rand // of what this end sends
	changed       *sync.Cond

	arriving []segment
	size     int       // bytes of arriving
	last     time.Time // arrival of the last segment

	closed bool // by this end
	broken bool // this end has learnt that there is no connection
	gone   bool // the other end has gone without a word

	readDeadline, writeDeadline time.Time
}

func newConn(n *network, local, remote string, random *rand.Rand) *conn {
	return &conn{n: n, local: local, remote: remote, random: random, changed: sync.NewCond(&n.mu)}
}

// fail returns the error of an operation on a connection that cannot go on.
func (c *conn) fail(deadline time.Time) error {
	switch {
	case c.closed:
		return net.ErrClosed
	case c.broken:
		return syscall.ECONNRESET
	case !deadline.IsZero() && !time.Now().Before(deadline):
		return os.ErrDeadlineExceeded
	}
	return nil
}

func (c *conn) Read(b []byte) (int, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	for ; ; c.changed.Wait() {
		if err := c.fail(c.readDeadline); err != nil {
			return 0, err
		}
		if len(c.arriving) == 0 || c.arriving[0].at.After(time.Now()) || c.n.stalled[c.way().back()] {
			continue
		}
		head := &c.arriving[0]
		if head.end {
			return 0, io.EOF
		}
		k := copy(b, head.bytes)
		head.bytes = head.bytes[k:]
		c.size -= k
		if len(head.bytes) == 0 {
			c.arriving = c.arriving[1:]
		}
		c.peer.changed.Broadcast()
		return k, nil
	}
}

func (c *conn) Write(b []byte) (sent int, err error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	for ; ; c.changed.Wait() {
		if err := c.fail(c.writeDeadline); err != nil {
			return sent, err
		}
		if len(b) == 0 {
			return sent, nil
		}
		if c.gone || c.peer.closed { // the answer to this segment ends the connection
			time.AfterFunc(delay(c.random), c.learn)
			return sent + len(b), nil
		}
		k := min(len(b), window-c.peer.size)
		if k <= 0 {
			continue
		}
		c.n.record(c.local, c.remote, k)
		c.peer.receive(b[:k])
		sent, b = sent+k, b[k:]
		if len(b) == 0 {
			return sent, nil
		}
	}
}

// learn ends a connection whose other end has gone, unless that cannot be learnt.
func (c *conn) learn() {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if !c.n.stalled[c.way()] && !c.n.stalled[c.way().back()] {
		c.broken = true
		c.changed.Broadcast()
	}
}

// receive puts bytes on their way to this end. Those of an instant have the same segments in
// however many parts they are written, since these follow from the order of keys. The lock is
// held.
func (c *conn) receive(b []byte) {
	most := longSegment
	if c.n.slow[c.peer.way()] {
		most = slowSegment
	}
	c.size += len(b)
	for len(b) > 0 {
		if len(c.arriving) == 0 || !c.arriving[len(c.arriving)-1].sent.Equal(time.Now()) || len(c.arriving[len(c.arriving)-1].bytes) >= most {
			c.arrive(segment{})
		}
		s := &c.arriving[len(c.arriving)-1]
		k := min(len(b), most-len(s.bytes))
		s.bytes, b = append(s.bytes, b[:k]...), b[k:]
	}
}

// arrive puts a segment on its way to this end. The lock is held.
func (c *conn) arrive(s segment) {
	s.sent = time.Now()
	begin := s.sent
	if c.n.slow[c.peer.way()] && c.last.After(begin) {
		begin = c.last
	}
	s.at = begin.Add(delay(c.peer.random))
	if !s.at.After(c.last) {
		s.at = c.last.Add(1)
	}
	c.last = s.at
	c.arriving = append(c.arriving, s)
	c.wakeAt(s.at)
}

// wakeAt makes the goroutines of this end look again at a time.
func (c *conn) wakeAt(at time.Time) {
	time.AfterFunc(time.Until(at), func() {
		c.n.mu.Lock()
		defer c.n.mu.Unlock()
		c.changed.Broadcast()
	})
}

func (c *conn) Close() error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	c.n.conns = slices.DeleteFunc(c.n.conns, func(o *conn) bool { return o == c })
	c.n.record(c.local, c.remote, 0)
	if !c.peer.closed {
		c.peer.arrive(segment{end: true})
	}
	c.changed.Broadcast()
	c.peer.changed.Broadcast()
	return nil
}

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *conn) SetReadDeadline(t time.Time) error  { return c.setDeadline(&c.readDeadline, t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.writeDeadline, t) }

func (c *conn) setDeadline(which *time.Time, t time.Time) error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	*which = t
	if !t.IsZero() {
		c.wakeAt(t)
	}
	c.changed.Broadcast()
	return nil
}

// way returns the direction of what this end sends.
func (c *conn) way() way { return way{c.local, c.remote} }

func (c *conn) LocalAddr() net.Addr  { return address(c.local) }
func (c *conn) RemoteAddr() net.Addr { return address(c.remote) }
func (c *conn) String() string       { return fmt.Sprintf("%s-%s", c.local, c.remote) }
