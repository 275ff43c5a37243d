package replication_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
	"github.com/zsetd/zsetd/server/servertest/judge"
)

// A wire is what replicas connect to in place of their primary. It passes bytes on in both
// directions, until a connection falls silent: then it takes what is sent and passes
// nothing on, as after the loss of a machine that could not close its connections.
type wire struct {
	host, port string

	mu     sync.Mutex
	lines  []*line
	limit  int64 // bytes after which a new line to the replica falls silent; -1 for never
	silent int   // lines that have fallen silent
}

// line is one connection of a wire.
type line struct {
	replica, primary net.Conn
	limit, passed    int64 // bytes to the replica
	silent           bool
}

// wireTo returns a wire to the server at an address.
func wireTo(t *testing.T, target string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{limit: -1}
	w.host, w.port, _ = net.SplitHostPort(l.Addr().String())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			replica, err := l.Accept()
			if err != nil {
				return
			}
			primary, err := net.Dial("tcp", target)
			if err != nil {
				replica.Close()
				continue
			}
			w.mu.Lock()
			n := &line{replica: replica, primary: primary, limit: w.limit}
			w.lines = append(w.lines, n)
			w.mu.Unlock()
			running.Go(func() { w.pass(n, replica, primary) })
			running.Go(func() { w.pass(n, primary, replica) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		w.mu.Lock()
		for _, n := range w.lines {
			n.replica.Close()
			n.primary.Close()
		}
		w.mu.Unlock()
		running.Wait()
	})
	return w
}

// pass copies the bytes of one direction until an end closes.
func (w *wire) pass(n *line, from, to net.Conn) {
	buf := make([]byte, 16<<10)
	for {
		k, err := from.Read(buf)
		b := buf[:k]
		w.mu.Lock()
		silent, falls := n.silent, false
		if from == n.primary && !silent && n.limit >= 0 && n.passed+int64(k) > n.limit {
			b, falls = b[:n.limit-n.passed], true
		}
		w.mu.Unlock()
		if !silent {
			to.Write(b) // the reader of the other end finds out
		}
		w.mu.Lock()
		if from == n.primary {
			n.passed += int64(len(b))
		}
		if falls && !n.silent {
			n.silent = true
			w.silent++
		}
		silent = n.silent
		w.mu.Unlock()
		if err != nil {
			if !silent {
				to.Close()
			}
			return
		}
	}
}

// fallSilentAfter sets after how many bytes to the replica later connections fall silent;
// -1 for never.
func (w *wire) fallSilentAfter(limit int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = limit
}

// fallSilent makes all present connections silent.
func (w *wire) fallSilent() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.lines {
		if !n.silent {
			n.silent = true
			w.silent++
		}
	}
}

// fallen returns how many connections have fallen silent, and longest how many bytes one
// has passed to a replica.
func (w *wire) fallen() (silent int, longest int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.lines {
		longest = max(longest, n.passed)
	}
	return w.silent, longest
}

// incompressible are commands that make n values of 10 KB each.
func incompressible(n int) (lines []string) {
	random := uint64(1)
	for i := range n {
		var b strings.Builder
		for b.Len() < 10_000 {
			random ^= random << 13
			random ^= random >> 7
			random ^= random << 17
			fmt.Fprintf(&b, "%016x", random)
		}
		lines = append(lines, fmt.Sprintf("SET random:%d %s", i, b.String()))
	}
	return lines
}

// TestCrashChild is not a test but the server that TestReplicaKilledWhileLoading kills.
func TestCrashChild(t *testing.T) { enginetest.ServeChild(t) }

