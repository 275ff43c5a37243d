package data

import (
	"bytes"
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/glob"
	"github.com/zsetd/zsetd/server/internal/engine"
)

// The cursor and the options of SCAN, HSCAN, SSCAN and ZSCAN.

// cursor reads a cursor as C's strtoull does: after spaces a sign is accepted, and a NUL
// ends the text. Other than there, an empty text is refused, and so is a negative number
// of 64 bits without a space.
func cursor(c *engine.Call) uint64 {
	b := c.Bytes()
	n, ok := parseCursor(b)
	if !ok {
		c.Fail("ERR invalid cursor")
	}
	return n
}

func parseCursor(b []byte) (uint64, bool) {
	if n, ok := protocol.ParseInt(b); ok {
		return uint64(n), n >= 0
	}
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	b = bytes.TrimLeft(b, " \t\n\v\f\r")
	if len(b) == 0 {
		return 0, false
	}
	neg := b[0] == '-'
	if neg || b[0] == '+' {
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, false
	}
	var n uint64
	for _, d := range b {
		d -= '0'
		if d > 9 || n > (math.MaxUint64-uint64(d))/10 {
			return 0, false
		}
		n = n*10 + uint64(d)
	}
	if neg {
		n = -n
	}
	return n, true
}

// scanOptions are the options that every command of the family has.
type scanOptions struct {
	glob.Pattern
	count int // approximate number of elements to visit
}

// parseScanOptions reads MATCH and COUNT up to the end.
func parseScanOptions(c *engine.Call) scanOptions {
	o := scanOptions{count: 10}
	for c.More() {
		if !o.read(c) {
			c.Fail(protocol.ErrSyntax)
		}
	}
	return o
}

// read reads one option and its value, if it is one of these. It fails for an option of
// another command of the family.
func (o *scanOptions) read(c *engine.Call) bool {
	switch {
	case c.Len() >= 2 && c.Is("COUNT"):
		n := c.Int()
		if n < 1 {
			c.Fail(protocol.ErrSyntax)
		}
		o.count = int(min(n, math.MaxInt32))
	case c.Len() >= 2 && c.Is("MATCH"):
		o.Pattern = scanPattern(c.Bytes())
	case c.Is("NOVALUES"):
		c.Fail("ERR NOVALUES option can only be used in HSCAN")
	case c.Config().Valkey() && c.Is("NOSCORES"):
		c.Fail("ERR NOSCORES option can only be used in ZSCAN")
	default:
		return false
	}
	return true
}

// scanPattern is a pattern for KEYS and its family: a single star matches every
// name, the empty one, too.
func scanPattern(text []byte) glob.Pattern {
	if string(text) == "*" {
		return glob.Pattern{}
	}
	return glob.Compile(text, false)
}
