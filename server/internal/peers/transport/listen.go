package transport

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/config"
)

// listening is the state of ListenAndServe. Its lock may be taken with the engine's
// held.
type listening struct {
	sync.Mutex
	tcp   []net.Listener     // including those of TLS
	begun bool               // ListenAndServe runs
	serve func(net.Listener) // starts serving an additional listener; nil outside ListenAndServe
	open  chan struct{}      // closed when they are open, or could not be opened
	once  sync.Once          // closes it
	err   error              // why they could not be opened at the last attempt

	handed, handedTLS []net.Listener // already open at the start; never changed
}

// ListenAndServe listens on the configured addresses and serves clients until
// Shutdown or Close. It always returns an error; after these two,
// ErrServerClosed, and a *PanicError if the server has panicked.
func (t *Transport) ListenAndServe() (err error) {
	defer t.setClosedError(&err)
	if err := t.engine.Within(); err != nil {
		return err
	}
	ls, err := t.begin()
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(context.Background())
	failed := make(chan error)
	fail := func(err error) {
		select {
		case failed <- err:
		case <-ctx.Done():
		}
	}
	var started sync.WaitGroup // the goroutines of this call
	serve := func(l net.Listener) {
		started.Go(func() {
			if err := t.Serve(l); !errors.Is(err, net.ErrClosed) { // otherwise Relisten has replaced it
				fail(err)
			}
		})
	}
	for _, l := range ls {
		serve(l)
	}
	t.listening.Lock()
	t.listening.serve = serve
	t.listening.Unlock()
	started.Go(func() {
		if err := t.engine.Ready(ctx); err != nil {
			fail(err)
			return
		}
		for _, l := range ls {
			t.logListening(l)
		}
	})
	select {
	case err = <-failed:
	case <-t.engine.Ending.Stopped:
		err = t.engine.Err()
	}
	end()
	t.listening.Lock()
	t.listening.serve, t.listening.begun = nil, false
	t.listening.Unlock()
	if !errors.Is(err, engine.ErrServerClosed) {
		t.close()
	}
	started.Wait() // no listener stays open
	return err
}

// begin opens the configured listeners, unless the server has stopped or listens already.
func (t *Transport) begin() (ls []net.Listener, err error) {
	if err := t.engine.Err(); err != nil {
		for _, l := range slices.Concat(t.listening.handed, t.listening.handedTLS) {
			l.Close()
		}
		return nil, err
	}
	t.listening.Lock()
	begun := t.listening.begun
	t.listening.begun = true
	t.listening.Unlock()
	if begun {
		return nil, errors.New("zsetd: ListenAndServe runs already")
	}
	ls, err = t.listen()
	t.listening.Lock()
	t.listening.begun, t.listening.err = err == nil, err
	t.listening.Unlock()
	t.listening.once.Do(func() { close(t.listening.open) })
	return ls, err
}

// Listening waits until ListenAndServe has opened the configured sockets, or until
// ctx ends, and then returns ctx's error. If ListenAndServe could not open them, Listening
// returns its error; after Shutdown or Close, ErrServerClosed. The data may not be loaded
// when it returns, see [engine.Engine.Ready].
func (t *Transport) Listening(ctx context.Context) error {
	if err := t.engine.Within(); err != nil {
		return err
	}
	if err := t.engine.Err(); err != nil {
		return err
	}
	select {
	case <-t.listening.open:
		t.listening.Lock()
		defer t.listening.Unlock()
		return t.listening.err
	case <-t.engine.Ending.Stopped:
		return t.engine.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listen opens the configured listeners.
func (t *Transport) listen() (ls []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range ls {
				l.Close()
			}
			ls = nil
		}
	}()
	c, err := t.engine.ListenConfig()
	if err != nil {
		return nil, err
	}
	if err := t.checkListening(&c); err != nil {
		return nil, err
	}
	if len(t.listening.handed) > 0 {
		c.Port, c.Unixsocket = 0, ""
	}
	if len(t.listening.handedTLS) > 0 {
		c.TLSPort = 0
	}
	if ls, err = t.listenTCP(&c); err != nil {
		return ls, fmt.Errorf("zsetd: %w", err)
	}
	tcp := ls
	if c.Unixsocket != "" {
		l, err := listenUnix(c.Unixsocket, c.Unixsocketperm)
		if err != nil {
			return ls, fmt.Errorf("zsetd: %w", err)
		}
		ls = append(ls, l)
	}
	ls = append(ls, t.listening.handed...)
	for _, l := range t.listening.handedTLS {
		ls = append(ls, tlsListener{l, t})
	}
	if len(ls) == 0 {
		return nil, errors.New("zsetd: nothing to listen on: no address of bind is available")
	}
	t.listening.Lock()
	t.listening.tcp = slices.Clone(tcp)
	t.listening.Unlock()
	return ls, nil
}

// CheckListening returns an error if the parameters name nothing to listen on.
func (t *Transport) CheckListening() error { return t.checkListening(&t.engine.Config) }

