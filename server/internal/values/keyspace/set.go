package keyspace

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/packed"
	"github.com/zsetd/zsetd/zset/table"
)

// Set is a set of byte strings with one of the encodings of Redis: a sorted array
// of integers (intset) while all members are integers and not too many;
// length-prefixed elements in insertion order (listpack) while it is small;
// otherwise a hash table. It never returns to a smaller encoding by itself. The
// zero value is an empty set, ready to use. A Set is not safe for concurrent use,
// except that a clone and its original are independent.
//
// A small set is embedded in its entry: the same memory viewed as a Set. Integers
// then have 2, 4 or 8 bytes each, other members are length-prefixed texts. An
// embedded set is changed by [DB.AddMember] and [DB.RemoveMember], or after
// [DB.Unpacked] converted it to a separate one.
type Set struct {
	e Entry      // header of the entry that contains the set
	o *setObject // state of a separate set; nil if the set is empty
}

// setObject is the state of a set that is not embedded in an entry.
type setObject struct {
	ints     []int64 // members of an intset
	texts    []byte  // members of a listpack
	table    *table.Table[struct{}]
	log      *journal.Log // receives all changes; may be nil
	n        int          // elements in texts; for a table: memory of its texts in bytes
	encoding encoding
	shared   bool // ints or texts is shared with a clone: copied before a write
}

// setView is a read-only view of a set, embedded or not.
type setView struct {
	ints     []int64
	bytes    []byte // texts, or integers of width bytes each
	table    *table.Table[struct{}]
	n        int // number of members, unless there is a table
	width    int
	encoding encoding
}

func (s *Set) view() setView {
	switch {
	case s.inEntry():
		v := setView{bytes: s.e.pairs(), n: int(s.e.valueLen), encoding: listpack}
		if s.e.flags&textsFlag == 0 {
			v.encoding = intset
			v.width = len(v.bytes) / max(v.n, 1)
		}
		return v
	case s.o == nil:
		return setView{}
	}
	v := setView{ints: s.o.ints, bytes: s.o.texts, table: s.o.table, n: s.o.n, encoding: s.o.encoding}
	if v.encoding == intset {
		v.n = len(v.ints)
	}
	return v
}

// number returns integer i.
func (v *setView) number(i int) int64 {
	if v.width == 0 {
		return v.ints[i]
	}
	return packed.ReadInt(v.bytes[i*v.width:], v.width)
}

// search returns the index of n among the integers, or the index at which to insert
// it.
func (v *setView) search(n int64) (i int, found bool) {
	lo, hi := 0, v.n
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); v.number(mid) < n {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < v.n && v.number(lo) == n
}

// inEntry reports whether s is embedded in an entry.
func (s *Set) inEntry() bool { return s.e.words != 0 }

// object returns the state for writing. It panics for an embedded set.
func (s *Set) object() *setObject {
	if s.inEntry() || s.e.state == stale {
		panic("BUG: write to an embedded or stale set")
	}
	if s.o == nil {
		s.o = new(setObject)
	}
	return s.o
}

// packs reports whether the set can be embedded in an entry with a key of the given
// length.
func (s *Set) packs(key int) bool {
	v := s.view()
	return v.encoding != hashtable && v.n <= maxPackedPairs && packsPairs(key, v.size())
}

// size returns the number of bytes of the members in an entry.
func (v *setView) size() int {
	if v.encoding == intset && v.width == 0 && v.n > 0 {
		return v.n * max(packed.IntWidth(v.ints[0]), packed.IntWidth(v.ints[v.n-1]))
	}
	return len(v.bytes)
}

// entry returns a packed entry with the members of s. s must not be used
// afterwards.
func (s *Set) entry(key string, timed bool) *Entry {
	v := s.view()
	e := newPackedPairs(isSet, key, v.size(), timed)
	e.valueLen = uint8(v.n)
	e.setPairsSize(v.size())
	if v.encoding == listpack {
		e.flags |= textsFlag
	}
	p := e.pairs()
	if v.encoding == intset && v.width == 0 && v.n > 0 {
		width := len(p) / v.n
		for i, n := range v.ints {
			packed.WriteInt(p[i*width:], width, n)
		}
	} else {
		copy(p, v.bytes)
	}
	if !s.inEntry() {
		s.e.state, s.o = stale, nil
	}
	return e
}

