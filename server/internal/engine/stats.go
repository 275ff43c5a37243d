package engine

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/engine/metrics"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// stats are the counters behind INFO. Those without a note are guarded by the
// server's lock.
type stats struct {
	Slow, LargeRequests, LargeReplies CommandLog
	Latency                           metrics.LatencyLog

	Commands       int64
	ApartCommands  int64 // in no other counter; see Session.countsApart
	Changes        int64 // since the server started
	Uncounted      int64 // of Changes, those that Redis's rdb_changes_since_last_save omits
	BlockedClients int   // including postponed ones
	keyStats
	errorStats
	connectionStats
	turnStats
	metering
	rates
}

// keyStats are the counters of keys and their memory.
type keyStats struct {
	ExpiredKeys    int64
	ExpiredMembers int64
	SweptKeys      int64             // the part of ExpiredKeys that no command has removed
	SweptMembers   int64             // of ExpiredMembers
	ExpiryLag      metrics.Histogram // from a deadline to its sweep
	SweepTime      time.Duration     // spent on removing keys past their deadline
	EvictedKeys    int64
	memoryExceeded time.Duration // for how long maxmemory was exceeded
	PeakMemory     int64
	PeakedAt       time.Time // when PeakMemory was reached
	keyspaceHits   int64     // up to the last reset
	KeyspaceMisses int64
	Compaction     keyspace.Moves
	CompactionTime time.Duration // of compactions that are done
}

// errorStats are the counters of error replies.
type errorStats struct {
	Errors           map[string]int64 // by the first word of the error
	errorsDisabled   bool             // Errors counts no more, until CONFIG RESETSTAT
	ErrorReplies     int64
	UnexpectedErrors int64 // to commands of the primary, or of replicas
	ApartErrors      int64 // in no other counter; see Session.countsApart
}

// connectionStats are the counters of connections and their bytes.
type connectionStats struct {
	Connections   int64
	Rejected      atomic.Int64
	Input, Output atomic.Int64 // bytes
	Reads, Writes atomic.Int64

	OutputLimitDisconnections int64
	QueryLimitDisconnections  atomic.Int64
	EvictedClients            int64 // by maxmemory-clients
}

// turnStats are the counters of turns, which INFO shows as those of Redis's event loop.
type turnStats struct {
	Turns       int64
	TurnTime    time.Duration // from the beginning of each turn to the end of its last command
	CommandTime time.Duration // the part of it in commands
}

// Turned is the turns over some time.
type Turned struct {
	PerSecond float64
	Mean      time.Duration // of one turn
}

// rates are the counters as they were at instants at least sampleEvery apart, the last one
// at index newest; see Rates.
type rates struct {
	sampled [sampleCount]sample
	newest  int
}

// commandStats are the counters of one command, guarded by the server's lock.
type commandStats struct {
	Calls     int64
	Time      time.Duration
	Rejected  int64              // refused before they ran
	Failed    int64              // replied an error
	Histogram *metrics.Histogram // nil before the first tracked call
}

// sample is the counters at one instant.
type sample struct {
	at                      time.Time
	commands, input, output int64
	turns                   int64
	turnTime                time.Duration
}

const (
	sampleCount = 16
	sampleEvery = 100 * time.Millisecond
)

// recordCall records stats, slowlog and latency of a call that began at start. It
// reads the clock once; the next command begins then.
func (srv *Engine) recordCall(c *Call, start time.Time) {
	took := srv.since(start)
	srv.Turn.At = start.Add(took) // for the time that commands take; the clock of the commit scope stands still
	if len(srv.Clients.Monitors) > 0 {
		srv.Clients.monitor(c, srv.Turn.At)
	}
	if w := c.Session.Stall.Blocked; w != nil {
		w.spent += took
		return // recorded when it ends
	}
	event := "command"
	if c.Command.Spec.Flags().Has(protocol.Fast) {
		event = "fast-command"
	}
	srv.Stats.record(c, took, event, srv.Turn.At, &srv.Config)
}

// recordWaiter records stats, slowlog and latency of a call that has waited and
// whose final attempt began at start. The waiting itself does not count.
func (srv *Engine) recordWaiter(w *Waiter, start time.Time) {
	took := srv.since(start)
	srv.Turn.At = start.Add(took)
	srv.Stats.record(&w.sess.Call, took+w.spent, "command-unblocking", srv.Turn.At, &srv.Config)
}

