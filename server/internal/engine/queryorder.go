package engine

import (
	"math"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/zset"
)

// Live queries of one sorted set.
//
// A handler that reads the elements of a range of scores only, such as the ten highest ones,
// says so (Call.ReadsScores). The set keeps the range of the scores that changes touch
// (zset.Reach), and a pass leaves out the queries which read no score of it: a change far below the
// ten highest costs two comparisons. A change that touches no element of the tracked set, such as
// EXPIRE or another value of the key, may be one of anything.
//
// Queries for the rank of a member, of which a waiting list has one per user, are read in the order
// of the set, some hundred at once (zset.Set.Places).

// scoreReads tells the queries of a key apart by the scores that they read.
type scoreReads struct {
	since   *zset.Reach // the scores that have changed since the pass began; it tracks the set at the key
	counted uint64      // since.Changes at the latest mark
	any     bool        // there was a change since then that may be one of anything
	pass    zset.Reach  // the scores that had changed when the pass began
	passAny bool
}

// mark records that the key has changed: in any way if that did not extend the range.
func (o *scoreReads) mark() {
	o.any = o.any || o.since.Changes == o.counted
	o.counted = o.since.Changes
}

// begin begins a pass. set is the one at the key, or nil.
func (o *scoreReads) begin(set *zset.Set) {
	o.pass, o.passAny = *o.since, o.any || set == nil || set.Tracked() != o.since
	o.any, o.since.Min, o.since.Max = false, math.Inf(1), math.Inf(-1)
}

// spares reports whether no change before the pass touches what a query reads.
func (o *scoreReads) spares(q *query) bool {
	return o != nil && !o.passAny && (o.pass.Min > q.max || o.pass.Max < q.min)
}

// ReadsScores tells the live query that is evaluated that its reply depends only on those elements
// of its key, a sorted set, that have scores from lo to hi.
func (c *Call) ReadsScores(lo, hi float64) {
	if c.Observing {
		c.Engine.Queries.min, c.Engine.Queries.max = lo, hi
	}
}

// readScores notes the scores that the evaluation of a query has read. If part, it was for some of
// the subscribers, and the others have the reply of an earlier one.
func (srv *Engine) readScores(q *query, part bool) {
	qs := &srv.Queries
	lo, hi := qs.min, qs.max
	if len(q.keys) != 1 || q.moving || q.cmd.ScriptFlags != nil || math.IsInf(lo, -1) && math.IsInf(hi, 1) || !srv.trackOrder(q.keys[0].key) {
		lo, hi = math.Inf(-1), math.Inf(1)
	}
	if part {
		lo, hi = min(lo, q.min), max(hi, q.max)
	}
	q.min, q.max = lo, hi
}

// trackOrder makes changes of the sorted set at a key extend the key's range. It returns false if
// there is no set, or a small one, of which every change counts.
func (srv *Engine) trackOrder(key *queriedKey) bool {
	set := srv.sortedSetAt(key)
	if set == nil {
		return false
	}
	if o := key.scores; o != nil && set.Tracked() == o.since {
		return true
	}
	reach := zset.NoReach() // another one, as the set before may be at another key
	if !set.Track(&reach) {
		return false
	}
	key.scores = &scoreReads{since: &reach, any: true, passAny: true}
	return true
}

// sortedSetAt returns the sorted set at a key, or nil.
func (srv *Engine) sortedSetAt(key *queriedKey) *zset.Set {
	e := srv.Keys.DB(key.Db).Peek(protocol.BytesOf(key.Key))
	if e == nil {
		return nil
	}
	set, _ := e.Value().(*zset.Set)
	return set
}

// rankQueries is how many queries for ranks are read at once.
const rankQueries = 256

// ranks evaluates queries of a key for the rank of a member.
func (r *queryRound) ranks(key *queriedKey, list []*query) {
	if len(list) == 0 {
		return
	}
	srv, qs := r.srv, r.qs
	set := srv.sortedSetAt(key)
	if set == nil || set.Deadlines() != nil || srv.Stale() || srv.Forwarding.forwarder != nil { // a member may be due
		for _, q := range list {
			r.update(q)
		}
		return
	}
	var members [rankQueries]string
	var places [rankQueries]zset.Place
	due := list[:0]
	for _, q := range list {
		if r.postpone(q) {
			continue
		}
		members[len(due)] = q.name[q.member:]
		due = append(due, q)
	}
	if len(due) == 0 {
		return
	}
	set.Places(members[:len(due)], places[:])
	size, tracked, alarm := set.Len(), srv.trackOrder(key), srv.changesAt(due[0], nil)
	for i, q := range due {
		if len(q.subscribers) == 0 {
			continue // a message before has closed the last one
		}
		q.min, q.max = math.Inf(-1), math.Inf(1)
		reply := append(qs.line[:0], "_\r\n"...)
		if at := places[i]; at.Rank >= 0 {
			rank := at.Rank
			switch {
			case q.cmd.Ranks < 0:
				rank = size - 1 - rank
				if tracked {
					q.min = at.Score
				}
			case tracked:
				q.max = at.Score
			}
			reply = append(strconv.AppendInt(append(qs.line[:0], ':'), int64(rank), 10), "\r\n"...)
		}
		qs.line = reply
		r.deliver(q, 0, len(q.subscribers), reply)
		if len(q.subscribers) > 0 {
			qs.setAlarm(q, alarm)
		}
		q.slow = 0
	}
}
