package psync

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Payload returns a reader of the data, which the primary sends if Full is set. It waits
// for their beginning. length is their number of bytes, or -1 if the primary does not
// know it. The reader ends with io.EOF after the last byte; the stream must not be read
// before that. An end of the connection within the data is io.ErrUnexpectedEOF.
func (l *Link) Payload() (r io.Reader, length int64, err error) {
	line, err := l.readLine()
	if err != nil {
		return nil, 0, fmt.Errorf("waiting for the data: %w", err)
	}
	text, ok := strings.CutPrefix(line, "$")
	switch mark, endless := strings.CutPrefix(text, "EOF:"); {
	case !ok && line[0] == '-':
		return nil, 0, refused("transfer of the data", line)
	case !ok:
		return nil, 0, fmt.Errorf("the primary announces the data with %s", quote(line))
	case endless && len(mark) == idSize:
		return &marked{l: l, mark: []byte(mark)}, -1, nil
	case endless:
		return nil, 0, fmt.Errorf("the primary announces the data with %s, a mark of %d bytes in place of %d", quote(line), len(mark), idSize)
	}
	length, err = strconv.ParseInt(text, 10, 64)
	if err != nil || length < 0 {
		return nil, 0, fmt.Errorf("the primary announces the data with %s", quote(line))
	}
	return &measured{l, length}, length, nil
}

// measured reads data of a known length.
type measured struct {
	l    *Link
	left int64
}

// Read implements io.Reader.
func (r *measured) Read(b []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.l.in.Read(b[:min(int64(len(b)), r.left)])
	r.left -= int64(n)
	return n, noEOF(err)
}

// marked reads data up to a mark.
type marked struct {
	l     *Link
	mark  []byte
	ended bool
}

// Read implements io.Reader. Bytes that may be the beginning of the mark stay in the
// input buffer until what follows them is known.
func (r *marked) Read(b []byte) (int, error) {
	if r.ended {
		return 0, io.EOF
	}
	in := r.l.in
	if _, err := in.Peek(len(r.mark)); err != nil {
		return 0, noEOF(err)
	}
	here, err := in.Peek(in.Buffered())
	if err != nil {
		return 0, err
	}
	n := len(here) - len(r.mark) + 1
	if at := bytes.Index(here, r.mark); at == 0 {
		r.ended = true
		if _, err := in.Discard(len(r.mark)); err != nil {
			return 0, err
		}
		return 0, io.EOF
	} else if at > 0 {
		n = at
	}
	return in.Read(b[:min(n, len(b))])
}
