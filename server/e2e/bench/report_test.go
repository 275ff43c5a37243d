//go:build linux

package main

import (
	"context"
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// aReport returns a report of three servers and two workloads: zsetd takes half and twice
// as much as the first server, and as much as the third.
func aReport() *report {
	sampleOf := func(cpu time.Duration) *sample {
		s := &sample{ops: 1000, elapsed: time.Second / 10, cpu: cpu}
		for i := range 1000 {
			s.latency.add(time.Duration(i) * time.Microsecond)
		}
		return s
	}
	rounds := func(ms ...time.Duration) (out []*sample) {
		for _, n := range ms {
			out = append(out, sampleOf(n*time.Millisecond))
		}
		return out
	}
	return &report{
		targets: []target{{name: "redis 8"}, {name: "zsetd"}, {name: "redis 7"}},
		rows: []row{
			{work{name: "PING", pipeline: 16}, [][]*sample{rounds(8, 2, 4), rounds(1, 2, 9), rounds(2)}},
			{work{name: "A<B", pipeline: 16}, [][]*sample{rounds(10, 30), rounds(40, 40), rounds(40)}},
		},
		memory:  []memoryRow{{"1 000 000 members in one set", []memoryCell{{200e6, 250e6, 300e6, 10}, {50e6, 300e6, 310e6, 7.25}, {100e6, 100e6, 100e6, 1}}}},
		idle:    idleRow{[]time.Duration{4e6, 12e6, 5e6}, []int64{9e6, 18e6, 9e6}, []float64{0.001, 0, 0.001}},
		floor:   []floorRow{{50, row{work{name: "PING", pipeline: 1}, [][]*sample{rounds(10), rounds(12), rounds(11), rounds(13)}}}, {500, row{work{name: "PING", pipeline: 1}, [][]*sample{rounds(10), rounds(10), rounds(12), rounds(10)}}}},
		machine: "2 cores", loadBefore: "0.1 0.2 0.3", loadAfter: "1 1 1",
		options: options{clients: 50, rounds: 3, length: 2 * time.Second},
	}
}

func TestReport(t *testing.T) {
	r := aReport()
	if got, want := r.cells(r.rows[0])[:7], []string{"PING, P16", "4.00", "2.00", "2.00", "0.50", "1.00", "10 · 10 · 10"}; !slices.Equal(got, want) {
		t.Errorf("cells: got %q, want %q", got, want)
	}
	if got := r.rows[1].cpu(0); got != 20 {
		t.Errorf("the median of 10 and 30: got %v, want 20", got)
	}
	for _, other := range []int{0, 2} {
		if mean, n := r.geometricMean(other, func(work) bool { return true }); n != 2 || mean < 0.999 || mean > 1.001 {
			t.Errorf("the geometric mean of 2 and 1/2, or of 1 and 1: got %v of %d, want 1 of 2", mean, n)
		}
	}
	if got := r.halfLoad("PING, P16"); got != 5000 {
		t.Errorf("half load: got %v, want 5000", got)
	}
	if got := r.verdictText(); !strings.Contains(got, "no more CPU per operation than redis 8: not reached; not in 1 of 2: A<B, P16 2.00\n") {
		t.Errorf("verdicts: got %q", got)
	}
	text := r.markdown("x.svg")
	for _, want := range []string{
		"![CPU per operation](x.svg)\n", "load average before 0.1 0.2 0.3, after 1 1 1",
		"| work | redis 8 µs | zsetd µs | redis 7 µs | zsetd : redis 8 | zsetd : redis 7 | 1000/s | p50 µs | p99 µs | p99.9 µs |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n| PING, P16 | 4.00 |",
		"| 1 000 000 members in one set | 200.0 | 50.0 | 100.0 | 0.25 | 0.50 | 250.0 · 300.0 · 100.0 | 1.20 | 3.00 | 300.0 · 310.0 · 100.0 | 10 · 7.2 · 1 |\n\n| PING |",
		"| 500 clients, P1 | 10.0 | 10.0 | 12.0 | 10.0 | 1.00 | 1.20 | 1.00 |\n\n- redis 8 answers 4 ms",
		"\n- zsetd answers 12 ms after its start; idle it takes 18.0 MB and 0.000 % of a core\n",
		"\n- at most 0.62 of it at P16, in the geometric mean without scripts: **not reached**; 1.00, of 2 works\n",
		"\n- no more memory than redis 8: **reached**; in all 1\n",
		"\n- no more after churn: **not reached**; not in 1 of 1: 1 000 000 members in one set 1.20\n",
		"\n- idle less than 12 MB: **not reached**; 18.0 MB\n",
		"| PING | floor µs | redis 8 µs | zsetd µs | redis 7 µs | redis 8 : floor | zsetd : floor | redis 7 : floor |\n|---|--:|--:|--:|--:|--:|--:|--:|\n| 50 clients, P1 | 10.0 | 12.0 | 11.0 | 13.0 | 1.20 | 1.10 | 1.30 |\n",
		"\n- at most 1.12 of the floor for a PING at P1: **not reached**; not in 1 of 2: 500 clients 1.20\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if got, err := replaceSection("a\n<!-- bench -->\nold\n<!-- end of bench -->\nb\n", "bench", "new\n"); err != nil || got != "a\n<!-- bench -->\nnew\n<!-- end of bench -->\nb\n" {
		t.Errorf("%q %v", got, err)
	}
	if _, err := replaceSection("a\n<!-- bench -->\nb\n", "bench", "new\n"); err == nil {
		t.Error("a section without an end marker: no error")
	}
}

// TestSummary checks that the figures in the README are those of RESULTS.md.
func TestSummary(t *testing.T) {
	section := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "<!-- bench -->\n")
		got, _, ok := strings.Cut(rest, "<!-- end of bench -->\n")
		if !ok {
			t.Fatalf("%s has no section bench", path)
		}
		return got
	}
	want := strings.ReplaceAll(summary(section("RESULTS.md")), "](", "](server/e2e/bench/")
	if got := section("../../../README.md"); got != want {
		t.Errorf("README.md has\n%swant\n%s", got, want)
	}
	if got := strings.Count(want, "\n| "); got != 1+len(summaryWorks()) {
		t.Errorf("%d rows, want %d and the header", got, len(summaryWorks()))
	}
	if got, columns := summary(aReport().markdown("x.svg")), "\n| work | redis 8 µs | zsetd µs | redis 7 µs | zsetd : redis 8 | zsetd : redis 7 | 1000/s |\n|---|--:|--:|--:|--:|--:|--:|\n"; !strings.HasSuffix(got, columns+"\n![CPU per operation](x.svg)\n") {
		t.Errorf("a summary without rows is\n%s", got)
	}
}

