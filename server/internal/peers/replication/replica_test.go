package replication_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
	"github.com/zsetd/zsetd/server/internal/tests/transcript"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// node is a server of a chain of replicas: zsetd or another one.
type node struct {
	*judge.Peer
	t    *testing.T
	addr string
	srv  *servertest.Server // nil for another kind
}

// zsetdNode starts a zsetd whose transfers begin at once.
func zsetdNode(t *testing.T, config map[string]string) *node {
	t.Helper()
	p := primaryOf(t, config)
	return &node{Peer: p.primary, t: t, addr: p.srv.Addr(), srv: p.srv}
}

// redisNode starts a redis-server.
func redisNode(t *testing.T, args ...string) *node {
	t.Helper()
	port := judge.FreePort(t)
	dial := judge.Start(t, append([]string{"--port", port, "--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", noPings}, args...)...)
	return &node{Peer: judge.NewPeer(dial(), dial()), t: t, addr: "127.0.0.1:" + port}
}

// run runs command lines; none may fail.
func (n *node) run(lines ...string) {
	n.t.Helper()
	for _, line := range lines {
		if r := n.Do(strings.Fields(line)...); strings.HasPrefix(r, "-") {
			n.t.Fatalf("%s: %s", line, r)
		}
	}
}

// follow makes the node a replica and waits for the link.
func (n *node) follow(of *node) {
	n.t.Helper()
	host, port, _ := net.SplitHostPort(of.addr)
	n.run("REPLICAOF " + host + " " + port)
	n.linked()
}

func (n *node) linked() {
	n.t.Helper()
	wait.Until(n.t, "the replica is linked", func() bool { return n.Info("master_link_status") == "up" })
}

// offset returns how much of the stream the node has.
func (n *node) offset() int64 {
	o, _ := strconv.ParseInt(n.Info("master_repl_offset"), 10, 64)
	return o
}

// same waits until the replicas have what the node has.
func (n *node) same(replicas ...*node) {
	n.t.Helper()
	n.run("PUBLISH caught-up 1", "WAIT 1 0") // the stream has all changes now
	for _, r := range replicas {
		wait.Until(n.t, "the replica has the stream", func() bool { return r.offset() >= n.offset() })
		if ours, theirs := n.Do("DEBUG", "DIGEST"), r.Do("DEBUG", "DIGEST"); ours != theirs {
			n.t.Fatalf("digest %q, replica %q; keys %s", ours, theirs, r.Do("DBSIZE"))
		}
		if r.srv != nil {
			if err := r.srv.Check(); err != nil {
				n.t.Fatal(err)
			}
		}
	}
}

// atOnce runs subtests, of which each spends most of its time waiting, all at once. With
// t.Parallel, as many would run as there are cores.
func atOnce(t *testing.T, tests map[string]func(*testing.T)) {
	var all sync.WaitGroup
	for name, test := range tests {
		all.Go(func() { t.Run(name, test) })
	}
	all.Wait()
}

