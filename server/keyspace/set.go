package keyspace

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/zsetd/zsetd/zset/table"
)

// Set is a set of byte strings. As in Redis it has one of three shapes:
// sorted integers as long as all members are integers and not too many; packed
// elements in the order of insertion while it is small; a hash table beyond.
// It never goes back to a smaller shape by itself. The zero value is empty and
// ready to use.
//
// As a small hash does, a small set stands in its entry, and is then the entry in
// another role: integers with 2, 4 or 8 bytes each, others as texts with their
// lengths. That one is changed by [DB.AddMember] and [DB.RemoveMember], or when
// [DB.Unpacked] has made it one like those that are in no entry.
type Set struct {
	e Entry      // if it is a part of its entry
	o *setObject // if it is not; nil if it is empty
}

// setObject is what a set has that is not a part of its entry.
type setObject struct {
	ints   []int64 // if shape is intset
	texts  []byte  // if shape is listpack
	table  *table.Table[struct{}]
	log    *changes // told of what changes; nil for nobody
	n      int      // elements in texts; with a table: the bytes that its texts take
	shape  shape
	shared bool // ints or texts is shared with a clone: copied before a write
}

// setView is what there is to be read of a set, wherever it stands.
type setView struct {
	ints  []int64
	bytes []byte // texts, or integers of width bytes
	table *table.Table[struct{}]
	n     int // members, unless there is a table
	width int
	shape shape
}

func (s *Set) view() setView {
	switch {
	case s.inEntry():
		v := setView{bytes: s.e.pairs(), n: int(s.e.vlen), shape: listpack}
		if s.e.flags&textsFlag == 0 {
			v.shape = intset
			v.width = len(v.bytes) / max(v.n, 1)
		}
		return v
	case s.o == nil:
		return setView{}
	}
	v := setView{ints: s.o.ints, bytes: s.o.texts, table: s.o.table, n: s.o.n, shape: s.o.shape}
	if v.shape == intset {
		v.n = len(v.ints)
	}
	return v
}

// number returns the ith integer.
func (v *setView) number(i int) int64 {
	if v.width == 0 {
		return v.ints[i]
	}
	return readInt(v.bytes[i*v.width:], v.width)
}

// search returns where n stands among the integers, or would.
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

// widthOf returns how many bytes an integer takes.
func widthOf(n int64) int {
	switch {
	case n == int64(int16(n)):
		return 2
	case n == int64(int32(n)):
		return 4
	}
	return 8
}

func readInt(b []byte, width int) int64 {
	switch width {
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

func writeInt(b []byte, width int, n int64) {
	switch width {
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(n))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(n))
	default:
		binary.LittleEndian.PutUint64(b, uint64(n))
	}
}

// findText returns where in p a text stands, and where it ends; -1 if it is not
// there.
func findText(p []byte, text string) (at, end int) {
	for at := 0; at < len(p); {
		b, end := readText(p, at)
		if string(b) == text {
			return at, end
		}
		at = end
	}
	return -1, -1
}

// inEntry reports whether s is the role of an entry.
func (s *Set) inEntry() bool { return s.e.units != 0 }

// object makes s ready to be changed.
func (s *Set) object() *setObject {
	if s.inEntry() || s.e.state == stale {
		panic("BUG: a set is changed otherwise than by its entry")
	}
	if s.o == nil {
		s.o = new(setObject)
	}
	return s.o
}

// packs reports whether a set can be a part of an entry.
func (s *Set) packs(key int) bool {
	v := s.view()
	return v.shape != hashtable && v.n <= maxPacked && packsPairs(key, v.size())
}

// size returns how many bytes the members take in an entry.
func (v *setView) size() int {
	if v.shape == intset && v.width == 0 && v.n > 0 {
		return v.n * max(widthOf(v.ints[0]), widthOf(v.ints[v.n-1]))
	}
	return len(v.bytes)
}

// entry makes a packed entry of s, which must not be used any more then.
func (s *Set) entry(key string, timed bool) *Entry {
	v := s.view()
	e := newPackedSet(key, v.size(), timed)
	e.vlen = uint8(v.n)
	e.setPairsSize(v.size())
	if v.shape == listpack {
		e.flags |= textsFlag
	}
	p := e.pairs()
	if v.shape == intset && v.width == 0 && v.n > 0 {
		width := len(p) / v.n
		for i, n := range v.ints {
			writeInt(p[i*width:], width, n)
		}
	} else {
		copy(p, v.bytes)
	}
	if !s.inEntry() {
		s.e.state, s.o = stale, nil
	}
	return e
}

