package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// hit counts a page view and returns how many there are in its bucket; 0 if the
// bucket is older than all that are kept. A bucket lives up to the last
// millisecond before there would be more than keep.
func hit(ctx context.Context, rdb *redis.Client, key string, at time.Time, width time.Duration, keep int) (float64, error) {
	start := at.Truncate(width)
	end := start.Add(time.Duration(keep) * width)
	n := redis.NewFloatCmd(ctx, "ZADDEX", key, "INCR", "PXAT", end.UnixMilli()-1, 1, bucket(start))
	if err := rdb.Process(ctx, n); err != nil && !errors.Is(err, redis.Nil) {
		return 0, err
	}
	return n.Val(), nil
}

// hits returns the counts of the newest buckets, the current one first.
func hits(ctx context.Context, rdb *redis.Client, key string, at time.Time, width time.Duration, n int) ([]float64, error) {
	var names []string
	for i := range n {
		names = append(names, bucket(at.Truncate(width).Add(-time.Duration(i)*width)))
	}
	return rdb.ZMScore(ctx, key, names...).Result()
}

func bucket(start time.Time) string { return strconv.FormatInt(start.UnixMilli(), 10) }

// TestRecipeTimeboxes checks counts by 16 concurrent writers, while a reader reads: each
// hit is counted once, and no bucket exists for too long.
func TestRecipeTimeboxes(t *testing.T) {
	dial := recipe(t)
	ctx := context.Background()
	const (
		key     = "hits:/front"
		writers = 16
		keep    = 5
		width   = 50 * time.Millisecond
	)
	end := time.Now().Add(time.Duration(of(700, 30_000)) * time.Millisecond)

	var reader, wg sync.WaitGroup
	reads, most := 0, 0
	reader.Go(func() {
		rdb := dial()
		for time.Now().Before(end) {
			reads++
			before := time.Now()
			counts, err := rdb.ZRevRangeWithScores(ctx, key, 0, -1).Result()
			if err != nil {
				t.Error(err)
				return
			}
			most = max(most, len(counts))
			if len(counts) > keep {
				t.Errorf("%d buckets, want at most %d: %v", len(counts), keep, counts)
				return
			}
			for _, c := range counts {
				ms, err := strconv.ParseInt(c.Member.(string), 10, 64)
				if over := time.UnixMilli(ms).Add(keep * width); err != nil || over.Before(before.Add(-time.Millisecond)) || c.Score < 1 {
					t.Errorf("a bucket that ends at %v exists at %v: %v (%v)", over, before, c, err)
				}
			}
		}
	})
	// The replies to the hits of a bucket are 1, 2, 3, … if none is lost and
	// none is counted twice.
	replies := make([]map[string][]float64, writers)
	m := make([]meter, writers)
	late := make([]int, writers)
	for w := range writers {
		replies[w] = map[string][]float64{}
		wg.Go(func() {
			rdb := dial(m[w].on)
			rdb.Ping(ctx)
			m[w].take()
			for i := 1; time.Now().Before(end); i++ {
				at := time.Now()
				if i%50 == 0 {
					at = at.Add(-keep * width) // a hit that comes very late
				}
				n, err := hit(ctx, rdb, key, at, width, keep)
				if err != nil {
					t.Error(err)
					return
				}
				if n == 0 {
					late[w]++
					continue
				}
				if i%50 == 0 {
					t.Errorf("a hit of %v ago has number %v in its bucket, want none", time.Since(at), n)
				}
				name := bucket(at.Truncate(width))
				replies[w][name] = append(replies[w][name], n)
			}
		})
	}
	wg.Wait()
	reader.Wait()

	all := map[string][]float64{}
	total, refused, trips := 0, 0, 0
	for w := range writers {
		for name, list := range replies[w] {
			all[name] = append(all[name], list...)
			total += len(list)
		}
		refused += late[w]
		trips += m[w].take().trips
	}
	for name, list := range all {
		slices.Sort(list)
		for i, n := range list {
			if n != float64(i+1) {
				t.Fatalf("bucket %s: reply %d of %d is %v", name, i+1, len(list), n)
			}
		}
	}
	rdb := dial()
	now := time.Now()
	counts := must[[]float64](t)(hits(ctx, rdb, key, now, width, keep))
	for i, n := range counts {
		name := bucket(now.Truncate(width).Add(-time.Duration(i) * width))
		if n != float64(len(all[name])) && time.Since(now) < width/2 && i < keep-1 {
			t.Errorf("bucket %s counts %v, want %d", name, n, len(all[name]))
		}
	}
	t.Logf("%d hits by %d writers in %d buckets, %d too late; a reader read %d times and found at most %d buckets; %d round trips",
		total, writers, len(all), refused, reads, most, trips)
	if trips != total+refused {
		t.Errorf("%d round trips, want %d, one for each hit", trips, total+refused)
	}
	if most < keep {
		tooSlow(t, fmt.Sprintf("at most %d buckets existed at a time, want %d", most, keep))
	}
	ranNone(t, rdb, "watch", "multi", "zrem")
	wait.Until(t, "the last bucket expires", func() bool { return must[int64](t)(rdb.DBSize(ctx).Result()) == 0 })
}
