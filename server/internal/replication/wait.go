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
		w.target = p.written
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

// add adds a wait that begins, and asks for acknowledgements. Waits whose clients have
// left are removed when their number may have doubled.
func (p *Primary) add(w *wait) {
	if len(p.waits) >= p.sweepWaits {
		for i := len(p.waits) - 1; i >= 0; i-- {
			if w := p.waits[i]; !w.lasts() {
				p.remove(w)
			}
		}
		p.sweepWaits = max(leastSweep, 2*len(p.waits))
	}
	w.index = len(p.waits)
	p.waits = append(p.waits, w)
	switch {
	case w.target < 0:
		p.unlocated = append(p.unlocated, w)
	case w.target > 0:
		p.send([]byte(requestAcks))
	}
}

// leastSweep is how many waits there are when those of clients that have left are
// removed for the first time.
const leastSweep = 64

// lasts reports whether the client still waits.
func (w *wait) lasts() bool { return w.session.Blocked == w.waiter }

// remove removes a wait. The last one takes its place.
func (p *Primary) remove(w *wait) {
	last := p.waits[len(p.waits)-1]
	p.waits[w.index], last.index = last, w.index
	p.waits[len(p.waits)-1] = nil
	p.waits = p.waits[:len(p.waits)-1]
}

// locateWaits sets the offsets of the waits whose changes have been published, and asks
// for acknowledgements on their behalf.
func (p *Primary) locateWaits() {
	ask := false
	p.unlocated = slices.DeleteFunc(p.unlocated, func(w *wait) bool {
		p.locate(w)
		ask = ask || w.target >= 0 && w.lasts()
		return w.target >= 0 || !w.lasts()
	})
	if ask {
		p.send([]byte(requestAcks))
	}
}

// serveWaits ends the waits that can end, after an acknowledgement.
func (p *Primary) serveWaits() {
	for i := len(p.waits) - 1; i >= 0; i-- {
		w := p.waits[i]
		if !w.lasts() {
			p.remove(w)
		} else if have := p.have(w); have >= w.replicas {
			p.remove(w)
			w.session.EndWait(w.waiter, func(r *protocol.Reply) { r.Int(have) })
		}
	}
}

// Status returns the state for INFO. The offset counts the changes of all earlier turns:
// clients that have refused writes wait until a replica has it. Those of this turn are
// published at its end, so that INFO in a transaction does not split it on replicas.
func (p *Primary) Status() engine.ReplicationStatus {
	p.publishEarlier()
	s := engine.ReplicationStatus{
		Offset:    p.offset,
		Failover:  p.failover.state.name(),
		FullSyncs: p.fullSyncs, PartialSyncs: p.partialSyncs, PartialRefused: p.partialRefused,
	}
	if p.link != nil {
		s.Primary = p.link.status()
	}
	if b := p.backlog; b != nil {
		s.BacklogSize, s.BacklogFirst, s.BacklogLength = int64(len(b.buf)), b.first()+1, int64(b.n)
	}
	for _, r := range p.replicas {
		s.Replicas = append(s.Replicas, engine.ReplicaStatus{
			Host: r.host(), Port: r.port, State: r.state.name(), Offset: r.offset, Lag: r.lag(),
		})
		s.OutputBytes += r.session.Backlog() + r.unsentBytes
	}
	return s
}

// ResetStats resets the counters.
func (p *Primary) ResetStats() { p.fullSyncs, p.partialSyncs, p.partialRefused = 0, 0, 0 }