// TestReplicaKilledWhileLoading kills a replica with SIGKILL while it receives all data. Its
// file then has the data from before, or those of the primary, and nothing else; started
// again, it follows the primary to the end.
func TestReplicaKilledWhileLoading(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no unix sockets to serve on")
	}
	primary := zsetdNode(t, map[string]string{"save": ""})
	primary.run(values()...)
	primary.run(incompressible(100)...)
	whole := primary.Do("DEBUG", "DIGEST")
	debug := map[string]string{"enable-debug-command": "yes"}
	before := filepath.Join(t.TempDir(), "before.db")
	srv := servertest.Run(t, server.Options{File: before, Config: debug})
	for i := range 1000 {
		srv.Must("SET", fmt.Sprintf("key:%d", i), "old")
	}
	old := fmt.Sprintf("+%s\r\n", srv.Must("DEBUG", "DIGEST"))
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(before)
	if err != nil {
		t.Fatal(err)
	}
	w := wireTo(t, primary.addr)
	measure := zsetdNode(t, nil)
	measure.run("REPLICAOF " + w.host + " " + w.port)
	measure.linked()
	_, size := w.fallen()
	measure.run("REPLICAOF NO ONE")
	for _, load := range []string{"disabled", "swapdb"} {
		for _, part := range []float64{0, 0.0005, 0.1, 0.9, 0.9999, 2} {
			t.Run(fmt.Sprint(load, " ", part), func(t *testing.T) {
				dir, err := os.MkdirTemp("", "killed") // not t.TempDir: the path of a socket must be short
				if err != nil {
					t.Fatal(err)
				}
				defer os.RemoveAll(dir)
				path, socket := filepath.Join(dir, "k.db"), filepath.Join(dir, "s")
				if err := os.WriteFile(path, file, 0o600); err != nil {
					t.Fatal(err)
				}
				silent, _ := w.fallen()
				w.fallSilentAfter(int64(part * float64(size)))
				var log bytes.Buffer
				child := exec.Command(os.Args[0], "-test.run=^TestCrashChild$", "-test.v")
				child.Env = append(os.Environ(), strings.Join([]string{enginetest.ChildEnv + "=" + path, socket,
					"appendonly", "yes", "appendfsync", "always", "repl-diskless-load", load, "replicaof", w.host + " " + w.port}, "|"))
				child.Stdout, child.Stderr = &log, &log
				if err := child.Start(); err != nil {
					t.Fatal(err)
				}
				ready := wait.Holds(func() bool {
					if part <= 1 {
						now, _ := w.fallen()
						return now > silent
					}
					nc, err := net.Dial("unix", socket)
					if err != nil {
						return false
					}
					defer nc.Close()
					return judge.NewPeer(nc, nc).Info("master_link_status") == "up"
				})
				child.Process.Kill()
				child.Wait()
				if !ready || strings.Contains(log.String(), "panic") {
					t.Fatalf("the replica was not killed while it loaded:\n%s", log.String())
				}
				w.fallSilentAfter(-1)
				again := servertest.Run(t, server.Options{File: path, Config: debug})
				if err := again.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				got := fmt.Sprintf("+%s\r\n", again.Must("DEBUG", "DIGEST"))
				if got != old && (part <= 1 || got != whole) {
					t.Errorf("digest %q, before it was %q, that of the primary is %q; %v keys", got, old, whole, again.Must("DBSIZE"))
				}
				again.Must("REPLICAOF", w.host, w.port)
				wait.Until(t, "the replica has the data", func() bool { return fmt.Sprintf("+%s\r\n", again.Must("DEBUG", "DIGEST")) == whole })
				if err := again.Close(); err != nil {
					t.Fatal(err)
				}
				os.Remove(socket)
				if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
					t.Errorf("beside the data there are %q", left)
				}
			})
		}
	}
}

