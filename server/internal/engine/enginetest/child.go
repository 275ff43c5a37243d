package enginetest

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/persist"
)

// ChildEnv is the environment variable with the configuration of ServeChild: the path of the file,
// that of the socket, and parameters with their values, separated by "|".
const ChildEnv = "ZSETD_CRASH"

// ServeChild serves until the process is killed. Without ChildEnv it skips the test.
func ServeChild(t *testing.T) {
	t.Helper()
	words := strings.Split(os.Getenv(ChildEnv), "|")
	if len(words) < 3 {
		t.Skip("another test runs it in a process of its own")
	}
	config := map[string]string{"auto-aof-rewrite-min-size": "200kb"}
	for i := 2; i+1 < len(words); i += 2 {
		config[words[i]] = words[i+1]
	}
	srv, err := New(engine.Options{File: words[0], Config: config})
	if err != nil {
		t.Fatal(err)
	}
	// Journals and waste are dropped all the time, so that this is killed, too.
	srv.InTurn(func() {
		srv.Keeper.Limits = persist.Limits{Pending: 64 << 20, Small: 200 << 10, Waste: 1 << 20, Cleared: 1000}
	})
	l, err := net.Listen("unix", words[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Fatal(srv.Serve(l))
}
