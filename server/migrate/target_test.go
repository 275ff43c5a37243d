package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest"
)

// TestRetry checks how long a target may refuse a call, in which steps it is repeated, and what the
// move says meanwhile.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes []string
		tgt := &target{Endpoint: endpoint(t, "redis://a"), note: func(s string) { notes = append(notes, s) }}
		// failing returns a call that fails for a time.
		failing := func(d time.Duration) func() error {
			until := time.Now().Add(d)
			return func() error {
				if time.Now().Before(until) {
					return errors.New("BUSY now")
				}
				return nil
			}
		}
		const waiting = "waiting for the target: BUSY now"
		began := time.Now()
		if err := tgt.retry(t.Context(), failing(130*time.Millisecond)); err != nil || time.Since(began) != 140*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if want := []string{waiting, waiting, waiting, ""}; !slices.Equal(notes, want) {
			t.Errorf("the notes are %q", notes)
		}

		// The move goes on when no call waits any more.
		notes = nil
		ended := make(chan error)
		go func() { ended <- tgt.retry(t.Context(), failing(50*time.Millisecond)) }()
		synctest.Wait()
		if err := tgt.retry(t.Context(), failing(10*time.Second)); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil || slices.Index(notes, "") != len(notes)-1 || time.Since(began) < 10*time.Second {
			t.Errorf("%v; the notes are %q", err, notes)
		}
		notes = nil
		if err := tgt.retry(t.Context(), func() error { return errors.New("ERR no") }); err == nil || err.Error() != "ERR no" || notes != nil {
			t.Errorf("an error that stays: %v, %q", err, notes)
		}

		began = time.Now()
		err := tgt.retry(t.Context(), failing(patience-longestPause))
		if d := time.Since(began); err != nil || d < patience-longestPause || d > patience {
			t.Errorf("after %v: %v", d, err)
		}
		began = time.Now()
		err = tgt.retry(t.Context(), failing(time.Hour))
		if d := time.Since(began); err == nil || err.Error() != "redis://a:6379 has refused for 5m0s: BUSY now" || d <= patience || d > patience+longestPause {
			t.Errorf("after %v: %v", d, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := tgt.retry(ctx, failing(time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the end of the context: %v", err)
		}

		// A script that cannot be loaded will not be there.
		closed := redis.NewClient(&redis.Options{Addr: "a:1"})
		closed.Close()
		tgt.rdb, tgt.script = closed, scriptFor(zsetd86())
		if err := tgt.retry(t.Context(), func() error { return errors.New("NOSCRIPT none") }); !errors.Is(err, redis.ErrClosed) {
			t.Errorf("without a script: %v", err)
		}
	})
}

// TestScriptIsLoadedAgain checks that a target may forget the script, and that a call which cannot
// load it at once is repeated.
func TestScriptIsLoadedAgain(t *testing.T) {
	srv := servertest.Run(t)
	there := clientOf(t, srv.Addr())
	g := gateTo(t, srv.Addr())
	_, a := applierTo(t, clientOf(t, g.addr), zsetd86(), nil)
	loads := 0
	g.set(func(args []string) []string {
		if strings.EqualFold(args[0], "SCRIPT") {
			if loads++; loads == 1 {
				return failing("LOADING not yet")
			}
		}
		return args
	})
	must(t, there, "SCRIPT", "FLUSH")
	if err := a.apply(t.Context(), batchOf("INCR n"), 100); err != nil {
		t.Fatal(err)
	}
	if got := must(t, there, "GET", "n"); got != "1" || loads != 2 {
		t.Errorf("n is %v after %d loads", got, loads)
	}
}

// TestTransient checks after which errors a call is repeated.
func TestTransient(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "ERR no": false, "WRONGTYPE x": false, "OOM x": false, "NOPERM x": false,
		"TRYAGAIN x": true, "CLUSTERDOWN x": true, "LOADING x": true, "READONLY x": true, "MASTERDOWN x": true, "MOVED 1 a:1": true, "ASK 1 a:1": true, "NOREPLICAS x": true,
		"BUSY x": true, "NOSCRIPT x": true, "MISCONF x": true, "ERR max number of clients reached": true,
		"ERR Script attempted to access a non local key in a cluster node": true, "redis: connection pool": true, "BUSYGROUP x": false,
	} {
		if got := transient(errors.New(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	for err, want := range map[error]bool{nil: false, context.Canceled: false, redis.ErrClosed: false, redis.ErrPoolTimeout: true, io.EOF: true, io.ErrUnexpectedEOF: true, context.DeadlineExceeded: true} {
		if got := transient(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestEmptied checks which calls empty a target: Redis before 7.0 has no functions.
func TestEmptied(t *testing.T) {
	srv := servertest.Run(t)
	g := gateTo(t, srv.Addr())
	for major, want := range map[int]string{6: "FLUSHALL", 7: "FLUSHALL FUNCTION FLUSH"} {
		must(t, clientOf(t, srv.Addr()), "SET", "k", "v")
		_, a := applierTo(t, clientOf(t, g.addr), product{"redis", major, 0}, nil)
		var calls []string
		g.set(func(args []string) []string {
			calls = append(calls, callOf(args))
			return args
		})
		if err := a.t.empty(t.Context()); err != nil {
			t.Fatal(err)
		}
		n, err := a.t.keys(t.Context())
		g.set(nil)
		if got := strings.Join(calls[:strings.Count(want, " ")/2+1], " "); got != want || n != 0 || err != nil {
			t.Errorf("Redis %d receives %q, and has %d keys: %v", major, got, n, err)
		}
		if slices.Contains(calls, "FUNCTION FLUSH") != (major >= 7) {
			t.Errorf("Redis %d receives %q", major, calls)
		}
	}
	if fmt.Sprint(product{"valkey", 9, 1}) != "valkey 9.1" {
		t.Error(product{"valkey", 9, 1})
	}
}
