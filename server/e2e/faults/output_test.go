//go:build linux

package faults

import (
	"bytes"
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
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// A subscriber that never reads is cut at its limit; it delays neither who publishes
// nor who listens, too, and costs no more than what waits for it.
func TestSubscriberThatNeverReads(t *testing.T) {
	const (
		messages = 200_000
		batch    = 20      // that are on their way at a time
		ahead    = 4 << 10 // messages that the good one may have left to read
	)
	message := strings.Repeat("m", 1000)
	run(t, all, func(t *testing.T, k kind) {
		p := k.start(t)
		bad, good := p.dial(), p.dial()
		defer bad.close()
		defer good.close()
		for _, c := range []*client{bad, good} {
			if got := c.do("SUBSCRIBE", "news").([]any); got[2] != int64(1) {
				t.Fatal(got)
			}
		}
		var heard atomic.Int64
		ended := make(chan error, 1)
		want := []byte("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1000\r\n" + message + "\r\n")
		go func() {
			b := make([]byte, len(want))
			for range messages {
				good.SetReadDeadline(time.Now().Add(patience))
				if _, err := io.ReadFull(good.r, b); err != nil {
					ended <- err
					return
				}
				if !bytes.Equal(b, want) {
					ended <- errors.New("another message")
					return
				}
				heard.Add(1)
			}
			ended <- nil
		}()
		publisher := p.dial()
		defer publisher.close()
		pipeline := bytes.Repeat(command("PUBLISH", "news", message), batch)
		p.watch()
		var took []time.Duration
		pr := startProbe()
		receivers := int64(2)
		for sent := 0; sent < messages; sent += batch {
			begin := time.Now()
			publisher.write(pipeline)
			for range batch {
				receivers = publisher.receive().(int64)
			}
			took = append(took, time.Since(begin))
			wait.Holds(func() bool { return int64(sent)-heard.Load() <= ahead || len(ended) > 0 })
		}
		delays := pr.stop()
		if err := <-ended; err != nil {
			t.Errorf("%s: the one that reads has got %d messages: %v", p.name, heard.Load(), err)
		}
		if p.ours() && receivers != 1 {
			t.Errorf("%s: the last message had %d receivers", p.name, receivers)
		}
		slices.Sort(took)
		late := quantile(delays, 0.99)
		atMost(p, "99th percentile of "+strconv.Itoa(batch)+" messages published", quantile(took, 0.99), 5*time.Millisecond+2*late)
		atMost(p, "peak of memory", p.peak(), 100<<20)
		t.Logf("%s: CPU %v; the probe was %v late", p.name, p.cpu(), late)
		p.cut(bad)
		p.alive()
	})
}

// cut fails the test unless a client of ours was disconnected for being too far
// behind, as the log and the counter say.
func (p *process) cut(c *client) {
	p.t.Helper()
	if !p.ours() {
		return
	}
	if !c.ended(patience) {
		p.t.Errorf("%s: the client is still connected", p.name)
	}
	if n := p.info("client_output_buffer_limit_disconnections"); n != "1" {
		p.t.Errorf("%s: %s disconnections", p.name, n)
	}
	if !strings.Contains(p.log(), "output queue exceeds a limit") {
		p.t.Errorf("%s: the log does not say so: %s", p.name, p.log())
	}
}

// connects runs a test with plain connections to servers of some kinds, and with TLS
// to one of ours.
func connects(t *testing.T, kinds []kind, args []string, test func(p *process, dial func() *client)) {
	binary.Path(t)
	run(t, kinds, func(t *testing.T, k kind) {
		t.Parallel() // for most of the time is spent waiting
		p := k.start(t, forKind(k, args)...)
		test(p, p.dial)
	})
	t.Run("tls", func(t *testing.T) {
		t.Parallel()
		cert, key, pool := selfSigned(t)
		port := freePort(t)
		p := zsetdEpoll.start(t, append(args, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")...)
		test(p, func() *client {
			nc, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{RootCAs: pool, ServerName: "localhost"})
			if err != nil {
				t.Fatal(err)
			}
			return p.client(nc)
		})
	})
}

// forKind leaves out what says to a server of ours when a client has stopped reading:
// redis-server is as it is by default.
func forKind(k kind, args []string) []string {
	if k.ours() {
		return args
	}
	return nil
}

// selfSigned makes a certificate for this machine.
func selfSigned(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	der, err1 := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	keyDER, err2 := x509.MarshalPKCS8PrivateKey(private)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	err3 := os.WriteFile(cert, certPEM, 0o600)
	err4 := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return cert, key, pool
}

// A client that sends a pipeline and never reads costs 32 MB and some buffers, and is
// cut when it has taken nothing for as long as the soft limit says. Redis lets all
// replies wait; it is given a tenth.
func TestClientThatNeverReads(t *testing.T) {
	const gets = 40_000
	value := strings.Repeat("v", 60_000)
	connects(t, all, []string{"--client-output-buffer-limit", "normal 1gb 1mb 2"}, func(p *process, dial func() *client) {
		t := p.t
		setter := p.dial()
		defer setter.close()
		setter.want("OK", "SET", "k", value)
		c := dial()
		defer c.close()
		n := gets
		if !p.ours() {
			n /= 10
		}
		p.watch()
		before := p.rss()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			c.SetWriteDeadline(time.Now().Add(patience))
			c.Write(bytes.Repeat(command("GET", "k"), n)) // fails when the client is cut
		}()
		if !p.ours() {
			<-sent
			wait.Elapse(2 * time.Second)
		} else if !eventually(patience, func() bool { return p.info("client_output_buffer_limit_disconnections") == "1" }) {
			t.Errorf("%s: the client is not cut", p.name)
		}
		what := "more memory for " + strconv.Itoa(n) + " replies of 60 KB that no client reads"
		atMost(p, what, p.peak()-before, 64<<20)
		if p.ours() {
			<-sent
			p.cut(c)
		}
		p.alive()
	})
}

// One that listens with MONITOR and never reads is cut like a subscriber.
func TestMonitorThatNeverReads(t *testing.T) {
	value := strings.Repeat("v", 1000)
	run(t, both, func(t *testing.T, k kind) {
		p := k.start(t)
		bad := p.dial()
		defer bad.close()
		bad.want("OK", "MONITOR")
		p.watch()
		before := p.rss()
		c := p.dial()
		defer c.close()
		const batch = 1000
		pipeline := bytes.Repeat(command("SET", "k", value), batch)
		for range 60 {
			c.write(pipeline)
			for range batch {
				c.receive()
			}
		}
		atMost(p, "more memory for 60 MB of lines that no client reads", p.peak()-before, 64<<20)
		p.cut(bad)
		p.alive()
	})
}

// TestClientsThatTakeTheirTime checks that a client that reads slowly or pauses
// receives all its output, also if it has closed its sending side (Redis drops output
// that the socket does not take at once then).
func TestClientsThatTakeTheirTime(t *testing.T) {
	const (
		gets = 600
		size = 100_000
	)
	value := strings.Repeat("v", size)
	reply := []byte("$" + strconv.Itoa(size) + "\r\n" + value + "\r\n")
	// takes sends all and reads the replies, with pauses.
	takes := func(c *client, half bool, stop, slow time.Duration) error {
		go c.Write(bytes.Repeat(command("GET", "k"), gets))
		b := make([]byte, len(reply))
		for i := range gets {
			if i == gets/4 {
				if half {
					if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
						return err
					}
				}
				wait.Pace(stop)
			}
			wait.Pace(slow / gets)
			c.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.ReadFull(c.r, b); err != nil || !bytes.Equal(b, reply) {
				return fmt.Errorf("reply %d of %d: %v", i, gets, err)
			}
		}
		if !half {
			return nil
		}
		if n, err := io.Copy(io.Discard, c.r); n != 0 || err != nil {
			return fmt.Errorf("at the end: %d bytes, %v", n, err)
		}
		return nil
	}
	connects(t, both, []string{"--client-output-buffer-limit", "normal 1gb 1mb 4"}, func(p *process, dial func() *client) {
		setter := p.dial()
		defer setter.close()
		setter.want("OK", "SET", "k", value)
		ways := []struct {
			name       string
			half       bool
			stop, slow time.Duration
		}{
			{name: "stops for a second", stop: time.Second},
			{name: "reads slowly", slow: 6 * time.Second},
			{name: "sends no more", half: true, stop: 300 * time.Millisecond},
		}
		errs := make([]error, len(ways))
		var wg sync.WaitGroup
		for i, way := range ways {
			c := dial()
			defer c.close()
			wg.Go(func() { errs[i] = takes(c, way.half, way.stop, way.slow) })
		}
		wg.Wait()
		for i, err := range errs {
			if err != nil {
				p.t.Errorf("%s: a client that %s: %v", p.name, ways[i].name, err)
			}
		}
		if n := p.info("client_output_buffer_limit_disconnections"); n != "0" {
			p.t.Errorf("%s: %s disconnections", p.name, n)
		}
		// A blocked client that closes its sending side is disconnected.
		c := dial()
		c.send("BLPOP", "nothing", "0")
		if !eventually(patience, func() bool { return p.info("blocked_clients") == "1" }) {
			p.t.Fatalf("%s: no client is blocked", p.name)
		}
		c.Conn.(interface{ CloseWrite() error }).CloseWrite()
		if !c.ended(patience) || !eventually(patience, func() bool { return p.info("blocked_clients") == "0" }) {
			p.t.Errorf("%s: a blocked client that sends no more is still there", p.name)
		}
		p.alive()
	})
}

