package server

import (
	"math"
	"sync/atomic"
	"time"
)

// The server's clock is the system's at the start, and from then on the time that has
// passed, by the clock that nobody can set. So when somebody sets the system's clock
// (an operator, NTP, a hypervisor), no deadline moves: nothing expires early, late or
// twice, and nobody who waits is kept waiting or sent away. A difference from the
// system's clock that lasts is made up for by a millisecond in each second, which
// makes a TTL wrong by a thousandth. The time for which the machine was suspended
// counts, on Linux, where it can be told from a step.
//
// It follows the system's clock at once where that is the better guess: with the
// parameter clock-steps set to follow, as Redis does always; when the machine has been
// up for less than ten minutes, for then its clock is being set; and when it is before
// 2020 by the server's clock. What waits for a time to pass, rather than for a time of
// day, goes on waiting for as long as it had to: blocked commands, CLIENT PAUSE, idle
// clients.
//
// What was kept is kept with the times that the server's clock had. After a restart
// that is the system's again, so a difference that was left then counts at once.
//
// To read it costs half of what time.Now does, which reads both clocks of the system;
// they are compared ten times a second at most, when somebody takes the lock. Rejected:
// to wait for the kernel to tell of a step (a timerfd can), which takes a descriptor
// and a goroutine for each server and works on Linux only. So if nothing happens, the
// timer rings every ten seconds as long as it is set: after the machine was suspended
// nobody waits for longer than that.

const (
	clockLook   = 100 * time.Millisecond // between two looks at the system's clock
	clockRest   = 10 * time.Second       // the longest that the timer is set for
	clockNoise  = 10 * time.Millisecond  // what is not taken for a step
	clockRate   = 1000                   // in so many seconds it is put right by one
	clockYoung  = 10 * time.Minute       // since the machine has started
	clockSanity = 1577836800             // seconds from 1970 to 2020
)

// clock is the server's.
type clock struct {
	base   time.Time    // when it began; never changed
	offset atomic.Int64 // nanoseconds that it runs ahead; see Advance
	course atomic.Pointer[course]

	// The rest is guarded by the server's lock.
	system     systemClock
	nextLook   time.Duration // since base
	asleep     time.Duration // for so long the machine was suspended, when looked last
	difference time.Duration // of the system's clock from this one, likewise
	steps      int64         // of the system's clock
}

// systemClock is what is asked at a look. Tests have their own.
type systemClock struct {
	wall   func(time.Time) int64                // the nanoseconds since 1970 of what time.Now has returned
	asleep func() (d time.Duration, known bool) // for how long the machine was suspended since it has started
	up     func() time.Duration                 // since then
}

// course is how the clock goes between two steps. It is never changed, but replaced.
type course struct {
	ahead time.Duration // of base and the time that has passed, at from

	// From then on, until then, both since base, it is put right.
	from, until time.Duration
	back        bool
}

// at returns how far ahead the clock is.
func (c *course) at(elapsed time.Duration) time.Duration {
	if c.until == 0 {
		return c.ahead
	}
	d := (min(elapsed, c.until) - c.from) / clockRate
	if c.back {
		d = -d
	}
	return c.ahead + d
}

// left returns by how much it is still to be put right.
func (c *course) left(elapsed time.Duration) time.Duration {
	d := max(0, c.until-elapsed) / clockRate
	if c.back {
		d = -d
	}
	return d
}

func (c *clock) init() {
	c.base = time.Now()
	c.system = systemClock{wall: time.Time.UnixNano, asleep: suspended, up: uptime}
	c.course.Store(new(course))
	c.asleep, _ = c.system.asleep()
}

// now returns the time. It may be called without the lock, as since may.
func (c *clock) now() time.Time { return c.base.Add(c.shows(time.Since(c.base))) }

// since returns the time that has passed since t, a time of this clock.
func (c *clock) since(t time.Time) time.Duration { return c.shows(time.Since(c.base)) - t.Sub(c.base) }

// shows returns the time since base by this clock.
func (c *clock) shows(elapsed time.Duration) time.Duration {
	return elapsed + c.course.Load().at(elapsed) + time.Duration(c.offset.Load())
}

// clock returns the server's time.
func (srv *Server) clock() time.Time { return srv.time.now() }

