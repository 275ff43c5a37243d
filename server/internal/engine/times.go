package engine

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/values/score"
)

// ReadTime parses a time of the given unit: a number or, if the unit is absolute, a
// time of the server's clock. It returns the unit of the result: that of the
// command, or milliseconds since 1970. bad is the error for any other argument.
//
// Where a command takes a time since 1970 (EXPIREAT, SET with EXAT, RESTORE with
// ABSTTL, XCLAIM with TIME, and similar), the words of package score denote that instant,
// to the millisecond, whether the command counts in seconds or milliseconds.
func (c *Call) ReadTime(b []byte, unit TimeUnit, bad string) (n int64, of TimeUnit) {
	if c.Err() != "" {
		return 0, unit
	}
	if n, ok := protocol.ParseInt(b); ok {
		return n, unit
	}
	if len(b) == 0 || b[0] != '@' {
		c.Fail(bad)
		return 0, unit
	}
	if unit&Absolute == 0 {
		c.Fail(bad + score.AbsoluteOnly)
		return 0, unit
	}
	x, ok := score.ParseTime(b)
	if !ok {
		c.Fail(bad + score.TimeForms)
		return 0, unit
	}
	us := c.Engine.Turn.Instant + x.Offset
	if n = us / 1000; us < 0 && us%1000 != 0 {
		n-- // the millisecond that contains us
	}
	return n, Absolute
}

// Score parses a score to store or to compare with.
func (c *Call) Score(b []byte) (float64, bool) {
	if number, ok := protocol.ParseFloat(b); ok {
		return number, true
	}
	x, ok := score.ParseTime(b)
	return x.At(c.Engine.Turn.Instant), ok
}

// Numbers parses the first of each of pairs with number into list, which is empty.
// It fails with the error that not returns for an invalid one.
func (c *Call) Numbers(list []float64, pairs [][]byte, number func([]byte) (float64, bool), not func([]byte) string) []float64 {
	for i := 0; i < len(pairs) && c.Err() == ""; i += 2 {
		x, ok := number(pairs[i])
		if !ok {
			c.Fail(not(pairs[i]))
		}
		list = append(list, x)
	}
	return list
}
