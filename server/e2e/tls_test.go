package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
)

// certificate creates a self-signed certificate, and returns it and the files of the
// certificate and its key.
func certificate(t *testing.T) (cert tls.Certificate, crt, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, IsCA: true, BasicConstraintsValid: true,
		DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, leaf, leaf, &private.PublicKey, private))
	keyDER := must[[]byte](t)(x509.MarshalPKCS8PrivateKey(private))
	dir := t.TempDir()
	crt, key = filepath.Join(dir, "a.crt"), filepath.Join(dir, "a.key")
	for path, block := range map[string]*pem.Block{crt: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return must[tls.Certificate](t)(tls.LoadX509KeyPair(crt, key)), crt, key
}

// TestGoRedisTLS checks go-redis over TLS with client certificates, as TestGoRedis does
// over TCP.
func TestGoRedisTLS(t *testing.T) {
	if *against != "" {
		t.Skip("needs a server with the certificate of this test")
	}
	t.Parallel()
	cert, crt, key := certificate(t)
	serve := func(clustered string) net.Listener {
		srv := servertest.Run(t, server.Options{Config: map[string]string{
			"tls-cert-file": crt, "tls-key-file": key, "tls-ca-cert-file": crt, "cluster-enabled": clustered,
		}})
		l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
		served := make(chan error, 1)
		go func() { served <- srv.ServeTLS(l) }()
		t.Cleanup(func() {
			srv.Close()
			if err := <-served; err != server.ErrServerClosed {
				t.Error(err)
			}
		})
		return l
	}
	l := serve("no")
	authorities := x509.NewCertPool()
	authorities.AddCert(cert.Leaf)
	config := &tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{cert}, ServerName: "localhost"}
	ctx := context.Background()
	for _, protocol := range []int{2, 3} {
		c := redis.NewClient(&redis.Options{Addr: l.Addr().String(), TLSConfig: config, Protocol: protocol, MaxRetries: -1})
		defer c.Close()
		must[string](t)(c.FlushAll(ctx).Result())
		goRedisTransactions(ctx, t, c)
		goRedisMessages(ctx, t, c)
		goRedisBlocking(ctx, t, c)
		goRedisScripts(ctx, t, c)
	}
	anonymous := redis.NewClient(&redis.Options{Addr: l.Addr().String(), TLSConfig: &tls.Config{RootCAs: authorities, ServerName: "localhost"}, MaxRetries: -1})
	defer anonymous.Close()
	if err := anonymous.Ping(ctx).Err(); err == nil {
		t.Error("a client without a certificate is served")
	}
	// The cluster client connects over TLS to the addresses of CLUSTER SLOTS.
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{serve("yes").Addr().String()}, TLSConfig: config})
	defer cluster.Close()
	for _, k := range []string{"a", "b", "c"} {
		must[string](t)(cluster.Set(ctx, k, k, 0).Result())
		if got := must[string](t)(cluster.Get(ctx, k).Result()); got != k {
			t.Errorf("GET %s: got %q, want %q", k, got, k)
		}
	}
}
