package persist

import (
	"log/slog"
	"time"
)

// failing is what follows from failed attempts to save.
type failing struct {
	Failed   error // of the last attempt; nil if it succeeded
	Failures failures
	retry    time.Time
}

// failures counts the attempts to save that have failed since the last success.
type failures struct {
	since    time.Time
	n        int
	logged   string        // the last error that was logged
	Next     time.Time     // when the same error is logged again
	Interval time.Duration // delay until the log entry after that
}

// LastReminder is the time of the latest log line about a failing save.
const (
	// FirstReminder is the delay after which a persistent failure is logged again.
	// Each interval is twice the previous one, up to LastReminder.
	FirstReminder = 10 * time.Second
	LastReminder  = time.Hour
)

// log logs a failure, unless the error is the same as the last one and its next
// reminder is not due. A failure of a save that a client has requested is always
// logged.
func (f *failures) log(log *slog.Logger, err error, asked bool) {
	now := time.Now()
	if f.n++; f.n == 1 {
		f.since = now
	}
	text := err.Error()
	switch {
	case text != f.logged:
		f.Interval = FirstReminder
	case now.Before(f.Next):
		if !asked {
			return
		}
	default:
		f.Interval = min(2*f.Interval, LastReminder)
	}
	f.logged, f.Next = text, now.Add(f.Interval)
	log.Error("saving failed", "error", err, "retry", retryTime, "failures", f.n, "since", f.since.Format(time.RFC3339))
}

// Fail records that a checkpoint could not be written.
func (k *Keeper) Fail(r Result) {
	k.Failures.log(k.o.Log, r.Err, k.Saving || r.Requested)
	k.Failed, k.SaveRequested, k.Saving, k.requested = r.Err, false, false, time.Time{}
	k.retry = time.Now().Add(retryTime)
	k.saveDuration = time.Since(k.saveStarted)
	k.tellSavers(r.Err)
	if r.Checkpoint.needed {
		k.LoseTrack()
	}
	if r.lost {
		k.o.Log.Warn("the data file has failed; writing a new one", "file", k.Path)
		k.LoseTrack()
	}
	k.host.Failed()
	if k.Automatic() {
		k.timerAt = time.Time{}
		k.setTimer(k.retry)
	}
}

// Refuses reports whether commands that write are refused, because saving fails.
func (k *Keeper) Refuses() bool { return k.Failed != nil && k.o.Settings.StopWrites && k.Automatic() }
