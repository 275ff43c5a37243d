package keyspace

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"unsafe"

	"github.com/zsetd/zsetd/zset"
	"github.com/zsetd/zsetd/zset/table"
)

// Hash is a map from fields to values. The zero value is an empty hash.
//
// A small hash is a sequence of pairs in the order in which the fields were added,
// as Redis's listpacks are; a larger one is a hash table. Once a table, it
// stays one.
//
// The pairs of a small hash stand in one sequence of bytes, each text with its
// length before it: two bytes more than the texts have, where two strings would
// cost 32 and two allocations. If they are few, that sequence is a part of the
// entry (see Entry), and the hash is the entry in another role: that one is
// changed by [DB.SetField] and [DB.DeleteField], or when [DB.Unpacked] has made it
// one like those that are in no entry, with methods to change them.
//
// So texts that a hash hands out are views of it: good until it is changed. Those
// of a clone are not touched by changes of the original.
type Hash struct {
	e Entry       // if it is a part of its entry
	o *hashObject // if it is not; nil if it is empty
}

// hashObject is what a hash has that is not a part of its entry.
type hashObject struct {
	pairs     []byte               // unless there is a table
	n         int                  // of them; with a table: the bytes that its texts take
	table     *table.Table[string] // or nil
	deadlines *zset.Set            // fields by deadline, or nil
	log       *changes             // told of what changes; nil for nobody
	shared    bool                 // pairs belong to a clone too
	timed     bool                 // there was a deadline once
}

const (
	pairsHead   = 2    // the bytes that say how long the pairs of a packed entry are
	packedPairs = 1024 // an entry with more bytes is not packed
	maxPacked   = 255  // nor one of more fields

	// leastHash is how many bytes a packed entry has for its pairs at least: one of
	// another size could not be seen as a Hash.
	leastHash = int(unsafe.Sizeof(Hash{})) - headSize
)

// inEntry reports whether h is the role of an entry.
func (h *Hash) inEntry() bool { return h.e.units != 0 }

// object makes h ready to be changed.
func (h *Hash) object() *hashObject {
	if h.inEntry() || h.e.state == stale {
		panic("BUG: a hash is changed otherwise than by its entry")
	}
	if h.o == nil {
		h.o = new(hashObject)
	}
	return h.o
}

func (e *Entry) pairsSize() int {
	p := (*[pairsHead]byte)(e.at(headSize + int(e.klen)))
	return int(p[0]) | int(p[1])<<8
}

func (e *Entry) setPairsSize(n int) {
	p := (*[pairsHead]byte)(e.at(headSize + int(e.klen)))
	p[0], p[1] = byte(n), byte(n>>8)
}

// pairs returns the pairs of a hash that is packed in e, and the room behind them.
func (e *Entry) pairs() []byte {
	room := unsafe.Slice((*byte)(e.at(headSize+int(e.klen))), e.space())
	return room[pairsHead : pairsHead+e.pairsSize()]
}

// small returns the pairs, if there is no table.
func (h *Hash) small() []byte {
	switch {
	case h.inEntry():
		return h.e.pairs()
	case h.o != nil:
		return h.o.pairs
	}
	return nil
}

// table returns the table, nil if there is none.
func (h *Hash) table() *table.Table[string] {
	if h.inEntry() || h.o == nil {
		return nil
	}
	return h.o.table
}

// tabled reports whether there is a table.
func (h *Hash) tabled() bool { return h.table() != nil }

// textSize returns what a text of n bytes takes among pairs.
func textSize(n int) int { return n + (bits.Len(uint(n|1))+6)/7 }

// readText returns the text that begins at p[at], and where the next one does.
func readText(p []byte, at int) (text []byte, next int) {
	n := int(p[at])
	at++
	if n >= 0x80 {
		long, w := binary.Uvarint(p[at-1:])
		n = int(long)
		at += w - 1
	}
	return p[at : at+n : at+n], at + n
}

