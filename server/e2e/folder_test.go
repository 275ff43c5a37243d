//lint:file-ignore SA1019 The system is as its author wrote it, deprecated commands included.

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// folder implements "Event Folder": "Since the sorted set can only have unique values,
// we can use it to 'fold' a group of events into a single event", with the time
// of the last event as its score, and the details in a set beside it.
type folder struct {
	rdb    *redis.Client
	now    func() time.Time
	window time.Duration // "the minimum duration of time at which similar events will be folded"
}

type postMetricUpdated struct {
	PostID  string             `json:"id"`
	Account string             `json:"account_id"`
	Metrics map[string]float64 `json:"metrics"`
}

// folded is the event that is published after the last update of its group.
type folded struct {
	Account string   `json:"account_id"`
	Metrics []string `json:"metrics"`
}

const folderKey = "folder"

func detailsKey(group string) string { return "metrics:" + group }

// add folds an event and reports whether it was the first of its group: "the
// number of folded events is measured by how many times the ZADD operation
// returns 0".
func (f *folder) add(ctx context.Context, e postMetricUpdated) (first bool, err error) {
	// The group key has no "uniquely identifying information".
	group, err := json.Marshal(map[string]string{"account_id": e.Account})
	if err != nil {
		return false, err
	}
	var added *redis.IntCmd
	_, err = f.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for metric := range e.Metrics {
			p.SAdd(ctx, detailsKey(string(group)), metric)
		}
		added = p.ZAdd(ctx, folderKey, redis.Z{Score: score(f.now()), Member: string(group)})
		return nil
	})
	return added.Val() == 1, err
}

// due publishes and removes the groups that were not updated for a window: "two
// separate commands … This means a folded event can be published more than
// once." The reply of ZREM shows which worker has removed it.
func (f *folder) due(ctx context.Context, publish func(e folded, removed bool)) error {
	limit := strconv.FormatFloat(score(f.now().Add(-f.window)), 'f', -1, 64)
	groups, err := f.rdb.ZRangeByScore(ctx, folderKey, &redis.ZRangeBy{Min: "-inf", Max: limit}).Result()
	if err != nil {
		return err
	}
	for _, group := range groups {
		var e folded
		if err := json.Unmarshal([]byte(group), &e); err != nil {
			return err
		}
		if e.Metrics, err = f.rdb.SMembers(ctx, detailsKey(group)).Result(); err != nil {
			return err
		}
		slices.Sort(e.Metrics)
		removed, err := f.rdb.ZRem(ctx, folderKey, group).Result()
		if err != nil {
			return err
		}
		if err := f.rdb.Del(ctx, detailsKey(group)).Err(); err != nil {
			return err
		}
		publish(e, removed == 1)
	}
	return nil
}

// TestFolderSixEvents checks which of six events are the first of their groups, and when
// each group is published.
func TestFolderSixEvents(t *testing.T) {
	parallel(t)
	dial := connect(t)
	ctx := context.Background()
	clock := newClock()
	f := &folder{dial(), clock.Now, 5 * time.Minute}
	total, firsts, again := 0, 0, 0
	for i, e := range []string{
		`{"id": "post_1", "account_id": "account_1", "metrics": {"likes": 10, "shares": 5}}`,
		`{"id": "post_2", "account_id": "account_1", "metrics": {"comments": 25, "impressions": 16}}`,
		`{"id": "post_3", "account_id": "account_1", "metrics": {"likes": 5, "shares": 2}}`,
		`{"id": "post_4", "account_id": "account_1", "metrics": {"comments": 33, "impressions": 8}}`,
		`{"id": "post_5", "account_id": "account_2", "metrics": {"likes": 12, "shares": 15}}`,
		`{"id": "post_6", "account_id": "account_2", "metrics": {"likes": 3, "shares": 1}}`,
	} {
		var event postMetricUpdated
		if err := json.Unmarshal([]byte(e), &event); err != nil {
			t.Fatal(err)
		}
		clock.Advance(time.Minute)
		first := must[bool](t)(f.add(ctx, event))
		if want := i == 0 || i == 4; first != want {
			t.Errorf("event %d: first is %v, want %v", i+1, first, want)
		}
		total++
		if first {
			firsts++
		} else {
			again++
		}
	}
	var got []folded
	collect := func(e folded, removed bool) {
		if !removed {
			t.Errorf("%v: ZREM returned 0, want 1", e)
		}
		got = append(got, e)
	}
	if err := f.due(ctx, collect); err != nil || len(got) > 0 {
		t.Fatalf("published before the end of the window: %v (%v)", got, err)
	}
	clock.Advance(3 * time.Minute) // 5 minutes after event 4, 3 after event 6
	if err := f.due(ctx, collect); err != nil {
		t.Fatal(err)
	}
	clock.Advance(2 * time.Minute)
	if err := f.due(ctx, collect); err != nil {
		t.Fatal(err)
	}
	want := []folded{{"account_1", []string{"comments", "impressions", "likes", "shares"}}, {"account_2", []string{"likes", "shares"}}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("published %v, want %v", got, want)
	}
	// F_R = Count(ZADD == 0) / (N_Total - Count(ZADD == 1))
	if ratio := float64(again) / float64(total-firsts); firsts != 2 || ratio != 1 {
		t.Errorf("%d new events, folding ratio %v, want 2 and 1", firsts, ratio)
	}
	if n := must[int64](t)(f.rdb.DBSize(ctx).Result()); n != 0 {
		t.Errorf("DBSIZE: got %d, want 0", n)
	}
}

// TestFolderConcurrent checks concurrent publishers, then concurrent workers: each group
// has one first event, and one worker removes it.
func TestFolderConcurrent(t *testing.T) {
	parallel(t)
	dial := connect(t)
	ctx := context.Background()
	const publishers, events, accounts, workers = 8, 500, 40, 8
	clock := newClock()
	var (
		mu     sync.Mutex
		firsts int
		want   = map[string]map[string]bool{}
		wg     sync.WaitGroup
	)
	for p := range publishers {
		wg.Go(func() {
			f := &folder{dial(), clock.Now, time.Minute}
			for i := range events {
				account, metric := fmt.Sprint("account_", (i*7+p)%accounts), fmt.Sprint("metric_", (i+p)%11)
				first, err := f.add(ctx, postMetricUpdated{Account: account, Metrics: map[string]float64{metric: 1}})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if first {
					firsts++
				}
				if want[account] == nil {
					want[account] = map[string]bool{}
				}
				want[account][metric] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if firsts != accounts {
		t.Errorf("ZADD returned 1 for %d events, want %d, one for each account", firsts, accounts)
	}
	clock.Advance(time.Hour)
	removals, metrics := map[string]int{}, map[string]map[string]bool{}
	for range workers {
		wg.Go(func() {
			f := &folder{dial(), clock.Now, time.Minute}
			err := f.due(ctx, func(e folded, removed bool) {
				mu.Lock()
				defer mu.Unlock()
				if removed {
					removals[e.Account]++
				}
				if metrics[e.Account] == nil {
					metrics[e.Account] = map[string]bool{}
				}
				for _, m := range e.Metrics {
					metrics[e.Account][m] = true
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if fmt.Sprint(metrics) != fmt.Sprint(want) {
		t.Errorf("published %v\nwant %v", metrics, want)
	}
	for account := range want {
		if removals[account] != 1 {
			t.Errorf("%s was removed %d times, want once", account, removals[account])
		}
	}
}
