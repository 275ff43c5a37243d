package servertest_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// client is a connection that sends lines and reads replies.
type client struct {
	t  *testing.T
	nc net.Conn
	r  *bufio.Reader
}

func dial(t *testing.T, srv *servertest.Server) *client {
	t.Helper()
	nc, err := srv.Dialer()(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, nc)
}

func dialAddr(t *testing.T, addr string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, nc)
}

func newClient(t *testing.T, nc net.Conn) *client {
	t.Cleanup(func() { nc.Close() })
	return &client{t, nc, bufio.NewReader(nc)}
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.nc, line+"\r\n"); err != nil {
		c.t.Fatal(err)
	}
}

// call returns the reply to a line as text, or the error of the connection.
func (c *client) call(line string) string {
	c.t.Helper()
	c.send(line)
	return c.reply()
}

func (c *client) reply() string {
	reply, err := protocol.DecodeFrom(c.r)
	if err != nil {
		return "error: " + err.Error()
	}
	return fmt.Sprint(reply)
}

// A fault concerns as many calls of its commands as it says, and no other ones.
func TestFaultError(t *testing.T) {
	t.Parallel()
	srv := servertest.Run(t)
	c := dial(t, srv)
	const loading = "LOADING Redis is loading the dataset in memory"
	heal := srv.Inject(servertest.Fault{Commands: []string{"get", "CONFIG SET"}, Calls: 2, Error: loading})
	for _, x := range []struct{ line, want string }{
		{"SET k v", "OK"},
		{"GET k", loading},
		{"CONFIG GET maxmemory", "[maxmemory 0]"},
		{"config set maxmemory 1gb", loading},
		{"GET k", "v"},
	} {
		if got := c.call(x.line); got != x.want {
			t.Errorf("%s: %s, want %s", x.line, got, x.want)
		}
	}
	if got := srv.Must("GET", "k"); got != "v" {
		t.Errorf("Do: %v", got)
	}
	if n := heal(); n != 2 {
		t.Errorf("%d calls failed", n)
	}

	defer srv.Inject(servertest.Fault{Error: "ERR all fail"})()
	if got := c.call("PING"); got != "ERR all fail" {
		t.Errorf("PING: %s", got)
	}
}

// A command of MULTI fails when it is queued.
func TestFaultInMulti(t *testing.T) {
	t.Parallel()
	srv := servertest.Run(t)
	c := dial(t, srv)
	srv.Inject(servertest.Fault{Commands: []string{"INCR"}, Calls: 1, Error: "OOM command not allowed when used memory > 'maxmemory'."})
	c.call("MULTI")
	if got := c.call("INCR n"); !strings.HasPrefix(got, "OOM") {
		t.Errorf("INCR: %s", got)
	}
	if got := c.call("EXEC"); !strings.HasPrefix(got, "EXECABORT") {
		t.Errorf("EXEC: %s", got)
	}
}

// Commands that hang run when their own fault is healed.
func TestFaultHang(t *testing.T) {
	t.Parallel()
	srv := servertest.Run(t)
	a, b := dial(t, srv), dial(t, srv)
	healA := srv.Inject(servertest.Fault{Commands: []string{"INCR"}, Hang: true})
	healB := srv.Inject(servertest.Fault{Commands: []string{"DECR"}, Hang: true})
	a.send("INCR n\r\nPING")
	b.send("DECR m")
	wait.Until(t, "both commands hang", func() bool { return srv.Stats().BlockedClients == 2 })
	if got := srv.Must("EXISTS", "n", "m"); got != int64(0) {
		t.Errorf("%v keys while the commands hang", got)
	}
	if n := healA(); n != 1 {
		t.Errorf("%d calls hung", n)
	}
	if got := a.reply() + " " + a.reply(); got != "1 PONG" {
		t.Errorf("the replies after it: %s", got)
	}
	if got := srv.Must("EXISTS", "m"); got != int64(0) {
		t.Error("the command of another fault has run")
	}
	b.nc.Close() // the command never runs
	wait.Until(t, "the client has gone", func() bool { return srv.Stats().BlockedClients == 0 })
	healB()
	if got := srv.Must("EXISTS", "m"); got != int64(0) {
		t.Error("the command of a client that has gone has run")
	}
}

