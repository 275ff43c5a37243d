package archive

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zsetd/zsetd/protocol"
)

// text is bytes in JSON: a string if they are UTF-8, else {"base64":"..."}.
type text string

// MarshalJSON writes the text.
func (t text) MarshalJSON() ([]byte, error) { return appendJSONText(nil, string(t)), nil }

func appendJSONText(b []byte, t string) []byte {
	if !utf8.ValidString(t) {
		b = append(b, `{"base64":"`...)
		b = base64.StdEncoding.AppendEncode(b, []byte(t))
		return append(b, `"}`...)
	}
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := range len(t) {
		c := t[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, t[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, t[from:]...), '"')
}

// appendJSONScore writes the shortest number that reads back as the same, and
// infinity as a string.
func appendJSONScore(b []byte, score float64) []byte {
	if math.IsInf(score, 0) {
		return append(protocol.AppendFloat(append(b, '"'), score), '"')
	}
	if abs := math.Abs(score); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.AppendFloat(b, score, 'e', -1, 64)
	}
	return strconv.AppendFloat(b, score, 'f', -1, 64)
}

// jsonReader reads a line of JSON with known contents. It latches the first error,
// after which it reads nothing.
type jsonReader struct {
	b   []byte // UTF-8
	at  int
	err error
}

func (j *jsonReader) failf(format string, args ...any) {
	if j.err == nil {
		j.err = fmt.Errorf(format, args...)
	}
	j.at = len(j.b)
}

// unexpected records that the current position has another token than the wanted one.
func (j *jsonReader) unexpected(want string) {
	found := j.b[min(j.at, len(j.b)):]
	if len(found) == 0 {
		j.failf("unexpected end of the line, want %s", want)
		return
	}
	j.failf("unexpected %.20q at column %d, want %s", found, j.at+1, want)
}

// space skips white space and returns the byte behind it, 0 at the end.
func (j *jsonReader) space() byte {
	for ; j.at < len(j.b); j.at++ {
		switch c := j.b[j.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func (j *jsonReader) expect(c byte) {
	if j.space() != c || j.err != nil {
		j.unexpected(string(c))
		return
	}
	j.at++
}

// list reads an array, or an object, and calls element at each element.
func (j *jsonReader) list(begin, end byte, element func()) {
	if j.space() != begin {
		j.unexpected(map[byte]string{'[': "an array", '{': "an object"}[begin])
		return
	}
	j.at++
	if j.space() == end {
		j.at++
		return
	}
	for j.err == nil {
		element()
		if j.space() == ',' {
			j.at++
			continue
		}
		j.expect(end)
		return
	}
}

// literal reads a string. The bytes may be part of the line.
func (j *jsonReader) literal() []byte {
	if j.space() != '"' {
		j.unexpected("a string")
		return nil
	}
	begin, plain := j.at, true
	for i := begin + 1; i < len(j.b); i++ {
		switch c := j.b[i]; {
		case c == '"':
			j.at = i + 1
			if plain {
				return j.b[begin+1 : i : i]
			}
			return j.unescape(j.b[begin:j.at])
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			j.at = i
			j.unexpected("an escape")
			return nil
		}
	}
	j.failf("unexpected end of the line within a string")
	return nil
}

// unescape reads a string with escapes. Package json replaces half of a surrogate
// pair by U+FFFD, which would change the text.
func (j *jsonReader) unescape(raw []byte) []byte {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		j.failf("string %.40s: %w", raw, err)
		return nil
	}
	if n := strings.Count(s, "\uFFFD"); n > 0 && n > bytes.Count(raw, []byte("\uFFFD"))+bytes.Count(bytes.ToLower(raw), []byte(`\ufffd`)) {
		j.failf(`string %.40s has an unpaired surrogate: write it as {"base64":"..."}`, raw)
	}
	return []byte(s)
}

// text reads a string, or bytes in base64.
func (j *jsonReader) text() []byte {
	if j.space() != '{' {
		return j.literal()
	}
	var b []byte
	n := 0
	j.list('{', '}', func() {
		if name := j.literal(); string(name) != "base64" {
			j.failf(`unexpected object, want {"base64":"..."}`)
			return
		}
		n++
		j.expect(':')
		raw := j.literal()
		var err error
		if b, err = base64.StdEncoding.AppendDecode(nil, raw); err != nil {
			j.failf("base64 %.40q: %w", raw, err)
		}
	})
	if n != 1 {
		j.failf(`unexpected object, want {"base64":"..."}`)
	}
	return b
}

// number reads the text of a number.
func (j *jsonReader) number() string {
	j.space()
	begin := j.at
	for j.at < len(j.b) && strings.IndexByte("+-0123456789.eE", j.b[j.at]) >= 0 {
		j.at++
	}
	if n := j.b[begin:j.at]; json.Valid(n) {
		return string(n)
	}
	j.at = begin
	j.unexpected("a number")
	return "0"
}

func (j *jsonReader) integer() int64 {
	text := j.number()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		j.failf("unexpected %s, want an integer", text)
	}
	return n
}

func (j *jsonReader) score() float64 {
	if j.space() == '"' {
		switch s := string(j.literal()); s {
		case "inf", "+inf":
			return math.Inf(1)
		case "-inf":
			return math.Inf(-1)
		default:
			j.failf("unexpected %.40q, want a score", s)
			return 0
		}
	}
	if j.space() == 'n' {
		j.unexpected("a score")
		return 0
	}
	text := j.number()
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		j.failf("score %s is out of range", text)
	}
	return f
}

// skip passes over a value; it is read later, when its type is known.
func (j *jsonReader) skip() {
	depth := 0
	for {
		switch c := j.space(); c {
		case '"':
			j.literal()
		case '[', '{':
			depth++
			j.at++
		case ']', '}':
			depth--
			j.at++
		case ',', ':':
			j.at++
		case 0:
			j.unexpected("a value")
		default:
			for j.at < len(j.b) && strings.IndexByte(" \t\r\n,:]}[{\"", j.b[j.at]) < 0 {
				j.at++
			}
		}
		if j.err != nil || depth == 0 {
			return
		}
		if depth < 0 {
			j.unexpected("a value")
			return
		}
	}
}
