package console

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zsetd/zsetd/protocol"
)

// transcoder converts replies of RESP3 to JSON while they arrive, so that a large reply takes
// the memory of its largest string. After an error of its reader or writer it is not usable.
type transcoder struct {
	r     *bufio.Reader
	w     *bufio.Writer
	types bool // write {"type": …, "value": …}
}

const (
	maxDepth    = 1000    // nesting of a reply
	maxReplyKey = 1 << 20 // bytes of a line: a simple string, an error, a number
)

// isError skips push messages and reports whether the reply that follows is an error.
func (t *transcoder) isError() (bool, error) {
	for {
		b, err := t.r.Peek(1)
		if err != nil {
			return false, err
		}
		if b[0] != '>' {
			return b[0] == '-' || b[0] == '!', nil
		}
		if _, err := protocol.DecodeFrom(t.r); err != nil {
			return false, err
		}
	}
}

// response writes {"result": …} or {"error": …}.
func (t *transcoder) response() error {
	failed, err := t.isError()
	if err != nil {
		return err
	}
	if failed {
		reply, err := protocol.DecodeFrom(t.r)
		if err != nil {
			return err
		}
		t.w.WriteString(`{"error":`)
		t.text(fmt.Sprint(reply))
	} else {
		t.w.WriteString(`{"result":`)
		if err := t.value(0); err != nil {
			return err
		}
	}
	return t.w.WriteByte('}')
}

// value converts one value.
func (t *transcoder) value(depth int) error {
	if depth > maxDepth {
		return errors.New("the reply is nested too deeply")
	}
	kind, err := t.r.ReadByte()
	if err != nil {
		return err
	}
	line, err := t.line()
	if err != nil {
		return err
	}
	switch kind {
	case '+':
		t.string("simple", line)
	case '-':
		t.string("error", line)
	case ':':
		t.raw("integer", line)
	case ',':
		t.double(line)
	case '(':
		t.raw("bignumber", `"`+line+`"`)
	case '#':
		t.raw("boolean", strconv.FormatBool(line == "t"))
	case '_':
		t.raw("null", "null")
	case '$', '=', '!', '*', '~', '>', '%':
		n, err := strconv.Atoi(line)
		if err != nil {
			return fmt.Errorf("malformed reply: %c%s", kind, quoted(line))
		}
		if n < 0 {
			t.raw("null", "null")
			return t.flushed()
		}
		if kind == '$' || kind == '=' || kind == '!' {
			return t.bulk(kind, n)
		}
		return t.aggregate(kind, n, depth)
	case '|': // attributes are not shown
		n, err := strconv.Atoi(line)
		if err != nil {
			return fmt.Errorf("malformed reply: |%s", quoted(line))
		}
		for range 2 * n {
			if _, err := protocol.DecodeFrom(t.r); err != nil {
				return err
			}
		}
		return t.value(depth + 1)
	default:
		return fmt.Errorf("malformed reply: %c%s", kind, quoted(line))
	}
	return t.flushed()
}

// flushed returns the error of the writer, if any.
func (t *transcoder) flushed() error {
	_, err := t.w.Write(nil)
	return err
}

// line reads the rest of a line.
func (t *transcoder) line() (string, error) {
	var b strings.Builder
	for {
		part, err := t.r.ReadSlice('\n')
		b.Write(part)
		if err == nil {
			return strings.TrimSuffix(b.String(), "\r\n"), nil
		}
		if err != bufio.ErrBufferFull || b.Len() > maxReplyKey {
			return "", err
		}
	}
}

// bulk converts a string of n bytes.
func (t *transcoder) bulk(kind byte, n int) error {
	var b strings.Builder
	if _, err := io.CopyN(&b, t.r, int64(n)); err != nil {
		return err
	}
	if _, err := t.r.Discard(len("\r\n")); err != nil {
		return err
	}
	s := b.String()
	switch {
	case kind == '=' && n >= 4:
		t.string("verbatim", s[4:])
	case kind == '!':
		t.string("error", s)
	default:
		t.string("bulk", s)
	}
	return t.flushed()
}

// aggregate converts n elements, or pairs of a map.
func (t *transcoder) aggregate(kind byte, n, depth int) error {
	name := map[byte]string{'*': "array", '~': "set", '>': "push", '%': "map"}[kind]
	if t.types {
		t.w.WriteString(`{"type":"` + name + `","value":`)
	}
	t.w.WriteByte('[')
	for i := range n {
		if i > 0 {
			t.w.WriteByte(',')
		}
		if kind == '%' {
			t.w.WriteByte('[')
			if err := t.value(depth + 1); err != nil {
				return err
			}
			t.w.WriteByte(',')
		}
		if err := t.value(depth + 1); err != nil {
			return err
		}
		if kind == '%' {
			t.w.WriteByte(']')
		}
	}
	t.w.WriteByte(']')
	if t.types {
		t.w.WriteByte('}')
	}
	return t.flushed()
}

// double converts a number. JSON has no infinities and no NaN: these are strings.
func (t *transcoder) double(line string) {
	f, err := strconv.ParseFloat(line, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		t.raw("double", strconv.Quote(line))
		return
	}
	b, err := json.Marshal(f)
	if err != nil {
		panic("BUG: a finite number has no JSON: " + err.Error())
	}
	t.raw("double", string(b))
}

// raw writes a value that is JSON.
func (t *transcoder) raw(kind, value string) {
	if t.types {
		t.w.WriteString(`{"type":"` + kind + `","value":` + value + `}`)
		return
	}
	t.w.WriteString(value)
}

// string writes a string.
func (t *transcoder) string(kind, s string) {
	valid := utf8.ValidString(s)
	switch {
	case !t.types && kind == "error": // in an array, as in the reply of EXEC
		t.w.WriteString(`{"error":`)
		t.text(s)
		t.w.WriteByte('}')
	case !t.types:
		t.text(s)
	case valid:
		t.w.WriteString(`{"type":"` + kind + `","value":`)
		t.text(s)
		t.w.WriteByte('}')
	default:
		t.w.WriteString(`{"type":"` + kind + `","base64":true,"value":"`)
		t.base64(s)
		t.w.WriteString(`"}`)
	}
}

// text writes a string, or {"base64": …} if it is no UTF-8.
func (t *transcoder) text(s string) { t.w.Write(jsonString(s)) }

func (t *transcoder) base64(s string) {
	e := base64.NewEncoder(base64.StdEncoding, t.w)
	io.WriteString(e, s)
	e.Close()
}
