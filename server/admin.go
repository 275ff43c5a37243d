package server

import (
	"github.com/zsetd/zsetd/protocol"
)

// serverCommands are the commands that administer the server as a whole. Their
// handlers are in the files of their subjects.
func serverCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "info", Arity: -1, Flags: "loading stale",
			Group: "server", Since: "1.0.0", Categories: "dangerous", Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
			Complexity: "O(1)",
			Summary:    "Get information and statistics about the server",
			Syntax:     "[section [section ...]]",
			History:    []string{"7.0.0 Added support for taking multiple section arguments."},
		}, run: info},
		{Facts: protocol.Facts{
			Name: "latency", Arity: -2,
			Group: "server", Since: "2.8.13", Complexity: "Depends on subcommand.",
			Summary: "A container for latency diagnostics commands",
		}, subcommands: []Command{
			{Facts: protocol.Facts{
				Name: "latency|doctor", Arity: 2, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.8.13", Tips: "nondeterministic_output request_policy:all_nodes response_policy:special",
				Complexity: "O(1)",
				Summary:    "Return a human readable latency analysis report.",
			}, run: latencyDoctor},
			{Facts: protocol.Facts{
				Name: "latency|graph", Arity: 3, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.8.13", Tips: "nondeterministic_output request_policy:all_nodes response_policy:special",
				Complexity: "O(1)",
				Summary:    "Return a latency graph for the event.",
				Syntax:     "event",
			}, run: latencyGraph},
			{Facts: protocol.Facts{
				Name: "latency|help", Arity: 2, Flags: "loading stale",
				Group: "server", Since: "2.8.13", Complexity: "O(1)",
				Summary: "Show helpful text about the different subcommands.",
			}, run: latencyHelp},
			{Facts: protocol.Facts{
				Name: "latency|histogram", Arity: -2, Flags: "admin noscript loading stale",
				Group: "server", Since: "7.0.0", Tips: "nondeterministic_output request_policy:all_nodes response_policy:special",
				Complexity: "O(N) where N is the number of commands with latency information being retrieved.",
				Summary:    "Return the cumulative distribution of latencies of a subset of commands or all.",
				Syntax:     "[command [command ...]]",
			}, run: latencyHistogram},
			{Facts: protocol.Facts{
				Name: "latency|history", Arity: 3, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.8.13", Tips: "nondeterministic_output request_policy:all_nodes response_policy:special",
				Complexity: "O(1)",
				Summary:    "Return timestamp-latency samples for the event.",
				Syntax:     "event",
			}, run: latencyHistory},
			{Facts: protocol.Facts{
				Name: "latency|latest", Arity: 2, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.8.13", Tips: "nondeterministic_output request_policy:all_nodes response_policy:special",
				Complexity: "O(1)",
				Summary:    "Return the latest latency samples for all events.",
			}, run: latencyLatest},
			{Facts: protocol.Facts{
				Name: "latency|reset", Arity: -2, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.8.13", Tips: "request_policy:all_nodes response_policy:all_succeeded",
				Complexity: "O(1)",
				Summary:    "Reset latency data for one or more events.",
				Syntax:     "[event [event ...]]",
			}, run: latencyReset},
		}},
		{Facts: protocol.Facts{
			Name: "lolwut", Arity: -1, Flags: "readonly fast",
			Group: "server", Since: "5.0.0",
			Summary: "Display some computer art and the Redis version",
			Syntax:  "[VERSION version]",
		}, run: lolwut},
		{Facts: protocol.Facts{
			Name: "memory", Arity: -2,
			Group: "server", Since: "4.0.0", Complexity: "Depends on subcommand.",
			Summary: "A container for memory diagnostics commands",
		}, subcommands: []Command{
			{Facts: protocol.Facts{
				Name: "memory|doctor", Arity: 2,
				Group: "server", Since: "4.0.0", Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
				Complexity: "O(1)",
				Summary:    "Outputs memory problems report",
			}, run: memoryDoctor},
			{Facts: protocol.Facts{
				Name: "memory|help", Arity: 2, Flags: "loading stale",
				Group: "server", Since: "4.0.0", Complexity: "O(1)",
				Summary: "Show helpful text about the different subcommands",
			}, run: memoryHelp},
			{Facts: protocol.Facts{
				Name: "memory|malloc-stats", Arity: 2,
				Group: "server", Since: "4.0.0", Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
				Complexity: "Depends on how much memory is allocated, could be slow",
				Summary:    "Show allocator internal stats",
			}, run: memoryMallocStats},
			{Facts: protocol.Facts{
				Name: "memory|purge", Arity: 2,
				Group: "server", Since: "4.0.0", Tips: "request_policy:all_shards response_policy:all_succeeded",
				Complexity: "Depends on how much memory is allocated, could be slow",
				Summary:    "Ask the allocator to release memory",
			}, run: memoryPurge},
			{Facts: protocol.Facts{
				Name: "memory|stats", Arity: 2,
				Group: "server", Since: "4.0.0", Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
				Complexity: "O(1)",
				Summary:    "Show memory usage details",
			}, run: memoryStats},
			{Facts: protocol.Facts{
				Name: "memory|usage", Arity: -3, Flags: "readonly", Keys: "2 RO",
				Group: "server", Since: "4.0.0", Complexity: "O(N) where N is the number of samples.",
				Summary: "Estimate the memory usage of a key",
				Syntax:  "key [SAMPLES count]",
			}, run: memoryUsage},
		}},
		{Facts: protocol.Facts{
			Name: "monitor", Arity: 1, Flags: "admin noscript loading stale",
			Group: "server", Since: "1.0.0",
			Summary: "Listen for all requests received by the server in real time",
		}, run: monitor, ofConnection: true},
		{Facts: protocol.Facts{
			Name: "replicaof", Arity: 3, Flags: "admin noscript stale no_async_loading",
			Group: "server", Since: "5.0.0", Complexity: "O(1)",
			Summary: "Make the server a replica of another instance, or promote it as master.",
			Syntax:  "args:(host-port:(host port:integer) | no-one:(NO ONE))",
		}, run: replicaof},
		{Facts: protocol.Facts{
			Name: "role", Arity: 1, Flags: "noscript loading stale fast",
			Group: "server", Since: "2.8.12", Categories: "admin dangerous", Complexity: "O(1)",
			Summary: "Return the role of the instance in the context of replication",
		}, run: role},
		{Facts: protocol.Facts{
			Name: "shutdown", Arity: -1, Flags: "admin noscript loading stale no_multi allow_busy",
			Group: "server", Since: "1.0.0",
			Complexity: "O(N) when saving, where N is the total number of keys in all databases when saving data, otherwise O(1)",
			Summary:    "Synchronously save the dataset to disk and then shut down the server",
			Syntax:     "[NOSAVE|SAVE] [NOW@7.0.0] [FORCE@7.0.0] [ABORT@7.0.0]",
			History:    []string{"7.0.0 Added the `NOW`, `FORCE` and `ABORT` modifiers."},
		}, run: shutdown},
		{Facts: protocol.Facts{
			Name: "slaveof", Arity: 3, Flags: "admin noscript stale no_async_loading",
			Group: "server", Since: "1.0.0", Deprecated: "5.0.0", ReplacedBy: "`REPLICAOF`", Complexity: "O(1)",
			Summary: "Make the server a replica of another instance, or promote it as master.",
			Syntax:  "args:(host-port:(host port:integer) | no-one:(NO ONE))",
		}, run: replicaof},
		{Facts: protocol.Facts{
			Name: "slowlog", Arity: -2,
			Group: "server", Since: "2.2.12", Complexity: "Depends on subcommand.",
			Summary: "A container for slow log commands",
		}, subcommands: []Command{
			{Facts: protocol.Facts{
				Name: "slowlog|get", Arity: -2, Flags: "admin loading stale",
				Group: "server", Since: "2.2.12", Tips: "request_policy:all_nodes nondeterministic_output",
				Complexity: "O(N) where N is the number of entries returned",
				Summary:    "Get the slow log's entries",
				Syntax:     "[count]",
				History:    []string{"4.0.0 Added client IP address, port and name to the reply."},
			}, run: slowlogGet},
			{Facts: protocol.Facts{
				Name: "slowlog|help", Arity: 2, Flags: "loading stale",
				Group: "server", Since: "6.2.0", Complexity: "O(1)",
				Summary: "Show helpful text about the different subcommands",
			}, run: slowlogHelp},
			{Facts: protocol.Facts{
				Name: "slowlog|len", Arity: 2, Flags: "admin loading stale",
				Group: "server", Since: "2.2.12", Tips: "request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
				Complexity: "O(1)",
				Summary:    "Get the slow log's length",
			}, run: slowlogLen},
			{Facts: protocol.Facts{
				Name: "slowlog|reset", Arity: 2, Flags: "admin loading stale",
				Group: "server", Since: "2.2.12", Tips: "request_policy:all_nodes response_policy:all_succeeded",
				Complexity: "O(N) where N is the number of entries in the slowlog",
				Summary:    "Clear all entries from the slow log",
			}, run: slowlogReset},
		}},
		{Facts: protocol.Facts{
			Name: "time", Arity: 1, Flags: "loading stale fast",
			Group: "server", Since: "2.6.0", Tips: "nondeterministic_output", Complexity: "O(1)",
			Summary: "Return the current server time",
		}, run: timeCommand},
	}
}

func role(c *Call) {
	c.Reply.Array(3)
	c.Reply.BulkString("master")
	c.Reply.Int(0)
	c.Reply.Array(0)
}

// replicaof accepts NO ONE, which changes nothing on a master. It refuses to follow
// another server.
func replicaof(c *Call) {
	host, port := c.Bytes(), c.Bytes()
	if n, ok := protocol.ParseInt(port); c.srv.cluster != nil {
		c.Reply.Error("ERR REPLICAOF not allowed in cluster mode.")
	} else if protocol.EqualFold(host, "NO") && protocol.EqualFold(port, "ONE") {
		c.Reply.OK()
	} else if !ok || n < 0 || n > 65535 {
		c.Reply.Error("ERR Invalid master port")
	} else {
		c.Reply.Error("ERR " + notReplica)
	}
}

func timeCommand(c *Call) {
	us := c.srv.at.UnixMicro()
	c.Reply.Array(2)
	c.Reply.BulkInt(us / 1e6)
	c.Reply.BulkInt(us % 1e6)
}
