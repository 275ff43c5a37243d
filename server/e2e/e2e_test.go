package e2e

import (
	"context"
	"flag"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
)

var against = flag.String("against", "", "`address` of a server to test in place of zsetd; its data are deleted")

// connect returns a function that creates clients of one empty server.
func connect(t testing.TB, options ...server.Options) func(...func(*redis.Options)) *redis.Client {
	t.Helper()
	addr := *against
	if addr == "" {
		srv := servertest.Run(t, options...)
		if strings.HasPrefix(t.Name(), "TestRedcon/") {
			addr = serveRedcon(t, srv.Server)
		} else {
			addr = srv.Addr()
		}
	}
	dial := func(with ...func(*redis.Options)) *redis.Client {
		o := &redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: 30 * time.Second}
		for _, f := range with {
			f(o)
		}
		c := redis.NewClient(o)
		t.Cleanup(func() { c.Close() })
		return c
	}
	if *against != "" {
		must[string](t)(dial().FlushAll(context.Background()).Result())
	}
	return dial
}

// parallel runs a test in parallel with others if each has its own server.
func parallel(t *testing.T) {
	if *against == "" {
		t.Parallel()
	}
}

// must returns a function that returns a result or ends the test.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// clock is the clock of an application under test. Only Advance moves it.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.ns.Store(time.Date(2021, 4, 9, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) Now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) Advance(d time.Duration) { c.ns.Add(int64(d)) }

// score returns a time as a score: seconds since 1970.
func score(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
