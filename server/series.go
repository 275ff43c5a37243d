package server

import (
	"bytes"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
)

// A series is the straight line through a pipeline: commands that take next to no
// time, from a client for whom nothing unusual is switched on, one after the other.
// What exec asks before each command (is there a transaction, an ACL, a pause, a
// cluster, …) is asked once for all of them, because none of them could change the
// answer; and so is the clock, which is most of what is left: reading it takes 45 ns
// where PING takes 20. All other commands, and all clients for whom something is on,
// take the long way through exec, which does the same.
//
// The time of a series is shared out among its commands evenly. INFO's sums stay
// what they are; what is lost is how single commands of one pipeline differ within
// some microseconds. Where it matters who took how long (a slow log of less than a
// millisecond, the latency monitor, MONITOR), there is no series. And a command whose
// line or reply turns out to be large ends the series: what is more than a
// microsecond for each of the others is its own.

const (
	seriesLimit = 16
	// seriesBytes is how large a command line or a reply may be.
	seriesBytes = 2 << 10
	// seriesElements is how many elements a command may remove.
	seriesElements = 32
	// seriesShare is what a command takes beside one that is large.
	seriesShare = time.Microsecond
	// seriesSlow is below which a limit of the slow log wants every command timed.
	seriesSlow = 1000 // microseconds
)

// isQuick reports whether a command may be part of a series: it takes constant or
// logarithmic time, but for what its reply or its Call's large tells, and touches data
// only, not the state of its client or of the server.
func (c *Command) isQuick() bool {
	if c.run == nil || c.byArg != nil || c.spec.Flags().Has(protocol.NoScript|protocol.Blocking|protocol.Protected|protocol.Admin) {
		return false
	}
	switch c.Name {
	case "ping", "echo", "publish", "set", "setex", "psetex", "getrange", "hgetall", "hkeys", "hvals", "smembers",
		"zrange", "zrangebylex", "zrangebyscore", "zrevrange", "zrevrangebylex", "zrevrangebyscore",
		"zremrangebylex", "zremrangebyrank", "zremrangebyscore":
		return true
	case "touch", "move":
		return false
	}
	switch c.Group {
	case "string", "hash", "list", "set", "sorted-set", "stream", "bitmap", "hyperloglog", "generic":
		return c.spec.Flags().Has(protocol.Fast)
	}
	return false
}

// plain reports whether commands of s need none of the questions that dispatch
// asks, and nobody wants to know of them one by one.
func (s *Session) plain() bool {
	srv := s.srv
	cfg := &srv.config
	return !s.multi && s.user.all && s.replies == replyOn && s.cache == nil && !s.monitoring &&
		(s.authenticated || !srv.acl.loginRequired.Load()) &&
		(s.out.Version() == 3 || s.subscriptions() == 0) &&
		srv.cluster == nil && !srv.keeper.refuses() && !srv.lacksReplicas() &&
		srv.keeper.loading == nil && srv.pausedUntil == 0 && srv.nextExpiry > srv.keys.Now() &&
		len(srv.monitors) == 0 && cfg.latencyMonitorThreshold == 0 &&
		uint64(cfg.slowlogSlowerThan) >= seriesSlow && // -1 is never
		(cfg.maxmemory == 0 || !srv.lacksMemory()) // what a series can add is little
}

// series runs the commands with which batch begins, as many as make a series, and
// returns how many: none if that is for exec. The lock is held, and the server is
// not busy.
func (s *Session) series(batch [][][]byte) (done int) {
	if !s.plain() {
		return 0
	}
	srv := s.srv
	u := &srv.unit
	c := &s.call
	var ran [seriesLimit]*Command
	if len(batch) >= 4 {
		s.warm(batch)
	}
	u.actor = s
	srv.keys.NoTouch = s.noTouch
	c.db, c.secret, c.counted, c.large = s.db, nil, false, false
	for done < min(len(batch), seriesLimit) && !c.large && len(u.effects) == 0 {
		argv := batch[done]
		cmd := srv.table.index.find(argv[0])
		if cmd == nil || !cmd.quick || cmd.Arity > 0 && len(argv) != cmd.Arity || len(argv) < -cmd.Arity {
			break
		}
		mark := s.out.Len()
		u.mark = mark
		c.Args = protocol.NewArgs(argv[1:])
		c.cmd, c.argv = cmd, argv
		cmd.run(c)
		c.settle()
		ran[done] = cmd
		done++
		if s.out.Over() {
			break // checkOutput closes it
		}
		out := s.out.Bytes()[mark:]
		if len(out) > 0 && out[0] == '-' {
			srv.countFailure(cmd, out)
		}
		if len(out) > seriesBytes || lineBytes(argv) > seriesBytes {
			c.large = true
		}
	}
	u.actor = nil
	if done > 0 {
		s.last = ran[done-1]
		srv.accountSeries(c, ran[:done])
		s.lastUsed = srv.at
		u.commit()
		s.checkOutput()
	}
	return done
}

// warm has the keys of the commands that come next looked for all at once, if they
// are several.
func (s *Session) warm(batch [][][]byte) {
	var keys [keyspace.WarmKeys][]byte
	n := 0
	var last []byte
	for _, argv := range batch[:min(len(batch), len(keys))] {
		if len(argv) > 1 && !bytes.Equal(argv[1], last) {
			last = argv[1]
			keys[n] = last
			n++
		}
	}
	if n > 2 {
		s.db.Warm(keys[:n])
	}
}

// lineBytes returns how large the arguments of a command are in all, or more than
// seriesBytes if there are many.
func lineBytes(argv [][]byte) (n int) {
	if len(argv) > 16 {
		return seriesBytes + 1
	}
	for _, a := range argv {
		n += len(a)
	}
	return n
}

// accountSeries closes the books on the commands of a series, as account does on
// one. c is still that of the last, which was large, or not.
func (srv *Server) accountSeries(c *Call, ran []*Command) {
	took := srv.since(srv.at)
	now := srv.at.Add(took)
	srv.at = now
	srv.commands += int64(len(ran))
	share := took / time.Duration(len(ran))
	last := share
	if c.large {
		share = min(share, seriesShare)
		last = took - share*time.Duration(len(ran)-1)
	}
	tracked := srv.config.latencyTracking
	bucket := bucketOfDuration(share)
	for _, cmd := range ran[:len(ran)-1] {
		cmd.stats.ran(share, bucket, tracked)
	}
	c.cmd.stats.ran(last, bucketOfDuration(last), tracked)
	if limit := srv.config.slowlogSlowerThan; limit >= 0 && last.Microseconds() >= limit {
		srv.logSlow(c, now, last)
	}
	if now.Sub(srv.sampled[srv.newest].at) >= sampleEvery {
		srv.sample(now)
	}
}
