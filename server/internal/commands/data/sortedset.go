package data

import (
	"math"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/score"
	"github.com/zsetd/zsetd/zset"
)

// SortedSetCommands returns the rows of the sorted-set commands of Redis.
func SortedSetCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "bzmpop", Arity: -5, Flags: "write blocking", Keys: "2# RW access delete",
			Group: "sorted-set", Since: "7.0.0",
			Complexity: "O(K + M log N), K keys, N members of the sorted set, M removed",
			Summary:    "As ZMPOP, and wait up to timeout seconds for a member",
			Syntax:     "timeout numkeys key [key ...] where:MIN|MAX [COUNT count]",
		}, Run: bzmpop},
		{Facts: protocol.Facts{
			Name: "bzpopmax", Arity: -3, Flags: "write blocking fast", Keys: "1..-2 RW access delete",
			Group: "sorted-set", Since: "5.0.0",
			Complexity: "O(K + log N), K keys, N members of the sorted set",
			Summary:    "Remove the last member of the first sorted set that has one, and wait up to timeout seconds for it",
			Syntax:     "key [key ...] timeout",
			History:    []string{"6.0.0 `timeout` with a fraction"},
		}, Run: bzpopmax},
		{Facts: protocol.Facts{
			Name: "bzpopmin", Arity: -3, Flags: "write blocking fast", Keys: "1..-2 RW access delete",
			Group: "sorted-set", Since: "5.0.0",
			Complexity: "O(K + log N), K keys, N members of the sorted set",
			Summary:    "Remove the first member of the first sorted set that has one, and wait up to timeout seconds for it",
			Syntax:     "key [key ...] timeout",
			History:    []string{"6.0.0 `timeout` with a fraction"},
		}, Run: bzpopmin},
		{Facts: protocol.Facts{
			Name: "zadd", Arity: -4, Flags: "write denyoom fast", Keys: "1 RW update",
			Group: "sorted-set", Since: "1.2.0",
			Complexity: "O(M log N), M members given, N members of the sorted set",
			Summary:    "Add members with scores, or change the scores of members",
			Syntax:     "key condition:[NX|XX]@3.0.2 comparison:[GT|LT]@6.2.0 [change:CH@3.0.2] [increment:INCR@3.0.2] data:(score member)...",
			History: []string{
				"2.4.0 Several members",
				"3.0.2 `XX`, `NX`, `CH`, `INCR`",
				"6.2.0 `GT`, `LT`",
			},
		}, Element: 3, Run: zadd},
		{Facts: protocol.Facts{
			Name: "zcard", Arity: 2, Flags: "readonly fast", Keys: "1 RO",
			Group: "sorted-set", Since: "1.2.0", Complexity: "O(1)",
			Summary: "Number of members of a sorted set",
			Syntax:  "key",
		}, Run: zcard},
		{Facts: protocol.Facts{
			Name: "zcount", Arity: 4, Flags: "readonly fast", Keys: "1 RO access",
			Group: "sorted-set", Since: "2.0.0",
			Complexity: "O(log N), N members of the sorted set",
			Summary:    "Number of members with a score from min to max",
			Syntax:     "key min max",
		}, Run: zcount},
		{Facts: protocol.Facts{
			Name: "zdiff", Arity: -3, Flags: "readonly", Keys: "1# RO access",
			Group: "sorted-set", Since: "6.2.0",
			Complexity: "O(min(N*K, S) + M log M), N members of the first of K sorted sets, S of all, M returned",
			Summary:    "Members of the first sorted set that no other one has",
			Syntax:     "numkeys key [key ...] [WITHSCORES]",
		}, Run: zdiff},
		{Facts: protocol.Facts{
			Name: "zdiffstore", Arity: -4, Flags: "write denyoom", Keys: "1 OW update; 2# RO access",
			Group: "sorted-set", Since: "6.2.0",
			Complexity: "O(min(N*K, S) + M log M), N members of the first of K sorted sets, S of all, M stored",
			Summary:    "Store the result of ZDIFF in destination",
			Syntax:     "destination numkeys key [key ...]",
		}, Run: zdiffstore},
		{Facts: protocol.Facts{
			Name: "zincrby", Arity: 4, Flags: "write denyoom fast", Keys: "1 RW access update",
			Group: "sorted-set", Since: "1.2.0",
			Complexity: "O(log N), N members of the sorted set",
			Summary:    "Add increment to the score of member, which begins at 0",
			Syntax:     "key increment member",
		}, Element: 3, Run: zincrby},
		{Facts: protocol.Facts{
			Name: "zinter", Arity: -3, Flags: "readonly", Keys: "1# RO access",
			Group: "sorted-set", Since: "6.2.0",
			Complexity: "O(N*K + M log M), N members of the smallest of K sorted sets, M returned",
			Summary:    "Members that all sorted sets have, with the combination of their scores",
			Syntax:     "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE aggregate:(SUM | MIN | MAX | COUNT@8.8.0)] [WITHSCORES]",
		}, Run: zinter},
		{Facts: protocol.Facts{
			Name: "zintercard", Arity: -3, Flags: "readonly", Keys: "1# RO access",
			Group: "sorted-set", Since: "7.0.0",
			Complexity: "O(N*K), N members of the smallest of K sorted sets",
			Summary:    "Number of members that all sorted sets have, counted up to limit",
			Syntax:     "numkeys key [key ...] [LIMIT limit]",
		}, Run: zintercard},
		{Facts: protocol.Facts{
			Name: "zinterstore", Arity: -4, Flags: "write denyoom", Keys: "1 OW update; 2# RO access",
			Group: "sorted-set", Since: "2.0.0",
			Complexity: "O(N*K + M log M), N members of the smallest of K sorted sets, M stored",
			Summary:    "Store the result of ZINTER in destination",
			Syntax:     "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE aggregate:(SUM | MIN | MAX | COUNT@8.8.0)]",
		}, Run: zinterstore},
		{Facts: protocol.Facts{
			Name: "zlexcount", Arity: 4, Flags: "readonly fast", Keys: "1 RO access",
			Group: "sorted-set", Since: "2.8.9",
			Complexity: "O(log N), N members of the sorted set",
			Summary:    "Number of members from min to max by their bytes, if all scores are equal",
			Syntax:     "key min:string max:string",
		}, Run: zlexcount},
		{Facts: protocol.Facts{
			Name: "zmpop", Arity: -4, Flags: "write", Keys: "1# RW access delete",
			Group: "sorted-set", Since: "7.0.0",
			Complexity: "O(K + M log N), K keys, N members of the sorted set, M removed",
			Summary:    "Remove up to count members from an end of the first sorted set that has any",
			Syntax:     "numkeys key [key ...] where:MIN|MAX [COUNT count]",
		}, Run: zmpop},
		{Facts: protocol.Facts{
			Name: "zmscore", Arity: -3, Flags: "readonly fast", Keys: "1 RO access",
			Group: "sorted-set", Since: "6.2.0", Complexity: "O(M), M members given",
			Summary: "Scores of several members",
			Syntax:  "key member [member ...]",
		}, Named: 2, Run: zmscore},
		{Facts: protocol.Facts{
			Name: "zpopmax", Arity: -2, Flags: "write fast", Keys: "1 RW access delete",
			Group: "sorted-set", Since: "5.0.0",
			Complexity: "O(M log N), M members removed, N members of the sorted set",
			Summary:    "Remove the members with the highest scores",
			Syntax:     "key [count]",
		}, Run: zpopmax},
		{Facts: protocol.Facts{
			Name: "zpopmin", Arity: -2, Flags: "write fast", Keys: "1 RW access delete",
			Group: "sorted-set", Since: "5.0.0",
			Complexity: "O(M log N), M members removed, N members of the sorted set",
			Summary:    "Remove the members with the lowest scores",
			Syntax:     "key [count]",
		}, Run: zpopmin},
		{Facts: protocol.Facts{
			Name: "zrandmember", Arity: -2, Flags: "readonly", Keys: "1 RO access",
			Group: "sorted-set", Since: "6.2.0", Tips: "nondeterministic_output",
			Complexity: "O(M log N), M members returned, N of the sorted set",
			Summary:    "Choose random members, different ones or, for a negative count, with repetitions",
			Syntax:     "key options:[count [WITHSCORES]]",
		}, Run: zrandmember},
		{Facts: protocol.Facts{
			Name: "zrange", Arity: -4, Flags: "readonly", Keys: "1 RO access",
			Group: "sorted-set", Since: "1.2.0",
			Complexity: "O(log N + M), N members of the sorted set, M returned",
			Summary:    "Members from start to stop, which are ranks, scores or members",
			Syntax:     "key start:string stop:string sortby:[BYSCORE|BYLEX]@6.2.0 [REV@6.2.0] limit:[LIMIT offset count]@6.2.0 [WITHSCORES]",
			History:    []string{"6.2.0 `REV`, `BYSCORE`, `BYLEX`, `LIMIT`"},
		}, Run: zrange, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "zrangebylex", Arity: -4, Flags: "readonly", Keys: "1 RO access",
			Group: "sorted-set", Since: "2.8.9", Deprecated: "6.2.0", ReplacedBy: "`ZRANGE key min max BYLEX`",
			Complexity: "O(log N + M), N members of the sorted set, M returned",
			Summary:    "Members from min to max by their bytes, if all scores are equal",
			Syntax:     "key min:string max:string limit:[LIMIT offset count]",
		}, Run: zrangebylex, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "zrangebyscore", Arity: -4, Flags: "readonly", Keys: "1 RO access",
			Group: "sorted-set", Since: "1.0.5", Deprecated: "6.2.0", ReplacedBy: "`ZRANGE key min max BYSCORE`",
			Complexity: "O(log N + M), N members of the sorted set, M returned",
			Summary:    "Members with a score from min to max",
			Syntax:     "key min max [WITHSCORES@2.0.0] limit:[LIMIT offset count]",
			History:    []string{"2.0.0 `WITHSCORES`"},
		}, Run: zrangebyscore, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "zrangestore", Arity: -5, Flags: "write denyoom", Keys: "1 OW update; 2 RO access",
			Group: "sorted-set", Since: "6.2.0",
			Complexity: "O(log N + M), N members of the sorted set, M stored",
			Summary:    "Store a range of the sorted set src in dst",
			Syntax:     "dst src min:string max:string sortby:[BYSCORE|BYLEX] [REV] limit:[LIMIT offset count]",
		}, Run: zrangestore},
		{Facts: protocol.Facts{
			Name: "zrank", Arity: -3, Flags: "readonly fast", Keys: "1 RO access",
			Group: "sorted-set", Since: "2.0.0", Complexity: "O(log N), N members of the sorted set",
			Summary: "Number of members before member, in ascending order",
			Syntax:  "key member [WITHSCORE]",
			History: []string{"7.2.0 `WITHSCORE`"},
		}, Element: 2, Ranks: 1, Run: zrank},
		{Facts: protocol.Facts{
			Name: "zrem", Arity: -3, Flags: "write fast", Keys: "1 RW delete",
			Group: "sorted-set", Since: "1.2.0",
			Complexity: "O(M log N), M members given, N members of the sorted set",
			Summary:    "Remove members from a sorted set",
			Syntax:     "key member [member ...]",
			History:    []string{"2.4.0 Several members"},
		}, Element: 2, Run: zrem},
		{Facts: protocol.Facts{
			Name: "zremrangebylex", Arity: 4, Flags: "write", Keys: "1 RW delete",
			Group: "sorted-set", Since: "2.8.9",
			Complexity: "O(log N + M), N members of the sorted set, M removed",
			Summary:    "Remove the members from min to max by their bytes, if all scores are equal",
			Syntax:     "key min:string max:string",
		}, Run: zremrangebylex, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "zremrangebyrank", Arity: 4, Flags: "write", Keys: "1 RW delete",
			Group: "sorted-set", Since: "2.0.0",
			Complexity: "O(log N + M), N members of the sorted set, M removed",
			Summary:    "Remove the members at the ranks start to stop",
			Syntax:     "key start stop",
		}, Run: zremrangebyrank, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "zremrangebyscore", Arity: 4, Flags: "write", Keys: "1 RW delete",
			Group: "sorted-set", Since: "1.2.0",
			Complexity: "O(log N + M), N members of the sorted set, M removed",
			Summary:    "Remove the members with a score from min to max",
			Syntax:     "key min max",
		}, Run: zremrangebyscore, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "zrevrange", Arity: -4, Flags: "readonly", Keys: "1 RO access",
			Group: "sorted-set", Since: "1.2.0", Deprecated: "6.2.0", ReplacedBy: "`ZRANGE key start stop REV`",
			Complexity: "O(log N + M), N members of the sorted set, M returned",
			Summary:    "Members at the ranks start to stop, counted from the highest score",
			Syntax:     "key start stop [WITHSCORES]",
		}, Run: zrevrange, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "zrevrangebylex", Arity: -4, Flags: "readonly", Keys: "1 RO access",
			Group: "sorted-set", Since: "2.8.9", Deprecated: "6.2.0", ReplacedBy: "`ZRANGE key max min BYLEX REV`",
			Complexity: "O(log N + M), N members of the sorted set, M returned",
			Summary:    "Members from max down to min by their bytes, if all scores are equal",
			Syntax:     "key max:string min:string limit:[LIMIT offset count]",
		}, Run: zrevrangebylex, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "zrevrangebyscore", Arity: -4, Flags: "readonly", Keys: "1 RO access",
			Group: "sorted-set", Since: "2.2.0", Deprecated: "6.2.0", ReplacedBy: "`ZRANGE key max min BYSCORE REV`",
			Complexity: "O(log N + M), N members of the sorted set, M returned",
			Summary:    "Members with a score from max down to min",
			Syntax:     "key max min [WITHSCORES] limit:[LIMIT offset count]",
			History:    []string{"2.1.6 Bounds that are excluded"},
		}, Run: zrevrangebyscore, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "zrevrank", Arity: -3, Flags: "readonly fast", Keys: "1 RO access",
			Group: "sorted-set", Since: "2.0.0", Complexity: "O(log N), N members of the sorted set",
			Summary: "Number of members behind member, in ascending order",
			Syntax:  "key member [WITHSCORE]",
			History: []string{"7.2.0 `WITHSCORE`"},
		}, Element: 2, Ranks: -1, Run: zrevrank},
		{Facts: protocol.Facts{
			Name: "zscan", Arity: -3, Flags: "readonly", Keys: "1 RO access",
			Group: "sorted-set", Since: "2.8.0", Tips: "nondeterministic_output",
			Complexity: "O(C), C is COUNT; O(N) for a whole iteration, N members of the sorted set",
			Summary:    "Iterate over the members of a sorted set in steps of about COUNT",
			Syntax:     "key cursor [MATCH pattern] [COUNT count] [NOSCORES@8.0.0]",
			History:    []string{"8.0.0 `NOSCORES`, of Valkey"},
		}, Run: zscan},
		{Facts: protocol.Facts{
			Name: "zscore", Arity: 3, Flags: "readonly fast", Keys: "1 RO access",
			Group: "sorted-set", Since: "1.2.0", Complexity: "O(1)",
			Summary: "Score of member",
			Syntax:  "key member",
		}, Element: 2, Named: 2, Run: zscore},
		{Facts: protocol.Facts{
			Name: "zunion", Arity: -3, Flags: "readonly", Keys: "1# RO access",
			Group: "sorted-set", Since: "6.2.0",
			Complexity: "O(N log N), N members of all sorted sets",
			Summary:    "Members that any of the sorted sets has, with the combination of their scores",
			Syntax:     "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE aggregate:(SUM | MIN | MAX | COUNT@8.8.0)] [WITHSCORES]",
		}, Run: zunion},
		{Facts: protocol.Facts{
			Name: "zunionstore", Arity: -4, Flags: "write denyoom", Keys: "1 OW update; 2# RO access",
			Group: "sorted-set", Since: "2.0.0",
			Complexity: "O(N log N), N members of all sorted sets",
			Summary:    "Store the result of ZUNION in destination",
			Syntax:     "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE aggregate:(SUM | MIN | MAX | COUNT@8.8.0)]",
		}, Run: zunionstore},
	}
}