// Drop closes the connection before the command, Lose after it.
func TestFaultDrop(t *testing.T) {
	t.Parallel()
	srv := servertest.Run(t)
	for _, x := range []struct {
		fault servertest.Fault
		want  any
	}{{servertest.Fault{Drop: true}, nil}, {servertest.Fault{Lose: true}, "1"}} {
		x.fault.Commands, x.fault.Calls = []string{"INCR"}, 1
		srv.Inject(x.fault)
		if got := dial(t, srv).call("INCR n"); !strings.HasPrefix(got, "error: ") {
			t.Errorf("%+v: %s", x.fault, got)
		}
		if got := srv.Must("GET", "n"); got != x.want {
			t.Errorf("%+v: n is %v", x.fault, got)
		}
	}
	if got := dial(t, srv).call("INCR n"); got != "2" {
		t.Errorf("afterwards: %s", got)
	}
}

// A stopped server refuses connections, and serves the same data at the same address afterwards.
func TestRestart(t *testing.T) {
	t.Parallel()
	srv := servertest.Run(t)
	srv.SetTime(time.Date(2020, 5, 1, 12, 0, 0, 0, time.UTC))
	srv.StopClock()
	srv.Inject(servertest.Fault{Commands: []string{"GET"}, Error: "ERR fails"})
	srv.Must("SET", "k", "v", "EX", 60)
	addr, _ := srv.TLS()
	c := dialAddr(t, srv.Addr())
	sha := c.call(`SCRIPT LOAD "return 1"`)
	before := srv.Now()
	dialer := srv.Dialer()

	srv.Stop()
	if got := c.reply(); !strings.HasPrefix(got, "error: ") {
		t.Errorf("a connection outlives the server: %s", got)
	}
	if nc, err := net.Dial("tcp", srv.Addr()); err == nil {
		nc.Close()
		t.Error("a stopped server accepts a connection")
	}
	if _, err := srv.Do(t.Context(), "PING"); !errors.Is(err, server.ErrServerClosed) {
		t.Errorf("Do: %v", err)
	}

	srv.Start()
	c = dialAddr(t, srv.Addr())
	for _, x := range []struct{ line, want string }{
		{"TTL k", "60"}, {"GET k", "ERR fails"}, {"EVALSHA " + sha + " 0", "NOSCRIPT No matching script. Please use EVAL."},
	} {
		if got := c.call(x.line); got != x.want {
			t.Errorf("%s: %s, want %s", x.line, got, x.want)
		}
	}
	if !srv.Now().Equal(before) {
		t.Errorf("the clock says %v, not %v", srv.Now(), before)
	}
	if nc, err := dialer(t.Context(), "", ""); err != nil {
		t.Errorf("a dialer of before: %v", err)
	} else {
		nc.Close()
	}
	if again, _ := srv.TLS(); again != addr {
		t.Errorf("TLS at %s, then at %s", addr, again)
	}
	srv.Must("SET", "second", "v")

	srv.Stop()
	srv.Start()
	if got := srv.Must("DBSIZE"); got != int64(2) {
		t.Errorf("%v keys after the second start", got)
	}
	srv.Stop()
	srv.StartEmpty()
	if got := srv.Must("DBSIZE"); got != int64(0) {
		t.Errorf("%v keys after an empty start", got)
	}
}