// findField returns where in p the value of a field begins, and where it ends; -1
// if there is no such field.
func findField(p []byte, field string) (value, end int) {
	for at := 0; at < len(p); {
		text, value := readText(p, at)
		_, end := readText(p, value)
		if string(text) == field {
			return value, end
		}
		at = end
	}
	return -1, -1
}

// splice puts a text in the place of p[at:end]. p has room for it.
func splice(p []byte, at, end int, text []byte) []byte {
	size := textSize(len(text))
	now := p[:len(p)+size-(end-at)]
	if size != end-at {
		copy(now[at+size:], p[end:])
	}
	appendText(now[:at], text)
	return now
}

// setPair gives a field, whose value stands at p[value:end], another one; or adds it
// if value is -1. p has room for it.
func setPair(p []byte, value, end int, field, to []byte) []byte {
	if value < 0 {
		return appendText(appendText(p, field), to)
	}
	return splice(p, value, end, to)
}

// growth returns how many bytes more setPair takes.
func growth(value, end int, field, to []byte) int {
	if value < 0 {
		return textSize(len(field)) + textSize(len(to))
	}
	return textSize(len(to)) - (end - value)
}

// cutPair removes the pair of a field whose value stands at p[value:end].
func cutPair(p []byte, value, end int, field []byte) []byte {
	at := value - textSize(len(field))
	return append(p[:at], p[end:]...)
}

// packs reports whether a hash can be a part of an entry.
func (h *Hash) packs(key int) bool {
	switch {
	case h.inEntry():
		return packsPairs(key, h.e.pairsSize())
	case h.o == nil:
		return packsPairs(key, 0)
	}
	return h.o.table == nil && !h.o.timed && h.o.n <= maxPacked && packsPairs(key, len(h.o.pairs))
}

func packsPairs(key, pairs int) bool {
	return key <= packedMax && headSize+key+pairsHead+pairs+deadlineSize <= packedPairs
}

// entry makes a packed entry of h, which must not be used any more then.
func (h *Hash) entry(key string, timed bool) *Entry {
	e := newPackedHash(key, len(h.small()), timed)
	e.vlen = uint8(h.Len())
	e.setPairsSize(copy(e.pairs()[:len(h.small())], h.small()))
	if !h.inEntry() {
		h.e.state, h.o = stale, nil
	}
	return e
}

// newPackedHash returns an entry of an empty hash with room for pairs.
func newPackedHash(key string, room int, timed bool) *Entry {
	e := allocate(key, max(pairsHead+room, leastHash), timed)
	e.flags = isHash | packedLayout
	return e
}

// AddHash is Add of an empty hash with room for pairs of so many bytes together.
func (db *DB) AddHash(key []byte, room int) *Entry {
	if !packsPairs(len(key), 0) {
		return db.Add(key, new(Hash))
	}
	room = min(room, packedPairs-deadlineSize-pairsHead-headSize-len(key))
	return db.add(newPackedHash(viewOf(key), room, false))
}

// PairSize returns what a field and a value take in a small hash.
func PairSize(field, value []byte) int { return textSize(len(field)) + textSize(len(value)) }

// Unpacked returns e as an entry whose value can be changed by its own methods: a
// hash or set that is a part of its entry is taken out of it. O(Len).
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

// told returns who is told of what changes in a packed hash, nil if nobody is.
func (db *DB) told(e *Entry) *changes {
	if e.state == stale {
		panic("BUG: a stale entry is changed")
	}
	if open := e.open(); open != 0 {
		return db.ks.rec.open[open-1]
	}
	return nil
}

