package keyspace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/zsetd/zsetd/zset"
)

const (
	// pinAt is how many elements a value may have, and pinBytes how much memory
	// it may take, to be written while the server waits: a few microseconds.
	pinAt    = 256
	pinBytes = 64 << 10

	// chunkOps is how many bytes of operations make a chunk, and textChunk the
	// same for the pieces of a long string.
	chunkOps  = 32 << 10
	textChunk = 256 << 10
)

// Pinned is the value of a key as it was when it was pinned, whatever becomes
// of the key.
type Pinned struct {
	key      string
	value    any // nil if ops say it all
	ops      []byte
	deadline int64
	bytes    int
}

// Pin keeps the value that e now has. O(1), or some microseconds for a small
// value.
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

// pin is Pin for large values; for others it returns nil.
func pin(e *Entry) *Pinned {
	bytes := 0
	v := e.Value()
	if s, ok := v.(*String); ok {
		bytes = s.Len()
	} else {
		bytes = v.(interface{ Bytes() int }).Bytes()
	}
	if bytes <= pinBytes && sizeOf(v) <= pinAt {
		return nil
	}
	return &Pinned{key: e.Key(), value: Clone(v), deadline: e.Deadline(), bytes: bytes}
}

// Key returns the key.
func (p *Pinned) Key() string { return p.key }

// Size is how many bytes the value takes in a journal or base, estimated if it
// is large.
func (p *Pinned) Size() int { return p.bytes }

// Chunks yields the operations that make the value from nothing, in pieces of
// some 10 KB, or few 100 where a text is long. It may be called while the
// keyspace is in use. A piece is borrowed until the next.
func (p *Pinned) Chunks(yield func(ops []byte) bool) {
	if p.value == nil {
		yield(p.ops)
		return
	}
	w := valueWriter{yield: yield}
	w.value(p.value, p.deadline)
}

// Chunks yields the operations that make a value from nothing, with its deadline,
// in pieces as [Pinned.Chunks] does. A piece is borrowed until the next.
func Chunks(value any, deadline int64) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		w := valueWriter{yield: yield}
		w.value(value, deadline)
	}
}

// Clone returns a copy of a value, in constant time: see the Clone of each type.
func Clone(value any) any {
	switch v := value.(type) {
	case *String:
		return v.Clone()
	case *List:
		return v.Clone()
	case *Set:
		return v.Clone()
	case *Hash:
		return v.Clone()
	case *zset.Set:
		return v.Clone()
	case *Stream:
		return v.Clone()
	}
	panic(fmt.Sprintf("BUG: a value of type %T", value))
}

// sizeOf returns how many elements a value has; of a stream, what its groups
// have is counted, too.
func sizeOf(value any) int {
	switch v := value.(type) {
	case *String:
		return 1
	case *Stream:
		return v.size()
	}
	return value.(checker).Len()
}

// MayBeEmpty reports whether a key may hold such a value when nothing is in it.
func MayBeEmpty(value any) bool {
	switch value.(type) {
	case *String, *Stream:
		return true
	}
	return false
}

// valueWriter gathers operations and yields them in pieces, or keeps them in
// one if yield is nil.
type valueWriter struct {
	buf   []byte
	yield func([]byte) bool
	done  bool // enough was yielded
}

// full yields the piece if it is long enough, and reports whether to go on.
func (w *valueWriter) full(limit int) bool {
	if w.yield != nil && len(w.buf) >= limit && !w.done {
		w.done = !w.yield(w.buf)
		w.buf = w.buf[:0]
	}
	return !w.done
}

func (w *valueWriter) begin(kind byte, deadline int64) {
	w.buf = append(w.buf, opNew, kind)
	if deadline != 0 {
		w.buf = binary.AppendUvarint(append(w.buf, opDeadline), uint64(deadline))
	}
}