// TestHalfOpenLink checks what a primary and its replica do when the machine between them
// is lost, in the stream and during a transfer: each ends the connection after
// repl-timeout, keeps nothing of it, and the replica continues with another one.
func TestHalfOpenLink(t *testing.T) {
	kinds := map[string]func(*testing.T) *node{
		"zsetd": func(t *testing.T) *node { return zsetdNode(t, map[string]string{"repl-timeout": "2"}) },
		"redis": func(t *testing.T) *node { return redisNode(t, "--repl-timeout", "2") },
	}
	for name, start := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := zsetdNode(t, map[string]string{"repl-timeout": "2", "repl-ping-replica-period": "1"})
			replica := start(t)
			primary.run(values()...)
			primary.run(incompressible(800)...) // more than the buffers of sockets
			w := wireTo(t, primary.addr)
			w.fallSilentAfter(100_000)
			replica.run("REPLICAOF " + w.host + " " + w.port)
			wait.Until(t, "the transfer falls silent", func() bool { n, _ := w.fallen(); return n > 0 })
			w.fallSilentAfter(-1)
			replica.linked()
			primary.same(replica)
			wait.Until(t, "the primary has given up the first connection", func() bool { return primary.Info("connected_slaves") == "1" })
			full := primary.Info("sync_full")
			w.fallSilent()
			primary.run("SET written meanwhile")
			if got := primary.Do("WAIT", "1", "100"); got != ":0\r\n" && replica.Do("GET", "written") != "$9\r\nmeanwhile\r\n" {
				t.Errorf("WAIT without a connection: %q", got)
			}
			wait.Until(t, "the replica has continued", func() bool { return primary.Info("sync_partial_ok") != "0" })
			if got := primary.Do("WAIT", "1", "0"); got != ":1\r\n" {
				t.Errorf("WAIT: %q", got)
			}
			primary.same(replica)
			wait.Until(t, "the primary has given up the second connection", func() bool { return primary.Info("connected_slaves") == "1" })
			if now := primary.Info("sync_full"); now != full {
				t.Errorf("%s full synchronizations, before it were %s", now, full)
			}
		})
	}
}

// TestShorterTimeout checks that a change of repl-timeout counts for a replica that waits for
// its primary already.
func TestShorterTimeout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- conn // which is silent
		}
	}()
	replica := zsetdNode(t, nil)
	host, port, _ := net.SplitHostPort(l.Addr().String())
	replica.run("REPLICAOF " + host + " " + port)
	for range 2 {
		select {
		case conn := <-accepted:
			defer conn.Close()
		case <-time.After(40 * time.Second): // the default of repl-timeout is 60
			t.Fatal("the replica still waits")
		}
		wait.Until(t, "the handshake has begun", func() bool { return strings.Contains(replica.Do("ROLE"), "handshake") })
		replica.run("CONFIG SET repl-timeout 1")
	}
	replica.run("REPLICAOF NO ONE")
}

// TestSharedStream checks that the stream which waits for replicas takes its memory once, that
// one which returns may continue with it beyond repl-backlog-size, that it is freed when no
// replica lacks it, and that it counts for the limit of each that waits.
func TestSharedStream(t *testing.T) {
	const written = 8 << 20
	primary := zsetdNode(t, map[string]string{"repl-backlog-size": "16kb", "rdb-key-save-delay": "200000000", "client-output-buffer-limit": "replica 0 0 0"})
	online := zsetdNode(t, nil)
	online.follow(primary) // there are no keys yet
	primary.run("SET a 1", "SET b 1")
	host, port, _ := net.SplitHostPort(primary.addr)
	primary.run("CONFIG SET repl-diskless-sync-delay 3600", "CONFIG SET repl-diskless-sync-max-replicas 2")
	waiting := []*node{zsetdNode(t, nil), zsetdNode(t, nil)}
	for _, n := range waiting {
		n.run("REPLICAOF " + host + " " + port)
	}
	wait.Until(t, "the transfer has begun", func() bool { return primary.Info("rdb_bgsave_in_progress") == "1" })
	size := func(field string) int64 {
		n, err := strconv.ParseInt(primary.Info(field), 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", field, err)
		}
		return n
	}
	fill := func(value string) {
		for i := range written >> 16 {
			primary.run(fmt.Sprintf("SET k%d %s", i, strings.Repeat(value, 64<<10)))
		}
	}
	fill("x")
	if n := size("mem_total_replication_buffers"); n < written || n > written+written/2 {
		t.Errorf("two replicas wait for %d bytes, which take %d", written, n)
	}
	if n := size("repl_backlog_histlen"); n < written {
		t.Errorf("repl_backlog_histlen:%d", n)
	}
	if got := primary.Info("repl_backlog_size"); got != "16384" {
		t.Errorf("repl_backlog_size:%s", got)
	}
	primary.same(online)
	online.run("REPLICAOF 127.0.0.1 1")
	fill("y")
	online.follow(primary)
	if got := primary.Info("sync_partial_ok"); got != "1" {
		t.Errorf("sync_partial_ok:%s: the stream is there, because others wait for it", got)
	}
	primary.run("CONFIG SET rdb-key-save-delay 0")
	for _, n := range waiting {
		n.linked()
	}
	primary.same(append(waiting, online)...)
	wait.Until(t, "the stream is freed", func() bool { return size("mem_total_replication_buffers") < 1<<20 })

	primary.Do("CONFIG", "SET", "client-output-buffer-limit", "replica 1mb 0 0", "rdb-key-save-delay", "200000000", "repl-diskless-sync-max-replicas", "1")
	zsetdNode(t, nil).run("REPLICAOF " + host + " " + port)
	wait.Until(t, "another transfer has begun", func() bool { return primary.Info("rdb_bgsave_in_progress") == "1" })
	fill("z")
	wait.Until(t, "the transfer has ended without its replica", func() bool { return size("client_output_buffer_limit_disconnections") > 0 })
	primary.run("CONFIG SET rdb-key-save-delay 0")
}

