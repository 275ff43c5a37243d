package migrate

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/peers/remote"
)

// TestParseEndpoint checks the forms of endpoints, and what is refused.
func TestParseEndpoint(t *testing.T) {
	for text, want := range map[string]Endpoint{
		"redis://h":                    {at: remote.Address{Network: "tcp", Addrs: []string{"h:6379"}, DB: anyDatabase}},
		"redis://h:1/3":                {at: remote.Address{Network: "tcp", Addrs: []string{"h:1"}, DB: 3}},
		"redis://[::1]:7":              {at: remote.Address{Network: "tcp", Addrs: []string{"[::1]:7"}, DB: anyDatabase}},
		"redis://:p%40ss@h:1":          {at: remote.Address{Network: "tcp", Addrs: []string{"h:1"}, Password: "p@ss", DB: anyDatabase}},
		"rediss://u:p@h:1":             {at: remote.Address{Network: "tcp", Addrs: []string{"h:1"}, User: "u", Password: "p", Secure: true, DB: anyDatabase}},
		"redis://a:1,b,c:3?cluster":    {at: remote.Address{Network: "tcp", Addrs: []string{"a:1", "b:6379", "c:3"}, Cluster: true, DB: anyDatabase}},
		"unix:/run/z.sock":             {at: remote.Address{Network: "unix", Addrs: []string{"/run/z.sock"}, DB: anyDatabase}},
		"unix:///run/z.sock":           {at: remote.Address{Network: "unix", Addrs: []string{"/run/z.sock"}, DB: anyDatabase}},
		"zsetd.db":                     {path: "zsetd.db", at: remote.Address{DB: anyDatabase}},
		"/data/dump.rdb":               {path: "/data/dump.rdb", at: remote.Address{DB: anyDatabase}},
		"redis://h/0?cluster":          {at: remote.Address{Network: "tcp", Addrs: []string{"h:6379"}, Cluster: true}},
		"redis://user:a:b@h:1?cluster": {at: remote.Address{Network: "tcp", Addrs: []string{"h:1"}, User: "user", Password: "a:b", Cluster: true, DB: anyDatabase}},
	} {
		got, err := ParseEndpoint(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got.path != want.path || !reflect.DeepEqual(got.at, want.at) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	for text, part := range map[string]string{
		"": "empty", "unix:": "socket", "http://h": "scheme", "redis://h?x": "option", "redis://a,b": "?cluster", "redis://h/x": "database",
		"redis://h/1?cluster": "database", "redis://": "host", "redis://u@h": "password", "redis://:%zz@h": "%zz",
	} {
		if _, err := ParseEndpoint(text); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: the error is %v, want one with %q", text, err, part)
		}
	}
	e, err := ParseEndpoint("redis://u:secret@h:1")
	if err != nil || e.String() != "redis://h:1" {
		t.Errorf("the text of an endpoint is %s (%v): it must not have the password", e, err)
	}
}

// TestCheck checks the pairs of endpoints between which nothing can move.
func TestCheck(t *testing.T) {
	for pair, ok := range map[[2]string]bool{
		{"a", "b"}: false, {"redis://a", "redis://a"}: false, {"redis://a", "redis://a:6379"}: false, {"redis://a", "redis://b/1"}: false,
		{"redis://a/1", "redis://b/2"}: true, {"redis://a/1", "redis://b?cluster"}: true, {"a.rdb", "redis://b"}: true, {"redis://a", "b"}: true,
	} {
		from, err1 := ParseEndpoint(pair[0])
		to, err2 := ParseEndpoint(pair[1])
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if err := (&Options{From: from, To: to}).check(); (err == nil) != ok {
			t.Errorf("%s: %v", pair, err)
		}
	}
}

// TestCheckForward checks between which endpoints a source can forward.
func TestCheckForward(t *testing.T) {
	for pair, ok := range map[[2]string]bool{
		{"redis://a", "redis://b"}: true, {"redis://a", "redis://b?cluster"}: true, {"redis://a", "redis://b/0?cluster"}: true, {"redis://a", "unix:/s"}: true,
		{"redis://a/1", "redis://b/1"}: false, {"a.rdb", "redis://b"}: false, {"redis://a", "b.rdb"}: false,
	} {
		from, err1 := ParseEndpoint(pair[0])
		to, err2 := ParseEndpoint(pair[1])
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if err := (&Options{From: from, To: to, Forward: true}).check(); (err == nil) != ok {
			t.Errorf("%s: %v", pair, err)
		}
		if err := (&Options{From: from, To: to, Forward: true, Unpause: true}).check(); err == nil {
			t.Errorf("%s: both Forward and Unpause are accepted", pair)
		}
	}
}

// TestSlotTags checks that each slot has the tag that leads to it.
func TestSlotTags(t *testing.T) {
	for slot, tag := range slotTags() {
		if got := keyslot.Of(StatePrefix + "{" + tag + "}"); got != slot {
			t.Fatalf("the tag %q of slot %d leads to %d", tag, slot, got)
		}
	}
}

// TestWatcher checks what lines of MONITOR are reported.
func TestWatcher(t *testing.T) {
	w := watcher{facts: server.Commands(), clients: map[string]*watched{}, found: map[string]*seen{}}
	for _, line := range []string{
		"OK",
		`1.1 [0 1.2.3.4:5] "get" "a"`,
		`1.1 [0 1.2.3.4:5] "sinter" "{t}a" "{t}b"`,
		`1.1 [0 lua] "rename" "x" "y"`,
		`1.1 [0 1.2.3.4:5] "multi"`,
		`1.1 [0 1.2.3.4:6] "get" "b"`,
		`1.1 [0 1.2.3.4:5] "set" "a" "1"`,
		`1.1 [0 1.2.3.4:5] "exec"`,
		`1.1 [0 1.2.3.4:5] "set" "b" "1"`,
	} {
		w.line([]byte(line + "\r\n"))
	}
	if len(w.found) != 0 {
		t.Errorf("lines of one slot are reported: %v", w.found)
	}
	for _, line := range []string{
		`1.1 [0 unix:/a b.sock] "multi"`,
		`1.1 [0 unix:/a b.sock] "set" "a" "1"`,
		`1.1 [0 unix:/a b.sock] "incr" "b"`,
		`1.1 [0 unix:/a b.sock] "exec"`,
		`1.1 [0 [::1]:5] "rename" "x\n" "y"`,
		`1.1 [0 1.2.3.4:5] "fcall" "f" "2" "a" "b"`,
	} {
		w.line([]byte(line + "\r\n"))
	}
	for _, name := range []string{"MULTI", "RENAME", "FCALL"} {
		if w.found[name] == nil || w.found[name].times != 1 {
			t.Errorf("%s is not reported once: %v", name, w.found)
		}
	}
}

// TestNoCluster checks that nodes that are no cluster with all slots are refused at once, with
// words, at both ends of a move and in a dry run.
func TestNoCluster(t *testing.T) {
	empty := startRedis(t, "--cluster-enabled", "yes")
	some := startRedis(t, "--cluster-enabled", "yes")
	must(t, clientOf(t, some), "CLUSTER", "ADDSLOTSRANGE", 0, 99)
	plain := startRedis(t)
	for _, test := range []struct{ addr, want string }{
		{empty, "the nodes of the cluster have 0 of its 16384 slots"},
		{some, "the nodes of the cluster have 100 of its 16384 slots"},
		{plain, "the server is no node of a cluster: omit ?cluster"},
	} {
		o := Options{From: endpoint(t, "redis://"+plain), To: endpoint(t, "redis://"+test.addr+"?cluster")}
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if err := Run(ctx, o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v to %v: %v", o.From, o.To, err)
			}
			if _, err := Survey(ctx, o, 0); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("dry run of %v to %v: %v", o.From, o.To, err)
			}
			cancel()
			o.From, o.To = o.To, o.From
			o.To = endpoint(t, "redis://"+startRedis(t))
		}
	}
}
