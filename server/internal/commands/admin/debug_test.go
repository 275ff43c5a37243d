package admin_test

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestDebugAllowed checks that the permission to DEBUG depends on the address of the
// client, before any other check.
func TestDebugAllowed(t *testing.T) {
	for _, test := range []struct {
		enabled, addr string
		allowed       bool
	}{
		{"no", "127.0.0.1:5000", false},
		{"no", "", false},
		{"yes", "203.0.113.1:5000", true},
		{"local", "127.0.0.1:5000", true},
		{"local", "[::1]:5000", true},
		{"local", "", true}, // Do
		{"local", "/run/zsetd.sock:0", true},
		{"local", "203.0.113.1:5000", false},
		{"local", "[2001:db8::1]:5000", false},
	} {
		srv, err := enginetest.New(engine.Options{Config: map[string]string{"enable-debug-command": test.enabled}})
		if err != nil {
			t.Fatal(err)
		}
		s := srv.NewSession(engine.Peer{FD: -1, Addr: test.addr, Unix: strings.HasPrefix(test.addr, "/"), Wake: func() {}})
		_, out, _ := s.Turn([][][]byte{{[]byte("DEBUG"), []byte("SLEEP"), []byte("0")}}, nil)
		if allowed := string(out) == "+OK\r\n"; allowed != test.allowed {
			t.Errorf("enable-debug-command %s, client at %q: %q", test.enabled, test.addr, out)
		}
		if !test.allowed && !strings.HasPrefix(string(out), "-ERR DEBUG command not allowed. If the enable-debug-command") {
			t.Errorf("%q", out)
		}
		s.Close()
		srv.Close()
	}
}

