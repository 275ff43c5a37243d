package server_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// judge is the version of Redis that is always to be had. Where a newer one is, random
// commands are compared with that: see opponent.
const judge = "7.0"

// opponent returns what random commands are compared with: "8.6" or "7.0" for Redis,
// "valkey" for Valkey 9.
func opponent() string {
	switch {
	case *differentialJudge != "":
		return *differentialJudge
	case os.Getenv(newerServers()[0].variable) != "":
		return "8.6"
	}
	return judge
}

// opponentKnows reports whether the server that random commands are compared with has what
// came with a version of Redis.
func opponentKnows(since string) bool {
	if opponent() == "valkey" {
		return since <= "7.2.9"
	}
	return since <= opponent()+".9"
}

// startRedis starts an empty redis-server with args, and returns a function that connects
// to it. It stops at the end of the test. Where redis-server is not installed the test
// is skipped; in CI it fails.
func startRedis(t *testing.T, args ...string) (dial func() net.Conn) {
	t.Helper()
	missing := t.Skipf
	if os.Getenv("CI") != "" {
		missing = t.Fatalf
	}
	path, err := exec.LookPath("redis-server")
	if err != nil {
		missing("redis-server %s is not installed: zsetd is not compared with it", judge)
	}
	out, err := exec.Command(path, "--version").Output()
	version := regexp.MustCompile(`v=([0-9]+\.[0-9]+)\.`).FindSubmatch(out)
	if err != nil || version == nil || string(version[1]) != judge {
		missing("%s is not version %s but %q: zsetd is not compared with it", path, judge, bytes.TrimSpace(out))
	}
	return startJudge(t, path, args...)
}

// startNewer is startRedis for Redis 8.6. Where it is not installed the test is skipped.
func startNewer(t *testing.T, args ...string) (dial func() net.Conn) {
	t.Helper()
	path := newerServers()[0].path(t)
	if path == "" {
		t.Skip("Redis 8.6 is not installed: zsetd is not compared with it")
	}
	return startJudge(t, path, args...)
}

// startCompared starts the redis-server that random commands are compared with: see
// -differential.judge.
func startCompared(t *testing.T) (dial func() net.Conn) {
	t.Helper()
	if opponent() == judge {
		t.Logf("compared with Redis %s: .ci/judges builds a newer one", judge)
		return startRedis(t)
	}
	n := newerServers()[0]
	if opponent() == "valkey" {
		n = newerServers()[1]
	}
	path := n.path(t)
	if path == "" {
		t.Skipf("%s is not installed: zsetd is not compared with it", n.name)
	}
	return startJudge(t, path, "--enable-debug-command", "yes")
}

// startJudge is startRedis for the program at path.
func startJudge(t *testing.T, path string, args ...string) (dial func() net.Conn) {
	t.Helper()
	// Not t.TempDir: the path of a socket must be short.
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	var log bytes.Buffer
	var file []string
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") { // a configuration file stands first
		file, args = args[:1], args[1:]
	}
	args = slices.Concat(file, []string{"--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir}, args)
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	listens := func() bool {
		nc, err := net.Dial("unix", socket)
		if err == nil {
			nc.Close()
		}
		return err == nil
	}
	if !wait.Holds(listens) {
		cmd.Process.Kill()
		cmd.Wait()
		t.Fatalf("redis-server does not start:\n%s", log.Bytes())
	}
	return func() net.Conn {
		nc, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		return nc
	}
}
