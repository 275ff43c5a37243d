//go:build linux

package faults

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestFewDescriptors checks that a server with 64 descriptors lowers maxclients, logs
// it, and sends an error to further clients without using CPU, and that a new client
// is served at once when another has left.
func TestFewDescriptors(t *testing.T) {
	const descriptors, dials, most = 64, 120, 32
	run(t, all, func(t *testing.T, k kind) {
		p := k.startAs(t, []string{"sh", "-c", `ulimit -n 64; exec "$@"`, "sh"})
		const said = "maxclients=32 wanted="
		if k.ours() && !strings.Contains(p.log(), said) {
			t.Errorf("%s: the log does not say %q: %s", p.name, said, p.log())
		}
		first := p.dial()
		defer first.close()
		if got := first.do("CONFIG", "GET", "maxclients"); len(got.([]any)) != 2 || got.([]any)[1] != "32" {
			t.Errorf("%s: maxclients is %v", p.name, got)
		}
		if got, _ := first.do("CONFIG", "SET", "maxclients", "33").(errorReply); !strings.HasSuffix(string(got), "try with 32") {
			t.Errorf("%s: 33 clients: %q", p.name, got)
		}
		p.watch()
		begin := time.Now()
		var served []*client
		refused := 0
		for range dials - 1 {
			c := p.dial()
			defer c.close()
			if len(served) < most-1 {
				c.want("PONG", "PING")
				served = append(served, c)
				continue
			}
			if got := c.receive(); got != errorReply("ERR max number of clients reached") {
				t.Fatalf("%s: %v", p.name, got)
			}
			if !c.ended(patience) {
				t.Fatalf("%s: a client who is refused is not left alone", p.name)
			}
			refused++
		}
		wait.Elapse(3*time.Second - time.Since(begin))
		t.Logf("%s: %d are served, %d refused", p.name, len(served)+1, refused)
		atMost(p, "CPU in 3 s", p.cpu(), 100*time.Millisecond)
		for _, c := range served {
			c.want("PONG", "PING")
		}
		for i := range 5 {
			if i%2 == 0 {
				served[i].close()
			} else {
				served[i].dies()
			}
			begin := time.Now()
			for {
				c := p.dial()
				defer c.close()
				c.send("PING")
				if v, err := c.tryReceive(patience); err == nil && v == "PONG" {
					break
				}
				if time.Since(begin) > patience {
					t.Fatalf("%s: the next client is never served", p.name)
				}
			}
			atMost(p, "the next client is served after", time.Since(begin), time.Second+lateness(t))
		}
	})
}

// limitDescriptors makes room for so many more descriptors than the server has open.
func (p *process) limitDescriptors(room int) {
	p.t.Helper()
	n := uint64(p.descriptors() + room)
	limit := syscall.Rlimit{Cur: n, Max: n}
	if _, _, e := syscall.Syscall6(syscall.SYS_PRLIMIT64, uintptr(p.pid()), syscall.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0); e != 0 {
		p.t.Skip("prlimit: ", e)
	}
}

// certificate writes a certificate and its key to files.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "zsetd"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret)
}

// TestNoDescriptors checks that clients wait when no descriptor is left, that the
// clients of each listener are served eventually while those of another come and go,
// and that the log does not fill.
func TestNoDescriptors(t *testing.T) {
	run(t, both, func(t *testing.T, k kind) {
		dir, err := os.MkdirTemp("", "faults-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		cert, key := certificate(t, dir)
		socket, securePort := filepath.Join(dir, "s"), freePort(t)
		p := k.start(t, "--unixsocket", socket, "--tls-port", securePort, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
		p.alive()
		p.limitDescriptors(8)
		ways := map[string]func() (net.Conn, error){
			"plain": func() (net.Conn, error) { return net.Dial("tcp", p.addr) },
			"unix":  func() (net.Conn, error) { return net.Dial("unix", socket) },
			"TLS": func() (net.Conn, error) {
				nc, err := net.Dial("tcp", "127.0.0.1:"+securePort)
				if err != nil {
					return nil, err
				}
				return tls.Client(nc, &tls.Config{InsecureSkipVerify: true}), nil
			},
		}
		stop := make(chan struct{})
		var wg sync.WaitGroup
		var failed atomic.Int64
		// Clients who come and go, of each sort in turn, are many more than there is room for.
		for busy := range ways {
			served := map[string]*atomic.Int64{}
			stop = make(chan struct{})
			visit := func(way string, n *atomic.Int64) {
				nc, err := ways[way]()
				if err != nil {
					failed.Add(1)
					return
				}
				defer nc.Close()
				nc.SetDeadline(time.Now().Add(patience))
				io.WriteString(nc, "PING\r\n")
				if _, err := io.ReadFull(nc, make([]byte, len("+PONG\r\n"))); err != nil {
					failed.Add(1)
					return
				}
				n.Add(1)
				wait.Pace(time.Millisecond)
			}
			for way := range ways {
				n := new(atomic.Int64)
				served[way] = n
				many := 2
				if way == busy {
					many = 30
				}
				for range many {
					wg.Go(func() {
						for {
							select {
							case <-stop:
								return
							default:
								visit(way, n)
							}
						}
					})
				}
			}
			enough := func() bool {
				for _, n := range served {
					if n.Load() < 5 {
						return false
					}
				}
				return true
			}
			wait.Pace(200 * time.Millisecond)
			if !eventually(patience, enough) {
				for way, n := range served {
					t.Errorf("%s: while many are %s, %d %s clients were served", p.name, busy, n.Load(), way)
				}
			}
			close(stop)
			wg.Wait()
			if n := failed.Swap(0); n > 0 {
				t.Errorf("%s: while many are %s, %d clients failed", p.name, busy, n)
			}
		}
		p.watch()
		var waiting []net.Conn
		for range 20 {
			nc, err := ways["plain"]()
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			waiting = append(waiting, nc)
		}
		wait.Elapse(time.Second)
		atMost(p, "CPU in a second of waiting for descriptors", p.cpu(), 50*time.Millisecond)
		for _, nc := range waiting {
			nc.Close()
		}
		p.alive()
		if n := strings.Count(p.log(), "cannot accept a connection"); n == 0 || n > 10 {
			t.Errorf("%s: the log says %d times that descriptors are short", p.name, n)
		}
	})
}
