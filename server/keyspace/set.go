package keyspace

import (
	"fmt"
	"iter"
	"math/rand/v2"
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
type Set struct {
	ints   []int64 // if shape is intset
	packed []byte  // if shape is listpack
	table  *table.Table[struct{}]
	n      int // elements in packed
	shape  shape
	shared bool     // ints or packed is shared with a clone: copied before a write
	log    *changes // told of what changes; nil for nobody
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
	text   string
	number int64
	isText bool
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

// owned returns the member as text that may be kept.
func (m Member) owned() string {
	if m.isText {
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

// Len returns the number of members. O(1).
func (s *Set) Len() int {
	switch s.shape {
	case intset:
		return len(s.ints)
	case listpack:
		return s.n
	}
	return s.table.Len()
}

// Has reports whether m is a member: O(log n) for integers, O(1) in a hash
// table, O(n) in a listpack.
func (s *Set) Has(m Member) bool {
	if s.shape == intset {
		n, ok := m.number, true
		if m.isText {
			n, ok = integer(m.text)
		}
		if ok {
			_, ok = slices.BinarySearch(s.ints, n)
		}
		return ok
	}
	var buf [20]byte
	text := m.view(&buf)
	if s.shape == listpack {
		return findEntry(s.packed, text) >= 0
	}
	_, ok := s.table.Get(text)
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
			if s.shape != hashtable {
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
	switch s.shape {
	case intset:
		for _, n := range s.ints {
			if !yield(Member{number: n}) {
				return
			}
		}
	case listpack:
		for d := s.packed; len(d) > 0; {
			b, size := firstEntry(d)
			if !yield(textMember(viewOf(b))) {
				return
			}
			d = d[size:]
		}
	case hashtable:
		for text := range s.table.All() {
			if !yield(textMember(text)) {
				return
			}
		}
	}
}

// own makes ints or packed ready for writing.
func (s *Set) own() {
	if s.shared {
		s.ints = slices.Clone(s.ints)
		s.packed = slices.Clone(s.packed)
		s.shared = false
	}
}

// Expect chooses the shape of a set to which up to n members, the first of
// them given, are about to be added, as Redis does for SADD. Members that turn
// out to be there already count too.
func (s *Set) Expect(l *Limits, first Member, n int) {
	switch {
	case s.shape == hashtable:
	case s.shape == intset && n <= l.SetMaxIntsetEntries && (len(s.ints) > 0 || !first.isText):
	case s.Len() > 0 && s.shape == intset || n > l.SetMaxListpackEntries:
		s.hash()
	default:
		s.KeepOrder()
	}
}

// Add adds a copy of m and reports whether it was not there. O(1) in a hash
// table, otherwise O(n).
func (s *Set) Add(l *Limits, m Member) bool {
	added := s.add(l, m)
	if added && s.log != nil {
		var buf [20]byte
		s.log.put(m.view(&buf))
	}
	return added
}

func (s *Set) add(l *Limits, m Member) bool {
	var buf [20]byte
	if s.shape == intset {
		n, ok := m.Int()
		if m.isText {
			n, ok = integer(m.text)
		}
		if ok {
			return s.addInt(l, n)
		}
		s.leaveInts(l, len(m.text))
	}
	text := m.view(&buf)
	if s.shape == listpack {
		if findEntry(s.packed, text) >= 0 {
			return false
		}
		if s.n < l.SetMaxListpackEntries && len(text) <= l.SetMaxListpackValue {
			s.own()
			s.appendText(text)
			return true
		}
		s.hash()
	}
	if m.isText {
		_, there := s.table.SetBytes(bytesOf(m.text), struct{}{})
		return !there
	}
	if _, there := s.table.Get(text); there {
		return false
	}
	s.table.Set(m.owned(), struct{}{})
	return true
}

func (s *Set) addInt(l *Limits, n int64) bool {
	i, there := slices.BinarySearch(s.ints, n)
	if there {
		return false
	}
	s.own()
	s.ints = slices.Insert(s.ints, i, n)
	if len(s.ints) > l.SetMaxIntsetEntries {
		s.hash()
	}
	return true
}

// leaveInts changes the shape because a member of size bytes, which is no
// integer, is to come.
func (s *Set) leaveInts(l *Limits, size int) {
	if n := len(s.ints); n > 0 {
		var buf [20]byte
		size = max(size, len(Member{number: s.ints[0]}.view(&buf)), len(Member{number: s.ints[n-1]}.view(&buf)))
	}
	if len(s.ints) < l.SetMaxListpackEntries && size <= l.SetMaxListpackValue {
		s.pack()
	} else {
		s.hash()
	}
}

func (s *Set) appendText(text string) {
	at := len(s.packed)
	s.packed = slices.Grow(s.packed, entrySize(len(text)))[:at+entrySize(len(text))]
	putEntry(s.packed[at:], bytesOf(text))
	s.n++
}

// pack changes the shape from integers to a listpack.
func (s *Set) pack() {
	if s.shape != intset {
		return
	}
	ints := s.ints
	s.ints, s.packed, s.shape, s.shared = nil, nil, listpack, false
	var buf [20]byte
	for _, n := range ints {
		s.appendText(Member{number: n}.view(&buf))
	}
}

// hash changes the shape to a hash table.
func (s *Set) hash() {
	if s.shape == hashtable {
		return
	}
	t := new(table.Table[struct{}])
	for m := range s.Members {
		t.Set(m.owned(), struct{}{})
	}
	*s = Set{table: t, shape: hashtable, log: s.log}
}

// KeepOrder makes an empty set keep integers, too, in the order in which they
// come, as SINTERSTORE does. Sort is for when they have come.
func (s *Set) KeepOrder() {
	if s.shape == intset && s.log != nil {
		s.log.op(opOrdered)
	}
	s.pack()
}

// Sort changes the shape to sorted integers if all members are integers, and
// not too many.
func (s *Set) Sort(l *Limits) {
	if s.shape == intset || s.Len() > l.SetMaxIntsetEntries {
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
	*s = Set{ints: ints, log: s.log}
	if s.log != nil {
		s.log.anew()
	}
}

// Remove removes m and reports whether it was there. If m came from this set,
// its text is not good any more.
func (s *Set) Remove(m Member) bool {
	at := -1
	if s.log != nil {
		at = len(s.log.ops)
		var buf [20]byte
		s.log.remove(m.view(&buf)) // before, for m may be a view of this set
	}
	removed := s.remove(m)
	if !removed && at >= 0 {
		s.log.ops = s.log.ops[:at]
		s.log.n--
	}
	return removed
}

func (s *Set) remove(m Member) bool {
	var buf [20]byte
	switch s.shape {
	case intset:
		n, ok := m.Int()
		if m.isText {
			n, ok = integer(m.text)
		}
		i := 0
		if ok {
			i, ok = slices.BinarySearch(s.ints, n)
		}
		if ok {
			s.own()
			s.ints = slices.Delete(s.ints, i, i+1)
		}
		return ok
	case listpack:
		at := findEntry(s.packed, m.view(&buf))
		if at < 0 {
			return false
		}
		s.own()
		_, size := firstEntry(s.packed[at:])
		s.packed = slices.Delete(s.packed, at, at+size)
		s.n--
		return true
	}
	_, there := s.table.Delete(m.view(&buf))
	return there
}

// Random returns a member of a set that is not empty, every one being equally
// likely. O(1), in a listpack O(n).
func (s *Set) Random(r *rand.Rand) Member {
	switch s.shape {
	case intset:
		return Member{number: s.ints[r.IntN(len(s.ints))]}
	case listpack:
		d := s.packed
		for range r.IntN(s.n) {
			_, size := firstEntry(d)
			d = d[size:]
		}
		b, _ := firstEntry(d)
		return textMember(viewOf(b))
	}
	text, _, _ := s.table.Random(r)
	return textMember(text)
}

// Sample yields count different members, at most Len, every choice of them
// being equally likely, though not every order. O(count) on average if the set
// is a hash table of many times that, otherwise O(n). The set must not be
// changed meanwhile.
func (s *Set) Sample(r *rand.Rand, count int) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		if s.shape == hashtable && count < s.Len()/4 {
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
		text, _, _ := s.table.Random(r)
		if _, again := drawn[text]; again {
			continue
		}
		drawn[text] = struct{}{}
		if !yield(textMember(text)) {
			return
		}
	}
}

// Pop removes count members, fewer than Len, as Sample chooses them, and
// passes each to yield before it is gone.
func (s *Set) Pop(r *rand.Rand, count int, yield func(Member)) {
	gone := make([]string, 0, count)
	var numbers []int64
	for m := range s.Sample(r, count) {
		yield(m)
		if s.log != nil {
			var buf [20]byte
			s.log.remove(m.view(&buf))
		}
		if m.isText {
			gone = append(gone, m.text)
		} else {
			numbers = append(numbers, m.number)
		}
	}
	switch s.shape {
	case intset: // in ascending order, as the members are
		s.own()
		s.ints = slices.DeleteFunc(s.ints, func(n int64) bool {
			if len(numbers) == 0 || numbers[0] != n {
				return false
			}
			numbers = numbers[1:]
			return true
		})
	case listpack: // in the order of the entries
		old := s.packed
		s.packed, s.n, s.shared = nil, 0, false
		for len(old) > 0 {
			b, size := firstEntry(old)
			if len(gone) > 0 && gone[0] == string(b) {
				gone = gone[1:]
			} else {
				s.appendText(viewOf(b))
			}
			old = old[size:]
		}
	default:
		for _, text := range gone {
			s.table.Delete(text)
		}
	}
}

// Scan passes about count members to yield and returns the cursor to go on
// with, 0 at the end. Members that are there throughout a scan are passed,
// whatever happens to others meanwhile. What is no hash table comes all at once.
func (s *Set) Scan(cursor uint64, count int, yield func(Member)) uint64 {
	if s.shape == hashtable {
		return s.table.Scan(cursor, count, func(text string, _ struct{}) { yield(textMember(text)) })
	}
	for m := range s.Members {
		yield(m)
	}
	return 0
}

// Clone returns a set with the same members. O(1): the two share memory until
// one of them is changed.
func (s *Set) Clone() *Set {
	c := *s
	c.log = nil
	if s.shape == hashtable {
		c.table = s.table.Clone()
	} else {
		s.shared, c.shared = true, true
	}
	return &c
}

// Encoding returns what OBJECT ENCODING says: "intset", "listpack" or
// "hashtable".
func (s *Set) Encoding(*Limits) string {
	switch s.shape {
	case intset:
		return "intset"
	case listpack:
		return "listpack"
	}
	return "hashtable"
}

// Bytes estimates the memory that the set takes. In a hash table it judges the
// size of members by some of them.
func (s *Set) Bytes() int {
	sum := int(unsafe.Sizeof(*s)) + 8*cap(s.ints) + cap(s.packed)
	if s.shape == hashtable {
		const sample = 32
		n, bytes := 0, 0
		for text := range s.table.All() {
			bytes += (len(text) + 7) &^ 7
			if n++; n == sample {
				break
			}
		}
		sum += s.table.Bytes()
		if n > 0 {
			sum += bytes * s.table.Len() / n
		}
	}
	return sum
}

// Check verifies the invariants. O(n).
func (s *Set) Check() error {
	switch s.shape {
	case intset:
		for i := 1; i < len(s.ints); i++ {
			if s.ints[i-1] >= s.ints[i] {
				return fmt.Errorf("integer %d, then %d", s.ints[i-1], s.ints[i])
			}
		}
		if s.packed != nil || s.table != nil {
			return fmt.Errorf("integers and more")
		}
	case listpack:
		n, seen := 0, map[string]bool{}
		for m := range s.Members {
			n++
			seen[m.text] = true
		}
		if n != s.n || n != len(seen) || s.ints != nil || s.table != nil {
			return fmt.Errorf("listpack of %d members, %d different, counted %d", n, len(seen), s.n)
		}
	case hashtable:
		return s.table.Check()
	}
	return nil
}
