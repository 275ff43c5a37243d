package demo

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestRun runs the demonstration for half an hour of a simulated clock, and looks at the data once a
// minute: each system has what its view shows, and nothing grows without bound.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := servertest.Run(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Run(ctx, srv.Server, rand.New(rand.NewPCG(1, 2))) }()
		number := func(command ...any) int {
			t.Helper()
			n, err := server.Scan[int](srv.Must(command...), nil)
			if err != nil {
				t.Fatalf("%v: %v", command, err)
			}
			return n
		}
		for minute := 1; minute <= 30; minute++ {
			wait.Elapse(time.Minute) // of the bubble
			synctest.Wait()
			select {
			case err := <-ended:
				t.Fatal(err)
			default:
			}
			for _, one := range []struct {
				low, high int
				command   []any
			}{
				{5, 60, []any{"ZCARD", "live:home:news"}},
				{5, 60, []any{"ZCARD", "live:sport:news"}},
				{10, 24, []any{"ZCARD", "hits:/front"}},
				{1, 6, []any{"ZCARD", "due"}},
				{31, 100, []any{"ZCARD", "club"}},
				{5, 50, []any{"LLEN", "notices"}},
				{16, 16, []any{"ZCARD", "board"}},
				{1, 300, []any{"XLEN", "orders"}},
				{1, 16, []any{"ZCARD", "visitors"}},
				{30, 80, []any{"DBSIZE"}},
			} {
				if n := number(one.command...); n < one.low || n > one.high {
					t.Errorf("minute %d: %v is %d, want %d to %d", minute, one.command, n, one.low, one.high)
				}
			}
			pending := srv.Must("XPENDING", "orders", "billing").([]any)[0].(int64)
			if pending > 100 {
				t.Errorf("minute %d: %d entries are pending", minute, pending)
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returns %v", err)
		}
	})
}

// TestRunEnds checks that Run says why a command failed, of the application and of a worker.
func TestRunEnds(t *testing.T) {
	for _, key := range []string{"board", "notices"} {
		t.Run(key, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := servertest.Run(t)
				srv.Must("SET", key, "a string")
				err := Run(t.Context(), srv.Server, rand.New(rand.NewPCG(1, 2)))
				if err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE ") {
					t.Errorf("Run returns %v", err)
				}
			})
		})
	}
}
