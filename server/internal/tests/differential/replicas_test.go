package differential

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

var (
	replicasN    = flag.Int("replicas.n", 4000, "`number` of random commands that replicas follow")
	replicasSeed = flag.Uint64("replicas.seed", 1, "`seed` of the random commands; 0: another each time")
)

// TestReplicasDifferential sends random commands to a primary, while replicas of Redis and
// of zsetd follow it. Their connections are cut while commands run. The backlog is
// small, so some replicas continue and others receive all data again. After each batch
// all servers have the same keys and values.
//
//	go test ./server/internal/tests/differential -run TestReplicasDifferential -replicas.n 200000 -replicas.seed 0
func TestReplicasDifferential(t *testing.T) {
	seed := *replicasSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	for _, test := range []struct {
		version  string
		start    func(t *testing.T, args ...string) (dial func() net.Conn)
		settings []string
	}{
		{version: judge.Version, start: judge.Start},
		{version: "8.6", start: judge.StartNewer, settings: []string{"repl-field-deadlines", "redis"}},
	} {
		t.Run(test.version, func(t *testing.T) {
			t.Logf("repeat with -replicas.seed %d", seed)
			x := &replicas{t: t, version: test.version}
			primary := x.zsetd(append(test.settings, "repl-backlog-size", "32kb", "repl-diskless-sync-delay", "0")...)
			x.redis(test.start, "--replicaof", "127.0.0.1", primary)
			x.redis(test.start, "--replicaof", "127.0.0.1", primary)
			x.zsetd(append(test.settings, "replicaof", "127.0.0.1 "+primary)...)
			x.run(seed)
		})
	}
}

// replicas are a primary and its replicas.
type replicas struct {
	t       *testing.T
	version string        // of the replicas of Redis
	peers   []*judge.Peer // the primary first
	names   []string
}

// databases is the number of databases of the servers.
const databases = 4

// redis starts a redis-server and returns its port.
func (x *replicas) redis(start func(t *testing.T, args ...string) (dial func() net.Conn), args ...string) (port string) {
	x.t.Helper()
	port = judge.FreePort(x.t)
	dial := start(x.t, append([]string{"--port", port, "--databases", strconv.Itoa(databases)}, args...)...)
	x.peers, x.names = append(x.peers, judge.NewPeer(dial(), dial())), append(x.names, "redis")
	return port
}

// zsetd starts a zsetd with settings, names and values, and returns its port.
func (x *replicas) zsetd(settings ...string) (port string) {
	x.t.Helper()
	config := map[string]string{"databases": strconv.Itoa(databases), "proto-max-bulk-len": "1mb"}
	for pair := range slices.Chunk(settings, 2) {
		config[pair[0]] = pair[1]
	}
	started, address := enginetest.Start(x.t, config)
	srv := subject{started}
	srv.LimitScripts(64 << 20)
	dial := func() net.Conn {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			x.t.Fatal(err)
		}
		x.t.Cleanup(func() { nc.Close() })
		return nc
	}
	x.peers, x.names = append(x.peers, judge.NewPeer(dial(), dial())), append(x.names, "zsetd")
	_, port, _ = net.SplitHostPort(address)
	return port
}

// run runs the commands in batches, and compares the servers after each.
func (x *replicas) run(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	g := newGenerator(rand.New(rand.NewPCG(seed, 0)), slices.DeleteFunc(allCommands(), func(c *protocol.Command) bool { return !hasEffects(c) }))
	g.knows = func(since string) bool { return since <= "8.6.9" }
	primary := x.peers[0]
	x.linked()
	var history []string
	for n := 0; n < *replicasN; {
		var lines [][]string
		for range 100 + r.IntN(200) {
			lines = append(lines, drawnLines(g, r)...)
		}
		n += len(lines)
		cut := r.IntN(3)
		for i := 0; len(lines) > 0; i++ {
			k := min(len(lines), 1+r.IntN(60))
			if _, err := primary.Pipeline(lines[:k]); err != nil {
				x.t.Fatal(err)
			}
			for _, argv := range lines[:k] {
				history = append(history, fmt.Sprintf("%.300q", argv))
			}
			lines = lines[k:]
			if i < cut {
				primary.Do("CLIENT", "KILL", "TYPE", "replica")
			}
		}
		x.compare(history)
		history = history[:0]
	}
	x.t.Logf("%s continued, %s transfers", primary.Info("sync_partial_ok"), primary.Info("sync_full"))
}

// drawnLines draws a command, or several in a transaction or script. Commands that wait
// are in a transaction, where they do not.
func drawnLines(g *generator, r *rand.Rand) [][]string {
	switch n := r.IntN(200); {
	case n < 4:
		return [][]string{{"SELECT", strconv.Itoa(n % databases)}}
	case n == 4:
		return [][]string{{"SWAPDB", strconv.Itoa(r.IntN(databases)), strconv.Itoa(r.IntN(databases))}}
	case n < 8:
		lines := [][]string{{"MULTI"}}
		for range r.IntN(8) {
			_, argv := g.next()
			lines = append(lines, argv)
		}
		return append(lines, []string{"EXEC"})
	case n < 14:
		_, argv := g.next()
		return [][]string{inScript(g, argv)}
	case n < 16:
		return [][]string{{"SET", "v" + strconv.Itoa(r.IntN(4)), strings.Repeat("0123456789", r.IntN(5000))}}
	case n < 18:
		return [][]string{{"PEXPIRE", g.pick("z", "h", "l", "s", "v", "x") + strconv.Itoa(r.IntN(4)), strconv.Itoa(r.IntN(3000))}}
	}
	c, argv := g.next()
	if c.Flags().Has(protocol.Blocking) {
		return [][]string{{"MULTI"}, argv, {"EXEC"}}
	}
	return [][]string{argv}
}

