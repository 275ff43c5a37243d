package replication

import (
	"slices"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
)

// locate sets the offset after the client's last change, once it is published.
func (p *Primary) locate(w *wait) {
	switch {
	case w.target >= 0:
	case w.change == 0:
		w.target = 0
	case w.change <= p.published:
		w.target = p.offset
	}
}

// have returns how many replicas have acknowledged the client's changes.
func (p *Primary) have(w *wait) (n int64) {
	p.locate(w)
	if w.target < 0 {
		return 0
	}
	for _, r := range p.replicas {
		if r.state == online && r.offset >= w.target {
			n++
		}
	}
	return n
}

// requestAcks asks the replicas to acknowledge what they have.
const requestAcks = "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n"

// serveWaits ends the waits that can end, and asks for acknowledgements for the others
// whose changes have been published since.
func (p *Primary) serveWaits() {
	ask := false
	p.waits = slices.DeleteFunc(p.waits, func(w *wait) bool {
		if w.session.Blocked != w.waiter {
			return true // the client has left, or was unblocked
		}
		located := w.target >= 0
		if have := p.have(w); have >= w.replicas {
			w.session.EndWait(w.waiter, func(r *protocol.Reply) { r.Int(have) })
			return true
		}
		ask = ask || !located && w.target >= 0
		return false
	})
	if ask {
		p.send([]byte(requestAcks))
	}
}

// ask asks the replicas for an acknowledgement on behalf of a client that begins to wait.
func (p *Primary) ask(w *wait) {
	if w.target > 0 {
		p.send([]byte(requestAcks))
	}
}

// forget removes a wait that has ended by its timeout.
func (p *Primary) forget(w *wait) {
	p.waits = slices.DeleteFunc(p.waits, func(other *wait) bool { return other == w })
}

// Status returns the state for INFO.
func (p *Primary) Status() engine.ReplicationStatus {
	s := engine.ReplicationStatus{
		Offset: p.offset, OldID: p.oldID, OldOffset: -1,
		FullSyncs: p.fullSyncs, PartialSyncs: p.partialSyncs, PartialRefused: p.partialRefused,
	}
	if p.oldID != "" {
		s.OldOffset = p.oldEnd + 1
	}
	if b := p.backlog; b != nil {
		s.BacklogSize, s.BacklogFirst, s.BacklogLength = int64(len(b.buf)), b.first()+1, int64(b.n)
	}
	for _, r := range p.replicas {
		s.Replicas = append(s.Replicas, engine.ReplicaStatus{
			Host: r.host(), Port: r.port, State: r.state.name(), Offset: r.offset, Lag: r.lag(),
		})
		s.OutputBytes += r.session.Backlog() + r.heldBytes
	}
	return s
}

// ResetStats resets the counters.
func (p *Primary) ResetStats() { p.fullSyncs, p.partialSyncs, p.partialRefused = 0, 0, 0 }
