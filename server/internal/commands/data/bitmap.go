package data

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/bitmap"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// A bitmap is a string; bit 0 is the highest bit of its first byte.

// BitmapCommands returns the rows of the bitmap commands.
func BitmapCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "bitcount", Arity: -2, Flags: "readonly", Keys: "1 RO access",
			Group: "bitmap", Since: "2.6.0", Complexity: "O(N), N bytes counted",
			Summary: "Number of bits that are set in a string or a part of it",
			Syntax:  "key range:[start end-unit-block:[end unit:[BYTE|BIT]@7.0.0]]",
			History: []string{"7.0.0 `BYTE`, `BIT`", "8.0.0 `start` without `end`, of Valkey"},
		}, Run: bitcount},
		{Facts: protocol.Facts{
			Name: "bitop", Arity: -4, Flags: "write denyoom", Keys: "2 OW update; 3..-1 RO access",
			Group: "bitmap", Since: "2.6.0", Complexity: "O(N*K), N bytes of the longest of K strings",
			Summary: "Combine strings bit by bit and store the result in destkey",
			Syntax:  "operation:(AND|OR|XOR|NOT|DIFF|DIFF1|ANDOR|ONE) destkey key [key ...]",
		}, Run: bitop},
		{Facts: protocol.Facts{
			Name: "bitpos", Arity: -3, Flags: "readonly", Keys: "1 RO access",
			Group: "bitmap", Since: "2.8.7", Complexity: "O(N), N bytes searched",
			Summary: "Offset of the first bit that is 0, or 1, in a string or a part of it",
			Syntax:  "key bit range:[start end-unit-block:[end unit:[BYTE|BIT]@7.0.0]]",
			History: []string{"7.0.0 `BYTE`, `BIT`"},
		}, Run: bitpos},
		{Facts: protocol.Facts{
			Name: "getbit", Arity: 3, Flags: "readonly fast", Keys: "1 RO access",
			Group: "bitmap", Since: "2.2.0", Complexity: "O(1)",
			Summary: "Bit at offset",
			Syntax:  "key offset",
		}, Run: getbit},
		{Facts: protocol.Facts{
			Name: "setbit", Arity: 4, Flags: "write denyoom", Keys: "1 RW access update",
			Group: "bitmap", Since: "2.2.0", Complexity: "O(1), or O(N) if the string grows by N bytes",
			Summary: "Set the bit at offset to 0 or 1",
			Syntax:  "key offset value:integer",
		}, Run: setbit},
	}
}

const errBitOffset = "ERR bit offset is not an integer or out of range"

// bitOffset reads the offset of a bit, which must be possible in a string. If width
// is not 0, "#n" stands for n times as many bits.
func bitOffset(c *engine.Call, width int64) int64 {
	b := c.Bytes()
	if c.Err() != "" {
		return 0
	}
	hash := width > 0 && len(b) > 0 && b[0] == '#'
	if hash {
		b = b[1:]
	}
	n, ok := protocol.ParseInt(b)
	if hash {
		n *= width // overflows as in Redis
	}
	if !ok || n < 0 || n>>3 >= c.Config().ProtoMaxBulk {
		c.Fail(errBitOffset)
		return 0
	}
	return n
}

func getbit(c *engine.Call) {
	key, at := c.Bytes(), bitOffset(c, 0)
	if !c.OK() {
		return
	}
	s, ok := engine.Read[keyspace.String](c, key)
	if !ok {
		return
	}
	var on int64
	if s != nil && at>>3 < int64(s.Len()) {
		on = int64(s.Content()[at>>3] >> (7 - at&7) & 1)
	}
	c.Reply.Int(on)
}

func setbit(c *engine.Call) {
	const errBit = "ERR bit is not an integer or out of range"
	key, at, on := c.Bytes(), bitOffset(c, 0), c.IntIn(0, 1, errBit)
	if !c.OK() {
		return
	}
	e, s, grown, ok := openBits(c, key, int(at>>3))
	if !ok {
		return
	}
	b := s.Content()[at>>3]
	shift := 7 - at&7
	old := int64(b >> shift & 1)
	if grown || old != on {
		if old != on {
			c.DB.WriteString(e, int(at>>3), []byte{b ^ 1<<shift})
		}
		c.Changed(key, engine.ClassString, "setbit")
	}
	c.Reply.Int(old)
}

// openBits opens a string for changing its bytes up to last, and creates it if
// there is none; grown reports that it has become longer for that. Its encoding is
// raw from then on, even if the bytes do not change, as in Redis.
func openBits(c *engine.Call, key []byte, last int) (e *keyspace.Entry, s *keyspace.String, grown, ok bool) {
	e, s, ok = editString(c, key)
	switch {
	case !ok:
		return nil, nil, false, false
	case s == nil:
		e = c.DB.AddString(key, nil, false)
		s = e.Value().(*keyspace.String)
	}
	switch {
	case s.Len() <= last:
		grown = true
		e, _ = c.DB.WriteString(e, last, []byte{0})
	case s.Encoding(c.Limits()) != "raw":
		e, _ = c.DB.WriteString(e, 0, nil)
	}
	return e, e.Value().(*keyspace.String), grown, true
}