func zadd(c *engine.Call) { zaddWith(c, zaddOptions{}) }

// zincrby is ZADD INCR, options included: ZINCRBY key NX member is a syntax error.
func zincrby(c *engine.Call) { zaddWith(c, zaddOptions{incr: true}) }

type zaddOptions struct {
	cond zset.Cond
	ch   bool // reply the number of changed elements, not only of new ones
	incr bool
}

func (o *zaddOptions) read(c *engine.Call) {
	if b := c.Peek(0); len(b) > 0 && b[0] <= '9' {
		return // it is a number
	}
	for {
		switch {
		case c.Is("NX"):
			o.cond |= zset.NX
		case c.Is("XX"):
			o.cond |= zset.XX
		case c.Is("GT"):
			o.cond |= zset.GT
		case c.Is("LT"):
			o.cond |= zset.LT
		case c.Is("CH"):
			o.ch = true
		case c.Is("INCR"):
			o.incr = true
		default:
			return
		}
	}
}

func (o *zaddOptions) has(cond zset.Cond) bool { return o.cond&cond == cond }

// validate refuses pairs and options that exclude each other.
func (o *zaddOptions) validate(c *engine.Call, pairs [][]byte) {
	switch {
	case len(pairs) == 0 || len(pairs)%2 != 0:
		c.Fail(protocol.ErrSyntax)
	case o.has(zset.NX | zset.XX):
		c.Fail("ERR XX and NX options at the same time are not compatible")
	case o.has(zset.GT | zset.NX), o.has(zset.LT | zset.NX), o.has(zset.GT | zset.LT):
		c.Fail("ERR GT, LT, and/or NX options at the same time are not compatible")
	case o.incr && len(pairs) > 2:
		c.Fail("ERR INCR option supports a single increment-element pair")
	}
}

