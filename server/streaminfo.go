package server

import (
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
)

func streamInfoCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "xinfo", Arity: -2,
			Group: "stream", Since: "5.0.0", Complexity: "Depends on subcommand.",
			Summary: "A container for stream introspection commands",
		}, subcommands: []Command{
			{Facts: protocol.Facts{
				Name: "xinfo|consumers", Arity: 4, Flags: "readonly", Keys: "2 RO access",
				Group: "stream", Since: "5.0.0", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "List the consumers in a consumer group",
				Syntax:  "key groupname",
				History: []string{"7.2.0 Added the `inactive` field, and changed the meaning of `idle`."},
			}, run: xinfoConsumers},
			{Facts: protocol.Facts{
				Name: "xinfo|groups", Arity: 3, Flags: "readonly", Keys: "2 RO access",
				Group: "stream", Since: "5.0.0", Complexity: "O(1)",
				Summary: "List the consumer groups of a stream",
				Syntax:  "key",
				History: []string{"7.0.0 Added the `entries-read` and `lag` fields"},
			}, run: xinfoGroups},
			{Facts: protocol.Facts{
				Name: "xinfo|help", Arity: 2, Flags: "loading stale",
				Group: "stream", Since: "5.0.0", Complexity: "O(1)",
				Summary: "Show helpful text about the different subcommands",
			}, run: xinfoHelp},
			{Facts: protocol.Facts{
				Name: "xinfo|stream", Arity: -3, Flags: "readonly", Keys: "2 RO access",
				Group: "stream", Since: "5.0.0", Complexity: "O(1)",
				Summary: "Get information about a stream",
				Syntax:  "key [FULL full:([COUNT count])]",
				History: []string{
					"6.0.0 Added the `FULL` modifier.",
					"7.0.0 Added the `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, `entries-read` and `lag` fields",
					"7.2.0 Added the `active-time` value, and changed the meaning of `seen-time`.",
				},
			}, run: xinfoStream},
		}},
	}
}

// streamOfInfo opens the stream of an XINFO command. It is nil if that is not
// possible; then the error has been replied.
func (c *Call) streamOfInfo(key []byte) *keyspace.Stream {
	s, ok := read[keyspace.Stream](c, key)
	if ok && s == nil {
		c.Reply.Error(errNoSuchKey)
	}
	return s
}

func xinfoConsumers(c *Call) {
	key, group := c.Bytes(), c.Bytes()
	s := c.streamOfInfo(key)
	if s == nil {
		return
	}
	g := s.Group(group)
	if g == nil {
		c.Reply.Error(noGroup(key, group))
		return
	}
	c.Reply.Array(len(g.Consumers()))
	for _, consumer := range g.Consumers() {
		c.Reply.Map(4)
		c.named("name").BulkString(consumer.Name())
		c.named("pending").Int(int64(consumer.Len()))
		c.named("idle").Int(max(0, c.now()-consumer.Seen()))
		inactive := int64(-1)
		if at := consumer.Active(); at != keyspace.NeverActive {
			inactive = max(0, c.now()-at)
		}
		c.named("inactive").Int(inactive)
	}
}

// named replies the name of the next element.
func (c *Call) named(name string) *protocol.Reply {
	c.Reply.BulkString(name)
	return c.Reply
}

func xinfoGroups(c *Call) {
	s := c.streamOfInfo(c.Bytes())
	if s == nil {
		return
	}
	c.Reply.Array(len(s.Groups()))
	for _, g := range s.Groups() {
		c.Reply.Map(6)
		c.named("name").BulkString(g.Name())
		c.named("consumers").Int(int64(len(g.Consumers())))
		c.named("pending").Int(int64(g.Len()))
		c.named("last-delivered-id")
		c.replyStreamID(g.LastID())
		c.replyProgress(s, g)
	}
}

// replyProgress replies the number of entries that a group has read, and its lag.
func (c *Call) replyProgress(s *keyspace.Stream, g *keyspace.Group) {
	c.named("entries-read")
	if g.Read() == keyspace.UnknownRead {
		c.Reply.Null()
	} else {
		c.Reply.Int(g.Read())
	}
	c.named("lag")
	if lag, known := s.Lag(g); known {
		c.Reply.Int(lag)
	} else {
		c.Reply.Null()
	}
}

