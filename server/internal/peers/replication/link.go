package replication

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/peers/psync"
)

// A link makes the server a replica of a primary: it connects, receives all data or the
// rest of the stream, and runs the commands of the stream. A goroutine of its own does
// that until the link is left. The engine's lock guards the fields without a note.
//
// Engine.ReplID and Primary.offset are those of the primary's stream. The offset counts
// the commands that were run, whole transactions only, so it is always where the stream
// can continue.
type link struct {
	p      *Primary
	host   string
	port   int64
	ctx    context.Context
	cancel context.CancelFunc

	state      linkState
	known      bool // the data are those of the stream at the offset
	db         int  // database that the stream has selected there
	session    *engine.Session
	readOffset int64     // bytes of the stream that were received
	pending    []byte    // the stream after the offset: the beginning of a transaction
	downSince  time.Time // zero while connected, and before the first connection
	upSince    time.Time // when the stream began
	attempts   int64     // to connect, since the link was last lost
	tried      int64     // to connect, in total
	total      int64     // bytes of the data; 0 if unknown, -1 before any has come
	skip       bool      // values that cannot be read; the goroutine of the link reads it
	failures   int       // transfers of the data that have failed one after another
	failure    error     // of the last one
	savedStream

	again chan struct{} // capacity 1: connect now

	received atomic.Int64 // of them
	cut      atomic.Bool  // the connection has ended, or a read has failed
	heard    atomic.Int64 // when the primary has last sent something, in milliseconds since 1970
}

// savedStream is how much of the stream is on the disk of the replica: all up to saved. Once
// the checkpoint savingEpoch is there, all up to savingOffset is.
type savedStream struct {
	saved        int64 // -1 before it is known
	savingEpoch  uint64
	savingOffset int64
}

// linkState is how far a link is.
type linkState uint8

const (
	waitingToConnect linkState = iota
	connecting
	shakingHands
	transferring
	connected
)

// role returns the state as ROLE does.
func (s linkState) role() string {
	return [...]string{"connect", "connecting", "handshake", "sync", "connected"}[s]
}

func newLink(p *Primary, host string, port int64) *link {
	ctx, cancel := context.WithCancel(context.Background())
	return &link{p: p, host: host, port: port, ctx: ctx, cancel: cancel, again: make(chan struct{}, 1)}
}

// start starts the goroutine.
func (l *link) start() {
	l.p.done.Go(func() { l.p.engine.Attempt(l.run) })
}

// leave ends the link. Its goroutine ends later, and changes nothing any more.
func (l *link) leave() {
	l.cancel()
	l.drop()
}

// drop ends the session of the stream.
func (l *link) drop() {
	if s := l.session; s != nil {
		l.session = nil
		l.pending = nil
		l.downSince, l.p.linkLost = time.Now(), time.Now()
		l.attempts = 0
		s.Discard()
	}
	if l.state == transferring {
		l.p.engine.FailReplacement()
	}
	l.p.engine.Replica.Linked, l.p.engine.Replica.Replacing = false, false
	l.state = waitingToConnect
}

// errLeft ends the work of a link that was left.
var errLeft = errors.New("the server follows this primary no longer")

// locked runs f with the engine's lock, unless the link was left.
func (l *link) locked(f func()) error {
	err := errLeft
	l.p.engine.InTurn(func() {
		if l.p.link == l && l.ctx.Err() == nil {
			err = nil
			f()
		}
	})
	return err
}

// retryInterval is the time between attempts to connect; cutInterval, after the primary or
// the network has cut the link: the stream may soon be longer than the primary's backlog. A
// transfer costs the primary all its data, so after each that is cut the time grows by
// cutInterval, up to retryInterval, and after each that cannot be read it doubles, up to
// longestInterval.
const (
	retryInterval   = time.Second
	cutInterval     = 20 * time.Millisecond
	longestInterval = time.Minute
)

