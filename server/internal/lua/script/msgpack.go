package script

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// msgpackLibrary is cmsgpack in Redis's version.
func (st *State) msgpackLibrary() *lua.Table {
	t := st.library(
		entry{"pack", msgpackPack},
		entry{"unpack", func(c *call) { c.msgpackUnpack(0, 0) }},
		entry{"unpack_one", func(c *call) { c.msgpackUnpack(1, c.optInt(2, 0)) }},
		entry{"unpack_limit", func(c *call) {
			limit := c.int(2)
			c.msgpackUnpack(limit, c.optInt(3, 0))
		}},
	)
	t.SetText(nil, "_NAME", lua.Text("cmsgpack"))
	t.SetText(nil, "_VERSION", lua.Text("lua-cmsgpack 0.4.0"))
	t.SetText(nil, "_COPYRIGHT", lua.Text("Copyright (C) 2012, Salvatore Sanfilippo"))
	t.SetText(nil, "_DESCRIPTION", lua.Text("MessagePack C implementation for Lua"))
	return t
}

const msgpackMaxNesting = 16

func msgpackPack(c *call) {
	n := c.len()
	if n == 0 {
		c.argError(0, "MessagePack pack needs input.")
	}
	b := c.buffer()
	for i := 1; i <= n; i++ {
		b = c.packValue(b, c.at(i), 0)
	}
	c.pushBuffer(b)
}

func packHeader(b []byte, n uint64, fix byte, fixMax uint64, code8, code16, code32 byte) []byte {
	switch {
	case n <= fixMax:
		return append(b, fix|byte(n))
	case n <= math.MaxUint8 && code8 != 0:
		return append(b, code8, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, code16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, code32), uint32(n))
}

func (c *call) packValue(b []byte, v lua.Value, level int) []byte {
	if !c.tick(1) || !c.fits(len(b)) {
		return b
	}
	switch v.Kind() {
	case lua.KindString:
		s, _ := v.Str()
		return append(packHeader(b, uint64(len(s)), 0xa0, 31, 0xd9, 0xda, 0xdb), s...)
	case lua.KindBool:
		if v.Truth() {
			return append(b, 0xc3)
		}
		return append(b, 0xc2)
	case lua.KindNumber:
		f, _ := v.Number()
		return packNumber(b, f)
	case lua.KindTable:
		if level < msgpackMaxNesting {
			return c.packTable(b, v.Table(), level)
		}
	}
	return append(b, 0xc0)
}

func (c *call) packTable(b []byte, t *lua.Table, level int) []byte {
	n, isArray := c.arrayLength(t)
	if isArray {
		b = packHeader(b, uint64(n), 0x90, 15, 0, 0xdc, 0xdd)
		for i := 1; i <= n && c.err == nil; i++ {
			b = c.packValue(b, t.GetInt(i), level+1)
		}
		return b
	}
	b = packHeader(b, uint64(n), 0x80, 15, 0, 0xde, 0xdf)
	for at := 0; c.err == nil; {
		k, v, next := t.Entry(at)
		if k.IsNil() {
			break
		}
		b = c.packValue(b, k, level+1)
		b = c.packValue(b, v, level+1)
		at = next
	}
	return b
}

// arrayLength returns the number of keys of t, and whether they are 1 to n.
func (c *call) arrayLength(t *lua.Table) (n int, isArray bool) {
	most := 0.0
	isArray = true
	for at := 0; c.tick(1); n++ {
		k, _, next := t.Entry(at)
		if k.IsNil() {
			break
		}
		f, ok := k.Number()
		isArray = isArray && ok && f > 0 && f <= math.MaxInt32 && f == math.Floor(f)
		most = max(most, f)
		at = next
	}
	return n, isArray && most == float64(n)
}

func packNumber(b []byte, f float64) []byte {
	if n := conv.ToInt(f); float64(n) == f && !math.IsInf(f, 0) && f != 1<<63 {
		return packInt(b, n)
	}
	if g := float32(f); float64(g) == f {
		return binary.BigEndian.AppendUint32(append(b, 0xca), math.Float32bits(g))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(f))
}

func packInt(b []byte, n int64) []byte {
	switch {
	case -32 <= n && n <= 127:
		return append(b, byte(n))
	case 0 <= n && n <= math.MaxUint8:
		return append(b, 0xcc, byte(n))
	case 0 <= n && n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(n))
	case 0 <= n && n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(n))
	case 0 <= n:
		return binary.BigEndian.AppendUint64(append(b, 0xcf), uint64(n))
	case n >= math.MinInt8:
		return append(b, 0xd0, byte(n))
	case n >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, 0xd1), uint16(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, 0xd2), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(n))
}

