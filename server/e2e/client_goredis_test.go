package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestGoRedis checks the features of go-redis that applications use, over both
// protocols. client_test.go checks the behaviour of the server.
func TestGoRedis(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			parallel(t)
			dial := connect(t)
			c := dial(func(o *redis.Options) { o.Protocol = protocol })
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			t.Run("transactions", func(t *testing.T) { goRedisTransactions(ctx, t, c) })
			t.Run("messages", func(t *testing.T) { goRedisMessages(ctx, t, c) })
			t.Run("live queries", func(t *testing.T) { goRedisLiveQueries(ctx, t, c) })
			t.Run("blocking commands", func(t *testing.T) { goRedisBlocking(ctx, t, c) })
			t.Run("scripts", func(t *testing.T) { goRedisScripts(ctx, t, c) })
			t.Run("scans", func(t *testing.T) { goRedisScans(ctx, t, c) })
			t.Run("streams", func(t *testing.T) { goRedisStreams(ctx, t, c) })
			t.Run("the newest commands", func(t *testing.T) { goRedisNewest(ctx, t, c) })
		})
	}
}

// goRedisTransactions checks that concurrent increments by WATCH, GET and SET are all
// counted, and that a failing command does not end its transaction.
func goRedisTransactions(ctx context.Context, t *testing.T, c *redis.Client) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				var err error = redis.TxFailedErr
				for errors.Is(err, redis.TxFailedErr) {
					err = c.Watch(ctx, func(tx *redis.Tx) error {
						n, err := tx.Get(ctx, "counter").Int()
						if err != nil && !errors.Is(err, redis.Nil) {
							return err
						}
						_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
							p.Set(ctx, "counter", n+1, 0)
							return nil
						})
						return err
					}, "counter")
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := must[int](t)(c.Get(ctx, "counter").Int()); n != 40 {
		t.Errorf("the counter is %d, want 40", n)
	}
	cmds, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.LPush(ctx, "counter", "x")
		p.ZAdd(ctx, "z", redis.Z{Score: 1.5, Member: "a"})
		p.ZRangeWithScores(ctx, "z", 0, -1)
		return nil
	})
	if err == nil || !strings.HasPrefix(cmds[0].Err().Error(), "WRONGTYPE") {
		t.Errorf("LPUSH to a string: got %v, want WRONGTYPE", err)
	}
	if got := cmds[2].(*redis.ZSliceCmd).Val(); !slices.Equal(got, []redis.Z{{Score: 1.5, Member: "a"}}) {
		t.Errorf("ZRANGE: got %v, want a with score 1.5", got)
	}
}

func goRedisMessages(ctx context.Context, t *testing.T, c *redis.Client) {
	expect := func(sub *redis.PubSub, want ...string) {
		t.Helper()
		for _, want := range want {
			m := must[*redis.Message](t)(sub.ReceiveMessage(ctx))
			if got := strings.TrimSpace(m.Pattern + " " + m.Channel + " " + m.Payload); got != want {
				t.Errorf("received %q, want %q", got, want)
			}
		}
	}
	sub := c.Subscribe(ctx, "news")
	defer sub.Close()
	must[any](t)(sub.Receive(ctx))
	if err := sub.PSubscribe(ctx, "n?ws*"); err != nil {
		t.Fatal(err)
	}
	must[any](t)(sub.Receive(ctx))
	shard := c.SSubscribe(ctx, "shard")
	defer shard.Close()
	must[any](t)(shard.Receive(ctx))
	for want, cmd := range map[int64]*redis.IntCmd{
		2: c.Publish(ctx, "news", "hello"),
		1: c.SPublish(ctx, "shard", "piece"),
		0: c.Publish(ctx, "shard", "not for shards"),
	} {
		if n := must[int64](t)(cmd.Result()); n != want {
			t.Errorf("%v, want %d", cmd, want)
		}
	}
	expect(sub, "news hello", "n?ws* news hello")
	expect(shard, "shard piece")
	if got := must[map[string]int64](t)(c.PubSubNumSub(ctx, "news").Result()); got["news"] != 1 {
		t.Errorf("PUBSUB NUMSUB news: %v, want 1", got)
	}
}

