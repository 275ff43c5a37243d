package server

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// latencyLog keeps the worst latencies of each kind of event, at most one per
// second, for the LATENCY command.
type latencyLog struct {
	events map[string]*latencySeries
}

// latencySeries holds the latest samples of one event, the newest last.
type latencySeries struct {
	samples []latencySample
	max     int64 // since the start or LATENCY RESET
}

type latencySample struct{ at, ms int64 } // at in seconds since 1970

const latencySamples = 160 // kept for one event

// add records the duration of an event, which exceeds the threshold.
func (l *latencyLog) add(event string, now time.Time, took time.Duration) {
	s := l.events[event]
	if s == nil {
		if l.events == nil {
			l.events = map[string]*latencySeries{}
		}
		s = &latencySeries{}
		l.events[event] = s
	}
	at, ms := now.Unix(), took.Milliseconds()
	s.max = max(s.max, ms)
	if n := len(s.samples); n > 0 && s.samples[n-1].at == at {
		s.samples[n-1].ms = max(s.samples[n-1].ms, ms)
		return
	}
	if len(s.samples) == latencySamples {
		s.samples = slices.Delete(s.samples, 0, 1)
	}
	s.samples = append(s.samples, latencySample{at, ms})
}

func latencyLatest(c *Call) {
	events := c.srv.latency.events
	c.Reply.Array(len(events))
	for _, name := range sortedNames(events) {
		s := events[name]
		last := s.samples[len(s.samples)-1]
		c.Reply.Array(4)
		c.Reply.BulkString(name)
		c.Reply.Int(last.at)
		c.Reply.Int(last.ms)
		c.Reply.Int(s.max)
	}
}

func latencyHistory(c *Call) {
	s := c.srv.latency.events[c.String()]
	if s == nil {
		c.Reply.Array(0)
		return
	}
	c.Reply.Array(len(s.samples))
	for _, sample := range s.samples {
		c.Reply.Array(2)
		c.Reply.Int(sample.at)
		c.Reply.Int(sample.ms)
	}
}

func latencyReset(c *Call) {
	l := &c.srv.latency
	n := 0
	if !c.More() {
		n = len(l.events)
		l.events = nil
	}
	for c.More() {
		name := c.String()
		if l.events[name] != nil {
			delete(l.events, name)
			n++
		}
	}
	c.Reply.Int(int64(n))
}

func latencyGraph(c *Call) {
	name := c.String()
	s := c.srv.latency.events[name]
	if s == nil {
		c.Reply.Error("ERR No samples available for event '" + untilNUL([]byte(name)) + "'")
		return
	}
	c.Reply.Verbatim("txt", s.graph(name, c.srv.at.Unix()))
}

// The graph of LATENCY GRAPH: a column for each sample, its height on a scale of
// graphRows rows of three steps each, and below it its age.
const (
	graphColumns = 80
	graphRows    = 4
	graphSteps   = "_o#"
)

func (s *latencySeries) graph(name string, now int64) string {
	low, high := s.samples[0].ms, s.samples[0].ms
	for _, sample := range s.samples {
		low, high = min(low, sample.ms), max(high, sample.ms)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s - high %d ms, low %d ms (all time high %d ms)\n%s\n", name, high, low, s.max, strings.Repeat("-", graphColumns))
	first := true
	for part := range slices.Chunk(s.samples, graphColumns) {
		if !first {
			b.WriteByte('\n')
		}
		first = false
		drawGraph(&b, part, low, high, now)
	}
	return b.String()
}

func drawGraph(b *strings.Builder, samples []latencySample, low, high, now int64) {
	const steps = graphRows * len(graphSteps)
	line := make([]byte, len(samples))
	for row := range graphRows {
		for i, sample := range samples {
			step := min(int((sample.ms-low)*int64(steps)/max(high-low, 1)), steps-1)
			step -= (graphRows - 1 - row) * len(graphSteps)
			switch {
			case step < 0:
				line[i] = ' '
			case step < len(graphSteps):
				line[i] = graphSteps[step]
			default:
				line[i] = '|'
			}
		}
		fmt.Fprintf(b, "%s\n", line)
	}
	b.WriteString(strings.Repeat(" ", len(samples)) + "\n")
	// The labels are vertical.
	for more, row := true, 0; more; row++ {
		more = false
		for i, sample := range samples {
			line[i] = ' '
			if label := ago(now - sample.at); row < len(label) {
				line[i], more = label[row], true
			}
		}
		if more {
			fmt.Fprintf(b, "%s\n", line)
		}
	}
}

// ago writes a time in the largest whole unit.
func ago(seconds int64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%ds", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%dm", seconds/60)
	case seconds < 24*3600:
		return fmt.Sprintf("%dh", seconds/3600)
	}
	return fmt.Sprintf("%dd", seconds/(24*3600))
}

