package replication_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/tests/transcript"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// A pair is a zsetd primary and a replica of another kind.
type pair struct {
	t       *testing.T
	srv     *servertest.Server
	dial    func() net.Conn // connects to the primary
	primary *judge.Peer
	replica *judge.Peer
}

// noPings keeps a primary from adding PING to its stream. A server that was just replaced
// as the primary would be ahead of the new one by such a command, and start from the beginning.
const noPings = "3600"

// primaryOf starts a zsetd primary that begins transfers at once. It may have a file.
func primaryOf(t *testing.T, config map[string]string, file ...string) *pair {
	t.Helper()
	c := map[string]string{"repl-diskless-sync-delay": "0", "repl-ping-replica-period": noPings, "enable-debug-command": "yes"}
	for name, value := range config {
		c[name] = value
	}
	o := server.Options{Config: c}
	if len(file) > 0 {
		o.File = file[0]
	}
	p := &pair{t: t, srv: servertest.Run(t, o)}
	if err := p.srv.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	dial := func() net.Conn {
		nc, err := net.Dial("tcp", p.srv.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		return nc
	}
	p.dial, p.primary = dial, judge.NewPeer(dial(), dial())
	return p
}

// follow starts a redis-server that replicates the primary.
func (p *pair) follow(args ...string) {
	p.t.Helper()
	dial := judge.Start(p.t, append(p.replicaof(), args...)...)
	p.replica = judge.NewPeer(dial(), dial())
	p.linked()
}

// replicaof returns the arguments of a server that replicates the primary.
func (p *pair) replicaof() []string {
	host, port, _ := net.SplitHostPort(p.srv.Addr())
	return []string{"--replicaof", host, port, "--enable-debug-command", "yes"}
}

// linked waits until the replica is synchronized.
func (p *pair) linked() {
	p.t.Helper()
	wait.Until(p.t, "the replica is synchronized", func() bool {
		return strings.Contains(p.replica.Do("INFO", "replication"), "master_link_status:up")
	})
}

// run runs command lines at the primary; none may fail.
func (p *pair) run(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		if r := p.primary.Do(strings.Fields(line)...); strings.HasPrefix(r, "-") {
			p.t.Fatalf("%s: %s", line, r)
		}
	}
}

// caughtUp waits until the replica has all changes so far: a message is a change after
// them, and WAIT waits for it.
func (p *pair) caughtUp() {
	p.t.Helper()
	p.run("PUBLISH caught-up 1")
	if got := p.primary.Do("WAIT", "1", "0"); got != ":1\r\n" {
		p.t.Fatalf("WAIT: %q", got)
	}
}

// equal waits until the replica has what the primary has.
func (p *pair) equal() {
	p.t.Helper()
	p.caughtUp()
	ours, theirs := p.primary.Do("DEBUG", "DIGEST"), p.replica.Do("DEBUG", "DIGEST")
	if ours == theirs {
		return
	}
	for _, key := range strings.Fields(p.primary.Do("KEYS", "*")) {
		if strings.HasPrefix(key, "$") || strings.HasPrefix(key, "*") {
			continue
		}
		if a, b := p.primary.Do("DEBUG", "DIGEST-VALUE", key), p.replica.Do("DEBUG", "DIGEST-VALUE", key); a != b {
			p.t.Errorf("%s: %q here, %q there (%q, %q)", key, a, b, p.primary.Do("TYPE", key), p.replica.Do("TYPE", key))
		}
	}
	p.t.Fatalf("digest %q, replica %q; keys %s", ours, theirs, p.replica.Do("DBSIZE"))
}

