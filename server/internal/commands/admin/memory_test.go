package admin

import (
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"
)

// TestMemoryReport compares MEMORY DOCTOR's findings at both sides of each limit.
func TestMemoryReport(t *testing.T) {
	const mb = 1 << 20
	heap := func(allocated, active, resident, rss int64) engine.HeapState {
		return engine.HeapState{Allocated: allocated * mb, Active: active * mb, Resident: resident * mb, RSS: rss * mb}
	}
	fine := heap(100, 100, 100, 100)
	const none = "No memory is wasted.\n"
	for _, test := range []struct {
		m           memory
		connections int64
		want        []string // the beginnings of the findings, or the whole report
	}{
		{memory{HeapState: heap(1, 100, 100, 1000), used: 5*mb - 1, peak: 100 * mb}, 1,
			[]string{"The server uses less than 5 MB: too little for a report.\n"}},
		{memory{HeapState: fine, used: 5 * mb, peak: 5 * mb}, 1, []string{none}},
		{memory{HeapState: fine, used: 10 * mb, peak: 15 * mb}, 1, []string{none}},
		{memory{HeapState: fine, used: 10 * mb, peak: 16 * mb}, 1, []string{"The peak was 1.60 times the memory in use. "}},
		{memory{HeapState: heap(100, 110, 110, 110), used: 10 * mb}, 1, []string{none}},
		{memory{HeapState: heap(100, 111, 111, 111), used: 10 * mb}, 1,
			[]string{"The heap is fragmented: its pages hold 1.11 times the bytes allocated. "}},
		{memory{HeapState: heap(90, 100, 100, 100), used: 10 * mb}, 1, []string{none}}, // not more than the slack
		{memory{HeapState: heap(1000, 1100, 1100, 1100), used: 10 * mb}, 1, []string{none}},
		{memory{HeapState: heap(100, 100, 100, 140), used: 10 * mb}, 1, []string{none}},
		{memory{HeapState: heap(100, 100, 100, 150), used: 10 * mb}, 1, []string{"The process is 1.50 times as large as the heap: "}},
		{memory{HeapState: heap(20, 20, 20, 30), used: 10 * mb}, 1, []string{none}},
		{memory{HeapState: fine, used: 10 * mb, clients: 400 << 10}, 2, []string{none}},
		{memory{HeapState: fine, used: 10 * mb, clients: 402 << 10}, 2, []string{"A connection takes 201 KB on average. "}},
		{memory{HeapState: fine, used: 10 * mb, clients: 300 << 10}, 1, []string{"A connection takes 300 KB on average. "}},
		{memory{HeapState: fine, used: 10 * mb, clients: 300 << 10}, 0, []string{none}},
		{memory{HeapState: heap(100, 120, 120, 200), used: 10 * mb, peak: 20 * mb, clients: mb}, 1,
			[]string{"The peak was 2.00 ", "The heap is fragmented: its pages hold 1.20 ", "The process is 1.67 ", "A connection takes 1024 KB "}},
	} {
		got := test.m.report(test.connections)
		lines := []string{got}
		if findings, ok := strings.CutPrefix(got, "Memory that is more than the data need:\n- "); ok {
			lines = strings.Split(strings.TrimSuffix(findings, "\n"), "\n- ")
		}
		ok := len(lines) == len(test.want)
		for i := 0; ok && i < len(lines); i++ {
			ok = strings.HasPrefix(lines[i], test.want[i])
		}
		if !ok {
			t.Errorf("%+v, %d connections:\n%s\nwant %q", test.m, test.connections, got, test.want)
		}
	}
}

func TestTotalMemory(t *testing.T) {
	for text, want := range map[string]int64{
		"":                                0,
		"MemTotal:":                       0,
		"MemTotal: x kB\n":                0,
		"MemFree: 5 kB\n":                 0,
		"MemTotal:\t 5 kB\nMemFree: 3 kB": 5 << 10,
	} {
		if got := totalMemory([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
