package server_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/keyspace"
	"github.com/zsetd/zsetd/server/internal/psync"
	"github.com/zsetd/zsetd/server/internal/replication"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/server/servertest"
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
// deadlines gets all of them, from the file and from the stream.
func TestDeadlinesTransferred(t *testing.T) {
	p := primaryOf(t, map[string]string{"repl-ping-replica-period": "3600"})
	p.run(memberDeadlines("1")...)
	nc, err := net.Dial("tcp", p.srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	link, err := psync.Handshake(nc, psync.Options{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	data, _, err := link.Payload()
	if err != nil {
		t.Fatal(err)
	}
	copied := servertest.Run(t, server.Options{})
	limits := keyspace.DefaultLimits()
	codec := rdb.NewCodec(&limits)
	if _, err := codec.ReadFile(bufio.NewReaderSize(data, rdb.ReadSize), func(e rdb.Entry) error {
		copied.Must("RESTORE", e.Key, e.Deadline, codec.AppendPayload(nil, e.Value), "ABSTTL")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, data); err != nil {
		t.Fatal(err)
	}
	if err := link.Acknowledge(link.Offset); err != nil {
		t.Fatal(err)
	}
	p.run(memberDeadlines("2")...)
	p.run("PUBLISH last 1")
	apply := func(argv [][]byte) {
		args := make([]any, len(argv))
		for i, a := range argv {
			args[i] = bytes.Clone(a)
		}
		copied.Must(args...)
	}
	for last := false; !last; {
		batch, err := link.Next()
		if err != nil {
			t.Fatal(err)
		}
		for _, argv := range batch.Commands {
			switch name := string(argv[0]); {
			case name == "PUBLISH":
				last = true
			case name == "PING" && len(argv) == 2:
				commands, ok := replication.Embedded(argv[1])
				if !ok {
					t.Fatalf("PING %q", argv[1])
				}
				for _, argv := range parseCommands(t, commands) {
					apply(argv)
				}
			case name == "MULTI", name == "EXEC", name == "REPLCONF", name == "SELECT": // of database 0
			default:
				apply(argv)
			}
		}
	}
	for _, key := range strings.Fields("z1 h1 copied1 renamed1 large1 z2 h2 copied2 renamed2 large2 emptied1 emptied2") {
		ours, err := p.srv.Do(t.Context(), "DUMP", key)
		if err != nil {
			t.Fatal(err)
		}
		if theirs := copied.Must("DUMP", key); fmt.Sprintf("%q", ours) != fmt.Sprintf("%q", theirs) {
			t.Errorf("%s differs: %q here, %q there", key, ours, theirs)
		}
	}
	if n := copied.Must("ZPEXPIRETIME", "large2", "MEMBERS", 1, "member:7"); fmt.Sprint(n) != "[33000000000007]" {
		t.Errorf("ZPEXPIRETIME: %v", n)
	}
}

// parseCommands reads commands, which are arrays of bulk strings.
func parseCommands(t *testing.T, b []byte) (commands [][][]byte) {
	t.Helper()
	r := bytes.NewReader(b)
	for r.Len() > 0 {
		var n, size int
		if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		argv := make([][]byte, n)
		for i := range argv {
			if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
				t.Fatalf("%q: %v", b, err)
			}
			argv[i] = make([]byte, size)
			r.Read(argv[i])
			r.Seek(2, 1)
		}
		commands = append(commands, argv)
	}
	return commands
}
