package server

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// stats are the counters behind INFO. Those without a note are guarded by the
// server's lock.
type stats struct {
	commands       int64
	connections    int64
	expiredKeys    int64
	evictedKeys    int64
	memoryExceeded time.Duration // for how long maxmemory was exceeded
	expiredMembers int64
	expiryLag      histogram // from a deadline to its sweep
	keyspaceHits   int64     // up to the last reset
	keyspaceMisses int64
	sweepTime      time.Duration    // spent on removing keys past their deadline
	blockedClients int              // including postponed ones
	errors         map[string]int64 // by the first word of the error
	errorReplies   int64
	peakMemory     int64

	outputLimitDisconnections int64
	queryLimitDisconnections  atomic.Int64
	evictedClients            int64 // by maxmemory-clients

	// sampled are the counters as they were at instants at least sampleEvery apart,
	// the last one at index newest; see rates.
	sampled [sampleCount]sample
	newest  int

	input, output atomic.Int64 // bytes
	reads, writes atomic.Int64
	rejected      atomic.Int64 // connections
}

// commandStats are the counters of one command, guarded by the server's lock.
type commandStats struct {
	calls     int64
	time      time.Duration
	rejected  int64      // refused before they ran
	failed    int64      // replied an error
	histogram *histogram // nil before the first tracked call
}

// sample is the counters at one instant.
type sample struct {
	at                      time.Time
	commands, input, output int64
}

const (
	sampleCount = 16
	sampleEvery = 100 * time.Millisecond
)

func (srv *Server) countInput(n int) {
	srv.input.Add(int64(n))
	srv.reads.Add(1)
}

func (srv *Server) countOutput(n int) {
	srv.output.Add(int64(n))
	srv.writes.Add(1)
}

func (srv *Server) refused() { srv.rejected.Add(1) }

// recordCall records stats, slowlog and latency of a call that began at start and
// whose reply begins at mark. It reads the clock once; the next command begins
// then.
func (srv *Server) recordCall(c *Call, mark int, start time.Time) {
	took := srv.since(start)
	now := start.Add(took)
	srv.at = now // for the time that commands take; the clock of the commit scope stands still
	if len(srv.monitors) > 0 {
		srv.monitor(c, now)
	}
	if w := c.sess.blocked; w != nil {
		w.spent += took
		return // counted when it ends
	}
	event := "command"
	if c.cmd.spec.Flags().Has(protocol.Fast) {
		event = "fast-command"
	}
	srv.count(c, mark, now, took, event)
}

// recordWaiter records stats, slowlog and latency of a call that has waited and
// whose final attempt began at start. The waiting itself does not count.
func (srv *Server) recordWaiter(w *Waiter, mark int, start time.Time) {
	took := srv.since(start)
	srv.at = start.Add(took)
	srv.count(&w.sess.call, mark, srv.at, took+w.spent, "command-unblocking")
}

func (srv *Server) count(c *Call, mark int, now time.Time, took time.Duration, event string) {
	srv.commands++
	if out := c.Reply.Bytes(); len(out) > mark && out[mark] == '-' {
		if c.counted {
			c.cmd.stats.failed++
		} else {
			srv.countFailure(c.cmd, out[mark:])
		}
	}
	c.cmd.stats.ran(took, bucketOfDuration(took), srv.config.latencyTracking)
	if limit := srv.config.slowlogSlowerThan; limit >= 0 && took.Microseconds() >= limit {
		srv.logSlow(c, now, took)
	}
	if limit := srv.config.latencyMonitorThreshold; limit > 0 && took.Milliseconds() >= limit {
		srv.latency.add(event, now, took)
	}
	if now.Sub(srv.sampled[srv.newest].at) >= sampleEvery {
		srv.sample(now)
	}
}

// ran counts a call of a given duration. It adds to the histogram if tracked is
// true.
func (st *commandStats) ran(took time.Duration, bucket int, tracked bool) {
	st.calls++
	st.time += took
	if tracked {
		if st.histogram == nil {
			st.histogram = new(histogram)
		}
		st.histogram.total++
		st.histogram.buckets[bucket]++
	}
}

