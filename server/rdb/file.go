package rdb

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/zsetd/zsetd/server/keyspace"
)

// What stands in a file in place of a type.
const (
	opKeyMeta    = 243 // in Redis; in Valkey slots of a cluster that are being moved
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

// Files begin with a magic and digits, the version, nine bytes in all.
const (
	magic       = "REDIS"
	magicValkey = "VALKEY"
	headSize    = 9
)

// IsFile reports whether a file that begins so is a dump of Redis or Valkey; 9
// bytes are enough.
func IsFile(head []byte) bool {
	version, _ := fileVersion(head)
	return version >= 0
}

// fileVersion returns the version that the beginning of a file says, or -1.
func fileVersion(head []byte) (version int, valkey bool) {
	if len(head) < headSize {
		return -1, false
	}
	digits, ok := bytes.CutPrefix(head[:headSize], []byte(magic))
	if !ok {
		if digits, valkey = bytes.CutPrefix(digits, []byte(magicValkey)); !valkey {
			return -1, false
		}
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return -1, false
		}
		version = 10*version + int(d-'0')
	}
	return version, valkey
}

// Describe says what a file is that begins so, if Redis or Valkey has written it, or
// [Writer]; else "". Some hundred bytes are enough.
func Describe(head []byte) string {
	switch version, valkey := fileVersion(head); {
	case version >= 0 && valkey:
		return fmt.Sprintf("an RDB file of Valkey, version %d", version)
	case version >= 0:
		return fmt.Sprintf("an RDB file of Redis, version %d", version)
	case IsManifest(head):
		return "the manifest of an append-only file of Redis"
	case regexp.MustCompile(`^(#TS:\d+\r\n)?\*\d+\r\n\$\d+\r\n`).Match(head):
		return "a file of commands, such as an append-only file of Redis"
	}
	return ""
}

// Entry is a key of a file.
type Entry struct {
	DB       uint64
	Key      string
	Value    any   // nil if Err says why
	Deadline int64 // milliseconds since 1970, 0 for none
	Err      error // of a value that cannot be had, but was passed over

	// Omitted is a description of the part of the value that was dropped, or "".
	Omitted string

	// Library is the code of a library of functions, if it is no key but that.
	Library string

	// Module is the name of a module, if it is no key but what that module has
	// written beside the keys; that was passed over.
	Module string
}

// IsBase reports whether a file that begins so is the first part of an append-only
// file: the changes that were made later follow behind its end, or are in other files.
// Some hundred bytes are enough.
func IsBase(head []byte) bool {
	if !IsFile(head) {
		return false
	}
	in := &input{rest: head[headSize:]}
	for in.byte() == opAux {
		switch name, value := string(in.text()), string(in.text()); name {
		case "aof-base", "aof-preamble": // since Redis 7.0, and before
			return value == "1"
		}
	}
	return false
}

// IsManifest reports whether a file that begins so is the manifest of an append-only
// file of several parts.
func IsManifest(head []byte) bool {
	return regexp.MustCompile(`^(#[^\n]*\n)*file \S+ seq \d+ type [bhi]\b`).Match(head)
}

// FileInfo says what else there is in a file.
type FileInfo struct {
	Version   int
	Functions int // libraries
}

// ReadSize is how much ReadFile reads at once. What follows the end of the file is
// left in a reader that is a *bufio.Reader of this size or more.
const ReadSize = 1 << 16

