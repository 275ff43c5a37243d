package engine

import (
	"log/slog"
	"math"
	"math/bits"
	"strings"
	"unsafe"
)

// maxmemory-clients bounds the memory of all clients together: their buffers,
// queued commands, and the names of watched keys and subscriptions. Above the limit
// the largest clients are disconnected until the rest is below it, as in Redis.
//
// While the limit is off, a turn costs one comparison. While it is on, a session is
// weighed whenever its memory may have changed: at the end of its turn and when
// output is added. The sum is kept up to date, and so are classes of size, so that
// finding the largest of ten thousand clients needs no search.

// clientMemory is guarded by the server's lock.
type clientMemory struct {
	limit        int64 // bytes; 0: none
	total        int64 // of all weighed sessions
	classes      [weightClasses][]*Session
	reportedFull bool // the log already reports that no client is left to disconnect
}

// weight is the state of a session in clientMemory.
type weight struct {
	nameBytes int64 // bytes of the names of watched keys, subscriptions and fieldsets
	weighed   int64 // its part of the total
	size      int8  // its class of size, from 1; 0: none
	position  int   // position in that class
}

const (
	// weightClasses is the number of classes of size: the first ends at 32 KB, each
	// of the others at twice the end of the previous one.
	weightClasses = 19
	firstClass    = 15 // bits
	// minClientMemory is the smallest effective limit. Below it no client could
	// stay connected to change it.
	minClientMemory = 128 << 10
	// perName is the cost of a name in addition to its bytes, in the session's set
	// and in the server's.
	perName = 64
)

// memory estimates the bytes that a session takes.
func (s *Session) memory() int64 {
	n := int64(unsafe.Sizeof(*s)) + int64(s.Out.Cap()+s.Queue.Sealed) + s.Queue.Unsent.Load() + s.Transaction.queued + s.Weight.nameBytes + argsSize(s.running())
	return n + int64(s.Peer.inputSize())
}

// limitClients applies the parameters about clients.
func (srv *Engine) limitClients() {
	if floor := srv.Config.LeastSoftLimit(); floor != math.MaxInt64 {
		for _, s := range srv.Clients.Sessions {
			if s.backlog() > floor {
				s.addSlow()
			}
		}
	}
	m := &srv.Clients.memory
	was := m.limit
	switch n := srv.Config.MaxmemoryClients; {
	case n < 0:
		m.limit = srv.Config.Maxmemory/100*-n + srv.Config.Maxmemory%100*-n/100
	default:
		m.limit = n
	}
	if m.limit > 0 {
		m.limit = max(m.limit, minClientMemory)
	}
	if (was == 0) == (m.limit == 0) {
		return
	}
	for _, s := range srv.Clients.Sessions {
		if m.limit != 0 {
			s.Weigh()
		} else {
			m.remove(s)
		}
	}
}

// full reports whether clients must be disconnected.
func (m *clientMemory) full() bool { return m.limit != 0 && m.total >= m.limit }

// remove subtracts a session from the total.
func (m *clientMemory) remove(s *Session) {
	m.total -= s.Weight.weighed
	s.Weight.weighed = 0
	m.classify(s, 0)
}

// classify puts a session in a class of size, or in none.
func (m *clientMemory) classify(s *Session, class int8) {
	if s.Weight.size == class {
		return
	}
	if s.Weight.size != 0 {
		list := m.classes[s.Weight.size-1]
		last := len(list) - 1
		list[s.Weight.position] = list[last]
		list[s.Weight.position].Weight.position = s.Weight.position
		list[last] = nil
		m.classes[s.Weight.size-1] = list[:last]
	}
	s.Weight.size = class
	if class != 0 {
		s.Weight.position = len(m.classes[class-1])
		m.classes[class-1] = append(m.classes[class-1], s)
	}
}

// Weigh updates the memory of a session, if there is a limit.
func (s *Session) Weigh() {
	if s.Engine.Clients.memory.limit != 0 {
		s.weighNow()
	}
}

func (s *Session) weighNow() {
	m := &s.Engine.Clients.memory
	if s.End == Killed {
		m.remove(s)
		return
	}
	n := s.memory()
	m.total += n - s.Weight.weighed
	s.Weight.weighed = n
	class := int8(0)
	if !s.Modes.NoEvict && !s.Modes.direct && !s.Modes.Replica && !s.Modes.Primary {
		class = int8(1 + min(bits.Len64(uint64(n)>>firstClass), weightClasses-1))
	}
	m.classify(s, class)
}

// evict disconnects the largest clients until the others are below the limit, and returns
// how many. Clients with CLIENT NO-EVICT stay.
func (m *clientMemory) evict(log *slog.Logger) (evicted int64) {
	for class := weightClasses - 1; class >= 0 && m.full(); {
		if len(m.classes[class]) == 0 {
			class--
			continue
		}
		s := m.classes[class][0]
		if s.weighNow(); int(s.Weight.size) != class+1 { // it has become smaller meanwhile
			continue
		}
		log.Info("closing client: the memory of all clients exceeds maxmemory-clients", "client", s.Peer.Addr, "name", s.Login.Name, "bytes", s.Weight.weighed, "all", m.total, "maxmemory-clients", m.limit,
			"info", strings.TrimSpace(string(s.AppendInfo(nil))))
		evicted++
		s.Kill()
	}
	if full := m.full(); full != m.reportedFull {
		if m.reportedFull = full; full {
			log.Warn("the clients that remain exceed maxmemory-clients and are exempt from it", "all", m.total, "maxmemory-clients", m.limit)
		}
	}
	return evicted
}
