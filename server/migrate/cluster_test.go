package migrate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// startCluster starts a Redis cluster of one node, which divides commands by slots as others
// do, and returns its address and a client.
func startCluster(t *testing.T, args ...string) (string, *redis.ClusterClient) {
	t.Helper()
	addr := startRedis(t, append([]string{"--cluster-enabled", "yes"}, args...)...)
	node := clientOf(t, addr)
	must(t, node, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	wait.Until(t, "the cluster is up", func() bool {
		return strings.Contains(must(t, node, "CLUSTER", "INFO").(string), "cluster_state:ok")
	})
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}})
	t.Cleanup(func() { c.Close() })
	return addr, c
}

// text returns the value of a key.
func text(t *testing.T, c redis.UniversalClient, key string) string {
	t.Helper()
	do := func(args ...any) any {
		reply, err := c.Do(t.Context(), args...).Result()
		if err != nil && err != redis.Nil {
			t.Fatal(err)
		}
		return reply
	}
	kind := do("TYPE", key)
	switch kind {
	case "string":
		return fmt.Sprint(do("GET", key))
	case "list":
		return fmt.Sprint(do("LRANGE", key, 0, -1))
	case "set":
		return fmt.Sprint(do("SORT", key, "ALPHA"))
	case "zset":
		return fmt.Sprint(do("ZRANGE", key, 0, -1, "WITHSCORES"))
	case "hash":
		return fmt.Sprint(do("HGETALL", key))
	case "stream":
		return fmt.Sprint(do("XRANGE", key, "-", "+"), do("XPENDING", key, "g"))
	}
	return fmt.Sprint(kind)
}

// TestCommandsBySlots checks that each command with keys of several slots has its effect in a
// cluster, and that of a server in a server.
func TestCommandsBySlots(t *testing.T) {
	for _, kind := range []string{"cluster", "server"} {
		t.Run(kind, func(t *testing.T) {
			source := startRedis(t, "--repl-backlog-size", "64mb")
			here := clientOf(t, source)
			var there redis.UniversalClient
			o := moveOf(t, source, source)
			if kind == "cluster" {
				addr, c := startCluster(t)
				o.To, there = endpoint(t, "redis://"+addr+"?cluster"), c
			} else {
				addr := startRedis(t)
				o.To, there = endpoint(t, "redis://"+addr), clientOf(t, addr)
			}
			o.LoadLibrary, o.Verify = false, VerifyAll
			must(t, here, "SET", "before", "v")
			must(t, here, "SET", "volatile", "v", "EX", 1000)
			f := follow(t, o)
			wide := make([]any, 20_000)
			for i := range wide {
				wide[i] = i
			}
			must(t, here, append([]any{"RPUSH", "wide"}, wide...)...)
			for _, line := range []string{
				"MSET a 1 b 2 c 3 d 4 e 5", "MSETNX f 6 g 7", "DEL a b", "UNLINK c nosuch", "TOUCH d e", "RENAME d renamed", "RENAMENX e renamed2", "COPY f copied",
				"RENAME volatile volatile2", "COPY nosuch f", "SET x 1", "SET nosuch2 1", "DEL nosuch2",
				"SADD s1 a b c", "SADD s2 b c d", "SINTERSTORE both s1 s2", "SUNIONSTORE any s1 s2 nosuch", "SDIFFSTORE s1 s1 s2", "SMOVE s2 s3 b",
				"ZADD z1 1 a 2 b", "ZADD z2 3 b 4 c", "ZUNIONSTORE z3 2 z1 z2 WEIGHTS 1 2", "ZINTERSTORE z4 2 z1 z2", "ZRANGESTORE z6 z1 0 0",
				"RPUSH l1 a b c d e f g h", "LMOVE l1 l2 LEFT RIGHT", "LMOVE l1 l2 LEFT LEFT", "LMOVE l1 l2 RIGHT RIGHT", "LMOVE l1 l2 RIGHT LEFT", "RPOPLPUSH l1 l2",
				"RPUSH one x", "RPOPLPUSH one l3", "PFADD p1 a b", "PFADD p2 c", "PFMERGE p3 p1 p2",
				"SETBIT b1 7 1", "SETBIT b2 3 1", "BITOP OR b3 b1 b2", "MULTI", "INCR m1", "INCR m2", "RENAME m1 m3", "INCR m1", "EXEC",
				"XADD st 1-1 f v", "XGROUP CREATE st g 0", "XGROUP CREATECONSUMER st g c", "XREADGROUP GROUP g c STREAMS st >", "PUBLISH c m",
				"EVAL redis.call('set',KEYS[1],1);redis.call('set',KEYS[2],2) 2 e1 e2", "PEXPIREAT e1 4102444800000", "SET gone 1 PX 1",
				"HSET h f v", "HINCRBYFLOAT h n 1.5", "SPOP s1",
			} {
				args := []any{}
				for _, w := range strings.Fields(line) {
					args = append(args, w)
				}
				must(t, here, args...)
			}
			wait.Until(t, "a key has expired", func() bool { return must(t, here, "EXISTS", "gone") == int64(0) })
			must(t, here, "FUNCTION", "LOAD", "#!lua name=one\nredis.register_function('one', function() return 1 end)")
			must(t, here, "FUNCTION", "LOAD", "#!lua name=two\nredis.register_function('two', function() return 2 end)")
			must(t, here, "FUNCTION", "DELETE", "one")
			f.cutOver()
			keys := must(t, here, "KEYS", "*").([]any)
			n := 0
			for _, k := range keys {
				if a, b := text(t, here, k.(string)), text(t, there, k.(string)); a != b {
					t.Errorf("%s is %.200s, want %.200s", k, b, a)
				}
				a, b := must(t, here, "PEXPIRETIME", k), there.Do(t.Context(), "PEXPIRETIME", k).Val()
				if fmt.Sprint(a) != fmt.Sprint(b) {
					t.Errorf("the deadline of %s is %v, want %v", k, b, a)
				}
				n++
			}
			if n < 30 {
				t.Errorf("%d keys", n)
			}
			if size, err := there.DBSize(t.Context()).Result(); err != nil || size != int64(n) {
				t.Errorf("the target has %d keys, want %d: %v", size, n, err)
			}
			list, err := there.FunctionList(t.Context(), redis.FunctionListQuery{}).Result()
			if err != nil || len(list) != 1 || list[0].Name != "two" {
				t.Errorf("functions: %v, %v", list, err)
			}
		})
	}
}

