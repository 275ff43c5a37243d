package engine

import (
	"math"
	"net"
	"strconv"
	"sync/atomic"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/persist"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// following is the state of a server as a replica, as far as the engine asks it. Package
// replication sets it.
type following struct {
	Following atomic.Bool // the server is a replica; set with the lock
	Linked    bool        // it has the data of its primary, and receives the stream
	Whole     bool        // its data are those of a stream at some offset, also while it is not linked
	Replacing bool        // the data of its primary are loaded, while its old ones serve
	Yielding  bool        // a failover hands over to the replica that it follows, which may refuse

	Incoming atomic.Int64 // bytes of keys and values that are loaded beside those that it has; no lock
}

// Errors of a replica.
const (
	ErrReadOnly   = "READONLY You can't write against a read only replica."
	ErrMasterDown = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
	ErrNoData     = "MASTERDOWN Link with MASTER is down and the replica has not received any data yet."

	errForcedUnblock = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
)

// LoadState is the progress of loading the data.
type LoadState = persist.LoadState

// primaryQueueFactor is how many times client-query-buffer-limit a transaction of the
// primary may take.
const primaryQueueFactor = 4

// StreamQueueLimit returns the bytes that a transaction of the primary may take.
func (srv *Engine) StreamQueueLimit() int64 {
	return primaryQueueFactor * min(srv.Config.QueryBufferLimit, math.MaxInt64/primaryQueueFactor)
}

// ReadOnly reports whether clients must not write.
func (srv *Engine) ReadOnly() bool { return srv.Replica.Following.Load() && srv.Config.ReplicaReadOnly }

// Stale reports whether the data are too old for clients.
func (srv *Engine) Stale() bool {
	return srv.Replica.Following.Load() && !srv.Replica.Linked && (!srv.Config.ReplicaServeStale || srv.Bare())
}

// Bare reports whether the server is a replica that has no data at all: it has not received
// those of a primary, and has no keys of its own. An empty reply would be wrong.
func (srv *Engine) Bare() bool {
	if !srv.Replica.Following.Load() || srv.Replica.Linked || srv.Replica.Whole {
		return false
	}
	select {
	case <-srv.Keeper.Ready():
		return !srv.Keys.HasKeys()
	default: // the file is loaded
		return false
	}
}

// staleError is the error of commands while [Engine.Stale].
func (srv *Engine) staleError() string {
	if srv.Config.ReplicaServeStale {
		return ErrNoData
	}
	return ErrMasterDown
}

// IgnoresMaxmemory reports whether the memory limit does not apply: a replica has the keys
// that its primary has.
func (srv *Engine) IgnoresMaxmemory() bool {
	return srv.Replica.Following.Load() && srv.Config.ReplicaIgnoreMaxmemory
}

// mayWhileStale reports whether a command is allowed while the data are too old.
func (s *Session) mayWhileStale(cmd *Command, argv [][]byte) bool {
	if cmd.RunsQueue {
		for _, q := range s.Transaction.queue {
			if !q.cmd.effects(s.Engine, q.argv).Has(protocol.Stale) {
				return false
			}
		}
	}
	return cmd.effects(s.Engine, argv).Has(protocol.Stale)
}

// Link returns a session for the link to the primary of this server, whose stream
// [Session.Obey] runs. The lock is held.
func (srv *Engine) Link(p Peer, db int) *Session {
	var s *Session
	srv.addSession(&s, p)
	s.Modes.Primary, s.Modes.NoBlock, s.DB = true, true, srv.Keys.DB(db)
	s.SetOwner()
	return s
}

// Discard ends the session of Link. The lock is held.
func (s *Session) Discard() { s.remove() }

// InStream reports whether a primary may send a command in its stream: it changes data or
// sends a message, or belongs to a transaction or the connection.
func (s *Session) InStream(argv [][]byte) bool {
	cmd, _ := s.Engine.Table.Find(argv)
	return cmd == nil || cmd.Spec.Flags().Has(protocol.Write|protocol.MayReplicate) || cmd.Importable || cmd.EndsQueueing || cmd.InStream
}

// Obey runs a command of the primary in a commit scope of its own, with expired data
// visible, and returns the error that it replies, or "". The lock is held. The session
// has no transport: replies are discarded.
func (s *Session) Obey(argv [][]byte) (failure string) {
	srv := s.Engine
	before := srv.Stats.ErrorReplies
	srv.Turn.current = s
	s.Exec(argv)
	srv.Turn.Scope.Commit()
	srv.Turn.current = nil
	if srv.Stats.ErrorReplies != before {
		failure = "an error within a transaction or a script"
		if out := s.Out.Bytes(); len(out) > 0 && out[0] == '-' {
			failure = Clip(out[1:len(out)-2], 200)
		}
	}
	if s.Out.Cap() > MaxKeptReply {
		s.Out.Swap(nil)
	}
	s.Out.Truncate(0)
	s.Call.Argv, s.Call.Args = nil, protocol.Args{}
	return failure
}

// redirection is the error that names the primary to a client that understands it, see
// CLIENT CAPA.
func (srv *Engine) redirection() string {
	p := srv.Replication.Status().Primary
	if p == nil {
		return ErrReadOnly
	}
	return "REDIRECT " + net.JoinHostPort(p.Host, strconv.FormatInt(p.Port, 10))
}

// redirects replies the address of the primary to a command that reads or writes data,
// unless the client has sent READONLY and the command reads. Queueing fails, and EXEC
// ends the transaction. While the server yields, the command waits for the end of the
// failover: both servers are replicas, and each would name the other.
func (s *Session) redirects(cmd *Command, argv [][]byte, _ int) bool {
	away := protocol.Write
	if !s.Modes.Readonly {
		away |= protocol.ReadOnly
	}
	switch {
	case !s.effectsOf(cmd, argv).Has(away):
		return false
	case s.Engine.Replica.Yielding:
		s.Engine.Pauses.postpone(s, argv)
		return true
	}
	return s.refersElsewhere(cmd, s.Engine.redirection())
}

// UnblockAll ends the waits of blocked clients with an error, and closes their connections:
// the server becomes a replica. Clients that can be redirected stay connected, if the command is
// about data. Those that have sent READONLY wait on if it reads: a replica has the data, too.
func (srv *Engine) UnblockAll() {
	for _, s := range srv.Clients.Sessions {
		w := s.Stall.Blocked
		if w == nil {
			continue
		}
		switch flags := s.effectsOf(w.cmd, w.argv); {
		case s.Modes.Readonly && flags.Has(protocol.ReadOnly):
			continue
		case s.Login.Redirectable && flags.Has(protocol.Write|protocol.ReadOnly):
			s.EndWait(w, func(r *protocol.Reply) { r.Error(srv.redirection()) })
		default:
			s.EndWait(w, func(r *protocol.Reply) { r.Error(errForcedUnblock) })
			s.CloseAfterReply()
		}
		s.pending()
	}
}

// BeginReplacement makes clients receive the error -LOADING, because data of the primary are
// loaded that will replace those of the server. Unless keep is set it drops these. The file
// keeps the last state until [Engine.Replace], so a server that ends meanwhile has that.
func (srv *Engine) BeginReplacement(l *LoadState, keep bool) {
	srv.Keeper.Loading = l
	if keep {
		return
	}
	srv.adopt(srv.Keys.Empty())
	srv.Keeper.Suspend()
	srv.Scripting.Functions = Functions{}
}

// FailReplacement ends BeginReplacement without data. The file keeps the last state.
func (srv *Engine) FailReplacement() {
	srv.Keeper.Loading = nil
	srv.Keeper.Wake()
}

// Replace replaces all data, and the functions by those that CompileLibraries has made of
// them. The file gets the data as a whole.
func (srv *Engine) Replace(data *keyspace.Keyspace, functions Functions) {
	srv.adopt(data)
	srv.Keeper.Loading = nil
	srv.Keeper.Resume()
	srv.Scripting.Functions = functions
}

// CompileLibraries compiles the libraries of data that are not yet those of the server. The
// lock is not needed.
func (srv *Engine) CompileLibraries(data *keyspace.Keyspace, limits LibraryLimits) Functions {
	return srv.compileLibraries(srv, data, limits)
}

// adopt replaces all data, and records that for watchers, waiters and caches.
func (srv *Engine) adopt(data *keyspace.Keyspace) {
	srv.Keys.Seal()
	for i := range srv.Keys.Len() {
		srv.Freeing.DatabaseFreed(srv.Keys.DB(i), true)
		srv.Turn.Scope.Replacing(srv.Keys.DB(i), data.DB(i))
	}
	srv.Turn.Scope.Flushed()
	srv.Keys.Adopt(data)
	srv.Collect()
}
