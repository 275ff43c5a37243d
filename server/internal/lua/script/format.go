package script

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// directive is a conversion of string.format: those of printf (C99, 7.19.6.1), without
// lengths, and %q.
type directive struct {
	flags     string
	width     int
	precision int // -1 if there is none
	verb      byte
}

// parseDirective parses a directive after its %. fault is an error.
func parseDirective(format string) (d directive, rest, fault string) {
	prefix := func(set string, most int) string {
		n := 0
		for n < min(len(format), most) && strings.IndexByte(set, format[n]) >= 0 {
			n++
		}
		text := format[:n]
		format = format[n:]
		return text
	}
	number := func() (n int) {
		for _, digit := range prefix("0123456789", 2) {
			n = 10*n + int(digit-'0')
		}
		return n
	}
	if d.flags = prefix("-+ #0", len(format)); len(d.flags) > 5 {
		return d, "", "invalid format (repeated flags)"
	}
	d.width, d.precision = number(), -1
	if prefix(".", 1) != "" {
		d.precision = number()
	}
	if format == "" {
		return d, "", ""
	}
	if conv.IsDigit(int(format[0])) {
		return d, "", "invalid format (width or precision too long)"
	}
	d.verb = format[0]
	return d, format[1:], ""
}

func strFormat(c *call) {
	format := c.text(1)
	b := c.buffer()
	for arg := 2; ; {
		literal, rest, found := strings.Cut(format, "%")
		if !c.tick(1+len(literal)/16) || !c.fits(len(b)+len(literal)) {
			return
		}
		b = append(b, literal...)
		if !found {
			break
		}
		if strings.HasPrefix(rest, "%") {
			b, format = append(b, '%'), rest[1:]
			continue
		}
		if arg > c.len() {
			c.argError(arg, "no value")
			return
		}
		d, rest, fault := parseDirective(rest)
		if fault != "" {
			c.raise(fault)
			return
		}
		b, format = c.appendDirective(b, d, arg), rest
		arg++
	}
	c.pushBuffer(b)
}

// appendDirective appends an argument as a directive shows it.
func (c *call) appendDirective(b []byte, d directive, arg int) []byte {
	switch d.verb {
	case 'c':
		ch := byte(0) // that of an int out of range, too
		if n := c.number(arg); n >= math.MinInt32 && n <= math.MaxInt32 {
			ch = byte(int32(n))
		}
		return append(b, conv.CString(string(d.pad(nil, string([]byte{ch}))))...)
	case 'd', 'i':
		n := conv.ToInt(c.number(arg))
		magnitude := uint64(n)
		if n < 0 {
			magnitude = -magnitude
		}
		return d.integer(b, d.sign(n < 0), magnitude, 10)
	case 'u':
		return d.integer(b, "", conv.ToUint(c.number(arg)), 10)
	case 'o':
		return d.integer(b, "", conv.ToUint(c.number(arg)), 8)
	case 'x', 'X':
		n, prefix := conv.ToUint(c.number(arg)), ""
		if d.has('#') && n != 0 {
			prefix = "0x"
		}
		start := len(b)
		if b = d.integer(b, prefix, n, 16); d.verb == 'X' {
			copy(b[start:], bytes.ToUpper(b[start:]))
		}
		return b
	case 'e', 'E', 'f', 'g', 'G':
		return d.float(b, c.number(arg))
	case 's', 'q':
		text := c.text(arg)
		switch {
		case !c.fits(len(b) + len(text)):
			return b
		case d.verb == 'q':
			return c.appendQuoted(b, text)
		case d.precision < 0 && len(text) >= 100:
			return append(b, text...) // as it is, with NULs
		}
		if text = conv.CString(text); d.precision >= 0 {
			text = text[:min(d.precision, len(text))]
		}
		return d.pad(b, text)
	}
	c.raise("invalid option '%" + conv.CString(string([]byte{d.verb})) + "' to 'format'")
	return b
}

func (d *directive) has(flag byte) bool { return strings.IndexByte(d.flags, flag) >= 0 }

// pad appends a text and spaces up to the width.
func (d *directive) pad(b []byte, text string) []byte {
	spaces := strings.Repeat(" ", max(d.width-len(text), 0))
	if d.has('-') {
		return append(append(b, text...), spaces...)
	}
	return append(append(b, spaces...), text...)
}

// sign returns the sign of a number.
func (d *directive) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case d.has('+'):
		return "+"
	case d.has(' '):
		return " "
	}
	return ""
}

// number appends what is before the digits of a number, and these; up to the width there
// are spaces, or zeros between both.
func (d *directive) number(b []byte, before string, digits []byte, zeros bool) []byte {
	fill := max(d.width-len(before)-len(digits), 0)
	switch {
	case d.has('-'):
		b = append(append(b, before...), digits...)
		return append(b, strings.Repeat(" ", fill)...)
	case zeros && d.has('0'):
		b = append(append(b, before...), strings.Repeat("0", fill)...)
	default:
		b = append(append(b, strings.Repeat(" ", fill)...), before...)
	}
	return append(b, digits...)
}

// integer appends an integer with at least as many digits as the precision.
func (d *directive) integer(b []byte, before string, n uint64, base int) []byte {
	var buffer, filled [100]byte // the precision is below 100
	digits := buffer[:0]
	if n > 0 || d.precision != 0 {
		digits = strconv.AppendUint(digits, n, base)
	}
	least := d.precision
	if base == 8 && d.has('#') && (n > 0 || len(digits) == 0) {
		least = max(least, len(digits)+1)
	}
	if missing := least - len(digits); missing > 0 {
		digits = append(append(filled[:0], strings.Repeat("0", missing)...), digits...)
	}
	return d.number(b, before, digits, d.precision < 0)
}

func (d *directive) float(b []byte, f float64) []byte {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		text := "inf"
		if math.IsNaN(f) {
			text = "nan"
		}
		if d.verb < 'a' {
			text = strings.ToUpper(text)
		}
		return d.pad(b, d.sign(math.Signbit(f))+text)
	}
	switch {
	case d.precision < 0:
		d.precision = 6
	case d.precision == 0 && d.verb|32 == 'g':
		d.precision = 1
	}
	sign := d.sign(math.Signbit(f))
	var buffer [400]byte
	digits := buffer[:0]
	if f = math.Abs(f); d.has('#') {
		digits = append(digits, fmt.Sprintf("%#.*"+string(rune(d.verb|32)), d.precision, f)...)
	} else {
		digits = strconv.AppendFloat(digits, f, d.verb|32, d.precision, 64)
	}
	if d.verb < 'a' {
		digits = bytes.ToUpper(digits)
	}
	return d.number(b, sign, digits, true)
}

// appendQuoted appends a string as a literal of Lua.
func (c *call) appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		if i%stepBytes == 0 && !c.tick(stepBytes/8) {
			return b
		}
		switch ch := s[i]; ch {
		case 0:
			b = append(b, `\000`...)
		case '\r':
			b = append(b, `\r`...)
		case '"', '\\', '\n':
			b = append(b, '\\', ch)
		default:
			b = append(b, ch)
		}
	}
	return append(b, '"')
}
