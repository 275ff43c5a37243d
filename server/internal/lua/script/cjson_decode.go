package script

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// jsonDecoder parses a text by recursive descent: RFC 8259, with the errors and the
// additional numbers of cjson. A NUL ends the text.
type jsonDecoder struct {
	*call
	*jsonSettings
	text  string
	at    int // index of the next byte
	depth int // of open arrays and objects
}

func (c *call) decodeJSON(s *jsonSettings, text string) lua.Value {
	if len(text) >= 2 && (text[0] == 0 || text[1] == 0) {
		c.raise("JSON parser does not support UTF-16 or UTF-32")
		return lua.Nil
	}
	d := jsonDecoder{call: c, jsonSettings: s, text: text}
	v := d.value()
	if d.peek() != 0 {
		d.expected("the end")
	}
	return v
}

// peek returns the next byte that is not a space; 0 at the end.
func (d *jsonDecoder) peek() byte {
	for d.at < len(d.text) {
		switch c := d.text[d.at]; c {
		case ' ', '\t', '\n', '\r':
			if d.at++; d.at%4096 == 0 && !d.tick(4096/16) {
				return 0
			}
		default:
			return c
		}
	}
	return 0
}

// expected raises the error of something else at the next byte.
func (d *jsonDecoder) expected(what string) { d.unexpected(what, d.found()) }

func (d *jsonDecoder) unexpected(want, found string) {
	d.raise(fmt.Sprintf("Expected %s but found %s at character %d", want, found, d.at+1))
}

// found describes what begins at the next byte. If that is wrong in itself, found
// moves to the fault.
func (d *jsonDecoder) found() string {
	c, start := d.peek(), d.at
	if i := strings.IndexByte("{}[],:", c); i >= 0 {
		return strings.Fields("T_OBJ_BEGIN T_OBJ_END T_ARR_BEGIN T_ARR_END T_COMMA T_COLON")[i]
	}
	name, fault := "", ""
	switch {
	case c == 0:
		return "T_END"
	case c == '"':
		name = "T_STRING"
		_, fault = d.string()
	case d.word("true") || d.word("false"):
		name = "T_BOOLEAN"
	case d.word("null"):
		name = "T_NULL"
	case d.numeric(c):
		name = "T_NUMBER"
		_, fault = d.number()
	default:
		fault = "invalid token"
	}
	if fault != "" {
		return fault
	}
	d.at = start
	return name
}

// word skips a word if it is next.
func (d *jsonDecoder) word(word string) bool {
	ok := strings.HasPrefix(d.text[d.at:], word)
	if ok {
		d.at += len(word)
	}
	return ok
}

// value parses a value.
func (d *jsonDecoder) value() lua.Value {
	if !d.tick(2) { // for the value, and the comma or colon
		return lua.Nil
	}
	switch c := d.peek(); {
	case c == '"':
		return lua.Text(d.stringFor("value"))
	case c == '{':
		return d.object()
	case c == '[':
		return d.array()
	case '0' <= c && c <= '9':
		return d.numberValue()
	case d.word("true"):
		return lua.True
	case d.word("false"):
		return lua.False
	case d.word("null"):
		return lua.Null
	case d.numeric(c):
		return d.numberValue()
	}
	d.expected("value")
	return lua.Nil
}

// open enters the array or object that begins at the next byte.
func (d *jsonDecoder) open() {
	d.at++
	if d.depth++; d.depth > d.decodeDepth || d.depth > maxUnpack/3 {
		d.raise(fmt.Sprintf("Found too many nested data structures (%d) at character %d", d.depth, d.at))
	}
}

// closes leaves the array or object if it ends at the next byte.
func (d *jsonDecoder) closes(with byte) bool {
	if d.peek() != with {
		return false
	}
	d.at++
	d.depth--
	return true
}

// comma skips a comma.
func (d *jsonDecoder) comma(alternative string) {
	if d.peek() != ',' {
		d.expected("comma or " + alternative)
	}
	d.at++
}

