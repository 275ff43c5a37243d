package migrate

import (
	"net"
	"os/exec"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest/port"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// startRedis starts a redis-server and returns its address.
func startRedis(t *testing.T, args ...string) string {
	t.Helper()
	path, _ := exec.LookPath("redis-server")
	return startProgram(t, path, args...)
}

// startProgram is startRedis for the program at a path; "" skips the test.
func startProgram(t *testing.T, path string, args ...string) string {
	t.Helper()
	free, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	return startProgramAt(t, path, free, t.TempDir(), args...)
}

// startProgramAt is startProgram with a port and a folder.
func startProgramAt(t *testing.T, path, free, dir string, args ...string) string {
	t.Helper()
	if path == "" {
		t.Skip("there is no such server")
	}
	cmd := exec.Command(path, append([]string{"--port", free, "--bind", "127.0.0.1", "--save", "", "--dir", dir, "--repl-diskless-sync-delay", "0"}, args...)...)
	cmd.Stdout = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	addr := net.JoinHostPort("127.0.0.1", free)
	wait.Until(t, "the redis-server listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return addr
}

// clientOf returns a client that is closed with the test.
func clientOf(t *testing.T, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	t.Cleanup(func() { c.Close() })
	return c
}
