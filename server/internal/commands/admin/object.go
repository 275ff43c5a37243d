package admin

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// ObjectCommands returns the rows of the OBJECT command.
func ObjectCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "object", Arity: -2,
			Group: "generic", Since: "2.2.3", Complexity: "That of the subcommand",
			Summary: "How the server keeps the value of a key",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "object|encoding", Arity: 3, Flags: "readonly", Keys: "2 RO",
				Group: "generic", Since: "2.2.3", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "Encoding of a value, by Redis's names",
				Syntax:  "key",
			}, Run: objectEncoding},
			{Facts: protocol.Facts{
				Name: "object|freq", Arity: 3, Flags: "readonly", Keys: "2 RO",
				Group: "generic", Since: "4.0.0", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "Access counter of a key, kept with an LFU policy",
				Syntax:  "key",
			}, Run: objectFreq},
			engine.HelpRow(protocol.Facts{Name: "object|help", Group: "generic", Since: "6.2.0"},
				"ENCODING <key>",
				"    The encoding of the value, by Redis's names.",
				"FREQ <key>",
				"    The access counter of the key, which grows with the logarithm of the accesses.",
				"IDLETIME <key>",
				"    The seconds since the last access to the key.",
				"REFCOUNT <key>",
				"    The number of references to the value."),
			{Facts: protocol.Facts{
				Name: "object|idletime", Arity: 3, Flags: "readonly", Keys: "2 RO",
				Group: "generic", Since: "2.2.3", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "Seconds since the last access to a key",
				Syntax:  "key",
			}, Run: objectIdletime},
			{Facts: protocol.Facts{
				Name: "object|refcount", Arity: 3, Flags: "readonly", Keys: "2 RO",
				Group: "generic", Since: "2.2.3", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "Number of references to a value",
				Syntax:  "key",
			}, Run: objectRefcount},
		}},
	}
}

// object returns the entry of the key of an OBJECT command. It counts neither as a
// use of the key nor as a miss. If the key does not exist, it replies null and
// returns nil.
func object(c *engine.Call) *keyspace.Entry {
	e := c.DB.Peek(c.Bytes())
	if e == nil {
		c.Reply.Null()
	}
	return e
}

func objectEncoding(c *engine.Call) {
	if e := object(c); e != nil {
		c.Reply.BulkString(keyspace.EncodingOf(e.Value(), c.Limits()))
	}
}

func objectFreq(c *engine.Call) {
	e := object(c)
	switch {
	case e == nil:
	case c.Engine.Keys.Frequency.On:
		c.Reply.Int(int64(c.Engine.Keys.Frequent(e)))
	default:
		c.Reply.Error("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when " +
			"switching between policies at runtime LRU and LFU data will take some time to adjust.")
	}
}

func objectIdletime(c *engine.Call) {
	e := object(c)
	switch {
	case e == nil:
	case c.Engine.Keys.Frequency.On:
		c.Reply.Error("ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching " +
			"between policies at runtime LRU and LFU data will take some time to adjust.")
	default:
		c.Reply.Int(idleSeconds(c, e))
	}
}

// idleSeconds returns the time since the last access of a key in seconds.
func idleSeconds(c *engine.Call, e *keyspace.Entry) int64 { return max(0, c.Now()-e.Access()) / 1000 }

func objectRefcount(c *engine.Call) {
	if object(c) != nil {
		c.Reply.Int(1) // no value is shared
	}
}
