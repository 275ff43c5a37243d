package script

import (
	"math"
	"math/bits"

	lua "github.com/yuin/gopher-lua"
)

// checkBits reads an argument modulo 2^32, rounded to the nearest integer.
func (st *State) checkBits(L *lua.LState, n int) uint32 {
	const magic = 1<<52 + 1<<51
	f := st.checkNumber(L, n)
	return uint32(math.Float64bits(f + magic))
}

// bitLibrary is Mike Pall's bit operations.
func (st *State) bitLibrary() *lua.LTable {
	one := func(f func(uint32) uint32) lua.LGFunction {
		return func(L *lua.LState) int {
			L.Push(lua.LNumber(int32(f(st.checkBits(L, 1)))))
			return 1
		}
	}
	all := func(f func(a, b uint32) uint32) lua.LGFunction {
		return func(L *lua.LState) int {
			b := st.checkBits(L, 1)
			for i := L.GetTop(); i > 1; i-- {
				b = f(b, st.checkBits(L, i))
			}
			L.Push(lua.LNumber(int32(b)))
			return 1
		}
	}
	shift := func(f func(b uint32, n int) uint32) lua.LGFunction {
		return func(L *lua.LState) int {
			b := st.checkBits(L, 1)
			L.Push(lua.LNumber(int32(f(b, int(st.checkBits(L, 2)&31)))))
			return 1
		}
	}
	return st.library(map[string]lua.LGFunction{
		"tobit":   one(func(b uint32) uint32 { return b }),
		"bnot":    one(func(b uint32) uint32 { return ^b }),
		"bswap":   one(bits.ReverseBytes32),
		"band":    all(func(a, b uint32) uint32 { return a & b }),
		"bor":     all(func(a, b uint32) uint32 { return a | b }),
		"bxor":    all(func(a, b uint32) uint32 { return a ^ b }),
		"lshift":  shift(func(b uint32, n int) uint32 { return b << n }),
		"rshift":  shift(func(b uint32, n int) uint32 { return b >> n }),
		"arshift": shift(func(b uint32, n int) uint32 { return uint32(int32(b) >> n) }),
		"rol":     shift(func(b uint32, n int) uint32 { return bits.RotateLeft32(b, n) }),
		"ror":     shift(func(b uint32, n int) uint32 { return bits.RotateLeft32(b, -n) }),
		"tohex": func(L *lua.LState) int {
			b, n := st.checkBits(L, 1), int64(8)
			if L.GetTop() > 1 {
				n = int64(int32(st.checkBits(L, 2)))
			}
			digits := "0123456789abcdef"
			if n < 0 {
				n, digits = -n, "0123456789ABCDEF"
			}
			text := make([]byte, min(n, 8))
			for i := len(text) - 1; i >= 0; i-- {
				text[i] = digits[b&15]
				b >>= 4
			}
			L.Push(lua.LString(view(text)))
			return 1
		},
	})
}