// since returns the time that has passed since t, a time of the server's clock.
func (srv *Server) since(t time.Time) time.Duration { return srv.time.since(t) }

// freeze freezes the clock for the units of this hold of the lock.
func (srv *Server) freeze() {
	c := &srv.time
	elapsed := time.Since(c.base)
	if elapsed >= c.nextLook {
		srv.checkClock()
		elapsed = time.Since(c.base)
	}
	srv.setClock(c.base.Add(c.shows(elapsed)))
	srv.keeper.before = srv.keys.Sequence()
}

// checkClock looks at the system's clock.
func (srv *Server) checkClock() {
	c := &srv.time
	now := time.Now()
	elapsed := now.Sub(c.base)
	c.nextLook = elapsed + clockLook
	way := c.course.Load()
	if asleep, known := c.system.asleep(); known && asleep-c.asleep >= clockLook {
		slept := asleep - c.asleep
		c.asleep = asleep
		way = srv.putClock(elapsed, slept)
		srv.log.Info("the machine was suspended; that time counts", "for", slept.Round(time.Millisecond))
	}
	c.difference = time.Duration(c.system.wall(now)-c.base.UnixNano()) - elapsed - way.at(elapsed)
	step := c.difference - way.left(elapsed)
	follow := srv.config.clockSteps == "follow" || srv.time.now().Unix() < clockSanity || c.system.up() < clockYoung
	stepped := step.Abs() >= clockNoise
	switch {
	case follow && (stepped || c.difference.Abs() >= clockNoise):
		srv.putClock(elapsed, c.difference)
		srv.spare(c.difference)
		if stepped {
			srv.log.Warn("the system's clock was set; it is followed at once", "by", step.Round(time.Millisecond))
		} else {
			srv.log.Warn("the system's clock is followed at once", "by", c.difference.Round(time.Millisecond))
		}
		c.difference = 0
	case stepped:
		d := c.difference
		c.course.Store(&course{ahead: way.at(elapsed), from: elapsed, until: elapsed + d.Abs()*clockRate, back: d < 0})
		srv.log.Warn("the system's clock was set; it is followed by 1 ms a second, so that nothing expires early or late",
			"by", step.Round(time.Millisecond), "difference", d.Round(time.Millisecond),
			"for", (d.Abs() * clockRate).Round(time.Second), "to follow at once", "CONFIG SET clock-steps follow")
	}
	if stepped {
		c.steps++
	}
}

// putClock puts the clock forward, or back.
func (srv *Server) putClock(elapsed, d time.Duration) *course {
	way := &course{ahead: srv.time.course.Load().at(elapsed) + d}
	srv.time.course.Store(way)
	srv.timerAt = math.MinInt64 // set it anew
	return way
}

// spare moves with the clock, which was put forward by d, what waits for a time to
// pass.
func (srv *Server) spare(d time.Duration) {
	ms := d.Milliseconds() // rounded up, so that nobody is early
	if time.Duration(ms)*time.Millisecond < d {
		ms++
	}
	for _, w := range srv.deadlines {
		w.at += ms // and their order stays
	}
	if srv.pausedUntil != 0 {
		srv.pausedUntil += ms
	}
	if srv.nextIdle != 0 {
		srv.nextIdle += ms
	}
	shift := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(d)
		}
	}
	shift(&srv.start)
	for _, s := range srv.sessions {
		for _, t := range []*time.Time{&s.created, &s.lastUsed, &s.lastMoved, &s.softSince, &s.seenAt} {
			shift(t)
		}
	}
	for i := range srv.sampled {
		shift(&srv.sampled[i].at)
	}
	shift(&srv.warnedOfHTTP)
	shift(&srv.memoryLimit.since)
}

// infoClock tells of the clock.
func (srv *Server) infoClock(t *infoText) {
	c := &srv.time
	t.int("clock_steps", c.steps)
	t.int("clock_difference_ms", c.difference.Milliseconds())
	t.int("clock_suspended_seconds", int64(c.asleep/time.Second))
}

// clockSteps is the parameter clock-steps.
func clockSteps() parameter {
	return enum("clock-steps", "slew", func(c *config) *string { return &c.clockSteps }, "slew", "follow").
		about("What happens when the system's clock is set: `slew` follows it by 1 ms a second, so that nothing expires early or late, " +
			"`follow` at once, as Redis does.")
}
