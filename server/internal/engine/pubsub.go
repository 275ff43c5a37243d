package engine

import (
	"slices"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/glob"
)

// PubSub is the table of subscriptions: channels and patterns with their
// subscribers.
//
// A message is encoded once for each protocol version among its receivers and
// appended to their bounded output queues; their transports write it without the
// lock. So a subscriber that does not read delays no other client.
//
// The subscribers of a channel are an unordered list, and each session knows its
// position in it. A map instead of the list doubles the time of a delivery up to
// the write to the socket, because its iteration takes as long as all other steps.
type PubSub struct {
	Channels map[string]*subscriberList
	Patterns map[string]*subscriberList
	Shards   map[string]*subscriberList
	encoded  [2]protocol.Reply // the message being delivered
}

// subscriberList is the list of the subscribers of a channel.
type subscriberList struct{ Sessions []*Session }

// positions are the channels of a session, with its position in the subscriber list
// of each.
type positions map[string]int

// subscriptions are those of a session.
type subscriptions struct {
	channels, patterns, shards positions
	listens                    int // their number, of all three kinds
}

func (p *PubSub) init() {
	p.Channels = map[string]*subscriberList{}
	p.Patterns = map[string]*subscriberList{}
	p.Shards = map[string]*subscriberList{}
	p.encoded[1].SetVersion(3)
}

func (a *subscriberList) len() int {
	if a == nil {
		return 0
	}
	return len(a.Sessions)
}

// Receivers returns how many deliveries a message on a channel makes.
func (p *PubSub) Receivers(kind messageKind, channel []byte) int {
	if kind == shardMessage {
		return p.Shards[string(channel)].len()
	}
	n := p.Channels[string(channel)].len()
	for pattern, subs := range p.Patterns {
		if glob.Match(protocol.BytesOf(pattern), channel, false) {
			n += subs.len()
		}
	}
	return n
}

// deliver sends a message to all current subscribers.
func (srv *Engine) deliver(kind messageKind, channel, message string) {
	p := &srv.PubSub
	if kind == shardMessage {
		srv.send(p.Shards[channel], "smessage", "", channel, message)
		return
	}
	srv.send(p.Channels[channel], "message", "", channel, message)
	for pattern, subs := range p.Patterns {
		if glob.Match(protocol.BytesOf(pattern), protocol.BytesOf(channel), false) {
			srv.send(subs, "pmessage", pattern, channel, message)
		}
	}
}

