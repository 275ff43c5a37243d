//go:build unix

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/migrate"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// load is writers that have keys of their own and remember what was acknowledged. No
// write can be repeated without a difference.
type load struct {
	writers []*writer
	began   time.Time
	done    atomic.Int64 // acknowledged writes
	over    atomic.Bool  // the writers end after the current write
	stop    func()       // ends the current writes, too
	running sync.WaitGroup
}

// writer is one client and what its keys hold.
type writer struct {
	counters map[string]int64
	scores   map[string]map[string]float64
	lists    map[string][]string
	streams  map[string]int
	volatile map[string]string
}

// startLoad starts writers with so many keys, which write at most so often: 0 is no limit.
func startLoad(t *testing.T, addr string, writers, keys, writes int) *load {
	l := &load{began: time.Now()}
	ctx, cancel := context.WithCancel(context.Background())
	var clients []*redis.Client
	l.stop = sync.OnceFunc(func() {
		cancel()
		for _, c := range clients {
			c.Close() // ends a write that the server delays
		}
		l.running.Wait()
	})
	t.Cleanup(l.stop)
	for w := range writers {
		x := &writer{map[string]int64{}, map[string]map[string]float64{}, map[string][]string{}, map[string]int{}, map[string]string{}}
		l.writers = append(l.writers, x)
		rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, PoolSize: 1, ReadTimeout: -1})
		clients = append(clients, rdb)
		l.running.Go(func() {
			for i := 0; (i < writes || writes == 0) && !l.over.Load(); i++ {
				err := x.write(ctx, rdb, fmt.Sprintf("%d:%d", w, i%(keys/writers/5)), i)
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					t.Errorf("write %d: %v", i, err)
					return
				}
				l.done.Add(1)
			}
		})
	}
	return l
}

// finish ends the writers. The last write of each is acknowledged.
func (l *load) finish() {
	l.over.Store(true)
	l.running.Wait()
}

// write makes one change, of each kind in turn.
func (x *writer) write(ctx context.Context, rdb redis.UniversalClient, id string, i int) error {
	kind := (i + i/1000) % 5
	switch value := fmt.Sprint("value ", i); kind {
	case 0:
		n, err := rdb.Incr(ctx, "counter:"+id).Result()
		if err == nil {
			x.counters["counter:"+id] = n
		}
		return err
	case 1:
		key, member := "live:"+id, fmt.Sprint("m", i%7)
		score, err := rdb.ZIncrBy(ctx, key, 1.5, member).Result()
		if err == nil {
			if x.scores[key] == nil {
				x.scores[key] = map[string]float64{}
			}
			x.scores[key][member] = score
		}
		return err
	case 2:
		key := "queue:" + id
		if i%3 == 0 && len(x.lists[key]) > 0 {
			got, err := rdb.LPop(ctx, key).Result()
			if err == nil && got != x.lists[key][0] {
				return fmt.Errorf("LPOP %s: got %q, want %q", key, got, x.lists[key][0])
			}
			if err == nil {
				x.lists[key] = x.lists[key][1:]
			}
			return err
		}
		err := rdb.RPush(ctx, key, value).Err()
		if err == nil {
			x.lists[key] = append(x.lists[key], value)
		}
		return err
	case 3:
		err := rdb.XAdd(ctx, &redis.XAddArgs{Stream: "stream:" + id, Values: []any{"field", value}}).Err()
		if err == nil {
			x.streams["stream:"+id]++
		}
		return err
	default:
		key := "volatile:" + id
		err := rdb.Set(ctx, key, value, time.Hour).Err()
		if err == nil {
			x.volatile[key] = value
		}
		return err
	}
}

