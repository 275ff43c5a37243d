package replication

import (
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
)

// A restart of the server.
//
// The data file has the position of the stream up to which its data are those of the
// replicas. After the restart the stream has a new ID, as the data may lack changes that
// replicas have; the old ID stands for the part of the stream up to that position. So a
// replica that has received just that part continues, and one that has received more, or
// less, does not. Keys that have expired meanwhile are the first changes of the new
// stream.
//
// A server that stops waits for its replicas, so after a clean stop they continue.

// quickBytes is how many bytes of effects are translated with the lock held for a
// checkpoint that no client waits for.
const quickBytes = 64 << 10

// Position implements engine.Replication.
func (p *Primary) Position(exact bool) *engine.StreamPosition {
	if l := p.link; p.backlog == nil || l != nil && !l.known {
		return nil
	} else if l != nil {
		return &engine.StreamPosition{ID: p.engine.Identity.ReplID, Offset: p.offset, Database: l.db}
	}
	if e := p.engine.Keys.TakeEffects(); e != nil {
		p.Feed(e)
		if p.backlog == nil { // the data were replaced
			return nil
		}
	}
	if !exact && !p.quick() {
		return nil
	}
	p.translate()
	p.publish()
	return &engine.StreamPosition{ID: p.engine.Identity.ReplID, Offset: p.offset}
}

// quick reports whether little is left to translate.
func (p *Primary) quick() bool {
	if !p.translating.TryLock() {
		return false
	}
	p.translating.Unlock()
	p.queueLock.Lock()
	defer p.queueLock.Unlock()
	return p.queueBytes <= quickBytes
}

// Continue implements engine.Replication. A replica continues with the stream of its
// primary.
func (p *Primary) Continue(at engine.StreamPosition) {
	if l := p.link; l != nil {
		if at.Database < 0 || at.Database >= p.engine.Keys.Len() {
			return
		}
		p.engine.Identity.ReplID, p.offset = at.ID, at.Offset
		p.backlog = newBacklog(p.engine.Config.ReplBacklogSize, p.offset)
		l.known, l.db, p.engine.Replica.Whole = true, at.Database, true
		return
	}
	if p.engine.Config.ReplFieldDeadlines != "no" {
		return // see effects_deadlines.go
	}
	p.offset, p.deserted = at.Offset, time.Now()
	p.engine.Identity.ReplID2, p.engine.Identity.Repl2End = at.ID, at.Offset
	p.open()
	p.log.Info("replicas may continue after the restart", "id", at.ID, "offset", at.Offset)
}

// BeginStop implements engine.Replication.
func (p *Primary) BeginStop() <-chan struct{} {
	if p.backlog == nil || len(p.replicas) == 0 || p.link != nil {
		return nil
	}
	p.drain()
	caughtUp := make(chan struct{})
	p.ending, p.caughtUp, p.stopOffset = true, caughtUp, p.offset
	if !p.hasAll() {
		p.send([]byte(requestAcks))
	}
	p.considerCaughtUp()
	return caughtUp
}

// CancelStop implements engine.Replication.
func (p *Primary) CancelStop() { p.ending, p.caughtUp = false, nil }

// considerCaughtUp ends the wait of a server that stops, if the replicas have all changes.
func (p *Primary) considerCaughtUp() {
	if p.caughtUp != nil && p.hasAll() {
		close(p.caughtUp)
		p.caughtUp = nil
	}
}

// hasAll reports whether the replicas have acknowledged the stream up to stopOffset.
// Replicas that do not have the data yet do not count.
func (p *Primary) hasAll() bool {
	for _, r := range p.replicas {
		if r.state == online && !r.old && r.offset < p.stopOffset {
			return false
		}
	}
	return true
}
