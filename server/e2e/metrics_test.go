package e2e

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
	"github.com/zsetd/zsetd/server/servertest"
)

// TestMetricsFormat lets Prometheus's own parser read the metrics of the console, with names of
// clients and errors that must be escaped.
func TestMetricsFormat(t *testing.T) {
	parallel(t)
	srv := servertest.Run(t, server.Options{Config: map[string]string{"slowlog-log-slower-than": "0"}})
	c, err := console.New(srv.Server, console.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	srv.Must("ZADDEX", "z", "PX", 1, "MEMBERS", 1, 1, "a")
	srv.Advance(1e9)
	for _, code := range []string{`A"B`, `A\B`, "A\xff"} {
		srv.Do(t.Context(), "EVAL", "return redis.error_reply(ARGV[1])", 0, code+" text")
	}
	web := httptest.NewServer(c)
	defer web.Close()
	res, err := http.Get(web.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if format := expfmt.ResponseFormat(res.Header); format.FormatType() != expfmt.TypeTextPlain {
		t.Errorf("the format is %q", format)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	metrics, err := parser.TextToMetricFamilies(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[dto.MetricType]int{}
	for name, family := range metrics {
		ours := !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") // the library names no types
		if ours {
			kinds[family.GetType()]++
		}
		if ours && family.GetHelp() == "" {
			t.Errorf("%s has no help", name)
		}
		seen := map[string]bool{}
		for _, m := range family.GetMetric() {
			if labels := fmt.Sprint(m.GetLabel()); seen[labels] {
				t.Errorf("%s%s is there twice", name, labels)
			} else {
				seen[labels] = true
			}
			if h := m.GetHistogram(); h != nil {
				last, bound := uint64(0), math.Inf(-1)
				for _, b := range h.GetBucket() {
					if b.GetCumulativeCount() < last || b.GetUpperBound() <= bound {
						t.Errorf("%s: the bucket %v falls", name, b)
					}
					last, bound = b.GetCumulativeCount(), b.GetUpperBound()
				}
				if last != h.GetSampleCount() || !math.IsInf(bound, 1) {
					t.Errorf("%s: the last bucket %v has %d of %d", name, bound, last, h.GetSampleCount())
				}
			}
		}
	}
	for _, name := range []string{"go_goroutines", "go_memstats_alloc_bytes", "process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"} {
		if metrics[name] == nil {
			t.Errorf("%s is absent", name)
		}
	}
	if len(metrics) < 180 || kinds[dto.MetricType_HISTOGRAM] < 3 || kinds[dto.MetricType_SUMMARY] < 2 || kinds[dto.MetricType_UNTYPED] > 0 {
		t.Errorf("%d metrics: %v", len(metrics), kinds)
	}
	if lag := metrics["zsetd_expire_lag_duration_seconds"].GetMetric()[0].GetHistogram(); lag.GetSampleCount() != 1 {
		t.Errorf("the lag of one expiry: %v", lag)
	}
	codes := map[string]bool{}
	for _, m := range metrics["redis_errors_total"].GetMetric() {
		codes[m.GetLabel()[0].GetValue()] = true
	}
	if !codes[`A"B`] || !codes[`A\B`] || !codes["A\uFFFD"] {
		t.Errorf("error codes: %v", codes)
	}
}
