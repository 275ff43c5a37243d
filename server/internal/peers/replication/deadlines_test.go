package replication_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// memberDeadlines are commands that make, move and remove deadlines of members of sorted
// sets and of fields of hashes.
func memberDeadlines(suffix string) (lines []string) {
	for _, line := range []string{
		"ZADD z# 1 a 2 b 3 c 4 d", "ZPEXPIREAT z# 33000000000000 MEMBERS 2 a b", "ZPEXPIREAT z# 33000000000001 MEMBERS 1 c", "ZPERSIST z# MEMBERS 1 b",
		"ZINCRBY z# 10 a", "HSET h# f 1 g 2 i 3", "HPEXPIREAT h# 33000000000000 FIELDS 2 f g", "HPEXPIREAT h# 33000000000001 FIELDS 1 i", "HINCRBY h# f 1", "HSET h# g 3",
		"COPY z# copied#", "ZADD moved# 1 a", "ZPEXPIREAT moved# 33000000000000 MEMBERS 1 a", "RENAME moved# renamed#",
		"ZADD emptied# 1 a", "ZPEXPIREAT emptied# 1 MEMBERS 1 a", "ZREM z# d", "ZADD z# 1 d",
	} {
		lines = append(lines, strings.ReplaceAll(line, "#", suffix))
	}
	for i := range 300 {
		lines = append(lines, fmt.Sprintf("ZADD large%s %d member:%d", suffix, i, i), fmt.Sprintf("ZPEXPIREAT large%s %d MEMBERS 1 member:%d", suffix, 33000000000000+i, i))
	}
	return lines
}

// pairsOf returns the pairs of a sorted set or a hash.
func pairsOf(t *testing.T, p *judge.Peer, key string) (pairs []string) {
	t.Helper()
	read := []string{"ZRANGE", key, "0", "-1", "WITHSCORES"}
	if key[0] == 'h' {
		read = []string{"HGETALL", key}
	}
	v, _, err := protocol.Decode([]byte(p.Do(read...)))
	list, ok := v.([]any)
	if err != nil || !ok {
		t.Fatalf("%q: %v, %v", read, v, err)
	}
	for i := 0; i+1 < len(list); i += 2 {
		pairs = append(pairs, fmt.Sprint(list[i], " ", list[i+1]))
	}
	if key[0] == 'h' { // their order is one of deadlines
		slices.Sort(pairs)
	}
	return pairs
}

// TestDeadlinesHarmless checks that servers without deadlines of members follow a primary
// that has some, from the file and in the stream, and log no error.
func TestDeadlinesHarmless(t *testing.T) {
	starts := map[string]func(t *testing.T, args ...string) func() net.Conn{"redis7": judge.Start}
	for _, n := range judge.NewerServers() {
		starts[n.Name] = func(t *testing.T, args ...string) func() net.Conn {
			path := n.Path(t)
			if path == "" {
				t.Skipf("%s is not installed", n.Name)
			}
			return judge.StartProgram(t, path, args...)
		}
	}
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			p := primaryOf(t, nil)
			p.run(memberDeadlines("1")...)
			host, port, _ := net.SplitHostPort(p.srv.Addr())
			dial := start(t, "--replicaof", host, port, "--enable-debug-command", "yes", "--propagation-error-behavior", "panic")
			p.replica = judge.NewPeer(dial(), dial())
			p.linked()
			p.caughtUp()
			p.run(memberDeadlines("2")...)
			p.caughtUp()
			for _, key := range strings.Fields("z1 h1 copied1 renamed1 large1 z2 h2 copied2 renamed2 large2 emptied1 emptied2") {
				ours, theirs := pairsOf(t, p.primary, key), pairsOf(t, p.replica, key)
				if !slices.Equal(ours, theirs) {
					t.Errorf("%s: %q here, %q there", key, ours, theirs)
				}
			}
			if got := p.replica.Info("unexpected_error_replies"); got != "0" {
				t.Errorf("unexpected_error_replies is %s", got)
			}
			if got := p.replica.Do("INFO", "errorstats"); strings.Contains(got, "errorstat_") {
				t.Errorf("errors of the replica: %s", got)
			}
		})
	}
}

// TestFieldDeadlines checks that Redis 8 and Valkey 9, if the parameter says that they follow,
// have the deadlines of fields, from the file and in the stream, and keep them when they are
// promoted; and so does zsetd.
func TestFieldDeadlines(t *testing.T) {
	kinds := map[string]string{"redis8": "redis", "valkey9": "valkey"}
	for _, n := range judge.NewerServers() {
		t.Run(n.Name, func(t *testing.T) {
			path := n.Path(t)
			if path == "" || kinds[n.Name] == "" {
				t.Skipf("%s is not installed, or has no deadlines of fields", n.Name)
			}
			config := map[string]string{"repl-field-deadlines": kinds[n.Name]}
			p := primaryOf(t, config)
			p.run(memberDeadlines("1")...)
			host, port, _ := net.SplitHostPort(p.srv.Addr())
			dial := judge.StartProgram(t, path, "--replicaof", host, port, "--enable-debug-command", "yes", "--propagation-error-behavior", "panic")
			p.replica = judge.NewPeer(dial(), dial())
			zsetd := zsetdNode(t, nil)
			zsetd.run("REPLICAOF " + host + " " + port)
			p.linked()
			p.caughtUp()
			p.run(memberDeadlines("2")...)
			p.run("HSET h3 f 1 g 2", "HPEXPIREAT h3 1 FIELDS 1 f", "HSET h4 f 1", "HPEXPIREAT h4 33000000000000 FIELDS 1 f", "HPERSIST h4 FIELDS 1 f")
			p.caughtUp()
			wait.Until(t, "zsetd has the stream", func() bool { return zsetd.Info("master_repl_offset") == p.primary.Info("master_repl_offset") })
			same := func() {
				t.Helper()
				for key := range strings.FieldsSeq("h1 h2 h3 h4") {
					for _, read := range [][]string{{"HLEN", key}, {"HMGET", key, "f", "g", "i"}, {"HPEXPIRETIME", key, "FIELDS", "3", "f", "g", "i"}} {
						ours := p.primary.Do(read...)
						for name, theirs := range map[string]string{n.Name: p.replica.Do(read...), "zsetd": zsetd.Do(read...)} {
							if ours != theirs {
								t.Errorf("%s %s: %q here, %q in %s", read[0], key, ours, theirs, name)
							}
						}
					}
				}
			}
			same()
			if got := p.primary.Do("HPEXPIRETIME", "h2", "FIELDS", "2", "f", "g"); got != "*2\r\n:33000000000000\r\n:-1\r\n" {
				t.Errorf("HPEXPIRETIME: %q", got)
			}
			if got := p.replica.Info("unexpected_error_replies"); got != "0" {
				t.Errorf("unexpected_error_replies is %s", got)
			}
			p.replica.Do("REPLICAOF", "NO", "ONE")
			same()
		})
	}
}

