//go:build unix

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

// valkey returns the path of a Valkey 9 server; without one it skips the test.
func valkey(t *testing.T) string {
	t.Helper()
	path := os.Getenv("ZSETD_JUDGE_VALKEY9")
	if path == "" {
		t.Skip("ZSETD_JUDGE_VALKEY9 does not name a valkey-server")
	}
	return path
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
	bin := binary.Path(t)
	l := startLoad(t, source.Addr(), 4, 1000, 0)

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
			if !wait.Holds(func() bool { return t.Failed() || taken.Load() == n }) {
				t.Errorf("element %d is not taken", n)
				return
			}
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
	disturb()
	enough := l.done.Load() + int64(of(10_000, 300_000))
	wait.Until(t, "the writers go on", func() bool { return t.Failed() || l.done.Load() >= enough })
	l.finish()
	close(stop)
	others.Wait()
	l.end(t, target)
	a := must[int64](t)(target.Get(ctx, "{pair}a").Int64())
	b := must[int64](t)(target.Get(ctx, "{pair}b").Int64())
	if a != b || a != pairs.Load() {
		t.Errorf("%d transactions have made the pair %d and %d", pairs.Load(), a, b)
	}
	t.Logf("%d of %d writes before the end of the move, %d transactions, %d elements handed over", switched, l.done.Load(), a, taken.Load())
	must[int64](t)(target.Publish(ctx, "done", "yes").Result())
	if m := must[*redis.Message](t)(subscriber.ReceiveMessage(ctx)); m.Payload != "yes" {
		t.Errorf("the subscriber receives %q", m.Payload)
	}
	info := source.Must("INFO", "replication").(string)
	if !strings.Contains(info, "forward_to:redis://") {
		t.Errorf("the source does not forward: %s", info)
	}
}

