package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// fold adds an event to its group, which is due after delay, and reports
// whether it is the first.
func fold(ctx context.Context, rdb *redis.Client, group, detail string, delay time.Duration) (first bool, err error) {
	var added *redis.Cmd
	_, err = rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		added = p.Do(ctx, "ZADD", "due", "NX", "@now+"+delay.String(), group)
		p.ZIncrBy(ctx, "due", 0.000001, group) // changes the score for a worker that holds the group
		p.Do(ctx, "ZADD", "details:"+group, "@now", detail)
		return nil
	})
	return added.Val() == int64(1), err
}

// A claim is a due group that one worker has until its lease ends.
type claim struct {
	group   string
	lease   float64 // the end
	begin   float64
	details []string
}

// next waits until a group is due and claims it.
func next(ctx context.Context, rdb *redis.Client, lease time.Duration) (c claim, err error) {
	got, err := rdb.Do(ctx, "BZCLAIM", 0, 1, "due", "-inf", "@now", "@now+"+lease.String(), "LEASE").Slice()
	if err != nil {
		return c, err
	}
	taken := got[1].([]any)[0].([]any)
	c.group, c.lease = taken[0].(string), taken[1].(float64)
	c.begin = c.lease - lease.Seconds()
	c.details, err = rdb.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: "details:" + c.group, Start: "-inf", Stop: instant(c.begin), ByScore: true}).Result()
	return c, err
}

// done acknowledges a claim, before its lease ends. If events have come since
// it began, the group stays, with their details, and is due after delay.
func (c *claim) done(ctx context.Context, rdb *redis.Client, delay time.Duration) error {
	_, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Do(ctx, "ZREMIFEQ", "due", c.lease, c.group)
		p.Do(ctx, "ZADD", "due", "XX", "LT", "@now+"+delay.String(), c.group)
		p.ZRemRangeByScore(ctx, "details:"+c.group, "-inf", instant(c.begin))
		return nil
	})
	return err
}

// instant formats a time in seconds with microseconds, as the server does.
func instant(x float64) string { return strconv.FormatFloat(x, 'f', 6, 64) }

// over reports whether the lease of a claim has ended, by the clock of the worker.
func (c *claim) over() bool { return score(time.Now()) > c.lease-0.005 }

// forever configures a client that waits without a limit.
func forever(o *redis.Options) { o.PoolSize, o.ReadTimeout = 1, -1 }

// A tenure is an interval in which a group certainly belonged to a worker.
type tenure struct {
	from, to time.Time
	worker   int
}

