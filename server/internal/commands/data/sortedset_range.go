package data

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
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
		o.scores = r.At(c.Engine.Instant)
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

// lexSpan is for sets whose scores are all the same. For other sets the
// documentation of Redis leaves the result unspecified; this is its result for a
// listpack: the elements from the first in the range up to the first beyond it.
func (o *zrangeOptions) lexSpan(s *zset.Set) (lo, hi int) {
	first, _ := s.First()
	last, _ := s.Last()
	r := o.members
	if first.Score == last.Score || !engine.ZSetIsListpack(s) {
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

func zrangeRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "zrange", Arity: -4, Flags: "readonly", Keys: "1 RO access",
		Group: "sorted-set", Since: "1.2.0",
		Complexity: "O(log N + M), N members of the sorted set, M returned",
		Summary:    "Members from start to stop, which are ranks, scores or members",
		Syntax:     "key start:string stop:string sortby:[BYSCORE|BYLEX]@6.2.0 [REV@6.2.0] limit:[LIMIT offset count]@6.2.0 [WITHSCORES]",
		History:    []string{"6.2.0 `REV`, `BYSCORE`, `BYLEX`, `LIMIT`"},
	}, Run: zrange, Batching: engine.BatchAlways}
}

func zrange(c *engine.Call) { zrangeReply(c, zrangeOptions{}, openOrder|openScores) }

func zrangebyscoreRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "zrangebyscore", Arity: -4, Flags: "readonly", Keys: "1 RO access",
		Group: "sorted-set", Since: "1.0.5", Deprecated: "6.2.0", ReplacedBy: "`ZRANGE key min max BYSCORE`",
		Complexity: "O(log N + M), N members of the sorted set, M returned",
		Summary:    "Members with a score from min to max",
		Syntax:     "key min max [WITHSCORES@2.0.0] limit:[LIMIT offset count]",
		History:    []string{"2.0.0 `WITHSCORES`"},
	}, Run: zrangebyscore, Batching: engine.BatchAlways}
}

func zrangebyscore(c *engine.Call) { zrangeReply(c, zrangeOptions{by: byScore}, openScores) }

func zrangebylexRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "zrangebylex", Arity: -4, Flags: "readonly", Keys: "1 RO access",
		Group: "sorted-set", Since: "2.8.9", Deprecated: "6.2.0", ReplacedBy: "`ZRANGE key min max BYLEX`",
		Complexity: "O(log N + M), N members of the sorted set, M returned",
		Summary:    "Members from min to max by their bytes, if all scores are equal",
		Syntax:     "key min:string max:string limit:[LIMIT offset count]",
	}, Run: zrangebylex, Batching: engine.BatchAlways}
}

func zrangebylex(c *engine.Call) { zrangeReply(c, zrangeOptions{by: byLex}, openScores) }

func zrevrangeRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "zrevrange", Arity: -4, Flags: "readonly", Keys: "1 RO access",
		Group: "sorted-set", Since: "1.2.0", Deprecated: "6.2.0", ReplacedBy: "`ZRANGE key start stop REV`",
		Complexity: "O(log N + M), N members of the sorted set, M returned",
		Summary:    "Members at the ranks start to stop, counted from the highest score",
		Syntax:     "key start stop [WITHSCORES]",
	}, Run: zrevrange, Batching: engine.BatchAlways}
}

func zrevrange(c *engine.Call) { zrangeReply(c, zrangeOptions{rev: true}, openScores) }

func zrevrangebyscoreRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "zrevrangebyscore", Arity: -4, Flags: "readonly", Keys: "1 RO access",
		Group: "sorted-set", Since: "2.2.0", Deprecated: "6.2.0", ReplacedBy: "`ZRANGE key max min BYSCORE REV`",
		Complexity: "O(log N + M), N members of the sorted set, M returned",
		Summary:    "Members with a score from max down to min",
		Syntax:     "key max min [WITHSCORES] limit:[LIMIT offset count]",
		History:    []string{"2.1.6 Bounds that are excluded"},
	}, Run: zrevrangebyscore, Batching: engine.BatchAlways}
}

func zrevrangebyscore(c *engine.Call) {
	zrangeReply(c, zrangeOptions{by: byScore, rev: true}, openScores)
}

func zrevrangebylexRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "zrevrangebylex", Arity: -4, Flags: "readonly", Keys: "1 RO access",
		Group: "sorted-set", Since: "2.8.9", Deprecated: "6.2.0", ReplacedBy: "`ZRANGE key max min BYLEX REV`",
		Complexity: "O(log N + M), N members of the sorted set, M returned",
		Summary:    "Members from max down to min by their bytes, if all scores are equal",
		Syntax:     "key max:string min:string limit:[LIMIT offset count]",
	}, Run: zrevrangebylex, Batching: engine.BatchAlways}
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

func zrangestoreRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "zrangestore", Arity: -5, Flags: "write denyoom", Keys: "1 OW update; 2 RO access",
		Group: "sorted-set", Since: "6.2.0",
		Complexity: "O(log N + M), N members of the sorted set, M stored",
		Summary:    "Store a range of the sorted set src in dst",
		Syntax:     "dst src min:string max:string sortby:[BYSCORE|BYLEX] [REV] limit:[LIMIT offset count]",
	}, Run: zrangestore}
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

func zcountRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "zcount", Arity: 4, Flags: "readonly fast", Keys: "1 RO access",
		Group: "sorted-set", Since: "2.0.0",
		Complexity: "O(log N), N members of the sorted set",
		Summary:    "Number of members with a score from min to max",
		Syntax:     "key min max",
	}, Run: zcount}
}

func zcount(c *engine.Call) { zcountBy(c, byScore) }

func zlexcountRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "zlexcount", Arity: 4, Flags: "readonly fast", Keys: "1 RO access",
		Group: "sorted-set", Since: "2.8.9",
		Complexity: "O(log N), N members of the sorted set",
		Summary:    "Number of members from min to max by their bytes, if all scores are equal",
		Syntax:     "key min:string max:string",
	}, Run: zlexcount}
}

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
		c.Reply.Int(int64(hi - lo))
	}
}

func zremrangebyrankRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "zremrangebyrank", Arity: 4, Flags: "write", Keys: "1 RW delete",
		Group: "sorted-set", Since: "2.0.0",
		Complexity: "O(log N + M), N members of the sorted set, M removed",
		Summary:    "Remove the members at the ranks start to stop",
		Syntax:     "key start stop",
	}, Run: zremrangebyrank, Batching: engine.BatchAlways}
}

func zremrangebyrank(c *engine.Call) { zremrange(c, byRank, "zremrangebyrank") }

func zremrangebyscoreRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "zremrangebyscore", Arity: 4, Flags: "write", Keys: "1 RW delete",
		Group: "sorted-set", Since: "1.2.0",
		Complexity: "O(log N + M), N members of the sorted set, M removed",
		Summary:    "Remove the members with a score from min to max",
		Syntax:     "key min max",
	}, Run: zremrangebyscore, Batching: engine.BatchAlways}
}

func zremrangebyscore(c *engine.Call) { zremrange(c, byScore, "zremrangebyscore") }

func zremrangebylexRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "zremrangebylex", Arity: 4, Flags: "write", Keys: "1 RW delete",
		Group: "sorted-set", Since: "2.8.9",
		Complexity: "O(log N + M), N members of the sorted set, M removed",
		Summary:    "Remove the members from min to max by their bytes, if all scores are equal",
		Syntax:     "key min:string max:string",
	}, Run: zremrangebylex, Batching: engine.BatchAlways}
}

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
