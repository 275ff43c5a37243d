package enginetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
)

// PKI is a certificate authority and the directory of its certificates.
type PKI struct {
	t    *testing.T
	Dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	last int64
}

// NewPKI makes an authority, whose certificate is in dir/name.crt.
func NewPKI(t *testing.T, dir, name string) *PKI {
	t.Helper()
	p := &PKI{t: t, Dir: dir}
	cert := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	pair := p.Issue(name, cert)
	p.cert, p.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	return p
}

// Issue makes a certificate and writes it to dir/name.crt, and its key to
// dir/name.key.
func (p *PKI) Issue(name string, cert *x509.Certificate) tls.Certificate {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	p.last++
	cert.SerialNumber, cert.Subject = big.NewInt(p.last), pkix.Name{CommonName: name}
	cert.DNSNames, cert.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	if cert.NotAfter.IsZero() {
		cert.NotBefore, cert.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, signer := p.cert, p.key
	if parent == nil {
		parent, signer = cert, key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, signer)
	if err != nil {
		p.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		p.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		p.t.Fatal(err)
	}
	p.Write(name+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	p.Write(name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// Write writes a file into the directory.
func (p *PKI) Write(name string, content []byte) {
	p.t.Helper()
	if err := os.WriteFile(p.Path(name), content, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// Path returns the path of a file in the directory.
func (p *PKI) Path(name string) string { return filepath.Join(p.Dir, name) }

// Client returns the configuration of a client that trusts the authority.
func (p *PKI) Client(certs ...tls.Certificate) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(p.cert)
	return &tls.Config{RootCAs: pool, ServerName: "localhost", Certificates: certs}
}

// Config returns the parameters of a server that uses the authority.
func (p *PKI) Config() map[string]string {
	return map[string]string{"tls-cert-file": p.Path("server.crt"), "tls-key-file": p.Path("server.key"), "tls-ca-cert-file": p.Path("ca.crt")}
}

// StartTLS is Start for clients that speak TLS, with the log of the server. It serves clients that speak TLS until the test ends.
func StartTLS(t *testing.T, config map[string]string) (srv *Server, addr string, log *LogBuffer) {
	t.Helper()
	log = new(LogBuffer)
	level := new(slog.LevelVar)
	srv, err := New(engine.Options{Config: config, Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level})), LogLevel: level})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.ServeTLS(l) }()
	t.Cleanup(func() {
		srv.Close()
		if err := <-served; err != engine.ErrServerClosed {
			t.Errorf("ServeTLS: %v", err)
		}
	})
	return srv, l.Addr().String(), log
}

// PingTLS connects, sends PING and returns the error.
func PingTLS(addr string, config *tls.Config) (tls.ConnectionState, error) {
	nc, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	c := tls.Client(nc, config)
	if _, err := io.WriteString(c, "PING\r\n"); err != nil {
		return c.ConnectionState(), err
	}
	var b [7]byte
	if _, err = io.ReadFull(c, b[:]); err == nil && string(b[:]) != "+PONG\r\n" {
		err = fmt.Errorf("PING answers %q", b)
	}
	return c.ConnectionState(), err
}
