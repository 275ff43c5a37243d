package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A server without descriptors for more clients serves those that it has, and the
// next ones when some have left. TestFewDescriptors of server/e2e/faults measures
// how soon, and that it does not spin meanwhile.
func TestNoDescriptors(t *testing.T) {
	dir := shortDir(t)
	socket := filepath.Join(dir, "s")
	child, _ := startChild(t, socket)
	pid := child.Process.Pid
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	const room, clients = 10, 30
	limit := unix.Rlimit{Cur: uint64(len(open) + room), Max: uint64(len(open) + room)}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Skip(err)
	}
	answered := func(c net.Conn, wait time.Duration) bool {
		c.SetReadDeadline(time.Now().Add(wait))
		_, err := io.ReadFull(c, make([]byte, len("+PONG\r\n")))
		return err == nil
	}
	var waiting, served []net.Conn
	for range clients {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "PING\r\n")
		if len(waiting) == 0 && answered(c, 2*time.Second) {
			served = append(served, c)
		} else {
			waiting = append(waiting, c)
		}
	}
	if len(served) < room/2 || len(waiting) == 0 {
		t.Fatalf("%d clients are served with %d descriptors", len(served), room)
	}
	for _, c := range served {
		io.WriteString(c, "PING\r\n")
		if !answered(c, time.Minute) {
			t.Fatal("a client that was served is not any more")
		}
	}
	for len(waiting) > 0 {
		for _, c := range served {
			c.Close()
		}
		if !answered(waiting[0], time.Minute) { // takes a second on an idle machine
			t.Fatal("the next client is never served")
		}
		served, waiting = waiting[:1], waiting[1:]
		for len(waiting) > 0 && answered(waiting[0], 100*time.Millisecond) {
			served, waiting = append(served, waiting[0]), waiting[1:]
		}
	}
}
