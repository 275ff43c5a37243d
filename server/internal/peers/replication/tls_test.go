package replication_test

import (
	"crypto/x509"
	"net"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestFollowWithTLS checks that a replica follows over TLS, and that it follows no primary
// with a certificate of another authority.
func TestFollowWithTLS(t *testing.T) {
	p, other := enginetest.NewPKI(t, t.TempDir(), "ca"), enginetest.NewPKI(t, t.TempDir(), "ca")
	p.Issue("server", new(x509.Certificate))
	other.Issue("server", new(x509.Certificate))
	config := p.Config()
	config["repl-diskless-sync-delay"] = "0"
	config["tls-auth-clients"] = "yes"
	primary, addr, _ := enginetest.StartTLS(t, config)
	if _, err := primary.Do(t.Context(), "SET", "a", "1"); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(addr)
	follow := func(p *enginetest.PKI) (*enginetest.Server, *enginetest.LogBuffer) {
		config := p.Config()
		config["tls-replication"], config["replicaof"] = "yes", host+" "+port
		replica, _, log := enginetest.StartTLS(t, config)
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

// TestForwardWithTLS checks that a server forwards over TLS, and only to a server with a
// certificate of an authority that it knows: by its parameters, or from the system.
func TestForwardWithTLS(t *testing.T) {
	p, other := enginetest.NewPKI(t, t.TempDir(), "ca"), enginetest.NewPKI(t, t.TempDir(), "ca")
	p.Issue("server", new(x509.Certificate))
	other.Issue("server", new(x509.Certificate))
	config := p.Config()
	config["tls-auth-clients"] = "yes"
	target, addr, _ := enginetest.StartTLS(t, config)
	for name, config := range map[string]map[string]string{"": p.Config(), "unknown authority": other.Config(), "certificate": {}} {
		source, err := server.New(server.Options{Config: config})
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		if _, err := source.Do(t.Context(), "CONFIG", "SET", "forward-to", "rediss://"+addr); err != nil {
			t.Fatal(err)
		}
		_, err = source.Do(t.Context(), "SET", "a", "1")
		switch {
		case name != "":
			if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "the command has not run") {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil:
			t.Error(err)
		default:
			if v, err := target.Do(t.Context(), "GET", "a"); v != "1" {
				t.Errorf("the target has %v, %v", v, err)
			}
		}
	}
}