func zaddWith(c *engine.Call, o zaddOptions) {
	key := c.Bytes()
	o.read(c)
	pairs := c.Rest()
	o.validate(c, pairs)
	// All scores are read before any change. Up to 16 of them need no allocation.
	var few [16]float64
	number, not := c.Score, score.NotFloat
	if o.incr {
		number, not = protocol.ParseFloat, score.NotIncrement
	}
	scores := c.Numbers(few[:0], pairs, number, not)
	if c.OK() {
		zaddScores(c, key, o, scores, pairs)
	}
}

// zaddScores is ZADD, after its arguments are read: pairs gives the members, and
// scores their scores.
func zaddScores(c *engine.Call, key []byte, o zaddOptions, scores []float64, pairs [][]byte) {
	var s *zset.Set
	var ok bool
	if o.has(zset.XX) {
		s, ok = engine.Edit[zset.Set](c, key)
	} else {
		s, ok = engine.Create[zset.Set](c, key)
	}
	switch {
	case !ok:
	case o.incr:
		zincrScore(c, key, s, pairs[1], scores[0], o.cond)
	default:
		added, updated, changed := 0, 0, false
		if !o.has(zset.XX) {
			c.Limits().GrowSorted(s, scores, pairs)
		}
		for i, score := range scores {
			if s == nil {
				break // XX, and the key does not exist
			}
			member := pairs[2*i+1]
			outcome := c.Limits().AddSorted(s, member, score, o.cond)
			switch outcome {
			case zset.Added:
				added++
			case zset.Updated:
				updated++
			case zset.Rejected, zset.NotANumber:
				continue
			}
			lost := false
			if s.Deadlines() != nil {
				had, _ := s.SetDeadlineBytes(member, 0)
				lost = had != 0
			}
			if outcome == zset.Unchanged && !lost {
				continue
			}
			changed = true
			c.TouchedOnce(engine.ClassZset, member)
		}
		if changed {
			c.Changed(key, engine.ClassZset, "zadd")
		}
		if o.ch {
			added += updated
		}
		c.Reply.Int(int64(added))
	}
}

