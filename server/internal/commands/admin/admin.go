package admin

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
)

// ServerCommands are the commands that administer the server as a whole. Their
// handlers are in the files of their subjects.
func ServerCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "hotkeys", Arity: -2,
			Group: "server", Since: "8.6.0", Complexity: "That of the subcommand",
			Summary: "Keys that take the most processor time or bytes of the network",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "hotkeys|get", Arity: 2, Flags: "admin noscript",
				Group: "server", Since: "8.6.0", Tips: "nondeterministic_output request_policy:special response_policy:special",
				Complexity: "O(K log K), K keys that are counted",
				Summary:    "Keys that take the most, as far as measured",
			}, Run: hotkeysGet},
			engine.HelpRow(protocol.Facts{Name: "hotkeys|help", Group: "server", Since: "8.6.1"},
				"START <METRICS count [CPU] [NET]> [COUNT k] [DURATION duration] [SAMPLE ratio] [SLOTS count slot...]",
				"    Begin to measure processor time (CPU), bytes of commands and replies (NET), or both:",
				"    * COUNT k: report so many keys (default: 10)",
				"    * DURATION duration: stop after so many seconds",
				"    * SAMPLE ratio: measure one command of so many",
				"    * SLOTS count slot...: measure keys of these slots, in a cluster",
				"STOP",
				"    End the measurement. GET still has its results.",
				"GET",
				"    The keys that take the most.",
				"RESET",
				"    Forget the results."),
			{Facts: protocol.Facts{
				Name: "hotkeys|reset", Arity: 2, Flags: "admin noscript",
				Group: "server", Since: "8.6.0", Tips: "request_policy:special", Complexity: "O(1)",
				Summary: "Forget the results of a measurement that has ended",
			}, Run: hotkeysReset},
			{Facts: protocol.Facts{
				Name: "hotkeys|start", Arity: -2, Flags: "admin noscript",
				Group: "server", Since: "8.6.0", Tips: "request_policy:special", Complexity: "O(1)",
				Summary: "Begin to measure",
				Syntax:  "METRICS metrics:(count:integer [CPU] [NET]) [COUNT k:integer] [DURATION seconds:integer] [SAMPLE ratio:integer] [SLOTS slots:(count:integer slot:integer [slot ...])]",
			}, Run: hotkeysStart},
			{Facts: protocol.Facts{
				Name: "hotkeys|stop", Arity: 2, Flags: "admin noscript",
				Group: "server", Since: "8.6.0", Tips: "request_policy:special", Complexity: "O(1)",
				Summary: "End the measurement, and keep its results",
			}, Run: hotkeysStop},
		}},
		{Facts: protocol.Facts{
			Name: "info", Arity: -1, Flags: "loading stale",
			Group: "server", Since: "1.0.0", Categories: "dangerous", Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
			Complexity: "O(N), N fields of the sections",
			Summary:    "State and counters of the server, by section",
			Syntax:     "[section [section ...]]",
			History:    []string{"7.0.0 Several sections"},
		}, Run: info},
		{Facts: protocol.Facts{
			Name: "latency", Arity: -2,
			Group: "server", Since: "2.8.13", Complexity: "That of the subcommand",
			Summary: "Events that took long, and the latencies of commands",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "latency|doctor", Arity: 2, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.8.13", Tips: "nondeterministic_output request_policy:all_nodes response_policy:special",
				Complexity: "O(1)",
				Summary:    "Report about the events that took long",
			}, Run: latencyDoctor},
			{Facts: protocol.Facts{
				Name: "latency|graph", Arity: 3, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.8.13", Tips: "nondeterministic_output request_policy:all_nodes response_policy:special",
				Complexity: "O(1)",
				Summary:    "Draw the samples of an event",
				Syntax:     "event",
			}, Run: latencyGraph},
			engine.HelpRow(protocol.Facts{Name: "latency|help", Group: "server", Since: "2.8.13"},
				"DOCTOR",
				"    A report about the events that took long.",
				"GRAPH <event>",
				"    The samples of <event> as a drawing in ASCII.",
				"HISTORY <event>",
				"    The samples of <event>: Unix time and milliseconds.",
				"LATEST",
				"    The latest sample of each event, and the highest.",
				"RESET [<event> ...]",
				"    Forget the samples of the events (default: of all).",
				"HISTOGRAM [COMMAND ...]",
				"    How the latencies of the commands are distributed (default: of all)."),
			{Facts: protocol.Facts{
				Name: "latency|histogram", Arity: -2, Flags: "admin noscript loading stale",
				Group: "server", Since: "7.0.0", Tips: "nondeterministic_output request_policy:all_nodes response_policy:special",
				Complexity: "O(N), N commands given, or all",
				Summary:    "Distribution of the latencies of commands",
				Syntax:     "[command [command ...]]",
			}, Run: latencyHistogram},
			{Facts: protocol.Facts{
				Name: "latency|history", Arity: 3, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.8.13", Tips: "nondeterministic_output request_policy:all_nodes response_policy:special",
				Complexity: "O(1)",
				Summary:    "Times and latencies of an event",
				Syntax:     "event",
			}, Run: latencyHistory},
			{Facts: protocol.Facts{
				Name: "latency|latest", Arity: 2, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.8.13", Tips: "nondeterministic_output request_policy:all_nodes response_policy:special",
				Complexity: "O(E log E), E events",
				Summary:    "Latest and highest latency of each event",
			}, Run: latencyLatest},
			{Facts: protocol.Facts{
				Name: "latency|reset", Arity: -2, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.8.13", Tips: "request_policy:all_nodes response_policy:agg_sum",
				Complexity: "O(E), E events",
				Summary:    "Forget the samples of events, without arguments of all of them",
				Syntax:     "[event [event ...]]",
			}, Run: latencyReset},
		}},
		{Facts: protocol.Facts{
			Name: "lolwut", Arity: -1, Flags: "readonly fast",
			Group: "server", Since: "5.0.0",
			Summary: "Draw a picture",
			Syntax:  "[VERSION version]",
		}, Run: lolwut, Local: true},
		{Facts: protocol.Facts{
			Name: "memory", Arity: -2,
			Group: "server", Since: "4.0.0", Complexity: "That of the subcommand",
			Summary: "Memory of the server and of values",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "memory|doctor", Arity: 2,
				Group: "server", Since: "4.0.0", Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
				Complexity: "O(N), N connections",
				Summary:    "Report about the use of memory",
			}, Run: memoryDoctor},
			engine.HelpRow(protocol.Facts{Name: "memory|help", Group: "server", Since: "4.0.0"},
				"DOCTOR",
				"    A report of what wastes memory.",
				"MALLOC-STATS",
				"    The statistics of the Go heap.",
				"PURGE",
				"    Collect garbage and return free memory to the system.",
				"STATS",
				"    The memory of the server by purpose.",
				"USAGE <key> [SAMPLES <count>]",
				"    The estimated bytes of <key> and its value. A large value is estimated",
				"    from <count> elements (default: 5; 0: all of them)."),
			{Facts: protocol.Facts{
				Name: "memory|malloc-stats", Arity: 2,
				Group: "server", Since: "4.0.0", Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
				Complexity: "O(1)",
				Summary:    "Statistics of the Go heap",
			}, Run: memoryMallocStats},
			{Facts: protocol.Facts{
				Name: "memory|purge", Arity: 2,
				Group: "server", Since: "4.0.0", Tips: "request_policy:all_shards response_policy:all_succeeded",
				Complexity: "O(N) in the background, N bytes of the heap",
				Summary:    "Collect garbage, and return free memory to the system",
			}, Run: memoryPurge},
			{Facts: protocol.Facts{
				Name: "memory|stats", Arity: 2,
				Group: "server", Since: "4.0.0", Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
				Complexity: "O(N + D), N connections, D databases",
				Summary:    "Memory of the server by purpose",
			}, Run: memoryStats},
			{Facts: protocol.Facts{
				Name: "memory|usage", Arity: -3, Flags: "readonly", Keys: "2 RO",
				Group: "server", Since: "4.0.0", Complexity: "O(S), S elements sampled",
				Summary: "Estimate of the memory that a key and its value take",
				Syntax:  "key [SAMPLES count]",
			}, Run: memoryUsage},
		}},
		{Facts: protocol.Facts{
			Name: "monitor", Arity: 1, Flags: "admin noscript loading stale",
			Group: "server", Since: "1.0.0",
			Summary: "Receive all commands that the server runs",
		}, Run: engine.Monitor, OfConnection: true},
		{Facts: protocol.Facts{
			Name: "shutdown", Arity: -1, Flags: "admin noscript loading stale no_multi allow_busy",
			Group: "server", Since: "1.0.0",
			Complexity: "O(N), N keys changed since the last save",
			Summary:    "Save the data if there is a file, and end the server",
			Syntax:     "save-selector:[NOSAVE|SAVE] [NOW@7.0.0] [FORCE@7.0.0] [ABORT@7.0.0]",
			History:    []string{"7.0.0 `NOW`, `FORCE`, `ABORT`"},
		}, Run: engine.Shutdown},
		{Facts: protocol.Facts{
			Name: "time", Arity: 1, Flags: "loading stale fast",
			Group: "server", Since: "2.6.0", Tips: "nondeterministic_output", Complexity: "O(1)",
			Summary: "Time of the server, in seconds and microseconds since 1970",
		}, Run: timeCommand},
	}
}

func timeCommand(c *engine.Call) {
	us := c.Engine.Turn.Scope.Shown.Time(c.Engine.Turn.At).UnixMicro()
	c.Reply.Array(2)
	c.Reply.BulkInt(us / 1e6)
	c.Reply.BulkInt(us % 1e6)
}
