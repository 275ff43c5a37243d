package command

import (
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/keyspace"
)

// lcsOptions are the options of LCS.
type lcsOptions struct {
	length, index, withLength bool
	minLength                 int64
}

func lcsRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "lcs", Arity: -3, Flags: "readonly", Keys: "1..+1 RO access",
		Group: "string", Since: "7.0.0", Complexity: "O(N*M), N and M bytes of the two strings",
		Summary: "Longest common subsequence of two strings, its length, or its matching ranges",
		Syntax:  "key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]",
	}, Run: lcs}
}

// lcs finds the longest common subsequence of two strings by the textbook table of
// len(a)×len(b) lengths. It walks the table backwards, with Redis's choice if
// several are longest.
func lcs(c *engine.Call) {
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
	} else if cells > c.Engine.Config.ProtoMaxBulk/4 {
		c.Reply.Error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
		return
	}
	t := newLCSTable(a, b)
	n := t.at(len(a), len(b))
	switch {
	case o.length:
		c.Reply.Int(int64(n))
	case o.index:
		matches := t.matches(int(min(o.minLength, math.MaxInt32)))
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
			c.Reply.Int(int64(m.a))
			c.Reply.Int(int64(m.a + m.length - 1))
			c.Reply.Array(2)
			c.Reply.Int(int64(m.b))
			c.Reply.Int(int64(m.b + m.length - 1))
			if o.withLength {
				c.Reply.Int(int64(m.length))
			}
		}
		c.Reply.BulkString("len")
		c.Reply.Int(int64(n))
	default:
		c.Reply.Bulk(t.subsequence())
	}
}

// lcsTable holds the length of the longest common subsequence of every pair of
// prefixes of a and b.
type lcsTable struct {
	a, b  []byte
	cells []uint32
}

func newLCSTable(a, b []byte) *lcsTable {
	t := &lcsTable{a, b, make([]uint32, (len(a)+1)*(len(b)+1))}
	width := len(b) + 1
	for i := 1; i <= len(a); i++ {
		row, above := t.cells[i*width:(i+1)*width], t.cells[(i-1)*width:i*width]
		for j := 1; j <= len(b); j++ {
			if a[i-1] == b[j-1] {
				row[j] = above[j-1] + 1
			} else {
				row[j] = max(above[j], row[j-1])
			}
		}
	}
	return t
}

func (t *lcsTable) at(i, j int) uint32 { return t.cells[i*(len(t.b)+1)+j] }

// lcsMatch is a run of bytes that a, from a on, and b, from b on, share.
type lcsMatch struct{ a, b, length int }

// back walks from the end to the start, from cell to cell, and calls match for
// every common byte and miss for every other step.
func (t *lcsTable) back(match func(i, j int), miss func()) {
	for i, j := len(t.a), len(t.b); i > 0 && j > 0; {
		switch {
		case t.a[i-1] == t.b[j-1]:
			i, j = i-1, j-1
			match(i, j)
		case t.at(i-1, j) > t.at(i, j-1):
			i--
			miss()
		default:
			j--
			miss()
		}
	}
}

func (t *lcsTable) subsequence() []byte {
	n := int(t.at(len(t.a), len(t.b)))
	s := make([]byte, n)
	t.back(func(i, _ int) {
		n--
		s[n] = t.a[i]
	}, func() {})
	return s
}

// matches returns the runs of at least atLeast bytes, the last one first.
func (t *lcsTable) matches(atLeast int) (found []lcsMatch) {
	var run lcsMatch
	end := func() {
		if run.length > 0 && run.length >= atLeast {
			found = append(found, run)
		}
		run = lcsMatch{}
	}
	t.back(func(i, j int) {
		switch {
		case run.length == 0:
			run = lcsMatch{i, j, 1}
		case run.a == i+1 && run.b == j+1:
			run = lcsMatch{i, j, run.length + 1}
		default: // two runs that touch in one of the strings: Redis omits this byte
			end()
		}
		if run.length > 0 && (run.a == 0 || run.b == 0) {
			end()
		}
	}, end)
	return found
}
