package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/rerun"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestMetricNames compares the metrics with those of redis_exporter.
func TestMetricNames(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, map[string]string{"slowlog-log-slower-than": "0", "enable-debug-command": "yes", "repl-diskless-sync-delay": "0"})
	srv.Must("SET", "k", "v", "EX", 1000)
	srv.Must("GET", "none")
	srv.Do(t.Context(), "INCR", "k")
	srv.Must("CONFIG", "SET", "latency-monitor-threshold", "1", "appendonly", "yes")
	srv.Must("DEBUG", "SLEEP", "0.01")
	srv.Must("SET", "n", "12.5")
	srv.Must("XADD", "x", "5000-1", "f", "v")
	srv.Must("XGROUP", "CREATE", "x", "g", "0")
	srv.Must("XREADGROUP", "GROUP", "g", "ann", "STREAMS", "x", ">")
	other, c2 := run(t, console.Options{}, map[string]string{"repl-diskless-sync-delay": "0"})
	_, port, _ := net.SplitHostPort(srv.Addr())
	other.Must("REPLICAOF", "127.0.0.1", port)
	wait.Until(t, "the server has a replica", func() bool {
		text, _ := srv.Must("INFO", "replication").(string)
		return strings.Contains(text, "\nslave0:")
	})
	_, replica := serve(c2, request(t, "GET", "/metrics", ""))
	status, text := serve(c, request(t, "GET", "/metrics?check-keys=n,none,x&check-streams=*", ""))
	if status != 200 {
		t.Fatalf("status %d: %s", status, text)
	}
	types := map[string]string{}
	for line := range strings.Lines(replica + text) {
		if rest, is := strings.CutPrefix(line, "# TYPE "); is {
			name, kind, _ := strings.Cut(strings.TrimSpace(rest), " ")
			types[name] = kind
		}
	}
	b, err := os.ReadFile("testdata/redis_exporter.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		name, reason, absent := strings.Cut(strings.TrimSpace(line), ": ")
		if strings.HasPrefix(name, "#") {
			continue
		}
		if n++; (types[name] == "") != absent {
			t.Errorf("%s: type %q, absent because %q", name, types[name], reason)
		}
		if strings.HasSuffix(name, "_total") && !absent && types[name] != "counter" &&
			name != "redis_migrate_cached_sockets_total" && name != "redis_memory_used_vm_total" { // gauges of the exporter
			t.Errorf("%s is a %s", name, types[name])
		}
	}
	if n < 200 {
		t.Errorf("only %d names", n)
	}
	for _, want := range []string{
		`redis_db_keys{db="db0"} 3`, `redis_db_keys_expiring{db="db0"} 1`, `redis_commands_total{cmd="set"} 2`,
		`redis_commands_failed_calls_total{cmd="incr"} 1`, `redis_errors_total{err="ERR"} 1`, `redis_commands_latencies_usec_count{cmd="get"} 1`,
		`redis_keyspace_misses_total 1`, `redis_rdb_last_bgsave_status 1`, `zsetd_backup_failed 0`, `zsetd_backups_kept 0`, `redis_slowlog_length`, "\ngo_goroutines ", `zsetd_expire_lag_seconds{quantile="0.99"}`,
		`redis_config_client_output_buffer_limit_bytes{class="pubsub",limit="hard"} 3.3554432e+07`, `redis_latency_spike_last{event_name="command"}`,
		`zsetd_expire_lag_duration_seconds_bucket{le="+Inf"} 0`, `zsetd_checkpoint_duration_seconds_bucket{le="0.001"} 0`, `go_gc_pauses_seconds_bucket{le="+Inf"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestMetricsSelected checks the rows of keys that a request names, and their bounds.
func TestMetricsSelected(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, map[string]string{"user": "ann on >secret ~* +@all -scan"})
	srv.Must("SET", "n", "12.5")
	srv.Must("SET", "text", "abc")
	srv.Must("ZADD", "board", 1, "a", 2, "b")
	srv.Must("XADD", "x", "5000-1", "f", "v")
	srv.Must("XADD", "x", "6000-0", "f", "v")
	srv.Must("XGROUP", "CREATE", "x", "g", "0")
	srv.Must("XREADGROUP", "GROUP", "g", "ann", "COUNT", 1, "STREAMS", "x", ">")
	for i := range 150 {
		srv.Must("SET", "many:"+strconv.Itoa(i), i)
	}
	srv.Must("MOVE", "board", 3)
	_, text := serve(c, request(t, "GET", "/metrics?check-keys=n,text,none,x,db3=b*&check-single-streams=x,n", ""))
	for _, want := range []string{
		`redis_key_size{db="db0",key="n"} 4`, `redis_key_value{db="db0",key="n"} 12.5`, `redis_key_size{db="db0",key="text"} 3`,
		`redis_key_size{db="db3",key="board"} 2`, `redis_key_memory_usage_bytes{db="db3",key="board"} `, `redis_key_size{db="db0",key="x"} 2`,
		`redis_stream_length{db="db0",stream="x"} 2`, `redis_stream_first_entry_id{db="db0",stream="x"} 5000`, `redis_stream_last_generated_id{db="db0",stream="x"} 6000`,
		`redis_stream_group_lag{db="db0",stream="x",group="g"} 1`, `redis_stream_group_messages_pending{db="db0",stream="x",group="g"} 1`,
		`redis_stream_group_consumer_messages_pending{db="db0",stream="x",group="g",consumer="ann"} 1`,
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("no %s", want)
		}
	}
	for _, not := range []string{`key="none"`, `redis_key_value{db="db0",key="text"}`, `stream="n"`} {
		if strings.Contains(text, not) {
			t.Errorf("there is %s", not)
		}
	}
	_, text = serve(c, request(t, "GET", "/metrics?check-keys=many:*&check-single-keys=n", ""))
	if n := strings.Count(text, "\nredis_key_size{"); n != 100 || !strings.Contains(text, `redis_key_size{db="db0",key="n"}`) {
		t.Errorf("%d rows of keys", n)
	}
	r := request(t, "GET", "/metrics?check-keys=many:*", "")
	r.Header.Set("Authorization", "Bearer ann:secret")
	if status, got := serve(c, r); status != http.StatusForbidden || !strings.Contains(got, "NOPERM") {
		t.Errorf("without SCAN: %d %.200s", status, got)
	}
}

// TestCheckpointTimes checks that each save counts once.
func TestCheckpointTimes(t *testing.T) {
	t.Parallel()
	srv := servertest.Run(t, server.Options{File: filepath.Join(t.TempDir(), "db"), Config: map[string]string{"save": ""}})
	c, err := console.New(srv.Server, console.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	count := func() (n float64) {
		_, text := serve(c, request(t, "GET", "/metrics", ""))
		for line := range strings.Lines(text) {
			if value, is := strings.CutPrefix(strings.TrimSpace(line), "zsetd_checkpoint_duration_seconds_count "); is {
				n, _ = strconv.ParseFloat(value, 64)
			}
		}
		return n
	}
	before := count()
	srv.Must("SET", "k", "v")
	srv.Must("SAVE")
	first := count()
	srv.Must("SET", "k", "w")
	srv.Must("SAVE")
	if second := count(); first <= before || second <= first {
		t.Errorf("%v, %v and %v checkpoints", before, first, second)
	}
}

func TestMetricsDenied(t *testing.T) {
	t.Parallel()
	_, c := run(t, console.Options{}, map[string]string{"user": "ann on >secret ~* +@all -info"})
	for _, path := range []string{"/metrics", "/varz", "/stats"} {
		r := request(t, "GET", path, "")
		r.Header.Set("Authorization", "Bearer ann:secret")
		if status, got := serve(c, r); status != http.StatusForbidden || !strings.Contains(got, "NOPERM") {
			t.Errorf("%s: %d %.200s", path, status, got)
		}
	}
	r := request(t, "GET", "/log", "")
	r.Header.Set("Authorization", "Bearer ann:secret")
	if status, _ := serve(c, r); status != http.StatusOK {
		t.Errorf("/log: %d", status)
	}
}

// TestDependencies checks that programs that embed the server get neither the console nor its
// library.
func TestDependencies(t *testing.T) {
	rerun.Skip(t)
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "github.com/zsetd/zsetd/server").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out, []byte("zsetd/server\n")) {
		t.Fatalf("%s", out)
	}
	for _, not := range []string{"prometheus", "zsetd/server/console", "net/http\n", "html/template"} {
		if bytes.Contains(out, []byte(not)) {
			t.Errorf("package server imports %s", not)
		}
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, map[string]string{"requirepass": "pw", "maxmemory": "1gb"})
	ask := func(path string, status int, want string) {
		t.Helper()
		if got, text := serve(c, request(t, "GET", path, "")); got != status || text != want {
			t.Errorf("%s: %d %s, want %d %s", path, got, text, status, want)
		}
	}
	ask("/healthz", 200, "ok")
	ask("/readyz", 200, "ok")
	srv.Must("CONFIG", "SET", "maxmemory", "1000")
	srv.Must("CONFIG", "SET", "min-replicas-to-write", "1")
	ask("/readyz", 503, "writes are rejected: 0 of 1 replicas are connected")
	srv.Must("CONFIG", "SET", "min-replicas-to-write", "0")
	ask("/readyz", 503, "writes are rejected: used memory exceeds maxmemory")
	srv.Must("CONFIG", "SET", "maxmemory", "0")
	ask("/readyz", 200, "ok")
	srv.Must("REPLICAOF", "127.0.0.1", "1")
	ask("/readyz", 503, "the replica has no link to its primary")
	ask("/healthz", 200, "ok")
	srv.Close()
	ask("/healthz", 503, "zsetd: server closed")
	ask("/readyz", 503, "zsetd: server closed")
}

// TestReadySave checks that a server which cannot save is not ready.
func TestReadySave(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv := servertest.Run(t, server.Options{File: filepath.Join(dir, "db"), Config: map[string]string{"save": "3600 1"}})
	c, err := console.New(srv.Server, console.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func(when, want string) {
		t.Helper()
		if _, text := serve(c, request(t, "GET", "/readyz", "")); text != want {
			t.Errorf("%s: %q, want %q", when, text, want)
		}
	}
	srv.Must("SET", "k", "v")
	srv.Must("SAVE")
	ask("after a save", "ok")
	if err := os.Rename(dir, dir+".moved"); err != nil {
		t.Fatal(err)
	}
	if reply, err := srv.Do(t.Context(), "SAVE"); err == nil {
		t.Fatalf("SAVE without a folder: %v", reply)
	}
	ask("after a save that has failed", "writes are rejected: the data could not be saved")
	srv.Must("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
	ask("while writes go on", "ok")
	if err := os.Rename(dir+".moved", dir); err != nil {
		t.Fatal(err)
	}
}

func TestVarz(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, nil)
	srv.Must("SET", "k", "v")
	_, text := serve(c, request(t, "GET", "/varz", ""))
	var v struct {
		Server, Memory, Replication map[string]any
		Keyspace                    map[string]map[string]float64
		Commandstats                map[string]map[string]float64
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if v.Keyspace["db0"]["keys"] != 1 || v.Commandstats["cmdstat_set"]["calls"] != 1 || v.Replication["role"] != "master" || v.Server["redis_build_id"] != "0000000000000000" {
		t.Errorf("%s", text)
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, nil)
	w := watch(t, web, "/stats")
	if got := w.next(); !strings.HasPrefix(got, "event: history\ndata: [") {
		t.Fatalf("%s", got)
	}
	var s struct {
		T, Ops, Keys, Misses int64
		Commands             map[string]int64
		P99                  *float64 `json:"p99us"`
		Memory               map[string]float64
		LagMs                *float64
	}
	for s.Commands["zadd"] == 0 || s.P99 == nil { // INFO and LATENCY HISTOGRAM are read one after the other
		for range 10 {
			srv.Must("GET", "none")
			srv.Must("ZADD", "z", 1, "a") // the first sample with one has a GET, too
		}
		got, _ := strings.CutPrefix(w.next(), "event: sample\ndata: ")
		if err := json.Unmarshal([]byte(got), &s); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
	}
	if s.Keys != 1 || s.Ops == 0 || s.Misses == 0 || s.Memory["used"] == 0 || s.P99 == nil || *s.P99 <= 0 || s.T < time.Now().Add(-time.Hour).UnixMilli() {
		t.Errorf("%+v", s)
	}
	if s.LagMs != nil {
		t.Errorf("a lag of %v ms without expiry", s.LagMs)
	}
	if s.Commands["info"] != 0 {
		t.Errorf("the sample counts itself: %v", s.Commands)
	}
}

// TestHistory checks that the history has a sample for each second, and not more than those of
// 15 minutes.
func TestHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := servertest.Run(t)
		c, err := console.New(srv.Server, console.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		history := func(query string) []map[string]any {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			w := httptest.NewRecorder()
			c.ServeHTTP(w, request(t, "GET", "/stats"+query, "").WithContext(ctx))
			_, rest, _ := strings.Cut(w.Body.String(), "event: history\ndata: ")
			data, _, _ := strings.Cut(rest, "\n")
			var list []map[string]any
			if err := json.Unmarshal([]byte(data), &list); err != nil {
				t.Fatalf("%v: %.200s", err, w.Body)
			}
			return list
		}
		time.Sleep(10*time.Second + time.Second/2)
		if got := len(history("")); got != 10 {
			t.Errorf("%d samples after 10 seconds", got)
		}
		time.Sleep(20 * time.Minute)
		list := history("?range=15m")
		if got := list[899]["t"].(float64) - list[0]["t"].(float64); len(list) != 900 || got < 898_000 || got > 900_000 {
			t.Errorf("%d samples of %v ms", len(list), got)
		}
		if list := history("?range=1h"); len(list) != 121 {
			t.Errorf("%d samples of an hour after 20 minutes", len(list))
		}
		w := httptest.NewRecorder()
		c.ServeHTTP(w, request(t, "GET", "/stats?range=2h", ""))
		if w.Code != http.StatusBadRequest {
			t.Errorf("an unknown range: status %d", w.Code)
		}
	})
}

func TestLog(t *testing.T) {
	t.Parallel()
	var kept console.Log
	var out bytes.Buffer
	log := slog.New(kept.Handler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn})))
	srv, c := run(t, console.Options{Log: &kept}, map[string]string{"slowlog-log-slower-than": "0"})
	srv.Must("SET", "<k>\xff", "v")
	for range 300 {
		log.Info("filler")
	}
	log.With("a", 1).WithGroup("g").Warn("told", "error", errors.New("bad"))
	log.Debug("not kept")
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "msg=told") {
		t.Errorf("passed on: %s", got)
	}
	_, text := serve(c, request(t, "GET", "/log", ""))
	var v struct {
		Events  []struct{ Level, Text string }
		Slowlog []struct {
			T, Us int64
			Args  []any
		}
		ACL     []any
		Latency []any
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if len(v.Events) != 200 || v.Events[0].Text != "told a=1 g.error=bad" || v.Events[0].Level != "WARN" {
		t.Errorf("%d records, the newest %v", len(v.Events), v.Events[0])
	}
	if !strings.Contains(text, `["SET",{"base64":"PGs+/w=="},"v"]`) || v.ACL == nil || v.Latency == nil {
		t.Errorf("%s", text)
	}
	if v.Slowlog[0].T < time.Now().Add(-time.Hour).UnixMilli() {
		t.Errorf("time %d", v.Slowlog[0].T)
	}
}
