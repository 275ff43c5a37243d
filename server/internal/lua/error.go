package lua

import "strconv"

// Error is an error that a script may catch, or one of Interrupt, which it cannot.
type Error struct {
	Value Value
	Fatal bool // of Interrupt
	Known bool // a function raised it: see Source and Line

	handled bool // the handler has been called
	tail    bool // a tail call has replaced the function
	proto   *Proto
	pc      int32
}

// Source returns the chunk of the function that raised the error, with an "@" before the name of a file; that
// of the caller of a function of Go. It is "=[C]" if that is of Go, too.
func (e *Error) Source() string {
	switch {
	case e.tail:
		return "=(tail call)"
	case e.proto == nil:
		return "=[C]"
	}
	return e.proto.Source
}

// Line returns the line that raised the error; -1 if it is not one of Lua.
func (e *Error) Line() int {
	if e.proto == nil {
		return -1
	}
	return e.proto.line(e.pc)
}

// where returns the position of a frame, such as "user_script:1: ", or "" for a function of Go.
func (f *frame) where() string {
	if f == nil || f.fn.Proto == nil {
		return ""
	}
	p := f.fn.Proto
	return p.Source + ":" + strconv.Itoa(p.line(f.pc)) + ": "
}

// level returns the frame at a level of the stack: 0 is the innermost. ok is false if there is none; f
// is nil if a tail call has replaced it.
func (c *Coroutine) level(n int) (f *frame, ok bool) {
	for i := len(c.frames) - 1; i >= 0; i-- {
		f := &c.frames[i]
		if n == 0 {
			return f, true
		}
		if n -= 1 + int(f.tail); n < 0 {
			return nil, true
		}
	}
	return nil, false
}

// Where returns the position of the function at a level of the stack, such as "user_script:1: ", or
// "" if that is of Go or does not exist. Level 0 is the running function of Go, 1 the one that called it. A
// tail call is a level of its own.
func (vm *Machine) Where(level int) string {
	f, _ := vm.co.level(level)
	return f.where()
}

// Position returns the chunk and the line of the function at a level of the stack, as [Error.Source] and
// [Error.Line] do. ok is false if there is none.
func (vm *Machine) Position(level int) (source string, line int, ok bool) {
	f, ok := vm.co.level(level)
	e := Error{tail: f == nil}
	if f != nil {
		e.proto, e.pc = f.fn.Proto, f.pc
	}
	return e.Source(), e.Line(), ok
}

// CalledAs returns by which expression the running function of Go was called: "method", "global", "local",
// "field" or "upvalue", and its name; "" and "?" if it has none.
func (vm *Machine) CalledAs() (what, name string) {
	frames := vm.co.frames
	if len(frames) < 2 {
		return "", "?"
	}
	f := &frames[len(frames)-2]
	if f.fn.Proto == nil {
		return "", "?"
	}
	switch in := f.fn.Proto.Code[f.pc-1]; in.Op() {
	case OpCall, OpTailCall, OpForIn:
		if o, name := f.fn.Proto.NameOf(int(f.pc-1), in.A()); o != Unnamed {
			return o.String(), name
		}
	}
	return "", "?"
}

// Raise returns an error whose message begins with the position at which the running function of Go
// was called, as luaL_error does.
func (vm *Machine) Raise(msg string) *Error { return vm.Throw(Text(vm.Where(1) + msg)) }

// RaisePlain returns an error whose message has the position of the innermost function if that is of
// Lua: errors of the machine itself have none in a function of Go.
func (vm *Machine) RaisePlain(msg string) *Error { return vm.Throw(Text(vm.Where(0) + msg)) }

// Throw returns an error with any value.
func (vm *Machine) Throw(v Value) *Error { return &Error{Value: v} }

// operandError returns the error that an operation, such as "call", is not possible with a value: the operand of
// an instruction in a register, if that is not negative.
func (vm *Machine) operandError(op string, v Value, register int) *Error {
	kind := v.Kind().String()
	if register >= 0 {
		f := vm.co.frame()
		if o, name := f.fn.Proto.NameOf(int(f.pc-1), register); o != Unnamed {
			return vm.RaisePlain("attempt to " + op + " " + o.String() + " '" + name + "' (a " + kind + " value)")
		}
	}
	return vm.RaisePlain("attempt to " + op + " a " + kind + " value")
}

func (vm *Machine) orderError(a, b Value) *Error {
	s, t := a.Kind().String(), b.Kind().String()
	if s == t {
		return vm.RaisePlain("attempt to compare two " + s + " values")
	}
	return vm.RaisePlain("attempt to compare " + s + " with " + t)
}

// raised notes where an error was raised, while the frames are those of that place, and calls the handler.
func (vm *Machine) raised(e *Error) {
	if !e.Known {
		if f, ok := vm.co.level(0); ok {
			if f.fn.Proto == nil {
				f, ok = vm.co.level(1)
			}
			if e.Known = ok; f != nil {
				e.proto, e.pc = f.fn.Proto, f.pc
			} else {
				e.tail = ok
			}
		}
	}
	if e.handled || e.Fatal || vm.handler.ref == nil {
		return
	}
	e.handled = true
	v, err := vm.Call1(vm.handler, e.Value)
	if err != nil {
		e.Fatal, v = err.Fatal, err.Value
	}
	e.Value = v
}
