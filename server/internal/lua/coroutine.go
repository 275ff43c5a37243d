package lua

// Coroutine is a thread of Lua: a stack of its own.
type Coroutine struct {
	header
	stack []Value
}

// NewCoroutine returns a coroutine that will call a function of Lua.
func (vm *Machine) NewCoroutine(f *Function) *Coroutine { panic("") }

// Resume continues a coroutine. The results, of its function or of yield, are valid until the next call.
// The error of a coroutine that cannot be resumed is a string such as "cannot resume dead coroutine", without a
// position.
func (vm *Machine) Resume(c *Coroutine, args ...Value) ([]Value, *Error) { panic("") }

// Yield is the function coroutine.yield: return vm.Yield(a).
func (vm *Machine) Yield(a Args) (int, *Error) { panic("") }

// Running returns the running coroutine; nil for the main one.
func (vm *Machine) Running() *Coroutine { panic("") }

// Status returns "suspended", "running", "normal" or "dead".
func (vm *Machine) Status(c *Coroutine) string { panic("") }
