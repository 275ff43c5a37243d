package rdb

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// What stands in a file in place of a type.
const (
	opSlot       = 244
	opFunction   = 245
	opModuleAux  = 247
	opIdle       = 248
	opFreq       = 249
	opAux        = 250
	opResize     = 251
	opDeadlineMs = 252
	opDeadline   = 253
	opSelect     = 254
	opEnd        = 255
)

// magic is what files begin with, before four digits, the version.
const magic = "REDIS"

// IsFile reports whether a file that begins so is one of Redis; 9 bytes are enough.
func IsFile(head []byte) bool {
	return len(head) >= 9 && bytes.HasPrefix(head, []byte(magic)) && fileVersion(head[5:9]) >= 0
}

// fileVersion returns the version that the four digits say, or -1.
func fileVersion(digits []byte) int {
	for _, d := range digits {
		if d < '0' || d > '9' {
			return -1
		}
	}
	n, err := strconv.Atoi(string(digits))
	if err != nil {
		return -1
	}
	return n
}

// Entry is a key of a file.
type Entry struct {
	DB       uint64
	Key      string
	Value    any   // nil if Err says why
	Deadline int64 // milliseconds since 1970, 0 for none
	Err      error // of a value that cannot be had, but was passed over

	// Library is the code of a library of functions, if it is no key but that.
	Library string
}

// FileInfo says what else there is in a file.
type FileInfo struct {
	Version   int
	Functions int // libraries
}

// ReadFile visits the keys of a file, and its libraries, one after the other. No more than one of them is
// in memory, and what visit keeps.
func (c *Codec) ReadFile(r io.Reader, visit func(Entry) error) (info FileInfo, err error) {
	in := &input{file: bufio.NewReaderSize(r, 1<<16), crc: c.crc}
	head := in.take(9)
	if in.bad || !IsFile(head) {
		return info, in.problem(fmt.Errorf("%w: not a file of Redis", ErrFormat))
	}
	info.Version = fileVersion(head[5:])
	if info.Version < 1 || info.Version > versionTimed {
		return info, fmt.Errorf("version %d of the format is not known", info.Version)
	}
	var e Entry
	for {
		switch op := in.byte(); op {
		case opEnd:
			return info, in.end(info.Version)
		case opSelect:
			e.DB = in.length()
		case opDeadlineMs:
			e.Deadline = int64(in.uint64())
		case opDeadline:
			if b := in.take(4); b != nil {
				e.Deadline = int64(int32(binary.LittleEndian.Uint32(b))) * 1000
			}
		case opIdle:
			in.length()
		case opFreq:
			in.byte()
		case opAux:
			in.text()
			in.text()
		case opResize:
			in.length()
			in.length()
		case opSlot:
			in.length()
			in.length()
			in.length()
		case opFunction:
			code := string(in.text())
			if in.bad {
				break
			}
			info.Functions++
			if err := visit(Entry{Library: code}); err != nil {
				return info, err
			}
		case opModuleAux:
			in.skipModule()
		default:
			if in.bad {
				break
			}
			e.Key = string(in.text())
			e.Value, e.Err = c.value(in, op)
			switch {
			case in.bad:
			case errors.Is(e.Err, ErrFormat):
				return info, fmt.Errorf("key %.100q of database %d, type %d: %w", e.Key, e.DB, op, e.Err)
			default:
				if err := visit(e); err != nil {
					return info, err
				}
			}
			e = Entry{DB: e.DB}
		}
		if in.bad {
			return info, in.problem(fmt.Errorf("%w, after key %.100q of database %d", ErrFormat, e.Key, e.DB))
		}
	}
}

// problem returns what was wrong with a file: that it could not be read, or other.
func (in *input) problem(other error) error {
	switch {
	case errors.Is(in.err, io.EOF), errors.Is(in.err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the file ends too early (%w)", other)
	case in.err != nil:
		return in.err
	}
	return other
}

// end reads the checksum, which younger files have, unless it was turned off.
func (in *input) end(version int) error {
	if version < 5 {
		return nil
	}
	want := in.sum
	got := in.uint64()
	switch {
	case in.bad:
		return in.problem(ErrFormat)
	case got != 0 && got != want:
		return fmt.Errorf("%w of the file", ErrChecksum)
	}
	return nil
}

// skipModule passes over what a module has written: its number, and values of known
// types.
func (in *input) skipModule() {
	in.length()
	for !in.bad {
		switch in.length() {
		case 0:
			return
		case 1, 2: // an integer
			in.length()
		case 3: // float
			in.take(4)
		case 4: // double
			in.take(8)
		case 5:
			in.text()
		default:
			in.fail()
		}
	}
}

// Writer writes a file that every Redis since 5.0 can load. Deadlines of members and
// fields have no place in it.
type Writer struct {
	codec *Codec
	db    int
	sum   uint64
}

// NewWriter returns a writer.
func NewWriter(c *Codec) *Writer { return &Writer{codec: c, db: -1} }

// The bytes that the methods append must be written in that order.

// AppendHead appends what a file begins with.
func (w *Writer) AppendHead(dst []byte) []byte {
	start := len(dst)
	dst = fmt.Appendf(dst, "%s%04d", magic, versionPortable)
	return w.add(dst, start)
}

// AppendKey appends a key, its deadline (milliseconds since 1970, 0 for none) and its value.
func (w *Writer) AppendKey(dst []byte, db int, key string, value any, deadline int64) []byte {
	start := len(dst)
	if db != w.db {
		w.db = db
		dst = appendLength(append(dst, opSelect), uint64(db))
	}
	if deadline != 0 {
		dst = binary.LittleEndian.AppendUint64(append(dst, opDeadlineMs), uint64(deadline))
	}
	kind, _ := portableType(value)
	dst = w.codec.appendText(append(dst, kind), []byte(key))
	return w.add(w.codec.appendPortable(dst, value), start)
}

// AppendEnd appends the end of the file.
func (w *Writer) AppendEnd(dst []byte) []byte {
	start := len(dst)
	dst = w.add(append(dst, opEnd), start)
	return binary.LittleEndian.AppendUint64(dst, w.sum)
}

func (w *Writer) add(dst []byte, start int) []byte {
	w.sum = w.codec.sum(w.sum, dst[start:])
	return dst
}
