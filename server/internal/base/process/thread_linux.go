package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime returns the processor time that the thread of the calling goroutine has used; ok is
// false if the system does not report it. getrusage(2) has a resolution of a tick, 4 ms, on some
// machines.
func ThreadTime() (used time.Duration, ok bool) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
