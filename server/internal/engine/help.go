package engine

import "github.com/zsetd/zsetd/protocol"

// HelpRow returns the row of a HELP subcommand, which replies lines. facts has the name, the
// group, the version and the categories.
func HelpRow(facts protocol.Facts, lines ...string) Command {
	facts.Arity, facts.Flags, facts.Complexity = 2, "loading stale", "O(1)"
	facts.Summary = "List the subcommands"
	return Command{Facts: facts, Run: func(c *Call) { c.Help(lines...) }}
}
