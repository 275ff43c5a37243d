//go:build linux

package main

import (
	"context"
	"math"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestScaleReport(t *testing.T) {
	r := aReport()
	list := []scaling{
		{what: "members in one set", at: []int64{100, 1000, 100000}, curves: []*curve{
			{"ZADD, P16", "µs", [][]float64{{1, 2}, {3, 4}, {50, 60}}},
			{"RSS per member", "bytes", [][]float64{{math.NaN(), math.NaN()}, {math.NaN(), math.NaN()}, {120, 60.25}}},
		}},
		{what: "cores", at: []int64{1, 2}, curves: []*curve{{"A<B", "1000/s", [][]float64{{0, 0}, {0, 0}}}}},
	}
	text := r.scaleMarkdown(list, "x.svg")
	for _, want := range []string{
		"![How cost grows](x.svg)\n", "numbers of redis 8 · zsetd · redis 7;",
		"\n| members in one set | ZADD, P16, µs | RSS per member, bytes |\n|---|--:|--:|\n| 100 | 1.00 · 2.00 | – |\n",
		"\n| 100 000 | 50.0 · 60.0 | 120 · 60.2 |\n\n| cores |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	texts := textsOf(t, r.scalePlot(list))
	for _, want := range []string{"ZADD, P16, µs", "members in one set", "100k", "1000", "A<B, 1000/s", "nothing was measured", "zsetd", "1 000: 4.00"} {
		if !slices.Contains(texts, want) {
			t.Errorf("%q is not in %q", want, texts)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      []float64
	}{
		{0.9, 6, []float64{1, 2, 5}},
		{3, 9, []float64{5}},
		{15, 30000, []float64{100, 1000, 10000}},
	} {
		if got := ticks(c.low, c.high); !slices.Equal(got, c.want) {
			t.Errorf("from %v to %v: %v", c.low, c.high, got)
		}
	}
	for v, want := range map[float64]string{0.5: "0.5", 128: "128", 1000: "1000", 20000: "20k", 1e6: "1M"} {
		if got := short(v); got != want {
			t.Errorf("%v: %q", v, got)
		}
	}
}

// TestScalings runs all scalings on a real server, compared with itself, with small
// values.
func TestScalings(t *testing.T) {
	redis, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is missing")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	quiet := []string{"--save", ""}
	r := &report{targets: []target{{name: "redis", binary: redis, flags: quiet}, {name: "itself", binary: redis, flags: quiet}}}
	r.options = options{clients: 5, rounds: 1, length: 20 * time.Millisecond, short: true, quick: true}
	list, err := r.scale(ctx, regexp.MustCompile(""))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		for _, c := range s.curves {
			if len(c.values) != len(s.at) || len(s.at) == 0 {
				t.Errorf("%s: %d values at %v", c.title, len(c.values), s.at)
			}
			for _, v := range c.values {
				if len(v) != 2 || v[0] < 0 {
					t.Errorf("%s: %v", c.title, c.values)
				}
			}
		}
	}
}