// record records counters, slow log and latency of a call that has ended now. event is the
// event of the latency monitor.
func (st *stats) record(c *Call, took time.Duration, event string, now time.Time, cfg *config.Settings) {
	c.Session.Activity.ran++
	if c.Session.Peer.Apart && c.Session.Peer.countsApart(c.Command) {
		st.ApartCommands++
		return
	}
	st.Commands++
	st.CommandTime += took
	c.Command.Stats.ran(took, metrics.Bucket(took), cfg.LatencyTracking)
	st.Slow.note(c, now, took.Microseconds(), cfg.SlowlogSlowerThan, cfg.SlowlogMaxLen)
	if cfg.LogRequestsFrom >= 0 && !c.OfScript {
		st.LargeRequests.note(c, now, protocol.RequestSize(c.Argv), cfg.LogRequestsFrom, cfg.LargeRequestsMaxLen)
	}
	st.LargeReplies.note(c, now, int64(c.Reply.Len()-c.mark), cfg.LogRepliesFrom, cfg.LargeRepliesMaxLen)
	if limit := cfg.LatencyMonitorThreshold; limit > 0 && took.Milliseconds() >= limit {
		st.Latency.Add(event, now, took)
	}
}

// ran counts a call of a given duration. It adds to the histogram if tracked is
// true.
func (st *commandStats) ran(took time.Duration, bucket int, tracked bool) {
	st.Calls++
	st.Time += took
	if tracked {
		if st.Histogram == nil {
			st.Histogram = new(metrics.Histogram)
		}
		st.Histogram.Total++
		st.Histogram.Buckets[bucket]++
	}
}

// countFailure counts a call whose reply, which begins at mark, is an error, in calls: those of
// its command that failed, or that were rejected.
func (c *Call) countFailure(mark int, calls *int64) {
	if c.Session.Peer.countsApart(c.Command) {
		c.Engine.Stats.ApartErrors++
		return
	}
	*calls++
	if !c.Counted {
		line, _, _ := bytes.Cut(c.Reply.Bytes()[mark+1:], []byte{'\r'})
		c.Engine.countError(protocol.View(line), c.Invented)
	}
}

// apartKey is the key of a context in which commands are counted apart.
type apartKey struct{}

// Apart returns a context for Do, and for connections in memory, that makes
// Session.countsApart true.
func Apart(ctx context.Context) context.Context { return context.WithValue(ctx, apartKey{}, true) }

// IsApart reports whether a context is one of Apart.
func IsApart(ctx context.Context) bool { return ctx.Value(apartKey{}) != nil }

// userKey is the key of a context that names the user of a connection in memory.
type userKey struct{}

// WithUser returns a context for connections in memory that makes user their user.
func WithUser(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, userKey{}, user)
}

// UserOf returns the user that a context of WithUser names, or "".
func UserOf(ctx context.Context) string {
	user, _ := ctx.Value(userKey{}).(string)
	return user
}

// countsApart reports whether a command, nil for one that is not known, is left out of the
// statistics, the slow log, the latency monitor and the access times: a program that shows
// the state of the server, as the console does, must not change it. A command that writes or
// runs a script counts as any other.
func (p *Peer) countsApart(cmd *Command) bool {
	return p.Apart && (cmd == nil || !cmd.Spec.Flags().Has(protocol.Write|protocol.MayReplicate))
}

// keepAccesses sets the numbers of hits and misses back to earlier ones.
func (srv *Engine) keepAccesses(hits, misses int64) {
	srv.Stats.keyspaceHits += max(0, srv.Hits()-hits) // below 0 after CONFIG RESETSTAT
	srv.Stats.KeyspaceMisses = min(srv.Stats.KeyspaceMisses, misses)
}

// countError counts an error reply of a command that has not run, or nil.
func (s *Session) countError(cmd *Command, msg string) {
	if s.Peer.countsApart(cmd) {
		s.Engine.Stats.ApartErrors++
		return
	}
	s.Engine.countError(msg, false)
}

// maxErrorCodes is the number of error codes from which on none is counted. In the dialect valkey
// those that scripts invent are counted together.
const maxErrorCodes = 128

// countError counts an error reply by its code. invented says that it is one of a script.
func (srv *Engine) countError(msg string, invented bool) {
	srv.Stats.ErrorReplies++
	if srv.Stats.errorsDisabled {
		return
	}
	code := []byte(msg)
	if i := bytes.IndexByte(code, ' '); i >= 0 {
		code = code[:i]
	}
	if srv.Stats.Errors == nil {
		srv.Stats.Errors = map[string]int64{}
	}
	if _, known := srv.Stats.Errors[string(code)]; !known && len(srv.Stats.Errors) >= maxErrorCodes {
		switch {
		case !srv.Config.Valkey():
			srv.Log.Warn("errors are counted by their codes no longer, until CONFIG RESETSTAT: scripts make up codes", "codes", len(srv.Stats.Errors))
			srv.Stats.Errors, srv.Stats.errorsDisabled = map[string]int64{"ERRORSTATS_DISABLED": 1}, true
			return
		case invented:
			code = []byte("ERRORSTATS_OVERFLOW")
		}
	}
	srv.Stats.Errors[string(code)]++
}

