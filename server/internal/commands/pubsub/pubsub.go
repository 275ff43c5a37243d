package pubsub

import (
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/glob"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
)

// Commands returns the rows of the publish/subscribe commands.
func Commands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "psubscribe", Arity: -2, Channels: protocol.EveryPattern, Flags: "denyoom pubsub noscript loading stale",
			Group: "pubsub", Since: "2.0.0",
			Complexity: "O(N), N patterns given",
			Summary:    "Receive the messages of all channels that match patterns",
			Syntax:     "pattern [pattern ...]",
		}, Run: psubscribe, OfConnection: true, WhileSubscribed: true},
		{Facts: protocol.Facts{
			Name: "publish", Arity: 3, Channels: protocol.FirstChannel, Flags: "pubsub loading stale fast may_replicate",
			Group: "pubsub", Since: "2.0.0",
			Complexity: "O(S + P), S subscribers, P patterns that clients subscribe to",
			Summary:    "Send a message to the subscribers of a channel",
			Syntax:     "channel message",
		}, Run: publish, Importable: true, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "pubsub", Arity: -2,
			Group: "pubsub", Since: "2.8.0", Complexity: "That of the subcommand",
			Summary: "State of channels and subscriptions",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "pubsub|channels", Arity: -2, Flags: "pubsub loading stale",
				Group: "pubsub", Since: "2.8.0",
				Complexity: "O(N log N), N channels with subscribers",
				Summary:    "Channels with subscribers, all or those that match a pattern",
				Syntax:     "[pattern]",
			}, Run: pubsubChannels},
			engine.HelpRow(protocol.Facts{Name: "pubsub|help", Group: "pubsub", Since: "6.2.0"},
				"CHANNELS [<pattern>]",
				"    The channels with subscribers, or those that match <pattern>.",
				"NUMPAT",
				"    How many different patterns clients subscribe to.",
				"NUMSUB [<channel> ...]",
				"    How many clients subscribe to each channel, patterns not counted.",
				"SHARDCHANNELS [<pattern>]",
				"    The shard channels with subscribers, or those that match <pattern>.",
				"SHARDNUMSUB [<shardchannel> ...]",
				"    How many clients subscribe to each shard channel."),
			{Facts: protocol.Facts{
				Name: "pubsub|numpat", Arity: 2, Flags: "pubsub loading stale",
				Group: "pubsub", Since: "2.8.0", Complexity: "O(1)",
				Summary: "Number of different patterns that clients subscribe to",
			}, Run: pubsubNumpat},
			{Facts: protocol.Facts{
				Name: "pubsub|numsub", Arity: -2, Flags: "pubsub loading stale",
				Group: "pubsub", Since: "2.8.0",
				Complexity: "O(N), N channels given",
				Summary:    "Number of subscribers of each of the channels",
				Syntax:     "[channel [channel ...]]",
			}, Run: pubsubNumsub},
			{Facts: protocol.Facts{
				Name: "pubsub|shardchannels", Arity: -2, Flags: "pubsub loading stale",
				Group: "pubsub", Since: "7.0.0",
				Complexity: "O(N log N), N shard channels with subscribers",
				Summary:    "Shard channels with subscribers, all or those that match a pattern",
				Syntax:     "[pattern]",
			}, Run: pubsubShardchannels},
			{Facts: protocol.Facts{
				Name: "pubsub|shardnumsub", Arity: -2, Flags: "pubsub loading stale",
				Group: "pubsub", Since: "7.0.0",
				Complexity: "O(N), N shard channels given",
				Summary:    "Number of subscribers of each of the shard channels",
				Syntax:     "[shardchannel [shardchannel ...]]",
			}, Run: pubsubShardnumsub},
		}},
		{Facts: protocol.Facts{
			Name: "punsubscribe", Arity: -1, Flags: "pubsub noscript loading stale",
			Group: "pubsub", Since: "2.0.0",
			Complexity: "O(N), N patterns given or subscribed to",
			Summary:    "End the subscriptions to patterns, without arguments to all of them",
			Syntax:     "[pattern [pattern ...]]",
		}, Run: punsubscribe, OfConnection: true, WhileSubscribed: true},
		{Facts: protocol.Facts{
			Name: "spublish", Arity: 3, Channels: protocol.FirstChannel, Flags: "pubsub loading stale fast may_replicate", Keys: "1 not_key",
			Group: "pubsub", Since: "7.0.0",
			Complexity: "O(S), S subscribers",
			Summary:    "Send a message to the subscribers of a shard channel",
			Syntax:     "shardchannel message",
		}, Run: spublish, Importable: true},
		{Facts: protocol.Facts{
			Name: "ssubscribe", Arity: -2, Channels: protocol.EveryChannel, Flags: "denyoom pubsub noscript loading stale", Keys: "1..-1 not_key",
			Group: "pubsub", Since: "7.0.0", Complexity: "O(N), N shard channels given",
			Summary: "Receive the messages of shard channels",
			Syntax:  "shardchannel [shardchannel ...]",
		}, Run: ssubscribe, OfConnection: true, WhileSubscribed: true},
		{Facts: protocol.Facts{
			Name: "subscribe", Arity: -2, Channels: protocol.EveryChannel, Flags: "denyoom pubsub noscript loading stale",
			Group: "pubsub", Since: "2.0.0", Complexity: "O(N), N channels given",
			Summary: "Receive the messages of channels",
			Syntax:  "channel [channel ...]",
		}, Run: subscribe, OfConnection: true, WhileSubscribed: true},
		{Facts: protocol.Facts{
			Name: "sunsubscribe", Arity: -1, Flags: "pubsub noscript loading stale", Keys: "1..-1 not_key",
			Group: "pubsub", Since: "7.0.0",
			Complexity: "O(N), N shard channels given or subscribed to",
			Summary:    "End the subscriptions to shard channels, without arguments to all of them",
			Syntax:     "[shardchannel [shardchannel ...]]",
		}, Run: sunsubscribe, OfConnection: true, WhileSubscribed: true},
		{Facts: protocol.Facts{
			Name: "unsubscribe", Arity: -1, Flags: "pubsub noscript loading stale",
			Group: "pubsub", Since: "2.0.0",
			Complexity: "O(N), N channels given or subscribed to",
			Summary:    "End the subscriptions to channels, without arguments to all of them",
			Syntax:     "[channel [channel ...]]",
		}, Run: unsubscribe, OfConnection: true, WhileSubscribed: true},
	}
}

