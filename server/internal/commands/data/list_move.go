package data

import (
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
)

// LMOVEM and BLMOVEM, after their pages at redis.io/docs/latest/commands.

func lmovem(c *engine.Call) {
	o := parseMoveEnds(c)
	o.parseHowMany(c)
	if !c.OK() || o.move(c) {
		return
	}
	if o.exactly {
		c.Reply.Null()
	} else {
		c.Reply.Array(0)
	}
}

func blmovem(c *engine.Call) {
	o := parseMoveEnds(c)
	deadline := c.Deadline()
	o.parseHowMany(c)
	if !c.OK() || o.move(c) {
		return
	}
	want := engine.Want{Kind: keyspace.KindList}
	if o.exactly {
		want.Length = o.count
	}
	c.WaitFor(deadline, want, moveTimeout(c), [][]byte{o.source})
}

// moveOptions are the arguments of LMOVEM.
type moveOptions struct {
	source, destination []byte
	from, to            side
	count               int64
	exactly             bool // fewer elements than count are not moved
	bulk                bool // the elements keep their order
}

// parseMoveEnds reads the arguments before the number of elements, which is then 1.
func parseMoveEnds(c *engine.Call) moveOptions {
	return moveOptions{source: c.Bytes(), destination: c.Bytes(), from: parseSide(c), to: parseSide(c), count: 1}
}

// parseHowMany reads the number of elements and their order, which stand together or not at
// all.
func (o *moveOptions) parseHowMany(c *engine.Call) {
	if c.Err() != "" || !c.More() {
		return
	}
	if c.Len() != 3 {
		c.Fail(protocol.ErrSyntax)
	}
	switch {
	case c.Is("COUNT"):
	case c.Is("EXACTLY"):
		o.exactly = true
	default:
		c.Fail(protocol.ErrSyntax)
	}
	o.count = c.IntIn(1, math.MaxInt64, "ERR count should be greater than 0")
	switch {
	case c.Is("BULK"):
		o.bulk = true
	case !c.Is("OBO"):
		c.Fail(protocol.ErrSyntax)
	}
}

// move moves the elements and replies them in the order that they have at the destination.
// It returns false, without a reply, if the source has too few.
func (o *moveOptions) move(c *engine.Call) bool {
	src, ok := engine.Edit[sequence.List](c, o.source)
	if src == nil {
		return !ok
	}
	if o.exactly && int64(src.Len()) < o.count {
		return false
	}
	if _, ok = engine.Edit[sequence.List](c, o.destination); !ok {
		return true
	}
	n := int(min(o.count, int64(src.Len())))
	moved, start := make([][]byte, 0, n), 0
	if o.from == right {
		start = src.Len() - n
	}
	var buf []byte
	for b := range src.Forward(start) {
		at := len(buf)
		buf = append(buf, b...)
		moved = append(moved, buf[at:len(buf):len(buf)])
		if len(moved) == n {
			break
		}
	}
	src.Delete(start, n)
	dst, _ := engine.Create[sequence.List](c, o.destination)
	reversed := !o.bulk && o.from == o.to // one by one to the same end, the last one is outermost
	at := func(i int) []byte {
		if reversed {
			i = n - 1 - i
		}
		return moved[i]
	}
	for i := range n {
		if o.to == left {
			dst.PushFront(at(n - 1 - i))
		} else {
			dst.PushBack(at(i))
		}
	}
	dst.Fit(c.Limits().ListMaxListpackSize)
	c.Changed(o.destination, engine.ClassList, o.to.pushed())
	src.Fit(c.Limits().ListMaxListpackSize)
	c.Changed(o.source, engine.ClassList, o.from.popped())
	c.Reply.Array(n)
	for i := range n {
		c.Reply.Bulk(at(i))
	}
	return true
}