func (d *jsonDecoder) array() lua.Value {
	d.open()
	t := lua.NewTable(0, 0)
	if d.arrayTables {
		t.Meta = Library(Entry{jsonArray, lua.True})
		t.Meta.ReadOnly = true
	}
	for i := 1; d.err == nil && (i > 1 || !d.closes(']')); i++ {
		t.SetInt(d.vm, i, d.value())
		if d.closes(']') {
			break
		}
		d.comma("array end")
	}
	return t.Value()
}

func (d *jsonDecoder) object() lua.Value {
	d.open()
	t := lua.NewTable(0, 0)
	for first := true; d.err == nil && (!first || !d.closes('}')); first = false {
		if d.peek() != '"' {
			d.expected("object key string")
			break
		}
		key := d.stringFor("object key string")
		if d.peek() != ':' {
			d.expected("colon")
		}
		d.at++
		if v := d.value(); d.err == nil {
			d.err = t.Set(d.vm, lua.Text(key), v)
		}
		if d.closes('}') {
			break
		}
		d.comma("object end")
	}
	return t.Value()
}

// numeric reports whether a number that is not plain digits begins with c, at the next
// byte: those that JSON lacks, unless they are refused.
func (d *jsonDecoder) numeric(c byte) bool {
	switch {
	case c == '-' || conv.IsDigit(int(c)):
		return true
	case c == '+':
		return d.decodeInvalid
	}
	return d.decodeInvalid && conv.IsAlpha(int(c)) && numberLength(d.text[d.at:]) > 0
}

func (d *jsonDecoder) numberValue() lua.Value {
	f, fault := d.number()
	if fault != "" {
		d.unexpected("value", fault)
	}
	return lua.Number(f)
}

// number parses a number, of which there is the first byte.
func (d *jsonDecoder) number() (f float64, fault string) {
	text := d.text[d.at:]
	digits := text
	if text[0] == '-' {
		digits = text[1:]
	}
	// Most numbers have at most 15 digits. Their digits and the power of ten by which these
	// are divided are exact, so the quotient is the nearest number.
	n, point, value := 0, 0, 0
	for ; n < len(digits) && n < 17; n++ {
		switch c := digits[n]; {
		case conv.IsDigit(int(c)):
			value = 10*value + int(c-'0')
			continue
		case c == '.' && n > 0 && point == 0 && n+1 < len(digits) && conv.IsDigit(int(digits[n+1])):
			point = n
			continue
		}
		break
	}
	whole, fraction := n, 0
	if point > 0 {
		whole, fraction = point, n-point-1
	}
	if 0 < whole && whole+fraction < 16 && (digits[0] != '0' || whole == 1) && (n == len(digits) || strings.IndexByte(".eExX", digits[n]) < 0) {
		d.at += len(text) - len(digits) + n
		if f = float64(value) / math.Pow10(fraction); len(digits) < len(text) {
			f = -f
		}
		return f, ""
	}
	leadingZero := len(digits) > 1 && digits[0] == '0' && (conv.IsDigit(int(digits[1])) || digits[1]|32 == 'x')
	n = numberLength(text)
	if n == 0 || !d.decodeInvalid && (leadingZero || conv.IsAlpha(int(digits[0]))) {
		return 0, "invalid number"
	}
	d.at += n
	if f, err := strconv.ParseFloat(text[:n], 64); err == nil {
		return f, ""
	}
	f, _ = conv.ParseNumber(text[:n])
	return f, ""
}