// AddSet is Add for an empty set with capacity bytes for members.
func (db *DB) AddSet(key []byte, capacity int) *Entry {
	if !packsPairs(len(key), 0) {
		return db.Add(key, new(Set))
	}
	capacity = min(capacity, maxPackedEntry-deadlineSize-pairsHeader-headerSize-len(key))
	return db.add(newPackedPairs(isSet, packed.View(key), capacity, false))
}

// MemberSize returns the number of bytes of a member in an embedded set.
func MemberSize(m Member) int {
	if m.isText {
		return packed.TextSize(len(m.text))
	}
	return packed.IntWidth(m.number)
}

// unpackedSet returns a separate copy of the set embedded in e.
func (e *Entry) unpackedSet() *Set {
	s := e.asSet()
	v := s.view()
	o := &setObject{encoding: v.encoding}
	if v.encoding == intset {
		o.ints = make([]int64, v.n)
		for i := range o.ints {
			o.ints[i] = v.number(i)
		}
	} else {
		o.texts, o.n = append([]byte(nil), v.bytes...), v.n
	}
	return &Set{o: o}
}

// ExpectMembers is [Set.Expect] for the set of e. It returns the current entry.
func (db *DB) ExpectMembers(e *Entry, first Member, n int) *Entry {
	l := &db.ks.Limits
	if !e.packed() {
		e.Value().(*Set).Expect(l, first, n)
		return e
	}
	ints := e.flags&textsFlag == 0
	switch {
	case ints && n <= l.SetMaxIntsetEntries && (e.valueLen > 0 || !first.isText):
	case ints && e.valueLen > 0 || n > l.SetMaxListpackEntries:
		e = db.Unpacked(e)
		e.Value().(*Set).object().hash()
	case ints:
		if log := db.changesOf(e); log != nil {
			log.Op(journal.OpOrdered)
		}
		e.flags |= textsFlag
	}
	return e
}

// AddMember adds a copy of m to the set of e. It returns the current entry, and
// whether m is new. O(1) in a hash table, otherwise O(n), without an allocation if
// the entry has space.
func (db *DB) AddMember(e *Entry, m Member) (now *Entry, added bool) {
	l := &db.ks.Limits
	if !e.packed() {
		return e, e.Value().(*Set).Add(l, m)
	}
	var buf [20]byte
	p, n := e.pairs(), int(e.valueLen)
	size, at, width := 0, 0, 0
	if e.flags&textsFlag == 0 {
		number, ok := m.asInt()
		v := e.asSet().view()
		if ok {
			i, there := v.search(number)
			if there {
				return e, false
			}
			at, width = i, max(v.width, packed.IntWidth(number))
			size = (n + 1) * width
			ok = n < l.SetMaxIntsetEntries
		}
		if !ok || n == maxPackedPairs || !packsPairs(int(e.keyLen), size) {
			return db.addUnpacked(e, m) // the encoding changes, or the entry becomes too large
		}
		m = Member{number: number}
	} else {
		text := m.view(&buf)
		if at, _ := packed.FindText(p, text); at >= 0 {
			return e, false
		}
		size = len(p) + packed.TextSize(len(text))
		if n >= min(l.SetMaxListpackEntries, maxPackedPairs) || len(text) > l.SetMaxListpackValue || !packsPairs(int(e.keyLen), size) {
			return db.addUnpacked(e, m)
		}
	}
	if log := db.changesOf(e); log != nil {
		log.Put(m.view(&buf))
	}
	if size > cap(p) {
		e = db.relocate(e, e.resized(pairsHeader+size, e.volatile()))
		p = e.pairs()
	}
	if width == 0 {
		packed.AppendText(p, m.view(&buf))
	} else {
		old := len(p) / max(n, 1)
		p = p[:size]
		if n == 0 || old == width {
			copy(p[(at+1)*width:], p[at*width:n*width])
		} else {
			for i := n - 1; i >= 0; i-- { // from the last to the first, so that no unread integer is overwritten
				to := i
				if i >= at {
					to++
				}
				packed.WriteInt(p[to*width:], width, packed.ReadInt(p[i*old:], old))
			}
		}
		packed.WriteInt(p[at*width:], width, m.number)
	}
	e.setPairsSize(size)
	db.resize(e, n+1)
	return e, true
}

