package server

// Tests that measure time and memory. Other work of the process and the machine can
// break them, so make faults runs them and go test ./... does not.

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// measured skips a test unless make faults runs it.
func measured(t *testing.T) {
	t.Helper()
	if os.Getenv("ZSETD_MEASURE") == "" {
		t.Skip("it measures time or memory: make faults")
	}
}

// alive returns the bytes that the garbage collector finds in use.
func alive() int64 {
	runtime.GC()
	runtime.GC() // collects objects that finalizers have released
	return engine.UsedMemory()
}

// settled returns alive() when it has stopped falling, which it does while servers of
// other tests shut down.
func settled() int64 {
	least := alive()
	for quiet := 0; quiet < 5; quiet++ {
		wait.Elapse(20 * time.Millisecond)
		if now := alive(); now < least-64<<10 {
			least, quiet = now, 0
		}
	}
	return least
}

// The memory that values take stays at the limit, for values of all types.
func TestMeasureLimitIsHeld(t *testing.T) {
	measured(t)
	limitIsHeld(t, 16<<20, true)
}

// A large value that was removed does not stay in memory until something else is
// allocated.
func TestMeasureLazyFree(t *testing.T) {
	measured(t)
	srv, addr := start(t, nil)
	c := dialRaw(t, addr)
	runtime.GC()
	before := engine.UsedMemory()
	for i := range 400 {
		c.call(fmt.Sprintf("SETRANGE s%d 100000 x", i))
	}
	c.call("FLUSHALL ASYNC")
	until(t, srv, "memory to be given back", func() bool { return engine.UsedMemory() < before+10<<20 })
}

// The memory that a command with many arguments takes is released after it.
func TestMeasureManyArguments(t *testing.T) {
	measured(t)
	srv, addr := start(t, nil)
	c := dialRaw(t, addr)
	runtime.GC()
	before := engine.LiveMemory()
	c.send("*100002\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n" + strings.Repeat("$1\r\nx\r\n", 100000))
	c.reply()
	c.call("DEL l")
	until(t, srv, "memory to be given back", func() bool {
		runtime.GC()
		return engine.LiveMemory() < before+1<<20
	})
}
