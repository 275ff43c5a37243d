package engine

import (
	"math"
	"math/big"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/values/longdouble"
)

// Deadline parses the timeout of a blocking command, in seconds, and returns its
// deadline in milliseconds since 1970, or 0 for none. It fails for an argument that
// is no number, negative, or out of range.
func (c *Call) Deadline() int64 {
	b := c.Bytes()
	if c.Err() != "" {
		return 0
	}
	ms, ok := milliseconds(b)
	if !ok {
		c.Fail("ERR timeout is not a float or out of range")
		return 0
	}
	switch {
	case ms < 0:
		c.Fail("ERR timeout is negative")
		return 0
	case ms > math.MaxInt64-c.Now():
		c.Fail("ERR timeout is out of range")
		return 0
	case ms == 0:
		return 0
	}
	return c.Engine.After(ms)
}

// After returns the instant ms milliseconds from now, in milliseconds since 1970.
// It rounds up: a wait ends up to a millisecond late, and never early.
func (srv *Engine) After(ms int64) int64 {
	at := srv.Turn.At.UnixMilli()
	if ms > 0 && srv.Turn.At.Nanosecond()%int(time.Millisecond) != 0 {
		at++
	}
	return at + min(ms, math.MaxInt64-at)
}

// milliseconds parses seconds and rounds them up to whole milliseconds. Redis
// computes in the 64-bit mantissa of C's long double: as a float64, 0.035 seconds
// would be a trace more than 35 ms and count as 36.
func milliseconds(b []byte) (int64, bool) {
	if n, ok := protocol.ParseInt(b); ok && -1e12 < n && n < 1e12 {
		return n * 1000, true
	}
	x, ok := longdouble.Parse(b)
	if !ok {
		return 0, false
	}
	ms, rounded := x.Mul(x, big.NewFloat(1000)).Int64()
	if rounded == big.Below && ms < math.MaxInt64 {
		ms++
	}
	return ms, true
}

// MayBlock reports whether wait would block rather than reply at once.
func (c *Call) MayBlock() bool { return !c.Nested && !c.Session.Modes.NoBlock }