// TestFollowFieldDeadlines checks that a zsetd that follows Redis 8 or Valkey 9 has the
// deadlines of fields, from the file and from the stream, and keeps them when it is promoted.
func TestFollowFieldDeadlines(t *testing.T) {
	for _, n := range judge.NewerServers() {
		t.Run(n.Name, func(t *testing.T) {
			if n.Path(t) == "" {
				t.Skipf("%s is not installed", n.Name)
			}
			port := judge.FreePort(t)
			primary := &node{Peer: n.Start(t, "--port", port, "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", noPings), t: t, addr: "127.0.0.1:" + port}
			change := func(part string) {
				primary.run(strings.Split(strings.ReplaceAll("HSET h# f 1 g 2 i 3 j 4 k 5|HPEXPIREAT h# 33000000000000 FIELDS 3 f g i|HINCRBY h# f 1|HSET h# g 3|HPERSIST h# FIELDS 1 i|"+
					"HSETEX h# PXAT 33000000000001 FIELDS 2 l 1 m 2|HSETEX h# KEEPTTL FIELDS 1 l 2|HGETEX h# PXAT 33000000000002 FIELDS 1 j|HPEXPIREAT h# 1 FIELDS 1 k|"+
					"COPY h# c#|HSET e# f 1|HPEXPIREAT e# 1 FIELDS 1 f", "#", part), "|")...)
			}
			change("1")
			replica := zsetdNode(t, nil)
			replica.follow(primary)
			change("2")
			primary.run("HPEXPIREAT h1 33000000000003 FIELDS 2 g i", "HDEL h1 f", "DEL c1", "RENAME h1 c1")
			wait.Until(t, "the replica has the stream", func() bool { return replica.offset() >= primary.offset() && primary.offset() > 0 })
			same := func(when string) {
				t.Helper()
				for key := range strings.FieldsSeq("h1 h2 c1 c2 e1 e2") {
					for _, read := range [][]string{{"HLEN", key}, {"HMGET", key, "f", "g", "i", "j", "k", "l", "m"}, {"HPEXPIRETIME", key, "FIELDS", "7", "f", "g", "i", "j", "k", "l", "m"}} {
						if theirs, ours := primary.Do(read...), replica.Do(read...); ours != theirs {
							t.Errorf("%s: %s %s: %q here, %q in %s", when, read[0], key, ours, theirs, n.Name)
						}
					}
				}
			}
			same("following")
			if got := replica.Do("HPEXPIRETIME", "h2", "FIELDS", "3", "f", "l", "j"); got != "*3\r\n:33000000000000\r\n:33000000000001\r\n:33000000000002\r\n" {
				t.Errorf("HPEXPIRETIME: %q", got)
			}
			if got := replica.Info("unexpected_error_replies"); got != "0" {
				t.Errorf("unexpected_error_replies is %s", got)
			}
			replica.run("REPLICAOF NO ONE")
			same("promoted")
		})
	}
}

// TestDeadlinesTransferred checks that zsetd has the deadlines of a primary, from the file
// and from the stream, also from a stream that passes through redis-server.
func TestDeadlinesTransferred(t *testing.T) {
	primary, replica, middle, last := zsetdNode(t, nil), zsetdNode(t, nil), redisNode(t), zsetdNode(t, nil)
	same := func(n *node, suffix string) {
		t.Helper()
		for key := range strings.FieldsSeq("z h copied renamed large emptied") {
			if ours, theirs := primary.Do("DUMP", key+suffix), n.Do("DUMP", key+suffix); ours != theirs {
				t.Errorf("%s%s differs: %q here, %q there", key, suffix, ours, theirs)
			}
		}
	}
	primary.run(memberDeadlines("1")...)
	replica.follow(primary)
	middle.follow(primary)
	last.follow(middle)
	primary.run(memberDeadlines("2")...)
	primary.run("MULTI", "ZADD t 1 a", "ZPEXPIREAT t 33000000000000 MEMBERS 1 a", "EXEC")
	primary.same(replica)
	wait.Until(t, "the last server has the stream", func() bool { return last.offset() >= primary.offset() })
	same(replica, "1")
	same(replica, "2")
	same(last, "2")
	for _, n := range []*node{replica, last} {
		if r := n.Do("ZPEXPIRETIME", "large2", "MEMBERS", "1", "member:7"); !strings.Contains(r, "33000000000007") {
			t.Errorf("ZPEXPIRETIME: %q", r)
		}
		if failed := n.Info("unexpected_error_replies"); failed != "0" {
			t.Errorf("%s commands failed", failed)
		}
	}
}