func latencyDoctor(c *Call) {
	c.Reply.Verbatim("txt", c.srv.latencyReport())
}

// latencyReport is Redis's report with the advice that applies here: there is no
// fork, and keys expire at their deadline without a cycle to tune.
func (srv *Server) latencyReport() string {
	threshold := srv.config.latencyMonitorThreshold
	if threshold == 0 {
		return "I'm sorry, Dave, I can't do that. Latency monitoring is disabled in this Redis instance. You may use " +
			"\"CONFIG SET latency-monitor-threshold <milliseconds>.\" in order to enable it. If we weren't in a deep space " +
			"mission I'd suggest to take a look at https://redis.io/topics/latency-monitor.\n"
	}
	events := srv.latency.events
	if len(events) == 0 {
		return "Dave, no latency spike was observed during the lifetime of this Redis instance, not in the slightest bit. " +
			"I honestly think you ought to sit down calmly, take a stress pill, and think things over.\n"
	}
	var b strings.Builder
	b.WriteString("Dave, I have observed latency spikes in this Redis instance. You don't mind talking about it, do you Dave?\n\n")
	for i, name := range sortedNames(events) {
		s := events[name]
		average, deviation, period := s.summary(srv.at.Unix())
		fmt.Fprintf(&b, "%d. %s: %d latency spikes (average %dms, mean deviation %dms, period %.2f sec). Worst all time event %dms.\n",
			i+1, name, len(s.samples), average, deviation, period, s.max)
	}
	var advice []string
	if events["command"] != nil {
		switch limit := srv.config.slowlogSlowerThan; {
		case limit < 0 || srv.config.slowlogMaxLen == 0:
			advice = append(advice, fmt.Sprintf("- There are latency issues with potentially slow commands you are using. "+
				"Try to enable the Slow Log Redis feature using the command 'CONFIG SET slowlog-log-slower-than %d'. "+
				"If the Slow log is disabled Redis is not able to log slow commands execution for you.\n", threshold*1000))
		case limit/1000 > threshold:
			advice = append(advice, fmt.Sprintf("- Your current Slow Log configuration only logs events that are slower than "+
				"your configured latency monitor threshold. Please use 'CONFIG SET slowlog-log-slower-than %d'.\n", threshold*1000))
		}
		advice = append(advice, "- Check your Slow Log to understand what are the commands you are running which are too slow to "+
			"execute. Please check https://redis.io/commands/slowlog for more information.\n")
	}
	if events["fast-command"] != nil {
		advice = append(advice, "- The system is slow to execute Redis code paths not containing system calls. This usually means "+
			"the system does not provide Redis CPU time to run for long periods. You should try to:\n"+
			"  1) Lower the system load.\n"+
			"  2) Use a computer / VM just for Redis if you are running other software in the same system.\n"+
			"  3) Check if you have a \"noisy neighbour\" problem.\n"+
			"  4) Check with 'redis-cli --intrinsic-latency 100' what is the intrinsic latency in your system.\n")
	}
	if events["command"] != nil || events["expire-cycle"] != nil {
		advice = append(advice, "- Deleting, expiring or evicting (because of maxmemory policy) large objects is a blocking "+
			"operation. If you have very large objects that are often deleted, expired, or evicted, try to fragment those "+
			"objects into multiple smaller objects.\n")
	}
	if len(advice) == 0 {
		b.WriteString("\nWhile there are latency events logged, I'm not able to suggest any easy fix. Please use the Redis " +
			"community to get some help, providing this report in your help request.\n")
		return b.String()
	}
	b.WriteString("\nI have a few advices for you:\n\n" + strings.Join(advice, ""))
	return b.String()
}

