package lua

import "unsafe"

// Coroutine is a thread of Lua: a stack of values, and one of frames.
type Coroutine struct {
	header
	status  status
	results int // of the last frame that run has left, or of yield
	many    int // the end of the values that resume has put on the stack
	nested  int // calls from Go to Lua when it was resumed: no more may run when it yields
	high    int // the most values that were needed since clear
	stack   []Value
	frames  []frame
	open    *upvalue // the one of the highest register
	resumer *Coroutine
	vm      *Machine
}

type status uint8

const (
	suspended status = iota
	running          // or it has resumed another one
	dead
)

// frame is a call of a function. Its slot is that of the function on the stack, where its
// results will be.
type frame struct {
	fn    *Function
	base  int32 // the first register, or argument of a function of Go
	top   int32 // what it calls is put from here on
	ret   int32 // its slot
	want  int32 // results, or Many
	pc    int32 // the next instruction
	tail  int32 // frames that tail calls have replaced
	fresh bool  // called by Go
}

// slack is the number of values that exist above each place that is needed: all registers that an
// instruction can name exist.
const slack = 256

// need makes the stack as long as n values.
func (c *Coroutine) need(n int) {
	if n > c.high {
		c.grow(n)
	}
}

func (c *Coroutine) grow(n int) {
	if c.high = n; n+slack <= len(c.stack) {
		return
	}
	stack := make([]Value, max(n+slack, 2*len(c.stack)))
	copy(stack, c.stack)
	c.vm.Spend(len(stack) * valueBytes)
	c.stack = stack
	for u := c.open; u != nil; u = u.next {
		u.value = &stack[u.index]
	}
}

// frame returns the innermost frame.
func (c *Coroutine) frame() *frame { return &c.frames[len(c.frames)-1] }

// top returns the first place that is free for a call.
func (c *Coroutine) top() int {
	if len(c.frames) == 0 {
		return 0
	}
	return int(c.frame().top)
}

// capture returns the open upvalue of a register.
func (c *Coroutine) capture(index int) *upvalue {
	at := &c.open
	for *at != nil && (*at).index > index {
		at = &(*at).next
	}
	if *at == nil || (*at).index != index {
		*at = &upvalue{value: &c.stack[index], index: index, next: *at}
	}
	return *at
}

// close closes the upvalues of registers from one on.
func (c *Coroutine) close(from int) {
	for u := c.open; u != nil && u.index >= from; u = c.open {
		c.open, u.next = u.next, nil
		u.closed = *u.value
		u.value = &u.closed
	}
}

// unwind drops all frames but the first n.
func (c *Coroutine) unwind(n int) {
	if n < len(c.frames) {
		c.close(int(c.frames[n].ret))
		c.frames = c.frames[:n]
	}
}

// Sizes of the stacks of a coroutine that are kept between scripts.
const (
	keptStack  = 4 << 10
	keptFrames = 256
)

// clear drops what a call from outside has left, but its n results.
func (c *Coroutine) clear(n int) {
	if c.high > keptStack {
		c.stack = append(make([]Value, 0, keptStack), c.stack[:n]...)
		c.stack = c.stack[:cap(c.stack)]
	} else {
		clear(c.stack[n:max(n, c.high)])
	}
	c.high = n
	if cap(c.frames) > keptFrames {
		c.frames = nil
	}
	for f := c.frames[:cap(c.frames)]; len(f) > 0 && f[0].fn != nil; f = f[1:] {
		f[0] = frame{}
	}
}

// NewCoroutine returns a coroutine that will call a function of Lua.
func (vm *Machine) NewCoroutine(f *Function) *Coroutine {
	c := &Coroutine{header: header{KindThread}, vm: vm}
	c.need(1)
	c.stack[0] = f.Value()
	vm.Spend(int(unsafe.Sizeof(*c)))
	return c
}

// Resume continues a coroutine. The results, of its function or of yield, are valid until the
// next call. The error of a coroutine that cannot be resumed is a string such as "cannot
// resume dead coroutine", without a position.
func (vm *Machine) Resume(c *Coroutine, args ...Value) ([]Value, *Error) {
	switch {
	case c.status != suspended:
		return nil, &Error{Value: Text("cannot resume " + vm.statusName(c) + " coroutine")}
	case vm.nested >= maxNested:
		return nil, &Error{Value: Text("C stack overflow")}
	}
	handler, nested := vm.handler, vm.nested
	c.resumer, c.status = vm.co, running
	vm.nested++
	vm.co, vm.handler, c.nested = c, Value{}, vm.nested
	first, err := vm.resume(c, args)
	vm.co, vm.handler, vm.nested, c.resumer = c.resumer, handler, nested, nil
	switch err {
	case nil:
		c.status = dead
		return c.stack[:c.results], nil
	case &vm.yielded:
		c.status = suspended
		return c.stack[first : first+c.results], nil
	}
	c.status = dead
	return nil, err
}

// resume starts a coroutine or continues it after yield. At the next yield the values are from
// first on.
func (vm *Machine) resume(c *Coroutine, args []Value) (first int, err *Error) {
	if len(c.frames) == 0 {
		c.need(1 + len(args))
		copy(c.stack[1:], args)
		if err = vm.push(c, c.stack[0].Function(), 0, len(args), Many, true); err != nil {
			return 0, err
		}
	} else {
		f := c.frame()
		in := f.fn.Proto.Code[f.pc-1]
		at := int(f.base) + in.A()
		c.need(at + len(args))
		n := copy(c.stack[at:], args)
		if want := in.C(); in.Op() == OpCall && want != Many {
			for ; n < want; n++ {
				c.stack[at+n] = Value{}
			}
		}
		c.many = at + n
	}
	err = vm.run(c)
	if err == &vm.yielded {
		f := c.frame()
		first = int(f.base) + f.fn.Proto.Code[f.pc-1].A() + 1
	}
	return first, err
}

// Yield is the function coroutine.yield: return vm.Yield(a).
func (vm *Machine) Yield(a Args) (int, *Error) {
	c := vm.co
	if c == vm.main || vm.nested != c.nested {
		return 0, vm.RaisePlain("attempt to yield across metamethod/C-call boundary")
	}
	c.results = a.Len()
	return 0, &vm.yielded
}

// Running returns the running coroutine; nil for the main one.
func (vm *Machine) Running() *Coroutine {
	if vm.co == vm.main {
		return nil
	}
	return vm.co
}

// Status returns "suspended", "running", "normal" or "dead".
func (vm *Machine) Status(c *Coroutine) string { return vm.statusName(c) }

func (vm *Machine) statusName(c *Coroutine) string {
	switch {
	case c.status == suspended:
		return "suspended"
	case c.status == dead:
		return "dead"
	case c == vm.co:
		return "running"
	}
	return "normal"
}
