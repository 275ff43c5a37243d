package clock

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// simulated is a machine whose system clock can be set, and which can be suspended.
type simulated struct{ set, slept, up time.Duration }

func (m *simulated) clock() *Clock {
	c := New()
	c.Read(System{
		Wall:      func(t time.Time) int64 { return t.Add(m.set).UnixNano() },
		Suspended: func() (time.Duration, bool) { return m.slept, true },
		Up:        func() time.Duration { return m.up },
	})
	return c
}

// check checks a clock that was not read for a second.
func check(t *testing.T, c *Clock, follow bool) Change {
	t.Helper()
	if _, due := c.Due(); !due {
		t.Fatal("no check is due")
	}
	found := c.Check(follow)
	if _, due := c.Due(); due {
		t.Fatal("a check is due after the check")
	}
	return found
}

// TestSteps checks what the clock makes of a system clock that is set.
func TestSteps(t *testing.T) {
	const hour = time.Hour
	for _, x := range []struct {
		what   string
		now    time.Duration // since the start of the bubble's time, in 2000
		up     time.Duration
		follow bool
		step   time.Duration
		moves  bool
	}{
		{"forward", 30 * 365 * 24 * hour, hour, false, hour, false},
		{"back", 30 * 365 * 24 * hour, hour, false, -hour, false},
		{"forward, to follow", 30 * 365 * 24 * hour, hour, true, hour, true},
		{"back, to follow", 30 * 365 * 24 * hour, hour, true, -hour, true},
		{"forward after the start of the machine", 30 * 365 * 24 * hour, time.Minute, false, hour, true},
		{"forward in the year 2000", hour, hour, false, hour, true},
	} {
		t.Run(x.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(x.now)
				m := &simulated{up: x.up}
				c := m.clock()
				time.Sleep(time.Second)
				if found := check(t, c, x.follow); found != (Change{}) {
					t.Errorf("before the step: %+v", found)
				}
				m.set = x.step
				want := Change{Step: x.step, Difference: x.step}
				if x.moves {
					want = Change{Step: x.step, Followed: true, Moved: x.step}
				}
				before := c.Now()
				time.Sleep(time.Second)
				if found := check(t, c, x.follow); found != want {
					t.Errorf("%+v, want %+v", found, want)
				}
				if moved := c.Now().Sub(before) - time.Second; moved != want.Moved {
					t.Errorf("the clock has moved by %v, want %v", moved, want.Moved)
				}
				if c.Steps() != 1 || c.Difference() != want.Difference {
					t.Errorf("%d steps, a difference of %v", c.Steps(), c.Difference())
				}
				// The difference is corrected after Rate times as long.
				last := c.Now()
				for range 10 {
					time.Sleep(hour * Rate / 10)
					if now := c.Now(); now.Sub(last) < hour*(Rate-1)/10 {
						t.Fatalf("the clock goes from %v to %v", last, now)
					} else {
						last = now
					}
				}
				time.Sleep(time.Second)
				if found := check(t, c, x.follow); found != (Change{}) {
					t.Errorf("later: %+v", found)
				}
				if ahead := time.Until(c.Now()); (ahead - x.step).Abs() > time.Millisecond {
					t.Errorf("later the clock is ahead by %v, want %v", ahead, x.step)
				}
			})
		})
	}
}

// TestSuspended checks that the clock includes the time of a suspension, which is not a step.
func TestSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * 365 * 24 * time.Hour)
		m := &simulated{up: time.Hour}
		c := m.clock()
		m.slept, m.set = time.Hour, time.Hour // the kernel also adds it to the time of day
		before := c.Now()
		time.Sleep(time.Second)
		if found := check(t, c, false); found != (Change{Suspended: time.Hour}) {
			t.Errorf("%+v", found)
		}
		if moved := c.Now().Sub(before); moved != time.Hour+time.Second {
			t.Errorf("the clock has moved by %v", moved)
		}
		if c.Steps() != 0 || c.Suspended() != time.Hour || c.Difference() != 0 {
			t.Errorf("%d steps, suspended for %v, a difference of %v", c.Steps(), c.Suspended(), c.Difference())
		}
	})
}

// TestCourse checks that the clock never goes back while it is corrected, and that it
// is correct in the end.
func TestCourse(t *testing.T) {
	for _, back := range []bool{false, true} {
		c := course{ahead: 5 * time.Second, from: 10 * time.Second, until: 10*time.Second + 2*time.Second*Rate, back: back}
		sign := time.Duration(1)
		if back {
			sign = -1
		}
		last := time.Duration(0)
		for at := c.from; at < c.until+time.Minute; at += 777 * time.Millisecond {
			shown := at + c.at(at)
			if shown <= last {
				t.Fatalf("after %v the clock goes from %v to %v", at, last, shown)
			}
			last = shown
			if sum := c.at(at) + c.left(at); (sum - 5*time.Second - sign*2*time.Second).Abs() > 1000 {
				t.Fatalf("after %v it is %v ahead, with %v to go", at, c.at(at), c.left(at))
			}
		}
		if got := c.at(c.until); got != 5*time.Second+sign*2*time.Second {
			t.Errorf("in the end it is %v ahead", got)
		}
	}
}

// A simulation moves the clock by an hour.
func ExampleClock() {
	c := New()
	start := c.Now()
	c.Advance(time.Hour)
	fmt.Println(c.Since(start).Round(time.Minute))
	// Output: 1h0m0s
}

// TestHeld checks that a time stands still while it is held, moves only on demand, and
// returns to what it was.
func TestHeld(t *testing.T) {
	at := func(n int64) time.Time { return time.Unix(n, 0) }
	var h Held
	h.Move(at(1))
	if got := h.Time(at(2)); got != at(2) {
		t.Errorf("not held: %v", got)
	}
	outer := h.Hold(at(3))
	inner := h.Hold(at(4))
	if got := h.Time(at(5)); got != at(3) {
		t.Errorf("held twice: %v", got)
	}
	h.Move(at(6))
	if got := h.Time(at(7)); got != at(6) {
		t.Errorf("moved: %v", got)
	}
	if h = inner; h.Time(at(8)) != at(3) {
		t.Errorf("held once again: %v", h.Time(at(8)))
	}
	if h = outer; h.Time(at(9)) != at(9) {
		t.Errorf("in the end: %v", h.Time(at(9)))
	}
}
