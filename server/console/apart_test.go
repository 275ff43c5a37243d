package console_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
	"github.com/zsetd/zsetd/server/servertest"
)

// counted returns what the statistics of a server have, without what is counted apart.
func counted(t *testing.T, srv *servertest.Server) string {
	t.Helper()
	var b strings.Builder
	for _, section := range []string{"stats", "commandstats", "errorstats"} {
		text, err := srv.Do(server.Apart(t.Context()), "INFO", section)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.(string)) {
			name, _, _ := strings.Cut(line, ":")
			switch {
			case section == "stats" && !strings.HasPrefix(name, "keyspace_") && name != "total_commands_processed" && name != "total_error_replies":
			default:
				b.WriteString(line)
			}
		}
	}
	for _, command := range [][]any{{"SLOWLOG", "LEN"}, {"LATENCY", "HISTOGRAM"}, {"OBJECT", "FREQ", "s"}, {"HOTKEYS", "GET"}} {
		reply, err := srv.Do(server.Apart(t.Context()), command...)
		fmt.Fprintln(&b, command, reply, err)
	}
	return b.String()
}

// TestApart reads with everything that the console serves but live queries, which the slow log
// has, and finds the statistics as they were.
func TestApart(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, map[string]string{"slowlog-log-slower-than": "0", "maxmemory-policy": "allkeys-lfu", "lfu-log-factor": "0", "notify-keyspace-events": "SKA"})
	srv.Must("SET", "s", "x")
	srv.Must("XADD", "x", "1-1", "f", "v")
	srv.Must("ZADD", "z", 1, "m")
	srv.Must("CONFIG", "RESETSTAT")
	srv.Must("SLOWLOG", "RESET")
	before := counted(t, srv)
	for _, body := range []string{`["GET","s"]`, `["GET","none"]`, `["LLEN","s"]`, `["NOSUCH"]`, `["GET"]`, `["PING"]`, `["INFO"]`,
		`[["GET","s"],["HGET","s","f"],["STRLEN","s"],["ZSCORE","z","m"]]`, `[["MULTI"],["GET","s"],["LLEN","s"],["EXEC"]]`,
		`{"watch":["s"],"if":[[["LLEN","s"],1]],"then":[["SET","s","y"]]}`} {
		serve(c, request(t, "POST", "/command?view=1", body))
	}
	for _, path := range []string{"/", "/varz", "/metrics", "/log", "/healthz", "/readyz"} {
		if status, body := serve(c, request(t, "GET", path, "")); status != 200 {
			t.Errorf("%s: %d %.200s", path, status, body)
		}
	}
	web := httptest.NewServer(c)
	defer web.Close()
	for _, path := range []string{"/events?channel=a&key=s&changes=s", "/events?stream=x&last=0-0", "/events?stream=s", "/stats"} {
		w := watch(t, web, path)
		io.CopyN(io.Discard, w.res.Body, 1)
		w.cancel()
	}
	if after := counted(t, srv); after != before {
		t.Errorf("the console has counted:\n%s\nbefore:\n%s", after, before)
	}
	if info := srv.Must("INFO", "stats").(string); strings.Contains(info, "apart_commands_processed:0\r") || strings.Contains(info, "apart_error_replies:0\r") {
		t.Errorf("nothing is counted apart: %s", info)
	}

	// Writes and scripts count, also in a view, and all that is no view.
	serve(c, request(t, "POST", "/command?view=1", `[["SET","s","y"],["EVAL","return redis.call('GET','s')",0],["LPUSH","s","y"]]`))
	serve(c, request(t, "POST", "/command", `[["GET","s"],["LLEN","s"]]`))
	info := srv.Must("INFO", "everything").(string)
	for _, line := range []string{"cmdstat_set:calls=1,", "cmdstat_eval:calls=1,", "cmdstat_get:calls=2,", "cmdstat_llen:calls=1,", "errorstat_WRONGTYPE:count=2\r", "keyspace_hits:3\r"} {
		if !strings.Contains(info, line) {
			t.Errorf("INFO has no %q", line)
		}
	}
}