// newPackedSet returns an entry of an empty set with room for members.
func newPackedSet(key string, room int, timed bool) *Entry {
	e := allocate(key, max(pairsHead+room, leastHash), timed)
	e.flags = isSet | packedLayout
	return e
}

// AddSet is Add of an empty set with room for members of so many bytes together.
func (db *DB) AddSet(key []byte, room int) *Entry {
	if !packsPairs(len(key), 0) {
		return db.Add(key, new(Set))
	}
	room = min(room, packedPairs-deadlineSize-pairsHead-headSize-len(key))
	return db.add(newPackedSet(viewOf(key), room, false))
}

// MemberSize returns what a member takes in a small set.
func MemberSize(m Member) int {
	if m.isText {
		return textSize(len(m.text))
	}
	return widthOf(m.number)
}

// unpackedSet returns a set like that of a packed entry, which is in none.
func (e *Entry) unpackedSet() *Set {
	s := (*Set)(unsafe.Pointer(e))
	v := s.view()
	o := &setObject{shape: v.shape}
	if v.shape == intset {
		o.ints = make([]int64, v.n)
		for i := range o.ints {
			o.ints[i] = v.number(i)
		}
	} else {
		o.texts, o.n = append([]byte(nil), v.bytes...), v.n
	}
	return &Set{o: o}
}

// ExpectMembers is [Set.Expect] for the set of e. It returns the entry as it is
// now.
func (db *DB) ExpectMembers(e *Entry, first Member, n int) *Entry {
	l := &db.ks.Limits
	if !e.packed() {
		e.Value().(*Set).Expect(l, first, n)
		return e
	}
	ints := e.flags&textsFlag == 0
	switch {
	case ints && n <= l.SetMaxIntsetEntries && (e.vlen > 0 || !first.isText):
	case ints && e.vlen > 0 || n > l.SetMaxListpackEntries:
		e = db.Unpacked(e)
		e.Value().(*Set).object().hash()
	case ints:
		if log := db.told(e); log != nil {
			log.op(opOrdered)
		}
		e.flags |= textsFlag
	}
	return e
}

// AddMember adds a copy of m to the set of e and returns the entry as it is now,
// and whether it was not there. O(1) in a hash table, otherwise O(n), without an
// allocation if there is room.
func (db *DB) AddMember(e *Entry, m Member) (now *Entry, added bool) {
	l := &db.ks.Limits
	if !e.packed() {
		return e, e.Value().(*Set).Add(l, m)
	}
	var buf [20]byte
	p, n := e.pairs(), int(e.vlen)
	size, at, width := 0, 0, 0
	if e.flags&textsFlag == 0 {
		number, ok := m.asInt()
		v := (*Set)(unsafe.Pointer(e)).view()
		if ok {
			i, there := v.search(number)
			if there {
				return e, false
			}
			at, width = i, max(v.width, widthOf(number))
			size = (n + 1) * width
			ok = n < l.SetMaxIntsetEntries
		}
		if !ok || n == maxPacked || !packsPairs(int(e.klen), size) {
			return db.addUnpacked(e, m) // it changes its shape, or is too large
		}
		m = Member{number: number}
	} else {
		text := m.view(&buf)
		if at, _ := findText(p, text); at >= 0 {
			return e, false
		}
		size = len(p) + textSize(len(text))
		if n >= min(l.SetMaxListpackEntries, maxPacked) || len(text) > l.SetMaxListpackValue || !packsPairs(int(e.klen), size) {
			return db.addUnpacked(e, m)
		}
	}
	if log := db.told(e); log != nil {
		log.put(m.view(&buf))
	}
	if size > cap(p) {
		e = db.relocate(e, e.resized(pairsHead+size, e.volatile()))
		p = e.pairs()
	}
	if width == 0 {
		appendText(p, m.view(&buf))
	} else {
		old := len(p) / max(n, 1)
		p = p[:size]
		if n == 0 || old == width {
			copy(p[(at+1)*width:], p[at*width:n*width])
		} else {
			for i := n - 1; i >= 0; i-- { // from the end: so nothing is overwritten that is still to be read
				to := i
				if i >= at {
					to++
				}
				writeInt(p[to*width:], width, readInt(p[i*old:], old))
			}
		}
		writeInt(p[at*width:], width, m.number)
	}
	e.setPairsSize(size)
	e.vlen++
	return e, true
}

