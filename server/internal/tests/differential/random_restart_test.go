package differential

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// The long form of TestRandomRestarts:
//
//	go test ./server/internal/tests/differential -run RandomRestarts -v -restarts.n 1000 -timeout 60m
var (
	restartsN    = flag.Int("restarts.n", 4, "`number` of restarts between random commands")
	restartsSeed = flag.Uint64("restarts.seed", 0, "`seed` of the commands between restarts (0: random)")
)

// TestRandomRestarts runs random commands with arguments of 0 to 1 MB, deadlines that pass
// meanwhile, blocked clients, and checkpoints of all kinds, kills the server while clients
// write, and compares its data with those in its file, and with those that each of the tools
// makes of a backup.
func TestRandomRestarts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no unix sockets to serve on")
	}
	seed := *restartsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat with -restarts.seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "k.db")
	config := map[string]string{
		"appendonly": "yes", "enable-debug-command": "yes", "auto-aof-rewrite-min-size": "200kb", "proto-max-bulk-len": "4mb",
	}
	live := startChild(t, path, config)
	defer func() { live.kill() }()
	srv, err := server.New(server.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	commands := slices.DeleteFunc(allCommands(), func(c *protocol.Command) bool { return !hasEffects(c) || strings.HasPrefix(c.Name, "function") })
	srv.Close()
	g := newGenerator(r, commands)
	enlarge := func(argv []string) {
		for i := range argv {
			if i > 1 && r.IntN(5) == 0 && !strings.HasPrefix(strings.ToLower(argv[0]), "restore") {
				n := r.IntN(1 + 1<<r.IntN(21)) // half of them are shorter than 1 KB
				if r.IntN(3) == 0 {
					n = 60_000 + r.IntN(20_000) // about where buffers are handed over
				}
				w := argv[i]
				argv[i] = strings.Repeat(fmt.Sprintf("%s%c", w, 'a'+r.IntN(26)), n/(len(w)+1)+1)[:n]
			}
		}
	}
	var waiters []*waiter
	command := func() {
		if r.IntN(15) == 0 { // a deadline that passes before the next restart, or nearly so
			ms, key, member := fmt.Sprint(1+r.IntN(40)), fmt.Sprint(r.IntN(4)), string(rune('a'+r.IntN(10)))
			live.do([][]string{
				{"SET", "v" + key, member, "PX", ms}, {"PEXPIRE", g.pick("v", "h", "z", "l", "s", "x") + key, ms}, {"GETEX", "v" + key, "PX", ms},
				{"HPEXPIRE", "h" + key, ms, "FIELDS", "2", member, "a"}, {"HSETEX", "h" + key, "PX", ms, "FIELDS", "1", member, "x"},
				{"ZPEXPIRE", "z" + key, ms, "MEMBERS", "2", member, "a"},
			}[r.IntN(6)]...)
			return
		}
		c, argv := g.next()
		enlarge(argv)
		if !c.Flags().Has(protocol.Blocking) {
			live.do(argv...)
			return
		}
		if len(waiters) < 6 {
			waiters = append(waiters, newWaiter(live))
		}
		w := waiters[r.IntN(len(waiters))]
		w.unblock()
		w.send(argv)
	}
	checkpoint := func() {
		for _, line := range [][]string{
			{"SAVE"}, {"BGSAVE"}, {"BGREWRITEAOF"}, {"DEBUG RELOAD"}, {"CONFIG SET appendfsync always"},
			{"CONFIG SET appendfsync everysec"}, {"CONFIG SET appendonly no save 3600 1", "CONFIG SET appendonly yes"},
			{"CONFIG SET appendonly no", "CONFIG SET save 1 1", "SAVE", "CONFIG SET appendonly yes"},
		}[r.IntN(8)] {
			if reply := live.do(strings.Fields(line)...); strings.HasPrefix(line, "DEBUG") && reply != "OK" {
				t.Fatalf("%s: %s", line, reply)
			}
		}
	}
	number, keys, size := 0, "", int64(0)
	verify := func(what, path, want string) {
		t.Helper()
		found, err := server.New(server.Options{File: path, Logger: slog.New(slog.DiscardHandler), Config: config})
		if err == nil {
			err = found.Ready(t.Context())
		}
		if err != nil {
			t.Fatal(what, err)
		}
		defer found.Close()
		if err := found.Check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if what == "killed" {
			live.checkWriters(t, found)
		}
		if got := stateOf(found.Do); got != want {
			t.Fatalf("%s, seed %d, round %d: %s", what, seed, number, unlikeLines(got, want))
		}
	}
	for ; number < *restartsN && !t.Failed(); number++ {
		g.payloads = live.payloads()
		for range 150 + r.IntN(300) {
			command()
			if r.IntN(60) == 0 {
				checkpoint()
			}
		}
		// From here on each reply is on the disk.
		if reply := live.do("CONFIG", "SET", "appendfsync", "always"); reply != "OK" {
			t.Fatal(reply)
		}
		for range 40 {
			command()
		}
		live.do("SET", "last", fmt.Sprint(number))
		// What expires soon goes, so that nothing does between two comparisons. ZADD builds a
		// sorted set as a listpack, which stores the score -0 as 0, in Redis too: an import of
		// commands does not have it.
		if reply := live.do("EVAL", `
			local soon = redis.call('time')[1] * 1000 + 3600000
			for db = 0, 15 do
				redis.call('select', db)
				for _, key in ipairs(redis.call('keys', '*')) do
					local near = function(at) return at > 0 and at < soon end
					local type = redis.call('type', key).ok
					if near(redis.call('pexpiretime', key)) then
						redis.call('del', key)
					elseif type == 'hash' then
						for _, field in ipairs(redis.call('hkeys', key)) do
							if near(redis.call('hpexpiretime', key, 'fields', 1, field)[1]) then
								redis.call('hdel', key, field)
							end
						end
					elseif type == 'zset' then
						for _, member in ipairs(redis.call('zrange', key, 0, -1)) do
							if near(redis.call('zpexpiretime', key, 'members', 1, member)[1]) then
								redis.call('zrem', key, member)
							end
						end
						local zeros = redis.call('zrangebyscore', key, 0, 0, 'withscores')
						for i = 1, #zeros, 2 do
							if zeros[i + 1] == '-0' then
								redis.call('zrem', key, zeros[i])
								redis.call('zadd', key, 0, zeros[i])
							end
						end
					end
				end
			end`, "0"); reply != "<nil>" {
			t.Fatal(reply)
		}
		want := stateOf(func(_ context.Context, words ...any) (any, error) { return live.reply(words...), nil })
		keys += live.do("DBSIZE") + " "
		other := func(name string) string { return filepath.Join(t.TempDir(), name) }
		backup := other("backup.db")
		if _, err := archive.Backup(path, backup, false, nil); err != nil {
			t.Fatal(err)
		}
		tools := map[string]func(to string) error{
			"salvage": func(to string) error {
				s, err := archive.Salvage(backup, to, nil)
				if err == nil && !s.Intact() {
					err = fmt.Errorf("not intact: %+v", s.Pages)
				}
				return err
			},
			"json": func(to string) error {
				var lines bytes.Buffer
				_, err := archive.ExportJSON(&lines, backup, time.Now(), nil)
				if err == nil {
					_, err = new(archive.Import).JSON(&lines, to)
				}
				return err
			},
			"rdb": func(to string) error {
				var file bytes.Buffer
				_, err := archive.ExportRDB(&file, backup, rdb.Any, time.Now(), nil)
				if err == nil {
					_, err = new(archive.Import).RDB(&file, to)
				}
				return err
			},
			"commands": func(to string) error {
				r, w := io.Pipe()
				go func() {
					_, err := archive.ExportCommands(w, backup, rdb.Any, time.Now(), nil)
					w.CloseWithError(err)
				}()
				_, err := server.ImportCommands(r, to, 16, new(archive.Import))
				return err
			},
			"compact": func(to string) error {
				_, err := archive.Backup(backup, to, false, nil)
				if err == nil {
					_, _, err = archive.Compact(to, nil)
				}
				return err
			},
		}
		for name, tool := range tools {
			to := other(name + ".db")
			if err := tool(to); err != nil {
				t.Fatalf("%s, seed %d, round %d: %v", name, seed, number, err)
			}
			verify(name, to, want)
		}
		verify("backup", backup, want)
		if r.IntN(2) == 0 {
			live.do("BGREWRITEAOF")
		}
		live.write(r.IntN(100))
		live.kill()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
		verify("killed", path, want)
		live, waiters = startChild(t, path, config), nil
	}
	t.Logf("keys at the restarts: %s; %d KB of files", keys, size>>10)
}