// addUnpacked adds a member that changes the encoding of an embedded set.
func (db *DB) addUnpacked(e *Entry, m Member) (now *Entry, added bool) {
	e = db.Unpacked(e)
	s := e.Value().(*Set)
	added = s.Add(&db.ks.Limits, m)
	if s.packs(len(e.Key())) {
		e = db.relocate(e, s.entry(e.Key(), e.volatile()))
	}
	return e, added
}

// RemoveMember removes m from the set of e. It returns the current entry, and
// whether m existed. If m aliases this set, it is invalid afterwards. O(1) in a
// hash table, otherwise O(n).
func (db *DB) RemoveMember(e *Entry, m Member) (now *Entry, ok bool) {
	if !e.packed() {
		return e, e.Value().(*Set).Remove(m)
	}
	var buf [20]byte
	p := e.pairs()
	at, end := -1, -1
	if e.flags&textsFlag == 0 {
		if number, ok := m.asInt(); ok {
			v := e.asSet().view()
			if i, there := v.search(number); there {
				at, end = i*v.width, (i+1)*v.width
			}
		}
	} else {
		at, end = packed.FindText(p, m.view(&buf))
	}
	if at < 0 {
		return e, false
	}
	if log := db.changesOf(e); log != nil {
		log.Remove(m.view(&buf)) // before the removal, because m may alias this set
	}
	size := len(append(p[:at], p[end:]...))
	e.setPairsSize(size)
	db.resize(e, int(e.valueLen)-1)
	if capacity := cap(p); capacity > 64 && size < capacity/2 && e.valueLen > 0 {
		e = db.relocate(e, e.resized(pairsHeader+size, e.volatile()))
	}
	return e, true
}

type encoding uint8

const (
	intset encoding = iota
	listpack
	hashtable
)

// Member is a member of a set in its stored form: an integer or text. Text is a
// slice of the set's memory and valid until the set changes.
type Member struct {
	text    string
	number  int64
	isText  bool
	lasting bool // the text is a key of a hash table, which is immutable and may be retained
}

// MemberOf returns b as a member that is valid as long as b.
func MemberOf(b []byte) Member {
	if n, ok := packed.Integer(packed.View(b)); ok {
		return Member{number: n}
	}
	return Member{text: packed.View(b), isText: true}
}

// Int returns the member if it is stored as an integer.
func (m Member) Int() (n int64, ok bool) { return m.number, !m.isText }

// String returns the member as text. If it is stored as text, the result is a slice
// of the set's memory.
func (m Member) String() string {
	if m.isText {
		return m.text
	}
	return strconv.FormatInt(m.number, 10)
}

// asInt returns the member if it is an integer, in either form.
func (m Member) asInt() (n int64, ok bool) {
	if m.isText {
		return packed.Integer(m.text)
	}
	return m.number, true
}

// owned returns the member as text that may be retained.
func (m Member) owned() string {
	switch {
	case m.lasting:
		return m.text
	case m.isText:
		return strings.Clone(m.text)
	}
	return strconv.FormatInt(m.number, 10)
}

// view returns the member as text, in buf if necessary.
func (m Member) view(buf *[20]byte) string {
	if m.isText {
		return m.text
	}
	return packed.View(strconv.AppendInt(buf[:0], m.number, 10))
}

func textMember(s string) Member { return Member{text: s, isText: true} }

