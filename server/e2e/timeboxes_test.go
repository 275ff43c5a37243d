//lint:file-ignore SA1019 The system is as its author wrote it, deprecated commands included.

package e2e

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// timeboxes implements "Storing Bounded Timeboxes in Redis": page views for each of the
// last max minutes. "The answer is to use two sorted sets": counts by minute,
// and the minutes themselves.
//
// This code corrects three errors of the document's: the bucket is the minute, not
// the seconds modulo 60; zincrby takes the increment before the member; and it
// trims the oldest bucket, not the current one. The document also increments
// outside of the transaction, so that a concurrent trim could leave a count without
// a minute; here one transaction does all.
type timeboxes struct {
	rdb *redis.Client
	now func() time.Time
	max int64
}

func (b *timeboxes) keys(url string) (views, times string) { return "pv." + url, "tb." + url }

// increment counts a view. It returns the bucket, or "" if the bucket is older than
// all existing ones.
func (b *timeboxes) increment(ctx context.Context, url string) (bucket string, err error) {
	views, times := b.keys(url)
	minute := b.now().Unix() / 60
	name := strconv.FormatInt(minute, 10)
	for {
		late := false
		err := b.rdb.Watch(ctx, func(tx *redis.Tx) error {
			kept, err := tx.ZRange(ctx, times, 0, -1).Result()
			if err != nil {
				return err
			}
			known := false
			for _, k := range kept {
				known = known || k == name
			}
			surplus := int64(0)
			if !known {
				if surplus = int64(len(kept)) + 1 - b.max; surplus > 0 && name < kept[0] {
					late = true
					return nil
				}
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.ZIncrBy(ctx, views, 1, name)
				if !known {
					p.ZAdd(ctx, times, redis.Z{Score: float64(minute), Member: name})
				}
				for _, old := range kept[:max(surplus, 0)] {
					p.ZRem(ctx, times, old)
					p.ZRem(ctx, views, old)
				}
				return nil
			})
			return err
		}, times, views)
		switch {
		case errors.Is(err, redis.TxFailedErr): // another client has changed the keys: try again
		case err != nil:
			return "", err
		case late:
			return "", nil
		default:
			return name, nil
		}
	}
}

// recent returns the newest buckets and their counts: "we can rest assured we
// will never return data for a bucket whose data we are no longer storing".
func (b *timeboxes) recent(ctx context.Context, url string, offset, limit int64) (counts []redis.Z, err error) {
	views, times := b.keys(url)
	for {
		counts = counts[:0]
		err := b.rdb.Watch(ctx, func(tx *redis.Tx) error {
			buckets, err := tx.ZRevRange(ctx, times, offset, offset+limit-1).Result()
			if err != nil || len(buckets) == 0 {
				return err
			}
			scores := make([]*redis.FloatCmd, len(buckets))
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				for i, bucket := range buckets {
					scores[i] = p.ZScore(ctx, views, bucket)
				}
				return nil
			})
			for i, bucket := range buckets {
				counts = append(counts, redis.Z{Score: scores[i].Val(), Member: bucket})
			}
			return err
		}, times)
		if !errors.Is(err, redis.TxFailedErr) {
			return counts, err
		}
	}
}

// TestTimeboxes checks counts by concurrent writers, while a reader reads: each view is
// counted once, and both sets have the same buckets.
func TestTimeboxes(t *testing.T) {
	parallel(t)
	dial := connect(t)
	ctx := context.Background()
	const (
		writers    = 16
		increments = 40
		maxBuckets = 5
		url        = "/front"
	)
	clock := newClock()
	counted := make([]map[string]float64, writers)
	stop := make(chan struct{})
	var reader, wg sync.WaitGroup
	reader.Go(func() {
		b := &timeboxes{dial(), clock.Now, maxBuckets}
		for {
			select {
			case <-stop:
				return
			default:
			}
			counts, err := b.recent(ctx, url, 0, maxBuckets+1)
			if err != nil || len(counts) > maxBuckets {
				t.Errorf("recent: %d buckets, want at most %d (%v)", len(counts), maxBuckets, err)
				return
			}
			for _, c := range counts {
				if c.Score < 1 {
					t.Errorf("bucket %v has no count", c.Member)
				}
			}
		}
	})
	for w := range writers {
		wg.Go(func() {
			counted[w] = map[string]float64{}
			b := &timeboxes{dial(), clock.Now, maxBuckets}
			for i := range increments {
				if i%4 == 3 {
					clock.Advance(5 * time.Second) // writers × increments / 4 times: 13 minutes
				}
				bucket, err := b.increment(ctx, url)
				if err != nil {
					t.Error(err)
					return
				}
				counted[w][bucket]++
			}
		})
	}
	wg.Wait()
	close(stop)
	reader.Wait()

	want := map[string]float64{}
	for _, m := range counted {
		for bucket, n := range m {
			want[bucket] += n
		}
	}
	rdb := dial()
	b := &timeboxes{rdb, clock.Now, maxBuckets}
	counts := must[[]redis.Z](t)(b.recent(ctx, url, 0, 100))
	if len(counts) != maxBuckets {
		t.Errorf("%d buckets exist, want %d", len(counts), maxBuckets)
	}
	for _, c := range counts {
		if bucket := c.Member.(string); c.Score != want[bucket] {
			t.Errorf("bucket %s counts %v, want %v", bucket, c.Score, want[bucket])
		}
	}
	views, times := b.keys(url)
	for i, member := range must[[]string](t)(rdb.ZRange(ctx, times, 0, -1).Result()) {
		if _, err := rdb.ZScore(ctx, views, member).Result(); err != nil || i >= maxBuckets {
			t.Errorf("bucket %d, %s, is in one set only (%v)", i, member, err)
		}
	}
	if n := must[int64](t)(rdb.ZCard(ctx, views).Result()); n != maxBuckets {
		t.Errorf("%d counts, want %d", n, maxBuckets)
	}
	if top := must[[]redis.Z](t)(rdb.ZRevRangeWithScores(ctx, views, 0, 0).Result()); top[0].Score < 1 {
		t.Errorf("the bucket with the highest count is %v", top)
	}
}
