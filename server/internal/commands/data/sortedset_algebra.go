package data

import (
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/zset"
)

// The commands that compute a sorted set from several. Plain sets are accepted as
// sorted sets whose members all have the score 1.

// zalgebra is one of the three operations.
type zalgebra uint8

const (
	zUnion zalgebra = iota
	zInter
	zDiff
)

func (op zalgebra) compute(agg zset.Aggregate, in []zset.Input) *zset.Set {
	switch op {
	case zUnion:
		return zset.Union(agg, in...)
	case zInter:
		return zset.Inter(agg, in...)
	}
	return zset.Diff(sources(in)...)
}

func sources(in []zset.Input) []zset.Source {
	list := make([]zset.Source, len(in))
	for i := range in {
		list[i] = in[i].Source
	}
	return list
}

// zinputs reads the number of keys and the keys, and opens them: Redis reports a
// wrong type before errors in the options. If ok is false the error has been
// replied. A key that does not exist gives a nil Source.
func zinputs(c *engine.Call) (in []zset.Input, ok bool) {
	numkeys := c.Int()
	if numkeys < 1 {
		c.Fail("ERR at least 1 input key is needed for '" + c.Command.Name + "' command")
	}
	keys := c.NextN(int(min(numkeys, math.MaxInt32)))
	if !c.OK() {
		return nil, false
	}
	in = make([]zset.Input, len(keys))
	for i, key := range keys {
		in[i].Weight = 1
		e := c.DB.Get(key)
		if e == nil {
			continue
		}
		source, ok := e.Value().(zset.Source)
		if !ok {
			c.Reply.Error(engine.ErrWrongType)
			return nil, false
		}
		in[i].Source = source
	}
	return in, true
}

type zalgebraOptions struct {
	agg        zset.Aggregate
	withScores bool
}

// readZalgebra reads the options, which may set the weights of the inputs.
func readZalgebra(c *engine.Call, op zalgebra, store bool, in []zset.Input) (o zalgebraOptions) {
	for c.More() {
		switch {
		case op != zDiff && c.Len() > len(in) && c.Is("WEIGHTS"):
			for i := range in {
				in[i].Weight = c.FloatOr("ERR weight value is not a float")
			}
		case op != zDiff && c.Len() > 1 && c.Is("AGGREGATE"):
			switch {
			case c.Is("SUM"):
				o.agg = zset.Sum
			case c.Is("MIN"):
				o.agg = zset.Min
			case c.Is("MAX"):
				o.agg = zset.Max
			case c.Is("COUNT"):
				o.agg = zset.Count
			default:
				c.Fail(protocol.ErrSyntax)
			}
		case !store && c.Is("WITHSCORES"):
			o.withScores = true
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	return o
}

func zunion(c *engine.Call) { zcombine(c, zUnion) }

func zinter(c *engine.Call) { zcombine(c, zInter) }

func zdiff(c *engine.Call) { zcombine(c, zDiff) }

func zcombine(c *engine.Call, op zalgebra) {
	in, ok := zinputs(c)
	if !ok {
		return
	}
	o := readZalgebra(c, op, false, in)
	if !c.OK() {
		return
	}
	s := op.compute(o.agg, in)
	zelements(c, s.Len(), o.withScores)
	for member, score := range s.All() {
		zelement(c, member, score, o.withScores)
	}
}

func zunionstore(c *engine.Call) { zcombineInto(c, zUnion, "zunionstore") }

func zinterstore(c *engine.Call) { zcombineInto(c, zInter, "zinterstore") }

func zdiffstore(c *engine.Call) { zcombineInto(c, zDiff, "zdiffstore") }

func zcombineInto(c *engine.Call, op zalgebra, event string) {
	dst := c.Bytes()
	in, ok := zinputs(c)
	if !ok {
		return
	}
	o := readZalgebra(c, op, true, in)
	if !c.OK() {
		return
	}
	zstore(c, dst, op.compute(o.agg, in), event)
}

func zintercard(c *engine.Call) {
	in, ok := zinputs(c)
	if !ok {
		return
	}
	var limit int64
	for c.More() {
		if c.Len() < 2 || !c.Is("LIMIT") {
			c.Fail(protocol.ErrSyntax)
			break
		}
		limit = c.IntIn(0, math.MaxInt64, "ERR LIMIT can't be negative")
	}
	if c.OK() {
		c.Reply.Int(int64(zset.InterCard(int(limit), sources(in)...)))
	}
}
