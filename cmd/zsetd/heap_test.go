package main

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

func none() int64 { return 0 }

// gcPercent returns a GC percentage that is not the runtime's: a server of another test, which
// has just stopped, may set that one.
func gcPercent() (set func(int) int) {
	now := 100
	return func(percent int) (before int) {
		before, now = now, percent
		return before
	}
}

// The permitted growth of the heap follows the cost of collections, within bounds.
func TestHeapRoom(t *testing.T) {
	h := newHeap(none, none)
	s := heapState{}
	cycle := func(share float64) {
		s.automatic++
		s.collector += share
		s.user += 1 - share
		h.adapt(s)
	}
	for _, step := range []struct {
		share  float64
		cycles int
		want   float64
	}{
		{0.01, 1, mostGrowthRatio / 1.5}, {0.04, 9, mostGrowthRatio / 1.5}, {0.01, 20, leastGrowthRatio},
		{0.5, 1, leastGrowthRatio * 1.5}, {0.5, 20, mostGrowthRatio},
	} {
		for range step.cycles {
			cycle(step.share)
		}
		if math.Abs(h.growthRatio-step.want) > 1e-9 {
			t.Errorf("after %d collections that take %v of the CPU, the heap may grow by %v of it, not %v", step.cycles, step.share, h.growthRatio, step.want)
		}
	}
	s.user += 1000
	if h.adapt(s); h.growthRatio != mostGrowthRatio { // the number of automatic ones has not changed
		t.Errorf("a collection that was called changes the room to %v", h.growthRatio)
	}
}

// The GC percentage makes the runtime collect at the intended goal.
func TestHeapGoal(t *testing.T) {
	const mega = 1 << 20
	for _, test := range []struct {
		live  uint64
		part  float64
		limit int64
		goal  float64
	}{
		{0, 1, 0, leastRoom}, {mega, 1, 0, mega + leastRoom}, {20 * mega, 0.2, 0, 20*mega + leastRoom},
		{100 * mega, 0.5, 0, 150 * mega}, {1000 * mega, 0.2, 0, 1200 * mega},
		{100 * mega, 0.5, 1000 * mega, 150 * mega}, {900 * mega, 1, 1000 * mega, 1250 * mega}, {1000 * mega, 1, 1000 * mega, 1250 * mega},
		{1500 * mega, 1, 1000 * mega, 1800 * mega}, {15 * mega, 1, 16 * mega, 15*mega + leastRoom},
	} {
		h := newHeap(func() int64 { return test.limit }, none)
		h.setPercent = gcPercent()
		h.growthRatio = test.part
		s := heapState{live: test.live, roots: mega / 2}
		h.setGoal(s)
		set := float64(h.setPercent(100))
		goal := max(float64(s.live)+float64(s.live+s.roots)*set/100, 4*mega*set/100)
		if goal < test.goal*0.97 || goal > test.goal*1.01 {
			t.Errorf("%d MB alive, %v: the goal is %.1f MB, not %.1f", test.live/mega, test.part, goal/mega, test.goal/mega)
		}
	}
}

