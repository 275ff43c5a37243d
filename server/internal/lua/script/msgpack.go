package script

import (
	"encoding/binary"
	"fmt"
	"math"

	lua "github.com/yuin/gopher-lua"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// msgpackLibrary is cmsgpack in Redis's version.
func (st *State) msgpackLibrary() *lua.LTable {
	t := st.library(map[string]lua.LGFunction{
		"pack": st.msgpackPack,
		"unpack": func(L *lua.LState) int {
			return st.msgpackUnpack(L, 0, 0)
		},
		"unpack_one": func(L *lua.LState) int {
			return st.msgpackUnpack(L, 1, st.optInt(L, 2, 0))
		},
		"unpack_limit": func(L *lua.LState) int {
			limit := st.checkInt(L, 2)
			return st.msgpackUnpack(L, limit, st.optInt(L, 3, 0))
		},
	})
	t.RawSetString("_NAME", lua.LString("cmsgpack"))
	t.RawSetString("_VERSION", lua.LString("lua-cmsgpack 0.4.0"))
	t.RawSetString("_COPYRIGHT", lua.LString("Copyright (C) 2012, Salvatore Sanfilippo"))
	t.RawSetString("_DESCRIPTION", lua.LString("MessagePack C implementation for Lua"))
	return t
}

const msgpackMaxNesting = 16

func (st *State) msgpackPack(L *lua.LState) int {
	n := L.GetTop()
	if n == 0 {
		st.argError(L, 0, "MessagePack pack needs input.")
	}
	var b []byte
	for i := 1; i <= n; i++ {
		b = st.packValue(L, b, L.Get(i), 0)
	}
	st.make(L, len(b))
	L.Push(lua.LString(view(b)))
	return 1
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

func (st *State) packValue(L *lua.LState, b []byte, v lua.LValue, level int) []byte {
	st.Spend(L, 1)
	st.checkLength(L, len(b))
	switch v := v.(type) {
	case lua.LString:
		return append(packHeader(b, uint64(len(v)), 0xa0, 31, 0xd9, 0xda, 0xdb), v...)
	case lua.LBool:
		if v {
			return append(b, 0xc3)
		}
		return append(b, 0xc2)
	case lua.LNumber:
		return packNumber(b, float64(v))
	case *lua.LTable:
		if level == msgpackMaxNesting {
			break
		}
		t := st.real(v)
		if n, ok := st.arrayLength(L, t); ok {
			b = packHeader(b, uint64(n), 0x90, 15, 0, 0xdc, 0xdd)
			for i := 1; i <= n; i++ {
				b = st.packValue(L, b, t.RawGet(lua.LNumber(i)), level+1)
			}
			return b
		}
		n := 0
		for k, _ := next(t, lua.LNil); k != lua.LNil; k, _ = next(t, k) {
			st.Spend(L, 1)
			n++
		}
		b = packHeader(b, uint64(n), 0x80, 15, 0, 0xde, 0xdf)
		for k, e := next(t, lua.LNil); k != lua.LNil; k, e = next(t, k) {
			b = st.packValue(L, b, k, level+1)
			b = st.packValue(L, b, e, level+1)
		}
		return b
	}
	return append(b, 0xc0)
}

// arrayLength reports whether the keys of t are 1 to n, without a hole.
func (st *State) arrayLength(L *lua.LState, t *lua.LTable) (n int, ok bool) {
	most := 0
	for k, _ := next(t, lua.LNil); k != lua.LNil; k, _ = next(t, k) {
		st.Spend(L, 1)
		f, isNumber := k.(lua.LNumber)
		if !isNumber || f <= 0 || f > math.MaxInt32 || f != lua.LNumber(int(f)) {
			return 0, false
		}
		most = max(most, int(f))
		n++
	}
	return n, most == n
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

func (st *State) msgpackUnpack(L *lua.LState, limit, offset int) int {
	s := st.checkString(L, 1)
	all := limit == 0 && offset == 0
	switch {
	case offset < 0 || limit < 0:
		st.Raise(L, fmt.Sprintf("Invalid request to unpack with offset of %d and limit of %d.", int32(offset), int32(len(s))))
	case offset > len(s):
		st.Raise(L, fmt.Sprintf("Start offset %d greater than input length %d.", int32(offset), int32(len(s))))
	}
	u := unpacker{st: st, L: L, b: s[offset:]}
	n := 0
	if !all {
		L.Push(lua.LNil)
	}
	at := L.GetTop()
	for ; u.b != "" && (all || n < limit); n++ {
		if n >= maxUnpack {
			u.tooMany()
		}
		L.Push(u.value(0))
	}
	if all {
		return n
	}
	next := lua.LNumber(-1)
	if u.b != "" {
		next = lua.LNumber(len(s) - len(u.b))
	}
	L.Replace(at, next)
	return n + 1
}

type unpacker struct {
	st *State
	L  *lua.LState
	b  string
}

func (u *unpacker) tooMany() {
	u.st.Raise(u.L, "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)")
}

func (u *unpacker) next(n int) string {
	if n > len(u.b) {
		u.st.Raise(u.L, "Missing bytes in input.")
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

func (u *unpacker) value(depth int) lua.LValue {
	if depth >= maxUnpack {
		u.tooMany()
	}
	u.st.Spend(u.L, 1)
	c := u.next(1)[0]
	switch {
	case c < 0x80:
		return lua.LNumber(c)
	case c >= 0xe0:
		return lua.LNumber(int8(c))
	case c&0xe0 == 0xa0:
		return lua.LString(u.next(int(c & 0x1f)))
	case c&0xf0 == 0x90:
		return u.array(int(c&0xf), depth)
	case c&0xf0 == 0x80:
		return u.hash(int(c&0xf), depth)
	}
	switch c {
	case 0xc0:
		return lua.LNil
	case 0xc2:
		return lua.LFalse
	case 0xc3:
		return lua.LTrue
	case 0xca:
		return lua.LNumber(math.Float32frombits(uint32(u.uint(4))))
	case 0xcb:
		return lua.LNumber(math.Float64frombits(u.uint(8)))
	case 0xcc:
		return lua.LNumber(u.uint(1))
	case 0xcd:
		return lua.LNumber(u.uint(2))
	case 0xce:
		return lua.LNumber(u.uint(4))
	case 0xcf:
		return lua.LNumber(int64(u.uint(8))) // Lua 5.1 has only signed ones
	case 0xd0:
		return lua.LNumber(int8(u.uint(1)))
	case 0xd1:
		return lua.LNumber(int16(u.uint(2)))
	case 0xd2:
		return lua.LNumber(int32(u.uint(4)))
	case 0xd3:
		return lua.LNumber(int64(u.uint(8)))
	case 0xd9:
		return lua.LString(u.next(int(u.uint(1))))
	case 0xda:
		return lua.LString(u.next(int(u.uint(2))))
	case 0xdb:
		return lua.LString(u.next(int(u.uint(4))))
	case 0xdc:
		return u.array(int(u.uint(2)), depth)
	case 0xdd:
		return u.array(int(u.uint(4)), depth)
	case 0xde:
		return u.hash(int(u.uint(2)), depth)
	case 0xdf:
		return u.hash(int(u.uint(4)), depth)
	}
	u.st.Raise(u.L, "Bad data format in input.")
	return nil
}

func (u *unpacker) array(n, depth int) lua.LValue {
	// A table is preallocated for 64 elements at most: preallocation for all that
	// the input claims would take 1.2 TB for 10 MB, at 8000 levels.
	t := u.L.CreateTable(min(n, len(u.b), 64), 0)
	for i := range n {
		t.RawSetInt(i+1, u.value(depth+1))
	}
	return t
}

func (u *unpacker) hash(n, depth int) lua.LValue {
	t := u.st.Table()
	for range n {
		k := u.value(depth + 1)
		v := u.value(depth + 1)
		u.st.checkKey(u.L, k)
		t.RawSet(k, v)
	}
	return t
}
