package e2e

import (
	"net"
	"testing"

	"github.com/tidwall/redcon"
	"github.com/zsetd/zsetd/server"
)

// TestRedcon runs the tests of the four systems through a redcon server: connect
// recognizes its name.
func TestRedcon(t *testing.T) {
	if *against != "" {
		t.Skip("a server is given")
	}
	for name, test := range map[string]func(*testing.T){
		"LiveEvents":      TestLiveEvents,
		"FolderSixEvents": TestFolderSixEvents, "FolderConcurrent": TestFolderConcurrent,
		"Timeboxes":         TestTimeboxes,
		"WaitingListInTurn": TestWaitingListInTurn, "WaitingListCrowd": TestWaitingListCrowd,
	} {
		t.Run(name, test)
	}
}

// serveRedcon serves srv through a redcon server until the end of the test.
func serveRedcon(t testing.TB, srv *server.Server) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler, accept, closed := server.Redcon(srv)
	ended := make(chan error, 1)
	go func() { ended <- redcon.Serve(l, handler, accept, closed) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-ended; err != nil {
			t.Errorf("redcon: %v", err)
		}
	})
	return l.Addr().String()
}