// sampleIfDue records the counters, and the peak of memory in use, unless the newest sample is
// younger than sampleEvery.
func (srv *Engine) sampleIfDue(now time.Time) {
	if st := &srv.Stats; now.Sub(st.sampled[st.newest].at) >= sampleEvery {
		st.sample(now)
		st.NotePeak(srv.InUse(), srv.Turn.At)
	}
}

// sample records the counters.
func (st *stats) sample(now time.Time) {
	st.newest = (st.newest + 1) % sampleCount
	st.sampled[st.newest] = sample{now, st.Commands, st.Input.Load(), st.Output.Load(), st.Turns, st.TurnTime}
}

// NotePeak records that so many bytes of memory are in use now.
func (st *stats) NotePeak(used int64, now time.Time) {
	if used > st.PeakMemory {
		st.PeakMemory, st.PeakedAt = used, now
	}
}

// Rates returns commands, bytes of input and bytes of output per second, and turns, over
// about the last 1.6 s, as far back as the samples reach.
func (srv *Engine) Rates() (commands, input, output float64, turned Turned) {
	now := srv.Clock()
	srv.sampleIfDue(now)
	return srv.Stats.perSecond(now)
}

// perSecond is Rates without a new sample.
func (st *stats) perSecond(now time.Time) (commands, input, output float64, turned Turned) {
	// The newest sample that is old enough, or the oldest there is.
	const span = sampleCount * sampleEvery
	from := st.sampled[st.newest]
	for i := range sampleCount {
		s := &st.sampled[(st.newest+sampleCount-i)%sampleCount]
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
		return 0, 0, 0, Turned{}
	}
	// A reset may have set the counters back.
	per := func(n int64) float64 { return max(0, float64(n)/seconds) }
	turned.PerSecond = per(st.Turns - from.turns)
	if n := st.Turns - from.turns; n > 0 {
		turned.Mean = max(0, (st.TurnTime-from.turnTime)/time.Duration(n))
	}
	return per(st.Commands - from.commands), per(st.Input.Load() - from.input), per(st.Output.Load() - from.output), turned
}

// Hits returns how many reads have found their key since the last reset.
func (srv *Engine) Hits() int64 { return srv.Keys.Hits() - srv.Stats.keyspaceHits }

// ResetStats sets the counters that CONFIG RESETSTAT resets to zero.
func (srv *Engine) ResetStats() {
	s := &srv.Stats
	s.EvictedKeys, s.memoryExceeded = 0, 0
	if m := &srv.Memory; !m.exceededSince.IsZero() {
		m.exceededSince = srv.Turn.At
	}
	s.Commands, s.Connections, s.KeyspaceMisses, s.SweepTime = 0, 0, 0, 0
	s.ExpiredKeys, s.ExpiredMembers, s.SweptKeys, s.SweptMembers = 0, 0, 0, 0
	s.keyspaceHits = srv.Keys.Hits()
	s.Compaction, s.CompactionTime = keyspace.Moves{}, 0
	s.UnexpectedErrors, s.ApartErrors, s.ApartCommands = 0, 0, 0
	s.turnStats = turnStats{}
	srv.Queries.queryStats = queryStats{Subscriptions: srv.Queries.Subscriptions}
	srv.Scripting.Cache.ResetEvicted()
	if srv.Stats.SlotStats != nil {
		srv.Stats.SlotStats.Reset()
	}
	s.Errors, s.errorsDisabled, s.ErrorReplies = nil, false, 0
	s.OutputLimitDisconnections, s.EvictedClients = 0, 0
	s.QueryLimitDisconnections.Store(0)
	s.PeakMemory, s.PeakedAt = srv.InUse(), srv.Turn.At
	srv.Freeing.Objects = 0
	s.Input.Store(0)
	s.Output.Store(0)
	s.Reads.Store(0)
	s.Writes.Store(0)
	s.Rejected.Store(0)
	s.sampled, s.newest = [sampleCount]sample{{at: srv.Turn.At}}, 0
	for _, c := range srv.Table.Rows {
		c.resetStats()
	}
}

func (c *Command) resetStats() {
	c.Stats = commandStats{}
	for i := range c.Subcommands {
		c.Subcommands[i].resetStats()
	}
}

// Each calls f for every command and subcommand, in the order of the table.
func (t *table) Each(f func(*Command)) {
	for _, c := range t.Rows {
		f(c)
		for i := range c.Subcommands {
			f(&c.Subcommands[i])
		}
	}
}
