package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// untilLogged waits until the log file at path has a line with some text.
func untilLogged(t *testing.T, path, text string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		b, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(b), text) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the log does not say %q: %s, %v", text, b, err)
		}
	}
}

// ask sends commands to the server at a unix socket and returns what it replies
// until it closes the connection.
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

// A second signal does not keep the server from saving: one that comes while it
// waits for a client that does not take its replies.
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

// limitFileSize sets the size beyond which files of a process do not grow.
func limitFileSize(t *testing.T, pid int, size uint64) {
	t.Helper()
	limit := syscall.Rlimit{Cur: size, Max: ^uint64(0)}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		t.Skip("the size of files cannot be limited: ", errno)
	}
}

// A server that cannot save does not stop at a signal, as in Redis: it goes on, and
// stops at the next signal once it can save. With shutdown-on-sigterm force it stops
// with status 0 all the same.
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
			untilLogged(t, log, "the server goes on")
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
