package engine

import (
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// Expiry is a deadline as the options EX, PX, EXAT, PXAT, KEEPTTL and PERSIST of a
// command give it.
type Expiry struct {
	Deadline int64 // milliseconds since 1970; valid if set
	Set      bool
	Keep     bool // KEEPTTL
	Persist  bool // PERSIST

	option string // the given option
}

// ExpiryOption parses one of the options EX, PX, EXAT and PXAT with its time, or a
// word such as KEEPTTL or PERSIST that extra names, into x. It reports whether it
// has found one. Only one kind may be given, but repeatedly; the last time counts.
// The time goes to raw, because Redis validates it after the syntax of all options.
func (c *Call) ExpiryOption(x *Expiry, raw *RawTime, extra string) bool {
	option, unit := "", TimeUnit(0)
	switch {
	case c.Len() >= 2 && c.Is("EX"):
		option, unit = "EX", Seconds
	case c.Len() >= 2 && c.Is("PX"):
		option = "PX"
	case c.Len() >= 2 && c.Is("EXAT"):
		option, unit = "EXAT", Seconds|Absolute
	case c.Len() >= 2 && c.Is("PXAT"):
		option, unit = "PXAT", Absolute
	case extra != "" && c.Is(extra):
		option = extra
	default:
		return false
	}
	if x.option != "" && x.option != option {
		c.Fail(protocol.ErrSyntax)
	}
	x.option = option
	switch option {
	case "KEEPTTL":
		x.Keep = true
	case "PERSIST":
		x.Persist = true
	default:
		x.Set = true
		raw.Text, raw.Unit = c.Bytes(), unit
	}
	return true
}

// RawTime is a time that is not validated yet.
type RawTime struct {
	Text []byte
	Unit TimeUnit
}

// TimeUnit is the unit of a time, and its origin.
type TimeUnit uint8

const (
	Seconds  TimeUnit = 1 << iota // not milliseconds
	Absolute                      // since 1970, not from now
)

// Resolve validates a time that must be positive, as SET and similar commands
// require, and converts it to a deadline.
func (c *Call) Resolve(x *Expiry, raw RawTime) {
	if !x.Set || c.Err() != "" {
		return
	}
	n, unit := c.ReadTime(raw.Text, raw.Unit, protocol.ErrNotInteger)
	ok := n > 0
	if ok {
		x.Deadline, ok = c.After(n, unit)
	}
	if !ok {
		c.Fail(InvalidExpire(c.Command.Name))
	}
}

// After returns the deadline of n units, in milliseconds since 1970, or false if it
// exceeds 64 bits.
func (c *Call) After(n int64, unit TimeUnit) (ms int64, ok bool) {
	if unit&Seconds != 0 {
		if n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
			return 0, false
		}
		n *= 1000
	}
	if unit&Absolute == 0 {
		if n > math.MaxInt64-c.Now() {
			return 0, false
		}
		n += c.Now()
	}
	return n, true
}

// InvalidExpire returns the error of an expiry time that is out of range.
func InvalidExpire(name string) string { return "ERR invalid expire time in '" + name + "' command" }

// SetDeadline gives an entry a deadline. A deadline before 1970 becomes 1 ms after
// it, because 0 means none.
func (c *Call) SetDeadline(e *keyspace.Entry, ms int64) *keyspace.Entry {
	e, _ = c.DB.SetDeadline(e, max(ms, 1))
	return e
}

// Persist removes the deadline of a key, and reports whether there was one.
func (c *Call) Persist(e *keyspace.Entry) bool {
	_, had := c.DB.SetDeadline(e, 0)
	return had
}
