package engine

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// clients are the sessions of a server.
type clients struct {
	Sessions map[int64]*Session
	lastID   int64
	Monitors map[*Session]struct{}

	slow         slowConsumers // has a lock of its own
	written      sync.Pool     // of *[blockSize]byte: blocks of output that were written
	memory       clientMemory
	warnedOfHTTP time.Time
}

// ByID returns all sessions, the oldest first.
func (t *clients) ByID() []*Session {
	return slices.SortedFunc(maps.Values(t.Sessions), func(a, b *Session) int { return cmp.Compare(a.ID, b.ID) })
}