// countFailure counts a call whose reply is an error.
func (srv *Server) countFailure(cmd *Command, reply []byte) {
	cmd.stats.failed++
	line, _, _ := bytes.Cut(reply[1:], []byte{'\r'})
	srv.countError(protocol.View(line))
}

// maxErrorCodes bounds the number of error codes that are counted separately:
// scripts can make up any number.
const maxErrorCodes = 128

// countError counts an error reply by its code.
func (srv *Server) countError(msg string) {
	srv.errorReplies++
	code := []byte(msg)
	if i := bytes.IndexByte(code, ' '); i >= 0 {
		code = code[:i]
	}
	if srv.errors == nil {
		srv.errors = map[string]int64{}
	}
	if _, known := srv.errors[string(code)]; !known && len(srv.errors) >= maxErrorCodes {
		code = []byte("ERRORSTATS_OVERFLOW")
	}
	srv.errors[string(code)]++
}

// sample records the counters, and the peak of memory in use.
func (srv *Server) sample(now time.Time) {
	srv.newest = (srv.newest + 1) % sampleCount
	srv.sampled[srv.newest] = sample{now, srv.commands, srv.input.Load(), srv.output.Load()}
	srv.peakMemory = max(srv.peakMemory, srv.inUse())
}

// rates returns commands, bytes of input and bytes of output per second over about
// the last 1.6 s, as far back as the samples reach.
func (srv *Server) rates() (commands, input, output float64) {
	now := srv.clock()
	if now.Sub(srv.sampled[srv.newest].at) >= sampleEvery {
		srv.sample(now)
	}
	// The newest sample that is old enough, or the oldest there is.
	const span = sampleCount * sampleEvery
	from := srv.sampled[srv.newest]
	for i := range sampleCount {
		s := &srv.sampled[(srv.newest+sampleCount-i)%sampleCount]
		if s.at.IsZero() {
			break
		}
		from = *s
		if now.Sub(s.at) >= span {
			break
		}
	}
	seconds := now.Sub(from.at).Seconds()
	if seconds <= 0 {
		return 0, 0, 0
	}
	// A reset may have set the counters back.
	per := func(n int64) float64 { return max(0, float64(n)/seconds) }
	return per(srv.commands - from.commands), per(srv.input.Load() - from.input), per(srv.output.Load() - from.output)
}

// hits returns how many reads have found their key since the last reset.
func (srv *Server) hits() int64 { return srv.keys.Hits() - srv.keyspaceHits }

// resetStats sets the counters that CONFIG RESETSTAT resets to zero.
func (srv *Server) resetStats() {
	s := &srv.stats
	s.evictedKeys, s.memoryExceeded = 0, 0
	if m := &srv.memoryLimit; !m.exceededSince.IsZero() {
		m.exceededSince = srv.at
	}
	s.commands, s.connections, s.expiredKeys, s.keyspaceMisses, s.sweepTime = 0, 0, 0, 0, 0
	s.keyspaceHits = srv.keys.Hits()
	s.errors, s.errorReplies, s.outputLimitDisconnections, s.evictedClients = nil, 0, 0, 0
	s.queryLimitDisconnections.Store(0)
	s.peakMemory = srv.inUse()
	srv.freeing.objects = 0
	s.input.Store(0)
	s.output.Store(0)
	s.reads.Store(0)
	s.writes.Store(0)
	s.rejected.Store(0)
	s.sampled, s.newest = [sampleCount]sample{{at: srv.at}}, 0
	for _, c := range srv.table.rows {
		c.resetStats()
	}
}

func (c *Command) resetStats() {
	c.stats = commandStats{}
	for i := range c.subcommands {
		c.subcommands[i].resetStats()
	}
}

// each calls f for every command and subcommand, in the order of the table.
func (t *table) each(f func(*Command)) {
	for _, c := range t.rows {
		f(c)
		for i := range c.subcommands {
			f(&c.subcommands[i])
		}
	}
}
