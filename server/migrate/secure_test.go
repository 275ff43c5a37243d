package migrate

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server"
)

// TestSecure checks a move between servers that speak TLS only, by users of their own, who are
// not the default user and may not administer the servers.
func TestSecure(t *testing.T) {
	dir := t.TempDir()
	some := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1
	pair := some.TLS.Certificates[0]
	some.Close()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certFile, keyFile := write("server.crt", "CERTIFICATE", pair.Certificate[0]), write("server.key", "PRIVATE KEY", key)
	t.Setenv("SSL_CERT_FILE", certFile)
	start := func(user string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv, err := server.New(server.Options{TLSListeners: []net.Listener{l}, Config: map[string]string{
			"port": "0", "tls-cert-file": certFile, "tls-key-file": keyFile, "tls-auth-clients": "no", "repl-diskless-sync-delay": "0",
			"user": "default off\n" + user,
		}})
		if err != nil {
			t.Fatal(err)
		}
		var serving sync.WaitGroup
		serving.Go(func() { _ = srv.ListenAndServe() }) // Close ends it
		t.Cleanup(func() {
			srv.Close()
			serving.Wait()
		})
		return l.Addr().String()
	}
	const commands = " on >s%cret ~* &* +@all -acl -config -debug -shutdown -replicaof -module -save"
	source, target := start("from"+commands), start("to"+commands)
	client := func(addr, user string) *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: addr, Username: user, Password: "s%cret", TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}})
		t.Cleanup(func() { c.Close() })
		return c
	}
	here, there := client(source, "from"), client(target, "to")
	must(t, here, "ZADDEX", "z", "EX", 1000, "MEMBERS", 1, 1, "m")
	o := moveOf(t, source, target)
	o.From, o.To = endpoint(t, "rediss://from:s%25cret@"+source), endpoint(t, "rediss://to:s%25cret@"+target)
	wrong := o
	wrong.To = endpoint(t, "rediss://to:wrong@"+target)
	if err := run(t, wrong); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("with a wrong password the move ends with %v", err)
	}
	wrong.To = endpoint(t, "redis://to:s%25cret@"+target)
	if err := run(t, wrong); err == nil {
		t.Error("a move without TLS succeeds")
	}
	if r, err := Survey(t.Context(), o, 0); err != nil || len(r.Obstacles) > 0 {
		t.Errorf("a dry run: %+v, %v", r, err)
	}
	f := follow(t, o)
	must(t, here, "RPUSH", "list", "a")
	f.cutOver()
	if got, want := text(t, there, "list")+text(t, there, "z"), "[a]"+text(t, here, "z"); got != want {
		t.Errorf("the target has %s, want %s", got, want)
	}
}
