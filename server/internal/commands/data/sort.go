package data

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/score"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// SortCommands returns the rows of SORT and SORT_RO.
func SortCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "sort", Arity: -2, Flags: "write denyoom",
			Keys:   "1 RO access; ? RO access (the patterns of BY and GET: their keys depend on the sorted elements); ? OW update (STORE, which may follow any option)",
			KeysBy: protocol.KeysOfSort,
			Group:  "generic", Since: "1.0.0", Categories: "set sortedset list dangerous",
			Complexity: "O(N + M log M), N elements, M sorted; O(N) without sorting",
			Summary:    "Sort the elements of a list, set or sorted set, and return or store them",
			Syntax:     "key [BY by-pattern=pattern:pattern#1] limit:[LIMIT offset count] [GET get-pattern=pattern:pattern#1 [GET pattern ...]] order:[ASC|DESC] [sorting:ALPHA] [STORE destination#2]",
		}, Run: sortCommand},
		{Facts: protocol.Facts{
			Name: "sort_ro", Arity: -2, Flags: "readonly",
			Keys:   "1 RO access; ? RO access (the patterns of BY and GET: their keys depend on the sorted elements)",
			KeysBy: protocol.KeysOfSort,
			Group:  "generic", Since: "7.0.0", Categories: "set sortedset list dangerous",
			Complexity: "O(N + M log M), N elements, M sorted; O(N) without sorting",
			Summary:    "As SORT, without STORE",
			Syntax:     "key [BY by-pattern=pattern:pattern#1] limit:[LIMIT offset count] [GET get-pattern=pattern:pattern#1 [GET pattern ...]] order:[ASC|DESC] [sorting:ALPHA]",
		}, Run: sortRo},
	}
}

// sortOptions are the options of SORT.
type sortOptions struct {
	by     []byte   // pattern of the sort keys; nil: the elements themselves
	unsort bool     // BY with a pattern without a star: do not sort
	get    [][]byte // patterns of the values to reply; none: the elements themselves
	desc   bool
	alpha  bool
	offset int64
	count  int64 // negative: all

	store       bool
	destination []byte
}