func (srv *Engine) send(to *subscriberList, what, pattern, channel, message string) {
	if to == nil {
		return
	}
	encoded := &srv.PubSub.encoded
	var late []*Session
	for _, s := range to.Sessions {
		r := &encoded[s.Out.Version()-2]
		if r.Len() == 0 {
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
		if s.End != Serving {
			continue
		}
		s.post(r.Bytes())
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
		s.pushed = 0
	}
	s.pushed += int64(len(b))
	s.post(b)
	s.checkOutput()
}

// Subscriptions returns the number of channels and patterns of the session.
func (s *Session) Subscriptions() int {
	return s.listens
}

// PubsubCommands returns the rows of the publish/subscribe commands.
func PubsubCommands() []Command {
	return []Command{
		psubscribeRow(),
		publishRow(),
		{Facts: protocol.Facts{
			Name: "pubsub", Arity: -2,
			Group: "pubsub", Since: "2.8.0", Complexity: "That of the subcommand",
			Summary: "State of channels and subscriptions",
		}, Subcommands: []Command{
			pubsubChannelsRow(),
			pubsubHelpRow(),
			pubsubNumpatRow(),
			pubsubNumsubRow(),
			pubsubShardchannelsRow(),
			pubsubShardnumsubRow(),
		}},
		punsubscribeRow(),
		spublishRow(),
		ssubscribeRow(),
		subscribeRow(),
		sunsubscribeRow(),
		unsubscribeRow(),
	}
}

// topic is one of the three kinds of subscription.
type topic struct {
	kind    Topic
	on, Off string // the words of the replies
	all     func(*PubSub) map[string]*subscriberList
	mine    func(*Session) *positions
	Count   func(*Session) int // in the replies
}

func channelTopic() topic {
	return topic{Channels, "subscribe", "unsubscribe",
		func(p *PubSub) map[string]*subscriberList { return p.Channels },
		func(s *Session) *positions { return &s.channels },
		func(s *Session) int { return len(s.channels) + len(s.patterns) }}
}

func patternTopic() topic {
	return topic{Patterns, "psubscribe", "punsubscribe",
		func(p *PubSub) map[string]*subscriberList { return p.Patterns },
		func(s *Session) *positions { return &s.patterns },
		func(s *Session) int { return len(s.channels) + len(s.patterns) }}
}

// ShardTopic returns the topic of sharded channels.
func ShardTopic() topic {
	return topic{Shards, "ssubscribe", "sunsubscribe",
		func(p *PubSub) map[string]*subscriberList { return p.Shards },
		func(s *Session) *positions { return &s.shards },
		func(s *Session) int { return len(s.shards) }}
}

// join subscribes the session to every name in the arguments, with one reply for
// each.
func (t topic) join(c *Call) {
	s := c.Session
	if s.NoBlock {
		c.Reply.Error("ERR " + c.Command.Name + " isn't allowed for a DENY BLOCKING client")
		return
	}
	for c.More() {
		name := c.String()
		t.add(s, name)
		c.Reply.Push(3)
		c.Reply.BulkString(t.on)
		c.Reply.BulkString(name)
		c.Reply.Int(int64(t.Count(s)))
	}
}

// add subscribes the session to a name, if it is not subscribed already.
func (t topic) add(s *Session, name string) {
	mine, all := t.mine(s), t.all(&s.Engine.PubSub)
	if _, there := (*mine)[name]; there {
		return
	}
	if *mine == nil {
		*mine = positions{}
	}
	a := all[name]
	if a == nil {
		a = &subscriberList{}
		all[name] = a
		if f := s.Engine.forwarder; f != nil {
			f.Subscribe(t.kind, []string{name}, func() {})
		}
	}
	(*mine)[name] = len(a.Sessions)
	a.Sessions = append(a.Sessions, s)
	s.listens++
	s.nameBytes += int64(len(name)) + perName
}

// leave unsubscribes the session from every name in the arguments, or from all.
func (t topic) leave(c *Call) {
	s := c.Session
	mine := *t.mine(s)
	reply := func() {
		c.Reply.Int(int64(t.Count(s)))
	}
	if c.Len() == 0 {
		if len(mine) == 0 {
			c.Reply.Push(3)
			c.Reply.BulkString(t.Off)
			c.Reply.Null()
			reply()
			return
		}
		for _, name := range SortedNames(mine) {
			t.Drop(s, name)
			c.Reply.Push(3)
			c.Reply.BulkString(t.Off)
			c.Reply.BulkString(name)
			reply()
		}
		return
	}
	for c.More() {
		name := c.Bytes()
		if _, there := mine[string(name)]; there {
			t.Drop(s, string(name))
		}
		c.Reply.Push(3)
		c.Reply.BulkString(t.Off)
		c.Reply.Bulk(name)
		reply()
	}
}

func (t topic) Drop(s *Session, name string) {
	mine, all := *t.mine(s), t.all(&s.Engine.PubSub)
	place, a := mine[name], all[name]
	delete(mine, name)
	s.listens--
	s.nameBytes -= int64(len(name)) + perName
	last := len(a.Sessions) - 1
	if place < last { // the last one takes its position
		a.Sessions[place] = a.Sessions[last]
		(*t.mine(a.Sessions[place]))[name] = place
	}
	a.Sessions[last] = nil
	a.Sessions = a.Sessions[:last]
	if last == 0 {
		delete(all, name)
		if f := s.Engine.forwarder; f != nil {
			f.Unsubscribe(t.kind, name)
		}
	}
}

// unsubscribeAll ends all subscriptions of a session without replies.
func (srv *Engine) unsubscribeAll(s *Session) {
	for _, t := range []topic{channelTopic(), patternTopic(), ShardTopic()} {
		for name := range *t.mine(s) {
			t.Drop(s, name)
		}
	}
}

// SortedNames returns the names of subscriptions in order.
func SortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func subscribeRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "subscribe", Arity: -2, Channels: protocol.EveryChannel, Flags: "pubsub noscript loading stale",
		Group: "pubsub", Since: "2.0.0", Complexity: "O(N), N channels given",
		Summary: "Receive the messages of channels",
		Syntax:  "channel [channel ...]",
	}, Run: subscribe, OfConnection: true, WhileSubscribed: true}
}

