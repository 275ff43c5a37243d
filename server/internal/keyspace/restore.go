package keyspace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/zset"
)

const (
	// pinAt and pinBytes are the maximum number of elements and bytes of a value
	// that is serialized under the server's lock, which takes a few microseconds.
	pinAt    = 256
	pinBytes = 64 << 10

	// chunkOps is the minimum number of bytes of a chunk of operations, and
	// textChunk the number of bytes of a part of a long string.
	chunkOps  = 32 << 10
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
	var w valueWriter
	w.value(e.Value(), e.Deadline())
	p.ops, p.bytes = w.buf, len(w.buf)
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
	w := valueWriter{yield: yield}
	w.value(p.value, p.deadline)
}

// Chunks yields the operations that construct a value with its deadline from
// nothing, as [Pinned.Chunks] does. A chunk is valid until the next one.
func Chunks(value any, deadline int64) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		w := valueWriter{yield: yield}
		w.value(value, deadline)
	}
}

// valueWriter serializes values. It yields chunks, or collects all operations in
// buf if yield is nil.
type valueWriter struct {
	buf   []byte
	yield func([]byte) bool
	done  bool // the consumer has stopped the iteration
}

// full yields the chunk if it has at least limit bytes, and reports whether to
// continue.
func (w *valueWriter) full(limit int) bool {
	if w.yield != nil && len(w.buf) >= limit && !w.done {
		w.done = !w.yield(w.buf)
		w.buf = w.buf[:0]
	}
	return !w.done
}

func (w *valueWriter) text(s *String) {
	b := s.Content()
	w.buf = appendText(append(w.buf, opString), b[:min(len(b), textChunk)])
	for at := textChunk; at < len(b) && w.full(1); at += textChunk {
		w.buf = binary.AppendUvarint(append(w.buf, opWrite), uint64(at))
		w.buf = appendText(w.buf, b[at:min(len(b), at+textChunk)])
	}
}

func (w *valueWriter) list(l *List) {
	for b := range l.Forward(0) {
		w.buf = appendText(append(w.buf, opBack), b)
		if !w.full(chunkOps) {
			return
		}
	}
}

func (w *valueWriter) set(s *Set) {
	if s.view().encoding == listpack {
		w.buf = append(w.buf, opOrdered)
	}
	var buf [20]byte
	for m := range s.Members {
		w.buf = appendText(append(w.buf, opPut), m.view(&buf))
		if !w.full(chunkOps) {
			return
		}
	}
}

func (w *valueWriter) hash(h *Hash) {
	for field, value := range h.All() {
		w.buf = appendText(append(w.buf, opPut), field)
		w.buf = appendText(w.buf, value)
		if !w.full(chunkOps) {
			return
		}
	}
	w.deadlines(h.Deadlines())
}

func (w *valueWriter) sorted(s *zset.Set) {
	for member, score := range s.All() {
		w.buf = appendText(append(w.buf, opPut), member)
		w.buf = appendScore(w.buf, score)
		if !w.full(chunkOps) {
			return
		}
	}
	w.deadlines(s.Deadlines())
}

