package command

import (
	"encoding/binary"
	"math/bits"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/keyspace"
)

// A bitmap is a string; bit 0 is the highest bit of its first byte.

// BitmapCommands returns the rows of the bitmap commands.
func BitmapCommands() []engine.Command {
	return []engine.Command{
		bitcountRow(),
		bitopRow(),
		bitposRow(),
		getbitRow(),
		setbitRow(),
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
	if !ok || n < 0 || n>>3 >= c.Engine.Config.ProtoMaxBulk {
		c.Fail(errBitOffset)
		return 0
	}
	return n
}

func getbitRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "getbit", Arity: 3, Flags: "readonly fast", Keys: "1 RO access",
		Group: "bitmap", Since: "2.2.0", Complexity: "O(1)",
		Summary: "Bit at offset",
		Syntax:  "key offset",
	}, Run: getbit}
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

func setbitRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "setbit", Arity: 4, Flags: "write denyoom", Keys: "1 RW access update",
		Group: "bitmap", Since: "2.2.0", Complexity: "O(1), or O(N) if the string grows by N bytes",
		Summary: "Set the bit at offset to 0 or 1",
		Syntax:  "key offset value:integer",
	}, Run: setbit}
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

func bitopRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "bitop", Arity: -4, Flags: "write denyoom", Keys: "2 OW update; 3..-1 RO access",
		Group: "bitmap", Since: "2.6.0", Complexity: "O(N*K), N bytes of the longest of K strings",
		Summary: "Combine strings bit by bit and store the result in destkey",
		Syntax:  "operation destkey key [key ...]",
		History: []string{"8.2.0 `DIFF`, `DIFF1`, `ANDOR`, `ONE`"},
	}, Run: bitop}
}

// bitop is BITOP operation destkey key [key ...]. It computes 8 bytes at a time.
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
	c.Put(dst, keyspace.RawString(combineAll(op, sources, size)))
	c.Changed(dst, engine.ClassString, "set")
	c.Reply.Int(int64(size))
}

// combineAll returns the result of an operation on bitmaps, the longest of which
// has size bytes. Bits beyond the end of a bitmap are 0.
func combineAll(op string, sources [][]byte, size int) []byte {
	result := make([]byte, size)
	copy(result, sources[0])
	switch op {
	case "NOT":
		Combine('N', result, result)
	case "AND", "OR", "XOR":
		for _, source := range sources[1:] {
			Combine(op[0], result[:len(source)], source)
			if op == "AND" {
				clear(result[len(source):])
			}
		}
	case "ONE":
		twice, both := make([]byte, size), make([]byte, size)
		for _, source := range sources[1:] {
			n := copy(both, source)
			Combine('A', both[:n], result)
			Combine('O', twice[:n], both)
			Combine('O', result[:n], source)
		}
		Combine('W', result, twice)
	default: // DIFF, DIFF1, ANDOR: the first, and the union of the others
		others := combineAll("OR", sources[1:], size)
		switch op {
		case "DIFF":
			Combine('W', result, others)
		case "DIFF1":
			Combine('W', others, result)
			return others
		case "ANDOR":
			Combine('A', result, others)
		}
	}
	return result
}

// Combine applies op (And, Or, Xor, Without) to each bit of dst and the bit of src
// at the same offset, where src is at least as long; N is the complement of src.
// The rejected alternative, a function that is called for every 8 bytes, takes
// three times as long.
func Combine(op byte, dst, src []byte) {
	le := binary.LittleEndian
	words := len(dst) &^ 7
	switch op {
	case 'A':
		for i := 0; i < words; i += 8 {
			le.PutUint64(dst[i:], le.Uint64(dst[i:])&le.Uint64(src[i:]))
		}
	case 'O':
		for i := 0; i < words; i += 8 {
			le.PutUint64(dst[i:], le.Uint64(dst[i:])|le.Uint64(src[i:]))
		}
	case 'X':
		for i := 0; i < words; i += 8 {
			le.PutUint64(dst[i:], le.Uint64(dst[i:])^le.Uint64(src[i:]))
		}
	case 'W':
		for i := 0; i < words; i += 8 {
			le.PutUint64(dst[i:], le.Uint64(dst[i:])&^le.Uint64(src[i:]))
		}
	case 'N':
		for i := 0; i < words; i += 8 {
			le.PutUint64(dst[i:], ^le.Uint64(src[i:]))
		}
	}
	for i := words; i < len(dst); i++ {
		switch op {
		case 'A':
			dst[i] &= src[i]
		case 'O':
			dst[i] |= src[i]
		case 'X':
			dst[i] ^= src[i]
		case 'W':
			dst[i] &^= src[i]
		case 'N':
			dst[i] = ^src[i]
		}
	}
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

func bitcountRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "bitcount", Arity: -2, Flags: "readonly", Keys: "1 RO access",
		Group: "bitmap", Since: "2.6.0", Complexity: "O(N), N bytes counted",
		Summary: "Number of bits that are set in a string or a part of it",
		Syntax:  "key index:[start end index_unit:[BYTE|BIT]@7.0.0]",
		History: []string{"7.0.0 `BYTE`, `BIT`"},
	}, Run: bitcount}
}

