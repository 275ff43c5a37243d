package keyspace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/server/internal/journal"
	"github.com/zsetd/zsetd/server/internal/packed"
	"github.com/zsetd/zsetd/zset"
)

const (
	// pinAt and pinBytes are the maximum number of elements and bytes of a value
	// that is serialized under the server's lock, which takes a few microseconds.
	pinAt    = 256
	pinBytes = 64 << 10

	// textChunk is the number of bytes of a part of a long string.
	textChunk = 256 << 10
)

// Pinned is a snapshot of a key's value. It is independent of later changes, and
// another goroutine may read it.
type Pinned struct {
	key      string
	value    any // nil if ops has the whole value
	ops      []byte
	deadline int64
	bytes    int
}

// Pin returns a snapshot of the value of e. O(1); up to some microseconds for a
// small value.
func (db *DB) Pin(e *Entry) *Pinned {
	db.ks.Seal()
	if p := pin(e); p != nil {
		return p
	}
	p := &Pinned{key: e.Key()}
	var w journal.Writer
	writeValue(&w, e.Value(), e.Deadline())
	p.ops, p.bytes = w.Buf, len(w.Buf)
	return p
}

// pin is Pin for large values. It returns nil for small ones.
func pin(e *Entry) *Pinned {
	v := e.Value()
	if !large(v) {
		return nil
	}
	return &Pinned{key: e.Key(), value: Clone(v), deadline: e.Deadline(), bytes: bytesIn(v)}
}

// large reports whether a value takes too long to be serialized under the server's lock.
func large(v any) bool { return sizeOf(v) > pinAt || bytesIn(v) > pinBytes }

// bytesIn returns the length of a string, or estimates the memory of another value.
func bytesIn(v any) int {
	if s, ok := v.(*String); ok {
		return s.Len()
	}
	return v.(interface{ Bytes() int }).Bytes()
}

// Key returns the key.
func (p *Pinned) Key() string { return p.key }

// Size returns the number of bytes of the value in a journal or base; for a large
// value, an estimate.
func (p *Pinned) Size() int { return p.bytes }

// Chunks yields the operations that construct the value from nothing, in chunks of
// some 10 KB, or a few 100 KB within long texts. It is safe while the keyspace is
// in use. A chunk is valid until the next one.
func (p *Pinned) Chunks(yield func(ops []byte) bool) {
	if p.value == nil {
		yield(p.ops)
		return
	}
	w := journal.Writer{Yield: yield}
	writeValue(&w, p.value, p.deadline)
}

// Chunks yields the operations that construct a value with its deadline from
// nothing, as [Pinned.Chunks] does. A chunk is valid until the next one.
func Chunks(value any, deadline int64) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		w := journal.Writer{Yield: yield}
		writeValue(&w, value, deadline)
	}
}

func writeText(w *journal.Writer, s *String) {
	b := s.Content()
	w.Buf = journal.AppendText(append(w.Buf, journal.OpString), b[:min(len(b), textChunk)])
	for at := textChunk; at < len(b) && w.Full(1); at += textChunk {
		w.Buf = binary.AppendUvarint(append(w.Buf, journal.OpWrite), uint64(at))
		w.Buf = journal.AppendText(w.Buf, b[at:min(len(b), at+textChunk)])
	}
}

func writeSet(w *journal.Writer, s *Set) {
	if s.view().encoding == listpack {
		w.Buf = append(w.Buf, journal.OpOrdered)
	}
	var buf [20]byte
	for m := range s.Members {
		w.Buf = journal.AppendText(append(w.Buf, journal.OpPut), m.view(&buf))
		if !w.Full(journal.ChunkSize) {
			return
		}
	}
}

func writeHash(w *journal.Writer, h *Hash) {
	for field, value := range h.All() {
		w.Buf = journal.AppendText(append(w.Buf, journal.OpPut), field)
		w.Buf = journal.AppendText(w.Buf, value)
		if !w.Full(journal.ChunkSize) {
			return
		}
	}
	writeDeadlines(w, h.Deadlines())
}

