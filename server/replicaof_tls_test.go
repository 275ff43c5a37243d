package server

import (
	"crypto/x509"
	"net"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestFollowWithTLS checks that a replica follows over TLS, and that it follows no primary
// with a certificate of another authority.
func TestFollowWithTLS(t *testing.T) {
	p, other := newPKI(t, t.TempDir(), "ca"), newPKI(t, t.TempDir(), "ca")
	p.issue("server", new(x509.Certificate))
	other.issue("server", new(x509.Certificate))
	config := p.config()
	config["repl-diskless-sync-delay"] = "0"
	config["tls-auth-clients"] = "yes"
	primary, addr, _ := startTLS(t, config)
	if _, err := primary.Do(t.Context(), "SET", "a", "1"); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(addr)
	follow := func(p *pki) (*testServer, *syncBuffer) {
		config := p.config()
		config["tls-replication"], config["replicaof"] = "yes", host+" "+port
		replica, _, log := startTLS(t, config)
		return replica, log
	}
	replica, _ := follow(p)
	wait.Until(t, "the replica has the data", func() bool {
		v, err := replica.Do(t.Context(), "GET", "a")
		return err == nil && v == "1"
	})
	_, log := follow(other)
	wait.Until(t, "the certificate is refused", func() bool { return strings.Contains(log.String(), "certificate signed by unknown authority") })
}
