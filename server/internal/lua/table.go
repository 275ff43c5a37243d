package lua

import (
	"math"
	"math/bits"
	"unsafe"
)

// Table is a table: an array of the first elements, and a hash table of the other fields, as
// the paper "The Implementation of Lua 5.0" describes them. The order of the fields, and the
// border that # finds, are those of Lua 5.1, which scripts of Redis see.
//
// The number of nodes is a power of two. Each key has a main position. A new key takes a
// free node, which is searched from the end, if its own is taken; if by a key that is
// not in its main position, that one moves. When no node is free, both parts get new sizes:
// the array the greatest power of two of which more than half is in use.
type Table struct {
	header
	ReadOnly bool   // instructions refuse to change it
	absent   uint8  // metamethods that it lacks as a metatable: a bit for each event that has one
	free     int32  // all nodes from here on are in use
	Meta     *Table // or nil
	array    []Value
	nodes    []node
}

type node struct {
	key, value Value
	next       int32 // the index of the next node with the same main position, plus 1
}

// maxArrayBits is the logarithm of the greatest size of an array that is computed.
const maxArrayBits = 26

// askBytes is the size of a part of a table before which the machine asks whether there is so much memory.
const askBytes = 1 << 20

// Sizes in memory.
const (
	valueBytes = int(unsafe.Sizeof(Value{}))
	nodeBytes  = int(unsafe.Sizeof(node{}))
	tableBytes = int(unsafe.Sizeof(Table{}))
)

// NewTable returns a table with room for elements and for other fields.
func NewTable(array, hash int) *Table {
	t := &Table{header: header{KindTable}}
	if array > 0 {
		t.array = make([]Value, array)
	}
	if hash > 0 {
		t.makeNodes(hash)
	}
	return t
}

// Arrange makes a table that no script knows any more a new one with room for n elements. The array
// is as large as n calls of SetInt make it, on which the operator # depends.
func (t *Table) Arrange(n int) {
	size := 0
	if n > 0 {
		size = 1 << bits.Len(uint(n-1))
	}
	array := t.array[:cap(t.array)]
	if *t = (Table{header: t.header}); size > len(array) || len(array) > keptArray {
		array = make([]Value, size)
	}
	clear(array)
	t.array = array[:size]
}

// keptArray is the size of the largest array that Arrange uses again.
const keptArray = 64

func (t *Table) makeNodes(n int) {
	if n <= 0 {
		t.nodes, t.free = nil, 0
		return
	}
	size := 1 << bits.Len(uint(n-1))
	t.nodes, t.free = make([]node, size), int32(size)
}

// whole returns a number as an index of an array.
func whole(f float64) (i int, ok bool) {
	i = int(f)
	return i, float64(i) == f
}

// Get returns a field without metamethods.
func (t *Table) Get(k Value) Value {
	if k.isNumber() {
		if i := int(k.float()); uint(i-1) < uint(len(t.array)) && float64(i) == k.float() {
			return t.array[i-1]
		}
		if n := t.findNumber(k.float()); n != nil {
			return n.value
		}
		return Value{}
	}
	if k.ref == nil || len(t.nodes) == 0 {
		return Value{}
	}
	if (*header)(k.ref).kind == KindString {
		return t.getString((*String)(k.ref))
	}
	if n := t.find(k); n != nil {
		return n.value
	}
	return Value{}
}

// GetInt is Get for a whole number.
func (t *Table) GetInt(i int) Value {
	if uint(i-1) < uint(len(t.array)) {
		return t.array[i-1]
	}
	if n := t.findNumber(float64(i)); n != nil {
		return n.value
	}
	return Value{}
}

// GetText is Get for a string.
func (t *Table) GetText(name string) Value {
	s := String{header: header{KindString}, s: name}
	return t.getString(&s)
}

func (t *Table) getString(s *String) Value {
	if n := t.findString(s); n != nil {
		return n.value
	}
	return Value{}
}

// findString returns the node of a key, or nil.
func (t *Table) findString(s *String) *node {
	if len(t.nodes) == 0 {
		return nil
	}
	h := s.hash
	if !s.hashed {
		h = s.sum()
	}
	n := &t.nodes[h&uint32(len(t.nodes)-1)]
	for {
		if n.key.ref == unsafe.Pointer(s) {
			return n
		}
		if k := n.key.str(); k != nil && k.hash == h && k.s == s.s {
			return n
		}
		if n.next == 0 {
			return nil
		}
		n = &t.nodes[n.next-1]
	}
}

func (t *Table) findNumber(f float64) *node {
	if len(t.nodes) == 0 {
		return nil
	}
	n := &t.nodes[t.place(f)]
	for {
		if n.key.isNumber() && n.key.float() == f {
			return n
		}
		if n.next == 0 {
			return nil
		}
		n = &t.nodes[n.next-1]
	}
}