// killedServer is a server in a process of its own, and a client of it.
type killedServer struct {
	t       *testing.T
	socket  string
	process *exec.Cmd
	log     bytes.Buffer
	client  *wordClient
	writers []*lastWriter
	group   sync.WaitGroup
}

// TestCrashChild is not a test but the server that TestRandomRestarts kills.
func TestCrashChild(t *testing.T) { enginetest.ServeChild(t) }

// startChild starts the server of TestCrashChild.
func startChild(t *testing.T, path string, config map[string]string) *killedServer {
	t.Helper()
	s := &killedServer{t: t, socket: filepath.Join(t.TempDir(), "s")}
	s.process = exec.Command(os.Args[0], "-test.run=^TestCrashChild$", "-test.v")
	env := enginetest.ChildEnv + "=" + path + "|" + s.socket
	for name, value := range config {
		env += "|" + name + "|" + value
	}
	s.process.Env = append(os.Environ(), env)
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	serves := wait.Holds(func() bool {
		nc, err := net.Dial("unix", s.socket)
		if err != nil {
			return false
		}
		s.client = &wordClient{nc, bufio.NewReader(nc)}
		if reply, err := s.client.do("PING"); err == nil && fmt.Sprint(reply) == "PONG" {
			return true
		}
		nc.Close()
		return false
	})
	if !serves {
		s.kill()
		t.Fatalf("the server has not started:\n%s", s.log.Bytes())
	}
	return s
}