// ReadFile visits the keys of a file, and its libraries, one after the other. No more than one of them is
// in memory, and what visit keeps.
func (c *Codec) ReadFile(r io.Reader, visit func(Entry) error) (info FileInfo, err error) {
	in := &input{file: bufio.NewReaderSize(r, ReadSize), crc: c.crc}
	head := in.take(headSize)
	if in.bad || !IsFile(head) {
		return info, in.problem(fmt.Errorf("%w: not a file of Redis or Valkey", ErrFormat))
	}
	info.Version, in.valkey = fileVersion(head)
	if !known(info.Version) || info.Version == 0 || in.valkey != (info.Version == versionValkey) {
		return info, fmt.Errorf("version %d of the format is not known, but 1 to %d (Redis up to 8.6) and %d (Valkey 9) are", info.Version, versionNewest, versionValkey)
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
		case opKeyMeta:
			if !in.bad {
				return info, fmt.Errorf("after key %.100q of database %d: %s", e.Key, e.DB, map[bool]string{
					false: "what a module keeps with a key cannot be read, nor passed over",
					true:  "slots of a cluster were being moved when the file was saved: save it again",
				}[in.valkey])
			}
		case opModuleAux:
			name, values := in.skipModule()
			if !in.bad && values > 1 { // the first says only where in the file it is to be
				if err := visit(Entry{Module: name}); err != nil {
					return info, err
				}
			}
		default:
			if in.bad {
				break
			}
			e.Key = string(in.text())
			e.Value, e.Err = c.value(in, op)
			e.Omitted, in.omitted = in.omitted, ""
			switch {
			case in.bad:
			case errors.Is(e.Err, ErrFormat), errors.Is(e.Err, ErrType):
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

// skipModule passes over what a module has written: its name, as a number, and values of known
// types, which it counts.
func (in *input) skipModule() (name string, values int) {
	name = moduleName(in.length())
	for ; !in.bad; values++ {
		switch in.length() {
		case 0:
			return name, values
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
	return name, values
}

// moduleName returns the name of a type of values of a module: nine characters of
// six bits each, before a version of ten.
func moduleName(n uint64) string {
	const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	name := make([]byte, 9)
	for i := range name {
		name[i] = characters[n>>(10+6*(8-i))&63]
	}
	return string(name)
}

// Target says which servers a file is for.
type Target uint8

const (
	Any     Target = iota // the oldest Redis that knows what there is, 5.0 at least
	Redis5                // Redis 5.0 and later, Valkey
	Redis7                // Redis 7.0 and later, Valkey
	Redis8                // Redis 7.4 and later
	Valkey9               // Valkey 9 and later
)

// Functions reports whether files for the target have libraries of functions.
func (t Target) Functions() bool { return t != Redis5 }

// FieldDeadlines reports whether files for the target have the deadlines of fields.
func (t Target) FieldDeadlines() bool { return t == Any || t == Redis8 || t == Valkey9 }

// Writer writes a file for some servers. Deadlines of members of sorted sets have no
// place in any; those of fields of hashes where [Target.FieldDeadlines] says so.
type Writer struct {
	codec  *Codec
	target Target
	db     int
	sum    uint64
}

// NewWriter returns a writer.
func NewWriter(c *Codec, t Target) *Writer { return &Writer{codec: c, target: t, db: -1} }

// The bytes that the methods append must be written in that order.

// AppendHead appends what a file begins with.
func (w *Writer) AppendHead(dst []byte) []byte {
	start := len(dst)
	switch w.target {
	case Valkey9:
		dst = fmt.Appendf(dst, "%s%03d", magicValkey, versionValkey)
	case Redis8:
		dst = fmt.Appendf(dst, "%s%04d", magic, versionTimed)
	case Redis7:
		dst = fmt.Appendf(dst, "%s%04d", magic, version)
	default:
		dst = fmt.Appendf(dst, "%s%04d", magic, versionPortable)
	}
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
	kind := w.kind(value)
	dst = w.codec.appendText(append(dst, kind), []byte(key))
	switch kind {
	case typeHashTimed:
		dst = w.codec.appendTimedHash(dst, value.(*keyspace.Hash))
	case typeHashValkey:
		dst = w.codec.appendValkeyHash(dst, value.(*keyspace.Hash))
	case typeStream3:
		dst = w.codec.appendStream(dst, value.(*keyspace.Stream), kind)
	default:
		dst = w.codec.appendCompact(dst, kind, value)
	}
	return w.add(dst, start)
}

// kind returns the type that a value is written as.
func (w *Writer) kind(value any) byte {
	if h, ok := value.(*keyspace.Hash); ok && h.Deadlines() != nil && w.target.FieldDeadlines() {
		if w.target == Valkey9 {
			return typeHashValkey
		}
		return typeHashTimed
	}
	if s, ok := value.(*keyspace.Stream); ok {
		switch {
		case w.target == Redis8, w.target == Valkey9:
			return typeStream3
		case w.target == Redis7, w.target == Any && !PlainStream(s):
			return typeStream2
		}
		return typeStream
	}
	if w.target == Any || w.target == Redis5 {
		kind, _ := portableType(value)
		return kind
	}
	return w.codec.compactType(value)
}

// PlainStream reports whether Redis before 7.0 knows all that there is of a stream: no
// groups, which have counters, and no entry was ever deleted.
func PlainStream(s *keyspace.Stream) bool {
	return s.Added() == int64(s.Len()) && s.MaxDeletedID().IsZero() && len(s.Groups()) == 0
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
