package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestRecipesOnCluster runs the four recipes by FCALL on zsetd as a cluster of one node,
// and the same code on a Redis Cluster of three primaries that have the function library.
func TestRecipesOnCluster(t *testing.T) {
	library := string(must[[]byte](t)(os.ReadFile("../../cmd/zsetd/zsetd.lua")))
	one := servertest.Run(t, server.Options{Config: map[string]string{"cluster-enabled": "yes"}})
	for name, addrs := range map[string][]string{"zsetd": {one.Addr()}, "redis": startCluster(t)} {
		t.Run(name, func(t *testing.T) {
			c := clusterClient(t, addrs)
			ctx := context.Background()
			if err := c.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
				return c.FunctionLoadReplace(ctx, library).Err()
			}); err != nil {
				t.Fatal(err)
			}
			for name, recipe := range recipesByFunctions() {
				t.Run(name, func(t *testing.T) { recipe(t, c, "") })
			}
		})
	}
}

// recipesByFunctions returns the recipes by name. Each is complete in itself. The arguments
// are a client and the beginning of the names of keys.
func recipesByFunctions() map[string]func(*testing.T, redis.UniversalClient, string) {
	return map[string]func(*testing.T, redis.UniversalClient, string){
		"live events": liveEventsByFunctions, "timeboxes": timeboxesByFunctions,
		"folder": folderByFunctions, "waiting list": waitingListByFunctions,
	}
}

// liveEventsByFunctions checks pages whose events disappear at their deadlines.
func liveEventsByFunctions(t *testing.T, c redis.UniversalClient, prefix string) {
	ctx := context.Background()
	for page := range 50 {
		key := fmt.Sprint(prefix, "news:", page)
		for i := range 4 {
			must[any](t)(c.FCall(ctx, "zaddex", []string{key}, "PX", []int{50, 3_600_000}[i%2], "MEMBERS", 1, "@now", fmt.Sprint("story ", i)).Result())
		}
	}
	for page := range 50 {
		key := fmt.Sprint(prefix, "news:", page)
		wait.Until(t, "events expire", func() bool {
			must[any](t)(c.FCall(ctx, "zpurge", []string{key}).Result())
			return must[int64](t)(c.ZCard(ctx, key).Result()) <= 2
		})
		got := must[[]string](t)(c.ZRange(ctx, key, 0, -1).Result())
		slices.Sort(got)
		if !slices.Equal(got, []string{"story 1", "story 3"}) {
			t.Fatalf("%s has %q", key, got)
		}
	}
}

// timeboxesByFunctions checks that each of many hits by several clients is counted once.
func timeboxesByFunctions(t *testing.T, c redis.UniversalClient, prefix string) {
	ctx := context.Background()
	end := time.Now().Add(time.Hour).UnixMilli()
	var mu sync.Mutex
	var wg sync.WaitGroup
	replies := map[string][]int{}
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				key := fmt.Sprint(prefix, "hits:/", i%20)
				n, err := c.FCall(ctx, "zaddex", []string{key}, "INCR", "PXAT", end, "MEMBERS", 1, 1, "bucket").Text()
				count, err2 := strconv.Atoi(n)
				if err := errors.Join(err, err2); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				replies[key] = append(replies[key], count)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for key, list := range replies {
		slices.Sort(list)
		for i, n := range list {
			if n != i+1 {
				t.Fatalf("%s: reply %d of %d is %d", key, i+1, len(list), n)
			}
		}
	}
	if len(replies) != 20 {
		t.Errorf("%d pages, want 20", len(replies))
	}
}

