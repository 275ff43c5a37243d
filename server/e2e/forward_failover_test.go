//go:build unix

package e2e

import (
	"context"
	"fmt"
	"net"
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

// TestForwardFailover kills a node of the cluster to which a server forwards, and the
// cluster promotes its replica. Commands fail with an error that says whether they may
// have run, until the replica has the slots; then they run there, and its messages and
// events arrive, each once. The only address that the forwarder was given is that of the
// node which is killed.
func TestForwardFailover(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		testForwardFailover(t, "redis-server")
	})
	t.Run("valkey", func(t *testing.T) {
		t.Parallel()
		testForwardFailover(t, valkey(t))
	})
}

func testForwardFailover(t *testing.T, program string) {
	nodes := startClusterOf(t, program, time.Second)
	cluster := clusterClient(t, nodes)
	ctx := context.Background()
	for _, addr := range nodes {
		c := redis.NewClient(&redis.Options{Addr: addr})
		must[string](t)(c.ConfigSet(ctx, "notify-keyspace-events", "Eg$").Result())
		c.Close()
	}
	slot := cluster.ClusterKeySlot(ctx, "shard").Val()
	victim, _ := ownerAndOther(t, cluster, slot)
	addr := victim.Options().Addr
	source := servertest.Run(t)
	source.Must("CONFIG", "SET", "forward-to", "redis://"+addr+"?cluster")
	rdb := redis.NewClient(&redis.Options{Addr: source.Addr(), MaxRetries: -1, ReadTimeout: 30 * time.Second})
	defer rdb.Close()
	events := rdb.PSubscribe(ctx, "__keyevent@0__:incrby")
	defer events.Close()
	must[any](t)(events.Receive(ctx))
	shard := rdb.SSubscribe(ctx, "shard")
	defer shard.Close()
	must[any](t)(shard.Receive(ctx))

	// Writers of counters in all slots; some of these are at the node.
	const writers = 24
	acknowledged, doubtful := [writers]atomic.Int64{}, [writers]atomic.Int64{}
	stop := make(chan struct{})
	pause := new(sync.RWMutex) // held by the test while the writers wait
	var running sync.WaitGroup
	for i := range writers {
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				pause.RLock()
				_, err := rdb.Incr(ctx, fmt.Sprint("counter", i)).Result()
				pause.RUnlock()
				switch {
				case err == nil:
					acknowledged[i].Add(1)
				case strings.Contains(err.Error(), "the command may have run"):
					doubtful[i].Add(1)
				case strings.Contains(err.Error(), "the command has not run"), strings.HasPrefix(err.Error(), "CLUSTERDOWN"):
					wait.Pace(5 * time.Millisecond)
				default:
					t.Errorf("writer %d: %v", i, err)
					return
				}
			}
		})
	}
	progress := func(what string) {
		t.Helper()
		var before [writers]int64
		for i := range writers {
			before[i] = acknowledged[i].Load()
		}
		wait.Until(t, what, func() bool {
			for i := range writers {
				if acknowledged[i].Load() < before[i]+10 {
					return t.Failed()
				}
			}
			return true
		})
	}
	progress("all counters grow")
	pause.Lock() // the cluster loses what the node has acknowledged and its replica has not
	pid, err := strconv.Atoi(field(victim.Info(ctx, "server").Val(), "process_id"))
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the replica has the data", func() bool {
		info := victim.Info(ctx, "replication").Val()
		return strings.Contains(field(info, "slave0"), "offset="+field(info, "master_repl_offset")+",")
	})
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	pause.Unlock()
	progress("all counters grow after the failover")
	close(stop)
	running.Wait()
	nodes = slices.DeleteFunc(nodes, func(n string) bool { return n == addr })
	waitWithoutOwner(t, nodes, addr)
	cluster = clusterClient(t, nodes)
	for i := range writers {
		n := must[int64](t)(cluster.Get(ctx, fmt.Sprint("counter", i)).Int64())
		if sure, most := acknowledged[i].Load(), acknowledged[i].Load()+doubtful[i].Load(); n < sure || n > most {
			t.Errorf("counter %d is %d, of which %d are acknowledged and %d in doubt", i, n, sure, most-sure)
		}
	}
	// The subscriptions are at the new node, and only there.
	wait.Until(t, "a message of the channel arrives", func() bool {
		must[int64](t)(rdb.SPublish(ctx, "shard", "again").Result())
		m, err := shard.ReceiveTimeout(ctx, 50*time.Millisecond)
		if _, ok := m.(*redis.Message); ok {
			return true
		}
		return err == nil && t.Failed()
	})
	key := ""
	for i := 0; key == ""; i++ {
		if k := fmt.Sprint("event", i); cluster.ClusterKeySlot(ctx, k).Val() == slot || i > 1_000_000 {
			key = k
		}
	}
	wait.Until(t, "an event of the node arrives", func() bool {
		must[int64](t)(rdb.Incr(ctx, key).Result())
		for {
			m, err := events.ReceiveTimeout(ctx, 50*time.Millisecond)
			if e, ok := err.(net.Error); ok && e.Timeout() {
				return false
			}
			if m, ok := m.(*redis.Message); ok && m.Payload == key {
				return true
			}
		}
	})
	must[int64](t)(rdb.Incr(ctx, key).Result())
	last := "last" + key
	must[int64](t)(rdb.Incr(ctx, "{"+key+"}"+last).Result())
	seen := 0
	for {
		m := must[*redis.Message](t)(events.ReceiveMessage(ctx))
		if m.Payload == "{"+key+"}"+last {
			break
		}
		if m.Payload == key {
			seen++
		}
	}
	if seen != 1 {
		t.Errorf("the event of a change has come %d times", seen)
	}
}

// waitWithoutOwner waits until all of these nodes of a cluster name owners of all slots,
// and the node at an address is none of them. A client that asks an earlier node would
// connect to a node that is away.
func waitWithoutOwner(t *testing.T, nodes []string, addr string) {
	t.Helper()
	for _, n := range nodes {
		c := redis.NewClient(&redis.Options{Addr: n})
		wait.Until(t, n+" has learned of the failover", func() bool {
			//lint:ignore SA1019 Redis has CLUSTER SHARDS since 7.0 only
			ranges, err := c.ClusterSlots(context.Background()).Result()
			slots := 0
			for _, r := range ranges {
				if r.Nodes[0].Addr == addr {
					return false
				}
				slots += r.End - r.Start + 1
			}
			return err == nil && slots == 16384
		})
		c.Close()
	}
}

// field returns a field of INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && k == name {
			return v
		}
	}
	return ""
}
