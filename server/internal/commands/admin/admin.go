package admin

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
)

// ServerCommands are the commands that administer the server as a whole. Their
// handlers are in the files of their subjects.
func ServerCommands() []engine.Command {
	return []engine.Command{
		hotkeysRow(),
		infoRow(),
		{Facts: protocol.Facts{
			Name: "latency", Arity: -2,
			Group: "server", Since: "2.8.13", Complexity: "That of the subcommand",
			Summary: "Events that took long, and the latencies of commands",
		}, Subcommands: []engine.Command{
			latencyDoctorRow(),
			latencyGraphRow(),
			latencyHelpRow(),
			latencyHistogramRow(),
			latencyHistoryRow(),
			latencyLatestRow(),
			latencyResetRow(),
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
			memoryDoctorRow(),
			memoryHelpRow(),
			memoryMallocStatsRow(),
			memoryPurgeRow(),
			memoryStatsRow(),
			memoryUsageRow(),
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
		timeCommandRow(),
	}
}

func timeCommandRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "time", Arity: 1, Flags: "loading stale fast",
		Group: "server", Since: "2.6.0", Tips: "nondeterministic_output", Complexity: "O(1)",
		Summary: "Time of the server, in seconds and microseconds since 1970",
	}, Run: timeCommand}
}

func timeCommand(c *engine.Call) {
	us := c.Engine.Scope.Shown.Time(c.Engine.At).UnixMicro()
	c.Reply.Array(2)
	c.Reply.BulkInt(us / 1e6)
	c.Reply.BulkInt(us % 1e6)
}