// end stops the writers and checks that a server has exactly what was acknowledged.
func (l *load) end(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	l.stop()
	elapsed := time.Since(l.began)
	ctx := context.Background()
	keys := 0
	for _, x := range l.writers {
		for key, want := range x.counters {
			if got, err := rdb.Get(ctx, key).Int64(); err != nil || got != want {
				t.Errorf("%s is %d, want %d (%v)", key, got, want, err)
			}
		}
		for key, want := range x.scores {
			got := map[string]float64{}
			for _, z := range must[[]redis.Z](t)(rdb.ZRangeWithScores(ctx, key, 0, -1).Result()) {
				got[z.Member.(string)] = z.Score
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s is %v, want %v", key, got, want)
			}
		}
		for key, want := range x.lists {
			if got := must[[]string](t)(rdb.LRange(ctx, key, 0, -1).Result()); !slices.Equal(got, want) {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
			if len(want) == 0 {
				keys--
			}
		}
		for key, want := range x.streams {
			if got := must[int64](t)(rdb.XLen(ctx, key).Result()); got != int64(want) {
				t.Errorf("%s has %d entries, want %d", key, got, want)
			}
		}
		for key, want := range x.volatile {
			if got := must[string](t)(rdb.Get(ctx, key).Result()); got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
			if ttl := must[time.Duration](t)(rdb.TTL(ctx, key).Result()); ttl <= 0 {
				t.Errorf("%s has no deadline", key)
			}
		}
		keys += len(x.counters) + len(x.scores) + len(x.lists) + len(x.streams) + len(x.volatile)
	}
	t.Logf("%d writes to %d keys, %.0f a second", l.done.Load(), keys, float64(l.done.Load())/elapsed.Seconds())
}

// primaryOptions are those of a server that is the source of a move.
func primaryOptions() server.Options {
	return server.Options{Config: map[string]string{"repl-diskless-sync-delay": "0", "repl-backlog-size": "64mb"}}
}

// tool is a running zsetd migrate.
type tool struct {
	cmd   *exec.Cmd
	lines chan string
	ended chan error
}

// startTool starts the program.
func startTool(t *testing.T, bin string, args ...string) *tool {
	t.Helper()
	x := &tool{cmd: exec.Command(bin, append([]string{"migrate"}, args...)...), lines: make(chan string, 10_000), ended: make(chan error, 1)}
	out := must[*os.File](t)(os.CreateTemp(t.TempDir(), "out"))
	x.cmd.Stdout = out
	pipe, err := x.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.cmd.Process.Kill(); out.Close() })
	go func() {
		for s := bufio.NewScanner(pipe); s.Scan(); {
			x.lines <- s.Text()
		}
		close(x.lines)
		x.ended <- x.cmd.Wait()
	}()
	return x
}

// says waits for a line of the program.
func (x *tool) says(t *testing.T, part string) {
	t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		select {
		case line, ok := <-x.lines:
			if !ok {
				out, _ := os.ReadFile(x.cmd.Stdout.(*os.File).Name())
				t.Fatalf("the program has ended without %q: %v\n%s", part, <-x.ended, out)
			}
			t.Log(line)
			if strings.Contains(line, part) {
				return
			}
		case <-timeout:
			t.Fatalf("the program does not say %q", part)
		}
	}
}

// cutOver has the tool move the clients after the copy, and waits until it has ended.
func (x *tool) cutOver(t *testing.T) {
	t.Helper()
	x.says(t, "the copy is complete")
	if err := x.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	x.says(t, "moved redis://")
	if err := <-x.ended; err != nil {
		t.Fatal(err)
	}
}

// kill ends the program as kill -9 does.
func (x *tool) kill() {
	x.cmd.Process.Kill()
	for range x.lines {
	}
	<-x.ended
}