// topic is a kind of subscription with the words of its replies.
type topic struct {
	kind    subscription.Topic
	on, off string
}

func channels() topic { return topic{subscription.Channels, "subscribe", "unsubscribe"} }
func patterns() topic { return topic{subscription.Patterns, "psubscribe", "punsubscribe"} }
func shards() topic   { return topic{subscription.Shards, "ssubscribe", "sunsubscribe"} }

// count returns the number of subscriptions in replies: channels and patterns count
// together.
func (t topic) count(s *engine.Session) int64 {
	n := s.Subscriptions()
	if t.kind == subscription.Shards {
		return int64(n.Count(subscription.Shards))
	}
	return int64(n.Count(subscription.Channels) + n.Count(subscription.Patterns))
}

// join subscribes the session to every name in the arguments, with one reply for
// each. As in Redis, a transaction cannot subscribe to shard channels.
func (t topic) join(c *engine.Call) {
	if c.Session.Modes.NoBlock || c.Nested && t.kind == subscription.Shards {
		c.Reply.Error("ERR " + strings.ToUpper(c.Command.Name) + " isn't allowed for a DENY BLOCKING client")
		return
	}
	names := make([]string, 0, c.Len())
	for c.More() {
		names = append(names, c.String())
	}
	if refusal := c.Session.RefusesQueries(t.kind, names); refusal != "" {
		c.Reply.Error(refusal)
		return
	}
	for _, name := range names {
		c.Session.Subscribe(t.kind, name)
		c.Reply.Push(3)
		c.Reply.BulkString(t.on)
		c.Reply.BulkString(name)
		c.Reply.Int(t.count(c.Session))
	}
}

