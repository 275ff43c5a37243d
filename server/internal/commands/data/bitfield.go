package data

import (
	"bytes"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/bitmap"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// BitfieldCommands returns the rows of the BITFIELD commands.
func BitfieldCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "bitfield", Arity: -2, Flags: "write denyoom",
			Keys:   "1 RW access update variable_flags (reads with GET, writes with SET and INCRBY)",
			KeysBy: protocol.KeysOfBitfield,
			Group:  "bitmap", Since: "3.2.0", Complexity: "O(M), M operations",
			Summary: "Read and write integers of 1 to 64 bits inside a string",
			Syntax:  "key operation:[get-block:(GET encoding offset) | write:(overflow-block:[OVERFLOW WRAP|SAT|FAIL] write-operation:(set-block:(SET encoding offset value:integer) | incrby-block:(INCRBY encoding offset increment)))]...",
		}, Run: bitfield},
		{Facts: protocol.Facts{
			Name: "bitfield_ro", Arity: -2, Flags: "readonly fast", Keys: "1 RO access",
			Group: "bitmap", Since: "6.0.0", Complexity: "O(M), M operations",
			Summary: "Read integers of 1 to 64 bits inside a string",
			Syntax:  "key get-block:[GET encoding offset [GET encoding offset ...]]",
		}, Run: bitfieldRo},
	}
}

// readField reads an encoding, such as u8 or i16, and an offset.
func readField(c *engine.Call) (f bitmap.Field) {
	encoding, _, _ := bytes.Cut(c.Bytes(), []byte{0}) // as in Redis, a NUL ends the string
	if c.Err() == "" {
		limit := int64(63)
		ok := len(encoding) > 0
		if ok {
			switch encoding[0] {
			case 'i':
				f.Signed, limit = true, 64
			case 'u':
			default:
				ok = false
			}
		}
		if ok {
			f.Width, ok = protocol.ParseInt(encoding[1:])
		}
		if !ok || f.Width < 1 || f.Width > limit {
			c.Fail("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
		}
	}
	f.Offset = bitOffset(c, f.Width)
	return f
}

// bitfieldOp is an operation of BITFIELD.
type bitfieldOp struct {
	bitmap.Field
	kind     byte // G, S, I: GET, SET, INCRBY
	overflow bitmap.Overflow
	operand  int64 // of SET and INCRBY
}

func bitfield(c *engine.Call) { bitfieldWith(c, false) }

func bitfieldRo(c *engine.Call) { bitfieldWith(c, true) }

func bitfieldWith(c *engine.Call, readOnly bool) {
	key := c.Bytes()
	ops, last := readBitfield(c)
	if readOnly && last >= 0 {
		c.Fail("ERR BITFIELD_RO only supports the GET subcommand")
	}
	if !c.OK() {
		return
	}
	var e *keyspace.Entry
	var s *keyspace.String
	var grown, changed, ok bool
	if last >= 0 {
		e, s, grown, ok = openBits(c, key, int(last))
	} else {
		s, ok = engine.Read[keyspace.String](c, key)
	}
	if !ok {
		return
	}
	c.Reply.Array(len(ops))
	for i := range ops {
		op := &ops[i]
		var w bitmap.Window
		if s != nil {
			w = op.Window(s.Content())
		}
		old := op.Get(&w)
		if op.kind == 'G' {
			c.Reply.Int(old)
			continue
		}
		x, write := op.Assign(op.operand, op.overflow)
		if op.kind == 'I' {
			x, write = op.Add(old, op.operand, op.overflow)
		}
		if !write {
			c.Reply.Null()
			continue
		}
		if op.kind == 'S' {
			c.Reply.Int(old)
		} else {
			c.Reply.Int(x)
		}
		if x != old {
			op.Set(&w, x)
			e, _ = c.DB.WriteString(e, int(op.Offset>>3), w[:op.Bytes()])
			s = e.Value().(*keyspace.String)
		}
		changed = changed || grown || x != old
	}
	if changed {
		c.Changed(key, engine.ClassString, "setbit")
	}
}

// readBitfield reads the operations, and the index of the last byte that they
// write: -1 if they only read.
func readBitfield(c *engine.Call) (ops []bitfieldOp, last int64) {
	last = -1
	overflow := bitmap.Wrap
	for c.More() {
		op := bitfieldOp{overflow: overflow}
		left := c.Len()
		switch {
		case left >= 3 && c.Is("GET"):
			op.kind = 'G'
		case left >= 4 && c.Is("SET"):
			op.kind = 'S'
		case left >= 4 && c.Is("INCRBY"):
			op.kind = 'I'
		case left >= 2 && c.Is("OVERFLOW"):
			switch {
			case c.Is("WRAP"):
				overflow = bitmap.Wrap
			case c.Is("SAT"):
				overflow = bitmap.Saturate
			case c.Is("FAIL"):
				overflow = bitmap.Fail
			default:
				c.Fail("ERR Invalid OVERFLOW type specified")
			}
			continue
		default:
			c.Fail(protocol.ErrSyntax)
			continue
		}
		op.Field = readField(c)
		if op.kind != 'G' {
			op.operand = c.Int()
			last = max(last, op.Last())
		}
		ops = append(ops, op)
	}
	return ops, last
}
