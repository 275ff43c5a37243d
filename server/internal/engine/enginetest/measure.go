package enginetest

import (
	"os"
	"runtime"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"
)

// Measured skips a test unless make faults runs it.
func Measured(t *testing.T) {
	t.Helper()
	if os.Getenv("ZSETD_MEASURE") == "" {
		t.Skip("it measures time or memory: make faults")
	}
}

// UsedAfterGC returns the bytes that the garbage collector finds in use.
func UsedAfterGC() int64 {
	runtime.GC()
	runtime.GC() // collects objects that finalizers have released
	return engine.UsedMemory()
}
