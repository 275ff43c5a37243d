package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// ask sends commands to the server at a unix socket and returns its replies until
// it closes the connection.
func ask(t *testing.T, socket, commands string) string {
	t.Helper()
	nc, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprint(nc, commands)
	var b strings.Builder
	for buf := make([]byte, 4096); ; {
		n, err := nc.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}

// A second signal does not prevent the save: one that comes while the server waits
// for a client that does not read its replies.
func TestSecondSignal(t *testing.T) {
	for _, signals := range [][]os.Signal{
		{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGTERM},
		{os.Interrupt, os.Interrupt, os.Interrupt},
		{syscall.SIGTERM, os.Interrupt},
		{os.Interrupt, syscall.SIGTERM},
	} {
		dir := shortDir(t)
		log, socket := filepath.Join(dir, "log"), filepath.Join(dir, "s")
		child, _ := startChild(t, socket, "--save", "3600 1", "--logfile", log)
		nc, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		fmt.Fprintf(nc, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048576\r\n%s\r\n%s", strings.Repeat("x", 1<<20), strings.Repeat("GET k\r\n", 16))
		if _, err := nc.Read(make([]byte, 5+1<<16)); err != nil { // the reply to GET has begun
			t.Fatal(err)
		}
		for i, s := range signals {
			if err := child.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				untilLogged(t, log, "stopping")
			}
		}
		if err := child.Wait(); err != nil {
			t.Errorf("%v: %v", signals, err)
		}
		startChild(t, filepath.Join(dir, "s2"), "--save", "")
		if got, want := ask(t, filepath.Join(dir, "s2"), "STRLEN k\r\nQUIT\r\n"), ":1048576\r\n+OK\r\n"; got != want {
			t.Errorf("%v: the value is %q afterwards, want %q", signals, got, want)
		}
	}
}

// limitFileSize limits the size of the files of a process.
func limitFileSize(t *testing.T, pid int, size uint64) {
	t.Helper()
	limit := syscall.Rlimit{Cur: size, Max: ^uint64(0)}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		t.Skip("the size of files cannot be limited: ", errno)
	}
}

// A server that cannot save does not stop at a signal, as in Redis: it goes on, and
// stops at the next signal once it can save. With shutdown-on-sigterm force it
// stops with status 0 nevertheless.
func TestSignalWithoutRoom(t *testing.T) {
	for _, flags := range []string{"default", "force"} {
		dir := shortDir(t)
		log, socket := filepath.Join(dir, "log"), filepath.Join(dir, "s")
		child, _ := startChild(t, socket, "--save", "3600 1", "--logfile", log, "--shutdown-on-sigterm", flags)
		if got := ask(t, socket, "SET k v\r\nSET big "+strings.Repeat("x", 50_000)+"\r\nQUIT\r\n"); got != "+OK\r\n+OK\r\n+OK\r\n" {
			t.Fatal(got)
		}
		info, err := os.Stat(filepath.Join(dir, "zsetd.db"))
		if err != nil {
			t.Fatal(err)
		}
		limitFileSize(t, child.Process.Pid, uint64(info.Size())/2)
		if err := child.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		want := "$-1\r\n+OK\r\n"
		if flags == "default" {
			untilLogged(t, log, "shutdown canceled")
			if got := ask(t, socket, "GET k\r\nQUIT\r\n"); got != "$1\r\nv\r\n+OK\r\n" {
				t.Errorf("while the disk is full: %q", got)
			}
			limitFileSize(t, child.Process.Pid, ^uint64(0))
			child.Process.Signal(syscall.SIGTERM)
			want = "$1\r\nv\r\n+OK\r\n"
		}
		if err := child.Wait(); err != nil {
			b, _ := os.ReadFile(log)
			t.Errorf("%s: %v\n%s", flags, err, b)
		}
		startChild(t, filepath.Join(dir, "s2"), "--save", "")
		if got := ask(t, filepath.Join(dir, "s2"), "GET k\r\nQUIT\r\n"); got != want {
			t.Errorf("%s: afterwards %q, want %q", flags, got, want)
		}
	}
}

// runChild runs zsetd in a process of its own until that ends, and returns its
// status and its standard error.
func runChild(t *testing.T, args ...string) (status int, errs string) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestStopChild$")
	child.Env = append(os.Environ(), stopEnv+"="+strings.Join(args, " "))
	var b strings.Builder
	child.Stderr = &b
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(30*time.Second, func() { child.Process.Kill() })
	defer limit.Stop()
	child.Wait()
	return child.ProcessState.ExitCode(), b.String()
}

// With daemonize the command returns when the port is open, or with the error and the
// status of the start.
func TestDaemonize(t *testing.T) {
	dir := shortDir(t)
	socket := filepath.Join(dir, "s")
	args := []string{"--daemonize", "yes", "--port", "0", "--dir", dir, "--logfile", filepath.Join(dir, "log")}
	for range 3 {
		pid := filepath.Join(dir, "pid")
		if status, errs := runChild(t, append(args, "--unixsocket", socket, "--pidfile", pid)...); status != 0 || errs != "" {
			t.Fatalf("status %d: %s", status, errs)
		}
		for strings.HasPrefix(ask(t, socket, "INCR n\r\nQUIT\r\n"), "-LOADING") {
		}
		ask(t, socket, "SHUTDOWN\r\n")
		wait.Until(t, "it ends", func() bool { _, err := os.Stat(pid); return err != nil })
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := os.WriteFile(filepath.Join(dir, "foreign.db"), []byte(strings.Repeat("something else ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--bind", "127.0.0.1", "--port", port}, 1, "address already in use"},
		{[]string{"--unixsocket", socket, "--dbfilename", "foreign.db"}, 1, "not a zsetd snapshot"},
		{[]string{"--unixsocket", socket, "--maxclients", "many"}, 2, "maxclients"},
		{[]string{"--unixsocket", socket, "--aclfile", "/nowhere/acl"}, 2, "/nowhere/acl"},
		{[]string{"--unixsocket", socket, "--logfile", "/nowhere/log"}, 2, "/nowhere/log"},
		{[]string{"--unixsocket", "/nowhere/s"}, 1, "/nowhere/s"},
	} {
		if status, errs := runChild(t, append(args, test.args...)...); status != test.status || !strings.Contains(errs, test.says) {
			t.Errorf("%q: status %d, %q; want %d, %q", test.args, status, errs, test.status, test.says)
		}
	}
}
