package engine

import (
	"time"

	"github.com/zsetd/zsetd/server/internal/engine/persist"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// StreamPosition is a position in a stream of replication: its ID, its offset in bytes,
// and the database that it has selected there.
type StreamPosition = persist.Stream

// Replication is the part of a server that feeds replicas, as far as the engine calls
// it. An engine has one, see [Parts]. Its methods are called with the lock held unless
// their comment says otherwise.
type Replication interface {
	// Feed takes the effects of a turn, at the end of the turn. It is called while the
	// keyspace lists its effects, see keyspace.Keyspace.Follow.
	Feed(e *keyspace.Effects)

	// Send sends a command to the replicas, but for those of a replica: its stream is that
	// of its primary. The data change only there.
	Send(command [][]byte)

	// GoodReplicas returns how many replicas have acknowledged the stream within
	// min-replicas-max-lag.
	GoodReplicas() int

	// Status returns the state for INFO; ResetStats resets its counters.
	Status() ReplicationStatus
	ResetStats()

	// Position returns the position of the stream that has led to the data as they are;
	// nil if there is none. Unless exact is set it is nil, too, if finding out takes
	// long. The data file keeps it.
	Position(exact bool) *StreamPosition

	// Continue is called with the position that the data file has, after the data were
	// loaded and before they change.
	Continue(at StreamPosition)

	// BeginStop ends the stream, when the server is about to stop and the data do not change
	// any more. The channel is closed when the replicas have acknowledged all of it; it is
	// nil without replicas.
	BeginStop() <-chan struct{}

	// CancelStop continues the stream after BeginStop: the server does not stop.
	CancelStop()

	// Saved is called when a checkpoint is on the disk, and when the parameters about
	// saving have changed.
	Saved()

	// Replied is called when a command of a replica (nil if it is unknown) has a reply, which
	// begins at mark in s.Out. The session is to end: the stream has no place for replies.
	Replied(s *Session, cmd *Command, mark int)

	// Left is called when the session of a replica ends.
	Left(s *Session)

	// Start is called without the lock when the engine is complete; its data may still be
	// loaded from the file.
	Start()

	// Close ends the goroutines of replication and waits for them. It is called
	// without the lock, when no commands run any more.
	Close()
}

// noReplication is the replication of an engine without replicas.
type noReplication struct{}

func (noReplication) Feed(*keyspace.Effects)          {}
func (noReplication) Send([][]byte)                   {}
func (noReplication) GoodReplicas() int               { return 0 }
func (noReplication) Status() ReplicationStatus       { return ReplicationStatus{} }
func (noReplication) ResetStats()                     {}
func (noReplication) Position(bool) *StreamPosition   { return nil }
func (noReplication) Continue(StreamPosition)         {}
func (noReplication) BeginStop() <-chan struct{}      { return nil }
func (noReplication) CancelStop()                     {}
func (noReplication) Saved()                          {}
func (noReplication) Replied(*Session, *Command, int) {}
func (noReplication) Left(*Session)                   {}
func (noReplication) Start()                          {}
func (noReplication) Close()                          {}

// feed passes the effects of the turn to the replicas.
func (srv *Engine) feed() {
	if e := srv.Keys.TakeEffects(); e != nil {
		srv.Replication.Feed(e)
	}
}

// BecomeReplica makes the session one of a replica: it receives what [Session.Append]
// appends, and no replies.
func (s *Session) BecomeReplica() {
	s.Modes.Replica = true
	s.Weigh()
}

// Append appends bytes of the stream to the output queue of a replica, and closes the
// session if the queue exceeds the limit of its class. The lock is held.
func (s *Session) Append(b []byte) {
	if s.End != Serving {
		return
	}
	s.Queue.stream += int64(len(b))
	s.post(b)
	s.checkOutput()
}

// EndStream closes the session once its output queue is written. The lock is held.
func (s *Session) EndStream() {
	s.CloseAfterReply()
	s.pending()
}

// Owe records that n bytes of the stream wait for the replica beside its output queue. They
// count for the limit of its class. The lock is held.
func (s *Session) Owe(n int64) {
	s.Queue.owed = n
	if s.End == Serving {
		s.checkOutput()
	}
}

// Backlog returns how many bytes of its output queue the client has not taken yet. The lock
// is held.
func (s *Session) Backlog() int64 { return s.backlog() - s.Queue.owed }

// WroteAt returns keyspace.Keyspace.EffectCount after the last change by the session's
// commands, or after a later one of the same turn; 0 if there was none. Changes by the
// transaction or script that runs do not count.
func (s *Session) WroteAt() uint64 {
	if s.Transaction.execing == 0 && s.Engine.Scripting.Running == nil {
		s.noteChanges()
	}
	return s.Activity.wroteAt
}

// OnDisk reports whether the changes up to the last call of WroteAt are in a file that the
// server keeps up to date.
func (s *Session) OnDisk() bool {
	return s.Engine.Logs() && s.Engine.Keeper.Saved(s.Activity.savedBy)
}

// noteChanges attributes the changes of this turn to the session.
func (s *Session) noteChanges() {
	if n := s.Engine.Keys.EffectCount(); n != s.Engine.Turn.effectsBefore {
		s.Activity.wroteAt = n
	}
	if s.Engine.Stats.Changes != s.Engine.Turn.changesBefore {
		s.Activity.savedBy = s.Engine.Keeper.Epoch()
	}
}

// Logs reports whether changes are written as appendfsync says.
func (srv *Engine) Logs() bool { return srv.Config.Appendonly && srv.Keeper.Path != "" }

// ReplicationStatus is the state of replication, for INFO.
type ReplicationStatus struct {
	Replicas      []ReplicaStatus // in order of arrival
	Offset        int64           // bytes of the stream
	BacklogSize   int64           // bytes that it keeps at least; 0 without a backlog
	BacklogFirst  int64           // offset of its first byte
	BacklogLength int64           // bytes
	OutputBytes   int64           // that wait for replicas, and are not of those that the backlog keeps
	BufferBytes   int64           // size of the backlog, and of the output queues of replicas

	FullSyncs, PartialSyncs, PartialRefused int64 // since the start, or CONFIG RESETSTAT

	TransferBegan time.Time // all data are sent to replicas since then; zero if they are not

	Failover string // no-failover, waiting-for-sync or failover-in-progress

	Primary *PrimaryStatus // nil unless the server is a replica
}

// PrimaryStatus is the state of the link to the primary.
type PrimaryStatus struct {
	Host       string
	Port       int64
	Linked     bool
	Silence    int64 // seconds since the primary has sent anything; -1 without a link
	ReadOffset int64 // bytes of the stream that were received
	Offset     int64 // bytes of the stream that were applied
	DownSince  int64 // seconds since the link was lost; -1 if there was none
	UpSince    int64 // seconds since the stream began
	Down       int64 // seconds without a link, since the first one of the server

	Attempts      int64 // to connect, since the link was last lost
	TotalAttempts int64 // to connect to this primary

	Receiving bool  // the data are transferred, or will be next
	Total     int64 // bytes of them; 0 if the primary does not know it, -1 before it has sent any
	Received  int64 // bytes

	FailedTransfers int    // of the data, one after another
	TransferError   string // of the last one; empty if none of them has failed
}

// ReplicaStatus is the state of a replica.
type ReplicaStatus struct {
	Host   string
	Port   int64
	State  string // wait_bgsave, send_bulk, rdb_transmitted or online
	Offset int64  // acknowledged
	Lag    int64  // seconds since the last acknowledgement
}
