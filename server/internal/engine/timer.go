package engine

import (
	"math"
	"time"

	"github.com/zsetd/zsetd/server/internal/values/score"
)

// timers are the server's one timer and what it is set for, besides the timers of
// waiters and the end of a pause.
type timers struct {
	timer        Alarm
	timerAt      int64 // microseconds since 1970; math.MaxInt64 = not set
	TimerStopped bool  // timers are no longer set
	NextExpiry   int64 // the earliest deadline of a key; math.MaxInt64 = none
	Debugging
	nextIdle int64 // next check for idle clients, milliseconds since 1970; 0 = none
}

// Alarm is a timer that calls OnTimer, or OnTimerUnlessBusy. A [time.Timer] is one. The
// results are not used.
type Alarm interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// UseAlarm replaces the timer. With nil the server uses one of the runtime again, which may
// fire a millisecond late while the process is idle.
func (srv *Engine) UseAlarm(a Alarm) {
	srv.OutOfTurn(func() {
		srv.Timers.timer.Stop()
		if a == nil {
			a = time.AfterFunc(math.MaxInt64, srv.OnTimer)
		}
		srv.Timers.timer, srv.Timers.timerAt = a, math.MinInt64
		srv.setTimer()
	})
}

// setTimer sets the one timer to the next instant at which anything is due: the
// deadline of a key, the timeout or alarm of a waiter, the end of CLIENT PAUSE, a
// check for idle clients.
func (srv *Engine) setTimer() {
	if head, changed := srv.Keys.Next(); changed {
		srv.Timers.NextExpiry = head
		if head != math.MaxInt64 {
			srv.Timers.NextExpiry = head + 1 // a key still exists in the millisecond of its deadline
		}
	}
	next := int64(math.MaxInt64)
	if srv.Sweeps() {
		next = srv.Timers.NextExpiry
	}
	if len(srv.Waits.Deadlines) > 0 {
		next = min(next, srv.Waits.Deadlines[0].at)
	}
	if srv.Pauses.Until != 0 {
		next = min(next, srv.Pauses.Until)
	}
	if srv.Timers.nextIdle != 0 && !srv.Timers.CronPaused {
		next = min(next, srv.Timers.nextIdle)
	}
	if srv.Backups.next != 0 {
		next = min(next, srv.Backups.next)
	}
	if srv.Freeing.next != 0 && !srv.Timers.CronPaused {
		next = min(next, srv.Freeing.next)
	}
	if next != math.MaxInt64 {
		next = min(next, score.MaxInstant/1000) * 1000 // in microseconds, at most the last representable instant
	}
	if len(srv.Waits.alarms) > 0 && srv.Pauses.Until == 0 {
		next = min(next, srv.Waits.alarms[0].at)
	}
	if srv.Tracking.On() && !srv.Timers.CronPaused && srv.trackingExceedsLimit() {
		next = min(next, srv.Turn.Instant+1000)
	}
	if srv.Pauses.HasDelayed() || srv.evicting() {
		next = min(next, srv.Turn.Instant)
	}
	next = min(next, srv.queriesDue(next))
	if next == srv.Timers.timerAt || srv.Timers.TimerStopped {
		return
	}
	srv.Timers.timerAt = next
	if next == math.MaxInt64 {
		srv.Timers.timer.Stop()
		return
	}
	if srv.Time.Still() && next > srv.Turn.Instant {
		srv.Timers.timer.Stop() // Advance calls OnTimer
		return
	}
	srv.Timers.timer.Reset(min(time.UnixMicro(next).Sub(srv.Clock()), maxTimerInterval))
}

// Sweeps reports whether the timer removes expired keys and members: on a replica only
// keys that its own clients have written (keyspace.Standby). It must not while data are
// being loaded: the journal is not
// written yet, so the file would keep the removed values, and values written in their
// place would be replayed on top of them. A field would get its old deadline back and be
// lost at the next load.
func (srv *Engine) Sweeps() bool {
	return srv.Timers.ActiveExpire && !srv.Keys.Exposed() && srv.Pauses.Until == 0 && !srv.Timers.CronPaused && srv.Keeper.Loading == nil
}

// sweep removes keys and members whose deadline has passed.
func (srv *Engine) sweep() {
	start := srv.Clock()
	keys, members := srv.Stats.ExpiredKeys, srv.Stats.ExpiredMembers
	srv.sweepDue(start)
	srv.Stats.SweptKeys += srv.Stats.ExpiredKeys - keys
	srv.Stats.SweptMembers += srv.Stats.ExpiredMembers - members
	srv.Keys.Seal()
	took := srv.Clock().Sub(start)
	srv.Stats.SweepTime += took
	if limit := srv.Config.LatencyMonitorThreshold; limit > 0 && took.Milliseconds() >= limit {
		srv.Stats.Latency.Add("expire-cycle", srv.Turn.At, took)
	}
}

