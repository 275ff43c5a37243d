package rdb

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// The types of values.
const (
	typeString          = 0
	typeList            = 1
	typeSet             = 2
	typeZset            = 3 // scores as text
	typeHash            = 4
	typeZset2           = 5
	typeModule          = 6 // before Redis 4.0 was released
	typeModule2         = 7
	typeHashZipmap      = 9
	typeListZiplist     = 10
	typeSetIntset       = 11
	typeZsetZiplist     = 12
	typeHashZiplist     = 13
	typeListQuicklist   = 14
	typeStream          = 15
	typeHashListpack    = 16
	typeZsetListpack    = 17
	typeListQuicklist2  = 18
	typeStream2         = 19
	typeSetListpack     = 20
	typeStream3         = 21
	typeHashTimed       = 24
	typeHashListpackTTL = 25
	typeStream4         = 26

	// Release candidates of Redis 7.4 wrote hashes whose fields have deadlines in types of
	// their own: without the earliest deadline, to which those of typeHashTimed are relative.
	// Valkey has another type of the same number.
	typeHashTimedPreview       = 22
	typeHashValkey             = 22
	typeHashListpackTTLPreview = 23

	// typeZsetTimed is zsetd's own type: like typeZset2, and each score is followed
	// by 8 bytes more, the member's deadline.
	typeZsetTimed = 240
)

const (
	version         = 10 // of Redis 7.0
	versionPortable = 9  // of Redis 5.0
	versionTimed    = 12 // of Redis 7.4
	versionNewest   = 13 // of Redis 8.6, the newest version of Redis that can be read
	versionValkey   = 80 // of Valkey 9, the only version number that Valkey has introduced
)

// known reports whether values and files of a version of the format can be read.
func known(v int) bool { return v <= versionNewest || v == versionValkey }

// Codec reads and writes values. It is not safe for concurrent use.
type Codec struct {
	Limits *keyspace.Limits

	// SkipChecksums accepts payloads without verifying their checksums.
	SkipChecksums bool

	// AnyVersion accepts payloads of later versions of the format: their types may be known.
	AnyVersion bool

	// Uncompressed keeps long texts as they are, as Redis does with rdbcompression no.
	Uncompressed bool

	// Announced is called with the number of keys that a file announces for a database,
	// before the keys of that. It may be nil. The number may be wrong.
	Announced func(db, keys uint64)

	crc   *crcTables
	lzf   lzf
	pack  []byte // a listpack under construction
	plain bool   // appendPack does not compress

	elements []zset.Element // of the sorted set that is read

	spill func(dst []byte) (next []byte, more bool) // of Writer.WriteKey: see spilled
}

// NewCodec returns a codec that takes the limits of compact encodings from l.
func NewCodec(l *keyspace.Limits) *Codec {
	return &Codec{Limits: l, crc: newCRCTables()}
}

// AppendPayload appends the reply of DUMP for a value.
func (c *Codec) AppendPayload(dst []byte, value any) []byte {
	form := rowOf(value).form(c, value, payload)
	v := uint16(version)
	switch form {
	case typeHashTimed, typeZsetTimed:
		v = versionTimed
	case typeStream4:
		v = versionNewest
	}
	return c.appendFooter(c.appendValue(append(dst, form), form, value), len(dst), v)
}

// AppendPortable is AppendPayload for any Redis since 5.0.
func (c *Codec) AppendPortable(dst []byte, value any) []byte {
	if memberDeadlines(value) != nil {
		return c.AppendPayload(dst, value) // a payload that is refused is better than a lost deadline
	}
	form := rowOf(value).form(c, value, Redis5)
	return c.appendFooter(c.appendValue(append(dst, form), form, value), len(dst), versionPortable)
}

func (c *Codec) appendFooter(dst []byte, start int, v uint16) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, v)
	return binary.LittleEndian.AppendUint64(dst, c.crc.sum(0, dst[start:]))
}

// memberDeadlines returns the members or fields of a value that have deadlines, or nil.
func memberDeadlines(value any) *zset.Set {
	switch v := value.(type) {
	case *keyspace.Hash:
		return v.Deadlines()
	case *zset.Set:
		return v.Deadlines()
	}
	return nil
}

