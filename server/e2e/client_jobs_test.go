//go:build !race

// asynq is not compiled with the race detector, which would take long. Other clients are.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/hibiken/asynq"
)

// TestAsynq checks a job queue that runs a script at each step: jobs with priorities,
// delays and retries, until each has its expected final state.
func TestAsynq(t *testing.T) {
	parallel(t)
	dial := connect(t)
	connection := asynq.RedisClientOpt{Addr: dial().Options().Addr}
	client := asynq.NewClient(connection)
	defer client.Close()
	inspector := asynq.NewInspector(connection)
	defer inspector.Close()

	add := func(kind string, options ...asynq.Option) *asynq.TaskInfo {
		t.Helper()
		return must[*asynq.TaskInfo](t)(client.Enqueue(asynq.NewTask(kind, []byte(kind)), options...))
	}
	for i := range 20 {
		add(fmt.Sprint("mail:", i), asynq.Retention(time.Hour))
	}
	add("flaky", asynq.MaxRetry(3), asynq.Retention(time.Hour), asynq.Queue("critical"))
	add("hopeless", asynq.MaxRetry(5))
	if info := add("delayed", asynq.ProcessIn(time.Second), asynq.Retention(time.Hour)); info.State != asynq.TaskStateScheduled {
		t.Errorf("a delayed task has state %v, want scheduled", info.State)
	}
	add("once", asynq.Unique(time.Hour), asynq.Retention(time.Hour))
	if _, err := client.Enqueue(asynq.NewTask("once", []byte("once")), asynq.Unique(time.Hour)); !errors.Is(err, asynq.ErrDuplicateTask) {
		t.Errorf("a duplicate task: got %v, want ErrDuplicateTask", err)
	}
	withdrawn := add("withdrawn", asynq.ProcessIn(time.Hour))
	if err := inspector.DeleteTask("default", withdrawn.ID); err != nil {
		t.Error(err)
	}

	var mu sync.Mutex
	attempts := map[string]int{}
	worker := asynq.NewServer(connection, asynq.Config{
		Concurrency:              4,
		Queues:                   map[string]int{"critical": 6, "default": 3},
		TaskCheckInterval:        200 * time.Millisecond,
		DelayedTaskCheckInterval: 100 * time.Millisecond,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 0 },
		LogLevel:                 asynq.ErrorLevel + 1,
	})
	err := worker.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		mu.Lock()
		defer mu.Unlock()
		attempts[task.Type()]++
		switch {
		case task.Type() == "hopeless":
			return fmt.Errorf("no way: %w", asynq.SkipRetry)
		case task.Type() == "flaky" && attempts["flaky"] < 3:
			return errors.New("not yet")
		}
		_, err := task.ResultWriter().Write([]byte("done"))
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Shutdown()
	eventually(t, "the end of all tasks", func() bool {
		q := must[*asynq.QueueInfo](t)(inspector.GetQueueInfo("default"))
		critical := must[*asynq.QueueInfo](t)(inspector.GetQueueInfo("critical"))
		return q.Completed == 22 && q.Archived == 1 && critical.Completed == 1 && q.Size == 23
	})
	mu.Lock()
	defer mu.Unlock()
	if attempts["flaky"] != 3 || attempts["hopeless"] != 1 || attempts["once"] != 1 || attempts["withdrawn"] != 0 {
		t.Errorf("attempts: %v, want flaky 3, hopeless 1, once 1, withdrawn 0", attempts)
	}
	done := must[[]*asynq.TaskInfo](t)(inspector.ListCompletedTasks("critical"))
	if len(done) != 1 || string(done[0].Result) != "done" || done[0].Retried != 2 {
		t.Errorf("completed tasks: %+v, want one with result done and 2 retries", done)
	}
	if n := must[int](t)(inspector.DeleteAllArchivedTasks("default")); n != 1 {
		t.Errorf("DeleteAllArchivedTasks: %d, want 1", n)
	}
}

// TestRedisRate checks a rate limiter: one script that stores a time in a string, as
// text.
func TestRedisRate(t *testing.T) {
	parallel(t)
	c := connect(t)()
	limiter := redis_rate.NewLimiter(c)
	allowed := 0
	for range 15 {
		r := must[*redis_rate.Result](t)(limiter.Allow(t.Context(), "user:1", redis_rate.PerHour(10)))
		if r.Allowed > 0 {
			allowed++
		} else if r.RetryAfter <= 0 || r.Remaining != 0 {
			t.Errorf("a refused request: %+v", r)
		}
	}
	if allowed != 10 {
		t.Errorf("%d of 15 requests are allowed, want 10", allowed)
	}
	if r := must[*redis_rate.Result](t)(limiter.AllowAtMost(t.Context(), "user:2", redis_rate.PerHour(10), 25)); r.Allowed != 10 {
		t.Errorf("AllowAtMost: %+v, want 10 allowed", r)
	}
	if err := limiter.Reset(t.Context(), "user:1"); err != nil {
		t.Error(err)
	}
	if r := must[*redis_rate.Result](t)(limiter.AllowN(t.Context(), "user:1", redis_rate.PerHour(10), 4)); r.Allowed != 4 || r.Remaining != 6 {
		t.Errorf("AllowN: %+v, want 4 allowed, 6 remaining", r)
	}
}
