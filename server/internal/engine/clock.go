package engine

import (
	"math"
	"time"

	"github.com/zsetd/zsetd/server/internal/base/clock"
	"github.com/zsetd/zsetd/server/internal/engine/metrics"
)

// maxTimerInterval is the longest that the timer is set for; see package clock.
const maxTimerInterval = 10 * time.Second

// Clock returns the server's time.
func (srv *Engine) Clock() time.Time { return srv.Time.Now() }

// since returns the time that has passed since t, a time of the server's clock.
func (srv *Engine) since(t time.Time) time.Duration { return srv.Time.Since(t) }

// Freeze reads the clock once for the commit scopes of this lock hold.
func (srv *Engine) Freeze() {
	srv.checks.known = false
	now, check := srv.Time.Due()
	if check {
		srv.checkClock()
		now = srv.Time.Now()
	}
	srv.begin(now)
}

// checkClock makes the clock react to steps of the system clock.
func (srv *Engine) checkClock() {
	found := srv.Time.Check(srv.Config.ClockSteps == "follow")
	if found.Suspended != 0 || found.Followed {
		srv.Timers.timerAt = math.MinInt64 // so that setTimer sets it again
	}
	if found.Suspended != 0 {
		srv.Log.Info("the system was suspended; the clock includes that time", "for", found.Suspended.Round(time.Millisecond))
	}
	switch d := found.Difference; {
	case found.Followed:
		srv.shiftDeadlines(found.Moved)
		if found.Step != 0 {
			srv.Log.Warn("the system clock was set; following it immediately", "by", found.Step.Round(time.Millisecond))
		} else {
			srv.Log.Warn("following the system clock immediately", "by", found.Moved.Round(time.Millisecond))
		}
	case found.Step != 0:
		srv.Log.Warn("the system clock was set; following it by 1 ms per second, so that keys expire neither early nor late",
			"by", found.Step.Round(time.Millisecond), "difference", d.Round(time.Millisecond),
			"for", (d.Abs() * clock.Rate).Round(time.Second), "hint", "CONFIG SET clock-steps follow sets it immediately")
	}
}

// shiftDeadlines moves the ends of waits for a time to pass along with a clock that has
// moved by d.
func (srv *Engine) shiftDeadlines(d time.Duration) {
	ms := d.Milliseconds() // rounded up, so that no wait ends early
	if time.Duration(ms)*time.Millisecond < d {
		ms++
	}
	for _, w := range srv.Waits.Deadlines {
		w.at += ms // their order is preserved
	}
	srv.Queries.moved(d)
	if srv.Pauses.Until != 0 {
		srv.Pauses.Until += ms
	}
	for _, at := range []*int64{&srv.Timers.nextIdle, &srv.Backups.next, &srv.Freeing.next} {
		if *at != 0 {
			*at += ms
		}
	}
	shift := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(d)
		}
	}
	shift(&srv.Identity.Start)
	for _, s := range srv.Clients.Sessions {
		for _, t := range []*time.Time{&s.Activity.Created, &s.Activity.lastUsed, &s.Activity.lastMoved, &s.Queue.softSince, &s.Queue.seenAt} {
			shift(t)
		}
	}
	for i := range srv.Stats.sampled {
		shift(&srv.Stats.sampled[i].at)
	}
	shift(&srv.Clients.warnedOfHTTP)
	shift(&srv.Memory.exceededSince)
}

// InfoClock writes the clock's fields of INFO.
func (srv *Engine) InfoClock(t *metrics.Text) {
	t.Int("clock_steps", srv.Time.Steps())
	t.Int("clock_difference_ms", srv.Time.Difference().Milliseconds())
	t.Int("clock_suspended_seconds", int64(srv.Time.Suspended()/time.Second))
}
