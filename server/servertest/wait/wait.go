package wait

import (
	"testing"
	"time"
)

const (
	// limit is how long a condition may take to hold. A busy machine may be slow.
	limit = time.Minute
	// firstPause and longestPause bound the time between two evaluations, which doubles.
	firstPause, longestPause = 20 * time.Microsecond, 5 * time.Millisecond
)

// Holds evaluates done until it returns true. It returns false if that takes more than a
// minute.
func Holds(done func() bool) bool {
	for end, pause := time.Now().Add(limit), firstPause; !done(); pause = min(2*pause, longestPause) {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// Until evaluates done until it returns true. It fails the test if that takes more than
// a minute, with the message "timeout, waiting until" and the parameter what. Only the
// goroutine of the test may call it.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	if !Holds(done) {
		t.Fatalf("timeout, waiting until %s", what)
	}
}

// Pace spaces the operations of a load, or gives a load time. No result depends on it.
func Pace(d time.Duration) { time.Sleep(d) }

// Elapse lets time pass for a deadline, or for a measurement, where no fake clock can:
// in another process, or in the kernel.
func Elapse(d time.Duration) { time.Sleep(d) }
