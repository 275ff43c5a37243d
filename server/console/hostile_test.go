package console_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zsetd/zsetd/server/console"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// hostile returns names that break programs which do not escape or which cut.
func hostile() []string {
	return []string{
		"<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "'\"`&amp;${x}{{.}}", "a\x00b", "\x00", "\xff\xfe", "\xc3", "\r\ndata: x\r\n\r\n",
		"\u2028\u2029\ufeff\u202e", "\uFFFD", "__proto__", "", " ", strings.Repeat("m", 1<<20), strings.Repeat("\xff", 1<<20),
	}
}

// argument returns a string as an element of the body of POST /command.
func argument(s string) any {
	if utf8.ValidString(s) {
		return s
	}
	return map[string][]byte{"base64": []byte(s)}
}

// text returns the string that an element of a result stands for.
func text(t *testing.T, v any) string {
	t.Helper()
	if object, is := v.(map[string]any); is {
		b, err := json.Marshal(object["base64"])
		var s []byte
		if err != nil || json.Unmarshal(b, &s) != nil {
			t.Errorf("%.100v", v)
		}
		return string(s)
	}
	s, _ := v.(string)
	return s
}

// TestHostileNames writes and reads names that no program expects. They come back byte for
// byte, and no response has a < outside an escape.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, nil)
	for _, name := range hostile() {
		body, err := json.Marshal([][]any{{"DEL", argument(name)}, {"ZADD", argument(name), 1, argument(name)}, {"ZRANGE", argument(name), 0, -1}, {"HSET", "h", argument(name), argument(name)}, {"HGETALL", "h"}, {"DEL", "h"}})
		if err != nil {
			t.Fatal(err)
		}
		status, got := serve(c, request(t, "POST", "/command", string(body)))
		var results []struct{ Result any }
		if err := json.Unmarshal([]byte(got), &results); err != nil || status != 200 || len(results) != 6 {
			t.Fatalf("%.20q: %d %v %.200s", name, status, err, got)
		}
		list, _ := results[2].Result.([]any)
		if len(list) != 1 || text(t, list[0]) != name {
			t.Errorf("%.20q: member %.100v", name, list)
		}
		pairs, _ := results[4].Result.([]any)
		if pair, _ := pairs[0].([]any); len(pair) != 2 || text(t, pair[0]) != name || text(t, pair[1]) != name {
			t.Errorf("%.20q: field %.100v", name, pairs)
		}
		if strings.ContainsAny(got, "<>\u2028") {
			t.Errorf("%.20q is not escaped", name)
		}
		if srv.Must("ZSCORE", name, name) != 1.0 {
			t.Errorf("%.20q is not stored", name)
		}
	}
	for _, path := range []string{"/log", "/varz", "/metrics"} {
		if status, got := serve(c, request(t, "GET", path, "")); status != 200 || path != "/metrics" && !json.Valid([]byte(got)) {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// TestReplicaMetrics checks the metrics and the readiness of a replica and its primary.
func TestReplicaMetrics(t *testing.T) {
	t.Parallel()
	primary, ofPrimary := run(t, console.Options{}, nil)
	replica, ofReplica := run(t, console.Options{}, nil)
	host, port, _ := strings.Cut(primary.Addr(), ":")
	replica.Must("REPLICAOF", host, port)
	wait.Until(t, "the replica is ready", func() bool {
		status, _ := serve(ofReplica, request(t, "GET", "/readyz", ""))
		return status == 200
	})
	has := func(c *console.Console, want string) {
		t.Helper()
		wait.Until(t, want, func() bool {
			_, got := serve(c, request(t, "GET", "/metrics", ""))
			return strings.Contains(got, want)
		})
	}
	has(ofReplica, `redis_master_link_up{master_host="`+host+`",master_port="`+port+`"} 1`)
	has(ofReplica, `role="slave"`)
	has(ofPrimary, "redis_connected_slaves 1")
	has(ofPrimary, `redis_connected_slave_lag_seconds{slave_ip="`+host+`"`)
}
