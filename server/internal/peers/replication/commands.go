package replication

import (
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
)

// Commands returns the rows of the commands about replicas.
func Commands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "psync", Arity: -3, Flags: "admin noscript no_async_loading no_multi",
			Group: "server", Since: "2.8.0",
			Summary: "Follow this server as a replica, from an offset of its stream on",
			Syntax:  "replicationid offset:integer",
		}, Run: psyncCommand, OfConnection: true},
		{Facts: protocol.Facts{
			Name: "failover", Arity: -1, Flags: "admin noscript stale",
			Group: "server", Since: "6.2.0", Complexity: "O(1)",
			Summary: "Switch roles with a replica, once that has all changes",
			Syntax:  "target:[TO host port:integer [FORCE]] [ABORT] [TIMEOUT milliseconds]",
		}, Run: failoverCommand},
		{Facts: protocol.Facts{
			Name: "replicaof", Arity: 3, Flags: "admin noscript stale no_async_loading",
			Group: "server", Since: "5.0.0", Complexity: "O(1)",
			Summary: "Follow another server as its replica, or NO ONE",
			Syntax:  "args:(host-port:(host port:integer) | no-one:(NO ONE))",
		}, Run: replicaof},
		{Facts: protocol.Facts{
			Name: "slaveof", Arity: 3, Flags: "admin noscript stale no_async_loading",
			Group: "server", Since: "1.0.0", Deprecated: "5.0.0", ReplacedBy: "`REPLICAOF`", Complexity: "O(1)",
			Summary: "Former name of REPLICAOF",
			Syntax:  "args:(host-port:(host port:integer) | no-one:(NO ONE))",
		}, Run: replicaof},
		{Facts: protocol.Facts{
			Name: "replconf", Arity: -1, Flags: "admin noscript loading stale allow_busy",
			Group: "server", Since: "3.0.0", Complexity: "O(1)",
			Summary: "Announce a property of a replica, or acknowledge the stream",
			System:  true,
		}, Run: replconf, OfConnection: true, InStream: true},
		{Facts: protocol.Facts{
			Name: "role", Arity: 1, Flags: "noscript loading stale fast",
			Group: "server", Since: "2.8.12", Categories: "admin dangerous", Complexity: "O(N), N replicas",
			Summary: "Role of the server in replication, its offset and its replicas",
		}, Run: role},
		{Facts: protocol.Facts{
			Name: "sync", Arity: 1, Flags: "admin noscript no_async_loading no_multi",
			Group: "server", Since: "1.0.0",
			Summary: "Follow this server as a replica, from its data as of now on",
		}, Run: syncCommand, OfConnection: true},
		{Facts: protocol.Facts{
			Name: "wait", Arity: 3, Flags: "blocking",
			Group: "generic", Since: "3.0.0", Categories: "connection", Tips: "request_policy:all_shards response_policy:agg_min",
			Complexity: "O(N), N replicas",
			Summary:    "Wait until so many replicas have this client's writes, and reply how many have",
			Syntax:     "numreplicas timeout:integer",
		}, Run: waitCommand},
		{Facts: protocol.Facts{
			Name: "waitaof", Arity: 4, Flags: "blocking",
			Group: "generic", Since: "7.2.0", Categories: "connection", Tips: "request_policy:all_shards response_policy:agg_min",
			Complexity: "O(N), N replicas",
			Summary:    "Wait until this client's writes are on the disk of the server, or of so many replicas, and reply of how many",
			Syntax:     "numlocal:integer numreplicas:integer timeout:integer",
		}, Run: waitaof},
	}
}

const errNoLink = "NOMASTERLINK Can't SYNC while not connected with my master"

const errPending = "ERR SYNC and PSYNC are invalid with pending output"

func psyncCommand(c *engine.Call) {
	id := string(c.Bytes())
	offset, ok := protocol.ParseInt(c.Bytes())
	s := c.Session
	p := of(c.Engine)
	if c.Len() > 0 && c.Is("FAILOVER") {
		if refusal := p.takeOver(s, id); refusal != "" {
			c.Reply.Error(refusal)
			return
		}
	}
	switch {
	case s.Modes.Replica: // the reply is on its way
	case p.link != nil && !c.Engine.Replica.Linked:
		c.Reply.Error(errNoLink)
	case s.Out.Len() > 0:
		c.Reply.Error(errPending)
	case !ok:
		p.log.Warn("Replica " + linkOf(s).name() + " asks for synchronization but with a wrong offset")
		c.Reply.Error(protocol.ErrNotInteger)
	case p.resume(s, id, offset):
		p.partialSyncs++
	default:
		if id != "?" {
			p.partialRefused++
		}
		p.await(s, false)
	}
}

func syncCommand(c *engine.Call) {
	switch s := c.Session; {
	case s.Modes.Replica:
	case c.Engine.Replica.Following.Load() && !c.Engine.Replica.Linked:
		c.Reply.Error(errNoLink)
	case s.Out.Len() > 0:
		c.Reply.Error(errPending)
	default:
		of(c.Engine).await(s, true)
	}
}

