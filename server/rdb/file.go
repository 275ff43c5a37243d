package rdb

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/zsetd/zsetd/server/internal/values/sequence"
)

// Opcodes, which occur in a file in place of a type.
const (
	opKeyMeta    = 243 // in Redis; in Valkey slots of a cluster that are being migrated
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

// Files begin with a magic and the digits of the version, nine bytes in all.
const (
	magic       = "REDIS"
	magicValkey = "VALKEY"
	headSize    = 9
)

// IsFile reports whether a file that begins with head is a dump of Redis or Valkey;
// 9 bytes are enough.
func IsFile(head []byte) bool {
	version, _ := fileVersion(head)
	return version >= 0
}

// fileVersion returns the version in the beginning of a file, or -1.
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

// Describe describes a file that begins with head, if Redis or Valkey has written
// it, or [Writer]; else it returns "". Some hundred bytes are enough.
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
	Value    any   // nil if Err is not
	Deadline int64 // milliseconds since 1970, 0 for none
	Err      error // of a value that cannot be read, or is damaged, but was skipped

	// Library is the code of a library of functions, if the entry is a library and
	// no key.
	Library string

	// Module is the name of a module, if the entry is no key but data that the
	// module has written beside the keys, which were skipped.
	Module string
}

// IsBase reports whether a file that begins with head is the first part of an
// append-only file: later changes follow behind its end, or are in other files.
// Some hundred bytes are enough.
func IsBase(head []byte) bool {
	if !IsFile(head) {
		return false
	}
	in := &input{rest: head[headSize:]}
	for in.byte() == opAux {
		switch name, value := string(in.text()), string(in.text()); name {
		case "aof-base", "aof-preamble": // since Redis 7.0, and in older versions
			return value == "1"
		}
	}
	return false
}

// FileInfo describes a file besides its keys.
type FileInfo struct {
	Version   int
	Functions int // libraries
	StreamDB  int // database that the stream of a primary has selected after the file
}

// ReadSize is the size of the reads of ReadFile. Bytes behind the end of the file
// stay in a reader that is a *bufio.Reader of this size or more.
const ReadSize = 1 << 16

// ReadFile visits the keys and the libraries of a file, one after the other. Only
// one of them is in memory, besides those that visit keeps. After a damaged value whose length is
// known it goes on; the error of the file's checksum is [ErrChecksum], and comes last.
func (c *Codec) ReadFile(r io.Reader, visit func(Entry) error) (FileInfo, error) {
	f := &fileReader{codec: c, in: &input{file: bufio.NewReaderSize(r, ReadSize), crc: c.crc}, visit: visit}
	err := f.head()
	for err == nil {
		op := f.in.byte()
		if op == opEnd {
			return f.info, f.in.end(f.info.Version)
		}
		if err = f.record(op); err == nil && !f.in.sound() {
			err = f.in.problem(fmt.Errorf("%w, %s", ErrFormat, f.before.place(f.keys)))
		}
	}
	return f.info, err
}

// fileReader is the state of ReadFile.
type fileReader struct {
	codec *Codec
	in    *input
	visit func(Entry) error
	info  FileInfo

	next      Entry     // the next key, as far as it is read
	deadlines deadlines // of its members
	producers []byte    // of it, if it is a stream

	before Entry // the latest key
	keys   int   // number of keys before the next
}

// head reads the beginning of the file, with its version.
func (f *fileReader) head() error {
	in, info := f.in, &f.info
	head := in.next(headSize)
	if in.bad || !IsFile(head) {
		return in.problem(fmt.Errorf("%w: not a file of Redis or Valkey", ErrFormat))
	}
	info.Version, in.valkey = fileVersion(head)
	if !known(info.Version) || info.Version == 0 || in.valkey != (info.Version == versionValkey) {
		return fmt.Errorf("unsupported format version %d: supported are 1 to %d (Redis up to 8.6) and %d (Valkey 9)", info.Version, versionNewest, versionValkey)
	}
	return nil
}

