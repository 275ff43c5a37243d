package replication

import (
	"errors"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/peers/psync"
)

// failover is a switch of roles between the server and one of its replicas. Writes wait
// until a replica has the whole stream; then the server follows that replica, and asks it
// with PSYNC … FAILOVER to become the primary.
type failover struct {
	state    failoverState
	host     string // of the replica; empty: the first that has the whole stream
	port     int64
	deadline time.Time // of waitingForSync; zero for none
	force    bool      // at the deadline, go on in place of giving up
	resume   func()    // the writes
}

// failoverState is how far a failover is.
type failoverState uint8

const (
	noFailover failoverState = iota
	waitingForSync
	handingOver
)

// name returns the state as INFO does.
func (s failoverState) name() string {
	return [...]string{"no-failover", "waiting-for-sync", "failover-in-progress"}[s]
}

func failoverCommand(c *engine.Call) {
	p := of(c.Engine)
	if c.Engine.Cluster != nil {
		c.Reply.Error("ERR FAILOVER not allowed in cluster mode.")
		return
	}
	if c.Len() == 1 && c.Is("ABORT") {
		if p.failover.state == noFailover {
			c.Reply.Error("ERR No failover in progress.")
			return
		}
		p.abortFailover("FAILOVER ABORT")
		c.Reply.OK()
		return
	}
	var f failover
	timeout, targeted := int64(0), false
	for c.More() {
		switch {
		case timeout == 0 && c.Len() >= 2 && c.Is("TIMEOUT"):
			if timeout = c.Int(); c.Err() == "" && timeout <= 0 {
				c.Fail("ERR FAILOVER timeout must be greater than 0")
			}
		case !targeted && c.Len() >= 3 && c.Is("TO"):
			f.host, f.port, targeted = c.String(), c.Int(), true
		case !f.force && c.Is("FORCE"):
			f.force = true
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	if !c.OK() {
		return
	}
	switch target := p.replicaAt(f.host, f.port); {
	case p.failover.state != noFailover:
		c.Reply.Error("ERR FAILOVER already in progress.")
	case p.link != nil:
		c.Reply.Error("ERR FAILOVER is not valid when server is a replica.")
	case len(p.replicas) == 0:
		c.Reply.Error("ERR FAILOVER requires connected replicas.")
	case f.force && (timeout == 0 || !targeted):
		c.Reply.Error("ERR FAILOVER with force option requires both a timeout and target HOST and IP.")
	case targeted && target == nil:
		c.Reply.Error("ERR FAILOVER target HOST and PORT is not a replica.")
	case targeted && target.state != online:
		c.Reply.Error("ERR FAILOVER target replica is not online.")
	default:
		f.state = waitingForSync
		if timeout > 0 {
			f.deadline = time.Now().Add(time.Duration(min(timeout, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond)
		}
		f.resume = c.Engine.PauseWrites()
		p.failover = f
		p.log.Info("failover: writes wait until a replica has all changes", "host", f.host, "port", f.port)
		c.Reply.OK()
	}
}

// replicaAt returns the replica at an address, or nil.
func (p *Primary) replicaAt(host string, port int64) *replica {
	for _, r := range p.replicas {
		if r.port == port && strings.EqualFold(r.host(), host) {
			return r
		}
	}
	return nil
}

// considerFailover hands over to a replica that has the whole stream, or ends the wait for
// one at the deadline.
func (p *Primary) considerFailover(now time.Time) {
	f := &p.failover
	if f.state != waitingForSync {
		return
	}
	if !f.deadline.IsZero() && !now.Before(f.deadline) {
		if f.force {
			p.log.Warn("failover: time out exceeded, failing over.")
			p.handOver(f.host, f.port)
		} else {
			p.abortFailover("no replica had all changes before the timeout")
		}
		return
	}
	p.drain()
	target := p.replicaAt(f.host, f.port)
	for _, r := range p.replicas {
		if r.state == online && r.offset >= p.offset && (f.host == "" || r == target) {
			p.handOver(r.host(), r.port)
			return
		}
	}
}

// handOver follows the replica, which is asked to become the primary. Blocked clients wait on
// until it has answered: if it refuses, they wait as before.
func (p *Primary) handOver(host string, port int64) {
	p.log.Info("failover: following the replica", "replica", net.JoinHostPort(host, strconv.FormatInt(port, 10)))
	p.failover.state = handingOver
	p.engine.Replica.Yielding = true
	p.follow(host, port)
}

// abortFailover ends a failover. The server is a primary again.
func (p *Primary) abortFailover(why string) {
	p.log.Warn("failover aborted", "reason", why)
	if p.failover.state == handingOver {
		p.promote()
	}
	p.endFailover()
}

// endFailover lets the writes go on.
func (p *Primary) endFailover() {
	resume := p.failover.resume
	p.failover = failover{}
	p.engine.Replica.Yielding = false
	resume()
}

// answered ends a failover when the replica has answered the handshake.
func (l *link) answered(err error) {
	var refused *psync.RefusedError
	switch p := l.p; {
	case p.failover.state != handingOver:
	case err == nil:
		p.engine.UnblockAll()
		p.endFailover()
	case errors.As(err, &refused):
		p.log.Warn("Failover target rejected psync request", "error", err)
		p.abortFailover(err.Error())
	}
}

// takeOver makes the server, a replica, the primary, as PSYNC … FAILOVER of its primary
// asks. It returns the error for that one, or "".
func (p *Primary) takeOver(s *engine.Session, id string) (refusal string) {
	switch {
	case p.link == nil:
		return "ERR PSYNC FAILOVER can't be sent to a master."
	case !strings.EqualFold(id, p.engine.Identity.ReplID):
		return "ERR PSYNC FAILOVER replid must match my replid."
	}
	p.log.Info("failover: the primary asks this server to take over", "client", s.Peer.Addr)
	p.promote()
	return ""
}