// Memory is returned once, when the server is idle and some is free.
func TestHeapQuiet(t *testing.T) {
	const mega = 1 << 20
	h := newHeap(none, none)
	given := 0
	now := time.Unix(1000, 0)
	s := heapState{live: 100 * mega, objects: 100 * mega}
	compacted := 0
	h.releaseMemory, h.compact = func() { given++ }, func() { compacted++ }
	unmapped := 0
	h.releaseProgram = func() { unmapped++ }
	looks := func(n int, each uint64) {
		for range n {
			now = now.Add(h.interval)
			s.allocated += each
			h.checkIdle(s, now)
		}
	}
	expect := func(what string, want int) {
		t.Helper()
		if given != want || compacted != want {
			t.Errorf("%s: memory was given back %d times, and values moved %d times, not %d", what, given, compacted, want)
		}
	}
	looks(20, 8*mega)
	expect("while it works", 0)
	looks(1, 0)
	expect("at the first quiet look", 0)
	looks(1, 0)
	expect("at the second", 1)
	looks(50, 1000)
	expect("in quiet", 1)
	if h.interval != longestInterval {
		t.Errorf("looks every %v", h.interval)
	}
	looks(1, 30*mega)
	if h.interval != checkInterval {
		t.Errorf("looks every %v when there is work", h.interval)
	}
	looks(5, 0)
	expect("after more work", 2)
	if unmapped != 2 {
		t.Errorf("the program was unmapped %d times, not in each of two rests", unmapped)
	}
	for range 9 {
		s.processor += h.interval / 10
		looks(1, 0)
	}
	if unmapped != 2 || h.interval != workInterval {
		t.Errorf("while it works without allocations: unmapped %d times, looks every %v", unmapped-2, h.interval)
	}
	if looks(3, 0); unmapped != 3 {
		t.Errorf("after that the program was unmapped %d times", unmapped-2)
	}
	s.free = 60 * mega
	looks(1, 0)
	expect("when much was freed", 3)
	s.free = 6 * mega
	h.next = now.Add(time.Hour)
	looks(50, 0)
	expect("when a little is free, so soon after", 3)
	now = now.Add(time.Hour)
	looks(1, 0)
	expect("when a little is free, later", 4)
	s.free = mega / 2
	now = now.Add(time.Hour)
	looks(5, 0)
	expect("when nearly nothing is free", 4)
	used := int64(90 * mega)
	h.used = func() int64 { return used }
	looks(5, 0)
	expect("when nothing has gone", 4)
	used -= 10 * mega
	looks(5, 0)
	expect("when little has gone", 4)
	used -= 20 * mega
	looks(5, 0)
	expect("when much has gone and nothing was allocated", 5)
}

// Each collection is signalled, and the signal causes none.
func TestHeapNotices(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	h := newHeap(none, none)
	h.watch(ctx)
	for i := range 3 {
		runtime.GC()
		select {
		case <-h.cycle:
		case <-time.After(time.Minute):
			t.Fatalf("collection %d was not noticed", i)
		}
	}
}

// While data are loaded a collection is due when the heap exceeds the data by an eighth, and
// later only when as much has come on top of what the last collection has left.
func TestLoadBudget(t *testing.T) {
	const mega = 1 << 20
	var b loadBudget
	for i, step := range []struct {
		objects, used uint64
		exceeded      bool
		left          uint64 // objects after the collection
	}{
		{objects: 8 * mega},
		{objects: 9 * mega, exceeded: true, left: 9 * mega}, // all of it is in use
		{objects: 17 * mega},
		{objects: 18 * mega, exceeded: true, left: 18 * mega},
		{objects: 118 * mega, used: 100 * mega},
		{objects: 132 * mega, used: 100 * mega},
		{objects: 133 * mega, used: 100 * mega, exceeded: true, left: 100 * mega}, // none of it
		{objects: 112 * mega, used: 100 * mega},
		{objects: 113 * mega, used: 100 * mega, exceeded: true, left: 90 * mega}, // the estimate is too high
		{objects: 1100 * mega, used: 1000 * mega},
		{objects: 1126 * mega, used: 1000 * mega, exceeded: true, left: 1000 * mega},
		{objects: 30 * mega, exceeded: true, left: 30 * mega},
		{objects: 38 * mega, used: 8 * mega},
		{objects: 39 * mega, used: 9 * mega, exceeded: true, left: 12 * mega}, // the data have doubled
		{objects: 30 * mega, used: 27 * mega},                                 // little is beside them
	} {
		if got := b.exceeded(step.objects, step.used); got != step.exceeded {
			t.Errorf("step %d: exceeded is %v", i, got)
		}
		if step.exceeded {
			b.collected(step.left, step.used)
		}
	}
}

// The budget is kept while data are loaded: garbage is collected.
func TestCollectWhileLoading(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	loaded := make(chan struct{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	go func() {
		defer close(loaded)
		for end := time.Now().Add(time.Minute); time.Now().Before(end); runtime.ReadMemStats(&after) {
			if after.NumForcedGC > before.NumForcedGC+1 {
				return
			}
			sink = make([]byte, 4<<20)
			wait.Pace(time.Millisecond) // the heap would grow by gigabytes on a busy machine
		}
	}()
	collectWhileLoading(loaded, none)
	if after.NumForcedGC <= before.NumForcedGC+1 {
		t.Errorf("%d collections", after.NumForcedGC-before.NumForcedGC)
	}
}

// sink makes allocations of a test escape.
var sink []byte
