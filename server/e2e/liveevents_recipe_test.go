package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// show adds an event to a page, and sets its lifetime.
func show(ctx context.Context, rdb *redis.Client, page, event string, lifetime time.Duration) error {
	return rdb.Do(ctx, "ZADDEX", page, "PX", lifetime.Milliseconds(), "@now", event).Err()
}

// watchPages calls changed for every change of the events of a page. It calls again
// after each connect, because earlier changes are unknown then.
func watchPages(ctx context.Context, rdb *redis.Client, again func(), changed func(page, what string, events []string)) {
	const space = "__subkeyspace@0__:"
	sub := rdb.PSubscribe(ctx, space+"live:*")
	defer sub.Close()
	for m := range sub.ChannelWithSubscriptions(redis.WithChannelSize(10000)) {
		switch m := m.(type) {
		case *redis.Subscription:
			again()
		case *redis.Message:
			what, events := changedMembers(m.Payload)
			changed(strings.TrimPrefix(m.Channel, space), what, events)
		}
	}
}

// A webTier keeps the pages that browsers have open, and updates them.
type webTier struct {
	rdb *redis.Client

	mu    sync.Mutex
	pages map[string]map[string]bool // page, event
	log   map[string][]change        // page + event
	ready chan struct{}              // receives when the tier has read the pages again
}

// A change is the appearance of an event on an open page, or its disappearance.
type change struct {
	there bool
	at    time.Time
}

// open shows a page to a browser. Messages of later changes update the page. Pending
// messages of earlier changes end in the state that open reads.
func (w *webTier) open(ctx context.Context, page string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.read(ctx, page)
}

func (w *webTier) read(ctx context.Context, page string) error {
	events, err := w.rdb.ZRange(ctx, page, 0, -1).Result()
	if err != nil {
		return err
	}
	for event := range w.pages[page] {
		if !slices.Contains(events, event) {
			w.note(page, event, false)
		}
	}
	w.pages[page] = map[string]bool{}
	for _, event := range events {
		w.pages[page][event] = true
		w.note(page, event, true)
	}
	return nil
}

func (w *webTier) note(page, event string, there bool) {
	key := page + " " + event
	if list := w.log[key]; len(list) == 0 && there || len(list) > 0 && list[len(list)-1].there != there {
		w.log[key] = append(list, change{there, time.Now()})
	}
}

func (w *webTier) run(ctx context.Context, t *testing.T) {
	again := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for page := range w.pages {
			if err := w.read(ctx, page); err != nil {
				t.Error(err)
			}
		}
		w.ready <- struct{}{}
	}
	watchPages(ctx, w.rdb, again, func(page, what string, events []string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.pages[page] == nil {
			return // no browser has it open
		}
		for _, event := range events {
			switch what {
			case "zadd":
				w.pages[page][event] = true
				w.note(page, event, true)
			case "zrem", "zexpired":
				delete(w.pages[page], event)
				w.note(page, event, false)
			}
		}
	})
}

func startWebTier(t *testing.T, rdb *redis.Client) *webTier {
	ctx, cancel := context.WithCancel(context.Background())
	w := &webTier{rdb: rdb, pages: map[string]map[string]bool{}, log: map[string][]change{}, ready: make(chan struct{}, 100)}
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx, t) })
	t.Cleanup(func() {
		cancel()
		rdb.Close()
		running.Wait()
	})
	<-w.ready
	return w
}