// spillBytes is the length from which WriteKey passes an encoding on.
const spillBytes = 64 << 10

// spilled is called after every element of a value that may be large. Within WriteKey it
// passes a long encoding on, and returns the buffer that follows. If more is false,
// the rest of the value is not needed.
func (c *Codec) spilled(dst []byte) (next []byte, more bool) {
	if c.spill == nil || len(dst) < spillBytes {
		return dst, true
	}
	return c.spill(dst)
}

// appendValue appends a value of a type that its row returned.
func (c *Codec) appendValue(dst []byte, form byte, value any) []byte {
	return rowOf(value).append(c, dst, form, value)
}

func appendDouble(dst []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
}

// appendLength appends a length, in 1, 2, 5 or 9 bytes.
func appendLength(dst []byte, n uint64) []byte {
	switch {
	case n < 1<<6:
		return append(dst, byte(n))
	case n < 1<<14:
		return append(dst, 0x40|byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, 0x80), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0x81), n)
}

// appendString appends the value of a string, which may be encoded as an integer.
func (c *Codec) appendString(dst []byte, s *keyspace.String) []byte {
	b := s.Content()
	if s.Encoding(c.Limits) == "int" {
		if n, ok := protocol.ParseInt(b); ok {
			if n == int64(int32(n)) {
				return appendInteger(dst, n)
			}
			return append(appendLength(dst, uint64(len(b))), b...)
		}
	}
	return c.appendText(dst, b)
}

