package process

import (
	"runtime"
	"testing"
	"time"
)

// TestThreadTime checks that the time of a thread has a finer resolution than a millisecond.
func TestThreadTime(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	last, ok := ThreadTime()
	if !ok {
		t.Fatal("not known")
	}
	for first := last; last < first+20*time.Millisecond; {
		now, _ := ThreadTime()
		if now > last && now-last < time.Millisecond {
			return
		}
		last = now
	}
	t.Error("no step of less than a millisecond in 20 ms")
}
