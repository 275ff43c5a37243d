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

// What the process holds in memory should be what its data take, and not much
// more; looking for garbage should cost little, and not be seen in latencies. Go's
// own ways keep neither: the heap may always double before it is looked through,
// and what was freed is given back slowly, down to a tenth more than that. So this
// program goes other ways, in three respects. They are the program's: who embeds
// the server keeps what Go does, or what he has set.
//
// While data are loaded, the heap may grow to five times what is alive: nearly all
// that is allocated then stays.
//
// While the server works, how much the heap may grow between two collections
// depends on what they cost. As long as that is less than a few hundredths of all
// the CPU, there is less and less room, down to a fifth of what is alive; when it is
// more, there is more again, at most as much as Go gives. To allow a quarter always
// was tried, beside one set of a million members and on a machine with much else to
// do (µs per command at P16, medians; the room that adapts itself is within what
// these differ by from run to run of what Go does):
//
//	              Go's double   a quarter   adapted
//	SET                  1.30        2.17      1.52
//	HSET                 1.40        2.01      1.13
//	INCR                 1.44        5.78      1.70
//
// When the server has gone quiet, after half a second or a bit more of hardly any
// allocating, there is one collection, and all that is free goes back to the
// system. That is done if there is much to free, or if so much was allocated since
// the last time that other collections have cost as much anyway; if there is little,
// only after fifty times as long as it took. What goes while nothing is allocated, such
// as keys that expire, or a large value in whose place comes another that was there
// when the last collection ran, the runtime does not know: the server says how much it
// has in use, and when that is much less than it was. So a server with little to do spends
// no more than a fiftieth of a core on it, and an idle one nothing: it looks up
// every 16 seconds. 100 000 hashes written and replaced: 166 MB, and 72 MB a second
// later, of which 54 MB are the data. What UNLINK and FLUSHALL free is
// collected without waiting for quiet (server/lazyfree.go), and given back with it.
//
// What it costs: between two such moments the process may hold twice its data, as
// any Go program may; the system gives pages again when the heap grows again, about
// a fifth of a microsecond for each kilobyte; and what goes while nothing else happens
// stays for up to 16 seconds, or for up to two minutes, when Go itself looks for
// garbage, if it is less than 4 MB or a quarter of what is alive.
//
// An operator who sets GOGC has chosen himself, and nothing but the first is done.
// GOMEMLIMIT works as always: the runtime collects more often near it.
//
// maxmemory limits what is in use, not what the process takes. So the heap may grow to
// no more than a quarter above that limit before it is looked through, or to 8 MB above,
// whatever the collector costs; and while data are loaded to no more than Go allows.

// heap is how this program uses Go's garbage collector.
type heap struct {
	part     float64       // of what is alive: how much the heap may grow until the next collection
	percent  int           // the same in the runtime's way
	cycle    chan struct{} // a collection has ended
	giveBack func()
	limit    func() int64 // maxmemory, 0 for none
	used     func() int64 // bytes that the server has in use, by its own count

	// The last collection that the runtime began itself.
	automatic       uint64
	collector, user float64

	// Whether there is something to do.
	timer     *time.Timer
	interval  time.Duration // between looks
	allocated uint64        // ever, at the last look
	quiet     int           // looks

	// When memory was given back.
	trimmed uint64 // what had been allocated then
	most    int64  // that was in use since, as far as it was looked
	next    time.Time
}

const (
	loadPercent   = 400
	leastRoom     = 8 << 20 // bytes
	lowestPart    = 0.2
	highestPart   = 1.0
	limitPart     = 0.25       // of maxmemory
	cheap, dear   = 0.03, 0.06 // of all CPU
	lookInterval  = 250 * time.Millisecond
	longestRest   = 16 * time.Second
	busyRate      = 32 << 10 // bytes allocated from one look to the next: a server that a collection slows down is not quiet
	restAfterTrim = 50       // times what it took
)

// manageHeap does all that, until the context ends.
func manageHeap(ctx context.Context, srv *server.Server) {
	if srv.MemoryLimit() == 0 {
		before := raiseGCPercent(loadPercent)
		srv.Ready(ctx) // ListenAndServe returns the error
		debug.SetGCPercent(before)
	} else {
		srv.Ready(ctx)
	}
	if os.Getenv("GOGC") == "" {
		newHeap(srv.MemoryLimit, srv.UsedMemory).run(ctx)
	}
}

