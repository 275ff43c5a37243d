package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest/rerun"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// failovers returns how often a test kills the primary.
func failovers(t *testing.T) int {
	if text := os.Getenv("ZSETD_FAILOVERS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("ZSETD_FAILOVERS: %v", err)
		}
		return n
	}
	return 2
}

// The servers of a test, by the name of the test. The first one is the primary.
func compositions(t *testing.T) map[string][]string {
	needRedis(t) // it has the Sentinel
	zsetd := binary.Path(t)
	const redis = "redis-server"
	return map[string][]string{
		"redis":         {redis, redis, redis},
		"zsetd":         {zsetd, zsetd, zsetd},
		"pair":          {zsetd, zsetd},
		"zsetd-primary": {zsetd, redis, zsetd},
		"redis-primary": {redis, zsetd, redis},
	}
}

// TestSentinelFailover kills the primary repeatedly while clients write. No write is lost that
// the replicas have acknowledged, and the servers have equal data at the end. With
// ZSETD_FAILOVERS=100 in the environment it does so a hundred times.
//
// The writers wait for all replicas. With two of them one acknowledgement is not enough,
// with Redis neither: a Sentinel compares offsets that are up to a second old, and may
// promote the replica that did not acknowledge.
func TestSentinelFailover(t *testing.T) {
	rerun.Skip(t) // the servers are processes, and a Sentinel does not see the transport
	t.Parallel()
	for title, programs := range compositions(t) {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := newService(t, programs...)
			w := s.startWriters(len(programs) - 1)
			longest := time.Duration(0)
			for i := range failovers(t) {
				w.progress()
				begin := time.Now()
				old, next := s.failOver()
				took := time.Since(begin)
				longest = max(longest, took)
				t.Logf("failover %d: %s to %s in %v", i+1, filepath.Base(old.program), filepath.Base(next.program), took.Round(time.Millisecond))
				s.rejoin(old)
			}
			w.progress()
			acknowledged := w.stop()
			var primary *node
			s.eventually("the servers are settled", func() (err error) {
				if primary, err = s.primary(); err == nil {
					err = s.settled(primary)
				}
				return err
			})
			for _, n := range s.nodes {
				s.eventually("the server has all acknowledged writes", func() error { return n.has(acknowledged) })
			}
			s.eventually("the servers have equal data", s.equal)
			t.Logf("longest failover: %v; %d acknowledged groups of writes", longest, total(acknowledged))
		})
	}
}

// TestSentinelPartialResync checks that a replica of a primary that was killed continues
// at the next one, without a transfer of the data, and that the old primary has equal data
// when it is back.
func TestSentinelPartialResync(t *testing.T) {
	rerun.Skip(t)
	t.Parallel()
	for title, programs := range compositions(t) {
		if len(programs) < 3 {
			continue
		}
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := newService(t, programs...)
			c := s.nodes[0].client
			pipe := c.Pipeline()
			for i := range 1000 {
				pipe.ZAdd(t.Context(), "zset", redis.Z{Score: float64(i), Member: i})
			}
			pipe.Do(t.Context(), "WAIT", 2, 0)
			must[[]redis.Cmder](t)(pipe.Exec(t.Context()))
			old, next := s.failOver()
			if partial, full := next.info("sync_partial_ok"), next.info("sync_full"); partial != "1" || full != "0" {
				t.Errorf("the next primary has continued %s replicas and transferred its data to %s, want 1 and 0", partial, full)
			}
			s.rejoin(old)
			s.eventually("the servers have equal data", s.equal)
			t.Logf("with the old primary: %s continued, %s transfers", next.info("sync_partial_ok"), next.info("sync_full"))
		})
	}
}

// writers write until they are stopped.
type writers struct {
	s        *service
	replicas int
	cancel   context.CancelFunc
	done     sync.WaitGroup

	mu           sync.Mutex
	acknowledged map[int][]int // by writer
}

// startWriters starts clients that wait for so many replicas after each group of writes.
func (s *service) startWriters(replicas int) *writers {
	ctx, cancel := context.WithCancel(s.t.Context())
	w := &writers{s: s, replicas: replicas, cancel: cancel, acknowledged: map[int][]int{}}
	s.t.Cleanup(func() { w.stop() })
	for id := range 4 {
		w.done.Go(func() { w.write(ctx, id) })
	}
	return w
}

// write asks the Sentinels for the primary and writes to it until that fails, again and
// again.
func (w *writers) write(ctx context.Context, id int) {
	n := 0
	for i := 0; ctx.Err() == nil; i++ {
		addr, err := w.s.address(ctx, w.s.sentinels[i%len(w.s.sentinels)])
		if err != nil {
			continue
		}
		c := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, MaxRetries: -1, DisableIdentity: true, DialerRetries: 1,
			DialTimeout: time.Second, ReadTimeout: 10 * time.Second})
		for ctx.Err() == nil {
			n++
			waited, err := group(ctx, c, id, n, w.replicas)
			if err != nil {
				break
			}
			if waited >= int64(w.replicas) {
				w.mu.Lock()
				w.acknowledged[id] = append(w.acknowledged[id], n)
				w.mu.Unlock()
			}
		}
		c.Close()
		wait.Pace(10 * time.Millisecond)
	}
}