// ErrScoreNaN is the error of an increment whose result is not a number.
const ErrScoreNaN = "ERR resulting score is not a number (NaN)"

// zincrScore adds delta to the score of a member. s may be nil.
func zincrScore(c *engine.Call, key []byte, s *zset.Set, member []byte, delta float64, cond zset.Cond) {
	if s == nil {
		c.Reply.Null()
		return
	}
	outcome, score := c.Limits().IncrSorted(s, member, delta, cond)
	switch {
	case outcome == zset.Rejected, outcome == zset.NotANumber && cond&zset.NX != 0:
		c.Reply.Null()
		return
	case outcome == zset.NotANumber:
		c.Reply.Error(ErrScoreNaN)
		return
	case outcome == zset.Added:
		score = delta // with the sign that a listpack may not keep
		fallthrough
	case outcome == zset.Updated:
		c.Touched(engine.ClassZset, member)
		c.Changed(key, engine.ClassZset, "zincr")
	}
	c.Reply.Double(score)
}

// zstore makes s the value of key, or drops the key if s is empty, and replies the
// number of elements.
func zstore(c *engine.Call, key []byte, s *zset.Set, event string) {
	if s.Len() == 0 {
		c.Drop(key)
		c.Reply.Int(0)
		return
	}
	c.Limits().FitSorted(s)
	s = c.Put(key, s).Value().(*zset.Set)
	ztouched(c, s, 0, s.Len())
	c.Changed(key, engine.ClassZset, event)
	c.Reply.Int(int64(s.Len()))
}

