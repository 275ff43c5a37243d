package replication

import (
	"bytes"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// Primary sends the data and the stream of effects to replicas. It is an
// engine.Replication. The fields without a note are guarded by the engine's lock.
type Primary struct {
	engine *engine.Engine
	log    *slog.Logger

	translation
	stream
	audience
	waitCalls
	transfer *transfer // in progress; nil without one
	failover failover
	link     *link         // to the primary of this server; nil unless it is a replica
	linkLost time.Time     // when the last link was lost; zero while there is one, and before the first
	unlinked time.Duration // between links, up to linkLost

	fullSyncs, partialSyncs, partialRefused int64

	worker
}

// translation is the effects on their way to the stream. Turns put them into the queue; the
// goroutine run translates them without the engine's lock, and publishes the bytes with it.
type translation struct {
	queueLock   sync.Mutex // guards the queue, for an instant; no lock is taken below it
	queue       []queued
	queueBytes  int
	translating sync.Mutex // guards the translator and ready; the engine's lock is not taken below it
	translator  Translator
	ready       []chunk // translated, not yet published, in order
}

// stream is the stream of effects.
type stream struct {
	offset    int64  // bytes so far
	published uint64 // it has all changes up to this one, see keyspace.Keyspace.EffectCount
	written   int64  // offset after the last change
	backlog   *backlog
	pinged    time.Time
}

// audience is the replicas.
type audience struct {
	replicas   []*replica    // replaced, never changed in place: sending to one may end another
	behind     atomic.Int64  // bytes of the stream that replicas lack that are online, because their output queues are full; no lock
	deserted   time.Time     // when the last replica left
	ending     bool          // the server stops: the stream is at its end
	caughtUp   chan struct{} // closed when the replicas have the stream up to stopOffset; nil without a wait for that
	stopOffset int64
}

// waitCalls are the calls of WAIT.
type waitCalls struct {
	waits      []*wait
	unlocated  []*wait // of waits, those whose change is not published
	sweepWaits int     // number of waits at which those of clients that have left are removed
}

// worker is the goroutine of the primary, and the group of all goroutines.
type worker struct {
	kick    chan struct{} // capacity 1: there may be work
	quit    chan struct{}
	started sync.Once // starts the goroutine run
	ended   sync.Once // closes quit
	done    sync.WaitGroup
}

// queued is the effects of a turn.
type queued struct {
	effects  *keyspace.Effects
	sequence uint64 // the last change in effects
}

// chunk is a part of the stream.
type chunk struct {
	bytes    []byte
	sequence uint64 // the last change whose bytes end here; 0 if none does
}

// NewPrimary returns the primary of an engine. Without replicas it does nothing, and
// changes of keys cost a comparison.
func NewPrimary(e *engine.Engine) *Primary {
	p := &Primary{engine: e, log: e.Log, worker: worker{kick: make(chan struct{}, 1), quit: make(chan struct{})}}
	p.translator.Fields = e.Config.ReplFieldDeadlines != "no"
	if host, port, ok := splitReplicaOf(e.Config.ReplicaOf); ok {
		p.link = newLink(p, host, port)
		e.Replica.Following.Store(true)
	}
	return p
}

// Start begins to follow the primary that the parameter replicaof names.
func (p *Primary) Start() {
	p.engine.InTurn(func() {
		if p.link != nil {
			p.link.start()
		}
	})
}

// of returns the primary of the engine of a call.
func of(e *engine.Engine) *Primary { return e.Replication.(*Primary) }

// Feed takes the effects of a turn.
func (p *Primary) Feed(e *keyspace.Effects) {
	if e.Replaced() {
		p.restart()
		return
	}
	p.queueLock.Lock()
	p.queue = append(p.queue, queued{e, p.engine.Keys.EffectCount()})
	p.queueBytes += e.Bytes()
	full := p.queueBytes > maxQueue
	p.queueLock.Unlock()
	if full { // clients make changes faster than they are translated: let them wait
		p.translate()
		p.publish()
		return
	}
	p.wake()
}

// maxQueue is how many bytes of effects wait for their translation at most, with large
// values estimated.
const maxQueue = 64 << 20

// wake makes the goroutine run look for work.
func (p *Primary) wake() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// start starts the goroutine, at the first replica.
func (p *Primary) start() {
	p.started.Do(func() {
		p.done.Go(func() { p.engine.Attempt(p.run) })
	})
}

// Close ends the goroutines and waits for them.
func (p *Primary) Close() {
	p.ended.Do(func() { close(p.quit) })
	p.engine.Attempt(func() {
		p.engine.OutOfTurn(func() {
			if p.link != nil {
				p.link.cancel()
			}
		})
	})
	p.done.Wait()
}

// tick is the interval of the work that depends on time.
const tick = 100 * time.Millisecond

// run translates and publishes the stream, and begins transfers.
func (p *Primary) run() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var again <-chan time.Time // while replicas are behind
	interval, behind := windowPoll, int64(0)
	for {
		select {
		case <-p.kick:
			p.translate()
			p.engine.InTurn(p.publish)
		case <-again:
			p.engine.InTurn(p.supply)
		case <-ticker.C:
			p.translate() // before drain, which has the lock
			p.engine.InTurn(p.onTick)
		case <-p.quit:
			return
		}
		again = nil
		before := behind
		if behind = p.behind.Load(); behind == 0 {
			continue
		}
		if interval *= 2; before == 0 || behind < before {
			interval = windowPoll
		}
		interval = min(interval, tick)
		again = time.After(interval)
	}
}

