package server_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// memberDeadlines are commands that make, move and remove deadlines of members of sorted
// sets and of fields of hashes.
func memberDeadlines(suffix string) (lines []string) {
	for _, line := range []string{
		"ZADD z# 1 a 2 b 3 c 4 d", "ZPEXPIREAT z# 33000000000000 MEMBERS 2 a b", "ZPEXPIREAT z# 33000000000001 MEMBERS 1 c", "ZPERSIST z# MEMBERS 1 b",
		"ZINCRBY z# 10 a", "HSET h# f 1 g 2 i 3", "HPEXPIREAT h# 33000000000000 FIELDS 3 f g i", "HINCRBY h# f 1", "HSET h# g 3",
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

// TestDeadlinesHarmless checks that servers without deadlines of members follow a primary
// that has some, from the file and in the stream, and log no error.
func TestDeadlinesHarmless(t *testing.T) {
	starts := map[string]func(t *testing.T, args ...string) func() net.Conn{"redis7": startRedis}
	for _, n := range newerServers() {
		starts[n.name] = func(t *testing.T, args ...string) func() net.Conn {
			path := n.path(t)
			if path == "" {
				t.Skipf("%s is not installed", n.name)
			}
			return startJudge(t, path, args...)
		}
	}
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			p := primaryOf(t, nil)
			p.run(memberDeadlines("1")...)
			host, port, _ := net.SplitHostPort(p.srv.Addr())
			dial := start(t, "--replicaof", host, port, "--enable-debug-command", "yes", "--propagation-error-behavior", "panic")
			p.replica = newPeer(dial(), dial())
			p.linked()
			p.caughtUp()
			p.run(memberDeadlines("2")...)
			p.caughtUp()
			for _, key := range strings.Fields("z1 h1 copied1 renamed1 large1 z2 h2 copied2 renamed2 large2 emptied1 emptied2") {
				read := []string{"ZRANGE", key, "0", "-1", "WITHSCORES"}
				if key[0] == 'h' {
					read = []string{"HGETALL", key}
				}
				if ours, theirs := p.primary.do(read...), p.replica.do(read...); ours != theirs {
					t.Errorf("%s: %q here, %q there", key, ours, theirs)
				}
			}
			if got := p.replica.info("unexpected_error_replies"); got != "0" {
				t.Errorf("unexpected_error_replies is %s", got)
			}
			if got := p.replica.do("INFO", "errorstats"); strings.Contains(got, "errorstat_") {
				t.Errorf("errors of the replica: %s", got)
			}
		})
	}
}

// TestDeadlinesTransferred checks that a follower that understands the form of the
// TestDeadlinesTransferred checks that zsetd has the deadlines of a primary, from the file
// and from the stream, also from a stream that passes through redis-server.
func TestDeadlinesTransferred(t *testing.T) {
	primary, replica, middle, last := zsetdNode(t, nil), zsetdNode(t, nil), redisNode(t), zsetdNode(t, nil)
	same := func(n *node, suffix string) {
		t.Helper()
		for key := range strings.FieldsSeq("z h copied renamed large emptied") {
			if ours, theirs := primary.do("DUMP", key+suffix), n.do("DUMP", key+suffix); ours != theirs {
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
		if r := n.do("ZPEXPIRETIME", "large2", "MEMBERS", "1", "member:7"); !strings.Contains(r, "33000000000007") {
			t.Errorf("ZPEXPIRETIME: %q", r)
		}
		if failed := n.info("unexpected_error_replies"); failed != "0" {
			t.Errorf("%s commands failed", failed)
		}
	}
}
