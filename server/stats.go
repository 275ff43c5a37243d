package server

import (
	"context"
	"iter"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
)

// Stats are the counters of a server at one instant. Counters count since the server
// started, or since CONFIG RESETSTAT.
type Stats struct {
	Uptime    time.Duration
	Databases []DatabaseStats // those that have keys, by number

	UsedMemory int64 // estimated bytes of keys, values, clients and scripts
	PeakMemory int64 // the largest UsedMemory, in bytes
	MaxMemory  int64 // the parameter maxmemory, in bytes; 0 for no limit

	Clients        int   // connections, subscriptions and calls of Do
	BlockedClients int   // of these, in a blocking command or held back by CLIENT PAUSE
	Connections    int64 // likewise, all since the start
	Rejected       int64 // connections refused, by maxclients or protected mode
	Channels       int   // with a subscriber
	Patterns       int   // with a subscriber

	Commands int64 // executed
	Errors   int64 // error replies
	Hits     int64 // lookups for reading that found the key
	Misses   int64 // lookups for reading that did not

	ExpiredKeys    int64 // removed because of their deadline
	ExpiredMembers int64 // fields of hashes and members of sorted sets, likewise
	EvictedKeys    int64 // removed because of maxmemory
	EvictedClients int64 // disconnected because of maxmemory-clients

	BytesRead    int64 // from connections
	BytesWritten int64 // to connections
	Changes      int64 // of keys
}

// DatabaseStats are the sizes of a database.
type DatabaseStats struct {
	DB       int // number, as in SELECT
	Keys     int
	Deadline int // keys that have a deadline
}

// Stats returns the counters of the server. It takes O(n) for n clients and databases,
// and waits for the command that runs. It is safe for concurrent use. After a panic of
// the server, and where other methods return [ErrWithin], the result is zero.
func (srv *Server) Stats() (s Stats) {
	e := srv.engine
	if e.Within() != nil {
		return s
	}
	e.Attempt(func() {
		e.Mu.Lock()
		defer e.Mu.Unlock()
		e.Memory.NonKeyBytesAt = time.Time{} // count clients as of now
		used := e.InUse()
		s = Stats{
			Uptime:     e.Clock().Sub(e.Identity.Start),
			UsedMemory: used, PeakMemory: max(e.Stats.PeakMemory, used), MaxMemory: e.Config.Maxmemory,
			BlockedClients: e.Stats.BlockedClients,
			Connections:    e.Stats.Connections, Rejected: e.Stats.Rejected.Load(),
			Channels: e.PubSub.Table.Len(subscription.Channels), Patterns: e.PubSub.Table.Len(subscription.Patterns),
			Commands: e.Stats.Commands, Errors: e.Stats.ErrorReplies, Hits: e.Hits(), Misses: e.Stats.KeyspaceMisses,
			ExpiredKeys: e.Stats.ExpiredKeys, ExpiredMembers: e.Stats.ExpiredMembers,
			EvictedKeys: e.Stats.EvictedKeys, EvictedClients: e.Stats.EvictedClients,
			BytesRead: e.Stats.Input.Load(), BytesWritten: e.Stats.Output.Load(), Changes: e.Stats.Changes,
		}
		for _, c := range e.Clients.Sessions {
			if c.End != engine.Killed {
				s.Clients++
			}
		}
		for i := range e.Keys.Len() {
			if db := e.Keys.DB(i); db.Len() > 0 {
				s.Databases = append(s.Databases, DatabaseStats{i, db.Len(), db.Volatile()})
			}
		}
	})
	return s
}

// Blocked returns the keys that each client in a blocking command waits for, by its ID in
// CLIENT LIST; none for one that waits for something else, as with WAIT. It takes O(n) for n
// clients, and waits for the command that runs. It is safe for concurrent use. After a panic of
// the server, and where other methods return [ErrWithin], the result is nil.
func (srv *Server) Blocked() (keys map[int64][]string) {
	e := srv.engine
	if e.Within() != nil {
		return nil
	}
	e.Attempt(func() {
		e.Mu.Lock()
		defer e.Mu.Unlock()
		keys = map[int64][]string{}
		for _, c := range e.Clients.Sessions {
			if w := c.Stall.Blocked; w != nil {
				keys[c.ID] = w.Keys()
			}
		}
	})
	return keys
}

// Keys returns an iterator over the names of the keys in a database that match a
// pattern, in no order; the pattern is that of SCAN, and "*" matches all keys. A key
// that exists from the beginning of the loop to its end is yielded exactly once (SCAN
// promises at least once), a key that is added or removed meanwhile perhaps.
//
// The loop takes the lock for some 100 keys at a time, and its body runs without the
// lock: it may call any method of srv, and take any time. A complete loop is O(n) for
// n keys. If the loop cannot go on, the last pair has the error: that of ctx,
// [ErrServerClosed], [ErrWithin], a number that is not of a database, or a [*PanicError]. The
// iterator may be used several times, and concurrently.
func (srv *Server) Keys(ctx context.Context, db int, match string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := srv.engine.Within(); err != nil {
			yield("", err)
			return
		}
		srv.engine.EachKey(ctx, db, match)(yield)
	}
}
