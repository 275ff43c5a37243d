package console_test

import (
	"encoding/json"
	"maps"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/console"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestPrometheus checks the dashboard and the rules of alerts: each metric that they name exists
// at a server with traffic, and promtool accepts the rules, finds that they fire, and accepts the metrics.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	exposed := scrape(t)
	exists := map[string]bool{"up": true} // of Prometheus itself
	for line := range strings.Lines(exposed) {
		if name, _, sample := strings.Cut(line, " "); sample && !strings.HasPrefix(line, "#") {
			name, _, _ = strings.Cut(name, "{")
			exists[name] = true
		}
	}
	uses := func(file string, expressions []string) {
		t.Helper()
		for _, e := range expressions {
			for _, name := range regexp.MustCompile(`\b(?:up|(?:redis|zsetd|go|process)_[a-z0-9_]+)\b`).FindAllString(e, -1) {
				if !exists[name] {
					t.Errorf("%s: the server has no metric %s", file, name)
				}
			}
		}
	}

	b, err := os.ReadFile("prometheus/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Title, UID string
		Panels     []struct {
			ID          int
			Type, Title string
			Targets     []struct{ Expr, LegendFormat string }
			GridPos     struct{ X, Y, W, H int }
		}
	}
	if err := json.Unmarshal(b, &dashboard); err != nil {
		t.Fatal(err)
	}
	var queries []string
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("two panels %d", p.ID)
		}
		ids[p.ID] = true
		if (len(p.Targets) == 0) != (p.Type == "row") {
			t.Errorf("panel %s has %d queries", p.Title, len(p.Targets))
		}
		for _, q := range p.Targets {
			queries = append(queries, q.Expr)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panels %q and %q overlap, or are wider than the page", other, p.Title)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
	}
	if dashboard.UID != "zsetd" || len(queries) < 25 {
		t.Errorf("dashboard %q with %d queries", dashboard.UID, len(queries))
	}
	uses("dashboard.json", queries)

	rules, err := os.ReadFile("prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var expressions []string
	for _, m := range regexp.MustCompile(`(?m)^ +expr: (.*)$`).FindAllStringSubmatch(string(rules), -1) {
		expressions = append(expressions, m[1])
	}
	if len(expressions) != 7 {
		t.Errorf("%d rules", len(expressions))
	}
	uses("rules.yml", expressions)

	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is missing: apt-get install prometheus, or .ci/promtool")
	}
	call := func(stdin string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Stdin, cmd.Dir = strings.NewReader(stdin), "prometheus"
		out, err := cmd.CombinedOutput()
		if _, complains := err.(*exec.ExitError); err != nil && !(complains && args[1] == "metrics") {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	call("", "check", "rules", "rules.yml")
	call("", "test", "rules", "rules_test.yml")

	// Each query of the dashboard is one that Prometheus parses.
	var all strings.Builder
	all.WriteString("groups: [{name: dashboard, rules: [\n")
	for _, q := range queries {
		text, _ := json.Marshal(strings.ReplaceAll(q, "$__rate_interval", "5m"))
		all.WriteString("{record: x, expr: " + string(text) + ", labels: {n: a" + strings.Repeat("a", all.Len()%7) + "}},\n")
	}
	all.WriteString("]}]\n")
	file := t.TempDir() + "/dashboard.yml"
	if err := os.WriteFile(file, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	call("", "check", "rules", "--lint=none", file)

	accepted := acceptedComplaints()
	for line := range strings.Lines(call(exposed, "check", "metrics")) {
		if name, text, _ := strings.Cut(strings.TrimSpace(line), " "); accepted[name] != text {
			t.Errorf("promtool: %s %s", name, text)
		}
	}
}

// acceptedComplaints are those of promtool about names of redis_exporter, which dashboards use: they have
// a unit that is no base unit, or no _total, or a _total that is a gauge.
func acceptedComplaints() map[string]string {
	m := map[string]string{}
	for text, names := range map[string]string{
		"metric names should not contain abbreviated units": "redis_aof_current_rewrite_duration_sec redis_aof_last_rewrite_duration_sec redis_rdb_current_bgsave_duration_sec " +
			"redis_rdb_last_bgsave_duration_sec redis_current_eviction_exceeded_time_ms redis_eviction_exceeded_time_ms_total redis_expire_cycle_cpu_time_ms_total redis_instantaneous_ops_per_sec",
		`counter metrics should have "_total" suffix`: "redis_dump_payload_sanitizations redis_io_threaded_reads_processed redis_io_threaded_writes_processed redis_lazyfreed_objects " +
			"redis_total_error_replies redis_total_reads_processed redis_total_writes_processed redis_unexpected_error_replies",
		`non-counter metrics should not have "_total" suffix`: "redis_memory_used_vm_total redis_migrate_cached_sockets_total",
	} {
		for name := range strings.FieldsSeq(names) {
			m[name] = text
		}
	}
	return m
}

// scrape returns the metrics of a server with traffic and of its replica, as one document.
func scrape(t *testing.T) string {
	t.Helper()
	srv, c := run(t, console.Options{}, map[string]string{"repl-diskless-sync-delay": "0"})
	srv.Must("SET", "k", "v", "EX", 1000)
	srv.Do(t.Context(), "INCR", "k")
	srv.Must("XADD", "x", "5000-1", "f", "v")
	srv.Must("XGROUP", "CREATE", "x", "g", "0")
	srv.Must("XREADGROUP", "GROUP", "g", "ann", "STREAMS", "x", ">")
	other, c2 := run(t, console.Options{}, nil)
	_, port, _ := net.SplitHostPort(srv.Addr())
	other.Must("REPLICAOF", "127.0.0.1", port)
	wait.Until(t, "the replica has a link", func() bool {
		text, _ := other.Must("INFO", "replication").(string)
		return strings.Contains(text, "master_link_status:up")
	})
	var own []string
	names := map[string]bool{}
	for _, one := range []string{first(serve(c, request(t, "GET", "/metrics?check-keys=k&check-streams=x", ""))), first(serve(c2, request(t, "GET", "/metrics", "")))} {
		keep := false
		had := maps.Clone(names)
		for line := range strings.Lines(one + "\n") {
			if rest, is := strings.CutPrefix(line, "# HELP "); is {
				name, _, _ := strings.Cut(rest, " ")
				keep, names[name] = !had[name], true
			}
			if keep {
				own = append(own, line)
			}
		}
	}
	return strings.Join(own, "")
}

// first returns the body of a response, without its status.
func first(_ int, body string) string { return body }
