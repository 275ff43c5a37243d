//go:build unix

package e2e

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest"
)

// TestMigrateRecipesToCluster runs the four recipes, by FCALL, again and again while zsetd
// migrate moves their data to a Redis Cluster of three primaries, and after the cut-over,
// from which on the source answers their clients from the cluster. The rounds during which
// that happens lose nothing, and do nothing twice.
func TestMigrateRecipesToCluster(t *testing.T) {
	nodes := startCluster(t)
	source := servertest.Run(t, primaryOptions())
	ctx := context.Background()
	c := redis.NewClient(&redis.Options{Addr: source.Addr(), MaxRetries: -1, ReadTimeout: time.Minute, PoolSize: 40})
	defer c.Close()
	library := string(must[[]byte](t)(os.ReadFile("../../cmd/zsetd/zsetd.lua")))
	if err := c.FunctionLoadReplace(ctx, library).Err(); err != nil {
		t.Fatal(err)
	}
	var moved atomic.Bool
	var all sync.WaitGroup
	var before, during, after atomic.Int64 // rounds
	for name, recipe := range recipesByFunctions() {
		all.Go(func() {
			t.Run(name, func(t *testing.T) {
				for i := 0; !t.Failed(); i++ {
					began := moved.Load()
					recipe(t, c, fmt.Sprint("round", i, ":"))
					switch {
					case began:
						after.Add(1)
						return
					case moved.Load():
						during.Add(1)
					default:
						before.Add(1)
					}
				}
			})
		})
	}
	to := "redis://" + nodes[0] + "," + nodes[1] + "?cluster"
	x := startTool(t, binary.Path(t), "redis://"+source.Addr(), to, "--functions", "--observe", "0s", "--verify", "all", "--forward")
	x.cutOver(t)
	moved.Store(true)
	all.Wait()
	t.Logf("%d rounds before the cut-over, %d across it, %d after it", before.Load(), during.Load(), after.Load())
}
