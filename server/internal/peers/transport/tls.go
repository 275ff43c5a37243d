//lint:file-ignore ST1005 Errors of CONFIG SET have the wording of Redis.

package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/config"
)

// TLS, with Redis's parameters, on Go's crypto/tls.
//
// The listener of tls-port accepts plain connections; the handshake is the first
// step of the goroutine of a connection, within handshakeTimeout. So a client that is
// silent then delays no other client; it counts against maxclients, as in Redis.
//
// The parameters make up one tls.Config, which is immutable: new connections use
// the latest one. A new one invalidates the session tickets of its predecessors, so
// that no client resumes a session under rules that no longer apply. CONFIG SET of
// any of the parameters reads the files again. So does the first connection after a
// file has changed, because certificates are renewed by programs that do not know
// this server. An unusable certificate leaves everything unchanged, with an error
// of CONFIG SET or in the log.

// tlsParameters are the parameters that make up a tls.Config.
type tlsParameters config.TLS

const (
	// handshakeTimeout is the longest time that a client may take for the handshake.
	handshakeTimeout = 10 * time.Second
	// tlsCheckInterval is the shortest interval between two checks of the files.
	tlsCheckInterval = time.Second
)

// tlsState is the TLS configuration of new connections.
type tlsState struct {
	mu     sync.Mutex // may be taken under the engine's lock
	wanted bool       // TLS is served even if tls-port is 0
	material
	checkedAt time.Time
}

// material is a tls.Config with the parameters and files it was made of.
type material struct {
	params        tlsParameters
	config        *tls.Config // nil if TLS is not served
	stamp         string      // of the files of config
	unusableStamp string      // of the last files that were unusable
}

// ApplyTLS implements engine.Transport: it applies the TLS parameters to new
// connections. After an error everything is unchanged; undo restores the previous
// state.
func (t *Transport) ApplyTLS(c *config.Settings) (undo func(), err error) {
	s := &t.tls
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.material
	undo = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.material = before
	}
	if c.TLSPort == 0 && !c.HTTP.TLS && !s.wanted {
		s.material = material{}
		return undo, nil
	}
	return undo, s.build(t.engine, (*tlsParameters)(&c.TLS))
}

// build makes the tls.Config. The state's lock is held.
func (s *tlsState) build(e *engine.Engine, p *tlsParameters) error {
	stamp := p.stamp()
	config, err := p.config(e)
	if err != nil {
		return err
	}
	s.material = material{params: *p, config: config, stamp: stamp}
	leaf := config.Certificates[0].Leaf
	level := e.Log.Info
	if now := e.Clock(); now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		level = e.Log.Warn
	}
	level("TLS certificate loaded", "file", p.CertFile, "subject", leaf.Subject, "from", leaf.NotBefore, "until", leaf.NotAfter)
	return nil
}

// current returns the tls.Config of the next connection. If the files have changed
// since they were read, they are read again.
func (s *tlsState) current(e *engine.Engine) *tls.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config == nil || time.Since(s.checkedAt) < tlsCheckInterval {
		return s.config
	}
	s.checkedAt = time.Now()
	if stamp := s.params.stamp(); stamp != s.stamp && stamp != s.unusableStamp {
		if err := s.build(e, &s.params); err != nil {
			s.unusableStamp = stamp // logged once
			e.Log.Error("cannot use the changed TLS files; keeping the previous ones", "error", err)
		}
	}
	return s.config
}

// stamp returns a string that changes when one of the files does.
func (p *tlsParameters) stamp() string {
	var b strings.Builder
	for _, path := range append([]string{p.CertFile, p.KeyFile, p.CACertFile}, filesOf(p.CACertDir)...) {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprint(&b, path, info.Size(), info.ModTime().UnixNano(), ";")
		}
	}
	return b.String()
}