// TestForwardCluster checks the commands whose place in a cluster is not that of one key,
// and transactions and messages there while slots move.
func TestForwardCluster(t *testing.T) {
	nodes := startCluster(t)
	cluster := clusterClient(t, nodes)
	ctx := context.Background()
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		return c.ConfigSet(ctx, "notify-keyspace-events", "KEA").Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	source := servertest.Run(t)
	source.Must("CONFIG", "SET", "forward-to", "redis://"+nodes[0]+"?cluster")
	rdb := redis.NewClient(&redis.Options{Addr: source.Addr(), MaxRetries: -1, ReadTimeout: 30 * time.Second})
	defer rdb.Close()

	pipe := rdb.Pipeline()
	for i := range 200 {
		pipe.Set(ctx, fmt.Sprint("k", i), i, 0)
		pipe.Get(ctx, fmt.Sprint("k", i))
	}
	for i, r := range must[[]redis.Cmder](t)(pipe.Exec(ctx)) {
		if got, ok := r.(*redis.StringCmd); ok && got.Val() != fmt.Sprint(i/2) {
			t.Errorf("reply %d is %q", i, got.Val())
		}
	}
	fails := func(part string, args ...any) {
		t.Helper()
		if err := rdb.Do(ctx, args...).Err(); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v, want an error with %q", args, err, part)
		}
	}
	chosen := map[byte]bool{} // the last characters of keys
	for range 100 {
		key := must[string](t)(rdb.RandomKey(ctx).Result())
		if n, err := strconv.Atoi(strings.TrimPrefix(key, "k")); err != nil || n < 0 || n >= 200 {
			t.Fatalf("RANDOMKEY: %q", key)
		}
		chosen[key[len(key)-1]] = true
	}
	if len(chosen) < 5 {
		t.Errorf("100 times RANDOMKEY: keys that end with %v", chosen)
	}
	if n := must[int64](t)(rdb.DBSize(ctx).Result()); n != 200 {
		t.Errorf("DBSIZE: %d keys of 200", n)
	}
	all := must[[]string](t)(rdb.Keys(ctx, "k*").Result())
	if slices.Sort(all); len(slices.Compact(all)) != 200 {
		t.Errorf("KEYS: %d keys of 200", len(all))
	}
	if got := must[[]string](t)(rdb.Keys(ctx, "none*").Result()); len(got) != 0 {
		t.Errorf("KEYS: %q", got)
	}
	for _, count := range []int64{1, 7, 1000} {
		found := map[string]bool{}
		calls := 0
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			var keys []string
			var err error
			if keys, cursor, err = rdb.ScanType(ctx, cursor, "k*", count, "string").Result(); err != nil {
				t.Fatal(err)
			}
			for _, k := range keys {
				found[k] = true
			}
			if calls++; calls > 1000 {
				t.Fatal("the scan does not end")
			}
		}
		if len(found) != 200 || calls < 3 {
			t.Errorf("SCAN with COUNT %d: %d keys of 200 in %d calls", count, len(found), calls)
		}
	}
	fails("invalid cursor", "SCAN", "x")
	fails("invalid cursor", "SCAN", "-1")
	fails("syntax error", "SCAN", 0, "COUNT")
	fails("invalid cursor", "SCAN", "9223372036854775808")
	if _, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error { p.DBSize(ctx); return nil }); err == nil || !strings.Contains(err.Error(), "concerns all keys") {
		t.Errorf("DBSIZE in a transaction: %v", err)
	}
	fails("CROSSSLOT", "MGET", "k1", "k2")
	if _, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error { p.RandomKey(ctx); return nil }); err == nil || !strings.Contains(err.Error(), "concerns all keys") {
		t.Errorf("RANDOMKEY in a transaction: %v", err)
	}

	// Commands of zsetd run as functions.
	fails("Function not found", "ZADDEX", "{z}", "EX", 60, "MEMBERS", 1, 5, "m")
	library := must[[]byte](t)(os.ReadFile("../../cmd/zsetd/zsetd.lua"))
	must[string](t)(rdb.FunctionLoad(ctx, string(library)).Result())
	for i := range 20 {
		key := fmt.Sprint("z", i)
		if n := must[any](t)(rdb.Do(ctx, "ZADDEX", key, "EX", 60, "MEMBERS", 1, 5, "m").Result()); n != int64(1) {
			t.Errorf("ZADDEX %s: %v", key, n)
		}
	}
	replies := must[[]redis.Cmder](t)(rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.ZAdd(ctx, "{z}", redis.Z{Score: 1, Member: "a"})
		p.Do(ctx, "ZADDEX", "{z}", "EX", 60, "MEMBERS", 1, 5, "m")
		p.Do(ctx, "ZTTL", "{z}", "MEMBERS", 2, "a", "m")
		return nil
	}))
	if got := fmt.Sprint(replies[1].(*redis.Cmd).Val(), replies[2].(*redis.Cmd).Val()); got != "1 [-1 60]" {
		t.Errorf("ZADDEX and ZTTL in a transaction: %s", got)
	}
	fails("unknown command", "BZCLAIM", 1, 1, "{z}", 0, 1, 2)
	for i := range 20 {
		must[int64](t)(rdb.Del(ctx, fmt.Sprint("z", i)).Result())
	}
	script := redis.NewScript("return redis.call('incr', KEYS[1])")
	must[string](t)(script.Load(ctx, rdb).Result())
	for i := range 20 {
		must[any](t)(rdb.EvalSha(ctx, script.Hash(), []string{fmt.Sprint("s", i)}).Result())
	}
	must[int64](t)(rdb.Publish(ctx, "any", "message").Result())

	watched := func(keys ...string) error {
		return rdb.Watch(ctx, func(tx *redis.Tx) error {
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Incr(ctx, "{t}a")
				p.Incr(ctx, "{t}b")
				return nil
			})
			return err
		}, keys...)
	}
	if err := watched("{t}a"); err != nil {
		t.Error(err)
	}
	slot := cluster.ClusterKeySlot(ctx, "{t}a").Val()
	from, into := ownerAndOther(t, cluster, slot)
	elsewhere := must[[]string](t)(into.Keys(ctx, "k*").Result())[0]
	if err := watched(elsewhere); err == nil || !strings.Contains(err.Error(), "CROSSSLOT") {
		t.Errorf("a transaction with keys of other slots than the watched ones: %v", err)
	}
	if _, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Incr(ctx, "k1"); p.Incr(ctx, "k2"); return nil }); err == nil || !strings.Contains(err.Error(), "CROSSSLOT") {
		t.Errorf("a transaction with keys of several slots: %v", err)
	}

	events := rdb.PSubscribe(ctx, "__keyevent@0__:incrby")
	defer events.Close()
	must[any](t)(events.Receive(ctx))
	shards := rdb.SSubscribe(ctx, "shard1", "shard2", "shard3")
	defer shards.Close()
	for range 3 {
		must[any](t)(shards.Receive(ctx))
	}
	// The slot of {t} is moved by hand, and is in the state in which ASK is replied.
	do := func(c *redis.Client, args ...any) { t.Helper(); must[any](t)(c.Do(ctx, args...).Result()) }
	fromID := must[string](t)(from.Do(ctx, "CLUSTER", "MYID").Text())
	intoID := must[string](t)(into.Do(ctx, "CLUSTER", "MYID").Text())
	do(into, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
	do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", intoID)
	if _, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Incr(ctx, "{t}new1"); p.Incr(ctx, "{t}new1"); return nil }); err != nil {
		t.Errorf("a transaction while its slot moves: %v", err)
	}
	must[int64](t)(rdb.Incr(ctx, "{t}new2").Result())
	host, port, _ := strings.Cut(into.Options().Addr, ":")
	for _, key := range must[[]string](t)(from.ClusterGetKeysInSlot(ctx, int(slot), 100).Result()) {
		do(from, "MIGRATE", host, port, key, 0, 5000)
	}
	do(into, "CLUSTER", "SETSLOT", slot, "NODE", intoID)
	do(from, "CLUSTER", "SETSLOT", slot, "NODE", intoID)
	if got := must[int64](t)(rdb.Incr(ctx, "{t}new1").Result()); got != 3 {
		t.Errorf("the counter is %d, want 3", got)
	}
	if got := must[int64](t)(rdb.Incr(ctx, "{t}new2").Result()); got != 2 {
		t.Errorf("the counter is %d, want 2", got)
	}
	for i := range 30 {
		must[int64](t)(rdb.Incr(ctx, fmt.Sprint("event", i)).Result())
	}
	seen := map[string]bool{}
	for !seen["event29"] || len(seen) < 30 {
		m := must[*redis.Message](t)(events.ReceiveMessage(ctx))
		if strings.HasPrefix(m.Payload, "event") {
			if seen[m.Payload] {
				t.Errorf("the event of %s has come twice", m.Payload)
			}
			seen[m.Payload] = true
		}
	}
	for _, channel := range []string{"shard1", "shard2", "shard3"} {
		must[int64](t)(rdb.SPublish(ctx, channel, "m "+channel).Result())
		if m := must[*redis.Message](t)(shards.ReceiveMessage(ctx)); m.Payload != "m "+channel {
			t.Errorf("got %q of %s", m.Payload, channel)
		}
	}
}

// ownerAndOther returns clients of the primary that has a slot, and of another primary.
func ownerAndOther(t *testing.T, c *redis.ClusterClient, slot int64) (owner, other *redis.Client) {
	t.Helper()
	var mu sync.Mutex
	//lint:ignore SA1019 Redis has CLUSTER SHARDS since 7.0 only
	ranges := must[[]redis.ClusterSlot](t)(c.ClusterSlots(context.Background()).Result())
	has := ""
	for _, r := range ranges {
		if int64(r.Start) <= slot && slot <= int64(r.End) {
			has = r.Nodes[0].Addr
		}
	}
	err := c.ForEachMaster(context.Background(), func(_ context.Context, n *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		if n.Options().Addr == has {
			owner = n
		} else {
			other = n
		}
		return nil
	})
	if err != nil || owner == nil || other == nil {
		t.Fatalf("no owner of slot %d: %v", slot, err)
	}
	return owner, other
}
