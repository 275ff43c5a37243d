package clock

import (
	"sync/atomic"
	"time"
)

const (
	checkInterval = 100 * time.Millisecond // between two checks of the system clock
	tolerance     = 10 * time.Millisecond  // a smaller difference is not a step
	bootTime      = 10 * time.Minute       // since the machine has started
	sanity        = 1577836800             // seconds from 1970 to 2020
)

// Rate is how many seconds it takes to correct one.
const Rate = 1000

// Clock is a clock. [New] returns one. Now and Since may be called concurrently with all
// other methods; these need a lock of the caller.
type Clock struct {
	start  time.Time    // never changed
	offset atomic.Int64 // nanoseconds added; see Advance
	course atomic.Pointer[course]

	system     System
	nextCheck  time.Duration // since start
	before     *course       // of the clock when it stood still
	suspended  time.Duration // total suspension of the machine at the last check
	difference time.Duration // of the system clock from this one, likewise
	steps      int64         // number of steps of the system clock
}

// System holds the functions that a check calls.
type System struct {
	Wall      func(time.Time) int64                // the system clock in nanoseconds since 1970, from a result of time.Now
	Suspended func() (d time.Duration, known bool) // total suspension of the machine since its start
	Up        func() time.Duration                 // time since its start
}

// course is the rate and offset of the clock between two steps. It is immutable; a
// step replaces it.
type course struct {
	ahead time.Duration // offset from start plus elapsed time, at from

	// The interval of the correction, both ends since start; until is 0 without one.
	from, until time.Duration
	back        bool

	still bool // the clock stands at start plus ahead, see Stand; until is not 0
}

// at returns the clock's offset.
func (c *course) at(elapsed time.Duration) time.Duration {
	if c.until == 0 {
		return c.ahead
	}
	if c.still {
		return c.ahead - elapsed
	}
	d := (min(elapsed, c.until) - c.from) / Rate
	if c.back {
		d = -d
	}
	return c.ahead + d
}

// left returns the remaining correction.
func (c *course) left(elapsed time.Duration) time.Duration {
	d := max(0, c.until-elapsed) / Rate
	if c.back {
		d = -d
	}
	return d
}

// Change is what a check has found and done.
type Change struct {
	Suspended  time.Duration // the machine was suspended for so long, which the clock now includes
	Step       time.Duration // the system clock was set by so much; 0 if it was not
	Followed   bool          // the clock has moved to the time of the system clock
	Moved      time.Duration // by so much
	Difference time.Duration // that the clock corrects from now on, at Rate; 0 unless Step has begun it
}

// New returns a clock that agrees with the system clock now.
func New() *Clock {
	c := &Clock{start: time.Now()}
	c.course.Store(new(course))
	c.Read(System{Wall: time.Time.UnixNano, Suspended: suspended, Up: uptime})
	return c
}

// Read makes the clock read s in the place of the clocks of the system, at the next check.
// Suspensions before that do not count. Simulations use it.
func (c *Clock) Read(s System) {
	c.system, c.nextCheck = s, 0
	c.suspended, _ = s.Suspended()
}

// Recheck makes a check due now. Simulations use it.
func (c *Clock) Recheck() { c.nextCheck = 0 }

// Start returns the time at which the clock was made.
func (c *Clock) Start() time.Time { return c.start }

// Now returns the time. It takes two thirds of the time of time.Now.
func (c *Clock) Now() time.Time { return c.start.Add(c.elapsedTime(time.Since(c.start))) }

// Since returns the time that has passed since t, a time of this clock.
func (c *Clock) Since(t time.Time) time.Duration {
	return c.elapsedTime(time.Since(c.start)) - t.Sub(c.start)
}

// elapsedTime returns the time since start by this clock.
func (c *Clock) elapsedTime(elapsed time.Duration) time.Duration {
	return elapsed + c.course.Load().at(elapsed) + time.Duration(c.offset.Load())
}

// Advance moves the clock by d, which may be negative, for simulations. The difference
// that this makes from the system clock is not corrected. It may be called concurrently.
func (c *Clock) Advance(d time.Duration) { c.offset.Add(int64(d)) }

// Stand makes the clock stand still, for simulations, or run on from where it stands. The
// difference that this makes from the system clock is not corrected.
func (c *Clock) Stand(still bool) {
	elapsed, way := time.Since(c.start), c.course.Load()
	switch {
	case still && !way.still:
		c.before = way
		c.course.Store(&course{ahead: elapsed + way.at(elapsed), until: 1, still: true})
	case !still && way.still:
		c.offset.Add(int64(way.ahead - elapsed - c.before.at(elapsed)))
		c.course.Store(c.before)
	}
}

// Still reports whether the clock stands still.
func (c *Clock) Still() bool { return c.course.Load().still }

// Due returns the time, and whether the system clock has to be checked now. Then the time
// is invalid after the check.
func (c *Clock) Due() (now time.Time, check bool) {
	elapsed := time.Since(c.start)
	return c.start.Add(c.elapsedTime(elapsed)), elapsed >= c.nextCheck
}

// Check compares the clock with the system clock and reacts to steps and suspensions.
// With follow it moves to the time of the system clock at once.
func (c *Clock) Check(follow bool) (found Change) {
	now := time.Now()
	elapsed := now.Sub(c.start)
	c.nextCheck = elapsed + checkInterval
	way := c.course.Load()
	if way.still {
		return found
	}
	if total, known := c.system.Suspended(); known && total-c.suspended >= checkInterval {
		found.Suspended = total - c.suspended
		c.suspended = total
		way = c.jump(elapsed, found.Suspended)
	}
	c.difference = time.Duration(c.system.Wall(now)-c.start.UnixNano()) - elapsed - way.at(elapsed)
	if step := c.difference - way.left(elapsed); step.Abs() >= tolerance {
		found.Step = step
		c.steps++
	}
	follow = follow || c.Now().Unix() < sanity || c.system.Up() < bootTime
	switch {
	case follow && (found.Step != 0 || c.difference.Abs() >= tolerance):
		found.Followed, found.Moved = true, c.difference
		c.jump(elapsed, c.difference)
		c.difference = 0
	case found.Step != 0:
		found.Difference = c.difference
		c.course.Store(&course{
			ahead: way.at(elapsed), from: elapsed, until: elapsed + c.difference.Abs()*Rate, back: c.difference < 0,
		})
	}
	return found
}

// jump moves the clock by d.
func (c *Clock) jump(elapsed, d time.Duration) *course {
	way := &course{ahead: c.course.Load().at(elapsed) + d}
	c.course.Store(way)
	return way
}

// Steps returns how many times the system clock was set, Difference how far the system
// clock was ahead of this one at the last check, and Suspended how long the machine had
// been suspended since its start.
func (c *Clock) Steps() int64 { return c.steps }

// Difference is described at Steps.
func (c *Clock) Difference() time.Duration { return c.difference }

// Suspended is described at Steps.
func (c *Clock) Suspended() time.Duration { return c.suspended }
