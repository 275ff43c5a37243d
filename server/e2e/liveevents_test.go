package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// liveEvents implements "Storing live events in Redis sorted sets": "The trick is to
// use a Unix timestamp as the score, which makes the sorted set a time serie."
type liveEvents struct {
	rdb *redis.Client
	now func() time.Time
}

// lifetime has the lifetime of each kind of events: "we want the count of
// contributions during the latest 24h, but the name of the latest contributors
// only during the latest 30min".
var lifetime = map[string]time.Duration{
	"news.published":          24 * time.Hour,
	"supporters_count.incred": 24 * time.Hour,
	"supporter.joined":        30 * time.Minute,
	"visitors_count.incred":   time.Minute, // "we use 1min in our application"
}

func (l *liveEvents) key(kind string, project int) string { return kind + ":" + strconv.Itoa(project) }

func (l *liveEvents) trim(ctx context.Context, p redis.Pipeliner, kind string, project int) {
	oldest := score(l.now().Add(-lifetime[kind]))
	p.ZRemRangeByScore(ctx, l.key(kind, project), "-INF", strconv.FormatFloat(oldest, 'f', -1, 64))
}

// add stores an event and publishes it to the subscribers of the project's page.
func (l *liveEvents) add(ctx context.Context, kind string, project int, member string) error {
	_, err := l.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZAdd(ctx, l.key(kind, project), redis.Z{Score: score(l.now()), Member: member})
		l.trim(ctx, p, kind, project)
		p.Publish(ctx, fmt.Sprint("live:", project), kind+" "+member)
		return nil
	})
	return err
}

// remove unpublishes an event: "trivially … via the ZREM command".
func (l *liveEvents) remove(ctx context.Context, kind string, project int, member string) error {
	_, err := l.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZRem(ctx, l.key(kind, project), member)
		l.trim(ctx, p, kind, project)
		return nil
	})
	return err
}

// list returns the events: "listing all the events is two commands".
func (l *liveEvents) list(ctx context.Context, kind string, project int) ([]string, error) {
	var events *redis.StringSliceCmd
	_, err := l.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		l.trim(ctx, p, kind, project)
		events = p.ZRange(ctx, l.key(kind, project), 0, -1)
		return nil
	})
	return events.Val(), err
}

func (l *liveEvents) count(ctx context.Context, kind string, project int) (int64, error) {
	var n *redis.IntCmd
	_, err := l.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		l.trim(ctx, p, kind, project)
		n = p.ZCard(ctx, l.key(kind, project))
		return nil
	})
	return n.Val(), err
}

// TestLiveEvents checks the load of the document's "Numbers", of 8 clients: 2 000 sorted
// sets, and as many requests as in a minute with 200 per second. Then it checks the
// counts after each lifetime.
func TestLiveEvents(t *testing.T) {
	parallel(t)
	dial := connect(t)
	ctx := context.Background()
	const (
		workers  = 8
		projects = 500 // of 4 kinds each
		requests = 200 * 60
	)
	listener := dial().PSubscribe(ctx, "live:*")
	must[any](t)(listener.Receive(ctx))
	messages := listener.Channel(redis.WithChannelSize(requests + projects*len(lifetime)))

	clock := newClock()
	kinds := make([]string, 0, len(lifetime))
	for kind := range lifetime {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)

	type event struct {
		at     time.Time
		member string
	}
	models := make([]map[string][]event, workers) // each worker has its own projects
	published := make([]int, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			model := map[string][]event{}
			models[w] = model
			now := clock.Now()
			l := &liveEvents{dial(), func() time.Time { return now }}
			alive := func(kind, key string) []event {
				events := slices.DeleteFunc(model[key], func(e event) bool { return !e.at.After(now.Add(-lifetime[kind])) })
				model[key] = events
				return events
			}
			add := func(kind string, project int, member string) {
				key := l.key(kind, project)
				if err := l.add(ctx, kind, project, member); err != nil {
					t.Error(err)
				}
				published[w]++
				model[key] = append(slices.DeleteFunc(alive(kind, key), func(e event) bool { return e.member == member }), event{now, member})
			}
			for project := w; project < projects; project += workers {
				for _, kind := range kinds {
					add(kind, project, "first")
				}
			}
			for i := range requests / workers {
				now = now.Add(time.Minute * workers / requests)
				project := r.IntN(projects/workers)*workers + w
				kind := kinds[r.IntN(len(kinds))]
				key := l.key(kind, project)
				switch r.IntN(5) {
				case 0, 1:
					add(kind, project, fmt.Sprintf(`{"url":"https://…/%d"}`, i))
				case 2:
					if events := alive(kind, key); len(events) > 0 {
						victim := events[r.IntN(len(events))]
						if err := l.remove(ctx, kind, project, victim.member); err != nil {
							t.Error(err)
						}
						model[key] = slices.DeleteFunc(events, func(e event) bool { return e == victim })
					}
				case 3:
					got, err := l.list(ctx, kind, project)
					var want []string
					for _, e := range alive(kind, key) {
						want = append(want, e.member)
					}
					if err != nil || !slices.Equal(got, want) && len(got)+len(want) > 0 {
						t.Errorf("%s: listed %q, want %q (%v)", key, got, want, err)
					}
				case 4:
					got, err := l.count(ctx, kind, project)
					if want := len(alive(kind, key)); err != nil || got != int64(want) {
						t.Errorf("%s: counted %d, want %d (%v)", key, got, want, err)
					}
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	clock.Advance(time.Minute)

	total := 0
	for _, n := range published {
		total += n
	}
	timeout := time.After(time.Minute)
	for i := range total {
		select {
		case <-messages:
		case <-timeout:
			t.Fatalf("timeout: the subscriber received %d messages, want %d", i, total)
		}
	}

	// Time passes without requests.
	rdb := dial()
	l := &liveEvents{rdb, clock.Now}
	for _, pass := range []time.Duration{0, 30 * time.Second, 31 * time.Minute, 24 * time.Hour} {
		clock.Advance(pass)
		for w, model := range models {
			for _, kind := range kinds {
				for project := w; project < projects; project += workers {
					want := 0
					for _, e := range model[l.key(kind, project)] {
						if e.at.After(clock.Now().Add(-lifetime[kind])) {
							want++
						}
					}
					if got, err := l.count(ctx, kind, project); err != nil || got != int64(want) {
						t.Fatalf("%v later, %s:%d: counted %d, want %d (%v)", pass, kind, project, got, want, err)
					}
				}
			}
		}
	}
	if n := must[int64](t)(rdb.DBSize(ctx).Result()); n != 0 {
		t.Errorf("DBSIZE: got %d, want 0", n)
	}
}
