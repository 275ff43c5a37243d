//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestMigrateForward moves a server under load and lets it forward: its clients stay, and
// no command fails before, during or after the switch. Nothing is lost or applied twice,
// neither are transactions. In the cluster, slots move meanwhile.
func TestMigrateForward(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (to string, c redis.UniversalClient, disturb func()){
		"redis": func(t *testing.T) (string, redis.UniversalClient, func()) {
			addr := startRedis(t)
			return "redis://" + addr, redis.NewClient(&redis.Options{Addr: addr}), func() {}
		},
		"zsetd": func(t *testing.T) (string, redis.UniversalClient, func()) {
			addr := servertest.Run(t).Addr()
			return "redis://" + addr, redis.NewClient(&redis.Options{Addr: addr}), func() {}
		},
		"cluster": func(t *testing.T) (string, redis.UniversalClient, func()) {
			nodes := startCluster(t)
			c := clusterClient(t, nodes)
			return "redis://" + nodes[0] + "," + nodes[1] + "?cluster", c, func() { reshard(t, c, nodes[0], 400) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			to, target, disturb := start(t)
			defer target.Close()
			testMigrateForward(t, to, target, disturb)
		})
	}
}

// reshard moves slots from one primary to another.
func reshard(t *testing.T, c *redis.ClusterClient, node string, slots int) {
	t.Helper()
	//lint:ignore SA1019 Redis has CLUSTER SHARDS since 7.0 only
	ranges := must[[]redis.ClusterSlot](t)(c.ClusterSlots(context.Background()).Result())
	var ids []string
	for _, s := range ranges {
		if id := s.Nodes[0].ID; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	redisCLI(t, "--cluster", "reshard", node, "--cluster-from", ids[0], "--cluster-to", ids[1], "--cluster-slots", fmt.Sprint(slots), "--cluster-yes")
}

func testMigrateForward(t *testing.T, to string, target redis.UniversalClient, disturb func()) {
	source := servertest.Run(t, primaryOptions())
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: source.Addr(), ReadTimeout: -1, MaxRetries: -1})
	defer rdb.Close()
	writes := of(15_000, 100_000)
	bin := buildZsetd(t)
	l := startLoad(t, source.Addr(), 4, 1000, writes)

	// Transactions of two keys, one of which is read and watched, and a queue.
	stop := make(chan struct{})
	var others sync.WaitGroup
	var pairs, taken atomic.Int64
	more := func() bool {
		select {
		case <-stop:
			return false
		default:
			return !t.Failed()
		}
	}
	others.Go(func() {
		for more() {
			err := rdb.Watch(ctx, func(tx *redis.Tx) error {
				n, err := tx.Get(ctx, "{pair}a").Int64()
				if err != nil && err != redis.Nil {
					return err
				}
				_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
					p.Set(ctx, "{pair}a", n+1, 0)
					p.Incr(ctx, "{pair}b")
					return nil
				})
				return err
			}, "{pair}a")
			switch {
			case err == nil:
				pairs.Add(1)
			case !errors.Is(err, redis.TxFailedErr):
				t.Errorf("transaction: %v", err)
			}
		}
	})
	others.Go(func() {
		for more() {
			n, err := rdb.Incr(ctx, "handed:number").Result()
			if err == nil {
				err = rdb.LPush(ctx, "handed", n).Err()
			}
			if err != nil {
				t.Errorf("LPUSH: %v", err)
				return
			}
			wait.Until(t, "the element is taken", func() bool { return t.Failed() || taken.Load() == n })
		}
	})
	others.Go(func() {
		for more() {
			got, err := rdb.BRPop(ctx, time.Second, "handed").Result()
			switch {
			case err == redis.Nil:
			case err != nil || got[1] != fmt.Sprint(taken.Add(1)):
				t.Errorf("BRPOP: got %q after %d, %v", got, taken.Load(), err)
				return
			}
		}
	})
	subscriber := rdb.Subscribe(ctx, "done")
	defer subscriber.Close()
	must[any](t)(subscriber.Receive(ctx))

	x := startTool(t, bin, "redis://"+source.Addr(), to, "--observe", "0s", "--force", "--forward")
	x.says(t, "the copy is complete")
	if err := x.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	x.says(t, "forwards; CONFIG REWRITE")
	x.says(t, "moved redis://")
	if err := <-x.ended; err != nil {
		t.Fatal(err)
	}
	switched := l.done.Load()
	if switched == 4*int64(writes) {
		t.Fatal("all writes were done before the switch: the test shows nothing")
	}
	disturb()
	wait.Until(t, "the writers end", func() bool { return t.Failed() || l.done.Load() == 4*int64(writes) })
	close(stop)
	others.Wait()
	l.end(t, target)
	a := must[int64](t)(target.Get(ctx, "{pair}a").Int64())
	b := must[int64](t)(target.Get(ctx, "{pair}b").Int64())
	if a != b || a != pairs.Load() {
		t.Errorf("%d transactions have made the pair %d and %d", pairs.Load(), a, b)
	}
	t.Logf("%d writes before the end of the move, %d transactions, %d elements handed over", switched, a, taken.Load())
	must[int64](t)(target.Publish(ctx, "done", "yes").Result())
	if m := must[*redis.Message](t)(subscriber.ReceiveMessage(ctx)); m.Payload != "yes" {
		t.Errorf("the subscriber receives %q", m.Payload)
	}
	info := source.Must("INFO", "replication").(string)
	if !strings.Contains(info, "forward_to:redis://") {
		t.Errorf("the source does not forward: %s", info)
	}
}