// record reads what follows the byte op. The caller checks whether that is sound.
func (f *fileReader) record(op byte) error {
	in := f.in
	switch op {
	case opSelect:
		f.next.DB = in.length()
	case opDeadlineMs:
		f.next.Deadline = int64(in.uint64())
	case opDeadline:
		if b := in.next(4); b != nil {
			f.next.Deadline = int64(int32(binary.LittleEndian.Uint32(b))) * 1000
		}
	case opIdle:
		in.length()
	case opFreq:
		in.byte()
	case opAux:
		name := string(in.text())
		f.aux(name, in.text())
	case opResize:
		keys := in.length()
		in.length() // those with deadlines
		if c := f.codec; c.Announced != nil && !in.bad {
			c.Announced(f.next.DB, keys)
		}
	case opSlot:
		in.length()
		in.length()
		in.length()
	case opFunction:
		if code := string(in.text()); in.sound() {
			return f.library(code)
		}
	case opLegacyFunction:
		if code, wrong := in.legacyFunction(); wrong == "" {
			return f.library(code)
		}
	case opKeyMeta:
		if !in.bad {
			return fmt.Errorf("%s: %s", f.before.place(f.keys), map[bool]string{
				false: "data of a module attached to a key can be neither read nor skipped",
				true:  "the file was saved during a slot migration: save it again",
			}[in.valkey])
		}
	case opModuleAux:
		name, values := in.skipModule()
		if !in.bad && values > 1 { // the first value is only the position in the file
			return f.visit(Entry{Module: name})
		}
	default:
		if !in.bad {
			return f.key(op)
		}
	}
	return nil
}

// aux takes an auxiliary field.
func (f *fileReader) aux(name string, value []byte) {
	switch name {
	case streamDB:
		f.info.StreamDB, _ = strconv.Atoi(string(value))
	case deadlinesAux:
		if !f.deadlines.read(value) {
			f.in.fail()
		}
	case producersAux:
		f.producers = value
	}
}

// library visits a library of functions.
func (f *fileReader) library(code string) error {
	f.info.Functions++
	return f.visit(Entry{Library: code})
}

// key reads and visits a key with a value of the given type.
func (f *fileReader) key(kind byte) error {
	in, e := f.in, &f.next
	e.Key = string(in.text())
	e.Value, e.Err = f.codec.value(in, kind)
	f.deadlines.apply(e.Value)
	if s, ok := e.Value.(*sequence.Stream); ok && f.producers != nil {
		aux := input{rest: f.producers}
		aux.producers(s)
		in.check(aux.sound())
	}
	f.deadlines, f.producers = nil, nil
	in.release() // the value has copies of what it keeps
	if !in.sound() {
		e.Value, e.Err = nil, ErrFormat
	}
	if in.bad || errors.Is(e.Err, ErrType) {
		return in.problem(fmt.Errorf("key %.100q of database %d, type %d: %w", e.Key, e.DB, kind, e.Err))
	}
	in.spoil = false
	if err := f.visit(*e); err != nil {
		return err
	}
	f.before = Entry{DB: e.DB, Key: e.Key}
	f.keys++
	f.next = Entry{DB: e.DB}
	return nil
}

// place describes the position behind the entry, the last one of so many keys.
func (e *Entry) place(keys int) string {
	if keys == 0 {
		return "before the first key"
	}
	return fmt.Sprintf("after key %.100q of database %d", e.Key, e.DB)
}

// problem returns the error of reading the file if there is one, or else other.
func (in *input) problem(other error) error {
	switch {
	case errors.Is(in.err, io.EOF), errors.Is(in.err, io.ErrUnexpectedEOF):
		return fmt.Errorf("unexpected end of the file (%w)", other)
	case in.err != nil:
		return in.err
	}
	return other
}

// end reads the checksum, which files have since version 5 and which may be turned
// off.
func (in *input) end(version int) error {
	in.settle()
	if version < 5 {
		return nil
	}
	want := in.sum
	got := in.uint64()
	in.settle()
	switch {
	case in.bad:
		return in.problem(ErrFormat)
	case got != 0 && got != want:
		return fmt.Errorf("%w of the file", ErrChecksum)
	}
	return nil
}

// skipModule skips the data of a module: its name, as a number, and values of known
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
			in.next(4)
		case 4: // double
			in.next(8)
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

// Target is a group of servers that a file is written for.
type Target uint8

const (
	Any      Target = iota // the oldest Redis that supports the contents, 5.0 at least
	Redis5                 // Redis 5.0 and later, Valkey
	Redis7                 // Redis 7.0 and later, Valkey
	Redis8                 // Redis 7.4 and later
	Valkey9                // Valkey 9 and later
	Replica                // the oldest Redis that supports the contents, and all later ones and Valkey; see [Writer.AppendDeadlines] for the deadlines of fields
	Replica7               // Replica, since Redis 7.0: it loads small values as they are, without conversion and compression
)

// Functions reports whether files for the target have libraries of functions.
func (t Target) Functions() bool { return t != Redis5 }

// FieldDeadlines reports whether files for the target have the deadlines of fields.
func (t Target) FieldDeadlines() bool { return t == Any || t == Redis8 || t == Valkey9 || t == payload }