// tableMember returns a key of a hash table as a member.
func tableMember(s string) Member { return Member{text: s, isText: true, lasting: true} }

// Len returns the number of members. O(1).
func (s *Set) Len() int {
	switch {
	case s.inEntry():
		return int(s.e.valueLen)
	case s.o == nil:
		return 0
	}
	return s.o.len()
}

func (o *setObject) len() int {
	switch o.encoding {
	case intset:
		return len(o.ints)
	case listpack:
		return o.n
	}
	return o.table.Len()
}

// Has reports whether m is a member. O(log n) for integers, O(1) in a hash table,
// O(n) in a listpack.
func (s *Set) Has(m Member) bool {
	v := s.view()
	if v.encoding == intset {
		n, ok := m.asInt()
		if ok {
			_, ok = v.search(n)
		}
		return ok
	}
	var buf [20]byte
	text := m.view(&buf)
	if v.encoding == listpack {
		at, _ := packed.FindText(v.bytes, text)
		return at >= 0
	}
	_, ok := v.table.Get(text)
	return ok
}

// Score returns 1 for a member. It implements zset.Source, where all members of a
// set have this score.
func (s *Set) Score(member string) (float64, bool) {
	if s.Has(textMember(member)) {
		return 1, true
	}
	return 0, false
}

// All yields every member with the score 1. The strings may be retained. The set
// must not be modified during the iteration.
func (s *Set) All() iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for m := range s.Members {
			text := m.text
			if s.Table() == nil {
				text = m.owned()
			}
			if !yield(text, 1) {
				return
			}
		}
	}
}

// Members yields every member: integers in ascending order, a listpack in insertion
// order, a hash table in unspecified order. The set must not be modified during the
// iteration. It is an iterator itself: range over s.Members.
func (s *Set) Members(yield func(Member) bool) {
	switch v := s.view(); v.encoding {
	case intset:
		for i := range v.n {
			if !yield(Member{number: v.number(i)}) {
				return
			}
		}
	case listpack:
		for at := 0; at < len(v.bytes); {
			var b []byte
			b, at = packed.ReadText(v.bytes, at)
			if !yield(textMember(packed.View(b))) {
				return
			}
		}
	case hashtable:
		for text := range v.table.All() {
			if !yield(tableMember(text)) {
				return
			}
		}
	}
}

// MembersPrefetching yields every member, as Members does, and prefetches the
// lookups of these members in others into the processor's cache, one batch at a
// time. Sets in others may be nil, and may be modified during the iteration.
func (s *Set) MembersPrefetching(others []*Set) iter.Seq[Member] {
	if s.Table() == nil {
		return s.Members
	}
	return func(yield func(Member) bool) {
		var some [table.Batch]string
		n, read := 0, uint64(0)
		flush := func() bool {
			for _, other := range others {
				read += other.Table().Prefetch(some[:n])
			}
			for _, text := range some[:n] {
				if !yield(tableMember(text)) {
					return false
				}
			}
			n = 0
			return true
		}
		for text := range s.o.table.All() {
			some[n] = text
			if n++; n == len(some) && !flush() {
				return
			}
		}
		flush()
		runtime.KeepAlive(read)
	}
}

// Table returns the hash table of a large set, or nil. Its owner alone changes it.
func (s *Set) Table() *table.Table[struct{}] {
	if s == nil || s.inEntry() || s.o == nil {
		return nil
	}
	return s.o.table
}

// copyOnWrite copies ints or texts if a clone shares them.
func (o *setObject) copyOnWrite() {
	if o.shared {
		o.ints = slices.Clone(o.ints)
		o.texts = slices.Clone(o.texts)
		o.shared = false
	}
}

// Expect chooses the encoding of a set before up to n members, starting with first,
// are added, as Redis does for SADD. n may include existing members.
func (s *Set) Expect(l *Limits, first Member, n int) {
	o := s.object()
	switch {
	case o.encoding == hashtable:
	case o.encoding == intset && n <= l.SetMaxIntsetEntries && (len(o.ints) > 0 || !first.isText):
	case o.len() > 0 && o.encoding == intset || n > l.SetMaxListpackEntries:
		o.hash()
	default:
		s.KeepOrder()
	}
}

