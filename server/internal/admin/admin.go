package admin

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/command"
	"github.com/zsetd/zsetd/server/internal/engine"
)

// ServerCommands are the commands that administer the server as a whole. Their
// handlers are in the files of their subjects.
func ServerCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "info", Arity: -1, Flags: "loading stale",
			Group: "server", Since: "1.0.0", Categories: "dangerous", Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
			Complexity: "O(1)",
			Summary:    "Get information and statistics about the server",
			Syntax:     "[section [section ...]]",
			History:    []string{"7.0.0 Added support for taking multiple section arguments."},
		}, Run: info},
		{Facts: protocol.Facts{
			Name: "latency", Arity: -2,
			Group: "server", Since: "2.8.13", Complexity: "Depends on subcommand.",
			Summary: "A container for latency diagnostics commands",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "latency|doctor", Arity: 2, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.8.13", Tips: "nondeterministic_output request_policy:all_nodes response_policy:special",
				Complexity: "O(1)",
				Summary:    "Return a human readable latency analysis report.",
			}, Run: latencyDoctor},
			{Facts: protocol.Facts{
				Name: "latency|graph", Arity: 3, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.8.13", Tips: "nondeterministic_output request_policy:all_nodes response_policy:special",
				Complexity: "O(1)",
				Summary:    "Return a latency graph for the event.",
				Syntax:     "event",
			}, Run: latencyGraph},
			{Facts: protocol.Facts{
				Name: "latency|help", Arity: 2, Flags: "loading stale",
				Group: "server", Since: "2.8.13", Complexity: "O(1)",
				Summary: "Show helpful text about the different subcommands.",
			}, Run: latencyHelp},
			{Facts: protocol.Facts{
				Name: "latency|histogram", Arity: -2, Flags: "admin noscript loading stale",
				Group: "server", Since: "7.0.0", Tips: "nondeterministic_output request_policy:all_nodes response_policy:special",
				Complexity: "O(N) where N is the number of commands with latency information being retrieved.",
				Summary:    "Return the cumulative distribution of latencies of a subset of commands or all.",
				Syntax:     "[command [command ...]]",
			}, Run: latencyHistogram},
			{Facts: protocol.Facts{
				Name: "latency|history", Arity: 3, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.8.13", Tips: "nondeterministic_output request_policy:all_nodes response_policy:special",
				Complexity: "O(1)",
				Summary:    "Return timestamp-latency samples for the event.",
				Syntax:     "event",
			}, Run: latencyHistory},
			{Facts: protocol.Facts{
				Name: "latency|latest", Arity: 2, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.8.13", Tips: "nondeterministic_output request_policy:all_nodes response_policy:special",
				Complexity: "O(1)",
				Summary:    "Return the latest latency samples for all events.",
			}, Run: latencyLatest},
			{Facts: protocol.Facts{
				Name: "latency|reset", Arity: -2, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.8.13", Tips: "request_policy:all_nodes response_policy:all_succeeded",
				Complexity: "O(1)",
				Summary:    "Reset latency data for one or more events.",
				Syntax:     "[event [event ...]]",
			}, Run: latencyReset},
		}},
		{Facts: protocol.Facts{
			Name: "lolwut", Arity: -1, Flags: "readonly fast",
			Group: "server", Since: "5.0.0",
			Summary: "Display some computer art and the Redis version",
			Syntax:  "[VERSION version]",
		}, Run: command.Lolwut},
		{Facts: protocol.Facts{
			Name: "memory", Arity: -2,
			Group: "server", Since: "4.0.0", Complexity: "Depends on subcommand.",
			Summary: "A container for memory diagnostics commands",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "memory|doctor", Arity: 2,
				Group: "server", Since: "4.0.0", Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
				Complexity: "O(1)",
				Summary:    "Outputs memory problems report",
			}, Run: memoryDoctor},
			{Facts: protocol.Facts{
				Name: "memory|help", Arity: 2, Flags: "loading stale",
				Group: "server", Since: "4.0.0", Complexity: "O(1)",
				Summary: "Show helpful text about the different subcommands",
			}, Run: memoryHelp},
			{Facts: protocol.Facts{
				Name: "memory|malloc-stats", Arity: 2,
				Group: "server", Since: "4.0.0", Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
				Complexity: "Depends on how much memory is allocated, could be slow",
				Summary:    "Show allocator internal stats",
			}, Run: memoryMallocStats},
			{Facts: protocol.Facts{
				Name: "memory|purge", Arity: 2,
				Group: "server", Since: "4.0.0", Tips: "request_policy:all_shards response_policy:all_succeeded",
				Complexity: "Depends on how much memory is allocated, could be slow",
				Summary:    "Ask the allocator to release memory",
			}, Run: memoryPurge},
			{Facts: protocol.Facts{
				Name: "memory|stats", Arity: 2,
				Group: "server", Since: "4.0.0", Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
				Complexity: "O(1)",
				Summary:    "Show memory usage details",
			}, Run: memoryStats},
			{Facts: protocol.Facts{
				Name: "memory|usage", Arity: -3, Flags: "readonly", Keys: "2 RO",
				Group: "server", Since: "4.0.0", Complexity: "O(N) where N is the number of samples.",
				Summary: "Estimate the memory usage of a key",
				Syntax:  "key [SAMPLES count]",
			}, Run: memoryUsage},
		}},
		{Facts: protocol.Facts{
			Name: "monitor", Arity: 1, Flags: "admin noscript loading stale",
			Group: "server", Since: "1.0.0",
			Summary: "Listen for all requests received by the server in real time",
		}, Run: engine.Monitor, OfConnection: true},
		{Facts: protocol.Facts{
			Name: "replicaof", Arity: 3, Flags: "admin noscript stale no_async_loading",
			Group: "server", Since: "5.0.0", Complexity: "O(1)",
			Summary: "Make the server a replica of another instance, or promote it as master.",
			Syntax:  "args:(host-port:(host port:integer) | no-one:(NO ONE))",
		}, Run: replicaof},
		{Facts: protocol.Facts{
			Name: "role", Arity: 1, Flags: "noscript loading stale fast",
			Group: "server", Since: "2.8.12", Categories: "admin dangerous", Complexity: "O(1)",
			Summary: "Return the role of the instance in the context of replication",
		}, Run: role},
		{Facts: protocol.Facts{
			Name: "shutdown", Arity: -1, Flags: "admin noscript loading stale no_multi allow_busy",
			Group: "server", Since: "1.0.0",
			Complexity: "O(N) when saving, where N is the total number of keys in all databases when saving data, otherwise O(1)",
			Summary:    "Synchronously save the dataset to disk and then shut down the server",
			Syntax:     "[NOSAVE|SAVE] [NOW@7.0.0] [FORCE@7.0.0] [ABORT@7.0.0]",
			History:    []string{"7.0.0 Added the `NOW`, `FORCE` and `ABORT` modifiers."},
		}, Run: engine.Shutdown},
		{Facts: protocol.Facts{
			Name: "slaveof", Arity: 3, Flags: "admin noscript stale no_async_loading",
			Group: "server", Since: "1.0.0", Deprecated: "5.0.0", ReplacedBy: "`REPLICAOF`", Complexity: "O(1)",
			Summary: "Make the server a replica of another instance, or promote it as master.",
			Syntax:  "args:(host-port:(host port:integer) | no-one:(NO ONE))",
		}, Run: replicaof},
		{Facts: protocol.Facts{
			Name: "slowlog", Arity: -2,
			Group: "server", Since: "2.2.12", Complexity: "Depends on subcommand.",
			Summary: "A container for slow log commands",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "slowlog|get", Arity: -2, Flags: "admin loading stale",
				Group: "server", Since: "2.2.12", Tips: "request_policy:all_nodes nondeterministic_output",
				Complexity: "O(N) where N is the number of entries returned",
				Summary:    "Get the slow log's entries",
				Syntax:     "[count]",
				History:    []string{"4.0.0 Added client IP address, port and name to the reply."},
			}, Run: slowlogGet},
			{Facts: protocol.Facts{
				Name: "slowlog|help", Arity: 2, Flags: "loading stale",
				Group: "server", Since: "6.2.0", Complexity: "O(1)",
				Summary: "Show helpful text about the different subcommands",
			}, Run: slowlogHelp},
			{Facts: protocol.Facts{
				Name: "slowlog|len", Arity: 2, Flags: "admin loading stale",
				Group: "server", Since: "2.2.12", Tips: "request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
				Complexity: "O(1)",
				Summary:    "Get the slow log's length",
			}, Run: slowlogLen},
			{Facts: protocol.Facts{
				Name: "slowlog|reset", Arity: 2, Flags: "admin loading stale",
				Group: "server", Since: "2.2.12", Tips: "request_policy:all_nodes response_policy:all_succeeded",
				Complexity: "O(N) where N is the number of entries in the slowlog",
				Summary:    "Clear all entries from the slow log",
			}, Run: slowlogReset},
		}},
		{Facts: protocol.Facts{
			Name: "time", Arity: 1, Flags: "loading stale fast",
			Group: "server", Since: "2.6.0", Tips: "nondeterministic_output", Complexity: "O(1)",
			Summary: "Return the current server time",
		}, Run: timeCommand},
	}
}

func role(c *engine.Call) {
	c.Reply.Array(3)
	c.Reply.BulkString("master")
	c.Reply.Int(0)
	c.Reply.Array(0)
}

// replicaof accepts NO ONE, which changes nothing on a master. It refuses to follow
// another server.
func replicaof(c *engine.Call) {
	host, port := c.Bytes(), c.Bytes()
	if n, ok := protocol.ParseInt(port); c.Engine.Cluster != nil {
		c.Reply.Error("ERR REPLICAOF not allowed in cluster mode.")
	} else if protocol.EqualFold(host, "NO") && protocol.EqualFold(port, "ONE") {
		c.Reply.OK()
	} else if !ok || n < 0 || n > 65535 {
		c.Reply.Error("ERR Invalid master port")
	} else {
		c.Reply.Error("ERR " + engine.NotReplica)
	}
}

func timeCommand(c *engine.Call) {
	us := c.Engine.At.UnixMicro()
	c.Reply.Array(2)
	c.Reply.BulkInt(us / 1e6)
	c.Reply.BulkInt(us % 1e6)
}
