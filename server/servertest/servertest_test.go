package servertest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
)

func TestAddr(t *testing.T) {
	t.Parallel()
	a, b := servertest.Run(t), servertest.Run(t)
	if a.Addr() == b.Addr() {
		t.Errorf("two servers at %s", a.Addr())
	}
	nc, err := net.Dial("tcp", a.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if got := ping(t, nc); got != protocol.Status("PONG") {
		t.Errorf("PING: %v", got)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	srv := servertest.Run(t, server.Options{Config: map[string]string{"requirepass": "secret"}})
	nc, err := srv.Dialer()(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if got := ping(t, nc); got != protocol.ReplyError("NOAUTH Authentication required.") {
		t.Errorf("PING: %v", got)
	}
}

func TestSetTime(t *testing.T) {
	t.Parallel()
	srv := servertest.Run(t)
	want := time.Date(2038, 1, 19, 3, 14, 8, 0, time.UTC)
	srv.SetTime(want)
	if d := srv.Now().Sub(want); d < 0 || d > time.Minute {
		t.Errorf("the clock says %v, %v after %v", srv.Now(), d, want)
	}
	srv.Advance(-time.Hour)
	if d := srv.Now().Sub(want.Add(-time.Hour)); d < 0 || d > time.Minute {
		t.Errorf("an hour back, the clock says %v", srv.Now())
	}
}

// At the ends of its range the clock is right, and beyond them it stays as it is.
func TestTimeRange(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t}
	srv := servertest.Run(r)
	defer func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, year := range []int{1970, 1971, 1999, 2020, 2100, 2200, 2261} {
		at := time.Date(year, 7, 1, 0, 0, 0, 0, time.UTC)
		srv.SetTime(at)
		late := func(got time.Time) bool { return got.Before(at) || got.Sub(at) > time.Hour }
		now, _ := srv.Must("TIME").([]any)
		var seconds int64
		fmt.Sscan(now[0].(string), &seconds)
		id, _, _ := strings.Cut(srv.Must("XADD", "s", "*", "f", "v").(string), "-")
		var ms int64
		fmt.Sscan(id, &ms)
		srv.Must("ZADD", "z", "@now", "m")
		score := srv.Must("ZSCORE", "z", "m").(float64)
		if late(srv.Now()) || late(time.Unix(seconds, 0)) || late(time.UnixMilli(ms)) || late(time.Unix(int64(score), 0)) {
			t.Errorf("%d: Now %v, TIME %v, XADD %v, @now %v", year, srv.Now(), now, id, score)
		}
		srv.Must("SET", "k", "v", "EX", 7200)
		ttl, at1 := srv.Must("TTL", "k").(int64), srv.Must("EXPIRETIME", "k").(int64)
		if ttl > 7200 || ttl < 3600 || late(time.Unix(at1-7200, 0)) {
			t.Errorf("%d: TTL %d, EXPIRETIME %d", year, ttl, at1)
		}
		srv.Advance(3 * time.Hour)
		if got := srv.Must("EXISTS", "k"); got != int64(0) {
			t.Errorf("%d: a key outlives its deadline", year)
		}
		srv.Must("DEL", "s")
	}
	if len(r.failures) != 0 {
		t.Fatalf("failures: %q", r.failures)
	}
	before := srv.Now()
	for _, year := range []int{-1, 1, 1700, 1900, 1969, 2262, 2400, 9999, 12000} {
		srv.SetTime(time.Date(year, 7, 1, 0, 0, 0, 0, time.UTC))
	}
	for _, d := range []time.Duration{math.MinInt64, math.MaxInt64, 292 * 365 * 24 * time.Hour, -292 * 365 * 24 * time.Hour} {
		srv.Advance(d)
	}
	if len(r.failures) != 13 || !strings.Contains(r.failures[0], "only in 1970 to 2261") {
		t.Errorf("beyond the range: %d failures: %q", len(r.failures), r.failures)
	}
	if moved := srv.Now().Sub(before); moved < 0 || moved > time.Hour {
		t.Errorf("beyond the range the clock has moved by %v", moved)
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	srv := servertest.Run(t)
	srv.Must("SET", "k", "v", "EX", 3600)
	srv.Advance(59 * time.Minute)
	if got := srv.Must("GET", "k"); got != "v" {
		t.Errorf("after 59 minutes: %v", got)
	}
	srv.Advance(2 * time.Minute)
	if got := srv.Must("DBSIZE"); got != int64(0) {
		t.Errorf("after 61 minutes: %v keys", got)
	}
}

// In a bubble the server's timers are as fake as the test's.
func TestBubbleExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := servertest.Run(t)
		srv.Must("SET", "k", "v", "EX", 3600)
		time.Sleep(time.Hour - time.Millisecond)
		if got := srv.Must("GET", "k"); got != "v" {
			t.Errorf("after an hour less a millisecond: %v", got)
		}
		time.Sleep(time.Second)
		if got := srv.Must("DBSIZE"); got != int64(0) {
			t.Errorf("after an hour and a second: %v keys", got)
		}
	})
}

// A client that waits for an hour waits for no time at all.
func TestBubbleBlocking(t *testing.T) {
	for _, command := range []string{"BZPOPMIN", "BLPOP"} {
		t.Run(command, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := servertest.Run(t)
				nc, err := srv.Dialer()(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				start := time.Now()
				fmt.Fprintf(nc, "%s nothing 3600\r\n", command)
				reply, err := bufio.NewReader(nc).ReadString('\n')
				if err != nil || reply != "*-1\r\n" {
					t.Fatalf("%q, %v", reply, err)
				}
				if d := time.Since(start); d < time.Hour || d > time.Hour+time.Second {
					t.Errorf("waited for %v", d)
				}

				// And Do, which ends with its context.
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := srv.Do(ctx, command, "nothing", 0); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Do: %v", err)
				}
			})
		})
	}
}

// A broken invariant or a failing Serve must not pass in silence.
func TestFailures(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t}
	srv := servertest.Run(r)
	srv.Must("NOSUCH")
	if len(r.failures) != 1 || !strings.Contains(r.failures[0], "unknown command") {
		t.Errorf("Must of an unknown command: %q", r.failures)
	}
}

// recorder is a test that only notes its failures.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func ping(t *testing.T, nc net.Conn) any {
	t.Helper()
	if _, err := io.WriteString(nc, "*1\r\n$4\r\nPING\r\n"); err != nil {
		t.Fatal(err)
	}
	reply, err := protocol.DecodeFrom(bufio.NewReader(nc))
	if err != nil {
		t.Fatal(err)
	}
	return reply
}