func subscribe(c *Call) { channelTopic().join(c) }
func psubscribeRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "psubscribe", Arity: -2, Channels: protocol.EveryPattern, Flags: "pubsub noscript loading stale",
		Group: "pubsub", Since: "2.0.0",
		Complexity: "O(N), N patterns given",
		Summary:    "Receive the messages of all channels that match patterns",
		Syntax:     "pattern:(pattern)...",
	}, Run: psubscribe, OfConnection: true, WhileSubscribed: true}
}

func psubscribe(c *Call) { patternTopic().join(c) }
func ssubscribeRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "ssubscribe", Arity: -2, Channels: protocol.EveryChannel, Flags: "pubsub noscript loading stale", Keys: "1..-1 not_key",
		Group: "pubsub", Since: "7.0.0", Complexity: "O(N), N shard channels given",
		Summary: "Receive the messages of shard channels",
		Syntax:  "shardchannel [shardchannel ...]",
	}, Run: ssubscribe, OfConnection: true, WhileSubscribed: true}
}

func ssubscribe(c *Call) { ShardTopic().join(c) }
func unsubscribeRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "unsubscribe", Arity: -1, Flags: "pubsub noscript loading stale",
		Group: "pubsub", Since: "2.0.0",
		Complexity: "O(N), N channels given or subscribed to",
		Summary:    "End the subscriptions to channels, without arguments to all of them",
		Syntax:     "[channel [channel ...]]",
	}, Run: unsubscribe, OfConnection: true, WhileSubscribed: true}
}

func unsubscribe(c *Call) { channelTopic().leave(c) }
func punsubscribeRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "punsubscribe", Arity: -1, Flags: "pubsub noscript loading stale",
		Group: "pubsub", Since: "2.0.0",
		Complexity: "O(N), N patterns given or subscribed to",
		Summary:    "End the subscriptions to patterns, without arguments to all of them",
		Syntax:     "[pattern [pattern ...]]",
	}, Run: punsubscribe, OfConnection: true, WhileSubscribed: true}
}

func punsubscribe(c *Call) { patternTopic().leave(c) }
func sunsubscribeRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "sunsubscribe", Arity: -1, Flags: "pubsub noscript loading stale", Keys: "1..-1 not_key",
		Group: "pubsub", Since: "7.0.0",
		Complexity: "O(N), N shard channels given or subscribed to",
		Summary:    "End the subscriptions to shard channels, without arguments to all of them",
		Syntax:     "[shardchannel [shardchannel ...]]",
	}, Run: sunsubscribe, OfConnection: true, WhileSubscribed: true}
}

func sunsubscribe(c *Call) { ShardTopic().leave(c) }

func publishRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "publish", Arity: 3, Channels: protocol.FirstChannel, Flags: "pubsub loading stale fast may_replicate",
		Group: "pubsub", Since: "2.0.0",
		Complexity: "O(S + P), S subscribers, P patterns that clients subscribe to",
		Summary:    "Send a message to the subscribers of a channel",
		Syntax:     "channel message",
	}, Run: publish, Importable: true, Batching: BatchAlways}
}

func publish(c *Call) { c.publish(ChannelMessage) }
func spublishRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "spublish", Arity: 3, Channels: protocol.FirstChannel, Flags: "pubsub loading stale fast may_replicate", Keys: "1 not_key",
		Group: "pubsub", Since: "7.0.0",
		Complexity: "O(S), S subscribers",
		Summary:    "Send a message to the subscribers of a shard channel",
		Syntax:     "shardchannel message",
	}, Run: spublish, Importable: true}
}

func spublish(c *Call) { c.publish(shardMessage) }