// raiseGCPercent sets how much the heap may grow between two collections, unless
// it may grow more already (GOGC=800, GOGC=off), and returns what it was.
func raiseGCPercent(percent int) (before int) {
	before = debug.SetGCPercent(percent)
	if before < 0 || before > percent {
		debug.SetGCPercent(before)
	}
	return before
}

func newHeap(limit, used func() int64) *heap {
	return &heap{
		part: highestPart, percent: 100, cycle: make(chan struct{}, 1), giveBack: debug.FreeOSMemory, limit: limit, used: used,
		timer: time.NewTimer(lookInterval), interval: lookInterval,
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
			h.collected(s)
			h.mayGrow(s)
			h.interval, h.quiet = lookInterval, 0
		case now := <-h.timer.C:
			h.look(readHeapState(), now)
		}
		h.timer.Reset(h.interval)
	}
}

// watch has the ends of collections told: nobody refers to the object, so that the
// next one finds it.
func (h *heap) watch(ctx context.Context) {
	type canary struct{ *heap }
	runtime.SetFinalizer(&canary{h}, func(c *canary) {
		select {
		case c.cycle <- struct{}{}:
		default:
		}
		if ctx.Err() == nil {
			c.watch(ctx)
		}
	})
}

// collected looks what the last collection took of the CPU since the one before,
// and gives the heap more room or less.
func (h *heap) collected(s heapState) {
	if s.automatic == h.automatic {
		return // somebody has called the collector: that says nothing about how often it has to run
	}
	collector, user := s.collector-h.collector, s.user-h.user
	h.automatic, h.collector, h.user = s.automatic, s.collector, s.user
	switch share := collector / max(collector+user, 1e-9); {
	case share > dear:
		h.part = min(h.part*1.5, highestPart)
	case share < cheap:
		h.part = max(h.part/1.5, lowestPart)
	}
}

// mayGrow tells the runtime how much room there is.
func (h *heap) mayGrow(s heapState) {
	live := float64(s.live)
	part := h.part
	if limit := float64(h.limit()); limit > 0 && live > 0 {
		part = min(part, max(limit*(1+limitPart)-live, live*lowestPart)/live)
	}
	growth := max(leastRoom, live*part)
	// Its goal is live + (live + roots) * percent / 100, but not less than 4 MB * percent / 100.
	percent := int(100 * min(growth/max(live+float64(s.roots), 1), (live+growth)/(4<<20)))
	if percent != h.percent {
		h.percent = percent
		debug.SetGCPercent(percent)
	}
}

// look gives memory back if the server has been quiet for two looks.
func (h *heap) look(s heapState, now time.Time) {
	fresh := s.allocated - h.allocated
	h.allocated = s.allocated
	if fresh > busyRate*uint64(h.interval/lookInterval) {
		h.interval, h.quiet = lookInterval, 0
		return
	}
	if h.quiet++; h.quiet > 1 {
		if used := h.used(); h.worthWhile(s, used, now) {
			begin := time.Now()
			h.giveBack()
			h.next = now.Add((restAfterTrim + 1) * time.Since(begin))
			h.trimmed, h.most = s.allocated, used
		} else {
			h.most = max(h.most, used)
		}
	}
	h.interval = min(2*h.interval, longestRest)
}

// worthWhile reports whether a collection would free enough.
func (h *heap) worthWhile(s heapState, used int64, now time.Time) bool {
	garbage := s.objects - min(s.live, s.objects) + s.free
	since := s.allocated - h.trimmed
	gone := uint64(max(h.most-used, 0))
	enough := max(4<<20, s.live/4)
	return max(garbage, since, gone) >= enough || garbage >= max(1<<20, s.live/20) && now.After(h.next)
}

// heapState is what the runtime tells.
type heapState struct {
	automatic       uint64  // collections that it began itself
	collector, user float64 // seconds of CPU, at the end of the last collection
	allocated       uint64  // bytes, ever
	live            uint64  // bytes that the last collection has found in use
	roots           uint64  // bytes outside the heap that it looks through
	objects         uint64  // bytes in use, or garbage
	free            uint64  // bytes that the heap keeps
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
		allocated: n(3), live: n(4), roots: n(5) + n(6), objects: n(7), free: n(8),
	}
}
