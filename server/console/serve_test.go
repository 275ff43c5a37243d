package console_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// listen serves a console on the loopback and returns its address.
func listen(t *testing.T, c *console.Console, secure *tls.Config) string {
	t.Helper()
	ls, err := server.Listen("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Serve(ls[0], secure) }()
	t.Cleanup(func() {
		c.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return ls[0].Addr().String()
}

// pipes is a listener of connections in memory, whose deadlines are those of a bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   atomic.Bool
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case nc := <-p.conns:
		return nc, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	if p.once.CompareAndSwap(false, true) {
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "@", Net: "unix"} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// TestSlowClients checks how long clients that send or read slowly keep a connection.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	const command = "POST /command HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	echo := fmt.Sprintf(`["ECHO","%s"]`, strings.Repeat("x", 1<<20))
	for name, one := range map[string]struct {
		at       string // the client sends it before it becomes slow
		drip     bool   // it sends a byte each second
		from, to time.Duration
	}{
		"silent":             {"", false, 9 * time.Second, 11 * time.Second},
		"a slow header":      {"POST /command HTTP/1.1\r\nA: ", true, 9 * time.Second, 11 * time.Second},
		"a slow body":        {command + "Content-Length: 1000\r\n\r\n[", true, 9 * time.Second, 12 * time.Second},
		"a body in chunks":   {command + "Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n", false, 9 * time.Second, 12 * time.Second},
		"no reader":          {fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", command, len(echo), echo), false, 59 * time.Second, 62 * time.Second},
		"a stream not read":  {"GET /events?channel=a HTTP/1.1\r\nHost: localhost\r\n\r\n", false, 9 * time.Second, 12 * time.Second},
		"an idle connection": {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", false, 49 * time.Second, 52 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := servertest.Run(t, server.Options{Config: map[string]string{"protected-mode": "no"}})
				c, err := console.New(srv.Server, console.Options{})
				if err != nil {
					t.Fatal(err)
				}
				l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
				done := make(chan error, 1)
				go func() { done <- c.Serve(l, nil) }()
				nc := l.dial()
				begin := time.Now()
				if _, err := io.WriteString(nc, one.at); err != nil {
					t.Fatal(err)
				}
				if name == "an idle connection" {
					res, err := http.ReadResponse(bufio.NewReader(nc), nil)
					if err != nil || res.StatusCode != 200 {
						t.Fatalf("%v, %v", res, err)
					}
				}
				ended := make(chan struct{})
				switch {
				case name == "no reader" || name == "a stream not read":
					synctest.Wait() // until the request has its client
					for srv.Stats().Clients > 0 && time.Since(begin) < time.Hour {
						time.Sleep(100 * time.Millisecond)
					}
					close(ended)
				default:
					go func() {
						io.Copy(io.Discard, nc)
						close(ended)
					}()
				}
				for one.drip {
					time.Sleep(time.Second)
					if _, err := io.WriteString(nc, "1"); err != nil {
						break
					}
				}
				<-ended
				if took := time.Since(begin); took < one.from || took > one.to {
					t.Errorf("it is served for %v", took)
				}
				nc.Close()
				c.Close()
				if err := <-done; !errors.Is(err, http.ErrServerClosed) {
					t.Errorf("Serve: %v", err)
				}
			})
		})
	}
}

// TestMaxClients checks that connections and streams above maxclients are refused, and that
// there is room again when one has ended.
func TestMaxClients(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, map[string]string{"maxclients": "200"})
	addr := listen(t, c, nil)
	var conns []net.Conn
	dial := func() bool {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, nc)
		t.Cleanup(func() { nc.Close() })
		fmt.Fprint(nc, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		nc.SetReadDeadline(time.Now().Add(time.Minute))
		res, err := http.ReadResponse(bufio.NewReader(nc), nil)
		return err == nil && res.StatusCode == 200
	}
	for i := range 200 {
		if !dial() {
			t.Fatalf("connection %d is refused", i)
		}
	}
	if dial() {
		t.Error("connection 201 is served")
	}
	conns[0].Close()
	wait.Until(t, "a connection is served", dial)
	srv.Must("CONFIG", "SET", "maxclients", "250")
	wait.Until(t, "more are served", dial)
}

// TestTLS checks that a console speaks TLS with the certificate of the server, and that its
// cookies are for HTTPS only.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: pkcs}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	srv, c := run(t, console.Options{}, map[string]string{"tls-cert-file": certFile, "tls-key-file": keyFile, "tls-auth-clients": "no", "http-tls": "yes", "requirepass": "pw"})
	secure, err := srv.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listen(t, c, secure))
	pool := x509.NewCertPool()
	cert, _ := x509.ParseCertificate(der)
	pool.AddCert(cert)
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       time.Minute,
	}
	defer client.CloseIdleConnections()
	res, err := client.Post("https://localhost:"+port+"/login", "application/x-www-form-urlencoded", strings.NewReader("password=pw"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if cookies := res.Cookies(); len(cookies) != 1 || !cookies[0].Secure || !cookies[0].HttpOnly {
		t.Errorf("status %d, cookies %v", res.StatusCode, cookies)
	}
	if res, err := http.Get("http://127.0.0.1:" + port + "/healthz"); err == nil {
		res.Body.Close()
		if res.StatusCode == 200 {
			t.Error("served without TLS")
		}
	}

	// A stream takes over a connection of HTTP/1.1.
	if nc, err := tls.Dial("tcp", "localhost:"+port, &tls.Config{RootCAs: pool}); err != nil {
		t.Error(err)
	} else {
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprint(nc, "GET /events?channel=eleven&password=pw HTTP/1.1\r\nHost: localhost\r\n\r\n")
		r := bufio.NewReader(nc)
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" || !res.Close || res.Header.Get("Date") == "" ||
			res.Header.Get("X-Content-Type-Options") != "nosniff" || res.Header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("a stream with HTTP/1.1: %v %v", res, err)
		}
		srv.Must("PUBLISH", "eleven", "x")
		for line := ""; err == nil && !strings.HasPrefix(line, "data: "); {
			line, err = r.ReadString('\n')
		}
		if err != nil {
			t.Error(err)
		}
	}
	// With HTTP/2, as browsers speak it, one connection carries many streams.
	dials := 0
	many := &http.Client{Timeout: time.Minute, Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials++
			return new(net.Dialer).DialContext(ctx, network, addr)
		}}}
	defer many.CloseIdleConnections()
	var streams []*bufio.Reader
	for range 20 {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "https://localhost:"+port+"/events?channel=news", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer pw")
		res, err := many.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.ProtoMajor != 2 || res.StatusCode != 200 {
			t.Fatalf("%s, status %d", res.Proto, res.StatusCode)
		}
		streams = append(streams, bufio.NewReader(res.Body))
	}
	srv.Must("PUBLISH", "news", "hello")
	for i, stream := range streams {
		for line := ""; !strings.Contains(line, `"message":"hello"`); {
			if line, err = stream.ReadString('\n'); err != nil {
				t.Fatalf("stream %d: %v", i, err)
			}
		}
	}
	if dials != 1 {
		t.Errorf("%d connections", dials)
	}
}
