package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestHandshake checks the commands that go-redis sends when it connects, over both
// protocols.
func TestHandshake(t *testing.T) {
	parallel(t)
	dial := connect(t)
	ctx := context.Background()
	for _, protocol := range []int{2, 3} {
		c := dial(func(o *redis.Options) {
			o.Protocol, o.ClientName, o.DB = protocol, "tester", 3
		})
		if got := must[string](t)(c.ClientGetName(ctx).Result()); got != "tester" {
			t.Errorf("CLIENT GETNAME: got %q, want tester", got)
		}
		if info := must[string](t)(c.ClientInfo(ctx).Val().LibName, nil); *against == "" && !strings.Contains(info, "go-redis") {
			t.Errorf("CLIENT INFO: the library is %q, want go-redis", info)
		}
		must[int64](t)(c.ZAdd(ctx, "z", redis.Z{Score: 1.5, Member: "a"}).Result())
		if got := must[[]redis.Z](t)(c.ZRangeWithScores(ctx, "z", 0, -1).Result()); got[0] != (redis.Z{Score: 1.5, Member: "a"}) {
			t.Errorf("RESP%d: ZRANGE: got %v, want a with score 1.5", protocol, got)
		}
		must[int64](t)(c.HSet(ctx, fmt.Sprint("h", protocol), "f", "v").Result())
		if got := must[map[string]string](t)(c.HGetAll(ctx, fmt.Sprint("h", protocol)).Result()); got["f"] != "v" {
			t.Errorf("RESP%d: HGETALL: got %v, want f: v", protocol, got)
		}
	}
}

// TestPipelineAndBigValues checks a pipeline of 10 000 commands, a value of a megabyte,
// and SCAN.
func TestPipelineAndBigValues(t *testing.T) {
	parallel(t)
	c := connect(t)()
	ctx := context.Background()
	cmds := must[[]redis.Cmder](t)(c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range 10000 {
			p.RPush(ctx, "l", i)
		}
		return nil
	}))
	if n := cmds[len(cmds)-1].(*redis.IntCmd).Val(); n != 10000 {
		t.Errorf("the last RPUSH returns %d, want 10000", n)
	}
	big := strings.Repeat("0123456789abcdef", 1<<16)
	must[string](t)(c.Set(ctx, "big", big, 0).Result())
	if got := must[string](t)(c.Get(ctx, "big").Result()); got != big {
		t.Errorf("GET returns %d bytes that are not the %d of SET", len(got), len(big))
	}
	seen := map[string]bool{}
	for i := range 1000 {
		c.Set(ctx, fmt.Sprint("key:", i), i, 0)
	}
	for it := c.Scan(ctx, 0, "key:*", 50).Iterator(); it.Next(ctx); {
		seen[it.Val()] = true
	}
	if len(seen) != 1000 {
		t.Errorf("SCAN found %d keys, want 1000", len(seen))
	}
}

// TestDisconnectWhileBlocked checks that clients that disconnect while they are blocked
// lose no elements, except few whose replies are in flight.
func TestDisconnectWhileBlocked(t *testing.T) {
	parallel(t)
	dial := connect(t)
	ctx := context.Background()
	const disconnects, elements = 200, 400
	var taken sync.Map
	var wg sync.WaitGroup
	var produced atomic.Int64
	stop := make(chan struct{})
	for range 8 {
		wg.Go(func() {
			for range disconnects / 8 {
				c := dial(func(o *redis.Options) { o.PoolSize = 1 })
				short, cancel := context.WithTimeout(ctx, 3*time.Millisecond)
				got, err := c.BZPopMin(short, 0, "jobs").Result()
				cancel()
				if err == nil {
					taken.Store(got.Member, true)
				}
				c.Close()
			}
		})
	}
	producer := dial()
	wg.Go(func() {
		for i := range elements {
			producer.ZAdd(ctx, "jobs", redis.Z{Score: float64(i), Member: fmt.Sprint("job", i)})
			produced.Add(1)
			wait.Pace(100 * time.Microsecond)
		}
		close(stop)
	})
	wg.Wait()
	left := must[[]string](t)(producer.ZRange(ctx, "jobs", 0, -1).Result())
	n := len(left)
	taken.Range(func(job, _ any) bool {
		if slices.Contains(left, job.(string)) {
			t.Errorf("%v was delivered and is still in the set", job)
		}
		n++
		return true
	})
	// An element whose reply is in flight when the client disconnects is lost with
	// any server. Such elements are few.
	if lost := elements - n; lost > elements/50 {
		t.Errorf("%d elements of %d are lost", lost, elements)
	} else {
		t.Logf("%d delivered, %d left, %d lost in flight", elements-len(left)-lost, len(left), lost)
	}
}