// TestMigrateToCluster moves a server under load to a cluster. The program is killed
// during the copy and while it follows, and continues; slots of the cluster move
// meanwhile. Nothing is lost, and nothing is applied twice.
func TestMigrateToCluster(t *testing.T) {
	nodes := startCluster(t)
	bin := binary.Path(t)
	source := servertest.Run(t, primaryOptions())
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: source.Addr()})
	defer rdb.Close()
	for i := range 200 {
		must[any](t)(rdb.Do(ctx, "ZADDEX", fmt.Sprint("timed:", i), "EX", 3600, "MEMBERS", 2, 1, "a", 2, "b").Result())
	}
	must[int64](t)(rdb.RPush(ctx, "large", slices.Repeat([]any{strings.Repeat("x", 1000)}, 6000)...).Result())
	l := startLoad(t, source.Addr(), 8, 2000, of(12_000, 100_000))
	progress := func(n int64) {
		t.Helper()
		from := l.done.Load()
		all := int64(8 * of(12_000, 100_000))
		wait.Until(t, "the writers go on", func() bool { return t.Failed() || l.done.Load() >= min(all, from+n) })
	}
	progress(4000)
	target := clusterClient(t, nodes)
	to := "redis://" + nodes[0] + "," + nodes[1] + "?cluster"
	args := []string{"redis://" + source.Addr(), to, "--functions", "--observe", "0s", "--verify", "all"}

	first := startTool(t, bin, args...)
	wait.Until(t, "the target has a key", func() bool { return must[int64](t)(target.Exists(ctx, "zsetd:migrate:progress").Result()) == 1 })
	first.kill()
	second := startTool(t, bin, args...)
	second.says(t, "the copy is complete")
	progress(3000)
	second.kill()
	progress(1000)
	third := startTool(t, bin, args...)
	third.says(t, "continuing the move")
	third.says(t, "the copy is complete")
	must[any](t)(rdb.Do(ctx, "ZPERSIST", "timed:0", "MEMBERS", 1, "a").Result())
	//lint:ignore SA1019 Redis has CLUSTER SHARDS since 7.0 only
	ids := must[[]redis.ClusterSlot](t)(target.ClusterSlots(ctx).Result())
	primaries := map[string]string{}
	for _, s := range ids {
		primaries[s.Nodes[0].Addr] = s.Nodes[0].ID
	}
	names := slices.Sorted(maps.Values(primaries))
	redisCLI(t, "--cluster", "reshard", nodes[0], "--cluster-from", names[0], "--cluster-to", names[1], "--cluster-slots", "400", "--cluster-yes")
	progress(1000)
	if err := third.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	third.says(t, "verified")
	third.says(t, "moved redis://")
	if err := <-third.ended; err != nil {
		t.Fatal(err)
	}
	l.end(t, target)
	if got := must[int64](t)(target.LLen(ctx, "large").Result()); got != 6000 {
		t.Errorf("the large list has %d elements", got)
	}
	for i := range 200 {
		key := fmt.Sprint("timed:", i)
		left, err := target.FCall(ctx, "zttl", []string{key}, "MEMBERS", 1, "b").Slice()
		if err != nil || len(left) != 1 || left[0].(int64) < 1000 {
			t.Fatalf("%s: the deadline of a member is %v (%v)", key, left, err)
		}
	}
	if left, err := target.FCall(ctx, "zttl", []string{"timed:0"}, "MEMBERS", 1, "a").Slice(); err != nil || len(left) != 1 || left[0].(int64) != -1 {
		t.Errorf("the deadline that was removed during the move is %v (%v)", left, err)
	}
	if got := must[int64](t)(target.Exists(ctx, "zsetd:migrate:progress").Result()); got != 0 {
		t.Error("the progress is left at the target")
	}
}

// move runs a move to its end, with the cut-over as soon as possible.
func move(t *testing.T, from, to string, verify int) error {
	t.Helper()
	order := make(chan struct{})
	close(order)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var mu sync.Mutex
	return migrate.Run(ctx, migrate.Options{
		From: must[migrate.Endpoint](t)(migrate.ParseEndpoint(from)), To: must[migrate.Endpoint](t)(migrate.ParseEndpoint(to)),
		CutOver: order, Verify: verify, Unpause: true,
		Log: func(line string) {
			mu.Lock()
			defer mu.Unlock()
			t.Log(line)
		},
	})
}

