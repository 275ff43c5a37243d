package admin_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/rerun"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// freshLines are sent to a redis-server that is a node of a cluster and was just
// started, and to zsetd: a setup script gets the same replies, although zsetd has
// all slots from the start.
const freshLines = `
CLUSTER ADDSLOTS 5 6
CLUSTER ADDSLOTS 5
CLUSTER ADDSLOTS 7 7
CLUSTER ADDSLOTSRANGE 100 200 300 400
CLUSTER ADDSLOTSRANGE 0 16383
CLUSTER DELSLOTS 5 6
CLUSTER DELSLOTS 5
CLUSTER DELSLOTSRANGE 100 200 300 400
CLUSTER DELSLOTSRANGE 100 100
CLUSTER ADDSLOTSRANGE 0 16383
CLUSTER FLUSHSLOTS
CLUSTER ADDSLOTSRANGE 0 8191 8192 16383
CLUSTER ADDSLOTS 0
CLUSTER SET-CONFIG-EPOCH 1
CLUSTER SET-CONFIG-EPOCH 2
CLUSTER BUMPEPOCH
CLUSTER RESET HARD
CLUSTER ADDSLOTSRANGE 0 16383
`

// clusterLines are sent to both after freshLines. ID stands for the ID of the node.
// A line that begins with a number is sent by the client of that number. WAIT waits
// until Redis has updated the state of the cluster.
const clusterLines = `
CLUSTER INFO
CLUSTER NODES
CLUSTER SLOTS
CLUSTER SHARDS
CLUSTER LINKS
CLUSTER MYID
CLUSTER KEYSLOT foo
CLUSTER KEYSLOT {a}b{c}
CLUSTER KEYSLOT {}b{c}
CLUSTER KEYSLOT {a
CLUSTER KEYSLOT "a}{b}"
CLUSTER KEYSLOT "{{a}}"
CLUSTER KEYSLOT ""
CLUSTER KEYSLOT 123456789
SET foo 1
SET {foo}2 1
SET {foo}3 1
CLUSTER COUNTKEYSINSLOT 12182
CLUSTER GETKEYSINSLOT 12182 10
CLUSTER GETKEYSINSLOT 12182 2
CLUSTER GETKEYSINSLOT 12182 0
DEL {foo}2
RENAME {foo}3 {foo}4
CLUSTER GETKEYSINSLOT 12182 10
PEXPIRE foo -1
CLUSTER COUNTKEYSINSLOT 12182
CLUSTER COUNTKEYSINSLOT 16384
CLUSTER COUNTKEYSINSLOT -1
CLUSTER COUNTKEYSINSLOT x
CLUSTER GETKEYSINSLOT 1 -1
CLUSTER GETKEYSINSLOT -1 1
CLUSTER GETKEYSINSLOT x 1
CLUSTER GETKEYSINSLOT 1 x
MSET a 1 b 2
MGET a b
MGET {a}1 {a}2
DEL a b c
SUNIONSTORE a b c
ZUNIONSTORE {a}1 2 {a}2 {a}3
ZUNIONSTORE {a}1 2 {a}2 b
MULTI
MGET a b
EXEC
MULTI
SET a 1
SET b 1
EXEC
MULTI
SET {a}1 1
PING
SET {a}2 1
EXEC
EXEC
PING
GET a
SELECT 0
SELECT 1
SELECT 99
SELECT -1
SELECT x
SWAPDB 0 1
SWAPDB x y
MOVE foo 1
MOVE foo x
COPY {a}1 {a}2 DB 1
COPY {a}1 {a}3 DB 0
COPY {a}1 b
SORT {a}l BY nosort
FLUSHALL
SPUBLISH a b
2 SSUBSCRIBE a b
2 SSUBSCRIBE {a}1 {a}2
2 SUNSUBSCRIBE {a}1 b
2 SUNSUBSCRIBE {a}2
2 RESET
PUBLISH a b
READONLY
CLIENT LIST TYPE normal
READWRITE
ASKING
GET a
CLUSTER REPLICAS x
CLUSTER REPLICAS ID
CLUSTER SLAVES ID
CLUSTER COUNT-FAILURE-REPORTS x
CLUSTER COUNT-FAILURE-REPORTS ID
CLUSTER MEET x y
CLUSTER MEET 127.0.0.1 6379 y
CLUSTER MEET 127.0.0.1 6379 1 2
CLUSTER MEET localhost 6379
CLUSTER MEET 127.0.0.1 0
CLUSTER MEET 127.0.0.1 -1
CLUSTER MEET 127.0.0.1 65536
CLUSTER MEET 127.0.0.1 60000
CLUSTER MEET 127.0.0.1 6379 0
CLUSTER MEET 127.0.0.1 6379 65536
CLUSTER MEET ::1 0 6379
REPLICAOF NO ONE
SLAVEOF 127.0.0.1 6379
CLUSTER FORGET x
CLUSTER FORGET ID
CLUSTER REPLICATE x
CLUSTER REPLICATE ID
CLUSTER FAILOVER
CLUSTER FAILOVER FORCE
CLUSTER FAILOVER SOON
CLUSTER FAILOVER FORCE x
CLUSTER SAVECONFIG
CLUSTER BUMPEPOCH
CLUSTER BUMPEPOCH
CLUSTER SET-CONFIG-EPOCH 5
CLUSTER SET-CONFIG-EPOCH -5
CLUSTER SET-CONFIG-EPOCH x
CLUSTER SETSLOT x STABLE
CLUSTER SETSLOT 1 STABLE
CLUSTER SETSLOT 1 STABLE x
CLUSTER SETSLOT 1 MIGRATING x
CLUSTER SETSLOT 1 IMPORTING x
CLUSTER SETSLOT 1 NODE x
CLUSTER SETSLOT 1 NODE ID
CLUSTER SETSLOT 1 SIDEWAYS
CLUSTER ADDSLOTS 1
CLUSTER ADDSLOTS x 1
CLUSTER ADDSLOTS 1 x
CLUSTER ADDSLOTSRANGE 1 2
CLUSTER ADDSLOTSRANGE 2 1
CLUSTER ADDSLOTSRANGE 1 2 3
CLUSTER DELSLOTS 1 2 1
CLUSTER DELSLOTS 16384
CLUSTER DELSLOTSRANGE 1 5 4 6
CLUSTER NOSUCH
CLUSTER SLOTS x
CLUSTER
SET foo 1
CLUSTER FLUSHSLOTS
CLUSTER RESET
CLUSTER RESET GENTLY
CLUSTER RESET HARD x
DEL foo
CONFIG SET cluster-announce-hostname host.example cluster-announce-ip 10.1.2.3 cluster-announce-port 7000
CLUSTER NODES
CLUSTER SLOTS
CLUSTER SHARDS
CONFIG SET cluster-preferred-endpoint-type hostname
CLUSTER SLOTS
CLUSTER SHARDS
CONFIG SET cluster-preferred-endpoint-type unknown-endpoint
CLUSTER SLOTS
CLUSTER SHARDS
HELLO 3
CLUSTER SLOTS
CLUSTER SHARDS
CLUSTER INFO
HELLO 2
CONFIG SET cluster-preferred-endpoint-type ip cluster-announce-hostname "no good"
CONFIG SET cluster-preferred-endpoint-type ip cluster-announce-hostname "" cluster-announce-ip "" cluster-announce-port 0
2 SSUBSCRIBE foo
CLUSTER DELSLOTS 12182
2 PING
CLUSTER DELSLOTS 12182
WAIT
SET foo 1
SET a 1
GET a
CONFIG SET cluster-allow-reads-when-down yes
GET a
SET a 1
SPUBLISH a 1
CONFIG SET cluster-require-full-coverage no
WAIT
SET a 1
SET foo 1
DEL a
CLUSTER INFO
CLUSTER SLOTS
CLUSTER NODES
CLUSTER ADDSLOTSRANGE 12182 12182
WAIT
SET foo 1
DEL foo
CLUSTER RESET HARD
CLUSTER SLOTS
`