// TestRecipeFolderCrashes checks workers that sometimes crash between claim and
// acknowledgement: each event is published, and no two workers have a group at once.
func TestRecipeFolderCrashes(t *testing.T) {
	dial := recipe(t)
	ctx := context.Background()
	const producers, workers = 8, 8
	events, groups := of(4000, 100_000), of(200, 1000)
	const delay, lease = 100 * time.Millisecond, 500 * time.Millisecond

	var (
		mu          sync.Mutex
		published   = map[string]map[string]int{} // group, detail, times
		claimed     = map[string]int{}            // by group
		tenures     = map[string][]tenure{}
		open        = map[*redis.Client]bool{}
		ackedLate   = map[string]bool{} // groups with an acknowledgement possibly after the end of the lease
		over        bool
		crashes     int
		deliveries  int
		empty, late int
	)
	work := func(n int, r *rand.Rand) {
		rdb := dial(forever)
		defer rdb.Close()
		mu.Lock()
		open[rdb] = true
		stop := over
		mu.Unlock()
		for !stop {
			c, err := next(ctx, rdb, lease)
			mu.Lock()
			stop = over
			mu.Unlock()
			if err != nil {
				if !stop {
					t.Error(err)
				}
				return
			}
			got := time.Now()
			what := r.IntN(100)
			wait.Pace(time.Duration(r.IntN(2000)) * time.Microsecond)
			if c.over() {
				mu.Lock()
				late++
				mu.Unlock()
				continue
			}
			if what < 3 { // a crash before publishing
				mu.Lock()
				crashes++
				claimed[c.group]++
				tenures[c.group] = append(tenures[c.group], tenure{got, seconds(c.lease), n})
				mu.Unlock()
				return
			}
			mu.Lock()
			deliveries++
			claimed[c.group]++
			if len(c.details) == 0 {
				empty++
			}
			if published[c.group] == nil {
				published[c.group] = map[string]int{}
			}
			for _, d := range c.details {
				published[c.group][d]++
			}
			mu.Unlock()
			to := seconds(c.lease)
			if now := time.Now(); what >= 6 && now.Before(to) {
				to = now
			}
			mu.Lock()
			tenures[c.group] = append(tenures[c.group], tenure{got, to, n})
			if what < 6 { // a crash after publishing
				crashes++
			}
			mu.Unlock()
			if what < 6 {
				return
			}
			err = c.done(ctx, rdb, delay)
			mu.Lock()
			if c.over() {
				ackedLate[c.group] = true
			}
			stop = over // the test may end as soon as the server has the acknowledgement
			mu.Unlock()
			if err != nil && !stop {
				t.Error(err)
			}
		}
	}
	var working, wg sync.WaitGroup
	for n := range workers {
		working.Go(func() {
			r := rand.New(rand.NewPCG(3, uint64(n)))
			for {
				work(n, r)
				mu.Lock()
				stop := over
				mu.Unlock()
				if stop {
					return
				}
				wait.Pace(time.Duration(r.IntN(20)) * time.Millisecond) // until it is started again
			}
		})
	}
	firsts := make([]int, producers)
	for n := range producers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(4, uint64(n)))
			rdb := dial()
			for i := range events / producers {
				first, err := fold(ctx, rdb, fmt.Sprint("account_", r.IntN(groups)), fmt.Sprintf("%d.%d", n, i), delay)
				if err != nil {
					t.Error(err)
					return
				}
				if first {
					firsts[n]++
				}
				if i%10 == 0 && !*full {
					wait.Pace(time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	rdb := dial()
	if !wait.Holds(func() bool { return must[int64](t)(rdb.Exists(ctx, "due").Result()) == 0 }) {
		t.Fatalf("timeout: %d groups are not published", rdb.ZCard(ctx, "due").Val())
	}
	mu.Lock()
	over = true
	for c := range open {
		c.Close()
	}
	mu.Unlock()
	working.Wait()

	seen, again := 0, 0
	for _, details := range published {
		for _, n := range details {
			seen++
			again += n - 1
		}
	}
	if seen != events/producers*producers {
		t.Errorf("published %d events, want %d", seen, events)
	}
	for group, list := range tenures {
		slices.SortFunc(list, func(a, b tenure) int { return a.from.Compare(b.from) })
		for i := 1; i < len(list); i++ {
			if a, b := list[i-1], list[i]; b.from.Before(a.to) && !ackedLate[group] {
				t.Errorf("%s: two workers at once: %d from %v to %v, and %d from %v", group, a.worker, a.from, a.to, b.worker, b.from)
			}
		}
	}
	total := 0
	for _, n := range firsts {
		total += n
	}
	t.Logf("%d events of %d groups in %d deliveries, %d of them without details; ZADD returned 1 %d times, folding ratio %.3f; "+
		"%d crashes, %d events published more than once, %d claims abandoned",
		seen, groups, deliveries, empty, total, 1-float64(total)/float64(events), crashes, again, late)
	if len(ackedLate) > 0 {
		tooSlow(t, fmt.Sprintf("%d groups were possibly acknowledged too late", len(ackedLate)))
	}
	if crashes == 0 || again == 0 {
		tooSlow(t, "too few crashes for the test")
	}
	if left := must[[]string](t)(rdb.Keys(ctx, "*").Result()); len(left) > 0 {
		t.Errorf("KEYS: got %q, want none", left)
	}
	ranNone(t, rdb, "zrem", "zpopmin", "watch")
}

// seconds converts a score to a time.
func seconds(x float64) time.Time { return time.UnixMicro(int64(x * 1e6)) }

// TestRecipeFolderWhileProcessing checks an event that comes while a worker has its
// group: it is delivered, and not before the worker is done.
func TestRecipeFolderWhileProcessing(t *testing.T) {
	dial := recipe(t)
	ctx := context.Background()
	const delay, lease = 20 * time.Millisecond, 10 * time.Second
	producer := dial()
	add := func(detail string, want bool) {
		t.Helper()
		if first := must[bool](t)(fold(ctx, producer, "account_1", detail, delay)); first != want {
			t.Errorf("%s: first is %v, want %v", detail, first, want)
		}
	}
	add("likes", true)
	add("shares", false)
	worker, other := dial(forever), dial(forever)
	c := must[claim](t)(next(ctx, worker, lease))
	if !slices.Equal(c.details, []string{"likes", "shares"}) {
		t.Errorf("claimed %v, want likes and shares", c)
	}
	second := make(chan claim)
	go func() {
		if c, err := next(ctx, other, lease); err == nil {
			second <- c
		}
	}()
	add("likes", false) // once more
	select {
	case c := <-second:
		t.Fatalf("two workers have the group: %v", c)
	case <-time.After(10 * delay):
	}
	if err := c.done(ctx, worker, delay); err != nil {
		t.Fatal(err)
	}
	select {
	case c = <-second:
	case <-time.After(time.Minute):
		t.Fatal("timeout: the event that came meanwhile is not delivered")
	}
	if !slices.Equal(c.details, []string{"likes"}) {
		t.Errorf("claimed %v, want likes", c)
	}
	if err := c.done(ctx, other, delay); err != nil {
		t.Fatal(err)
	}
	if n := must[int64](t)(producer.DBSize(ctx).Result()); n != 0 {
		t.Errorf("DBSIZE: got %d, want 0", n)
	}
}

// TestRecipeFolderBurst checks that the events of a group are published in time although
// more keep coming.
func TestRecipeFolderBurst(t *testing.T) {
	dial := recipe(t)
	ctx := context.Background()
	const delay, lease = 200 * time.Millisecond, 10 * time.Second
	burst := time.Duration(of(700, 10_000)) * time.Millisecond
	worker := dial(forever)
	var over atomic.Bool
	var working sync.WaitGroup
	begin := time.Now()
	var ages []time.Duration
	working.Go(func() {
		for {
			c, err := next(ctx, worker, lease)
			if err != nil {
				return
			}
			now := time.Since(begin)
			for _, d := range c.details {
				at, _ := time.ParseDuration(strings.Fields(d)[1])
				ages = append(ages, now-at)
			}
			if err := c.done(ctx, worker, delay); err != nil && !over.Load() {
				t.Error(err)
			}
		}
	})
	producer := dial()
	events := 0
	for time.Since(begin) < burst {
		if _, err := fold(ctx, producer, "account_1", fmt.Sprint(events, " ", time.Since(begin)), delay); err != nil {
			t.Fatal(err)
		}
		events++
		wait.Pace(time.Millisecond)
	}
	wait.Until(t, "all groups are published", func() bool { return must[int64](t)(producer.DBSize(ctx).Result()) == 0 })
	over.Store(true)
	worker.Close()
	working.Wait()
	stats := must[string](t)(producer.Info(ctx, "commandstats").Result())
	t.Logf("%d events in %v; their age when they are published: %s", events, burst, quantiles(ages))
	if len(ages) != events {
		t.Errorf("published %d events, want %d", len(ages), events)
	}
	if slack := 3 * time.Second; ages[len(ages)-1] > delay+slack {
		t.Errorf("an event was published after %v: %s", ages[len(ages)-1], stats)
	}
	switch median := ages[len(ages)/2]; {
	case median > delay+delay:
		t.Errorf("the median age is %v, the delay %v", median, delay)
	case median > delay+delay/10:
		tooSlow(t, fmt.Sprintf("the median age is %v, the delay %v", median, delay))
	}
}

// TestRecipeFolderIdle checks that waiting workers send nothing.
func TestRecipeFolderIdle(t *testing.T) {
	dial := recipe(t)
	ctx := context.Background()
	const workers = 8
	var over atomic.Bool
	var working sync.WaitGroup
	var clients []*redis.Client
	for range workers {
		rdb := dial(forever)
		clients = append(clients, rdb)
		working.Go(func() {
			c, err := next(ctx, rdb, time.Minute)
			if err == nil {
				err = c.done(ctx, rdb, time.Second)
			}
			if err != nil && !over.Load() {
				t.Error(err)
			}
		})
	}
	rdb := dial()
	waitForBlocked(t, rdb, workers)
	// One group is due later: the server waits for it, and the workers do not poll, so only
	// the call of the worker that gets the group has returned when the group is published.
	must[bool](t)(fold(ctx, rdb, "account_1", "likes", 500*time.Millisecond))
	wait.Until(t, "a worker has published the group", func() bool { return must[int64](t)(rdb.DBSize(ctx).Result()) == 0 })
	var calls string
	for line := range strings.Lines(must[string](t)(rdb.Info(ctx, "commandstats").Result())) {
		if strings.HasPrefix(line, "cmdstat_bzclaim:") {
			calls = line
		}
	}
	if !strings.HasPrefix(calls, "cmdstat_bzclaim:calls=1,") {
		t.Errorf("%q, want one call", calls)
	}
	over.Store(true)
	for _, c := range clients {
		c.Close()
	}
	working.Wait()
}
