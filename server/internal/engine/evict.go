package engine

import (
	"strings"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// The choice of the key to evict follows Redis 7.0: some keys of each database are
// sampled at random, and the best candidates of all samples wait in a pool of 16,
// so that they need not be found again. For volatile-ttl the key that expires first
// is known without sampling.

// evictor finds keys to evict.
type evictor struct {
	pool   evictionPool
	next   int // database of the next random key
	picked []*keyspace.Entry
}

// evictionPool holds candidates, the best last.
type evictionPool struct {
	n    int
	keys [16]candidate
}

// candidate is a key that may be evicted. It may no longer exist.
type candidate struct {
	db   *keyspace.DB
	key  []byte // a copy: the pool must not keep the entry and its value alive
	idle uint64 // the larger, the better
}

// offer adds a candidate if the pool has room, or if the candidate is better than
// the worst one in it.
func (p *evictionPool) offer(db *keyspace.DB, key string, idle uint64) {
	if p.n == len(p.keys) && idle <= p.keys[0].idle {
		return
	}
	at := 0
	for i := range p.n {
		k := &p.keys[i]
		if k.db == db && string(k.key) == key {
			return // already in the pool
		}
		if k.idle < idle {
			at = i + 1
		}
	}
	var spare []byte
	switch {
	case p.n < len(p.keys):
		spare = p.keys[p.n].key
		copy(p.keys[at+1:], p.keys[at:p.n])
		p.n++
	default: // drop the worst
		spare = p.keys[0].key
		at--
		copy(p.keys[:at], p.keys[1:at+1])
	}
	if cap(spare) > maxSpareKey {
		spare = nil
	}
	p.keys[at] = candidate{db, append(spare[:0], key...), idle}
}

// maxSpareKey is the largest key buffer that a slot of the pool keeps for the next
// key.
const maxSpareKey = 1 << 10

// pop removes and returns the entry of the best candidate that still exists.
func (p *evictionPool) pop(volatile bool) (*keyspace.DB, *keyspace.Entry) {
	for p.n > 0 {
		p.n--
		c := p.keys[p.n]
		if e := c.db.Stored(c.key); e != nil && (!volatile || e.Deadline() != 0) {
			return c.db, e
		}
	}
	return nil, nil
}

// Worst returns the key that the policy evicts next, or nil.
func (srv *Engine) Worst() (*keyspace.DB, *keyspace.Entry) {
	policy := srv.Config.MaxmemoryPolicy
	volatile := strings.HasPrefix(policy, "volatile-")
	switch policy {
	case "noeviction":
		return nil, nil
	case "volatile-ttl":
		return srv.soonest()
	case "allkeys-random", "volatile-random":
		return srv.anyKey(volatile)
	}
	p, picked := &srv.Memory.evictor.pool, srv.Memory.evictor.picked
	defer func() { srv.Memory.evictor.picked = picked[:0] }()
	for {
		keys := 0
		for _, db := range srv.Keys.DBs() {
			if volatile {
				keys += db.Volatile()
			} else {
				keys += db.Len()
			}
			picked = db.Sample(srv.Rand, ClampInt(srv.Config.MaxmemorySamples), volatile, picked[:0])
			for _, e := range picked {
				p.offer(db, e.Key(), srv.idleness(e))
			}
		}
		clear(picked[:cap(picked)]) // does not keep entries alive
		if keys == 0 {
			return nil, nil
		}
		if db, e := p.pop(volatile); e != nil {
			return db, e
		}
	}
}

// idleness measures how little a key is used: the time since its last access, or
// with an LFU policy how rarely it is accessed.
func (srv *Engine) idleness(e *keyspace.Entry) uint64 {
	if srv.Keys.Frequency.On {
		return uint64(255 - srv.Keys.Frequent(e))
	}
	return uint64(max(0, srv.Keys.Now()-e.Access()))
}

// soonest returns the key that expires first.
func (srv *Engine) soonest() (of *keyspace.DB, first *keyspace.Entry) {
	for _, db := range srv.Keys.DBs() {
		if e := db.FirstToExpire(); e != nil && (first == nil || e.Deadline() < first.Deadline()) {
			of, first = db, e
		}
	}
	return of, first
}

// anyKey returns a random key, from each database in turn.
func (srv *Engine) anyKey(volatile bool) (*keyspace.DB, *keyspace.Entry) {
	next := &srv.Memory.evictor.next
	dbs := srv.Keys.DBs()
	for range dbs {
		db := dbs[*next]
		*next = (*next + 1) % len(dbs)
		if e := db.AnyKey(srv.Rand, volatile); e != nil {
			return db, e
		}
	}
	return nil, nil
}

// evictionCheck is the number of evictions between two checks of the time limit.
const evictionCheck = 16

// evict evicts keys until memory is below the limit, and reports whether that has
// succeeded or continues: if the time of a step is up, the timer continues.
func (srv *Engine) evict() bool {
	m := &srv.Memory
	if srv.Config.MaxmemoryPolicy == "noeviction" {
		return false
	}
	u := &srv.Turn.Scope
	defer u.leave(u.enter(nil, u.mark)) // the next command's client has not caused the eviction
	start, limit, freed := srv.Clock(), srv.Config.EvictionTime(), 0
	m.MoreToEvict = false
	done := false
	for !done {
		db, e := srv.Worst()
		if e == nil {
			break
		}
		srv.EvictKey(db, e)
		freed++
		done = srv.counted() <= srv.Config.Maxmemory
		if freed%evictionCheck == 0 && !done && srv.Clock().Sub(start) > limit {
			m.MoreToEvict = true
			break
		}
	}
	if freed > 0 {
		srv.Keys.Seal()
		u.Commit()
		took := srv.Clock().Sub(start)
		if limit := srv.Config.LatencyMonitorThreshold; limit > 0 && took.Milliseconds() >= limit {
			srv.Stats.Latency.Add("eviction-cycle", srv.Turn.At, took)
		}
	}
	if done {
		m.within(srv)
	}
	return done || m.MoreToEvict && freed > 0
}

// EvictKey evicts a key.
func (srv *Engine) EvictKey(db *keyspace.DB, e *keyspace.Entry) {
	db.Evict(e)
	srv.Stats.EvictedKeys++
	srv.Turn.Scope.changed(db.ID(), e.Key(), classEvicted, "evicted")
}
