package psync

import (
	"bytes"
	"fmt"
	"io"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
)

// Batch is consecutive commands of the stream. It is valid until the next call of
// [Link.Next].
type Batch struct {
	Commands [][][]byte // an empty line of the stream is a command without arguments
	Sizes    []int      // bytes of each command in the stream
	Raw      []byte     // the bytes of all of them
}

const (
	defaultMaxCommand = 1 << 30
	maxArgs           = 1 << 20
	maxLine           = 64 << 10
	firstBuffer       = 64 << 10
	keptBuffer        = 1 << 20 // the largest buffer that is kept for the next commands
	maxBatch          = 1 << 10 // commands
)

// stream is the input of the stream:
//
//	buf   │ earlier │ batch │ incomplete command │ free │
//	                └ base  └ start    └ pos
type stream struct {
	buf   []byte
	base  int // of the batch
	start int // of the incomplete command
	pos   int // first byte that is not parsed
	seen  int // of the line at pos these bytes have no newline
	left  int // arguments that are missing; -1 before the header
	bulk  int // length of the next argument; -1 before its header
	spans []span
	args  [][]byte // arguments of the batch
	batch Batch
}

// span is the place of an argument, relative to the start of the command.
type span struct{ from, to int }

func (s *stream) reset() { s.left, s.bulk = -1, -1 }