// ztouched is Touched for the members from rank lo up to hi.
func ztouched(c *engine.Call, s *zset.Set, lo, hi int) {
	if c.ReportsMembers(engine.ClassZset) {
		for member := range s.Span(lo, hi) {
			c.Touched(engine.ClassZset, protocol.BytesOf(member))
		}
	}
}

func zcard(c *engine.Call) {
	key := c.Bytes()
	s, ok := engine.Read[zset.Set](c, key)
	switch {
	case !ok:
	case s == nil:
		c.Reply.Int(0)
	default:
		c.Reply.Int(int64(s.Len()))
	}
}

func zscore(c *engine.Call) {
	key, member := c.Bytes(), c.Bytes()
	if s, ok := engine.Read[zset.Set](c, key); ok {
		zscoreOf(c, s, member)
	}
}

// zscoreOf replies the score of a member, null if there is none. s may be nil.
func zscoreOf(c *engine.Call, s *zset.Set, member []byte) {
	if s != nil {
		if score, ok := s.Internal().Score(member); ok {
			c.Reply.Double(score)
			return
		}
	}
	c.Reply.Null()
}

func zmscore(c *engine.Call) {
	key, members := c.Bytes(), c.Rest()
	s, ok := engine.Read[zset.Set](c, key)
	if !ok {
		return
	}
	c.Reply.Array(len(members))
	for _, member := range members {
		zscoreOf(c, s, member)
	}
}

