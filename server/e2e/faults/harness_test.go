//go:build linux

package faults

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/zsetd/zsetd/server" // so that go test does not take results of another version from its cache
	"github.com/zsetd/zsetd/server/e2e/program"
	"github.com/zsetd/zsetd/server/servertest/port"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// binary is zsetd, built once.
var binary program.Zsetd

// TestMain runs the tests if something asks for them: go test ./... and make test
// must pass on a busy machine, and these need not.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("ZSETD_MEASURE") == "" && flag.Lookup("test.run").Value.String() == "" {
		fmt.Println("the tests of time and memory are run by make faults, or with -run")
		os.Exit(0)
	}
	status := m.Run()
	binary.Remove()
	os.Exit(status)
}

// A kind is a kind of server: zsetd with one of its transports, or redis-server.
type kind struct {
	name string
	args []string
}

// The kinds of servers. Plain sockets are served by the transport epoll unless
// something else is asked for.
var (
	zsetdEpoll  = kind{name: "zsetd"}
	zsetdNet    = kind{name: "zsetd-net", args: []string{"--transport", "net"}}
	redisServer = kind{name: "redis-server"}
	both        = []kind{zsetdEpoll, zsetdNet}
	all         = []kind{zsetdEpoll, zsetdNet, redisServer}
)

// ours reports whether the ceilings of a test hold for servers of the kind:
// redis-server only has its figures logged.
func (k kind) ours() bool { return k.name != redisServer.name }

// run runs a part of a test for each kind of server. That of redis-server is skipped
// where that is not installed.
func run(t *testing.T, kinds []kind, test func(t *testing.T, k kind)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			if !k.ours() {
				if _, err := exec.LookPath("redis-server"); err != nil {
					t.Skip("redis-server is not installed")
				}
			}
			test(t, k)
		})
	}
}

// A process is a server that runs.
type process struct {
	kind
	t    testing.TB
	cmd  *exec.Cmd
	addr string // where it listens
	dir  string // its working directory, of which it keeps nothing but what the test asks for
	done chan struct{}
	base time.Duration // of CPU, at the last call of watch
}

// start starts a server that keeps nothing on disk, on a free port of 127.0.0.1,
// and waits until it answers. The arguments come after those of the harness, so they
// may take them back. It is stopped when the test ends.
func (k kind) start(t testing.TB, args ...string) *process { return k.startAs(t, nil, args...) }

// startAs is start with a program that runs the server, and its arguments: prlimit,
// for instance.
func (k kind) startAs(t testing.TB, as []string, args ...string) *process {
	t.Helper()
	dir, err := os.MkdirTemp("", "faults-") // not t.TempDir: the path of a unix socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := "redis-server"
	if k.ours() {
		path = binary.Path(t)
	}
	for attempt := 1; ; attempt++ {
		port := freePort(t)
		line := append(slices.Clone(as), path, "--port", port, "--bind", "127.0.0.1", "--save", "")
		if k.ours() {
			line = append(line, "--dbfilename", "", "--log-format", "logfmt") // complaints looks for errors
		}
		line = append(append(line, k.args...), args...)
		p := &process{kind: k, t: t, cmd: exec.Command(line[0], line[1:]...), addr: "127.0.0.1:" + port, dir: dir, done: make(chan struct{})}
		p.cmd.Dir = dir
		p.cmd.Env = environment()
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // not left behind if the test is killed
		log, err := os.Create(filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		p.cmd.Stdout, p.cmd.Stderr = log, log
		err = p.cmd.Start()
		log.Close()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			p.cmd.Wait()
			close(p.done)
		}()
		t.Cleanup(func() {
			p.stop()
			p.complaints()
		})
		if p.answers(20 * time.Second) {
			p.watch()
			return p
		}
		p.stop()
		if attempt == 3 { // the port may have been taken meanwhile
			t.Fatalf("%s does not start: %s", k.name, p.log())
		}
	}
}

// environment is that of this process without what changes how a server works.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "ZSETD_") || strings.HasPrefix(name, "GO") && name != "GOROOT" && name != "GOPATH"
	})
}

