package data

import (
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/lcs"
)

// lcsOptions are the options of LCS.
type lcsOptions struct {
	length, index, withLength bool
	minLength                 int64
}

// longestCommon handles LCS. Package lcs has the algorithm.
func longestCommon(c *engine.Call) {
	var texts [2][]byte
	// Both keys are read, and count as misses, before either type is checked.
	for i, e := range [2]*keyspace.Entry{c.DB.Get(c.Bytes()), c.DB.Get(c.Bytes())} {
		if e != nil {
			s, ok := e.Value().(*keyspace.String)
			if !ok {
				c.Reply.Error("ERR The specified keys must contain string values")
				return
			}
			texts[i] = s.Content()
		}
	}
	var o lcsOptions
	for c.More() {
		switch {
		case c.Is("IDX"):
			o.index = true
		case c.Is("LEN"):
			o.length = true
		case c.Is("WITHMATCHLEN"):
			o.withLength = true
		case c.Len() >= 2 && c.Is("MINMATCHLEN"):
			o.minLength = max(c.Int(), 0)
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	if o.index && o.length {
		c.Fail("ERR If you want both the length and indexes, please just use IDX.")
	}
	if !c.OK() {
		return
	}
	a, b := texts[0], texts[1]
	if cells := (int64(len(a)) + 1) * (int64(len(b)) + 1); len(a) >= math.MaxUint32-1 || len(b) >= math.MaxUint32-1 {
		c.Reply.Error("ERR String too long for LCS")
		return
	} else if cells > c.Config().ProtoMaxBulk/4 {
		c.Reply.Error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
		return
	}
	t := lcs.New(a, b)
	n := t.Len()
	switch {
	case o.length:
		c.Reply.Int(int64(n))
	case o.index:
		matches := t.Matches(int(min(o.minLength, math.MaxInt32)))
		c.Reply.Map(2)
		c.Reply.BulkString("matches")
		c.Reply.Array(len(matches))
		for _, m := range matches {
			if o.withLength {
				c.Reply.Array(3)
			} else {
				c.Reply.Array(2)
			}
			c.Reply.Array(2)
			c.Reply.Int(int64(m.A))
			c.Reply.Int(int64(m.A + m.Len - 1))
			c.Reply.Array(2)
			c.Reply.Int(int64(m.B))
			c.Reply.Int(int64(m.B + m.Len - 1))
			if o.withLength {
				c.Reply.Int(int64(m.Len))
			}
		}
		c.Reply.BulkString("len")
		c.Reply.Int(int64(n))
	default:
		c.Reply.Bulk(t.Subsequence())
	}
}