func TestWriteSection(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("a/b", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("README.md", []byte("x\n<!-- bench -->\n<!-- end of bench -->\ny\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir("a/b")
	r := aReport()
	r.options.plot = "c/p.svg"
	for range 2 { // the second time replaces the first section
		if err := r.writeSection("../../README.md", "bench", r.markdown); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("../../README.md")
	if want := "x\n<!-- bench -->\n" + r.markdown("a/b/c/p.svg") + "<!-- end of bench -->\ny\n"; err != nil || string(text) != want {
		t.Errorf("%q %v", text, err)
	}
}

func TestPlot(t *testing.T) {
	r := aReport()
	r.rows[0].samples[1] = []*sample{{ops: 1, elapsed: time.Second}} // less than a tick of CPU time
	texts := textsOf(t, r.plot())
	for _, want := range []string{"A<B, P16", "PING, P16", "zsetd : redis 8", "20.0", "2.00", "1 000 000 members in one set", "after churn", "200", "1.20"} {
		if !slices.Contains(texts, want) {
			t.Errorf("%q is not in %q", want, texts)
		}
	}
}

// textsOf returns the texts of an SVG and checks that it is well-formed.
func textsOf(t *testing.T, svg string) (texts []string) {
	t.Helper()
	if i := strings.Index(svg, "NaN"); i >= 0 {
		t.Errorf("a coordinate is NaN or infinite: %s", svg[max(i-80, 0):i+3])
	}
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return texts
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := token.(xml.CharData); ok {
			texts = append(texts, string(c))
		}
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{
		"Redis server v=8.6.3 sha=00000000:1 malloc=jemalloc-5.3.0 bits=64 build=f2\n":  "redis 8.6.3",
		"Valkey server v=9.1.2 sha=00000000:1 malloc=jemalloc-5.3.0 bits=64 build=f2\n": "valkey 9.1.2",
	} {
		if got, err := parseVersion(text); got != want || err != nil {
			t.Errorf("%q: %q %v, want %q", text, got, err, want)
		}
	}
	if got, err := parseVersion("zsetd 1.0"); err == nil {
		t.Errorf("no version: %q", got)
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1 000", 30000: "30 000", 1000000: "1 000 000"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

// TestTimetable checks that a late reply adds to the latency of the following
// requests, and a long sleep does not.
func TestTimetable(t *testing.T) {
	now := time.Unix(0, 0)
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	late := time.Duration(0)
	tt := schedule{interval: 10 * time.Millisecond, due: at(10)}
	next := func() time.Time {
		return tt.next(func() time.Time { return now }, func(d time.Duration) { now = now.Add(d + late) })
	}
	expect := func(what string, want, wantNow int) {
		t.Helper()
		if got := next(); !got.Equal(at(want)) || !now.Equal(at(wantNow)) {
			t.Errorf("%s: counts from %v at %v, want %v at %v", what, got, now, at(want), at(wantNow))
		}
	}
	expect("the first", 10, 10)
	now = at(13)
	expect("after a reply in time", 20, 20)
	now = at(55)
	expect("due at 30", 30, 55)
	expect("due at 40", 40, 55)
	expect("due at 50", 50, 55)
	late = 2 * time.Millisecond
	expect("a long sleep", 62, 62)
	late = 25 * time.Millisecond
	expect("a very long sleep", 95, 95)
	late = 0
	expect("after it", 95, 95)
}

// TestAllWorks runs all workloads on a real server with little data. The server is
// compared with itself.
func TestAllWorks(t *testing.T) {
	redis, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is missing")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	quiet := []string{"--save", ""}
	r := &report{targets: []target{{name: "redis", binary: redis, flags: quiet}, {name: "itself", binary: redis, flags: quiet}}}
	r.options = options{clients: 5, rounds: 1, length: 20 * time.Millisecond}
	l := limits{members: 5000, sets: 20, alive: 1000}
	list := works(l)
	if err := r.measureWorks(ctx, list, l); err != nil {
		t.Fatal(err)
	}
	if len(r.rows) != len(list) {
		t.Errorf("%d rows, want %d", len(r.rows), len(list))
	}
	for _, s := range shapes(1000) {
		row, err := measureMemory(ctx, r.targets, s, 0, churn{2, time.Second})
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
		} else if row.cells[0].live < 1e6 || row.cells[1].churned < 1e6 || row.cells[1].peak < row.cells[1].churned || row.cells[0].times <= 0 {
			t.Errorf("%s: %+v", s.name, row.cells)
		}
	}
	r.options.short = true
	if err := r.measureReplication(ctx, shapes(1000)[:2], zadd(16), l); err != nil {
		t.Fatal(err)
	}
	for _, row := range r.replication {
		if strings.HasSuffix(row.name, ", s") && strings.HasPrefix(row.name, "transfer") && (row.values[0] <= 0 || row.values[1] <= 0) {
			t.Errorf("%s: %v", row.name, row.values)
		}
	}
	if got := len(r.replication); got != 7 {
		t.Errorf("%d rows of replication, want 7", got)
	}
	if text := r.replicationMarkdown(""); !strings.Contains(text, "| longest PING meanwhile, ms |") {
		t.Errorf("%q", text)
	}
	if err := r.measureStarts(ctx, startShapes(1000), 0); err != nil {
		t.Fatal(err)
	}
	for _, row := range r.starts {
		for i, samples := range row.samples {
			if s := samples[0]; len(samples) != 1 || s.answer <= 0 || s.after < 1e6 || s.peak < s.after || s.rest < 1e6 {
				t.Errorf("%s, server %d: %+v", row.name, i, samples)
			}
		}
	}
	if text := r.startMarkdown(""); len(r.starts) != 5 || !strings.Contains(text, "| 300 sets of 5 members |") {
		t.Errorf("%d rows of starts, %q", len(r.starts), text)
	}
	idle, err := measureIdle(ctx, r.targets, 20*time.Millisecond)
	if err != nil || idle.answer[0] <= 0 {
		t.Errorf("%+v %v", idle, err)
	}
}

// TestWorkFails checks that an error reply ends the run.
func TestWorkFails(t *testing.T) {
	redis, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is missing")
	}
	s, err := target{name: "redis", binary: redis, flags: []string{"--save", ""}}.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	g := &generator{server: s, clients: 3, length: 10 * time.Second}
	if _, err := g.run(t.Context(), work{name: "x", pipeline: 2, command: "NOSUCH a"}); err == nil || !strings.Contains(err.Error(), "unknown command") {
		t.Errorf("%v", err)
	}
	if _, err := (target{name: "nothing", binary: "false"}).start(t.Context()); err == nil {
		t.Error("start succeeds for a server that ends immediately")
	}
}

// TestChurn checks that a churn replaces all data and keeps their amount.
func TestChurn(t *testing.T) {
	redis, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is missing")
	}
	s, err := target{name: "redis", binary: redis, flags: []string{"--save", ""}}.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	c, err := s.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	count := func(script string) int64 {
		n, err := c.integer("EVAL", script, "0")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const all = `local n = 0
		for _, k in ipairs(redis.call('KEYS', '*')) do
			local kind = redis.call('TYPE', k).ok
			n = n + (kind == 'zset' and redis.call('ZCARD', k) or kind == 'hash' and redis.call('HLEN', k) or 1)
		end
		return n`
	for _, sh := range shapes(1000) {
		if sh.name == scriptsOf(1).name {
			continue // no keys
		}
		if err := c.do("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
		if err := c.fill(0, sh.steps, sh.fill); err != nil {
			t.Fatal(err)
		}
		before := count(all)
		for round := range int64(3) {
			if err := c.fill(0, sh.churnSteps, func(b *batch, i int64) { sh.churn(b, round, i) }); err != nil {
				t.Fatal(err)
			}
		}

		if after := count(all); after != before || before < 100 {
			t.Errorf("%s: %d and then %d", sh.name, before, after)
		}
		for _, k := range []string{"key:", "hash:"} {
			if n, err := c.integer("EXISTS", padded(k, 0)); err != nil || n != 0 {
				t.Errorf("%s: %d of the first keys %v", sh.name, n, err)
			}
		}
		if n, err := c.integer("EVAL", "return redis.call('ZSCORE', KEYS[1], ARGV[1]) and 1 or 0", "1", padded("set:", 0), padded("member:", 0)); err != nil || n != 0 {
			t.Errorf("%s: the first member still exists: %d %v", sh.name, n, err)
		}
	}
}
