package lua

import (
	"unsafe"

	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// Machine runs functions, one at a time.
type Machine struct {
	Globals    *Table // of all functions
	StringMeta *Table // the metatable of strings, or nil
	MaxString  int    // bytes of a string that concatenation may make

	// Interrupt is asked at intervals whether the script may continue: after a number of
	// jumps back and calls, or as much other work (see Tick). An error is raised, with Fatal
	// set, and cannot be caught. It is nil if nothing is asked.
	Interrupt func() *Error

	// Allocated counts the bytes that scripts have allocated since the machine was created;
	// garbage is not subtracted. When it exceeds AskAt, Interrupt is asked soon, which sets
	// AskAt to a greater value.
	Allocated, AskAt int64

	co      *Coroutine // that runs
	main    *Coroutine
	left    int    // work until the next question
	nested  int    // calls from Go to Lua that run
	handler Value  // of errors: see Try
	ended   *Error // of Interrupt
	yielded Error  // with which yield leaves the loop
	events  [eventCount]*String
	lost    Value // is assigned in place of a table that cannot grow, as the script ends
}

// interval is the work between two questions, unless one is sooner for another reason.
const interval = 20_000

// New returns a machine without globals.
func New() *Machine {
	c := &Coroutine{header: header{KindThread}, status: running}
	vm := &Machine{Globals: NewTable(0, 0), MaxString: 512 << 20, main: c, co: c, left: interval, AskAt: 1 << 62, events: eventNames()}
	c.vm = vm
	c.need(1)
	return vm
}

// Begin prepares the machine for a script: it drops what an interrupted one has left, and asks
// after n instructions.
func (vm *Machine) Begin(n int) {
	vm.Reset()
	vm.ended, vm.left = nil, n
}

// Reset makes the machine as it is before a call, after a panic of a function of Go.
func (vm *Machine) Reset() {
	vm.co, vm.nested, vm.handler = vm.main, 0, Value{}
	vm.main.unwind(0)
}

// Tick counts work of as much as n instructions. Functions of Go that may take long call it
// at intervals, and return its error.
func (vm *Machine) Tick(n int) *Error {
	if vm.left -= n; vm.left > 0 {
		return nil
	}
	return vm.ask()
}

// ask asks whether the script must end. After that each question has the same answer.
func (vm *Machine) ask() *Error {
	if vm.ended == nil && vm.Interrupt != nil {
		if vm.ended = vm.Interrupt(); vm.ended != nil {
			vm.ended.Fatal = true
		}
	}
	if vm.left = interval; vm.ended != nil {
		vm.left = 0
	}
	return vm.ended
}

// Spend counts bytes that were allocated for a value. vm may be nil.
func (vm *Machine) Spend(bytes int) {
	if vm == nil {
		return
	}
	if vm.Allocated += int64(bytes); vm.Allocated > vm.AskAt {
		vm.left = 0
	}
}

// Reserve counts bytes that will be allocated, and asks before if they are many.
func (vm *Machine) Reserve(bytes int) *Error {
	if vm.Allocated += int64(bytes); vm.Allocated > vm.AskAt {
		return vm.ask()
	}
	return nil
}

// event is an operation for which values have metamethods.
type event uint8

const (
	eventIndex event = iota
	eventNewIndex
	eventEqual
	eventLess
	eventLessEqual
	eventConcat
	eventCall
	cachedEvents
)

const (
	eventAdd = cachedEvents + iota
	eventSub
	eventMul
	eventDiv
	eventMod
	eventPow
	eventMinus
	eventLength
	eventCount
)

// eventNames returns the names of the metamethods.
func eventNames() (list [eventCount]*String) {
	for i, name := range [...]string{
		"__index", "__newindex", "__eq", "__lt", "__le", "__concat", "__call",
		"__add", "__sub", "__mul", "__div", "__mod", "__pow", "__unm", "__len",
	} {
		list[i] = Text(name).str()
		list[i].sum()
	}
	return list
}

// metamethod returns a field of a metatable, which may be nil.
func (vm *Machine) metamethod(t *Table, e event) Value {
	if t == nil || e < cachedEvents && t.absent&(1<<e) != 0 {
		return Value{}
	}
	v := t.getString(vm.events[e])
	if v.ref == nil && e < cachedEvents {
		t.absent |= 1 << e
	}
	return v
}

// Metatable returns the metatable of a value, or nil.
func (vm *Machine) Metatable(v Value) *Table {
	if v.ref == nil {
		return nil
	}
	switch (*header)(v.ref).kind {
	case KindTable:
		return (*Table)(v.ref).Meta
	case KindString:
		return vm.StringMeta
	}
	return nil
}

// maxChain is the number of __index or __newindex that are followed.
const maxChain = 100

// Index is v[k] with metamethods.
func (vm *Machine) Index(v, k Value) (Value, *Error) { return vm.index(v, k, -1) }

// index is Index for v in a register of the innermost frame, if that is not negative.
func (vm *Machine) index(v, k Value, register int) (Value, *Error) {
	for range maxChain {
		var h Value
		if t := v.Table(); t != nil {
			e := t.Get(k)
			if e.ref != nil || t.Meta == nil {
				return e, nil
			}
			if h = vm.metamethod(t.Meta, eventIndex); h.ref == nil {
				return Value{}, nil
			}
		} else if h = vm.metamethod(vm.Metatable(v), eventIndex); h.ref == nil {
			return Value{}, vm.operandError("index", v, register)
		}
		if h.Function() != nil {
			return vm.callMeta(h, v, k)
		}
		v, register = h, -1
	}
	return Value{}, vm.RaisePlain("loop in gettable")
}

// SetIndex is v[k] = e with metamethods.
func (vm *Machine) SetIndex(v, k, e Value) *Error { return vm.setIndex(v, k, e, -1) }

func (vm *Machine) setIndex(v, k, e Value, register int) *Error {
	for range maxChain {
		var h Value
		if t := v.Table(); t != nil {
			if t.ReadOnly {
				return vm.RaisePlain("Attempt to modify a readonly table")
			}
			slot, err := t.slot(vm, k)
			if err != nil {
				return err
			}
			if slot.ref == nil {
				h = vm.metamethod(t.Meta, eventNewIndex)
			}
			if h.ref == nil {
				*slot = e
				return nil
			}
		} else if h = vm.metamethod(vm.Metatable(v), eventNewIndex); h.ref == nil {
			return vm.operandError("index", v, register)
		}
		if h.Function() != nil {
			_, err := vm.Call1(h, v, k, e)
			return err
		}
		v, register = h, -1
	}
	return vm.RaisePlain("loop in settable")
}

// equal is a == b with metamethods.
func (vm *Machine) equal(a, b Value) (bool, *Error) {
	if Equal(a, b) {
		return true, nil
	}
	s, t := a.Table(), b.Table()
	if s == nil || t == nil {
		return false, nil
	}
	h := vm.commonMetamethod(s.Meta, t.Meta, eventEqual)
	if h.ref == nil {
		return false, nil
	}
	v, err := vm.callMeta(h, a, b)
	return v.Truth(), err
}

// commonMetamethod returns a metamethod that two metatables both have.
func (vm *Machine) commonMetamethod(s, t *Table, e event) Value {
	h := vm.metamethod(s, e)
	if h.ref == nil || s == t || Equal(h, vm.metamethod(t, e)) {
		return h
	}
	return Value{}
}

// Less is a < b with metamethods.
func (vm *Machine) Less(a, b Value) (bool, *Error) {
	if a.isNumber() && b.isNumber() {
		return a.float() < b.float(), nil
	}
	if s, t := a.str(), b.str(); s != nil && t != nil {
		return s.s < t.s, nil
	}
	if a.Kind() == b.Kind() {
		if h := vm.commonMetamethod(vm.Metatable(a), vm.Metatable(b), eventLess); h.ref != nil {
			v, err := vm.callMeta(h, a, b)
			return v.Truth(), err
		}
	}
	return false, vm.orderError(a, b)
}

// lessEqual is a <= b with metamethods.
func (vm *Machine) lessEqual(a, b Value) (bool, *Error) {
	if a.isNumber() && b.isNumber() {
		return a.float() <= b.float(), nil
	}
	if s, t := a.str(), b.str(); s != nil && t != nil {
		return s.s <= t.s, nil
	}
	if a.Kind() == b.Kind() {
		s, t := vm.Metatable(a), vm.Metatable(b)
		if h := vm.commonMetamethod(s, t, eventLessEqual); h.ref != nil {
			v, err := vm.callMeta(h, a, b)
			return v.Truth(), err
		}
		if h := vm.commonMetamethod(s, t, eventLess); h.ref != nil {
			v, err := vm.callMeta(h, b, a)
			return !v.Truth(), err
		}
	}
	return false, vm.orderError(a, b)
}

// arithmetic is an operation with metamethods on operands that are not both numbers. Their registers
// are negative if they are not registers of the innermost frame.
func (vm *Machine) arithmetic(op Op, a, b Value, first, second int) (Value, *Error) {
	x, ok1 := ToNumber(a)
	y, ok2 := ToNumber(b)
	if ok1 && ok2 {
		return Number(Calculate(op, x, y)), nil
	}
	e := eventMinus
	if op != OpMinus {
		e = eventAdd + event(op-OpAdd)
	}
	h := vm.metamethod(vm.Metatable(a), e)
	if h.ref == nil {
		h = vm.metamethod(vm.Metatable(b), e)
	}
	if h.ref != nil {
		return vm.callMeta(h, a, b)
	}
	if ok1 {
		a, first = b, second
	}
	return Value{}, vm.operandError("perform arithmetic on", a, first)
}

// Concat is a .. b with metamethods.
func (vm *Machine) Concat(a, b Value) (Value, *Error) {
	values := [2]Value{a, b}
	return vm.concat(values[:], -1)
}

// concat joins values from right to left; the first is in a register, if that is not negative.
func (vm *Machine) concat(values []Value, register int) (Value, *Error) {
	right := values[len(values)-1]
	for i := len(values) - 2; i >= 0; {
		left := values[i]
		if !isText(left) || !isText(right) {
			h := vm.metamethod(vm.Metatable(left), eventConcat)
			if h.ref == nil {
				h = vm.metamethod(vm.Metatable(right), eventConcat)
			}
			if h.ref == nil {
				if isText(left) {
					left = right
					i++ // its register, also where it is the result of a metamethod
				}
				if register >= 0 {
					register += i
				}
				return Value{}, vm.operandError("concatenate", left, register)
			}
			depth := len(vm.co.stack)
			v, err := vm.callMeta(h, left, right)
			if err != nil {
				return v, err
			}
			if len(vm.co.stack) != depth && register >= 0 { // the stack has moved
				f := vm.co.frame()
				at := int(f.base) + register
				values = vm.co.stack[at : at+len(values)]
			}
			right = v
			i--
			continue
		}
		first := i
		for first > 0 && isText(values[first-1]) {
			first--
		}
		v, err := vm.join(values[first:i+1], right)
		if err != nil {
			return v, err
		}
		right = v
		i = first - 1
	}
	return right, nil
}

func isText(v Value) bool { return v.isNumber() || v.str() != nil }

// join joins strings and numbers.
func (vm *Machine) join(values []Value, last Value) (Value, *Error) {
	n := textSize(last)
	for _, v := range values {
		n += textSize(v)
	}
	if s, t := values[0].str(), last.str(); len(values) == 1 && s != nil && t != nil { // nothing to do
		if s.s == "" {
			return last, nil
		}
		if t.s == "" {
			return values[0], nil
		}
	}
	if err := vm.reserveString(n); err != nil {
		return Value{}, err
	}
	if n > smallText {
		b := appendTexts(make([]byte, 0, n), values, last)
		return Text(unsafe.String(unsafe.SliceData(b), len(b))), nil
	}
	var small [smallText]byte // on Go's stack
	return Bytes(appendTexts(small[:0], values, last)), nil
}

// smallText is the length of strings that are joined in a buffer first.
const smallText = 64

func appendTexts(b []byte, values []Value, last Value) []byte {
	for _, v := range values {
		b = appendText(b, v)
	}
	return appendText(b, last)
}

// textSize returns the greatest length of the text of a string or a number.
func textSize(v Value) int {
	if s := v.str(); s != nil {
		return len(s.s)
	}
	return 24
}

func appendText(b []byte, v Value) []byte {
	if s := v.str(); s != nil {
		return append(b, s.s...)
	}
	return conv.AppendNumber(b, v.float())
}

// reserveString refuses a string that is too long, and counts its memory.
func (vm *Machine) reserveString(n int) *Error {
	if n > vm.MaxString {
		return vm.Throw(Text("not enough memory"))
	}
	vm.left -= n >> 12
	return vm.Reserve(n + int(unsafe.Sizeof(String{})))
}