// values are commands that make values of all types, in two databases.
func values() []string {
	lines := []string{
		"SET text hello", "SET number 12", "SET timed x PXAT 33000000000000", "APPEND long " + strings.Repeat("abc", 40_000),
		"RPUSH list a b c 1 2 3", "SADD set a b c", "SADD ints 1 2 3", "HSET hash f v g w", "ZADD zset 1 a 2.5 b -inf c",
		"XADD stream 1-1 f v", "XADD stream 2-1 f v g w", "XDEL stream 1-1", "XGROUP CREATE stream g 0", "XREADGROUP GROUP g c STREAMS stream >",
		"PFADD hll a b c", "GEOADD geo 13.361389 38.115556 Palermo",
		"SELECT 3", "SET other database", "SELECT 0",
	}
	for i := range 500 {
		lines = append(lines, fmt.Sprintf("ZADD large %d member:%d", i, i), fmt.Sprintf("RPUSH row element:%d", i), fmt.Sprintf("HSET fields f%d %d", i, i), fmt.Sprintf("SET key:%d %d", i, i))
	}
	return lines
}

// TestReplicaOfRedis checks that redis-server and its kin follow: the data of the
// beginning, then changes of all kinds, and what it missed while its connection was cut.
func TestReplicaOfRedis(t *testing.T) {
	type trial struct {
		config map[string]string
		follow func(p *pair)
	}
	redis := func(p *pair) { p.follow() }
	trials := map[string]trial{
		"without a length": {nil, redis},
		"through a file":   {map[string]string{"repl-diskless-sync": "no"}, redis},
		"a goroutine each": {map[string]string{"transport": "net"}, redis},
	}
	for _, n := range judge.NewerServers() {
		trials[n.Name] = trial{nil, func(p *pair) {
			p.replica = n.Start(p.t, p.replicaof()...)
			p.linked()
		}}
	}
	for name, trial := range trials {
		t.Run(name, func(t *testing.T) {
			p := primaryOf(t, trial.config)
			p.run(values()...)
			if r := p.primary.Do("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() return 7 end)"); strings.HasPrefix(r, "-") {
				t.Fatal(r)
			}
			trial.follow(p)
			p.equal()
			if got := p.replica.Do("FCALL_RO", "f", "0"); !strings.Contains(p.replica.Do("FUNCTION", "LIST"), "library_name") {
				t.Error("the library is not there", got)
			}
			p.run("SET text again", "DEL list", "ZINCRBY zset 3 a", "ZPOPMIN large 3", "LPOP row 4", "SPOP set", "EVAL return{redis.call('set','x',1),redis.call('incr','x')} 0",
				"MULTI", "SET m 1", "SADD n 1 2 3", "EXEC", "RENAME hash hash2", "COPY zset zset2", "MOVE ints 3", "EXPIRE text 100", "PERSIST timed",
				"SELECT 3", "SET more 1", "SWAPDB 3 5", "SELECT 0", "XADD stream * a b", "XTRIM stream MAXLEN 1", "SORT row ALPHA STORE sorted", "GETEX m PX 100000000", "SETRANGE text 10 abc", "LINSERT row BEFORE element:100 new")
			p.equal()
			events := p.replica.Events
			if _, err := events.Pipeline([][]string{{"SUBSCRIBE", "channel"}}); err != nil {
				t.Fatal(err)
			}
			p.run("PUBLISH channel message")
			events.NC.SetReadDeadline(time.Now().Add(time.Minute))
			if got, err := transcript.ReadReply(events.R, nil); err != nil || string(got) != "*3\r\n$7\r\nmessage\r\n$7\r\nchannel\r\n$7\r\nmessage\r\n" {
				t.Errorf("%q, %v", got, err)
			}
			if got := p.primary.Do("CLIENT", "KILL", "TYPE", "replica"); got != ":1\r\n" {
				t.Error("killed", got)
			}
			p.run("SET text missed", "SADD set missed", "SELECT 5", "FLUSHDB", "SELECT 0")
			wait.Until(t, "the replica has continued", func() bool { return p.primary.Info("sync_partial_ok") == "1" })
			p.equal()
			if full := p.primary.Info("sync_full"); full != "1" {
				t.Errorf("%s full synchronizations", full)
			}
			p.run("FLUSHALL", "SET last 1")
			p.equal()
		})
	}
}