// TestDisconnectedIsNotServed checks that the server notices at once that a blocked
// client has disconnected, and does not serve it.
func TestDisconnectedIsNotServed(t *testing.T) {
	parallel(t)
	dial := connect(t)
	ctx := context.Background()
	producer := dial()
	for i := range 200 {
		key := fmt.Sprint("jobs", i)
		c := dial(func(o *redis.Options) { o.PoolSize = 1 })
		done := make(chan error)
		go func() { done <- c.BZPopMin(ctx, 0, key).Err() }()
		waitForBlocked(t, producer, 1)
		c.Close()
		if err := <-done; err == nil {
			t.Fatal("BZPOPMIN of the disconnected client returns an element")
		}
		waitForBlocked(t, producer, 0)
		must[int64](t)(producer.ZAdd(ctx, key, redis.Z{Score: 1, Member: "job"}).Result())
		if n := must[int64](t)(producer.ZCard(ctx, key).Result()); n != 1 {
			t.Fatalf("round %d: ZCARD is %d, want 1", i, n)
		}
	}
}

// waitForBlocked waits until n clients are blocked.
func waitForBlocked(t *testing.T, c *redis.Client, n int) {
	t.Helper()
	want := fmt.Sprintf("blocked_clients:%d\r\n", n)
	wait.Until(t, fmt.Sprint(n, " clients are blocked"), func() bool {
		return strings.Contains(must[string](t)(c.Info(context.Background(), "clients").Result()), want)
	})
}

// TestPubSub checks that a subscriber receives the messages of its channels and patterns.
func TestPubSub(t *testing.T) {
	parallel(t)
	dial := connect(t)
	ctx := context.Background()
	sub := dial().Subscribe(ctx, "a")
	must[any](t)(sub.Receive(ctx))
	if err := sub.PSubscribe(ctx, "b*"); err != nil {
		t.Fatal(err)
	}
	must[any](t)(sub.Receive(ctx))
	c := dial()
	for _, channel := range []string{"a", "bc", "c"} {
		must[int64](t)(c.Publish(ctx, channel, "hi "+channel).Result())
	}
	for _, want := range []string{"hi a", "hi bc"} {
		m := must[any](t)(sub.ReceiveTimeout(ctx, time.Minute))
		if got, ok := m.(*redis.Message); !ok || got.Payload != want {
			t.Errorf("got %v, want %q", m, want)
		}
	}
}

