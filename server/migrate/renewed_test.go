package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// ahead is by how much the clock of a target is ahead of that of its source, as if it took so
// long until changes of the source arrive: a deadline that the source renews in time has passed
// at the target before.
const ahead = 10 * time.Minute

// late starts a source and a target of kinds, of which one is a zsetd, so that the clock of the
// target is ahead.
func late(t *testing.T, from, to string) (source, target string) {
	t.Helper()
	start := func(kind string, offset time.Duration) string {
		switch kind {
		case "zsetd":
			srv := primary(t)
			srv.Advance(offset)
			return srv.Addr()
		case "redis-server":
			return startRedis(t, "--repl-backlog-size", "64mb")
		}
		return startProgram(t, os.Getenv(kind), "--repl-backlog-size", "64mb")
	}
	switch {
	case from != "zsetd":
		return start(from, 0), start(to, ahead)
	case to != "zsetd":
		return start(from, -ahead), start(to, 0)
	}
	return start(from, 0), start(to, ahead)
}

// TestRenewedDeadlines checks that keys which the source renews, but whose old deadlines have
// passed at the target before the renewal arrives, move with their values and deadlines, however
// they are renewed and whatever else changes them.
func TestRenewedDeadlines(t *testing.T) {
	for _, pair := range [][2]string{
		{"zsetd", "zsetd"}, {"zsetd", "redis-server"}, {"zsetd", "ZSETD_JUDGE_REDIS8"}, {"zsetd", "ZSETD_JUDGE_VALKEY9"},
		{"redis-server", "zsetd"}, {"ZSETD_JUDGE_REDIS8", "zsetd"}, {"ZSETD_JUDGE_VALKEY9", "zsetd"},
	} {
		for _, verify := range []int{0, VerifyAll} {
			t.Run(fmt.Sprint(pair[0], " to ", pair[1], " verify ", verify), func(t *testing.T) {
				source, target := late(t, pair[0], pair[1])
				here, there := clientOf(t, source), clientOf(t, target)
				p := here.Pipeline()
				do := func(args ...any) { p.Do(t.Context(), args...) }
				exec := func() {
					t.Helper()
					if _, err := p.Exec(t.Context()); err != nil && err != redis.Nil {
						t.Fatal(err)
					}
				}
				keys := []string{"string", "persist", "getex", "n", "hash", "list", "set", "zset", "s", "append", "kept", "from", "stored"}
				for i := range 250 {
					do("HSET", fmt.Sprint("session:", i), "user", i, "since", 1)
					keys = append(keys, fmt.Sprint("session:", i))
				}
				for _, k := range []string{"string", "persist", "getex", "append", "kept"} {
					do("SET", k, "value of "+k)
				}
				do("SET", "n", 5)
				do("HSET", "hash", "a", 1)
				do("RPUSH", "list", "a", "b")
				do("SADD", "set", "a", "b")
				do("SADD", "other", "b", "c")
				do("ZADD", "zset", 1, "a")
				do("XADD", "s", "1-1", "f", "v")
				do("XGROUP", "CREATE", "s", "g", 0)
				do("HSET", "from", "a", 1)
				for _, k := range keys {
					do("EXPIRE", k, 300)
				}
				do("EXPIRE", "kept", 3600)
				exec()
				o := moveOf(t, source, target)
				o.Verify, o.LoadLibrary = verify, pair[1] != "zsetd"
				f := follow(t, o)
				for i := range 250 {
					if i%2 == 0 {
						do("HSET", fmt.Sprint("session:", i), "seen", i)
					}
					do("EXPIRE", fmt.Sprint("session:", i), 3600+i)
				}
				do("SINTERSTORE", "stored", "set", "other")
				do("EXPIRE", "string", 4000)
				do("PERSIST", "persist")
				do("GETEX", "getex", "EX", 4001)
				do("INCR", "n")
				do("HSET", "hash", "b", 2)
				do("RPUSH", "list", "c")
				do("SADD", "set", "d")
				do("ZADD", "zset", 2, "b")
				do("XADD", "s", "2-1", "f", "w")
				do("APPEND", "append", "...")
				do("EXPIRE", "append", 4002)
				do("EXPIRE", "kept", 4003)
				do("RENAME", "from", "to")
				for _, k := range []string{"n", "hash", "list", "set", "zset", "s", "to"} {
					do("EXPIRE", k, 4004)
				}
				exec()
				f.cutOver()
				for _, k := range append(keys, "to") {
					got, want := text(t, there, k), text(t, here, k)
					if a, b := there.Do(t.Context(), "PEXPIRETIME", k).Val(), must(t, here, "PEXPIRETIME", k); got != want || fmt.Sprint(a) != fmt.Sprint(b) {
						t.Errorf("%s is %s until %v, want %s until %v", k, got, a, want, b)
					}
				}
				if got := must(t, there, "KEYS", StatePrefix+"*"); len(got.([]any)) > 0 {
					t.Errorf("keys of the move are left: %v", got)
				}
			})
		}
	}
}

