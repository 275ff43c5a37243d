package stream

import (
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
)

// InfoCommands returns the rows of XINFO.
func InfoCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "xinfo", Arity: -2,
			Group: "stream", Since: "5.0.0", Complexity: "That of the subcommand",
			Summary: "State of streams, groups and consumers",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "xinfo|consumers", Arity: 4, Flags: "readonly", Keys: "2 RO access",
				Group: "stream", Since: "5.0.0", Tips: "nondeterministic_output", Complexity: "O(C), C consumers",
				Summary: "Consumers of a group",
				Syntax:  "key group",
				History: []string{"7.2.0 `inactive`; attempts without entries reset `idle`"},
			}, Run: xinfoConsumers},
			{Facts: protocol.Facts{
				Name: "xinfo|groups", Arity: 3, Flags: "readonly", Keys: "2 RO access",
				Group: "stream", Since: "5.0.0", Complexity: "O(G), G groups",
				Summary: "Groups of a stream",
				Syntax:  "key",
				History: []string{"7.0.0 `entries-read`, `lag`"},
			}, Run: xinfoGroups},
			engine.HelpRow(protocol.Facts{Name: "xinfo|help", Group: "stream", Since: "5.0.0"},
				"CONSUMERS <key> <groupname>",
				"    The consumers of a group.",
				"GROUPS <key>",
				"    The groups of a stream.",
				"STREAM <key> [FULL [COUNT <count>]",
				"    The state of a stream, with FULL also entries, groups and consumers."),
			{Facts: protocol.Facts{
				Name: "xinfo|stream", Arity: -3, Flags: "readonly", Keys: "2 RO access",
				Group: "stream", Since: "5.0.0", Complexity: "O(1); with FULL O(M), M entries, groups and consumers returned",
				Summary: "State of a stream; with FULL its entries and groups, too",
				Syntax:  "key full-block:[FULL [COUNT count]]",
				History: []string{
					"6.0.0 `FULL`",
					"7.0.0 `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`; `entries-read` and `lag` of groups",
					"7.2.0 `active-time` of consumers; attempts without entries change `seen-time`",
					"8.6.0 `idmp-duration`, `idmp-maxsize`, `pids-tracked`, `iids-tracked`, `iids-added`, `iids-duplicates`",
				},
			}, Run: xinfoStream},
		}},
	}
}

// streamOfInfo opens the stream of an XINFO command. It is nil if that is not
// possible; then the error has been replied.
func streamOfInfo(c *engine.Call, key []byte) *sequence.Stream {
	s, ok := engine.Read[sequence.Stream](c, key)
	if ok && s == nil {
		c.Reply.Error(engine.ErrNoSuchKey)
	}
	return s
}

func xinfoConsumers(c *engine.Call) {
	key, group := c.Bytes(), c.Bytes()
	s := streamOfInfo(c, key)
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
		named(c, "name").BulkString(consumer.Name())
		named(c, "pending").Int(int64(consumer.Len()))
		named(c, "idle").Int(max(0, c.Now()-consumer.Seen()))
		inactive := int64(-1)
		if at := consumer.Active(); at != sequence.NeverActive {
			inactive = max(0, c.Now()-at)
		}
		named(c, "inactive").Int(inactive)
	}
}

// named replies the name of the next element.
func named(c *engine.Call, name string) *protocol.Reply {
	c.Reply.BulkString(name)
	return c.Reply
}

func xinfoGroups(c *engine.Call) {
	s := streamOfInfo(c, c.Bytes())
	if s == nil {
		return
	}
	c.Reply.Array(len(s.Groups()))
	for _, g := range s.Groups() {
		c.Reply.Map(6)
		named(c, "name").BulkString(g.Name())
		named(c, "consumers").Int(int64(len(g.Consumers())))
		named(c, "pending").Int(int64(g.Len()))
		named(c, "last-delivered-id")
		replyStreamID(c, g.LastID())
		replyProgress(c, s, g)
	}
}

// replyProgress replies the number of entries that a group has read, and its lag.
func replyProgress(c *engine.Call, s *sequence.Stream, g *sequence.Group) {
	named(c, "entries-read")
	if g.Read() == sequence.UnknownRead {
		c.Reply.Null()
	} else {
		c.Reply.Int(g.Read())
	}
	named(c, "lag")
	if lag, known := s.Lag(g, c.Config().Valkey()); known {
		c.Reply.Int(lag)
	} else {
		c.Reply.Null()
	}
}

