package script

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/zsetd/zsetd/server/internal/lua"
)

// bits reads an argument modulo 2^32, rounded to the nearest integer: a float64
// between 2^52 and 2^53 has its integer part in its lowest bits, and no other part.
// Arguments beyond ±2^51 give what they give in Redis.
func (c *call) bits(n int) uint32 {
	const shift = 1<<52 + 1<<51
	return uint32(math.Float64bits(c.number(n) + shift))
}

// bitLibrary is Bit Operations, from the documentation by Mike Pall
// (bitop.luajit.org): operands are modulo 2^32, results signed, and shift counts modulo
// 32.
func (st *State) bitLibrary() *lua.Table {
	one := func(name string, f func(uint32) uint32) entry {
		return entry{name, func(c *call) { c.push(lua.Number(float64(int32(f(c.bits(1)))))) }}
	}
	all := func(name string, f func(a, b uint32) uint32) entry {
		return entry{name, func(c *call) {
			b := c.bits(1)
			for i := c.len(); i > 1; i-- {
				b = f(b, c.bits(i))
			}
			c.push(lua.Number(float64(int32(b))))
		}}
	}
	shift := func(name string, f func(b uint32, n int) uint32) entry {
		return entry{name, func(c *call) {
			b := c.bits(1)
			c.push(lua.Number(float64(int32(f(b, int(c.bits(2)&31))))))
		}}
	}
	return st.library(
		one("tobit", func(b uint32) uint32 { return b }),
		one("bnot", func(b uint32) uint32 { return ^b }),
		all("band", func(a, b uint32) uint32 { return a & b }),
		all("bor", func(a, b uint32) uint32 { return a | b }),
		all("bxor", func(a, b uint32) uint32 { return a ^ b }),
		shift("lshift", func(b uint32, n int) uint32 { return b << n }),
		shift("rshift", func(b uint32, n int) uint32 { return b >> n }),
		shift("arshift", func(b uint32, n int) uint32 { return uint32(int32(b) >> n) }),
		shift("rol", func(b uint32, n int) uint32 { return bits.RotateLeft32(b, n) }),
		shift("ror", func(b uint32, n int) uint32 { return bits.RotateLeft32(b, -n) }),
		one("bswap", bits.ReverseBytes32),
		entry{"tohex", func(c *call) {
			text := fmt.Sprintf("%08x", c.bits(1))
			if c.len() > 1 {
				digits := int64(int32(c.bits(2)))
				if digits < 0 {
					text, digits = strings.ToUpper(text), -digits
				}
				text = text[len(text)-int(min(digits, 8)):]
			}
			c.push(lua.Text(text))
		}},
	)
}
