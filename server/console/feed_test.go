package console

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestFeedWakes checks when an event wakes the viewers of a feed: at once, or when their pause
// has passed since they were woken last.
func TestFeedWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{arrived: make(chan struct{}, 1)}
		f := newFeed(feedKey{}, func() {})
		(&viewer{s: s}).follow(f, nil)
		add := func(what string, times int, want time.Duration) {
			t.Helper()
			begin := time.Now()
			for range times {
				f.add([]byte("data: 1\n\n"), "")
			}
			<-s.arrived
			if took := time.Since(begin); took != want {
				t.Errorf("%s: woken after %v, want %v", what, took, want)
			}
		}
		add("the first event", 1, 0)
		add("two events at once", 2, pause(1))
		time.Sleep(pause(1) / 4)
		add("an event within the pause", 1, pause(1)-pause(1)/4)
		time.Sleep(time.Minute)
		add("an event after a minute", 1, 0)
		if want := 5 * len("data: 1\n\n"); len(f.log) != len("data: 1\n\n") || f.base+int64(len(f.log)) != int64(want) {
			t.Errorf("the log has %d bytes from position %d on: it keeps what came within %v of the last event", len(f.log), f.base, feedKeep)
		}
	})
}

// TestFeedDropsOldEvents checks that the log of a feed has its newest bytes, and a bounded size.
func TestFeedDropsOldEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(feedKey{}, func() {})
		event, total := make([]byte, 1000), 0
		for i := range 5 * feedBytes / len(event) {
			event[0] = byte(i)
			f.add(event, "")
			total += len(event)
			if len(f.log) > 2*feedBytes || len(f.log) < min(total, feedBytes) || f.base+int64(len(f.log)) != int64(total) {
				t.Fatalf("after %d bytes the log has %d, from position %d on", total, len(f.log), f.base)
			}
			if f.log[len(f.log)-len(event)] != byte(i) {
				t.Fatal("the last event is not at the end of the log")
			}
		}
	})
}

// TestRepliesBounded checks that a viewer receives the newest reply of a query, and that those of
// all queries have a limit, above which the stream of the query that exceeds it ends.
func TestRepliesBounded(t *testing.T) {
	c := new(Console)
	v := &viewer{s: &stream{}}
	a, b := newFeed(queryKey("u", 0, 0, "GET a"), func() {}), newFeed(queryKey("u", 0, 0, "GET b"), func() {})
	v.follow(a, nil)
	v.follow(b, nil)
	c.replies.Store(maxReplies - 30)
	for _, reply := range []string{"1", "2", "a"} {
		a.set(c, `{"result":"`+reply+`"}`)
	}
	b.set(c, `{"result":"a longer reply"}`)
	events, _, err := v.takeReplies()
	if want := "data: {\"query\":0,\"result\":\"a\"}\n\n"; string(events) != want || err != nil {
		t.Errorf("%q, %v, want %q", events, err, want)
	}
	if _, _, err := v.takeReplies(); err != errReplies {
		t.Errorf("above the limit: %v", err)
	}
	a.drop(c)
	b.drop(c)
	if n := c.replies.Load(); n != maxReplies-30 {
		t.Errorf("%d bytes are left", n-(maxReplies-30))
	}
}