// increments adds 1 to the key k, again and again, at the address that MOVED names, until the connection
// ends. It returns how many replies have come.
func increments(addr string, each func()) (acknowledged int, err error) {
	for {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			return acknowledged, err
		}
		r, moved := bufio.NewReader(nc), ""
		for moved == "" {
			if _, err = io.WriteString(nc, "INCR k\r\n"); err != nil {
				break
			}
			var reply any
			if reply, err = protocol.DecodeFrom(r); err != nil {
				break
			}
			if _, counted := reply.(int64); counted {
				acknowledged++
				each()
			} else if _, moved, _ = strings.Cut(strings.TrimPrefix(fmt.Sprint(reply), "MOVED "), " "); moved == "" {
				err = fmt.Errorf("INCR: %v", reply)
				break
			}
		}
		nc.Close()
		if err != nil {
			return acknowledged, err
		}
		addr = moved
	}
}

// What clients have written until a server stops is there when it has started again.
func TestRestartWhileClientsWrite(t *testing.T) {
	t.Parallel()
	for _, config := range []map[string]string{nil, {"save": ""}} {
		srv := servertest.Run(t, server.Options{Config: config})
		total := int64(0)
		for round := range 3 {
			busy, ended := make(chan struct{}), make(chan int)
			go func() {
				seen := 0
				n, _ := increments(srv.Addr(), func() {
					if seen++; seen == 200 {
						close(busy)
					}
				})
				ended <- n
			}()
			<-busy
			srv.Stop()
			total += int64(<-ended)
			srv.Start()
			got, err := server.Scan[int64](srv.Do(t.Context(), "GET", "k"))
			if err != nil || got < total || got > total+1 {
				t.Errorf("round %d: k is %d, and %d increments were acknowledged: %v", round, got, total, err)
			}
			total = got
		}
	}
}

// A client that follows MOVED loses no write while the slot moves to and fro.
func TestClusterMoveWhileClientsWrite(t *testing.T) {
	t.Parallel()
	cluster := servertest.RunCluster(t, 2)
	slot := cluster.Slot("k")
	busy, ended := make(chan struct{}, 1), make(chan int)
	go func() {
		n, _ := increments(cluster.Nodes[0].Addr(), func() {
			select {
			case busy <- struct{}{}:
			default:
			}
		})
		ended <- n
	}()
	for range 50 {
		<-busy
		cluster.Move(slot, 1-cluster.Node(slot))
	}
	<-busy
	at := cluster.Nodes[cluster.Node(slot)]
	for _, srv := range cluster.Nodes {
		srv.Inject(servertest.Fault{Drop: true})
	}
	n := <-ended
	if got := at.Must("GET", "k"); got != fmt.Sprint(n) {
		t.Errorf("k is %v, and %d increments were acknowledged", got, n)
	}
}

// A clock that stands still moves with Advance only, and runs on from where it stood.
func TestStopClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := servertest.Run(t)
		srv.StopClock()
		at := srv.Now()
		srv.Must("SET", "k", "v", "PX", 1500)
		blocked := make(chan error, 1)
		go func() {
			_, err := srv.Do(t.Context(), "BLPOP", "nothing", 1)
			blocked <- err
		}()
		synctest.Wait()
		time.Sleep(time.Hour)
		if !srv.Now().Equal(at) || srv.Must("PTTL", "k") != int64(1500) || srv.Stats().BlockedClients != 1 {
			t.Errorf("an hour later: %v, PTTL %v, %d blocked clients", srv.Now().Sub(at), srv.Must("PTTL", "k"), srv.Stats().BlockedClients)
		}
		srv.Advance(time.Second)
		if err := <-blocked; err != nil {
			t.Errorf("BLPOP: %v", err)
		}
		if got := srv.Must("PTTL", "k"); got != int64(500) {
			t.Errorf("a second later: PTTL %v", got)
		}
		srv.StartClock()
		time.Sleep(100 * time.Millisecond)
		if got := srv.Now().Sub(at); got != 1100*time.Millisecond {
			t.Errorf("started again: %v", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := srv.Must("DBSIZE"); got != int64(0) {
			t.Errorf("%v keys after the deadline", got)
		}
		if info := fmt.Sprint(srv.Must("INFO", "server")); !strings.Contains(info, "clock_steps:0") {
			t.Errorf("the clock has seen a step: %v", info)
		}
	})
}

