package lua

// Function is a function: of Lua if it has a Proto, else of Go.
type Function struct {
	header
	Proto    *Proto
	upvalues []*upvalue
	Go       GoFunction
}

type upvalue struct{}

// NewFunction returns a function of Go.
func NewFunction(f GoFunction) *Function { return &Function{header: header{KindFunction}, Go: f} }

// NewClosure returns a function of a chunk, which has no upvalues.
func NewClosure(p *Proto) *Function { return &Function{header: header{KindFunction}, Proto: p} }

// GoFunction is a function of Go. It returns the number of its results, which it has put in
// place with [Args.Return] or [Args.Room], or an error:
//
//	return a.Return(lua.Number(1), lua.True)
//	return 0, vm.Raise("wrong")
//
// Nothing of this allocates.
type GoFunction func(vm *Machine, a Args) (results int, err *Error)

// Args are the arguments of a function of Go. The first is that with the index 1, as in
// messages.
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

// Return makes its arguments the results, and returns their number for the caller to return.
func (a Args) Return(values ...Value) (int, *Error) { panic("") }

// Room returns space for n results, which the caller fills and returns as n. It overwrites arguments, and no
// function of Lua may be called before the return.
func (a Args) Room(n int) []Value { panic("") }

// From returns the arguments from one on as the results: From(1) returns all.
func (a Args) From(first int) (int, *Error) { panic("") }

// Slice returns the arguments from one on, valid until a function of Lua is called.
func (a Args) Slice(first int) []Value { panic("") }

// Call calls a value from a function of Go, or from outside of the machine. The results are
// valid until the next call. Nothing is allocated.
func (vm *Machine) Call(f Value, args ...Value) ([]Value, *Error) { panic("") }

// Call1 is Call for one result; nil if there is none.
func (vm *Machine) Call1(f Value, args ...Value) (Value, *Error) { panic("") }

// Protect is Call for pcall and xpcall: an error restores the state of the machine before the
// call. A handler that is not nil is called with the value of an error where it is raised, and returns the value that the error then
// has. An error of Interrupt cannot be caught: it is raised again when the caller continues
func (vm *Machine) Protect(f, handler Value, args ...Value) ([]Value, *Error) { panic("") }

// Depth returns the number of nested calls from Go to Lua: that which a compilation takes from its depth.
func (vm *Machine) Depth() int { panic("") }
