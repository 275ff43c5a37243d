package server

import (
	"math"
	"math/big"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// deadline reads the timeout of a blocking command, in seconds, and returns
// when it ends, in milliseconds since 1970, or 0 if it never does. It fails on
// what is no number, negative, or beyond the end of time.
func (c *Call) deadline() int64 {
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
	case ms > math.MaxInt64-c.now():
		c.Fail("ERR timeout is out of range")
		return 0
	case ms == 0:
		return 0
	}
	return c.srv.after(ms)
}

// after returns when a time of so many milliseconds has passed, in milliseconds since
// 1970. It rounds up: what waits for it ends up to a millisecond later, and never
// earlier.
func (srv *Server) after(ms int64) int64 {
	at := srv.at.UnixMilli()
	if ms > 0 && srv.at.Nanosecond()%int(time.Millisecond) != 0 {
		at++
	}
	return at + min(ms, math.MaxInt64-at)
}

// milliseconds reads seconds and rounds them up to whole milliseconds. Redis
// computes with the 64 bits of C's long double: with a float64, 0.035 seconds
// would be a trace more than 35 ms and count as 36.
func milliseconds(b []byte) (int64, bool) {
	if n, ok := protocol.ParseInt(b); ok && -1e12 < n && n < 1e12 {
		return n * 1000, true
	}
	x, ok := parseLongDouble(b)
	if !ok {
		return 0, false
	}
	ms, rounded := x.Mul(x, big.NewFloat(1000)).Int64()
	if rounded == big.Below && ms < math.MaxInt64 {
		ms++
	}
	return ms, true
}

// mayBlock reports whether wait would wait, and not reply at once.
func (c *Call) mayBlock() bool { return !c.nested && !c.sess.noBlock }
