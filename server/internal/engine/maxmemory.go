package engine

import (
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
	Exempt           int64     // the part of it that does not count; see exempt
	NonKeyBytesAt    time.Time // when nonKeyBytes was computed
	nonKeyBytesValid time.Duration

	byChange      bool      // a policy counts changes of keys as accesses, and no reads: -lrm
	lacking       bool      // as of the start of the last command; scripts use it
	MoreToEvict   bool      // there is more to evict than one step evicts
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
func (srv *Engine) limitMemory() {
	m, c := &srv.Memory, &srv.Config
	f := &srv.Keys.Frequency
	f.On = strings.HasSuffix(c.MaxmemoryPolicy, "-lfu")
	m.byChange = strings.HasSuffix(c.MaxmemoryPolicy, "-lrm")
	f.LogFactor, f.DecayTime, f.Rand = c.LFULogFactor, c.LFUDecayTime, srv.Rand
	m.evictor.pool.n = 0
	m.NonKeyBytesAt = time.Time{}
	if c.Maxmemory == 0 {
		m.within(srv)
	}
	m.MoreToEvict = c.Maxmemory != 0 // the timer checks the limit
}

// InUse returns the memory in use.
func (srv *Engine) InUse() int64 {
	m := &srv.Memory
	if age := srv.Turn.At.Sub(m.NonKeyBytesAt); age < 0 || age >= m.nonKeyBytesValid {
		srv.sumNonKeyBytes()
	}
	return srv.Keys.UsedBytes() + m.nonKeyBytes + srv.Replica.Incoming.Load()
}

// counted returns the memory in use that counts against maxmemory: data that a replica loads
// replace those that an eviction would remove.
func (srv *Engine) counted() int64 {
	return srv.InUse() - srv.Memory.Exempt - srv.Replica.Incoming.Load()
}

// exempt returns the size of the unsolicited output that waits for clients: lines
// of MONITOR, and invalidations of cached keys. An eviction sends as much of it as
// it frees, or more; if it counted, it would cause another eviction, and so on to
// the last key. It is bounded for each client (outputqueue.go).
func (srv *Engine) exempt() (n int64) {
	if srv.Tracking.On() || len(srv.Clients.Monitors) > 0 {
		for _, s := range srv.Clients.Sessions {
			if all := s.backlog(); s.Queue.pushed > 0 && all > 0 {
				part := float64(min(s.Queue.pushed, all)) / float64(all) // the buffers are larger than their content
				n += int64(part * float64(int64(s.Out.Cap()+s.Queue.Sealed)+s.Queue.Unsent.Load()))
			}
		}
	}
	return n
}

// sumNonKeyBytes computes the memory in use besides keys and values.
func (srv *Engine) sumNonKeyBytes() {
	m := &srv.Memory
	start := srv.Clock()
	m.nonKeyBytes = srv.Identity.StartMemory + srv.Clients.Memory() + srv.Scripting.Memory().all() + srv.Tracking.Memory()
	m.Exempt = srv.exempt()
	m.NonKeyBytesAt = srv.Turn.At
	m.nonKeyBytesValid = max(nonKeyBytesMinAge, nonKeyBytesShare*srv.Clock().Sub(start))
}

// lacksMemory evicts down to the limit, which must be set, and reports whether
// commands that may need memory are refused because that is impossible. Within a
// turn it checks again only after the size of the keys has changed, a client has been
// disconnected, or the limit has been set.
func (srv *Engine) lacksMemory() bool {
	m, last := &srv.Memory, &srv.Turn.memory
	if last.valid && last.used == srv.Keys.UsedBytes() && !m.MoreToEvict && !m.NonKeyBytesAt.IsZero() {
		return m.lacking
	}
	defer func() { *last = memoryCheck{srv.mayEvict(), srv.Keys.UsedBytes()} }()
	m.lacking = false
	if srv.IgnoresMaxmemory() || srv.counted() <= srv.Config.Maxmemory {
		m.within(srv)
		return false
	}
	if m.exceededSince.IsZero() {
		m.exceededSince = srv.Turn.At
	}
	if srv.mayEvict() && !srv.evict() {
		m.MoreToEvict, m.lacking = false, true
	}
	return m.lacking
}

// mayEvict reports whether keys may be evicted now. While they may not, no command
// is refused either.
func (srv *Engine) mayEvict() bool {
	return !srv.Scripting.Busy && !srv.IgnoresMaxmemory() && srv.Keeper.Loading == nil && srv.Pauses.Until == 0
}

// evicting reports whether the timer is to continue the eviction.
func (srv *Engine) evicting() bool { return srv.Memory.MoreToEvict && srv.mayEvict() }

// within notes that memory is below the limit.
func (m *memoryLimit) within(srv *Engine) {
	m.MoreToEvict = false
	if !m.exceededSince.IsZero() {
		srv.Stats.memoryExceeded += max(0, srv.Turn.At.Sub(m.exceededSince))
		m.exceededSince = time.Time{}
	}
}

// Exceeding returns for how long the limit has been exceeded: in total, and
// currently.
func (srv *Engine) Exceeding() (total, current time.Duration) {
	if since := srv.Memory.exceededSince; !since.IsZero() {
		current = max(0, srv.Turn.At.Sub(since))
	}
	return srv.Stats.memoryExceeded + current, current
}

// needsMemory reports whether a command is refused while memory is short. In a
// transaction every command that would be queued is refused, as it may need memory
// later.
func (s *Session) needsMemory(cmd *Command, argv [][]byte) bool {
	if s.Transaction.Multi && !cmd.EndsQueueing {
		return true
	}
	return s.effectsOf(cmd, argv).Has(protocol.DenyOOM)
}

// MemoryLimit returns the parameter maxmemory: bytes, 0 for no limit.
func (srv *Engine) MemoryLimit() int64 { return srv.limits.Load().maxmemory }

// UsedMemory estimates the bytes that keys, values, clients and scripts take, as in
// used_memory of INFO. It is 0 when the server has failed. O(n) for n clients. It may be
// called concurrently, and waits for the command that runs.
func (srv *Engine) UsedMemory() (bytes int64) {
	srv.Attempt(func() {
		srv.Mu.Lock()
		defer srv.Mu.Unlock()
		srv.Memory.NonKeyBytesAt = time.Time{}
		bytes = srv.InUse()
	})
	return bytes
}