// goRedisLiveQueries checks that a subscriber receives the present reply and each one that
// differs, and the present one again after it has lost its connection.
func goRedisLiveQueries(ctx context.Context, t *testing.T, c *redis.Client) {
	if !strings.Contains(must[string](t)(c.Info(ctx, "server").Result()), "zsetd_version") {
		t.Skip("a real Redis has none")
	}
	const channel = `__query@0__:ZRANGE "live board" 0 -1 WITHSCORES`
	sub := c.Subscribe(ctx, channel)
	defer sub.Close()
	expect := func(want string) {
		t.Helper()
		m := must[*redis.Message](t)(sub.ReceiveMessage(ctx))
		if m.Channel != channel || m.Payload != want {
			t.Errorf("received %v, want %s", m, want)
		}
	}
	expect(`{"result":[]}`)
	must[int64](t)(c.ZAdd(ctx, "live board", redis.Z{Score: 1.5, Member: "ann"}).Result())
	expect(`{"result":[["ann",1.5]]}`)
	if n := must[int64](t)(c.ClientKillByFilter(ctx, "TYPE", "pubsub").Result()); n != 1 {
		t.Errorf("CLIENT KILL TYPE pubsub: %d clients, want 1", n)
	}
	if _, err := sub.Receive(ctx); err == nil {
		t.Error("the connection is not closed")
	}
	expect(`{"result":[["ann",1.5]]}`) // go-redis connects and subscribes again
	must[int64](t)(c.Del(ctx, "live board").Result())
	expect(`{"result":[]}`)
	other := c.Subscribe(ctx, "__query@0__:DEL board")
	defer other.Close()
	if _, err := other.Receive(ctx); err == nil || !strings.HasSuffix(err.Error(), "DEL is not a command that only reads") {
		t.Errorf("a query that writes: got %v", err)
	}
}

func goRedisBlocking(ctx context.Context, t *testing.T, c *redis.Client) {
	type popped struct {
		key    string
		values []string
		err    error
	}
	done := make(chan popped, 1)
	go func() {
		key, values, err := c.BLMPop(ctx, 0, "right", 2, "one", "two").Result()
		done <- popped{key, values, err}
	}()
	waitForBlocked(t, c, 1)
	must[int64](t)(c.RPush(ctx, "two", "a", "b", "c").Result())
	if got := <-done; !reflect.DeepEqual(got, popped{"two", []string{"c", "b"}, nil}) {
		t.Errorf("BLMPOP: %v, want c and b from two", got)
	}
	go func() {
		z, err := c.BZPopMax(ctx, 0, "zone").Result()
		if err != nil {
			done <- popped{err: err}
			return
		}
		done <- popped{z.Key, []string{z.Member.(string), fmt.Sprint(z.Score)}, nil}
	}()
	waitForBlocked(t, c, 1)
	must[int64](t)(c.ZAdd(ctx, "zone", redis.Z{Score: 2.5, Member: "m"}).Result())
	if got := <-done; !reflect.DeepEqual(got, popped{"zone", []string{"m", "2.5"}, nil}) {
		t.Errorf("BZPOPMAX: %v, want m with score 2.5 from zone", got)
	}
}