func freePort(t testing.TB) string {
	t.Helper()
	number, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// answers waits until a server answers anything at all: it may want a password.
func (p *process) answers(limit time.Duration) bool {
	for begin := time.Now(); time.Since(begin) < limit; {
		select {
		case <-p.done:
			return false
		case <-time.After(2 * time.Millisecond):
		}
		nc, err := net.Dial("tcp", p.addr)
		if err != nil {
			continue
		}
		nc.SetDeadline(time.Now().Add(limit))
		io.WriteString(nc, "PING\r\n")
		line, err := bufio.NewReader(nc).ReadString('\n')
		nc.Close()
		if err == nil && !strings.HasPrefix(line, "-LOADING") {
			return true
		}
	}
	return false
}

// stop kills the server, and waits until it is gone.
func (p *process) stop() {
	p.cmd.Process.Kill()
	<-p.done
}

// complaints fails the test for what zsetd has logged as its own mistakes.
func (p *process) complaints() {
	if !p.ours() {
		return
	}
	for line := range strings.Lines(p.log()) {
		for _, word := range []string{"level=ERROR", "panic", "fatal error"} {
			if strings.Contains(line, word) {
				p.t.Errorf("%s has logged %.2000s", p.name, line)
				return
			}
		}
	}
}

// pid returns its number.
func (p *process) pid() int { return p.cmd.Process.Pid }

// log returns what the server has written to its standard output and error.
func (p *process) log() string {
	b, err := os.ReadFile(filepath.Join(p.dir, "log"))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

// proc reads a file of /proc/PID. A server that is gone ends the test, with the end
// of what it has logged.
func (p *process) proc(name string) string {
	p.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.pid(), name))
	if err != nil || len(b) == 0 {
		p.died()
	}
	return string(b)
}

func (p *process) died() {
	p.t.Helper()
	log := p.log()
	p.t.Fatalf("%s is gone; its log ends with:\n%s", p.name, log[max(0, len(log)-8000):])
}

// memory returns a line of /proc/PID/status in bytes.
func (p *process) memory(name string) int64 {
	p.t.Helper()
	for line := range strings.Lines(p.proc("status")) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			return n << 10
		}
	}
	p.died() // one that has ended has no memory
	return 0
}

// rss returns the bytes of memory that the server has now.
func (p *process) rss() int64 { p.t.Helper(); return p.memory("VmRSS") }

// peak returns the most bytes of memory that the server has had since watch.
func (p *process) peak() int64 { p.t.Helper(); return p.memory("VmHWM") }

// cpu returns the CPU that the server has used since watch.
func (p *process) cpu() time.Duration {
	p.t.Helper()
	stat := p.proc("stat")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // its name may have any characters
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		p.t.Fatal(err)
	}
	const tick = time.Second / 100 // in /proc, on every architecture that Go knows
	return time.Duration(user+system)*tick - p.base
}

// watch resets the measurements of peak memory and CPU time.
func (p *process) watch() {
	p.t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.pid()), []byte("5"), 0); err != nil {
		p.t.Fatal(err)
	}
	p.base = 0
	p.base = p.cpu()
}

// descriptors returns how many are open.
func (p *process) descriptors() int {
	p.t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid()))
	if err != nil {
		p.died()
	}
	return len(entries)
}

