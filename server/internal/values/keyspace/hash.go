package keyspace

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unsafe"

	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/packed"
	"github.com/zsetd/zsetd/zset"
	"github.com/zsetd/zsetd/zset/table"
)

// Hash is a map from fields to values. The zero value is an empty hash, ready to
// use. A Hash is not safe for concurrent use, except that a clone and its original
// are independent.
//
// A small hash is an array of length-prefixed pairs, as a listpack in Redis: fields with
// deadlines, the next to expire first, and then the others in insertion order. Of fields
// with equal deadlines the last to receive it comes first. A larger hash is a hash table.
// It never returns to the small encoding. A field in the table and its value are one allocation, the
// value behind the field, and the table maps the field to the length of the value: the garbage
// collector marks half of the objects.
//
//	pairs  length field │ length value │ length field │ length value │ …
//
// A pair takes two bytes more than its texts, where two strings would take 32 bytes
// and two allocations. A small hash with few bytes is embedded in its entry (see
// Entry): the same memory viewed as a Hash. An embedded hash is changed by
// [DB.SetField] and [DB.DeleteField], or after [DB.Unpacked] converted it to a
// separate one, which has methods for changes.
//
// Texts that a hash returns are slices of its memory and valid until it changes.
// Those of a clone stay valid when the original changes.
//
// Invariants (Hash.Check): fields are distinct; n is the number of pairs, or the
// memory of all texts in the table; every field with a deadline exists; those of a small
// hash come first, ordered by deadline; an embedded hash fits in its entry.
type Hash struct {
	e Entry       // header of the entry that contains the hash
	o *hashObject // state of a separate hash; nil if the hash is empty
}

// hashObject is the state of a hash that is not embedded in an entry.
type hashObject struct {
	pairs     []byte            // unless there is a table
	n         int               // number of pairs; for a table: memory of its texts in bytes
	table     *table.Table[int] // or nil
	deadlines *zset.Set         // fields by deadline, or nil
	log       *journal.Log      // receives all changes; may be nil
	shared    bool              // pairs is shared with a clone: copied before a write
	timed     bool              // a field has had a deadline, or a command tried to give it one
}

const (
	pairsHeader    = 2    // bytes of the size of the pairs in a packed entry
	maxPackedEntry = 1024 // maximum bytes of a packed entry with pairs
	maxPackedPairs = 255  // maximum number of pairs in a packed entry

	// minPackedValue is the minimum number of bytes for the pairs in a packed entry: a
	// smaller allocation could not be viewed as a Hash.
	minPackedValue = int(unsafe.Sizeof(Hash{})) - headerSize
)

// inEntry reports whether h is embedded in an entry.
func (h *Hash) inEntry() bool { return h.e.words != 0 }

// object returns the state for writing. It panics for an embedded hash.
func (h *Hash) object() *hashObject {
	if h.inEntry() || h.e.state == stale {
		panic("BUG: write to an embedded or stale hash")
	}
	if h.o == nil {
		h.o = new(hashObject)
	}
	return h.o
}

func (e *Entry) pairsSize() int {
	p := e.bytesAt(headerSize+int(e.keyLen), pairsHeader)
	return int(p[0]) | int(p[1])<<8
}

func (e *Entry) setPairsSize(n int) {
	p := e.bytesAt(headerSize+int(e.keyLen), pairsHeader)
	p[0], p[1] = byte(n), byte(n>>8)
}

// pairs returns the pairs of a hash embedded in e; the free space follows within
// the capacity.
func (e *Entry) pairs() []byte {
	value := e.bytesAt(headerSize+int(e.keyLen), e.valueCapacity())
	return value[pairsHeader : pairsHeader+e.pairsSize()]
}

// smallPairs returns the pairs, or nil if there is a table.
func (h *Hash) smallPairs() []byte {
	switch {
	case h.inEntry():
		return h.e.pairs()
	case h.o != nil:
		return h.o.pairs
	}
	return nil
}

// Table returns the hash table of a large hash, or nil. Its owner alone changes it.
func (h *Hash) Table() *table.Table[int] {
	if h.inEntry() || h.o == nil {
		return nil
	}
	return h.o.table
}

// packs reports whether the hash can be embedded in an entry with a key of the
// given length.
func (h *Hash) packs(key int) bool {
	switch {
	case h.inEntry():
		return packsPairs(key, h.e.pairsSize())
	case h.o == nil:
		return packsPairs(key, 0)
	}
	return h.o.table == nil && !h.o.timed && h.o.n <= maxPackedPairs && packsPairs(key, len(h.o.pairs))
}

