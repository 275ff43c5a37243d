package judge

import (
	"net"
	"os"
	"testing"
)

// Opponent returns what random commands and programs are compared with: "8.6" or "7.0" for Redis,
// "valkey" for Valkey 9. chosen is the one that a flag names, or "": the newest Redis that
// is there.
func Opponent(chosen string) string {
	switch {
	case chosen != "":
		return chosen
	case os.Getenv(NewerServers()[0].Variable) != "":
		return "8.6"
	}
	return Version
}

// StartOpponent starts an opponent.
func StartOpponent(t *testing.T, opponent string) (dial func() net.Conn) {
	t.Helper()
	if opponent == Version {
		t.Logf("compared with Redis %s: .ci/judges builds a newer one", Version)
		return Start(t)
	}
	n := NewerServers()[0]
	if opponent == "valkey" {
		n = NewerServers()[1]
	}
	path := n.Path(t)
	if path == "" {
		t.Skipf("%s is not installed: zsetd is not compared with it", n.Name)
	}
	return StartProgram(t, path, "--enable-debug-command", "yes")
}