// filesOf returns the paths of the entries of a directory, if it exists.
func filesOf(dir string) (paths []string) {
	if dir == "" {
		return nil
	}
	entries, _ := os.ReadDir(dir) // config reports the error
	for _, e := range entries {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	return paths
}

// config reads the files and returns the tls.Config.
func (p *tlsParameters) config(e *engine.Engine) (*tls.Config, error) {
	switch {
	case p.CertFile == "":
		return nil, errors.New("No tls-cert-file configured!")
	case p.KeyFile == "":
		return nil, errors.New("No tls-key-file configured!")
	case p.AuthClients != "no" && p.CACertFile == "" && p.CACertDir == "":
		return nil, errors.New("Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-auth-clients is enabled!")
	}
	c := &tls.Config{SessionTicketsDisabled: !p.SessionCaching}
	cert, err := p.certificate()
	if err != nil {
		return nil, err
	}
	c.Certificates = []tls.Certificate{cert}
	if p.CACertFile != "" || p.CACertDir != "" {
		if c.ClientCAs, err = p.authorities(); err != nil {
			return nil, fmt.Errorf("Failed to configure CA certificate(s) file/directory: %w", err)
		}
	}
	switch p.AuthClients {
	case "yes":
		c.ClientAuth = tls.RequireAndVerifyClientCert
	case "optional":
		c.ClientAuth = tls.VerifyClientCertIfGiven
	}
	if c.MinVersion, c.MaxVersion, err = tlsVersions(p.Protocols); err != nil {
		return nil, err
	}
	if c.CipherSuites, err = parseCiphers(p.Ciphers); err != nil {
		return nil, fmt.Errorf("Failed to configure ciphers: %s: %w", p.Ciphers, err)
	}
	if err := checkCiphersuites(p.Ciphersuites); err != nil {
		return nil, fmt.Errorf("Failed to configure ciphersuites: %s: %w", p.Ciphersuites, err)
	}
	limitTickets(e, c, p.SessionTimeout)
	return c, nil
}

// certificate reads the server's certificate and its key.
func (p *tlsParameters) certificate() (cert tls.Certificate, err error) {
	certs, err := os.ReadFile(p.CertFile)
	if err != nil {
		return cert, fmt.Errorf("Failed to load certificate: %w", err)
	}
	file, err := os.ReadFile(p.KeyFile)
	if err != nil {
		return cert, fmt.Errorf("Failed to load private key: %w", err)
	}
	key, err := decryptKey(file, p.KeyFilePass)
	if err != nil {
		return cert, fmt.Errorf("Failed to load private key: %s: %w", p.KeyFile, err)
	}
	if cert, err = tls.X509KeyPair(certs, key); err != nil {
		return cert, fmt.Errorf("Failed to load certificate: %s with the key %s: %w", p.CertFile, p.KeyFile, err)
	}
	return cert, nil
}

// authorities reads the certificates of the authorities that sign those of clients.
func (p *tlsParameters) authorities() (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	n := 0
	add := func(path string) error {
		rest, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				return nil
			}
			if block.Type != "CERTIFICATE" && block.Type != "TRUSTED CERTIFICATE" {
				continue
			}
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			pool.AddCert(cert)
			n++
		}
	}
	if p.CACertFile != "" {
		if err := add(p.CACertFile); err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, fmt.Errorf("%s: no certificate found", p.CACertFile)
		}
	}
	if p.CACertDir != "" {
		if _, err := os.ReadDir(p.CACertDir); err != nil {
			return nil, err
		}
		before := n
		for _, path := range filesOf(p.CACertDir) {
			info, err := os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
				continue // a broken link, or a directory
			}
			if err := add(path); err != nil {
				return nil, err
			}
		}
		if n == before {
			return nil, fmt.Errorf("%s: no certificate found in the directory", p.CACertDir)
		}
	}
	return pool, nil
}

// tlsVersions parses tls-protocols.
func tlsVersions(words string) (lo, hi uint16, err error) {
	if words == "" {
		return tls.VersionTLS12, tls.VersionTLS13, nil
	}
	names := []string{"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}
	var asked [4]bool
	for word := range strings.SplitSeq(words, " ") {
		i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, word) })
		if i < 0 {
			return 0, 0, errors.New("Invalid tls-protocols specified. Use a combination of 'TLSv1', 'TLSv1.1', 'TLSv1.2' and 'TLSv1.3'.")
		}
		asked[i] = true
	}
	first := slices.Index(asked[:], true)
	last := first
	for last < 3 && asked[last+1] {
		last++
	}
	if slices.Contains(asked[last+1:], true) {
		return 0, 0, fmt.Errorf("Invalid tls-protocols specified: Go enables all versions between %s and a later one", names[last])
	}
	return tls.VersionTLS10 + uint16(first), tls.VersionTLS10 + uint16(last), nil
}

// ticketMark begins the data that limitTickets adds to a session: its creation
// time.
const ticketMark = "zsetd since "

