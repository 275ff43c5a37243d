package engine

import (
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine/persist"
)

// TestShareOfLateSubscribers checks that the messages of subscribers which have read their output
// wait while live queries have used their share of the time.
func TestShareOfLateSubscribers(t *testing.T) {
	srv := &Engine{Keeper: &persist.Keeper{}}
	srv.Config.QueryCPU = 25
	qs := &srv.Queries
	qs.byName = map[queryID]*query{{}: {}}
	qs.drained = []*Session{{Engine: srv, live: &liveSubscriptions{drained: true}}}
	for _, c := range []struct {
		credit time.Duration
		left   int   // sessions that wait
		due    int64 // in microseconds
	}{
		{-10 * time.Millisecond, 1, 41_000},
		{time.Millisecond, 0, -1},
	} {
		qs.credit = c.credit
		now := time.Now()
		r := queryRound{srv: srv, qs: qs, at: now, end: now.Add(time.Minute)}
		r.run()
		if due := srv.queriesDue(-1); len(qs.drained) != c.left || due != c.due {
			t.Errorf("credit %v: %d sessions wait, want %d; due after %d µs, want %d", c.credit, len(qs.drained), c.left, due, c.due)
		}
	}
}
