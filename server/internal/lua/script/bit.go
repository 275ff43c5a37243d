package script

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// checkBits reads an argument modulo 2^32, rounded to the nearest integer: a float64
// between 2^52 and 2^53 has its integer part in its lowest bits, and no other part.
// Arguments beyond ±2^51 give what they give in Redis.
func (st *State) checkBits(L *lua.LState, n int) uint32 {
	const shift = 1<<52 + 1<<51
	return uint32(math.Float64bits(st.checkNumber(L, n) + shift))
}

// bitLibrary is Bit Operations, from the documentation by Mike Pall
// (bitop.luajit.org): operands are modulo 2^32, results signed, and shift counts modulo
// 32.
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
			text := fmt.Sprintf("%08x", st.checkBits(L, 1))
			if L.GetTop() > 1 {
				digits := int64(int32(st.checkBits(L, 2)))
				if digits < 0 {
					text, digits = strings.ToUpper(text), -digits
				}
				text = text[len(text)-int(min(digits, 8)):]
			}
			L.Push(lua.LString(text))
			return 1
		},
	})
}