// appendInteger appends an integer of 32 bits in place of a text.
func appendInteger(dst []byte, n int64) []byte {
	switch {
	case n == int64(int8(n)):
		return append(dst, 0xc0, byte(n))
	case n == int64(int16(n)):
		return append(dst, 0xc1, byte(n), byte(n>>8))
	}
	return append(dst, 0xc2, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
}

// appendText appends a text: as an integer, if it is one; compressed, if that is
// shorter.
func (c *Codec) appendText(dst, b []byte) []byte {
	if len(b) <= 11 {
		if n, ok := protocol.ParseInt(b); ok && n == int64(int32(n)) {
			return appendInteger(dst, n)
		}
	}
	if len(b) > 20 && !c.Uncompressed {
		// The compressed length comes first, and takes 1 to 5 bytes.
		start := len(dst)
		if out, ok := c.lzf.compress(dst, b); ok {
			var head [24]byte
			h := append(head[:0], 0xc3)
			h = appendLength(h, uint64(len(out)-start))
			h = appendLength(h, uint64(len(b)))
			out = append(out, h...)
			copy(out[start+len(h):], out[start:len(out)-len(h)])
			copy(out[start:], h)
			return out
		}
	}
	return append(appendLength(dst, uint64(len(b))), b...)
}

// appendPack appends a small value in its encoding in memory.
func (c *Codec) appendPack(dst, b []byte) []byte {
	if c.plain {
		return append(appendLength(dst, uint64(len(b))), b...)
	}
	return c.appendText(dst, b)
}

// intset returns a set of integers in Redis's encoding in memory.
func (c *Codec) intset(s *keyspace.Set) []byte {
	size := 2
	for m := range s.Members {
		n, _ := m.Int()
		switch {
		case n != int64(int32(n)):
			size = 8
		case n != int64(int16(n)):
			size = max(size, 4)
		}
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(size))
	b = binary.LittleEndian.AppendUint32(b, uint32(s.Len()))
	for m := range s.Members {
		n, _ := m.Int()
		for i := range size {
			b = append(b, byte(n>>(8*i)))
		}
	}
	return b
}

// A list consists of listpacks of some 8 KB. In Redis their boundaries depend on
// the history of the list; here they are as if all elements had been added at the
// end.

func (c *Codec) appendList(dst []byte, l *sequence.List) []byte {
	const packed, overhead, floor = 2, 8, 8192
	bytes, entries := 0, 0
	switch fill := c.Limits.ListMaxListpackSize; {
	case fill >= 0:
		bytes, entries = floor, max(fill, 1)
	default:
		bytes = 4096 << (min(-fill, 5) - 1)
	}
	var body []byte
	nodes, n := 0, 0
	flush := func() {
		if n > 0 {
			body = append(body, packed)
			body = c.appendPack(body, c.end(n))
			nodes++
		}
		n = 0
	}
	for b := range l.Forward(0) {
		if n > 0 {
			size := len(c.pack) + 1 + len(b) + overhead
			if size > bytes || entries > 0 && n >= entries {
				flush()
			}
		}
		if n == 0 {
			c.begin()
		}
		c.pack = appendPacked(c.pack, b)
		n++
	}
	flush()
	return append(appendLength(dst, uint64(nodes)), body...)
}

// begin begins a listpack.
func (c *Codec) begin() {
	if cap(c.pack) > 1<<20 {
		c.pack = nil
	}
	c.pack = append(c.pack[:0], 0, 0, 0, 0, 0, 0)
}

// end ends the listpack, of n elements, and returns it. It is valid until the next
// begins.
func (c *Codec) end(n int) []byte {
	c.pack = append(c.pack, 0xff)
	binary.LittleEndian.PutUint32(c.pack, uint32(len(c.pack)))
	binary.LittleEndian.PutUint16(c.pack[4:], uint16(min(n, math.MaxUint16)))
	return c.pack
}

func appendPackedText(dst []byte, s string) []byte { return appendPacked(dst, []byte(s)) }

func appendPackedScore(dst []byte, score float64) []byte {
	if math.Abs(score) <= math.MaxInt64/2 && score == math.Trunc(score) {
		return appendPackedInt(dst, int64(score))
	}
	var digits [32]byte
	return appendPacked(dst, protocol.AppendFloat(digits[:0], score))
}

// appendPacked appends an element of a listpack.
func appendPacked(dst, b []byte) []byte {
	if n, ok := protocol.ParseInt(b); ok {
		return appendPackedInt(dst, n)
	}
	start := len(dst)
	switch n := len(b); {
	case n < 1<<6:
		dst = append(dst, 0x80|byte(n))
	case n < 1<<12:
		dst = append(dst, 0xe0|byte(n>>8), byte(n))
	default:
		dst = binary.LittleEndian.AppendUint32(append(dst, 0xf0), uint32(n))
	}
	dst = append(dst, b...)
	return appendBack(dst, len(dst)-start)
}

func appendPackedInt(dst []byte, n int64) []byte {
	start := len(dst)
	switch {
	case n >= 0 && n < 1<<7:
		dst = append(dst, byte(n))
	case n >= -1<<12 && n < 1<<12:
		dst = append(dst, 0xc0|byte(n>>8)&0x1f, byte(n))
	case n >= -1<<15 && n < 1<<15:
		dst = append(dst, 0xf1, byte(n), byte(n>>8))
	case n >= -1<<23 && n < 1<<23:
		dst = append(dst, 0xf2, byte(n), byte(n>>8), byte(n>>16))
	case n >= -1<<31 && n < 1<<31:
		dst = append(dst, 0xf3, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	default:
		dst = binary.LittleEndian.AppendUint64(append(dst, 0xf4), uint64(n))
	}
	return appendBack(dst, len(dst)-start)
}

// appendBack appends the size of an element, for backward traversal.
func appendBack(dst []byte, n int) []byte {
	switch {
	case n <= 127:
		return append(dst, byte(n))
	case n < 16383:
		return append(dst, byte(n>>7), byte(n&127)|128)
	case n < 2097151:
		return append(dst, byte(n>>14), byte(n>>7&127)|128, byte(n&127)|128)
	case n < 268435455:
		return append(dst, byte(n>>21), byte(n>>14&127)|128, byte(n>>7&127)|128, byte(n&127)|128)
	}
	return append(dst, byte(n>>28), byte(n>>21&127)|128, byte(n>>14&127)|128, byte(n>>7&127)|128, byte(n&127)|128)
}

// parseScore reads a score in text form.
func parseScore(b []byte) (float64, bool) {
	if n, ok := protocol.ParseInt(b); ok {
		return float64(n), true
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil && !math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, false
	}
	return f, true
}