func (w *valueWriter) value(value any, deadline int64) {
	switch v := value.(type) {
	case *String:
		w.begin(kindString, deadline)
		b := v.Content()
		w.buf = appendText(append(w.buf, opString), b[:min(len(b), textChunk)])
		for at := textChunk; at < len(b) && w.full(1); at += textChunk {
			w.buf = binary.AppendUvarint(append(w.buf, opWrite), uint64(at))
			w.buf = appendText(w.buf, b[at:min(len(b), at+textChunk)])
		}
	case *List:
		w.begin(kindList, deadline)
		for b := range v.Forward(0) {
			w.buf = appendText(append(w.buf, opBack), b)
			if !w.full(chunkOps) {
				return
			}
		}
	case *Set:
		w.begin(kindSet, deadline)
		if v.view().shape == listpack {
			w.buf = append(w.buf, opOrdered)
		}
		var buf [20]byte
		for m := range v.Members {
			w.buf = appendText(append(w.buf, opPut), m.view(&buf))
			if !w.full(chunkOps) {
				return
			}
		}
	case *Hash:
		w.begin(kindHash, deadline)
		for field, value := range v.All() {
			w.buf = appendText(append(w.buf, opPut), field)
			w.buf = appendText(w.buf, value)
			if !w.full(chunkOps) {
				return
			}
		}
		w.deadlines(v.Deadlines())
	case *zset.Set:
		w.begin(kindZset, deadline)
		for member, score := range v.All() {
			w.buf = appendText(append(w.buf, opPut), member)
			w.buf = appendScore(w.buf, score)
			if !w.full(chunkOps) {
				return
			}
		}
		w.deadlines(v.Deadlines())
	case *Stream:
		w.begin(kindStream, deadline)
		w.stream(v)
	default:
		panic(fmt.Sprintf("BUG: a value of type %T", value))
	}
	w.full(1)
}

// deadlines writes those of members or fields, of which there may be none.
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

// ErrOperations is returned for operations that make no sense. Since records
// carry checksums, they were written so: by a newer version, or by a bug.
var ErrOperations = errors.New("operations that make no sense")

// Builder puts a value together from operations. The zero value, with Limits,
// is ready to use.
type Builder struct {
	Limits *Limits

	value     any
	deadline  int64
	elements  []zset.Element // of a new sorted set, while all it gets is elements; members are parts of copies of operations
	gathering bool           // elements has them, not value
}

// Value returns the value and its deadline, nil if there is none, and makes the
// builder forget it. An error says that the value is one that cannot be.
func (b *Builder) Value() (value any, deadline int64, err error) {
	b.load()
	value, deadline = b.value, b.deadline
	b.value, b.deadline = nil, 0
	switch v := value.(type) {
	case nil:
		return nil, deadline, nil
	case *List:
		v.Fit(b.Limits)
	case *Stream:
		v.observe(nil)
	}
	if !MayBeEmpty(value) && sizeOf(value) == 0 {
		return nil, 0, fmt.Errorf("%w: they leave an empty %T", ErrOperations, value)
	}
	return value, deadline, nil
}

// load makes a sorted set of the elements so far.
func (b *Builder) load() {
	if s, ok := b.value.(*zset.Set); ok && b.gathering {
		*s = *zset.Load(b.elements)
	}
	b.drop()
}

// drop forgets the elements so far.
func (b *Builder) drop() {
	clear(b.elements)
	b.elements, b.gathering = b.elements[:0], false
}

// operands reads what follows an operation's letter.
type operands struct {
	rest []byte
	bad  bool
}

func (o *operands) fail() { o.bad, o.rest = true, nil }

func (o *operands) number() uint64 {
	n, w := binary.Uvarint(o.rest)
	if w <= 0 {
		o.fail()
		return 0
	}
	o.rest = o.rest[w:]
	return n
}