// linked waits until all replicas are synchronized.
func (x *replicas) linked() {
	x.t.Helper()
	for i, p := range x.peers[1:] {
		wait.Until(x.t, fmt.Sprintf("replica %d (%s) is synchronized", i+1, x.names[i+1]), func() bool { return p.Info("master_link_status") == "up" })
	}
}

// compare waits until all servers have the same data. Keys that expire meanwhile make
// readings differ for a time.
func (x *replicas) compare(history []string) {
	x.t.Helper()
	var difference string
	equal := func() bool {
		want, _ := contents(x.peers[0], x.version > judge.Version)
		for i, p := range x.peers[1:] {
			got, err := contents(p, x.version > judge.Version)
			if difference = firstDifference(want, got); err != nil || difference != "" {
				difference = fmt.Sprintf("replica %d (%s) of %s: %s %v", i+1, x.names[i+1], x.names[0], difference, err)
				return false
			}
		}
		return true
	}
	if !wait.Holds(equal) {
		x.t.Fatalf("%s\nafter\n\t%s", difference, strings.Join(history, "\n\t"))
	}
}

// A valueReader is the command that reads a value. The elements of the reply are groups in
// any order if group is positive, members with scores if it is negative; see canonical.
type valueReader struct {
	argv  []string
	group int
}

// cleared matches the fact of a stream that XSETID cannot set, as in 8.6 after XTRIM with
// DELREF: see "The stream" in package replication.
var cleared = regexp.MustCompile(`max-deleted-entry-id 0-0`)

// anyDeleted matches it in any stream.
var anyDeleted = regexp.MustCompile(`max-deleted-entry-id \d+-\d+`)

// sameTransferred reports whether a replica has what the primary has, that fact aside where
// the primary has cleared it.
func sameTransferred(replica, primary string) bool {
	if cleared.MatchString(primary) {
		replica = anyDeleted.ReplaceAllString(replica, "max-deleted-entry-id 0-0")
	}
	return judge.SameWords(replica, primary)
}

// firstDifference returns the first key whose values differ, "" if there is none.
func firstDifference(want, got map[string]string) string {
	for key, value := range want {
		if !sameTransferred(got[key], value) {
			return fmt.Sprintf("%s:\nprimary:\n%s\nreplica:\n%s", key, clipped(value), clipped(got[key]))
		}
	}
	for key, value := range got {
		if _, ok := want[key]; !ok {
			return fmt.Sprintf("%s: not at the primary; replica:\n%s", key, clipped(value))
		}
	}
	return ""
}

// contents returns the keys of all databases with their values and deadlines, with fields
// those of fields of hashes, too, and the libraries of functions.
func contents(p *judge.Peer, fields bool) (map[string]string, error) {
	all := map[string]string{}
	valueReaders := map[string]valueReader{
		"string": {[]string{"GET"}, 0}, "list": {[]string{"LRANGE", "0", "-1"}, 0}, "set": {[]string{"SMEMBERS"}, 1},
		"hash": {[]string{"HGETALL"}, 2}, "zset": {[]string{"ZRANGE", "0", "-1", "WITHSCORES"}, -1}, "stream": {[]string{"XRANGE", "-", "+"}, 0},
	}
	c := p.Events // its database is not that of the commands
	for db := range databases {
		replies, err := decoded(c, []string{"SELECT", strconv.Itoa(db)}, []string{"KEYS", "*"})
		if err != nil {
			return nil, err
		}
		for _, key := range sorted(replies[1], 1) {
			kind, err := decoded(c, []string{"TYPE", key})
			if err != nil {
				return nil, err
			}
			word := fmt.Sprint(kind[0])
			how, ok := valueReaders[word]
			if !ok {
				continue // expired meanwhile
			}
			lines := [][]string{slices.Concat(how.argv[:1], []string{key}, how.argv[1:]), {"PEXPIRETIME", key}}
			switch {
			case word == "stream":
				lines = append(lines, []string{"XINFO", "STREAM", key, "FULL", "COUNT", "0"})
			case word == "hash" && fields:
				names, err := decoded(c, []string{"HKEYS", key})
				if err != nil {
					return nil, err
				}
				if names := sorted(names[0], 1); len(names) > 0 {
					lines = append(lines, slices.Concat([]string{"HPEXPIRETIME", key, "FIELDS", strconv.Itoa(len(names))}, names))
				}
			}
			values, err := decoded(c, lines...)
			if err != nil {
				return nil, err
			}
			text := word
			for i, v := range values {
				group := 0
				if i == 0 {
					group = how.group
				}
				text += "\n" + canonical(v, group)
			}
			all[fmt.Sprintf("database %d, %q", db, key)] = text
		}
	}
	list, err := decoded(c, []string{"FUNCTION", "LIST", "WITHCODE"})
	if err == nil {
		all["functions"] = libraries(list[0])
	}
	return all, err
}

// decoded sends command lines and returns their replies.
func decoded(c *judge.Conn, lines ...[]string) ([]any, error) {
	replies, err := c.Pipeline(lines)
	if err != nil {
		return nil, err
	}
	values := make([]any, len(replies))
	for i, r := range replies {
		if values[i], _, err = protocol.Decode([]byte(r)); err != nil {
			return nil, err
		}
	}
	return values, nil
}