func (c *Call) publish(kind messageKind) {
	channel, message := c.Bytes(), c.Bytes()
	n := c.Engine.PubSub.Receivers(kind, channel)
	if n > 0 {
		c.Engine.Scope.publish(kind, channel, message)
	}
	c.Engine.Keys.Message(kind == shardMessage, channel, message)
	c.Reply.Int(int64(n))
}

func pubsubChannelsRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "pubsub|channels", Arity: -2, Flags: "pubsub loading stale",
		Group: "pubsub", Since: "2.8.0",
		Complexity: "O(N log N), N channels with subscribers",
		Summary:    "Channels with subscribers, all or those that match a pattern",
		Syntax:     "[pattern]",
	}, Run: pubsubChannels}
}

func pubsubChannels(c *Call) { c.listTopics(c.Engine.PubSub.Channels) }
func pubsubShardchannelsRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "pubsub|shardchannels", Arity: -2, Flags: "pubsub loading stale",
		Group: "pubsub", Since: "7.0.0",
		Complexity: "O(N log N), N shard channels with subscribers",
		Summary:    "Shard channels with subscribers, all or those that match a pattern",
		Syntax:     "[pattern]",
	}, Run: pubsubShardchannels}
}

func pubsubShardchannels(c *Call) { c.listTopics(c.Engine.PubSub.Shards) }

func (c *Call) listTopics(all map[string]*subscriberList) {
	if c.Len() > 1 {
		c.UnknownSubcommand()
		return
	}
	names := SortedNames(all)
	if c.Len() == 1 {
		pattern := glob.Compile(c.Bytes(), false)
		names = slices.DeleteFunc(names, func(name string) bool { return !pattern.Match(protocol.BytesOf(name)) })
	}
	c.Reply.Array(len(names))
	for _, name := range names {
		c.Reply.BulkString(name)
	}
}

func pubsubNumsubRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "pubsub|numsub", Arity: -2, Flags: "pubsub loading stale",
		Group: "pubsub", Since: "2.8.0",
		Complexity: "O(N), N channels given",
		Summary:    "Number of subscribers of each of the channels",
		Syntax:     "[channel [channel ...]]",
	}, Run: pubsubNumsub}
}

func pubsubNumsub(c *Call) { c.countTopics(c.Engine.PubSub.Channels) }
func pubsubShardnumsubRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "pubsub|shardnumsub", Arity: -2, Flags: "pubsub loading stale",
		Group: "pubsub", Since: "7.0.0",
		Complexity: "O(N), N shard channels given",
		Summary:    "Number of subscribers of each of the shard channels",
		Syntax:     "[shardchannel [shardchannel ...]]",
	}, Run: pubsubShardnumsub}
}

func pubsubShardnumsub(c *Call) { c.countTopics(c.Engine.PubSub.Shards) }

func (c *Call) countTopics(all map[string]*subscriberList) {
	c.Reply.Array(2 * c.Len())
	for c.More() {
		name := c.Bytes()
		c.Reply.Bulk(name)
		c.Reply.Int(int64(all[string(name)].len()))
	}
}

func pubsubNumpatRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "pubsub|numpat", Arity: 2, Flags: "pubsub loading stale",
		Group: "pubsub", Since: "2.8.0", Complexity: "O(1)",
		Summary: "Number of different patterns that clients subscribe to",
	}, Run: pubsubNumpat}
}

func pubsubNumpat(c *Call) { c.Reply.Int(int64(len(c.Engine.PubSub.Patterns))) }

func pubsubHelpRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "pubsub|help", Arity: 2, Flags: "loading stale",
		Group: "pubsub", Since: "6.2.0", Complexity: "O(1)",
		Summary: "List the subcommands",
	}, Run: pubsubHelp}
}

func pubsubHelp(c *Call) {
	c.Help("CHANNELS [<pattern>]",
		"    The channels with subscribers, or those that match <pattern>.",
		"NUMPAT",
		"    How many different patterns clients subscribe to.",
		"NUMSUB [<channel> ...]",
		"    How many clients subscribe to each channel, patterns not counted.",
		"SHARDCHANNELS [<pattern>]",
		"    The shard channels with subscribers, or those that match <pattern>.",
		"SHARDNUMSUB [<shardchannel> ...]",
		"    How many clients subscribe to each shard channel.")
}