func packsPairs(key, pairs int) bool {
	return key <= packedStringMax && headerSize+key+pairsHeader+pairs+deadlineSize <= maxPackedEntry
}

// entry returns a packed entry with the pairs of h. h must not be used afterwards.
func (h *Hash) entry(key string, timed bool) *Entry {
	e := newPackedPairs(isHash, key, len(h.smallPairs()), timed)
	e.valueLen = uint8(h.Len())
	e.setPairsSize(copy(e.pairs()[:len(h.smallPairs())], h.smallPairs()))
	if !h.inEntry() {
		h.e.state, h.o = stale, nil
	}
	return e
}

// newPackedPairs returns an entry with an empty embedded value of a kind, isHash or isSet,
// and capacity bytes for its pairs or members.
func newPackedPairs(kind uint8, key string, capacity int, timed bool) *Entry {
	e := allocate(key, max(pairsHeader+capacity, minPackedValue), timed)
	e.flags = kind | packedLayout
	return e
}

// AddHash is Add for an empty hash with capacity bytes for pairs.
func (db *DB) AddHash(key []byte, capacity int) *Entry {
	if !packsPairs(len(key), 0) {
		return db.Add(key, new(Hash))
	}
	capacity = min(capacity, maxPackedEntry-deadlineSize-pairsHeader-headerSize-len(key))
	return db.add(newPackedPairs(isHash, packed.View(key), capacity, false))
}

// PairSize returns the number of bytes of a pair in a small hash.
func PairSize(field, value []byte) int {
	return packed.TextSize(len(field)) + packed.TextSize(len(value))
}

// Unpacked converts the embedded hash or set of e to a separate value, which has
// methods for changes. It returns the current entry. O(Len).
func (db *DB) Unpacked(e *Entry) *Entry {
	if !e.packed() || e.kind() == isString {
		return e
	}
	n := newBoxed(e.Key())
	n.setValue(Clone(e.Value()))
	e = db.relocate(e, n)
	if open := e.open(); open != 0 {
		attach(e.Value(), db.ks.rec.open[open-1])
	}
	db.noteEdited(e)
	return e
}

// changesOf returns the changes of the entry that the recorder collects, or nil if it
// does not record.
func (db *DB) changesOf(e *Entry) *journal.Log {
	if e.state == stale {
		panic("BUG: a stale entry is changed")
	}
	if open := e.open(); open != 0 {
		return &db.ks.rec.open[open-1].Log
	}
	return nil
}

// SetField sets a field of the hash of e to copies of field and value. It returns
// the current entry, and whether the field is new. O(1); in a small hash O(Len),
// without an allocation if the entry has space.
func (db *DB) SetField(e *Entry, field, value []byte) (now *Entry, added bool) {
	if e.packed() {
		l := &db.ks.Limits
		p := e.pairs()
		at, end := packed.FindField(p, packed.View(field))
		added = at < 0
		size := len(p) + packed.Growth(at, end, field, value)
		n := int(e.valueLen)
		if added {
			n++
		}
		if n <= min(maxPackedPairs, l.HashMaxListpackEntries) && max(len(field), len(value)) <= l.HashMaxListpackValue &&
			packsPairs(int(e.keyLen), size) {
			if log := db.changesOf(e); log != nil {
				log.Put(packed.View(field))
				log.Bytes(value)
			}
			if size > cap(p) {
				e = db.relocate(e, e.resized(pairsHeader+size, e.volatile()))
				p = e.pairs()
			}
			packed.SetPair(p, at, end, field, value)
			e.setPairsSize(size)
			db.resize(e, n)
			return e, added
		}
		e = db.Unpacked(e)
	}
	return e, e.Value().(*Hash).Set(field, value, &db.ks.Limits)
}

// DeleteField removes a field from the hash of e. It returns the current entry, and
// whether the field existed. O(1) in a table, O(Len) in a small hash.
func (db *DB) DeleteField(e *Entry, field []byte) (now *Entry, ok bool) {
	if !e.packed() {
		return e, e.Value().(*Hash).Delete(field)
	}
	p := e.pairs()
	at, end := packed.FindField(p, packed.View(field))
	if at < 0 {
		return e, false
	}
	if log := db.changesOf(e); log != nil {
		log.Remove(packed.View(field))
	}
	size := len(packed.RemovePair(p, at, end, field))
	e.setPairsSize(size)
	db.resize(e, int(e.valueLen)-1)
	if capacity := cap(p); capacity > 64 && size < capacity/2 && e.valueLen > 0 {
		e = db.relocate(e, e.resized(pairsHeader+size, e.volatile()))
	}
	return e, true
}