// TestRenewedInTime is TestRenewedDeadlines between two servers whose clocks are those of the
// machine: the target stands still until the old deadlines have passed.
func TestRenewedInTime(t *testing.T) {
	path := os.Getenv("ZSETD_JUDGE_REDIS8")
	source, target := startProgram(t, path, "--repl-backlog-size", "64mb"), startProgram(t, path)
	here, there := clientOf(t, source), clientOf(t, target)
	names := []string{"a", "b", "c"}
	for _, k := range names {
		must(t, here, "RPUSH", k, "old")
		must(t, here, "PEXPIRE", k, 1000)
	}
	o := moveOf(t, source, target)
	o.Verify = 0
	f := follow(t, o)
	must(t, there, "CLIENT", "PAUSE", 1100, "ALL")
	must(t, here, "EXPIRE", "a", 3600)
	must(t, here, "RPUSH", "b", "new")
	must(t, here, "EXPIRE", "b", 3601)
	must(t, here, "PERSIST", "c")
	f.cutOver()
	for _, k := range names {
		got := text(t, there, k) + fmt.Sprint(must(t, there, "PEXPIRETIME", k))
		if want := text(t, here, k) + fmt.Sprint(must(t, here, "PEXPIRETIME", k)); got != want {
			t.Errorf("%s is %s, want %s", k, got, want)
		}
	}
}

