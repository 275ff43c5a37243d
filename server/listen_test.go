package server_test

import (
	"net"
	"testing"

	"github.com/zsetd/zsetd/server"
)

// TestListen checks that Listen opens all sockets or none.
func TestListen(t *testing.T) {
	t.Parallel()
	ls, err := server.Listen("127.0.0.1 -192.0.2.1", 0)
	if err != nil || len(ls) != 1 {
		t.Fatalf("%v, %v", ls, err)
	}
	defer ls[0].Close()
	port := ls[0].Addr().(*net.TCPAddr).Port
	for _, bind := range []string{"", "192.0.2.1", "-192.0.2.1", "127.0.0.1", "-127.0.0.1"} {
		if ls, err := server.Listen(bind, port); err == nil {
			t.Errorf("%q: %v", bind, ls)
		}
	}
}
