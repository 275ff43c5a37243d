package server

import (
	"strings"
	"testing"
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
		srv, err := New(Options{Config: map[string]string{"enable-debug-command": test.enabled}})
		if err != nil {
			t.Fatal(err)
		}
		s := srv.newSession(peer{fd: -1, addr: test.addr, unix: strings.HasPrefix(test.addr, "/"), wake: func() {}})
		_, out, _ := s.turn([][][]byte{{[]byte("DEBUG"), []byte("SLEEP"), []byte("0")}}, nil)
		if allowed := string(out) == "+OK\r\n"; allowed != test.allowed {
			t.Errorf("enable-debug-command %s, client at %q: %q", test.enabled, test.addr, out)
		}
		if !test.allowed && !strings.HasPrefix(string(out), "-ERR DEBUG command not allowed. If the enable-debug-command") {
			t.Errorf("%q", out)
		}
		s.close()
		srv.Close()
	}
}