// TestLoadDelay checks that loading takes its time with key-load-delay, of the data of a primary
// and of the file, that a change of it counts at once, and that a replica may stop meanwhile.
func TestLoadDelay(t *testing.T) {
	const delay = "200000000" // microseconds for each key
	primary := zsetdNode(t, nil)
	primary.run(incompressible(100)...)
	replica := zsetdNode(t, map[string]string{"key-load-delay": delay, "repl-diskless-load": "on-empty-db"})
	host, port, _ := net.SplitHostPort(primary.addr)
	replica.run("REPLICAOF " + host + " " + port)
	loads := func() bool { return replica.Info("loading") == "1" }
	wait.Until(t, "the replica loads", loads)
	primary.run("SET late 1")
	zsetdNode(t, nil).follow(primary)
	if !loads() {
		t.Error("a replica that came later without a delay is there, and this one has loaded, too")
	}
	replica.run("CONFIG SET key-load-delay 0")
	replica.linked()
	primary.same(replica)
	stopped := zsetdNode(t, map[string]string{"key-load-delay": delay, "repl-diskless-load": "on-empty-db"})
	stopped.run("REPLICAOF " + host + " " + port)
	wait.Until(t, "another replica loads, until the test ends", func() bool { return stopped.Info("loading") == "1" })

	file := filepath.Join(t.TempDir(), "data.db")
	srv, err := server.New(server.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b", "c"} {
		if _, err := srv.Do(t.Context(), "SET", key, "1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	again := servertest.Run(t, server.Options{File: file, Config: map[string]string{"key-load-delay": delay}})
	nc, err := net.Dial("tcp", again.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	p := judge.NewPeer(nc, nc)
	if got := p.Do("GET", "a"); !strings.HasPrefix(got, "-LOADING ") {
		t.Errorf("GET: %q", got)
	}
	if got := p.Do("CONFIG", "SET", "key-load-delay", "0"); got != "+OK\r\n" {
		t.Errorf("CONFIG SET: %q", got)
	}
	if err := again.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := p.Do("DBSIZE"); got != ":3\r\n" {
		t.Errorf("DBSIZE: %q", got)
	}
}

// TestTransferDelay checks that a transfer takes its time with rdb-key-save-delay, in which
// the replica serves its old data or none, and has them or none after it has failed; that it ends when the replica leaves, and that a change
// of the parameter counts at once.
func TestTransferDelay(t *testing.T) {
	primary := zsetdNode(t, nil)
	primary.run(incompressible(100)...)
	const old = "$3\r\nold\r\n"
	for name, x := range map[string]struct {
		load   string
		again  bool   // the replica has had data of the primary
		want   string // the reply while it loads
		failed string // the reply after the transfer has failed
	}{
		"swapdb of the same history": {"swapdb", true, old, old},
		"swapdb of another history":  {"swapdb", false, "-LOADING ", old},
		"flushdb":                    {"flushdb", false, "-MASTERDOWN ", "-MASTERDOWN "},
		"disabled":                   {"disabled", false, old, old},
		"on-empty-db":                {"on-empty-db", false, old, old},
	} {
		t.Run(name, func(t *testing.T) {
			replica := zsetdNode(t, map[string]string{"repl-diskless-load": x.load, "replica-read-only": "no"})
			host, port, _ := net.SplitHostPort(primary.addr)
			if x.again {
				replica.follow(primary)
			}
			replica.run("SET key old")
			primary.run("CONFIG SET rdb-key-save-delay 200000000")
			async, loading, promotes := "0", "1", "-LOADING "
			if x.want == old {
				loading = "0"
			}
			if x.load == "disabled" || x.load == "on-empty-db" {
				promotes = "+OK"
			}
			if x.again {
				async = "1"
				primary.run("CONFIG SET repl-backlog-size 16kb", "MULTI", "CLIENT KILL TYPE replica", "SET large "+strings.Repeat("x", 100<<10), "EXEC")
			} else {
				replica.run("REPLICAOF " + host + " " + port)
			}
			transfers := func() bool {
				return replica.Info("master_sync_in_progress") == "1" && replica.Info("master_sync_read_bytes") != "0"
			}
			wait.Until(t, "the transfer has begun", transfers)
			if got := replica.Do("GET", "key"); !strings.HasPrefix(got, x.want) {
				t.Errorf("GET: %q, want %q", got, x.want)
			}
			for _, x := range []struct {
				node        *node
				field, want string
			}{
				{primary, "rdb_bgsave_in_progress", "1"}, {replica, "async_loading", async}, {replica, "loading", loading},
				{replica, "master_current_sync_attempts", "1"}, {replica, "master_link_status", "down"},
			} {
				if got := x.node.Info(x.field); got != x.want {
					t.Errorf("%s:%s, want %s", x.field, got, x.want)
				}
			}
			if got := primary.Info("slave0"); !strings.Contains(got, "state=wait_bgsave,") {
				t.Errorf("slave0:%s", got)
			}
			primary.run("CONFIG SET repl-diskless-sync-delay 3600")
			if got := replica.Do("REPLICAOF", "NO", "ONE"); !strings.HasPrefix(got, promotes) {
				t.Errorf("REPLICAOF NO ONE: %q", got)
			}
			if promotes == "+OK" {
				if got := replica.Do("GET", "key"); got != old {
					t.Errorf("GET after REPLICAOF NO ONE: %q", got)
				}
				replica.run("REPLICAOF " + host + " " + port)
			} else if got := primary.Do("CLIENT", "KILL", "TYPE", "replica"); got != ":1\r\n" {
				t.Errorf("CLIENT KILL: %q", got)
			}
			wait.Until(t, "the replica has what it had", func() bool { return strings.HasPrefix(replica.Do("GET", "key"), x.failed) })
			wait.Until(t, "the replica comes again", func() bool { return primary.Info("slave0") != "" })
			primary.run("CONFIG SET rdb-key-save-delay 0", "CONFIG SET repl-diskless-sync-delay 0")
			replica.linked()
			primary.same(replica)
			if got := replica.Info("lazyfreed_objects"); got == "0" {
				t.Errorf("lazyfreed_objects:%s, but the replica had a key", got)
			}
			if got := replica.Info("master_total_sync_attempts"); got < "2" && promotes != "+OK" {
				t.Errorf("master_total_sync_attempts:%s", got)
			}
		})
	}
}

// TestTransferStates checks what INFO says of a replica that waits for a transfer, of one that
// receives a file with a length, and of the transfer.
func TestTransferStates(t *testing.T) {
	p := primaryOf(t, nil)
	p.run(incompressible(4000)...) // more than the buffers of a socket
	in := func(state, transfer string) func() bool {
		return func() bool {
			return strings.Contains(p.primary.Info("slave0"), "state="+state+",") && p.primary.Info("rdb_bgsave_in_progress") == transfer
		}
	}
	sync := func() net.Conn {
		nc, err := net.Dial("tcp", p.srv.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		fmt.Fprint(nc, "SYNC\r\n")
		return nc
	}
	first := sync()
	wait.Until(t, "the file is sent", in("send_bulk", "1"))
	first.Close()
	wait.Until(t, "the transfer has ended", func() bool {
		return p.primary.Info("connected_slaves") == "0" && p.primary.Info("rdb_bgsave_in_progress") == "0"
	})
	if got := p.primary.Info("rdb_current_bgsave_time_sec"); got != "-1" {
		t.Errorf("rdb_current_bgsave_time_sec:%s", got)
	}
	if got := p.primary.Do("PSYNC", "id", "offset"); got != "-ERR value is not an integer or out of range\r\n" {
		t.Errorf("PSYNC: %q", got)
	}
	p.run("CONFIG SET repl-diskless-sync-delay 3600")
	second := sync()
	wait.Until(t, "the replica waits", in("wait_bgsave", "0"))
	p.run("CONFIG SET repl-diskless-sync-delay 0")
	go io.Copy(io.Discard, second)
	wait.Until(t, "the data are sent", in("online", "0"))
}

// TestStuckReplica checks that a replica which takes nothing of a transfer for repl-timeout is
// disconnected, and that another one gets all of the same transfer, as it was made.
func TestStuckReplica(t *testing.T) {
	p := primaryOf(t, map[string]string{
		"repl-diskless-sync-delay": "3600", "repl-diskless-sync-max-replicas": "2", "repl-timeout": "5", "rdbcompression": "no",
	})
	p.run("DEBUG POPULATE 64 key 1000000") // more than the buffers of a socket
	ask := func() (net.Conn, *bufio.Reader) {
		nc := p.dial()
		in := bufio.NewReader(nc)
		fmt.Fprint(nc, "REPLCONF capa eof\r\n")
		if _, err := in.ReadString('\n'); err != nil { // PSYNC wants it to be read
			t.Fatal(err)
		}
		fmt.Fprint(nc, "PSYNC ? -1\r\n")
		return nc, in
	}
	ask()
	nc, in := ask()
	nc.SetDeadline(time.Now().Add(time.Minute))
	mark := ""
	for !strings.HasPrefix(mark, "$EOF:") {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		mark = strings.TrimSpace(line)
	}
	mark = strings.TrimPrefix(mark, "$EOF:")
	end, total := "", 0
	for end != mark {
		b := make([]byte, 64<<10)
		n, err := in.Read(b)
		if err != nil {
			t.Fatalf("after %d bytes: %v", total, err)
		}
		total += n
		end += string(b[:n])
		end = end[max(0, len(end)-len(mark)):]
	}
	if total < 64_000_000 {
		t.Errorf("%d bytes: values are compressed", total)
	}
	if got := p.primary.Info("connected_slaves"); got != "1" {
		t.Errorf("%s replicas are connected", got)
	}
}

// TestCutLink checks that a replica returns at once when its link was cut, and not after the
// second that it waits for between attempts to connect.
func TestCutLink(t *testing.T) {
	primary, replica := zsetdNode(t, nil), zsetdNode(t, nil)
	replica.follow(primary)
	const cuts = 70
	began := time.Now()
	for i := range cuts {
		primary.run("CLIENT KILL TYPE replica")
		wait.Until(t, "the replica is back", func() bool { return primary.Info("sync_partial_ok") == strconv.Itoa(i+1) })
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("%d returns took %v", cuts, took)
	}
	primary.run("SET key 1")
	primary.same(replica)
}
