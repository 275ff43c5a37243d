package lua

// Function is a function: of Lua if it has a Proto, else of Go.
type Function struct {
	header
	iterator iterator
	Proto    *Proto
	Go       GoFunction
	upvalues []*upvalue
}

// iterator is a function that OpForIn knows.
type iterator uint8

const (
	iterateNext    iterator = iota + 1 // next
	iterateIndexes                     // that of ipairs
)

// NewFunction returns a function of Go.
func NewFunction(f GoFunction) *Function { return &Function{header: header{KindFunction}, Go: f} }

// NewNext returns the function next, which f is when a script calls it: a loop does not.
func NewNext(f GoFunction) *Function {
	return &Function{header: header{KindFunction}, Go: f, iterator: iterateNext}
}

// NewIndexes returns the function that ipairs returns, which f is when a script calls it: a
// loop does not.
func NewIndexes(f GoFunction) *Function {
	return &Function{header: header{KindFunction}, Go: f, iterator: iterateIndexes}
}

// NewClosure returns a function of a chunk, which has no upvalues.
func NewClosure(p *Proto) *Function { return &Function{header: header{KindFunction}, Proto: p} }

// upvalue is a variable that a function has captured: in a register while the function that
// declares it runs, and then in closed.
type upvalue struct {
	value  *Value
	closed Value
	index  int      // of the register in the stack
	next   *upvalue // that is open, of a lower register
}

// GoFunction is a function of Go. It returns the number of its results, which it has put in
// place with [Args.Return], [Args.From] or [Args.Room], or an error:
//
//	return a.Return(lua.Number(1), lua.True)
//	return 0, vm.Raise("wrong")
//
// Nothing of this allocates but the error.
type GoFunction func(vm *Machine, a Args) (results int, err *Error)

// Args are the arguments of a function of Go. The first one has the index 1, as in messages.
// They are on the stack, below the function's own slot, from which on the results are put.
type Args struct {
	co   *Coroutine
	base int32
	n    int32
}

// Len returns the number of arguments.
func (a Args) Len() int { return int(a.n) }

// At returns an argument; nil if there are fewer.
func (a Args) At(i int) Value {
	if uint(i-1) < uint(a.n) {
		return a.co.stack[int(a.base)+i-1]
	}
	return Value{}
}

// Set replaces an argument that exists.
func (a Args) Set(i int, v Value) { a.co.stack[int(a.base)+i-1] = v }

// Return makes values the results, and returns their number for the caller to return.
func (a Args) Return(values ...Value) (int, *Error) {
	copy(a.Room(len(values)), values)
	return len(values), nil
}

// Room returns space for n results, which the caller fills and returns as n. The second
// overwrites the first argument, and so on, and no function of Lua may be called before the return.
func (a Args) Room(n int) []Value {
	at := int(a.base) - 1
	a.co.need(at + n)
	return a.co.stack[at : at+n]
}

// From returns the arguments from one on as the results: From(1) returns all.
func (a Args) From(first int) (int, *Error) {
	values := a.Slice(first)
	copy(a.Room(len(values)), values)
	return len(values), nil
}

// Slice returns the arguments from one on, valid until a function of Lua is called.
func (a Args) Slice(first int) []Value {
	if first > int(a.n) {
		return nil
	}
	return a.co.stack[int(a.base)+first-1 : int(a.base)+int(a.n)]
}

// Limits of calls, as in Lua 5.1.
const (
	maxFrames  = 16383 // frames of a coroutine
	maxNested  = 200   // calls from Go to Lua, and from the machine to metamethods
	moreNested = 225   // while an error is handled
)

// Call calls a value from a function of Go, or from outside of the machine. The results are
// valid until the next call. Nothing is allocated.
func (vm *Machine) Call(f Value, args ...Value) ([]Value, *Error) {
	co := vm.co
	at := co.top()
	co.need(at + 1 + len(args))
	co.stack[at] = f
	copy(co.stack[at+1:], args)
	n, err := vm.call(co, at, len(args))
	if len(co.frames) == 0 {
		co.clear(n)
	}
	if err != nil {
		return nil, err
	}
	return co.stack[at : at+n], nil
}

// Call1 is Call for one result; nil if there is none.
func (vm *Machine) Call1(f Value, args ...Value) (Value, *Error) {
	results, err := vm.Call(f, args...)
	if len(results) == 0 {
		return Value{}, err
	}
	return results[0], err
}

// callMeta calls a metamethod of an operation with a result.
func (vm *Machine) callMeta(h, a, b Value) (Value, *Error) {
	co := vm.co
	at := co.top()
	co.need(at + 3)
	co.stack[at], co.stack[at+1], co.stack[at+2] = h, a, b
	n, err := vm.call(co, at, 2)
	if err != nil || n == 0 {
		return Value{}, err
	}
	return co.stack[at], nil
}