// xinfoStream is XINFO STREAM key [FULL [COUNT count]].
func xinfoStream(c *engine.Call) {
	s := streamOfInfo(c, c.Bytes()) // Redis checks the key before the options
	if s == nil {
		return
	}
	full, count := c.Len() > 0, int64(10)
	if full {
		if n := c.Len(); n != 1 && n != 3 || !c.Is("FULL") || n == 3 && !c.Is("COUNT") {
			c.UnknownSubcommand()
			return
		}
		if c.Len() > 0 {
			if count = c.Int(); count < 0 {
				count = 10
			}
		}
		if !c.OK() {
			return
		}
	}
	fields := 16
	if full {
		fields--
	}
	if c.Config().Valkey() {
		fields -= 6 // those of producers
	}
	c.Reply.Map(fields)
	blocks, nodes := s.Blocks()
	named(c, "length").Int(int64(s.Len()))
	named(c, "radix-tree-keys").Int(int64(blocks))
	named(c, "radix-tree-nodes").Int(int64(nodes))
	named(c, "last-generated-id")
	replyStreamID(c, s.LastID())
	named(c, "max-deleted-entry-id")
	replyStreamID(c, s.MaxDeletedID())
	named(c, "entries-added").Int(s.Added())
	named(c, "recorded-first-entry-id")
	replyStreamID(c, s.FirstID())
	if !c.Config().Valkey() {
		replyProducers(c, s)
	}
	if full {
		streamInFull(c, s, count)
		return
	}
	named(c, "groups").Int(int64(len(s.Groups())))
	named(c, "first-entry")
	first, ok := s.First()
	replyEntryOrNull(c, first, ok)
	named(c, "last-entry")
	last, ok := s.Last()
	replyEntryOrNull(c, last, ok)
}

// replyProducers replies what the stream keeps of producers.
func replyProducers(c *engine.Call, s *sequence.Stream) {
	limits := s.IdempotenceLimits()
	named(c, "idmp-duration").Int(limits.Seconds)
	named(c, "idmp-maxsize").Int(limits.Most)
	producers, identifiers := s.Tracked(c.Now())
	named(c, "pids-tracked").Int(int64(producers))
	named(c, "iids-tracked").Int(int64(identifiers))
	added, twice := s.Identified()
	named(c, "iids-added").Int(int64(added))
	named(c, "iids-duplicates").Int(int64(twice))
}

func replyEntryOrNull(c *engine.Call, e sequence.StreamEntry, ok bool) {
	if ok {
		replyEntry(c, e)
	} else {
		c.Reply.Null()
	}
}

// streamInFull replies at most count elements of each list; 0 for all.
func streamInFull(c *engine.Call, s *sequence.Stream, count int64) {
	if count == 0 {
		count = math.MaxInt
	}
	named(c, "entries")
	replyEntries(c, s, sequence.StreamID{}, sequence.MaxStreamID(), int(count))
	named(c, "groups").Array(len(s.Groups()))
	for _, g := range s.Groups() {
		c.Reply.Map(7)
		named(c, "name").BulkString(g.Name())
		named(c, "last-delivered-id")
		replyStreamID(c, g.LastID())
		replyProgress(c, s, g)
		named(c, "pel-count").Int(int64(g.Len()))
		n := min(int64(g.Len()), count)
		named(c, "pending").Array(int(n))
		for p := range g.Ascend(sequence.StreamID{}) {
			if n--; n < 0 {
				break
			}
			c.Reply.Array(4)
			replyStreamID(c, p.ID)
			c.Reply.BulkString(g.Owner(p).Name())
			c.Reply.Int(p.Time)
			c.Reply.Int(p.Count)
		}
		named(c, "consumers").Array(len(g.Consumers()))
		for _, consumer := range g.Consumers() {
			consumerInFull(c, g, consumer, count)
		}
	}
}

func consumerInFull(c *engine.Call, g *sequence.Group, consumer *sequence.Consumer, count int64) {
	c.Reply.Map(5)
	named(c, "name").BulkString(consumer.Name())
	named(c, "seen-time").Int(consumer.Seen())
	named(c, "active-time").Int(consumer.Active())
	named(c, "pel-count").Int(int64(consumer.Len()))
	n := min(int64(consumer.Len()), count)
	named(c, "pending").Array(int(n))
	for p := range g.AscendOf(consumer, sequence.StreamID{}) {
		if n--; n < 0 {
			break
		}
		c.Reply.Array(3)
		replyStreamID(c, p.ID)
		c.Reply.Int(p.Time)
		c.Reply.Int(p.Count)
	}
}