func zrank(c *engine.Call) { zrankFrom(c, false) }

func zrevrank(c *engine.Call) { zrankFrom(c, true) }

func zrankFrom(c *engine.Call, rev bool) {
	key, member := c.Bytes(), c.Bytes()
	if c.Len() > 1 {
		c.Fail(engine.WrongArity(c.Command.Name))
	}
	withScore := c.Is("WITHSCORE")
	if !c.End() {
		return
	}
	s, ok := engine.Read[zset.Set](c, key)
	if !ok {
		return
	}
	rank, found := 0, false
	if s != nil {
		rank, found = s.Internal().Rank(member)
	}
	if found && c.Observing {
		score, _ := s.Internal().Score(member)
		if rev {
			c.ReadsScores(score, math.Inf(1))
		} else {
			c.ReadsScores(math.Inf(-1), score)
		}
	}
	switch {
	case !found && withScore:
		c.Reply.NullArray()
		return
	case !found:
		c.Reply.Null()
		return
	case withScore:
		c.Reply.Array(2)
	}
	if rev {
		rank = s.Len() - 1 - rank
	}
	c.Reply.Int(int64(rank))
	if withScore {
		zscoreOf(c, s, member)
	}
}

func zrem(c *engine.Call) {
	key, members := c.Bytes(), c.Rest()
	s, ok := engine.Edit[zset.Set](c, key)
	if !ok {
		return
	}
	removed := 0
	for _, member := range members {
		if s == nil {
			break
		}
		if _, had := s.Internal().Remove(member); had {
			removed++
			c.Touched(engine.ClassZset, member)
		}
	}
	if removed > 0 {
		c.Changed(key, engine.ClassZset, "zrem")
	}
	c.Reply.Int(int64(removed))
}

