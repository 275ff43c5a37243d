package forward

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
	"github.com/zsetd/zsetd/server/internal/peers/remote"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// cut is what a node does in place of a reply: it closes the connection.
const cut = "cut"

// nodes are the nodes of a cluster, as the transport of an engine: a:1 has the first half of the
// slots, and b:1 the other. They reply +OK to all commands that have no other reply.
type nodes struct {
	mu      sync.Mutex
	replies map[string]string // by the address and the first words of the command; by the address, the error of a dial
	log     []string          // the commands
	open    map[string]int    // connections, by address
}

// Dial implements engine.Transport.
func (n *nodes) Dial(_ context.Context, _, addr string, _ time.Duration, _ *config.TLS) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log = append(n.log, addr+" dial")
	if text := n.replies[addr]; text != "" {
		return nil, errors.New(text)
	}
	n.open[addr]++
	client, server := net.Pipe()
	go n.serve(server, addr)
	return client, nil
}

func (n *nodes) serve(c net.Conn, addr string) {
	defer func() {
		c.Close()
		n.mu.Lock()
		defer n.mu.Unlock()
		n.open[addr]--
	}()
	in := bufio.NewReader(c)
	for {
		v, err := protocol.DecodeFrom(in)
		words, _ := v.([]any)
		if err != nil || len(words) == 0 {
			return
		}
		out := n.answer(addr, strings.TrimSuffix(fmt.Sprintln(words...), "\n"))
		if out == cut {
			return
		}
		if _, err := c.Write([]byte(out)); err != nil {
			return
		}
	}
}

func (n *nodes) answer(addr, command string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log = append(n.log, addr+" "+command)
	best, out := "", "+OK\r\n"
	if command == "CLUSTER SLOTS" {
		out = "*2\r\n*3\r\n:0\r\n:8191\r\n*2\r\n$1\r\na\r\n:1\r\n*3\r\n:8192\r\n:16383\r\n*2\r\n$1\r\nb\r\n:1\r\n"
	}
	for prefix, reply := range n.replies {
		if strings.HasPrefix(addr+" "+command, prefix) && len(prefix) > max(len(best), len(addr)) {
			best, out = prefix, reply
		}
	}
	return out
}

// ApplyTLS implements engine.Transport.
func (n *nodes) ApplyTLS(*config.Settings) (func(), error) { return func() {}, nil }

// Relisten implements engine.Transport.
func (n *nodes) Relisten(*config.Settings) error { return nil }

// ShutdownSoon implements engine.Transport.
func (n *nodes) ShutdownSoon(func(context.Context) error) {}

// CloseAfterPanic implements engine.Transport.
func (n *nodes) CloseAfterPanic() {}