// checkListening returns an error if there is nothing to listen on.
func (t *Transport) checkListening(c *config.Settings) error {
	switch {
	case c.Unixsocket != "" || len(t.listening.handed)+len(t.listening.handedTLS) > 0:
		return nil
	case c.Port == 0 && c.TLSPort == 0:
		return errors.New("zsetd: nothing to listen on: port and tls-port are 0 and unixsocket is empty")
	case strings.TrimSpace(c.Bind) == "":
		return errors.New("zsetd: nothing to listen on: bind is empty and unixsocket is empty")
	}
	return nil
}

// listenUnix opens a unix socket. Before the socket has the permissions perm (0:
// leave the default), only its owner can connect.
func listenUnix(path, perm string) (l net.Listener, err error) {
	// Remove a socket that a dead server has left. Never remove a file, nor a
	// socket on which another process listens.
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		if nc, err := net.DialTimeout("unix", path, time.Second); err == nil {
			nc.Close()
			return nil, fmt.Errorf("listen unix %s: another process listens on it", path)
		}
		os.Remove(path)
	}
	if perm == "0" {
		return net.Listen("unix", path)
	}
	withPrivateUmask(func() { l, err = net.Listen("unix", path) })
	if err != nil {
		return nil, err
	}
	mode, _ := strconv.ParseUint(perm, 8, 32)
	if err := os.Chmod(path, fs.FileMode(mode)); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// listenTCP opens the listeners for bind, port and tls-port. With an error it
// returns those that it opened before.
func (t *Transport) listenTCP(c *config.Settings) (ls []net.Listener, err error) {
	if c.Port != 0 {
		ls, err = ListenPort(c.Bind, c.Port)
	}
	if err != nil || c.TLSPort == 0 {
		return ls, err
	}
	more, err := ListenPort(c.Bind, c.TLSPort)
	for _, l := range more {
		ls = append(ls, tlsListener{l, t})
	}
	return ls, err
}

// ListenPort opens a socket at port for each address of bind. With an error it returns those
// that it opened before.
func ListenPort(bind string, port int64) (ls []net.Listener, err error) {
	for _, addr := range strings.Fields(bind) {
		addr, optional := strings.CutPrefix(addr, "-")
		network := "tcp4"
		if strings.Contains(addr, ":") {
			network = "tcp6"
		}
		if addr == "*" || addr == "::*" {
			addr = ""
		}
		l, err := net.Listen(network, net.JoinHostPort(addr, strconv.FormatInt(port, 10)))
		if err != nil {
			if optional && !strings.Contains(err.Error(), "in use") {
				continue
			}
			return ls, err
		}
		ls = append(ls, l)
	}
	return ls, nil
}

// Relisten implements engine.Transport: it replaces the listeners of ListenAndServe after
// a change of port or addresses. On failure the old ones stay.
func (t *Transport) Relisten(next *config.Settings) error {
	t.listening.Lock()
	defer t.listening.Unlock()
	if t.listening.serve == nil {
		return errors.New("the server was not started with ListenAndServe")
	}
	if len(t.listening.handed)+len(t.listening.handedTLS) > 0 {
		return errors.New("the server did not open its sockets itself")
	}
	now := &t.engine.Config
	var stay []net.Listener
	for _, l := range t.listening.tcp {
		_, secure := l.(tlsListener)
		if next.Bind == now.Bind && (secure && next.TLSPort == now.TLSPort || !secure && next.Port == now.Port) {
			stay = append(stay, l)
			continue
		}
		l.Close() // the new listeners may need the same addresses
	}
	wanted := *next
	back := *now // the configuration of the closed listeners, to restore them on failure
	if next.Bind == now.Bind {
		if next.Port == now.Port {
			wanted.Port, back.Port = 0, 0
		}
		if next.TLSPort == now.TLSPort {
			wanted.TLSPort, back.TLSPort = 0, 0
		}
	}
	ls, err := t.listenTCP(&wanted)
	if err == nil && len(ls) == 0 && wanted.Port+wanted.TLSPort != 0 && next.Bind != "" {
		err = errors.New("no address of bind is available")
	}
	if err != nil {
		for _, l := range ls {
			l.Close()
		}
		var e error
		if ls, e = t.listenTCP(&back); e != nil {
			err = errors.Join(err, e)
		}
	}
	t.listening.tcp = append(stay, ls...)
	for _, l := range ls {
		t.logListening(l)
		t.listening.serve(l)
	}
	return err
}

// logListening logs that clients are served at l, and a warning if anyone can be one.
func (t *Transport) logListening(l net.Listener) {
	kind := l.Addr().Network()
	if _, secure := l.(tlsListener); secure {
		kind = "tls"
	}
	t.engine.Log.Info("Ready to accept connections "+kind, "addr", l.Addr())
	if addr, is := l.Addr().(*net.TCPAddr); is && !addr.IP.IsLoopback() && t.engine.ACL.Open() && !t.engine.RefusesRemote() {
		t.engine.Log.Warn("clients of all networks are served without a password: set requirepass, users, or protected-mode yes", "addr", addr)
	}
}

// keepAlive enables TCP keepalive, which detects peers that are gone.
func (t *Transport) keepAlive(nc *net.TCPConn) {
	period := t.engine.KeepAlive()
	if period == 0 {
		nc.SetKeepAlive(false)
		return
	}
	nc.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: period, Interval: max(period/3, time.Second), Count: 3})
}