// TestRenewedElements is TestRenewedDeadlines for fields of hashes and members of sorted sets.
func TestRenewedElements(t *testing.T) {
	for _, pair := range [][2]string{
		{"zsetd", "zsetd"}, {"zsetd", "redis-server"}, {"zsetd", "ZSETD_JUDGE_REDIS8"}, {"zsetd", "ZSETD_JUDGE_VALKEY9"}, {"ZSETD_JUDGE_REDIS8", "zsetd"},
	} {
		t.Run(pair[0]+" to "+pair[1], func(t *testing.T) {
			source, target := late(t, pair[0], pair[1])
			here, there := clientOf(t, source), clientOf(t, target)
			o := moveOf(t, source, target)
			o.Verify = 0
			members := func(c *redis.Client, name, key string, args ...any) any {
				t.Helper()
				if strings.EqualFold(name, "zpexpiretime") && c == there && pair[1] != "zsetd" || c == here && pair[0] != "zsetd" {
					return must(t, c, append([]any{"FCALL", strings.ToLower(name), 1, key}, args...)...)
				}
				return must(t, c, append([]any{name, key}, args...)...)
			}
			if pair[0] != "zsetd" {
				must(t, here, "FUNCTION", "LOAD", o.Library)
				o.LoadLibrary = false
			}
			for _, k := range []string{"h1", "h2", "h3", "h4"} {
				must(t, here, "HSET", k, "a", 1, "b", 2)
				must(t, here, "HEXPIRE", k, 300, "FIELDS", 1, "a")
			}
			must(t, here, "HEXPIRE", "h4", 300, "FIELDS", 1, "b")
			for _, k := range []string{"z1", "z2", "z3", "z4", "z5"} {
				members(here, "ZADDEX", k, "EX", 300, "MEMBERS", 2, 1, "a", 2, "b")
			}
			members(here, "ZADDEX", "z5", "EX", 3600, "MEMBERS", 1, 3, "c")
			f := follow(t, o)
			must(t, here, "HINCRBY", "h1", "a", 5)
			must(t, here, "HEXPIRE", "h1", 3600, "FIELDS", 1, "a")
			must(t, here, "HEXPIRE", "h2", 3600, "FIELDS", 1, "a")
			must(t, here, "HPERSIST", "h3", "FIELDS", 1, "a")
			must(t, here, "HEXPIRE", "h4", 3600, "FIELDS", 2, "a", "b")
			members(here, "ZPEXPIRE", "z1", 3600_000, "MEMBERS", 1, "a")
			members(here, "ZPEXPIRE", "z1", 3600_000, "MEMBERS", 1, "b")
			members(here, "ZPERSIST", "z2", "MEMBERS", 2, "a", "b")
			members(here, "ZPEXPIRE", "z3", 3600_000, "MEMBERS", 2, "a", "b")
			must(t, here, "ZINCRBY", "z3", 5, "a")
			members(here, "ZPEXPIRE", "z3", 3600_000, "MEMBERS", 1, "a")
			members(here, "ZPEXPIRE", "z4", 3600_000, "MEMBERS", 2, "a", "b")
			members(here, "ZPEXPIRE", "z5", 3600_000, "MEMBERS", 2, "a", "b")
			must(t, here, "ZADD", "z5", "XX", "INCR", 4, "b")
			members(here, "ZPEXPIRE", "z5", 3600_000, "MEMBERS", 2, "a", "b")
			f.cutOver()
			for _, k := range []string{"z1", "z2", "z3", "z4", "z5"} {
				got, want := text(t, there, k), text(t, here, k)
				words := []any{"MEMBERS", 3, "a", "b", "c"}
				if a, b := members(there, "ZPEXPIRETIME", k, words...), members(here, "ZPEXPIRETIME", k, words...); got != want || fmt.Sprint(a) != fmt.Sprint(b) {
					t.Errorf("%s is %s until %v, want %s until %v", k, got, a, want, b)
				}
			}
			for _, k := range []string{"h1", "h2", "h3", "h4"} {
				if got, want := fmt.Sprint(must(t, there, "HMGET", k, "a", "b")), fmt.Sprint(must(t, here, "HMGET", k, "a", "b")); got != want {
					t.Errorf("%s is %s, want %s", k, got, want)
				}
				words := []any{"HPEXPIRETIME", k, "FIELDS", 2, "a", "b"}
				if pair[1] == "redis-server" {
					continue // 7.0 has no deadlines of fields
				}
				if got, want := must(t, there, words...), must(t, here, words...); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("the deadlines of %s are %v, want %v", k, got, want)
				}
			}
		})
	}
}

// TestPersistedMembers checks that members whose deadlines a source of Redis removes are at the
// target, although it has had these deadlines before, which have passed there.
func TestPersistedMembers(t *testing.T) {
	source, target := late(t, "redis-server", "zsetd")
	here, there := clientOf(t, source), clientOf(t, target)
	o := moveOf(t, source, target)
	o.Verify = 0
	must(t, here, "FUNCTION", "LOAD", o.Library)
	o.LoadLibrary = false
	for _, k := range []string{"all", "some"} {
		must(t, here, "FCALL", "zaddex", 1, k, "EX", 300, "MEMBERS", 2, 1, "a", 2, "b")
	}
	must(t, here, "ZADD", "some", 3, "c")
	f := follow(t, o)
	for _, k := range []string{"all", "some"} {
		if err := fold(t.Context(), there, k, archive.CompanionOf(k)); err != nil { // as a verification does
			t.Fatal(err)
		}
		must(t, here, "FCALL", "zpersist", 1, k, "MEMBERS", 2, "a", "b")
	}
	f.cutOver()
	for _, k := range []string{"all", "some"} {
		if got, want := text(t, there, k), text(t, here, k); got != want {
			t.Errorf("%s is %s, want %s", k, got, want)
		}
	}
}

