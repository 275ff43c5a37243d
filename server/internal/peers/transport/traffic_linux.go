package transport

import "github.com/zsetd/zsetd/server/internal/engine"

// traffic holds counters that the loop has not added to the engine's yet.
type traffic struct{ input, output, reads, writes int64 }

func (c *traffic) flushTo(e *engine.Engine) {
	if c.reads > 0 {
		e.Stats.Input.Add(c.input)
		e.Stats.Reads.Add(c.reads)
	}
	if c.writes > 0 {
		e.Stats.Output.Add(c.output)
		e.Stats.Writes.Add(c.writes)
	}
	*c = traffic{}
}