// goroutines returns how many there are, the one of a client that asks among them if
// clients have one; 0 of redis-server. A server that wants a password is asked by
// the client that is given.
func (p *process) goroutines(c ...*client) int {
	p.t.Helper()
	if !p.ours() {
		return 0
	}
	n, err := strconv.Atoi(p.info("goroutines", c...))
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// info returns a field of INFO.
func (p *process) info(field string, c ...*client) string {
	p.t.Helper()
	if len(c) == 0 {
		c = []*client{p.dial()}
		defer c[0].close()
	}
	text, _ := c[0].do("INFO").(string)
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	p.t.Fatalf("%s: no %s in INFO", p.name, field)
	return ""
}

// alive fails the test unless a new client, with a password if there is one, can
// write and read what it has written.
func (p *process) alive(password ...string) {
	p.t.Helper()
	select {
	case <-p.done:
		p.died()
	default:
	}
	c := p.dial()
	defer c.close()
	for _, password := range password {
		c.want("OK", "AUTH", password)
	}
	value := strconv.FormatInt(time.Now().UnixNano(), 36)
	c.want("OK", "SET", "faults:alive", value)
	c.want(value, "GET", "faults:alive")
	c.want(int64(1), "DEL", "faults:alive")
}

// A state is what is to be as before when a test has done its worst.
type state struct{ descriptors, goroutines int }

// look returns the present one, in which clients that have just left may still be.
func (p *process) look(c ...*client) state {
	p.t.Helper()
	return state{p.descriptors(), p.goroutines(c...)}
}

// state returns the present one once it does not change any more.
func (p *process) state(c ...*client) state {
	p.t.Helper()
	last, same := p.look(c...), 0
	eventually(5*time.Second, func() bool {
		now := p.look(c...)
		if same++; now != last {
			last, same = now, 0
		}
		return same == 5
	})
	return last
}

// returns fails the test unless the server is back within the time at the state, with
// no more descriptors or goroutines than then.
func (p *process) returns(to state, within time.Duration, c ...*client) {
	p.t.Helper()
	begin := time.Now()
	var now state
	if !eventually(within, func() bool {
		now = p.look(c...)
		return now.descriptors <= to.descriptors && now.goroutines <= to.goroutines
	}) {
		p.t.Errorf("%s: after %v %d descriptors are open, before %d; %d goroutines, before %d",
			p.name, within, now.descriptors, to.descriptors, now.goroutines, to.goroutines)
		return
	}
	p.t.Logf("%s: descriptors (%d) and goroutines (%d) are as before after %v",
		p.name, now.descriptors, now.goroutines, time.Since(begin).Round(time.Millisecond))
}

// expectMemory fails the test unless the memory of the server falls to a limit within a
// time.
func (p *process) expectMemory(what string, limit int64, within time.Duration) {
	p.t.Helper()
	begin := time.Now()
	eventually(within, func() bool { return p.rss() <= limit })
	atMost(p, fmt.Sprintf("memory %s, after %v", what, time.Since(begin).Round(10*time.Millisecond)), p.rss(), limit)
}

// eventually reports whether something becomes true within a time.
func eventually(within time.Duration, holds func() bool) bool {
	for begin := time.Now(); ; wait.Pace(10 * time.Millisecond) {
		if holds() {
			return true
		}
		if time.Since(begin) > within {
			return false
		}
	}
}

// mb writes a number of bytes for people.
func mb(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }

// atMost fails the test if a figure of a server of ours is higher than a limit. It is
// logged, with what it is.
func atMost[N int | int64 | float64 | time.Duration](p *process, what string, n, limit N) {
	p.t.Helper()
	write := func(n N) string {
		switch n := any(n).(type) {
		case int64:
			return mb(n)
		case time.Duration:
			return n.Round(10 * time.Microsecond).String()
		default:
			return fmt.Sprint(n)
		}
	}
	p.t.Logf("%s: %s: %s", p.name, what, write(n))
	if n > limit && p.ours() {
		p.t.Errorf("%s: %s: %s, which is more than %s", p.name, what, write(n), write(limit))
	}
}

// A client is a connection to a server. All that goes wrong with it ends the test,
// but for the methods that return an error.
type client struct {
	net.Conn
	p *process
	r *bufio.Reader
}

// patience is how long a client waits for anything.
const patience = 30 * time.Second

// dial connects.
func (p *process) dial() *client {
	p.t.Helper()
	nc, err := net.DialTimeout("tcp", p.addr, patience)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.client(nc)
}

// client makes one of a connection of any sort.
func (p *process) client(nc net.Conn) *client {
	return &client{Conn: nc, p: p, r: bufio.NewReaderSize(nc, 16<<10)}
}

// dies makes the close of the connection a reset: its peer sees an error in place of
// an end.
func (c *client) dies() {
	if err := c.Conn.(*net.TCPConn).SetLinger(0); err != nil {
		c.p.t.Fatal(err)
	}
	c.close()
}

func (c *client) close() { c.Conn.Close() }

// command writes a command as the protocol has it.
func command(args ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// send sends a command.
func (c *client) send(args ...string) { c.p.t.Helper(); c.write(command(args...)) }

// write sends bytes.
func (c *client) write(b []byte) {
	c.p.t.Helper()
	c.SetWriteDeadline(time.Now().Add(patience))
	if _, err := c.Write(b); err != nil {
		c.p.t.Fatal(err)
	}
}

// An errorReply is one that begins with "-".
type errorReply string

func (e errorReply) Error() string { return string(e) }

// receive returns the next reply: a string, an int64, nil, an errorReply or a []any.
func (c *client) receive() any {
	c.p.t.Helper()
	v, err := c.tryReceive(patience)
	if err != nil {
		c.p.t.Fatalf("%s: %v", c.p.name, err)
	}
	return v
}

// tryReceive is receive with an error if there is no reply within a time.
func (c *client) tryReceive(within time.Duration) (any, error) {
	c.SetReadDeadline(time.Now().Add(within))
	return c.reply()
}

func (c *client) reply() (any, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, errors.New("an empty line in place of a reply")
	}
	rest := line[1:]
	switch line[0] {
	case '+':
		return rest, nil
	case '-':
		return errorReply(rest), nil
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		return nil, fmt.Errorf("not a reply: %q", line)
	}
	switch {
	case n < 0:
		return nil, nil
	case line[0] == '$':
		b := make([]byte, n+2)
		_, err := io.ReadFull(c.r, b)
		return string(bytes.TrimSuffix(b, []byte("\r\n"))), err
	case line[0] == '*':
		array := make([]any, n)
		for i := range array {
			if array[i], err = c.reply(); err != nil {
				return nil, err
			}
		}
		return array, nil
	}
	return nil, fmt.Errorf("not a reply of RESP2: %q", line)
}

// do sends a command and returns its reply.
func (c *client) do(args ...string) any { c.p.t.Helper(); c.send(args...); return c.receive() }

// want sends a command whose reply is known.
func (c *client) want(reply any, args ...string) {
	c.p.t.Helper()
	if got := c.do(args...); got != reply {
		c.p.t.Fatalf("%s: %.100q: %v, not %v", c.p.name, args, got, reply)
	}
}

// ended reports whether the server closes the connection within a time, whatever it
// sends until then.
func (c *client) ended(within time.Duration) bool {
	c.SetReadDeadline(time.Now().Add(within))
	_, err := io.Copy(io.Discard, c.r)
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// A probe tells how late this machine lets a goroutine go on that has waited for its
// time, while a test measures how late a server answers. Both have to share it.
type probe struct {
	quit  chan struct{}
	delay chan []time.Duration
}

func startProbe() *probe {
	p := &probe{make(chan struct{}), make(chan []time.Duration)}
	go func() {
		var delays []time.Duration
		for {
			begin := time.Now()
			select {
			case <-p.quit:
				p.delay <- delays
				return
			case <-time.After(time.Millisecond):
				delays = append(delays, time.Since(begin)-time.Millisecond)
			}
		}
	}()
	return p
}

// stop returns the delays, sorted.
func (p *probe) stop() []time.Duration {
	close(p.quit)
	d := <-p.delay
	slices.Sort(d)
	return d
}

// quantile returns the duration of sorted ones that the part q does not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// lateness returns how late things happen on this machine now: nearly nothing if it
// has nothing else to do.
func lateness(t testing.TB) time.Duration {
	p := startProbe()
	wait.Elapse(50 * time.Millisecond)
	d := append(p.stop(), 0)
	if len(d) == 1 {
		d[0] = 50 * time.Millisecond // it did not wake up at all
	}
	late := 10 * slices.Max(d)
	if late > time.Second {
		t.Logf("the machine is so busy that %v more are allowed", late)
	}
	return late
}

// The harness sees what it is there to see.
func TestHarness(t *testing.T) {
	late := startProbe()
	defer func() {
		t.Logf("goroutines of this process wake up %v late, one in a hundred times", quantile(late.stop(), 0.99))
	}()
	run(t, all, func(t *testing.T, k kind) {
		p := k.start(t)
		p.alive()
		before, rss := p.state(), p.rss()
		const value = 32 << 20
		var clients []*client
		for range 50 {
			clients = append(clients, p.dial())
		}
		clients[0].want("OK", "SET", "k", strings.Repeat("x", value))
		if n := p.descriptors(); n != before.descriptors+len(clients) {
			t.Errorf("%d descriptors with %d clients, before %d", n, len(clients), before.descriptors)
		}
		if n := p.goroutines(clients[0]); k.name == zsetdNet.name && n < before.goroutines+len(clients)-1 {
			t.Errorf("%d goroutines with %d clients, before %d", n, len(clients), before.goroutines)
		}
		if grown := p.rss() - rss; grown < value {
			t.Errorf("%s more memory for a value of %s", mb(grown), mb(value))
		}
		if p.peak() < value {
			t.Errorf("the peak is %s with a value of %s", mb(p.peak()), mb(value))
		}
		clients[0].want(int64(1), "DEL", "k")
		for i, c := range clients {
			if i%2 == 0 {
				c.close()
			} else {
				c.dies()
			}
		}
		p.expectMemory("when the value is gone", rss+value/2, 20*time.Second)
		p.watch()
		if peak := p.peak(); peak > rss+value/2 {
			t.Errorf("the peak is %s after it was reset", mb(peak))
		}
		for begin := time.Now(); p.cpu() < 50*time.Millisecond; { // until it is seen to work
			if time.Since(begin) > 20*time.Second {
				t.Fatal("no CPU is seen")
			}
			p.alive()
		}
		p.returns(before, 5*time.Second)
		if log := p.log(); !strings.Contains(log, "Ready to accept connections") {
			t.Errorf("the log is not there: %q", log)
		}
	})
}
