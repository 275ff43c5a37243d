package admin

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
)

// LogCommands returns the rows of the logs of commands.
func LogCommands() []engine.Command {
	const kind = "SLOW|LARGE-REQUEST|LARGE-REPLY"
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "slowlog", Arity: -2,
			Group: "server", Since: "2.2.12", Complexity: "That of the subcommand",
			Summary: "Log of slow commands",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "slowlog|get", Arity: -2, Flags: "admin loading stale",
				Group: "server", Since: "2.2.12", Tips: "request_policy:all_nodes nondeterministic_output",
				Complexity: "O(N), N entries returned",
				Summary:    "Latest entries of the log",
				Syntax:     "[count]",
				History:    []string{"4.0.0 Address and name of the client"},
			}, Run: slowlogGet},
			engine.HelpRow(protocol.Facts{Name: "slowlog|help", Group: "server", Since: "6.2.0"},
				"GET [<count>]",
				"    The latest <count> entries (default: 10; -1: all of them), each with its ID,",
				"    Unix time, duration in microseconds, arguments, and the client's address",
				"    and name.",
				"LEN",
				"    The number of entries.",
				"RESET",
				"    Delete all entries."),
			{Facts: protocol.Facts{
				Name: "slowlog|len", Arity: 2, Flags: "admin loading stale",
				Group: "server", Since: "2.2.12", Tips: "request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
				Complexity: "O(1)",
				Summary:    "Number of entries of the log",
			}, Run: slowlogLen},
			{Facts: protocol.Facts{
				Name: "slowlog|reset", Arity: 2, Flags: "admin loading stale",
				Group: "server", Since: "2.2.12", Tips: "request_policy:all_nodes response_policy:all_succeeded",
				Complexity: "O(1)",
				Summary:    "Empty the log",
			}, Run: slowlogReset},
		}},
		{Facts: protocol.Facts{
			Name: "commandlog", Arity: -2,
			Group: "server", Since: "8.1.0", Complexity: "That of the subcommand",
			Summary: "Logs of slow commands, large requests and large replies",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "commandlog|get", Arity: 4, Flags: "admin loading stale",
				Group: "server", Since: "8.1.0", Tips: "request_policy:all_nodes nondeterministic_output",
				Complexity: "O(N), N entries returned",
				Summary:    "Latest entries of a log",
				Syntax:     "count " + kind,
			}, Run: commandLogGet},
			engine.HelpRow(protocol.Facts{Name: "commandlog|help", Group: "server", Since: "8.1.0"},
				"GET <count> <type>",
				"    The latest <count> entries (-1: all of them) of the log <type>, slow,",
				"    large-request or large-reply, each with its ID, Unix time, duration in",
				"    microseconds or size in bytes, arguments, and the client's address and name.",
				"LEN <type>",
				"    The number of entries.",
				"RESET <type>",
				"    Delete all entries."),
			{Facts: protocol.Facts{
				Name: "commandlog|len", Arity: 3, Flags: "admin loading stale",
				Group: "server", Since: "8.1.0", Tips: "request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
				Complexity: "O(1)",
				Summary:    "Number of entries of a log",
				Syntax:     kind,
			}, Run: commandLogLen},
			{Facts: protocol.Facts{
				Name: "commandlog|reset", Arity: 3, Flags: "admin loading stale",
				Group: "server", Since: "8.1.0", Tips: "request_policy:all_nodes response_policy:all_succeeded",
				Complexity: "O(1)",
				Summary:    "Empty a log",
				Syntax:     kind,
			}, Run: commandLogReset},
		}},
	}
}

func slowlogGet(c *engine.Call) {
	count := int64(10)
	if c.Len() > 1 {
		c.BadSubcommand()
		return
	}
	if c.Len() == 1 {
		count = readCount(c)
	}
	if c.OK() {
		showLog(c, &c.Engine.Stats.Slow, count)
	}
}

func slowlogLen(c *engine.Call) { c.Reply.Int(int64(len(c.Engine.Stats.Slow.Entries))) }

func slowlogReset(c *engine.Call) {
	c.Engine.Stats.Slow.Entries = nil
	c.Reply.OK()
}
