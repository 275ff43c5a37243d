package keyspace

import (
	"fmt"
	"iter"
	"strings"

	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/zset"
)

const (
	// pinAt and pinBytes are the maximum number of elements and bytes of a value
	// that is serialized under the server's lock, which takes a few microseconds.
	pinAt    = 256
	pinBytes = 64 << 10

	// maxGap is the maximum number of zero bytes that an operation may insert into a string.
	// Larger gaps make the string large enough to be pinned, so it is written as a whole.
	maxGap = pinBytes
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
	bytes := bytesIn(v)
	if !large(v, bytes) {
		return nil
	}
	return &Pinned{key: e.Key(), value: Clone(v), deadline: e.Deadline(), bytes: bytes}
}

// large reports whether a value takes too long to be serialized under the server's lock. bytes is
// bytesIn of it.
func large(v any, bytes int) bool { return bytes > pinBytes || sizeOf(v) > pinAt }

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
	if h.Deadlines() != nil {
		w.Deadlines(h.Timed)
	}
}

func writeSorted(w *journal.Writer, s *zset.Set) {
	for member, score := range s.All() {
		w.Buf = journal.AppendText(append(w.Buf, journal.OpPut), member)
		w.Buf = journal.AppendScore(w.Buf, score)
		if !w.Full(journal.ChunkSize) {
			return
		}
	}
	if d := s.Deadlines(); d != nil {
		w.Deadlines(d.All())
	}
}

// Builder constructs a value from operations. The zero value, with Limits, is ready
// to use. A Builder is not safe for concurrent use.
type Builder struct {
	Limits *Limits

	operands journal.Operands // of Apply
	exists   bool
	kind     Kind
	row      kindRow // of the value
	value    any     // nil while the value is in text or sorted
	deadline int64

	text      []byte // a string
	textFlags uint8
	sorted    zset.Loader // a new sorted set
}

// Value returns the value, nil if there is none, and its deadline, and resets the
// builder. The error reports a value that must not exist.
func (b *Builder) Value() (value any, deadline int64, err error) {
	if b.exists && b.kind == KindString {
		b.value = freeString(b.ownText(), b.textFlags)
	}
	b.load()
	value, deadline = b.value, b.deadline
	b.exists, b.value, b.deadline = false, nil, 0
	if value == nil {
		return nil, deadline, nil
	}
	b.row.loaded(value, b.Limits)
	if !MayBeEmpty(value) && b.row.size(value) == 0 {
		return nil, 0, fmt.Errorf("%w: they leave an empty %T", journal.ErrOperations, value)
	}
	return value, deadline, nil
}

// Entry is Value that returns an entry with a copy of key, for [DB.RestoreEntry].
func (b *Builder) Entry(key string) (*Entry, error) {
	if b.exists && b.kind == KindString && packable(len(key), len(b.text)) {
		e := newString(key, b.text, b.deadline != 0)
		e.flags |= b.textFlags
		e.setDeadline(b.deadline)
		b.exists, b.deadline = false, 0
		return e, nil
	}
	value, deadline, err := b.Value()
	if value == nil {
		return nil, err
	}
	return restoredEntry(key, value, deadline), nil
}

// ownText returns the string in memory of its own.
func (b *Builder) ownText() []byte {
	text := b.text
	if len(text) <= pinBytes {
		return append([]byte(nil), text...)
	}
	b.text = nil
	return text
}

// load makes a value of the elements of a new sorted set.
func (b *Builder) load() {
	if b.exists && b.kind == KindZset && b.value == nil {
		b.value = b.sorted.Set()
	}
}

// Apply executes operations, and does not retain ops. After an error the builder
// must not be used.
func (b *Builder) Apply(ops []byte) error {
	o := &b.operands
	*o = journal.Operands{Rest: ops}
	for len(o.Rest) > 0 {
		op := o.Rest[0]
		at := len(ops) - len(o.Rest)
		o.Rest = o.Rest[1:]
		ok := true
		switch op {
		case journal.OpNew:
			ok = b.begin(o)
		case journal.OpDeleteKey:
			b.discard()
		case journal.OpDeadline:
			b.deadline = int64(o.Number())
			ok = b.exists && b.deadline >= 0
		default:
			ok = b.exists && b.row.replay(b, b.value, op, o)
		}
		if o.Failed || !ok {
			return fmt.Errorf("%w: %q at byte %d, value %v %t", journal.ErrOperations, op, at, b.kind, b.exists)
		}
	}
	return nil
}

// discard discards the value.
func (b *Builder) discard() {
	b.load()
	b.exists, b.value, b.deadline = false, nil, 0
}

func (b *Builder) begin(o *journal.Operands) bool {
	b.discard()
	if len(o.Rest) == 0 {
		return false
	}
	n := strings.IndexByte(kindCodes, o.Rest[0])
	if n < 0 {
		return false
	}
	if kind := Kind(n); kind != b.kind || b.row.replay == nil {
		b.kind, b.row = kind, kind.row()
	}
	b.exists, b.text, b.textFlags = true, b.text[:0], 0
	if b.kind != KindString && b.kind != KindZset {
		b.value = b.row.make()
	}
	o.Rest = o.Rest[1:]
	return true
}

func (b *Builder) replayText(op byte, o *journal.Operands) (ok bool) {
	b.text, ok = o.EditString(op, b.text, maxGap)
	b.textFlags = 0
	if op == journal.OpWrite {
		b.textFlags = editedFlag
	}
	return ok
}

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
func (b *Builder) replaySorted(op byte, o *journal.Operands) bool {
	if op == journal.OpPut && b.value == nil {
		member := o.Text()
		if score := o.Score(); !o.Failed {
			b.sorted.Add(member, score)
		}
		return true
	}
	b.load()
	s := b.value.(*zset.Set)
	switch op {
	case journal.OpPut:
		member := o.Text()
		if score := o.Score(); !o.Failed {
			s.Internal().AddIf(member, score, 0)
		}
	case journal.OpRemove:
		s.Internal().Remove(o.Text())
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

// Restore adds a value from a Builder under a key that must not exist. It calls no
// hooks and writes no journal.
func (db *DB) Restore(key string, value any, deadline int64) {
	db.RestoreEntry(restoredEntry(key, value, deadline), db.Hash(key))
}

// restoredEntry returns an entry with a copy of key.
func restoredEntry(key string, value any, deadline int64) *Entry {
	e := newEntry(key, value, deadline != 0)
	e.setDeadline(deadline)
	return e
}

// Hash returns the hash of a key for [DB.RestoreEntry]. Unlike all other functions of a
// DB it may be called while another goroutine uses the DB.
func (db *DB) Hash(key string) uint64 { return db.entries.hash(key) }

// RestoreEntry is Restore for the entry of a [Builder]. hash is [DB.Hash] of its key.
func (db *DB) RestoreEntry(e *Entry, hash uint64) {
	e.access = db.ks.firstAccess()
	db.insert(e, hash)
	db.count(figures{class: noClass}, e.figures())
	if x := db.slots; x != nil {
		x.Add(e.Key())
	}
	if e.volatile() {
		db.setDeadline(e.Key(), e.Deadline())
	}
	db.schedule(e)
}

// Reserve makes the table of an empty database large enough for a number of keys, once it
// has one. The table shrinks as keys are removed.
func (db *DB) Reserve(keys int) { db.entries.expected = keys }

// Forget records in the journal that a key does not exist.
func (db *DB) Forget(key string) {
	if db.ks.rec != nil {
		db.ks.rec.record(db.space, key, []byte{journal.OpDeleteKey}, 0, nil)
	}
}
