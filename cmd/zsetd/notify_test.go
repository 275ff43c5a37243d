//go:build unix

package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// systemd receives notifications when the server serves and when it stops.
func TestNotify(t *testing.T) {
	dir := shortDir(t)
	addr := &net.UnixAddr{Name: filepath.Join(dir, "n"), Net: "unixgram"}
	l, err := net.ListenUnixgram("unixgram", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.SetReadDeadline(time.Now().Add(time.Minute))
	t.Setenv("NOTIFY_SOCKET", addr.Name)
	next := func() string {
		t.Helper()
		b := make([]byte, 1<<10)
		n, err := l.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	var out bytes.Buffer
	status := make(chan int)
	go func() {
		status <- run([]string{"--port", "0", "--unixsocket", filepath.Join(dir, "s"), "--dir", dir, "--supervised", "auto"}, &out, &out)
	}()
	if got := next(); got != isReady {
		t.Errorf("at the start %q", got)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != isLeaving {
		t.Errorf("at the end %q", got)
	}
	if got := <-status; got != 0 {
		t.Errorf("status %d: %s", got, out.Bytes())
	}
}
