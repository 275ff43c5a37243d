package replication

import (
	"math"
	"slices"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
)

// wait is a client in WAIT or WAITAOF.
type wait struct {
	index    int // in Primary.waits
	session  *engine.Session
	waiter   *engine.Waiter
	disks    bool // WAITAOF: it counts disks
	local    bool // and waits for that of this server
	replicas int64
	change   uint64 // the client's last change
	target   int64  // offset after that change; -1 until it is published
}

func waitCommand(c *engine.Call) {
	replicas := c.Int()
	deadline, ok := waitDeadline(c)
	if !ok {
		return
	}
	if c.Engine.Replica.Following.Load() {
		c.Reply.Error("ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated.")
		return
	}
	of(c.Engine).wait(c, &wait{replicas: replicas}, deadline)
}

func waitaof(c *engine.Call) {
	local := c.Int()
	if local < 0 || local > 1 {
		c.Fail("ERR value is out of range, value must between 0 and 1")
	}
	replicas := c.IntIn(0, math.MaxInt64, "ERR value is out of range, must be positive")
	deadline, ok := waitDeadline(c)
	if !ok {
		return
	}
	switch {
	case c.Engine.Replica.Following.Load():
		c.Reply.Error("ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are just local and are not propagated.")
	case local == 1 && !c.Engine.Logs():
		c.Reply.Error(errNoLog)
	default:
		of(c.Engine).wait(c, &wait{disks: true, local: local == 1, replicas: replicas}, deadline)
	}
}

const errNoLog = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."

// waitDeadline parses the timeout, the last argument. ok is false after an error.
func waitDeadline(c *engine.Call) (deadline int64, ok bool) {
	timeout := c.IntOr("ERR timeout is not an integer or out of range")
	switch {
	case timeout < 0:
		c.Fail("ERR timeout is negative")
	case timeout > math.MaxInt64-c.Now():
		c.Fail("ERR timeout is out of range")
	}
	if timeout > 0 && c.Err() == "" {
		deadline = c.Engine.After(timeout)
	}
	return deadline, c.OK()
}

// wait replies, or blocks the client.
func (p *Primary) wait(c *engine.Call, w *wait, deadline int64) {
	w.session, w.change, w.target = c.Session, c.Session.WroteAt(), -1
	if c.OfScript && c.Engine.Config.Valkey() { // Redis forgets what the caller has written
		w.change = c.Engine.Scripting.Running.Caller.WroteAt()
	}
	if p.met(w) || !c.MayBlock() {
		p.reply(w, c.Reply)
		return
	}
	c.WaitFor(deadline, engine.Want{}, func(r *protocol.Reply) {
		p.remove(w)
		p.reply(w, r)
	}, nil)
	w.waiter = c.Session.Stall.Blocked
	p.add(w)
}

// met reports whether a wait can end.
func (p *Primary) met(w *wait) bool {
	return p.have(w) >= w.replicas && (!w.local || w.session.OnDisk())
}

// reply replies to a wait as it stands.
func (p *Primary) reply(w *wait, r *protocol.Reply) {
	if w.disks {
		r.Array(2)
		onDisk := int64(0)
		if w.session.OnDisk() {
			onDisk = 1
		}
		r.Int(onDisk)
	}
	r.Int(p.have(w))
}

// Saved ends the waits that can end, after a checkpoint, or because changes are logged no
// longer.
func (p *Primary) Saved() {
	if p.link != nil {
		p.link.noteSaved()
	}
	p.serveWaits()
}

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

// have returns how many replicas have acknowledged the client's changes, or that these are
// on their disks.
func (p *Primary) have(w *wait) (n int64) {
	p.locate(w)
	if w.target < 0 {
		return 0
	}
	for _, r := range p.replicas {
		has := r.offset
		if w.disks {
			has = r.saved
		}
		if r.state == online && has >= w.target {
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
func (w *wait) lasts() bool { return w.session.Stall.Blocked == w.waiter }

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
		switch {
		case !w.lasts():
			p.remove(w)
		case w.local && !p.engine.Logs():
			p.remove(w)
			w.session.EndWait(w.waiter, func(r *protocol.Reply) { r.Error(errNoLog) })
		case p.met(w):
			p.remove(w)
			w.session.EndWait(w.waiter, func(r *protocol.Reply) { p.reply(w, r) })
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
		s.BacklogSize, s.BacklogFirst, s.BacklogLength = b.size, b.first()+1, b.end-b.first()
		s.BufferBytes = b.room
		s.OutputBytes = max(b.room-b.size, 0)
	}
	if p.transfer != nil {
		s.TransferBegan = p.transfer.began
	}
	busy := p.engine.Scripting.IsBusy()
	for _, r := range p.replicas {
		if busy && r.session.Peer.Closed() { // it leaves when the script has ended, which may wait for that
			continue
		}
		s.Replicas = append(s.Replicas, engine.ReplicaStatus{
			Host: r.host(), Port: r.port, State: r.stateName(p.transfer), Offset: r.offset, Lag: r.lag(),
		})
		s.OutputBytes += r.session.Backlog()
		s.BufferBytes += r.session.Backlog()
	}
	return s
}

// ResetStats resets the counters.
func (p *Primary) ResetStats() { p.fullSyncs, p.partialSyncs, p.partialRefused = 0, 0, 0 }
