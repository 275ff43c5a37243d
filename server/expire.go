package server

import (
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
)

// expiry is a deadline as the options EX, PX, EXAT, PXAT, KEEPTTL and PERSIST
// of a command give it.
type expiry struct {
	deadline int64 // milliseconds since 1970; meaningful if set
	set      bool
	keep     bool // KEEPTTL
	persist  bool // PERSIST
}

// expiryOption reads one of the options EX, PX, EXAT and PXAT with its time,
// or a word such as KEEPTTL or PERSIST that extra names, into x. It reports
// whether it has met one. Only one of them may be given; the time is read
// into raw, because Redis judges it after the syntax of all options.
func (c *Call) expiryOption(x *expiry, raw *rawTime, extra string) bool {
	unit := timeUnit(0)
	switch {
	case c.Len() >= 2 && c.Is("EX"):
		unit = seconds
	case c.Len() >= 2 && c.Is("PX"):
		unit = 0
	case c.Len() >= 2 && c.Is("EXAT"):
		unit = seconds | absolute
	case c.Len() >= 2 && c.Is("PXAT"):
		unit = absolute
	case extra == "KEEPTTL" && c.Is("KEEPTTL"):
		c.onlyOne(x)
		x.keep = true
		return true
	case extra == "PERSIST" && c.Is("PERSIST"):
		c.onlyOne(x)
		x.persist = true
		return true
	default:
		return false
	}
	c.onlyOne(x)
	x.set = true
	raw.text, raw.unit = c.Bytes(), unit
	return true
}

func (c *Call) onlyOne(x *expiry) {
	if x.set || x.keep || x.persist {
		c.Fail(protocol.ErrSyntax)
	}
}

// rawTime is a time that has not been judged.
type rawTime struct {
	text []byte
	unit timeUnit
}

// timeUnit says what a time is counted in, and from when.
type timeUnit uint8

const (
	seconds  timeUnit = 1 << iota // not milliseconds
	absolute                      // since 1970, not from now
)

// resolve judges a time that must be positive, as SET and its like demand, and
// makes it a deadline.
func (c *Call) resolve(x *expiry, raw rawTime) {
	if !x.set || c.Err() != "" {
		return
	}
	n, ok := protocol.ParseInt(raw.text)
	switch {
	case !ok:
		c.Fail(protocol.ErrNotInteger)
		return
	case n <= 0:
		c.Fail(invalidExpire(c.cmd.Name))
		return
	}
	if x.deadline, ok = c.after(n, raw.unit); !ok {
		c.Fail(invalidExpire(c.cmd.Name))
	}
}

// after returns the deadline that n units stand for, in milliseconds since
// 1970, or false if it is beyond what 64 bits can say.
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

// setDeadline gives an entry a deadline. One before 1970 counts as 1 ms after
// it: 0 means none.
func (c *Call) setDeadline(e *keyspace.Entry, ms int64) { c.db.SetDeadline(e, max(ms, 1)) }
