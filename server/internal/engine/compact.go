package engine

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// Go's collector leaves values where they are, so after many keys were removed or replaced the heap
// has much unused memory between those that stay. A compaction (keyspace.Compaction) moves them
// together, and the collection after it frees the pages that they have left. It runs in the
// background in short steps with the lock: when the program asks for it because the server is idle
// (cmd/zsetd/heap.go), for MEMORY PURGE, and with activedefrag while the server works. 300 000
// sorted sets of 5 members, of which nine in ten were removed, take 17 MB after it, and 76 before.

// compacting is the state of compactions.
type compacting struct {
	compacts atomic.Bool  // a compaction is requested
	left     atomic.Int64 // unused bytes that compactions cannot free
	vain     int          // compactions in a row that have freed little. Of the goroutine that runs them
	share    atomic.Int64 // percent of a core that the compaction in progress may take; 0: there is none
	since    atomic.Int64 // its start, in microseconds since 1970
	next     int64        // next check for activedefrag, in milliseconds since 1970; 0: none. Guarded by the lock
}

const (
	compactStep     = 200 * time.Microsecond // with the lock
	compactIdle     = 40                     // percent of a core, without activedefrag
	compactShare    = 16                     // the smallest part of the memory in use that is worth a compaction
	leastCompaction = 1 << 20                // bytes
	defragInterval  = 1000                   // milliseconds between checks
)

// Compact moves values together, in the background, and then returns free memory to the system: if
// the unused memory between objects exceeds what compactions cannot free by a sixteenth of the memory
// in use, and by a megabyte, until it does not. The heap should have been collected just before.
func (srv *Engine) Compact() {
	if f := &srv.Freeing; f.worthCompaction(ReadHeap()) {
		f.purges.Store(true)
		srv.beginCompaction()
	}
}

func (srv *Engine) beginCompaction() {
	srv.Freeing.compacts.Store(true)
	srv.collect()
}

// worthCompaction reports whether there is much more unused memory than compactions leave.
func (f *compacting) worthCompaction(h HeapState) bool {
	if left := f.left.Load(); h.unused() < left {
		f.left.CompareAndSwap(left, h.unused())
	}
	return h.unused()-f.left.Load() > h.muchUnused()
}

// compacted notes that a compaction has moved objects, and what it, and the collection after it, have
// freed. One may free little because the keys changed meanwhile; what two leave cannot be freed.
func (f *compacting) compacted(moved bool, before, now HeapState) {
	if f.vain++; before.unused()-now.unused() > now.muchUnused()/2 {
		f.vain = 0
	}
	if !moved || f.vain > 1 {
		f.vain = 0
		f.left.Store(now.unused())
	}
}

// unused returns the bytes between objects.
func (h HeapState) unused() int64 { return h.Active - h.Allocated }

// muchUnused returns from how many unused bytes on a compaction is worth its work.
func (h HeapState) muchUnused() int64 { return max(leastCompaction, h.Allocated/compactShare) }

// Compacting returns the percentage of a core that the compaction in progress may take, and how long
// it has run; 0 and 0 if there is none.
func (f *compacting) Compacting() (percent int64, took time.Duration) {
	if percent = f.share.Load(); percent == 0 {
		return 0, 0
	}
	return percent, time.Since(time.UnixMicro(f.since.Load()))
}

// compact runs a compaction of a heap, until it is done or stopped is closed, and reports whether it
// has moved objects. It runs the garbage collector when that is requested meanwhile.
func (srv *Engine) compact(h HeapState, stopped <-chan struct{}) (moved bool) {
	f := &srv.Freeing
	began := time.Now()
	f.since.Store(began.UnixMicro())
	defer f.share.Store(0)
	var c *keyspace.Compaction
	for {
		more := false
		srv.Attempt(func() {
			done := srv.MaintainUnlessBusy(func() {
				if srv.Keeper.Loading != nil {
					return
				}
				if c == nil {
					c = srv.Keys.Compact()
				}
				f.share.Store(srv.defragShare(h))
				before := c.Moves
				more = c.Next(compactStep)
				srv.Stats.Compaction.Add(c.Moves, before)
				if !more {
					f.share.Store(0)
					srv.Stats.CompactionTime += time.Since(began)
				}
			})
			more = more || !done
		})
		if !more {
			return c != nil && c.Objects > 0
		}
		pause := compactStep * time.Duration(100-f.share.Load()) / time.Duration(max(f.share.Load(), 1))
		select {
		case <-time.After(pause):
		case <-stopped:
			return false
		}
		if f.wanted.Swap(false) {
			f.compacts.Store(false) // this one is not done
			runtime.GC()
		}
	}
}

// defragShare returns the percentage of a core that a compaction of a heap may take: with activedefrag
// between the two limits, in proportion to the unused memory between the two thresholds.
func (srv *Engine) defragShare(h HeapState) int64 {
	c := &srv.Config
	if !c.Activedefrag {
		return compactIdle
	}
	over := 100*h.unused()/max(h.Allocated, 1) - c.DefragLower
	share := c.DefragCycleMin + (c.DefragCycleMax-c.DefragCycleMin)*over/max(c.DefragUpper-c.DefragLower, 1)
	return max(1, min(max(share, c.DefragCycleMin), c.DefragCycleMax))
}

// defragment begins a compaction if activedefrag and its thresholds say so.
func (srv *Engine) defragment() {
	c, f := &srv.Config, &srv.Freeing
	f.next = 0
	if !c.Activedefrag {
		return
	}
	f.next = srv.Keys.Now() + defragInterval
	h := ReadHeap()
	if h.unused() >= c.DefragIgnore && 100*h.unused() >= c.DefragLower*h.Allocated && f.worthCompaction(h) && f.share.Load() == 0 {
		srv.beginCompaction()
	}
}