func goRedisScripts(ctx context.Context, t *testing.T, c *redis.Client) {
	must[string](t)(c.ScriptFlush(ctx).Result())
	script := redis.NewScript(`return {redis.call('INCRBY', KEYS[1], ARGV[1]), cjson.encode({1, 2}), redis.sha1hex('')}`)
	for i := range int64(2) { // first EVAL after NOSCRIPT, then EVALSHA
		got := must[[]any](t)(script.Run(ctx, c, []string{"n"}, 5).Slice())
		if !slices.Equal(got, []any{5*i + 5, "[1,2]", "da39a3ee5e6b4b0d3255bfef95601890afd80709"}) {
			t.Errorf("run %d of the script returns %v", i+1, got)
		}
	}
	if !slices.Equal(must[[]bool](t)(script.Exists(ctx, c).Result()), []bool{true}) {
		t.Error("SCRIPT EXISTS does not find the script")
	}
	if err := c.EvalSha(ctx, strings.Repeat("0", 40), nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("EVALSHA of an unknown script: got %v, want NOSCRIPT", err)
	}
	if err := c.EvalRO(ctx, "return redis.call('SET', KEYS[1], 1)", []string{"n"}).Err(); err == nil {
		t.Error("SET in EVAL_RO has no error")
	}
	must[string](t)(c.FunctionLoadReplace(ctx, `#!lua name=adding
		redis.register_function('add', function(keys, args) return redis.call('INCRBY', keys[1], args[1]) end)
		redis.register_function{function_name='see', callback=function(keys) return redis.call('GET', keys[1]) end, flags={'no-writes'}}`).Result())
	if n := must[int](t)(c.FCall(ctx, "add", []string{"n"}, 1).Int()); n != 11 {
		t.Errorf("FCALL: got %d, want 11", n)
	}
	if s := must[string](t)(c.FCallRO(ctx, "see", []string{"n"}).Text()); s != "11" {
		t.Errorf("FCALL_RO: got %q, want 11", s)
	}
	libraries := must[[]redis.Library](t)(c.FunctionList(ctx, redis.FunctionListQuery{WithCode: true}).Result())
	if len(libraries) != 1 || libraries[0].Name != "adding" || len(libraries[0].Functions) != 2 {
		t.Errorf("FUNCTION LIST: %v, want the library adding with 2 functions", libraries)
	}
	must[string](t)(c.FunctionDelete(ctx, "adding").Result())
}

func goRedisScans(ctx context.Context, t *testing.T, c *redis.Client) {
	var fields []string
	must[[]redis.Cmder](t)(c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range 500 {
			f := fmt.Sprintf("field:%03d", i)
			fields = append(fields, f)
			p.HSet(ctx, "scan hash", f, "v")
			p.SAdd(ctx, "scan set", f)
			p.ZAdd(ctx, "scan zset", redis.Z{Score: float64(i), Member: f})
		}
		return nil
	}))
	for what, scan := range map[string]struct {
		*redis.ScanCmd
		step int
	}{
		"hash":           {c.HScan(ctx, "scan hash", 0, "", 20), 2},
		"fields of hash": {c.HScan(ctx, "scan hash", 0, "field:*", 0), 2},
		"set":            {c.SScan(ctx, "scan set", 0, "", 7), 1},
		"zset":           {c.ZScan(ctx, "scan zset", 0, "", 0), 2},
	} {
		seen := map[string]bool{}
		i := 0
		for it := scan.Iterator(); it.Next(ctx); i++ {
			if i%scan.step == 0 {
				seen[it.Val()] = true
			}
		}
		if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, fields) {
			t.Errorf("%s: found %d elements, want %d", what, len(got), len(fields))
		}
	}
	var keys []string
	for it := c.ScanType(ctx, 0, "scan *", 1, "zset").Iterator(); it.Next(ctx); {
		keys = append(keys, it.Val())
	}
	if !slices.Equal(keys, []string{"scan zset"}) {
		t.Errorf("SCAN TYPE zset: %q, want scan zset", keys)
	}
}

