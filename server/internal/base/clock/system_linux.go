package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspended returns how long the machine has been suspended since its start: the
// difference of two clocks of the kernel.
func suspended() (d time.Duration, known bool) {
	for range 3 {
		before, during, after := kernelClock(unix.CLOCK_MONOTONIC), kernelClock(unix.CLOCK_BOOTTIME), kernelClock(unix.CLOCK_MONOTONIC)
		if after-before < tolerance {
			return during - (before+after)/2, true
		}
	}
	return 0, false // readings too far apart: a slow machine
}

// uptime returns the time since the machine has started.
func uptime() time.Duration { return kernelClock(unix.CLOCK_BOOTTIME) }

func kernelClock(which int32) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(which, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
