package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Go values of replies. A decoded reply is one of
//
//	nil         a null of RESP2 (bulk or array) or RESP3
//	string      a bulk string or a verbatim string (without its "txt:")
//	Status      a simple string, like OK
//	int64       an integer
//	float64     a double; infinite or not a number, too
//	bool        a boolean
//	BigNumber   a big number, as decimal text
//	[]any       an array
//	Map         a map, in the order in which it was sent
//	Set         a set, in the order in which it was sent
//	Push        a message that answers no command
//	ReplyError  an error, in any of the two forms
//
// where []any, Map, Set and Push hold such values again. Attributes are read and skipped. The
// streamed types of RESP3, which Redis does not send, are refused.
type (
	// Status is a simple string.
	Status string
	// BigNumber is an integer of any size, as decimal text.
	BigNumber string
	// Map is a RESP3 map.
	Map []Pair
	// Set is a RESP3 set.
	Set []any
	// Push is a RESP3 push message: its kind, like "message", and what that kind brings.
	Push []any
	// ReplyError is an error reply: its whole text, code included, like "WRONGTYPE Operation
	// against a key holding the wrong kind of value".
	ReplyError string
)

// Pair is an entry of a Map.
type Pair struct{ Key, Value any }

// Error returns the text of the reply.
func (e ReplyError) Error() string { return string(e) }

const (
	maxDepth  = 1000     // of replies within replies
	maxLine   = 1 << 20  // bytes of a line that comes in pieces: a simple string, an error, a number
	piece     = 16 << 10 // bytes of a string that are allocated before they have arrived
	announced = 16       // elements of an array for which room is made before they have arrived
)

// Decode decodes the reply at the start of b, in RESP2 or RESP3, and returns it with its length in
// bytes. If b ends before the reply does, err is io.ErrUnexpectedEOF; any other error says what is
// wrong with the reply. Then v is nil and n is 0. The value shares no memory with b, and its size
// is bounded by a multiple of len(b), whatever lengths b announces. An error reply is a value, not
// an err. Decode may be called by any number of goroutines.
func Decode(b []byte) (v any, n int, err error) {
	d := decoder{b: b}
	v, err = d.reply(0)
	if err != nil {
		return nil, 0, err
	}
	return v, len(b) - len(d.b), nil
}

// DecodeFrom reads one reply, and not a byte more, from r and decodes it as Decode does. The error
// is io.EOF if r ends before the first byte of a reply, io.ErrUnexpectedEOF if it ends within one,
// otherwise that of r or what is wrong with the reply. Memory is allocated as bytes arrive, not as
// lengths announce them. One goroutine at a time may use r.
func DecodeFrom(r *bufio.Reader) (any, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	d := decoder{r: r}
	v, err := d.reply(0)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// decoder takes bytes from r, or from b if r is nil.
type decoder struct {
	b []byte
	r *bufio.Reader
}

// reply decodes one reply that stands within depth others.
func (d *decoder) reply(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errors.New("protocol: replies nested too deeply")
	}
	for {
		line, err := d.line()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			return nil, malformed(line)
		}
		switch kind, text := line[0], line[1:]; kind {
		case '+':
			return Status(text), nil
		case '-':
			return ReplyError(text), nil
		case ':':
			if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
				return n, nil
			}
		case ',':
			if f, err := strconv.ParseFloat(string(text), 64); err == nil {
				return f, nil
			}
		case '(':
			digits := bytes.TrimPrefix(bytes.TrimPrefix(text, []byte("-")), []byte("+"))
			if len(digits) > 0 && len(text)-len(digits) <= 1 && len(bytes.Trim(digits, "0123456789")) == 0 {
				return BigNumber(text), nil
			}
		case '#':
			if len(text) == 1 && (text[0] == 't' || text[0] == 'f') {
				return text[0] == 't', nil
			}
		case '_':
			if len(text) == 0 {
				return nil, nil
			}
		case '$', '*':
			if string(text) == "-1" {
				return nil, nil
			}
			fallthrough
		case '!', '=', '~', '>', '%', '|':
			n, ok := ParseInt(text)
			if !ok || n < 0 || n > math.MaxInt/4 {
				break
			}
			v, err := d.body(kind, int(n), depth)
			if kind == '|' && err == nil {
				continue // what the attribute belongs to comes next
			}
			return v, err
		}
		return nil, malformed(line)
	}
}

func malformed(line []byte) error { return fmt.Errorf("protocol: malformed reply %.40q", line) }

// body decodes what follows the header of a string of n bytes or of n elements.
func (d *decoder) body(kind byte, n, depth int) (any, error) {
	switch kind {
	case '$', '!', '=':
		s, err := d.text(n)
		switch {
		case err != nil:
			return nil, err
		case kind == '!':
			return ReplyError(s), nil
		case kind == '=' && (n < 4 || s[3] != ':'):
			return nil, malformed([]byte("=" + s))
		case kind == '=':
			return s[4:], nil
		}
		return s, nil
	case '%', '|':
		m := make(Map, 0, min(n, announced))
		for range n {
			var p Pair
			var err error
			if p.Key, err = d.reply(depth + 1); err != nil {
				return nil, err
			}
			if p.Value, err = d.reply(depth + 1); err != nil {
				return nil, err
			}
			m = append(m, p)
		}
		return m, nil
	}
	list := make([]any, 0, min(n, announced))
	for range n {
		v, err := d.reply(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	switch kind {
	case '~':
		return Set(list), nil
	case '>':
		return Push(list), nil
	}
	return list, nil
}

// line takes a line, and returns it without its CR LF. It is valid until more is taken.
func (d *decoder) line() ([]byte, error) {
	var line []byte
	if d.r == nil {
		n := bytes.IndexByte(d.b, '\n') + 1
		if n == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		line, d.b = d.b[:n], d.b[n:]
	} else {
		part, err := d.r.ReadSlice('\n')
		line = part
		if err == bufio.ErrBufferFull {
			line = nil
		}
		for err == bufio.ErrBufferFull && len(line)+len(part) <= maxLine {
			line = append(line, part...)
			if part, err = d.r.ReadSlice('\n'); err == nil {
				line = append(line, part...)
			}
		}
		if err == bufio.ErrBufferFull {
			return nil, errors.New("protocol: line of a reply too long")
		}
		if err != nil {
			return nil, unexpected(err)
		}
	}
	if !bytes.HasSuffix(line, []byte("\r\n")) {
		return nil, malformed(line)
	}
	return line[:len(line)-2], nil
}

// text takes n bytes and the CR LF behind them.
func (d *decoder) text(n int) (string, error) {
	if d.r == nil {
		if len(d.b) < n+2 {
			return "", io.ErrUnexpectedEOF
		}
		b := d.b[:n+2]
		if string(b[n:]) != "\r\n" {
			return "", malformed(b[n:])
		}
		d.b = d.b[n+2:]
		return string(b[:n]), nil
	}
	var s strings.Builder
	s.Grow(min(n, piece))
	for s.Len() < n {
		if _, err := d.r.Peek(1); err != nil {
			return "", unexpected(err)
		}
		part, _ := d.r.Peek(min(d.r.Buffered(), n-s.Len()))
		s.Write(part)
		d.r.Discard(len(part))
	}
	var end [2]byte
	if _, err := io.ReadFull(d.r, end[:]); err != nil {
		return "", unexpected(err)
	}
	if string(end[:]) != "\r\n" {
		return "", malformed(end[:])
	}
	return s.String(), nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