// Len returns the number of fields. O(1).
func (h *Hash) Len() int {
	switch {
	case h.inEntry():
		return int(h.e.valueLen)
	case h.o == nil:
		return 0
	case h.o.table != nil:
		return h.o.table.Len()
	}
	return h.o.n
}

// Get returns the value of a field, valid until the hash changes. O(1); in a small
// hash O(Len).
func (h *Hash) Get(field []byte) (string, bool) {
	if t := h.Table(); t != nil {
		field, n, ok := t.Find(packed.View(field))
		return valueBehind(field, n), ok
	}
	p := h.smallPairs()
	at, _ := packed.FindField(p, packed.View(field))
	if at < 0 {
		return "", false
	}
	text, _ := packed.ReadText(p, at)
	return packed.View(text), true
}

// Set sets a field to copies of field and value, and reports whether the field is
// new. O(1); in a small hash O(Len).
func (h *Hash) Set(field, value []byte, l *Limits) (added bool) {
	o := h.object()
	if o.log != nil {
		o.log.Put(packed.View(field))
		o.log.Bytes(value)
		if o.deadlines != nil && o.log.Followed { // in Redis, setting the value removes the deadline
			if at, _ := h.DeadlineBytes(field); at != 0 {
				o.log.Deadline(packed.View(field), at)
			}
		}
	}
	tooLong := len(field) > l.HashMaxListpackValue || len(value) > l.HashMaxListpackValue
	if o.table == nil && (tooLong || o.n > l.HashMaxListpackEntries) { // the limit may have been lowered
		o.grow()
	}
	if o.table == nil {
		at, end := packed.FindField(o.pairs, packed.View(field))
		if at >= 0 || o.n < l.HashMaxListpackEntries {
			o.prepareWrite(packed.Growth(at, end, field, value))
			o.pairs = packed.SetPair(o.pairs, at, end, field, value)
			if at < 0 {
				o.n++
			}
			return at < 0
		}
		o.grow()
	}
	return o.put(packed.View(field), packed.View(value))
}

// put sets a field in the table to copies of field and value, and reports whether it is new.
func (o *hashObject) put(field, value string) (added bool) {
	b := append(append(make([]byte, 0, len(field)+len(value)), field...), value...)
	old, replaced := o.table.Put(unsafe.String(unsafe.SliceData(b), len(field)), len(value))
	o.n += packed.Allocated(len(b))
	if replaced {
		o.n -= packed.Allocated(len(field) + old)
	}
	return !replaced
}

// valueBehind returns the value of n bytes behind a field in the table.
func valueBehind(field string, n int) string {
	if n == 0 {
		return "" // the end of the field may be that of its memory
	}
	return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(unsafe.StringData(field)), len(field))), n)
}

// prepareWrite prepares pairs for writing: it copies shared pairs, and ensures capacity for
// more additional bytes.
func (o *hashObject) prepareWrite(more int) {
	if size := len(o.pairs) + max(more, 0); o.shared || size > cap(o.pairs) {
		o.pairs = append(append([]byte(nil), make([]byte, size+size/16)...)[:0], o.pairs...)
		o.shared = false
	}
}

// grow converts the pairs to a table.
func (o *hashObject) grow() {
	pairs := o.pairs
	o.table = new(table.Table[int])
	o.pairs, o.n, o.shared = nil, 0, false
	packed.EachPair(pairs, func(field, value string) bool {
		o.put(field, value)
		return true
	})
}

// Delete removes a field and reports whether it existed. O(1) in a table, O(Len) in
// a small hash.
func (h *Hash) Delete(field []byte) bool {
	o := h.object()
	if o.table != nil {
		n, ok := o.table.DeleteBytes(field)
		if !ok {
			return false
		}
		o.n -= packed.Allocated(len(field) + n)
	} else {
		at, end := packed.FindField(o.pairs, packed.View(field))
		if at < 0 {
			return false
		}
		o.prepareWrite(0)
		o.pairs = packed.RemovePair(o.pairs, at, end, field)
		o.n--
		if size := len(o.pairs); cap(o.pairs) > 64 && size < cap(o.pairs)/2 {
			o.pairs = append([]byte(nil), o.pairs...)
		}
	}
	if o.deadlines != nil {
		o.dropDeadline(field)
	}
	if o.log != nil {
		o.log.Remove(packed.View(field))
	}
	return true
}

