package keyspace

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"unsafe"

	"github.com/zsetd/zsetd/zset"
	"github.com/zsetd/zsetd/zset/table"
)

// Hash is a map from fields to values. The zero value is an empty hash.
//
// A small hash is a list of pairs in the order in which the fields were added,
// as Redis's listpacks are; a larger one is a hash table. Once a table, it
// stays one.
type Hash struct {
	pairs  []pair    // nil once there is a table
	shared bool      // pairs belong to a clone too
	more   *hashMore // what most small hashes do without, or nil
	log    *changes  // told of what changes; nil for nobody
}

// hashMore is apart so that hashes without deadlines need no room for them.
type hashMore struct {
	table     table.Table[string] // if tabled
	deadlines *zset.Set           // fields by deadline, or nil
	tabled    bool
	timed     bool // there was a deadline once
}

// tabled reports whether there is a table.
func (h *Hash) tabled() bool { return h.more != nil && h.more.tabled }

// extend makes room for what is in more.
func (h *Hash) extend() *hashMore {
	if h.more == nil {
		h.more = new(hashMore)
	}
	return h.more
}

type pair struct{ field, value string }

// Len returns the number of fields.
func (h *Hash) Len() int {
	if h.tabled() {
		return h.more.table.Len()
	}
	return len(h.pairs)
}

// find returns where a field stands in pairs, or -1. O(len(pairs)).
func (h *Hash) find(field []byte) int {
	for i := range h.pairs {
		if h.pairs[i].field == string(field) {
			return i
		}
	}
	return -1
}

// Get returns the value of a field. O(1).
func (h *Hash) Get(field []byte) (string, bool) {
	if h.tabled() {
		return h.more.table.GetBytes(field)
	}
	if i := h.find(field); i >= 0 {
		return h.pairs[i].value, true
	}
	return "", false
}

// Set gives a field a value, copies of both being kept, and reports whether
// the field is new. O(1).
func (h *Hash) Set(field, value []byte, l *Limits) (added bool) {
	if h.log != nil {
		h.log.put(viewOf(field))
		h.log.text(viewOf(value))
	}
	tooLong := len(field) > l.HashMaxListpackValue || len(value) > l.HashMaxListpackValue
	if !h.tabled() && (tooLong || len(h.pairs) > l.HashMaxListpackEntries) { // the limit may have been lowered
		h.grow()
	}
	if h.tabled() {
		_, replaced := h.more.table.SetBytes(field, string(value))
		return !replaced
	}
	if i := h.find(field); i >= 0 {
		h.own()
		h.pairs[i].value = string(value)
		return false
	}
	if len(h.pairs) >= l.HashMaxListpackEntries {
		h.grow()
		h.more.table.SetBytes(field, string(value))
		return true
	}
	h.own()
	h.pairs = append(h.pairs, pair{string(field), string(value)})
	return true
}

// own makes pairs this hash's alone.
func (h *Hash) own() {
	if h.shared {
		h.pairs, h.shared = slices.Clone(h.pairs), false
	}
}

// grow turns the list of pairs into a table.
func (h *Hash) grow() {
	more := h.extend()
	for _, p := range h.pairs {
		more.table.Set(p.field, p.value)
	}
	more.tabled = true
	h.pairs, h.shared = nil, false
}

