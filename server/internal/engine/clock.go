package engine

import (
	"math"
	"sync/atomic"
	"time"
)

// The server's clock is the system clock at start plus the elapsed monotonic time.
// So when the system clock is set (by an operator, NTP, a hypervisor), no deadline
// moves: no key expires early, late or twice, and no waiter waits longer or gives
// up earlier. A lasting difference from the system clock is corrected by a
// millisecond in each second, which changes a TTL by a thousandth. Time during
// which the machine was suspended counts on Linux, which can distinguish it from a
// step.
//
// The clock follows the system clock at once where that is the better guess: with
// the parameter clock-steps set to follow, as Redis always does; while the machine
// has been up for less than ten minutes, since its clock is being set then; and
// while the server's clock shows a time before 2020. Waits for a time to pass,
// rather than for a time of day, keep their remaining time: blocked commands,
// CLIENT PAUSE, idle clients.
//
// The data file contains times of the server's clock. After a restart that is the
// system clock again, so a remaining difference takes effect at once.
//
// A reading costs half of time.Now, which reads both clocks of the system. These
// are compared at most ten times a second, when the lock is taken. Rejected: to
// have the kernel report steps (timerfd), which takes a descriptor and a goroutine
// per server and works on Linux only. Therefore, without activity, the timer fires
// every ten seconds as long as it is set: after the machine was suspended no waiter
// waits for longer than that.

const (
	clockCheckInterval = 100 * time.Millisecond // between two checks of the system clock
	maxTimerInterval   = 10 * time.Second       // the longest that the timer is set for
	clockTolerance     = 10 * time.Millisecond  // a smaller difference is not a step
	ClockRate          = 1000                   // it takes so many seconds to correct one
	clockBootTime      = 10 * time.Minute       // since the machine has started
	clockSanity        = 1577836800             // seconds from 1970 to 2020
)

// clock is the server's clock.
type clock struct {
	base   time.Time    // the start of the clock; never changed
	Offset atomic.Int64 // nanoseconds added to it; see Advance
	course atomic.Pointer[Course]

	// The server's lock guards the rest.
	System        SystemClock
	NextLook      time.Duration // since base
	SuspendedTime time.Duration // total suspension of the machine at the last check
	difference    time.Duration // of the system clock from this one, likewise
	steps         int64         // number of steps of the system clock
}

// SystemClock holds the functions that a check calls. Tests replace them.
type SystemClock struct {
	Wall          func(time.Time) int64                // the system clock in nanoseconds since 1970, from a result of time.Now
	SuspendedTime func() (d time.Duration, known bool) // total suspension of the machine since its start
	Up            func() time.Duration                 // time since its start
}

// Course is the rate and offset of the clock between two steps. It is immutable; a
// step replaces it.
type Course struct {
	Ahead time.Duration // offset from base plus elapsed time, at from

	// The interval of the correction, both ends since base.
	From, Until time.Duration
	Back        bool
}

// At returns the clock's offset.
func (c *Course) At(elapsed time.Duration) time.Duration {
	if c.Until == 0 {
		return c.Ahead
	}
	d := (min(elapsed, c.Until) - c.From) / ClockRate
	if c.Back {
		d = -d
	}
	return c.Ahead + d
}

// Left returns the remaining correction.
func (c *Course) Left(elapsed time.Duration) time.Duration {
	d := max(0, c.Until-elapsed) / ClockRate
	if c.Back {
		d = -d
	}
	return d
}

func (c *clock) init() {
	c.base = time.Now()
	c.System = SystemClock{Wall: time.Time.UnixNano, SuspendedTime: suspended, Up: uptime}
	c.course.Store(new(Course))
	c.SuspendedTime, _ = c.System.SuspendedTime()
}

// now returns the time. Like since, it may be called without the lock.
func (c *clock) now() time.Time { return c.base.Add(c.elapsedTime(time.Since(c.base))) }

// since returns the time that has passed since t, a time of this clock.
func (c *clock) since(t time.Time) time.Duration {
	return c.elapsedTime(time.Since(c.base)) - t.Sub(c.base)
}

// elapsedTime returns the time since base by this clock.
func (c *clock) elapsedTime(elapsed time.Duration) time.Duration {
	return elapsed + c.course.Load().At(elapsed) + time.Duration(c.Offset.Load())
}

