package server

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
)

// hashExpireCommands are the deadlines of fields: of Redis 7.4 (see memberttl.go),
// and the commands of 8.0 that get and set values with them.
func hashExpireCommands() []Command {
	return append(memberTTLCommands("h", "hash", "7.4.0", "hash fields", timedHash),
		Command{Facts: protocol.Facts{
			Name: "hgetdel", Arity: -5, Flags: "write fast", Keys: "1 RW access delete",
			Group: "hash", Since: "8.0.0", Complexity: "O(N) where N is the number of specified fields",
			Summary: "Returns the value of a field and deletes it from the hash.",
			Syntax:  "key FIELDS fields:(numfields:integer field [field ...])",
		}, run: hgetdel},
		Command{Facts: protocol.Facts{
			Name: "hgetex", Arity: -5, Flags: "write fast", Keys: "1 RW access update",
			Group: "hash", Since: "8.0.0", Complexity: "O(N) where N is the number of specified fields",
			Summary: "Get the value of one or more fields of a given hash key, and optionally set their expiration.",
			Syntax: "key expiration:[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST] " +
				"FIELDS fields:(numfields:integer field [field ...])",
		}, run: hgetex},
		Command{Facts: protocol.Facts{
			Name: "hsetex", Arity: -6, Flags: "write denyoom fast", Keys: "1 RW update",
			Group: "hash", Since: "8.0.0", Complexity: "O(N) where N is the number of fields being set.",
			Summary: "Set the value of one or more fields of a given hash key, and optionally set their expiration.",
			Syntax: "key condition:[FNX|FXX] expiration:[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL] " +
				"FIELDS fields:(numfields:integer field value [field value ...])",
		}, run: hsetex},
	)
}

// hashFieldNumber is what the commands of 8.0 say of a wrong number of fields.
const hashFieldNumber = "ERR Number of fields must be a positive integer"

// fieldArgs reads FIELDS, a number and as many times width arguments, in the
// words of Redis 8.
func fieldArgs(c *Call, width int) [][]byte {
	if c.Err() == "" && !c.Is("FIELDS") {
		c.Fail("ERR Mandatory argument FIELDS is missing or not at the right position")
	}
	n := c.IntIn(1, 1<<31-1, hashFieldNumber)
	if c.Err() == "" && int(n)*width != c.Len() {
		c.Fail("ERR The `numfields` parameter must match the number of arguments")
	}
	return c.Rest()
}

func hgetdel(c *Call) {
	key := c.Bytes()
	fields := fieldArgs(c, 1)
	if !c.ok() {
		return
	}
	h, ok := edit[keyspace.Hash](c, key)
	if !ok {
		return
	}
	var deleted [][]byte
	c.Reply.Array(len(fields))
	for _, field := range fields {
		if replyField(c, h, field) {
			h.Delete(field)
			deleted = append(deleted, field)
		}
	}
	c.changedMembers(key, classHash, "hdel", deleted)
}

// replyField replies the value of a field of a hash, both of which may not be
// there.
func replyField(c *Call, h *keyspace.Hash, field []byte) bool {
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

func hgetex(c *Call) {
	key := c.Bytes()
	var x memberExpiry
	x.option(c, "PERSIST")
	fields := fieldArgs(c, 1)
	x.judge(c)
	if !c.ok() {
		return
	}
	h, ok := edit[keyspace.Hash](c, key)
	if !ok {
		return
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
		case x.persist:
			if had, _ := h.SetDeadlineBytes(field, 0); had != 0 {
				persisted = append(persisted, field)
			}
		}
	}
	c.changedMembers(key, classHash, "hexpire", set)
	c.changedMembers(key, classHash, "hpersist", persisted)
	c.changedMembers(key, classHash, "hdel", removed)
}

func hsetex(c *Call) {
	key := c.Bytes()
	fnx, fxx := false, false
	var x memberExpiry
options:
	for {
		switch {
		case c.Is("FNX"):
			fnx = true
		case c.Is("FXX"):
			fxx = true
		case x.option(c, "KEEPTTL"):
		default:
			break options
		}
	}
	if fnx && fxx {
		c.Fail("ERR Only one of FXX or FNX arguments can be specified")
	}
	pairs := fieldArgs(c, 2)
	x.judge(c)
	if !c.ok() {
		return
	}
	h, ok := edit[keyspace.Hash](c, key)
	if !ok {
		return
	}
	for i := 0; i < len(pairs) && (fnx || fxx); i += 2 {
		there := false
		if h != nil {
			_, there = h.Get(pairs[i])
		}
		if there == fnx {
			c.Reply.Int(0)
			return
		}
	}
	if h == nil {
		h, _ = create[keyspace.Hash](c, key)
	}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1], c.limits())
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
	c.changedMembers(key, classHash, "hset", fields)
	switch {
	case x.past(c):
		c.changedMembers(key, classHash, "hdel", fields)
	case x.set:
		c.changedMembers(key, classHash, "hexpire", fields)
	}
	c.Reply.Int(1)
}