// deadlines writes the deadlines of members or fields; of may be nil.
func (w *valueWriter) deadlines(of *zset.Set) {
	if of == nil {
		return
	}
	for member, at := range of.All() {
		w.buf = appendText(append(w.buf, opMember), member)
		w.buf = binary.AppendUvarint(w.buf, uint64(at))
		if !w.full(chunkOps) {
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

// operands decodes the operands of operations. After an error, bad is true and all
// results are zero.
type operands struct {
	rest   []byte
	failed bool
}

func (o *operands) fail() { o.failed, o.rest = true, nil }

func (o *operands) number() uint64 {
	n, w := binary.Uvarint(o.rest)
	if w <= 0 {
		o.fail()
		return 0
	}
	o.rest = o.rest[w:]
	return n
}

// position decodes a position in a list of n elements, or a number of elements.
func (o *operands) position(n int) int {
	i := o.number()
	if i > uint64(n) {
		o.fail()
		return 0
	}
	return int(i)
}

func (o *operands) signed() int64 {
	n, w := binary.Varint(o.rest)
	if w <= 0 {
		o.fail()
		return 0
	}
	o.rest = o.rest[w:]
	return n
}

func (o *operands) text() []byte {
	n := o.number()
	if n > uint64(len(o.rest)) {
		o.fail()
		return nil
	}
	b := o.rest[:n:n]
	o.rest = o.rest[n:]
	return b
}

// deadline decodes the deadline of a member.
func (o *operands) deadline() int64 {
	at := o.number()
	if at > zset.MaxDeadline {
		o.fail()
		return 0
	}
	return int64(at)
}

func (o *operands) score() float64 {
	if len(o.rest) < 8 {
		o.fail()
		return 0
	}
	f := math.Float64frombits(binary.LittleEndian.Uint64(o.rest))
	o.rest = o.rest[8:]
	if math.IsNaN(f) {
		o.fail()
	}
	return f
}

// Apply executes operations, and does not retain ops. After an error the builder
// must not be used.
func (b *Builder) Apply(ops []byte) error {
	o := operands{rest: ops}
	if b.collecting {
		o.rest = slices.Clone(ops)
	}
	for len(o.rest) > 0 {
		op := o.rest[0]
		at := len(ops) - len(o.rest)
		o.rest = o.rest[1:]
		ok := true
		switch op {
		case opNew:
			ok = b.begin(&o)
		case opDeleteKey:
			b.value, b.deadline = nil, 0
			b.discard()
		case opDeadline:
			b.deadline = int64(o.number())
			ok = b.value != nil && b.deadline >= 0
		default:
			ok = b.change(op, &o)
		}
		if o.failed || !ok {
			return fmt.Errorf("%w: %q at byte %d, value %T", ErrOperations, op, at, b.value)
		}
	}
	return nil
}

func (b *Builder) begin(o *operands) bool {
	if len(o.rest) == 0 {
		return false
	}
	b.deadline = 0
	b.discard()
	n := strings.IndexByte(kindCodes, o.rest[0])
	if n < 0 {
		return false
	}
	kind := Kind(n)
	b.row = kind.row()
	b.value = b.row.make()
	if kind == KindZset {
		b.collecting = true
		o.rest = slices.Clone(o.rest) // elements alias it
	}
	o.rest = o.rest[1:]
	return true
}

// change executes an operation on the value, and reports whether it is valid for
// its type.
func (b *Builder) change(op byte, o *operands) bool {
	return b.value != nil && b.row.replay(b, b.value, op, o)
}

func (s *String) replay(op byte, o *operands) bool {
	switch op {
	case opString:
		s.box().set(o.text())
		s.e.flags &^= stringFlags
	case opWrite:
		offset, text := o.number(), o.text()
		if o.failed || offset > uint64(s.Len()+maxGap) {
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

func (l *List) replay(op byte, o *operands) bool {
	switch op {
	case opFront:
		l.PushFront(o.text())
	case opBack:
		l.PushBack(o.text())
	case opPopFront, opPopBack:
		if l.n == 0 {
			return false
		}
		if op == opPopFront {
			l.PopFront()
		} else {
			l.PopBack()
		}
	case opIndex, opInsert:
		i, text := o.position(l.n), o.text()
		if o.failed || op == opIndex && i == l.n {
			return false
		}
		if op == opIndex {
			l.Set(i, text)
		} else {
			l.Insert(i, text)
		}
	case opRemoveRange:
		i := o.position(l.n)
		n := o.position(l.n - i)
		if o.failed {
			return false
		}
		l.Delete(i, n)
	case opMatching:
		n, text := o.signed(), o.text()
		if !o.failed {
			l.Remove(text, int(n))
		}
	default:
		return false
	}
	return true
}

func (s *Set) replay(op byte, o *operands, l *Limits) bool {
	switch op {
	case opOrdered:
		s.KeepOrder()
	case opPut:
		s.Add(l, MemberOf(o.text()))
	case opRemove:
		s.Remove(MemberOf(o.text()))
	default:
		return false
	}
	return true
}

func (h *Hash) replay(op byte, o *operands, l *Limits) bool {
	switch op {
	case opPut:
		field := o.text()
		h.Set(field, o.text(), l)
	case opRemove:
		h.Delete(o.text())
	case opMember:
		field := o.text()
		if at := o.deadline(); !o.failed {
			h.SetDeadlineBytes(field, at)
		}
	default:
		return false
	}
	return true
}

// replaySorted collects the elements of a new sorted set, and changes an old one.
func (b *Builder) replaySorted(s *zset.Set, op byte, o *operands) bool {
	if op == opPut && b.collecting {
		member := viewOf(o.text())
		b.elements = append(b.elements, zset.Element{Member: member, Score: o.score()})
		return true
	}
	b.load()
	switch op {
	case opPut:
		member := o.text()
		if score := o.score(); !o.failed {
			s.AddIfBytes(member, score, 0)
		}
	case opRemove:
		s.RemoveBytes(o.text())
	case opMember:
		member := o.text()
		if at := o.deadline(); !o.failed {
			s.SetDeadlineBytes(member, at)
		}
	case opClear:
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
	o := operands{rest: chunk}
	r.Space, r.Key, r.Operations = o.number(), o.text(), o.text()
	if o.failed {
		return Record{}, nil, fmt.Errorf("%w: no record", ErrOperations)
	}
	return r, o.rest, nil
}

// ReplacesValue reports whether the operations of a record are independent of the
// previous value of the key.
func ReplacesValue(ops []byte) bool {
	return len(ops) > 0 && (ops[0] == opNew || ops[0] == opDeleteKey)
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
		x.add(e.Key())
	}
	if deadline != 0 {
		db.setDeadline(e.Key(), deadline)
	}
	db.schedule(e)
}

// Forget records in the journal that a key does not exist.
func (db *DB) Forget(key string) {
	if db.ks.rec != nil {
		db.ks.rec.record(db.space, key, []byte{opDeleteKey}, 0, nil)
	}
}