// find returns the node of a key, or nil.
func (t *Table) find(k Value) *node {
	if len(t.nodes) == 0 {
		return nil
	}
	switch k.Kind() {
	case KindString:
		return t.findString((*String)(k.ref))
	case KindNumber:
		return t.findNumber(k.float())
	}
	n := &t.nodes[t.main(k)]
	for {
		if n.key == k {
			return n
		}
		if n.next == 0 {
			return nil
		}
		n = &t.nodes[n.next-1]
	}
}

// place returns the main position of a number: the sum of the halves of its bits, modulo the
// size of the table, less 1 to be odd.
func (t *Table) place(f float64) uint32 {
	if f == 0 {
		return 0
	}
	b := math.Float64bits(f)
	return (uint32(b) + uint32(b>>32)) % (uint32(len(t.nodes)-1) | 1)
}

// main returns the main position of a key.
func (t *Table) main(k Value) uint32 {
	size := uint32(len(t.nodes))
	switch k.Kind() {
	case KindNumber:
		return t.place(k.float())
	case KindString:
		return (*String)(k.ref).sum() & (size - 1)
	case KindBool:
		return uint32(k.bits) & (size - 1)
	case KindUserdata:
		return 0
	}
	return uint32(uintptr(k.ref)>>4) % ((size - 1) | 1)
}

// Set sets a field without metamethods, also if the table is read-only. The error is that of a
// key nil or NaN. vm may be nil if the key is neither.
func (t *Table) Set(vm *Machine, k, v Value) *Error {
	slot, err := t.slot(vm, k)
	if err == nil {
		*slot = v
	}
	return err
}

// slot returns where the value of a key is, which it adds if the table does not have it.
func (t *Table) slot(vm *Machine, k Value) (*Value, *Error) {
	switch {
	case k.isNumber():
		f := k.float()
		if i, ok := whole(f); ok && uint(i-1) < uint(len(t.array)) {
			return &t.array[i-1], nil
		}
		if n := t.findNumber(f); n != nil {
			return &n.value, nil
		}
		if f != f {
			return nil, vm.RaisePlain("table index is NaN")
		}
	case k.ref == nil:
		return nil, vm.RaisePlain("table index is nil")
	default:
		t.absent = 0
		if n := t.find(k); n != nil {
			return &n.value, nil
		}
	}
	return t.insert(vm, k), nil
}

// SetInt is Set for a whole number. vm may be nil.
func (t *Table) SetInt(vm *Machine, i int, v Value) {
	if uint(i-1) < uint(len(t.array)) {
		t.array[i-1] = v
		return
	}
	if n := t.findNumber(float64(i)); n != nil {
		n.value = v
		return
	}
	*t.insert(vm, Number(float64(i))) = v
}

// SetText is Set for a string. vm may be nil.
func (t *Table) SetText(vm *Machine, name string, v Value) { t.setString(vm, Text(name).str(), v) }

func (t *Table) setString(vm *Machine, s *String, v Value) {
	t.absent = 0
	if n := t.findString(s); n != nil {
		n.value = v
		return
	}
	*t.insert(vm, s.Value()) = v
}

// Append sets the field after Len.
func (t *Table) Append(vm *Machine, v Value) { t.SetInt(vm, t.Len()+1, v) }

// insert adds a key that the table does not have, and returns its value. The machine counts
// the memory.
func (t *Table) insert(vm *Machine, k Value) *Value {
	if len(t.nodes) == 0 {
		return t.rehash(vm, k)
	}
	at := t.main(k)
	n := &t.nodes[at]
	if n.value.ref == nil {
		n.key = k
		return &n.value
	}
	free := t.freeNode()
	if free < 0 {
		return t.rehash(vm, k)
	}
	f := &t.nodes[free]
	other := t.main(n.key)
	if other == at {
		f.next, n.next = n.next, int32(free)+1
		f.key = k
		return &f.value
	}
	prev := &t.nodes[other]
	for prev.next-1 != int32(at) {
		prev = &t.nodes[prev.next-1]
	}
	prev.next = int32(free) + 1
	*f = *n
	*n = node{key: k}
	return &n.value
}

// freeNode returns a node that never had a key, or -1.
func (t *Table) freeNode() int {
	for t.free > 0 {
		t.free--
		if t.nodes[t.free].key.ref == nil {
			return int(t.free)
		}
	}
	return -1
}

