package script

import (
	"fmt"
	"math"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// structLibrary is Roberto Ierusalimschy's struct, from its manual: a format is a list
// of options, each of which stands for a value (x: for a byte of padding), or changes
// the byte order or the alignment of those that follow.
func (st *State) structLibrary() *lua.LTable {
	return st.library(map[string]lua.LGFunction{"pack": st.structPack, "unpack": st.structUnpack, "size": st.structSize})
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
	st    *State
	L     *lua.LState
	rest  string // is not parsed
	item  structItem
	big   bool
	align int
}

// structFormat returns the format in the first argument.
func (st *State) structFormat(L *lua.LState) structFormat {
	return structFormat{st: st, L: L, rest: conv.CString(st.checkString(L, 1)), align: 1}
}

// next parses the next item; false at the end. Wrong options are errors once they are
// reached, and a wrong alignment after its item was handled.
func (f *structFormat) next() bool {
	switch f.item.option {
	case '<', '>':
		f.big = f.item.option == '>'
	case '!':
		if f.align = f.number(maxAlign); f.align <= 0 || f.align&(f.align-1) != 0 {
			f.st.Raise(f.L, fmt.Sprintf("alignment %d is not a power of 2", f.align))
		}
	}
	if f.rest == "" {
		return false
	}
	f.st.Spend(f.L, 1)
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
		size = f.number(1)
	case 'i', 'I':
		if size = f.number(4); size > maxIntSize {
			f.st.Raise(f.L, fmt.Sprintf("integral size %d is larger than limit of %d", size, maxIntSize))
		}
	}
	f.item = structItem{option, size, f.align, f.big}
	return true
}

// number parses a number, if there is one.
func (f *structFormat) number(missing int) int {
	digits := len(f.rest) - len(strings.TrimLeft(f.rest, "0123456789"))
	if digits == 0 {
		return missing
	}
	n := int64(0)
	for _, c := range f.rest[:digits] {
		if n = 10*n + int64(c-'0'); n > math.MaxInt32 {
			f.st.Raise(f.L, "integral size overflow")
		}
	}
	f.rest = f.rest[digits:]
	return int(n)
}

// check refuses what is no option of a value, the byte order or the alignment.
func (it *structItem) check(st *State, L *lua.LState) {
	if strings.IndexByte("bBhHlLTiIfdxcs<>! ", it.option) < 0 {
		st.argError(L, 1, "invalid format option '"+string([]byte{it.option})+"'")
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

func (st *State) structPack(L *lua.LState) int {
	f := st.structFormat(L)
	L.Push(lua.LNil) // a missing value reads as nil, as in Redis
	var b []byte
	arg := 1
	for f.next() {
		it := &f.item
		b = append(b, make([]byte, it.padding(uint64(len(b))))...)
		switch it.option {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			arg++
			if n := st.checkNumber(L, arg); n < 0 {
				b = it.append(b, uint64(conv.ToInt(n)))
			} else {
				b = it.append(b, conv.ToUint(n))
			}
		case 'f':
			arg++
			b = it.append(b, uint64(math.Float32bits(float32(st.checkNumber(L, arg)))))
		case 'd':
			arg++
			b = it.append(b, math.Float64bits(st.checkNumber(L, arg)))
		case 'x':
			b = append(b, 0)
		case 'c', 's':
			arg++
			text := st.checkString(L, arg)
			if it.size > len(text) {
				st.argError(L, arg+1, "string too short") // the number is that of Redis
			}
			if it.size > 0 {
				text = text[:it.size]
			}
			if b = append(b, text...); it.option == 's' {
				b = append(b, 0)
			}
		default:
			it.check(st, L)
		}
		st.checkLength(L, len(b))
	}
	st.make(L, len(b))
	L.Push(lua.LString(view(b)))
	return 1
}

func (st *State) structUnpack(L *lua.LState) int {
	f, data := st.structFormat(L), st.checkString(L, 2)
	at := uint64(st.optInt(L, 3, 1)) - 1
	if at == math.MaxUint64 {
		st.argError(L, 3, "offset must be 1 or greater")
	}
	take := func(n uint64) string {
		if n > uint64(len(data)) || at > uint64(len(data))-n {
			st.argError(L, 2, "data string too short")
		}
		at += n
		return data[at-n : at]
	}
	n := 0 // results
	push := func(v lua.LValue) {
		L.Push(v)
		n++
	}
	for f.next() {
		it := &f.item
		at += it.padding(at)
		part := take(uint64(it.size))
		if n >= maxUnpack {
			st.Raise(L, "stack overflow (too many results)")
		}
		switch it.option {
		case 'B', 'H', 'L', 'T', 'I':
			push(lua.LNumber(it.bits(part)))
		case 'b', 'h', 'l', 'i':
			v := it.bits(part)
			if sign := (8*it.size - 1) & 63; v>>sign != 0 { // beyond 64 bits as on amd64
				v |= math.MaxUint64 << sign
			}
			push(lua.LNumber(int64(v)))
		case 'f':
			push(lua.LNumber(math.Float32frombits(uint32(it.bits(part)))))
		case 'd':
			push(lua.LNumber(math.Float64frombits(it.bits(part))))
		case 'x':
		case 'c':
			if it.size == 0 { // the value before is the length
				var length float64
				ok := n > 0
				if ok {
					length, ok = conv.ToNumber(L.Get(-1))
				}
				if !ok {
					st.Raise(L, "format 'c0' needs a previous size")
				}
				L.Pop(1)
				n--
				part = take(conv.ToUint(length))
			}
			push(lua.LString(part))
		case 's':
			end := strings.IndexByte(data[at:], 0)
			if end < 0 {
				st.Raise(L, "unfinished string in data")
			}
			push(lua.LString(take(uint64(end))))
			at++
		default:
			it.check(st, L)
		}
	}
	L.Push(lua.LNumber(int64(at + 1)))
	return n + 1
}

func (st *State) structSize(L *lua.LState) int {
	total := uint64(0)
	for f := st.structFormat(L); f.next(); {
		it := &f.item
		switch {
		case it.option == 's':
			st.argError(L, 1, "option 's' has no fixed size")
		case it.option == 'c' && it.size == 0:
			st.argError(L, 1, "option 'c0' has no fixed size")
		case !conv.IsDigit(int(it.option)) && (!conv.IsAlpha(int(it.option)) || it.option == '_'): // others are ignored here
			it.check(st, L)
		}
		total += it.padding(total) + uint64(it.size)
	}
	L.Push(lua.LNumber(total))
	return 1
}
