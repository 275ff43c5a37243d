package client

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// Kind is the type of a reply: its first byte on the wire. Nulls of RESP2 are Null, errors in
// either encoding Error.
type Kind byte

// The kinds of replies.
const (
	Status   Kind = '+'
	Error    Kind = '-'
	Integer  Kind = ':'
	String   Kind = '$'
	Array    Kind = '*'
	Null     Kind = '_'
	Double   Kind = ','
	Boolean  Kind = '#'
	Number   Kind = '(' // of any size
	Verbatim Kind = '='
	Map      Kind = '%'
	Set      Kind = '~'
	Push     Kind = '>'
)

// Reply is a reply as it was sent. Unlike the values of protocol.Decode it keeps what a
// prompt shows: the text of a double, and which strings are verbatim.
type Reply struct {
	Kind     Kind
	Text     string  // of scalars; of a boolean t or f
	Elements []Reply // of a map keys and values in turn
}

// IsError reports whether r is an error reply.
func (r *Reply) IsError() bool { return r.Kind == Error }

// IsAggregate reports whether r has elements, or could have.
func (r *Reply) IsAggregate() bool {
	return r.Kind == Array || r.Kind == Map || r.Kind == Set || r.Kind == Push
}

// Get returns the value of a key in a map, or in an array of keys and values in turn.
func (r *Reply) Get(key string) (Reply, bool) {
	for i := 0; i+1 < len(r.Elements); i += 2 {
		if r.Elements[i].Text == key {
			return r.Elements[i+1], true
		}
	}
	return Reply{}, false
}

const (
	maxDepth    = 1000     // nesting of replies
	maxPrealloc = 64 << 10 // bytes that are allocated before they arrive
)

// ReadReply reads a reply. Attributes are skipped.
func ReadReply(r *bufio.Reader) (Reply, error) {
	if _, err := r.Peek(1); err != nil {
		return Reply{}, err
	}
	reply, err := readReply(r, 0)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return reply, err
}

func readReply(r *bufio.Reader, depth int) (Reply, error) {
	if depth > maxDepth {
		return Reply{}, errors.New("replies are nested too deeply")
	}
	line, err := r.ReadString('\n')
	if err != nil {
		return Reply{}, err
	}
	text, ok := strings.CutSuffix(line, "\r\n")
	if !ok || text == "" {
		return Reply{}, fmt.Errorf("malformed reply %.40q", line)
	}
	kind, text := Kind(text[0]), text[1:]
	switch kind {
	case Status, Error, Integer, Double, Boolean, Number:
		return Reply{Kind: kind, Text: text}, nil
	case Null:
		return Reply{Kind: Null}, nil
	case String, Verbatim, '!', Array, Map, Set, Push, '|':
	default:
		return Reply{}, fmt.Errorf("malformed reply %.40q", line)
	}
	if text == "-1" {
		return Reply{Kind: Null}, nil
	}
	n, ok := protocol.ParseInt([]byte(text))
	if !ok || n < 0 || n > 1<<40 {
		return Reply{}, fmt.Errorf("malformed length in a reply: %.40q", line)
	}
	switch kind {
	case String, Verbatim, '!':
		b := make([]byte, 0, min(n+2, maxPrealloc))
		for int64(len(b)) < n+2 {
			part := min(n+2-int64(len(b)), max(maxPrealloc, int64(len(b))))
			at := len(b)
			b = append(b, make([]byte, part)...)
			if _, err := io.ReadFull(r, b[at:]); err != nil {
				return Reply{}, err
			}
		}
		text := string(b[:n])
		switch {
		case kind == '!':
			kind = Error
		case kind == Verbatim && n >= 4:
			text = text[4:] // its format, such as txt:
		}
		return Reply{Kind: kind, Text: text}, nil
	}
	if kind == Map || kind == '|' {
		n *= 2
	}
	reply := Reply{Kind: kind}
	for range n {
		e, err := readReply(r, depth+1)
		if err != nil {
			return Reply{}, err
		}
		reply.Elements = append(reply.Elements, e)
	}
	if kind == '|' {
		return readReply(r, depth)
	}
	return reply, nil
}
