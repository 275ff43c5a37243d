package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine/config"
)

// Dial implements engine.Transport. As in Redis, the certificate of the other server must
// be of an authority of tls-ca-cert-file or tls-ca-cert-dir; its name does not matter.
func (t *Transport) Dial(ctx context.Context, network, addr string, timeout time.Duration, p *config.TLS) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if p == nil {
		return t.dial(ctx, network, addr)
	}
	c, err := (*tlsParameters)(p).client()
	if err != nil {
		return nil, err
	}
	plain, err := t.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(plain, c)
	if err := conn.HandshakeContext(ctx); err != nil {
		plain.Close()
		return nil, err
	}
	return conn, nil
}

// client reads the files and returns the tls.Config of connections to other servers.
func (p *tlsParameters) client() (*tls.Config, error) {
	own := *p
	if p.ClientCertFile != "" {
		own.CertFile, own.KeyFile, own.KeyFilePass = p.ClientCertFile, p.ClientKeyFile, p.ClientKeyFilePass
	}
	cert, err := own.certificate()
	if err != nil {
		return nil, err
	}
	roots, err := p.authorities()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{
		Certificates:       []tls.Certificate{cert},
		InsecureSkipVerify: true, // VerifyConnection does, without the name
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errors.New("the other server has no certificate")
			}
			between := x509.NewCertPool()
			for _, c := range s.PeerCertificates[1:] {
				between.AddCert(c)
			}
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
			return err
		},
	}
	if c.MinVersion, c.MaxVersion, err = tlsVersions(p.Protocols); err != nil {
		return nil, err
	}
	c.CipherSuites, err = parseCiphers(p.Ciphers)
	return c, err
}