// TestReplicaState checks what commands report of a replica, and refuse it.
func TestReplicaState(t *testing.T) {
	p := primaryOf(t, map[string]string{"min-replicas-to-write": "1"})
	if got := p.primary.Do("SET", "a", "1"); got != "-NOREPLICAS Not enough good replicas to write.\r\n" {
		t.Errorf("SET without a replica: %q", got)
	}
	p.follow("--replica-announce-port", "7000", "--replica-announce-ip", "replica.example")
	wait.Until(t, "the replica counts", func() bool { return p.primary.Do("SET", "a", "1") == "+OK\r\n" })
	p.equal()
	if got := p.primary.Info("slave0"); !strings.HasPrefix(got, "ip=replica.example,port=7000,state=online,offset=") {
		t.Errorf("slave0: %s", got)
	}
	if got := p.primary.Do("ROLE"); !strings.HasPrefix(got, "*3\r\n$6\r\nmaster\r\n:") || !strings.Contains(got, "*3\r\n$15\r\nreplica.example\r\n$4\r\n7000\r\n$") {
		t.Errorf("ROLE: %q", got)
	}
	if got := p.primary.Do("CLIENT", "LIST", "TYPE", "replica"); !strings.Contains(got, " flags=S ") || !strings.Contains(got, " cmd=replconf ") {
		t.Errorf("CLIENT LIST: %q", got)
	}
	for range 100 { // the offset has every change that a client has a reply to
		before := p.primary.Info("master_repl_offset")
		p.run("INCR n")
		if got := p.primary.Info("master_repl_offset"); got == before {
			t.Fatalf("offset %s before and after a change", got)
		}
	}
	for field, want := range map[string]string{"connected_slaves": "1", "min_slaves_good_slaves": "1", "repl_backlog_active": "1", "sync_full": "1", "sync_partial_err": "0"} {
		if got := p.primary.Info(field); got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
}

// TestWaitForReplicas checks that WAIT counts replicas that have the client's writes.
func TestWaitForReplicas(t *testing.T) {
	p := primaryOf(t, nil)
	p.follow()
	if got := p.primary.Do("WAIT", "1", "0"); got != ":1\r\n" { // nothing was written
		t.Errorf("WAIT: %q", got)
	}
	for range 100 {
		p.run("INCR n")
		if got := p.primary.Do("WAIT", "1", "0"); got != ":1\r\n" {
			t.Fatalf("WAIT: %q", got)
		}
		if a, b := p.primary.Do("GET", "n"), p.replica.Do("GET", "n"); a != b {
			t.Fatalf("WAIT says that the replica has %q; it has %q", a, b)
		}
	}
	var clients sync.WaitGroup
	for n := range 100 { // every other one leaves while it waits
		nc, err := net.Dial("tcp", p.srv.Addr())
		if err != nil {
			t.Fatal(err)
		}
		c := judge.NewConn(nc)
		clients.Go(func() {
			defer nc.Close()
			key := fmt.Sprint("c", n)
			for range 10 {
				if r, err := c.Pipeline([][]string{{"INCR", key}, {"WAIT", "1", "0"}}); err != nil || r[1] != ":1\r\n" {
					t.Errorf("%q, %v", r, err)
				}
			}
			if n%2 == 0 {
				c.Send([]byte("WAIT 2 0\r\n"))
			}
		})
	}
	clients.Wait()
	if got := p.primary.Do("WAIT", "2", "1"); got != ":1\r\n" {
		t.Errorf("WAIT 2: %q", got)
	}
	pid := p.replica.Info("process_id")
	signal := func(name string) {
		t.Helper()
		if out, err := exec.Command("sh", "-c", "kill -"+name+" "+pid).CombinedOutput(); err != nil {
			t.Fatalf("kill: %v\n%s", err, out)
		}
	}
	signal("STOP")
	p.run("SET stopped 1")
	if got := p.primary.Do("WAIT", "1", "20"); got != ":0\r\n" {
		t.Errorf("WAIT for a replica that is stopped: %q", got)
	}
	for dialect, want := range map[string]string{"redis": ":1\r\n", "valkey": ":0\r\n"} {
		p.run("CONFIG SET dialect " + dialect)
		if got := p.primary.Do("EVAL", "return redis.call('WAIT', 1, 0)", "0"); got != want {
			t.Errorf("WAIT in a script after a write by its caller, in the dialect of %s: %q, want %q", dialect, got, want)
		}
	}
	signal("CONT")
	if got := p.primary.Do("WAIT", "1", "0"); got != ":1\r\n" {
		t.Errorf("WAIT for a replica that continues: %q", got)
	}
}

// TestSyncOfTools checks the two forms of a transfer as tools ask for them: redis-cli
// --rdb, and SYNC by a client that announces nothing.
func TestSyncOfTools(t *testing.T) {
	p := primaryOf(t, nil)
	p.run(values()...)
	nc, err := net.Dial("tcp", p.srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	r := bufio.NewReader(nc)
	fmt.Fprint(nc, "SYNC\r\n")
	head := "\n"
	for head == "\n" { // these keep the connection alive
		if head, err = r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(head, "$")))
	if err != nil {
		t.Fatalf("%q: %v", head, err)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		t.Fatal(err)
	}
	p.run("SET later 1")
	want := "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$5\r\nlater\r\n$1\r\n1\r\n"
	stream := make([]byte, len(want))
	if _, err := io.ReadFull(r, stream); err != nil || string(stream) != want {
		t.Errorf("%q, %v; want %q", stream, err, want)
	}
	path := filepath.Join(t.TempDir(), "sync.rdb")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	cli := filepath.Join(t.TempDir(), "cli.rdb")
	host, port, _ := net.SplitHostPort(p.srv.Addr())
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("redis-cli is not installed")
	}
	if out, err := exec.Command("redis-cli", "-h", host, "-p", port, "--rdb", cli).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, path := range []string{path, cli} {
		out, err := exec.Command("redis-check-rdb", path).CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("RDB looks OK")) {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
	}
}