// Clock returns the server's time.
func (srv *Engine) Clock() time.Time { return srv.Time.now() }

// since returns the time that has passed since t, a time of the server's clock.
func (srv *Engine) since(t time.Time) time.Duration { return srv.Time.since(t) }

// Freeze reads the clock once for the commit scopes of this lock hold.
func (srv *Engine) Freeze() {
	c := &srv.Time
	elapsed := time.Since(c.base)
	if elapsed >= c.NextLook {
		srv.checkClock()
		elapsed = time.Since(c.base)
	}
	srv.begin(c.base.Add(c.elapsedTime(elapsed)))
}

// checkClock compares the clock with the system clock and reacts to steps.
func (srv *Engine) checkClock() {
	c := &srv.Time
	now := time.Now()
	elapsed := now.Sub(c.base)
	c.NextLook = elapsed + clockCheckInterval
	way := c.course.Load()
	if asleep, known := c.System.SuspendedTime(); known && asleep-c.SuspendedTime >= clockCheckInterval {
		slept := asleep - c.SuspendedTime
		c.SuspendedTime = asleep
		way = srv.stepClock(elapsed, slept)
		srv.Log.Info("the system was suspended; the clock includes that time", "for", slept.Round(time.Millisecond))
	}
	c.difference = time.Duration(c.System.Wall(now)-c.base.UnixNano()) - elapsed - way.At(elapsed)
	step := c.difference - way.Left(elapsed)
	follow := srv.Config.ClockSteps == "follow" || srv.Time.now().Unix() < clockSanity || c.System.Up() < clockBootTime
	stepped := step.Abs() >= clockTolerance
	switch {
	case follow && (stepped || c.difference.Abs() >= clockTolerance):
		srv.stepClock(elapsed, c.difference)
		srv.shiftDeadlines(c.difference)
		if stepped {
			srv.Log.Warn("the system clock was set; following it immediately", "by", step.Round(time.Millisecond))
		} else {
			srv.Log.Warn("following the system clock immediately", "by", c.difference.Round(time.Millisecond))
		}
		c.difference = 0
	case stepped:
		d := c.difference
		c.course.Store(&Course{Ahead: way.At(elapsed), From: elapsed, Until: elapsed + d.Abs()*ClockRate, Back: d < 0})
		srv.Log.Warn("the system clock was set; following it by 1 ms per second, so that keys expire neither early nor late",
			"by", step.Round(time.Millisecond), "difference", d.Round(time.Millisecond),
			"for", (d.Abs() * ClockRate).Round(time.Second), "hint", "CONFIG SET clock-steps follow sets it immediately")
	}
	if stepped {
		c.steps++
	}
}

// stepClock moves the clock by d.
func (srv *Engine) stepClock(elapsed, d time.Duration) *Course {
	way := &Course{Ahead: srv.Time.course.Load().At(elapsed) + d}
	srv.Time.course.Store(way)
	srv.timerAt = math.MinInt64 // so that setTimer sets it again
	return way
}

// shiftDeadlines moves the ends of waits for a time to pass along with a clock that has
// moved by d.
func (srv *Engine) shiftDeadlines(d time.Duration) {
	ms := d.Milliseconds() // rounded up, so that no wait ends early
	if time.Duration(ms)*time.Millisecond < d {
		ms++
	}
	for _, w := range srv.Deadlines {
		w.at += ms // their order is preserved
	}
	if srv.PausedUntil != 0 {
		srv.PausedUntil += ms
	}
	if srv.nextIdle != 0 {
		srv.nextIdle += ms
	}
	shift := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(d)
		}
	}
	shift(&srv.Start)
	for _, s := range srv.Sessions {
		for _, t := range []*time.Time{&s.Created, &s.lastUsed, &s.lastMoved, &s.softSince, &s.seenAt} {
			shift(t)
		}
	}
	for i := range srv.sampled {
		shift(&srv.sampled[i].at)
	}
	shift(&srv.warnedOfHTTP)
	shift(&srv.MemoryState.exceededSince)
}

// InfoClock writes the clock's fields of INFO.
func (srv *Engine) InfoClock(t *InfoText) {
	c := &srv.Time
	t.Int("clock_steps", c.steps)
	t.Int("clock_difference_ms", c.difference.Milliseconds())
	t.Int("clock_suspended_seconds", int64(c.SuspendedTime/time.Second))
}