// Try is Call for pcall and xpcall. A handler that is not nil is called with the value of an error
// where it is raised, and returns the value that the error then has. An error with Fatal set must be returned:
// no script may catch it.
func (vm *Machine) Try(f, handler Value, args ...Value) ([]Value, *Error) {
	outer := vm.handler
	vm.handler = handler
	results, err := vm.Call(f, args...)
	vm.handler = outer
	return results, err
}

// Depth returns the number of calls from Go to Lua that run.
func (vm *Machine) Depth() int { return vm.nested }

// call calls the function at a place of the stack, with n arguments after it. The results replace it.
// After an error the frames are those before the call.
func (vm *Machine) call(co *Coroutine, at, n int) (results int, err *Error) {
	vm.nested++
	results, err = vm.callNested(co, at, n)
	vm.nested--
	return results, err
}

func (vm *Machine) callNested(co *Coroutine, at, n int) (results int, err *Error) {
	depth := len(co.frames)
	if vm.nested >= maxNested {
		switch {
		case vm.nested == maxNested:
			err = vm.RaisePlain("C stack overflow")
			vm.raised(err)
			return 0, err
		case vm.nested >= moreNested:
			return 0, &Error{Value: Text("error in error handling"), handled: true}
		}
	}
	fn := co.stack[at].Function()
	if fn == nil {
		if fn, n, err = vm.callable(co, at, n, -1); err != nil {
			vm.raised(err)
			return 0, err
		}
	}
	if fn.Go != nil {
		if results, err = vm.callGo(co, fn, at, n); err != nil {
			vm.raised(err)
			co.unwind(depth)
		}
		return results, err
	}
	if err = vm.push(co, fn, at, n, Many, true); err != nil {
		vm.raised(err)
		return 0, err
	}
	err = vm.run(co)
	return co.results, err
}

// callable finds the function that a call of another value calls, with that value as the first
// argument, and puts it below.
func (vm *Machine) callable(co *Coroutine, at, n, register int) (*Function, int, *Error) {
	v := co.stack[at]
	fn := vm.metamethod(vm.Metatable(v), eventCall).Function()
	if fn == nil {
		return nil, 0, vm.operandError("call", v, register)
	}
	co.need(at + n + 2)
	copy(co.stack[at+1:at+n+2], co.stack[at:at+n+1])
	co.stack[at] = fn.Value()
	return fn, n + 1, nil
}

// callGo calls a function of Go. After an error its frame remains.
func (vm *Machine) callGo(co *Coroutine, fn *Function, at, n int) (int, *Error) {
	if len(co.frames) >= maxFrames {
		return 0, vm.overflow()
	}
	co.need(at + 1 + n)
	co.frames = append(co.frames, frame{fn: fn, base: int32(at + 1), top: int32(at + 1 + n), ret: int32(at)})
	results, err := fn.Go(vm, Args{co, int32(at + 1), int32(n)})
	if err == nil {
		co.frames = co.frames[:len(co.frames)-1]
	}
	return results, err
}

// overflow returns the error of too many frames.
func (vm *Machine) overflow() *Error { return vm.RaisePlain("stack overflow") }

// push adds the frame of a function of Lua. If fresh, run returns when the function does.
func (vm *Machine) push(co *Coroutine, fn *Function, at, n, want int, fresh bool) *Error {
	if len(co.frames) >= maxFrames {
		return vm.overflow()
	}
	p := fn.Proto
	base := at + 1
	if p.Vararg {
		vm.pushVararg(co, p, at, n)
		base += n
	} else {
		co.need(base + p.Registers)
		for ; n < p.Params; n++ {
			co.stack[base+n] = Value{}
		}
	}
	co.frames = append(co.frames, frame{
		fn: fn, base: int32(base), top: int32(base + p.Registers), ret: int32(at), want: int32(want), fresh: fresh,
	})
	return nil
}

// pushVararg puts the parameters above the arguments, of which those that are more remain below.
func (vm *Machine) pushVararg(co *Coroutine, p *Proto, at, n int) {
	base := at + 1 + n
	co.need(base + max(p.Registers, p.Params+1))
	vm.left -= n >> 4
	args := co.stack[at+1 : base]
	params := co.stack[base : base+p.Params+1]
	clear(params)
	fixed := copy(params[:p.Params], args)
	if p.NeedsArg {
		more := args[fixed:]
		t := NewTable(len(more), 1)
		vm.Spend(tableBytes + len(more)*valueBytes + nodeBytes)
		copy(t.array, more)
		t.SetText(vm, "n", Number(float64(len(more))))
		params[p.Params] = t.Value()
	}
}
