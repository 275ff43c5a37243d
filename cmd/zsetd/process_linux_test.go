package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What the program takes when it does nothing, how soon it answers, and whether it
// gives back what it does not need any more. It is the program as it is built, in
// a process of its own.
func TestProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	binary := filepath.Join(t.TempDir(), "zsetd")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p, answered := startProcess(t, binary)
	for range 20 { // on a busy machine, the quickest start says most
		if answered < 50*time.Millisecond {
			break
		}
		p.stop()
		p, answered = startProcess(t, binary)
	}
	if answered >= 50*time.Millisecond {
		t.Errorf("the first reply comes %v after the start", answered)
	}
	p.eventually(t, "idle it takes %d bytes", 20e6, p.rss)
	p.eventually(t, "idle it takes %d ns of CPU in two seconds", int64(2*time.Millisecond), func() int64 {
		before := p.cpu(t)
		time.Sleep(2 * time.Second)
		return p.cpu(t) - before
	})
	const keys, size = 30, 1 << 20
	value := strings.Repeat("x", size)
	for i := range keys {
		p.do(t, "SET", "key"+strconv.Itoa(i), value)
	}
	if rss := p.rss(); rss < keys*size {
		t.Errorf("with %d bytes of data it takes %d", keys*size, rss)
	}
	p.eventually(t, "with 31 MB of data it takes %d", keys*size+25e6, p.rss)
	p.do(t, "FLUSHALL")
	p.eventually(t, "after FLUSHALL it takes %d", 22e6, p.rss)
}

// process is the program when it runs.
type process struct {
	cmd  *exec.Cmd
	conn net.Conn
	r    *bufio.Reader
}

// startProcess returns how long it took until the first reply.
func startProcess(t *testing.T, binary string) (*process, time.Duration) {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	p := &process{cmd: exec.Command(binary, "--port", "0", "--unixsocket", socket, "--dbfilename", "", "--dir", dir)}
	var log bytes.Buffer
	p.cmd.Stdout, p.cmd.Stderr = &log, &log
	begin := time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	for time.Since(begin) < 30*time.Second {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		p.conn, p.r = conn, bufio.NewReader(conn)
		p.do(t, "PING")
		return p, time.Since(begin)
	}
	t.Fatalf("it does not answer: %s", log.String())
	return nil, 0
}

func (p *process) stop() {
	if p.conn != nil {
		p.conn.Close()
	}
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// do sends a command that is answered with one line.
func (p *process) do(t *testing.T, words ...string) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := p.conn.Write([]byte(b.String())); err != nil {
		t.Fatal(err)
	}
	if line, err := p.r.ReadString('\n'); err != nil || line[0] != '+' {
		t.Fatalf("%s: %q %v", words[0], line, err)
	}
}

// eventually waits until a measure is below a limit. Other work on the machine
// makes that take longer.
func (p *process) eventually(t *testing.T, what string, limit int64, measure func() int64) {
	t.Helper()
	var got int64
	for until := time.Now().Add(40 * time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		if got = measure(); got > 0 && got < limit || got == 0 && limit < 1e7 {
			return
		}
	}
	t.Errorf(what+", which is not below %d", got, limit)
}

// rss is the resident set in bytes, 0 if it cannot be told.
func (p *process) rss() int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[1], 10, 64)
	return n * int64(os.Getpagesize())
}

// cpu is what its threads have used, in nanoseconds.
func (p *process) cpu(t *testing.T) (sum int64) {
	t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if len(files) == 0 {
		t.Skip("this kernel does not tell the CPU of threads")
	}
	for _, f := range files {
		b, _ := os.ReadFile(f)
		if fields := strings.Fields(string(b)); len(fields) > 0 {
			n, _ := strconv.ParseInt(fields[0], 10, 64)
			sum += n
		}
	}
	return sum
}