func writeSorted(w *journal.Writer, s *zset.Set) {
	for member, score := range s.All() {
		w.Buf = journal.AppendText(append(w.Buf, journal.OpPut), member)
		w.Buf = journal.AppendScore(w.Buf, score)
		if !w.Full(journal.ChunkSize) {
			return
		}
	}
	writeDeadlines(w, s.Deadlines())
}

// writeDeadlines writes the deadlines of members or fields; of may be nil.
func writeDeadlines(w *journal.Writer, of *zset.Set) {
	if of == nil {
		return
	}
	for member, at := range of.All() {
		w.Buf = journal.AppendText(append(w.Buf, journal.OpMember), member)
		w.Buf = binary.AppendUvarint(w.Buf, uint64(at))
		if !w.Full(journal.ChunkSize) {
			return
		}
	}
}

// ErrOperations is the error for invalid operations. Records have checksums, so
// invalid operations were written by a newer version or because of a bug.
var ErrOperations = errors.New("invalid operations")

// Builder constructs a value from operations. The zero value, with Limits, is ready
// to use. A Builder is not safe for concurrent use.
type Builder struct {
	Limits *Limits

	value      any
	row        kindRow // of the value
	deadline   int64
	elements   []zset.Element // elements of a new sorted set; members alias copies of operations
	collecting bool           // the sorted set is in elements, not in value
}

// Value returns the value, nil if there is none, and its deadline, and resets the
// builder. The error reports a value that must not exist.
func (b *Builder) Value() (value any, deadline int64, err error) {
	b.load()
	value, deadline = b.value, b.deadline
	b.value, b.deadline = nil, 0
	if value == nil {
		return nil, deadline, nil
	}
	b.row.loaded(value, b.Limits)
	if !MayBeEmpty(value) && b.row.size(value) == 0 {
		return nil, 0, fmt.Errorf("%w: they leave an empty %T", ErrOperations, value)
	}
	return value, deadline, nil
}

// load builds a sorted set from the collected elements.
func (b *Builder) load() {
	if s, ok := b.value.(*zset.Set); ok && b.collecting {
		*s = *zset.Load(b.elements)
	}
	b.discard()
}

// discard discards the collected elements.
func (b *Builder) discard() {
	clear(b.elements)
	b.elements, b.collecting = b.elements[:0], false
}

// Apply executes operations, and does not retain ops. After an error the builder
// must not be used.
func (b *Builder) Apply(ops []byte) error {
	o := journal.Operands{Rest: ops}
	if b.collecting {
		o.Rest = slices.Clone(ops)
	}
	for len(o.Rest) > 0 {
		op := o.Rest[0]
		at := len(ops) - len(o.Rest)
		o.Rest = o.Rest[1:]
		ok := true
		switch op {
		case journal.OpNew:
			ok = b.begin(&o)
		case journal.OpDeleteKey:
			b.value, b.deadline = nil, 0
			b.discard()
		case journal.OpDeadline:
			b.deadline = int64(o.Number())
			ok = b.value != nil && b.deadline >= 0
		default:
			ok = b.change(op, &o)
		}
		if o.Failed || !ok {
			return fmt.Errorf("%w: %q at byte %d, value %T", ErrOperations, op, at, b.value)
		}
	}
	return nil
}

func (b *Builder) begin(o *journal.Operands) bool {
	if len(o.Rest) == 0 {
		return false
	}
	b.deadline = 0
	b.discard()
	n := strings.IndexByte(kindCodes, o.Rest[0])
	if n < 0 {
		return false
	}
	kind := Kind(n)
	b.row = kind.row()
	b.value = b.row.make()
	if kind == KindZset {
		b.collecting = true
		o.Rest = slices.Clone(o.Rest) // elements alias it
	}
	o.Rest = o.Rest[1:]
	return true
}

// change executes an operation on the value, and reports whether it is valid for
// its type.
func (b *Builder) change(op byte, o *journal.Operands) bool {
	return b.value != nil && b.row.replay(b, b.value, op, o)
}

