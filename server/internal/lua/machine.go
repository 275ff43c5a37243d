package lua

// Machine runs functions, one at a time.
type Machine struct {
	Globals    *Table // of all functions
	StringMeta *Table // the metatable of strings

	// Interrupt is asked at intervals whether the script may continue: after a number of
	// instructions or as much other work (see Tick), and soon after Hurry. An error is raised, with Fatal set, and
	// cannot be caught.
	Interrupt func() *Error

	// Allocated counts the bytes that scripts have allocated since the machine was created; garbage is not
	// subtracted. When it exceeds AskAt, Interrupt is asked soon, which sets AskAt to a greater value.
	Allocated, AskAt int64
}

// New returns a machine without globals.
func New() *Machine { panic("") }

// Tick counts work of as much as n instructions. Functions of Go that may take long call it at intervals, and
// return its error.
func (vm *Machine) Tick(n int) *Error { panic("") }

// Begin resets the count of instructions to n before the next question.
func (vm *Machine) Begin(n int) { panic("") }

// Hurry makes Interrupt be asked at the next opportunity. Any goroutine may call it.
func (vm *Machine) Hurry() { panic("") }

// Spend counts bytes that a function of Go has allocated for a value.
func (vm *Machine) Spend(bytes int) { panic("") }

// Metafield returns the field of the metatable of a value.
func (vm *Machine) Metafield(v Value, name string) Value { panic("") }

// Index is v[k] with metamethods.
func (vm *Machine) Index(v, k Value) (Value, *Error) { panic("") }

// SetIndex is v[k] = e with metamethods.
func (vm *Machine) SetIndex(v, k, e Value) *Error { panic("") }

// Less is a < b with metamethods.
func (vm *Machine) Less(a, b Value) (bool, *Error) { panic("") }

// Concat is a .. b with metamethods.
func (vm *Machine) Concat(a, b Value) (Value, *Error) { panic("") }
