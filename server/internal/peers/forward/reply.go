package forward

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// Replies are passed on as they are: only their extent is determined.

const (
	maxLine  = 1 << 20  // bytes of a line
	maxPiece = 64 << 10 // bytes that are allocated before they arrive
)

// errTooLarge is the error of a reply beyond the limit of the client's output.
var errTooLarge = errors.New("the reply exceeds client-output-buffer-limit")

// appendReply appends one reply in RESP2 or RESP3, in time linear in its size. Messages
// that are no replies are skipped. limit is its largest size in bytes; 0 is none.
func appendReply(dst []byte, r *bufio.Reader, limit int) ([]byte, error) {
	start := len(dst)
	for {
		first, err := r.Peek(1)
		if err != nil {
			return dst[:start], err
		}
		push := first[0] == '>'
		if dst, err = appendValues(dst, r, limit); err != nil {
			return dst[:start], err
		}
		if !push {
			return dst, nil
		}
		dst = dst[:start]
	}
}

// appendValues appends one value with the values inside it.
func appendValues(dst []byte, r *bufio.Reader, limit int) (_ []byte, err error) {
	start := len(dst)
	for left := int64(1); left > 0; left-- {
		line := len(dst)
		if dst, err = appendLine(dst, r); err != nil {
			return dst, err
		}
		text := dst[line : len(dst)-2]
		if len(text) == 0 {
			return dst, errors.New("malformed reply: an empty line")
		}
		kind := text[0]
		n := int64(0)
		switch kind {
		case '$', '!', '=', '*', '~', '>', '%', '|':
			var ok bool
			if n, ok = protocol.ParseInt(text[1:]); !ok || n < -1 || n > 1<<40 {
				return dst, fmt.Errorf("malformed reply: %.40q", text)
			}
		case '+', '-', ':', '_', ',', '(', '#':
		default:
			return dst, fmt.Errorf("malformed reply: %.40q", text)
		}
		switch kind {
		case '$', '!', '=':
			if n >= 0 {
				if limit > 0 && n > int64(limit) {
					return dst, errTooLarge
				}
				if dst, err = appendBytes(dst, r, int(n)+2); err != nil {
					return dst, err
				}
			}
		case '*', '~', '>':
			left += max(n, 0)
		case '%':
			left += 2 * max(n, 0)
		case '|': // the value follows
			left += 2*max(n, 0) + 1
		}
		if limit > 0 && len(dst)-start > limit {
			return dst, errTooLarge
		}
	}
	return dst, nil
}

// appendLine appends a line with its end.
func appendLine(dst []byte, r *bufio.Reader) ([]byte, error) {
	start := len(dst)
	for {
		piece, err := r.ReadSlice('\n')
		dst = append(dst, piece...)
		switch {
		case err == bufio.ErrBufferFull && len(dst)-start < maxLine:
			continue
		case err != nil:
			return dst, err
		case len(dst)-start < 2 || dst[len(dst)-2] != '\r':
			return dst, errors.New("malformed reply: a line without its end")
		}
		return dst, nil
	}
}

// appendBytes appends n bytes. Memory grows with those that arrive.
func appendBytes(dst []byte, r *bufio.Reader, n int) ([]byte, error) {
	for n > 0 {
		m := min(n, max(maxPiece, len(dst)))
		at := len(dst)
		if cap(dst)-at < m {
			dst = append(make([]byte, 0, at+m), dst...)
		}
		dst = dst[:at+m]
		if _, err := io.ReadFull(r, dst[at:]); err != nil {
			return dst[:at], err
		}
		n -= m
	}
	return dst, nil
}

// errorText returns the text of an error reply; "" for any other.
func errorText(reply []byte) string {
	if len(reply) < 3 || reply[0] != '-' && reply[0] != '!' {
		return ""
	}
	if reply[0] == '!' {
		_, reply, _ = bytes.Cut(reply, []byte("\r\n"))
		return string(bytes.TrimSuffix(reply, []byte("\r\n")))
	}
	return string(reply[1 : len(reply)-2])
}

// errorReply returns an error reply.
func errorReply(text string) []byte {
	text = strings.NewReplacer("\r", " ", "\n", " ").Replace(text)
	return []byte("-" + text + "\r\n")
}

// nullArray is the reply of EXEC if a watched key has changed.
func nullArray(version int) []byte {
	if version == 3 {
		return []byte("_\r\n")
	}
	return []byte("*-1\r\n")
}

// redirection is a reply by which a node of a cluster names another one, or asks to try
// again.
type redirection struct {
	kind string // MOVED, ASK or TRYAGAIN
	slot int
	addr string // of MOVED and ASK
}

// redirectionOf reads a redirection of the node at addr.
func redirectionOf(text, addr string) (redirection, bool) {
	words := strings.Fields(text)
	switch {
	case len(words) > 0 && words[0] == "TRYAGAIN":
		return redirection{kind: words[0]}, true
	case len(words) != 3 || words[0] != "MOVED" && words[0] != "ASK":
		return redirection{}, false
	}
	slot, ok := protocol.ParseInt([]byte(words[1]))
	if !ok || slot < 0 || slot >= slotCount {
		return redirection{}, false
	}
	return redirection{words[0], int(slot), completeAddr(words[2], addr)}, true
}
