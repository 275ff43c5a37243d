package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/port"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

func TestPing(t *testing.T) {
	dir := t.TempDir()
	closedPort, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "other"} {
		writeCertificate(t, filepath.Join(dir, name))
	}
	srv, err := server.New(server.Options{Config: map[string]string{
		"port": "0", "unixsocket": filepath.Join(dir, "s"), "requirepass": "secret",
		"tls-cert-file": filepath.Join(dir, "one.crt"), "tls-key-file": filepath.Join(dir, "one.key"),
		"tls-ca-cert-file": filepath.Join(dir, "one.crt"), "tls-auth-clients": "optional",
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	listen := func() (net.Listener, string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l, strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	}
	plain, port := listen()
	secure, tlsPort := listen()
	silent, silentPort := listen() // replies immediately that it loads, like a server with much to read
	defer silent.Close()
	go func() {
		for {
			nc, err := silent.Accept()
			if err != nil {
				return
			}
			nc.Write([]byte("-LOADING Redis is loading the dataset in memory\r\n"))
			nc.Close()
		}
	}()
	go srv.ListenAndServe()
	go srv.Serve(plain)
	go srv.ServeTLS(secure)
	if err := srv.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	tlsArgs := func(name string) string {
		return "--port 0 --tls-port " + tlsPort + " --tls-cert-file " + filepath.Join(dir, name+".crt") + " --tls-key-file " + filepath.Join(dir, name+".key")
	}
	for _, test := range []struct {
		args   string
		status int
		says   string
	}{
		{"--port " + port, 0, "zsetd: ready"},
		{"--port " + port + " --bind * -::*", 0, "zsetd: ready"},
		{"--port 0 --unixsocket " + filepath.Join(dir, "s"), 0, "zsetd: ready"},
		{tlsArgs("one"), 0, "zsetd: ready"},
		{tlsArgs("other"), 1, "no answer"},
		{tlsArgs("none"), 1, "none.crt: no such file"},
		{"--port 0 --tls-port " + tlsPort, 0, "zsetd: ready"}, // no certificate for clients
		{"--port " + silentPort, 1, "not ready: -LOADING"},
		{"--port " + closedPort, 1, "no answer: "},
		{"--port 0", 1, "no unixsocket, port or tls-port is configured"},
		{"--port x", 2, "argument couldn't be parsed"},
	} {
		var out bytes.Buffer
		status := -1
		wait.Holds(func() bool { // the socket may not exist yet
			out.Reset()
			status = run(append([]string{"ping"}, strings.Fields(test.args)...), &out, &out)
			return status == 0 || test.status != 0
		})
		if status != test.status || !strings.Contains(out.String(), test.says) {
			t.Errorf("ping %s: status %d, want %d; it says %q, not %q", test.args, status, test.status, out.String(), test.says)
		}
	}
}

// writeCertificate makes a self-signed certificate and its key.
func writeCertificate(t *testing.T, path string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		ending, kind string
		b            []byte
	}{{".crt", "CERTIFICATE", der}, {".key", "PRIVATE KEY", private}} {
		if err := os.WriteFile(path+f.ending, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.b}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
