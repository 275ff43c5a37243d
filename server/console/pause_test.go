package console

import (
	"testing"
	"time"
)

// TestRankPause checks that all viewers of a set together have a limit.
func TestRankPause(t *testing.T) {
	f := new(rankFeed)
	for _, one := range []struct {
		viewers int64
		rate    int
		want    time.Duration
	}{
		{1, 1, time.Second}, {1, 20, 50 * time.Millisecond}, {feedRate, 1, time.Second}, {10 * feedRate, 1, 10 * time.Second}, {feedRate, 20, time.Second},
	} {
		f.total.Store(one.viewers)
		if got := f.pause(one.rate, feedRate); got != one.want {
			t.Errorf("%d viewers, rate %d: %v, want %v", one.viewers, one.rate, got, one.want)
		}
	}
}