// SetField gives a field of the hash of e a value, copies of both being kept, and
// returns the entry as it is now, and whether the field is new. O(1); in a small
// hash O(Len), without an allocation if the value has the length of the old one,
// or there is room.
func (db *DB) SetField(e *Entry, field, value []byte) (now *Entry, added bool) {
	if e.packed() {
		l := &db.ks.Limits
		p := e.pairs()
		at, end := findField(p, viewOf(field))
		added = at < 0
		size := len(p) + growth(at, end, field, value)
		n := int(e.vlen)
		if added {
			n++
		}
		if n <= min(maxPacked, l.HashMaxListpackEntries) && max(len(field), len(value)) <= l.HashMaxListpackValue &&
			packsPairs(int(e.klen), size) {
			if log := db.told(e); log != nil {
				log.put(viewOf(field))
				log.text(viewOf(value))
			}
			if size > cap(p) {
				e = db.relocate(e, e.resized(pairsHead+size, e.volatile()))
				p = e.pairs()
			}
			setPair(p, at, end, field, value)
			e.setPairsSize(size)
			e.vlen = uint8(n)
			return e, added
		}
		e = db.Unpacked(e)
	}
	return e, e.Value().(*Hash).Set(field, value, &db.ks.Limits)
}

// DeleteField removes a field from the hash of e, and returns the entry as it is
// now, and whether the field was there. O(1) in a table, O(Len) in a small hash.
func (db *DB) DeleteField(e *Entry, field []byte) (now *Entry, ok bool) {
	if !e.packed() {
		return e, e.Value().(*Hash).Delete(field)
	}
	p := e.pairs()
	at, end := findField(p, viewOf(field))
	if at < 0 {
		return e, false
	}
	if log := db.told(e); log != nil {
		log.remove(viewOf(field))
	}
	size := len(cutPair(p, at, end, field))
	e.setPairsSize(size)
	e.vlen--
	if room := cap(p); room > 64 && size < room/2 && e.vlen > 0 {
		e = db.relocate(e, e.resized(pairsHead+size, e.volatile()))
	}
	return e, true
}

// Len returns the number of fields.
func (h *Hash) Len() int {
	switch {
	case h.inEntry():
		return int(h.e.vlen)
	case h.o == nil:
		return 0
	case h.o.table != nil:
		return h.o.table.Len()
	}
	return h.o.n
}

// Get returns the value of a field. O(1).
func (h *Hash) Get(field []byte) (string, bool) {
	if t := h.table(); t != nil {
		return t.GetBytes(field)
	}
	p := h.small()
	at, _ := findField(p, viewOf(field))
	if at < 0 {
		return "", false
	}
	text, _ := readText(p, at)
	return viewOf(text), true
}

// Set gives a field a value, copies of both being kept, and reports whether
// the field is new. O(1).
func (h *Hash) Set(field, value []byte, l *Limits) (added bool) {
	o := h.object()
	if o.log != nil {
		o.log.put(viewOf(field))
		o.log.text(viewOf(value))
	}
	tooLong := len(field) > l.HashMaxListpackValue || len(value) > l.HashMaxListpackValue
	if o.table == nil && (tooLong || o.n > l.HashMaxListpackEntries) { // the limit may have been lowered
		o.grow()
	}
	if o.table == nil {
		at, end := findField(o.pairs, viewOf(field))
		if at >= 0 || o.n < l.HashMaxListpackEntries {
			o.own(growth(at, end, field, value))
			o.pairs = setPair(o.pairs, at, end, field, value)
			if at < 0 {
				o.n++
			}
			return at < 0
		}
		o.grow()
	}
	old, replaced := o.table.SetBytes(field, string(value))
	o.n += allocated(len(value))
	if replaced {
		o.n -= allocated(len(old))
	} else {
		o.n += allocated(len(field))
	}
	return !replaced
}

// own makes pairs this hash's alone, with room for so many bytes more.
func (o *hashObject) own(more int) {
	if size := len(o.pairs) + max(more, 0); o.shared || size > cap(o.pairs) {
		o.pairs = append(append([]byte(nil), make([]byte, size+size/16)...)[:0], o.pairs...)
		o.shared = false
	}
}