// addUnpacked adds a member that changes the shape of a packed set.
func (db *DB) addUnpacked(e *Entry, m Member) (now *Entry, added bool) {
	e = db.Unpacked(e)
	s := e.Value().(*Set)
	added = s.Add(&db.ks.Limits, m)
	if s.packs(len(e.Key())) {
		e = db.relocate(e, s.entry(e.Key(), e.volatile()))
	}
	return e, added
}

// RemoveMember removes m from the set of e, and returns the entry as it is now,
// and whether it was there. If m came from this set, its text is not good any more.
func (db *DB) RemoveMember(e *Entry, m Member) (now *Entry, ok bool) {
	if !e.packed() {
		return e, e.Value().(*Set).Remove(m)
	}
	var buf [20]byte
	p := e.pairs()
	at, end := -1, -1
	if e.flags&textsFlag == 0 {
		if number, ok := m.asInt(); ok {
			v := (*Set)(unsafe.Pointer(e)).view()
			if i, there := v.search(number); there {
				at, end = i*v.width, (i+1)*v.width
			}
		}
	} else {
		at, end = findText(p, m.view(&buf))
	}
	if at < 0 {
		return e, false
	}
	if log := db.told(e); log != nil {
		log.remove(m.view(&buf)) // before, for m may be a view of this set
	}
	size := len(append(p[:at], p[end:]...))
	e.setPairsSize(size)
	e.vlen--
	if room := cap(p); room > 64 && size < room/2 && e.vlen > 0 {
		e = db.relocate(e, e.resized(pairsHead+size, e.volatile()))
	}
	return e, true
}

type shape uint8

const (
	intset shape = iota
	listpack
	hashtable
)

// Member is an element of a set as it is stored: an integer or text. Text is a
// view of the set's memory, good until the set is changed.
type Member struct {
	text    string
	number  int64
	isText  bool
	lasting bool // the text is a key of a hash table, which never changes and may be kept
}

// MemberOf returns b as a member, which is good as long as b is.
func MemberOf(b []byte) Member {
	if n, ok := integer(viewOf(b)); ok {
		return Member{number: n}
	}
	return Member{text: viewOf(b), isText: true}
}

// Int returns the member if it is stored as an integer.
func (m Member) Int() (n int64, ok bool) { return m.number, !m.isText }

// String returns the member, as a view if it is text.
func (m Member) String() string {
	if m.isText {
		return m.text
	}
	return strconv.FormatInt(m.number, 10)
}

// asInt returns the member if it is an integer.
func (m Member) asInt() (n int64, ok bool) {
	if m.isText {
		return integer(m.text)
	}
	return m.number, true
}

// owned returns the member as text that may be kept.
func (m Member) owned() string {
	switch {
	case m.lasting:
		return m.text
	case m.isText:
		return strings.Clone(m.text)
	}
	return strconv.FormatInt(m.number, 10)
}

// view returns the member as text, for which it may use buf.
func (m Member) view(buf *[20]byte) string {
	if m.isText {
		return m.text
	}
	return viewOf(strconv.AppendInt(buf[:0], m.number, 10))
}

func textMember(s string) Member { return Member{text: s, isText: true} }

// tableMember returns a key of a hash table as a member.
func tableMember(s string) Member { return Member{text: s, isText: true, lasting: true} }

// Len returns the number of members. O(1).
func (s *Set) Len() int {
	switch {
	case s.inEntry():
		return int(s.e.vlen)
	case s.o == nil:
		return 0
	}
	return s.o.len()
}

func (o *setObject) len() int {
	switch o.shape {
	case intset:
		return len(o.ints)
	case listpack:
		return o.n
	}
	return o.table.Len()
}