// kill ends the process by SIGKILL.
func (s *killedServer) kill() {
	s.process.Process.Kill()
	s.process.Wait()
	s.group.Wait()
	if log := s.log.String(); strings.Contains(log, "FAIL") || strings.Contains(log, "panic") {
		s.t.Fatalf("the server: %s", log)
	}
}

// reply returns the reply to a command.
func (s *killedServer) reply(words ...any) any {
	s.t.Helper()
	line := make([]string, len(words))
	for i, w := range words {
		line[i] = fmt.Sprint(w)
	}
	reply, err := s.client.do(line...)
	if err != nil {
		s.t.Fatalf("%.200q: %v; the server: %s", line, err, s.log.Bytes())
	}
	return reply
}

func (s *killedServer) do(line ...string) string {
	s.t.Helper()
	words := make([]any, len(line))
	for i, w := range line {
		words[i] = w
	}
	return fmt.Sprint(s.reply(words...))
}

// payloads returns the payloads of some keys, for RESTORE.
func (s *killedServer) payloads() []string {
	all := []string{""}
	for range 20 {
		key, ok := s.reply("RANDOMKEY").(string)
		if payload, dumped := s.reply("DUMP", key).(string); ok && dumped {
			all = append(all, payload)
		}
	}
	return all
}

// wordClient is a connection that sends commands, each after the reply to the one before.
type wordClient struct {
	net.Conn
	r *bufio.Reader
}

func (c *wordClient) do(line ...string) (any, error) {
	c.SetDeadline(time.Now().Add(time.Minute))
	b := fmt.Appendf(nil, "*%d\r\n", len(line))
	for _, w := range line {
		b = append(fmt.Appendf(b, "$%d\r\n", len(w)), w...)
		b = append(b, "\r\n"...)
	}
	if _, err := c.Write(b); err != nil {
		return nil, err
	}
	return protocol.DecodeFrom(c.r)
}

// waiter is a client that sends commands that may block.
type waiter struct {
	*wordClient
	s    *killedServer
	id   string
	done chan struct{} // closed when the reply is there
}

func newWaiter(s *killedServer) *waiter {
	nc, err := net.Dial("unix", s.socket)
	if err != nil {
		s.t.Fatal(err)
	}
	w := &waiter{wordClient: &wordClient{nc, bufio.NewReader(nc)}, s: s, done: make(chan struct{})}
	close(w.done)
	id, err := w.do("CLIENT", "ID")
	if err != nil {
		s.t.Fatal(err)
	}
	w.id = fmt.Sprint(id)
	return w
}

