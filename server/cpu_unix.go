//go:build unix

package server

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time that the process has used.
func cpuTime() (system, user time.Duration) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	return time.Duration(u.Stime.Nano()), time.Duration(u.Utime.Nano())
}
