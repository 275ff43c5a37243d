package server

import (
	"bytes"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
)

// The batch fast path: a fast batch is a sequence of short commands in a pipeline, from
// a client without special modes. The checks that exec makes before each command
// (transaction, ACL, pause, cluster, …) are made once for the whole batch, because
// none of its commands can change their outcome. So is the reading of the clock,
// which is most of the remaining cost: it takes 45 ns where PING takes 20. All
// other commands, and all clients with a special mode, go through exec, which has
// the same effects.
//
// The time of a fast batch is divided evenly among its commands. The sums in INFO
// stay exact; differences of some microseconds between the commands of one pipeline
// are lost. Where the time of a single command matters (a slow log threshold below a
// millisecond, the latency monitor, MONITOR), there are no fast batches. A command
// with a large line or reply ends the batch: it is charged all time in excess of a
// microsecond for each of the others.

const (
	fastBatchLimit = 16
	// fastBatchBytes is the size from which a command line or a reply counts as large.
	fastBatchBytes = 2 << 10
	// fastBatchElements is how many elements a command may remove before it counts as
	// large.
	fastBatchElements = 32
	// fastBatchShare is the most that is charged to each other command of a fast batch
	// with a large one.
	fastBatchShare = time.Microsecond
	// fastBatchSlow is the lowest threshold of the slow log at which commands need not
	// be timed one by one.
	fastBatchSlow = 1000 // microseconds
)

// isQuick reports whether a command may be part of a fast batch: it takes constant or
// logarithmic time, apart from the cost that its reply or Call.large indicates, and
// accesses data only, not the state of its client or of the server.
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

// plain reports whether commands of s need none of dispatch's checks, and no
// observer needs them one by one.
func (s *Session) plain() bool {
	srv := s.srv
	cfg := &srv.config
	return !s.multi && s.user.all && s.replies == replyOn && s.cache == nil && !s.monitoring &&
		(s.authenticated || !srv.acl.loginRequired.Load()) &&
		(s.out.Version() == 3 || s.subscriptions() == 0) &&
		srv.cluster == nil && !srv.keeper.refuses() && !srv.lacksReplicas() &&
		srv.keeper.loading == nil && srv.pausedUntil == 0 && srv.nextExpiry > srv.keys.Now() &&
		len(srv.monitors) == 0 && cfg.latencyMonitorThreshold == 0 &&
		uint64(cfg.slowlogSlowerThan) >= fastBatchSlow && // -1 disables the log
		(cfg.maxmemory == 0 || !srv.lacksMemory()) // a fast batch can add little
}

// runFastBatch runs the commands at the beginning of batch that form a fast batch, and
// returns how many; 0 if the first one is for exec. It is called with the lock
// held, while no script lends it.
func (s *Session) runFastBatch(batch [][][]byte) (done int) {
	if !s.plain() {
		return 0
	}
	srv := s.srv
	u := &srv.scope
	c := &s.call
	var ran [fastBatchLimit]*Command
	if len(batch) >= 4 {
		s.prefetch(batch)
	}
	u.actor = s
	srv.keys.NoTouch = s.noTouch
	c.db, c.secret, c.counted, c.large = s.db, nil, false, false
	for done < min(len(batch), fastBatchLimit) && !c.large && len(u.effects) == 0 {
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
		c.removeEmpty()
		ran[done] = cmd
		done++
		if s.out.Over() {
			break // checkOutput closes it
		}
		out := s.out.Bytes()[mark:]
		if len(out) > 0 && out[0] == '-' {
			srv.countFailure(cmd, out)
		}
		if len(out) > fastBatchBytes || lineBytes(argv) > fastBatchBytes {
			c.large = true
		}
	}
	u.actor = nil
	if done > 0 {
		s.last = ran[done-1]
		srv.accountFastBatch(c, ran[:done])
		s.lastUsed = srv.at
		u.commit()
		s.checkOutput()
	}
	return done
}

// prefetch looks up the keys of the next commands together, if there are several, to
// overlap the cache misses.
func (s *Session) prefetch(batch [][][]byte) {
	var keys [keyspace.PrefetchKeys][]byte
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
		s.db.Prefetch(keys[:n])
	}
}

// lineBytes returns the total size of a command's arguments, or more than
// fastBatchBytes if there are many.
func lineBytes(argv [][]byte) (n int) {
	if len(argv) > 16 {
		return fastBatchBytes + 1
	}
	for _, a := range argv {
		n += len(a)
	}
	return n
}

// accountFastBatch records stats, slowlog and latency of the commands of a fast
// batch, as account does for one command. c is the Call of the last, which may be
// large.
func (srv *Server) accountFastBatch(c *Call, ran []*Command) {
	took := srv.since(srv.at)
	now := srv.at.Add(took)
	srv.at = now
	srv.commands += int64(len(ran))
	share := took / time.Duration(len(ran))
	last := share
	if c.large {
		share = min(share, fastBatchShare)
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
