package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/zsetd/zsetd/server"
)

// Heap policy of the program. The memory of the process should be close to the size
// of its data; garbage collection should cost little, and not be visible in
// latencies. Go's defaults satisfy neither: the heap may always double before a
// collection, and freed memory is returned to the system slowly, down to a tenth
// above that. So this program deviates in three respects. They apply to the program
// only: a program that embeds the server keeps Go's defaults, or its own settings.
//
// While data are loaded, nearly all allocations stay, and a collection would be of no use. So
// there is none, unless the heap exceeds the data by a budget: an eighth of them, or 8 MB. The
// server reports how much its data take, exactly, so the process needs to know nothing about
// the file. Memory beside the data that a collection does not free, such as that of journals
// that are not applied yet, extends the budget. It becomes garbage as they are applied, so as
// long as it is much, there is a collection whenever the data have doubled, too. When the data
// are loaded all free memory is returned to the system. If loading takes longer than 20 ms, the
// pages of the program are unmapped (releaseProgram) then: most have served the start.
//
// While the server works, the permitted growth of the heap between two collections
// depends on their cost. As long as that is less than a few hundredths of all the
// CPU, the permitted growth decreases, down to a fifth of the live data; above that
// it increases, at most to half of them. The rejected alternative is to permit a
// quarter always. Measured beside one set of a million members and on a busy
// machine (µs per command at P16, medians; the adaptive policy differs from Go's
// default by no more than runs differ):
//
//	              Go's double   a quarter   adapted
//	SET                  1.30        2.17      1.52
//	HSET                 1.40        2.01      1.13
//	INCR                 1.44        5.78      1.70
//
// After half a second or a bit more of hardly any allocations the server is idle.
// There is one collection then, and all free memory is returned to the system. That
// is done if there is much to free, or if so much was allocated since the last time
// that other collections have cost as much anyway; if there is little, only after
// fifty times the duration of the last one. The runtime does not see memory that
// becomes garbage without allocations, such as keys that expire, or a large value
// that is replaced by another that was there when the last collection ran: the
// server reports how much it has in use, and a large decrease counts as garbage. So
// a server with little to do spends no more than a fiftieth of a core on it, and an
// idle one nothing: it checks every 16 seconds. The memory of UNLINK and FLUSHALL is
// collected without waiting for idleness (engine/lazyfree.go), and returned with it.
//
// After the collection of an idle server it moves keys and small values together if much memory
// between them is unused (Server.Compact). 300 000 sorted sets of 5 members take 67 MB beside the
// program; when all members were replaced three times 77, and three seconds later 68; when nine in
// ten of the sets were deleted 13, and without moves 73.
//
// The pages of the program are unmapped again in the same rest, once the process uses
// hardly any CPU time: commands may work without allocations. An idle process takes 7 MB in place
// of 17, and the first command after it some 0.1 ms more.
//
// The cost: between two collections the process may hold half more than its data; the
// system maps pages again when the heap grows again, about a fifth of a microsecond for
// each kilobyte; and garbage that arises while nothing else
// happens stays for up to 16 seconds, or, if it is less than 4 MB or a quarter of
// the live data, for up to two minutes, when Go itself collects.
//
// If an operator sets GOGC, that applies, and only the policy for loading remains; with
// GOGC=off not even that.
// GOMEMLIMIT works as always: the runtime collects more often near it.
//
// maxmemory limits the memory in use, not that of the process. So the heap may grow
// to no more than a quarter above that limit before a collection, or to 8 MB above,
// whatever the collector costs.

// heap is the control of Go's garbage collector.
type heap struct {
	growthRatio    float64       // permitted growth until the next collection, relative to the live data
	percent        int           // the same as a GC percentage of the runtime
	cycle          chan struct{} // signals the end of a collection
	setPercent     func(int) int // debug.SetGCPercent
	releaseMemory  func()
	compact        func() // Server.Compact
	releaseProgram func()
	limit          func() int64 // maxmemory, 0 for none
	used           func() int64 // bytes that the server has in use, by its own count

	// The last collection that the runtime began itself.
	automatic       uint64
	collector, user float64

	// Detection of idleness.
	timer      *time.Timer
	interval   time.Duration // between checks
	allocated  uint64        // total bytes, at the last check
	idleChecks int           // number of consecutive idle checks
	processor  time.Duration // CPU time of the process, at the last check
	worked     bool          // the process has worked since the pages of the program were unmapped

	// The last return of memory to the system.
	trimmed uint64 // total bytes allocated by then
	most    int64  // maximum in use since then, as seen by the checks
	next    time.Time
}

