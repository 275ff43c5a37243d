package engine

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// Memory that becomes garbage in large pieces: values removed by UNLINK, FLUSHDB
// and FLUSHALL, strings of a megabyte or more however they end, and the input and
// output buffers of a client that disconnects. The garbage collector works in the
// background anyway, but only after as much again was allocated, so an idle server
// would keep the memory for minutes. Therefore the server runs the collector when
// the garbage is a good part of the memory that was live at the last collection. A
// collection costs in proportion to the memory that stays, so the cost is bounded
// by the memory freed.

// freeing is the state of released memory. The server's lock guards the fields without a
// note.
type freeing struct {
	Objects   int64          // INFO's lazyfreed_objects: objects that Redis would have freed in the background
	bytes     int64          // since the last collection, estimated
	wanted    atomic.Bool    // a collection is requested
	purges    atomic.Bool    // it also returns free memory to the system
	running   atomic.Bool    // a goroutine runs the collections
	collector sync.WaitGroup // that goroutine
	compacting
}

const (
	lazyThreshold = 64      // values of more allocations than this are freed in the background by Redis
	minCollect    = 1 << 20 // bytes
	collectShare  = 16      // the smallest part of live memory worth a collection
	collectPause  = 4       // the pause after a collection, in multiples of its duration
)

// ValueFreed records that a value was removed.
func (srv *Engine) ValueFreed(v any) {
	if keyspace.FreeEffort(v, &srv.Keys.Limits) <= lazyThreshold {
		return
	}
	srv.Freeing.Objects++
	srv.Freeing.bytes += int64(Footprint(v, 1))
	srv.Collect()
}

// FunctionsFreed records that all functions, and their machine, are about to be removed in the
// background.
func (srv *Engine) FunctionsFreed() {
	if n := len(srv.Scripting.Functions.ByName); n > lazyThreshold {
		srv.Freeing.Objects += int64(n) + 1
	}
}

// bytesFreed records bytes that became garbage: a long string, or the buffers of a
// client.
func (srv *Engine) bytesFreed(bytes int) {
	srv.Freeing.bytes += int64(bytes)
	srv.Collect()
}

// DatabaseFreed records that a database is about to be emptied. It samples the values to
// estimate their size.
func (f *freeing) DatabaseFreed(db *keyspace.DB, lazily bool) {
	const sample = 64
	if lazily {
		f.Objects += int64(db.Len())
	}
	n, bytes := 0, 0
	for e := range db.All() {
		bytes += e.Bytes() + Footprint(e.Value(), 1)
		if n++; n == sample {
			break
		}
	}
	if n > 0 {
		f.bytes += int64(float64(bytes) / float64(n) * float64(db.Len()))
	}
}

// Collect runs the garbage collector if the garbage is worth it.
func (srv *Engine) Collect() {
	if f := &srv.Freeing; f.bytes >= minCollect && f.bytes >= LiveMemory()/collectShare {
		f.bytes = 0
		srv.collect()
	}
}

// Purge collects garbage, moves values together if much memory between them is unused (compact.go),
// and returns free memory to the system. That takes a while with a large heap; Purge does not wait
// for it.
func (srv *Engine) Purge() {
	srv.Freeing.purges.Store(true)
	srv.collect()
}

// collect runs the garbage collector in the background; if a collection is in progress,
// once more after it. A server that stops collects no more.
func (srv *Engine) collect() {
	f := &srv.Freeing
	f.wanted.Store(true)
	select {
	case <-srv.Ending.Stopped:
	default:
		if f.running.CompareAndSwap(false, true) {
			f.collector.Go(func() { srv.runCollections(srv.Ending.Stopped) })
		}
	}
}

// runCollections runs collections until none is requested, or stopped is closed.
func (srv *Engine) runCollections(stopped <-chan struct{}) {
	f := &srv.Freeing
	for {
		for f.wanted.Swap(false) {
			compacts, moved, before := f.compacts.Swap(false), false, ReadHeap()
			if compacts {
				moved = srv.compact(before, stopped)
			}
			start := time.Now()
			purged := f.purges.Swap(false)
			if purged {
				debug.FreeOSMemory()
			} else {
				runtime.GC()
			}
			took := time.Since(start)
			if compacts {
				f.compacted(moved, before, ReadHeap())
			}
			if purged {
				srv.Compact()
			}
			select {
			case <-time.After(collectPause * took):
			case <-stopped:
				return
			}
		}
		f.running.Store(false)
		if !f.wanted.Load() || !f.running.CompareAndSwap(false, true) {
			return
		}
	}
}
