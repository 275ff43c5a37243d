package server_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
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

// INFO has the port at which a program serves, not that of the configuration.
func TestServedPort(t *testing.T) {
	t.Parallel()
	srv := servertest.Run(t, server.Options{})
	client, err := net.Dial("tcp", srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	fmt.Fprint(client, "INFO server\r\nQUIT\r\n")
	_, port, _ := net.SplitHostPort(srv.Addr())
	info, err := io.ReadAll(client)
	for _, want := range []string{"tcp_port:" + port, "listener0:name=tcp,bind=127.0.0.1,bind=-::1,port=" + port} {
		if err != nil || !strings.Contains(string(info), "\r\n"+want+"\r\n") {
			t.Errorf("%v; INFO lacks %s: %s", err, want, info)
		}
	}
}
