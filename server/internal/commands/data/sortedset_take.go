package data

import (
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/process"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/score"
	"github.com/zsetd/zsetd/zset"
)

// The commands that take elements by their scores. With times as scores
// (package score) BZPOPBYSCORE 0 1 due -inf @now is a queue of elements that are due,
// without polling; BZCLAIM is a queue that survives its workers: claimed elements
// stay in the set and are due again when the lease ends, unless ZREMIFEQ has
// removed them, which does nothing if the score has changed meanwhile.

// SortedSetTakeCommands returns the rows of the commands that take elements, which
// Redis does not have.
func SortedSetTakeCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "bzclaim", Arity: -7, Flags: "write denyoom blocking", Keys: "2# RW access update",
			Group: "sorted-set", Since: process.ExtensionVersion,
			Complexity: "O(K + M log N), K keys, N members of the sorted set, M claimed",
			Summary:    "As ZCLAIM, and wait up to timeout seconds for members",
			Syntax:     "timeout numkeys key [key ...] min max newscore [COUNT count] [LEASE]",
		}, Run: bzclaim},
		{Facts: protocol.Facts{
			Name: "bzpopbyscore", Arity: -6, Flags: "write blocking", Keys: "2# RW access delete",
			Group: "sorted-set", Since: process.ExtensionVersion,
			Complexity: "O(K + M log N), K keys, N members of the sorted set, M removed",
			Summary:    "As ZPOPBYSCORE, and wait up to timeout seconds for members",
			Syntax:     "timeout numkeys key [key ...] min max [MAX] [COUNT count]",
		}, Run: bzpopbyscore},
		{Facts: protocol.Facts{
			Name: "zclaim", Arity: -5, Flags: "write denyoom fast", Keys: "1 RW access update",
			Group: "sorted-set", Since: process.ExtensionVersion,
			Complexity: "O(M log N), N members of the sorted set, M claimed",
			Summary:    "Give the lowest members with a score from min to max a new score, and return them",
			Syntax:     "key min max newscore [COUNT count] [LEASE]",
		}, Run: zclaim, Function: true},
		{Facts: protocol.Facts{
			Name: "zpopbyscore", Arity: -4, Flags: "write fast", Keys: "1 RW access delete",
			Group: "sorted-set", Since: process.ExtensionVersion,
			Complexity: "O(M log N), N members of the sorted set, M removed",
			Summary:    "Remove the lowest or highest members with a score from min to max, and return them",
			Syntax:     "key min max [MAX] [COUNT count]",
		}, Run: zpopbyscore, Function: true},
		{Facts: protocol.Facts{
			Name: "zremifeq", Arity: -4, Flags: "write fast", Keys: "1 RW access delete",
			Group: "sorted-set", Since: process.ExtensionVersion,
			Complexity: "O(M log N), M members given, N members of the sorted set",
			Summary:    "Remove the members that have the given scores",
			Syntax:     "key score member [score member ...]",
		}, Run: zremifeq, Function: true},
	}
}

// takeOptions select the elements to take, and the way.
type takeOptions struct {
	keys   [][]byte
	scores score.Range
	count  int64
	many   bool // COUNT was given
	max    bool // the highest first

	claim bool // leave them in the set, with this score
	score float64
	lease bool // reply the new score instead of the old one
}

// read reads the arguments after the keys.
func (o *takeOptions) read(c *engine.Call) {
	lo, hi := c.Bytes(), c.Bytes()
	var newScore []byte
	if o.claim {
		newScore = c.Bytes()
	}
	o.count = 1
	for c.More() {
		switch {
		case !o.claim && !o.max && c.Is("MAX"):
			o.max = true
		case o.claim && !o.lease && c.Is("LEASE"):
			o.lease = true
		case !o.many && c.Len() > 1 && c.Is("COUNT"):
			o.many = true
			o.count = c.IntIn(1, math.MaxInt64, "ERR count should be greater than 0")
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	if c.Err() != "" {
		return
	}
	var ok bool
	if o.scores, ok = score.ParseRange(lo, hi); !ok {
		c.Fail(score.NotRange(lo, hi))
	}
	if o.claim {
		if o.score, ok = c.Score(newScore); !ok {
			c.Fail(score.NotFloat(newScore))
		}
	}
}

// take takes elements from s, the value of key.
func (o *takeOptions) take(c *engine.Call, key []byte, s *zset.Set) (taken []zset.Element) {
	scores, n := o.scores.At(c.Instant()), int(min(o.count, int64(s.Len())))
	event := "zpopmin"
	switch {
	case o.claim:
		event = "zclaim"
		taken = s.Claim(scores, o.score, n)
	case o.max:
		event = "zpopmax"
		taken = s.PopScoreMax(scores, n)
	default:
		taken = s.PopScoreMin(scores, n)
	}
	for i := range taken {
		c.Touched(engine.ClassZset, protocol.BytesOf(taken[i].Member))
		if o.lease {
			taken[i].Score = o.score
		}
	}
	if len(taken) > 0 {
		c.Changed(key, engine.ClassZset, event)
	}
	return taken
}

func zpopbyscore(c *engine.Call) { takeNow(c, takeOptions{}) }

func zclaim(c *engine.Call) { takeNow(c, takeOptions{claim: true}) }

func takeNow(c *engine.Call, o takeOptions) {
	key := c.Bytes()
	o.read(c)
	if !c.OK() {
		return
	}
	s, ok := engine.Edit[zset.Set](c, key)
	if !ok {
		return
	}
	var taken []zset.Element
	if s != nil {
		taken = o.take(c, key, s)
	}
	replyPopped(c, taken, o.many)
}

func bzpopbyscore(c *engine.Call) { takeOrWait(c, takeOptions{}) }

func bzclaim(c *engine.Call) { takeOrWait(c, takeOptions{claim: true}) }

func takeOrWait(c *engine.Call, o takeOptions) {
	timeout := c.Args // read last, as in BZMPOP
	c.Skip(1)
	numkeys := c.IntIn(1, math.MaxInt64, "ERR numkeys should be greater than 0")
	o.keys = c.NextN(int(min(numkeys, math.MaxInt32)))
	o.read(c)
	var deadline int64
	if c.Err() == "" {
		c.Args = timeout
		deadline = c.Deadline()
	}
	if !c.OK() {
		return
	}
	for _, key := range o.keys {
		s, ok := engine.Edit[zset.Set](c, key)
		if !ok {
			return
		}
		if s == nil {
			continue
		}
		if taken := o.take(c, key, s); len(taken) > 0 {
			replyKeyedElements(c, key, taken)
			return
		}
	}
	c.WaitFor(deadline, engine.Want{Kind: keyspace.KindZset, Ranged: true, Scores: o.scores}, (*protocol.Reply).NullArray, o.keys)
}

func zremifeq(c *engine.Call) {
	key := c.Bytes()
	pairs := c.Rest()
	if len(pairs)%2 != 0 {
		c.Fail(protocol.ErrSyntax)
	}
	var few [16]float64
	scores := c.Numbers(few[:0], pairs, c.Score, score.NotFloat)
	if !c.OK() {
		return
	}
	s, ok := engine.Edit[zset.Set](c, key)
	switch {
	case !ok:
	case s == nil:
		c.Reply.Int(0)
	default:
		removed := 0
		for i, score := range scores {
			if member := pairs[2*i+1]; s.Internal().RemoveIf(member, score) {
				removed++
				c.Touched(engine.ClassZset, member)
			}
		}
		if removed > 0 {
			c.Changed(key, engine.ClassZset, "zrem")
		}
		c.Reply.Int(int64(removed))
	}
}
