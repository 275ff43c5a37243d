package judge

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

	"github.com/zsetd/zsetd/server/servertest/port"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// Newer is a server that writes a newer format than the usual judge.
type Newer struct {
	Name     string // of its files in testdata/judges
	Variable string // environment variable with the path of the program
	Program  string // in the search path
	Version  string // field of INFO, and the prefix of its value
}

// NewerServers returns Redis 8 and Valkey 9.
func NewerServers() []Newer {
	return []Newer{
		{"redis8", "ZSETD_JUDGE_REDIS8", "redis-server", "redis_version:8."},
		{"valkey9", "ZSETD_JUDGE_VALKEY9", "valkey-server", "valkey_version:9."},
	}
}

// Path returns where the program is, "" if it is not installed.
func (n Newer) Path(t *testing.T) string {
	path := os.Getenv(n.Variable)
	if path == "" {
		found, err := exec.LookPath(n.Program)
		if err != nil {
			return ""
		}
		path = found
	}
	out, err := exec.Command(path, "--version").Output()
	_, major, _ := strings.Cut(n.Version, ":")
	if ok, _ := regexp.Match(`\bv=`+regexp.QuoteMeta(major), out); err != nil || !ok {
		if os.Getenv(n.Variable) != "" {
			t.Fatalf("%s is %s, which is not version %s but %q (%v)", n.Variable, path, major, out, err)
		}
		return ""
	}
	return path
}

// Start starts the server; without it the test is skipped.
func (n Newer) Start(t *testing.T, args ...string) *Peer {
	t.Helper()
	path := n.Path(t)
	if path == "" {
		t.Skipf("%s is not installed: set %s to the program", n.Name, n.Variable)
	}
	dial := StartProgram(t, path, append([]string{"--enable-debug-command", "yes"}, args...)...)
	return NewPeer(dial(), dial())
}

// Version is the version of Redis that is always to be had.
const Version = "7.0"

// Start starts an empty redis-server with args, and returns a function that connects
// to it. It stops at the end of the test. Where redis-server is not installed the test
// is skipped; in CI it fails.
func Start(t *testing.T, args ...string) (dial func() net.Conn) {
	t.Helper()
	missing := t.Skipf
	if os.Getenv("CI") != "" {
		missing = t.Fatalf
	}
	path, err := exec.LookPath("redis-server")
	if err != nil {
		missing("redis-server %s is not installed: zsetd is not compared with it", Version)
	}
	out, err := exec.Command(path, "--version").Output()
	version := regexp.MustCompile(`v=([0-9]+\.[0-9]+)\.`).FindSubmatch(out)
	if err != nil || version == nil || string(version[1]) != Version {
		missing("%s is not version %s but %q: zsetd is not compared with it", path, Version, bytes.TrimSpace(out))
	}
	return StartProgram(t, path, args...)
}

// StartNewer is Start for Redis 8.6. Where it is not installed the test is skipped.
func StartNewer(t *testing.T, args ...string) (dial func() net.Conn) {
	t.Helper()
	path := NewerServers()[0].Path(t)
	if path == "" {
		t.Skip("Redis 8.6 is not installed: zsetd is not compared with it")
	}
	return StartProgram(t, path, args...)
}

// StartProgram is Start for the program at path.
func StartProgram(t *testing.T, path string, args ...string) (dial func() net.Conn) {
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

// FreePort returns a port of the loopback on which nothing listens.
func FreePort(t *testing.T) string {
	t.Helper()
	number, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	return number
}