// TestFlushedSource checks that a source which is emptied in mid-move has an empty target, and
// that the move goes on.
func TestFlushedSource(t *testing.T) {
	for _, to := range []string{"cluster", "server"} {
		for _, flush := range []string{"FLUSHALL", "FLUSHDB"} {
			t.Run(to+" "+flush, func(t *testing.T) {
				source := startRedis(t, "--repl-backlog-size", "64mb")
				here := clientOf(t, source)
				o := moveOf(t, source, source)
				var there redis.UniversalClient
				if to == "cluster" {
					addr, c := startCluster(t)
					o.To, there = endpoint(t, "redis://"+addr+"?cluster"), c
				} else {
					addr := startRedis(t)
					o.To, there = endpoint(t, "redis://"+addr), clientOf(t, addr)
				}
				o.LoadLibrary = false
				for i := range 100 {
					must(t, here, "SET", fmt.Sprint("k", i), i)
				}
				copies := 0
				log := o.Log
				o.Log = func(line string) {
					log(line)
					if strings.HasPrefix(line, "copying from") {
						copies++
					}
				}
				order := make(chan struct{}, 1)
				o.CutOver = order
				ended := make(chan error, 1)
				go func() { ended <- run(t, o) }()
				wait.Until(t, "the copy is complete", func() bool { return there.Exists(t.Context(), "k1").Val() == 1 })
				must(t, here, flush)
				must(t, here, "SET", "after", "v")
				wait.Until(t, "the target follows", func() bool { return there.Get(t.Context(), "after").Val() == "v" })
				order <- struct{}{}
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
				if n := there.DBSize(t.Context()).Val(); n != 1 {
					t.Errorf("the target has %d keys", n)
				}
				if want := map[string]int{"cluster": 2, "server": 1}[to]; copies != want {
					t.Errorf("%d copies, want %d", copies, want)
				}
			})
		}
	}
}
