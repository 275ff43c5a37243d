package engine

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestReadHeap compares the parts of the heap with what package runtime says of them, while
// memory is in use and after it was freed.
func TestReadHeap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const size = 64 << 20
	held := make([]byte, size)
	h := ReadHeap()
	if h.Allocated < size || h.Active < h.Allocated || h.Resident < h.Active {
		t.Errorf("with %d bytes: %+v", len(held), h)
	}
	runtime.KeepAlive(held)
	for range 10 { // the runtime may return the free memory to the system before it is read
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		free := int64(m.HeapIdle - m.HeapReleased)
		h = ReadHeap()
		if difference := h.Resident - h.Active - free; free > size/4 && -size/16 < difference && difference < size/16 {
			return
		}
		runtime.KeepAlive(make([]byte, size))
	}
	t.Errorf("after the memory was freed: %+v", h)
}

func TestResidentPages(t *testing.T) {
	for text, want := range map[string]int64{"": -1, "100": -1, "100 x": -1, "100 20": 20, "100 30 1\n": 30} {
		if got, ok := residentPages([]byte(text)); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %d, %v", text, got, ok)
		}
	}
}
