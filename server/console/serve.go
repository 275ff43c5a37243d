package console

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	headerTime = 10 * time.Second // time for the header of a request
	idleTime   = 50 * time.Second // time that a connection may wait for its next request; below writeTime
	maxHeader  = 64 << 10         // bytes of a header
)

// Serve serves l until Close, and closes it. Slow clients are disconnected: one that takes
// longer than 10 s for a header, or sends a body slower than 16 KB a second, or takes nothing
// of a response for a minute. Connections above maxclients are closed at once. With a
// tls.Config, such as that of [server.Server.TLSConfig], clients must speak TLS, and can speak
// HTTP/2, with which a browser can open more than six streams. Serve always returns an error;
// after Close, http.ErrServerClosed.
func (c *Console) Serve(l net.Listener, secure *tls.Config) error {
	s := &http.Server{
		Handler: c, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog:    slog.NewLogLogger(c.log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return c.ctx },
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		l.Close()
		return http.ErrServerClosed
	}
	c.servers[s] = struct{}{}
	c.mu.Unlock()
	defer func() {
		s.Close()
		c.mu.Lock()
		delete(c.servers, s)
		c.mu.Unlock()
	}()
	l = &limitListener{Listener: l, c: c}
	if secure != nil {
		l = tls.NewListener(l, offerHTTP2(secure))
	}
	return s.Serve(l)
}

// offerHTTP2 returns a configuration that lets clients choose HTTP/2, also where secure chooses
// another one for each connection.
func offerHTTP2(secure *tls.Config) *tls.Config {
	offered := []string{"h2", "http/1.1"}
	secure = secure.Clone()
	secure.NextProtos = offered
	if choose := secure.GetConfigForClient; choose != nil {
		secure.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			if chosen != nil {
				chosen = chosen.Clone()
				chosen.NextProtos = offered
			}
			return chosen, err
		}
	}
	return secure
}

// limitListener closes connections above maxclients at once.
type limitListener struct {
	net.Listener
	c *Console
}

// Accept implements net.Listener.
func (l *limitListener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if n := l.c.connections.Add(1); n <= l.c.maxClients.Load() || n <= l.c.askMaxClients() {
			return &countedConn{Conn: nc, n: &l.c.connections}, nil
		}
		l.c.connections.Add(-1)
		nc.Close()
	}
}

// askMaxClients returns the parameter maxclients, and keeps it for the next connection.
func (c *Console) askMaxClients() int64 {
	ctx, cancel := context.WithTimeout(c.ctx, time.Second) // commands wait while data are loaded
	defer cancel()
	if value, err := c.parameter(ctx, "maxclients"); err == nil {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			c.maxClients.Store(n)
		}
	}
	return c.maxClients.Load()
}

// countedConn is a connection that counts until it is closed.
type countedConn struct {
	net.Conn
	n    *atomic.Int64
	once sync.Once
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.once.Do(func() { c.n.Add(-1) })
	return c.Conn.Close()
}