// grow turns the pairs into a table.
func (o *hashObject) grow() {
	t, n := new(table.Table[string]), 0
	for at := 0; at < len(o.pairs); {
		var field, value []byte
		field, at = readText(o.pairs, at)
		value, at = readText(o.pairs, at)
		t.Set(string(field), string(value))
		n += allocated(len(field)) + allocated(len(value))
	}
	o.table = t
	o.pairs, o.n, o.shared = nil, n, false
}

// Delete removes a field and reports whether it was there. O(1) in a table,
// O(Len) in a small hash.
func (h *Hash) Delete(field []byte) bool {
	o := h.object()
	if o.table != nil {
		value, ok := o.table.DeleteBytes(field)
		if !ok {
			return false
		}
		o.n -= allocated(len(field)) + allocated(len(value))
	} else {
		at, end := findField(o.pairs, viewOf(field))
		if at < 0 {
			return false
		}
		o.own(0)
		o.pairs = cutPair(o.pairs, at, end, field)
		o.n--
		if size := len(o.pairs); cap(o.pairs) > 64 && size < cap(o.pairs)/2 {
			o.pairs = append([]byte(nil), o.pairs...)
		}
	}
	if o.deadlines != nil {
		o.dropDeadline(field)
	}
	if o.log != nil {
		o.log.remove(viewOf(field))
	}
	return true
}

// SetDeadlineBytes gives a field a deadline, in milliseconds since 1970 and at most
// zset.MaxDeadline, or with 0 takes it away. It returns the one that the field
// had, 0 for none, and whether there is such a field. A value that the field is
// given leaves the deadline alone; it goes with the field. O(log n), in a small
// hash O(n).
func (h *Hash) SetDeadlineBytes(field []byte, at int64) (had int64, ok bool) {
	had, ok = h.DeadlineBytes(field)
	if !ok || had == at {
		return had, ok
	}
	o := h.object()
	if at == 0 {
		o.dropDeadline(field)
	} else {
		if o.deadlines == nil {
			o.deadlines = new(zset.Set)
		}
		o.deadlines.AddIfBytes(field, float64(at), 0)
		o.timed = true
	}
	if o.log != nil {
		o.log.deadline(viewOf(field), at)
	}
	return had, true
}

func (o *hashObject) dropDeadline(field []byte) {
	if _, had := o.deadlines.RemoveBytes(field); had && o.deadlines.Len() == 0 {
		o.deadlines = nil
	}
}

// DeadlineBytes returns the deadline of a field, 0 if it has none, and whether there
// is such a field.
func (h *Hash) DeadlineBytes(field []byte) (at int64, ok bool) {
	d := h.Deadlines()
	if _, ok = h.Get(field); !ok || d == nil {
		return 0, ok
	}
	score, _ := d.ScoreBytes(field)
	return int64(score), true
}

// Deadlines returns the fields that have deadlines, scored by them, or nil. It
// must not be changed, and is good until the hash is.
func (h *Hash) Deadlines() *zset.Set {
	if h.inEntry() || h.o == nil {
		return nil
	}
	return h.o.deadlines
}

// expire removes fields whose deadline is before now, the earliest first, at
// most limit of them, and passes each to gone.
func (h *Hash) expire(now int64, limit int, gone func(field string)) int {
	n := 0
	for ; n < limit && h.Deadlines() != nil; n++ {
		first, _ := h.o.deadlines.First()
		if int64(first.Score) >= now {
			break
		}
		field := strings.Clone(first.Member) // which may be a view of what Delete changes
		gone(field)
		h.Delete(bytesOf(field))
	}
	return n
}

// All yields the fields and their values: a small hash's in the order in which
// they were added. The hash must not be changed meanwhile.
func (h *Hash) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) { h.each(yield) }
}

