package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"reflect"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
)

// Serve accepts clients on l until Shutdown or Close, and closes l. It always
// returns an error; after these two, ErrServerClosed, and a *PanicError if the
// server has panicked.
func (t *Transport) Serve(l net.Listener) (err error) {
	defer t.setClosedError(&err)
	if isNil(l) {
		return errors.New("zsetd: the listener to serve is nil")
	}
	if err := t.engine.Within(); err != nil {
		l.Close()
		return err
	}
	addr, tcp := l.Addr().(*net.TCPAddr) // a listener of the program may panic, so not under the lock
	t.mu.Lock()
	if t.stopping {
		t.mu.Unlock()
		l.Close()
		return t.engine.Err()
	}
	t.listeners[l] = struct{}{}
	t.mu.Unlock()
	if tcp {
		if _, secure := l.(tlsListener); secure {
			t.engine.Transports.TLSServed.Store(int64(addr.Port))
		} else {
			t.engine.Transports.TCPPort.Store(int64(addr.Port))
		}
	}
	defer func() {
		l.Close()
		t.mu.Lock()
		delete(t.listeners, l)
		t.mu.Unlock()
	}()
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		if err != nil {
			t.mu.Lock()
			stopping := t.stopping
			t.mu.Unlock()
			if stopping {
				return t.engine.Err()
			}
			// Out of descriptors, or a client that has already gone: no reason to
			// stop, nor to spin.
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			t.acceptFailed(err)
			t.awaitLeave(pause)
			continue
		}
		pause = 0
		t.awaitSlot()
		t.serveConn(nc)
	}
}

// isNil reports whether there is no listener: none at all, a nil pointer, or one of TLS
// around either.
func isNil(l net.Listener) bool {
	if secure, ok := l.(tlsListener); ok {
		l = secure.Listener
	}
	v := reflect.ValueOf(l)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// acceptLogTime is the shortest interval between log lines about clients that
// cannot be accepted.
const acceptLogTime = 10 * time.Second

// acceptFailed logs that a client cannot be accepted.
func (t *Transport) acceptFailed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := &t.acceptFailures
	if f.times++; time.Since(f.logged) < acceptLogTime {
		return
	}
	t.engine.Log.Warn("cannot accept a connection", "error", err, "times", f.times, "clients", len(t.conns))
	f.logged, f.times = time.Now(), 0
}

// awaitLeave waits until a client has left, which frees a descriptor, but no longer
// than limit. A departure resumes all waiting listeners, so none of them loses
// every free descriptor to others while it sleeps out its limit.
func (t *Transport) awaitLeave(limit time.Duration) {
	t.mu.Lock()
	left := t.leaving()
	t.mu.Unlock()
	t.await(left, limit)
}

// leaving returns a channel that is closed when the next client has left. It is
// called with the lock held.
func (t *Transport) leaving() <-chan struct{} {
	if t.left == nil {
		t.left = make(chan struct{})
	}
	return t.left
}

// await waits until a client has left, but no longer than limit, and reports
// whether one has.
func (t *Transport) await(left <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-left:
		return true
	case <-timer.C:
	case <-t.engine.Ending.Stopped:
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
func (t *Transport) awaitSlot() {
	for {
		t.mu.Lock()
		if t.stopping || len(t.conns) < t.engine.MaxClients() {
			t.mu.Unlock()
			return
		}
		left := t.leaving()
		begin := time.Now()
		if rest := t.nextClosedCheck.Sub(begin); rest > 0 {
			t.mu.Unlock()
			t.await(left, rest)
			continue
		}
		ended := t.anyEnded()
		if !ended {
			now := time.Now()
			t.nextClosedCheck = now.Add((lookShare - 1) * now.Sub(begin))
		}
		t.mu.Unlock()
		if !ended {
			return
		}
		if !t.await(left, endTime) {
			t.markStaying()
			return
		}
	}
}

// anyEnded reports whether a client that is about to leave has closed its side. It
// is called with the lock held.
func (t *Transport) anyEnded() bool {
	var sockets pollSet
	for c := range t.conns {
		if _, stays := t.staying[c]; !stays && !sockets.add(c) && c.Ended() {
			return true
		}
	}
	return sockets.anyEnded()
}

// markStaying records the clients that have closed their side and do not leave.
func (t *Transport) markStaying() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.staying == nil {
		t.staying = map[connection]struct{}{}
	}
	for c := range t.conns {
		if c.Ended() {
			t.staying[c] = struct{}{}
		}
	}
}