// Writer writes a file for a target. Its keys have no deadlines of members of sorted
// sets; [Target.FieldDeadlines] reports whether they have those of fields of hashes. See
// [Writer.AppendDeadlines] for the others.
type Writer struct {
	codec  *Codec
	target Target
	db     int
	sum    uint64
}

// NewWriter returns a writer.
func NewWriter(c *Codec, t Target) *Writer { return &Writer{codec: c, target: t, db: -1} }

// The bytes that the methods append must be written in that order.

// AppendHead appends the beginning of a file.
func (w *Writer) AppendHead(dst []byte) []byte {
	start := len(dst)
	switch w.target {
	case Valkey9:
		dst = fmt.Appendf(dst, "%s%03d", magicValkey, versionValkey)
	case Redis8:
		dst = fmt.Appendf(dst, "%s%04d", magic, versionTimed)
	case Redis7, Replica7:
		dst = fmt.Appendf(dst, "%s%04d", magic, version)
	default:
		dst = fmt.Appendf(dst, "%s%04d", magic, versionPortable)
	}
	return w.add(dst, start)
}

// streamDB is the name of the fact about FileInfo.StreamDB.
const streamDB = "repl-stream-db"

// AppendStreamDB appends [FileInfo].StreamDB, after the head.
func (w *Writer) AppendStreamDB(dst []byte, db int) []byte {
	start := len(dst)
	dst = w.codec.appendText(append(dst, opAux), []byte(streamDB))
	return w.add(w.codec.appendText(dst, strconv.AppendInt(nil, int64(db), 10)), start)
}

// AppendSize announces the number of keys of a database, and of those with deadlines, before
// the first of them.
func (w *Writer) AppendSize(dst []byte, db, keys, timed int) []byte {
	start := len(dst)
	dst = append(w.appendSelect(dst, db), opResize)
	return w.add(appendLength(appendLength(dst, uint64(keys)), uint64(timed)), start)
}

// AppendKey appends a key, its deadline (milliseconds since 1970, 0 for none) and its value.
func (w *Writer) AppendKey(dst []byte, db int, key string, value any, deadline int64) []byte {
	start := len(dst)
	return w.add(w.appendKey(dst, db, key, value, deadline), start)
}

func (w *Writer) appendKey(dst []byte, db int, key string, value any, deadline int64) []byte {
	dst = w.appendSelect(dst, db)
	if deadline != 0 {
		dst = binary.LittleEndian.AppendUint64(append(dst, opDeadlineMs), uint64(deadline))
	}
	form := rowOf(value).form(w.codec, value, w.target)
	dst = w.codec.appendText(append(dst, form), []byte(key))
	w.codec.plain = w.target == Replica7
	dst = w.codec.appendValue(dst, form, value)
	w.codec.plain = false
	return dst
}

// appendSelect appends the selection of a database, unless it is selected.
func (w *Writer) appendSelect(dst []byte, db int) []byte {
	if db == w.db {
		return dst
	}
	w.db = db
	return appendLength(append(dst, opSelect), uint64(db))
}

// WriteKey appends what AppendDeadlines and AppendKey append, but passes dst on to write
// whenever it has more than 64 KB between two elements of the value. It returns what is left,
// which must be written next. Encodings for targets since Redis 7.0 may be longer. write must
// not keep its argument. After an error of write, WriteKey ends with that error.
func (w *Writer) WriteKey(dst []byte, write func([]byte) error, db int, key string, value any, deadline int64) (rest []byte, err error) {
	c, start := w.codec, len(dst)
	c.spill = func(part []byte) ([]byte, bool) {
		if err == nil {
			w.sum = c.crc.sum(w.sum, part[start:])
			start = 0
			err = write(part)
		}
		return part[:0], err == nil
	}
	defer func() { c.spill = nil }()
	if dst = w.appendDeadlines(dst, value); err == nil {
		dst = w.appendKey(dst, db, key, value, deadline)
	}
	return w.add(dst, start), err
}

// PlainStream reports whether Redis before 7.0 supports all properties of a stream:
// it has no groups, which have counters, and no entry was ever deleted.
func PlainStream(s *sequence.Stream) bool {
	return s.Added() == int64(s.Len()) && s.MaxDeletedID().IsZero() && len(s.Groups()) == 0
}

// AppendEnd appends the end of the file.
func (w *Writer) AppendEnd(dst []byte) []byte {
	start := len(dst)
	dst = w.add(append(dst, opEnd), start)
	return binary.LittleEndian.AppendUint64(dst, w.sum)
}

func (w *Writer) add(dst []byte, start int) []byte {
	w.sum = w.codec.crc.sum(w.sum, dst[start:])
	return dst
}