// pause notes how an attempt to connect has ended, and returns the time until the next one.
func (l *link) pause(err error) time.Duration {
	cut := l.state >= transferring && l.cut.Load()
	if !errors.Is(err, errTransfer) {
		l.failures, l.failure = 0, nil
	} else {
		l.failures++
		l.failure = err
	}
	n := max(l.failures, 1)
	if cut {
		return min(cutInterval*time.Duration(n), retryInterval)
	}
	return min(retryInterval<<min(n-1, 10), longestInterval)
}

// retry ends the time until the next attempt to connect.
func (l *link) retry() {
	select {
	case l.again <- struct{}{}:
	default:
	}
}

// run connects again and again.
func (l *link) run() {
	select {
	case <-l.p.engine.Keeper.Ready():
	case <-l.ctx.Done():
		return
	}
	for l.ctx.Err() == nil {
		err := l.attempt()
		var pause time.Duration
		if l.locked(func() {
			pause = l.pause(err)
			l.drop()
			select {
			case <-l.again: // it was for an earlier attempt
			default:
			}
		}) != nil {
			return
		}
		l.p.log.Warn(failureOf(err), "primary", l.name(), "error", err, "again_in", pause)
		select {
		case <-time.After(pause):
		case <-l.again:
			l.locked(func() { l.failures = 0 }) // a link that was left ends
		case <-l.ctx.Done():
		}
	}
}

// errTransfer is that of all data of the primary.
var errTransfer = errors.New("transfer of the data")

// failureOf is the message of the log about the end of a link, in words of Redis that
// programs look for.
func failureOf(err error) string {
	var refused *psync.RefusedError
	var slow net.Error
	switch {
	case errors.As(err, &refused) && refused.Step == "AUTH":
		return "Unable to AUTH to MASTER"
	case errors.As(err, &slow) && slow.Timeout():
		return "Timeout connecting to the MASTER"
	case errors.Is(err, errTransfer):
		return "Internal error in RDB"
	}
	return "no link to the primary"
}

// attempt connects once, and follows until the connection ends.
func (l *link) attempt() error {
	var o psync.Options
	var secure *config.TLS
	if err := l.locked(func() {
		l.state = connecting
		l.attempts++
		l.tried++
		o = l.options()
		if c := &l.p.engine.Config; c.TLSReplication {
			p := c.TLS
			secure = &p
		}
	}); err != nil {
		return err
	}
	conn, err := l.p.engine.Transports.Dial(l.ctx, "tcp", l.name(), o.Timeout, secure)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, hangUp := context.WithCancel(l.ctx)
	defer hangUp()
	context.AfterFunc(ctx, func() { conn.Close() })
	l.heard.Store(time.Now().UnixMilli())
	l.cut.Store(false)
	if err := l.locked(func() { l.state = shakingHands }); err != nil {
		return err
	}
	stopExpiry := l.every(time.Second, func() error { return l.expire(conn) })
	defer stopExpiry()
	in, err := psync.Handshake(heardConn{conn, l}, o)
	if left := l.locked(func() { l.answered(err) }); err == nil {
		err = left
	}
	if err != nil {
		return err
	}
	if in.Full {
		if err := l.load(in); err != nil {
			return fmt.Errorf("%w: %w", errTransfer, err)
		}
	} else if err := l.locked(func() { l.resume(in) }); err != nil {
		return err
	}
	if err := l.locked(func() { l.connect(conn, hangUp) }); err != nil {
		return err
	}
	if err := l.acknowledge(in); err != nil {
		return err
	}
	stop := l.every(time.Second, func() error { return l.acknowledge(in) })
	defer stop()
	return l.obey(in)
}

// expire ends a read of the connection if the primary has sent nothing for repl-timeout, which
// may have become shorter since the read began.
func (l *link) expire(conn net.Conn) error {
	return l.locked(func() {
		t := time.Duration(l.p.engine.Config.ReplTimeout) * time.Second
		if t > 0 && time.Since(time.UnixMilli(l.heard.Load())) > t {
			conn.SetReadDeadline(time.Unix(1, 0))
		}
	})
}