func (c *call) msgpackUnpack(limit, offset int) {
	s := c.text(1)
	all := limit == 0 && offset == 0
	switch {
	case c.err != nil:
	case offset < 0 || limit < 0:
		c.raise(fmt.Sprintf("Invalid request to unpack with offset of %d and limit of %d.", int32(offset), int32(len(s))))
	case offset > len(s):
		c.raise(fmt.Sprintf("Start offset %d greater than input length %d.", int32(offset), int32(len(s))))
	}
	if c.err != nil {
		return
	}
	u := unpacker{call: c, b: s[offset:]}
	if !all {
		c.push(lua.Nil)
	}
	for n := 0; u.b != "" && (all || n < limit) && c.err == nil; n++ {
		if n >= maxUnpack {
			u.tooMany()
		}
		c.push(u.value(0))
	}
	if all {
		return
	}
	c.results[0] = lua.Number(-1)
	if u.b != "" {
		c.results[0] = lua.Number(float64(len(s) - len(u.b)))
	}
}

type unpacker struct {
	*call
	b string
}

func (u *unpacker) tooMany() {
	u.raise("stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)")
}

func (u *unpacker) next(n int) string {
	if n > len(u.b) {
		u.raise("Missing bytes in input.")
		return ""
	}
	s := u.b[:n]
	u.b = u.b[n:]
	return s
}

func (u *unpacker) uint(n int) (v uint64) {
	for _, c := range []byte(u.next(n)) {
		v = v<<8 | uint64(c)
	}
	return v
}

func (u *unpacker) value(depth int) lua.Value {
	if depth >= maxUnpack {
		u.tooMany()
	}
	if u.b == "" {
		u.next(1)
	}
	if !u.tick(1) {
		return lua.Nil
	}
	c := u.next(1)[0]
	switch {
	case c < 0x80:
		return lua.Number(float64(c))
	case c >= 0xe0:
		return lua.Number(float64(int8(c)))
	case c&0xe0 == 0xa0:
		return lua.Text(u.next(int(c & 0x1f)))
	case c&0xf0 == 0x90:
		return u.array(int(c&0xf), depth)
	case c&0xf0 == 0x80:
		return u.hash(int(c&0xf), depth)
	}
	switch c {
	case 0xc0:
		return lua.Nil
	case 0xc2:
		return lua.False
	case 0xc3:
		return lua.True
	case 0xca:
		return lua.Number(float64(math.Float32frombits(uint32(u.uint(4)))))
	case 0xcb:
		return lua.Number(math.Float64frombits(u.uint(8)))
	case 0xcc:
		return lua.Number(float64(u.uint(1)))
	case 0xcd:
		return lua.Number(float64(u.uint(2)))
	case 0xce:
		return lua.Number(float64(u.uint(4)))
	case 0xcf:
		return lua.Number(float64(int64(u.uint(8)))) // Lua 5.1 has only signed ones
	case 0xd0:
		return lua.Number(float64(int8(u.uint(1))))
	case 0xd1:
		return lua.Number(float64(int16(u.uint(2))))
	case 0xd2:
		return lua.Number(float64(int32(u.uint(4))))
	case 0xd3:
		return lua.Number(float64(int64(u.uint(8))))
	case 0xd9:
		return lua.Text(u.next(int(u.uint(1))))
	case 0xda:
		return lua.Text(u.next(int(u.uint(2))))
	case 0xdb:
		return lua.Text(u.next(int(u.uint(4))))
	case 0xdc:
		return u.array(int(u.uint(2)), depth)
	case 0xdd:
		return u.array(int(u.uint(4)), depth)
	case 0xde:
		return u.hash(int(u.uint(2)), depth)
	case 0xdf:
		return u.hash(int(u.uint(4)), depth)
	}
	u.raise("Bad data format in input.")
	return lua.Nil
}

func (u *unpacker) array(n, depth int) lua.Value {
	t := lua.NewTable(0, 0)
	for i := 1; i <= n && u.err == nil; i++ {
		t.SetInt(u.vm, i, u.value(depth+1))
	}
	return t.Value()
}

func (u *unpacker) hash(n, depth int) lua.Value {
	t := lua.NewTable(0, 0)
	for i := 0; i < n && u.err == nil; i++ {
		k := u.value(depth + 1)
		v := u.value(depth + 1)
		u.set(t, k, v)
	}
	return t.Value()
}