// SetDeadlineBytes sets the deadline of a field, in milliseconds since 1970 and at
// most zset.MaxDeadline; 0 removes it. It returns the previous deadline, 0 for
// none, and whether the field exists. Setting the value keeps the deadline;
// deleting the field removes it. In a small hash the field moves to its place. O(log n),
// in a small hash O(n).
func (h *Hash) SetDeadlineBytes(field []byte, at int64) (had int64, ok bool) {
	had, ok = h.DeadlineBytes(field)
	if !ok || at == 0 && had == 0 {
		return had, ok
	}
	o := h.object()
	if at == 0 {
		o.dropDeadline(field)
	} else {
		if o.deadlines == nil {
			o.deadlines = new(zset.Set)
		}
		o.deadlines.Internal().AddIf(field, float64(at), 0)
		o.timed = true
	}
	if o.table == nil {
		o.reorder(field, at)
	}
	if o.log != nil {
		o.log.Deadline(packed.View(field), at)
	}
	return had, true
}

// MarkTimed records that a field may have had a deadline, for Encoding.
func (h *Hash) MarkTimed() { h.object().timed = true }

// reorder moves the pair of a field to its place, after its deadline became at.
func (o *hashObject) reorder(field []byte, at int64) {
	before := o.n - 1
	if at != 0 {
		before = o.deadlines.CountScore(zset.ScoreRange{Min: 0, Max: float64(at), MaxExclusive: true})
	}
	value, end := packed.FindField(o.pairs, packed.View(field))
	o.prepareWrite(0)
	packed.MovePair(o.pairs, value, end, field, before)
}

func (o *hashObject) dropDeadline(field []byte) {
	if _, had := o.deadlines.Internal().Remove(field); had && o.deadlines.Len() == 0 {
		o.deadlines = nil
	}
}

// DeadlineBytes returns the deadline of a field, 0 if it has none, and whether the
// field exists.
func (h *Hash) DeadlineBytes(field []byte) (at int64, ok bool) {
	d := h.Deadlines()
	if _, ok = h.Get(field); !ok || d == nil {
		return 0, ok
	}
	score, _ := d.Internal().Score(field)
	return int64(score), true
}

// Deadlines returns a set of the fields that have deadlines, with these as scores,
// or nil. The caller must not modify it. It is valid until the hash changes.
func (h *Hash) Deadlines() *zset.Set {
	if h.inEntry() || h.o == nil {
		return nil
	}
	return h.o.deadlines
}

// Timed yields the fields with deadlines in an order in which setting these, after all
// values, makes the same order of fields.
func (h *Hash) Timed(yield func(field string, at float64) bool) {
	d := h.Deadlines()
	if d == nil {
		return
	} else if h.Table() != nil {
		d.All()(yield)
		return
	}
	var fields []string
	for field := range h.All() {
		fields = append(fields, field)
	}
	for _, field := range slices.Backward(fields[:d.Len()]) {
		if at, _ := d.Score(field); !yield(field, at) {
			return
		}
	}
}

// expire removes at most limit fields with a deadline before now, in the order of
// their deadlines. It calls gone for each and returns their number.
func (h *Hash) expire(now int64, limit int, gone func(field string)) int {
	n := 0
	for ; n < limit && h.Deadlines() != nil; n++ {
		first, _ := h.o.deadlines.First()
		if int64(first.Score) >= now {
			break
		}
		field := strings.Clone(first.Member) // Delete may overwrite the member
		gone(field)
		h.Delete(packed.Bytes(field))
	}
	return n
}

// All yields fields and values, of a small hash in its order. The hash must
// not be modified during the iteration.
func (h *Hash) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) { h.each(yield) }
}

// each is separate from All so that All can be inlined; a range over All then does
// not allocate.
func (h *Hash) each(yield func(string, string) bool) {
	if t := h.Table(); t != nil {
		for field, n := range t.All() {
			if !yield(field, valueBehind(field, n)) {
				return
			}
		}
		return
	}
	packed.EachPair(h.smallPairs(), yield)
}

// Scan passes about count fields to yield and returns the next cursor, 0 at the
// end. A field that exists during the whole scan is passed exactly once. A small
// hash is passed in one call. Any cursor value is safe.
func (h *Hash) Scan(cursor uint64, count int, yield func(field, value string)) uint64 {
	if t := h.Table(); t != nil {
		return t.Scan(cursor, count, func(field string, n int) { yield(field, valueBehind(field, n)) })
	}
	for field, value := range h.All() {
		yield(field, value)
	}
	return 0
}

// Random returns a field, with uniform probability, and its value. The hash must
// not be empty. O(1), in a small hash O(Len).
func (h *Hash) Random(r *rand.Rand) (field, value string) {
	if t := h.Table(); t != nil {
		field, n, _ := t.Random(r)
		return field, valueBehind(field, n)
	}
	skip := r.IntN(h.Len())
	for field, value := range h.All() {
		if skip == 0 {
			return field, value
		}
		skip--
	}
	panic("BUG: a hash of fewer fields than it counts")
}

