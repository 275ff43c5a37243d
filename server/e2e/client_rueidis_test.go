//go:build !race

// rueidis is not compiled with the race detector, which would take long. Other clients
// are.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestRueidis checks rueidis with its default settings: RESP3, client-side caching, and
// one pipeline for the concurrent commands of all goroutines.
func TestRueidis(t *testing.T) {
	parallel(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	admin := connect(t)()
	dial := func() rueidis.Client {
		c := must[rueidis.Client](t)(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{admin.Options().Addr}}))
		t.Cleanup(c.Close)
		return c
	}
	c := dial()
	ok := func(r rueidis.RedisResult) rueidis.RedisMessage {
		t.Helper()
		return must[rueidis.RedisMessage](t)(r.ToMessage())
	}

	t.Run("pipelines", func(t *testing.T) {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for i := range 50 {
					if err := c.Do(ctx, c.B().Incrby().Key("counter").Increment(int64(i)).Build()).Error(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		replies := c.DoMulti(ctx,
			c.B().Get().Key("counter").Build(),
			c.B().Lpush().Key("counter").Element("x").Build(),
			c.B().Zadd().Key("z").ScoreMember().ScoreMember(1.5, "a").ScoreMember(2, "b").Build(),
			c.B().Zrange().Key("z").Min("0").Max("-1").Withscores().Build(),
			c.B().Hset().Key("h").FieldValue().FieldValue("f", "v").Build(),
			c.B().Hgetall().Key("h").Build(),
			c.B().Get().Key("none").Build())
		if n, err := replies[0].AsInt64(); n != 20*49*50/2 {
			t.Errorf("the counter is %d, want %d (%v)", n, 20*49*50/2, err)
		}
		if err := replies[1].Error(); err == nil || !errors.As(err, new(*rueidis.RedisError)) {
			t.Errorf("LPUSH to a string: got %v, want an error reply", err)
		}
		want := []rueidis.ZScore{{Member: "a", Score: 1.5}, {Member: "b", Score: 2}}
		if got, err := replies[3].AsZScores(); !slices.Equal(got, want) {
			t.Errorf("ZRANGE: got %v, want %v (%v)", got, want, err)
		}
		if got, err := replies[5].AsStrMap(); !maps.Equal(got, map[string]string{"f": "v"}) {
			t.Errorf("HGETALL: got %v, want f: v (%v)", got, err)
		}
		if err := replies[6].Error(); !rueidis.IsRedisNil(err) {
			t.Errorf("GET none: got %v, want nil", err)
		}
	})

	t.Run("transactions", func(t *testing.T) {
		ok(c.Do(ctx, c.B().Set().Key("a").Value("1").Build()))
		attempt := func(meanwhile func()) []rueidis.RedisMessage {
			d, release := c.Dedicate()
			defer release()
			ok(d.Do(ctx, d.B().Watch().Key("a").Build()))
			meanwhile()
			replies := d.DoMulti(ctx, d.B().Multi().Build(), d.B().Incr().Key("a").Build(), d.B().Exec().Build())
			got, err := replies[2].ToArray()
			if err != nil && !rueidis.IsRedisNil(err) {
				t.Error(err)
			}
			return got
		}
		if got := attempt(func() { ok(c.Do(ctx, c.B().Set().Key("a").Value("5").Build())) }); got != nil {
			t.Errorf("EXEC after a change of the watched key: got %v, want nil", got)
		}
		if got := attempt(func() {}); len(got) != 1 {
			t.Errorf("EXEC: got %v, want 1 reply", got)
		} else if n, err := got[0].AsInt64(); n != 6 {
			t.Errorf("INCR: got %d, want 6 (%v)", n, err)
		}
	})

	// The client requests a value once, and again after it has changed.
	t.Run("caching", func(t *testing.T) {
		writer := dial()
		get := func(key string) (string, bool) {
			r := c.DoCache(ctx, c.B().Get().Key(key).Cache(), time.Hour)
			s, err := r.ToString()
			if err != nil && !rueidis.IsRedisNil(err) {
				t.Error(err)
			}
			return s, r.IsCacheHit()
		}
		ok(writer.Do(ctx, writer.B().Mset().KeyValue().KeyValue("cached", "old").KeyValue("other", "same").Build()))
		get("cached")
		get("other")
		if s, hit := get("cached"); s != "old" || !hit {
			t.Errorf("got %q, cache hit %v, want old, true", s, hit)
		}
		ok(writer.Do(ctx, writer.B().Set().Key("cached").Value("new").Build()))
		eventually(t, "the invalidation", func() bool { s, _ := get("cached"); return s == "new" })
		if s, hit := get("other"); s != "same" || !hit {
			t.Errorf("another key: got %q, cache hit %v, want same, true", s, hit)
		}
		many := must[map[string]rueidis.RedisMessage](t)(rueidis.MGetCache(c, ctx, time.Hour, []string{"cached", "other", "none"}))
		cached := many["cached"]
		if s, _ := cached.ToString(); s != "new" || len(many) != 3 {
			t.Errorf("MGetCache: got %v, want 3 values, with cached: new", many)
		}
		ok(writer.Do(ctx, writer.B().Hset().Key("hash").FieldValue().FieldValue("f", "1").Build()))
		fields := func() map[string]string {
			m, _ := c.DoCache(ctx, c.B().Hgetall().Key("hash").Cache(), time.Hour).AsStrMap()
			return m
		}
		fields()
		ok(writer.Do(ctx, writer.B().Hdel().Key("hash").Field("f").Build()))
		eventually(t, "the invalidation", func() bool { return len(fields()) == 0 })
		// Expiry and FLUSHALL also invalidate cached values.
		ok(writer.Do(ctx, writer.B().Set().Key("soon").Value("x").PxMilliseconds(100).Build()))
		eventually(t, "expiry", func() bool { s, _ := get("soon"); return s == "" })
		ok(writer.Do(ctx, writer.B().Flushall().Build()))
		eventually(t, "FLUSHALL", func() bool { s, _ := get("other"); return s == "" })
	})

	t.Run("messages", func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		subscribed := make(chan rueidis.PubSubSubscription, 9)
		d, release := dial().Dedicate()
		defer release()
		gone := d.SetPubSubHooks(rueidis.PubSubHooks{
			OnMessage: func(m rueidis.PubSubMessage) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, fmt.Sprint(m.Pattern, " ", m.Channel, " ", m.Message))
			},
			OnSubscription: func(s rueidis.PubSubSubscription) { subscribed <- s },
		})
		for _, cmd := range []rueidis.Completed{
			d.B().Subscribe().Channel("news").Build(),
			d.B().Psubscribe().Pattern("n?ws*").Build(),
			d.B().Ssubscribe().Channel("shard").Build(),
		} {
			if err := d.Do(ctx, cmd).Error(); err != nil {
				t.Fatal(err)
			}
			<-subscribed
		}
		ok(c.Do(ctx, c.B().Publish().Channel("news").Message("hello").Build()))
		ok(c.Do(ctx, c.B().Publish().Channel("newsletter").Message("hi").Build()))
		ok(c.Do(ctx, c.B().Spublish().Channel("shard").Message("piece").Build()))
		want := []string{" news hello", "n?ws* news hello", "n?ws* newsletter hi", " shard piece"}
		eventually(t, fmt.Sprint(want), func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Equal(got, want)
		})
		release()
		<-gone
	})

	t.Run("blocking commands", func(t *testing.T) {
		type popped struct {
			reply []string
			err   error
		}
		done := make(chan popped)
		go func() {
			m, err := c.Do(ctx, c.B().Brpop().Key("queue", "spare").Timeout(0).Build()).AsStrSlice()
			done <- popped{m, err}
		}()
		waitForBlocked(t, admin, 1)
		ok(c.Do(ctx, c.B().Rpush().Key("spare").Element("job").Build()))
		if got := <-done; got.err != nil || !slices.Equal(got.reply, []string{"spare", "job"}) {
			t.Errorf("BRPOP: got %v, want job from spare", got)
		}
		if err := c.Do(ctx, c.B().Bzpopmin().Key("nothing").Timeout(0.01).Build()).Error(); !rueidis.IsRedisNil(err) {
			t.Errorf("BZPOPMIN after the timeout: got %v, want nil", err)
		}
	})

	t.Run("scripts", func(t *testing.T) {
		script := rueidis.NewLuaScript(`redis.setresp(3)
			local h = redis.call('HGETALL', KEYS[1])
			return {redis.call('INCRBY', KEYS[2], ARGV[1]), h.map.f, cjson.encode({1, 2}), 2.5}`)
		ok(c.Do(ctx, c.B().Hset().Key("{s}h").FieldValue().FieldValue("f", "v").Build()))
		ok(c.Do(ctx, c.B().ScriptFlush().Build()))
		for i := range 2 { // first EVAL after NOSCRIPT, then EVALSHA
			got := must[[]rueidis.RedisMessage](t)(script.Exec(ctx, c, []string{"{s}h", "{s}n"}, []string{"5"}).ToArray())
			n, _ := got[0].AsInt64()
			f, _ := got[1].ToString()
			json, _ := got[2].ToString()
			d, _ := got[3].AsInt64()
			if n != int64(5*i+5) || f != "v" || json != "[1,2]" || d != 2 {
				t.Errorf("run %d of the script returns %v", i+1, got)
			}
		}
		many := script.ExecMulti(ctx, c, rueidis.LuaExec{Keys: []string{"{s}h", "{s}n"}, Args: []string{"1"}},
			rueidis.LuaExec{Keys: []string{"{s}h", "{s}n"}, Args: []string{"not a number"}})
		if err := many[0].Error(); err != nil {
			t.Error(err)
		}
		if err := many[1].Error(); err == nil {
			t.Error("INCRBY by text has no error")
		}
		ok(c.Do(ctx, c.B().FunctionLoad().Replace().FunctionCode(`#!lua name=adding
			redis.register_function('add', function(keys, args) return redis.call('INCRBY', keys[1], args[1]) end)`).Build()))
		if n, err := c.Do(ctx, c.B().Fcall().Function("add").Numkeys(1).Key("n").Arg("3").Build()).AsInt64(); n != 3 {
			t.Errorf("FCALL: got %d, want 3 (%v)", n, err)
		}
		ok(c.Do(ctx, c.B().FunctionDelete().LibraryName("adding").Build()))
	})

	t.Run("scans", func(t *testing.T) {
		var fields []string
		hash, set, zset := c.B().Hset().Key("scan hash").FieldValue(), c.B().Sadd().Key("scan set").Member(), c.B().Zadd().Key("scan zset").ScoreMember()
		for i := range 500 {
			f := fmt.Sprintf("field:%03d", i)
			fields = append(fields, f)
			hash, set, zset = hash.FieldValue(f, "v"), set.Member(f), zset.ScoreMember(float64(i), f)
			ok(c.Do(ctx, c.B().Set().Key("scan:"+f).Value("x").Build()))
		}
		ok(c.Do(ctx, hash.Build()))
		ok(c.Do(ctx, set.Build()))
		ok(c.Do(ctx, zset.Build()))
		collect := func(step int, next func(cursor uint64) rueidis.Completed) []string {
			seen := map[string]bool{}
			all := rueidis.NewScanner(func(cursor uint64) (rueidis.ScanEntry, error) {
				return c.Do(ctx, next(cursor)).AsScanEntry()
			})
			i := 0
			for item := range all.Iter() {
				if i++; (i-1)%step == 0 {
					seen[item] = true
				}
			}
			return slices.Sorted(maps.Keys(seen))
		}
		keys := collect(1, func(n uint64) rueidis.Completed { return c.B().Scan().Cursor(n).Match("scan:*").Count(50).Build() })
		if len(keys) != 500 {
			t.Errorf("SCAN found %d keys, want 500", len(keys))
		}
		for what, got := range map[string][]string{
			"hash": collect(2, func(n uint64) rueidis.Completed { return c.B().Hscan().Key("scan hash").Cursor(n).Build() }),
			"set":  collect(1, func(n uint64) rueidis.Completed { return c.B().Sscan().Key("scan set").Cursor(n).Count(7).Build() }),
			"zset": collect(2, func(n uint64) rueidis.Completed { return c.B().Zscan().Key("scan zset").Cursor(n).Build() }),
		} {
			if !slices.Equal(got, fields) {
				t.Errorf("%s: found %d elements, want %d", what, len(got), len(fields))
			}
		}
	})

	t.Run("streams", func(t *testing.T) {
		ok(c.Do(ctx, c.B().XgroupCreate().Key("events").Group("workers").Id("$").Mkstream().Build()))
		var ids []string
		for i := range 4 {
			m := ok(c.Do(ctx, c.B().Xadd().Key("events").Id("*").FieldValue().FieldValue("n", fmt.Sprint(i)).Build()))
			ids = append(ids, must[string](t)(m.ToString()))
		}
		got := must[map[string][]rueidis.XRangeEntry](t)(c.Do(ctx,
			c.B().Xreadgroup().Group("workers", "ann").Count(3).Block(0).Streams().Key("events").Id(">").Build()).AsXRead())
		want := []rueidis.XRangeEntry{
			{ID: ids[0], FieldValues: map[string]string{"n": "0"}},
			{ID: ids[1], FieldValues: map[string]string{"n": "1"}},
			{ID: ids[2], FieldValues: map[string]string{"n": "2"}},
		}
		if !reflect.DeepEqual(got["events"], want) {
			t.Errorf("XREADGROUP: got %v, want %v", got, want)
		}
		if n, err := c.Do(ctx, c.B().Xack().Key("events").Group("workers").Id(ids[0]).Build()).AsInt64(); n != 1 {
			t.Errorf("XACK: got %d, want 1 (%v)", n, err)
		}
		claimed := must[[]rueidis.RedisMessage](t)(c.Do(ctx,
			c.B().Xautoclaim().Key("events").Group("workers").Consumer("ben").MinIdleTime("0").Start("0").Build()).ToArray())
		if entries := must[[]rueidis.XRangeEntry](t)(claimed[1].AsXRange()); !reflect.DeepEqual(entries, want[1:]) {
			t.Errorf("XAUTOCLAIM: got %v, want %v", entries, want[1:])
		}
	})
}

// eventually waits until a condition holds, up to a minute because the machine may be
// busy.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	wait.Until(t, what, holds)
}