// heardConn notes when the primary sends something, and that it sends no more.
type heardConn struct {
	net.Conn
	l *link
}

// Read implements net.Conn.
func (c heardConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.l.heard.Store(time.Now().UnixMilli())
	}
	if err != nil {
		c.l.cut.Store(true)
	}
	return n, err
}

// options returns what the handshake needs.
func (l *link) options() psync.Options {
	c := &l.p.engine.Config
	o := psync.Options{
		User: c.PrimaryUser, Password: c.PrimaryPassword,
		Port: c.ReplicaAnnouncePort, Address: c.ReplicaAnnounceIP, Capabilities: []string{"zsetd"},
		Timeout: time.Duration(c.ReplTimeout) * time.Second,
	}
	if o.Port == 0 && c.TLSReplication {
		o.Port = l.p.engine.Transports.TLSServed.Load()
	}
	if o.Port == 0 {
		o.Port = l.p.engine.Transports.TCPPort.Load()
	}
	if o.Port == 0 { // a link of the configuration may come before the listener
		o.Port = c.Port
	}
	if l.known {
		o.ID, o.Offset = l.p.engine.Identity.ReplID, l.p.offset
		o.Failover = l.p.failover.state == handingOver
	}
	return o
}

// every calls f at an interval until it fails or stop is called, which waits for its end.
func (l *link) every(interval time.Duration, f func() error) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		l.p.engine.Attempt(func() {
			ticker := time.NewTicker(interval)
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
					if f() != nil {
						return // the reader finds out why
					}
				case <-quit:
					return
				}
			}
		})
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// acknowledge tells the primary how much of the stream was run, and how much of that is on
// the disk.
func (l *link) acknowledge(in *psync.Link) error {
	offset, saved := int64(0), int64(-1)
	l.p.engine.OutOfTurn(func() {
		l.noteSaved()
		offset = l.p.offset
		if l.p.engine.Logs() {
			saved = l.saved
		}
	})
	return in.Acknowledge(offset, saved)
}

// noteSaved notes how much of the stream is on the disk: the offset of some time ago, once
// the checkpoint of that time is. The lock is held.
func (l *link) noteSaved() {
	k := l.p.engine.Keeper
	if k.Settled() {
		l.savingOffset = l.p.offset
	} else if !k.Saved(l.savingEpoch) {
		return
	}
	l.saved = l.savingOffset
	l.savingEpoch, l.savingOffset = k.Epoch(), l.p.offset
}

// resume continues the stream. If its ID is new, the replicas of this server learn it when
// they return.
func (l *link) resume(in *psync.Link) {
	e := l.p.engine
	l.p.log.Info("Successful partial resynchronization with master", "primary", l.name(), "id", in.ID, "offset", in.Offset)
	if in.ID != e.Identity.ReplID {
		e.Identity.ReplID2, e.Identity.Repl2End = e.Identity.ReplID, l.p.offset
		e.Identity.ReplID = in.ID
		l.p.disconnect()
	}
}

// connect begins to run the stream. hangUp closes the connection, and does not wait for that.
func (l *link) connect(conn net.Conn, hangUp func()) {
	e := l.p.engine
	if l.p.backlog == nil {
		l.p.backlog = newBacklog(e.Config.ReplBacklogSize, l.p.offset)
	}
	if lost := l.p.linkLost; !lost.IsZero() {
		l.p.unlinked += time.Since(lost)
		l.p.linkLost = time.Time{}
	}
	l.state, l.downSince, l.readOffset = connected, time.Time{}, l.p.offset
	l.upSince = time.Now()
	e.Replica.Linked = true
	l.savedStream = savedStream{saved: -1, savingEpoch: e.Keeper.Epoch(), savingOffset: l.p.offset}
	var s *engine.Session
	s = e.Link(engine.Peer{
		Addr: conn.RemoteAddr().String(), LocalAddr: conn.LocalAddr().String(), FD: -1,
		Wake: func() {
			if s.Ending() {
				hangUp()
			}
		},
		HangUp: hangUp,
	}, l.db)
	l.session = s
}