// Add adds a copy of m and reports whether it is new. O(1) in a hash table,
// otherwise O(n).
func (s *Set) Add(l *Limits, m Member) bool {
	o := s.object()
	added := o.add(l, m)
	if added && o.log != nil {
		var buf [20]byte
		o.log.Put(m.view(&buf))
	}
	return added
}

func (o *setObject) add(l *Limits, m Member) bool {
	var buf [20]byte
	if o.encoding == intset {
		if n, ok := m.asInt(); ok {
			return o.addInt(l, n)
		}
		o.leaveInts(l, len(m.text))
	}
	text := m.view(&buf)
	if o.encoding == listpack {
		if at, _ := packed.FindText(o.texts, text); at >= 0 {
			return false
		}
		if o.n < l.SetMaxListpackEntries && len(text) <= l.SetMaxListpackValue {
			o.copyOnWrite()
			o.appendText(text)
			return true
		}
		o.hash()
	}
	if m.isText {
		_, _, added := o.table.GetOrAdd(m.text, !m.lasting, struct{}{})
		if added {
			o.n += packed.Allocated(len(m.text))
		}
		return added
	}
	if _, there := o.table.Get(text); there {
		return false
	}
	o.table.Set(m.owned(), struct{}{})
	o.n += packed.Allocated(len(text))
	return true
}

func (o *setObject) addInt(l *Limits, n int64) bool {
	i, there := slices.BinarySearch(o.ints, n)
	if there {
		return false
	}
	o.copyOnWrite()
	o.ints = slices.Insert(o.ints, i, n)
	if len(o.ints) > l.SetMaxIntsetEntries {
		o.hash()
	}
	return true
}

// leaveInts converts an intset because a member of size bytes that is not an
// integer will be added.
func (o *setObject) leaveInts(l *Limits, size int) {
	if n := len(o.ints); n > 0 {
		var buf [20]byte
		size = max(size, len(Member{number: o.ints[0]}.view(&buf)), len(Member{number: o.ints[n-1]}.view(&buf)))
	}
	if len(o.ints) < l.SetMaxListpackEntries && size <= l.SetMaxListpackValue {
		o.pack()
	} else {
		o.hash()
	}
}

func (o *setObject) appendText(text string) {
	if size := len(o.texts) + packed.TextSize(len(text)); size > cap(o.texts) {
		o.texts = append(append([]byte(nil), make([]byte, size+size/16)...)[:0], o.texts...)
	}
	o.texts = packed.AppendText(o.texts, text)
	o.n++
}

// pack converts an intset to a listpack.
func (o *setObject) pack() {
	if o.encoding != intset {
		return
	}
	ints := o.ints
	o.ints, o.texts, o.encoding, o.shared = nil, nil, listpack, false
	var buf [20]byte
	for _, n := range ints {
		o.appendText(Member{number: n}.view(&buf))
	}
}

// hash converts the set to a hash table.
func (o *setObject) hash() {
	if o.encoding == hashtable {
		return
	}
	t, n := new(table.Table[struct{}]), 0
	for m := range (&Set{o: o}).Members {
		text := m.owned()
		t.Set(text, struct{}{})
		n += packed.Allocated(len(text))
	}
	*o = setObject{table: t, n: n, encoding: hashtable, log: o.log}
}

// KeepOrder converts an empty set to a listpack, so that integers keep their
// insertion order, as in SINTERSTORE. Call Sort when all members are added.
func (s *Set) KeepOrder() {
	o := s.object()
	if o.encoding == intset && o.log != nil {
		o.log.Op(journal.OpOrdered)
	}
	o.pack()
}

