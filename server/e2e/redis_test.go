package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest/port"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// needRedis skips the test where redis-server is not installed.
func needRedis(t *testing.T) {
	t.Helper()
	for _, name := range []string{"redis-server", "redis-cli"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(name, "is not installed")
		}
	}
	if *against != "" {
		t.Skip("the test starts its own servers")
	}
}

// startRedis starts an empty redis-server on a free port and returns its address.
func startRedis(t *testing.T, args ...string) string {
	t.Helper()
	needRedis(t)
	return startProgram(t, "redis-server", args...)
}

// startProgram is startRedis for the program at a path.
func startProgram(t *testing.T, path string, args ...string) string {
	t.Helper()
	for range 5 { // another process may take the port
		if addr := tryRedis(t, path, args); addr != "" {
			return addr
		}
	}
	t.Fatal(path, "does not start")
	return ""
}

func tryRedis(t *testing.T, path string, args []string) string {
	t.Helper()
	port, bus := freePort(t), freePort(t)
	var log bytes.Buffer
	cmd := exec.Command(path, append([]string{
		"--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir(), "--cluster-port", bus, "--repl-diskless-sync-delay", "0",
	}, args...)...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait() // it is killed
		close(ended)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("%s %s:\n%s", path, port, log.String())
		}
	})
	addr := "127.0.0.1:" + port
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer c.Close()
	up := false
	wait.Until(t, path+" is ready", func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		// Another program may have opened the port first, and this one is about to end.
		info, err := c.InfoMap(context.Background(), "server").Result()
		up = err == nil && info["Server"]["process_id"] == fmt.Sprint(cmd.Process.Pid)
		return up
	})
	if !up {
		return ""
	}
	return addr
}

// freePort returns a port that is free now.
func freePort(t *testing.T) string {
	t.Helper()
	number, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// startCluster starts a Redis Cluster of three primaries, each with a replica, and
// returns the addresses of all nodes.
func startCluster(t *testing.T) []string { return startClusterOf(t, "redis-server", 15*time.Second) }

// startClusterOf is startCluster for the program at a path. A node that is silent for the
// timeout is away.
func startClusterOf(t *testing.T, path string, timeout time.Duration) []string {
	t.Helper()
	needRedis(t)
	var addrs []string
	for range 6 {
		addrs = append(addrs, startProgram(t, path, "--cluster-enabled", "yes", "--cluster-node-timeout", fmt.Sprint(timeout.Milliseconds())))
	}
	args := append([]string{"--cluster", "create"}, addrs...)
	redisCLI(t, append(args, "--cluster-replicas", "1", "--cluster-yes")...)
	for _, addr := range addrs {
		c := redis.NewClient(&redis.Options{Addr: addr})
		wait.Until(t, "the cluster is ready", func() bool {
			info, err := c.ClusterInfo(context.Background()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:6")
		})
		c.Close()
	}
	return addrs
}

// redisCLI runs redis-cli and returns its output.
func redisCLI(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "redis-cli", args...)
	cmd.Env = append(os.Environ(), "TERM=dumb")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// clusterClient returns a client of a cluster.
func clusterClient(t *testing.T, addrs []string) *redis.ClusterClient {
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ReadTimeout: 30 * time.Second, MaxRedirects: 16})
	t.Cleanup(func() { c.Close() })
	return c
}
