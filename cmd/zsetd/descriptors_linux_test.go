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
// next ones soon after some have left. Meanwhile it does not spin.
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
	used := func() time.Duration {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		var state string
		var n [10]int64
		var user, system int64
		fmt.Sscan(string(b[len(fmt.Sprintf("%d (", pid)):]), new(string), &state, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7], &n[8],
			&n[9], &user, &system)
		return time.Duration(user+system) * 10 * time.Millisecond
	}
	before := used()
	time.Sleep(500 * time.Millisecond)
	if took := used() - before; took > 200*time.Millisecond {
		t.Errorf("%v of CPU in half a second of waiting for descriptors", took)
	}
	for _, c := range served {
		io.WriteString(c, "PING\r\n")
		if !answered(c, 10*time.Second) {
			t.Fatal("a client that was served is not any more")
		}
	}
	for len(waiting) > 0 {
		for _, c := range served {
			c.Close()
		}
		start := time.Now()
		if !answered(waiting[0], 10*time.Second) {
			t.Fatal("the next client is never served")
		}
		if took := time.Since(start); took > 5*time.Second { // a second, on a machine that does nothing else
			t.Errorf("the next client is served after %v", took)
		}
		served, waiting = waiting[:1], waiting[1:]
		for len(waiting) > 0 && answered(waiting[0], 100*time.Millisecond) {
			served, waiting = append(served, waiting[0]), waiting[1:]
		}
	}
}
