//go:build unix

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestMigrateRecipes runs the four recipes while zsetd migrate moves their data to another
// zsetd, which answers their clients from the cut-over on. Each event is delivered once,
// each hit is counted once, the line stays in order, deadlines move, and every change of
// a page arrives.
func TestMigrateRecipes(t *testing.T) {
	config := map[string]string{"notify-keyspace-events": "SVz", "repl-diskless-sync-delay": "0", "repl-backlog-size": "64mb"}
	source, target := servertest.Run(t, server.Options{Config: config}), servertest.Run(t, server.Options{Config: config})
	ctx := context.Background()
	dial := func(with ...func(*redis.Options)) *redis.Client {
		o := &redis.Options{Addr: source.Addr(), MaxRetries: -1, ReadTimeout: 30 * time.Second}
		for _, f := range with {
			f(o)
		}
		c := redis.NewClient(o)
		t.Cleanup(func() { c.Close() })
		return c
	}
	var moved, over atomic.Bool
	after := func() bool { return moved.Load() } // the recipes go on for a while after the move
	var all sync.WaitGroup

	// Folder: producers and workers, without crashes.
	const producers, workers, delay, lease = 4, 4, 20 * time.Millisecond, time.Minute
	var (
		mu        sync.Mutex
		folded    = map[string]bool{}
		published = map[string]int{}
		holders   = map[string]int{}
	)
	for n := range producers {
		rdb := dial()
		all.Go(func() {
			for i, left := 0, 100; left > 0 && !t.Failed(); i++ {
				detail := fmt.Sprintf("%d.%d", n, i)
				if _, err := fold(ctx, rdb, fmt.Sprint("account_", i%20), detail, delay); err != nil {
					t.Errorf("fold: %v", err)
					return
				}
				mu.Lock()
				folded[detail] = true
				mu.Unlock()
				if after() {
					left--
				}
				wait.Pace(time.Millisecond)
			}
		})
	}
	var working sync.WaitGroup
	var claimers []*redis.Client
	for range workers {
		rdb := dial(forever)
		claimers = append(claimers, rdb)
		working.Go(func() {
			for {
				c, err := next(ctx, rdb, lease)
				if over.Load() {
					return
				}
				if err != nil {
					t.Errorf("claim: %v", err)
					return
				}
				mu.Lock()
				if holders[c.group]++; holders[c.group] > 1 {
					t.Errorf("%s belongs to two workers", c.group)
				}
				for _, d := range c.details {
					published[d]++
				}
				holders[c.group]--
				mu.Unlock()
				if err := c.done(ctx, rdb, delay); err != nil && !over.Load() {
					t.Errorf("acknowledgement: %v", err)
					return
				}
			}
		})
	}

	// Timeboxes: the replies to the hits of a bucket are 1, 2, 3, …
	const width, keep, writers = 100 * time.Millisecond, 100_000, 4
	replies := make([]map[string][]float64, writers)
	for n := range writers {
		replies[n] = map[string][]float64{}
		rdb := dial()
		all.Go(func() {
			for left := 100; left > 0 && !t.Failed(); {
				at := time.Now()
				count, err := hit(ctx, rdb, "hits:/front", at, width, keep)
				if err != nil {
					t.Errorf("hit: %v", err)
					return
				}
				name := bucket(at.Truncate(width))
				replies[n][name] = append(replies[n][name], count)
				if after() {
					left--
				}
				wait.Pace(time.Millisecond)
			}
		})
	}

	// Waiting list: users come one after the other. They stay in the club; in the lobby
	// they do not check in again.
	var users []string
	all.Go(func() {
		rdb := dial()
		for i, left := 0, 20; left > 0 && !t.Failed(); i++ {
			user := fmt.Sprint("user", i)
			users = append(users, user)
			for first, u := range []string{user, users[0]} {
				want := int64(i * (1 - first))
				if got, err := checkIn(ctx, rdb, "club", u, time.Hour); err != nil || got != want {
					t.Errorf("%s has rank %d, want %d, %v", u, got, want, err)
					return
				}
			}
			if _, err := checkIn(ctx, rdb, "lobby", user, 3*time.Second); err != nil {
				t.Errorf("check-in: %v", err)
				return
			}
			if after() {
				left--
			}
			wait.Pace(5 * time.Millisecond)
		}
	})

	// Live events: some stay, some end.
	tier := startWebTier(t, dial())
	if err := tier.open(ctx, "live:page"); err != nil {
		t.Fatal(err)
	}
	var shown []string
	all.Go(func() {
		rdb := dial()
		for i, left := 0, 50; left > 0 && !t.Failed(); i++ {
			event, lifetime := fmt.Sprint("event", i), time.Hour
			if i%2 == 1 {
				lifetime = 2 * time.Second
			}
			shown = append(shown, event)
			if err := show(ctx, rdb, "live:page", event, lifetime); err != nil {
				t.Errorf("show: %v", err)
				return
			}
			if after() {
				left--
			}
			wait.Pace(2 * time.Millisecond)
		}
	})

	x := startTool(t, binary.Path(t), "redis://"+source.Addr(), "redis://"+target.Addr(), "--observe", "0s", "--verify", "all", "--forward")
	x.cutOver(t)
	moved.Store(true)
	all.Wait()
	at := redis.NewClient(&redis.Options{Addr: target.Addr()})
	defer at.Close()
	wait.Until(t, "all groups are published", func() bool { return t.Failed() || must[int64](t)(at.Exists(ctx, "due").Result()) == 0 })
	over.Store(true)
	for _, c := range claimers {
		c.Close()
	}
	working.Wait()

	for d := range folded {
		if n := published[d]; n != 1 {
			t.Errorf("event %s was published %d times", d, n)
		}
	}
	if len(published) != len(folded) {
		t.Errorf("%d events were published, want %d", len(published), len(folded))
	}
	counts := map[string][]float64{}
	for _, r := range replies {
		for name, list := range r {
			counts[name] = append(counts[name], list...)
		}
	}
	hitsAll := 0
	for name, list := range counts {
		slices.Sort(list)
		for i, n := range list {
			if n != float64(i+1) {
				t.Errorf("the hits of bucket %s are counted as %v", name, list)
				break
			}
		}
		if got := must[float64](t)(at.ZScore(ctx, "hits:/front", name).Result()); got != float64(len(list)) {
			t.Errorf("bucket %s has %v hits, want %d", name, got, len(list))
		}
		hitsAll += len(list)
	}
	if line := must[[]string](t)(at.ZRange(ctx, "club", 0, -1).Result()); !slices.Equal(line, users) {
		t.Errorf("the line is %q, want %q", line, users)
	}
	wait.Until(t, "users that do not come back lose their places", func() bool { return must[int64](t)(at.ZCard(ctx, "lobby").Result()) == 0 })
	ended := func(i int, event string) bool {
		tier.mu.Lock()
		defer tier.mu.Unlock()
		log := tier.log["live:page "+event]
		want := 1 + i%2
		if len(log) > want {
			t.Errorf("%s has appeared and disappeared %d times", event, len(log))
		}
		return len(log) == want && log[0].there
	}
	wait.Until(t, "the page has all changes", func() bool {
		for i, event := range shown {
			if !ended(i, event) {
				return t.Failed()
			}
		}
		return true
	})
	if got := must[int64](t)(at.ZCard(ctx, "live:page").Result()); got != int64(len(shown)+1)/2 {
		t.Errorf("%d events stay, want %d", got, (len(shown)+1)/2)
	}
	t.Logf("%d events in groups, %d hits in %d buckets, %d users, %d events on a page", len(folded), hitsAll, len(counts), len(users), len(shown))
}
