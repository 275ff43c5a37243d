package server

import (
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"
)

// TestDebugAllowed checks that the permission to DEBUG depends on the address of the
// client, before any other check.
func TestDebugAllowed(t *testing.T) {
	for _, test := range []struct {
		enabled, addr string
		allowed       bool
	}{
		{"no", "127.0.0.1:5000", false},
		{"no", "", false},
		{"yes", "203.0.113.1:5000", true},
		{"local", "127.0.0.1:5000", true},
		{"local", "[::1]:5000", true},
		{"local", "", true}, // Do
		{"local", "/run/zsetd.sock:0", true},
		{"local", "203.0.113.1:5000", false},
		{"local", "[2001:db8::1]:5000", false},
	} {
		srv, err := newEngine(Options{Config: map[string]string{"enable-debug-command": test.enabled}})
		if err != nil {
			t.Fatal(err)
		}
		s := srv.NewSession(engine.Peer{FD: -1, Addr: test.addr, Unix: strings.HasPrefix(test.addr, "/"), Wake: func() {}})
		_, out, _ := s.Turn([][][]byte{{[]byte("DEBUG"), []byte("SLEEP"), []byte("0")}}, nil)
		if allowed := string(out) == "+OK\r\n"; allowed != test.allowed {
			t.Errorf("enable-debug-command %s, client at %q: %q", test.enabled, test.addr, out)
		}
		if !test.allowed && !strings.HasPrefix(string(out), "-ERR DEBUG command not allowed. If the enable-debug-command") {
			t.Errorf("%q", out)
		}
		s.Close()
		srv.Close()
	}
}
