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

// Go types of decoded replies. A reply is one of
//
//	nil         a null of RESP2 (bulk or array) or RESP3
//	string      a bulk string or a verbatim string (without its "txt:")
//	Status      a simple string, such as OK
//	int64       an integer
//	float64     a double, including infinities and NaN
//	bool        a boolean
//	BigNumber   a big number, as decimal text
//	[]any       an array
//	Map         a map, in the order of transmission
//	Set         a set, in the order of transmission
//	Push        an out-of-band message
//	ReplyError  an error, in either encoding
//
// where []any, Map, Set and Push contain such values. Attributes are skipped. The
// streamed types of RESP3, which Redis does not send, are rejected.
type (
	// Status is a simple string.
	Status string
	// BigNumber is an integer of any size, as decimal text.
	BigNumber string
	// Map is a RESP3 map.
	Map []Pair
	// Set is a RESP3 set.
	Set []any
	// Push is a RESP3 push message: its kind, such as "message", and its payload.
	Push []any
	// ReplyError is an error reply: its whole text with the code, such as
	// "WRONGTYPE Operation against a key holding the wrong kind of value".
	ReplyError string
)

// Pair is an entry of a Map.
type Pair struct{ Key, Value any }

// Error returns the text of the reply.
func (e ReplyError) Error() string { return string(e) }

const (
	maxDepth          = 1000     // maximum nesting of replies
	maxLine           = 1 << 20  // maximum bytes of a line that arrives in pieces: a simple string, an error, a number
	maxStringPrealloc = 16 << 10 // maximum bytes allocated for a string before they arrive
	maxArrayPrealloc  = 16       // maximum elements allocated for an array before they arrive
)

// Decode decodes the reply at the start of b, in RESP2 or RESP3, and returns it
// with its length in bytes. If b ends within the reply, err is io.ErrUnexpectedEOF;
// other errors describe a malformed reply. On an error v is nil and n is 0. The
// value shares no memory with b, and its size is at most proportional to len(b),
// regardless of the lengths that b announces. An error reply is a value, not an
// err. Decode is safe for concurrent use.
func Decode(b []byte) (v any, n int, err error) {
	d := decoder{b: b}
	v, err = d.decode(0)
	if err != nil {
		return nil, 0, err
	}
	return v, len(b) - len(d.b), nil
}

// DecodeFrom decodes one reply from r, and reads no byte beyond it. The error is
// io.EOF if r ends before the first byte, io.ErrUnexpectedEOF if r ends within the
// reply, else the error of r or a description of the malformed reply. Memory grows
// with the bytes that arrive, not with announced lengths. r needs exclusive access.
func DecodeFrom(r *bufio.Reader) (any, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	d := decoder{r: r}
	v, err := d.decode(0)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// decoder reads from r, or from b if r is nil.
type decoder struct {
	b []byte
	r *bufio.Reader
}

// decode decodes one reply at a nesting depth.
func (d *decoder) decode(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errors.New("protocol: replies nested too deeply")
	}
	for {
		line, err := d.readLine()
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
			v, err := d.decodeBody(kind, int(n), depth)
			if kind == '|' && err == nil {
				continue // the value of the attribute follows
			}
			return v, err
		}
		return nil, malformed(line)
	}
}

func malformed(line []byte) error { return fmt.Errorf("protocol: malformed reply %.40q", line) }

// decodeBody decodes the content of a string of n bytes, or of an aggregate of n
// elements.
func (d *decoder) decodeBody(kind byte, n, depth int) (any, error) {
	switch kind {
	case '$', '!', '=':
		s, err := d.readString(n)
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
		m := make(Map, 0, min(n, maxArrayPrealloc))
		for range n {
			var p Pair
			var err error
			if p.Key, err = d.decode(depth + 1); err != nil {
				return nil, err
			}
			if p.Value, err = d.decode(depth + 1); err != nil {
				return nil, err
			}
			m = append(m, p)
		}
		return m, nil
	}
	list := make([]any, 0, min(n, maxArrayPrealloc))
	for range n {
		v, err := d.decode(depth + 1)
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

// readLine reads a line and returns it without CR LF. It is valid until the next read.
func (d *decoder) readLine() ([]byte, error) {
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

// readString reads n bytes and CR LF.
func (d *decoder) readString(n int) (string, error) {
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
	s.Grow(min(n, maxStringPrealloc))
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