// limitTickets bounds the time in which sessions can be resumed. Go has no
// parameter for it: its tickets are valid for a week.
func limitTickets(e *engine.Engine, c *tls.Config, seconds int64) {
	c.WrapSession = func(cs tls.ConnectionState, s *tls.SessionState) ([]byte, error) {
		s.Extra = append(s.Extra, binary.BigEndian.AppendUint64([]byte(ticketMark), uint64(e.Clock().Unix())))
		return c.EncryptTicket(cs, s)
	}
	c.UnwrapSession = func(ticket []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
		s, err := c.DecryptTicket(ticket, cs)
		if s == nil || err != nil {
			return nil, err
		}
		for _, extra := range s.Extra {
			if at, ok := bytes.CutPrefix(extra, []byte(ticketMark)); ok && len(at) == 8 {
				if age := e.Clock().Unix() - int64(binary.BigEndian.Uint64(at)); age < 0 || age >= seconds {
					return nil, nil // falls back to a full handshake
				}
			}
		}
		return s, nil
	}
}

// tlsListener is a listener whose clients speak TLS.
type tlsListener struct {
	net.Listener
	t *Transport
}

// Accept returns a connection before its handshake.
func (l tlsListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := l.t.tls.current(l.t.engine)
	if c == nil { // TLS is no longer served
		nc.Close()
		return nil, net.ErrClosed
	}
	return tls.Server(nc, c), nil
}

// ServeTLS is [Transport.Serve] for clients that speak TLS, as the parameters whose
// names begin with tls- say. A program that has a tls.Config of its own passes
// Serve a listener of [tls.NewListener] instead.
func (t *Transport) ServeTLS(l net.Listener) (err error) {
	defer t.setClosedError(&err)
	if isNil(l) {
		return t.Serve(nil)
	}
	if err := t.wantTLS(); err != nil {
		l.Close()
		return err
	}
	return t.Serve(tlsListener{l, t})
}

// wantTLS makes the tls.Config if there is none, and from now on after each change of the
// parameters.
func (t *Transport) wantTLS() (err error) {
	if err := t.engine.Within(); err != nil {
		return err
	}
	var c config.TLS
	t.engine.OutOfTurn(func() { c = t.engine.Config.TLS })
	s := &t.tls
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = true
	if s.config == nil {
		err = s.build(t.engine, (*tlsParameters)(&c))
	}
	if err != nil {
		return fmt.Errorf("zsetd: TLS: %w", err)
	}
	return nil
}

// TLSConfig returns a tls.Config for listeners of other protocols. Each of their connections
// has the parameters and files of the moment of its handshake, as those of tls-port.
func (t *Transport) TLSConfig() (*tls.Config, error) {
	if err := t.wantTLS(); err != nil {
		return nil, err
	}
	return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return t.tls.current(t.engine), nil
	}}, nil
}

// handshake performs the TLS handshake before the first command. It returns false
// if the client fails to complete it.
func (c *netConn) handshake() bool {
	nc, secure := c.nc.(*tls.Conn)
	if !secure {
		return true
	}
	nc.SetDeadline(time.Now().Add(handshakeTimeout))
	if err := nc.HandshakeContext(context.Background()); err != nil {
		c.sess.Engine.Log.Log(context.Background(), engine.Verbose, "cannot set up a connection", "client", c.sess.Peer.Addr, "error", err)
		return false
	}
	nc.SetDeadline(time.Time{})
	c.logIn(nc)
	return !c.sess.Ending() // a concurrent wake has set a deadline that is now cleared
}

// logIn logs the client in as the user that the common name of its certificate is, the first
// if there are several, if tls-auth-clients-user says so.
func (c *netConn) logIn(nc *tls.Conn) {
	chains := nc.ConnectionState().VerifiedChains
	if len(chains) == 0 {
		return
	}
	names := chains[0][0].Subject.Names
	i := slices.IndexFunc(names, func(n pkix.AttributeTypeAndValue) bool { return n.Type.Equal(asn1.ObjectIdentifier{2, 5, 4, 3}) })
	e := c.sess.Engine
	e.Mu.Lock()
	defer e.Mu.Unlock()
	if i >= 0 && e.Config.TLS.AuthClientsUser != "off" {
		c.sess.LogInByCertificate(fmt.Sprint(names[i].Value))
	}
}

// socketOf returns the connection below a TLS connection, or nc itself.
func socketOf(nc net.Conn) net.Conn {
	if t, secure := nc.(*tls.Conn); secure {
		return t.NetConn()
	}
	return nc
}