// The same seed has the same replies, in tables of another order too.
func TestSeed(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64) string {
		srv := servertest.Run(t)
		for i := range 600 {
			srv.Must("SADD", "s", fmt.Sprint("member", i))
			srv.Must("HSET", "h", fmt.Sprint("field", i), i)
			srv.Must("ZADD", "z", i%7, fmt.Sprint("member", i))
			srv.Must("SET", fmt.Sprint("key", i), i)
		}
		srv.Seed(seed)
		var got []any
		for _, line := range []string{
			"SRANDMEMBER s", "SRANDMEMBER s 5", "SRANDMEMBER s -5", "SPOP s", "SPOP s 300", "SRANDMEMBER s", "HRANDFIELD h", "HRANDFIELD h 5", "HRANDFIELD h -5 WITHVALUES",
			"ZRANDMEMBER z", "ZRANDMEMBER z 5", "ZRANDMEMBER z -5 WITHSCORES", "RANDOMKEY", "RANDOMKEY",
		} {
			var args []any
			for _, w := range strings.Fields(line) {
				args = append(args, w)
			}
			got = append(got, srv.Must(args...))
		}
		return fmt.Sprint(got...)
	}
	first := draw(7)
	if again := draw(7); again != first {
		t.Errorf("seed 7: %s\nagain: %s", first, again)
	}
	if other := draw(8); other == first {
		t.Errorf("seeds 7 and 8: %s", other)
	}
	const want = "member243[member163 member306 member145 member248 member121]" // in every process
	if !strings.HasPrefix(first, want) {
		t.Errorf("%.300s", first)
	}
}

// The members that SPOP of a small set replies are those that have left it.
func TestSeedSmallSets(t *testing.T) {
	t.Parallel()
	for _, members := range []string{"ann bob cid dee eve", "1 20 300 4000 50000"} {
		for seed := range uint64(20) {
			srv := servertest.Run(t)
			var all []any
			for _, m := range strings.Fields(members) {
				all = append(all, m)
			}
			srv.Must(append([]any{"SADD", "s"}, all...)...)
			srv.Seed(seed)
			popped, err := server.Scan[[]string](srv.Do(t.Context(), "SPOP", "s", 3))
			if err != nil {
				t.Fatal(err)
			}
			left, err := server.Scan[[]string](srv.Do(t.Context(), "SMEMBERS", "s"))
			if err != nil {
				t.Fatal(err)
			}
			got := append(popped, left...)
			slices.Sort(got)
			if want := slices.Sorted(slices.Values(strings.Fields(members))); !slices.Equal(got, want) {
				t.Errorf("seed %d: popped %q, left %q", seed, popped, left)
			}
		}
	}
}

// A client connects by TLS with the configuration that it is given, and not without.
func TestTLS(t *testing.T) {
	t.Parallel()
	srv := servertest.Run(t)
	addr, config := srv.TLS()
	nc, err := tls.Dial("tcp", addr, config)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if got := ping(t, nc); got != protocol.Status("PONG") {
		t.Errorf("PING: %v", got)
	}
	if nc, err := tls.Dial("tcp", addr, &tls.Config{ServerName: "localhost"}); err == nil {
		nc.Close()
		t.Error("a client trusts the certificate that it does not know")
	}
	if addr == srv.Addr() {
		t.Error("one address with and without TLS")
	}
}

