package metrics

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	var h Histogram
	if got := h.Percentile(99); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
	for i := range 100 {
		h.Add(time.Duration(i+1) * time.Microsecond)
	}
	for p, want := range map[float64]time.Duration{50: 50 * time.Microsecond, 99: 99 * time.Microsecond, 100: 100 * time.Microsecond} {
		if got := time.Duration(h.Percentile(p)); got < want || got > want+want/16 {
			t.Errorf("p%v: %v, want %v", p, got, want)
		}
	}
}