func parseSortOptions(c *engine.Call, key []byte, readonly bool) sortOptions {
	o := sortOptions{count: -1}
	for c.More() {
		switch {
		case c.Is("ASC"):
			o.desc = false
		case c.Is("DESC"):
			o.desc = true
		case c.Is("ALPHA"):
			o.alpha = true
		case c.Len() >= 3 && c.Is("LIMIT"):
			o.offset, o.count = c.Int(), c.Int()
		case !readonly && c.Len() >= 2 && c.Is("STORE"):
			o.store, o.destination = true, c.Bytes()
		case c.Len() >= 2 && c.Is("BY"):
			o.by = c.Bytes()
			if bytes.IndexByte(cString(o.by), '*') >= 0 && c.Config().ClusterEnabled && !inSlotOf(key, o.by) {
				c.Fail("ERR BY option of SORT denied in Cluster mode when keys formed by the pattern may be in different slots.")
			}
			if bytes.IndexByte(cString(o.by), '*') >= 0 && !c.ReadsAnyKey() {
				c.Fail("ERR BY option of SORT denied due to insufficient ACL permissions.")
			}
			// Once a pattern without a star is given unsort stays true, whatever
			// follows.
			o.unsort = o.unsort || bytes.IndexByte(cString(o.by), '*') < 0
		case c.Len() >= 2 && c.Is("GET"):
			pattern := c.Bytes()
			if c.Config().ClusterEnabled && string(pattern) != "#" && !inSlotOf(key, pattern) {
				c.Fail("ERR GET option of SORT denied in Cluster mode when keys formed by the pattern may be in different slots.")
			}
			if !c.ReadsAnyKey() {
				c.Fail("ERR GET option of SORT denied due to insufficient ACL permissions.")
			}
			o.get = append(o.get, pattern)
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	return o
}

// inSlotOf reports whether all keys that a pattern forms are in the slot of key: the pattern
// has no star, or a hash tag before it.
func inSlotOf(key, pattern []byte) bool {
	before, _, star := bytes.Cut(pattern, []byte("*"))
	if star {
		_, tagged, _ := bytes.Cut(before, []byte("{"))
		if bytes.IndexByte(tagged, '}') < 1 {
			return false
		}
	}
	return keyslot.Of(pattern) == keyslot.Of(key)
}

// window returns the requested part of n elements: [start, end).
func (o *sortOptions) window(n int) (start, end int) {
	start = int(min(max(o.offset, 0), int64(n)))
	if o.count < 0 {
		return start, n
	}
	return start, start + int(min(o.count, int64(n-start)))
}

func sortCommand(c *engine.Call) { sort(c, false) }

func sortRo(c *engine.Call) { sort(c, true) }

func sort(c *engine.Call, readonly bool) {
	key := c.Bytes()
	o := parseSortOptions(c, key, readonly)
	if !c.OK() {
		return
	}
	var value any
	if e := c.DB.Get(key); e != nil {
		value = e.Value()
	}
	var items []sortItem
	switch v := value.(type) {
	case nil:
	case *sequence.List:
		items = o.ofList(v)
	case *keyspace.Set:
		if o.unsort && (o.store || c.OfScript) {
			// Stored results, and those of scripts, must not depend on the order of
			// a hash table.
			o.unsort, o.by, o.alpha = false, nil, true
		}
		for s := range v.All() {
			items = append(items, sortItem{element: s})
		}
		if o.unsort {
			start, end := o.window(len(items))
			items = items[start:end]
		}
	case *zset.Set:
		items = o.ofSortedSet(v)
		if keyspace.IsListpack(v) {
			c.DB.Edit(key) // updates the memory usage of the key
			keyspace.MakeSkiplist(v)
		}
	default:
		c.Reply.Error(engine.ErrWrongType)
		return
	}
	if !o.unsort {
		if !o.loadSortKeys(c, items) {
			c.Reply.Error("ERR One or more scores can't be converted into double")
			return
		}
		// Redis, where it sorts only the range of LIMIT, leaves elements of equal
		// weight in an unspecified order, so that pages may overlap. Here the sort
		// is always stable.
		start, end := o.window(len(items))
		items = sortedRange(items, start, end, o.compare)
	}
	if o.store {
		storeSorted(c, &o, items)
		return
	}
	c.Reply.Array(len(items) * max(1, len(o.get)))
	for i := range items {
		if len(o.get) == 0 {
			c.Reply.BulkString(items[i].element)
		}
		for _, pattern := range o.get {
			if b, ok := lookupByPattern(c, pattern, items[i].element); ok {
				c.Reply.Bulk(b)
			} else {
				c.Reply.Null()
			}
		}
	}
}

func storeSorted(c *engine.Call, o *sortOptions, items []sortItem) {
	list := new(sequence.List)
	for i := range items {
		if len(o.get) == 0 {
			list.PushBack(protocol.BytesOf(items[i].element))
		}
		for _, pattern := range o.get {
			b, _ := lookupByPattern(c, pattern, items[i].element)
			list.PushBack(b)
		}
	}
	if list.Len() == 0 {
		c.Drop(o.destination)
	} else {
		list.Fit(c.Limits().ListMaxListpackSize)
		c.Put(o.destination, list)
		c.Changed(o.destination, engine.ClassList, "sortstore")
	}
	c.Reply.Int(int64(list.Len()))
}

// sortItem is an element and its sort key.
type sortItem struct {
	element string
	weight  float64
	text    []byte
	index   uint32 // position before the sort
	absent  bool   // there is no value
}

// ofList returns the elements, or only the requested range if they are not to be
// sorted.
func (o *sortOptions) ofList(l *sequence.List) []sortItem {
	n := l.Len()
	start, end := 0, n
	if o.unsort {
		start, end = o.window(n)
	}
	items := make([]sortItem, 0, end-start)
	add := func(b []byte) bool {
		if len(items) == cap(items) {
			return false
		}
		items = append(items, sortItem{element: protocol.View(b)})
		return true
	}
	if o.unsort && o.desc {
		l.Backward(n - 1 - start)(add)
	} else {
		l.Forward(start)(add)
	}
	return items
}

// ofSortedSet returns the members of a sorted set that are to be sorted.
func (o *sortOptions) ofSortedSet(s *zset.Set) []sortItem {
	n := s.Len()
	start, end := 0, n
	if o.unsort {
		start, end = o.window(n)
	}
	span := s.Span(start, end)
	if o.unsort && o.desc {
		span = s.SpanBackward(n-end, n-start)
	}
	items := make([]sortItem, 0, end-start)
	for member := range span {
		items = append(items, sortItem{element: member})
	}
	return items
}

// loadSortKeys looks up the sort keys of the items. It returns false if a sort key should
// be a number and is not.
func (o *sortOptions) loadSortKeys(c *engine.Call, items []sortItem) bool {
	numbers := true
	for i := range items {
		it := &items[i]
		it.index = uint32(i)
		it.text = protocol.BytesOf(it.element)
		if o.by != nil {
			b, ok := lookupByPattern(c, o.by, it.element)
			if it.text, it.absent = b, !ok; !ok {
				continue // 0, as a number
			}
		}
		if !o.alpha {
			var ok bool
			it.weight, ok = parseSortWeight(it.text, c.Config().Valkey())
			numbers = numbers && ok
		} else if !o.store {
			it.text = cString(it.text) // Redis compares C strings
		}
	}
	return numbers
}

// compare orders items by their sort keys, and those with equal ones as before.
func (o *sortOptions) compare(a, b *sortItem) int {
	var n int
	switch {
	case !o.alpha:
		if n = cmp.Compare(a.weight, b.weight); n == 0 {
			n = strings.Compare(a.element, b.element)
		}
	case a.absent || b.absent:
		switch {
		case !b.absent:
			n = -1
		case !a.absent:
			n = 1
		}
	default:
		n = bytes.Compare(a.text, b.text)
	}
	switch {
	case n == 0:
		return cmp.Compare(a.index, b.index)
	case o.desc:
		return -n
	}
	return n
}

// sortedRange returns the items that a sort puts at [start, end), in order. It may change the
// order of the others.
func sortedRange(items []sortItem, start, end int, compare func(a, b *sortItem) int) []sortItem {
	n := end - start
	selectFirst(items, end, compare)
	items = items[:end]
	selectFirst(items, start, compare)
	items = items[start:]
	order := make([]*sortItem, n)
	for i := range order {
		order[i] = &items[i]
	}
	slices.SortFunc(order, compare)
	sorted := make([]sortItem, n)
	for i, it := range order {
		sorted[i] = *it
	}
	return sorted
}

// selectFirst moves the n items that order before all others to the front. It is Hoare's FIND
// (1961) with random pivots. No two items are equal. O(len(items)) on average.
func selectFirst(items []sortItem, n int, compare func(a, b *sortItem) int) {
	for n > 0 && n < len(items) {
		pivot := items[rand.IntN(len(items))]
		i, j := 0, len(items)-1
		for i <= j {
			for compare(&items[i], &pivot) < 0 {
				i++
			}
			for compare(&items[j], &pivot) > 0 {
				j--
			}
			if i <= j {
				items[i], items[j] = items[j], items[i]
				i++
				j--
			}
		}
		switch { // [0, j] order before [i, len); between the two is at most the pivot
		case n <= j:
			items = items[:j+1]
		case n < i:
			return
		default:
			items, n = items[i:], n-i
		}
	}
}

// parseSortWeight reads a decimal number: an empty text is 0, a NUL ends the text, and
// a number out of range is rounded to 0 or infinity. In the dialect of Valkey an empty text
// and such a number are errors.
func parseSortWeight(b []byte, valkey bool) (f float64, ok bool) {
	b = cString(b)
	if len(b) == 0 {
		return 0, !valkey
	}
	if score.Hexadecimal(b) || bytes.IndexByte(b, '_') >= 0 {
		return 0, false
	}
	if f, ok = protocol.ParseFloat(b); ok || valkey {
		return f, ok
	}
	f, err := strconv.ParseFloat(protocol.View(b), 64)
	return f, (err == nil || errors.Is(err, strconv.ErrRange)) && !math.IsNaN(f)
}

// cString returns b up to its first NUL, the end of a string in C.
func cString(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}

// lookupByPattern returns the value that a pattern of BY or GET refers to for an
// element. "#" is the element itself. Otherwise the element replaces the first
// star, which gives the name of a key; after an arrow behind the star follows the
// name of a field of a hash, without an arrow the key must hold a string.
func lookupByPattern(c *engine.Call, pattern []byte, element string) (b []byte, ok bool) {
	visible := cString(pattern)
	if string(visible) == "#" {
		return protocol.BytesOf(element), true
	}
	star := bytes.IndexByte(visible, '*')
	if star < 0 {
		return nil, false
	}
	suffix, field, inHash := pattern[star+1:], []byte(nil), false
	if arrow := bytes.Index(visible[star+1:], []byte("->")); arrow >= 0 && star+1+arrow+2 < len(visible) {
		suffix, field, inHash = suffix[:arrow], suffix[arrow+2:], true
	}
	var buf [64]byte
	key := append(append(append(buf[:0], pattern[:star]...), element...), suffix...)
	if inHash {
		value, ok := c.DB.HashField(key, field)
		return protocol.BytesOf(value), ok
	}
	if c.DB.DueMembers(key, keyspace.FieldsStay) > 0 {
		return nil, false // no string
	}
	if e := c.DB.Get(key); e != nil {
		if s, ok := e.Value().(*keyspace.String); ok {
			return s.Content(), true
		}
	}
	return nil, false
}
