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
)

// stopEnv has the arguments of the child that is to be stopped.
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

// startChild starts zsetd in a process of its own and waits until it answers.
func startChild(t *testing.T, socket string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	child := exec.Command(os.Args[0], "-test.run=^TestStopChild$")
	child.Env = append(os.Environ(), stopEnv+"="+strings.Join(append([]string{"--port", "0", "--unixsocket", socket, "--dir", filepath.Dir(socket)}, args...), " "))
	child.Stdout, child.Stderr = &log, &log
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		child.Process.Kill()
		child.Wait()
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if nc, err := net.Dial("unix", socket); err == nil {
			fmt.Fprint(nc, "PING\r\n")
			line, _ := bufio.NewReader(nc).ReadString('\n')
			nc.Close()
			if line == "+PONG\r\n" {
				return child, &log
			}
		}
		if time.Now().After(end) {
			t.Fatalf("zsetd does not start: %s", log.Bytes())
		}
	}
}

// SIGTERM while clients write: the process ends within 5 seconds with status 0,
// and everything that was acknowledged is there after a restart.
func TestStopUnderLoad(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals to send")
	}
	for _, args := range []string{"", "--save 3600 1", "--appendonly yes --appendfsync always"} {
		dir, err := os.MkdirTemp("", "stop") // not t.TempDir: the path of a socket must be short
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
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
		time.Sleep(400 * time.Millisecond)
		start := time.Now()
		if err := child.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		err = child.Wait()
		took := time.Since(start)
		running.Wait()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, log.Bytes())
		}
		if took > 5*time.Second {
			t.Errorf("%q: it took %v to stop", args, took)
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
