package engine

import (
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// pubsub is the server's subscriptions, and the message that is being delivered.
//
// A message is encoded once for each protocol version among its receivers and
// appended to their bounded output queues; their transports write it without the
// lock. So a subscriber that does not read delays no other client.
type pubsub struct {
	Table   subscription.Table[*Session]
	encoded [2]protocol.Reply // for RESP2 and RESP3
}

// Subscriptions returns the subscriptions of the session.
func (s *Session) Subscriptions() *subscription.Names { return &s.subscriptions }

// Subscribe subscribes the session to a name, if it is not subscribed already.
func (s *Session) Subscribe(kind subscription.Topic, name string) {
	added, first := s.Engine.PubSub.Table.Add(s, kind, name)
	if added {
		s.Weight.nameBytes += int64(len(name)) + perName
	}
	if kind == subscription.Channels && IsQuery(protocol.BytesOf(name)) {
		s.joinQuery(name)
		return
	}
	if f := s.Engine.Forwarding.forwarder; first && f != nil {
		f.Subscribe(kind, []string{name}, func() {})
	}
}

// Unsubscribe ends the subscription to a name, if there is one. It borrows the name.
func (s *Session) Unsubscribe(kind subscription.Topic, name string) {
	removed, last := s.Engine.PubSub.Table.Remove(s, kind, name)
	if removed {
		s.Weight.nameBytes -= int64(len(name)) + perName
	}
	if kind == subscription.Channels && IsQuery(protocol.BytesOf(name)) {
		s.leaveQuery(name)
		return
	}
	if f := s.Engine.Forwarding.forwarder; last && f != nil {
		f.Unsubscribe(kind, strings.Clone(name))
	}
}

// unsubscribeAll ends all subscriptions of the session without replies.
func (s *Session) unsubscribeAll() {
	for _, kind := range []subscription.Topic{subscription.Channels, subscription.Patterns, subscription.Shards} {
		for name := range s.subscriptions.All(kind) {
			s.Unsubscribe(kind, name)
		}
	}
}

// Publish sends a message to the subscribers of a channel when the command has ended, and
// returns how many deliveries that makes. It borrows its arguments until then.
func (c *Call) Publish(sharded bool, channel, message []byte) int {
	srv := c.Engine
	kind, how := channelMessage, byte(0)
	if sharded {
		kind, how = shardMessage, 1
	}
	n := srv.PubSub.Table.Receivers(sharded, channel)
	if n > 0 {
		srv.Turn.Scope.publish(kind, channel, message)
	}
	srv.Keys.Note(keyspace.ChangeMessage, 0, channel, message, how)
	return n
}

// deliver sends a message to the present subscribers.
func (srv *Engine) deliver(kind messageKind, channel, message string) {
	p := &srv.PubSub.Table
	if kind == shardMessage {
		srv.send(p.Subscribers(subscription.Shards, channel), messageToShard, "", channel, message)
		return
	}
	srv.send(p.Subscribers(subscription.Channels, channel), messageToChannel, "", channel, message)
	if p.Len(subscription.Patterns) == 0 {
		return
	}
	for pattern, to := range p.Matching(channel) {
		srv.send(to, messageToPattern, pattern, channel, message)
	}
}

// The first words of messages.
const (
	messageToChannel = "message"
	messageToPattern = "pmessage"
	messageToShard   = "smessage"
)

// send sends a message to subscribers; pattern is that of a messageToPattern.
func (srv *Engine) send(to []*Session, what, pattern, channel, message string) {
	if len(to) == 0 {
		return
	}
	encoded := &srv.PubSub.encoded
	var late []*Session
	for _, s := range to {
		r := &encoded[s.Out.Version()-2]
		if r.Len() == 0 {
			if what == messageToPattern {
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
		if s.End != Serving {
			continue
		}
		s.message(r.Bytes())
		if what == messageToShard {
			srv.Stats.meterMessage(channel, r.Len())
		}
		if s.exceedsLimit() {
			late = append(late, s)
		}
	}
	for i := range encoded {
		if r := &encoded[i]; r.Cap() > maxKeptMessage {
			r.Swap(nil)
		} else {
			r.Truncate(0)
		}
	}
	for _, s := range late { // leave the list
		s.tooFarBehind()
	}
}

// maxKeptMessage is the largest message buffer that is kept for the next message.
const maxKeptMessage = 64 << 10

// Push appends an out-of-band message to the output queue.
func (s *Session) Push(b []byte) {
	if s.End != Serving {
		return
	}
	if s.backlog() == 0 {
		s.Queue.pushed = 0
	}
	s.Queue.pushed += int64(len(b))
	s.message(b)
	s.checkOutput()
}