// OnTimer is the timer's callback.
func (srv *Engine) OnTimer() {
	srv.Attempt(func() { srv.Maintain(srv.runTimer) })
}

// OnTimerUnlessBusy is OnTimer for a loop of a transport, which must not wait for a script.
// While a script lends the lock it does nothing, and returns false.
func (srv *Engine) OnTimerUnlessBusy() bool { return srv.MaintainUnlessBusy(srv.runTimer) }

func (srv *Engine) runTimer() {
	srv.Timers.timerAt = math.MinInt64 // so that setTimer sets the timer again
	srv.serveDue()
	if srv.Sweeps() || srv.Pauses.HasDelayed() {
		srv.sweep()
		srv.Turn.Scope.Commit()
	}
	if srv.Memory.MoreToEvict {
		srv.lacksMemory()
	}
	for len(srv.Waits.Deadlines) > 0 && srv.Waits.Deadlines[0].at <= srv.Keys.Now() {
		w := srv.Waits.Deadlines[0]
		w.sess.EndWait(w, w.Timeout)
	}
	if srv.Pauses.Until != 0 && srv.Pauses.Until <= srv.Keys.Now() {
		srv.Unpause()
	}
	if srv.Timers.nextIdle != 0 && !srv.Timers.CronPaused && srv.Timers.nextIdle <= srv.Keys.Now() {
		srv.closeIdle()
	}
	if srv.Backups.next != 0 && srv.Backups.next <= srv.Keys.Now() {
		srv.beginBackup()
	}
	if srv.Freeing.next != 0 && !srv.Timers.CronPaused && srv.Freeing.next <= srv.Keys.Now() {
		srv.defragment()
	}
}

// activity is what a session has done last.
type activity struct {
	Created   time.Time
	lastUsed  time.Time
	lastMoved time.Time // see closeIdle
	moved     struct{ input, unsent int64 }
	last      *Command
	wroteAt   uint64 // see WroteAt
	savedBy   uint64 // epoch of the checkpoint that has the session's last change; 0: none
	ran       int64  // commands, with those in its transactions and scripts
	written   int64  // bytes of output that the transport has taken
}

// closeIdle disconnects the clients that have been silent for longer than the
// parameter timeout allows, and sets the time of the next check. Clients with
// subscriptions, blocked clients and clients that make progress with sending a
// command or receiving a reply are not idle.
func (srv *Engine) closeIdle() {
	srv.Timers.nextIdle = 0
	if srv.Config.Timeout == 0 {
		return
	}
	limit := time.Duration(srv.Config.Timeout) * time.Second
	next := srv.Turn.At.Add(limit)
	for _, s := range srv.Clients.Sessions {
		if s.Stall.Blocked != nil || s.Stall.postponed != nil || s.awaitsReplies() || s.Modes.monitoring || s.Modes.Replica || s.Modes.Primary || s.subscriptions.Len() > 0 {
			continue
		}
		due := s.Activity.lastUsed.Add(limit)
		if s.Activity.lastMoved.After(s.Activity.lastUsed) {
			due = s.Activity.lastMoved.Add(limit)
		}
		if due.After(srv.Turn.At) {
			if due.Before(next) {
				next = due
			}
			continue
		}
		if s.proceeds() {
			s.Activity.lastMoved = srv.Turn.At
			continue
		}
		srv.Log.Info("closing client: it was idle longer than timeout", "client", s.Peer.Addr, "name", s.Login.Name)
		s.Kill()
	}
	srv.Timers.nextIdle = next.UnixMilli() + 1
}

// leastProgress is how many bytes of a command or a reply a connection must move
// within timeout to count as not idle. Redis accepts one byte, so a client that
// sends one byte a minute keeps its connection without limit.
const leastProgress = 1 << 10

// proceeds reports whether the client has sent that much of an incomplete command,
// or received that much of a reply, since the previous call. At the first call the
// existence of either is enough.
func (s *Session) proceeds() bool {
	input, unsent := int64(0), s.Queue.Unsent.Load()
	if half, _ := s.Peer.InputBuffer(); half > 0 {
		input = s.Peer.Conn.Arrived()
	}
	moved := input > 0 && (s.Activity.moved.input == 0 || input-s.Activity.moved.input >= leastProgress) ||
		unsent > 0 && (s.Activity.moved.unsent == 0 || max(unsent-s.Activity.moved.unsent, s.Activity.moved.unsent-unsent) >= leastProgress)
	s.Activity.moved.input, s.Activity.moved.unsent = input, unsent
	return moved
}
