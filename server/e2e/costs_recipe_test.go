package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestRecipeCosts measures round trips and bytes of the four systems, as written and
// better, and compares them with the table in PATTERNS.md.
func TestRecipeCosts(t *testing.T) {
	dial := recipe(t)
	ctx := context.Background()
	var table strings.Builder
	table.WriteString("| | | as written | better |\n|---|---|---|---|\n")
	shown := func(c *cost) string {
		if c == nil {
			return "never sent"
		}
		return fmt.Sprintf("%d · %d B", c.trips, c.bytes)
	}
	row := func(system, operation string, written, better *cost) {
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", system, operation, shown(written), shown(better))
	}

	clock := newClock()
	clock.Advance(123456 * time.Microsecond)
	var m meter
	rdb := dial(m.on)
	fatal := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Ping(ctx).Err() })
	fatal(err) // go-redis uses a separate connection for transactions
	// of measures the cost of f for the client.
	of := func(f func() error) *cost {
		t.Helper()
		fatal(rdb.Ping(ctx).Err())
		m.take()
		fatal(f())
		c := m.take()
		return &c
	}
	// delivery measures the messages that f sends to a subscriber.
	delivery := func(pattern string, messages int, f func() error) *cost {
		t.Helper()
		var m meter
		sub := dial(m.on).PSubscribe(ctx, pattern)
		defer sub.Close()
		_, err := sub.Receive(ctx)
		fatal(err)
		m.take()
		fatal(f())
		for range messages {
			_, err := sub.ReceiveTimeout(ctx, time.Minute)
			fatal(err)
		}
		c := m.take()
		return &c
	}
	// live measures the message that f makes a live query send.
	live := func(query string, f func() error) *cost {
		t.Helper()
		var m meter
		sub := dial(m.on).Subscribe(ctx, query)
		defer sub.Close()
		for range 2 { // the confirmation, and the present reply
			_, err := sub.ReceiveTimeout(ctx, time.Minute)
			fatal(err)
		}
		m.take()
		fatal(f())
		_, err := sub.ReceiveTimeout(ctx, time.Minute)
		fatal(err)
		c := m.take()
		return &c
	}
	// readAgain measures a keyspace event that f causes, and the read that follows it, as with a
	// Redis.
	readAgain := func(key string, f, read func() error) *cost {
		t.Helper()
		event, again := delivery("__keyspace@0__:"+key, 1, f), of(read)
		return &cost{event.trips + again.trips, event.bytes + again.bytes}
	}
	fatal(rdb.ConfigSet(ctx, "notify-keyspace-events", "KSVz").Err())

	// Live events.
	const event = `{"url":"https://example.org/news/4711"}`
	written := &liveEvents{rdb, clock.Now}
	publishWritten := func() error { return written.add(ctx, "news.published", 123, event) }
	publishBetter := func() error { return show(ctx, rdb, "live:123:news", event, 24*time.Hour) }
	row("Live events", "publish", of(publishWritten), of(publishBetter))
	fatal(written.remove(ctx, "news.published", 123, event))
	fatal(rdb.ZRem(ctx, "live:123:news", event).Err())
	row("", "notify a tier", delivery("live:*", 1, publishWritten), delivery("__subkeyspace@0__:live:*", 2, publishBetter))
	for i := range 9 {
		fatal(written.add(ctx, "news.published", 123, fmt.Sprint(event, i)))
		fatal(show(ctx, rdb, "live:123:news", fmt.Sprint(event, i), time.Hour))
	}
	row("", "read a page of 10",
		of(func() error { _, err := written.list(ctx, "news.published", 123); return err }),
		of(func() error { return rdb.ZRange(ctx, "live:123:news", 0, -1).Err() }))
	page := func() error { return rdb.ZRange(ctx, "live:123:news", 0, -1).Err() }
	withdraw := func() error { return rdb.ZRem(ctx, "live:123:news", fmt.Sprint(event, 8)).Err() }
	again := func() error {
		return rdb.ZAdd(ctx, "live:123:news", redis.Z{Score: 1, Member: fmt.Sprint(event, 8)}).Err()
	}
	row("", "keep a page of 10 right, for each change",
		readAgain("live:123:news", withdraw, page),
		live(`__query@0__:ZRANGE "live:123:news" 0 -1`, again))
	row("", "notify a tier of the expiry", nil, delivery("__subkeyspace@0__:live:123:news", 1, func() error {
		return rdb.Do(ctx, "ZPEXPIRE", "live:123:news", 0, "MEMBERS", 1, event).Err()
	}))

	// Timeboxes.
	boxes := &timeboxes{rdb, clock.Now, 5}
	const minute = time.Minute
	now := time.Now().Add(minute / 2) // no bucket ends within half a minute
	for i := range 5 {
		_, err := boxes.increment(ctx, "/front")
		fatal(err)
		clock.Advance(minute)
		_, err = hit(ctx, rdb, "hits:/front", now.Add(-time.Duration(i)*minute), minute, 5)
		fatal(err)
	}
	hitWritten := func() error { _, err := boxes.increment(ctx, "/front"); return err }
	hitBetter := func() error { _, err := hit(ctx, rdb, "hits:/front", now, minute, 5); return err }
	row("Timeboxes", "first hit of a minute", of(hitWritten), of(func() error {
		_, err := hit(ctx, rdb, "hits:/front", now.Add(minute), minute, 5)
		return err
	}))
	row("", "a hit without other writers", of(hitWritten), of(hitBetter))
	row("", "read the last 5 minutes",
		of(func() error { _, err := boxes.recent(ctx, "/front", 0, 5); return err }),
		of(func() error { _, err := hits(ctx, rdb, "hits:/front", now, minute, 5); return err }))
	row("", "keep a chart of 5 minutes right, for each change",
		readAgain("hits:/front", hitBetter, func() error { _, err := hits(ctx, rdb, "hits:/front", now, minute, 5); return err }),
		live(`__query@0,1s__:ZRANGE "hits:/front" 0 -1 WITHSCORES`, hitBetter))

	// Folder.
	folding := &folder{rdb, clock.Now, 5 * time.Second}
	addWritten := func() error {
		_, err := folding.add(ctx, postMetricUpdated{Account: "account_1", Metrics: map[string]float64{"likes": 10}})
		return err
	}
	const group = `{"account_id":"account_1"}`
	addBetter := func() error { _, err := fold(ctx, rdb, group, "likes", time.Millisecond); return err }
	fatal(addWritten())
	fatal(addBetter())
	row("Folder", "fold an event", of(addWritten), of(addBetter))
	poll := of(func() error { return folding.due(ctx, func(folded, bool) { t.Error("due") }) })
	poll.trips *= 60
	poll.bytes *= 60
	clock.Advance(time.Minute)
	wait.Elapse(2 * time.Millisecond)
	row("", "publish a group",
		of(func() error { return folding.due(ctx, func(folded, bool) {}) }),
		of(func() error {
			c, err := next(ctx, rdb, 30*time.Second)
			fatal(err)
			return c.done(ctx, rdb, 5*time.Second)
		}))
	row("", "tell how many groups are due, when one becomes due", nil,
		live("__query@0__:ZCOUNT due -inf @now", addBetter))
	row("", "a worker has nothing to do for a minute (polling every second)", poll, &cost{})

	// Waiting list: 130 users, and a room with a capacity of 30.
	const grace = time.Hour
	for _, system := range []func(string) (bool, error){
		func(user string) (bool, error) {
			l := &waitingList{rdb, clock.Now, "lobby", 30, rdb.Pipelined}
			ready, _, err := l.check(ctx, user)
			if ready {
				fatal(l.connect(ctx, user))
			}
			return ready, err
		},
		func(user string) (bool, error) {
			rank, err := checkIn(ctx, rdb, "club", user, grace)
			return rank < 30, err
		},
	} {
		for i := range 130 {
			if ready, err := system(fmt.Sprintf("user%03d", i)); err != nil || ready != (i < 30) {
				t.Fatalf("user %d: ready %v (%v)", i, ready, err)
			}
		}
	}
	list := &waitingList{rdb, clock.Now, "lobby", 30, rdb.Pipelined}
	checkWritten := func(user string) *cost {
		return of(func() error {
			ready, _, err := list.check(ctx, user)
			if ready {
				fatal(list.connect(ctx, user))
			}
			return err
		})
	}
	checkBetter := func(user string) *cost {
		return of(func() error { _, err := checkIn(ctx, rdb, "club", user, grace); return err })
	}
	row("Waiting list", "join the queue", checkWritten("user130"), checkBetter("user130"))
	row("", "check in while waiting", checkWritten("user030"), checkBetter("user030"))
	row("", "leave the room",
		of(func() error { return list.disconnect(ctx, "user000") }),
		of(func() error { return rdb.ZRem(ctx, "club", "user000").Err() }))
	fatal(rdb.ZRem(ctx, list.waiting(), "user000").Err())
	fatal(rdb.ZRem(ctx, list.checkins(), "user000").Err())
	row("", "tell a user of a new rank",
		readAgain("club", func() error { return rdb.ZRem(ctx, "club", "user001").Err() }, func() error { return rdb.ZRank(ctx, "club", "user031").Err() }),
		live(`__query@0__:ZRANK "club" "user031"`, func() error { return rdb.ZRem(ctx, "club", "user002").Err() }))
	row("", "get in", checkWritten("user030"), checkBetter("user030"))

	t.Logf("round trips, and bytes sent and received:\n%s", table.String())
	const writers, each = 16, 30
	contend := func(hit func(rdb *redis.Client) error) float64 {
		var meters [writers]meter
		var wg sync.WaitGroup
		for w := range writers {
			rdb := dial(meters[w].on)
			fatal(hit(rdb)) // go-redis connects
			meters[w].take()
			wg.Go(func() {
				for range each {
					if err := hit(rdb); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		trips := 0
		for w := range writers {
			trips += meters[w].take().trips
		}
		return float64(trips) / (writers * each)
	}
	t.Logf("a hit while %d writers count concurrently: %.1f round trips as written, %.1f better", writers,
		contend(func(rdb *redis.Client) error {
			_, err := (&timeboxes{rdb, clock.Now, 5}).increment(ctx, "/front")
			return err
		}),
		contend(func(rdb *redis.Client) error {
			_, err := hit(ctx, rdb, "hits:/front", now, minute, 5)
			return err
		}))
	compareCosts(t, table.String())
}

// compareCosts compares the table in PATTERNS.md with the measured one, or writes it.
// Numbers of bytes may differ by 3 %, because times as scores vary in length.
func compareCosts(t *testing.T, table string) {
	t.Helper()
	const path, start, end = patterns, "<!-- costs -->\n\n", "\n<!-- end of costs -->\n"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	i, j := strings.Index(doc, start), strings.Index(doc, end)
	if i < 0 || j < 0 {
		t.Fatalf("%s has no lines %q and %q", path, start, end)
	}
	i += len(start)
	if *rewrite {
		if err := os.WriteFile(path, []byte(doc[:i]+table+doc[j:]), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	said, got := strings.Fields(doc[i:j]), strings.Fields(table)
	same := len(said) == len(got)
	for k := 0; same && k < len(got); k++ {
		var a, b int
		if _, err := fmt.Sscan(said[k], &a); err == nil {
			_, err = fmt.Sscan(got[k], &b)
			bytes := k+1 < len(got) && got[k+1] == "B"
			same = err == nil && (a == b || bytes && max(a-b, b-a) <= a*3/100)
		} else {
			same = said[k] == got[k]
		}
	}
	if !same {
		t.Errorf("the table of costs in %s is not up to date: go test -run TestRecipeCosts -rewrite\n%s", path, table)
	}
}
