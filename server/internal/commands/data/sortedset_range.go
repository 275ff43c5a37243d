package data

import (
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/score"
	"github.com/zsetd/zsetd/zset"
)

// The commands on ranges. Every range, by rank, score or member, is first converted
// to a span of ranks; then counting, LIMIT and REV are arithmetic, and only the
// elements of the reply are visited.

// rangeBy is the kind of the bounds of a range.
type rangeBy uint8

const (
	byRank rangeBy = iota
	byScore
	byLex
)

// zrangeOptions is a range of a sorted set, as ZRANGE describes it.
type zrangeOptions struct {
	by            rangeBy
	rev           bool
	withScores    bool
	offset, limit int64 // limit < 0: all

	start, stop int64 // by rank; with rev, counted from the highest
	scores      zset.ScoreRange
	members     zset.LexRange
}

// Properties that the name of a command leaves to its options.
const (
	openOrder  = 1 << iota // BYSCORE, BYLEX and REV
	openScores             // WITHSCORES
)

// read reads the bounds and the options up to the end, in the order of Redis's
// checks: the options first, their conflicts, then the bounds.
func (o *zrangeOptions) read(c *engine.Call, open int) {
	lo, hi := c.Bytes(), c.Bytes()
	o.limit = -1
	for c.More() {
		switch {
		case open&openScores != 0 && c.Is("WITHSCORES"):
			o.withScores = true
		case c.Len() > 2 && c.Is("LIMIT"):
			o.offset, o.limit = c.Int(), c.Int()
		case open&openOrder != 0 && !o.rev && c.Is("REV"):
			o.rev = true
		case open&openOrder != 0 && o.by == byRank && c.Is("BYLEX"):
			o.by = byLex
		case open&openOrder != 0 && o.by == byRank && c.Is("BYSCORE"):
			o.by = byScore
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	switch {
	case o.limit != -1 && o.by == byRank:
		c.Fail("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	case o.withScores && o.by == byLex:
		c.Fail("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
	}
	if c.Err() == "" {
		o.bounds(c, lo, hi)
	}
}

// bounds reads the two bounds, which are in the order of the reply.
func (o *zrangeOptions) bounds(c *engine.Call, lo, hi []byte) {
	if o.rev && o.by != byRank {
		lo, hi = hi, lo
	}
	switch o.by {
	case byRank:
		var ok, ok2 bool
		o.start, ok = protocol.ParseInt(lo)
		o.stop, ok2 = protocol.ParseInt(hi)
		if !ok || !ok2 {
			c.Fail(protocol.ErrNotInteger)
		}
	case byScore:
		r, ok := score.ParseRange(lo, hi)
		if !ok {
			c.Fail(score.NotRange(lo, hi))
			return
		}
		o.scores = r.At(c.Instant())
	case byLex:
		var ok, ok2 bool
		o.members.Min, ok = lexBound(lo)
		o.members.Max, ok2 = lexBound(hi)
		if !ok || !ok2 {
			c.Fail("ERR min or max not valid string range item")
		}
	}
}

// lexBound reads - or +, or a member after [ for inclusive or ( for exclusive.
func lexBound(b []byte) (bound zset.LexBound, ok bool) {
	if len(b) == 0 {
		return bound, false
	}
	switch b[0] {
	case '-':
		return zset.LexBound{Inf: -1}, len(b) == 1 || b[1] == 0
	case '+':
		return zset.LexBound{Inf: 1}, len(b) == 1 || b[1] == 0
	case '[', '(':
		bound.Member, bound.Exclusive = protocol.View(b[1:]), b[0] == '('
		return bound, true
	}
	return bound, false
}

// span returns the ranks lo to hi-1 that the range covers.
func (o *zrangeOptions) span(s *zset.Set) (lo, hi int) {
	switch o.by {
	case byScore:
		lo, hi = s.ScoreSpan(o.scores)
	case byLex:
		lo, hi = o.lexSpan(s)
	default:
		lo, hi = s.RankSpan(int(o.start), int(o.stop))
		if o.rev {
			lo, hi = s.Len()-hi, s.Len()-lo
		}
		return lo, hi
	}
	n := int64(hi - lo)
	if o.offset < 0 || o.offset >= n {
		return 0, 0
	}
	n -= o.offset
	if o.limit >= 0 {
		n = min(n, o.limit)
	}
	if o.rev {
		hi -= int(o.offset)
		return hi - int(n), hi
	}
	lo += int(o.offset)
	return lo, lo + int(n)
}

// observe tells a live query the scores that its range depends on, when it covers ranks lo to hi-1.
func (o *zrangeOptions) observe(c *engine.Call, s *zset.Set, lo, hi int) {
	if !c.Observing {
		return
	}
	switch {
	case o.by == byScore:
		c.ReadsScores(o.scores.Min, o.scores.Max)
	case o.by == byRank && (o.start < 0) == (o.stop < 0) && int64(hi-lo) == o.stop-o.start+1: // as many as it asks for
		if o.rev != (o.start < 0) {
			lowest, _ := s.At(lo)
			c.ReadsScores(lowest.Score, math.Inf(1))
		} else {
			highest, _ := s.At(hi - 1)
			c.ReadsScores(math.Inf(-1), highest.Score)
		}
	}
}

// lexSpan is for sets whose scores are all the same. For other sets the
// documentation of Redis leaves the result unspecified; this is its result for a
// listpack: the elements from the first in the range up to the first beyond it.
func (o *zrangeOptions) lexSpan(s *zset.Set) (lo, hi int) {
	first, _ := s.First()
	last, _ := s.Last()
	r := o.members
	if first.Score == last.Score || !keyspace.IsListpack(s) {
		return s.LexSpan(r)
	}
	above := func(member string) bool {
		return r.Min.Inf < 0 || r.Min.Inf == 0 && (member > r.Min.Member || member == r.Min.Member && !r.Min.Exclusive)
	}
	below := func(member string) bool {
		return r.Max.Inf > 0 || r.Max.Inf == 0 && (member < r.Max.Member || member == r.Max.Member && !r.Max.Exclusive)
	}
	if !above(last.Member) || !below(first.Member) {
		return 0, 0
	}
	n := s.Len()
	all, enters, leaves := s.All(), above, below
	if o.rev {
		all, enters, leaves = s.Backward(), below, above
	}
	i, from := 0, -1 // one enters: the last is above, the first below
	for member := range all {
		if from < 0 && enters(member) {
			from = i
		}
		if from >= 0 && !leaves(member) {
			break
		}
		i++
	}
	if o.rev {
		return n - i, n - from
	}
	return from, i
}

func zrange(c *engine.Call) { zrangeReply(c, zrangeOptions{}, openOrder|openScores) }

func zrangebyscore(c *engine.Call) { zrangeReply(c, zrangeOptions{by: byScore}, openScores) }

func zrangebylex(c *engine.Call) { zrangeReply(c, zrangeOptions{by: byLex}, openScores) }

func zrevrange(c *engine.Call) { zrangeReply(c, zrangeOptions{rev: true}, openScores) }

func zrevrangebyscore(c *engine.Call) {
	zrangeReply(c, zrangeOptions{by: byScore, rev: true}, openScores)
}

func zrevrangebylex(c *engine.Call) { zrangeReply(c, zrangeOptions{by: byLex, rev: true}, openScores) }

func zrangeReply(c *engine.Call, o zrangeOptions, open int) {
	key := c.Bytes()
	o.read(c, open)
	if !c.OK() {
		return
	}
	s, ok := engine.Read[zset.Set](c, key)
	switch {
	case !ok:
	case s == nil:
		c.Reply.Array(0)
	default:
		lo, hi := o.span(s)
		o.observe(c, s, lo, hi)
		zelements(c, hi-lo, o.withScores)
		switch {
		case o.rev:
			for member, score := range s.SpanBackward(lo, hi) {
				zelement(c, member, score, o.withScores)
			}
		case o.withScores:
			for member, score := range s.Span(lo, hi) {
				zelement(c, member, score, true)
			}
		default:
			for member := range s.Span(lo, hi) {
				c.Reply.BulkString(member)
			}
		}
	}
}

func zrangestore(c *engine.Call) {
	dst, src := c.Bytes(), c.Bytes()
	var o zrangeOptions
	o.read(c, openOrder)
	if !c.OK() {
		return
	}
	s, ok := engine.Read[zset.Set](c, src)
	if !ok {
		return
	}
	var list []zset.Element
	if s != nil {
		lo, hi := o.span(s)
		list = make([]zset.Element, 0, hi-lo)
		for member, score := range s.Span(lo, hi) {
			list = append(list, zset.Element{Member: member, Score: score})
		}
	}
	zstore(c, dst, zset.Load(list), "zrangestore")
}

func zcount(c *engine.Call) { zcountBy(c, byScore) }

func zlexcount(c *engine.Call) { zcountBy(c, byLex) }

func zcountBy(c *engine.Call, by rangeBy) {
	key := c.Bytes()
	o := zrangeOptions{by: by}
	o.read(c, 0)
	if !c.OK() {
		return
	}
	s, ok := engine.Read[zset.Set](c, key)
	switch {
	case !ok:
	case s == nil:
		c.Reply.Int(0)
	default:
		lo, hi := o.span(s)
		o.observe(c, s, lo, hi)
		c.Reply.Int(int64(hi - lo))
	}
}

func zremrangebyrank(c *engine.Call) { zremrange(c, byRank, "zremrangebyrank") }

func zremrangebyscore(c *engine.Call) { zremrange(c, byScore, "zremrangebyscore") }

func zremrangebylex(c *engine.Call) { zremrange(c, byLex, "zremrangebylex") }

func zremrange(c *engine.Call, by rangeBy, event string) {
	key := c.Bytes()
	o := zrangeOptions{by: by}
	o.read(c, 0)
	if !c.OK() {
		return
	}
	s, ok := engine.Edit[zset.Set](c, key)
	switch {
	case !ok:
	case s == nil:
		c.Reply.Int(0)
	default:
		lo, hi := o.span(s)
		ztouched(c, s, lo, hi)
		n := s.RemoveSpan(lo, hi)
		c.Large = n > engine.FastBatchElements
		if n > 0 {
			c.Changed(key, engine.ClassZset, event)
		}
		c.Reply.Int(int64(n))
	}
}
