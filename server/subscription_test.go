package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"
)

// openForTest returns a server that ends with the test.
func openForTest(t *testing.T, o Options) *Server {
	t.Helper()
	srv, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	return srv
}

// mustDo runs a command that must succeed.
func mustDo(t *testing.T, srv *Server, args ...any) any {
	t.Helper()
	v, err := srv.Do(t.Context(), args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return v
}

// sessionCount returns the number of sessions of a server.
func sessionCount(srv *Server) int {
	srv.engine.Mu.Lock()
	defer srv.engine.Mu.Unlock()
	return len(srv.engine.Clients.Sessions)
}

func TestSubscribe(t *testing.T) {
	srv := openForTest(t, Options{})
	sub, err := srv.Subscribe(t.Context(), "news", "sport", "news")
	if err != nil {
		t.Fatal(err)
	}
	patterns, err := srv.PSubscribe(t.Context(), "n*", "*s")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []string{"1", "2 \r\n \x00", ""} {
		if n := mustDo(t, srv, "PUBLISH", "news", m); n != int64(3) {
			t.Errorf("PUBLISH news: %v receivers", n)
		}
	}
	mustDo(t, srv, "PUBLISH", "other", "none")
	mustDo(t, srv, "PUBLISH", "sport", "4")
	var got []Message
	for m, err := range sub.Messages() {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, m); len(got) == 4 {
			break
		}
	}
	if want := fmt.Sprint([]Message{{"news", "", "1"}, {"news", "", "2 \r\n \x00"}, {"news", "", ""}, {"sport", "", "4"}}); fmt.Sprint(got) != want {
		t.Errorf("got %q", got)
	}
	for _, err := range sub.Messages() {
		t.Errorf("a second loop after break: %v", err)
	}
	n := 0
	seen := map[Message]int{}
	for m, err := range patterns.Messages() {
		if err != nil {
			t.Fatal(err)
		}
		if seen[m]++; m.Channel == "sport" {
			t.Errorf("%q", m)
		}
		if n++; n == 6 {
			patterns.Close()
		}
	}
	for _, want := range []Message{{"news", "n*", "1"}, {"news", "*s", "1"}, {"news", "n*", ""}, {"news", "*s", ""}} {
		if seen[want] != 1 {
			t.Errorf("%q was received %d times", want, seen[want])
		}
	}
	if n := mustDo(t, srv, "PUBLISH", "news", "late"); n != int64(0) {
		t.Errorf("%v subscribers are left", n)
	}
	if n := sessionCount(srv); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	if err := srv.Check(); err != nil {
		t.Error(err)
	}
	if _, err := srv.Subscribe(t.Context()); err == nil {
		t.Error("a subscription to no channel")
	}
}

// Each way to end a subscription, while its loop waits and before its loop begins.
func TestSubscriptionEnds(t *testing.T) {
	const unlimited = "pubsub 0 0 0"
	type ending struct {
		name, limit string
		end         func(*Server, *Subscription, context.CancelFunc)
		err         error // nil: the loop ends without an error
	}
	for _, e := range []ending{
		{"context", unlimited, func(_ *Server, _ *Subscription, cancel context.CancelFunc) { cancel() }, context.Canceled},
		{"close", unlimited, func(_ *Server, sub *Subscription, _ context.CancelFunc) { sub.Close() }, nil},
		{"server closed", unlimited, func(srv *Server, _ *Subscription, _ context.CancelFunc) { srv.Close() }, ErrServerClosed},
		{"shutdown", unlimited, func(srv *Server, _ *Subscription, _ context.CancelFunc) { srv.Shutdown(context.Background()) }, ErrServerClosed},
		{"slow", "pubsub 20000 0 0", func(srv *Server, _ *Subscription, _ context.CancelFunc) {
			srv.Do(context.Background(), "PUBLISH", "news", strings.Repeat("x", 30000))
		}, ErrSlowSubscriber},
	} {
		for _, waiting := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", e.name, waiting), func(t *testing.T) {
				srv := openForTest(t, Options{Config: map[string]string{"client-output-buffer-limit": e.limit}})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				sub, err := srv.Subscribe(ctx, "news")
				if err != nil {
					t.Fatal(err)
				}
				mustDo(t, srv, "PUBLISH", "news", "first")
				var reason error
				received := 0
				first := make(chan struct{})
				loop := func() {
					for _, err := range sub.Messages() {
						if err != nil {
							reason = err
							continue
						}
						if received++; received == 1 {
							close(first)
						}
					}
				}
				if !waiting {
					e.end(srv, sub, cancel)
					loop()
				} else {
					var loops sync.WaitGroup
					loops.Go(loop)
					<-first
					e.end(srv, sub, cancel)
					loops.Wait()
				}
				if !errors.Is(reason, e.err) || e.err == nil && reason != nil {
					t.Errorf("the loop has ended with %v", reason)
				}
				if want := waiting || errors.Is(e.err, ErrServerClosed); want && received != 1 {
					t.Errorf("%d messages were received", received)
				}
				if n := sessionCount(srv); n != 0 {
					t.Errorf("%d sessions are left", n)
				}
			})
		}
	}
}

// A subscription without a loop and without a Close ends with its context.
func TestSubscriptionForgotten(t *testing.T) {
	srv := openForTest(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	sub, err := srv.Subscribe(ctx, "news")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for sessionCount(srv) > 0 {
		if t.Context().Err() != nil {
			t.Fatal("the session is left")
		}
	}
	for _, err := range sub.Messages() {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if _, err := srv.Subscribe(ctx, "news"); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	srv.Close()
	if _, err := srv.Subscribe(t.Context(), "news"); !errors.Is(err, ErrServerClosed) {
		t.Errorf("a closed server: %v", err)
	}
}

// Messages of concurrent publishers arrive in order, while the loop reads.
func TestSubscriptionConcurrent(t *testing.T) {
	srv := openForTest(t, Options{})
	sub, err := srv.PSubscribe(t.Context(), "*")
	if err != nil {
		t.Fatal(err)
	}
	const publishers, each = 4, 500
	var publishing sync.WaitGroup
	for p := range publishers {
		publishing.Go(func() {
			for i := range each {
				srv.Do(t.Context(), "PUBLISH", p, i)
			}
		})
	}
	next := map[string]int{}
	n := 0
	for m, err := range sub.Messages() {
		if err != nil {
			t.Fatal(err)
		}
		if m.Payload != fmt.Sprint(next[m.Channel]) {
			t.Fatalf("channel %s: message %s after %d", m.Channel, m.Payload, next[m.Channel]-1)
		}
		next[m.Channel]++
		if n++; n == publishers*each {
			break
		}
	}
	publishing.Wait()
}

// A panic of the server ends subscriptions.
func TestSubscriptionAfterPanic(t *testing.T) {
	srv := openForTest(t, Options{})
	sub, err := srv.Subscribe(t.Context(), "news")
	if err != nil {
		t.Fatal(err)
	}
	srv.engine.Attempt(func() { srv.engine.InTurn(func() { panic("for the test") }) })
	for _, err := range sub.Messages() {
		if _, ok := errors.AsType[*engine.PanicError](err); !ok {
			t.Errorf("the loop has ended with %v", err)
		}
	}
}