// translate turns the queued effects into bytes of the stream.
func (p *Primary) translate() {
	p.translating.Lock()
	defer p.translating.Unlock()
	p.queueLock.Lock()
	queue := p.queue
	p.queue, p.queueBytes = nil, 0
	p.queueLock.Unlock()
	for _, q := range queue {
		p.translator.Commands(q.effects, func(b []byte) bool {
			if n := len(p.ready); n > 0 && len(p.ready[n-1].bytes)+len(b) <= chunkSize {
				p.ready[n-1].bytes = append(p.ready[n-1].bytes, b...)
			} else {
				p.ready = append(p.ready, chunk{bytes: append(make([]byte, 0, max(len(b), chunkSize/8)), b...)})
			}
			return true
		})
		if n := len(p.ready); n > 0 {
			p.ready[n-1].sequence = q.sequence
		} else {
			p.ready = append(p.ready, chunk{sequence: q.sequence}) // effects that no replica needs
		}
	}
}

// chunkSize is the size in bytes up to which chunks of the stream grow.
const chunkSize = 64 << 10

// publish appends what is translated to the backlog and to the output of the replicas.
func (p *Primary) publish() {
	p.translating.Lock()
	ready := p.ready
	p.ready = nil
	p.translating.Unlock()
	for _, c := range ready {
		p.send(c.bytes)
		if c.sequence != 0 {
			p.published, p.written = c.sequence, p.offset
		}
	}
	if len(p.unlocated) > 0 {
		p.locateWaits()
	}
}

// publishEarlier publishes what earlier turns have changed, so that the offset in a reply includes
// the commands that were replied to before. It translates with the lock held, as
// drain does.
func (p *Primary) publishEarlier() {
	p.translate()
	p.publish()
}

// drain publishes everything that was changed up to now, in the current turn included.
// It translates with the lock held, which takes long only for a large value that was
// changed just now.
func (p *Primary) drain() {
	if e := p.engine.Keys.TakeEffects(); e != nil {
		p.Feed(e)
	}
	p.publishEarlier()
}

// Send sends a command to the replicas.
func (p *Primary) Send(command [][]byte) {
	if p.link != nil {
		return
	}
	p.drain() // a transaction of the stream is whole
	b := appendHeader(nil, '*', len(command))
	for _, a := range command {
		b = appendBulk(b, a)
	}
	p.send(b)
}

// send appends bytes to the stream. The caller does not change b any more.
func (p *Primary) send(b []byte) {
	if len(b) == 0 || p.backlog == nil {
		return
	}
	p.offset += int64(len(b))
	p.backlog.append(b)
	p.supply()
}

// supply passes the stream on to the replicas, and drops what none of them needs any more.
func (p *Primary) supply() {
	b := p.backlog
	if b == nil {
		return
	}
	needed, behind := b.end, int64(0)
	for _, r := range p.replicas {
		if r.receive(b); r.needs() {
			needed = min(needed, r.next)
			if r.state == online {
				behind += b.end - r.next
			}
		}
	}
	b.trim(needed)
	if p.behind.Swap(behind) == 0 && behind > 0 {
		p.wake()
	}
}

// shrink gives the backlog the size that repl-backlog-size has now.
func (p *Primary) shrink() {
	p.backlog.resize(p.engine.Config.ReplBacklogSize)
	p.supply()
}

