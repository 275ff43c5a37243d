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
)

func TestHandshake(t *testing.T) {
	parallel(t)
	dial := connect(t)
	ctx := context.Background()
	for _, protocol := range []int{2, 3} {
		c := dial(func(o *redis.Options) {
			o.Protocol, o.ClientName, o.DB = protocol, "tester", 3
		})
		if got := must[string](t)(c.ClientGetName(ctx).Result()); got != "tester" {
			t.Errorf("name %q", got)
		}
		if info := must[string](t)(c.ClientInfo(ctx).Val().LibName, nil); *against == "" && !strings.Contains(info, "go-redis") {
			t.Errorf("library %q", info)
		}
		must[int64](t)(c.ZAdd(ctx, "z", redis.Z{Score: 1.5, Member: "a"}).Result())
		if got := must[[]redis.Z](t)(c.ZRangeWithScores(ctx, "z", 0, -1).Result()); got[0] != (redis.Z{Score: 1.5, Member: "a"}) {
			t.Errorf("RESP%d: %v", protocol, got)
		}
		must[int64](t)(c.HSet(ctx, fmt.Sprint("h", protocol), "f", "v").Result())
		if got := must[map[string]string](t)(c.HGetAll(ctx, fmt.Sprint("h", protocol)).Result()); got["f"] != "v" {
			t.Errorf("RESP%d: %v", protocol, got)
		}
	}
}

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
		t.Errorf("the last push says %d", n)
	}
	big := strings.Repeat("0123456789abcdef", 1<<16)
	must[string](t)(c.Set(ctx, "big", big, 0).Result())
	if got := must[string](t)(c.Get(ctx, "big").Result()); got != big {
		t.Errorf("%d bytes came back of %d", len(got), len(big))
	}
	seen := map[string]bool{}
	for i := range 1000 {
		c.Set(ctx, fmt.Sprint("key:", i), i, 0)
	}
	for it := c.Scan(ctx, 0, "key:*", 50).Iterator(); it.Next(ctx); {
		seen[it.Val()] = true
	}
	if len(seen) != 1000 {
		t.Errorf("SCAN found %d keys of 1000", len(seen))
	}
}

// A client that hangs up while it is blocked takes no element with it.
func TestHangUpWhileBlocked(t *testing.T) {
	parallel(t)
	dial := connect(t)
	ctx := context.Background()
	const hangUps, elements = 200, 400
	var taken sync.Map
	var wg sync.WaitGroup
	var produced atomic.Int64
	stop := make(chan struct{})
	for range 8 {
		wg.Go(func() {
			for range hangUps / 8 {
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
			time.Sleep(100 * time.Microsecond)
		}
		close(stop)
	})
	wg.Wait()
	left := must[[]string](t)(producer.ZRange(ctx, "jobs", 0, -1).Result())
	n := len(left)
	taken.Range(func(job, _ any) bool {
		if slices.Contains(left, job.(string)) {
			t.Errorf("%v was taken and is still there", job)
		}
		n++
		return true
	})
	// An element whose reply was on its way when the client gave up is gone,
	// with any server; those are few.
	if lost := elements - n; lost > elements/50 {
		t.Errorf("%d elements of %d are lost", lost, elements)
	} else {
		t.Logf("%d taken, %d left, %d lost on the wire", elements-len(left)-lost, len(left), lost)
	}
}

// Who has hung up while blocked is noticed at once, and is not served any more.
func TestHungUpTakesNothing(t *testing.T) {
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
			t.Fatal("the one who hung up was served")
		}
		waitForBlocked(t, producer, 0)
		must[int64](t)(producer.ZAdd(ctx, key, redis.Z{Score: 1, Member: "job"}).Result())
		if n := must[int64](t)(producer.ZCard(ctx, key).Result()); n != 1 {
			t.Fatalf("round %d: the element is gone", i)
		}
	}
}

// waitForBlocked waits until so many clients are blocked.
func waitForBlocked(t *testing.T, c *redis.Client, n int) {
	t.Helper()
	want := fmt.Sprintf("blocked_clients:%d\r\n", n)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if strings.Contains(must[string](t)(c.Info(context.Background(), "clients").Result()), want) {
			return
		}
	}
	t.Fatalf("never %s", want)
}

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

// Keys expire, and say so, on time: not when somebody looks, and however many
// others are to expire later.
func TestExpiredEventsOnTime(t *testing.T) {
	if *against != "" {
		t.Skip("Redis samples")
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
			t.Fatalf("%q expired", got)
		}
		late = append(late, time.Since(deadline.Truncate(time.Millisecond)))
	}
	slices.Sort(late)
	t.Logf("expired events: median %v, worst %v after the deadline", late[n/2], late[n-1])
	if late[0] < 0 {
		t.Errorf("an expired event comes %v before the deadline", -late[0])
	}
}

// A command that Shutdown interrupts is not acknowledged; all that was acknowledged
// is in the file.
func TestShutdownUnderLoad(t *testing.T) {
	if *against != "" {
		t.Skip("of our own server only")
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
		for acknowledged[w].Load() < 10 {
			time.Sleep(time.Millisecond)
		}
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
			t.Errorf("writer %d: %v is there, %d was acknowledged (%v)", w, got, n, err)
		}
	}
}

// A client library without a network.
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
		t.Errorf("got %v", got)
	}
	if _, err := c.BZPopMin(ctx, time.Second, "z").Result(); err != nil {
		t.Error(err)
	}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := srv.Do(short, "BZPOPMIN", "nothing", 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a blocked Do ended with %v", err)
	}
	must[int64](t)(c.ZAdd(ctx, "nothing", redis.Z{Score: 1, Member: "x"}).Result())
	if n := must[int64](t)(c.ZCard(ctx, "nothing").Result()); n != 1 {
		t.Error("the Do that had given up took an element")
	}
}