const (
	loadShare               = 8 // one part in so many of the data may be garbage while data are loaded
	loadInterval            = 5 * time.Millisecond
	startTime               = 20 * time.Millisecond // of loading, after which the program is unmapped
	leastRoom               = 8 << 20               // bytes
	leastGrowthRatio        = 0.2
	mostGrowthRatio         = 0.5
	limitRatio              = 0.25       // of maxmemory
	lowGCShare, highGCShare = 0.03, 0.06 // of all CPU
	checkInterval           = 250 * time.Millisecond
	longestInterval         = 16 * time.Second
	workInterval            = time.Second // the longest one while the process works without allocations
	workShare               = 20          // one part in so many of a core's time is work
	busyRate                = 32 << 10    // bytes allocated between two checks: a server that a collection slows down is not idle
	restAfterTrim           = 50          // times the duration of the trim
)

// manageHeap applies the policy above until the context ends.
func manageHeap(ctx context.Context, srv *server.Server) {
	if before := debug.SetGCPercent(-1); before >= 0 {
		loaded := make(chan struct{})
		go func() {
			srv.Ready(ctx) // ListenAndServe returns the error
			close(loaded)
		}()
		collectWhileLoading(loaded, srv.UsedMemory)
		debug.SetGCPercent(before)
	} else {
		srv.Ready(ctx)
	}
	if os.Getenv("GOGC") == "" {
		h := newHeap(srv.MemoryLimit, srv.UsedMemory)
		h.compact = srv.Compact
		h.run(ctx)
	}
}

// collectWhileLoading collects garbage within the budget until the data are loaded, while the
// runtime itself does not.
func collectWhileLoading(loaded <-chan struct{}, used func() int64) {
	defer time.AfterFunc(startTime, releaseProgram).Stop()
	tick := time.NewTicker(loadInterval)
	defer tick.Stop()
	var b loadBudget
	for {
		select {
		case <-loaded:
			if readHeapState().objects > 2*leastRoom {
				debug.FreeOSMemory()
			}
			return
		case <-tick.C:
			if b.exceeded(readHeapState().objects, uint64(used())) {
				runtime.GC()
				b.collected(readHeapState().objects, uint64(used()))
			}
		}
	}
}

// loadBudget is the memory that the heap may take beside the data while these are loaded.
type loadBudget struct {
	kept uint64 // bytes beside the data that the last collection left
	used uint64 // bytes of the data then
}

// exceeded reports whether a heap of so many bytes of objects exceeds the budget beside the
// data in use.
func (b *loadBudget) exceeded(objects, used uint64) bool {
	doubled := used > 2*b.used+leastRoom && b.kept > max(leastRoom, used/4)
	return doubled || objects > used+b.kept+max(leastRoom, (used+b.kept)/loadShare)
}

// collected notes what a collection has left.
func (b *loadBudget) collected(objects, used uint64) {
	b.kept, b.used = objects-min(used, objects), used
}

func newHeap(limit, used func() int64) *heap {
	return &heap{
		growthRatio: mostGrowthRatio, percent: 100, cycle: make(chan struct{}, 1),
		setPercent: debug.SetGCPercent, releaseMemory: debug.FreeOSMemory, compact: func() {}, releaseProgram: releaseProgram, limit: limit, used: used,
		timer: time.NewTimer(checkInterval), interval: checkInterval, worked: true, // the start
	}
}

func (h *heap) run(ctx context.Context) {
	h.watch(ctx)
	for {
		select {
		case <-ctx.Done():
			h.timer.Stop()
			return
		case <-h.cycle:
			s := readHeapState()
			h.adapt(s)
			h.setGoal(s)
			h.interval, h.idleChecks = checkInterval, 0
		case now := <-h.timer.C:
			h.checkIdle(readHeapState(), now)
		}
		h.timer.Reset(h.interval)
	}
}

