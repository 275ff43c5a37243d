package lua

// Error is an error that a script may catch, or one of Interrupt, which it cannot.
type Error struct {
	Value Value
	Fatal bool // of Interrupt

	// The function and the instruction that raised it: proto is nil if Go did, and not Known if nothing ran.
	Known bool
	proto *Proto
	pc    int
}

// Source returns the chunk that raised the error: "=[C]" for Go.
func (e *Error) Source() string { panic("") }

// Line returns the line that raised the error: -1 for Go.
func (e *Error) Line() int { panic("") }

// Raise returns an error whose message begins with the position at which the running function of Go was
// called, as luaL_error does.
func (vm *Machine) Raise(msg string) *Error { panic("") }

// RaisePlain returns an error whose message has the position of the innermost function if that is of Lua:
// errors of the machine itself have none in a function of Go.
func (vm *Machine) RaisePlain(msg string) *Error { panic("") }

// Throw returns an error with any value.
func (vm *Machine) Throw(v Value) *Error { panic("") }

// Where returns the position of the function at a level of the stack, such as "user_script:1: ", or "" if that
// is of Go or does not exist. Level 0 is the running function of Go, 1 the one that called it. A tail call is a level of its own.
func (vm *Machine) Where(level int) string { panic("") }

// CalledAs returns by which expression the running function of Go was called: "method", "global", "local", "field" or
// "upvalue", and its name; "" and "?" if it has none.
func (vm *Machine) CalledAs() (what, name string) { panic("") }

// TypeError returns the error "attempt to (op) a (kind) value" for a value without a name, as the machine says it.
func (vm *Machine) TypeError(op string, v Value) *Error { panic("") }