// rehash gives both parts new sizes for a new key, and adds it.
func (t *Table) rehash(vm *Machine, k Value) *Value {
	var counts [maxArrayBits + 1]int // of the indexes above 2^(i-1), up to 2^i
	count := func(k Value) int {
		if !k.isNumber() {
			return 0
		}
		i, ok := whole(k.float())
		if !ok || i < 1 || i > 1<<maxArrayBits {
			return 0
		}
		counts[bits.Len(uint(i-1))]++
		return 1
	}
	elements := t.countArray(&counts)
	total := elements + 1
	for i := range t.nodes {
		if n := &t.nodes[i]; n.value.ref != nil {
			elements += count(n.key)
			total++
		}
	}
	elements += count(k)
	size, within := arraySize(&counts, elements)
	if more := (size-len(t.array))*valueBytes + (total-within)*nodeBytes; vm != nil && more > askBytes && vm.Tick(interval) != nil {
		return &vm.lost
	}
	t.resize(vm, size, total-within)
	if i, ok := whole(k.float()); ok && k.isNumber() && uint(i-1) < uint(len(t.array)) {
		return &t.array[i-1]
	}
	return t.insert(vm, k)
}

func (t *Table) countArray(counts *[maxArrayBits + 1]int) (total int) {
	from := 0
	for b := range counts {
		to := min(1<<b, len(t.array))
		n := 0
		for _, v := range t.array[from:to] {
			if v.ref != nil {
				n++
			}
		}
		counts[b] += n
		total += n
		if from = to; from == len(t.array) {
			break
		}
	}
	return total
}

// arraySize returns the size of the array, and how many elements are within it.
func arraySize(counts *[maxArrayBits + 1]int, elements int) (size, within int) {
	sum := 0
	for b, n := range counts {
		if 1<<b/2 >= elements {
			break
		}
		if sum += n; n > 0 && sum > 1<<b/2 {
			size, within = 1<<b, sum
		}
		if sum == elements {
			break
		}
	}
	return size, within
}

// resize gives both parts new sizes.
func (t *Table) resize(vm *Machine, array, hash int) {
	old, nodes := t.array, t.nodes
	if array > len(old) {
		t.array = make([]Value, array)
		copy(t.array, old)
	} else {
		t.array = old[:array:array]
	}
	t.makeNodes(hash)
	vm.Spend((array-min(array, len(old)))*valueBytes + len(t.nodes)*nodeBytes)
	if array < len(old) {
		for i, v := range old[array:] {
			if v.ref != nil {
				t.SetInt(vm, array+i+1, v)
			}
		}
		t.array = append(make([]Value, 0, array), t.array...)
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		n := &nodes[i]
		if n.value.ref == nil {
			continue
		}
		if k, ok := whole(n.key.float()); ok && n.key.isNumber() && uint(k-1) < uint(len(t.array)) {
			t.array[k-1] = n.value
		} else {
			*t.insert(vm, n.key) = n.value
		}
	}
}

// growArray makes the array at least so long, for elements that follow.
func (t *Table) growArray(vm *Machine, n int) {
	if n > len(t.array) {
		t.resize(vm, n, len(t.nodes))
	}
}

// Len returns the border that the operator # finds.
func (t *Table) Len() int {
	n := len(t.array)
	if n > 0 && t.array[n-1].ref == nil {
		low, high := 0, n
		for high-low > 1 {
			if m := (low + high) / 2; t.array[m-1].ref == nil {
				high = m
			} else {
				low = m
			}
		}
		return low
	}
	if len(t.nodes) == 0 {
		return n
	}
	return t.search(n)
}

// search finds a border above an element, or 0, outside of the array.
func (t *Table) search(low int) int {
	high := low + 1
	for t.GetInt(high).ref != nil {
		low = high
		if high *= 2; high > math.MaxInt32-2 { // made to mislead the search: look at all
			n := 1
			for t.GetInt(n).ref != nil {
				n++
			}
			return n - 1
		}
	}
	for high-low > 1 {
		if m := (low + high) / 2; t.GetInt(m).ref == nil {
			high = m
		} else {
			low = m
		}
	}
	return low
}

// Next returns the field after one with a key, or the first one after nil; the key nil ends
// them. ok is false if the table never had the key.
func (t *Table) Next(k Value) (key, value Value, ok bool) {
	at := 0
	if k.ref != nil {
		if i, whole := whole(k.float()); whole && k.isNumber() && uint(i-1) < uint(len(t.array)) {
			at = i
		} else if n := t.find(k); n != nil {
			at = len(t.array) + int((uintptr(unsafe.Pointer(n))-uintptr(unsafe.Pointer(&t.nodes[0])))/unsafe.Sizeof(node{})) + 1
		} else {
			return Value{}, Value{}, false
		}
	}
	key, value, _ = t.Entry(at)
	return key, value, true
}

// Entry returns the first field from a position on, 0 at first, and the position after it. A
// key nil ends them.
func (t *Table) Entry(at int) (key, value Value, next int) {
	for ; at < len(t.array); at++ {
		if v := t.array[at]; v.ref != nil {
			return Number(float64(at + 1)), v, at + 1
		}
	}
	for i := at - len(t.array); i < len(t.nodes); i++ {
		if n := &t.nodes[i]; n.value.ref != nil {
			return n.key, n.value, len(t.array) + i + 1
		}
	}
	return Value{}, Value{}, len(t.array) + len(t.nodes)
}
