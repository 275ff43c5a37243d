package data

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// HashExpireCommands are the commands for deadlines of fields: those of Redis 7.4
// (see memberttl.go), and those of 8.0 that get and set values together with
// deadlines.
func HashExpireCommands() []engine.Command {
	return append(memberTTLCommands("h", "hash", "7.4.0", "hash fields", timedHash),
		engine.Command{Facts: protocol.Facts{
			Name: "hgetdel", Arity: -5, Flags: "write fast", Keys: "1 RW access delete",
			Group: "hash", Since: "8.0.0", Complexity: "O(N), N fields given; times log D in a hash with D deadlines",
			Summary: "Read the values of fields and remove the fields",
			Syntax:  "key FIELDS fields:(numfields:integer field [field ...])",
		}, Run: hgetdel, Fields: keyspace.FieldsWritten},
		engine.Command{Facts: protocol.Facts{
			Name: "hgetex", Arity: -5, Flags: "write fast", Keys: "1 RW access update",
			Group: "hash", Since: "8.0.0", Complexity: "O(N log D), N fields given, D with a deadline",
			Summary: "Read the values of fields and set or remove the deadlines of these fields",
			Syntax: "key expiration:[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] " +
				"FIELDS fields:(numfields:integer field [field ...])",
		}, Run: hgetex, Fields: keyspace.FieldsWritten},
		engine.Command{Facts: protocol.Facts{
			Name: "hsetex", Arity: -6, Flags: "write denyoom fast", Keys: "1 RW update",
			Group: "hash", Since: "8.0.0", Complexity: "O(N log D), N fields given, D with a deadline",
			Summary: "Write the values of fields, with one deadline, on a condition that holds for all of them",
			Syntax: "key key-condition:[NX|XX]@9.0.0 condition:[FNX|FXX] expiration:[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL] " +
				"FIELDS fields:(numfields:integer field value [field value ...])",
		}, Run: hsetex, Fields: keyspace.FieldsWritten},
	)
}

func hgetdel(c *engine.Call) {
	key := c.Bytes()
	k := timedHash()
	var fields [][]byte
	v, ok := k.openWith(c, key, true, func() { fields = k.memberArgs(c, errFieldCount) })
	if !ok {
		return
	}
	h, _ := v.(*keyspace.Hash)
	var deleted [][]byte
	c.Reply.Array(len(fields))
	for _, field := range fields {
		if replyField(c, h, field) {
			h.Delete(field)
			deleted = append(deleted, field)
		}
	}
	changedMembers(c, key, engine.ClassHash, "hdel", deleted)
}

// replyField replies the value of a field of a hash. Both may be missing: then it
// replies null and returns false.
func replyField(c *engine.Call, h *keyspace.Hash, field []byte) bool {
	if h == nil {
		c.Reply.Null()
		return false
	}
	value, ok := h.Get(field)
	if !ok {
		c.Reply.Null()
		return false
	}
	c.Reply.BulkString(value)
	return true
}

func hgetex(c *engine.Call) {
	key := c.Bytes()
	k := timedHash()
	var x memberExpiry
	var fields [][]byte
	v, ok := k.openWith(c, key, true, func() { x, fields = hgetexArgs(c) })
	if !ok {
		return
	}
	h, _ := v.(*keyspace.Hash)
	if x.read(c); !c.OK() {
		return
	}
	if h != nil && (x.set || x.keep) && !c.Config().Valkey() {
		h.MarkTimed()
	}
	var set, persisted, removed [][]byte
	c.Reply.Array(len(fields))
	for _, field := range fields {
		if !replyField(c, h, field) {
			continue
		}
		switch {
		case x.past(c):
			h.Delete(field)
			removed = append(removed, field)
		case x.set:
			h.SetDeadlineBytes(field, x.deadline)
			set = append(set, field)
		case x.keep:
			if had, _ := h.SetDeadlineBytes(field, 0); had != 0 {
				persisted = append(persisted, field)
			}
		}
	}
	changedMembers(c, key, engine.ClassHash, "hexpire", set)
	changedMembers(c, key, engine.ClassHash, "hpersist", persisted)
	k.past(c, key, removed)
}

func hgetexArgs(c *engine.Call) (x memberExpiry, fields [][]byte) {
	if c.Config().Valkey() {
		var o fieldOptions
		fields = o.args(c, 1, "PERSIST", func() bool { return false })
		return o.memberExpiry, fields
	}
	conditions := 0
	for c.More() {
		switch {
		case c.Is("FIELDS"):
			fields = fieldArgs(c, fields, 1)
		case x.option(c, "PERSIST"):
		case c.Is("KEEPTTL"):
			x.notOfThis(c, "PERSIST")
		case c.Is("FNX"), c.Is("FXX"):
			if conditions++; conditions > 1 {
				c.Fail(errBothConditions)
			}
		default:
			unknown(c)
		}
	}
	switch {
	case fields == nil:
		c.Fail(errNoFields)
	case x.foreign || conditions > 0:
		c.Fail("ERR unknown argument")
	}
	return x, fields
}