// The state names the keys in order, and bounds what is long.
func TestState(t *testing.T) {
	t.Parallel()
	srv := servertest.Run(t)
	if got := srv.State(); got != "no keys\n" {
		t.Errorf("empty: %s", got)
	}
	srv.StopClock()
	srv.Must("SET", "session:42", "ada\n", "EX", 1800)
	srv.Must("ZADD", "board", 2.5, "bob", 1, "ann")
	srv.Must("RPUSH", "list", "b", "a")
	srv.Must("SADD", "set", "y", "x", "z")
	srv.Must("HSET", "hash", "g", 1, "f", 2)
	srv.Must("XADD", "stream", "1-1", "name", "value")
	c := dial(t, srv)
	c.call("SELECT 3")
	c.call("SET other 1")
	const want = `db 0, 6 keys
"board" zset, 2 elements: "ann" 1, "bob" 2.5
"hash" hash, 2 elements: "f" "2", "g" "1"
"list" list, 2 elements: "b", "a"
"session:42" string, 30m0s left: "ada\n"
"set" set, 3 elements: "x", "y", "z"
"stream" stream, 1 element: 1-1 "name" "value"
db 3, 1 key
"other" string: "1"
`
	if got := srv.State(); got != want {
		t.Errorf("the state is\n%s", got)
	}
	srv.Must("FLUSHALL")
	for i := range 300 {
		srv.Must("SET", fmt.Sprint("key", i), strings.Repeat("x", 1000))
		srv.Must("SADD", "a", i)
		srv.Must("ZADD", "b", i, i)
	}
	got := srv.State()
	if len(got) > 60_000 || !strings.Contains(got, `"a" set, 300 elements`) || !strings.Contains(got, ", and 250 more\n") || !strings.HasSuffix(got, "and 102 more\n") {
		t.Errorf("%d bytes: %.3000s", len(got), got)
	}
}

// Each node serves its slots, and names the node of another one.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := servertest.RunCluster(t, 3)
	slot := cluster.Slot("k")
	at := cluster.Node(slot)
	there, elsewhere := cluster.Nodes[at], cluster.Nodes[(at+1)%3]
	there.Must("SET", "k", "v", "EX", 1000)
	moved := fmt.Sprintf("MOVED %d %s", slot, there.Addr())
	c := dial(t, elsewhere)
	if got := c.call("GET k"); got != moved {
		t.Errorf("GET at another node: %s, want %s", got, moved)
	}
	for _, line := range []string{"CLUSTER NODES", "CLUSTER SLOTS", "CLUSTER SHARDS"} {
		for _, srv := range cluster.Nodes {
			_, port, _ := net.SplitHostPort(srv.Addr())
			if got := c.call(line); !strings.Contains(got, port) {
				t.Errorf("%s does not have port %s: %s", line, port, got)
			}
		}
	}
	info := c.call("CLUSTER INFO")
	for _, want := range []string{"cluster_state:ok", "cluster_slots_assigned:16384", "cluster_known_nodes:3", "cluster_size:3"} {
		if !strings.Contains(info, want) {
			t.Errorf("CLUSTER INFO has no %s: %s", want, info)
		}
	}
	cluster.Move(slot, (at+1)%3)
	if got := c.call("GET k") + " " + c.call("TTL k"); got != "v 1000" {
		t.Errorf("after the move: %s", got)
	}
	if got := dial(t, there).call("GET k"); got != fmt.Sprintf("MOVED %d %s", slot, elsewhere.Addr()) {
		t.Errorf("at the former node: %s", got)
	}
	elsewhere.Stop()
	elsewhere.Start()
	if got := dial(t, elsewhere).call("GET k"); got != "v" {
		t.Errorf("at a node that has been started again: %s", got)
	}
}

// A node that is not served yet has the port that it joins with.
func TestJoinBeforeServe(t *testing.T) {
	t.Parallel()
	srv := servertest.Run(t, server.Options{Config: map[string]string{"cluster-enabled": "yes"}})
	nodes := []server.ClusterNode{{ID: strings.Repeat("a", 40), Host: "127.0.0.1", Port: 7123, Slots: [][2]int{{0, 16383}}}}
	if err := srv.Server.Simulation().Join(0, nodes); err != nil {
		t.Fatal(err)
	}
	if got := dial(t, srv).call("CLUSTER NODES"); !strings.Contains(got, ":7123@17123 ") {
		t.Errorf("CLUSTER NODES: %s", got)
	}
}