// RandomDistinct yields n distinct random fields, or all if there are at most n.
// Every subset of this size has the same probability. O(n) if n is much smaller
// than Len, else O(Len).
func (h *Hash) RandomDistinct(r *rand.Rand, n int, yield func(field, value string)) {
	switch {
	case n >= h.Len():
		for field, value := range h.All() {
			yield(field, value)
		}
	case n > h.Len()/3 || h.Table() == nil:
		type pair struct{ field, value string }
		all := make([]pair, 0, h.Len())
		for field, value := range h.All() {
			all = append(all, pair{field, value})
		}
		for i := range n { // prefix of a Fisher–Yates shuffle
			j := i + r.IntN(len(all)-i)
			all[i], all[j] = all[j], all[i]
			yield(all[i].field, all[i].value)
		}
	default:
		seen := make(map[string]struct{}, n)
		for len(seen) < n {
			field, value := h.Random(r)
			if _, ok := seen[field]; !ok {
				seen[field] = struct{}{}
				yield(field, value)
			}
		}
	}
}

// Clone returns a separate copy. O(1): the two share memory copy-on-write; an
// embedded hash is copied.
func (h *Hash) Clone() *Hash {
	switch {
	case h.inEntry():
		return &Hash{o: &hashObject{pairs: append([]byte(nil), h.smallPairs()...), n: h.Len()}}
	case h.o == nil:
		return new(Hash)
	}
	c := &hashObject{n: h.o.n, timed: h.o.timed}
	if h.o.deadlines != nil {
		c.deadlines = h.o.deadlines.Clone()
	}
	if h.o.table != nil {
		c.table = h.o.table.Clone()
	} else {
		h.o.shared, c.shared = true, true
		c.pairs = h.o.pairs
	}
	return &Hash{o: c}
}

// Encoding returns the encoding for OBJECT ENCODING: "listpack", "hashtable", or
// "listpackex" once a field of a small hash has had a deadline.
func (h *Hash) Encoding(*Limits) string {
	switch {
	case h.Table() != nil:
		return "hashtable"
	case !h.inEntry() && h.o != nil && h.o.timed:
		return "listpackex"
	}
	return "listpack"
}

// Bytes estimates the memory of the hash in bytes, without its entry. O(1).
func (h *Hash) Bytes() int {
	if h.inEntry() {
		return int(h.e.words)*8 - headerSize - int(h.e.keyLen)
	}
	n := int(unsafe.Sizeof(*h))
	if h.o == nil {
		return n
	}
	n += int(unsafe.Sizeof(*h.o)) + cap(h.o.pairs)
	if h.o.deadlines != nil {
		n += h.o.deadlines.Bytes()
	}
	if h.o.table == nil {
		return n
	}
	return n + h.o.table.Bytes() + h.o.n
}

// Check verifies the invariants and returns an error if one is violated. For tests.
// O(n).
func (h *Hash) Check() error {
	if d := h.Deadlines(); d != nil {
		if err := d.Check(); err != nil {
			return fmt.Errorf("deadlines: %w", err)
		}
		for field := range d.All() {
			if _, ok := h.Get([]byte(field)); !ok || d.Deadlines() != nil {
				return fmt.Errorf("a deadline of field %q, which does not exist", field)
			}
		}
	}
	if h.Table() != nil {
		if h.o.pairs != nil {
			return fmt.Errorf("hash with a table and %d bytes of pairs", len(h.o.pairs))
		}
		n := 0
		for field, value := range h.All() {
			n += packed.Allocated(len(field) + len(value))
		}
		if n != h.o.n {
			return fmt.Errorf("hash whose texts take %d bytes, counted %d", n, h.o.n)
		}
		return h.o.table.Check()
	}
	if h.inEntry() && (h.e.valueSize() > h.e.valueCapacity() || h.e.pairsSize() != len(h.smallPairs())) {
		return fmt.Errorf("hash of %d bytes in %d", h.e.valueSize(), h.e.valueCapacity())
	}
	var fields []string
	last := int64(0)
	for field := range h.All() {
		at, _ := h.DeadlineBytes(packed.Bytes(field))
		if at == 0 {
			at = math.MaxInt64
		}
		if at < last {
			return fmt.Errorf("field %q with the deadline %d after one with %d", field, at, last)
		}
		fields, last = append(fields, field), at
	}
	slices.Sort(fields)
	if n := len(fields); n != h.Len() || len(slices.Compact(fields)) != n {
		return fmt.Errorf("hash of %d fields, counted %d, in %q", n, h.Len(), h.smallPairs())
	}
	return nil
}
