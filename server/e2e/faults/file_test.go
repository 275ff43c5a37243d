//go:build linux

package faults

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// fileArgs are the arguments of a server that keeps its data in a file.
func fileArgs(dir string, more ...string) []string {
	return append([]string{"--dir", dir, "--dbfilename", "data.db", "--save", "1 1"}, more...)
}

// A few megabytes of data that change all the time stay in a file that
// auto-aof-rewrite-min-size limits, and neither the file nor its journals stay in memory.
func TestFileStaysSmall(t *testing.T) {
	dir := t.TempDir()
	p := zsetdEpoll.start(t, fileArgs(dir)...)
	c := p.dial()
	defer c.close()
	const sets, members, pipeline = 300, 150, 450
	change := func(round int) { // 45 000 changes
		for i := range sets * members / pipeline {
			var b []byte
			for n := range pipeline {
				at := i*pipeline + n
				b = append(b, command("ZADD", fmt.Sprint("set:", at%sets), fmt.Sprint(at+round), fmt.Sprint("member:", at/sets))...)
			}
			c.write(b)
			for range pipeline {
				if _, failed := c.receive().(errorReply); failed {
					t.Fatal("a change is refused")
				}
			}
		}
	}
	change(0)
	rss, size := p.rss(), int64(0)
	for round := range 100 { // 130 MB of journals
		change(round)
		c.want("OK", "SAVE")
		info, err := os.Stat(filepath.Join(dir, "data.db"))
		if err != nil {
			t.Fatal(err)
		}
		size = max(size, info.Size())
	}
	atMost(p, "the file of 3 MB of data", size, 96<<20)
	p.expectMemory("after 4.5 million changes", rss+16<<20, 20*time.Second)
}

// A file that is cut short while clients write, and two signals in place of one, cost
// nothing that was acknowledged.
func TestFileCutShort(t *testing.T) {
	run(t, both, func(t *testing.T, k kind) {
		dir := t.TempDir()
		path := filepath.Join(dir, "data.db")
		acked := int64(0)
		for round := range 6 {
			p := k.start(t, fileArgs(dir)...)
			c := p.dial()
			n, _ := c.do("LLEN", "list").(int64)
			if n < acked {
				t.Fatalf("round %d: %d elements are there, %d were acknowledged", round, n, acked)
			}
			push := func(times int) {
				for range times {
					c.write(bytes.Repeat(command("RPUSH", "list", fmt.Sprintf("%0100d", acked)), 100))
					for range 100 {
						acked, _ = c.receive().(int64)
					}
				}
			}
			push(100)
			c.want("OK", "SAVE")
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			size := min(info.Size(), info.Sys().(*syscall.Stat_t).Blocks*512)
			if err := os.Truncate(path, size*int64(5+14*round)/100); err != nil {
				t.Fatal(err)
			}
			push(20)
			if round%2 == 0 {
				c.want("OK", "SAVE")
			}
			p.cmd.Process.Signal(syscall.SIGTERM)
			p.cmd.Process.Signal(syscall.SIGTERM)
			p.cmd.Process.Signal(os.Interrupt)
			select {
			case <-p.done:
			case <-time.After(time.Minute):
				t.Fatal("it does not end")
			}
			c.close()
			if status := p.cmd.ProcessState.ExitCode(); status != 0 {
				t.Fatalf("round %d: status %d: %s", round, status, p.log())
			}
		}
	})
}
