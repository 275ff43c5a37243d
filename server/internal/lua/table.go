package lua

// Table is a table.
type Table struct {
	header
	ReadOnly bool // instructions and Set refuse to change it
	Meta     *Table
	absent   uint8 // metamethods that it lacks as a metatable, a bit for each of those that are cached
	logNodes uint8
	free     int32 // all nodes from here on are in use
	array    []Value
	nodes    []node
}

type node struct {
	key, value Value
	next       int32
}

// NewTable returns a table with room for elements and for other fields.
func NewTable(array, hash int) *Table { panic("") }

// Get returns a field without metamethods.
func (t *Table) Get(k Value) Value { panic("") }

// GetInt is Get for a whole number.
func (t *Table) GetInt(i int) Value { panic("") }

// GetText is Get for a string.
func (t *Table) GetText(name string) Value { panic("") }

// Set sets a field without metamethods. The error is that of a key nil or NaN, or of a
// read-only table.
func (t *Table) Set(vm *Machine, k, v Value) *Error { panic("") }

// SetInt is Set for a whole number, also if the table is read-only. vm may be nil.
func (t *Table) SetInt(vm *Machine, i int, v Value) { panic("") }

// SetText is Set for a string, also if the table is read-only. vm may be nil.
func (t *Table) SetText(vm *Machine, name string, v Value) { panic("") }

// Append sets the field after Len.
func (t *Table) Append(vm *Machine, v Value) { t.SetInt(vm, t.Len()+1, v) }

// Len returns the border that the operator # finds.
func (t *Table) Len() int { panic("") }

// Next returns the field after one with a key, or the first one after nil; the key nil ends
// them. ok is false if the table never had the key.
func (t *Table) Next(k Value) (key, value Value, ok bool) { panic("") }

// Entry returns the first field from a position on, 0 at first, and the position after it; a key nil
// ends them.
func (t *Table) Entry(at int) (key, value Value, next int) { panic("") }