// TestRecipeLiveEvents checks the load of the document's "Numbers", of 8 clients: 2 000
// pages and 200 requests per second for a minute; less without -full. The lifetimes
// are short enough for a test.
func TestRecipeLiveEvents(t *testing.T) {
	dial := recipe(t)
	ctx := context.Background()
	const publishers = 8
	projects, requests := of(100, 500), of(600, 12000)
	interval := time.Duration(of(800, 60_000)) * time.Millisecond * publishers / time.Duration(requests)
	kinds := []string{"contributors", "news", "supporters", "visitors"}

	w := startWebTier(t, dial())
	for p := range projects {
		for _, kind := range kinds {
			if err := w.open(ctx, fmt.Sprint("live:", p, ":", kind)); err != nil {
				t.Fatal(err)
			}
		}
	}
	type published struct {
		sent, done time.Time     // of the command
		lives      time.Duration // from the command on; 0: see until
		until      time.Time
		withdrawn  time.Time
	}
	all := make([]map[string]*published, publishers)
	var wg sync.WaitGroup
	for n := range publishers {
		all[n] = map[string]*published{}
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			rdb := dial()
			tick := time.NewTicker(interval)
			defer tick.Stop()
			for i := range requests / publishers {
				<-tick.C
				page := fmt.Sprint("live:", r.IntN(projects), ":", kinds[r.IntN(len(kinds))])
				event := fmt.Sprintf(`{"url":"/n/%d.%d"}`, n, i)
				p := &published{sent: time.Now()}
				var err error
				switch i % 4 {
				case 0, 1:
					p.lives = time.Duration(50+r.IntN(500)) * time.Millisecond
					err = show(ctx, rdb, page, event, p.lives)
				case 2:
					// An event that was published almost 24 hours ago.
					at := time.Now().Add(time.Duration(50+r.IntN(200))*time.Millisecond - 24*time.Hour)
					p.until = time.UnixMilli(at.UnixMilli()).Add(24 * time.Hour)
					var added int
					added, err = rdb.Do(ctx, "ZADDEX", page, "PXAT", p.until.UnixMilli(), score(at), event).Int()
					if added == 0 && err == nil && time.Now().After(p.until) {
						continue // this process was delayed until after the deadline
					}
				case 3:
					p.lives = time.Hour
					err = show(ctx, rdb, page, event, p.lives)
					if err == nil {
						p.withdrawn = time.Now()
						err = rdb.ZRem(ctx, page, event).Err()
					}
				}
				if err != nil {
					t.Error(err)
				}
				p.done = time.Now()
				all[n][page+" "+event] = p
			}
		})
	}
	wg.Wait()
	wait.Until(t, "all events have expired", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, events := range w.pages {
			if len(events) > 0 {
				return false
			}
		}
		return true
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	var appeared, late []time.Duration
	for _, list := range all {
		for key, p := range list {
			changes := w.log[key]
			if len(changes) != 2 || !changes[0].there || changes[1].there {
				t.Fatalf("%s: changes %v, want an appearance and a disappearance", key, changes)
			}
			appeared = append(appeared, changes[0].at.Sub(p.sent))
			first, last := p.sent.Add(p.lives), p.done.Add(p.lives) // the limits of its disappearance
			if !p.until.IsZero() {
				first, last = p.until, p.until
			}
			if !p.withdrawn.IsZero() {
				first, last = p.withdrawn, p.done
			}
			if gone := changes[1].at; gone.Before(first.Add(-time.Millisecond)) {
				t.Errorf("%s disappeared %v too early", key, first.Sub(gone))
			}
			late = append(late, changes[1].at.Sub(last))
		}
	}
	t.Logf("%d events on %d pages; the page shows them after: %s; they disappear late by: %s",
		len(late), len(w.pages), quantiles(appeared), quantiles(late))
	switch median, longest := late[len(late)/2], late[len(late)-1]; {
	case median > time.Second || longest > 10*time.Second:
		t.Errorf("events disappear too late: %s", quantiles(late))
	case median > 100*time.Millisecond || longest > 5*time.Second:
		tooSlow(t, "events disappear late by "+quantiles(late))
	}
	rdb := dial()
	ranNone(t, rdb, "zremrangebyscore", "publish", "zrangebyscore")
	if n := must[int64](t)(rdb.DBSize(ctx).Result()); n != 0 {
		t.Errorf("DBSIZE: got %d, want 0", n)
	}
}

// TestRecipeLiveEventsReconnect checks that a tier reads its pages again after it has
// lost its connection.
func TestRecipeLiveEventsReconnect(t *testing.T) {
	dial := recipe(t)
	ctx := context.Background()
	rdb := dial()
	w := startWebTier(t, dial())
	const page = "live:123:news"
	for _, event := range []string{"stays", "goes"} {
		if err := show(ctx, rdb, page, event, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.open(ctx, page); err != nil {
		t.Fatal(err)
	}
	// One transaction, so that the tier receives no messages of the last two commands.
	must[[]redis.Cmder](t)(rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub")
		p.ZRem(ctx, page, "goes")
		p.ZAdd(ctx, page, redis.Z{Score: 1, Member: "comes"})
		return nil
	}))
	select {
	case <-w.ready:
	case <-time.After(time.Minute):
		t.Fatal("timeout: the tier does not reconnect")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := w.pages[page]; len(got) != 2 || !got["stays"] || !got["comes"] {
		t.Errorf("the page shows %v, want stays and comes", got)
	}
}