// TestManyClientsThatNeverRead checks that maxmemory-clients limits the memory of all
// clients together: the largest are disconnected.
func TestManyClientsThatNeverRead(t *testing.T) {
	const limit, clients = 40 << 20, 40
	value := strings.Repeat("v", 1_000_000)
	run(t, both, func(t *testing.T, k kind) {
		takes := func() (p *process, more int64) {
			p = k.start(t, "--maxmemory-clients", strconv.Itoa(limit))
			small := p.dial()
			defer small.close()
			small.want("OK", "SET", "k", value)
			p.watch()
			before := p.rss()
			for range clients {
				c := p.dial()
				defer c.close()
				c.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
				c.SetWriteDeadline(time.Now().Add(patience))
				if _, err := c.Write(bytes.Repeat(command("GET", "k"), 30)); err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
					t.Fatal(err)
				}
			}
			if !eventually(patience, func() bool { n, _ := strconv.Atoi(p.info("evicted_clients", small)); return n > 5 }) {
				t.Errorf("%s: %s clients were disconnected", p.name, p.info("evicted_clients"))
			}
			more = p.peak() - before
			t.Logf("%s: %s of %d clients were disconnected", p.name, p.info("evicted_clients"), clients)
			small.want("PONG", "PING") // the smallest is there
			p.alive()
			return p, more
		}
		// Their memory is garbage until it is collected, sometimes late, but not each time.
		const most = 4 * limit
		p, more := takes()
		for tries := 1; more > most && tries < 3; tries++ {
			p, more = takes()
		}
		atMost(p, "more memory for 1.2 GB of replies that no client reads", more, most)
	})
}