// summary returns the mean of the samples and its mean deviation, in milliseconds,
// and the mean interval between samples in seconds.
func (s *latencySeries) summary(now int64) (average, deviation int64, period float64) {
	n := int64(len(s.samples))
	for _, sample := range s.samples {
		average += sample.ms
	}
	average /= n
	for _, sample := range s.samples {
		deviation += max(sample.ms-average, average-sample.ms)
	}
	return average, deviation / n, float64(max(now-s.samples[0].at, 1)) / float64(n)
}

// latencyHistogram replies how the calls of each command are distributed over
// powers of two of time.
func latencyHistogram(c *Call) {
	var found []*Command
	add := func(cmd *Command) {
		if h := cmd.stats.histogram; h != nil && h.total > 0 && !slices.Contains(found, cmd) {
			found = append(found, cmd)
		}
	}
	if !c.More() {
		c.srv.table.each(add)
	}
	for c.More() {
		cmd := c.srv.table.named(c.Bytes())
		if cmd == nil {
			continue
		}
		add(cmd)
		for i := range cmd.subcommands {
			add(&cmd.subcommands[i])
		}
	}
	c.Reply.Map(len(found))
	for _, cmd := range found {
		h := cmd.stats.histogram
		c.Reply.BulkString(cmd.Name)
		c.Reply.Map(2)
		c.Reply.BulkString("calls")
		c.Reply.Int(int64(h.total))
		c.Reply.BulkString("histogram_usec")
		steps := h.cumulative()
		c.Reply.Map(len(steps))
		for _, step := range steps {
			c.Reply.Int(step.usec)
			c.Reply.Int(int64(step.count))
		}
	}
}

func latencyHelp(c *Call) {
	c.help("DOCTOR",
		"    Return a human readable latency analysis report.",
		"GRAPH <event>",
		"    Return an ASCII latency graph for the <event> class.",
		"HISTORY <event>",
		"    Return time-latency samples for the <event> class.",
		"LATEST",
		"    Return the latest latency samples for all events.",
		"RESET [<event> ...]",
		"    Reset latency data of one or more <event> classes.",
		"    (default: reset all data for all event classes)",
		"HISTOGRAM [COMMAND ...]",
		"    Return a cumulative distribution of latencies in the format of a histogram for the specified command names.",
		"    If no commands are specified then all histograms are replied.")
}

// histogram counts durations from 1 ns to a second in buckets that are at most a
// sixteenth of their value wide. It takes 4 KB, a sixth of Redis's, whose buckets
// are finer.
type histogram struct {
	total   uint64
	buckets [histogramBuckets]uint64
}

const (
	histogramSub     = 4 // 1<<4 buckets for each power of two
	histogramMax     = time.Second
	histogramBuckets = (31 - histogramSub) << histogramSub
)

func (h *histogram) add(d time.Duration) {
	h.total++
	h.buckets[bucketOfDuration(d)]++
}

func bucketOfDuration(d time.Duration) int { return bucketOf(uint64(min(max(d, 1), histogramMax))) }

func bucketOf(ns uint64) int {
	shift := max(bits.Len64(ns)-histogramSub-1, 0)
	return shift<<histogramSub + int(ns>>shift)
}

// bucketEnd returns the largest duration that belongs to a bucket.
func bucketEnd(i int) uint64 {
	shift := max(i>>histogramSub-1, 0)
	return (uint64(i-shift<<histogramSub)+1)<<shift - 1
}

// percentile returns the time in nanoseconds that p percent of the calls do not
// exceed.
func (h *histogram) percentile(p float64) uint64 {
	want := max(uint64(math.Ceil(p/100*float64(h.total))), 1)
	n := uint64(0)
	for i, count := range h.buckets {
		if n += count; n >= want {
			return bucketEnd(i)
		}
	}
	return bucketEnd(histogramBuckets - 1)
}

type histogramStep struct {
	usec  int64
	count uint64
}

// cumulative returns how many calls took up to 1, 2, 4, 8, 16, 33, 66 … µs (1024 ns
// and its doubles, in Redis's rounding), without the steps that add none.
func (h *histogram) cumulative() []histogramStep {
	var steps []histogramStep
	n, last, i := uint64(0), uint64(0), 0
	for limit := uint64(1024); last < h.total; limit *= 2 {
		for ; i < histogramBuckets && bucketEnd(i) <= limit; i++ {
			n += h.buckets[i]
		}
		if n > last {
			steps = append(steps, histogramStep{int64(limit+limit/128-1) / 1000, n})
			last = n
		}
	}
	return steps
}
