package script

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// structLibrary is Roberto Ierusalimschy's struct, from its manual: a format is a list
// of options, each of which stands for a value (x: for a byte of padding), or changes
// the byte order or the alignment of those that follow.
func (st *State) structLibrary() *lua.Table {
	return st.library(entry{"pack", structPack}, entry{"unpack", structUnpack}, entry{"size", structSize})
}

const (
	maxIntSize = 32
	maxAlign   = 8
)

// structItem is an option of a format.
type structItem struct {
	option byte
	size   int // in bytes; 0 if it depends on the value, or the option has none
	align  int // greatest boundary on which a value begins
	big    bool
}

// structFormat yields the items of a format.
type structFormat struct {
	*call
	rest  string // is not parsed
	item  structItem
	big   bool
	align int
}

// structFormat returns the format in the first argument.
func (c *call) structFormat() structFormat {
	return structFormat{call: c, rest: conv.CString(c.text(1)), align: 1}
}

// next parses the next item; false at the end. Wrong options are errors once they are
// reached, and a wrong alignment after its item was handled.
func (f *structFormat) next() bool {
	switch f.item.option {
	case '<', '>':
		f.big = f.item.option == '>'
	case '!':
		if f.align = f.digits(maxAlign); f.align <= 0 || f.align&(f.align-1) != 0 {
			f.raise(fmt.Sprintf("alignment %d is not a power of 2", f.align))
		}
	}
	if f.rest == "" || !f.tick(1) {
		return false
	}
	option, size := f.rest[0], 0
	f.rest = f.rest[1:]
	switch option {
	case 'b', 'B', 'x':
		size = 1
	case 'h', 'H':
		size = 2
	case 'f':
		size = 4
	case 'd', 'l', 'L', 'T':
		size = 8
	case 'c':
		size = f.digits(1)
	case 'i', 'I':
		if size = f.digits(4); size > maxIntSize {
			f.raise(fmt.Sprintf("integral size %d is larger than limit of %d", size, maxIntSize))
		}
	}
	f.item = structItem{option, size, f.align, f.big}
	return f.err == nil
}

// digits parses a number, if there is one.
func (f *structFormat) digits(missing int) int {
	length := len(f.rest) - len(strings.TrimLeft(f.rest, "0123456789"))
	if length == 0 {
		return missing
	}
	n := int64(0)
	for _, c := range f.rest[:length] {
		if n = 10*n + int64(c-'0'); n > math.MaxInt32 {
			f.raise("integral size overflow")
			return 0
		}
	}
	f.rest = f.rest[length:]
	return int(n)
}

// check refuses what is no option of a value, the byte order or the alignment.
func (it *structItem) check(c *call) {
	if strings.IndexByte("bBhHlLTiIfdxcs<>! ", it.option) < 0 {
		c.argError(1, "invalid format option '"+string([]byte{it.option})+"'")
	}
}

// padding returns the number of bytes between position at and the value.
func (it *structItem) padding(at uint64) uint64 {
	if it.size == 0 || it.option == 'c' {
		return 0
	}
	boundary := uint64(min(it.size, it.align))
	return (boundary - at&(boundary-1)) & (boundary - 1)
}

// append appends the lowest bytes of v in the byte order of the item.
func (it *structItem) append(b []byte, v uint64) []byte {
	start := len(b)
	for i := range it.size {
		b = append(b, byte(v>>(8*i)))
	}
	if it.big {
		slices.Reverse(b[start:])
	}
	return b
}

// bits is the inverse of append.
func (it *structItem) bits(data string) (v uint64) {
	for i := range len(data) {
		at := i
		if !it.big {
			at = len(data) - 1 - i
		}
		v = v<<8 | uint64(data[at])
	}
	return v
}

func structPack(c *call) {
	f := c.structFormat()
	c.padded = true // as in Redis
	b := c.buffer()
	arg := 1
	for f.next() {
		it := &f.item
		b = append(b, make([]byte, it.padding(uint64(len(b))))...)
		switch it.option {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			arg++
			if n := c.number(arg); n < 0 {
				b = it.append(b, uint64(conv.ToInt(n)))
			} else {
				b = it.append(b, conv.ToUint(n))
			}
		case 'f':
			arg++
			b = it.append(b, uint64(math.Float32bits(float32(c.number(arg)))))
		case 'd':
			arg++
			b = it.append(b, math.Float64bits(c.number(arg)))
		case 'x':
			b = append(b, 0)
		case 'c', 's':
			arg++
			text := c.text(arg)
			if it.size > len(text) {
				c.argError(arg+1, "string too short") // the number is that of Redis
			} else if it.size > 0 {
				text = text[:it.size]
			}
			if b = append(b, text...); it.option == 's' {
				b = append(b, 0)
			}
		default:
			it.check(c)
		}
		c.fits(len(b))
	}
	c.pushBuffer(b)
}

func structUnpack(c *call) {
	f, data := c.structFormat(), c.text(2)
	at := uint64(c.optInt(3, 1)) - 1
	if at == math.MaxUint64 {
		c.argError(3, "offset must be 1 or greater")
	}
	take := func(n uint64) string {
		if n > uint64(len(data)) || at > uint64(len(data))-n {
			c.argError(2, "data string too short")
		}
		if c.err != nil {
			return ""
		}
		at += n
		return data[at-n : at]
	}
	for f.next() {
		it := &f.item
		at += it.padding(at)
		part := take(uint64(it.size))
		if c.err != nil {
			return
		}
		if len(c.results) >= maxUnpack {
			c.raise("stack overflow (too many results)")
		}
		switch it.option {
		case 'B', 'H', 'L', 'T', 'I':
			c.push(lua.Number(float64(it.bits(part))))
		case 'b', 'h', 'l', 'i':
			v := it.bits(part)
			if sign := (8*it.size - 1) & 63; v>>sign != 0 { // beyond 64 bits as on amd64
				v |= math.MaxUint64 << sign
			}
			c.push(lua.Number(float64(int64(v))))
		case 'f':
			c.push(lua.Number(float64(math.Float32frombits(uint32(it.bits(part))))))
		case 'd':
			c.push(lua.Number(math.Float64frombits(it.bits(part))))
		case 'x':
		case 'c':
			if it.size == 0 { // the value before is the length
				var length float64
				n := len(c.results) - 1
				ok := n >= 0
				if ok {
					length, ok = lua.ToNumber(c.results[n])
				}
				if !ok {
					c.raise("format 'c0' needs a previous size")
					return
				}
				c.results = c.results[:n]
				part = take(conv.ToUint(length))
			}
			c.push(lua.Text(part))
		case 's':
			end := strings.IndexByte(data[at:], 0)
			if end < 0 {
				c.raise("unfinished string in data")
				return
			}
			c.push(lua.Text(take(uint64(end))))
			at++
		default:
			it.check(c)
		}
	}
	c.push(lua.Number(float64(int64(at + 1))))
}

func structSize(c *call) {
	total := uint64(0)
	for f := c.structFormat(); f.next(); {
		it := &f.item
		switch {
		case it.option == 's':
			c.argError(1, "option 's' has no fixed size")
		case it.option == 'c' && it.size == 0:
			c.argError(1, "option 'c0' has no fixed size")
		case !conv.IsDigit(int(it.option)) && (!conv.IsAlpha(int(it.option)) || it.option == '_'): // others are ignored here
			it.check(c)
		}
		total += it.padding(total) + uint64(it.size)
	}
	c.push(lua.Number(float64(total)))
}