// fill gives a server values of all types.
func fill(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	ctx := context.Background()
	for i := range 50 {
		id := fmt.Sprint(i)
		must[string](t)(rdb.Set(ctx, "string:"+id, "\x00\xff"+id, 0).Result())
		must[int64](t)(rdb.RPush(ctx, "list:"+id, "a", "b", id).Result())
		must[int64](t)(rdb.SAdd(ctx, "set:"+id, "a", id).Result())
		must[int64](t)(rdb.HSet(ctx, "hash:"+id, "f", id).Result())
		must[int64](t)(rdb.ZAdd(ctx, "zset:"+id, redis.Z{Score: float64(i) / 4, Member: id}).Result())
		must[string](t)(rdb.XAdd(ctx, &redis.XAddArgs{Stream: "stream:" + id, Values: []any{"f", id}}).Result())
		must[string](t)(rdb.XGroupCreate(ctx, "stream:"+id, "group", "0").Result())
		must[[]redis.XStream](t)(rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "group", Consumer: "c", Streams: []string{"stream:" + id, ">"}}).Result())
		must[bool](t)(rdb.ExpireAt(ctx, "hash:"+id, time.Now().Add(time.Hour)).Result())
	}
	must[string](t)(rdb.FunctionLoad(ctx, "#!lua name=lib\nredis.register_function('two', function() return 2 end)").Result())
}

// TestMigrateBetween moves all types of values between servers and files in each
// direction, and compares every key.
func TestMigrateBetween(t *testing.T) {
	addr := startRedis(t)
	ctx := context.Background()
	first := redis.NewClient(&redis.Options{Addr: addr})
	defer first.Close()
	fill(t, first)
	dir := t.TempDir()
	second := servertest.Run(t, primaryOptions())
	third := startRedis(t)
	fourth, fifth := startRedis(t), servertest.Run(t)
	for _, step := range [][2]string{
		{"redis://" + addr, "redis://" + second.Addr()},
		{"redis://" + second.Addr(), "redis://" + third},
		{"redis://" + third, filepath.Join(dir, "dump.rdb")},
		{"redis://" + third, filepath.Join(dir, "zsetd.db")},
		{filepath.Join(dir, "zsetd.db"), "redis://" + fourth},
		{filepath.Join(dir, "dump.rdb"), "redis://" + fifth.Addr()},
	} {
		if err := move(t, step[0], step[1], migrate.VerifyAll); err != nil {
			t.Fatalf("%s to %s: %v", step[0], step[1], err)
		}
	}
	for _, addr := range []string{second.Addr(), third, fourth, fifth.Addr()} {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		if got := must[any](t)(rdb.FCall(ctx, "two", nil).Result()); got != int64(2) {
			t.Errorf("%s: the function replies %v", addr, got)
		}
		keys := must[[]string](t)(rdb.Keys(ctx, "*").Result())
		if len(keys) != 300 {
			t.Errorf("%s has %d keys, want 300", addr, len(keys))
		}
		for _, key := range keys {
			kind, _, _ := strings.Cut(key, ":")
			read := func(c *redis.Client) any {
				switch kind {
				case "set": // DUMP has the order of a hash table
					members := must[[]string](t)(c.SMembers(ctx, key).Result())
					slices.Sort(members)
					return fmt.Sprint(members)
				case "stream": // DUMP has the times at which consumers were seen
					return fmt.Sprint(must[[]redis.XMessage](t)(c.XRange(ctx, key, "-", "+").Result()),
						must[[]redis.XPendingExt](t)(c.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: key, Group: "group", Start: "-", End: "+", Count: 10}).Result())[0].ID)
				}
				return must[string](t)(c.Dump(ctx, key).Result()) + fmt.Sprint(must[time.Duration](t)(c.PExpireTime(ctx, key).Result()))
			}
			if a, b := read(first), read(rdb); a != b {
				t.Errorf("%s of %s is %q, want %q", key, addr, b, a)
			}
		}
		rdb.Close()
	}
}