// TestDebugSerializedLength checks the serializedlength of DEBUG OBJECT. That of strings is as
// in Redis without rdbcompression; small collections are one string there.
func TestDebugSerializedLength(t *testing.T) {
	srv, err := enginetest.New(engine.Options{Config: map[string]string{"enable-debug-command": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	ten := func(format string) (words string) {
		for i := range 10 {
			words += fmt.Sprintf(" "+format, i, i)
		}
		return words
	}
	for _, test := range []struct {
		make string // a key k
		want int
	}{
		{"SET k 0", 2}, {"SET k 127", 2}, {"SET k 128", 3}, {"SET k -128", 2}, {"SET k -129", 3},
		{"SET k 32767", 3}, {"SET k 32768", 5}, {"SET k -32768", 3}, {"SET k -32769", 5},
		{"SET k 2147483647", 5}, {"SET k 2147483648", 11}, {"SET k -2147483648", 5}, {"SET k -2147483649", 12},
		{"SET k 01", 3}, {"SET k x", 2},
		{"SET k " + strings.Repeat("x", 63), 64}, {"SET k " + strings.Repeat("x", 64), 66},
		{"SET k " + strings.Repeat("x", 16383), 16385}, {"SET k " + strings.Repeat("x", 16384), 16389},
		{"RPUSH k a bb 300", 1 + 2 + 3 + 3}, {"SADD k a bb", 1 + 2 + 3}, {"HSET k f 1 g vv", 1 + 2 + 2 + 2 + 3},
		{"ZADD k 1 a 2.5 bb", 1 + 2 + 2 + 3 + 4}, {"XADD k 1-2 f v", 1 + 4 + 2 + 2},
		{"SADD k" + ten("a%d b%d") + ten("c%d d%d") + ten("e%d f%d"), 1 + 60*3},
		{"SADD k" + ten("a%d b%d") + ten("c%d d%d") + ten("e%d f%d") + ten("g%d h%d"), 2 + 80*3},
	} {
		enginetest.Must(t, srv, "DEL k", test.make)
		if got, want := enginetest.Say(srv, "DEBUG OBJECT k"), fmt.Sprintf(" serializedlength:%d ", test.want); !strings.Contains(got, want) {
			t.Errorf("%.40s: %s, want%s", test.make, got, want)
		}
	}
}

// TestDebugElements checks that DEBUG LISTPACK and QUICKLIST log the elements of values.
func TestDebugElements(t *testing.T) {
	var log enginetest.LogBuffer
	srv, err := enginetest.New(engine.Options{Config: map[string]string{"enable-debug-command": "yes", "list-max-listpack-size": "2"},
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	enginetest.Must(t, srv, "RPUSH l a bb", "SADD s a b", "HSET h f v g w", "HSET x f v", "HEXPIRE x 100 FIELDS 1 f", "ZADD z 1 a 2.5 b", "RPUSH q a b c")
	for _, test := range []struct{ command, elements string }{
		{"LISTPACK l", "a bb"}, {"LISTPACK s", "a b"}, {"LISTPACK h", "f v g w"}, {"LISTPACK x", "f v"},
		{"LISTPACK z", "a 1 b 2.5"}, {"QUICKLIST q", "a b c"}, {"QUICKLIST q 1", "a b c"},
	} {
		sub, key, _ := strings.Cut(test.command, " ")
		before := len(log.String())
		if got, want := enginetest.Say(srv, "DEBUG "+test.command), " structure printed on stdout"; !strings.EqualFold(got, sub+want) {
			t.Errorf("%s: %s", test.command, got)
		}
		var elements []string
		for _, m := range regexp.MustCompile(`\\"([^"\\]*)\\"`).FindAllStringSubmatch(log.String()[before:], -1) {
			elements = append(elements, m[1])
		}
		if got := strings.Join(elements, " "); got != test.elements || !strings.Contains(log.String()[before:], " key="+key[:1]+" ") {
			t.Errorf("%s logs %s", test.command, log.String()[before:])
		}
	}
}

// TestDebugRest checks subcommands whose effect other commands show.
func TestDebugRest(t *testing.T) {
	srv := enginetest.Keep(t, t.TempDir()+"/zsetd.db", nil)
	enginetest.Must(t, srv, "SET k v", "DEBUG LOADAOF -> OK", "GET k -> v")
	enginetest.Must(t, srv, "DEBUG RELOAD NOFLUSH -> ERR Error trying to load the RDB dump, check server logs.", "SET k w",
		"GET k -> w",
		"DEBUG RELOAD NOSAVE NOFLUSH MERGE -> OK", "GET k -> v", "SET k w", "DEBUG RELOAD NOSAVE -> OK", "GET k -> v")
	enginetest.Must(t, srv, "HSET h f v", "DEBUG HTSTATS-KEY h -> ERR The value stored at the specified key is not represented using an hash table",
		"CONFIG SET hash-max-listpack-entries 1 zset-max-listpack-entries 1", "HSET h g v", "ZADD z 1 a 2 b 3 c")
	for key, n := range map[string]int{"h": 2, "z": 3} {
		want := fmt.Sprintf("Hash table 0 stats (main hash table):\n number of elements: %d\n", n)
		if got := enginetest.Say(srv, "DEBUG HTSTATS-KEY "+key); got != want {
			t.Errorf("HTSTATS-KEY %s: %q", key, got)
		}
	}
	enginetest.Must(t, srv, "DEBUG INTERNAL_SECRET -> ERR Internal secret is missing", "DEBUG PAUSE-CRON x -> ERR value is not an integer or out of range",
		"DEBUG SET-SKIP-CHECKSUM-VALIDATION 2 -> OK", "DEBUG SET-SKIP-CHECKSUM-VALIDATION 0 -> OK")
	for _, test := range []struct {
		line  string
		state *bool
		want  bool
	}{
		{"DEBUG PAUSE-CRON 1", &srv.Timers.CronPaused, true},
		{"DEBUG PAUSE-CRON 0", &srv.Timers.CronPaused, false},
		{"DEBUG PAUSE-CRON 2", &srv.Timers.CronPaused, true},
		{"DEBUG SET-ACTIVE-EXPIRE 0", &srv.Timers.ActiveExpire, false},
		{"DEBUG SET-ACTIVE-EXPIRE 2", &srv.Timers.ActiveExpire, true},
		{"DEBUG ALLOCSIZE-SLOTS-ASSERT 2", &srv.Timers.Checked, true},
		{"DEBUG KEYSIZES-HIST-ASSERT 0", &srv.Timers.Checked, false},
	} {
		enginetest.Must(t, srv, test.line+" -> OK")
		srv.InTurn(func() {
			if *test.state != test.want {
				t.Errorf("%s: %v", test.line, *test.state)
			}
		})
	}
	enginetest.Must(t, srv, "SET k v PX 1000000")
	srv.Advance(1001e9)
	enginetest.Must(t, srv, "DEBUG SET-ALLOW-ACCESS-EXPIRED 1 -> OK", "DEBUG SET-ALLOW-ACCESS-EXPIRED 0 -> OK", "EXISTS k -> 0")
	node, err := enginetest.New(engine.Options{Config: map[string]string{"enable-debug-command": "yes", "cluster-enabled": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	enginetest.Must(t, node, "DEBUG INTERNAL_SECRET -> "+enginetest.Info(t, node, "run_id"))
}