// Delete removes a field and reports whether it was there. O(1) in a table,
// O(Len) in a small hash.
func (h *Hash) Delete(field []byte) bool {
	if h.tabled() {
		if _, ok := h.more.table.DeleteBytes(field); !ok {
			return false
		}
	} else {
		i := h.find(field)
		if i < 0 {
			return false
		}
		h.own()
		h.pairs = slices.Delete(h.pairs, i, i+1)
	}
	if h.Deadlines() != nil {
		h.dropDeadline(field)
	}
	if h.log != nil {
		h.log.remove(viewOf(field))
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
	if at == 0 {
		h.dropDeadline(field)
	} else {
		more := h.extend()
		if more.deadlines == nil {
			more.deadlines = new(zset.Set)
		}
		more.deadlines.AddIfBytes(field, float64(at), 0)
		more.timed = true
	}
	if h.log != nil {
		h.log.deadline(viewOf(field), at)
	}
	return had, true
}

func (h *Hash) dropDeadline(field []byte) {
	d := h.more.deadlines
	if _, had := d.RemoveBytes(field); had && d.Len() == 0 {
		h.more.deadlines = nil
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
	if h.more == nil {
		return nil
	}
	return h.more.deadlines
}

// expire removes fields whose deadline is before now, the earliest first, at
// most limit of them, and passes each to gone.
func (h *Hash) expire(now int64, limit int, gone func(field string)) int {
	n := 0
	for ; n < limit && h.Deadlines() != nil; n++ {
		first, _ := h.more.deadlines.First()
		if int64(first.Score) >= now {
			break
		}
		gone(first.Member)
		h.Delete(bytesOf(first.Member))
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
	if h.tabled() {
		for field, value := range h.more.table.All() {
			if !yield(field, value) {
				return
			}
		}
		return
	}
	for _, p := range h.pairs {
		if !yield(p.field, p.value) {
			return
		}
	}
}

// Scan yields about count fields from cursor on and returns the cursor to go
// on with, 0 at the end; a small hash is yielded as a whole. Fields that are
// there throughout a scan are all yielded.
func (h *Hash) Scan(cursor uint64, count int, yield func(field, value string)) uint64 {
	if h.tabled() {
		return h.more.table.Scan(cursor, count, yield)
	}
	for _, p := range h.pairs {
		yield(p.field, p.value)
	}
	return 0
}

// Random returns a field, picked uniformly, and its value. The hash must not
// be empty. O(1).
func (h *Hash) Random(r *rand.Rand) (field, value string) {
	if h.tabled() {
		field, value, _ = h.more.table.Random(r)
		return field, value
	}
	p := h.pairs[r.IntN(len(h.pairs))]
	return p.field, p.value
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

// Clone returns a copy that shares everything until one of the two changes.
// O(1).
func (h *Hash) Clone() *Hash {
	c := &Hash{}
	if h.more != nil {
		c.more = &hashMore{tabled: h.more.tabled, timed: h.more.timed}
		if h.more.deadlines != nil {
			c.more.deadlines = h.more.deadlines.Clone()
		}
		if h.tabled() {
			c.more.table = *h.more.table.Clone()
			return c
		}
	}
	h.shared = true
	c.pairs, c.shared = h.pairs, true
	return c
}

// Encoding returns what OBJECT ENCODING says: listpack or hashtable, or
// listpackex, once a field of a small hash has had a deadline.
func (h *Hash) Encoding(*Limits) string {
	switch {
	case h.tabled():
		return "hashtable"
	case h.more != nil && h.more.timed:
		return "listpackex"
	}
	return "listpack"
}

// Bytes returns an estimate of the memory that the hash takes.
func (h *Hash) Bytes() int {
	n := int(unsafe.Sizeof(*h))
	if h.more != nil {
		n += int(unsafe.Sizeof(*h.more))
	}
	if h.tabled() {
		n += h.more.table.Bytes()
	} else {
		n += cap(h.pairs) * 32
	}
	if d := h.Deadlines(); d != nil {
		n += d.Bytes()
	}
	// The texts, judged by the first of them.
	const sample = 16
	seen, bytes := 0, 0
	for field, value := range h.All() {
		bytes += len(field) + len(value)
		if seen++; seen == sample {
			break
		}
	}
	if seen > 0 {
		n += bytes * h.Len() / seen
	}
	return n
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
		if h.pairs != nil {
			return fmt.Errorf("hash with a table and %d pairs", len(h.pairs))
		}
		return h.more.table.Check()
	}
	fields := make([]string, 0, len(h.pairs))
	for _, p := range h.pairs {
		fields = append(fields, p.field)
	}
	slices.SortFunc(fields, strings.Compare)
	if len(slices.Compact(fields)) != len(h.pairs) {
		return fmt.Errorf("hash with a field that stands twice in %q", h.pairs)
	}
	return nil
}
