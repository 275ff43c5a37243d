package e2e

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zsetd/zsetd/server"
)

// The clients of other languages. Their programs, in testdata/node and
// testdata/python, say themselves what they expect; each is run against an
// empty server. "make test" installs the libraries, with .ci/clients, where it
// can; nothing is installed here.

func TestNode(t *testing.T) {
	parallel(t)
	modules := nodeModules(t)
	for _, program := range []string{"ioredis", "ioredis_cluster", "node_redis", "bullmq", "connect_redis"} {
		t.Run(program, func(t *testing.T) {
			parallel(t)
			dial := connect
			if strings.HasSuffix(program, "_cluster") {
				dial = connectCluster
			}
			runProgram(t, dial, []string{"NODE_PATH=" + modules}, "node", filepath.Join("testdata", "node", program+".js"))
		})
	}
}

func TestPython(t *testing.T) {
	parallel(t)
	runProgram(t, connect, nil, python(t), filepath.Join("testdata", "python", "redis_py.py"))
}

type dialing func(testing.TB, ...server.Options) func(...func(*redis.Options)) *redis.Client

// runProgram runs a program of a client against an empty server.
func runProgram(t *testing.T, dial dialing, env []string, interpreter, file string) {
	// The test is run again, rather than its result taken from go test's cache,
	// when one of the files has changed: for that they must be looked at here.
	for _, f := range []string{file, filepath.Join(filepath.Dir(file), "common.js")} {
		os.Stat(f)
	}
	addr := dial(t)().Options().Addr
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, interpreter, file, addr)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", file, err, out)
	}
}

// nodeModules returns the folder in which .ci/clients has installed the
// libraries of node, or skips the test.
func nodeModules(t *testing.T) string {
	t.Helper()
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Skip(err)
		}
		cache = filepath.Join(home, ".cache")
	}
	folder := filepath.Join(cache, "zsetd-clients")
	installed, _ := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	want, err := os.ReadFile(filepath.Join("testdata", "node", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(installed, want) {
		t.Skip("the clients of node are not installed: .ci/clients does it, with npm")
	}
	return filepath.Join(folder, "node_modules")
}

// python returns a Python that has redis-py, or skips the test.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import redis").Run() == nil {
			return name
		}
	}
	t.Skip("no python3 with redis-py: .ci/clients installs it, with apt")
	return ""
}

// connectCluster is connect for a cluster of one node. That says where it is
// because ioredis, unlike other clients, does not know what to do with a node
// that does not; a real Redis that has met no other node does not either.
func connectCluster(t testing.TB, options ...server.Options) func(...func(*redis.Options)) *redis.Client {
	t.Helper()
	dial := connect(t, append(options, server.Options{Config: map[string]string{"cluster-enabled": "yes"}})...)
	c := dial()
	if !strings.Contains(must[string](t)(c.Info(t.Context(), "cluster").Result()), "cluster_enabled:1") {
		t.Skip("the server is no cluster: give -against one that is, and has all slots")
	}
	host, _, err := net.SplitHostPort(c.Options().Addr)
	if err != nil {
		t.Fatal(err)
	}
	must[string](t)(c.ConfigSet(t.Context(), "cluster-announce-ip", host).Result())
	return dial
}
