package migrate

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zsetd/zsetd/server/servertest"
)

// gate passes connections on to a server, and changes commands on their way.
type gate struct {
	addr string
	l    net.Listener

	mu     sync.Mutex
	change func(args []string) []string // returns what the server receives in place of a command
	alter  func(reply []byte) []byte    // likewise for what the server sends; nil passes it on
}

// listen returns a gate that passes nothing before open is called.
func listen(t *testing.T) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &gate{addr: l.Addr().String(), l: l}
}

// gateTo returns a gate to a server.
func gateTo(t *testing.T, addr string) *gate {
	t.Helper()
	g := listen(t)
	g.open(addr)
	return g
}

// open begins to pass connections on to a server. They end with the listener or with either side.
func (g *gate) open(addr string) {
	go func() {
		for {
			c, err := g.l.Accept()
			if err != nil {
				return
			}
			go g.pass(c, addr)
		}
	}()
}

func (g *gate) pass(c net.Conn, addr string) {
	defer c.Close()
	s, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer s.Close()
	go func() {
		defer c.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := s.Read(b)
			out := b[:n]
			g.mu.Lock()
			if g.alter != nil {
				out = g.alter(out)
			}
			g.mu.Unlock()
			if _, failed := c.Write(out); failed != nil || err != nil {
				return
			}
		}
	}()
	in, b := newReader(), make([]byte, 64<<10)
	for {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := eachCommand(in, b[:n], func(args [][]byte) error {
			list := make([]string, len(args))
			for i, a := range args {
				list[i] = string(a)
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.change != nil {
				list = g.change(list)
			}
			writeCommand(&out, list...)
			return nil
		}); err != nil {
			return
		}
		if _, err := s.Write(out.Bytes()); err != nil {
			return
		}
	}
}

func (g *gate) set(change func(args []string) []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.change = change
}

// writeCommand writes a command as a client sends it.
func writeCommand(w io.Writer, args ...string) {
	fmt.Fprintf(w, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(w, "$%d\r\n%s\r\n", len(a), a)
	}
}

// failing returns a command whose reply is an error.
func failing(text string) []string {
	return []string{"EVAL_RO", "return redis.error_reply(ARGV[1])", "0", text}
}

const refusal = "ERR refused by the test"

// callOf is the name of a command, with words that say what it is for.
func callOf(args []string) string {
	name := strings.ToUpper(args[0])
	switch name {
	case "CLIENT", "CONFIG", "FUNCTION", "INFO", "SCRIPT", "CLUSTER", "HSET", "REPLCONF":
		name += " " + strings.ToUpper(strings.Join(args[1:min(len(args), 3)], " "))
	}
	return strings.TrimSpace(name)
}