// Sort converts the set to an intset if all members are integers, and not too many.
// O(n log n).
func (s *Set) Sort(l *Limits) {
	o := s.object()
	if o.encoding == intset || o.len() > l.SetMaxIntsetEntries {
		return
	}
	ints := make([]int64, 0, s.Len())
	for m := range s.Members {
		n, ok := packed.Integer(m.text)
		if !ok {
			return
		}
		ints = append(ints, n)
	}
	slices.Sort(ints)
	*o = setObject{ints: ints, log: o.log}
	if o.log != nil {
		o.log.Rewrite()
	}
}

// Remove removes m and reports whether it existed. If m aliases this set, it is
// invalid afterwards. O(1) in a hash table, otherwise O(n).
func (s *Set) Remove(m Member) bool {
	at := -1
	o := s.object()
	if o.log != nil {
		at = len(o.log.Ops)
		var buf [20]byte
		o.log.Remove(m.view(&buf)) // before the removal, because m may alias this set
	}
	removed := o.remove(m)
	if !removed && at >= 0 {
		o.log.Ops = o.log.Ops[:at]
		o.log.Count--
	}
	return removed
}

func (o *setObject) remove(m Member) bool {
	var buf [20]byte
	switch o.encoding {
	case intset:
		n, ok := m.asInt()
		i := 0
		if ok {
			i, ok = slices.BinarySearch(o.ints, n)
		}
		if ok {
			o.copyOnWrite()
			o.ints = slices.Delete(o.ints, i, i+1)
		}
		return ok
	case listpack:
		at, end := packed.FindText(o.texts, m.view(&buf))
		if at < 0 {
			return false
		}
		o.copyOnWrite()
		o.texts = append(o.texts[:at], o.texts[end:]...)
		o.n--
		return true
	}
	text := m.view(&buf)
	_, there := o.table.Delete(text)
	if there {
		o.n -= packed.Allocated(len(text))
	}
	return there
}

// Random returns a member with uniform probability. The set must not be empty.
// O(1), in a listpack O(n).
func (s *Set) Random(r *rand.Rand) Member {
	v := s.view()
	switch v.encoding {
	case intset:
		return Member{number: v.number(r.IntN(v.n))}
	case listpack:
		at := 0
		for range r.IntN(v.n) {
			_, at = packed.ReadText(v.bytes, at)
		}
		b, _ := packed.ReadText(v.bytes, at)
		return textMember(packed.View(b))
	}
	text, _, _ := v.table.Random(r)
	return tableMember(text)
}

// Sample yields count distinct members, at most Len. Every subset of this size has
// the same probability, but not every order. O(count) on average if the set is a
// hash table of many times count, otherwise O(n). The set must not be modified
// during the iteration.
func (s *Set) Sample(r *rand.Rand, count int) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		if s.Table() != nil && count < s.Len()/4 {
			s.draw(r, count, yield)
			return
		}
		// Selection sampling (Knuth, section 3.4.2, algorithm S).
		left := s.Len()
		for m := range s.Members {
			if count == 0 {
				return
			}
			if r.IntN(left) < count {
				count--
				if !yield(m) {
					return
				}
			}
			left--
		}
	}
}

// draw is Sample by random draws until there are enough distinct members.
func (s *Set) draw(r *rand.Rand, count int, yield func(Member) bool) {
	drawn := make(map[string]struct{}, count)
	for len(drawn) < count {
		text, _, _ := s.o.table.Random(r)
		if _, again := drawn[text]; again {
			continue
		}
		drawn[text] = struct{}{}
		if !yield(tableMember(text)) {
			return
		}
	}
}

