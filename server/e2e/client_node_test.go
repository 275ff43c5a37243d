package e2e

import (
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
	"github.com/zsetd/zsetd/server/e2e/program"
)

// Client libraries of other languages. The programs in testdata/node and
// testdata/python verify the replies; each runs against an empty server. "make test"
// installs the libraries, with .ci/clients, where possible; these tests install
// nothing.

// TestNode runs the programs of the Node.js libraries.
func TestNode(t *testing.T) {
	parallel(t)
	modules := program.NodeModules(t)
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

// TestPython runs the program of redis-py.
func TestPython(t *testing.T) {
	parallel(t)
	runProgram(t, connect, nil, python(t), filepath.Join("testdata", "python", "redis_py.py"))
}

type dialing func(testing.TB, ...server.Options) func(...func(*redis.Options)) *redis.Client

// runProgram runs a program against an empty server. The program fails if a reply is
// wrong.
func runProgram(t *testing.T, dial dialing, env []string, interpreter, file string) {
	// go test runs a test again, and does not use its cached result, if a file has
	// changed that the test process itself has opened or examined.
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

// python returns a Python that has redis-py, or skips the test.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import redis").Run() == nil {
			return name
		}
	}
	t.Skip("no python3 with redis-py: run .ci/clients, which installs it with apt")
	return ""
}

// connectCluster is connect for a cluster of one node. The node announces its address,
// because ioredis, unlike other clients, cannot handle CLUSTER SLOTS without one. A
// real Redis that has met no other node does not announce its address.
func connectCluster(t testing.TB, options ...server.Options) func(...func(*redis.Options)) *redis.Client {
	t.Helper()
	dial := connect(t, append(options, server.Options{Config: map[string]string{"cluster-enabled": "yes"}})...)
	c := dial()
	if !strings.Contains(must[string](t)(c.Info(t.Context(), "cluster").Result()), "cluster_enabled:1") {
		t.Skip("the server is not in cluster mode: -against needs a node that has all slots")
	}
	host, _, err := net.SplitHostPort(c.Options().Addr)
	if err != nil {
		t.Fatal(err)
	}
	must[string](t)(c.ConfigSet(t.Context(), "cluster-announce-ip", host).Result())
	return dial
}