// bitcount checks the key before the range, as Redis does.
func bitcount(c *engine.Call) {
	s, ok := engine.Read[keyspace.String](c, c.Bytes())
	switch {
	case !ok:
		return
	case s == nil:
		c.Reply.Int(0)
		return
	}
	r := bitRange{end: -1}
	if c.Len() > 0 {
		if c.Len() == 1 || c.Len() > 3 {
			c.Fail(protocol.ErrSyntax)
		}
		r.start, r.end = c.Int(), c.Int()
		if c.Err() == "" && r.start < 0 && r.end < 0 && r.start > r.end {
			c.Reply.Int(0)
			return
		}
		if c.More() {
			r.unit(c)
		}
	}
	if c.OK() {
		lo, hi := r.within(s.Len())
		c.Reply.Int(CountBits(s.Content(), lo, hi))
	}
}

// CountBits returns the number of set bits of b from lo up to hi.
func CountBits(b []byte, lo, hi int64) (n int64) {
	if lo >= hi {
		return 0
	}
	n = -int64(bits.OnesCount8(b[lo>>3] &^ (0xff >> (lo & 7))))
	if hi&7 != 0 {
		n -= int64(bits.OnesCount8(b[hi>>3] & (0xff >> (hi & 7))))
	}
	b = b[lo>>3 : (hi+7)>>3]
	for ; len(b) >= 8; b = b[8:] {
		n += int64(bits.OnesCount64(binary.LittleEndian.Uint64(b)))
	}
	for _, x := range b {
		n += int64(bits.OnesCount8(x))
	}
	return n
}

func bitposRow() engine.Command {
	return engine.Command{Facts: protocol.Facts{
		Name: "bitpos", Arity: -3, Flags: "readonly", Keys: "1 RO access",
		Group: "bitmap", Since: "2.8.7", Complexity: "O(N), N bytes searched",
		Summary: "Offset of the first bit that is 0, or 1, in a string or a part of it",
		Syntax:  "key bit index:[start end_index:[end index_unit:[BYTE|BIT]@7.0.0]]",
		History: []string{"7.0.0 `BYTE`, `BIT`"},
	}, Run: bitpos}
}

// bitpos checks the bit, then the key, then the range, as Redis does.
func bitpos(c *engine.Call) {
	key, bit := c.Bytes(), c.Int()
	if c.Err() == "" && bit != 0 && bit != 1 {
		c.Fail("ERR The bit argument must be 1 or 0.")
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
	lo, hi := r.within(s.Len())
	at := FindBit(s.Content(), lo, hi, byte(bit))
	if at < 0 && bit == 0 && !bounded && lo < hi {
		at = hi // zeros follow the string
	}
	c.Reply.Int(at)
}

// FindBit returns the first bit of b from lo up to hi that equals bit, or -1.
func FindBit(b []byte, lo, hi int64, bit byte) int64 {
	if lo >= hi {
		return -1
	}
	// After flip the bits to find are 1, and those before lo are 0.
	var flip uint64
	if bit == 0 {
		flip = ^flip
	}
	at := lo &^ 7
	b = b[lo>>3 : (hi+7)>>3]
	first := (b[0] ^ byte(flip)) & (0xff >> (lo & 7))
	if first == 0 {
		b, at = b[1:], at+8
		for ; len(b) >= 8 && binary.LittleEndian.Uint64(b) == flip; b = b[8:] {
			at += 64
		}
		for ; len(b) > 0 && b[0] == byte(flip); b = b[1:] {
			at += 8
		}
		if len(b) == 0 {
			return -1
		}
		first = b[0] ^ byte(flip)
	}
	at += int64(bits.LeadingZeros8(first))
	if at >= hi {
		return -1
	}
	return at
}
