package transport_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/rerun"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// TestTLSConfigAsRedis checks that CONFIG GET, SET and REWRITE of TLS parameters have the
// results of a real Redis.
func TestTLSConfigAsRedis(t *testing.T) {
	rerun.SkipRace(t)
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "both"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*pem.Block{"a.crt": {Type: "CERTIFICATE", Bytes: der}, "a.key": {Type: "PRIVATE KEY", Bytes: keyDER}}
	for name, block := range files {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	crt := filepath.Join(dir, "a.crt")
	port := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		return port
	}
	config := map[string]string{"tls-cert-file": crt, "tls-key-file": filepath.Join(dir, "a.key"), "tls-ca-cert-file": crt, "bind": "127.0.0.1"}
	var lists [2][]string // the lines of each file after CONFIG REWRITE
	var conns [2]*bufio.ReadWriter
	for i := range conns {
		file := filepath.Join(dir, fmt.Sprint(i, ".conf"))
		config["tls-port"] = port()
		var text strings.Builder
		for _, name := range []string{"bind", "tls-port", "tls-cert-file", "tls-key-file", "tls-ca-cert-file"} {
			fmt.Fprintln(&text, name, config[name])
		}
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		var nc net.Conn
		if i == 0 {
			nc = judge.Start(t, file)()
		} else {
			values, err := server.ReadArgs([]string{file, "--port", "0"})
			if err != nil {
				t.Fatal(err)
			}
			srv, err := server.New(server.Options{Config: values, ConfigFile: file})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() { done <- srv.ListenAndServe() }()
			defer func() { srv.Close(); <-done }()
			if nc, err = srv.Dialer()(t.Context(), "", ""); err != nil {
				t.Fatal(err)
			}
		}
		nc.SetDeadline(time.Now().Add(time.Minute))
		conns[i] = bufio.NewReadWriter(bufio.NewReader(nc), bufio.NewWriter(nc))
	}
	do := func(i int, line string) string {
		t.Helper()
		conns[i].WriteString(line + "\r\n")
		conns[i].Flush()
		reply, err := protocol.DecodeFrom(conns[i].Reader)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return fmt.Sprint(reply)
	}
	wait.Until(t, "zsetd listens", func() bool { return do(1, "CONFIG SET tls-port "+config["tls-port"]) == "OK" })
	for _, line := range []string{
		"CONFIG GET tls-cert-file",
		"CONFIG GET tls-auth-clients",
		"CONFIG SET tls-cert-file /nowhere",
		"CONFIG SET tls-key-file /nowhere tls-cert-file /nowhere",
		"CONFIG SET timeout 3 tls-ciphers NONE-SUCH",
		"CONFIG SET tls-ciphersuites NONE_SUCH",
		"CONFIG SET tls-protocols SSLv2",
		"CONFIG SET tls-protocols TLSv1.2,TLSv1.3",
		"CONFIG SET tls-protocols \"TLSv1.2 tlsv1.3\"",
		"CONFIG SET tls-ca-cert-file /nowhere",
		"CONFIG SET tls-ca-cert-file \"\"",
		"CONFIG SET tls-auth-clients perhaps",
		"CONFIG SET tls-auth-clients OPTIONAL",
		"CONFIG SET tls-session-cache-timeout -1",
		"CONFIG SET tls-session-caching maybe",
		"CONFIG SET tls-session-caching no tls-session-cache-timeout 200 tls-session-cache-size 10",
		"CONFIG SET tls-ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256 tls-prefer-server-ciphers yes",
		"CONFIG SET tls-port 65536",
		"CONFIG SET tls-key-file-pass \"a b\"",
		"CONFIG SET tls-port 0",
		"CONFIG SET tls-cert-file /nowhere",
		"CONFIG SET tls-cert-file " + crt,
		"CONFIG GET tls-key-file-pass",
		"CONFIG GET timeout",
		"CONFIG REWRITE",
	} {
		if theirs, ours := do(0, line), do(1, line); theirs != ours {
			t.Errorf("%s: %s, Redis %s", line, ours, theirs)
		}
	}
	for i := range lists {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i, ".conf")))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "tls-") {
				lists[i] = append(lists[i], line)
			}
		}
	}
	theirs, ours := lists[0], lists[1]
	for _, line := range theirs {
		if !strings.Contains(strings.Join(ours, ""), line) {
			t.Errorf("CONFIG REWRITE does not write %q: %q", line, ours)
		}
	}
	if len(theirs) != len(ours) {
		t.Errorf("CONFIG REWRITE writes %q, Redis %q", ours, theirs)
	}
}
