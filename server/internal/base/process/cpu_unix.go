//go:build unix

package process

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time that the process has used.
func CPUTime() (system, user time.Duration) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	return time.Duration(u.Stime.Nano()), time.Duration(u.Utime.Nano())
}
