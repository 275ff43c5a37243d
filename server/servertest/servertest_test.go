package servertest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
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
