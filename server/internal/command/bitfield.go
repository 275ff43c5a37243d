package command

import (
	"bytes"
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/keyspace"
)

// BitfieldCommands returns the rows of the BITFIELD commands.
func BitfieldCommands() []engine.Command {
	return []engine.Command{
		bitfieldRow(),
		bitfieldRoRow(),
	}
}

// field is an integer of width bits at a bit offset, highest bit first.
type field struct {
	offset int64 // in bits
	width  int64
	signed bool
}

// readField reads an encoding, such as u8 or i16, and an offset.
func readField(c *engine.Call) (f field) {
	encoding, _, _ := bytes.Cut(c.Bytes(), []byte{0}) // as in Redis, a NUL ends the string
	if c.Err() == "" {
		limit := int64(63)
		ok := len(encoding) > 0
		if ok {
			switch encoding[0] {
			case 'i':
				f.signed, limit = true, 64
			case 'u':
			default:
				ok = false
			}
		}
		if ok {
			f.width, ok = protocol.ParseInt(encoding[1:])
		}
		if !ok || f.width < 1 || f.width > limit {
			c.Fail("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
		}
	}
	f.offset = bitOffset(c, f.width)
	return f
}

// window is the bytes that contain a field: at most 9.
type window [9]byte

// window returns a copy of the bytes that contain f, zeros beyond the end of b.
func (f field) window(b []byte) (w window) {
	if at := f.offset >> 3; at < int64(len(b)) {
		copy(w[:f.bytes()], b[at:])
	}
	return w
}

// bytes returns the number of bytes that contain f.
func (f field) bytes() int64 { return (f.offset&7 + f.width + 7) / 8 }

// last returns the index of the byte with the last bit of f.
func (f field) last() int64 { return (f.offset + f.width - 1) >> 3 }

func (f field) get(w *window) int64 {
	var x uint64
	for i := f.offset & 7; i < f.offset&7+f.width; i++ {
		x = x<<1 | uint64(w[i>>3]>>(7-i&7)&1)
	}
	return f.truncate(x)
}

func (f field) set(w *window, x int64) {
	for i := f.offset&7 + f.width - 1; i >= f.offset&7; i-- {
		shift := 7 - i&7
		w[i>>3] = w[i>>3]&^(1<<shift) | byte(x&1)<<shift
		x >>= 1
	}
}

// truncate returns x truncated to the width of f: the value of the field after x is
// written to it.
func (f field) truncate(x uint64) int64 {
	unused := 64 - f.width
	if f.signed {
		return int64(x<<unused) >> unused
	}
	return int64(x << unused >> unused)
}

// limits returns the lowest and the highest value of f.
func (f field) limits() (lo, hi int64) {
	if f.signed {
		hi = math.MaxInt64 >> (64 - f.width)
		return -hi - 1, hi
	}
	return 0, math.MaxInt64 >> (63 - f.width)
}

// bitfieldOp is an operation of BITFIELD.
type bitfieldOp struct {
	field
	kind     byte  // G, S, I: GET, SET, INCRBY
	overflow byte  // W, S, F: WRAP, SAT, FAIL
	operand  int64 // of SET and INCRBY
}

// result returns the new value for an old one, and whether it is to be written.
func (op *bitfieldOp) result(old int64) (x int64, write bool) {
	lo, hi := op.limits()
	var sum uint64
	var under, over bool
	if op.kind == 'S' {
		sum = uint64(op.operand)
		over = op.operand > hi
		under = op.operand < lo
		if !op.signed && under { // as in Redis, the value is read as an unsigned number
			over, under = true, false
		}
	} else {
		sum = uint64(old) + uint64(op.operand)
		over = op.operand > 0 && uint64(hi-old) < uint64(op.operand)
		under = op.operand < 0 && uint64(old-lo) < -uint64(op.operand)
	}
	switch {
	case !over && !under:
		return int64(sum), true
	case op.overflow == 'F':
		return 0, false
	case op.overflow == 'W':
		return op.truncate(sum), true
	case over:
		return hi, true
	}
	return lo, true
}

func bitfieldRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "bitfield", Arity: -2, Flags: "write denyoom",
		Keys:  "1 RW access update variable_flags (reads with GET, writes with SET and INCRBY)",
		Group: "bitmap", Since: "3.2.0", Complexity: "O(M), M operations",
		Summary: "Read and write integers of 1 to 64 bits inside a string",
		Syntax:  "key operation:[GET encoding offset | write:([OVERFLOW WRAP|SAT|FAIL] write_operation:(SET encoding offset value:integer | INCRBY encoding offset increment))]...",
	}, Run: bitfield}
}

func bitfield(c *engine.Call) { bitfieldWith(c, false) }

func bitfieldRoRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "bitfield_ro", Arity: -2, Flags: "readonly fast", Keys: "1 RO access",
		Group: "bitmap", Since: "6.0.0", Complexity: "O(M), M operations",
		Summary: "Read integers of 1 to 64 bits inside a string",
		Syntax:  "key [GET encoding offset [GET encoding offset ...]]",
	}, Run: bitfieldRo}
}

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
		var w window
		if s != nil {
			w = op.window(s.Content())
		}
		old := op.get(&w)
		if op.kind == 'G' {
			c.Reply.Int(old)
			continue
		}
		x, write := op.result(old)
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
			op.set(&w, x)
			e, _ = c.DB.WriteString(e, int(op.offset>>3), w[:op.bytes()])
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
	overflow := byte('W')
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
				overflow = 'W'
			case c.Is("SAT"):
				overflow = 'S'
			case c.Is("FAIL"):
				overflow = 'F'
			default:
				c.Fail("ERR Invalid OVERFLOW type specified")
			}
			continue
		default:
			c.Fail(protocol.ErrSyntax)
			continue
		}
		op.field = readField(c)
		if op.kind != 'G' {
			op.operand = c.Int()
			last = max(last, op.last())
		}
		ops = append(ops, op)
	}
	return ops, last
}
