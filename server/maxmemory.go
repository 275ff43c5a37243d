package server

import (
	"math"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// The limit of memory, maxmemory, is held by evicting keys, as the policy says, and
// by refusing commands that may need memory where there is nothing to evict.
//
// What counts is what is in use, summed up by those who use it: the keys and values
// (keyspace.Held), the clients, and the rest. So the sum follows every write and every
// eviction at once, and a server evicts as much as it must and no more. The garbage
// collector was asked before, and could not be relied on: it knows what is in use only
// when it has just run, and then calls everything in use that was made, or let go,
// while it worked; the limit was exceeded by half, or everything was evicted. It judges
// the sum in tests now. Garbage does not count: how much of it there may be is
// the program's affair (cmd/zsetd/heap.go). What waits for the file, and what a
// rewriting of the file keeps alive, does not count either, as in Redis.

// memoryLimit is what is known of it, guarded by the server's lock.
type memoryLimit struct {
	besides int64     // what clients and scripts take
	exempt  int64     // so much of it does not count; see exempt
	looked  time.Time // when that was summed up
	good    time.Duration

	lacking bool      // when the last command began; what scripts go by
	going   bool      // there is more to evict than was evicted in one go
	since   time.Time // from when on the limit is exceeded; zero: it is not

	evictor evictor
}

const (
	// The sum of what clients take is renewed after so many times what it takes to
	// sum up, and not more often than this.
	besidesShare = 50
	besidesGood  = time.Millisecond
)

const errOOM = "OOM command not allowed when used memory > 'maxmemory'."

// limitMemory follows the parameters.
func (srv *Server) limitMemory() {
	m, c := &srv.memoryLimit, &srv.config
	f := &srv.keys.Frequency
	f.On = strings.HasSuffix(c.maxmemoryPolicy, "-lfu")
	f.LogFactor, f.DecayTime, f.Rand = c.lfuLogFactor, c.lfuDecayTime, srv.rand
	m.evictor.pool.n = 0
	m.looked = time.Time{}
	if c.maxmemory == 0 {
		m.within(srv)
	}
	m.going = c.maxmemory != 0 // the timer looks
}

// inUse returns how much memory is in use.
func (srv *Server) inUse() int64 {
	m := &srv.memoryLimit
	if age := srv.at.Sub(m.looked); age < 0 || age >= m.good {
		srv.lookBesides()
	}
	return srv.keys.Held() + m.besides
}

// counted returns how much of it counts for maxmemory.
func (srv *Server) counted() int64 { return srv.inUse() - srv.memoryLimit.exempt }

// exempt returns how much waits for clients that they have not asked for: lines of
// MONITOR, and keys that they are to forget. Whoever evicts a key sends as much as that
// took, or more; if it counted, other keys would be evicted for it, and so on to the
// last. It is bounded for each client (outbox.go).
func (srv *Server) exempt() (n int64) {
	if srv.tracking.on || len(srv.monitors) > 0 {
		for _, s := range srv.sessions {
			if all := s.backlog(); s.pushed > 0 && all > 0 {
				part := float64(min(s.pushed, all)) / float64(all) // of buffers that are larger than what is in them
				n += int64(part * float64(int64(s.out.Cap()+s.sealed)+s.unsent.Load()))
			}
		}
	}
	return n
}

// lookBesides sums up what is in use besides keys and values.
func (srv *Server) lookBesides() {
	m := &srv.memoryLimit
	start := srv.clock()
	m.besides = srv.startMemory + srv.clientsMemory() + srv.scripting.memory().all() + srv.tracking.memory()
	m.exempt = srv.exempt()
	m.looked = srv.at
	m.good = max(besidesGood, besidesShare*srv.clock().Sub(start))
}

// lacksMemory makes room below the limit, of which there must be one, and reports
// whether commands that may need memory are refused, because there is none.
func (srv *Server) lacksMemory() bool {
	m := &srv.memoryLimit
	m.lacking = false
	if srv.counted() <= srv.config.maxmemory {
		m.within(srv)
		return false
	}
	if m.since.IsZero() {
		m.since = srv.at
	}
	if srv.mayEvict() && !srv.evict() {
		m.going, m.lacking = false, true
	}
	return m.lacking
}

// mayEvict reports whether keys may be evicted now. While they may not, no command
// is refused either.
func (srv *Server) mayEvict() bool {
	return !srv.busy && srv.keeper.loading == nil && srv.pausedUntil == 0
}

// evicting reports whether the timer is to evict more.
func (srv *Server) evicting() bool { return srv.memoryLimit.going && srv.mayEvict() }

// within notes that the limit is kept.
func (m *memoryLimit) within(srv *Server) {
	m.going = false
	if !m.since.IsZero() {
		srv.exceeded += max(0, srv.at.Sub(m.since))
		m.since = time.Time{}
	}
}

// exceeding returns for how long the limit has been exceeded, in all and now.
func (srv *Server) exceeding() (total, current time.Duration) {
	if since := srv.memoryLimit.since; !since.IsZero() {
		current = max(0, srv.at.Sub(since))
	}
	return srv.exceeded + current, current
}

// needsMemory reports whether a command is refused while memory is short.
// Nothing is queued then that may need some later.
func (s *Session) needsMemory(cmd *Command, argv [][]byte) bool {
	if s.multi && (!runsInMulti(cmd.Name) || cmd.Name == "watch") {
		return true
	}
	return s.effectsOf(cmd, argv).Has(protocol.DenyOOM)
}

// evictionTime is for how long keys are evicted in one go; the server serves
// others before it goes on.
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

// UsedMemory estimates the bytes that keys, values, clients and scripts take: what INFO
// calls used_memory. It is 0 when the server has failed. O(n) for n clients. It may be
// called concurrently, and waits for the command that runs.
func (srv *Server) UsedMemory() (bytes int64) {
	srv.attempt(func() {
		srv.mu.Lock()
		srv.guarded(func() {
			srv.memoryLimit.looked = time.Time{}
			bytes = srv.inUse()
		})
		srv.mu.Unlock()
	})
	return bytes
}