func TestClusterAsRedis(t *testing.T) {
	rerun.SkipRace(t)
	theirs, otherBus, stop := startRedisCluster(t)
	defer stop()
	_, port, _ := net.SplitHostPort(theirs)
	srv, err := server.New(server.Options{Config: map[string]string{"cluster-enabled": "yes", "port": port, "cluster-announce-bus-port": otherBus}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	clients := map[string][2]*clusterClient{}
	dial := func(n string) [2]*clusterClient {
		if c, there := clients[n]; there {
			return c
		}
		nc, err := net.Dial("tcp", theirs)
		if err != nil {
			t.Fatal(err)
		}
		mine, err := srv.Dialer()(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		clients[n] = [2]*clusterClient{{t: t, conn: nc, listens: n != "1"}, {t: t, conn: mine, listens: n != "1"}}
		return clients[n]
	}
	pair := dial("1")
	state := func(c *clusterClient) string {
		_, rest, _ := strings.Cut(c.ask("CLUSTER INFO"), "cluster_state:")
		line, _, _ := strings.Cut(rest, "\r\n")
		return line
	}
	for line := range strings.Lines(freshLines + "WAIT" + clusterLines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if line == "WAIT" {
			if !wait.Holds(func() bool { return state(pair[0]) == state(pair[1]) }) {
				t.Fatalf("the state of the cluster is %s, Redis %s", state(pair[1]), state(pair[0]))
			}
			continue
		}
		c, text := pair, line
		if rest, second := strings.CutPrefix(line, "2 "); second {
			c, text = dial("2"), rest
		}
		want, got := c[0].ask(text), c[1].ask(text)
		switch {
		case strings.HasPrefix(text, "HELLO"), strings.HasPrefix(text, "CLIENT LIST"), text == "CLUSTER MYID":
			continue
		}
		if want != got {
			t.Errorf("%s\nwant %q\ngot  %q", line, want, got)
		}
	}
	if err := srv.Check(); err != nil {
		t.Error(err)
	}
}

// TestClusterMeet checks that a node accepts CLUSTER MEET with its own addresses only.
func TestClusterMeet(t *testing.T) {
	srv, err := server.New(server.Options{Config: map[string]string{"cluster-enabled": "yes", "port": "7000",
		"cluster-announce-ip": "203.0.113.5", "cluster-announce-port": "8000"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	addrs, err := net.InterfaceAddrs()
	if err != nil || len(addrs) == 0 {
		t.Fatal(addrs, err)
	}
	own, _, err := net.ParseCIDR(addrs[len(addrs)-1].String())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ip, port string
		meets    bool
	}{
		{"127.0.0.1", "7000", true}, {"::1", "7000", true}, {"::ffff:127.0.0.1", "7000", true},
		{own.String(), "7000", true}, {"203.0.113.5", "8000", true},
		{"127.0.0.1", "7002", false}, {"203.0.113.6", "8000", false}, {"203.0.113.6", "7000", false}, {"127.0.0.1", "8000", false},
	} {
		_, err := srv.Do(t.Context(), "CLUSTER", "MEET", c.ip, c.port)
		if c.meets && err != nil || !c.meets && (err == nil || !strings.Contains(err.Error(), "a cluster of one node and meets no others")) {
			t.Errorf("CLUSTER MEET %s %s: %v", c.ip, c.port, err)
		}
	}
	if got, _ := srv.Do(t.Context(), "CLUSTER", "INFO"); !strings.Contains(fmt.Sprint(got), "cluster_known_nodes:1\r\n") {
		t.Error(got)
	}
}

// TestClusterShard checks what a node says of itself: with a host name as endpoint, and with
// a port for TLS alone.
func TestClusterShard(t *testing.T) {
	p := judge.Own(t, server.Options{Config: map[string]string{"cluster-enabled": "yes", "port": "0", "cluster-announce-ip": "10.1.2.3",
		"cluster-announce-tls-port": "7001", "cluster-preferred-endpoint-type": "hostname", "cluster-slot-stats-enabled": "yes"}})
	ask := func(line string) string { return strings.ReplaceAll(p.Do(strings.Fields(line)...), "\r\n", " ") }
	id := ask("CLUSTER MYID")
	if shard := ask("CLUSTER MYSHARDID"); len(shard) != len(id) || !strings.HasPrefix(shard, "$40 ") || shard == id {
		t.Errorf("MYSHARDID: %s, MYID: %s", shard, id)
	}
	ask("CLUSTER DELSLOTSRANGE 3 16383")
	shards := "*1 *4 $5 slots *2 :0 :2 $5 nodes *1 *14 $2 id " + id + "$8 tls-port :7001 $2 ip $8 10.1.2.3 $8 endpoint $1 ? " +
		"$4 role $6 master $18 replication-offset :0 $6 health $6 online "
	if got := ask("CLUSTER SHARDS"); got != shards {
		t.Errorf("SHARDS: %s, want %s", got, shards)
	}
	if got, want := ask("CLUSTER SLOTS"), "*1 *3 :0 :2 *4 $1 ? :0 "+id+"*2 $2 ip $8 10.1.2.3 "; got != want {
		t.Errorf("SLOTS: %s, want %s", got, want)
	}
	me := strings.Fields(id)[1]
	for _, test := range []struct{ line, want string }{
		{"CLUSTER MEET 10.1.2.3 7001", "+OK "},
		{"CLUSTER MEET 10.1.2.3 7002", "-ERR zsetd is a cluster of one node and meets no others "},
		{"CLUSTER SETSLOT 2 MIGRATING " + me, "-ERR zsetd is a cluster of one node: there is no other to migrate to "},
		{"CLUSTER SETSLOT 3 IMPORTING " + me, "-ERR zsetd is a cluster of one node: there is no other to import from "},
		{"CLUSTER REPLICAS " + me, "*0 "},
		{"CLUSTER ADDSLOTSRANGE 3 16383", "+OK "},
		{"SET {foo} 1", "+OK "},
		{"DEL {foo}", ":1 "},
	} {
		if got := ask(test.line); got != test.want {
			t.Errorf("%s: %s, want %s", test.line, got, test.want)
		}
	}
	// A slot that is removed, and then added, counts from zero.
	stats := func() string {
		_, counts, _ := strings.Cut(ask("CLUSTER SLOT-STATS SLOTSRANGE 12182 12182"), "bytes-in ")
		return counts
	}
	if got := stats(); strings.HasPrefix(got, ":0 ") {
		t.Errorf("SLOT-STATS: %s", got)
	}
	ask("CLUSTER DELSLOTS 12182")
	ask("CLUSTER ADDSLOTS 12182")
	if got, want := stats(), ":0 $17 network-bytes-out :0 "; got != want {
		t.Errorf("SLOT-STATS: %s, want %s", got, want)
	}
}

// TestClusterTools checks that the tools that set up clusters accept a node: redis-cli
// assigns the missing slots, and valkey-cli, which allows clusters of one node, creates one.
func TestClusterTools(t *testing.T) {
	judge.Start(t) // skips the test where Redis is not installed
	srv, err := server.New(server.Options{Config: map[string]string{"cluster-enabled": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(l)
	addr := l.Addr().String()
	run := func(tool string, args ...string) {
		t.Helper()
		out, err := exec.Command(tool, append([]string{"--cluster"}, args...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "All 16384 slots covered") {
			t.Errorf("%s %v: %v\n%s", filepath.Base(tool), args, err, out)
		}
	}
	if valkey := os.Getenv("ZSETD_JUDGE_VALKEY9"); valkey != "" {
		run(filepath.Join(filepath.Dir(valkey), "valkey-cli"), "create", addr, "--cluster-replicas", "0", "--cluster-yes")
	}
	run("redis-cli", "check", addr)
	if _, err := srv.Do(t.Context(), "CLUSTER", "DELSLOTS", 1, 2, 16383); err != nil {
		t.Fatal(err)
	}
	if _, err := srv.Do(t.Context(), "SET", "key", "1"); err == nil {
		t.Error("a key is served while slots are missing")
	}
	fix := exec.Command("redis-cli", "--cluster", "fix", addr)
	fix.Stdin = strings.NewReader("yes\n")
	if out, err := fix.CombinedOutput(); err != nil {
		t.Errorf("redis-cli --cluster fix: %v\n%s", err, out)
	}
	run("redis-cli", "check", addr)
	if _, err := srv.Do(t.Context(), "SET", "key", "1"); err != nil {
		t.Error(err)
	}
}

// TestClusterOfOneDatabase checks that a cluster serves only database 0, and keeps the
// data of the other databases.
func TestClusterOfOneDatabase(t *testing.T) {
	file := filepath.Join(t.TempDir(), "zsetd.db")
	run := func(clustered string, lines ...[]any) error {
		srv, err := server.New(server.Options{File: file, Config: map[string]string{"cluster-enabled": clustered}})
		if err != nil {
			return err
		}
		defer srv.Close()
		if err := srv.Ready(t.Context()); err != nil {
			return err
		}
		for _, line := range lines {
			if _, err := srv.Do(t.Context(), line...); err != nil {
				return err
			}
		}
		return nil
	}
	for _, err := range []error{
		run("yes", []any{"SET", "{x}1", "1"}, []any{"SET", "{x}2", "2"}),
		run("yes", []any{"MGET", "{x}1", "{x}2"}),
		run("no", []any{"MOVE", "{x}1", "1"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var wrong *server.FileError
	if err := run("yes"); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "databases other than 0") {
		t.Errorf("keys in another database: %v", err)
	}
	if err := run("no", []any{"MOVE", "{x}2", "1"}); err != nil {
		t.Error(err)
	}
}

// clusterClient sends lines and reads the replies.
type clusterClient struct {
	t    *testing.T
	conn net.Conn
	id   string

	listens bool // messages may come besides a reply
}

// ask sends a line and returns the reply, with ID in place of the node's ID. For a
// subscriber the result includes the messages before the reply.
func (c *clusterClient) ask(line string) string {
	c.t.Helper()
	if c.id == "" {
		c.id = strings.Trim(strings.Split(c.send("CLUSTER MYID"), "\r\n")[1], "\r\n")
	}
	reply := c.send(strings.ReplaceAll(line, " ID", " "+c.id))
	for marker := "$3\r\nend\r\n"; c.listens; {
		if rest, found := strings.CutSuffix(reply, marker); found {
			reply = strings.TrimSuffix(rest, "*2\r\n$4\r\npong\r\n") // of a subscriber
			break
		}
		reply += c.receive()
	}
	reply = strings.ReplaceAll(reply, c.id, "ID")
	if line == "CLUSTER RESET HARD" {
		c.id = ""
	}
	return reply
}

func (c *clusterClient) send(line string) string {
	c.t.Helper()
	argv, ok := protocol.SplitArgs(nil, []byte(line))
	if !ok {
		c.t.Fatal(line)
	}
	msg := fmt.Appendf(nil, "*%d\r\n", len(argv))
	for _, a := range argv {
		msg = fmt.Appendf(msg, "$%d\r\n%s\r\n", len(a), a)
	}
	if c.listens {
		msg = append(msg, "*2\r\n$4\r\nPING\r\n$3\r\nend\r\n"...) // its reply marks the end
	}
	if _, err := c.conn.Write(msg); err != nil {
		c.t.Fatal(err)
	}
	return c.receive()
}

// receive returns one or more complete replies.
func (c *clusterClient) receive() string {
	c.t.Helper()
	var in []byte
	for {
		c.conn.SetReadDeadline(time.Now().Add(time.Minute))
		var b [1 << 16]byte
		n, err := c.conn.Read(b[:])
		in = append(in, b[:n]...)
		if err != nil {
			c.t.Fatalf("%v, after %q", err, in)
		}
		rest := in
		for len(rest) > 0 {
			_, size, err := protocol.Decode(rest)
			if err != nil {
				break
			}
			rest = rest[size:]
		}
		if len(rest) == 0 {
			return string(in)
		}
	}
}

// startRedisCluster starts a real redis-server that is a node of a cluster.
func startRedisCluster(t *testing.T) (addr, otherBus string, stop func()) {
	t.Helper()
	judge.Start(t) // skips the test where Redis is not installed
	port, busPort := judge.FreePort(t), judge.FreePort(t)
	addr = "127.0.0.1:" + port
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	otherBus = strconv.Itoa(n%50000 + 10000) // as CLUSTER NODES shows it
	var log bytes.Buffer
	cmd := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-port", busPort,
		"--cluster-announce-bus-port", otherBus, "--save", "", "--dir", t.TempDir())
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "redis-server listens", func() bool {
		nc, err := net.Dial("tcp", addr)
		if err == nil {
			nc.Close()
		}
		return err == nil
	})
	return addr, otherBus, func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	}
}

// TestClusterScan iterates over all keys of a cluster, and over those of a slot.
func TestClusterScan(t *testing.T) {
	p := judge.Own(t, server.Options{Config: map[string]string{"cluster-enabled": "yes"}})
	for i := range 300 {
		p.Do("SET", "k"+strconv.Itoa(i), "v")
	}
	p.Do("RPUSH", "{k7}list", "v")
	iterate := func(options ...string) (keys []string) {
		cursor := "0"
		for range 1000 {
			v, _, err := protocol.Decode([]byte(p.Do(append([]string{"CLUSTERSCAN", cursor}, options...)...)))
			if err != nil {
				t.Fatal(err)
			}
			page := v.([]any)
			for _, key := range page[1].([]any) {
				keys = append(keys, key.(string))
			}
			if cursor = page[0].(string); cursor == "0" {
				return keys
			}
		}
		t.Fatal("an iteration without end")
		return nil
	}
	if keys := iterate(); len(keys) != 301 {
		t.Errorf("%d keys", len(keys))
	}
	if keys := iterate("TYPE", "list", "COUNT", "30"); len(keys) != 1 {
		t.Errorf("lists: %q", keys)
	}
	if keys := iterate("MATCH", "k1*", "COUNT", "50"); len(keys) != 111 {
		t.Errorf("%d keys that begin with k1", len(keys))
	}
	_, slot, _ := strings.Cut(strings.TrimSpace(p.Do("CLUSTER", "KEYSLOT", "k7")), ":")
	if keys := iterate("SLOT", slot, "COUNT", "20"); len(keys) != 2 {
		t.Errorf("keys of a slot: %q", keys)
	}
	first := p.Do("CLUSTERSCAN", "0", "SLOT", slot, "COUNT", "1")
	v, _, _ := protocol.Decode([]byte(first))
	cursor := v.([]any)[0].(string)
	for _, c := range []struct{ command, want string }{
		{"CLUSTERSCAN " + cursor + " SLOT 3", "-ERR Cursor slot mismatch with SLOT argument"},
		{"CLUSTERSCAN 0 SLOT 16384", "-ERR Invalid or out of range slot"},
		{"CLUSTERSCAN 0 SLOT x", "-ERR Invalid or out of range slot"},
		{"CLUSTERSCAN 5", "-ERR Invalid cursor"},
		{"CLUSTERSCAN 0-{06S}-", "-ERR Invalid cursor"},
		{"CLUSTERSCAN 0-{06S}-0-1", "-ERR Invalid cursor"},
		{"CLUSTERSCAN 0 COUNT 0", "-ERR syntax error"},
		{"CLUSTERSCAN 0 NOSUCH", "-ERR syntax error"},
		{"CLUSTERSCAN 0 SLOT", "-ERR syntax error"},
	} {
		if got := strings.TrimSpace(p.Do(strings.Fields(c.command)...)); got != c.want {
			t.Errorf("%s: %s", c.command, got)
		}
	}
	// Of another node, or of this one before a restart, the position has no meaning.
	if reply := p.Do("CLUSTERSCAN", "other-{06S}-18446744073709551615", "COUNT", "1000"); !strings.Contains(reply, "k299") {
		t.Errorf("a cursor of another node: %.100q", reply)
	}
}

// TestSortInCluster: the patterns of SORT must form keys of the slot of the sorted key, as Redis
// 8.6 has it.
func TestSortInCluster(t *testing.T) {
	srv, err := server.New(server.Options{Config: map[string]string{"cluster-enabled": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	do := func(args ...string) string {
		list := make([]any, len(args))
		for i, a := range args {
			list[i] = a
		}
		got, err := srv.Do(t.Context(), list...)
		return fmt.Sprint(got, err)
	}
	do("RPUSH", "{a}l", "2", "1")
	for _, pattern := range []string{"{a}by*", "x{a}*", "{a}*->f*", "{a}{b*}", "x->{a}*", "{a}->*", "a", "{a}"} {
		for _, option := range []string{"BY", "GET"} {
			if got := do("SORT", "{a}l", option, pattern); strings.Contains(got, "denied") {
				t.Errorf("%s %s: %s", option, pattern, got)
			}
		}
	}
	for _, pattern := range []string{"by*", "{a*}by*", "*{a}", "{}a*", "{*}a", "{b}*", "x*->{a}", "{a->*}b"} {
		for _, option := range []string{"BY", "GET"} {
			want := option + " option of SORT denied in Cluster mode when keys formed by the pattern may be in different slots."
			if got := do("SORT", "{a}l", option, pattern); !strings.Contains(got, want) {
				t.Errorf("%s %s: %s", option, pattern, got)
			}
		}
	}
	if got := do("SORT", "{a}l", "GET", "nosort"); !strings.Contains(got, "denied") {
		t.Errorf("GET of a key of another slot: %s", got)
	}
	if got := do("SORT", "{a}l", "BY", "nosort", "GET", "#"); got != "[2 1] <nil>" {
		t.Errorf("BY without a star, GET #: %s", got)
	}
}

// TestClusterDatabases checks that a cluster has the databases of cluster-databases, each
// with the keys of its slots, as Valkey 9 has it.
func TestClusterDatabases(t *testing.T) {
	file := filepath.Join(t.TempDir(), "zsetd.db")
	config := map[string]string{"cluster-enabled": "yes", "cluster-databases": "3"}
	p := judge.Own(t, server.Options{File: file, Config: config})
	ask := func(line, want string) {
		t.Helper()
		if got := strings.ReplaceAll(strings.TrimSpace(p.Do(strings.Fields(line)...)), "\r\n", " "); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	ask("SELECT 3", "-ERR DB index is out of range")
	ask("SELECT 1", "+OK")
	ask("SET a 1", "+OK")
	ask("COPY a a DB 2", ":1")
	ask("MOVE a 0", ":1")
	ask("MOVE a 3", "-ERR DB index is out of range")
	ask("SWAPDB 0 1", "-ERR SWAPDB is not allowed in cluster mode")
	ask("CLUSTER COUNTKEYSINSLOT 15495", ":0")
	ask("SELECT 2", "+OK")
	ask("CLUSTER COUNTKEYSINSLOT 15495", ":1")
	ask("CLUSTER GETKEYSINSLOT 15495 5", "*1 $1 a")
	if got := p.Do("CLUSTER", "SLOT-STATS", "SLOTSRANGE", "15495", "15495"); !strings.Contains(got, "key-count\r\n:2\r\n") {
		t.Errorf("SLOT-STATS: %q", got)
	}
	p.Do("SHUTDOWN") // the reply is the end of the connection
	p = judge.Own(t, server.Options{File: file, Config: config})
	ask("SELECT 2", "+OK")
	ask("CLUSTER GETKEYSINSLOT 15495 5", "*1 $1 a")
	ask("FLUSHDB", "+OK")
	ask("CLUSTER COUNTKEYSINSLOT 15495", ":0")
	ask("CLUSTER FLUSHSLOTS", "-ERR DB must be empty to perform CLUSTER FLUSHSLOTS.")
	ask("FLUSHALL", "+OK")
	ask("CLUSTER FLUSHSLOTS", "+OK")
}
