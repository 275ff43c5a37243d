package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// stopEnv holds the arguments of the child process that a test stops.
const stopEnv = "ZSETD_STOP"

// TestStopChild is not a test but the command that TestStopUnderLoad stops.
func TestStopChild(t *testing.T) {
	args := os.Getenv(stopEnv)
	if args == "" {
		t.Skip("it is run by TestStopUnderLoad")
	}
	if os.Getenv("LISTEN_PID") == "self" {
		os.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	}
	os.Exit(run(strings.Split(args, " "), os.Stdout, os.Stderr))
}

// shortDir makes a directory for the test. t.TempDir may have a longer path than a
// unix socket can.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "zsetd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// startChild starts zsetd in a process of its own and waits until it answers.
func startChild(t *testing.T, socket string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	return startChildTo(t, &log, socket, args...), &log
}

// startChildTo is startChild with a log of the caller's.
func startChildTo(t *testing.T, log io.Writer, socket string, args ...string) *exec.Cmd {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestStopChild$")
	child.Env = append(os.Environ(), stopEnv+"="+strings.Join(append([]string{"--port", "0", "--unixsocket", socket, "--dir", filepath.Dir(socket)}, args...), " "))
	child.Stdout, child.Stderr = log, log
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		child.Process.Kill()
		child.Wait()
	})
	serves := func() bool {
		nc, err := net.Dial("unix", socket)
		if err != nil {
			return false
		}
		defer nc.Close()
		fmt.Fprint(nc, "PING\r\n")
		line, _ := bufio.NewReader(nc).ReadString('\n')
		return line == "+PONG\r\n"
	}
	if !wait.Holds(serves) {
		t.Fatalf("zsetd does not start: %v", log)
	}
	return child
}

// SIGTERM while clients write: the process ends with status 0, and all acknowledged
// writes are there after a restart. TestStop of server/e2e/faults measures how soon
// it ends.
func TestStopUnderLoad(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals to send")
	}
	for _, args := range []string{"", "--save 3600 1", "--appendonly yes --appendfsync always"} {
		dir := shortDir(t)
		child, log := startChild(t, filepath.Join(dir, "s1"), strings.Fields(args)...)
		const clients = 8
		var sent, acked [clients]int
		var running sync.WaitGroup
		for i := range clients {
			running.Go(func() {
				nc, err := net.Dial("unix", filepath.Join(dir, "s1"))
				if err != nil {
					t.Error(err)
					return
				}
				defer nc.Close()
				r := bufio.NewReader(nc)
				for {
					var b []byte
					for range 20 {
						sent[i]++
						b = fmt.Appendf(b, "RPUSH list:%d %d\r\n", i, sent[i])
					}
					if _, err := nc.Write(b); err != nil {
						return
					}
					for range 20 {
						line, err := r.ReadString('\n')
						if err != nil {
							return
						}
						if line != fmt.Sprintf(":%d\r\n", acked[i]+1) {
							t.Errorf("reply %q after %d", line, acked[i])
							return
						}
						acked[i]++
					}
				}
			})
		}
		wait.Pace(400 * time.Millisecond)
		start := time.Now()
		if err := child.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		err := child.Wait()
		took := time.Since(start)
		running.Wait()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, log.Bytes())
		}

		child, log = startChild(t, filepath.Join(dir, "s2"))
		nc, err := net.Dial("unix", filepath.Join(dir, "s2"))
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		r := bufio.NewReader(nc)
		for i := range clients {
			fmt.Fprintf(nc, "LLEN list:%d\r\n", i)
			var n int
			if _, err := fmt.Fscanf(r, ":%d\r\n", &n); err != nil {
				t.Fatal(err)
			}
			if n < acked[i] || n > sent[i] {
				t.Errorf("%q: client %d: %d acknowledged, %d sent, %d there", args, i, acked[i], sent[i], n)
			}
			total += acked[i]
		}
		fmt.Fprint(nc, "SHUTDOWN\r\n")
		if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
			t.Errorf("SHUTDOWN: %q, %v", rest, err)
		}
		nc.Close()
		if err := child.Wait(); err != nil {
			t.Errorf("%q: after SHUTDOWN: %v\n%s", args, err, log.Bytes())
		}
		t.Logf("%q: %d commands acknowledged, none lost; stopped in %v", args, total, took.Round(time.Millisecond))
	}
}

// A panic ends the process with a status of its own, after the client has received
// an error; the file has the state of the last save.
func TestPanicStatus(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the child is reached by a unix socket")
	}
	dir := shortDir(t)
	child, log := startChild(t, filepath.Join(dir, "s1"), "--enable-debug-command", "local", "--save", "3600 1000")
	nc, err := net.Dial("unix", filepath.Join(dir, "s1"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	fmt.Fprint(nc, "SET a 1\r\nSAVE\r\nSET b 1\r\nDEBUG PANIC\r\nSET c 1\r\n")
	got, _ := io.ReadAll(nc)
	if want := "+OK\r\n+OK\r\n+OK\r\n-ERR internal error"; !strings.HasPrefix(string(got), want) {
		t.Errorf("the client has got %q", got)
	}
	child.Wait()
	if status := child.ProcessState.ExitCode(); status != panicStatus || !strings.Contains(log.String(), "\ngithub.com/zsetd/zsetd/server/internal/commands/admin.debugPanic(") {
		t.Errorf("status %d, want %d; log: %s", status, panicStatus, log.Bytes())
	}
	child, _ = startChild(t, filepath.Join(dir, "s2"))
	nc, err = net.Dial("unix", filepath.Join(dir, "s2"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	fmt.Fprint(nc, "MGET a b c\r\nSHUTDOWN\r\n")
	if got, _ := io.ReadAll(nc); string(got) != "*3\r\n$1\r\n1\r\n$-1\r\n$-1\r\n" {
		t.Errorf("afterwards the keys are %q", got)
	}
	child.Wait()
}