func xinfoHelp(c *Call) {
	c.help("CONSUMERS <key> <groupname>",
		"    Show consumers of <groupname>.",
		"GROUPS <key>",
		"    Show the stream consumer groups.",
		"STREAM <key> [FULL [COUNT <count>]",
		"    Show information about the stream.")
}

// xinfoStream is XINFO STREAM key [FULL [COUNT count]].
func xinfoStream(c *Call) {
	s := c.streamOfInfo(c.Bytes()) // Redis checks the key before the options
	if s == nil {
		return
	}
	full, count := c.Len() > 0, int64(10)
	if full {
		if n := c.Len(); n != 1 && n != 3 || !c.Is("FULL") || n == 3 && !c.Is("COUNT") {
			c.unknownSubcommand()
			return
		}
		if c.Len() > 0 {
			if count = c.Int(); count < 0 {
				count = 10
			}
		}
		if !c.ok() {
			return
		}
		c.Reply.Map(9)
	} else {
		c.Reply.Map(10)
	}
	blocks, nodes := s.Blocks()
	c.named("length").Int(int64(s.Len()))
	c.named("radix-tree-keys").Int(int64(blocks))
	c.named("radix-tree-nodes").Int(int64(nodes))
	c.named("last-generated-id")
	c.replyStreamID(s.LastID())
	c.named("max-deleted-entry-id")
	c.replyStreamID(s.MaxDeletedID())
	c.named("entries-added").Int(s.Added())
	c.named("recorded-first-entry-id")
	c.replyStreamID(s.FirstID())
	if full {
		c.streamInFull(s, count)
		return
	}
	c.named("groups").Int(int64(len(s.Groups())))
	c.named("first-entry")
	first, ok := s.First()
	c.replyEntryOrNull(first, ok)
	c.named("last-entry")
	last, ok := s.Last()
	c.replyEntryOrNull(last, ok)
}

func (c *Call) replyEntryOrNull(e keyspace.StreamEntry, ok bool) {
	if ok {
		c.replyEntry(e)
	} else {
		c.Reply.Null()
	}
}

// streamInFull replies at most count elements of each list; 0 for all.
func (c *Call) streamInFull(s *keyspace.Stream, count int64) {
	if count == 0 {
		count = math.MaxInt
	}
	c.named("entries")
	c.replyEntries(s, keyspace.StreamID{}, keyspace.MaxStreamID(), int(count))
	c.named("groups").Array(len(s.Groups()))
	for _, g := range s.Groups() {
		c.Reply.Map(7)
		c.named("name").BulkString(g.Name())
		c.named("last-delivered-id")
		c.replyStreamID(g.LastID())
		c.replyProgress(s, g)
		c.named("pel-count").Int(int64(g.Len()))
		n := min(int64(g.Len()), count)
		c.named("pending").Array(int(n))
		for p := range g.Ascend(keyspace.StreamID{}) {
			if n--; n < 0 {
				break
			}
			c.Reply.Array(4)
			c.replyStreamID(p.ID)
			c.Reply.BulkString(g.Owner(p).Name())
			c.Reply.Int(p.Time)
			c.Reply.Int(p.Count)
		}
		c.named("consumers").Array(len(g.Consumers()))
		for _, consumer := range g.Consumers() {
			c.consumerInFull(g, consumer, count)
		}
	}
}

func (c *Call) consumerInFull(g *keyspace.Group, consumer *keyspace.Consumer, count int64) {
	c.Reply.Map(5)
	c.named("name").BulkString(consumer.Name())
	c.named("seen-time").Int(consumer.Seen())
	c.named("active-time").Int(consumer.Active())
	c.named("pel-count").Int(int64(consumer.Len()))
	n := min(int64(consumer.Len()), count)
	c.named("pending").Array(int(n))
	for p := range g.AscendOf(consumer, keyspace.StreamID{}) {
		if n--; n < 0 {
			break
		}
		c.Reply.Array(3)
		c.replyStreamID(p.ID)
		c.Reply.Int(p.Time)
		c.Reply.Int(p.Count)
	}
}
