package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/config"
)

// TestUnixSocketFile checks that a unix socket has its permissions from the first instant,
// that a stale socket is replaced, and that a socket with a listener and a regular file
// are not.
func TestUnixSocketFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions of sockets differ on this system")
	}
	dir, err := os.MkdirTemp("", "socket") // not t.TempDir: the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	mode := func() os.FileMode {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	for _, perm := range []string{"700", "770", "777", "600"} {
		l, err := listenUnix(path, perm)
		if err != nil {
			t.Fatal(err)
		}
		if got := mode().String(); got != map[string]string{
			"700": "-rwx------", "770": "-rwxrwx---", "777": "-rwxrwxrwx", "600": "-rw-------",
		}[perm] {
			t.Errorf("unixsocketperm %s: %s", perm, got)
		}
		if _, err := listenUnix(path, perm); err == nil || !strings.Contains(err.Error(), "another process listens on it") {
			t.Errorf("a socket with a listener is replaced: %v", err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false) // as of a server that was killed
		l.Close()
	}
	withPrivateUmask(func() {
		l, err := net.Listen("unix", path+"2")
		if err != nil {
			t.Error(err)
			return
		}
		defer l.Close()
		if info, err := os.Stat(path + "2"); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may connect before the permissions are set: %v, %v", info.Mode(), err)
		}
	})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(path, "0"); err == nil {
		t.Error("a regular file is replaced by a socket")
	}
}

// TestListenPort checks the words of bind: addresses of either version, all addresses, and those
// that may be missing.
func TestListenPort(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	used := int64(taken.Addr().(*net.TCPAddr).Port)
	for _, test := range []struct {
		bind string
		port int64
		want []string // addresses without the port
		fail string
	}{
		{"127.0.0.1", 0, []string{"127.0.0.1"}, ""},
		{"  127.0.0.1   127.0.0.2 ", 0, []string{"127.0.0.1", "127.0.0.2"}, ""},
		{"*", 0, []string{"0.0.0.0"}, ""},
		{"127.0.0.1 -192.0.2.1", 0, []string{"127.0.0.1"}, ""},
		{"-192.0.2.1", 0, nil, ""},
		{"127.0.0.1 192.0.2.1 127.0.0.2", 0, []string{"127.0.0.1"}, "listen tcp4 192.0.2.1:0: "},
		{"-127.0.0.1", used, nil, "address already in use"},
		{"127.0.0.2 127.0.0.1", used, []string{"127.0.0.2"}, "address already in use"},
		{"", 0, nil, ""},
	} {
		ls, err := ListenPort(test.bind, test.port)
		var got []string
		for _, l := range ls {
			addr := l.Addr().(*net.TCPAddr)
			got = append(got, addr.IP.String())
			if test.port != 0 && int64(addr.Port) != test.port {
				t.Errorf("%q: port %d", test.bind, addr.Port)
			}
			l.Close()
		}
		if !slices.Equal(got, test.want) || (err == nil) != (test.fail == "") || err != nil && !strings.Contains(err.Error(), test.fail) {
			t.Errorf("%q: %q, %v", test.bind, got, err)
		}
	}
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		l.Close()
		for _, bind := range []string{"::1", "-::1", "::*"} {
			ls, err := ListenPort(bind, 0)
			if err != nil || len(ls) != 1 || ls[0].Addr().(*net.TCPAddr).IP.To4() != nil {
				t.Errorf("%q: %v, %v", bind, ls, err)
			}
			for _, l := range ls {
				l.Close()
			}
		}
	}
}

// TestCheckListening checks what is said where there is nothing to listen on.
func TestCheckListening(t *testing.T) {
	const noPort = "zsetd: nothing to listen on: port and tls-port are 0 and unixsocket is empty"
	const noBind = "zsetd: nothing to listen on: bind is empty and unixsocket is empty"
	for _, test := range []struct {
		port, tls  int64
		bind, unix string
		want       string
	}{
		{1, 0, "x", "", ""}, {0, 1, "x", "", ""}, {1, 1, "x", "", ""}, {0, 0, "x", "", noPort}, {0, 0, "", "", noPort}, {1, 0, " ", "", noBind}, {0, 1, "", "", noBind}, {0, 0, "", "/s", ""}, {1, 0, "", "/s", ""},
	} {
		c := config.Settings{Port: test.port, TLSPort: test.tls, Bind: test.bind, Unixsocket: test.unix}
		got := ""
		if err := new(Transport).checkListening(&c); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
		for _, handed := range []*listening{{handed: []net.Listener{nil}}, {handedTLS: []net.Listener{nil}}} {
			tr := Transport{listening: listening{handed: handed.handed, handedTLS: handed.handedTLS}}
			if err := tr.checkListening(&c); err != nil {
				t.Errorf("%+v, with open sockets: %v", test, err)
			}
		}
	}
	for _, l := range []net.Listener{nil, (*net.TCPListener)(nil), tlsListener{}, tlsListener{Listener: (*net.TCPListener)(nil)}} {
		if !isNil(l) {
			t.Errorf("%T is a listener", l)
		}
	}
	s := serve(t, [2]string{"net", "tcp"}, nil, "")
	if isNil(fixedListener{}) {
		t.Error("a listener that is no pointer is none")
	}
	if err := s.Serve(nil); err == nil || err.Error() != "zsetd: the listener to serve is nil" {
		t.Error(err)
	}
	if err := s.Relisten(&config.Settings{}); err == nil || err.Error() != "the server was not started with ListenAndServe" {
		t.Error(err)
	}
	if _, err := New(s.engine, Options{TLSListeners: []net.Listener{nil}}); err == nil || err.Error() != "zsetd: a listener of the options is nil" {
		t.Error(err)
	}
}

