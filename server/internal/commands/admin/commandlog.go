package admin

import (
	"math"

	"github.com/zsetd/zsetd/server/internal/engine"
)

func commandLogGet(c *engine.Call) {
	count := readCount(c)
	if l := readLog(c); c.OK() {
		showLog(c, l, count)
	}
}

func commandLogLen(c *engine.Call) {
	if l := readLog(c); c.OK() {
		c.Reply.Int(int64(len(l.Entries)))
	}
}

func commandLogReset(c *engine.Call) {
	if l := readLog(c); c.OK() {
		l.Entries = nil
		c.Reply.OK()
	}
}

// readCount reads a number of entries, or -1 for all.
func readCount(c *engine.Call) int64 {
	return c.IntIn(-1, math.MaxInt64, "ERR count should be greater than or equal to -1")
}

// readLog reads the name of a log.
func readLog(c *engine.Call) *engine.CommandLog {
	switch {
	case c.Is("SLOW"):
		return &c.Engine.Stats.Slow
	case c.Is("LARGE-REQUEST"):
		return &c.Engine.Stats.LargeRequests
	case c.Is("LARGE-REPLY"):
		return &c.Engine.Stats.LargeReplies
	}
	c.Fail("ERR type should be one of the following: slow, large-request, large-reply")
	return nil
}

// showLog replies the newest count entries of a log, or all if count is -1.
func showLog(c *engine.Call, l *engine.CommandLog, count int64) {
	entries := l.Entries
	if count >= 0 && count < int64(len(entries)) {
		entries = entries[int64(len(entries))-count:]
	}
	c.Reply.Array(len(entries))
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		c.Reply.Array(6)
		c.Reply.Int(e.ID)
		c.Reply.Int(e.At)
		c.Reply.Int(e.Value)
		c.Reply.Array(len(e.Argv))
		for _, arg := range e.Argv {
			c.Reply.BulkString(arg)
		}
		c.Reply.BulkString(e.Addr)
		c.Reply.BulkString(e.Name)
	}
}