// numberLength returns the length of the number with which s begins, in the grammar of
// strtod in C99 (7.20.1.3): decimal or hexadecimal, an infinity, or not a number; 0 if
// there is none.
func numberLength(s string) int {
	rest := s
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		rest = rest[1:]
	}
	sign := len(s) - len(rest)
	lower := strings.ToLower(rest[:min(len(rest), len("infinity"))])
	switch {
	case strings.HasPrefix(lower, "infinity"):
		return sign + len("infinity")
	case strings.HasPrefix(lower, "inf"):
		return sign + len("inf")
	case strings.HasPrefix(lower, "nan("):
		payload := strings.TrimLeftFunc(rest[4:], func(c rune) bool { return c == '_' || c < 128 && (conv.IsAlpha(int(c)) || conv.IsDigit(int(c))) })
		if strings.HasPrefix(payload, ")") {
			return sign + len(rest) - len(payload) + 1
		}
		return sign + len("nan")
	case strings.HasPrefix(lower, "nan"):
		return sign + len("nan")
	case strings.HasPrefix(lower, "0x"):
		if n := digitString(rest[2:], "0123456789abcdefABCDEF", 'p'); n > 0 {
			return sign + 2 + n
		}
	}
	if n := digitString(rest, "0123456789", 'e'); n > 0 {
		return sign + n
	}
	return 0
}

// digitString returns the length of the digits, at least one, with which s begins, with
// a point and with an exponent; 0 if there is none.
func digitString(s, digits string, exponent byte) int {
	after := strings.TrimLeft(s, digits)
	n := len(s) - len(after)
	if strings.HasPrefix(after, ".") {
		fraction := strings.TrimLeft(after[1:], digits)
		n += len(after) - 1 - len(fraction)
		after = fraction
	}
	if n == 0 {
		return 0
	}
	if after != "" && after[0]|32 == exponent {
		power := after[1:]
		if power != "" && (power[0] == '-' || power[0] == '+') {
			power = power[1:]
		}
		if end := strings.TrimLeft(power, "0123456789"); len(end) < len(power) {
			after = end
		}
	}
	return len(s) - len(after)
}

// stringFor parses a string where want is expected.
func (d *jsonDecoder) stringFor(want string) string {
	text, fault := d.string()
	if fault != "" {
		d.unexpected(want, fault)
	}
	return text
}

// string parses a string. If there is a fault, it stops there.
func (d *jsonDecoder) string() (text, fault string) {
	d.at++
	var b []byte
	for start := d.at; ; {
		end := min(d.at+4096, len(d.text))
		for d.at < end && d.text[d.at] != '"' && d.text[d.at] != '\\' && d.text[d.at] != 0 {
			d.at++
		}
		switch {
		case d.at == len(d.text) || d.text[d.at] == 0:
			return "", "unexpected end of string"
		case d.at == end:
			if !d.tick(4096 / 16) {
				return "", "interrupted"
			}
		case d.text[d.at] == '"':
			if text = d.text[start:d.at]; b != nil {
				text = view(append(b, text...))
			}
			d.at++
			return text, ""
		default:
			if !d.tick(1) {
				return "", "interrupted"
			}
			b = append(b, d.text[start:d.at]...)
			if b, fault = d.escape(b); fault != "" {
				return "", fault
			}
			start = d.at
		}
	}
}

// escape appends the character of the escape sequence that is next.
func (d *jsonDecoder) escape(b []byte) (_ []byte, fault string) {
	sequence := d.text[d.at:]
	c := byte(0)
	if len(sequence) > 1 {
		c = sequence[1]
	}
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		r, n := codeUnit(sequence), 6
		if utf16.IsSurrogate(r) {
			r, n = utf16.DecodeRune(r, codeUnit(sequence[6:])), 12
		}
		if r < 0 || n == 12 && r == utf8.RuneError {
			return nil, "invalid unicode escape code"
		}
		d.at += n
		return utf8.AppendRune(b, r), ""
	default:
		return nil, "invalid escape code"
	}
	d.at += 2
	return append(b, c), ""
}

// codeUnit returns the UTF-16 code unit of the sequence \u0000 with which s begins, or -1.
func codeUnit(s string) rune {
	if len(s) < 6 || s[:2] != `\u` {
		return -1
	}
	var r rune
	for i := 2; i < 6; i++ {
		c := rune(s[i])
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|32 && c|32 <= 'f':
			c = c | 32 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | c
	}
	return r
}