// TestExpiredEventsOnTime checks that keys expire, with an event, at their deadlines:
// without a read, and with many later deadlines pending.
func TestExpiredEventsOnTime(t *testing.T) {
	if *against != "" {
		t.Skip("Redis finds expired keys by sampling, not at their deadlines")
	}
	dial := connect(t, server.Options{Config: map[string]string{"notify-keyspace-events": "Ex"}})
	ctx := context.Background()
	c := dial()
	must[[]redis.Cmder](t)(c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range 10000 {
			p.Set(ctx, fmt.Sprint("later:", i), i, time.Hour)
		}
		return nil
	}))
	sub := dial().Subscribe(ctx, "__keyevent@0__:expired")
	must[any](t)(sub.Receive(ctx))
	const n = 50
	var late []time.Duration
	for i := range n {
		deadline := time.Now().Add(20 * time.Millisecond)
		must[string](t)(c.SetArgs(ctx, fmt.Sprint("soon:", i), "x", redis.SetArgs{ExpireAt: deadline}).Result())
		must[bool](t)(c.PExpireAt(ctx, fmt.Sprint("soon:", i), deadline).Result())
		m := must[any](t)(sub.ReceiveTimeout(ctx, time.Minute))
		if got := m.(*redis.Message).Payload; got != fmt.Sprint("soon:", i) {
			t.Fatalf("expired event of %q, want soon:%d", got, i)
		}
		late = append(late, time.Since(deadline.Truncate(time.Millisecond)))
	}
	slices.Sort(late)
	t.Logf("expired events: median %v, worst %v after the deadline", late[n/2], late[n-1])
	if late[0] < 0 {
		t.Errorf("an expired event comes %v before the deadline", -late[0])
	}
}

// TestShutdownUnderLoad checks that after Shutdown the file has all acknowledged
// writes. A command that Shutdown interrupts is not acknowledged.
func TestShutdownUnderLoad(t *testing.T) {
	if *against != "" {
		t.Skip("needs a server in this process")
	}
	t.Parallel()
	options := server.Options{File: filepath.Join(t.TempDir(), "zsetd.db"), Config: map[string]string{"save": "3600 1"}}
	srv, err := server.New(options)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(l)
	ctx := context.Background()
	var acknowledged [8]atomic.Int64
	var wg sync.WaitGroup
	for w := range acknowledged {
		c := redis.NewClient(&redis.Options{Addr: l.Addr().String(), MaxRetries: -1, DialerRetries: 1, ReadTimeout: time.Minute})
		wg.Go(func() {
			defer c.Close()
			for {
				n, err := c.Incr(ctx, fmt.Sprint("n", w)).Result()
				if err != nil {
					return
				}
				acknowledged[w].Store(n)
			}
		})
	}
	for w := range acknowledged {
		wait.Until(t, "the writers write", func() bool { return acknowledged[w].Load() >= 10 })
	}
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := srv.Shutdown(limit); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	wg.Wait()
	again, err := server.New(options)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	for w := range acknowledged {
		n := acknowledged[w].Load()
		got, err := again.Do(ctx, "GET", fmt.Sprint("n", w))
		if err != nil || fmt.Sprint(got) != fmt.Sprint(n) && fmt.Sprint(got) != fmt.Sprint(n+1) {
			t.Errorf("writer %d: GET returns %v, want %d, which was acknowledged, or %d (%v)", w, got, n, n+1, err)
		}
	}
}

// TestInProcess checks a client library, and Do, with a server in the same process.
func TestInProcess(t *testing.T) {
	t.Parallel()
	srv, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()
	c := redis.NewClient(&redis.Options{Dialer: srv.Dialer()})
	defer c.Close()
	must[int64](t)(c.ZAdd(ctx, "z", redis.Z{Score: 2, Member: "b"}, redis.Z{Score: 1, Member: "a"}).Result())
	if got := must[any](t)(srv.Do(ctx, "ZRANGE", "z", 0, -1)); fmt.Sprint(got) != "[a b]" {
		t.Errorf("ZRANGE: got %v, want [a b]", got)
	}
	if _, err := c.BZPopMin(ctx, time.Second, "z").Result(); err != nil {
		t.Error(err)
	}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := srv.Do(short, "BZPOPMIN", "nothing", 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a blocked Do returns %v, want DeadlineExceeded", err)
	}
	must[int64](t)(c.ZAdd(ctx, "nothing", redis.Z{Score: 1, Member: "x"}).Result())
	if n := must[int64](t)(c.ZCard(ctx, "nothing").Result()); n != 1 {
		t.Error("the Do that timed out has removed an element")
	}
}
