package data

import (
	"math"
	"slices"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
)

// The arguments of the commands for deadlines of fields in the dialect of Valkey: all options
// stand before FIELDS, and the fields are last.

const errFieldCount = "ERR numfields should be greater than 0 and match the provided number of fields"

// asValkey reports whether errors and events are those of Valkey. It has no deadlines of members
// of sorted sets.
func (k *timedKind) asValkey(c *engine.Call) bool {
	return k.class == engine.ClassHash && c.Config().Valkey()
}

// lastFields reads a number n and n*width arguments, the last ones. bad is the error for a
// number that is not theirs.
func lastFields(c *engine.Call, width int64, bad string) [][]byte {
	if !c.More() {
		c.Fail(bad)
	}
	n := c.Int()
	if c.Err() == "" && (n < 1 || n > math.MaxInt64/width || n*width != int64(c.Len())) {
		c.Fail(bad)
	}
	return c.Rest()
}

// optionsAndFields reads options, each with option, up to FIELDS, and the fields.
func optionsAndFields(c *engine.Call, width int64, option func() bool) [][]byte {
	isFields := func(word []byte) bool { return protocol.EqualFold(word, "FIELDS") }
	if rest := c.All()[c.Pos():]; !slices.ContainsFunc(rest[:max(0, len(rest)-1)], isFields) {
		c.Fail(errFieldCount)
	}
	for c.More() {
		if c.Is("FIELDS") {
			return lastFields(c, width, errFieldCount)
		}
		if !option() {
			c.Fail(protocol.ErrSyntax)
		}
	}
	return nil
}

// expireArgsOfValkey reads the arguments of HEXPIRE after the key.
func expireArgsOfValkey(c *engine.Call, unit engine.TimeUnit) (at int64, o expireOptions, fields [][]byte) {
	time := c.Bytes()
	fields = optionsAndFields(c, 1, func() bool {
		if !o.option(c) {
			c.Fail(unsupportedOption(c.Bytes()))
		}
		return true
	})
	o.check(c)
	return memberDeadline(c, time, unit), o, fields
}

// fieldOptions is the deadline option of HGETEX and HSETEX.
type fieldOptions struct {
	memberExpiry
	expiry engine.Expiry
	raw    engine.RawTime
}

// args reads the options and the fields: those of a deadline with the word extra, and others
// with other.
func (o *fieldOptions) args(c *engine.Call, width int64, extra string, other func() bool) [][]byte {
	fields := optionsAndFields(c, width, func() bool {
		timeless := protocol.EqualFold(c.Peek(1), "FIELDS") && !protocol.EqualFold(c.Peek(0), extra)
		return !timeless && c.ExpiryOption(&o.expiry, &o.raw, extra) || other()
	})
	o.keep, o.set = o.expiry.Keep || o.expiry.Persist, o.expiry.Set
	if o.set {
		o.memberExpiry.raw = &o.raw
	}
	return fields
}

// hsetexArgsOfValkey reads the arguments of HSETEX after the key.
func hsetexArgsOfValkey(c *engine.Call) (o hsetexOptions) {
	var x fieldOptions
	o.pairs = x.args(c, 2, "KEEPTTL", func() bool {
		switch {
		case !o.xx && c.Is("NX"):
			o.nx = true
		case !o.nx && c.Is("XX"):
			o.xx = true
		case !o.fxx && c.Is("FNX"):
			o.fnx = true
		case !o.fnx && c.Is("FXX"):
			o.fxx = true
		default:
			return false
		}
		return true
	})
	o.memberExpiry = x.memberExpiry
	return o
}
