package engine

import "github.com/zsetd/zsetd/server/internal/keyspace"

// Replication is the part of a server that feeds replicas, as far as the engine calls
// it. An engine has one, see [Parts]. Its methods are called with the lock held unless
// their comment says otherwise.
type Replication interface {
	// Feed takes the effects of a turn, at the end of the turn. It is called while the
	// keyspace lists its effects, see keyspace.Keyspace.Follow.
	Feed(e *keyspace.Effects)

	// GoodReplicas returns how many replicas have acknowledged the stream within
	// min-replicas-max-lag.
	GoodReplicas() int

	// Status returns the state for INFO; ResetStats resets its counters.
	Status() ReplicationStatus
	ResetStats()

	// Left is called when the session of a replica ends.
	Left(s *Session)

	// Close ends the goroutines of replication and waits for them. It is called
	// without the lock, when no commands run any more.
	Close()
}

// noReplication is the replication of an engine without replicas.
type noReplication struct{}

func (noReplication) Feed(*keyspace.Effects)    {}
func (noReplication) GoodReplicas() int         { return 0 }
func (noReplication) Status() ReplicationStatus { return ReplicationStatus{} }
func (noReplication) ResetStats()               {}
func (noReplication) Left(*Session)             {}
func (noReplication) Close()                    {}

// feed passes the effects of the turn to the replicas.
func (srv *Engine) feed() {
	if e := srv.Keys.TakeEffects(); e != nil {
		srv.Replication.Feed(e)
	}
}

// BecomeReplica makes the session one of a replica: it receives what [Session.Append]
// appends, and no replies.
func (s *Session) BecomeReplica() {
	s.Replica = true
	s.Weigh()
}

// Append appends bytes of the stream to the output queue of a replica, and closes the
// session if the queue exceeds the limit of its class. The lock is held.
func (s *Session) Append(b []byte) {
	if s.End != Serving {
		return
	}
	s.post(b)
	s.checkOutput()
}

// EndStream closes the session once its output queue is written. The lock is held.
func (s *Session) EndStream() {
	s.CloseAfterReply()
	s.pending()
}

// Backlog returns how many bytes of output the client has not taken yet. The lock is
// held.
func (s *Session) Backlog() int64 { return s.backlog() }

// WroteAt returns keyspace.Keyspace.EffectCount after the last change by the session's
// commands, or after a later one of the same turn; 0 if there was none.
func (s *Session) WroteAt() uint64 {
	if n := s.Engine.Keys.EffectCount(); n != s.Engine.effectsBefore {
		return n
	}
	return s.wroteAt
}

// ReplicationStatus is the state of replication, for INFO.
type ReplicationStatus struct {
	Replicas      []ReplicaStatus // in order of arrival
	Offset        int64           // bytes of the stream
	BacklogSize   int64           // bytes; 0 without a backlog
	BacklogFirst  int64           // offset of its first byte
	BacklogLength int64           // bytes
	OutputBytes   int64           // that wait for replicas

	FullSyncs, PartialSyncs, PartialRefused int64 // since the start, or CONFIG RESETSTAT
}

// ReplicaStatus is the state of a replica.
type ReplicaStatus struct {
	Host   string
	Port   int64
	State  string // wait_bgsave, send_bulk or online
	Offset int64  // acknowledged
	Lag    int64  // seconds since the last acknowledgement
}