// group sends one group of writes and returns how many replicas have acknowledged it.
func group(ctx context.Context, c *redis.Client, id, n, replicas int) (int64, error) {
	p := c.Pipeline()
	member := strconv.Itoa(n)
	p.Set(ctx, fmt.Sprint("string:", id, ":", n%100), member, 0)
	p.ZAdd(ctx, fmt.Sprint("zset:", id), redis.Z{Score: float64(n), Member: member})
	p.HSet(ctx, fmt.Sprint("hash:", id), member, n)
	p.XAdd(ctx, &redis.XAddArgs{Stream: fmt.Sprint("stream:", id), ID: fmt.Sprintf("%d-1", n), Values: []string{"n", member}})
	waited := p.Do(ctx, "WAIT", replicas, 2000)
	if _, err := p.Exec(ctx); err != nil {
		return 0, err
	}
	return waited.Int64()
}

// progress waits until each writer has 20 more groups acknowledged.
func (w *writers) progress() {
	w.s.t.Helper()
	count := func() map[int]int {
		w.mu.Lock()
		defer w.mu.Unlock()
		counts := map[int]int{}
		for id, list := range w.acknowledged {
			counts[id] = len(list)
		}
		return counts
	}
	before := count()
	w.s.eventually("the writers go on", func() error {
		now := count()
		for id := range 4 {
			if now[id] < before[id]+20 {
				return fmt.Errorf("writer %d has %d groups acknowledged, before %d", id, now[id], before[id])
			}
		}
		return nil
	})
}

// stop ends the writers and returns the groups that were acknowledged, by writer.
func (w *writers) stop() map[int][]int {
	w.cancel()
	w.done.Wait()
	return w.acknowledged
}

func total(m map[int][]int) (n int) {
	for list := range maps.Values(m) {
		n += len(list)
	}
	return n
}

// has returns an error if one of the groups is not on the server.
func (n *node) has(groups map[int][]int) error {
	ctx := n.t.Context()
	for id, list := range groups {
		hash, err := n.client.HGetAll(ctx, fmt.Sprint("hash:", id)).Result()
		if err != nil {
			return err
		}
		members, err := n.client.ZRange(ctx, fmt.Sprint("zset:", id), 0, -1).Result()
		if err != nil {
			return err
		}
		entries, err := n.client.XRange(ctx, fmt.Sprint("stream:", id), "-", "+").Result()
		if err != nil {
			return err
		}
		in := map[string]int{}
		for _, m := range members {
			in[m]++
		}
		for _, e := range entries {
			in[e.Values["n"].(string)]++
		}
		for field := range maps.Keys(hash) {
			in[field]++
		}
		lost := slices.DeleteFunc(slices.Clone(list), func(n int) bool { return in[strconv.Itoa(n)] == 3 })
		if len(lost) > 0 {
			return fmt.Errorf("%s at %s has lost %d of %d acknowledged groups of writer %d: %v", filepath.Base(n.program), n.port,
				len(lost), len(list), id, lost[:min(len(lost), 10)])
		}
		for last := range 100 {
			newest := -1
			for _, n := range list {
				if n%100 == last {
					newest = n
				}
			}
			key := fmt.Sprint("string:", id, ":", last)
			if got, err := n.client.Get(ctx, key).Int(); newest >= 0 && (err != nil || got < newest) {
				return fmt.Errorf("%s at %s has %d in %s, want at least %d: %v", filepath.Base(n.program), n.port, got, key, newest, err)
			}
		}
	}
	return nil
}

// equal returns an error if the data of two servers differ.
func (s *service) equal() error {
	var first map[string]string
	for i, n := range s.nodes {
		data, err := n.data()
		if err != nil {
			return err
		}
		if i == 0 {
			first = data
			continue
		}
		for key := range maps.Keys(data) {
			if data[key] != first[key] {
				return fmt.Errorf("%s differs between %s and %s", key, s.nodes[0].port, n.port)
			}
		}
		if len(data) != len(first) {
			return fmt.Errorf("%s has %d keys, %s %d", s.nodes[0].port, len(first), n.port, len(data))
		}
	}
	return nil
}

// data returns all keys and their values.
func (n *node) data() (map[string]string, error) {
	ctx := n.t.Context()
	keys, err := n.client.Keys(ctx, "*").Result()
	if err != nil {
		return nil, err
	}
	data := map[string]string{}
	for _, key := range keys {
		kind, err := n.client.Type(ctx, key).Result()
		if err != nil {
			return nil, err
		}
		read := map[string][]any{
			"string": {"GET", key},
			"zset":   {"ZRANGE", key, 0, -1, "WITHSCORES"},
			"hash":   {"HGETALL", key},
			"stream": {"XRANGE", key, "-", "+"},
		}[kind]
		v, err := n.client.Do(ctx, read...).Result()
		if err != nil {
			return nil, err
		}
		if list, ok := v.([]any); ok && kind == "hash" { // in any order
			fields := map[any]any{}
			for pair := range slices.Chunk(list, 2) {
				fields[pair[0]] = pair[1]
			}
			v = fields
		}
		data[key] = fmt.Sprint(v)
	}
	return data, nil
}