// place reads a place in a list of n elements, or a number of them.
func (o *operands) place(n int) int {
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

// deadline reads the deadline of a member.
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

// Apply carries out operations, of which it keeps nothing. After an error the
// builder is of no use.
func (b *Builder) Apply(ops []byte) error {
	o := operands{rest: ops}
	if b.gathering {
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
		case opGone:
			b.value, b.deadline = nil, 0
			b.drop()
		case opDeadline:
			b.deadline = int64(o.number())
			ok = b.value != nil && b.deadline >= 0
		default:
			ok = b.change(op, &o)
		}
		if o.bad || !ok {
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
	b.drop()
	switch o.rest[0] {
	case kindString:
		b.value = NewString(nil)
	case kindList:
		b.value = new(List)
	case kindSet:
		b.value = new(Set)
	case kindHash:
		b.value = new(Hash)
	case kindZset:
		b.value = new(zset.Set)
		b.gathering = true
		o.rest = slices.Clone(o.rest) // elements has parts of it
	case kindStream:
		b.value = new(Stream)
	default:
		return false
	}
	o.rest = o.rest[1:]
	return true
}

// change carries out an operation on the value, and reports whether the value
// is of a kind that has it.
func (b *Builder) change(op byte, o *operands) bool {
	switch v := b.value.(type) {
	case *String:
		return v.replay(op, o)
	case *List:
		return v.replay(op, o)
	case *Set:
		return v.replay(op, o, b.Limits)
	case *Hash:
		return v.replay(op, o, b.Limits)
	case *Stream:
		return v.replay(op, o)
	case *zset.Set:
		if op == opPut && b.gathering {
			member := viewOf(o.text())
			b.elements = append(b.elements, zset.Element{Member: member, Score: o.score()})
			return true
		}
		b.load()
		return replaySorted(v, op, o)
	}
	return false
}

func (s *String) replay(op byte, o *operands) bool {
	switch op {
	case opString:
		s.box().set(o.text())
		s.e.flags &^= stringFlags
	case opWrite:
		offset, text := o.number(), o.text()
		if o.bad || offset > uint64(s.Len()+maxGap) {
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

// maxGap is how many zero bytes an operation may put into a string. Where there
// are more, the string is written as a whole: it is large enough to be pinned.
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
		i, text := o.place(l.n), o.text()
		if o.bad || op == opIndex && i == l.n {
			return false
		}
		if op == opIndex {
			l.Set(i, text)
		} else {
			l.Insert(i, text)
		}
	case opCut:
		i := o.place(l.n)
		n := o.place(l.n - i)
		if o.bad {
			return false
		}
		l.Delete(i, n)
	case opMatching:
		n, text := o.signed(), o.text()
		if !o.bad {
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
		if at := o.deadline(); !o.bad {
			h.SetDeadlineBytes(field, at)
		}
	default:
		return false
	}
	return true
}

func replaySorted(s *zset.Set, op byte, o *operands) bool {
	switch op {
	case opPut:
		member := o.text()
		if score := o.score(); !o.bad {
			s.AddIfBytes(member, score, 0)
		}
	case opRemove:
		s.RemoveBytes(o.text())
	case opMember:
		member := o.text()
		if at := o.deadline(); !o.bad {
			s.SetDeadlineBytes(member, at)
		}
	case opClear:
		s.Clear()
	default:
		return false
	}
	return true
}

// Record is a record of a journal: what happened to a key.
type Record struct {
	Space      uint64
	Key        []byte
	Operations []byte
}

// NextRecord splits the first record from a chunk of a journal.
func NextRecord(chunk []byte) (r Record, rest []byte, err error) {
	o := operands{rest: chunk}
	r.Space, r.Key, r.Operations = o.number(), o.text(), o.text()
	if o.bad {
		return Record{}, nil, fmt.Errorf("%w: no record", ErrOperations)
	}
	return r, o.rest, nil
}

// Anew reports whether the operations of a record do not depend on what the key
// had before.
func Anew(ops []byte) bool { return len(ops) > 0 && (ops[0] == opNew || ops[0] == opGone) }

// Restore puts a value, as a Builder has made it, under a key that must not
// exist. Nobody is told of it, and the journal does not have it.
func (db *DB) Restore(key string, value any, deadline int64) {
	e := newEntry(key, value, deadline != 0)
	e.setDeadline(deadline)
	e.access = db.ks.firstAccess()
	db.insert(e)
	db.hold(int64(e.weight()))
	if x := db.indexed(); x != nil {
		x.add(e.Key())
	}
	if deadline != 0 {
		db.setDeadline(e.Key(), deadline)
	}
	db.schedule(e)
}

// Forget writes into the journal that there is no such key, as if it had been
// removed.
func (db *DB) Forget(key string) {
	if db.ks.rec != nil {
		db.ks.rec.record(db.space, key, []byte{opGone})
	}
}