// TestMigrateWhileMembersExpire checks that the verification accepts members that expire
// during it: the source shows none of them, and Redis keeps them until a function of the
// library opens their key.
func TestMigrateWhileMembersExpire(t *testing.T) {
	source := servertest.Run(t, primaryOptions())
	ctx := context.Background()
	c := redis.NewClient(&redis.Options{Addr: source.Addr(), MaxRetries: -1})
	defer c.Close()
	p := c.Pipeline()
	for i := range 2000 {
		p.Do(ctx, "ZADDEX", fmt.Sprint("set:", i), "PX", 500+5*i, "MEMBERS", 1, 1, "due")
		if i%2 == 0 {
			p.ZAdd(ctx, fmt.Sprint("set:", i), redis.Z{Score: 2, Member: "stays"})
		}
	}
	must[[]redis.Cmder](t)(p.Exec(ctx))
	x := startTool(t, binary.Path(t), "redis://"+source.Addr(), "redis://"+startRedis(t), "--functions", "--observe", "0s", "--verify", "all", "--forward")
	x.cutOver(t)
}

// TestMigrateCommands moves a Redis whose commands have keys of several slots to a
// cluster: they are divided while they are followed.
func TestMigrateCommands(t *testing.T) {
	nodes := startCluster(t)
	addr := startRedis(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	must[int64](t)(rdb.SAdd(ctx, "before", "x").Result())
	target := clusterClient(t, nodes)
	order := make(chan struct{}, 1)
	result := make(chan error, 1)
	go func() {
		from, _ := migrate.ParseEndpoint("redis://" + addr)
		to, _ := migrate.ParseEndpoint("redis://" + nodes[0] + "?cluster")
		result <- migrate.Run(ctx, migrate.Options{From: from, To: to, CutOver: order, Verify: migrate.VerifyAll, Unpause: true})
	}()
	wait.Until(t, "the copy is complete", func() bool {
		fields, err := target.HGetAll(ctx, "zsetd:migrate:progress").Result()
		return err == nil && len(fields) == 2 || len(result) > 0
	})
	do := func(line string) {
		t.Helper()
		words := strings.Fields(line)
		args := make([]any, len(words))
		for i, w := range words {
			args[i] = w
		}
		if err := rdb.Do(ctx, args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
			t.Fatalf("%s: %v", line, err)
		}
	}
	for _, line := range []string{
		"MSET a 1 b 2 c 3 d 4 e 5", "MSETNX f 6 g 7", "DEL a b", "UNLINK c nosuch", "RENAME d renamed", "RENAMENX e renamed2", "COPY f copied",
		"SADD s1 a b c", "SADD s2 b c d", "SINTERSTORE both s1 s2", "SUNIONSTORE any s1 s2 nosuch", "SDIFFSTORE s1 s1 s2", "SMOVE s2 s3 b",
		"ZADD z1 1 a 2 b", "ZADD z2 3 b 4 c", "ZUNIONSTORE z3 2 z1 z2 WEIGHTS 1 2", "ZINTERSTORE z4 2 z1 z2", "ZDIFFSTORE z5 2 z1 z2", "ZRANGESTORE z6 z1 0 0",
		"RPUSH l1 a b c d", "LMOVE l1 l2 LEFT RIGHT", "RPOPLPUSH l1 l2", "SORT l2 ALPHA STORE sorted", "PFADD p1 a b", "PFADD p2 c", "PFMERGE p3 p1 p2",
		"SETBIT b1 7 1", "SETBIT b2 3 1", "BITOP OR b3 b1 b2", "GEOADD g1 13.3 38.1 palermo", "GEOSEARCHSTORE g2 g1 FROMMEMBER palermo BYRADIUS 10 km",
		"MULTI", "INCR m1", "INCR m2", "RENAME m1 m3", "INCR m1", "EXEC",
		"SET t 1 EX 1000", "RENAME t t2", "XADD x 1-1 f v", "XGROUP CREATE x g 0", "SPOP s1", "PUBLISH c m",
		"HSET h f v", "HINCRBYFLOAT h n 1.5", "EVAL redis.call('set',KEYS[1],1);redis.call('set',KEYS[2],2) 2 e1 e2",
	} {
		do(line)
	}
	big := make([]any, 20_000)
	for i := range big {
		big[i] = i
	}
	must[int64](t)(rdb.RPush(ctx, "wide", big...).Result())
	order <- struct{}{}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if got := must[int64](t)(target.LLen(ctx, "wide").Result()); got != int64(len(big)) {
		t.Errorf("the list of one wide command has %d elements, want %d", got, len(big))
	}
	if got := must[string](t)(target.Get(ctx, "m3").Result()); got != "1" {
		t.Errorf("m3 is %q", got)
	}
	if err := move(t, "redis://"+nodes[0]+"?cluster", "redis://"+startRedis(t), migrate.VerifyAll); err != nil {
		t.Errorf("from the cluster to a server: %v", err)
	}
}

// TestMigrateSurvey checks that a dry run finds what a cluster would refuse.
func TestMigrateSurvey(t *testing.T) {
	nodes := startCluster(t)
	source := servertest.Run(t, primaryOptions())
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: source.Addr()})
	defer rdb.Close()
	must[any](t)(rdb.Do(ctx, "ZADDEX", "z", "EX", 100, "MEMBERS", 1, 1, "m").Result())
	other := redis.NewClient(&redis.Options{Addr: source.Addr(), DB: 3})
	defer other.Close()
	must[string](t)(other.Set(ctx, "k", "v", 0).Result())
	target := clusterClient(t, nodes)
	must[string](t)(target.Set(ctx, "own", "v", 0).Result())
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			rdb.SInter(ctx, "a", "b")
			rdb.SInter(ctx, "{x}a", "{x}b")
			rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Get(ctx, "first")
				p.Get(ctx, "second")
				return nil
			})
			rdb.Eval(ctx, "return 1", []string{"k1", "k2"})
		}
	})
	report, err := migrate.Survey(ctx, migrate.Options{
		From: must[migrate.Endpoint](t)(migrate.ParseEndpoint("redis://" + source.Addr())),
		To:   must[migrate.Endpoint](t)(migrate.ParseEndpoint("redis://" + nodes[0] + "?cluster")),
	}, 2*time.Second)
	close(stop)
	running.Wait()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(report.Obstacles, "\n")
	t.Log(text)
	for _, part := range []string{"has 1 keys", "databases other than 0", "lacks the function library", "SINTER uses keys", "MULTI uses keys", "EVAL uses keys"} {
		if !strings.Contains(text, part) {
			t.Errorf("the report lacks %q", part)
		}
	}
	if strings.Contains(text, "{x}") {
		t.Error("keys with a common hash tag are reported")
	}
}

