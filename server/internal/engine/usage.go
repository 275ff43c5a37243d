package engine

import (
	"bytes"
	"os"
	"runtime/metrics"
	"strconv"

	"github.com/zsetd/zsetd/zset"
)

// HeapState is the Go heap, in bytes.
type HeapState struct {
	Allocated int64 // objects
	Active    int64 // and the space between them
	Resident  int64 // and free memory not returned to the system
	RSS       int64 // the process as the system sees it
}

// UsedMemory returns the bytes of the objects in the heap.
func UsedMemory() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// LiveMemory returns the bytes of the objects that the last garbage collection
// found live; 0 before the first one.
func LiveMemory() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// ReadHeap reads the state of the heap and the memory of the process.
func ReadHeap() HeapState {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(s)
	n := func(i int) int64 { return int64(s[i].Value.Uint64()) }
	h := HeapState{Allocated: n(0), Active: n(0) + n(1), Resident: n(0) + n(1) + n(2), RSS: n(3) - n(4)}
	if rss, ok := residentSize(); ok {
		h.RSS = rss
	}
	return h
}

// residentSize reads the resident size of the process from Linux.
func residentSize() (int64, bool) {
	b, _ := os.ReadFile("/proc/self/statm")
	pages, ok := residentPages(b)
	return pages * int64(os.Getpagesize()), ok
}

// residentPages returns the second number of a file as /proc/self/statm.
func residentPages(statm []byte) (pages int64, ok bool) {
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages, err == nil
}

// Memory estimates the bytes that all sessions take.
func (t *clients) Memory() (n int64) {
	for _, s := range t.Sessions {
		if s.End != Killed { // a killed session is about to be freed
			n += s.memory()
		}
	}
	return n
}

func argsSize(argv [][]byte) (n int64) {
	for _, a := range argv {
		n += int64(len(a))
	}
	return n
}

// Footprint estimates the bytes of a value; for a sorted set from samples of its
// members (0: all). The other types sample their own elements.
func Footprint(v any, samples int) int {
	type sized interface{ Bytes() int }
	n := v.(sized).Bytes()
	if z, ok := v.(*zset.Set); ok {
		n += averageMember(z, samples)
	}
	return n
}

// averageMember estimates the bytes of all members of a sorted set.
func averageMember(z *zset.Set, samples int) int {
	if samples <= 0 || samples > z.Len() {
		samples = z.Len()
	}
	n := 0
	for i := range samples {
		e, _ := z.At(i * z.Len() / samples)
		n += len(e.Member)
	}
	return int(float64(n) / float64(samples) * float64(z.Len()))
}