// folderByFunctions folds events into groups, which workers claim when they are due. A
// transaction has the keys of a folder, so these share a hash tag.
func folderByFunctions(t *testing.T, c redis.UniversalClient, prefix string) {
	ctx := context.Background()
	const folders, groups, events = 5, 4, 3
	for f := range folders {
		tag := fmt.Sprintf("{%sfolder%d}", prefix, f)
		for e := range groups * events {
			group := fmt.Sprint("account_", e%groups)
			if _, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.FCall(ctx, "zaddex", []string{tag + "due"}, "NX", "MEMBERS", 1, "@now", group)
				p.ZIncrBy(ctx, tag+"due", 0.000001, group)
				p.FCall(ctx, "zaddex", []string{tag + "details:" + group}, "MEMBERS", 1, "@now", fmt.Sprint("event ", e))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var mu sync.Mutex
	published := map[string]int{}
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for f := range folders {
				tag := fmt.Sprintf("{%sfolder%d}", prefix, f)
				for {
					taken, err := c.FCall(ctx, "zclaim", []string{tag + "due"}, "-inf", "@now", "@now+30s", "COUNT", 1).StringSlice()
					if err != nil {
						t.Error(err)
						return
					}
					if len(taken) == 0 {
						break
					}
					group := taken[0]
					lease := must[float64](t)(c.ZScore(ctx, tag+"due", group).Result())
					details := must[[]string](t)(c.ZRange(ctx, tag+"details:"+group, 0, -1).Result())
					mu.Lock()
					published[tag+group] += len(details)
					mu.Unlock()
					if _, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
						p.FCall(ctx, "zremifeq", []string{tag + "due"}, strconv.FormatFloat(lease, 'f', 6, 64), group)
						p.Del(ctx, tag+"details:"+group)
						return nil
					}); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	workers.Wait()
	for key, n := range published {
		if n != events {
			t.Errorf("%s: %d events were published, want %d", key, n, events)
		}
	}
	if len(published) != folders*groups {
		t.Errorf("%d groups were published, want %d", len(published), folders*groups)
	}
}

// waitingListByFunctions checks that clients have ranks in the order of their arrival,
// keep them while they check in, and that a room is never overfilled.
func waitingListByFunctions(t *testing.T, c redis.UniversalClient, prefix string) {
	ctx := context.Background()
	for i := range 40 {
		user := fmt.Sprint("user", i)
		must[any](t)(c.FCall(ctx, "zaddex", []string{prefix + "club"}, "EX", 3600, "MEMBERS", 1, "*", user).Result())
		if rank := must[int64](t)(c.ZRank(ctx, prefix+"club", user).Result()); rank != int64(i) {
			t.Fatalf("%s has rank %d", user, rank)
		}
	}
	must[any](t)(c.FCall(ctx, "zaddex", []string{prefix + "club"}, "EX", 3600, "MEMBERS", 1, "*", "user7").Result())
	must[int64](t)(c.ZRem(ctx, prefix+"club", "user0", "user3").Result())
	if rank := must[int64](t)(c.ZRank(ctx, prefix+"club", "user7").Result()); rank != 5 {
		t.Errorf("user7 has rank %d, want 5", rank)
	}
	inside := 0
	for i := range 10 {
		err := c.FCall(ctx, "zaddex", []string{prefix + "room"}, "EX", 3600, "MAXLEN", 3, "REJECT", "MEMBERS", 1, "*", fmt.Sprint("user", i)).Err()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		if err == nil {
			inside++
		}
	}
	if n := must[int64](t)(c.ZCard(ctx, prefix+"room").Result()); inside != 3 || n != 3 {
		t.Errorf("%d were admitted and %d are inside, want 3", inside, n)
	}
}

// TestClusterIsStrict checks that zsetd with cluster-enabled refuses what a node of a
// cluster refuses, with its words, so that development finds keys that need a hash tag.
func TestClusterIsStrict(t *testing.T) {
	one := servertest.Run(t, server.Options{Config: map[string]string{"cluster-enabled": "yes"}})
	nodes := startCluster(t)
	ctx := context.Background()
	for _, line := range []string{
		"MSET a 1 b 2", "SINTER a b", "RENAME a b", "EVAL return 2 a b", "DEL a b", "XREAD STREAMS a b 0 0", "SELECT 1", "SWAPDB 0 1", "MOVE b 1", "COPY b b DB 1",
	} {
		words := strings.Fields(line)
		var args []any
		for _, w := range words {
			args = append(args, w)
		}
		var replies []string
		for _, addr := range []string{one.Addr(), nodes[0]} {
			c := redis.NewClient(&redis.Options{Addr: addr})
			err := c.Do(ctx, args...).Err()
			replies = append(replies, fmt.Sprint(err))
			c.Close()
		}
		if replies[0] != replies[1] {
			t.Errorf("%s: zsetd replies %q, a node of a cluster %q", line, replies[0], replies[1])
		}
		if !strings.HasPrefix(replies[0], "CROSSSLOT") && !strings.HasPrefix(replies[0], "ERR") {
			t.Errorf("%s is not refused: %s", line, replies[0])
		}
	}
}