// onTick does the work that depends on time.
func (p *Primary) onTick() {
	now := time.Now()
	c := &p.engine.Config
	if p.backlog == nil {
		return
	}
	p.considerFailover(now)
	p.shrink()
	if len(p.replicas) == 0 {
		if ttl := time.Duration(c.ReplBacklogTTL) * time.Second; p.link == nil && ttl > 0 && now.Sub(p.deserted) > ttl {
			p.log.Info("replication backlog freed: no replica has connected for repl-backlog-ttl seconds")
			p.drop()
		}
		return
	}
	if p.link == nil && now.Sub(p.pinged) >= time.Duration(c.ReplPingPeriod)*time.Second && !p.ending {
		p.pinged = now
		p.drain() // a transaction of the stream is whole
		p.send([]byte("*1\r\n$4\r\nPING\r\n"))
	}
	timeout := time.Duration(c.ReplTimeout) * time.Second
	for _, r := range p.replicas {
		r.onTick(now, timeout)
	}
	p.considerTransfer(now)
}

// attach makes a session a replica.
func (p *Primary) attach(s *engine.Session) *replica {
	if p.backlog == nil {
		p.engine.Identity.NewReplID(false, 0) // the stream is a new one
		p.open()
	}
	r := linkOf(s)
	r.acknowledged = time.Now()
	s.BecomeReplica()
	p.start()
	p.replicas = append(slices.Clip(p.replicas), r)
	p.wake()
	return r
}

// open makes the stream have the changes from now on.
func (p *Primary) open() {
	p.backlog = newBacklog(p.engine.Config.ReplBacklogSize, p.offset)
	p.feed()
}

// feed begins to list the effects of turns, which continue the stream.
func (p *Primary) feed() {
	p.engine.Keys.Follow(true)
	p.published, p.written = p.engine.Keys.EffectCount(), p.offset
	p.pinged = time.Now()
	p.translating.Lock()
	p.translator.Reset()
	p.translating.Unlock()
	p.start()
}

// restart disconnects the replicas and ends the stream: the data were replaced, and no
// effects lead to them.
func (p *Primary) restart() {
	p.disconnect()
	p.drop()
}

// disconnect closes the connections of the replicas.
func (p *Primary) disconnect() {
	for _, r := range p.replicas {
		r.session.Kill()
	}
}

// drop ends the stream: the backlog is freed, and effects are no longer listed.
func (p *Primary) drop() {
	p.engine.Keys.Follow(false)
	p.queueLock.Lock()
	p.queue, p.queueBytes = nil, 0
	p.queueLock.Unlock()
	p.translating.Lock()
	p.ready = nil
	p.translator.Reset()
	p.translating.Unlock()
	p.backlog = nil
	p.engine.Identity.NewReplID(false, 0)
}

// Replied closes the connection of a replica that has sent a command with a reply: in the
// stream it would be a command, or a part of one. A client that follows sends only
// acknowledgements.
func (p *Primary) Replied(s *engine.Session, cmd *engine.Command, mark int) {
	name := "<unknown>"
	if cmd != nil {
		name = cmd.Name
	}
	p.log.Warn("Replica generated a reply to command '" + name + "', disconnecting it: " + string(s.AppendInfo(nil)))
	if s.Out.IsErrorAt(mark) {
		p.engine.Stats.UnexpectedErrors++
		text, _, _ := bytes.Cut(s.Out.Bytes()[mark+1:], []byte{'\r'})
		p.log.Error("== CRITICAL == This master is sending an error to its replica: '" +
			engine.Clip(bytes.TrimPrefix(text, []byte("ERR ")), 200) + "', which has sent the command '" + name + "'")
	}
	s.Kill()
}

// Left removes the replica of a session that ends.
func (p *Primary) Left(s *engine.Session) {
	p.replicas = slices.DeleteFunc(slices.Clone(p.replicas), func(r *replica) bool {
		if r.session != s {
			return false
		}
		p.log.Info("connection with replica lost", "replica", r.name())
		r.state = gone
		return true
	})
	p.supply()
	if len(p.replicas) == 0 {
		p.deserted = time.Now()
	}
	p.considerCaughtUp()
}

// GoodReplicas returns how many replicas have acknowledged the stream within
// min-replicas-max-lag seconds, or have received all data within them: INFO says that these
// are online, too.
func (p *Primary) GoodReplicas() (n int) {
	lag := time.Duration(p.engine.Config.MinReplicasMaxLag) * time.Second
	for _, r := range p.replicas {
		if (r.state == online || r.state == loading && !r.rdbOnly) && time.Since(r.acknowledged).Truncate(time.Second) <= lag {
			n++
		}
	}
	return n
}