// TestFollow checks that a zsetd follows servers of several kinds: all data, changes, what
// it missed while its link was cut, and that it is promoted.
func TestFollow(t *testing.T) {
	kinds := map[string]func(*testing.T) *node{
		"redis":       func(t *testing.T) *node { return redisNode(t) },
		"redis, file": func(t *testing.T) *node { return redisNode(t, "--repl-diskless-sync", "no") },
		"zsetd":       func(t *testing.T) *node { return zsetdNode(t, nil) },
		"zsetd, file": func(t *testing.T) *node { return zsetdNode(t, map[string]string{"repl-diskless-sync": "no"}) },
	}
	for _, n := range judge.NewerServers() {
		kinds[n.Name] = func(t *testing.T) *node {
			port := judge.FreePort(t)
			return &node{Peer: n.Start(t, "--port", port, "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", noPings), t: t, addr: "127.0.0.1:" + port}
		}
	}
	tests := map[string]func(*testing.T){}
	for name, start := range kinds {
		for _, load := range []string{"disabled", "swapdb"} {
			tests[name+", "+load] = func(t *testing.T) {
				primary := start(t)
				replica := zsetdNode(t, map[string]string{"repl-diskless-load": load})
				sub := zsetdNode(t, nil)
				replica.run("SET old 1", "SELECT 5", "SET old 2", "SELECT 0")
				primary.run(values()...)
				if r := primary.Do("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function{function_name='f', callback=function() return 7 end, flags={'no-writes'}}"); strings.HasPrefix(r, "-") {
					t.Fatal(r)
				}
				replica.follow(primary)
				primary.run("SELECT 5", "SET before 1") // sub learns the selected database from the file
				sub.follow(replica)
				primary.run("SET after 1", "SELECT 0")
				primary.same(replica, sub)
				if got := replica.Do("FCALL_RO", "f", "0"); got != ":7\r\n" {
					t.Errorf("FCALL_RO: %q", got)
				}
				primary.run("SET text again", "DEL list", "ZINCRBY zset 3 a", "LPOP row 4", "SPOP set", "EVAL return{redis.call('set','x',1),redis.call('incr','x')} 0",
					"MULTI", "SET m 1", "SADD n 1 2 3", "EXEC", "RENAME hash hash2", "COPY zset zset2", "MOVE ints 3", "EXPIRE text 100", "PERSIST timed",
					"SELECT 3", "SET more 1", "SWAPDB 3 5", "SELECT 0", "XADD stream * a b", "XTRIM stream MAXLEN 1", "SORT row ALPHA STORE sorted", "GETEX m PX 100000000")
				primary.same(replica, sub)
				if got := replica.Do("CLIENT", "KILL", "TYPE", "master"); got != ":1\r\n" {
					t.Errorf("CLIENT KILL TYPE master: %q", got)
				}
				primary.run("SET text missed", "SELECT 5", "FLUSHDB", "SET there 1", "SELECT 0")
				wait.Until(t, "the replica has continued", func() bool { return primary.Info("sync_partial_ok") != "0" })
				primary.same(replica, sub)
				if full := primary.Info("sync_full"); full != "1" {
					t.Errorf("%s full synchronizations of the primary", full)
				}
				if got := replica.Do("SET", "a", "1"); got != "-READONLY You can't write against a read only replica.\r\n" {
					t.Errorf("SET at the replica: %q", got)
				}
				replica.run("REPLICAOF NO ONE", "SET promoted 1")
				sub.linked()
				replica.same(sub)
				if full := replica.Info("sync_full"); full != "1" {
					t.Errorf("%s full synchronizations of the promoted replica", full)
				}
				primary.follow(replica)
				replica.run("SELECT 2", "SET a 2", "SELECT 0")
				replica.same(sub, primary)
				if full := replica.Info("sync_full"); full != "1" {
					t.Errorf("the former primary has not continued: %s full synchronizations", full)
				}
			}
		}
	}
	atOnce(t, tests)
}

