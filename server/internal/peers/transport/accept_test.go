package transport

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// newTransport returns the transport of an engine without commands. The test's end
// closes it.
func newTransport(t *testing.T, o engine.Options) (tr *Transport) {
	t.Helper()
	_, err := engine.New(o, engine.Parts{
		Libraries: func(*engine.Engine, *keyspace.Keyspace, engine.LibraryLimits) engine.Functions {
			return engine.Functions{}
		},
		Transport: func(e *engine.Engine) (_ engine.Transport, err error) {
			tr, err = New(e, Options{})
			return tr, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// TestAwaitLeave checks that all listeners that wait for a file descriptor continue as
// soon as a client has closed, and not only at the timeout.
func TestAwaitLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, engine.Options{})
		client, err := tr.Dialer()(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		var waiting atomic.Int64
		waiting.Store(3)
		for range waiting.Load() {
			go func() {
				tr.awaitLeave(time.Hour)
				waiting.Add(-1)
			}()
		}
		synctest.Wait()
		if n := waiting.Load(); n != 3 {
			t.Fatalf("got %d waiting listeners before a client has closed", n)
		}
		client.Close()
		synctest.Wait() // which lets no time pass
		if n := waiting.Load(); n != 0 {
			t.Errorf("a client has closed, and %d listeners still wait", n)
		}
	})
}

// TestAcceptFailed checks what is logged of clients that cannot be accepted: a line at once, and
// no more than one in acceptLogTime, with the number of failures since the last.
func TestAcceptFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		tr := newTransport(t, engine.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		logged := func(want ...string) {
			t.Helper()
			var got []string
			for line := range strings.Lines(log.String()) {
				if _, rest, is := strings.Cut(strings.TrimSpace(line), `msg="cannot accept a connection" `); is {
					got = append(got, rest)
				}
			}
			if log.Reset(); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		}
		for range 3 {
			tr.acceptFailed(errors.New("too many files"))
		}
		logged(`error="too many files" times=1 clients=0`)
		time.Sleep(acceptLogTime - 1)
		tr.acceptFailed(errors.New("too many files"))
		logged()
		time.Sleep(time.Nanosecond)
		if _, err := tr.Dialer()(t.Context(), "", ""); err != nil {
			t.Fatal(err)
		}
		tr.acceptFailed(errors.New("too many files"))
		logged(`error="too many files" times=4 clients=1`)
	})
}

// TestTLSHandshakeTime checks how long a client may take for the handshake.
func TestTLSHandshakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, engine.Options{})
		for _, some := range []string{"", "\x16\x03\x01\x00\x05"} {
			client, server := net.Pipe()
			start := time.Now()
			tr.serveConn(tls.Server(server, new(tls.Config)))
			if _, err := io.WriteString(client, some); err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, client)
			if took := time.Since(start); took != handshakeTimeout {
				t.Errorf("after %q a client may be silent for %v", some, took)
			}
		}
	})
}
