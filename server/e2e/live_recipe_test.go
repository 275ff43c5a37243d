package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// quote returns a word of a live query.
func quote(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

// follow calls f with the reply to a live query, and with each one that differs. After a lost
// connection it goes on with the present reply.
func follow[T any](ctx context.Context, rdb *redis.Client, query string, f func(T)) error {
	sub := rdb.Subscribe(ctx, query)
	defer sub.Close()
	defer context.AfterFunc(ctx, func() { sub.Close() })()
	for m := range sub.Channel() {
		var reply struct {
			Result T
			Error  string
		}
		if err := json.Unmarshal([]byte(m.Payload), &reply); err != nil {
			return err
		}
		if reply.Error != "" {
			return errors.New(reply.Error)
		}
		f(reply.Result)
	}
	return ctx.Err()
}

// followPage calls update with the events of a page, the newest first, and again whenever
// they change.
func followPage(ctx context.Context, rdb *redis.Client, page string, update func(events []string)) error {
	return follow(ctx, rdb, "__query@0__:ZRANGE "+quote(page)+" 0 -1 REV", update)
}

// followHits calls update with the counts of all buckets, and again when they have changed or
// one has ended: at most once a second.
func followHits(ctx context.Context, rdb *redis.Client, key string, update func(counts map[string]float64)) error {
	return follow(ctx, rdb, "__query@0,1s__:ZRANGE "+quote(key)+" 0 -1 WITHSCORES", func(buckets [][2]any) {
		counts := map[string]float64{}
		for _, b := range buckets {
			counts[b[0].(string)] = b[1].(float64)
		}
		update(counts)
	})
}

// followDue calls update with the number of groups that wait for a worker, and again whenever
// it changes.
func followDue(ctx context.Context, rdb *redis.Client, update func(groups int)) error {
	return follow(ctx, rdb, "__query@0__:ZCOUNT due -inf @now", update)
}

// TestRecipeLiveQueries checks the live form of live events, timeboxes and the folder; that of
// the waiting list is in TestRecipeWaitingListInTurn.
func TestRecipeLiveQueries(t *testing.T) {
	dial := recipe(t)
	rdb := dial()
	t.Run("live events", func(t *testing.T) {
		const page = `live:"123" news\`
		expect := updatesOf(t, dial(), func(ctx context.Context, rdb *redis.Client, update func([]string)) error {
			return followPage(ctx, rdb, page, update)
		})
		expect([]string{})
		must[any](t)(nil, show(t.Context(), rdb, page, "stays", time.Hour))
		expect([]string{"stays"})
		must[any](t)(nil, show(t.Context(), rdb, page, "expires", 20*time.Millisecond))
		expect([]string{"expires", "stays"})
		expect([]string{"stays"})
		must[int64](t)(rdb.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Result())
		expect([]string{"stays"})
	})
	t.Run("timeboxes", func(t *testing.T) {
		const key, width, keep = "hits:/front", 10 * time.Minute, 5
		expect := updatesOf(t, dial(), func(ctx context.Context, rdb *redis.Client, update func(map[string]float64)) error {
			return followHits(ctx, rdb, key, update)
		})
		expect(map[string]float64{})
		now := time.Now()
		must[[]redis.Cmder](t)(rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			for range 3 {
				p.Do(t.Context(), "ZADDEX", key, "INCR", "PX", width.Milliseconds(), 1, bucket(now.Truncate(width)))
			}
			return nil
		}))
		expect(map[string]float64{bucket(now.Truncate(width)): 3})
		must[float64](t)(hit(t.Context(), rdb, key, now.Add(-width), width, keep))
		expect(map[string]float64{bucket(now.Truncate(width)): 3, bucket(now.Add(-width).Truncate(width)): 1})
	})
	t.Run("folder", func(t *testing.T) {
		expect := updatesOf(t, dial(), followDue)
		expect(0)
		must[bool](t)(fold(t.Context(), rdb, "account_1", "likes", 10*time.Millisecond))
		expect(1)
		c := must[claim](t)(next(t.Context(), rdb, time.Minute))
		expect(0)
		must[any](t)(nil, c.done(t.Context(), rdb, time.Minute))
	})
}

// updatesOf runs one of the functions that follow a query until the test ends, and returns a
// function that waits for an update.
func updatesOf[T any](t *testing.T, rdb *redis.Client, run func(ctx context.Context, rdb *redis.Client, update func(T)) error) func(want T) {
	ctx, cancel := context.WithCancel(context.Background())
	updates, ended := make(chan T, 100), make(chan error, 1)
	go func() { ended <- run(ctx, rdb, func(v T) { updates <- v }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("follow returns %v, want %v", err, context.Canceled)
		}
	})
	return func(want T) {
		t.Helper()
		select {
		case got := <-updates:
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("received %v, want %v", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("timeout: no update %v", want)
		}
	}
}