// leave unsubscribes the session from every name in the arguments, or from all.
func (t topic) leave(c *engine.Call) {
	s := c.Session
	switch {
	case c.Len() > 0:
		for c.More() {
			name := c.Bytes()
			s.Unsubscribe(t.kind, protocol.View(name))
			t.replyLeft(c, name)
		}
	case s.Subscriptions().Count(t.kind) == 0:
		c.Reply.Push(3)
		c.Reply.BulkString(t.off)
		c.Reply.Null()
		c.Reply.Int(t.count(s))
	default:
		for _, name := range slices.Sorted(s.Subscriptions().All(t.kind)) {
			s.Unsubscribe(t.kind, name)
			t.replyLeft(c, protocol.BytesOf(name))
		}
	}
}

// replyLeft replies that the session is no longer subscribed to a name.
func (t topic) replyLeft(c *engine.Call, name []byte) {
	c.Reply.Push(3)
	c.Reply.BulkString(t.off)
	c.Reply.Bulk(name)
	c.Reply.Int(t.count(c.Session))
}

func subscribe(c *engine.Call) { channels().join(c) }

func psubscribe(c *engine.Call) { patterns().join(c) }

func ssubscribe(c *engine.Call) { shards().join(c) }

func unsubscribe(c *engine.Call) { channels().leave(c) }

func punsubscribe(c *engine.Call) { patterns().leave(c) }

func sunsubscribe(c *engine.Call) { shards().leave(c) }

func publish(c *engine.Call) { send(c, false) }

func spublish(c *engine.Call) { send(c, true) }

// send sends the message of a call.
func send(c *engine.Call, sharded bool) {
	channel, message := c.Bytes(), c.Bytes()
	if engine.IsQuery(channel) {
		if c.Session.Modes.Primary { // its clients are not those of this server
			c.Reply.Int(0)
		} else {
			c.Reply.Error(engine.ErrQueryPublish)
		}
		return
	}
	c.Reply.Int(int64(c.Publish(sharded, channel, message)))
}

func pubsubChannels(c *engine.Call) { list(c, subscription.Channels) }

func pubsubShardchannels(c *engine.Call) { list(c, subscription.Shards) }

// list replies the names of a kind with subscribers.
func list(c *engine.Call, kind subscription.Topic) {
	if c.Len() > 1 {
		c.UnknownSubcommand()
		return
	}
	names := c.Engine.PubSub.Table.Names(kind)
	if c.Len() == 1 {
		pattern := glob.Compile(c.Bytes(), false)
		names = slices.DeleteFunc(names, func(name string) bool { return !pattern.Match(protocol.BytesOf(name)) })
	}
	c.Reply.Array(len(names))
	for _, name := range names {
		c.Reply.BulkString(name)
	}
}

func pubsubNumsub(c *engine.Call) { count(c, subscription.Channels) }

func pubsubShardnumsub(c *engine.Call) { count(c, subscription.Shards) }

// count replies the numbers of the subscribers of names.
func count(c *engine.Call, kind subscription.Topic) {
	c.Reply.Array(2 * c.Len())
	for c.More() {
		name := c.Bytes()
		c.Reply.Bulk(name)
		c.Reply.Int(int64(len(c.Engine.PubSub.Table.Subscribers(kind, protocol.View(name)))))
	}
}

func pubsubNumpat(c *engine.Call) {
	c.Reply.Int(int64(c.Engine.PubSub.Table.Len(subscription.Patterns)))
}