// TestSyncVersions checks which version of an RDB file replicas receive by what they
// announce: that of the oldest of those that share a transfer.
func TestSyncVersions(t *testing.T) {
	const plain, redis8, valkey = "capa eof capa psync2", "capa eof capa rdb-channel-repl", "version 9.1.2"
	for _, test := range []struct {
		version   string
		announced []string
	}{
		{"REDIS0009", []string{plain}},
		{"REDIS0010", []string{redis8}},
		{"REDIS0010", []string{valkey}},
		{"REDIS0009", []string{"capa zsetd version 9.0.0"}},
		{"REDIS0010", []string{valkey, redis8}},
		{"REDIS0009", []string{redis8, plain}},
	} {
		p := primaryOf(t, map[string]string{"repl-diskless-sync-delay": "3600"})
		p.run(values()...)
		var replicas []*bufio.Reader
		for _, announced := range test.announced {
			nc, err := net.Dial("tcp", p.srv.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			nc.SetDeadline(time.Now().Add(time.Minute))
			r := bufio.NewReader(nc)
			fmt.Fprintf(nc, "REPLCONF %s\r\n", announced)
			if line, err := r.ReadString('\n'); line != "+OK\r\n" {
				t.Fatal(line, err)
			}
			fmt.Fprint(nc, "PSYNC ? -1\r\n")
			replicas = append(replicas, r)
		}
		wait.Until(t, "the replicas wait", func() bool { return p.primary.Info("connected_slaves") == strconv.Itoa(len(replicas)) })
		p.run("CONFIG SET repl-diskless-sync-delay 0")
		for i, r := range replicas {
			for line := ""; !strings.HasPrefix(line, "$"); {
				var err error
				if line, err = r.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			if head, err := r.Peek(len(test.version)); err != nil || string(head) != test.version {
				t.Errorf("%q: replica %d receives %q, %v", test.announced, i, head, err)
			}
		}
	}
}

// TestReplicaUnderLoad checks that a replica which is synchronized, cut off and
// synchronized again while clients change all keys has the same data in the end.
func TestReplicaUnderLoad(t *testing.T) {
	p := primaryOf(t, map[string]string{"repl-backlog-size": "16kb"})
	for i := range 20_000 {
		p.srv.Do(t.Context(), "SET", fmt.Sprintf("s%d", i), i)
		p.srv.Do(t.Context(), "ZADD", fmt.Sprintf("z%d", i%2000), i, i)
	}
	stop := make(chan struct{})
	var load sync.WaitGroup
	for n := range 4 {
		load.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 0))
			for {
				select {
				case <-stop:
					return
				default:
				}
				k, z := fmt.Sprintf("s%d", r.IntN(30_000)), fmt.Sprintf("z%d", r.IntN(3000))
				switch r.IntN(8) {
				case 0:
					p.srv.Do(context.Background(), "DEL", k)
				case 1:
					p.srv.Do(context.Background(), "INCR", k)
				case 2:
					p.srv.Do(context.Background(), "RENAME", z, fmt.Sprintf("z%d", r.IntN(3000)))
				case 3:
					p.srv.Do(context.Background(), "ZADD", z, r.IntN(100), r.IntN(100))
				case 4:
					p.srv.Do(context.Background(), "RPUSH", "list", r.IntN(100))
				case 5:
					p.srv.Do(context.Background(), "LPOP", "list")
				case 6:
					p.srv.Do(context.Background(), "SADD", "set", r.IntN(1000))
				case 7:
					p.srv.Do(context.Background(), "SPOP", "set")
				}
			}
		})
	}
	p.follow()
	for range 3 {
		wait.Pace(50 * time.Millisecond)
		p.primary.Do("CLIENT", "KILL", "TYPE", "replica")
		wait.Until(t, "the replica has come back", func() bool { return strings.Contains(p.primary.Info("slave0"), "state=online") })
	}
	close(stop)
	load.Wait()
	p.linked()
	p.equal()
}