// newEngine returns an engine without commands, whose connections are to nodes.
func newEngine(t *testing.T) (*engine.Engine, *nodes) {
	t.Helper()
	n := &nodes{open: map[string]int{}}
	e, err := engine.New(engine.Options{}, engine.Parts{
		Libraries: func(*engine.Engine, *keyspace.Keyspace, engine.LibraryLimits) engine.Functions {
			return engine.Functions{}
		},
		Transport: func(*engine.Engine) (engine.Transport, error) { return n, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, n
}

// forwarding calls f with an upstream to nodes, of which some replies are given. Afterwards no
// connection is open.
func forwarding(t *testing.T, to remote.Address, replies map[string]string, f func(t *testing.T, h *Home, u *upstream, n *nodes)) {
	t.Helper()
	e, n := newEngine(t)
	synctest.Test(t, func(t *testing.T) {
		n.replies = replies
		h := New(e, to).(*Home)
		u := h.Upstream(&engine.Session{Engine: e}).(*upstream)
		u.failed = map[string]error{}
		f(t, h, u, n)
		h.Close()
		h.Wait()
		synctest.Wait()
		for addr, open := range n.open {
			if open != 0 {
				t.Errorf("%d connections to %s are open", open, addr)
			}
		}
	})
}

// twoNodes is the address of the cluster.
func twoNodes() remote.Address {
	return remote.Address{Network: "tcp", Addrs: []string{"a:1"}, Cluster: true, DB: remote.AnyDatabase}
}

// request returns a request whose key is its second word, or without keys if it has a place. The
// key bar is at a:1, and foo at b:1.
func request(place remote.Place, words ...string) *remote.Request {
	r := &remote.Request{Name: words[0], Commands: [][]byte{encode(words...)}, Version: 2, Slot: -1, Place: place}
	if place == 0 && len(words) > 1 {
		r.Slot = keyslot.Of(words[1])
	}
	return r
}

// TestReplies checks the replies to requests for a cluster whose nodes are away, refuse or reply
// nonsense.
func TestReplies(t *testing.T) {
	const (
		unreached = "-FORWARD cannot reach redis://a:1?cluster: "
		notRun    = "; the command has not run\r\n"
		lost      = "-FORWARD lost the connection to redis://a:1?cluster before the reply: "
		mayHave   = "; the command may have run\r\n"
		noSlots   = unreached + "a:1: away" + notRun
		moved     = "-MOVED 12182 b:1\r\n"
	)
	transaction := func(r *remote.Request) *remote.Request {
		r.Kind = remote.Transaction
		return r
	}
	watch := func(r *remote.Request) *remote.Request {
		r.Kind = remote.Watch
		return r
	}
	get, bar := request(0, "GET", "foo"), request(0, "GET", "bar")
	keys, size := request(remote.ListOfNodes, "KEYS", "*"), request(remote.SumOfNodes, "DBSIZE")
	limited := *keys
	limited.Limit = 20
	flush, random, scan := request(remote.AllNodes, "FLUSHALL"), request(remote.OneOfNodes, "RANDOMKEY"), request(remote.ScanOfNodes, "SCAN", "0")
	three := *get
	three.Version = 3
	for _, test := range []struct {
		name    string
		replies map[string]string
		r       *remote.Request
		want    string
	}{
		{"no node", nil, request(remote.NoNode, "X"), "-FORWARD X concerns all keys, which are at the nodes of redis://a:1?cluster\r\n"},
		{"no slots", map[string]string{"a:1": "away"}, get, noSlots},
		{"no slots", map[string]string{"a:1": "away"}, flush, noSlots},
		{"no slots", map[string]string{"a:1": "away"}, keys, noSlots},
		{"no slots", map[string]string{"a:1": "away"}, random, noSlots},
		{"no slots", map[string]string{"a:1": "away"}, scan, noSlots},
		{"no slots", map[string]string{"a:1": "away"}, watch(request(0, "WATCH", "foo")), noSlots},
		{"no slots", map[string]string{"a:1": "away"}, transaction(request(0, "GET", "foo")), noSlots},
		{"slots refused", map[string]string{"a:1 CLUSTER": "-ERR no\r\n"}, get, unreached + "a:1: CLUSTER: ERR no" + notRun},
		{"slots cut", map[string]string{"a:1 CLUSTER": cut}, get, unreached + "a:1: EOF" + notRun},
		{"slots malformed", map[string]string{"a:1 CLUSTER": "*1\r\n:1\r\n"}, get, unreached + "a:1: CLUSTER SLOTS: malformed reply" + notRun},
		{"slots malformed", map[string]string{"a:1 CLUSTER": "#x\r\n"}, get, unreached + "a:1: "},
		{"slots empty", map[string]string{"a:1 CLUSTER": "*0\r\n"}, get, unreached + "a:1: the node has no map of slots" + notRun},
		{"node away", map[string]string{"b:1": "away"}, get, unreached + "away" + notRun},
		{"node away", map[string]string{"b:1": "away"}, flush, "-FORWARD cannot reach b:1: away; the command has not run at all nodes\r\n"},
		{"node away", map[string]string{"b:1": "away", "a:1 KEYS": "*0\r\n"}, keys, "-FORWARD cannot reach b:1: away; there is no reply of all nodes\r\n"},
		{"node away", map[string]string{"b:1": "away", "a:1 DBSIZE": ":1\r\n"}, random, unreached + "away" + notRun},
		{"node away", map[string]string{"b:1": "away"}, watch(request(0, "WATCH", "foo")), unreached + "away" + notRun},
		{"hello refused", map[string]string{"b:1 HELLO": "-NOPROTO x\r\n"}, &three, unreached + "HELLO: NOPROTO x" + notRun},
		{"refused", map[string]string{"a:1 FLUSHALL": "-OOM x\r\n"}, flush, "-OOM x\r\n"},
		{"refused", map[string]string{"b:1 FLUSHALL": "-OOM x\r\n"}, flush, "-OOM x\r\n"},
		{"accepted", map[string]string{"b:1 FLUSHALL": "+yes\r\n"}, flush, "+yes\r\n"},
		{"refused", map[string]string{"a:1 KEYS": "*0\r\n", "b:1 KEYS": "-OOM x\r\n"}, keys, "-OOM x\r\n"},
		{"joined", map[string]string{"a:1 KEYS": "*1\r\n$1\r\nx\r\n", "b:1 KEYS": "*2\r\n$1\r\ny\r\n$1\r\nz\r\n"}, keys, "*3\r\n$1\r\nx\r\n$1\r\ny\r\n$1\r\nz\r\n"},
		{"too large", map[string]string{"a:1 KEYS": "*1\r\n$5\r\nxxxxx\r\n", "b:1 KEYS": "*1\r\n$5\r\nyyyyy\r\n"}, &limited, "-FORWARD the reply exceeds client-output-buffer-limit\r\n"},
		{"as large as may be", map[string]string{"a:1 KEYS": "*1\r\n$4\r\nxxxx\r\n", "b:1 KEYS": "*1\r\n$4\r\nyyyy\r\n"}, &limited, "*2\r\n$4\r\nxxxx\r\n$4\r\nyyyy\r\n"},
		{"another type", map[string]string{"a:1 KEYS": ":1\r\n"}, keys, "-FORWARD the reply of a:1 is of another type: \":1\"\r\n"},
		{"another type", map[string]string{"a:1 DBSIZE": "*0\r\n"}, size, "-FORWARD the reply of a:1 is of another type: \"*0\"\r\n"},
		{"sum", map[string]string{"a:1 DBSIZE": ":5\r\n", "b:1 DBSIZE": ":7\r\n"}, size, ":12\r\n"},
		{"size refused", map[string]string{"a:1 DBSIZE": ":5\r\n", "b:1 DBSIZE": "-NOPERM x\r\n"}, random, "-NOPERM x\r\n"},
		{"keys at one node", map[string]string{"a:1 DBSIZE": ":0\r\n", "b:1 DBSIZE": ":7\r\n", "b:1 RANDOMKEY": "$1\r\nk\r\n"}, random, "$1\r\nk\r\n"},
		{"scan refused", map[string]string{"a:1 SCAN": "-ERR x\r\n"}, scan, "-ERR x\r\n"},
		{"no cursor", map[string]string{"a:1 SCAN": "*2\r\n$1\r\nx\r\n*0\r\n"}, scan, "-FORWARD the cursor of a:1 is no number below 2^49: \"x\"\r\n"},
		{"next node", map[string]string{"a:1 SCAN": "*2\r\n$1\r\n0\r\n*0\r\n"}, scan, "*2\r\n$19\r\n4611686018427387904\r\n*0\r\n"},
		{"no number", nil, request(remote.ScanOfNodes, "SCAN", "x"), "-ERR invalid cursor\r\n"},
		{"node away", map[string]string{"b:1": "away"}, request(remote.ScanOfNodes, "SCAN", "4611686018427387904"), unreached + "away" + notRun},

		{"moved", map[string]string{"a:1 GET": moved, "b:1 GET": "$1\r\nv\r\n", "a:1 CLUSTER": "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\na\r\n:1\r\n"}, get, "$1\r\nv\r\n"},
		{"asked", map[string]string{"a:1 GET": "-ASK 5061 b:1\r\n", "b:1 GET": "$1\r\nv\r\n"}, bar, "$1\r\nv\r\n"},
		{"moved around", map[string]string{"a:1 GET": "-MOVED 5061 b:1\r\n", "b:1 GET": "-MOVED 5061 a:1\r\n"}, bar, "-MOVED 5061 b:1\r\n"},
		{"moved to one that is away", map[string]string{"a:1 GET": "-MOVED 5061 c:1\r\n", "c:1": "away"}, bar, unreached + "away" + notRun},
		{"never at one node", map[string]string{"a:1 GET": "-TRYAGAIN x\r\n"}, bar, "-TRYAGAIN x\r\n"},
		{"cut", map[string]string{"a:1 GET": cut}, bar, lost + "EOF" + mayHave},
		{"nonsense", map[string]string{"a:1 GET": "hello\r\n"}, bar, lost + `malformed reply: "hello"` + mayHave},

		{"transaction", map[string]string{"a:1 MULTI": "+OK\r\n", "a:1 GET": "+QUEUED\r\n", "a:1 EXEC": "*1\r\n:1\r\n"}, transaction(request(0, "GET", "bar")), "*1\r\n:1\r\n"},
		{"no MULTI", map[string]string{"a:1 MULTI": "-ERR x\r\n"}, transaction(request(0, "GET", "bar")), unreached + "MULTI: ERR x" + notRun},
		{"queue cut", map[string]string{"a:1 GET": cut}, transaction(request(0, "GET", "bar")), lost + "EOF" + mayHave},
		{"EXEC cut", map[string]string{"a:1 EXEC": cut}, transaction(request(0, "GET", "bar")), lost + "EOF" + mayHave},
		{"queue refused", map[string]string{"a:1 GET": "-ERR arity\r\n", "a:1 EXEC": "-EXECABORT x\r\n"}, transaction(request(0, "GET", "bar")), "-EXECABORT Transaction discarded because of: ERR arity\r\n"},
		{"transaction moved", map[string]string{"a:1 GET": "-MOVED 5061 b:1\r\n", "a:1 EXEC": "-EXECABORT x\r\n", "b:1 GET": "+QUEUED\r\n", "b:1 EXEC": "*1\r\n:1\r\n"}, transaction(request(0, "GET", "bar")), "*1\r\n:1\r\n"},
		{"transaction asked", map[string]string{"a:1 GET": "-ASK 5061 b:1\r\n", "a:1 EXEC": "-EXECABORT x\r\n", "b:1 ASKING": cut}, transaction(request(0, "GET", "bar")), unreached + "EOF" + notRun},
		{"transaction to one that is away", map[string]string{"a:1 GET": "-MOVED 5061 c:1\r\n", "a:1 EXEC": "-EXECABORT x\r\n", "c:1": "away"}, transaction(request(0, "GET", "bar")), unreached + "away" + notRun},
	} {
		forwarding(t, twoNodes(), test.replies, func(t *testing.T, h *Home, u *upstream, n *nodes) {
			for range 2 { // the second time some connections are there
				u.failed = map[string]error{}
				if served := u.serve([]*remote.Request{test.r}); served != 1 {
					t.Errorf("%s: %d requests", test.name, served)
				}
				// A redirection is followed, and the session gets what was there before: nothing.
				if got := string(u.out); u.answered != 1 || got != test.want && !(strings.HasSuffix(test.want, ": ") && strings.HasPrefix(got, test.want)) {
					t.Errorf("%s: %s: %q, not %q", test.name, test.r.Name, got, test.want)
				}
				u.out, u.answered = nil, 0
			}
			if away := strings.HasSuffix(test.name, "away"); away && (test.r.Slot < 0 || test.name != "node away") && test.r.Place != remote.ScanOfNodes && !h.stale {
				t.Errorf("%s: %s: the slots are not read again", test.name, test.r.Name)
			}
			if test.name == "no MULTI" && u.conns["a:1"] != nil {
				t.Error("after MULTI is refused the connection is kept")
			}
		})
	}
}

// TestTryAgain checks how long a request waits for its keys to be at one node, and that it ends with
// the client.
func TestTryAgain(t *testing.T) {
	forwarding(t, twoNodes(), map[string]string{"a:1 GET": "-TRYAGAIN x\r\n"}, func(t *testing.T, h *Home, u *upstream, n *nodes) {
		began := time.Now()
		u.serve([]*remote.Request{request(0, "GET", "bar")})
		if d := time.Since(began); d <= tryAgainTime || d > tryAgainTime+2*tryAgainPause {
			t.Errorf("the request waits for %v", d)
		}
		if attempts := len(n.log); attempts < int(tryAgainTime/tryAgainPause) {
			t.Errorf("%d attempts", attempts)
		}
		const end = time.Second
		time.AfterFunc(end, u.Close)
		began = time.Now()
		u.serve([]*remote.Request{request(0, "GET", "bar")})
		if d := time.Since(began); d > end {
			t.Errorf("after the end of the client, the request waits for %v", d)
		}
	})
}

// TestRedirects checks to how many nodes a request is sent, and that the table of slots follows MOVED
// and not ASK.
func TestRedirects(t *testing.T) {
	forwarding(t, twoNodes(), map[string]string{"a:1 GET": "-ASK 5061 b:1\r\n", "b:1 GET": "-ASK 5061 a:1\r\n"}, func(t *testing.T, h *Home, u *upstream, n *nodes) {
		u.serve([]*remote.Request{request(0, "GET", "bar")})
		gets := 0
		for _, line := range n.log {
			if strings.HasSuffix(line, " GET bar") {
				gets++
			}
		}
		if addr, err := h.node(5061); gets != maxRedirects+1 || addr != "a:1" || err != nil {
			t.Errorf("%d times; then the slot is at %s, %v", gets, addr, err)
		}
		n.replies = map[string]string{"a:1 GET": "-MOVED 5061 b:1\r\n"}
		u.serve([]*remote.Request{request(0, "GET", "bar")})
		if addr, err := h.node(5061); addr != "b:1" || err != nil {
			t.Errorf("after MOVED the slot is at %s, %v", addr, err)
		}
	})
}

// TestLogin checks how a connection logs in and is prepared, and that it is closed if it cannot.
func TestLogin(t *testing.T) {
	alone := remote.Address{Network: "tcp", Addrs: []string{"a:1"}, User: "u", Password: "p", DB: remote.AnyDatabase}
	r := request(0, "GET", "k")
	r.Version, r.DB = 3, 5
	forwarding(t, alone, nil, func(t *testing.T, h *Home, u *upstream, n *nodes) {
		u.serve([]*remote.Request{r, r})
		if want := []string{"a:1 dial", "a:1 AUTH u p", "a:1 HELLO 3", "a:1 SELECT 5", "a:1 GET k", "a:1 GET k"}; !slices.Equal(n.log, want) {
			t.Errorf("the commands are %q", n.log)
		}
	})
	for failed, want := range map[string]string{"AUTH": "AUTH: ERR x", "HELLO": "HELLO: ERR x", "SELECT": "SELECT: ERR x"} {
		forwarding(t, alone, map[string]string{"a:1 " + failed: "-ERR x\r\n"}, func(t *testing.T, h *Home, u *upstream, n *nodes) {
			u.serve([]*remote.Request{r, r})
			u.serve([]*remote.Request{r})
			if got := string(u.out); !strings.HasSuffix(got, "-FORWARD cannot reach redis://a:1: "+want+"; the command has not run\r\n") {
				t.Errorf("%s fails: %q", failed, got)
			}
			synctest.Wait()
			if n.open["a:1"] != 0 || len(u.conns) != 0 {
				t.Errorf("%s fails: %d connections are open", failed, n.open["a:1"])
			}
			// A node that is away is tried once for all requests of a batch.
			if dials := strings.Count(strings.Join(n.log, "\n"), "dial"); failed == "AUTH" && dials != 1 || failed != "AUTH" && dials != 2 {
				t.Errorf("%s fails: %d connections", failed, dials)
			}
		})
	}
}

// TestJoinedBatch checks which requests are written together.
func TestJoinedBatch(t *testing.T) {
	other := func(change func(r *remote.Request)) *remote.Request {
		r := request(0, "GET", "bar")
		change(r)
		return r
	}
	for _, test := range []struct {
		name    string
		next    *remote.Request
		cluster int // how many are served at once
		alone   int
	}{
		{"the same node", request(0, "GET", "bar"), 2, 2},
		{"another node", request(0, "GET", "foo"), 1, 2},
		{"any node", request(remote.AnyNode, "PUBLISH", "c", "m"), 2, 2},
		{"all nodes", request(remote.AllNodes, "FLUSHALL"), 1, 2},
		{"a transaction", other(func(r *remote.Request) { r.Kind = remote.Transaction }), 1, 1},
		{"another version", other(func(r *remote.Request) { r.Version = 3 }), 1, 1},
		{"another database", other(func(r *remote.Request) { r.DB = 1 }), 1, 1},
	} {
		forwarding(t, twoNodes(), nil, func(t *testing.T, h *Home, u *upstream, n *nodes) {
			if got := u.serve([]*remote.Request{request(0, "GET", "bar"), test.next}); got != test.cluster {
				t.Errorf("%s: %d at once in a cluster", test.name, got)
			}
		})
		forwarding(t, remote.Address{Network: "tcp", Addrs: []string{"a:1"}, DB: remote.AnyDatabase}, nil, func(t *testing.T, h *Home, u *upstream, n *nodes) {
			if got := u.serve([]*remote.Request{request(0, "GET", "bar"), test.next}); got != test.alone {
				t.Errorf("%s: %d at once at a server", test.name, got)
			}
		})
	}
}

// TestWatches checks the replies to WATCH and EXEC if the keys are at different nodes, and if the
// connection with the watched keys is lost.
func TestWatches(t *testing.T) {
	watch := func(key string) *remote.Request {
		r := request(0, "WATCH", key)
		r.Kind = remote.Watch
		return r
	}
	exec := func(key string, version int) *remote.Request {
		r := request(0, "GET", key)
		r.Kind, r.Watched, r.Version = remote.Transaction, true, version
		return r
	}
	unwatch := request(remote.AnyNode, "UNWATCH")
	unwatch.Kind = remote.Unwatch
	const crossed = "-CROSSSLOT the watched keys are at different nodes of redis://a:1?cluster\r\n"
	for _, test := range []struct {
		name    string
		replies map[string]string
		list    []*remote.Request
		want    string
		watched string // the address of the node with watched keys
	}{
		{"two nodes", nil, []*remote.Request{watch("bar"), watch("foo")}, "+OK\r\n" + crossed, "a:1"},
		{"two nodes, refused", map[string]string{"b:1 UNWATCH": "-ERR x\r\n"}, []*remote.Request{watch("bar"), watch("foo")}, "+OK\r\n" + crossed, "a:1"},
		{"one node", nil, []*remote.Request{watch("bar"), watch("bar")}, "+OK\r\n+OK\r\n", "a:1"},
		{"refused", map[string]string{"a:1 WATCH": "-ERR x\r\n"}, []*remote.Request{watch("bar")}, "-ERR x\r\n", ""},
		{"moved", map[string]string{"a:1 WATCH": "-MOVED 5061 b:1\r\n"}, []*remote.Request{watch("bar")}, "+OK\r\n", "b:1"},
		{"ended", nil, []*remote.Request{watch("bar"), unwatch}, "+OK\r\n+OK\r\n", ""},
		{"ended, refused", map[string]string{"a:1 UNWATCH": "-ERR x\r\n"}, []*remote.Request{watch("bar"), unwatch}, "+OK\r\n+OK\r\n", ""},
		{"run", map[string]string{"a:1 EXEC": "*1\r\n:1\r\n"}, []*remote.Request{watch("bar"), exec("bar", 2)}, "+OK\r\n*1\r\n:1\r\n", ""},
		{"run at another node", nil, []*remote.Request{watch("bar"), exec("foo", 2)}, "+OK\r\n-CROSSSLOT the watched keys and those of the transaction are at different nodes of redis://a:1?cluster\r\n", ""},
		{"not watched", nil, []*remote.Request{exec("bar", 2)}, "*-1\r\n", ""},
		{"moved, then run", map[string]string{"a:1 GET": "-MOVED 5061 b:1\r\n", "a:1 EXEC": "-EXECABORT x\r\n"}, []*remote.Request{watch("bar"), exec("bar", 2)}, "+OK\r\n*-1\r\n", ""},
		{"cut", map[string]string{"a:1 GET": cut}, []*remote.Request{watch("bar"), request(0, "GET", "bar"), exec("bar", 2)}, "", ""},
	} {
		forwarding(t, twoNodes(), test.replies, func(t *testing.T, h *Home, u *upstream, n *nodes) {
			got := ""
			for _, r := range test.list {
				u.serve([]*remote.Request{r})
				got += string(u.out)
				u.out, u.answered = nil, 0
			}
			watched := ""
			if u.watch != nil {
				watched = u.watch.addr
			}
			if test.name == "cut" {
				if !strings.HasSuffix(got, "\r\n*-1\r\n") {
					t.Errorf("cut: %q", got)
				}
				return
			}
			if got != test.want || watched != test.watched {
				t.Errorf("%s: %q, and %q has watched keys; not %q", test.name, got, watched, test.want)
			}
			if strings.HasSuffix(test.name, "refused") {
				for addr, c := range u.conns {
					if failed := test.replies[addr+" UNWATCH"] != ""; failed {
						t.Errorf("%s: the connection %v to %s is kept", test.name, c.addr, addr)
					}
				}
			}
		})
	}
}

// TestRedirectedBatch checks that requests which are written together and of which some are redirected
// have their replies in order, also if the connection is lost among them.
func TestRedirectedBatch(t *testing.T) {
	for last, want := range map[string]string{"$1\r\nv\r\n": "$1\r\nv\r\n", cut: "-FORWARD lost the connection to redis://a:1?cluster before the reply: EOF; the command may have run\r\n"} {
		replies := map[string]string{"a:1 GET bar": "-ASK 5061 b:1\r\n", "b:1 GET bar": "$1\r\nb\r\n", "a:1 GET {bar}": last}
		forwarding(t, twoNodes(), replies, func(t *testing.T, h *Home, u *upstream, n *nodes) {
			batch := []*remote.Request{request(0, "GET", "bar"), request(0, "GET", "{bar}2"), request(0, "GET", "{bar}3")}
			if got := u.serve(batch); got != 3 {
				t.Errorf("%d at once", got)
			}
			// The first reply is the session's before the request is sent again.
			if got := string(u.out); got != "$1\r\nb\r\n"+want+want || u.answered != 3 {
				t.Errorf("the replies are %q", got)
			}
			u.out, u.answered = nil, 0
		})
	}
}

// TestPurges checks that the calls which remove members past their deadlines precede a command, with
// ASKING each, and what the reply is if one of them is lost.
func TestPurges(t *testing.T) {
	purging := func(kind remote.Kind) *remote.Request {
		r := request(0, "ZCARD", "bar")
		r.Kind = kind
		r.Purge([]byte("bar"))
		r.Purge([]byte("{bar}2"))
		return r
	}
	for _, test := range []struct {
		name    string
		replies map[string]string
		kind    remote.Kind
		want    string
		log     string
	}{
		{"alone", map[string]string{"a:1 ZCARD": ":5\r\n"}, remote.Command, ":5\r\n", "a FCALL zpurge 1 bar, a FCALL zpurge 1 {bar}2, a ZCARD bar"},
		{"asked", map[string]string{"a:1 ZCARD": "-ASK 5061 b:1\r\n", "b:1 ZCARD": ":5\r\n"}, remote.Command, ":5\r\n",
			"a FCALL zpurge 1 bar, a FCALL zpurge 1 {bar}2, a ZCARD bar, b ASKING, b FCALL zpurge 1 bar, b ASKING, b FCALL zpurge 1 {bar}2, b ASKING, b ZCARD bar"},
		{"cut", map[string]string{"a:1 FCALL zpurge 1 {": cut}, remote.Command, "-FORWARD lost the connection to redis://a:1?cluster before the reply: EOF; the command may have run\r\n",
			"a FCALL zpurge 1 bar, a FCALL zpurge 1 {bar}2"},
		{"in a transaction", map[string]string{"a:1 EXEC": "*1\r\n:5\r\n"}, remote.Transaction, "*1\r\n:5\r\n", "a FCALL zpurge 1 bar, a FCALL zpurge 1 {bar}2, a MULTI, a ZCARD bar, a EXEC"},
		{"cut in a transaction", map[string]string{"a:1 FCALL": cut}, remote.Transaction, "-FORWARD cannot reach redis://a:1?cluster: EOF; the command has not run\r\n", "a FCALL zpurge 1 bar"},
	} {
		forwarding(t, twoNodes(), test.replies, func(t *testing.T, h *Home, u *upstream, n *nodes) {
			h.kind.Store(kindOther)
			u.serve([]*remote.Request{purging(test.kind)})
			if got := string(u.out); got != test.want {
				t.Errorf("%s: %q", test.name, got)
			}
			var log []string
			for _, line := range n.log {
				if addr, command, _ := strings.Cut(line, ":1 "); command != "dial" && command != "CLUSTER SLOTS" {
					log = append(log, addr+" "+command)
				}
			}
			if got := strings.Join(log, ", "); got != test.log {
				t.Errorf("%s: the commands are %s", test.name, got)
			}
			if cut := strings.HasPrefix(test.name, "cut"); cut != (u.conns["a:1"] == nil) {
				t.Errorf("%s: the connections are %v", test.name, u.conns)
			}
			u.out, u.answered = nil, 0
		})
	}
}

// TestShardsMove checks that the subscription of a sharded channel follows its slot, if a node says
// that it has moved, and no other subscription does.
func TestShardsMove(t *testing.T) {
	slots := map[string]string{"a:1 CLUSTER SLOTS": "*3\r\n*3\r\n:0\r\n:8191\r\n*2\r\n$1\r\na\r\n:1\r\n*3\r\n:8192\r\n:12999\r\n*2\r\n$1\r\nb\r\n:1\r\n*3\r\n:13000\r\n:16383\r\n*2\r\n$1\r\nc\r\n:1\r\n"}
	for _, test := range []struct {
		name    string
		message any
		to      string // where the channel is then; "" if it has not moved
	}{
		{"MOVED", protocol.ReplyError("MOVED 12182 c:1"), "c:1"},
		{"sunsubscribe", []any{"sunsubscribe", "foo", int64(0)}, "b:1"}, // and back
		{"error", protocol.ReplyError("ERR x"), ""},
		{"TRYAGAIN", protocol.ReplyError("TRYAGAIN x"), ""},
		{"short", []any{"sunsubscribe", "foo"}, ""},
		{"no array", "sunsubscribe", ""},
	} {
		forwarding(t, twoNodes(), slots, func(t *testing.T, h *Home, u *upstream, n *nodes) {
			if _, err := h.node(-1); err != nil {
				t.Fatal(err)
			}
			l := &link{hub: h.hub, addr: "b:1", up: true, wanted: map[topic]struct{}{}, wake: make(chan struct{}, 1)}
			h.hub.links["b:1"] = l
			foo := topic{subscription.Shards, "foo"}
			for _, tp := range []topic{foo, {subscription.Shards, "foo2"}, {subscription.Channels, "foo"}, {subscription.Shards, "gone"}} {
				l.wanted[tp] = struct{}{}
				if tp.name != "gone" {
					h.hub.topics[tp] = &wantedTopic{links: []*link{l}}
				}
			}
			l.received(test.message)
			synctest.Wait()
			h.hub.mu.Lock()
			defer h.hub.mu.Unlock()
			want, left := "", 4
			switch test.to {
			case "b:1":
				want = string(encode("SSUBSCRIBE", "foo"))
			case "c:1":
				left = 3
				if to := h.hub.links["c:1"]; to == nil || len(to.wanted) != 1 || h.hub.topics[foo].links[0] != to {
					t.Errorf("%s: the link to the new node is %v", test.name, to)
				}
			}
			if got := string(l.pending); got != want || len(l.wanted) != left {
				t.Errorf("%s: the former node receives %q, and has %d topics", test.name, got, len(l.wanted))
			}
			if links := len(h.hub.links); links > 1 && test.to != "c:1" {
				t.Errorf("%s: %d links", test.name, links)
			}
		})
	}
}

// TestHubWithoutNode checks that a client does not wait for a subscription at a server that is away,
// that one which is unknown may be ended, and that the link is opened again.
func TestHubWithoutNode(t *testing.T) {
	forwarding(t, twoNodes(), map[string]string{"a:1": "away"}, func(t *testing.T, h *Home, u *upstream, n *nodes) {
		h.Unsubscribe(subscription.Channels, "none")
		done := make(chan struct{})
		h.Subscribe(subscription.Channels, []string{"c"}, func() { close(done) })
		<-done
		n.mu.Lock()
		n.replies = map[string]string{"a:1 SUBSCRIBE": "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"}
		n.mu.Unlock()
		<-time.After(2 * longestPause)
		synctest.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		if !slices.Contains(n.log, "a:1 SUBSCRIBE c") {
			t.Errorf("the commands are %q", n.log)
		}
	})
}
