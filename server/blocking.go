package server

import (
	"math"
	"math/big"

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
	f, ok := protocol.ParseFloat(b)
	if !ok {
		c.Fail("ERR timeout is not a float or out of range")
		return 0
	}
	ms := milliseconds(f, b)
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
	return c.now() + ms
}

// milliseconds rounds seconds, a number and how it is written, up to whole
// milliseconds. Redis computes with the 64 bits of C's long double: with a
// float64, 0.035 seconds would be a trace more than 35 ms and count as 36.
func milliseconds(seconds float64, written []byte) int64 {
	if seconds == math.Trunc(seconds) && math.Abs(seconds) < 1e12 {
		return int64(seconds) * 1000
	}
	if seconds < -1 {
		return -1000 // the amount does not matter
	}
	if seconds > 1e16 {
		return math.MaxInt64
	}
	x, ok := new(big.Float).SetPrec(64).SetString(string(written))
	if !ok {
		panic("BUG: not a number: " + string(written))
	}
	ms, rounded := x.Mul(x, big.NewFloat(1000)).Int64()
	if rounded == big.Below && ms < math.MaxInt64 {
		ms++
	}
	return ms
}
