package data

import (
	"bytes"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// HIMPORT, after its pages at redis.io/docs/latest/commands. A connection declares names of
// fields once, and then sends only the values of each hash. The hashes are ordinary ones. In
// scripts HIMPORT is refused: all scripts share one session.

func himportRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "himport", Arity: -2,
		Group: "hash", Since: "8.10.0", Complexity: "That of the subcommand",
		Summary: "Write hashes whose names of fields the connection has declared",
	}, Subcommands: []engine.Command{
		himportDiscardRow(),
		himportDiscardallRow(),
		himportPrepareRow(),
		himportSetRow(),
	}}
}

func himportPrepareRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "himport|prepare", Arity: -4, Flags: "denyoom noscript",
		Group: "hash", Since: "8.10.0", Complexity: "O(N), N fields", Tips: "request_policy:all_shards",
		Summary: "Declare the names of the fields of HIMPORT SET",
		Syntax:  "fieldset-name field [field ...]",
	}, Run: himportPrepare, OfConnection: true}
}

func himportPrepare(c *engine.Call) {
	name, fields := c.Bytes(), c.Rest()
	seen := make(map[string]struct{}, len(fields))
	set := make([][]byte, len(fields))
	for i, field := range fields {
		seen[protocol.View(field)] = struct{}{}
		set[i] = bytes.Clone(field)
	}
	if len(seen) < len(fields) {
		c.Reply.Error("ERR duplicate field name in fieldset")
		return
	}
	c.Session.SetFieldset(string(name), set)
	c.Reply.OK()
}

func himportSetRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "himport|set", Arity: -5, Flags: "write denyoom noscript", Keys: "1 OW update",
		Group: "hash", Since: "8.10.0", Complexity: "O(N), N fields",
		Summary: "Replace a hash by one with declared fields and the given values",
		Syntax:  "key fieldset-name value [value ...]",
	}, Run: himportSet, OfConnection: true}
}

func himportSet(c *engine.Call) {
	key, name, values := c.Bytes(), c.Bytes(), c.Rest()
	fields := c.Session.Fieldset(name)
	switch {
	case fields == nil:
		c.Reply.Error("ERR no such fieldset")
		return
	case len(fields) != len(values):
		c.Reply.Error("ERR value count does not match fieldset field count")
		return
	}
	if h, ok := engine.Edit[keyspace.Hash](c, key); !ok {
		return
	} else if h != nil {
		c.DB.Delete(key)
	}
	room := 0
	for i := range fields {
		room += keyspace.PairSize(fields[i], values[i])
	}
	e := c.DB.AddHash(key, room)
	for i, field := range fields {
		e, _ = c.DB.SetField(e, field, values[i])
		c.Touched(engine.ClassHash, field)
	}
	c.Changed(key, engine.ClassHash, "hset")
	c.Reply.OK()
}

func himportDiscardRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "himport|discard", Arity: 3, Flags: "noscript",
		Group: "hash", Since: "8.10.0", Complexity: "O(N), N fields", Tips: "request_policy:all_shards",
		Summary: "Remove a declaration of fields from the connection",
		Syntax:  "fieldset-name",
	}, Run: himportDiscard, OfConnection: true}
}

func himportDiscard(c *engine.Call) {
	n := int64(0)
	if c.Session.DropFieldset(c.Bytes()) {
		n = 1
	}
	c.Reply.Int(n)
}

func himportDiscardallRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "himport|discardall", Arity: 2, Flags: "noscript",
		Group: "hash", Since: "8.10.0", Complexity: "O(N), N declarations", Tips: "request_policy:all_shards",
		Summary: "Remove all declarations of fields from the connection",
	}, Run: himportDiscardall, OfConnection: true}
}

func himportDiscardall(c *engine.Call) { c.Reply.Int(int64(c.Session.DropFieldsets())) }
