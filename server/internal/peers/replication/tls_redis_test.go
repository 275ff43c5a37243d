package replication_test

import (
	"crypto/x509"
	"maps"
	"net"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// TestReplicationWithTLS checks that zsetd and redis-server follow each other over TLS,
// with certificates on both sides and the password of a user.
func TestReplicationWithTLS(t *testing.T) {
	p := enginetest.NewPKI(t, t.TempDir(), "ca")
	p.Issue("server", new(x509.Certificate))
	certificates := p.Config()
	config := map[string]string{"tls-replication": "yes", "tls-auth-clients": "yes", "masteruser": "copier", "masterauth": "wrong", "requirepass": "secret"}
	maps.Copy(config, certificates)
	zsetd := func(t *testing.T) *node {
		n := zsetdNode(t, config)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- n.srv.ServeTLS(l) }()
		t.Cleanup(func() {
			n.srv.Close()
			if err := <-served; err != server.ErrServerClosed {
				t.Error(err)
			}
		})
		n.addr = l.Addr().String()
		return n
	}
	redis := func(t *testing.T) *node {
		port := judge.FreePort(t)
		args := []string{"--port", "0", "--tls-port", port, "--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", noPings}
		for name, value := range config {
			args = append(args, "--"+name, value)
		}
		dial := judge.Start(t, args...)
		return &node{Peer: judge.NewPeer(dial(), dial()), t: t, addr: "127.0.0.1:" + port}
	}
	tests := map[string]func(*testing.T){}
	for name, kinds := range map[string][2]func(*testing.T) *node{"redis follows zsetd": {zsetd, redis}, "zsetd follows redis": {redis, zsetd}} {
		tests[name] = func(t *testing.T) {
			primary, replica := kinds[0](t), kinds[1](t)
			for _, n := range []*node{primary, replica} {
				n.run("AUTH secret", "ACL SETUSER copier on >copy +psync +replconf +ping")
			}
			primary.run(values()...)
			host, port, _ := net.SplitHostPort(primary.addr)
			replica.run("REPLICAOF " + host + " " + port)
			wait.Until(t, "the primary refuses the wrong password", func() bool { return primary.Info("acl_access_denied_auth") != "0" })
			replica.run("CONFIG SET masterauth copy")
			replica.linked()
			primary.same(replica)
			if got := primary.Do("CLIENT", "KILL", "TYPE", "replica"); got != ":1\r\n" {
				t.Error("killed", got)
			}
			primary.run("SET text missed")
			wait.Until(t, "the replica has continued", func() bool { return primary.Info("sync_partial_ok") == "1" })
			primary.same(replica)
			if full := primary.Info("sync_full"); full != "1" {
				t.Errorf("%s full synchronizations", full)
			}
			// The other way round, with the stream of before.
			replica.run("REPLICAOF NO ONE")
			primary.run("CONFIG SET masterauth copy")
			primary.follow(replica)
			replica.run("SET promoted 1")
			replica.same(primary)
			if full := replica.Info("sync_full"); full != "0" {
				t.Errorf("%s full synchronizations of the promoted replica", full)
			}
		}
	}
	atOnce(t, tests)
}