// fieldArgs reads FIELDS, a number and so many groups of width arguments, with the error texts
// of HGETEX and HSETEX.
func fieldArgs(c *engine.Call, before [][]byte, width int64) [][]byte {
	if !c.More() && before == nil {
		c.Fail(c.Command.WrongArity())
	}
	k := timedHash()
	return k.listArgs(c, before, "ERR invalid number of fields", width)
}

// Errors of both commands, which read the options of each other.
const (
	errBothConditions = "ERR Only one of FXX or FNX arguments can be specified"
	errNoFields       = "ERR missing FIELDS argument"
)

// notOfThis reads PERSIST of HSETEX or KEEPTTL of HGETEX: an error if there is a time, or else
// after all other errors.
func (x *memberExpiry) notOfThis(c *engine.Call, extra string) {
	if x.set || x.foreign {
		c.Fail("ERR Only one of EX, PX, EXAT, PXAT or " + extra + " arguments can be specified")
	}
	x.foreign = true
}

// hsetexOptions are the arguments of HSETEX after the key.
type hsetexOptions struct {
	pairs    [][]byte
	nx, xx   bool // of the key
	fnx, fxx bool // of all fields
	memberExpiry
}

// hsetexArgs reads the arguments after the key. As in Redis, each is checked where it stands.
func hsetexArgs(c *engine.Call) (o hsetexOptions) {
	if c.Config().Valkey() {
		return hsetexArgsOfValkey(c)
	}
	for c.More() {
		switch {
		case c.Is("FIELDS"):
			o.pairs = fieldArgs(c, o.pairs, 2)
		case o.option(c, "KEEPTTL"):
		case c.Is("PERSIST"):
			o.notOfThis(c, "KEEPTTL")
		case c.Is("FNX"), c.Is("FXX"):
			if o.fnx || o.fxx {
				c.Fail(errBothConditions)
			}
			o.fnx = protocol.EqualFold(c.All()[c.Pos()-1], "FNX")
			o.fxx = !o.fnx
		case c.Is("NX"), c.Is("XX"):
			if o.nx || o.xx {
				c.Fail("ERR Only one of XX or NX arguments can be specified")
			}
			o.nx = protocol.EqualFold(c.All()[c.Pos()-1], "NX")
			o.xx = !o.nx
		default:
			unknown(c)
		}
	}
	switch {
	case o.pairs == nil:
		c.Fail(errNoFields)
	case o.foreign:
		c.Fail("ERR unknown argument")
	}
	return o
}

func hsetex(c *engine.Call) {
	key := c.Bytes()
	o := hsetexArgs(c)
	if !c.OK() {
		return
	}
	h, ok := engine.Edit[keyspace.Hash](c, key)
	if !ok {
		return
	}
	if o.read(c); !c.OK() {
		return
	}
	if o.nx && h != nil || o.xx && h == nil {
		c.Reply.Int(0)
		return
	}
	pairs, x := o.pairs, &o.memberExpiry
	for i := 0; i < len(pairs) && (o.fnx || o.fxx); i += 2 {
		there := false
		if h != nil {
			_, there = h.Get(pairs[i])
		}
		if there == o.fnx {
			c.Reply.Int(0)
			return
		}
	}
	if h == nil {
		h, _ = engine.Create[keyspace.Hash](c, key)
	}
	if x.set && !c.Config().Valkey() {
		h.MarkTimed()
	}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1], c.Limits())
		switch {
		case x.past(c):
			h.Delete(pairs[i])
		case x.set:
			h.SetDeadlineBytes(pairs[i], x.deadline)
		case !x.keep:
			h.SetDeadlineBytes(pairs[i], 0)
		}
	}
	fields := make([][]byte, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, pairs[i])
	}
	changedMembers(c, key, engine.ClassHash, "hset", fields)
	switch {
	case x.past(c):
		if c.Config().Valkey() {
			changedMembers(c, key, engine.ClassHash, "hexpire", fields)
		}
		k := timedHash()
		k.past(c, key, fields)
		if h.Len() == 0 {
			c.Drop(key) // reports the deletion of a new key, too
		}
	case x.set:
		changedMembers(c, key, engine.ClassHash, "hexpire", fields)
	}
	c.Reply.Int(1)
}