func bitop(c *engine.Call) {
	op := ""
	for _, name := range []string{"AND", "OR", "XOR", "NOT", "DIFF", "DIFF1", "ANDOR", "ONE"} {
		if c.Is(name) {
			op = name
			break
		}
	}
	if op == "" {
		c.Fail(protocol.ErrSyntax)
	}
	dst, keys := c.Bytes(), c.Rest()
	switch {
	case op == "NOT" && len(keys) != 1:
		c.Fail("ERR BITOP NOT must be called with a single source key.")
	case (op == "DIFF" || op == "DIFF1" || op == "ANDOR") && len(keys) < 2:
		c.Fail("ERR BITOP " + op + " must be called with at least two source keys.")
	}
	if !c.OK() {
		return
	}
	sources := make([][]byte, len(keys))
	size := 0
	for i, key := range keys {
		s, ok := engine.Read[keyspace.String](c, key)
		if !ok {
			return
		}
		if s != nil {
			sources[i] = s.Content()
			size = max(size, len(sources[i]))
		}
	}
	if size == 0 {
		c.Drop(dst)
		c.Reply.Int(0)
		return
	}
	c.Put(dst, keyspace.RawString(bitmap.CombineAll(op, sources, size)))
	c.Changed(dst, engine.ClassString, "set")
	c.Reply.Int(int64(size))
}

// bitRange is a range of bits, or bytes, from start to end, as clients give it.
type bitRange struct {
	start, end int64
	bits       bool
}

// unit reads BIT or BYTE.
func (r *bitRange) unit(c *engine.Call) {
	switch {
	case c.Is("BIT"):
		r.bits = true
	case c.Is("BYTE"):
	default:
		c.Fail(protocol.ErrSyntax)
	}
}

// within returns the bits of the range in a string of so many bytes, from lo up to
// hi.
func (r bitRange) within(bytes int) (lo, hi int64) {
	n := int64(bytes)
	if r.bits {
		n *= 8
	}
	if r.start < 0 {
		r.start = max(r.start+n, 0)
	}
	if r.end < 0 {
		r.end = max(r.end+n, 0)
	}
	r.end = min(r.end, n-1)
	if r.start > r.end {
		return 0, 0
	}
	if r.bits {
		return r.start, r.end + 1
	}
	return r.start * 8, (r.end + 1) * 8
}

// bitcount checks the range before the key, as Redis does.
func bitcount(c *engine.Call) {
	key := c.Bytes()
	r := bitRange{end: -1}
	if c.Len() > 0 {
		if c.Len() > 3 {
			c.Fail(protocol.ErrSyntax)
		}
		if r.start = c.Int(); c.More() {
			r.end = c.Int()
		}
		if c.More() {
			r.unit(c)
		}
	}
	if !c.OK() {
		return
	}
	s, ok := engine.Read[keyspace.String](c, key)
	switch {
	case !ok:
	case s == nil, r.start < 0 && r.end < 0 && r.start > r.end:
		c.Reply.Int(0)
	default:
		lo, hi := r.within(s.Len())
		c.Reply.Int(bitmap.Count(s.Content(), lo, hi))
	}
}

// bitpos checks the bit, then the range, then the key, as Redis does.
func bitpos(c *engine.Call) {
	key, bit := c.Bytes(), c.Int()
	if c.Err() == "" && bit != 0 && bit != 1 {
		c.Fail("ERR The bit argument must be 1 or 0.")
	}
	if !c.OK() {
		return
	}
	if c.Len() > 3 {
		c.Fail(protocol.ErrSyntax)
	}
	r := bitRange{end: -1}
	bounded := c.Len() > 1
	if c.More() {
		r.start = c.Int()
	}
	switch end := c.Peek(0); {
	case c.Len() == 2: // Redis checks the unit first
		c.Skip(1)
		r.unit(c)
		var ok bool
		if r.end, ok = protocol.ParseInt(end); !ok {
			c.Fail(protocol.ErrNotInteger)
		}
	case bounded:
		r.end = c.Int()
	}
	if !c.OK() {
		return
	}
	s, ok := engine.Read[keyspace.String](c, key)
	switch {
	case !ok:
		return
	case s == nil:
		c.Reply.Int(-bit) // a missing key is a string of zeros without end
		return
	}
	lo, hi := r.within(s.Len())
	at := bitmap.Find(s.Content(), lo, hi, byte(bit))
	if at < 0 && bit == 0 && !bounded && lo < hi {
		at = hi // zeros follow the string
	}
	c.Reply.Int(at)
}