// leave removes a closed connection.
func (t *Transport) leave(c connection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, c)
	delete(t.staying, c)
	if t.left != nil {
		close(t.left)
		t.left = nil
	}
}

// serveConn starts a session for nc, or refuses it.
func (t *Transport) serveConn(nc net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopping {
		nc.Close()
		return
	}
	if t.engine.RefusesRemote() && isRemote(nc) {
		t.deny(nc, errProtectedMode)
		return
	}
	if len(t.conns) >= t.engine.MaxClients() {
		if _, secure := nc.(*tls.Conn); secure { // no handshake only to refuse, as in Redis
			t.engine.Stats.Rejected.Add(1)
			nc.Close()
			return
		}
		t.deny(nc, "-ERR max number of clients reached\r\n")
		return
	}
	if t.polls && t.serveSocket(nc) {
		return
	}
	c := &netConn{t: t, nc: nc, socket: socketOf(nc), recheck: make(chan struct{}, 1)}
	p := engine.Peer{Addr: nc.RemoteAddr().String(), LocalAddr: nc.LocalAddr().String(), FD: -1, Wake: c.wake, Reader: &c.reader, Conn: c}
	user := ""
	if end, is := nc.(*pipeEnd); is {
		p.Apart, user = end.apart, end.user
	}
	var raw syscall.RawConn
	switch nc := c.socket.(type) {
	case *net.TCPConn:
		t.keepAlive(nc)
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
	t.conns[c] = struct{}{}
	t.engine.NewSessionAs(&c.sess, p, user)
	t.running.Go(c.serve)
}

// deny sends a client the reason for its refusal and closes the connection.
func (t *Transport) deny(nc net.Conn, reply string) {
	t.engine.Stats.Rejected.Add(1)
	t.running.Go(func() {
		nc.SetDeadline(time.Now().Add(time.Second))
		io.WriteString(nc, reply)
		nc.Close()
	})
}

// errProtectedMode is the error for remote clients in protected mode.
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

// isRemote reports whether a client is on another machine.
func isRemote(nc net.Conn) bool {
	addr, ok := nc.RemoteAddr().(*net.TCPAddr)
	return ok && !addr.IP.IsLoopback()
}

// A pipeEnd is one end of an in-process connection. It reports the closing of the
// other end before a Read detects it.
type pipeEnd struct {
	net.Conn
	closed, peerClosed *atomic.Bool
	apart              bool   // engine.Apart
	user               string // engine.WithUser
}

func newPipe() (client, server *pipeEnd) {
	a, b := net.Pipe()
	var ofClient, ofServer atomic.Bool
	return &pipeEnd{a, &ofClient, &ofServer, false, ""}, &pipeEnd{b, &ofServer, &ofClient, false, ""}
}

// Close implements net.Conn.
func (p *pipeEnd) Close() error {
	p.closed.Store(true)
	return p.Conn.Close()
}

// Dialer returns a function that connects to the server without a network, for any
// client library with a configurable dialer:
//
//	redis.NewClient(&redis.Options{Dialer: t.engine.Dialer()})
//
// After Close or Shutdown it returns ErrServerClosed. These close its connections
// as they close those of a network.
func (t *Transport) Dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (nc net.Conn, err error) {
		defer t.setClosedError(&err)
		client, server := newPipe()
		server.apart, server.user = engine.IsApart(ctx), engine.UserOf(ctx)
		t.awaitSlot()
		t.serveConn(server)
		select {
		case <-t.engine.Ending.Stopped: // serveConn has refused it, or it is being closed
			client.Close()
			return nil, t.engine.Err()
		default:
			return client, nil
		}
	}
}
