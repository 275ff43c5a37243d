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
	c.SetFieldset(string(name), set)
	c.Reply.OK()
}

func himportSet(c *engine.Call) {
	key, name, values := c.Bytes(), c.Bytes(), c.Rest()
	fields := c.Fieldset(name)
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

func himportDiscard(c *engine.Call) {
	n := int64(0)
	if c.DropFieldset(c.Bytes()) {
		n = 1
	}
	c.Reply.Int(n)
}

func himportDiscardall(c *engine.Call) { c.Reply.Int(int64(c.DropFieldsets())) }
