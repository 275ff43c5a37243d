package admin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/server/internal/engine"
)

func latencyLatest(c *engine.Call) {
	events := c.Engine.Stats.Latency.Events
	c.Reply.Array(len(events))
	for _, name := range slices.Sorted(maps.Keys(events)) {
		s := events[name]
		last := s.Samples[len(s.Samples)-1]
		c.Reply.Array(4)
		c.Reply.BulkString(name)
		c.Reply.Int(last.At)
		c.Reply.Int(last.Ms)
		c.Reply.Int(s.Max)
	}
}

func latencyHistory(c *engine.Call) {
	s := c.Engine.Stats.Latency.Events[c.String()]
	if s == nil {
		c.Reply.Array(0)
		return
	}
	c.Reply.Array(len(s.Samples))
	for _, sample := range s.Samples {
		c.Reply.Array(2)
		c.Reply.Int(sample.At)
		c.Reply.Int(sample.Ms)
	}
}

func latencyReset(c *engine.Call) {
	l := &c.Engine.Stats.Latency
	n := 0
	if !c.More() {
		n = len(l.Events)
		l.Events = nil
	}
	for c.More() {
		name := c.String()
		if l.Events[name] != nil {
			delete(l.Events, name)
			n++
		}
	}
	c.Reply.Int(int64(n))
}

func latencyGraph(c *engine.Call) {
	name := c.String()
	s := c.Engine.Stats.Latency.Events[name]
	if s == nil {
		c.Reply.Error("ERR No samples available for event '" + engine.UntilNUL([]byte(name)) + "'")
		return
	}
	c.Reply.Verbatim("txt", s.Graph(name, c.Engine.Turn.At.Unix()))
}

func latencyDoctor(c *engine.Call) {
	c.Reply.Verbatim("txt", latencyReport(c.Engine))
}

// latencyReport is the text of LATENCY DOCTOR: the events with statistics of their
// samples, and advice for those that have a known remedy.
func latencyReport(srv *engine.Engine) string {
	threshold := srv.Config.LatencyMonitorThreshold
	if threshold == 0 {
		return "No events are recorded: latency-monitor-threshold is 0. CONFIG SET latency-monitor-threshold 100 records those " +
			"that take 100 ms or longer.\n"
	}
	events := srv.Stats.Latency.Events
	if len(events) == 0 {
		return fmt.Sprintf("No event has taken %d ms or longer.\n", threshold)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Events of %d ms or longer:\n", threshold)
	for _, name := range slices.Sorted(maps.Keys(events)) {
		s := events[name]
		average, deviation, period := s.Summary(srv.Turn.At.Unix())
		fmt.Fprintf(&b, "  %s: %d samples, mean %d ms, mean deviation %d ms, one every %.2f s; longest of all %d ms\n",
			name, len(s.Samples), average, deviation, period, s.Max)
	}
	var advice []string
	add := func(format string, args ...any) { advice = append(advice, fmt.Sprintf("- "+format+"\n", args...)) }
	if events["command"] != nil {
		switch limit := srv.Config.SlowlogSlowerThan; {
		case limit < 0:
			add("The slow log is off. CONFIG SET slowlog-log-slower-than %d makes it record the commands of these events.", threshold*1000)
		case srv.Config.SlowlogMaxLen == 0:
			add("The slow log has no room. CONFIG SET slowlog-max-len 128 makes it record the commands of these events.")
		case limit/1000 > threshold:
			add("The slow log records only commands of %d microseconds or longer. CONFIG SET slowlog-log-slower-than %d makes it record the "+
				"commands of these events.", limit, threshold*1000)
		}
		add("SLOWLOG GET lists slow commands with their arguments.")
	}
	if events["fast-command"] != nil {
		add("Commands with little work were slow: the process probably waited for a CPU. Reduce the load of the machine, or run " +
			"the server where no other program, or other virtual machine, takes its CPUs.")
	}
	if events["expire-cycle"] != nil {
		add("Many keys expired at once. Give them different deadlines.")
	}
	if events["eviction-cycle"] != nil {
		add("Many keys were evicted at once. Let keys expire before memory reaches maxmemory.")
	}
	if len(advice) > 0 {
		b.WriteString("Advice:\n" + strings.Join(advice, ""))
	}
	return b.String()
}

// latencyHistogram replies how the calls of each command are distributed over
// powers of two of time.
func latencyHistogram(c *engine.Call) {
	var found []*engine.Command
	add := func(cmd *engine.Command) {
		if h := cmd.Stats.Histogram; h != nil && h.Total > 0 && !slices.Contains(found, cmd) {
			found = append(found, cmd)
		}
	}
	if !c.More() {
		c.Engine.Table.Each(add)
	}
	for c.More() {
		cmd := c.Engine.Table.Named(c.Bytes())
		if cmd == nil {
			continue
		}
		add(cmd)
		for i := range cmd.Subcommands {
			add(&cmd.Subcommands[i])
		}
	}
	c.Reply.Map(len(found))
	for _, cmd := range found {
		h := cmd.Stats.Histogram
		c.Reply.BulkString(cmd.Name)
		c.Reply.Map(2)
		c.Reply.BulkString("calls")
		c.Reply.Int(int64(h.Total))
		c.Reply.BulkString("histogram_usec")
		steps := h.Cumulative()
		c.Reply.Map(len(steps))
		for _, step := range steps {
			c.Reply.Int(step.Usec)
			c.Reply.Int(int64(step.Count))
		}
	}
}