// watch signals the end of each collection on h.cycle. It sets a finalizer on an
// object without references, which the next collection runs.
func (h *heap) watch(ctx context.Context) {
	type canary struct{ *heap }
	runtime.SetFinalizer(&canary{h}, func(c *canary) {
		if ctx.Err() == nil {
			c.watch(ctx) // before the signal: the next collection may follow at once
		}
		select {
		case c.cycle <- struct{}{}:
		default:
		}
	})
}

// adapt compares the CPU time of the last collection with the time since the
// one before, and increases or decreases the permitted growth.
func (h *heap) adapt(s heapState) {
	if s.automatic == h.automatic {
		return // a collection that the program called does not show how often collections are needed
	}
	collector, user := s.collector-h.collector, s.user-h.user
	h.automatic, h.collector, h.user = s.automatic, s.collector, s.user
	switch share := collector / max(collector+user, 1e-9); {
	case share > highGCShare:
		h.growthRatio = min(h.growthRatio*1.5, mostGrowthRatio)
	case share < lowGCShare:
		h.growthRatio = max(h.growthRatio/1.5, leastGrowthRatio)
	}
}

// setGoal sets the permitted growth in the runtime.
func (h *heap) setGoal(s heapState) {
	live := float64(s.live)
	part := h.growthRatio
	if limit := float64(h.limit()); limit > 0 && live > 0 {
		part = min(part, max(limit*(1+limitRatio)-live, live*leastGrowthRatio)/live)
	}
	growth := max(leastRoom, live*part)
	// The runtime's goal is live + (live + roots) * percent / 100, but not less
	// than 4 MB * percent / 100.
	percent := int(100 * min(growth/max(live+float64(s.roots), 1), (live+growth)/(4<<20)))
	if percent != h.percent {
		h.percent = percent
		h.setPercent(percent)
	}
}

// checkIdle returns memory to the system if the server was idle in two consecutive
// checks, and unmaps the program if it does not work.
func (h *heap) checkIdle(s heapState, now time.Time) {
	fresh, works := s.allocated-h.allocated, s.processor-h.processor > h.interval/workShare
	h.allocated, h.processor = s.allocated, s.processor
	if fresh > busyRate*uint64(h.interval/checkInterval) {
		h.interval, h.idleChecks, h.worked = checkInterval, 0, true
		return
	}
	if h.idleChecks++; h.idleChecks > 1 {
		if used := h.used(); h.worthWhile(s, used, now) {
			begin := time.Now()
			h.releaseMemory()
			h.compact()
			h.next = now.Add((restAfterTrim + 1) * time.Since(begin))
			h.trimmed, h.most = s.allocated, used
		} else {
			h.most = max(h.most, used)
		}
	}
	h.interval = min(2*h.interval, longestInterval)
	switch {
	case works:
		h.interval, h.worked = min(h.interval, workInterval), true
	case h.worked && h.idleChecks > 1:
		h.releaseProgram()
		h.worked = false
	}
}

// worthWhile reports whether a collection would free enough.
func (h *heap) worthWhile(s heapState, used int64, now time.Time) bool {
	garbage := s.objects - min(s.live, s.objects) + s.free
	since := s.allocated - h.trimmed
	gone := uint64(max(h.most-used, 0))
	enough := max(4<<20, s.live/4)
	return max(garbage, since, gone) >= enough || garbage >= max(1<<20, s.live/20) && now.After(h.next)
}

// heapState is the runtime's statistics.
type heapState struct {
	automatic       uint64        // collections that the runtime began itself
	collector, user float64       // seconds of CPU, at the end of the last collection
	allocated       uint64        // total bytes
	live            uint64        // live bytes after the last collection
	roots           uint64        // bytes outside the heap that collections scan
	objects         uint64        // bytes in use, or garbage
	free            uint64        // free bytes that the heap keeps
	processor       time.Duration // CPU time of the process
}

func readHeapState() heapState {
	samples := []metrics.Sample{
		{Name: "/gc/cycles/automatic:gc-cycles"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/user:cpu-seconds"},
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/scan/stack:bytes"},
		{Name: "/gc/scan/globals:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	n := func(i int) uint64 { return samples[i].Value.Uint64() }
	return heapState{
		automatic: n(0), collector: samples[1].Value.Float64(), user: samples[2].Value.Float64(),
		allocated: n(3), live: n(4), roots: n(5) + n(6), objects: n(7), free: n(8), processor: processorTime(),
	}
}