func goRedisStreams(ctx context.Context, t *testing.T, c *redis.Client) {
	must[string](t)(c.XGroupCreateMkStream(ctx, "events", "workers", "$").Result())
	var want []redis.XMessage
	for i := range 4 {
		id := must[string](t)(c.XAdd(ctx, &redis.XAddArgs{Stream: "events", MaxLen: 1000, Approx: true, Values: []any{"n", i}}).Result())
		want = append(want, redis.XMessage{ID: id, Values: map[string]any{"n": fmt.Sprint(i)}})
	}
	ids := func(messages []redis.XMessage) (ids []string) {
		for _, m := range messages {
			ids = append(ids, m.ID+" "+fmt.Sprint(m.Values))
		}
		return ids
	}
	read := must[[]redis.XStream](t)(c.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: "workers", Consumer: "ann", Streams: []string{"events", ">"}, Count: 3}).Result())
	if got := ids(read[0].Messages); !slices.Equal(got, ids(want[:3])) {
		t.Errorf("XREADGROUP: %v, want %v", got, ids(want[:3]))
	}
	must[int64](t)(c.XAck(ctx, "events", "workers", want[0].ID).Result())
	pending := must[*redis.XPending](t)(c.XPending(ctx, "events", "workers").Result())
	if !reflect.DeepEqual(pending, &redis.XPending{Count: 2, Lower: want[1].ID, Higher: want[2].ID, Consumers: map[string]int64{"ann": 2}}) {
		t.Errorf("XPENDING: %v", pending)
	}
	claimed, _, err := c.XAutoClaim(ctx, &redis.XAutoClaimArgs{Stream: "events", Group: "workers", Consumer: "ben", Start: "0"}).Result()
	if got := ids(claimed); err != nil || !slices.Equal(got, ids(want[1:3])) {
		t.Errorf("XAUTOCLAIM: %v, want %v (%v)", got, ids(want[1:3]), err)
	}
	if groups := must[[]redis.XInfoGroup](t)(c.XInfoGroups(ctx, "events").Result()); groups[0].Lag != 1 || groups[0].Consumers != 2 {
		t.Errorf("XINFO GROUPS: %+v, want lag 1 and 2 consumers", groups)
	}
	full := must[*redis.XInfoStreamFull](t)(c.XInfoStreamFull(ctx, "events", 0).Result())
	if full.Length != 4 || len(full.Groups) != 1 || len(full.Groups[0].Consumers) != 2 {
		t.Errorf("XINFO STREAM FULL: %+v, want 4 entries, 1 group and 2 consumers", full)
	}
	done := make(chan []redis.XStream, 1)
	go func() {
		got, err := c.XRead(ctx, &redis.XReadArgs{Streams: []string{"events", "$"}, Block: 0}).Result()
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	waitForBlocked(t, c, 1)
	id := must[string](t)(c.XAdd(ctx, &redis.XAddArgs{Stream: "events", Values: []any{"n", "last"}}).Result())
	if got := <-done; len(got) != 1 || got[0].Messages[0].ID != id {
		t.Errorf("XREAD: %v, want entry %s", got, id)
	}
}

// goRedisNewest checks the commands of Redis 8.0 to 8.10 that the client has methods for.
func goRedisNewest(ctx context.Context, t *testing.T, c *redis.Client) {
	check := func(command string, got any, err error, want any) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v (%v)", command, got, want, err)
		}
	}
	hour := &redis.ExpirationOption{Mode: redis.EX, Value: 3600}

	stored, err := c.HSetEXWithArgs(ctx, "session", &redis.HSetEXOptions{Condition: redis.HSetEXFNX,
		ExpirationType: redis.HSetEXExpirationEX, ExpirationVal: 3600}, "user", "ann", "cart", "3").Result()
	check("HSETEX", stored, err, int64(1))
	read, err := c.HGetEX(ctx, "session", "user", "absent").Result()
	check("HGETEX", read, err, []string{"ann", ""})
	read, err = c.HGetDel(ctx, "session", "cart").Result()
	check("HGETDEL", read, err, []string{"3"})
	left, err := c.HTTL(ctx, "session", "user").Result()
	if err != nil || len(left) != 1 || left[0] < 3590 || left[0] > 3600 {
		t.Errorf("HTTL: %v (%v)", left, err)
	}

	stored, err = c.MSetEX(ctx, redis.MSetEXArgs{Condition: redis.NX, Expiration: hour}, "m1", "one", "m2", "two").Result()
	check("MSETEX", stored, err, int64(1))
	swapped, err := c.SetIFEQ(ctx, "m1", "three", "one", time.Hour).Result()
	check("SET IFEQ", swapped, err, "OK")
	digest, err := c.Digest(ctx, "m1").Result()
	if err != nil || digest == 0 {
		t.Errorf("DIGEST: %d (%v)", digest, err)
	}
	swapped, err = c.SetIFDEQ(ctx, "m1", "four", digest, time.Hour).Result()
	check("SET IFDEQ", swapped, err, "OK")
	removed, err := c.DelExArgs(ctx, "m1", redis.DelExArgs{Mode: "IFEQ", MatchValue: "other"}).Result()
	check("DELEX", removed, err, int64(0))
	counted, err := c.IncrEXInt(ctx, "quota", redis.IncrEXIntArgs{By: 5, HasBy: true, UBound: 3, HasUBound: true, Saturate: true, Expiration: hour}).Result()
	check("INCREX", counted, err, redis.IncrEXIntResult{Value: 3, AppliedIncrement: 3})

	c.RPush(ctx, "from", "a", "b", "c")
	moved, err := c.LMoveM(ctx, "from", "to", "LEFT", "RIGHT", redis.LMoveMArgs{Count: 2}).Result()
	check("LMOVEM", moved, err, []string{"a", "b"})

	order := &redis.XAddArgs{Stream: "orders", ProducerID: "shop", IdempotentID: "17", Values: []any{"n", 1}}
	id := must[string](t)(c.XAdd(ctx, order).Result())
	again, err := c.XAdd(ctx, order).Result()
	check("XADD IDMP", again, err, id)
	done, err := c.XCfgSet(ctx, &redis.XCfgSetArgs{Stream: "orders", Duration: 60}).Result()
	check("XCFGSET", done, err, "OK")
	must[string](t)(c.XGroupCreate(ctx, "orders", "workers", "0").Result())
	group := &redis.XReadGroupArgs{Group: "workers", Consumer: "ann", Streams: []string{"orders", ">"}}
	must[[]redis.XStream](t)(c.XReadGroup(ctx, group).Result())
	group.Consumer, group.Claim, group.Block = "ben", time.Millisecond, time.Minute
	claimed, err := c.XReadGroup(ctx, group).Result()
	if err != nil || len(claimed) != 1 || len(claimed[0].Messages) != 1 || claimed[0].Messages[0].ID != id || claimed[0].Messages[0].DeliveredCount == 0 {
		t.Errorf("XREADGROUP CLAIM: %+v (%v)", claimed, err)
	}
	acknowledged, err := c.XAckDel(ctx, "orders", "workers", "DELREF", id).Result()
	check("XACKDEL", acknowledged, err, []any{int64(1)})
}

