//go:build linux

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// The program answers soon after its start, takes little memory and no CPU while it
// does nothing, and gives memory back that it does not need any more.
func TestProcess(t *testing.T) {
	late := lateness(t)
	var p *process
	var answered time.Duration
	for range 20 { // on a busy machine the quickest start says most
		begin := time.Now()
		if p = zsetdEpoll.start(t); answered == 0 || time.Since(begin) < answered {
			answered = time.Since(begin)
		}
		if answered < 50*time.Millisecond {
			break
		}
		p.stop()
	}
	atMost(p, "from the start to the first reply", answered, 50*time.Millisecond+late)
	p.expectMemory("when it does nothing", 20_000_000, 40*time.Second)
	const window, most = 2 * time.Second, 2 * time.Millisecond
	used := most
	for try := 0; try < 10 && used >= most; try++ { // it may still work on earlier commands
		before := p.threads()
		wait.Elapse(window)
		used = p.threads() - before
	}
	atMost(p, fmt.Sprint("CPU in ", window, " of doing nothing"), used, most)

	const keys, size = 30, 1 << 20
	c, value := p.dial(), strings.Repeat("x", size)
	for i := range keys {
		c.want("OK", "SET", "key"+strconv.Itoa(i), value)
	}
	if rss := p.rss(); rss < keys*size {
		t.Errorf("with %s of data it takes %s", mb(keys*size), mb(rss))
	}
	p.expectMemory("with 31 MB of data", keys*size+25_000_000, 40*time.Second)
	c.want("OK", "FLUSHALL")
	p.expectMemory("after FLUSHALL", 22_000_000, 40*time.Second)
}

// threads returns the CPU that the threads of the server have used, finer than cpu.
func (p *process) threads() (sum time.Duration) {
	p.t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.pid()))
	if len(files) == 0 {
		p.t.Skip("this kernel has no schedstat")
	}
	for _, name := range files {
		b, _ := os.ReadFile(name) // the thread may have ended
		if fields := strings.Fields(string(b)); len(fields) > 0 {
			n, _ := strconv.ParseInt(fields[0], 10, 64)
			sum += time.Duration(n)
		}
	}
	return sum
}