func (s *String) replay(op byte, o *journal.Operands) bool {
	switch op {
	case journal.OpString:
		s.box().set(o.Text())
		s.e.flags &^= stringFlags
	case journal.OpWrite:
		offset, text := o.Number(), o.Text()
		if o.Failed || offset > uint64(s.Len()+maxGap) {
			return false
		}
		s.box().extend(int(offset) + len(text))
		copy(s.Content()[offset:], text)
		s.e.flags |= editedFlag
	default:
		return false
	}
	return true
}

// maxGap is the maximum number of zero bytes that an operation may insert into a
// string. Larger gaps make the string large enough to be pinned, so it is written
// as a whole.
const maxGap = pinBytes

func (s *Set) replay(op byte, o *journal.Operands, l *Limits) bool {
	switch op {
	case journal.OpOrdered:
		s.KeepOrder()
	case journal.OpPut:
		s.Add(l, MemberOf(o.Text()))
	case journal.OpRemove:
		s.Remove(MemberOf(o.Text()))
	default:
		return false
	}
	return true
}

func (h *Hash) replay(op byte, o *journal.Operands, l *Limits) bool {
	switch op {
	case journal.OpPut:
		field := o.Text()
		h.Set(field, o.Text(), l)
	case journal.OpRemove:
		h.Delete(o.Text())
	case journal.OpMember:
		field := o.Text()
		if at := o.Deadline(); !o.Failed {
			h.SetDeadlineBytes(field, at)
		}
	default:
		return false
	}
	return true
}

// replaySorted collects the elements of a new sorted set, and changes an old one.
func (b *Builder) replaySorted(s *zset.Set, op byte, o *journal.Operands) bool {
	if op == journal.OpPut && b.collecting {
		member := packed.View(o.Text())
		b.elements = append(b.elements, zset.Element{Member: member, Score: o.Score()})
		return true
	}
	b.load()
	switch op {
	case journal.OpPut:
		member := o.Text()
		if score := o.Score(); !o.Failed {
			s.AddIfBytes(member, score, 0)
		}
	case journal.OpRemove:
		s.RemoveBytes(o.Text())
	case journal.OpMember:
		member := o.Text()
		if at := o.Deadline(); !o.Failed {
			s.SetDeadlineBytes(member, at)
		}
	case journal.OpClear:
		s.Clear()
	default:
		return false
	}
	return true
}

// Record is a record of a journal: the changes of one key.
type Record struct {
	Space      uint64
	Key        []byte
	Operations []byte
}

// NextRecord splits the first record from a chunk of a journal. The record aliases
// the chunk.
func NextRecord(chunk []byte) (r Record, rest []byte, err error) {
	o := journal.Operands{Rest: chunk}
	r.Space, r.Key, r.Operations = o.Number(), o.Text(), o.Text()
	if o.Failed {
		return Record{}, nil, fmt.Errorf("%w: no record", ErrOperations)
	}
	return r, o.Rest, nil
}

// ReplacesValue reports whether the operations of a record are independent of the
// previous value of the key.
func ReplacesValue(ops []byte) bool {
	return len(ops) > 0 && (ops[0] == journal.OpNew || ops[0] == journal.OpDeleteKey)
}

// Restore adds a value from a Builder under a key that must not exist. It calls no
// hooks and writes no journal.
func (db *DB) Restore(key string, value any, deadline int64) {
	e := newEntry(key, value, deadline != 0)
	e.setDeadline(deadline)
	e.access = db.ks.firstAccess()
	db.insert(e)
	db.addUsedBytes(int64(e.weight()))
	if x := db.indexed(); x != nil {
		x.Add(e.Key())
	}
	if deadline != 0 {
		db.setDeadline(e.Key(), deadline)
	}
	db.schedule(e)
}

// Forget records in the journal that a key does not exist.
func (db *DB) Forget(key string) {
	if db.ks.rec != nil {
		db.ks.rec.record(db.space, key, []byte{journal.OpDeleteKey}, 0, nil)
	}
}
