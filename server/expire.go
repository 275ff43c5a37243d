package server

import (
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
)

// expiry is a deadline as the options EX, PX, EXAT, PXAT, KEEPTTL and PERSIST of a
// command give it.
type expiry struct {
	deadline int64 // milliseconds since 1970; valid if set
	set      bool
	keep     bool // KEEPTTL
	persist  bool // PERSIST

	option string // the given option
}

// expiryOption parses one of the options EX, PX, EXAT and PXAT with its time, or a
// word such as KEEPTTL or PERSIST that extra names, into x. It reports whether it
// has found one. Only one kind may be given, but repeatedly; the last time counts.
// The time goes to raw, because Redis validates it after the syntax of all options.
func (c *Call) expiryOption(x *expiry, raw *rawTime, extra string) bool {
	option, unit := "", timeUnit(0)
	switch {
	case c.Len() >= 2 && c.Is("EX"):
		option, unit = "EX", seconds
	case c.Len() >= 2 && c.Is("PX"):
		option = "PX"
	case c.Len() >= 2 && c.Is("EXAT"):
		option, unit = "EXAT", seconds|absolute
	case c.Len() >= 2 && c.Is("PXAT"):
		option, unit = "PXAT", absolute
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
		x.keep = true
	case "PERSIST":
		x.persist = true
	default:
		x.set = true
		raw.text, raw.unit = c.Bytes(), unit
	}
	return true
}

// rawTime is a time that is not validated yet.
type rawTime struct {
	text []byte
	unit timeUnit
}

// timeUnit is the unit of a time, and its origin.
type timeUnit uint8

const (
	seconds  timeUnit = 1 << iota // not milliseconds
	absolute                      // since 1970, not from now
)

// resolve validates a time that must be positive, as SET and similar commands
// require, and converts it to a deadline.
func (c *Call) resolve(x *expiry, raw rawTime) {
	if !x.set || c.Err() != "" {
		return
	}
	n, unit := c.readTime(raw.text, raw.unit, protocol.ErrNotInteger)
	ok := n > 0
	if ok {
		x.deadline, ok = c.after(n, unit)
	}
	if !ok {
		c.Fail(invalidExpire(c.cmd.Name))
	}
}

// after returns the deadline of n units, in milliseconds since 1970, or false if it
// exceeds 64 bits.
func (c *Call) after(n int64, unit timeUnit) (ms int64, ok bool) {
	if unit&seconds != 0 {
		if n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
			return 0, false
		}
		n *= 1000
	}
	if unit&absolute == 0 {
		if n > math.MaxInt64-c.now() {
			return 0, false
		}
		n += c.now()
	}
	return n, true
}

func invalidExpire(name string) string { return "ERR invalid expire time in '" + name + "' command" }

// setDeadline gives an entry a deadline. A deadline before 1970 becomes 1 ms after
// it, because 0 means none.
func (c *Call) setDeadline(e *keyspace.Entry, ms int64) *keyspace.Entry {
	e, _ = c.db.SetDeadline(e, max(ms, 1))
	return e
}

// persist removes the deadline of a key, and reports whether there was one.
func (c *Call) persist(e *keyspace.Entry) bool {
	_, had := c.db.SetDeadline(e, 0)
	return had
}