func zrandmember(c *engine.Call) {
	key := c.Bytes()
	one := c.Len() == 0
	var count int64
	withScores := false
	if !one {
		count = c.Int()
		if count == math.MinInt64 {
			c.Fail("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
		}
		if withScores = c.Is("WITHSCORES"); c.Len() > 0 {
			c.Fail(protocol.ErrSyntax)
		}
		// No client can receive the number of elements that Redis would send.
		if withScores && (count > math.MaxInt64/2 || count < -math.MaxInt64/2) || count < -maxRepeats {
			c.Fail("ERR value is out of range")
		}
	}
	if !c.OK() {
		return
	}
	s, ok := engine.Read[zset.Set](c, key)
	switch {
	case !ok:
	case one && s == nil:
		c.Reply.Null()
	case one:
		c.Reply.BulkString(randomElement(c, s).Member)
	case s == nil:
		c.Reply.Array(0)
	case count < 0:
		w := parseRepeatLimit(c)
		zelements(c, int(-count), withScores)
		for member, score := range randomElements(c, s, int(-count)) {
			zelement(c, member, score, withScores)
			if w.tooLong() {
				return
			}
		}
	case count >= int64(s.Len()): // all elements, the highest first
		zelements(c, s.Len(), withScores)
		for member, score := range s.Backward() {
			zelement(c, member, score, withScores)
		}
	default:
		zlist(c, s.RandomDistinct(c.Rand(), int(count)), withScores)
	}
}

// maxRepeats is the maximum of elements that one command draws with repetitions.
// That many take a third of a second, during which no other client is served; Redis
// continues until memory is exhausted.
const maxRepeats = 1 << 22

// repeatLimit limits a reply that is longer than the value that it is drawn from.
type repeatLimit struct {
	c    *engine.Call
	mark int
}

func parseRepeatLimit(c *engine.Call) repeatLimit { return repeatLimit{c, c.Reply.Len()} }

// tooLong replaces a reply that has exceeded the maximum length of a string by an
// error.
func (r repeatLimit) tooLong() bool {
	if int64(r.c.Reply.Len()-r.mark) <= r.c.Config().ProtoMaxBulk {
		return false
	}
	r.c.Reply.Truncate(r.mark)
	r.c.Reply.Error("ERR value is out of range")
	return true
}

// zelements appends the header of an array of n elements: members, each with its
// score if withScores is true.
func zelements(c *engine.Call, n int, withScores bool) {
	if withScores && c.Reply.Version() == 2 {
		n *= 2
	}
	c.Reply.Array(n)
}

// zelement appends an element of such an array; with scores, RESP3 has pairs.
func zelement(c *engine.Call, member string, score float64, withScores bool) {
	if !withScores {
		c.Reply.BulkString(member)
		return
	}
	if c.Reply.Version() == 3 {
		c.Reply.Array(2)
	}
	c.Reply.BulkString(member)
	c.Reply.Double(score)
}

// zlist appends an array of elements.
func zlist(c *engine.Call, list []zset.Element, withScores bool) {
	zelements(c, len(list), withScores)
	for _, e := range list {
		zelement(c, e.Member, e.Score, withScores)
	}
}

func zscan(c *engine.Call) {
	key, cursor := c.Bytes(), cursor(c)
	if !c.OK() {
		return
	}
	// Redis checks the key before it reads the options.
	s, ok := engine.Read[zset.Set](c, key)
	if !ok {
		return
	}
	if s == nil {
		c.Reply.Array(2)
		c.Reply.BulkInt(0)
		c.Reply.Array(0)
		return
	}
	o, noScores := scanOptions{count: 10}, false
	for c.More() {
		switch {
		case c.Is("NOSCORES"):
			noScores = true
		case !o.read(c):
			c.Fail(protocol.ErrSyntax)
		}
	}
	if !c.OK() {
		return
	}
	var found []zset.Element
	keep := func(member string, score float64) {
		if o.Match(protocol.BytesOf(member)) {
			found = append(found, zset.Element{Member: member, Score: score})
		}
	}
	listpack := keyspace.IsListpack(s)
	if listpack { // Redis returns a listpack whole and in order
		cursor = 0
		for member, score := range s.All() {
			keep(member, score)
		}
	} else {
		cursor = s.Scan(cursor, o.count, keep)
	}
	c.Reply.Array(2)
	var d [32]byte
	c.Reply.Bulk(strconv.AppendUint(d[:0], cursor, 10))
	if noScores {
		c.Reply.Array(len(found))
		for _, e := range found {
			c.Reply.BulkString(e.Member)
		}
		return
	}
	c.Reply.Array(2 * len(found))
	for _, e := range found {
		c.Reply.BulkString(e.Member)
		// Scores are strings, even in RESP3; a listpack shows integral scores as
		// integers, and a skiplist shows 17 digits.
		switch n := int64(e.Score); {
		case listpack && math.Abs(e.Score) <= math.MaxInt64/2 && float64(n) == e.Score:
			c.Reply.BulkInt(n)
		case listpack || math.IsInf(e.Score, 0):
			c.Reply.Bulk(protocol.AppendFloat(d[:0], e.Score))
		default:
			c.Reply.Bulk(strconv.AppendFloat(d[:0], e.Score, 'g', 17, 64))
		}
	}
}