// Pop removes count random members, fewer than Len, selected as by Sample. It
// passes each to yield before the removal.
func (s *Set) Pop(r *rand.Rand, count int, yield func(Member)) {
	o := s.object()
	gone := make([]string, 0, count)
	var numbers []int64
	for m := range s.Sample(r, count) {
		yield(m)
		if o.log != nil {
			var buf [20]byte
			o.log.Remove(m.view(&buf))
		}
		if m.isText {
			gone = append(gone, m.text)
		} else {
			numbers = append(numbers, m.number)
		}
	}
	switch o.encoding {
	case intset: // in ascending order, as the members
		o.copyOnWrite()
		o.ints = slices.DeleteFunc(o.ints, func(n int64) bool {
			if len(numbers) == 0 || numbers[0] != n {
				return false
			}
			numbers = numbers[1:]
			return true
		})
	case listpack: // in the order of the elements
		old := o.texts
		o.texts, o.n, o.shared = nil, 0, false
		for at := 0; at < len(old); {
			var b []byte
			b, at = packed.ReadText(old, at)
			if len(gone) > 0 && gone[0] == string(b) {
				gone = gone[1:]
			} else {
				o.appendText(packed.View(b))
			}
		}
	default:
		for _, text := range gone {
			o.table.Delete(text)
			o.n -= packed.Allocated(len(text))
		}
	}
}

// Scan passes about count members to yield and returns the next cursor, 0 at the
// end. A member that exists during the whole scan is passed exactly once,
// regardless of other changes. Without a hash table all members come in one call.
// Any cursor value is safe.
func (s *Set) Scan(cursor uint64, count int, yield func(Member)) uint64 {
	if s.Table() != nil {
		return s.o.table.Scan(cursor, count, func(text string, _ struct{}) { yield(tableMember(text)) })
	}
	for m := range s.Members {
		yield(m)
	}
	return 0
}

// Clone returns a separate copy of the set. O(1): the two share memory
// copy-on-write; an embedded set is copied.
func (s *Set) Clone() *Set {
	switch {
	case s.inEntry():
		return s.e.unpackedSet()
	case s.o == nil:
		return new(Set)
	}
	c := *s.o
	c.log = nil
	if c.encoding == hashtable {
		c.table = s.o.table.Clone()
	} else {
		s.o.shared, c.shared = true, true
	}
	return &Set{o: &c}
}

// Encoding returns the encoding for OBJECT ENCODING: "intset", "listpack" or
// "hashtable".
func (s *Set) Encoding(*Limits) string {
	switch v := s.view(); v.encoding {
	case intset:
		return "intset"
	case listpack:
		return "listpack"
	}
	return "hashtable"
}

// Bytes estimates the memory of the set in bytes, without its entry. O(1).
func (s *Set) Bytes() int {
	if s.inEntry() {
		return int(s.e.words)*8 - headerSize - int(s.e.keyLen)
	}
	sum := int(unsafe.Sizeof(*s))
	if s.o == nil {
		return sum
	}
	sum += int(unsafe.Sizeof(*s.o)) + 8*cap(s.o.ints) + cap(s.o.texts)
	if s.o.encoding == hashtable {
		sum += s.o.table.Bytes() + s.o.n
	}
	return sum
}

// Check verifies the invariants and returns an error if one is violated. For tests.
// O(n).
func (s *Set) Check() error {
	if s.inEntry() && s.e.valueSize() > s.e.valueCapacity() {
		return fmt.Errorf("set of %d bytes in %d", s.e.valueSize(), s.e.valueCapacity())
	}
	v := s.view()
	switch v.encoding {
	case intset:
		for i := 1; i < v.n; i++ {
			if v.number(i-1) >= v.number(i) {
				return fmt.Errorf("integer %d before %d", v.number(i-1), v.number(i))
			}
		}
		if v.width*v.n != len(v.bytes) || v.table != nil {
			return fmt.Errorf("an intset with other members")
		}
	case listpack:
		n, seen := 0, map[string]bool{}
		for m := range s.Members {
			n++
			seen[m.text] = true
		}
		if n != v.n || n != len(seen) || v.ints != nil || v.table != nil {
			return fmt.Errorf("listpack of %d members, %d different, counted %d", n, len(seen), v.n)
		}
	case hashtable:
		n := 0
		for text := range v.table.All() {
			n += packed.Allocated(len(text))
		}
		if n != s.o.n {
			return fmt.Errorf("set whose texts take %d bytes, counted %d", n, s.o.n)
		}
		return v.table.Check()
	}
	return nil
}
