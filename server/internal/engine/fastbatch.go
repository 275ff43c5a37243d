package engine

import (
	"bytes"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/metrics"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/zset"
)

// The batch fast path: a fast batch is a sequence of short commands in a pipeline, from
// a client without special modes. The checks that Exec makes before each command
// (transaction, ACL, pause, cluster, …) are evaluated once for the whole batch, because
// none of its commands can change their outcome (checks.go). So is the reading of the clock,
// which is most of the remaining cost: it takes 45 ns where PING takes 20. All
// other commands, and all clients with a special mode, go through Exec, which has
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
	// FastBatchElements is how many elements a command may remove before it counts as
	// large.
	FastBatchElements = 32
	// prefetchBytes is the largest size of a member or field that is prefetched.
	prefetchBytes = 256
	// fastBatchShare is the most that is charged to each other command of a fast batch
	// with a large one.
	fastBatchShare = time.Microsecond
	// fastBatchSlow is the lowest threshold of the slow log at which commands need not
	// be timed one by one.
	fastBatchSlow = 1000 // microseconds
)

// Batching says whether a command may be part of a fast batch.
type Batching uint8

// A command with the flag fast may be part of a fast batch, unless its row says
// BatchNever; a command without the flag, only if its row says BatchAlways.
const (
	BatchIfFast Batching = iota
	BatchAlways
	BatchNever
)

// isQuick reports whether a command may be part of a fast batch: it takes constant or
// logarithmic time, apart from the cost that its reply or Call.Large indicates, and
// accesses data only, not the state of its client or of the server.
func (c *Command) isQuick() bool {
	if c.Run == nil || c.ByArg != nil || c.Spec.Flags().Has(protocol.NoScript|protocol.Blocking|protocol.Admin) {
		return false
	}
	switch c.Batching {
	case BatchAlways:
		return true
	case BatchNever:
		return false
	}
	switch c.Group {
	case "string", "hash", "list", "set", "sorted-set", "stream", "bitmap", "hyperloglog", "generic":
		return c.Spec.Flags().Has(protocol.Fast)
	}
	return false
}

// runFastBatch runs the commands at the beginning of batch that form a fast batch, and
// returns how many; 0 if the first one is for Exec. It is called with the lock
// held, while no script lends it.
func (s *Session) runFastBatch(batch [][][]byte) (done int) {
	srv := s.Engine
	u := &srv.Turn.Scope
	c := &s.Call
	var ran [fastBatchLimit]*Command
	var name []byte
	var cmd *Command
	c.Large = false
	for done < min(len(batch), fastBatchLimit) && !c.Large && len(u.effects) == 0 {
		argv := batch[done]
		if done == 0 || !bytes.Equal(argv[0], name) { // names often repeat, and comparing them is cheaper
			name = argv[0]
			cmd = srv.Table.Index.Find(name)
		}
		if cmd == nil || !cmd.quick || !cmd.arityOK(len(argv)) {
			break
		}
		if done == 0 {
			if s.Peer.Apart || !s.plain() {
				return 0
			}
			if len(batch) >= 4 {
				s.prefetch(cmd, batch)
			}
			u.actor = s
		}
		mark := s.Out.Len()
		u.mark = mark
		c.execute(cmd, argv, 1, s.DB, mark)
		ran[done] = cmd
		done++
		if s.Out.Over() {
			break // checkOutput closes it
		}
		if s.Out.Len()-mark > fastBatchBytes || lineBytes(argv) > fastBatchBytes {
			c.Large = true
		}
	}
	u.actor = nil
	if done > 0 {
		s.Activity.last = ran[done-1]
		srv.accountFastBatch(c, ran[:done])
		s.Activity.lastUsed = srv.Turn.At
		u.Commit()
		s.checkOutput()
	}
	return done
}

// prefetch looks up the keys of the next commands together, if there are several, to
// overlap the cache misses; or the elements of the key of cmd, the first command, if all
// others are like it.
func (s *Session) prefetch(cmd *Command, batch [][][]byte) {
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
		s.DB.Prefetch(keys[:n])
	}
	if n > 1 || cmd.Element == 0 {
		return
	}
	n = 0
	for _, argv := range batch[:min(len(batch), len(keys))] {
		if len(argv) > cmd.Element && len(argv[cmd.Element]) <= prefetchBytes && bytes.Equal(argv[0], batch[0][0]) {
			keys[n] = argv[cmd.Element]
			n++
		}
	}
	s.prefetchElements(last, keys[:n])
}

// prefetchElements looks up members or fields of the value of a key together.
func (s *Session) prefetchElements(key []byte, elements [][]byte) {
	e := s.DB.Stored(key)
	if e == nil {
		return
	}
	var texts [zset.Batch]string
	some := texts[:min(len(elements), len(texts))]
	for i := range some {
		some[i] = protocol.View(elements[i])
	}
	read := &s.Engine.prefetched
	switch v := e.Value().(type) {
	case *keyspace.Set:
		*read = v.Table().Prefetch(some)
	case *keyspace.Hash:
		*read = v.Table().Prefetch(some)
	case *zset.Set:
		*read = v.Internal().Prefetch(some)
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

// accountFastBatch records the commands of a fast batch, as recordCall does for one
// command. c is the Call of the last, which may be large.
func (srv *Engine) accountFastBatch(c *Call, ran []*Command) {
	took := srv.since(srv.Turn.At)
	srv.Turn.At = srv.Turn.At.Add(took)
	others := ran[:len(ran)-1]
	share := took / time.Duration(len(ran))
	last := share
	if c.Large {
		share = min(share, fastBatchShare)
		last = took - share*time.Duration(len(others))
	}
	srv.Stats.Commands += int64(len(others))
	srv.Stats.CommandTime += took - last
	c.Session.Activity.ran += int64(len(others))
	bucket := metrics.Bucket(share)
	for _, cmd := range others {
		cmd.Stats.ran(share, bucket, srv.Config.LatencyTracking)
	}
	srv.Stats.record(c, last, "", srv.Turn.At, &srv.Config) // no latency event: the latency monitor is off
}