func (w *waiter) replied() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// send sends a command, and returns when it has run or is blocked.
func (w *waiter) send(argv []string) {
	w.done = make(chan struct{})
	w.s.group.Go(func() {
		defer close(w.done)
		w.do(argv...)
	})
	wait.Until(w.s.t, fmt.Sprintf("%.200q runs or blocks", argv), func() bool {
		return w.replied() || strings.Contains(w.s.do("CLIENT", "LIST", "ID", w.id), " flags=b")
	})
}

// unblock makes the client ready for the next command.
func (w *waiter) unblock() {
	if !w.replied() {
		w.s.do("CLIENT", "UNBLOCK", w.id)
		wait.Until(w.s.t, "the client is unblocked", w.replied)
	}
}

// lastWriter is a client that sets a string to one value after another.
type lastWriter struct {
	key         string
	acked, sent atomic.Int64
}

// value returns the n-th value of a writer.
func (w *lastWriter) value(n int64) string {
	return fmt.Sprint(n, strings.Repeat("x", int(n*7919%100_000)))
}

// write has some clients write until the server is killed, and returns after a number of
// replies.
func (s *killedServer) write(n int) {
	for i := range 3 {
		nc, err := net.Dial("unix", s.socket)
		if err != nil {
			s.t.Fatal(err)
		}
		w := &lastWriter{key: fmt.Sprint("writer:", i)}
		s.writers = append(s.writers, w)
		s.group.Go(func() {
			c := wordClient{nc, bufio.NewReader(nc)}
			for {
				if reply, err := c.do("SET", w.key, w.value(w.sent.Add(1))); err != nil || fmt.Sprint(reply) != "OK" {
					return
				}
				w.acked.Add(1)
			}
		})
	}
	wait.Until(s.t, "the writers have replies", func() bool {
		sum := 0
		for _, w := range s.writers {
			sum += int(w.acked.Load())
		}
		return sum >= n
	})
}

// checkWriters checks that the last write of each writer that was acknowledged is there, and
// removes it.
func (s *killedServer) checkWriters(t *testing.T, found *server.Server) {
	for _, w := range s.writers {
		got, err := found.Do(t.Context(), "GETDEL", w.key)
		acked, sent := w.acked.Load(), w.sent.Load()
		if err != nil || got != any(w.value(acked)) && got != any(w.value(sent)) && (got != nil || acked > 0) {
			t.Errorf("%s: %.20q, %v; acknowledged %d, sent %d", w.key, got, err, acked, sent)
		}
	}
}

// stateOf returns a line for each key: its digest and all deadlines.
func stateOf(do func(ctx context.Context, words ...any) (any, error)) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	digest, err := do(ctx, "DEBUG", "DIGEST")
	if err != nil {
		return err.Error()
	}
	deadlines, err := do(ctx, "EVAL", `
		local all = {}
		for db = 0, 15 do
			redis.call('select', db)
			for _, key in ipairs(redis.call('keys', '*')) do
				local line = {db, redis.sha1hex(key), string.sub(key, 1, 20), string.format('%.0f', redis.call('pexpiretime', key))}
				local times = function(names, command, word)
					table.sort(names)
					for _, name in ipairs(names) do
						local at = redis.call(command, key, word, 1, name)[1]
						if at > 0 then
							table.insert(line, string.sub(name, 1, 20) .. '=' .. string.format('%.0f', at))
						end
					end
				end
				local type = redis.call('type', key).ok
				if type == 'hash' then
					times(redis.call('hkeys', key), 'hpexpiretime', 'fields')
				elseif type == 'zset' then
					times(redis.call('zrange', key, 0, -1), 'zpexpiretime', 'members')
				end
				table.insert(all, table.concat(line, ' '))
			end
		end
		table.sort(all)
		return table.concat(all, '\n')`, 0)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(digest, "\n", deadlines)
}

// unlikeLines returns the lines in which two states differ.
func unlikeLines(got, want string) string {
	has := func(lines, line string) bool { return slices.Contains(strings.Split(lines, "\n"), line) }
	var b strings.Builder
	for line := range strings.SplitSeq(got, "\n") {
		if !has(want, line) {
			fmt.Fprintf(&b, "\nonly in the file: %q", line)
		}
	}
	for line := range strings.SplitSeq(want, "\n") {
		if !has(got, line) {
			fmt.Fprintf(&b, "\nnot in the file: %q", line)
		}
	}
	return b.String()
}