// await makes the session a replica that waits for a transfer.
func (p *Primary) await(s *engine.Session, old bool) {
	r := p.attach(s)
	r.state, r.old, r.since = waiting, old, time.Now()
	p.fullSyncs++
	p.log.Info("replica asks for synchronization", "replica", r.name())
	p.considerTransfer(r.since)
}

// resume makes the session a replica that continues after offset-1 bytes of the stream
// with an ID, and reports whether that is possible.
func (p *Primary) resume(s *engine.Session, id string, offset int64) bool {
	if p.backlog == nil {
		return false
	}
	p.drain()
	p.shrink()
	from := offset - 1
	e := p.engine
	same := strings.EqualFold(id, e.Identity.ReplID) || strings.EqualFold(id, e.Identity.ReplID2) && from <= e.Identity.Repl2End
	if !same || from < 0 || !p.backlog.has(from) {
		p.log.Info("partial synchronization not possible", "client", s.Peer.Addr, "id", id, "offset", offset,
			"first", p.backlog.first()+1, "last", p.offset)
		return false
	}
	missed := p.offset - from
	r := p.attach(s)
	r.state, r.offset, r.next = online, from, from
	reply := "+CONTINUE"
	if r.psync2 {
		reply += " " + e.Identity.ReplID
	}
	s.Append([]byte(reply + "\r\n"))
	p.supply()
	p.log.Info("partial synchronization of replica", "replica", r.name(), "offset", offset, "bytes", missed)
	return true
}

// maxAddress is the length up to which Redis accepts an address that a replica
// announces.
const maxAddress = 255

func replconf(c *engine.Call) {
	if c.Len()%2 != 0 {
		c.Reply.Error(protocol.ErrSyntax)
		return
	}
	r, p := linkOf(c.Session), of(c.Engine)
	for c.Len() > 0 {
		option, value := c.Bytes(), c.Bytes()
		number := func() int64 {
			n, ok := protocol.ParseInt(value)
			if !ok {
				c.Fail(protocol.ErrNotInteger)
			}
			return n
		}
		switch {
		case protocol.EqualFold(option, "LISTENING-PORT"):
			if n := number(); c.Err() == "" {
				r.port = n
			}
		case protocol.EqualFold(option, "IP-ADDRESS"):
			if len(value) > maxAddress {
				c.Reply.Error("ERR REPLCONF ip-address provided by replica instance is too long: " + strconv.Itoa(len(value)) + " bytes")
				return
			}
			r.address = string(value)
		case protocol.EqualFold(option, "CAPA"):
			r.eof = r.eof || protocol.EqualFold(value, "EOF")
			r.psync2 = r.psync2 || protocol.EqualFold(value, "PSYNC2")
			r.packed = r.packed || protocol.EqualFold(value, "RDB-CHANNEL-REPL") // since Redis 8.0
			r.zsetd = r.zsetd || protocol.EqualFold(value, "ZSETD")              // other primaries ignore it
		case protocol.EqualFold(option, "ACK"):
			if n, ok := protocol.ParseInt(value); ok && c.Session.Modes.Replica {
				r.acknowledge(n)
				if c.More() && c.Is("FACK") {
					if n, ok := protocol.ParseInt(c.Bytes()); ok {
						r.saved = max(r.saved, n)
					}
				}
				p.serveWaits()
				p.considerCaughtUp()
				p.considerFailover(time.Now())
			}
			return // without a reply
		case protocol.EqualFold(option, "GETACK"):
			return // for replicas
		case protocol.EqualFold(option, "VERSION"):
			r.packed = true // of Valkey, since 8.0
		case protocol.EqualFold(option, "RDB-ONLY"):
			if n := number(); c.Err() == "" {
				r.rdbOnly = n == 1
			}
		case protocol.EqualFold(option, "RDB-FILTER-ONLY"):
			r.functions = false
			for _, word := range strings.Fields(string(value)) {
				if !strings.EqualFold(word, "functions") {
					c.Reply.Error("ERR Unsupported rdb-filter-only option: " + word)
					return
				}
				r.functions = true
			}
			if strings.TrimSpace(string(value)) == "" {
				r.functions = true // nothing but what every file has
			}
		default:
			c.Reply.Error("ERR Unrecognized REPLCONF option: " + engine.Clip(option, 128))
			return
		}
		if !c.OK() {
			return
		}
	}
	c.Reply.OK()
}

func role(c *engine.Call) {
	p := of(c.Engine)
	if p.link != nil {
		p.link.role(c.Reply)
		return
	}
	p.publishEarlier()
	c.Reply.Array(3)
	c.Reply.BulkString("master")
	c.Reply.Int(p.offset)
	var online []*replica
	for _, r := range p.replicas {
		if r.state >= receiving {
			online = append(online, r)
		}
	}
	c.Reply.Array(len(online))
	for _, r := range online {
		c.Reply.Array(3)
		c.Reply.BulkString(r.host())
		c.Reply.BulkInt(r.port)
		c.Reply.BulkInt(r.offset)
	}
}
