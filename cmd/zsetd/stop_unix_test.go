//go:build unix

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
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/port"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// untilLogged waits until the log file at path contains text.
func untilLogged(t *testing.T, path, text string) {
	t.Helper()
	var b []byte
	var err error
	if !wait.Holds(func() bool { b, err = os.ReadFile(path); return err == nil && strings.Contains(string(b), text) }) {
		t.Fatalf("the log does not say %q: %s, %v", text, b, err)
	}
}

// suspend stops a process until it receives SIGCONT, and returns when it has stopped.
func suspend(t *testing.T, child *exec.Cmd) {
	t.Helper()
	if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(child.Process.Pid, &status, syscall.WUNTRACED, nil)
		if err == nil && status.Stopped() {
			return
		}
		if err != syscall.EINTR {
			t.Fatalf("the process does not stop: %v, %v", status, err)
		}
	}
}

// A process that was stopped for a while (SIGSTOP) immediately does the work that
// fell due meanwhile, and nothing else.
func TestStoppedForAWhile(t *testing.T) {
	dir := shortDir(t)
	child, _ := startChild(t, filepath.Join(dir, "s"), "--notify-keyspace-events", "Ex")
	dial := func(send string) (net.Conn, *bufio.Reader) {
		nc, err := net.Dial("unix", filepath.Join(dir, "s"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		nc.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprint(nc, send)
		return nc, bufio.NewReader(nc)
	}
	_, events := dial("SUBSCRIBE __keyevent@0__:expired\r\n")
	for line := ""; line != ":1\r\n"; {
		var err error
		if line, err = events.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	_, blocked := dial("SET soon 1 PX 700\r\nSET later 1 EX 100\r\nBLPOP list 0.8\r\n")
	_, waiting := dial("BLPOP other 100\r\n")
	for range 2 {
		if _, err := blocked.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	suspend(t, child)
	wait.Elapse(1500 * time.Millisecond)
	if err := child.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if line, err := blocked.ReadString('\n'); line != "*-1\r\n" {
		t.Errorf("BLPOP: %q, %v", line, err)
	}
	took := time.Since(start)
	nc, r := dial("EXISTS soon\r\nEXISTS later\r\nRPUSH other x\r\n")
	for _, want := range []string{":0\r\n", ":1\r\n", ":1\r\n"} {
		if line, err := r.ReadString('\n'); line != want {
			t.Errorf("%q, %v; want %q", line, err, want)
		}
	}
	if line, err := waiting.ReadString('\n'); line != "*2\r\n" {
		t.Errorf("who waits longer has got %q, %v", line, err)
	}
	n := 0
	for n == 0 {
		line, err := events.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "soon\r\n" {
			n++
		}
	}
	t.Logf("BLPOP of 0.8 s ended after %v, 1.5 of which the process was stopped", took)
	fmt.Fprint(nc, "SHUTDOWN NOSAVE\r\n")
	child.Wait()
}

// Commands that have reached the machine when SIGTERM comes are run and answered,
// to the end of each pipeline, and are there after a restart; a client that goes on
// sending does not delay the stop.
func TestStopAnswersPipelines(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it needs to know what has reached the server")
	}
	for _, transport := range []string{"epoll", "net"} {
		dir := shortDir(t)
		child, log := startChild(t, filepath.Join(dir, "s1"), "--transport", transport)
		const clients, commands = 10, 1000 // few: the stop takes three seconds at most
		var conns [clients + 2]net.Conn
		for i := range conns {
			nc, err := net.Dial("unix", filepath.Join(dir, "s1"))
			if err != nil {
				t.Fatal(err)
			}
			conns[i] = nc
			defer conns[i].Close()
			conns[i].SetDeadline(time.Now().Add(60 * time.Second))
			fmt.Fprint(conns[i], "PING\r\n") // it is accepted
			if line, err := bufio.NewReaderSize(conns[i], 16).ReadString('\n'); line != "+PONG\r\n" {
				t.Fatal(line, err)
			}
		}
		blocked, endless := conns[clients], conns[clients+1]
		fmt.Fprint(blocked, "BLPOP nothing 0\r\n")
		go func() {
			for b := bytes.Repeat([]byte("PING\r\n"), 1000); ; {
				if _, err := endless.Write(b); err != nil {
					return
				}
			}
		}()
		if _, err := io.CopyN(io.Discard, endless, 10_000); err != nil { // the server is busy with it
			t.Fatal(err)
		}
		go io.Copy(io.Discard, endless)
		suspend(t, child)
		for i := range clients {
			var b []byte
			for n := range commands {
				b = fmt.Appendf(b, "RPUSH list:%d %d\r\n", i, n)
			}
			b = append(b, "SET half"...) // a part of a command
			if _, err := conns[i].Write(b); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		child.Process.Signal(syscall.SIGTERM)
		if err := child.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		for i := range clients {
			got, err := io.ReadAll(conns[i])
			if n := bytes.Count(got, []byte("\n")); n != commands {
				t.Errorf("%s: client %d: %d replies to %d commands, %v", transport, i, n, commands, err)
			}
		}
		if got, _ := io.ReadAll(blocked); len(got) > 0 {
			t.Errorf("%s: who was blocked has got %q", transport, got)
		}
		err := child.Wait()
		took := time.Since(start)
		if err != nil {
			t.Errorf("%s: %v after %v: %s", transport, err, took, log.Bytes())
		}
		child, _ = startChild(t, filepath.Join(dir, "s2"))
		nc, err := net.Dial("unix", filepath.Join(dir, "s2"))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		r := bufio.NewReader(nc)
		for i := range clients {
			fmt.Fprintf(nc, "LLEN list:%d\r\n", i)
			if line, err := r.ReadString('\n'); line != fmt.Sprintf(":%d\r\n", commands) {
				t.Errorf("%s: client %d: %q, %v are there", transport, i, line, err)
			}
		}
		fmt.Fprint(nc, "SHUTDOWN\r\n")
		child.Wait()
		t.Logf("%s: %d commands of %d clients answered; stopped in %v", transport, clients*commands, clients, took.Round(time.Millisecond))
	}
}

// Replies in transit arrive, even if their client reads them late and has sent more
// commands, which the server does not read.
func TestStopDeliversReplies(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it needs to know what has reached the server")
	}
	for _, transport := range []string{"epoll", "net"} {
		dir := shortDir(t)
		port, err := port.Free()
		if err != nil {
			t.Fatal(err)
		}
		child, log := startChild(t, filepath.Join(dir, "s"), "--transport", transport, "--port", port)
		nc, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(60 * time.Second))
		const gets = 500
		fmt.Fprintf(nc, "SET k %s\r\n", strings.Repeat("v", 1000))
		var ok [5]byte
		if _, err := io.ReadFull(nc, ok[:]); err != nil { // connections that are not accepted yet get no replies
			t.Fatal(err)
		}
		suspend(t, child)
		nc.Write(bytes.Repeat([]byte("GET k\r\n"), gets))
		child.Process.Signal(syscall.SIGTERM)
		if err := child.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); wait.Pace(time.Millisecond) {
			fmt.Fprint(nc, "PING\r\n") // fails when the server is gone
		}
		got, err := io.ReadAll(nc)
		if n := bytes.Count(got, []byte("$1000\r\nvvv")); n != gets {
			t.Errorf("%s: %d replies to %d commands, %v", transport, n, gets, err)
		}
		if err := child.Wait(); err != nil {
			t.Errorf("%s: %v: %s", transport, err, log.Bytes())
		}
	}
}

// A log without a reader does not end the server.
func TestLogReaderGone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	dir := shortDir(t)
	child := startChildTo(t, w, filepath.Join(dir, "s"))
	r.Close()
	nc, err := net.Dial("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprint(nc, "SET k v\r\nSHUTDOWN\r\n") // which is logged
	io.ReadAll(nc)
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}

// A pidfile that cannot be written is a warning. It changes neither the exit status
// nor the report of data that were not saved.
func TestNoPIDFile(t *testing.T) {
	dir := shortDir(t)
	child, log := startChild(t, filepath.Join(dir, "s"), "--pidfile", filepath.Join(dir, "nowhere", "pid"))
	child.Process.Signal(syscall.SIGTERM)
	if err := child.Wait(); err != nil || !strings.Contains(log.String(), "cannot write the pidfile") {
		t.Errorf("%v\n%s", err, log.Bytes())
	}
}

// The log goes on in a new file when another program has renamed it, or removed it.
func TestLogRotated(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, "log")
	child, _ := startChild(t, filepath.Join(dir, "s"), "--logfile", path)
	untilLogged(t, path, "Ready to accept connections") // it may serve before
	lines := func(path string) int {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		return bytes.Count(b, []byte("\n"))
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	before := lines(path + ".1")
	child.Process.Signal(syscall.SIGTERM)
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	if old, now := lines(path+".1"), lines(path); old != before || now == 0 {
		t.Errorf("%d lines, then %d in the old file and %d in the new one", before, old, now)
	}

	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	os.Remove(path)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Write([]byte("where no file can be made\n")); err != nil {
		t.Error(err)
	}
	os.Remove(path)
	if _, err := l.Write([]byte("where one can\n")); err != nil || lines(path) != 1 {
		t.Error(err, lines(path))
	}
}
