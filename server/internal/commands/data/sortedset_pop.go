package data

import (
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/zset"
)

// The commands that remove the lowest or the highest elements, and their blocking
// variants.

// popEnd is the end at which elements are popped.
type popEnd struct {
	event string
	pop   func(*zset.Set, int) []zset.Element
}

func popMin() popEnd { return popEnd{"zpopmin", (*zset.Set).PopMin} }
func popMax() popEnd { return popEnd{"zpopmax", (*zset.Set).PopMax} }

func zpopmin(c *engine.Call) { zpop(c, popMin()) }

func zpopmax(c *engine.Call) { zpop(c, popMax()) }

func zpop(c *engine.Call, end popEnd) {
	key := c.Bytes()
	count, many := int64(1), false
	switch {
	case c.Len() > 1:
		c.Fail(protocol.ErrSyntax)
	case c.Len() == 1:
		many = true
		count = c.IntIn(0, math.MaxInt64, "ERR value is out of range, must be positive")
	}
	if !c.OK() {
		return
	}
	s, ok := engine.Edit[zset.Set](c, key)
	switch {
	case !ok:
	case s == nil || count == 0:
		c.Reply.Array(0)
	default:
		replyPopped(c, zpopFrom(c, key, s, end, count), many)
	}
}

// replyPopped replies popped elements. RESP3 has pairs only if the client has given a
// count.
func replyPopped(c *engine.Call, elements []zset.Element, many bool) {
	if many {
		zlist(c, elements, true)
		return
	}
	c.Reply.Array(2 * len(elements))
	for _, e := range elements {
		c.Reply.BulkString(e.Member)
		c.Reply.Double(e.Score)
	}
}

func zpopFrom(c *engine.Call, key []byte, s *zset.Set, end popEnd, count int64) []zset.Element {
	popped := end.pop(s, int(min(count, int64(s.Len()))))
	for _, e := range popped {
		c.Touched(engine.ClassZset, protocol.BytesOf(e.Member))
	}
	c.Changed(key, engine.ClassZset, end.event)
	return popped
}

// zpopFirst opens the first of keys that exists. It returns a nil set if none does;
// if ok is false, that key holds another type, and the error has been replied.
func zpopFirst(c *engine.Call, keys [][]byte) (key []byte, s *zset.Set, ok bool) {
	for _, key = range keys {
		if s, ok = engine.Edit[zset.Set](c, key); s != nil || !ok {
			return key, s, ok
		}
	}
	return nil, nil, true
}

func zmpop(c *engine.Call) {
	o := readZmpop(c)
	if !c.OK() {
		return
	}
	if !zpopMany(c, o) {
		c.Reply.NullArray()
	}
}

type zmpopOptions struct {
	keys  [][]byte
	end   popEnd
	count int64
}

func readZmpop(c *engine.Call) zmpopOptions {
	o := zmpopOptions{count: 1}
	numkeys := c.IntIn(1, math.MaxInt64, "ERR numkeys should be greater than 0")
	o.keys = c.NextN(int(min(numkeys, math.MaxInt32)))
	switch {
	case c.Is("MIN"):
		o.end = popMin()
	case c.Is("MAX"):
		o.end = popMax()
	default:
		c.Fail(protocol.ErrSyntax)
	}
	if c.Len() > 1 && c.Is("COUNT") {
		o.count = c.IntIn(1, math.MaxInt64, "ERR count should be greater than 0")
	}
	if c.Len() > 0 {
		c.Fail(protocol.ErrSyntax)
	}
	return o
}

// zpopMany replies the key and the elements popped, or an error; it returns false,
// without any change, if no key exists.
func zpopMany(c *engine.Call, o zmpopOptions) bool {
	key, s, ok := zpopFirst(c, o.keys)
	if s == nil {
		return !ok
	}
	replyKeyedElements(c, key, zpopFrom(c, key, s, o.end, o.count))
	return true
}

// replyKeyedElements replies elements with the key from which they come.
func replyKeyedElements(c *engine.Call, key []byte, elements []zset.Element) {
	c.Reply.Array(2)
	c.Reply.Bulk(key)
	c.Reply.Array(len(elements))
	for _, e := range elements {
		c.Reply.Array(2)
		c.Reply.BulkString(e.Member)
		c.Reply.Double(e.Score)
	}
}

func bzmpop(c *engine.Call) {
	timeout := c.Args // read last, as in Redis
	c.Skip(1)
	o := readZmpop(c)
	var deadline int64
	if c.Err() == "" {
		c.Args = timeout
		deadline = c.Deadline()
	}
	if !c.OK() {
		return
	}
	if !zpopMany(c, o) {
		c.Wait(deadline, keyspace.KindZset, (*protocol.Reply).NullArray, o.keys...)
	}
}

func bzpopmin(c *engine.Call) { zpopOrWait(c, popMin()) }

func bzpopmax(c *engine.Call) { zpopOrWait(c, popMax()) }

func zpopOrWait(c *engine.Call, end popEnd) {
	keys := c.NextN(c.Len() - 1)
	deadline := c.Deadline()
	if !c.OK() {
		return
	}
	key, s, ok := zpopFirst(c, keys)
	switch {
	case !ok:
	case s == nil:
		c.Wait(deadline, keyspace.KindZset, (*protocol.Reply).NullArray, keys...)
	default:
		e := zpopFrom(c, key, s, end, 1)[0]
		c.Reply.Array(3)
		c.Reply.Bulk(key)
		c.Reply.BulkString(e.Member)
		c.Reply.Double(e.Score)
	}
}
