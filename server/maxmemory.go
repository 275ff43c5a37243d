package server

import (
	"math"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// The memory limit, maxmemory, is enforced by evicting keys, as the policy says,
// and by refusing commands that may need memory if there is nothing to evict.
//
// The limit applies to the memory in use, as the sum of what its users account for:
// the keys and values (keyspace.UsedBytes), the clients, and the rest. The sum follows
// every write and every eviction at once, so the server evicts exactly as much as
// needed. The heap statistics of the garbage collector are not a substitute: they
// know the memory in use only just after a collection, and then include all that
// was allocated or freed while it ran. With them the limit is exceeded by half, or
// everything is evicted. Tests check the sum against the collector. Garbage does
// not count: its amount is the program's concern (cmd/zsetd/heap.go). Data that
// wait to be written to the file, and data that a rewrite of the file retains, do
// not count either, as in Redis.

// memoryLimit is the state of the limit, guarded by the server's lock.
type memoryLimit struct {
	nonKeyBytes      int64     // memory of clients and scripts
	exempt           int64     // the part of it that does not count; see exempt
	nonKeyBytesAt    time.Time // when besides was computed
	nonKeyBytesValid time.Duration

	lacking       bool      // as of the start of the last command; scripts use it
	moreToEvict   bool      // there is more to evict than one step evicts
	exceededSince time.Time // since when the limit is exceeded; zero: it is not

	evictor evictor
}

const (
	// The sum over all clients is computed again after nonKeyBytesShare times the
	// duration of the computation, and after nonKeyBytesMinAge at least.
	nonKeyBytesShare  = 50
	nonKeyBytesMinAge = time.Millisecond
)

const errOOM = "OOM command not allowed when used memory > 'maxmemory'."

// limitMemory applies the parameters.
func (srv *Server) limitMemory() {
	m, c := &srv.memoryLimit, &srv.config
	f := &srv.keys.Frequency
	f.On = strings.HasSuffix(c.maxmemoryPolicy, "-lfu")
	f.LogFactor, f.DecayTime, f.Rand = c.lfuLogFactor, c.lfuDecayTime, srv.rand
	m.evictor.pool.n = 0
	m.nonKeyBytesAt = time.Time{}
	if c.maxmemory == 0 {
		m.within(srv)
	}
	m.moreToEvict = c.maxmemory != 0 // the timer checks the limit
}

// inUse returns the memory in use.
func (srv *Server) inUse() int64 {
	m := &srv.memoryLimit
	if age := srv.at.Sub(m.nonKeyBytesAt); age < 0 || age >= m.nonKeyBytesValid {
		srv.sumNonKeyBytes()
	}
	return srv.keys.UsedBytes() + m.nonKeyBytes
}

// counted returns the memory in use that counts against maxmemory.
func (srv *Server) counted() int64 { return srv.inUse() - srv.memoryLimit.exempt }

// exempt returns the size of the unsolicited output that waits for clients: lines
// of MONITOR, and invalidations of cached keys. An eviction sends as much of it as
// it frees, or more; if it counted, it would cause another eviction, and so on to
// the last key. It is bounded for each client (outputqueue.go).
func (srv *Server) exempt() (n int64) {
	if srv.tracking.on || len(srv.monitors) > 0 {
		for _, s := range srv.sessions {
			if all := s.backlog(); s.pushed > 0 && all > 0 {
				part := float64(min(s.pushed, all)) / float64(all) // the buffers are larger than their content
				n += int64(part * float64(int64(s.out.Cap()+s.sealed)+s.unsent.Load()))
			}
		}
	}
	return n
}

// sumNonKeyBytes computes the memory in use besides keys and values.
func (srv *Server) sumNonKeyBytes() {
	m := &srv.memoryLimit
	start := srv.clock()
	m.nonKeyBytes = srv.startMemory + srv.clientsMemory() + srv.scripting.memory().all() + srv.tracking.memory()
	m.exempt = srv.exempt()
	m.nonKeyBytesAt = srv.at
	m.nonKeyBytesValid = max(nonKeyBytesMinAge, nonKeyBytesShare*srv.clock().Sub(start))
}

// lacksMemory evicts down to the limit, which must be set, and reports whether
// commands that may need memory are refused because that is impossible.
func (srv *Server) lacksMemory() bool {
	m := &srv.memoryLimit
	m.lacking = false
	if srv.counted() <= srv.config.maxmemory {
		m.within(srv)
		return false
	}
	if m.exceededSince.IsZero() {
		m.exceededSince = srv.at
	}
	if srv.mayEvict() && !srv.evict() {
		m.moreToEvict, m.lacking = false, true
	}
	return m.lacking
}

// mayEvict reports whether keys may be evicted now. While they may not, no command
// is refused either.
func (srv *Server) mayEvict() bool {
	return !srv.busy && srv.keeper.loading == nil && srv.pausedUntil == 0
}

// evicting reports whether the timer is to continue the eviction.
func (srv *Server) evicting() bool { return srv.memoryLimit.moreToEvict && srv.mayEvict() }

// within notes that memory is below the limit.
func (m *memoryLimit) within(srv *Server) {
	m.moreToEvict = false
	if !m.exceededSince.IsZero() {
		srv.memoryExceeded += max(0, srv.at.Sub(m.exceededSince))
		m.exceededSince = time.Time{}
	}
}

// exceeding returns for how long the limit has been exceeded: in total, and
// currently.
func (srv *Server) exceeding() (total, current time.Duration) {
	if since := srv.memoryLimit.exceededSince; !since.IsZero() {
		current = max(0, srv.at.Sub(since))
	}
	return srv.memoryExceeded + current, current
}

// needsMemory reports whether a command is refused while memory is short. In a
// transaction every command that would be queued is refused, as it may need memory
// later.
func (s *Session) needsMemory(cmd *Command, argv [][]byte) bool {
	if s.multi && (!runsInMulti(cmd.Name) || cmd.Name == "watch") {
		return true
	}
	return s.effectsOf(cmd, argv).Has(protocol.DenyOOM)
}

// evictionTime is the longest time that one step evicts; the server serves clients
// between steps.
func (c *config) evictionTime() time.Duration {
	t := c.evictionTenacity
	switch {
	case t <= 10:
		return time.Duration(50*t) * time.Microsecond
	case t < 100:
		return time.Duration(500 * math.Pow(1.15, float64(t-10)) * float64(time.Microsecond))
	}
	return math.MaxInt64
}

// MemoryLimit returns the parameter maxmemory: bytes, 0 for no limit.
func (srv *Server) MemoryLimit() int64 { return srv.limits.Load().maxmemory }

// UsedMemory estimates the bytes that keys, values, clients and scripts take, as in
// used_memory of INFO. It is 0 when the server has failed. O(n) for n clients. It may be
// called concurrently, and waits for the command that runs.
func (srv *Server) UsedMemory() (bytes int64) {
	srv.attempt(func() {
		srv.mu.Lock()
		srv.guarded(func() {
			srv.memoryLimit.nonKeyBytesAt = time.Time{}
			bytes = srv.inUse()
		})
		srv.mu.Unlock()
	})
	return bytes
}