// fixedListener is a listener that is no pointer.
type fixedListener struct{ net.Listener }

// TestListenAndServe checks the life of the configured listeners: opened once, replaced where
// their address changes, kept where that fails, and closed at the end.
func TestListenAndServe(t *testing.T) {
	held, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := int64(free.Addr().(*net.TCPAddr).Port)
	free.Close()
	socket := filepath.Join(t.TempDir(), "s")
	s := serve(t, [2]string{"net", "pipe"}, map[string]string{"port": fmt.Sprint(port), "bind": "127.0.0.1", "unixsocket": socket}, "")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Listening(ended); err != context.Canceled {
		t.Errorf("Listening before: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- s.ListenAndServe() }()
	if err := s.Listening(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.ListenAndServe(); err == nil || err.Error() != "zsetd: ListenAndServe runs already" {
		t.Error(err)
	}
	ping := func(network, addr string) bool {
		nc, err := net.Dial(network, addr)
		if err != nil {
			return false
		}
		c := &client{nc, t, nil}
		defer c.Close()
		c.send("PING\r\n")
		b := make([]byte, 7)
		n, _ := c.Read(b)
		return string(b[:n]) == "+PONG\r\n"
	}
	at := func(port int64) string { return fmt.Sprint("127.0.0.1:", port) }
	s.until("it listens", func() bool {
		s.listening.Lock()
		defer s.listening.Unlock()
		return s.listening.serve != nil
	})
	if !ping("tcp", at(port)) || !ping("unix", socket) || s.engine.Transports.TCPPort.Load() != port {
		t.Errorf("not served, or the port is %d", s.engine.Transports.TCPPort.Load())
	}
	next := s.engine.Config
	next.Port = int64(held.Addr().(*net.TCPAddr).Port)
	if err := s.Relisten(&next); err == nil || !strings.Contains(err.Error(), "in use") || !ping("tcp", at(port)) {
		t.Errorf("a port that is taken: %v", err)
	}
	next.Port, next.Bind = port, "-192.0.2.1"
	if err := s.Relisten(&next); err == nil || err.Error() != "no address of bind is available" || !ping("tcp", at(port)) {
		t.Errorf("an address that is not there: %v", err)
	}
	next.Bind = "127.0.0.1 127.0.0.2"
	if err := s.Relisten(&next); err != nil || !ping("tcp", at(port)) || !ping("tcp", fmt.Sprint("127.0.0.2:", port)) {
		t.Errorf("another address: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, engine.ErrServerClosed) {
		t.Error(err)
	}
	if ping("tcp", at(port)) || ping("unix", socket) {
		t.Error("it listens after Close")
	}
	if err := s.Listening(t.Context()); !errors.Is(err, engine.ErrServerClosed) {
		t.Error(err)
	}
	if err := s.ListenAndServe(); !errors.Is(err, engine.ErrServerClosed) {
		t.Error(err)
	}
}

// listenerAt is a listener that has only an address.
type listenerAt struct {
	net.Listener
	addr net.Addr
}

func (l listenerAt) Addr() net.Addr { return l.addr }

// TestOpenWarning checks when a listener that serves everyone is warned of.
func TestOpenWarning(t *testing.T) {
	const port = 6379
	for _, test := range []struct {
		addr   net.Addr
		config map[string]string
		warns  bool
	}{
		{&net.TCPAddr{IP: net.IPv6zero, Port: port}, map[string]string{"protected-mode": "no"}, true},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: port}, map[string]string{"protected-mode": "no"}, true},
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, map[string]string{"protected-mode": "no"}, false},
		{&net.UnixAddr{Net: "unix", Name: "s"}, map[string]string{"protected-mode": "no"}, false},
		{&net.TCPAddr{IP: net.IPv6zero, Port: port}, nil, false},
		{&net.TCPAddr{IP: net.IPv6zero, Port: port}, map[string]string{"protected-mode": "no", "requirepass": "secret"}, false},
	} {
		var log strings.Builder
		tr := newTransport(t, engine.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Config: test.config})
		tr.logListening(listenerAt{addr: test.addr})
		if got := strings.Contains(log.String(), "level=WARN msg=\"clients of all networks are served without a password"); got != test.warns {
			t.Errorf("%v, %v: %s", test.addr, test.config, log.String())
		}
	}
}