// TestGoRedisCluster checks the cluster client of go-redis with a cluster of one node,
// which announces its address or does not.
func TestGoRedisCluster(t *testing.T) {
	parallel(t)
	for _, announced := range []bool{true, false} {
		dial := connectCluster(t)
		c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{dial().Options().Addr}})
		t.Cleanup(func() { c.Close() })
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if !announced { // the client then uses the address that it is connected to
			must[string](t)(dial().ConfigSet(ctx, "cluster-announce-ip", "").Result())
		}
		cmds := must[[]redis.Cmder](t)(c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range 100 {
				p.Set(ctx, fmt.Sprint("key:", i), i, 0)
			}
			return nil
		}))
		if len(cmds) != 100 {
			t.Errorf("%d replies, want 100", len(cmds))
		}
		must[string](t)(c.MSet(ctx, "{user}name", "ann", "{user}age", 7).Result())
		if err := c.SInter(ctx, "a", "b").Err(); err == nil || !strings.Contains(err.Error(), "CROSSSLOT") {
			t.Errorf("SINTER of keys in two slots: got %v, want CROSSSLOT", err)
		}
		must[[]redis.Cmder](t)(c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Incr(ctx, "{user}visits")
			p.Expire(ctx, "{user}visits", time.Hour)
			return nil
		}))
		if got := must[any](t)(redis.NewScript(`return redis.call('GET', KEYS[1])`).Run(ctx, c, []string{"{user}name"}).Result()); got != "ann" {
			t.Errorf("the script returns %v, want ann", got)
		}
		var found sync.Map
		err := c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			it := node.Scan(ctx, 0, "key:*", 10).Iterator()
			for it.Next(ctx) {
				found.Store(it.Val(), true)
			}
			return it.Err()
		})
		n := 0
		for range found.Range {
			n++
		}
		if err != nil || n != 100 {
			t.Errorf("SCAN found %d keys, want 100 (%v)", n, err)
		}
		sub := c.SSubscribe(ctx, "{user}news")
		must[any](t)(sub.Receive(ctx))
		must[int64](t)(c.SPublish(ctx, "{user}news", "hello").Result())
		if m := must[*redis.Message](t)(sub.ReceiveMessage(ctx)); m.Payload != "hello" {
			t.Errorf("received %v, want hello", m)
		}
		sub.Close()
	}
}