// each is apart from All, which can so be inlined: a loop over it allocates
// nothing.
func (h *Hash) each(yield func(string, string) bool) {
	if t := h.table(); t != nil {
		for field, value := range t.All() {
			if !yield(field, value) {
				return
			}
		}
		return
	}
	p := h.small()
	for at := 0; at < len(p); {
		var field, value []byte
		field, at = readText(p, at)
		value, at = readText(p, at)
		if !yield(viewOf(field), viewOf(value)) {
			return
		}
	}
}

// Scan yields about count fields from cursor on and returns the cursor to go
// on with, 0 at the end; a small hash is yielded as a whole. Fields that are
// there throughout a scan are all yielded.
func (h *Hash) Scan(cursor uint64, count int, yield func(field, value string)) uint64 {
	if t := h.table(); t != nil {
		return t.Scan(cursor, count, yield)
	}
	for field, value := range h.All() {
		yield(field, value)
	}
	return 0
}

// Random returns a field, picked uniformly, and its value. The hash must not
// be empty. O(1), in a small hash O(Len).
func (h *Hash) Random(r *rand.Rand) (field, value string) {
	if t := h.table(); t != nil {
		field, value, _ = t.Random(r)
		return field, value
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

// RandomDistinct yields n different fields, or all if there are no more,
// picked uniformly. O(n) for an n that is small beside Len, else O(Len).
func (h *Hash) RandomDistinct(r *rand.Rand, n int, yield func(field, value string)) {
	switch {
	case n >= h.Len():
		for field, value := range h.All() {
			yield(field, value)
		}
	case n > h.Len()/3 || !h.tabled():
		type pair struct{ field, value string }
		all := make([]pair, 0, h.Len())
		for field, value := range h.All() {
			all = append(all, pair{field, value})
		}
		for i := range n { // the beginning of a Fisher–Yates shuffle
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

// Clone returns a copy, which is in no entry. It shares everything until one of the
// two changes, but for what is a part of an entry. O(1).
func (h *Hash) Clone() *Hash {
	switch {
	case h.inEntry():
		return &Hash{o: &hashObject{pairs: append([]byte(nil), h.small()...), n: h.Len()}}
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

// Encoding returns what OBJECT ENCODING says: listpack or hashtable, or
// listpackex, once a field of a small hash has had a deadline.
func (h *Hash) Encoding(*Limits) string {
	switch {
	case h.tabled():
		return "hashtable"
	case !h.inEntry() && h.o != nil && h.o.timed:
		return "listpackex"
	}
	return "listpack"
}

// Bytes returns an estimate of the memory that the hash takes besides its entry.
func (h *Hash) Bytes() int {
	if h.inEntry() {
		return int(h.e.units)*8 - headSize - int(h.e.klen)
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

// Check verifies the invariants.
func (h *Hash) Check() error {
	if d := h.Deadlines(); d != nil {
		if err := d.Check(); err != nil {
			return fmt.Errorf("deadlines: %w", err)
		}
		for field := range d.All() {
			if _, ok := h.Get([]byte(field)); !ok || d.Deadlines() != nil {
				return fmt.Errorf("a deadline of the field %q, which is not there", field)
			}
		}
	}
	if h.tabled() {
		if h.o.pairs != nil {
			return fmt.Errorf("hash with a table and %d bytes of pairs", len(h.o.pairs))
		}
		n := 0
		for field, value := range h.All() {
			n += allocated(len(field)) + allocated(len(value))
		}
		if n != h.o.n {
			return fmt.Errorf("hash whose texts take %d bytes, counted %d", n, h.o.n)
		}
		return h.o.table.Check()
	}
	if h.inEntry() && (h.e.used() > h.e.space() || h.e.pairsSize() != len(h.small())) {
		return fmt.Errorf("hash of %d bytes in %d", h.e.used(), h.e.space())
	}
	var fields []string
	for field := range h.All() {
		fields = append(fields, field)
	}
	slices.Sort(fields)
	if n := len(fields); n != h.Len() || len(slices.Compact(fields)) != n {
		return fmt.Errorf("hash of %d fields, counted %d, in %q", n, h.Len(), h.small())
	}
	return nil
}
