package transcript

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// AppendCommand appends a command, encoded as clients send it.
func AppendCommand(b []byte, words []string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(words))
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n", len(w))
		b = append(append(b, w...), "\r\n"...)
	}
	return b
}

// ReadReply appends the next reply, as it is encoded, to b.
func ReadReply(r *bufio.Reader, b []byte) ([]byte, error) {
	head, err := r.ReadBytes('\n')
	if err != nil {
		return b, err
	}
	b = append(b, head...)
	if len(head) < 3 || head[len(head)-2] != '\r' {
		return b, fmt.Errorf("%q is no line of a reply", head)
	}
	kind := head[0]
	if isLine(kind) {
		return b, nil
	}
	n, err := strconv.Atoi(string(head[1 : len(head)-2]))
	if err != nil || !isString(kind) && !isAggregate(kind) {
		return b, fmt.Errorf("%q is no line of a reply", head)
	}
	if isString(kind) {
		if n < 0 {
			return b, nil
		}
		at := len(b)
		b = append(b, make([]byte, n+2)...)
		if _, err := io.ReadFull(r, b[at:]); err != nil {
			return b[:at], err
		}
		if !bytes.HasSuffix(b, []byte("\r\n")) {
			return b, fmt.Errorf("%q is not followed by so many bytes and CR LF", head)
		}
		return b, nil
	}
	for range elements(kind, n) {
		if b, err = ReadReply(r, b); err != nil {
			return b, err
		}
	}
	return b, nil
}
