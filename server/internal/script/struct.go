package script

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// structLibrary is Roberto Ierusalimschy's struct.
func (st *State) structLibrary() *lua.LTable {
	return st.library(map[string]lua.LGFunction{"pack": st.structPack, "unpack": st.structUnpack, "size": st.structSize})
}

const (
	maxIntSize = 32
	maxAlign   = 8
)

// layout parses a format.
type layout struct {
	st    *State
	L     *lua.LState
	fmt   string
	big   bool
	align int
}

func (st *State) newLayout(L *lua.LState) *layout {
	return &layout{st: st, L: L, fmt: cString(st.checkString(L, 1)), align: 1}
}

func (f *layout) number(missing int) int {
	if f.fmt == "" || !isDigit(int(f.fmt[0])) {
		return missing
	}
	n := 0
	for f.fmt != "" && isDigit(int(f.fmt[0])) {
		d := int(f.fmt[0] - '0')
		if n > math.MaxInt32/10 || n*10 > math.MaxInt32-d {
			f.st.Raise(f.L, "integral size overflow")
		}
		n = n*10 + d
		f.fmt = f.fmt[1:]
	}
	return n
}

// next returns the next option and its size.
func (f *layout) next() (opt byte, size int) {
	opt = f.fmt[0]
	f.fmt = f.fmt[1:]
	switch opt {
	case 'B', 'b', 'x':
		size = 1
	case 'H', 'h':
		size = 2
	case 'L', 'l', 'T', 'd':
		size = 8
	case 'f':
		size = 4
	case 'c':
		size = f.number(1)
	case 'i', 'I':
		size = f.number(4)
		if size > maxIntSize {
			f.st.Raise(f.L, fmt.Sprintf("integral size %d is larger than limit of %d", size, maxIntSize))
		}
	}
	return opt, size
}

func (f *layout) padding(at uint64, opt byte, size int) uint64 {
	if size == 0 || opt == 'c' {
		return 0
	}
	n := uint64(min(size, f.align))
	return (n - at&(n-1)) & (n - 1)
}

func (f *layout) control(opt byte) {
	switch opt {
	case ' ':
	case '>':
		f.big = true
	case '<':
		f.big = false
	case '!':
		a := f.number(maxAlign)
		if a <= 0 || a&(a-1) != 0 {
			f.st.Raise(f.L, fmt.Sprintf("alignment %d is not a power of 2", a))
		}
		f.align = a
	default:
		f.st.argError(f.L, 1, "invalid format option '"+string([]byte{opt})+"'")
	}
}

// ordered converts little-endian bytes to the byte order of the format.
func (f *layout) ordered(b []byte) []byte {
	if f.big {
		for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
	return b
}

func (st *State) structPack(L *lua.LState) int {
	f := st.newLayout(L)
	L.Push(lua.LNil) // as Lua's does: a missing value reads as nil
	var b []byte
	arg := 2
	for f.fmt != "" {
		st.Spend(L, 1)
		opt, size := f.next()
		b = append(b, make([]byte, f.padding(uint64(len(b)), opt, size))...)
		switch opt {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			n := st.checkNumber(L, arg)
			arg++
			v := toUint(n)
			if n < 0 {
				v = uint64(toInt(n))
			}
			digits := make([]byte, max(size, 8))
			binary.LittleEndian.PutUint64(digits, v)
			b = append(b, f.ordered(digits[:size])...)
		case 'x':
			b = append(b, 0)
		case 'f':
			v := math.Float32bits(float32(st.checkNumber(L, arg)))
			arg++
			b = append(b, f.ordered(binary.LittleEndian.AppendUint32(nil, v))...)
		case 'd':
			v := math.Float64bits(st.checkNumber(L, arg))
			arg++
			b = append(b, f.ordered(binary.LittleEndian.AppendUint64(nil, v))...)
		case 'c', 's':
			s := st.checkString(L, arg)
			arg++
			if size == 0 {
				size = len(s)
			}
			if len(s) < size {
				st.argError(L, arg, "string too short")
			}
			b = append(b, s[:size]...)
			if opt == 's' {
				b = append(b, 0)
			}
		default:
			f.control(opt)
		}
		st.checkLength(L, len(b))
	}
	st.make(L, len(b))
	L.Push(lua.LString(view(b)))
	return 1
}

func (st *State) structUnpack(L *lua.LState) int {
	f := st.newLayout(L)
	data := st.checkString(L, 2)
	length := uint64(len(data))
	pos := uint64(st.optInt(L, 3, 1))
	if pos == 0 {
		st.argError(L, 3, "offset must be 1 or greater")
	}
	pos--
	check := func(size uint64) {
		if size > length || pos > length-size {
			st.argError(L, 2, "data string too short")
		}
	}
	n := 0
	for f.fmt != "" {
		st.Spend(L, 1)
		opt, length0 := f.next()
		pos += f.padding(pos, opt, length0)
		size := uint64(length0)
		check(size)
		if n >= maxUnpack {
			st.Raise(L, "stack overflow (too many results)")
		}
		switch opt {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			digits := f.ordered([]byte(data[pos : pos+size]))
			var v uint64
			for i := len(digits) - 1; i >= 0; i-- {
				v = v<<8 | uint64(digits[i])
			}
			if 'a' <= opt {
				mask := uint64(math.MaxUint64) << (uint(size*8-1) & 63)
				if v&mask != 0 {
					v |= mask
				}
				L.Push(lua.LNumber(int64(v)))
			} else {
				L.Push(lua.LNumber(v))
			}
			n++
		case 'x':
		case 'f':
			v := binary.LittleEndian.Uint32(f.ordered([]byte(data[pos : pos+size])))
			L.Push(lua.LNumber(math.Float32frombits(v)))
			n++
		case 'd':
			v := binary.LittleEndian.Uint64(f.ordered([]byte(data[pos : pos+size])))
			L.Push(lua.LNumber(math.Float64frombits(v)))
			n++
		case 'c':
			if size == 0 {
				v, ok := 0.0, n > 0
				if ok {
					v, ok = ToNumber(L.Get(-1))
				}
				if !ok {
					st.Raise(L, "format 'c0' needs a previous size")
				}
				size = toUint(v)
				L.Pop(1)
				n--
				check(size)
			}
			L.Push(lua.LString(data[pos : pos+size]))
			n++
		case 's':
			e := strings.IndexByte(data[pos:], 0)
			if e < 0 {
				st.Raise(L, "unfinished string in data")
			}
			size = uint64(e) + 1
			L.Push(lua.LString(data[pos : pos+size-1]))
			n++
		default:
			f.control(opt)
		}
		pos += size
	}
	L.Push(lua.LNumber(pos + 1))
	return n + 1
}

func (st *State) structSize(L *lua.LState) int {
	f := st.newLayout(L)
	pos := uint64(0)
	for f.fmt != "" {
		st.Spend(L, 1)
		opt, size := f.next()
		pos += f.padding(pos, opt, size)
		switch {
		case opt == 's':
			st.argError(L, 1, "option 's' has no fixed size")
		case opt == 'c' && size == 0:
			st.argError(L, 1, "option 'c0' has no fixed size")
		}
		if !isDigit(int(opt)) && (!isAlpha(int(opt)) || opt == '_') {
			f.control(opt)
		}
		pos += uint64(size)
	}
	L.Push(lua.LNumber(pos))
	return 1
}