// TestMigrateKilledInPause checks that a source accepts writes again, without help, when the
// program is killed while the source refuses them, and that the move goes on.
func TestMigrateKilledInPause(t *testing.T) {
	bin := binary.Path(t)
	for _, kind := range []string{"zsetd", "redis"} {
		t.Run(kind, func(t *testing.T) {
			addr := ""
			if kind == "redis" {
				addr = startRedis(t)
			} else {
				addr = servertest.Run(t, primaryOptions()).Addr()
			}
			target := servertest.Run(t)
			ctx := context.Background()
			rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: time.Minute})
			defer rdb.Close()
			must[string](t)(rdb.Set(ctx, "before", "v", 0).Result())
			args := []string{"redis://" + addr, "redis://" + target.Addr(), "--observe", "0s", "--verify", "all", "--cut-over"}
			first := startTool(t, bin, append(args, "--hook", "kill -9 $PPID")...)
			if err := <-drained(first); err == nil {
				t.Fatal("the program was not killed")
			}
			must[string](t)(rdb.Set(ctx, "after", "v", 0).Result()) // within a minute: it would be a day
			second := startTool(t, bin, append(args, "--unpause")...)
			second.says(t, "continuing the move")
			second.says(t, "moved redis://")
			if err := <-second.ended; err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(target.Must("MGET", "before", "after"), target.Must("DBSIZE")); got != "[v v] 2" {
				t.Errorf("the target has %s", got)
			}
		})
	}
}

// drained reads what a program says until it has ended.
func drained(x *tool) chan error {
	for range x.lines {
	}
	return x.ended
}
