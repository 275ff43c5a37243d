package data

import (
	"math"
	"math/big"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/longdouble"
)

// increxOptions are the options of INCREX. The numbers are read when all options are
// known, because LBOUND may stand before BYFLOAT.
type increxOptions struct {
	by, lower, upper []byte // nil if absent
	float            bool   // BYFLOAT
	saturate, enx    bool
	engine.Expiry
}

// increx is INCREX, after the page at redis.io/docs/latest/commands/increx. A result
// outside of the bounds changes nothing, unless SATURATE replaces it with the bound. The reply is
// the value and the increment that was applied.
func increx(c *engine.Call) {
	key := c.Bytes()
	var o increxOptions
	if o.parse(c); !c.OK() {
		return
	}
	e := c.DB.Edit(key)
	value := []byte("0")
	if e != nil {
		s, ok := engine.As[keyspace.String](c, e)
		if !ok {
			return
		}
		value = s.Content()
	}
	if o.float {
		o.addFloat(c, key, e, value)
	} else {
		o.addInt(c, key, e, value)
	}
}

// parse reads the options; each may be given once.
func (o *increxOptions) parse(c *engine.Call) {
	var raw engine.RawTime
	number := func(option string, n *[]byte) bool {
		if *n != nil || c.Len() < 2 || !c.Is(option) {
			return false
		}
		*n = c.Bytes()
		return true
	}
	for c.More() {
		before := o.Expiry
		switch {
		case number("BYINT", &o.by):
		case number("BYFLOAT", &o.by):
			o.float = true
		case number("LBOUND", &o.lower), number("UBOUND", &o.upper):
		case !o.saturate && c.Is("SATURATE"):
			o.saturate = true
		case !o.enx && c.Is("ENX"):
			o.enx = true
		case !before.Set && !before.Persist && c.ExpiryOption(&o.Expiry, &raw, "PERSIST"):
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	switch {
	case o.enx && o.Persist:
		c.Fail(protocol.ErrSyntax)
	case o.enx && !o.Set:
		c.Fail("ERR ENX flag requires an expiration")
	}
	c.Resolve(&o.Expiry, raw)
}

const errBoundsCrossed = "ERR LBOUND can't be greater than UBOUND"

func (o *increxOptions) addInt(c *engine.Call, key []byte, e *keyspace.Entry, value []byte) {
	read := func(text []byte, otherwise int64, what string) int64 {
		if text == nil {
			return otherwise
		}
		n, ok := protocol.ParseInt(text)
		if !ok {
			c.Fail("ERR " + what + " is not an integer or out of range")
		}
		return n
	}
	by := read(o.by, 1, "Increment")
	lower := read(o.lower, math.MinInt64, "LBOUND")
	upper := read(o.upper, math.MaxInt64, "UBOUND")
	if c.Err() == "" && lower > upper {
		c.Fail(errBoundsCrossed)
	}
	old := read(value, 0, "value")
	if !c.OK() {
		return
	}
	sum, within := saturatingAdd(old, by)
	within = within && lower <= sum && sum <= upper
	if !within && !o.saturate {
		c.Reply.Array(2)
		c.Reply.Int(old)
		c.Reply.Int(0)
		return
	}
	sum = max(lower, min(sum, upper))
	applied := sum - old
	if (applied >= 0) != (sum >= old) {
		c.Reply.Error("ERR applied increment would overflow")
		return
	}
	var d [20]byte
	o.store(c, key, e, strconv.AppendInt(d[:0], sum, 10))
	c.Reply.Array(2)
	c.Reply.Int(sum)
	c.Reply.Int(applied)
}

// saturatingAdd returns a+b, or the nearest integer and false if the sum exceeds 64 bits.
func saturatingAdd(a, b int64) (sum int64, ok bool) {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64, false
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64, false
	}
	return a + b, true
}

func (o *increxOptions) addFloat(c *engine.Call, key []byte, e *keyspace.Entry, value []byte) {
	read := func(text []byte, what string) *big.Float {
		if text == nil {
			return nil
		}
		x, ok := longdouble.Parse(text)
		if !ok {
			c.Fail("ERR " + what + " is not a valid float")
		}
		return x
	}
	by, lower, upper := read(o.by, "Increment"), read(o.lower, "LBOUND"), read(o.upper, "UBOUND")
	if c.Err() == "" && by.IsInf() {
		c.Fail("ERR BYFLOAT increment cannot be Infinity")
	}
	if c.Err() == "" && lower != nil && upper != nil && lower.Cmp(upper) > 0 {
		c.Fail(errBoundsCrossed)
	}
	old := read(value, "value")
	if c.Err() == "" && old.IsInf() {
		c.Fail("ERR value cannot be Infinity")
	}
	if !c.OK() {
		return
	}
	sum, within := longdouble.Add(old, by)
	if !within {
		sum = longdouble.Largest(by.Signbit())
	}
	bounded := sum
	if lower != nil && bounded.Cmp(lower) < 0 {
		bounded = lower
	}
	if upper != nil && bounded.Cmp(upper) > 0 {
		bounded = upper
	}
	within = within && bounded == sum
	if !within && !o.saturate {
		c.Reply.Array(2)
		c.Reply.Decimal(longdouble.Format(old))
		c.Reply.Decimal([]byte("0"))
		return
	}
	applied := by
	if !within {
		var ok bool
		if applied, ok = longdouble.Add(bounded, new(big.Float).Neg(old)); !ok {
			c.Reply.Error("ERR applied increment would produce Infinity")
			return
		}
	}
	result := longdouble.Format(bounded)
	o.store(c, key, e, result)
	c.Reply.Array(2)
	c.Reply.Decimal(result)
	c.Reply.Decimal(longdouble.Format(applied))
}

// store writes the result and the deadline; a deadline that has passed deletes the key.
func (o *increxOptions) store(c *engine.Call, key []byte, e *keyspace.Entry, result []byte) {
	set := o.Set && !(o.enx && e != nil && e.Deadline() != 0)
	if set && c.Past(o.Deadline) {
		c.Drop(key)
		return
	}
	s, event := overwrite(c, key, e, result), "incrby"
	if o.float {
		s.MarkText()
		event = "incrbyfloat"
	}
	c.Changed(key, engine.ClassString, event)
	switch {
	case set:
		c.SetDeadline(c.DB.Edit(key), o.Deadline)
		c.Changed(key, engine.ClassGeneric, "expire")
	case o.Persist && c.Persist(c.DB.Edit(key)):
		c.Changed(key, engine.ClassGeneric, "persist")
	}
}
