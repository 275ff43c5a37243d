package server

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/zsetd/zsetd/server/keyspace"
	"github.com/zsetd/zsetd/zset"
)

// What UNLINK, FLUSHDB and FLUSHALL let go, a string of a megabyte or more whatever
// ends it, and what a client has sent of a command or not read of its replies when it
// leaves, is the garbage collector's. That works in the background anyway, but only
// when as much again was allocated: a server that rests would keep it for minutes. So the collector is called when
// what goes is a good part of what was alive when it last ran. As it costs in
// proportion to what stays, it is never dear.

// freeing is what was let go, and is guarded by the server's lock, but for
// collecting.
type freeing struct {
	objects    int64       // INFO's lazyfreed_objects: what Redis would have freed in the background
	bytes      int64       // since the collector was called, estimated
	wanted     atomic.Bool // the collector is to run
	collecting atomic.Bool // a goroutine sees to that
}

const (
	lazyEffort   = 64      // values of more allocations than this are freed in the background by Redis
	collectFrom  = 1 << 20 // bytes
	collectShare = 16      // the part of what is alive that it must be
	collectPause = 4       // so many times what it took must pass before the next time
)

// letGo notes that a value was removed.
func (srv *Server) letGo(v any) {
	if srv.effort(v) <= lazyEffort {
		return
	}
	srv.freeing.objects++
	srv.freeing.bytes += int64(footprint(v, 1))
	srv.collect()
}

// dropped notes that so many bytes are garbage: a long string, or the buffers of a client.
func (srv *Server) dropped(bytes int) {
	srv.freeing.bytes += int64(bytes)
	srv.collect()
}

// effort returns about how many allocations Redis would have to free with a
// value.
func (srv *Server) effort(v any) int {
	const node = 8 << 10 // of a list
	l := &srv.keys.Limits
	switch v := v.(type) {
	case *keyspace.List:
		return v.Bytes() / node
	case *keyspace.Stream:
		if n := l.StreamNodeMaxEntries; n > 0 {
			return v.Len() / n
		}
		return v.Len()
	case *keyspace.Set, *keyspace.Hash, *zset.Set:
		if e := encodingOf(v, l); e == "hashtable" || e == "skiplist" {
			return v.(interface{ Len() int }).Len()
		}
	}
	return 1
}

// letGoAll notes that a database is about to be emptied. Of its values some are
// looked at.
func (srv *Server) letGoAll(db *keyspace.DB, lazily bool) {
	const sample = 64
	if lazily {
		srv.freeing.objects += int64(db.Len())
	}
	n, bytes := 0, 0
	for e := range db.All() {
		bytes += e.Bytes() + footprint(e.Value(), 1)
		if n++; n == sample {
			break
		}
	}
	if n > 0 {
		srv.freeing.bytes += int64(float64(bytes) / float64(n) * float64(db.Len()))
	}
}

// collect calls the garbage collector if that is worth while.
func (srv *Server) collect() {
	if f := &srv.freeing; f.bytes >= collectFrom && f.bytes >= liveMemory()/collectShare {
		f.bytes = 0
		f.run()
	}
}

// run runs the garbage collector in the background; once more afterwards if it does so
// already.
func (f *freeing) run() {
	f.wanted.Store(true)
	if !f.collecting.CompareAndSwap(false, true) {
		return
	}
	go func() {
		for {
			for f.wanted.Swap(false) {
				start := time.Now()
				runtime.GC()
				time.Sleep(collectPause * time.Since(start))
			}
			f.collecting.Store(false)
			if !f.wanted.Load() || !f.collecting.CompareAndSwap(false, true) {
				return
			}
		}
	}()
}
