package process

import (
	"syscall"
	"time"
)

// rusageThread is RUSAGE_THREAD of getrusage(2), which package syscall lacks.
const rusageThread = 1

// ThreadTime returns the processor time that the thread of the calling goroutine has used; ok is
// false if the system does not report it.
func ThreadTime() (used time.Duration, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(rusageThread, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Stime.Nano() + u.Utime.Nano()), true
}