// Next returns the next commands of the stream. It waits for one, and returns with it
// those that have arrived completely. Offset counts them when Next is called again, or
// by [Link.Passed]. After an error the link is of no use.
func (l *Link) Next() (*Batch, error) {
	l.discard()
	for {
		for len(l.batch.Commands) < maxBatch {
			done, err := l.parse(l.o.MaxCommand)
			if err != nil {
				return nil, fmt.Errorf("stream at offset %d: %w", l.Offset+int64(l.start-l.base), err)
			}
			if !done {
				break
			}
		}
		if len(l.batch.Commands) > 0 {
			l.batch.Raw = l.buf[l.base:l.start]
			return &l.batch, nil
		}
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
}

// Passed returns the offset after n commands of the batch.
func (l *Link) Passed(n int) int64 {
	at := l.Offset
	for _, size := range l.batch.Sizes[:n] {
		at += int64(size)
	}
	return at
}

// discard drops the batch.
func (l *Link) discard() {
	s := &l.stream
	if l.Offset >= 0 {
		l.Offset += int64(s.start - s.base)
	}
	s.base = s.start
	if s.base > len(s.buf)/2 || s.base == len(s.buf) {
		s.compact(cap(s.buf))
	}
	clear(s.args)
	s.args = s.args[:0]
	clear(s.batch.Commands)
	s.batch.Commands, s.batch.Sizes, s.batch.Raw = s.batch.Commands[:0], s.batch.Sizes[:0], nil
}

// compact drops the earlier bytes, and gives the buffer a size in bytes at which what is
// left of it fits; small again if that is little.
func (s *stream) compact(size int) {
	rest := s.buf[s.base:]
	switch {
	case size > keptBuffer && len(rest) < firstBuffer:
		s.buf = append(make([]byte, 0, 2*firstBuffer), rest...)
	case size > cap(s.buf):
		s.buf = append(make([]byte, 0, size), rest...)
	default:
		s.buf = s.buf[:copy(s.buf, rest)]
	}
	s.pos -= s.base
	s.start -= s.base
	s.base = 0
}

// fill reads more bytes. The buffer grows with what has arrived.
func (l *Link) fill() error {
	s := &l.stream
	if len(s.buf) == cap(s.buf) {
		s.compact(cap(s.buf))
	}
	if len(s.buf) == cap(s.buf) {
		s.compact(max(firstBuffer, min(2*cap(s.buf), max(cap(s.buf), l.o.MaxCommand)+firstBuffer)))
	}
	n, err := l.in.Read(s.buf[len(s.buf):cap(s.buf)])
	s.buf = s.buf[:len(s.buf)+n]
	if n > 0 {
		return nil
	}
	return noEOF(err)
}

// line returns the line at pos without its end, and moves behind it.
func (s *stream) line() (line []byte, ok bool, err error) {
	i := bytes.IndexByte(s.buf[s.pos+s.seen:], '\n')
	if i < 0 {
		if s.seen = len(s.buf) - s.pos; s.seen > maxLine {
			return nil, false, fmt.Errorf("a line of more than %d bytes", maxLine)
		}
		return nil, false, nil
	}
	line = s.buf[s.pos : s.pos+s.seen+i]
	s.pos, s.seen = s.pos+s.seen+i+1, 0
	return bytes.TrimSuffix(line, []byte("\r")), true, nil
}

// parse parses the next command, and reports whether it is complete.
func (s *stream) parse(limit int) (done bool, err error) {
	if s.pos == len(s.buf) && s.left != 0 {
		return false, nil
	}
	if s.left < 0 {
		inline := s.buf[s.pos] != '*'
		line, ok, err := s.line()
		switch {
		case !ok:
			return false, err
		case inline:
			return s.inline(line)
		}
		n, good := number(line[1:], maxArgs)
		if !good {
			return false, fmt.Errorf("an array of %s arguments", quote(string(line[1:])))
		}
		s.left = n
	}
	for s.left > 0 {
		if s.bulk < 0 {
			line, ok, err := s.line()
			if !ok {
				return false, err
			}
			n, good := 0, false
			if len(line) > 0 && line[0] == '$' {
				n, good = number(line[1:], limit)
			}
			if !good {
				return false, fmt.Errorf("an argument that begins with %s, where its length is expected, which is at most %d", quote(string(line)), limit)
			}
			s.bulk = n
		}
		if s.pos-s.start+s.bulk > limit {
			return false, fmt.Errorf("a command of more than %d bytes", limit)
		}
		end := s.pos + s.bulk
		if end+2 > len(s.buf) {
			return false, nil
		}
		if s.buf[end] != '\r' || s.buf[end+1] != '\n' {
			return false, fmt.Errorf("an argument of %d bytes without its end", s.bulk)
		}
		s.spans = append(s.spans, span{s.pos - s.start, end - s.start})
		s.pos, s.bulk = end+2, -1
		s.left--
	}
	at := len(s.args)
	for _, x := range s.spans {
		s.args = append(s.args, s.buf[s.start+x.from:s.start+x.to:s.start+x.to])
	}
	s.complete(s.args[at:len(s.args):len(s.args)])
	return true, nil
}

// inline ends a command in a line.
func (s *stream) inline(line []byte) (done bool, err error) {
	words, ok := protocol.SplitArgs(nil, bytes.Clone(line)) // it overwrites quoted text
	if !ok {
		return false, fmt.Errorf("%s is no command", quote(string(line)))
	}
	s.complete(words)
	return true, nil
}

// Commands parses commands that follow one another in b, with which they share memory.
func Commands(b []byte) ([][][]byte, error) {
	s := stream{buf: b}
	s.reset()
	for s.start < len(b) {
		switch done, err := s.parse(len(b)); {
		case err != nil:
			return nil, err
		case !done:
			return nil, io.ErrUnexpectedEOF
		}
	}
	return s.batch.Commands, nil
}

// complete adds a command to the batch.
func (s *stream) complete(args [][]byte) {
	s.batch.Commands = append(s.batch.Commands, args)
	s.batch.Sizes = append(s.batch.Sizes, s.pos-s.start)
	s.start = s.pos
	s.spans = s.spans[:0]
	s.reset()
}

// number parses a number from 0 to a limit.
func number(b []byte, limit int) (int, bool) {
	n, err := strconv.Atoi(string(b))
	return n, err == nil && 0 <= n && n <= limit
}

// AsksToAcknowledge reports whether a command is the primary's request for
// [Link.Acknowledge].
func AsksToAcknowledge(command [][]byte) bool {
	return len(command) >= 2 && protocol.EqualFold(command[0], "REPLCONF") && protocol.EqualFold(command[1], "GETACK")
}
