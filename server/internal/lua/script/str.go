package script

import (
	"slices"
	"unsafe"

	"github.com/zsetd/zsetd/server/internal/lua"
)

// view returns the bytes as a string without copying. They must not be changed.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// stringLibrary is section 5.4 of the manual of Lua 5.1.
func (st *State) stringLibrary() *lua.Table {
	patterns := &patternFunctions{}
	t := st.library(
		entry{"byte", strByte}, entry{"char", strChar}, entry{"dump", strDump}, entry{"find", patterns.find}, entry{"format", strFormat},
		entry{"gfind", patterns.gmatch}, entry{"gmatch", patterns.gmatch}, entry{"gsub", patterns.gsub},
		entry{"len", func(c *call) { c.push(lua.Number(float64(len(c.text(1))))) }},
		entry{"lower", func(c *call) { c.mapBytes('A', 'Z', 32) }}, entry{"match", patterns.match},
		entry{"rep", strRep}, entry{"reverse", strReverse}, entry{"sub", strSub},
		entry{"upper", func(c *call) { c.mapBytes('a', 'z', 256-32) }},
	)
	t.SetText(nil, "gfind", t.GetText("gmatch"))
	return t
}

// stepBytes is the number of bytes that functions go through between two ticks.
const stepBytes = 1 << 14

// offset converts a position, from 1 on or if negative from the end, to an index of s.
func offset(s string, position int) int {
	if position < 0 {
		position += len(s) + 1
	}
	return max(position, 0) - 1
}

// part returns the bytes of s from a position to another one, as far as they exist.
func part(s string, first, last int) string {
	from, to := max(offset(s, first), 0), min(offset(s, last)+1, len(s))
	return s[min(from, len(s)):max(min(from, len(s)), to)]
}

func strByte(c *call) {
	s := c.text(1)
	first := c.optInt(2, 1)
	s = part(s, first, c.optInt(3, first))
	if len(s) >= maxUnpack {
		c.raise("string slice too long")
		return
	}
	for i := range len(s) {
		c.push(lua.Number(float64(s[i])))
	}
}

func strChar(c *call) {
	b := make([]byte, c.len())
	for i := range b {
		n := c.int32(i + 1)
		if n < 0 || n > 255 {
			c.argError(i+1, "invalid value")
		}
		b[i] = byte(n)
	}
	c.pushBytes(b)
}

func strDump(c *call) {
	if f := c.function(1); f != nil && f.Proto == nil {
		c.raise("unable to dump given function")
	}
	c.push(lua.Text("\x1bLuaQ\x00")) // a dummy that cannot be loaded
}

// mapBytes adds delta to the bytes of the argument that are between two.
func (c *call) mapBytes(from, to byte, delta byte) {
	s := c.text(1)
	if !c.makes(len(s)) {
		return
	}
	b := []byte(s)
	for rest := b; len(rest) > 0 && c.tick(stepBytes/8); {
		part := rest[:min(stepBytes, len(rest))]
		for i, ch := range part {
			if ch-from <= to-from {
				ch += delta
			}
			part[i] = ch
		}
		rest = rest[len(part):]
	}
	c.push(lua.Text(view(b)))
}

func strRep(c *call) {
	s := c.text(1)
	n := max(c.int32(2), 0)
	if len(s) > 0 && n > 0 {
		if n > c.vm.MaxString/len(s) {
			n = c.vm.MaxString/len(s) + 1 // enough for makes to refuse it
		}
		if !c.makes(n * len(s)) {
			return
		}
	} else {
		n = 0
	}
	b := make([]byte, n*len(s))
	step := max(1, stepBytes/max(1, len(s))) * len(s) // keeps to whole copies
	for filled := copy(b, s); filled < len(b) && c.tick(step>>6); {
		filled += copy(b[filled:], b[:min(filled, step)])
	}
	c.push(lua.Text(view(b)))
}

func strReverse(c *call) {
	s := c.text(1)
	if !c.makes(len(s)) {
		return
	}
	b := make([]byte, 0, len(s))
	for len(s) > 0 && c.tick(stepBytes/8) {
		at := max(0, len(s)-stepBytes)
		start := len(b)
		b = append(b, s[at:]...)
		slices.Reverse(b[start:])
		s = s[:at]
	}
	c.push(lua.Text(view(b)))
}

func strSub(c *call) {
	s := c.text(1)
	first := c.int(2)
	c.push(lua.Text(part(s, first, c.optInt(3, -1))))
}