// TestReplicaThatDoesNotRead checks that a replica whose output exceeds its limit is
// disconnected, and that another one misses nothing for that.
func TestReplicaThatDoesNotRead(t *testing.T) {
	p := primaryOf(t, map[string]string{"client-output-buffer-limit": "replica 1mb 0 0"})
	nc, err := net.Dial("tcp", p.srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	fmt.Fprint(nc, "SYNC\r\n")
	wait.Until(t, "the first replica is online", func() bool { return strings.Contains(p.primary.Info("slave0"), "state=online") })
	p.follow()
	value := strings.Repeat("x", 1<<20)
	for i := range 40 { // more than the buffers of a socket
		p.run(fmt.Sprintf("SET key:%d %s", i, value))
	}
	wait.Until(t, "the first replica is disconnected", func() bool { return p.primary.Info("connected_slaves") == "1" })
	p.equal()
}

// TestReplicaThatLoadsIsGood checks that a replica which INFO calls online counts for
// min-replicas-to-write, though it has acknowledged nothing yet.
func TestReplicaThatLoadsIsGood(t *testing.T) {
	p := primaryOf(t, map[string]string{"min-replicas-to-write": "1", "min-replicas-max-lag": "3600"})
	nc := p.dial()
	fmt.Fprint(nc, "REPLCONF capa eof\r\n")
	if _, err := io.ReadFull(nc, make([]byte, len("+OK\r\n"))); err != nil { // PSYNC wants it to be read
		t.Fatal(err)
	}
	fmt.Fprint(nc, "PSYNC ? -1\r\n")
	wait.Until(t, "the replica is online", func() bool { return strings.Contains(p.primary.Info("slave0"), "state=online") })
	p.run("SET key 1")
}

// TestWaitAfterReload checks that WAIT knows the writes of a client that were made before
// the data were replaced, which begins another stream.
func TestWaitAfterReload(t *testing.T) {
	p := primaryOf(t, map[string]string{"dir": t.TempDir(), "dbfilename": "k.db"})
	p.follow()
	p.run("SET a 1", "SET b 2", "SET c 3")
	p.equal()
	if got, err := p.primary.Events.Pipeline([][]string{{"DEBUG", "RELOAD"}}); err != nil || got[0] != "+OK\r\n" {
		t.Fatalf("DEBUG RELOAD: %q, %v", got, err)
	}
	wait.Until(t, "the replica has come back", func() bool { return strings.Contains(p.primary.Info("slave0"), "state=online") })
	if got := p.primary.Do("WAIT", "1", "60000"); got != ":1\r\n" {
		t.Errorf("WAIT: %q", got)
	}
}

// TestWaitForDisks checks that WAITAOF counts the disks that have the client's writes: that of
// the server, and those of replicas.
func TestWaitForDisks(t *testing.T) {
	file := func() map[string]string {
		return map[string]string{"dir": t.TempDir(), "dbfilename": "data.db", "appendonly": "yes", "save": ""}
	}
	primary := zsetdNode(t, file())
	for range 20 {
		primary.run("INCR counter")
		if got := primary.Do("WAITAOF", "1", "0", "0"); got != "*2\r\n:1\r\n:0\r\n" {
			t.Fatalf("WAITAOF 1 0: %q", got)
		}
		primary.run("CONFIG SET appendfsync always")
	}
	const noLog = "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n"
	for argv, want := range map[string]string{
		"WAITAOF 2 0 0":  "-ERR value is out of range, value must between 0 and 1\r\n",
		"WAITAOF 0 -1 0": "-ERR value is out of range, must be positive\r\n",
		"WAITAOF 0 0 -1": "-ERR timeout is negative\r\n",
		"WAITAOF 0 1 1":  "*2\r\n:1\r\n:0\r\n",
	} {
		if got := primary.Do(strings.Fields(argv)...); got != want {
			t.Errorf("%s: %q, want %q", argv, got, want)
		}
	}
	replica := zsetdNode(t, file())
	replica.follow(primary)
	for range 20 {
		primary.run("INCR counter")
		if got := primary.Do("WAITAOF", "1", "1", "0"); got != "*2\r\n:1\r\n:1\r\n" {
			t.Fatalf("WAITAOF 1 1: %q", got)
		}
		replica.run("CONFIG SET appendfsync always")
	}
	replica.run("CONFIG SET appendonly no")
	primary.run("INCR counter")
	if got := primary.Do("WAITAOF", "0", "1", "1"); got != "*2\r\n:1\r\n:0\r\n" {
		t.Errorf("a replica without appendonly counts: %q", got)
	}
	if got := replica.Do("WAITAOF", "0", "0", "0"); !strings.HasPrefix(got, "-ERR WAITAOF cannot be used with replica instances") {
		t.Errorf("WAITAOF on a replica: %q", got)
	}
	primary.run("CONFIG SET appendonly no")
	if got := primary.Do("WAITAOF", "1", "0", "0"); got != noLog {
		t.Errorf("without appendonly: %q", got)
	}
}

// TestReadOffsetWhilePaused checks that a replica whose writes are paused reads on, and
// executes nothing.
func TestReadOffsetWhilePaused(t *testing.T) {
	primary, replica := zsetdNode(t, nil), zsetdNode(t, nil)
	replica.follow(primary)
	primary.run("SET k 1")
	primary.same(replica)
	before := replica.Info("slave_repl_offset")
	replica.run("CLIENT PAUSE 1000000 WRITE")
	primary.run("SET k 2")
	wait.Until(t, "the replica has read the stream", func() bool { return replica.Info("slave_read_repl_offset") == primary.Info("master_repl_offset") })
	if got := replica.Info("slave_repl_offset"); got != before || replica.Do("GET", "k") != "$1\r\n1\r\n" {
		t.Errorf("a paused replica has executed the stream up to %s, not %s", got, before)
	}
	replica.run("CLIENT UNPAUSE")
	primary.same(replica)
}

// TestDebugReplicate checks that a command reaches the replica alone, after the changes before
// it, and that a replica counts one that it does not know.
// TestMovesOfElements: a move between lists reaches a replica as one command, also from a list
// that becomes empty, to a new list, within one list, of a long element, in a transaction and in
// a script, and for a client that waits.
func TestMovesOfElements(t *testing.T) {
	p := primaryOf(t, map[string]string{"list-max-listpack-size": "4"})
	p.follow()
	stats := func() string {
		text := ""
		for line := range strings.Lines(p.replica.Do("INFO", "commandstats")) {
			if name, calls, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name != "cmdstat_info" {
				calls, _, _ = strings.Cut(calls, ",")
				text += strings.TrimPrefix(name, "cmdstat_") + " " + strings.TrimPrefix(calls, "calls=") + "\n"
			}
		}
		return text
	}
	long := strings.Repeat("x", 200<<10)
	waiting := judge.NewPeer(p.dial(), p.dial())
	for _, x := range []struct {
		setup    string
		commands []string
		want     string
	}{
		{"RPUSH a 1 2 3", []string{"LMOVE a b LEFT RIGHT"}, "lmove 1"},
		{"RPUSH a 1 2 3", []string{"LMOVE a a RIGHT LEFT"}, "lmove 1"},
		{"RPUSH a 1 2 3", []string{"RPOPLPUSH a b", "RPOPLPUSH a b", "RPOPLPUSH a b"}, "rpoplpush 3"},
		{"RPUSH a 1", []string{"RPOPLPUSH a a"}, "rpoplpush 1"},
		{"RPUSH a 1", []string{"LMOVE a a LEFT LEFT"}, "lmove 1"},
		{"RPUSH a " + long, []string{"BLMOVE a b LEFT LEFT 0"}, "lmove 1"},
		{"RPUSH a 1 2", []string{"MULTI", "LMOVE a b LEFT LEFT", "RPUSH a 3", "LMOVE b a RIGHT RIGHT", "EXEC"}, "lmove 2 rpush 1"},
		{"RPUSH a 1", []string{"MULTI", "RPOPLPUSH a a", "RPUSH a 2", "EXEC"}, "rpoplpush 1 rpush 1"},
		{"RPUSH a 1 2", []string{"EVAL redis.call('rpush','a','3')redis.call('lmove','a','b','RIGHT','LEFT')redis.call('lpush','b','4') 0"},
			"lmove 1 lpush 1 rpush 1"},
	} {
		p.run("FLUSHALL")
		p.run(x.setup)
		p.run("RPUSH b 0", "EXPIRE b 100")
		p.caughtUp()
		p.replica.Do("CONFIG", "RESETSTAT")
		p.run(x.commands...)
		p.equal()
		got := stats()
		for _, unwanted := range []string{"lpop", "rpop", "lpush", "rpush", "del", "lmove", "rpoplpush"} {
			calls := regexp.MustCompile("(?m)^" + unwanted + " .*").FindString(got)
			if calls != regexp.MustCompile(`\b`+unwanted+` \d+`).FindString(x.want) {
				t.Errorf("%.40q, then %q: the replica has run %q, want %q", x.setup, x.commands, calls, x.want)
			}
		}
	}
	p.run("FLUSHALL")
	p.replica.Do("CONFIG", "RESETSTAT")
	done := make(chan string, 1)
	go func() { done <- waiting.Do("BRPOPLPUSH", "a", "b", "0") }()
	wait.Until(t, "a client waits", func() bool { return p.primary.Info("blocked_clients") == "1" })
	p.run("RPUSH a 1 2")
	if got := <-done; got != "$1\r\n2\r\n" {
		t.Errorf("BRPOPLPUSH: %q", got)
	}
	p.equal()
	if got := stats(); !strings.Contains(got, "rpoplpush 1\n") {
		t.Errorf("the replica has run %q", got)
	}
}

func TestDebugReplicate(t *testing.T) {
	primary, replica := zsetdNode(t, nil), zsetdNode(t, nil)
	primary.run("DEBUG REPLICATE SET early 1")
	replica.follow(primary)
	primary.run("SET list text", "DEL list", "DEBUG REPLICATE RPUSH list a b", "DEBUG REPLICATE fake-command-1", "SET late 1")
	if got := primary.Do("WAIT", "1", "0"); got != ":1\r\n" {
		t.Fatalf("WAIT: %q", got)
	}
	for command, want := range map[string][2]string{
		"LLEN list": {":0\r\n", ":2\r\n"}, "EXISTS late": {":1\r\n", ":1\r\n"}, "EXISTS early": {":0\r\n", ":0\r\n"},
	} {
		if got := [2]string{primary.Do(strings.Fields(command)...), replica.Do(strings.Fields(command)...)}; got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	if got := replica.Info("unexpected_error_replies"); got != "1" {
		t.Errorf("unexpected_error_replies:%s, want 1", got)
	}
}
