package server

import (
	"math"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
	"github.com/zsetd/zsetd/zset"
)

func objectCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "object", Arity: -2,
			Group: "generic", Since: "2.2.3", Complexity: "Depends on subcommand.",
			Summary: "A container for object introspection commands",
		}, subcommands: []Command{
			{Facts: protocol.Facts{
				Name: "object|encoding", Arity: 3, Flags: "readonly", Keys: "2 RO",
				Group: "generic", Since: "2.2.3", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "Inspect the internal encoding of a Redis object",
				Syntax:  "key",
			}, run: objectEncoding},
			{Facts: protocol.Facts{
				Name: "object|freq", Arity: 3, Flags: "readonly", Keys: "2 RO",
				Group: "generic", Since: "4.0.0", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "Get the logarithmic access frequency counter of a Redis object",
				Syntax:  "key",
			}, run: objectFreq},
			{Facts: protocol.Facts{
				Name: "object|help", Arity: 2, Flags: "loading stale",
				Group: "generic", Since: "6.2.0", Complexity: "O(1)",
				Summary: "Show helpful text about the different subcommands",
			}, run: objectHelp},
			{Facts: protocol.Facts{
				Name: "object|idletime", Arity: 3, Flags: "readonly", Keys: "2 RO",
				Group: "generic", Since: "2.2.3", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "Get the time since a Redis object was last accessed",
				Syntax:  "key",
			}, run: objectIdletime},
			{Facts: protocol.Facts{
				Name: "object|refcount", Arity: 3, Flags: "readonly", Keys: "2 RO",
				Group: "generic", Since: "2.2.3", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "Get the number of references to the value of the key",
				Syntax:  "key",
			}, run: objectRefcount},
		}},
	}
}

// object returns the entry of the key of an OBJECT command. It counts neither as a
// use of the key nor as a miss. If the key does not exist, it replies null and
// returns nil.
func (c *Call) object() *keyspace.Entry {
	e := c.db.Peek(c.Bytes())
	if e == nil {
		c.Reply.Null()
	}
	return e
}

func objectEncoding(c *Call) {
	if e := c.object(); e != nil {
		c.Reply.BulkString(encodingOf(e.Value(), c.limits()))
	}
}

// encodingOf names the encoding that Redis would use for a value.
func encodingOf(v any, l *keyspace.Limits) string {
	if s, ok := v.(*zset.Set); ok {
		return zsetEncoding(s)
	}
	return v.(interface {
		Encoding(*keyspace.Limits) string
	}).Encoding(l)
}

func objectFreq(c *Call) {
	e := c.object()
	switch {
	case e == nil:
	case c.srv.keys.Frequency.On:
		c.Reply.Int(int64(c.srv.keys.Frequent(e)))
	default:
		c.Reply.Error("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when " +
			"switching between policies at runtime LRU and LFU data will take some time to adjust.")
	}
}

func objectHelp(c *Call) {
	c.help("ENCODING <key>",
		"    Return the kind of internal representation used in order to store the value",
		"    associated with a <key>.",
		"FREQ <key>",
		"    Return the access frequency index of the <key>. The returned integer is",
		"    proportional to the logarithm of the recent access frequency of the key.",
		"IDLETIME <key>",
		"    Return the idle time of the <key>, that is the approximated number of",
		"    seconds elapsed since the last access to the key.",
		"REFCOUNT <key>",
		"    Return the number of references of the value associated with the specified",
		"    <key>.")
}

func objectIdletime(c *Call) {
	e := c.object()
	switch {
	case e == nil:
	case c.srv.keys.Frequency.On:
		c.Reply.Error("ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching " +
			"between policies at runtime LRU and LFU data will take some time to adjust.")
	default:
		c.Reply.Int(idleSeconds(c, e))
	}
}

func idleSeconds(c *Call, e *keyspace.Entry) int64 { return max(0, c.now()-e.Access()) / 1000 }

func objectRefcount(c *Call) {
	if e := c.object(); e != nil {
		c.Reply.Int(refcount(c, e.Value()))
	}
}

// refcount is Redis's count of references: one, except for small integers, which
// Redis shares unless the eviction policy has to record the use of each.
func refcount(c *Call, v any) int64 {
	s, ok := v.(*keyspace.String)
	if !ok || s.Encoding(c.limits()) != "int" {
		return 1
	}
	if n, _ := protocol.ParseInt(s.Content()); n < 0 || n >= 10000 {
		return 1
	}
	if policy := c.srv.config.maxmemoryPolicy; c.srv.config.maxmemory != 0 &&
		(strings.HasSuffix(policy, "-lru") || strings.HasSuffix(policy, "-lfu")) {
		return 1 // the policy records the use of each key
	}
	return math.MaxInt32
}