// TestFollowFromStart checks the parameter replicaof, with a data file that keeps what was
// received.
func TestFollowFromStart(t *testing.T) {
	primary := redisNode(t)
	primary.run(values()...)
	host, port, _ := net.SplitHostPort(primary.addr)
	file := t.TempDir() + "/data.db"
	config := map[string]string{"replicaof": host + " " + port, "enable-debug-command": "yes"}
	srv := servertest.Run(t, server.Options{File: file, Config: config})
	if got := fmt.Sprint(srv.Must("CONFIG", "GET", "replicaof")); !strings.Contains(got, port) {
		t.Error(got)
	}
	wait.Until(t, "the replica is linked", func() bool { return strings.Contains(fmt.Sprint(srv.Must("ROLE")), "connected") })
	primary.run("SET last 1", "WAIT 1 0")
	digest := srv.Must("DEBUG", "DIGEST")
	if want := primary.Do("DEBUG", "DIGEST"); want != fmt.Sprintf("+%s\r\n", digest) {
		t.Fatalf("%s, primary %q", digest, want)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	again := servertest.Run(t, server.Options{File: file, Config: map[string]string{"enable-debug-command": "yes"}})
	if got := again.Must("DEBUG", "DIGEST"); got != digest {
		t.Errorf("after a restart: %s, want %s", got, digest)
	}
}

// TestFailover checks that FAILOVER switches the roles of a primary and its replica, of all
// kinds, and that none of them receives all data again.
func TestFailover(t *testing.T) {
	redis := func(t *testing.T) *node { return redisNode(t) }
	zsetd := func(t *testing.T) *node { return zsetdNode(t, nil) }
	tests := map[string]func(*testing.T){}
	for name, kinds := range map[string][2]func(*testing.T) *node{
		"zsetd to zsetd": {zsetd, zsetd}, "zsetd to redis": {zsetd, redis}, "redis to zsetd": {redis, zsetd},
	} {
		tests[name] = func(t *testing.T) {
			primary, replica := kinds[0](t), kinds[1](t)
			if got := primary.Do("FAILOVER"); got != "-ERR FAILOVER requires connected replicas.\r\n" {
				t.Errorf("FAILOVER without replicas: %q", got)
			}
			primary.run(values()...)
			replica.follow(primary)
			primary.same(replica)
			host, port, _ := net.SplitHostPort(replica.addr)
			primary.run("FAILOVER TO " + host + " " + port + " TIMEOUT 60000")
			wait.Until(t, "the replica is the primary", func() bool { return replica.Info("role") == "master" })
			primary.linked()
			replica.run("SET after failover")
			replica.same(primary)
			if state := primary.Info("master_failover_state"); state != "no-failover" {
				t.Error(state)
			}
			if full := replica.Info("sync_full"); full != "0" {
				t.Errorf("%s full synchronizations after the failover", full)
			}
			if got := primary.Do("SET", "a", "1"); !strings.HasPrefix(got, "-READONLY") {
				t.Errorf("SET at the former primary: %q", got)
			}
		}
	}
	atOnce(t, tests)
}

// TestFailoverRefused checks what FAILOVER replies when there is nothing to do, or it cannot be
// done, at a primary whose replica never has all changes.
func TestFailoverRefused(t *testing.T) {
	tests := map[string]func(*testing.T){}
	for name, start := range map[string]func(*testing.T) *node{
		"zsetd": func(t *testing.T) *node { return zsetdNode(t, nil) },
		"redis": func(t *testing.T) *node { return redisNode(t) },
	} {
		tests[name] = func(t *testing.T) {
			primary := start(t)
			expect := func(want string, args ...string) {
				t.Helper()
				if got := primary.Do(args...); got != want+"\r\n" {
					t.Errorf("%q: %q, want %q", args, got, want)
				}
			}
			expect("-ERR No failover in progress.", "FAILOVER", "ABORT")
			expect("-ERR FAILOVER timeout must be greater than 0", "FAILOVER", "TIMEOUT", "0")
			expect("-ERR syntax error", "FAILOVER", "TIMEOUT", "1", "TIMEOUT", "1")
			expect("-ERR FAILOVER requires connected replicas.", "FAILOVER", "FORCE")
			nc, err := net.Dial("tcp", primary.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			fmt.Fprint(nc, "REPLCONF listening-port 1\r\n")
			if _, err := io.ReadFull(nc, make([]byte, len("+OK\r\n"))); err != nil { // PSYNC wants it to be read
				t.Fatal(err)
			}
			go io.Copy(io.Discard, nc)
			fmt.Fprint(nc, "PSYNC ? -1\r\n")
			wait.Until(t, "the replica is online", func() bool {
				fmt.Fprint(nc, "REPLCONF ACK 0\r\n")
				return strings.Contains(primary.Info("slave0"), "state=online")
			})
			primary.run("SET a 1")
			const force = "-ERR FAILOVER with force option requires both a timeout and target HOST and IP."
			expect(force, "FAILOVER", "FORCE")
			expect(force, "FAILOVER", "FORCE", "TIMEOUT", "60000")
			expect(force, "FAILOVER", "TO", "127.0.0.1", "1", "FORCE")
			expect("-ERR FAILOVER target HOST and PORT is not a replica.", "FAILOVER", "TO", "127.0.0.1", "2")
			for _, args := range [][]string{{"FAILOVER"}, {"FAILOVER", "TO", "127.0.0.1", "1", "TIMEOUT", "600000"}} {
				expect("+OK", args...)
				expect("-ERR FAILOVER already in progress.", "FAILOVER", "FORCE")
				expect("-ERR REPLICAOF not allowed while failing over.", "REPLICAOF", "127.0.0.1", "2")
				if state := primary.Info("master_failover_state"); state != "waiting-for-sync" {
					t.Error(state)
				}
				expect("+OK", "FAILOVER", "ABORT")
				expect("-ERR No failover in progress.", "FAILOVER", "ABORT")
				expect("+OK", "SET", "a", "2")
			}
			expect("+OK", "FAILOVER", "TIMEOUT", "1")
			wait.Until(t, "the failover is over", func() bool { return primary.Info("master_failover_state") == "no-failover" })
			if role := primary.Info("role"); role != "master" {
				t.Error(role)
			}
			primary.run("REPLICAOF 127.0.0.1 2")
			expect("-ERR FAILOVER is not valid when server is a replica.", "FAILOVER")
		}
	}
	atOnce(t, tests)
}

// TestRedirection checks what clients receive at a replica that have announced by CLIENT
// CAPA that they understand REDIRECT: in transactions, with READONLY, and while they wait.
func TestRedirection(t *testing.T) {
	primary, replica := zsetdNode(t, nil), zsetdNode(t, nil)
	dial := func() *judge.Conn {
		nc, err := net.Dial("tcp", replica.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		c := judge.NewConn(nc)
		c.RoundTrip(t, "CLIENT", "CAPA", "redirect")
		return c
	}
	elsewhere := "-REDIRECT " + primary.addr + "\r\n"
	expect := func(c *judge.Conn, line, want string) {
		t.Helper()
		if got := c.RoundTrip(t, strings.Fields(line)...); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	c, blocked := dial(), dial()
	expect(c, "MULTI", "+OK\r\n")
	expect(c, "SET a 1", "+QUEUED\r\n")
	const forced = "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)\r\n"
	waits := []struct {
		c          *judge.Conn
		readonly   bool
		line, want string
	}{
		{blocked, false, "BLPOP l 0", elsewhere},
		{dial(), false, "XREAD BLOCK 0 STREAMS s $", elsewhere},
		{dial(), false, "WAIT 5 0", forced},
		{dial(), true, "BLPOP l 0", elsewhere},
		{dial(), true, "XREAD BLOCK 0 STREAMS s $", "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
	}
	for _, w := range waits {
		if w.readonly {
			expect(w.c, "READONLY", "+OK\r\n")
		}
		if err := w.c.Send(transcript.AppendCommand(nil, strings.Fields(w.line))); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, "the clients wait", func() bool { return replica.Info("blocked_clients") == strconv.Itoa(len(waits)) })
	replica.follow(primary)
	primary.run("XADD s 1-1 a b")
	for _, w := range waits {
		if got, err := w.c.Receive(judge.Patience); got != w.want {
			t.Errorf("%s, READONLY %v: %q, %v, want %q", w.line, w.readonly, got, err, w.want)
		}
	}
	expect(blocked, "PING", "+PONG\r\n")
	expect(c, "EXEC", elsewhere)
	expect(c, "MULTI", "+OK\r\n")
	expect(c, "SET a 1", elsewhere)
	expect(c, "EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n")
	expect(c, "GET a", elsewhere)
	expect(c, "READONLY", "+OK\r\n")
	expect(c, "GET a", "$-1\r\n")
	expect(c, "SET a 1", elsewhere)
	expect(c, "READWRITE", "+OK\r\n")
	expect(c, "DBSIZE", elsewhere)
	replica.run("REPLICAOF NO ONE")
	expect(c, "SET a 1", "+OK\r\n")
}

// TestBlockedClientsOutliveFailover checks that clients wait on while a failover hands over:
// with its end those end that a replica cannot serve, and if the replica refuses, none does.
// Clients that understand REDIRECT wait meanwhile with what they send, because the replica
// would send them back.
func TestBlockedClientsOutliveFailover(t *testing.T) {
	const forced = "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)\r\n"
	run := func(t *testing.T, refused bool) {
		gate, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer gate.Close()
		_, port, _ := net.SplitHostPort(gate.Addr().String())
		primary, replica := zsetdNode(t, nil), zsetdNode(t, map[string]string{"replica-announce-port": port})
		replica.follow(primary)
		if refused {
			replica.run("ACL SETUSER default -psync")
		}
		redirected := "-REDIRECT " + gate.Addr().String() + "\r\n"
		clients := []struct {
			state, line   string
			wait          bool // it is sent before the failover
			want, refused string
			c             *judge.Conn
		}{
			{line: "BLPOP plain 0", wait: true, want: forced, refused: "*2\r\n$5\r\nplain\r\n$1\r\na\r\n"},
			{state: "CLIENT CAPA redirect", line: "BLPOP able 0", wait: true, want: redirected, refused: "*2\r\n$4\r\nable\r\n$1\r\na\r\n"},
			{state: "CLIENT CAPA redirect;READONLY", line: "XREAD BLOCK 0 STREAMS s $", wait: true, want: "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
			{state: "CLIENT CAPA redirect", line: "GET k", want: redirected, refused: "$-1\r\n"},
		}
		send := func(wait bool) {
			for i := range clients {
				c := &clients[i]
				if c.wait != wait {
					continue
				}
				nc, err := net.Dial("tcp", primary.addr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { nc.Close() })
				c.c = judge.NewConn(nc)
				for line := range strings.SplitSeq(c.state, ";") {
					if line != "" {
						c.c.RoundTrip(t, strings.Fields(line)...)
					}
				}
				if err := c.c.Send(transcript.AppendCommand(nil, strings.Fields(c.line))); err != nil {
					t.Fatal(err)
				}
			}
		}
		send(true)
		wait.Until(t, "the clients wait", func() bool { return primary.Info("blocked_clients") == "3" })
		primary.run("FAILOVER TO 127.0.0.1 " + port + " TIMEOUT 60000")
		link, err := gate.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if state := primary.Info("master_failover_state"); state != "failover-in-progress" {
			t.Fatal(state)
		}
		send(false)
		wait.Until(t, "all clients wait", func() bool { return primary.Info("blocked_clients") == "4" })
		onward, err := net.Dial("tcp", replica.addr)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			io.Copy(onward, link)
			onward.Close()
		}()
		go func() {
			io.Copy(link, onward)
			link.Close()
		}()
		wait.Until(t, "the failover is over", func() bool { return primary.Info("master_failover_state") == "no-failover" })
		after := replica
		if refused {
			after = primary
			primary.run("RPUSH plain a", "RPUSH able a")
		}
		after.run("XADD s 1-1 a b")
		for _, c := range clients {
			want := c.want
			if refused && c.refused != "" {
				want = c.refused
			}
			if got, err := c.c.Receive(judge.Patience); got != want {
				t.Errorf("%s: %q, %v, want %q", c.line, got, err, want)
			}
		}
	}
	t.Run("taken over", func(t *testing.T) { run(t, false) })
	t.Run("refused", func(t *testing.T) { run(t, true) })
}

// TestScriptSeesReplicaLeave checks that a script may wait until a replica has left.
func TestScriptSeesReplicaLeave(t *testing.T) {
	primary, replica := zsetdNode(t, map[string]string{"busy-reply-threshold": "1"}), zsetdNode(t, nil)
	replica.follow(primary)
	nc, err := net.Dial("tcp", primary.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := judge.NewConn(nc)
	script := `redis.call('SET', 'a', 'b') while not string.find(redis.call('INFO', 'replication'), 'connected_slaves:0') do end return 'left'`
	if err := c.Send(transcript.AppendCommand(nil, []string{"EVAL", script, "0"})); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the script runs for long", func() bool { return strings.HasPrefix(primary.Do("PING"), "-BUSY") })
	replica.run("REPLICAOF NO ONE")
	if got, err := c.Receive(judge.Patience); got != "$4\r\nleft\r\n" {
		primary.Do("SHUTDOWN", "NOSAVE")
		t.Fatalf("%q, %v", got, err)
	}
}

// TestFailoverKeepsPause checks that a failover ends its own pause only, and that commands
// which CLIENT PAUSE has postponed wait on: Sentinels end their clients meanwhile.
func TestFailoverKeepsPause(t *testing.T) {
	primary, replica := zsetdNode(t, nil), zsetdNode(t, nil)
	replica.follow(primary)
	host, port, _ := net.SplitHostPort(replica.addr)
	primary.run("CLIENT PAUSE 600000 WRITE", "FAILOVER TO "+host+" "+port+" TIMEOUT 60000")
	wait.Until(t, "the replica is the primary", func() bool { return replica.Info("role") == "master" })
	wait.Until(t, "the failover is over", func() bool { return primary.Info("master_failover_state") == "no-failover" })
	if reason := primary.Info("paused_reason"); reason != "client_pause" {
		t.Errorf("after the failover: %s", reason)
	}
	primary.run("CLIENT UNPAUSE")
	if reason := primary.Info("paused_reason"); reason != "none" {
		t.Errorf("after CLIENT UNPAUSE: %s", reason)
	}
	primary.linked()
}

// TestLinkCutUnderLoad cuts the link at random while the primary changes its data.
func TestLinkCutUnderLoad(t *testing.T) {
	primary, replica := zsetdNode(t, map[string]string{"repl-backlog-size": "16kb"}), zsetdNode(t, map[string]string{"repl-diskless-load": "swapdb"})
	replica.follow(primary)
	random := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		for range 200 {
			key := "k" + strconv.Itoa(random.IntN(50))
			switch random.IntN(7) {
			case 0:
				primary.Do("SET", key, strings.Repeat("x", random.IntN(500)))
			case 1:
				primary.Do("ZADD", "z"+key, strconv.Itoa(random.IntN(9)), key)
			case 2:
				primary.Do("DEL", key, "z"+key)
			case 3:
				primary.Do("SELECT", strconv.Itoa(random.IntN(3)))
			case 4:
				primary.Do("RPUSH", "l"+key, "a", "b")
			case 5:
				primary.Do("EVAL", "redis.call('incr','n') return redis.call('append','m','x')", "0")
			case 6:
				primary.Do("LPOP", "l"+key)
			}
		}
		replica.run("CLIENT KILL TYPE master")
	}
	replica.linked()
	primary.same(replica)
}

// TestWaitInTransaction checks that WAIT in a transaction or a script waits for the changes
// that its client has made before.
func TestWaitInTransaction(t *testing.T) {
	for name, primary := range map[string]func(t *testing.T) *node{
		"zsetd": func(t *testing.T) *node { return zsetdNode(t, nil) },
		"redis 8.6": func(t *testing.T) *node {
			port := judge.FreePort(t)
			dial := judge.StartNewer(t, "--port", port, "--repl-diskless-sync-delay", "0")
			return &node{Peer: judge.NewPeer(dial(), dial()), t: t, addr: "127.0.0.1:" + port}
		},
	} {
		t.Run(name, func(t *testing.T) {
			primary, replica := primary(t), zsetdNode(t, nil)
			replica.follow(primary)
			primary.run("SET before 1", "WAIT 1 0", "MULTI", "WAIT 1 0", "SET in 1", "WAIT 1 0")
			if got, want := primary.Do("EXEC"), "*3\r\n:1\r\n+OK\r\n:1\r\n"; got != want {
				t.Errorf("EXEC: %q, want %q", got, want)
			}
			if got := primary.Do("EVAL", "redis.call('set', 'script', 1) return redis.call('wait', 1, 0)", "0"); got != ":1\r\n" {
				t.Errorf("WAIT in a script: %q", got)
			}
		})
	}
}

// TestKilledLinkHangsUp: the primary learns that a link was killed while the turn that has
// killed it goes on, as one does with DEBUG SLEEP.
func TestKilledLinkHangsUp(t *testing.T) {
	primary := zsetdNode(t, nil)
	host, port, _ := net.SplitHostPort(primary.addr)
	replica, _ := enginetest.Start(t, nil)
	enginetest.Must(t, replica, "REPLICAOF "+host+" "+port)
	wait.Until(t, "the replica is linked", func() bool { return enginetest.Info(t, replica, "master_link_status") == "up" })
	replica.Mu.Lock()
	defer replica.Mu.Unlock() // also if the wait fails the test
	for _, s := range replica.Clients.Sessions {
		if s.Modes.Primary {
			s.Kill()
		}
	}
	wait.Until(t, "the primary has noticed, though the turn goes on", func() bool { return primary.Info("connected_slaves") == "0" })
}

// TestExpiryOnReplica checks that a replica hides an expired key at once, and removes it
// when the primary does.
func TestExpiryOnReplica(t *testing.T) {
	primary, replica := redisNode(t), zsetdNode(t, nil)
	replica.follow(primary)
	primary.run("DEBUG SET-ACTIVE-EXPIRE 0", "SET n 1 PX 1", "SET other 1", "WAIT 1 0")
	wait.Until(t, "the key is hidden", func() bool { return replica.Do("GET", "n") == "$-1\r\n" })
	if got := replica.Do("DBSIZE"); got != ":2\r\n" {
		t.Errorf("DBSIZE: %q", got)
	}
	primary.run("GET n")
	primary.same(replica)
	if got := replica.Do("DBSIZE"); got != ":1\r\n" {
		t.Errorf("DBSIZE: %q", got)
	}
}

// TestExpiryOnWritableReplica checks that a replica removes expired keys whose deadlines
// its own clients have set, as redis-server does, and leaves those of the primary.
func TestExpiryOnWritableReplica(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *node{
		"redis": func(t *testing.T) *node { return redisNode(t, "--replica-read-only", "no") },
		"zsetd": func(t *testing.T) *node { return zsetdNode(t, map[string]string{"replica-read-only": "no"}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary, replica := zsetdNode(t, nil), start(t)
			primary.run("DEBUG SET-ACTIVE-EXPIRE 0", "SET theirs 1", "SET kept 1 PX 1")
			replica.follow(primary)
			primary.run("SET due 1 PX 1", "WAIT 1 0")
			replica.run("SET own 1 PX 1", "ZADD copied 1 m", "PEXPIRE copied 1", "PEXPIRE theirs 1", "SET lasting 1 EX 1000", "SET changed 1 PX 1000000", "PEXPIRE changed 2",
				"SELECT 5", "SET own 1 PX 1", "SELECT 0")
			wait.Until(t, "the replica's own keys are gone", func() bool {
				keys := replica.Do("DBSIZE")
				replica.run("SELECT 5")
				other := replica.Do("DBSIZE")
				replica.run("SELECT 0")
				return keys == ":3\r\n" && other == ":0\r\n" // kept, due, lasting
			})
			if got := replica.Do("INCR", "kept"); got != ":1\r\n" {
				t.Errorf("INCR of an expired key: %q", got)
			}
			replica.run("PEXPIRE lasting 1", "REPLICAOF NO ONE")
			wait.Until(t, "all expired keys are gone", func() bool { return replica.Do("DBSIZE") == ":1\r\n" })
			if replica.srv == nil {
				return
			}
			// A deadline that the primary sets again is the primary's.
			replica.follow(primary)
			replica.run("SET shared 1 PX 100000", "SET another 1 PX 200000")
			primary.run("SET shared 2 PX 100000", "WAIT 1 0")
			before := replica.Do("DBSIZE")
			replica.srv.Advance(time.Minute * 2)
			if got := replica.Do("DBSIZE"); got != before || replica.Do("EXISTS", "shared") != ":0\r\n" {
				t.Errorf("DBSIZE %q, before %q", got, before)
			}
			if err := replica.srv.Check(); err != nil {
				t.Error(err)
			}
			replica.srv.Advance(time.Minute * 2)
			if got := replica.Do("DBSIZE"); got == before {
				t.Errorf("DBSIZE %q, and a key of the replica is due", got)
			}
		})
	}
}

// TestBadPrimary checks that a replica survives data that are cut, damaged or of a module:
// it logs why, has no data, tries again, and its file keeps its last state.
func TestBadPrimary(t *testing.T) {
	t.Parallel()
	module := "REDIS0010\xfe\x00\x07\x03key\x81" + "\x00\x00\x00\x00\x00\x00\x04\x01" + "\x00"
	payloads := []string{
		"$1000\r\nREDIS0010", "$12\r\nREDIS0010xyz", "$9\r\nREDIS9999", fmt.Sprintf("$%d\r\n%s", len(module), module),
		"$EOF:" + strings.Repeat("e", 40) + "\r\nREDIS0010\xff", "-ERR no\r\n", "*1\r\n",
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan int, len(payloads))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(nc)
			for {
				v, err := transcript.ReadReply(r, nil)
				if err != nil {
					break
				}
				if strings.Contains(string(v), "PSYNC") {
					fmt.Fprintf(nc, "+FULLRESYNC %s 0\r\n%s", strings.Repeat("a", 40), payloads[i%len(payloads)])
					break
				}
				if _, err := io.WriteString(nc, "+OK\r\n"); err != nil {
					break
				}
			}
			nc.Close()
			if i < len(payloads) {
				served <- i
			}
		}
	}()
	defer func() {
		l.Close()
		<-ended
	}()
	var log recordedLog
	file := t.TempDir() + "/data.db"
	srv := servertest.Run(t, server.Options{File: file, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	srv.Must("SET", "kept", "1")
	srv.Must("SAVE")
	host, port, _ := net.SplitHostPort(l.Addr().String())
	srv.Must("REPLICAOF", host, port)
	sent := 0
	wait.Until(t, "all payloads are sent", func() bool {
		srv.Must("REPLICAOF", host, port) // which ends the wait before the next attempt
		for {
			select {
			case <-served:
				sent++
			default:
				return sent == len(payloads)
			}
		}
	})
	wait.Until(t, "the value of the module is logged", func() bool { return strings.Contains(log.String(), "value of module") })
	if s := log.String(); !strings.Contains(s, `key \"key\" of database 0`) {
		t.Error(s)
	}
	if n := srv.Must("DBSIZE"); n != int64(1) {
		t.Errorf("%v keys", n)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	again := servertest.Run(t, server.Options{File: file})
	if got := again.Must("GET", "kept"); got != "1" {
		t.Errorf("the file has %v", got)
	}
}

// TestEndlessTransaction checks that a primary cannot make a replica hold a transaction
// that never ends, whatever it consists of.
func TestEndlessTransaction(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		r := bufio.NewReader(nc)
		for {
			v, err := transcript.ReadReply(r, nil)
			if err != nil {
				return
			}
			if strings.Contains(string(v), "PSYNC") {
				break
			}
			io.WriteString(nc, "+OK\r\n")
		}
		fmt.Fprintf(nc, "+FULLRESYNC %s 0\r\n$18\r\nREDIS0009\xff%s*1\r\n$5\r\nMULTI\r\n", strings.Repeat("a", 40), strings.Repeat("\x00", 8))
		for err == nil {
			_, err = io.WriteString(nc, strings.Repeat("\r\n", 1<<15)) // commands without arguments
		}
	}()
	var log recordedLog
	srv := servertest.Run(t, server.Options{Config: map[string]string{"client-query-buffer-limit": "1mb"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	host, port, _ := net.SplitHostPort(l.Addr().String())
	srv.Must("REPLICAOF", host, port)
	wait.Until(t, "the replica ends the link", func() bool { return strings.Contains(log.String(), "a transaction of more than 4194304 bytes") })
}

// recordedLog is what a server has logged, for concurrent use.
type recordedLog struct {
	lock sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *recordedLog) Write(p []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.text.Write(p)
}

// String returns the lines so far.
func (l *recordedLog) String() string {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.text.String()
}
