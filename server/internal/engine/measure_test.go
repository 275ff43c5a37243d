package engine_test

// Tests that measure time and memory. Other work of the process and the machine can
// break them, so make faults runs them and go test ./... does not.

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// settled returns alive() when it has stopped falling, which it does while servers of
// other tests shut down.
func settled() int64 {
	least := enginetest.UsedAfterGC()
	for quiet := 0; quiet < 5; quiet++ {
		wait.Elapse(20 * time.Millisecond)
		if now := enginetest.UsedAfterGC(); now < least-64<<10 {
			least, quiet = now, 0
		}
	}
	return least
}

// The memory that values take stays at the limit, for values of all types.
func TestMeasureLimitIsHeld(t *testing.T) {
	enginetest.Measured(t)
	limitIsHeld(t, 16<<20, true)
}

// A large value that was removed does not stay in memory until something else is
// allocated.
func TestMeasureLazyFree(t *testing.T) {
	enginetest.Measured(t)
	srv, addr := enginetest.Start(t, nil)
	c := enginetest.Dial(t, addr)
	runtime.GC()
	before := engine.UsedMemory()
	for i := range 400 {
		c.Call(fmt.Sprintf("SETRANGE s%d 100000 x", i))
	}
	c.Call("FLUSHALL ASYNC")
	enginetest.Until(t, srv, "memory to be given back", func() bool { return engine.UsedMemory() < before+10<<20 })
}

// The memory that a command with many arguments takes is released after it.
func TestMeasureManyArguments(t *testing.T) {
	enginetest.Measured(t)
	srv, addr := enginetest.Start(t, nil)
	c := enginetest.Dial(t, addr)
	runtime.GC()
	before := engine.LiveMemory()
	c.Send("*100002\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n" + strings.Repeat("$1\r\nx\r\n", 100000))
	c.Reply()
	c.Call("DEL l")
	enginetest.Until(t, srv, "memory to be given back", func() bool {
		runtime.GC()
		return engine.LiveMemory() < before+1<<20
	})
}
