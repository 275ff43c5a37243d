package replication

import (
	"runtime"
	"syscall"
)

// nap sleeps for yieldTime, in effect some 70 µs, and lets other goroutines run. Where no
// other goroutine has work, time.Sleep takes a millisecond: the runtime waits in epoll,
// which counts in milliseconds.
func nap() {
	d := syscall.NsecToTimespec(int64(yieldTime))
	syscall.Nanosleep(&d, nil) // a signal may end it early
	runtime.Gosched()
}
