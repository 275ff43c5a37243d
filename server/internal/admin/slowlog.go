package admin

import (
	"github.com/zsetd/zsetd/server/internal/engine"
	"math"
)

func slowlogGet(c *engine.Call) {
	count := int64(10)
	if c.Len() > 1 {
		c.BadSubcommand()
		return
	}
	if c.Len() == 1 {
		count = c.IntIn(-1, math.MaxInt64, "ERR count should be greater than or equal to -1")
	}
	if !c.OK() {
		return
	}
	entries := c.Engine.Slowlog.Entries
	if count >= 0 && count < int64(len(entries)) {
		entries = entries[int64(len(entries))-count:]
	}
	c.Reply.Array(len(entries))
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		c.Reply.Array(6)
		c.Reply.Int(e.ID)
		c.Reply.Int(e.At)
		c.Reply.Int(e.Took)
		c.Reply.Array(len(e.Argv))
		for _, arg := range e.Argv {
			c.Reply.BulkString(arg)
		}
		c.Reply.BulkString(e.Addr)
		c.Reply.BulkString(e.Name)
	}
}

func slowlogLen(c *engine.Call) { c.Reply.Int(int64(len(c.Engine.Slowlog.Entries))) }

func slowlogReset(c *engine.Call) {
	c.Engine.Slowlog.Entries = nil
	c.Reply.OK()
}

func slowlogHelp(c *engine.Call) {
	c.Help("GET [<count>]",
		"    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
		"    Entries are made of:",
		"    id, timestamp, time in microseconds, arguments array, client IP and port,",
		"    client name",
		"LEN",
		"    Return the length of the slowlog.",
		"RESET",
		"    Reset the slowlog.")
}
