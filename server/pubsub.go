package server

import (
	"github.com/zsetd/zsetd/protocol"
)

// pubsub knows who listens to what.
//
// A message is encoded once for each dialect among its receivers and appended
// to their bounded outboxes; their transports write it when the lock is free.
// So a subscriber that does not read delays nobody.
type pubsub struct {
	channels map[string]map[*Session]struct{}
	patterns map[string]map[*Session]struct{}
	shards   map[string]map[*Session]struct{}
}

func (p *pubsub) init() {
	p.channels = map[string]map[*Session]struct{}{}
	p.patterns = map[string]map[*Session]struct{}{}
	p.shards = map[string]map[*Session]struct{}{}
}

// receivers returns how many deliveries a message on a channel makes.
func (p *pubsub) receivers(kind messageKind, channel []byte) int {
	if kind == shardMessage {
		return len(p.shards[string(channel)])
	}
	n := len(p.channels[string(channel)])
	for pattern, subs := range p.patterns {
		if match(bytesOf(pattern), channel, false) {
			n += len(subs)
		}
	}
	return n
}

// deliver sends a message to all who listen now.
func (srv *Server) deliver(kind messageKind, channel, message string) {
	p := &srv.pubsub
	if kind == shardMessage {
		srv.send(p.shards[channel], "smessage", "", channel, message)
		return
	}
	srv.send(p.channels[channel], "message", "", channel, message)
	for pattern, subs := range p.patterns {
		if match(bytesOf(pattern), bytesOf(channel), false) {
			srv.send(subs, "pmessage", pattern, channel, message)
		}
	}
}

func (srv *Server) send(to map[*Session]struct{}, what, pattern, channel, message string) {
	var encoded [2]protocol.Reply
	for s := range to {
		r := &encoded[s.out.Version()-2]
		if r.Len() == 0 {
			r.SetVersion(s.out.Version())
			if pattern != "" {
				r.Push(4)
				r.BulkString(what)
				r.BulkString(pattern)
			} else {
				r.Push(3)
				r.BulkString(what)
			}
			r.BulkString(channel)
			r.BulkString(message)
		}
		s.push(r.Bytes())
	}
}

// push appends an out-of-band message to the outbox. A client that is further
// behind than its limit allows is closed.
func (s *Session) push(b []byte) {
	if s.killed || s.closing {
		return
	}
	s.out.Raw(b)
	if n := int64(s.out.Len()) + s.unsent.Load(); n > s.srv.config.pubsubOutputLimit {
		s.srv.log.Warn("client is too slow for its messages; connection closed",
			"client", s.addr, "name", s.name, "unsent", n, "limit", s.srv.config.pubsubOutputLimit)
		s.kill()
		return
	}
	s.pending()
}

// subscriptions returns how many channels and patterns the session listens to.
func (s *Session) subscriptions() int {
	return len(s.channels) + len(s.patterns) + len(s.shards)
}

func pubsubCommands() []Command { return nil }

func (srv *Server) unsubscribeAll(s *Session) {}