// maxHold is how long commands of the stream run until other clients get their turn, and
// pausedPoll the interval at which a paused server is asked whether it goes on.
const (
	maxHold    = time.Millisecond
	pausedPoll = 10 * time.Millisecond
)

// obey runs the stream.
func (l *link) obey(in *psync.Link) error {
	for {
		b, err := in.Next()
		if err != nil {
			return err
		}
		for i, from := 0, 0; i < len(b.Commands); {
			paused, ack := false, false
			var ended error
			if err := l.locked(func() {
				l.readOffset = in.Passed(len(b.Sizes))
				if paused = l.p.engine.Pauses.Until != 0; paused {
					return
				}
				i, from, ack, ended = l.runSome(b, i, from)
			}); err != nil {
				return err
			}
			if ended != nil {
				return ended
			}
			if ack {
				if err := l.acknowledge(in); err != nil {
					return err
				}
			}
			if paused {
				select {
				case <-time.After(pausedPoll):
				case <-l.ctx.Done():
				}
			}
		}
	}
}

// runSome runs commands of a batch from command i, at byte from, on, for a limited time.
// It returns those of the next command, and whether the primary asks for an
// acknowledgement.
func (l *link) runSome(b *psync.Batch, i, from int) (next, at int, ack bool, err error) {
	e, s := l.p.engine, l.session
	start := time.Now()
	e.Keys.Reveal(true)
	at, whole := from, -1
	for i < len(b.Commands) && s.End == engine.Serving {
		command := b.Commands[i]
		if len(command) > 0 {
			l.runCommand(command)
			ack = ack || psync.AsksToAcknowledge(command)
		}
		at += b.Sizes[i]
		i++
		if !s.Transaction.Multi {
			whole, l.db = at, s.DB.ID()
		}
		if i%16 == 0 && time.Since(start) > maxHold {
			break
		}
	}
	e.Keys.Reveal(false)
	if whole >= 0 {
		l.p.send(append(l.pending, b.Raw[from:whole]...))
		l.pending, from = nil, whole
	}
	l.pending = append(l.pending, b.Raw[from:at]...)
	switch limit := e.StreamQueueLimit(); {
	case s.End != engine.Serving:
		err = errors.New("the link was closed")
	case int64(len(l.pending)) > limit: // also of commands that the session refuses to queue
		err = fmt.Errorf("a transaction of more than %d bytes", limit)
	}
	return i, at, ack, err
}

// runCommand runs a command of the stream, or those that it contains.
func (l *link) runCommand(command [][]byte) {
	if len(command) == 2 && protocol.EqualFold(command[0], "PING") {
		if text, ok := embedded(command[1]); ok {
			inner, err := psync.Commands(text)
			if err != nil {
				l.failed(command, err.Error())
			}
			for _, c := range inner {
				l.obeyCommand(c)
			}
			return
		}
	}
	l.obeyCommand(command)
}

// obeyCommand runs a command.
func (l *link) obeyCommand(command [][]byte) {
	failure := "the command is not one of a stream"
	if len(command) > 0 && l.session.InStream(command) {
		failure = l.session.Obey(command)
	}
	if failure != "" {
		l.failed(command, failure)
	}
}

// failed counts and logs a command that the server cannot obey.
func (l *link) failed(command [][]byte, failure string) {
	name := []byte(nil)
	if len(command) > 0 {
		name = command[0]
	}
	l.p.engine.Stats.UnexpectedErrors++
	l.p.log.Error("== CRITICAL == a command of the primary has failed", "command", engine.Clip(name, 40), "error", failure)
}
