package engine

import (
	"errors"
	"fmt"
	"github.com/zsetd/zsetd/server/internal/config"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// listen opens the configured listeners.
func (srv *Engine) listen() (ls []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range ls {
				l.Close()
			}
			ls = nil
		}
	}()
	srv.Mu.Lock()
	err = srv.fitMaxclients()
	c := srv.Config // a copy: commands may change the parameters from now on
	srv.Mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := srv.checkListening(&c); err != nil {
		return nil, err
	}
	if len(srv.ListenState.handed) > 0 {
		c.Port, c.Unixsocket = 0, ""
	}
	if len(srv.ListenState.handedTLS) > 0 {
		c.TLSPort = 0
	}
	if ls, err = srv.listenTCP(&c); err != nil {
		return ls, fmt.Errorf("zsetd: %w", err)
	}
	tcp := ls
	if c.Unixsocket != "" {
		l, err := ListenUnix(c.Unixsocket, c.Unixsocketperm)
		if err != nil {
			return ls, fmt.Errorf("zsetd: %w", err)
		}
		ls = append(ls, l)
	}
	ls = append(ls, srv.ListenState.handed...)
	for _, l := range srv.ListenState.handedTLS {
		ls = append(ls, tlsListener{l, srv})
	}
	if len(ls) == 0 {
		return nil, errors.New("zsetd: nothing to listen on: no address of bind is available")
	}
	srv.ListenState.Lock()
	srv.ListenState.tcp = slices.Clone(tcp)
	srv.ListenState.Unlock()
	return ls, nil
}

// reservedDescriptors is how many descriptors are reserved for purposes other than
// clients.
const reservedDescriptors = 32

// fitMaxclients lowers maxclients to the system's limit of descriptors. Then
// further clients receive an error, where they would otherwise wait until another
// client leaves.
func (srv *Engine) fitMaxclients() error {
	limit, wanted := maxDescriptors(), srv.Config.Maxclients
	switch fit := limit - reservedDescriptors; {
	case wanted <= fit:
		return nil
	case fit <= 0:
		return fmt.Errorf("zsetd: Your current 'ulimit -n' of %d is not enough for the server to start. "+
			"Please increase your open file limit to at least %d. Exiting.", limit, wanted+reservedDescriptors)
	default:
		srv.Log.Warn(fmt.Sprintf("You requested maxclients of %d requiring at least %d max file descriptors.", wanted, wanted+reservedDescriptors))
		srv.Log.Warn(fmt.Sprintf("Current maximum open files is %d. maxclients has been reduced to %d to compensate for low ulimit. "+
			"If you need higher maxclients increase 'ulimit -n'.", limit, fit))
		srv.Config.Maxclients = fit
		srv.applyConfig()
		return nil
	}
}

// checkListening returns an error if there is nothing to listen on.
func (srv *Engine) checkListening(c *config.Settings) error {
	switch {
	case c.Unixsocket != "" || len(srv.ListenState.handed)+len(srv.ListenState.handedTLS) > 0:
		return nil
	case c.Port == 0 && c.TLSPort == 0:
		return errors.New("zsetd: nothing to listen on: port and tls-port are 0 and unixsocket is empty")
	case strings.TrimSpace(c.Bind) == "":
		return errors.New("zsetd: nothing to listen on: bind is empty and unixsocket is empty")
	}
	return nil
}

// ListenUnix opens a unix socket. Before the socket has the permissions perm (0:
// leave the default), only its owner can connect.
func ListenUnix(path, perm string) (l net.Listener, err error) {
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
	WithPrivateUmask(func() { l, err = net.Listen("unix", path) })
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
func (srv *Engine) listenTCP(c *config.Settings) (ls []net.Listener, err error) {
	if c.Port != 0 {
		ls, err = listenPort(c.Bind, c.Port)
	}
	if err != nil || c.TLSPort == 0 {
		return ls, err
	}
	more, err := listenPort(c.Bind, c.TLSPort)
	for _, l := range more {
		ls = append(ls, tlsListener{l, srv})
	}
	return ls, err
}

func listenPort(bind string, port int64) (ls []net.Listener, err error) {
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

// relisten replaces the listeners of ListenAndServe after a change of port or
// addresses. On failure the old ones stay.
func (srv *Engine) relisten(next *config.Settings) error {
	srv.ListenState.Lock()
	defer srv.ListenState.Unlock()
	if srv.ListenState.Serve == nil {
		return errors.New("the server was not started with ListenAndServe")
	}
	if len(srv.ListenState.handed)+len(srv.ListenState.handedTLS) > 0 {
		return errors.New("the server did not open its sockets itself")
	}
	now := &srv.Config
	var stay []net.Listener
	for _, l := range srv.ListenState.tcp {
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
	ls, err := srv.listenTCP(&wanted)
	if err == nil && len(ls) == 0 && wanted.Port+wanted.TLSPort != 0 && next.Bind != "" {
		err = errors.New("no address of bind is available")
	}
	if err != nil {
		for _, l := range ls {
			l.Close()
		}
		var e error
		if ls, e = srv.listenTCP(&back); e != nil {
			err = errors.Join(err, e)
		}
	}
	srv.ListenState.tcp = append(stay, ls...)
	for _, l := range ls {
		srv.logListening(l)
		srv.ListenState.Serve(l)
	}
	return err
}

// logListening logs that clients are served at l.
func (srv *Engine) logListening(l net.Listener) {
	kind := l.Addr().Network()
	if _, secure := l.(tlsListener); secure {
		kind = "tls"
	}
	srv.Log.Info("Ready to accept connections "+kind, "addr", l.Addr())
}

// keepAlive enables TCP keepalive, which detects peers that are gone.
func (srv *Engine) keepAlive(nc *net.TCPConn) {
	seconds := srv.limits.Load().keepalive
	if seconds == 0 {
		nc.SetKeepAlive(false)
		return
	}
	period := time.Duration(seconds) * time.Second
	nc.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: period, Interval: max(period/3, time.Second), Count: 3})
}
