package metrics_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine/metrics"
)

// TestTop: of many keys the few that are added most often are found, none of them with less
// than its sum, and no sum is too large by more than the bound of the algorithm.
func TestTop(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const counters, hot, adds = 64, 8, 100_000
	top := metrics.NewTop(counters)
	exact := map[string]int64{}
	for range adds {
		key := fmt.Sprint("cold", r.IntN(10_000))
		if r.IntN(2) == 0 {
			key = fmt.Sprint("hot", r.IntN(hot))
		}
		exact[key]++
		top.Add([]byte(key), 1)
	}
	if top.Sum != adds {
		t.Errorf("the sum is %d", top.Sum)
	}
	found := top.Largest(hot)
	if len(found) != hot {
		t.Fatalf("%d keys", len(found))
	}
	for _, e := range found {
		if e.Key[:3] != "hot" || e.Sum < exact[e.Key] || e.Sum > exact[e.Key]+adds/counters {
			t.Errorf("%s: %d, counted were %d", e.Key, e.Sum, exact[e.Key])
		}
	}
}

// TestTies checks that keys of equal sums are in the order in which they were first counted.
func TestTies(t *testing.T) {
	top := metrics.NewTop(3)
	for _, key := range []string{"b", "c", "a"} {
		top.Add([]byte(key), 5)
	}
	if got := fmt.Sprint(top.Largest(2)); got != "[{b 5} {c 5}]" {
		t.Errorf("keys of equal sums: %s, not those that were counted first", got)
	}
}

// TestSession: time and bytes are divided among the keys, only keys in the slots count, and a
// session ends after its duration.
func TestSession(t *testing.T) {
	start := time.Unix(1000, 0)
	used := func() (system, user time.Duration) { return time.Second, 2 * time.Second }
	slots := make([]bool, 4)
	slots[1] = true
	s := metrics.NewHotKeys(metrics.HotKeysOptions{TimeOf: true, BytesOf: true, Count: 2, Duration: time.Minute, Sample: 1, Slots: slots}, start, used)
	key := func(names ...string) (keys [][]byte) {
		for _, n := range names {
			keys = append(keys, []byte(n))
		}
		return keys
	}
	s.Measure(key("a", "b"), 1, 20*time.Microsecond, 100, 0)
	s.Measure(key("a"), 1, 30*time.Microsecond, 10, 0)
	s.Measure(key("other"), 2, time.Second, 1000, 0)
	s.Measure(nil, -1, time.Second, 1000, 0)
	if got := fmt.Sprint(s.Net.Largest(5), s.CPU.Largest(1)); got != "[{a 60} {b 50}] [{a 40000}]" {
		t.Error(got)
	}
	if s.All.Bytes != 2110 || s.Chosen.Bytes != 110 || s.Sampled.Bytes != 110 {
		t.Errorf("%+v %+v %+v", s.All, s.Chosen, s.Sampled)
	}
	if end := start.Add(time.Minute); !s.Active(end.Add(-1)) || s.Active(end) || s.Lasted(end.Add(time.Hour)) != time.Minute {
		t.Errorf("stopped at %v", s.Stopped)
	}
}
