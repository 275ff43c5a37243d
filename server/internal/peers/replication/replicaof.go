package replication

import (
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
)

func replicaof(c *engine.Call) {
	host, port := c.String(), c.Bytes()
	p := of(c.Engine)
	if c.Engine.Cluster != nil {
		c.Reply.Error("ERR REPLICAOF not allowed in cluster mode.")
		return
	}
	if p.failover.state == noFailover && strings.EqualFold(host, "no") && protocol.EqualFold(port, "ONE") {
		p.promote()
		c.Reply.OK()
		return
	}
	n, ok := protocol.ParseInt(port)
	switch {
	case p.failover.state != noFailover:
		c.Reply.Error("ERR REPLICAOF not allowed while failing over.")
	case c.Session.Modes.Replica:
		c.Reply.Error("ERR Command is not valid when client is a replica.")
	case !ok || n < 0 || n > math.MaxUint16:
		c.Reply.Error("ERR Invalid master port")
	case p.link != nil && p.link.port == n && strings.EqualFold(p.link.host, host):
		p.link.retry()
		c.Reply.Status("OK Already connected to specified master")
	default:
		p.follow(host, n)
		c.Reply.OK()
	}
}

// splitReplicaOf returns the host and the port in the parameter replicaof.
func splitReplicaOf(s string) (host string, port int64, ok bool) {
	words := strings.Fields(s)
	if len(words) != 2 {
		return "", 0, false
	}
	port, ok = protocol.ParseInt([]byte(words[1]))
	return words[0], port, ok
}

// follow makes the server a replica of another one. Its replicas stay: they may continue
// with the stream of that one.
func (p *Primary) follow(host string, port int64) {
	e := p.engine
	next := newLink(p, host, port)
	if l := p.link; l != nil {
		next.known, next.db = l.known, l.db
		l.leave()
		next.downSince = l.downSince
	} else if p.backlog != nil {
		p.drain()
		e.Keys.Follow(false)
		next.known, e.Replica.Whole = true, true
	} else {
		e.Replica.Whole = false
	}
	e.Replica.Following.Store(true)
	e.Replica.Linked = false
	e.Keys.Standby(true)
	p.link = next
	if !e.Replica.Yielding {
		e.UnblockAll()
	}
	e.Config.ReplicaOf = host + " " + strconv.FormatInt(port, 10)
	p.log.Info("following a primary", "primary", next.name())
	next.start()
}

// promote makes the server a primary. Its stream continues that of its former primary, up
// to here, so other replicas of that one may continue with it.
func (p *Primary) promote() {
	l := p.link
	if l == nil {
		return
	}
	e := p.engine
	l.leave()
	p.link = nil
	e.Replica.Following.Store(false)
	e.Replica.Linked = false
	e.Keys.Standby(false)
	if e.Keeper.Suspended() { // the data of the primary were never complete
		e.Keeper.Resume()
	}
	e.Config.ReplicaOf = ""
	p.disconnect() // they learn the new ID when they return
	if p.backlog != nil && l.known {
		e.Identity.NewReplID(true, p.offset)
		p.feed()
		p.deserted = time.Now()
	} else {
		p.drop()
	}
	p.log.Info("the server is a primary now", "id", e.Identity.ReplID, "offset", p.offset)
}

// name returns the address of the primary.
func (l *link) name() string { return net.JoinHostPort(l.host, strconv.FormatInt(l.port, 10)) }

// linkState returns the state for clients: a link that was killed is down at once.
func (l *link) linkState() linkState {
	if l.session != nil && l.session.End != engine.Serving {
		return waitingToConnect
	}
	return l.state
}

// role replies to ROLE.
func (l *link) role(r *protocol.Reply) {
	offset := int64(-1)
	if l.session != nil {
		offset = l.p.offset
	}
	r.Array(5)
	r.BulkString("slave")
	r.BulkString(l.host)
	r.Int(l.port)
	r.BulkString(l.linkState().role())
	r.Int(offset)
}

// status returns the state for INFO.
func (l *link) status() *engine.PrimaryStatus {
	s := &engine.PrimaryStatus{
		Host: l.host, Port: l.port, Linked: l.linkState() == connected, Silence: -1, ReadOffset: 1, Offset: 1,
		DownSince: -1, UpSince: int64(time.Since(l.upSince) / time.Second),
		Attempts: l.attempts, TotalAttempts: l.tried,
		Receiving: l.state == transferring, Total: l.total, Received: l.received.Load(),
	}
	if l.known {
		s.ReadOffset, s.Offset = l.p.offset, l.p.offset
	}
	if s.FailedTransfers = l.failures; l.failure != nil {
		s.TransferError = l.failure.Error()
	}
	if at := l.heard.Load(); (l.session != nil || s.Receiving) && at != 0 {
		s.ReadOffset = max(l.readOffset, s.Offset)
		s.Silence = int64(time.Since(time.UnixMilli(at)) / time.Second)
	}
	if !l.downSince.IsZero() {
		s.DownSince = int64(time.Since(l.downSince) / time.Second)
	}
	unlinked := l.p.unlinked
	if lost := l.p.linkLost; !lost.IsZero() {
		unlinked += time.Since(lost)
	}
	s.Down = int64(unlinked / time.Second)
	return s
}