// Has reports whether m is a member: O(log n) for integers, O(1) in a hash
// table, O(n) in a listpack.
func (s *Set) Has(m Member) bool {
	v := s.view()
	if v.shape == intset {
		n, ok := m.asInt()
		if ok {
			_, ok = v.search(n)
		}
		return ok
	}
	var buf [20]byte
	text := m.view(&buf)
	if v.shape == listpack {
		at, _ := findText(v.bytes, text)
		return at >= 0
	}
	_, ok := v.table.Get(text)
	return ok
}

// Score returns 1 for a member: as zset.Source, all elements of a set have
// this score.
func (s *Set) Score(member string) (float64, bool) {
	if s.Has(textMember(member)) {
		return 1, true
	}
	return 0, false
}

// All yields every member with the score 1. The strings may be kept. The set
// must not be changed meanwhile.
func (s *Set) All() iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for m := range s.Members {
			text := m.text
			if !s.tabled() {
				text = m.owned()
			}
			if !yield(text, 1) {
				return
			}
		}
	}
}

// Members yields every member: integers in ascending order, a listpack in the
// order of insertion, a hash table in none. The set must not be changed
// meanwhile. Range over s.Members itself.
func (s *Set) Members(yield func(Member) bool) {
	switch v := s.view(); v.shape {
	case intset:
		for i := range v.n {
			if !yield(Member{number: v.number(i)}) {
				return
			}
		}
	case listpack:
		for at := 0; at < len(v.bytes); {
			var b []byte
			b, at = readText(v.bytes, at)
			if !yield(textMember(viewOf(b))) {
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

// Ahead yields every member of s, as Members does, but before it yields some of them it
// has brought what looking them up in others takes into the processor's cache. Sets in
// others may be nil, and may be changed meanwhile.
func (s *Set) Ahead(others []*Set) iter.Seq[Member] {
	if !s.tabled() {
		return s.Members
	}
	return func(yield func(Member) bool) {
		var some [table.Batch]string
		n, read := 0, uint64(0)
		flush := func() bool {
			for _, other := range others {
				if other != nil && other.tabled() {
					read += other.o.table.Warm(some[:n])
				}
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

// tabled reports whether there is a hash table.
func (s *Set) tabled() bool { return !s.inEntry() && s.o != nil && s.o.shape == hashtable }

// own makes ints or texts ready for writing.
func (o *setObject) own() {
	if o.shared {
		o.ints = slices.Clone(o.ints)
		o.texts = slices.Clone(o.texts)
		o.shared = false
	}
}

// Expect chooses the shape of a set to which up to n members, the first of
// them given, are about to be added, as Redis does for SADD. Members that turn
// out to be there already count too.
func (s *Set) Expect(l *Limits, first Member, n int) {
	o := s.object()
	switch {
	case o.shape == hashtable:
	case o.shape == intset && n <= l.SetMaxIntsetEntries && (len(o.ints) > 0 || !first.isText):
	case o.len() > 0 && o.shape == intset || n > l.SetMaxListpackEntries:
		o.hash()
	default:
		s.KeepOrder()
	}
}

// Add adds a copy of m and reports whether it was not there. O(1) in a hash
// table, otherwise O(n).
func (s *Set) Add(l *Limits, m Member) bool {
	o := s.object()
	added := o.add(l, m)
	if added && o.log != nil {
		var buf [20]byte
		o.log.put(m.view(&buf))
	}
	return added
}

func (o *setObject) add(l *Limits, m Member) bool {
	var buf [20]byte
	if o.shape == intset {
		if n, ok := m.asInt(); ok {
			return o.addInt(l, n)
		}
		o.leaveInts(l, len(m.text))
	}
	text := m.view(&buf)
	if o.shape == listpack {
		if at, _ := findText(o.texts, text); at >= 0 {
			return false
		}
		if o.n < l.SetMaxListpackEntries && len(text) <= l.SetMaxListpackValue {
			o.own()
			o.appendText(text)
			return true
		}
		o.hash()
	}
	if m.isText {
		_, _, added := o.table.GetOrAdd(m.text, !m.lasting, struct{}{})
		if added {
			o.n += allocated(len(m.text))
		}
		return added
	}
	if _, there := o.table.Get(text); there {
		return false
	}
	o.table.Set(m.owned(), struct{}{})
	o.n += allocated(len(text))
	return true
}

func (o *setObject) addInt(l *Limits, n int64) bool {
	i, there := slices.BinarySearch(o.ints, n)
	if there {
		return false
	}
	o.own()
	o.ints = slices.Insert(o.ints, i, n)
	if len(o.ints) > l.SetMaxIntsetEntries {
		o.hash()
	}
	return true
}

// leaveInts changes the shape because a member of size bytes, which is no
// integer, is to come.
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
	if size := len(o.texts) + textSize(len(text)); size > cap(o.texts) {
		o.texts = append(append([]byte(nil), make([]byte, size+size/16)...)[:0], o.texts...)
	}
	o.texts = appendText(o.texts, text)
	o.n++
}

// pack changes the shape from integers to a listpack.
func (o *setObject) pack() {
	if o.shape != intset {
		return
	}
	ints := o.ints
	o.ints, o.texts, o.shape, o.shared = nil, nil, listpack, false
	var buf [20]byte
	for _, n := range ints {
		o.appendText(Member{number: n}.view(&buf))
	}
}

// hash changes the shape to a hash table.
func (o *setObject) hash() {
	if o.shape == hashtable {
		return
	}
	t, n := new(table.Table[struct{}]), 0
	for m := range (&Set{o: o}).Members {
		text := m.owned()
		t.Set(text, struct{}{})
		n += allocated(len(text))
	}
	*o = setObject{table: t, n: n, shape: hashtable, log: o.log}
}

// KeepOrder makes an empty set keep integers, too, in the order in which they
// come, as SINTERSTORE does. Sort is for when they have come.
func (s *Set) KeepOrder() {
	o := s.object()
	if o.shape == intset && o.log != nil {
		o.log.op(opOrdered)
	}
	o.pack()
}

// Sort changes the shape to sorted integers if all members are integers, and
// not too many.
func (s *Set) Sort(l *Limits) {
	o := s.object()
	if o.shape == intset || o.len() > l.SetMaxIntsetEntries {
		return
	}
	ints := make([]int64, 0, s.Len())
	for m := range s.Members {
		n, ok := integer(m.text)
		if !ok {
			return
		}
		ints = append(ints, n)
	}
	slices.Sort(ints)
	*o = setObject{ints: ints, log: o.log}
	if o.log != nil {
		o.log.anew()
	}
}

// Remove removes m and reports whether it was there. If m came from this set,
// its text is not good any more.
func (s *Set) Remove(m Member) bool {
	at := -1
	o := s.object()
	if o.log != nil {
		at = len(o.log.ops)
		var buf [20]byte
		o.log.remove(m.view(&buf)) // before, for m may be a view of this set
	}
	removed := o.remove(m)
	if !removed && at >= 0 {
		o.log.ops = o.log.ops[:at]
		o.log.n--
	}
	return removed
}

func (o *setObject) remove(m Member) bool {
	var buf [20]byte
	switch o.shape {
	case intset:
		n, ok := m.asInt()
		i := 0
		if ok {
			i, ok = slices.BinarySearch(o.ints, n)
		}
		if ok {
			o.own()
			o.ints = slices.Delete(o.ints, i, i+1)
		}
		return ok
	case listpack:
		at, end := findText(o.texts, m.view(&buf))
		if at < 0 {
			return false
		}
		o.own()
		o.texts = append(o.texts[:at], o.texts[end:]...)
		o.n--
		return true
	}
	text := m.view(&buf)
	_, there := o.table.Delete(text)
	if there {
		o.n -= allocated(len(text))
	}
	return there
}

// Random returns a member of a set that is not empty, every one being equally
// likely. O(1), in a listpack O(n).
func (s *Set) Random(r *rand.Rand) Member {
	v := s.view()
	switch v.shape {
	case intset:
		return Member{number: v.number(r.IntN(v.n))}
	case listpack:
		at := 0
		for range r.IntN(v.n) {
			_, at = readText(v.bytes, at)
		}
		b, _ := readText(v.bytes, at)
		return textMember(viewOf(b))
	}
	text, _, _ := v.table.Random(r)
	return tableMember(text)
}

// Sample yields count different members, at most Len, every choice of them
// being equally likely, though not every order. O(count) on average if the set
// is a hash table of many times that, otherwise O(n). The set must not be
// changed meanwhile.
func (s *Set) Sample(r *rand.Rand, count int) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		if s.tabled() && count < s.Len()/4 {
			s.draw(r, count, yield)
			return
		}
		// Selection sampling (Knuth 3.4.2, algorithm S).
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

// draw is Sample by drawing until there are enough different members.
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

// Pop removes count members, fewer than Len, as Sample chooses them, and
// passes each to yield before it is gone.
func (s *Set) Pop(r *rand.Rand, count int, yield func(Member)) {
	o := s.object()
	gone := make([]string, 0, count)
	var numbers []int64
	for m := range s.Sample(r, count) {
		yield(m)
		if o.log != nil {
			var buf [20]byte
			o.log.remove(m.view(&buf))
		}
		if m.isText {
			gone = append(gone, m.text)
		} else {
			numbers = append(numbers, m.number)
		}
	}
	switch o.shape {
	case intset: // in ascending order, as the members are
		o.own()
		o.ints = slices.DeleteFunc(o.ints, func(n int64) bool {
			if len(numbers) == 0 || numbers[0] != n {
				return false
			}
			numbers = numbers[1:]
			return true
		})
	case listpack: // in the order of the entries
		old := o.texts
		o.texts, o.n, o.shared = nil, 0, false
		for at := 0; at < len(old); {
			var b []byte
			b, at = readText(old, at)
			if len(gone) > 0 && gone[0] == string(b) {
				gone = gone[1:]
			} else {
				o.appendText(viewOf(b))
			}
		}
	default:
		for _, text := range gone {
			o.table.Delete(text)
			o.n -= allocated(len(text))
		}
	}
}

// Scan passes about count members to yield and returns the cursor to go on
// with, 0 at the end. Members that are there throughout a scan are passed,
// whatever happens to others meanwhile. What is no hash table comes all at once.
func (s *Set) Scan(cursor uint64, count int, yield func(Member)) uint64 {
	if s.tabled() {
		return s.o.table.Scan(cursor, count, func(text string, _ struct{}) { yield(tableMember(text)) })
	}
	for m := range s.Members {
		yield(m)
	}
	return 0
}

// Clone returns a set with the same members, which is in no entry. The two share
// memory until one of them is changed, but for what is a part of an entry. O(1).
func (s *Set) Clone() *Set {
	switch {
	case s.inEntry():
		return s.e.unpackedSet()
	case s.o == nil:
		return new(Set)
	}
	c := *s.o
	c.log = nil
	if c.shape == hashtable {
		c.table = s.o.table.Clone()
	} else {
		s.o.shared, c.shared = true, true
	}
	return &Set{o: &c}
}

// Encoding returns what OBJECT ENCODING says: "intset", "listpack" or
// "hashtable".
func (s *Set) Encoding(*Limits) string {
	switch v := s.view(); v.shape {
	case intset:
		return "intset"
	case listpack:
		return "listpack"
	}
	return "hashtable"
}

// Bytes estimates the memory that the set takes besides its entry. O(1).
func (s *Set) Bytes() int {
	if s.inEntry() {
		return int(s.e.units)*8 - headSize - int(s.e.klen)
	}
	sum := int(unsafe.Sizeof(*s))
	if s.o == nil {
		return sum
	}
	sum += int(unsafe.Sizeof(*s.o)) + 8*cap(s.o.ints) + cap(s.o.texts)
	if s.o.shape == hashtable {
		sum += s.o.table.Bytes() + s.o.n
	}
	return sum
}

// Check verifies the invariants. O(n).
func (s *Set) Check() error {
	if s.inEntry() && s.e.used() > s.e.space() {
		return fmt.Errorf("set of %d bytes in %d", s.e.used(), s.e.space())
	}
	v := s.view()
	switch v.shape {
	case intset:
		for i := 1; i < v.n; i++ {
			if v.number(i-1) >= v.number(i) {
				return fmt.Errorf("integer %d, then %d", v.number(i-1), v.number(i))
			}
		}
		if v.width*v.n != len(v.bytes) || v.table != nil {
			return fmt.Errorf("integers and more")
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
			n += allocated(len(text))
		}
		if n != s.o.n {
			return fmt.Errorf("set whose texts take %d bytes, counted %d", n, s.o.n)
		}
		return v.table.Check()
	}
	return nil
}
