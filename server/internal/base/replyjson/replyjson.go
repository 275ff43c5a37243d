package replyjson

import (
	"bufio"
	"bytes"
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

// Transcoder converts replies of RESP3 to JSON while they arrive, so that a large reply takes
// the memory of its largest string. After an error of its reader or writer it is not usable.
type Transcoder struct {
	R     *bufio.Reader
	W     *bufio.Writer // the caller flushes it
	Types bool          // write {"type": …, "value": …}
}

const (
	maxDepth    = 1000    // nesting of a reply
	maxReplyKey = 1 << 20 // bytes of a line: a simple string, an error, a number
)

// IsError skips push messages and reports whether the reply that follows is an error.
func (t *Transcoder) IsError() (bool, error) {
	for {
		b, err := t.R.Peek(1)
		if err != nil {
			return false, err
		}
		if b[0] != '>' {
			return b[0] == '-' || b[0] == '!', nil
		}
		if _, err := protocol.DecodeFrom(t.R); err != nil {
			return false, err
		}
	}
}

// Response writes {"result": …} or {"error": …}.
func (t *Transcoder) Response() error {
	failed, err := t.IsError()
	if err != nil {
		return err
	}
	if failed {
		reply, err := protocol.DecodeFrom(t.R)
		if err != nil {
			return err
		}
		t.W.WriteString(`{"error":`)
		t.text(fmt.Sprint(reply))
	} else {
		t.W.WriteString(`{"result":`)
		if err := t.Value(0); err != nil {
			return err
		}
	}
	return t.W.WriteByte('}')
}

// Value converts one value at a depth of nesting, 0 for a whole reply.
func (t *Transcoder) Value(depth int) error {
	if depth > maxDepth {
		return errors.New("the reply is nested too deeply")
	}
	kind, err := t.R.ReadByte()
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
			return fmt.Errorf("malformed reply: %c%.100q", kind, line)
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
			return fmt.Errorf("malformed reply: |%.100q", line)
		}
		for range 2 * n {
			if _, err := protocol.DecodeFrom(t.R); err != nil {
				return err
			}
		}
		return t.Value(depth + 1)
	default:
		return fmt.Errorf("malformed reply: %c%.100q", kind, line)
	}
	return t.flushed()
}

// flushed returns the error of the writer, if any.
func (t *Transcoder) flushed() error {
	_, err := t.W.Write(nil)
	return err
}

// line reads the rest of a line.
func (t *Transcoder) line() (string, error) {
	part, err := t.R.ReadSlice('\n')
	if err == nil {
		return string(bytes.TrimSuffix(part, []byte("\r\n"))), nil
	}
	if err != bufio.ErrBufferFull {
		return "", err
	}
	var b strings.Builder
	b.Write(part)
	for {
		part, err := t.R.ReadSlice('\n')
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
func (t *Transcoder) bulk(kind byte, n int) error {
	var b strings.Builder
	if _, err := io.CopyN(&b, t.R, int64(n)); err != nil {
		return err
	}
	if _, err := t.R.Discard(len("\r\n")); err != nil {
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
func (t *Transcoder) aggregate(kind byte, n, depth int) error {
	name := map[byte]string{'*': "array", '~': "set", '>': "push", '%': "map"}[kind]
	if t.Types {
		t.W.WriteString(`{"type":"` + name + `","value":`)
	}
	t.W.WriteByte('[')
	for i := range n {
		if i > 0 {
			t.W.WriteByte(',')
		}
		if kind == '%' {
			t.W.WriteByte('[')
			if err := t.Value(depth + 1); err != nil {
				return err
			}
			t.W.WriteByte(',')
		}
		if err := t.Value(depth + 1); err != nil {
			return err
		}
		if kind == '%' {
			t.W.WriteByte(']')
		}
	}
	t.W.WriteByte(']')
	if t.Types {
		t.W.WriteByte('}')
	}
	return t.flushed()
}

// double converts a number. JSON has no infinities and no NaN: these are strings.
func (t *Transcoder) double(line string) {
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
func (t *Transcoder) raw(kind, value string) {
	if t.Types {
		t.W.WriteString(`{"type":"` + kind + `","value":` + value + `}`)
		return
	}
	t.W.WriteString(value)
}

// string writes a string.
func (t *Transcoder) string(kind, s string) {
	valid := utf8.ValidString(s)
	switch {
	case !t.Types && kind == "error": // in an array, as in the reply of EXEC
		t.W.WriteString(`{"error":`)
		t.text(s)
		t.W.WriteByte('}')
	case !t.Types:
		t.text(s)
	case valid:
		t.W.WriteString(`{"type":"` + kind + `","value":`)
		t.text(s)
		t.W.WriteByte('}')
	default:
		t.W.WriteString(`{"type":"` + kind + `","base64":true,"value":"`)
		t.base64(s)
		t.W.WriteString(`"}`)
	}
}

// text writes a string, or {"base64": …} if it is no UTF-8.
func (t *Transcoder) text(s string) { t.W.Write(String(s)) }

func (t *Transcoder) base64(s string) {
	e := base64.NewEncoder(base64.StdEncoding, t.W)
	io.WriteString(e, s)
	e.Close()
}

// String returns a string as JSON, or {"base64": …} if it is no UTF-8.
func String(s string) []byte {
	if utf8.ValidString(s) {
		return Text(s)
	}
	return append(base64.StdEncoding.AppendEncode([]byte(`{"base64":"`), []byte(s)), `"}`...)
}

// Text returns a string of UTF-8 as JSON, with <, > and & escaped.
func Text(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("BUG: a string has no JSON: " + err.Error())
	}
	return b
}