// TestRepairsUnderWrites checks that values which are written again are those of one instant of
// the stream: clients change them all the time, by commands whose effect depends on what was
// there, and each key is lost again and again.
func TestRepairsUnderWrites(t *testing.T) {
	const keys = 40
	for _, kind := range []string{"zsetd to zsetd", "zsetd to server", "zsetd to cluster", "server to zsetd", "cluster to zsetd"} {
		t.Run(kind, func(t *testing.T) {
			from, to, _ := strings.Cut(kind, " to ")
			var source, target string
			var here, there redis.UniversalClient
			open := func(kind string, offset time.Duration) (string, redis.UniversalClient) {
				switch kind {
				case "cluster":
					addr, c := startCluster(t, "--repl-backlog-size", "64mb")
					return addr + "?cluster", c
				case "server":
					addr := startRedis(t, "--repl-backlog-size", "64mb")
					return addr, clientOf(t, addr)
				}
				srv := primary(t)
				srv.Advance(offset)
				return srv.Addr(), clientOf(t, srv.Addr())
			}
			if from == "zsetd" && to != "zsetd" {
				source, here = open(from, -ahead)
				target, there = open(to, 0)
			} else {
				source, here = open(from, 0)
				target, there = open(to, ahead)
			}
			names := func(i int) (list, n, hash, set string) {
				return fmt.Sprint("list", i), fmt.Sprint("n", i), fmt.Sprint("hash", i), fmt.Sprint("zset", i)
			}
			// change changes all values of a number. If last is not 0, it renews their deadlines,
			// which pass at the target in between.
			change := func(ctx context.Context, p redis.Pipeliner, i, round, last int) {
				list, n, hash, set := names(i)
				for key, command := range map[string][]any{
					list: {"RPUSH", list, round}, n: {"INCR", n}, hash: {"HINCRBY", hash, round % 5, 1}, set: {"ZADD", set, "INCR", 1, round % 7},
				} {
					if last != 0 {
						p.Do(ctx, "MULTI")
						p.Do(ctx, "EXPIRE", key, 300)
					}
					p.Do(ctx, command...)
					if key == list {
						p.Do(ctx, "LTRIM", key, -5, -1)
					}
					if last != 0 {
						p.Do(ctx, "EXPIRE", key, last)
						p.Do(ctx, "EXEC")
					}
				}
			}
			one := func(i, last int) {
				t.Helper()
				p := here.Pipeline()
				change(t.Context(), p, i, i, last)
				if _, err := p.Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for i := range keys {
				one(i, 300)
			}
			o := moveOf(t, source, target)
			o.Verify, o.LoadLibrary, o.Unpause = 0, false, false
			f := follow(t, o)
			for i := range keys {
				one(i, 3600)
			}
			ctx, stop := context.WithCancel(t.Context())
			var writing sync.WaitGroup
			writing.Go(func() {
				for round := 0; ctx.Err() == nil; round++ {
					p := here.Pipeline()
					for i := range 10 {
						change(ctx, p, i, round, 0)
					}
					change(ctx, p, 10+round%10, round, 3600)
					if round%8 == 7 {
						p.Do(ctx, "WAIT", 1, 10_000) // the move has applied it
					}
					if _, err := p.Exec(ctx); err != nil {
						return // the source refuses writes
					}
				}
			})
			f.cutOver()
			stop()
			writing.Wait()
			for i := range keys {
				list, n, hash, set := names(i)
				for _, k := range []string{list, n, hash, set} {
					if got, want := text(t, there, k), text(t, here, k); got != want || want == "none" {
						t.Errorf("%s is %s, want %s", k, got, want)
					}
				}
			}
		})
	}
}

// TestRepairAt checks that a value is written when the commands up to its offset are applied, and
// none beyond, wherever that is in a batch, and that a repair which comes too late, or is of
// another stream, is dropped.
func TestRepairAt(t *testing.T) {
	for _, test := range []struct {
		id     string
		offset int64
		want   string
	}{
		{"s", 100, "[new a b c]"}, {"s", 110, "[new b c]"}, {"s", 120, "[new c]"}, {"s", 130, "[new]"},
		{"s", 99, "[old a b c]"}, {"s", 115, "[old a b c]"}, {"other", 110, "[old a b c]"},
	} {
		there := clientOf(t, servertest.Run(t).Addr())
		must(t, there, "RPUSH", "k", "old")
		m, a := applierTo(t, there, zsetd86(), nil)
		must(t, there, "RPUSH", "value", "new")
		limits := keyspace.DefaultLimits()
		values, err := dumps(t.Context(), there, rdb.NewCodec(&limits), []string{"value"})
		if err != nil {
			t.Fatal(err)
		}
		values[0].Key = "k"
		r := &repair{at: position{id: test.id, offset: test.offset}, values: values, done: make(chan struct{})}
		a.repairs = []*repair{r}
		m.doubts.add([]keyAt{{0, "k"}})
		if err := a.apply(t.Context(), batchOf("RPUSH k a", "RPUSH k b", "RPUSH k c"), 100); err != nil {
			t.Fatal(err)
		}
		<-r.done
		if got := text(t, there, "k"); got != test.want {
			t.Errorf("at %d of %s: the list is %s, want %s", test.offset, test.id, got, test.want)
		}
		if doubtful := m.doubts.has(keyAt{0, "k"}); doubtful != strings.HasPrefix(test.want, "[old") {
			t.Errorf("at %d of %s: the key is doubtful: %v", test.offset, test.id, doubtful)
		}
	}
}

// TestRenewedAndContinued checks that a move which is stopped, after its target has lost keys or
// has wrong values, continues and has the right ones in the end.
func TestRenewedAndContinued(t *testing.T) {
	source, target := late(t, "zsetd", "zsetd")
	here, there := clientOf(t, source), clientOf(t, target)
	for i := range 10 {
		must(t, here, "RPUSH", fmt.Sprint("list", i), "a", "b")
		must(t, here, "EXPIRE", fmt.Sprint("list", i), 300)
	}
	o := moveOf(t, source, target)
	o.Verify = 0
	f := follow(t, o)
	for i := range 10 {
		must(t, here, "RPUSH", fmt.Sprint("list", i), "c")
		must(t, here, "EXPIRE", fmt.Sprint("list", i), 3600)
	}
	wait.Until(t, "the target follows", func() bool { return must(t, there, "TTL", "list9").(int64) > 1000 })
	f.stop()
	if err := <-f.ended; !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	must(t, here, "RPUSH", "list0", "d")
	if err := run(t, o); err != nil {
		t.Fatal(err)
	}
	if got := text(t, there, "list0") + text(t, there, "list9"); got != "[a b c d][a b c]" {
		t.Errorf("the target has %s", got)
	}
}

// TestNotRepaired checks that a difference which no deadline explains ends a move, also beside
// keys that are repaired.
func TestNotRepaired(t *testing.T) {
	for _, spoil := range [][]any{{"DEL", "other"}, {"SET", "other", 2}, {"SET", "surplus", 1}} {
		source, target := late(t, "zsetd", "zsetd")
		here, there := clientOf(t, source), clientOf(t, target)
		must(t, here, "SET", "renewed", 1, "EX", 300)
		must(t, here, "SET", "other", 1)
		f := follow(t, moveOf(t, source, target))
		must(t, here, "EXPIRE", "renewed", 3600)
		must(t, there, spoil...)
		f.order <- struct{}{}
		if err, want := <-f.ended, fmt.Sprintf("verification failed: key %q", spoil[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("after %v the move ends with %v", spoil, err)
		}
	}
}