// refusals runs a move again and again through gates, of which one refuses one command each time,
// and checks that the move ends with that error. prepare makes a run begin as the first one did, and
// returns what also happens when a command passes. Of each command, except some, the first most are
// refused.
func refusals(t *testing.T, gates []*gate, most int, except string, prepare func() func(args []string), run func() error) {
	t.Helper()
	// try runs the move, and refuses the nth command of a name at a gate; none if at is nil. It
	// counts the commands of each gate, up to that.
	try := func(at *gate, call string, n int) (counts []map[string]int, err error) {
		also := prepare()
		for _, g := range gates {
			count := map[string]int{}
			counts = append(counts, count)
			g.set(func(args []string) []string {
				name := callOf(args)
				if count[name]++; g == at && name == call && count[name] == n {
					return failing(refusal)
				}
				also(args)
				return args
			})
		}
		err = run()
		for _, g := range gates {
			g.set(nil)
		}
		return counts, err
	}
	all, err := try(nil, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, calls := range all {
		for call, count := range calls {
			name, _, _ := strings.Cut(call, " ")
			switch {
			case name == "HELLO", name == "REPLCONF", strings.Contains(except, name):
				continue // a server need not have it, or its reply does not matter
			}
			last := min(count, most)
			if call == "INFO REPLICATION" {
				last = count // each has another purpose
			}
			for n := 1; n <= last; n++ {
				counts, err := try(gates[i], call, n)
				if counts[i][call] < n {
					continue // how often a move asks depends on the time
				}
				if err == nil || !strings.Contains(err.Error(), refusal) && !strings.Contains(err.Error(), "INFO has no master_repl_offset") {
					t.Errorf("after %s number %d of gate %d is refused: %v", call, n, i, err)
				}
			}
		}
	}
}

// once returns a function that calls f at the first SCAN, which is the beginning of a verification.
func once(f func()) func(args []string) {
	f = sync.OnceFunc(f)
	return func(args []string) {
		if args[0] == "SCAN" {
			f()
		}
	}
}

// TestRefusedCalls checks that a move ends with the error of each call that a server refuses,
// whatever part of the move it is.
func TestRefusedCalls(t *testing.T) {
	t.Run("zsetd to zsetd", func(t *testing.T) {
		source, target := primary(t), servertest.Run(t)
		here, there := clientOf(t, source.Addr()), clientOf(t, target.Addr())
		must(t, here, "SET", "n", 1)
		must(t, here, "ZADDEX", "z", "EX", 3600, "MEMBERS", 2, 1, "a", 2, "b")
		must(t, here, "SET", "renewed", 1, "EX", 3600)
		must(t, here, append([]any{"RPUSH", "large"}, some(2100)...)...)
		must(t, here, append([]any{"SADD", "largeset"}, some(2100)...)...)
		gates := []*gate{gateTo(t, source.Addr()), gateTo(t, target.Addr())}
		o := moveOf(t, gates[0].addr, gates[1].addr)
		o.Log = nil
		refusals(t, gates, 2, "TIME EXEC", func() func([]string) {
			must(t, here, "CLIENT", "UNPAUSE")
			must(t, there, "FLUSHALL")
			return once(func() {
				must(t, here, "INCR", "n")
				must(t, there, "DEL", "renewed")
			})
		}, func() error { return run(t, o) })
	})
	t.Run("redis to zsetd", func(t *testing.T) {
		source, target := startRedis(t, "--repl-backlog-size", "64mb"), servertest.Run(t)
		here, there := clientOf(t, source), clientOf(t, target.Addr())
		gates := []*gate{gateTo(t, source), gateTo(t, target.Addr())}
		o := moveOf(t, gates[0].addr, gates[1].addr)
		must(t, here, "FUNCTION", "LOAD", o.Library)
		o.LoadLibrary, o.Log = false, nil
		must(t, here, "FCALL", "zaddex", 1, "z", "EX", 3600, "MEMBERS", 2, 1, "a", 2, "b")
		must(t, here, append([]any{"ZADD", "large"}, some(4200)...)...)
		refusals(t, gates, 2, "TIME EXEC", func() func([]string) {
			must(t, here, "CLIENT", "UNPAUSE")
			must(t, there, "FLUSHALL")
			return once(func() { must(t, here, "FCALL", "zaddex", 1, "z", "EX", 3601, "MEMBERS", 1, 1, "a") })
		}, func() error { return run(t, o) })
	})
	t.Run("zsetd to redis", func(t *testing.T) {
		source, target := primary(t), startRedis(t)
		here, there := clientOf(t, source.Addr()), clientOf(t, target)
		must(t, here, "ZADDEX", "z", "EX", 3600, "MEMBERS", 2, 1, "a", 2, "b")
		must(t, here, append([]any{"ZADD", "large"}, some(4200)...)...)
		must(t, clientOf(t, source.Addr()), "SET", "n", 1)
		gates := []*gate{gateTo(t, source.Addr()), gateTo(t, target)}
		o := moveOf(t, gates[0].addr, gates[1].addr)
		o.Log = nil
		refusals(t, gates, 2, "TIME EXEC", func() func([]string) {
			must(t, here, "CLIENT", "UNPAUSE")
			must(t, there, "FLUSHALL")
			return once(func() { must(t, here, "ZADDEX", "new", "EX", 3600, "MEMBERS", 1, 1, "a") })
		}, func() error { return run(t, o) })
	})
}

// TestRefusedFileCalls is TestRefusedCalls for moves to files and from them.
func TestRefusedFileCalls(t *testing.T) {
	source, target := primary(t), servertest.Run(t)
	here, there := clientOf(t, source.Addr()), clientOf(t, target.Addr())
	must(t, here, "SET", "k", 1)
	must(t, here, "FUNCTION", "LOAD", "#!lua name=two\nredis.register_function('two', function() return 2 end)")
	must(t, here, "ZADD", "z", 1, "a")
	must(t, here, "ZADD", "zsetd:deadlines:{z}", 1<<44, "a")
	gates := []*gate{gateTo(t, source.Addr()), gateTo(t, target.Addr())}
	o := moveOf(t, gates[0].addr, gates[1].addr)
	o.LoadLibrary, o.Log = false, nil
	for _, name := range []string{"zsetd.db", "dump.rdb"} {
		path := filepath.Join(t.TempDir(), name)
		to, from := o, o
		to.To, from.From = endpoint(t, path), endpoint(t, path)
		refusals(t, gates[:1], 3, "", func() func([]string) {
			if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			return func([]string) {}
		}, func() error { return run(t, to) })
		if err := run(t, to); err != nil && !strings.Contains(err.Error(), "exists already") {
			t.Fatal(err)
		}
		refusals(t, gates[1:], 3, "", func() func([]string) {
			must(t, there, "FLUSHALL")
			return func([]string) {}
		}, func() error { return run(t, from) })
	}
}

// TestRefusedSurvey is TestRefusedCalls for a dry run.
func TestRefusedSurvey(t *testing.T) {
	source, target := primary(t), startRedis(t)
	must(t, clientOf(t, source.Addr()), "ZADDEX", "z", "EX", 3600, "MEMBERS", 1, 1, "a")
	gates := []*gate{gateTo(t, source.Addr()), gateTo(t, target)}
	o := moveOf(t, gates[0].addr, gates[1].addr)
	o.LoadLibrary = false
	refusals(t, gates, 5, "", func() func([]string) { return func([]string) {} }, func() error {
		_, err := Survey(t.Context(), o, 0)
		return err
	})
}
