package server_test

import (
	"net"
	"os"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// opponent returns what random commands are compared with: "8.6" or "7.0" for Redis,
// "valkey" for Valkey 9.
func opponent() string {
	switch {
	case *differentialJudge != "":
		return *differentialJudge
	case os.Getenv(judge.NewerServers()[0].Variable) != "":
		return "8.6"
	}
	return judge.Version
}

// opponentKnows reports whether the server that random commands are compared with has what
// came with a version of Redis.
func opponentKnows(since string) bool {
	if opponent() == "valkey" {
		return since <= "7.2.9"
	}
	return since <= opponent()+".9"
}

// startCompared starts the redis-server that random commands are compared with: see
// -differential.judge.
func startCompared(t *testing.T) (dial func() net.Conn) {
	t.Helper()
	if opponent() == judge.Version {
		t.Logf("compared with Redis %s: .ci/judges builds a newer one", judge.Version)
		return judge.Start(t)
	}
	n := judge.NewerServers()[0]
	if opponent() == "valkey" {
		n = judge.NewerServers()[1]
	}
	path := n.Path(t)
	if path == "" {
		t.Skipf("%s is not installed: zsetd is not compared with it", n.Name)
	}
	return judge.StartProgram(t, path, "--enable-debug-command", "yes")
}
