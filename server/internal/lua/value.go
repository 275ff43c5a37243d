package lua

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// Kind is the type of a value.
type Kind uint8

// The kinds of values. KindUserdata has one value, [Null].
const (
	KindNil Kind = iota
	KindBool
	KindNumber
	KindString
	KindTable
	KindFunction
	KindThread
	KindUserdata
)

// String returns the name that the function type returns.
func (k Kind) String() string {
	return [...]string{"nil", "boolean", "number", "string", "table", "function", "thread", "userdata"}[k]
}

// header begins each object that a value refers to.
type header struct{ kind Kind }

// Value is a value of Lua; the zero Value is nil. ref is the object, which begins with a
// header: that of all numbers or of all booleans, whose value is in bits, or else the value
// itself, with bits 0. Two values are equal as == is unless they are numbers or strings.
type Value struct {
	ref  unsafe.Pointer
	bits uint64
}

var (
	numberHeader   = header{KindNumber}
	boolHeader     = header{KindBool}
	userdataHeader = header{KindUserdata}
)

// Nil, True, False are values; Null is the null pointer, which cjson uses.
var (
	Nil   = Value{}
	False = Value{ref: unsafe.Pointer(&boolHeader)}
	True  = Value{ref: unsafe.Pointer(&boolHeader), bits: 1}
	Null  = Value{ref: unsafe.Pointer(&userdataHeader)}
)

// Number returns a number.
func Number(f float64) Value { return Value{unsafe.Pointer(&numberHeader), math.Float64bits(f)} }

// Bool returns a boolean.
func Bool(b bool) Value {
	if b {
		return True
	}
	return False
}

// Text returns a string, without copying it.
func Text(s string) Value {
	return Value{ref: unsafe.Pointer(&String{header: header{KindString}, s: s})}
}

// Bytes returns a string that is a copy of b.
func Bytes(b []byte) Value {
	return copied(b).Value()
}

// Value returns t as a value; nil if t is nil.
func (t *Table) Value() Value { return Value{ref: unsafe.Pointer(t)} }

// Value returns f as a value; nil if f is nil.
func (f *Function) Value() Value { return Value{ref: unsafe.Pointer(f)} }

// Value returns s as a value.
func (s *String) Value() Value { return Value{ref: unsafe.Pointer(s)} }

// Value returns c as a value; nil if c is nil.
func (c *Coroutine) Value() Value { return Value{ref: unsafe.Pointer(c)} }

// Kind returns the type.
func (v Value) Kind() Kind {
	if v.ref == nil {
		return KindNil
	}
	return (*header)(v.ref).kind
}

// IsNil reports whether v is nil.
func (v Value) IsNil() bool { return v.ref == nil }

// Truth reports whether v is neither nil nor false.
func (v Value) Truth() bool {
	return v.ref != nil && (v.ref != unsafe.Pointer(&boolHeader) || v.bits != 0)
}

func (v Value) isNumber() bool { return v.ref == unsafe.Pointer(&numberHeader) }

func (v Value) float() float64 { return math.Float64frombits(v.bits) }

// Number returns a number; ok is false for any other value, also a string.
func (v Value) Number() (f float64, ok bool) { return v.float(), v.isNumber() }

// Str returns a string; ok is false for any other value, also a number.
func (v Value) Str() (s string, ok bool) {
	if t := v.str(); t != nil {
		return t.s, true
	}
	return "", false
}

func (v Value) str() *String {
	if v.ref != nil && (*header)(v.ref).kind == KindString {
		return (*String)(v.ref)
	}
	return nil
}

// Table returns a table, or nil.
func (v Value) Table() *Table {
	if v.ref != nil && (*header)(v.ref).kind == KindTable {
		return (*Table)(v.ref)
	}
	return nil
}

// Function returns a function, or nil.
func (v Value) Function() *Function {
	if v.ref != nil && (*header)(v.ref).kind == KindFunction {
		return (*Function)(v.ref)
	}
	return nil
}

// Coroutine returns a coroutine, or nil.
func (v Value) Coroutine() *Coroutine {
	if v.ref != nil && (*header)(v.ref).kind == KindThread {
		return (*Coroutine)(v.ref)
	}
	return nil
}

// Equal reports whether two values are equal without metamethods, as rawequal does.
func Equal(a, b Value) bool {
	if a.isNumber() {
		return b.isNumber() && a.float() == b.float()
	}
	if a == b {
		return true
	}
	s, t := a.str(), b.str()
	return s != nil && t != nil && s.s == t.s
}

// ToNumber returns a number, or the number that a string contains.
func ToNumber(v Value) (f float64, ok bool) {
	if v.isNumber() {
		return v.float(), true
	}
	if s := v.str(); s != nil {
		return conv.ParseNumber(s.s)
	}
	return 0, false
}

// ToText returns a string, or a number as a string.
func ToText(v Value) (s string, ok bool) {
	if t := v.str(); t != nil {
		return t.s, true
	}
	if v.isNumber() {
		return conv.NumberString(v.float()), true
	}
	return "", false
}

// Display returns what tostring returns for a value without metamethods.
func Display(v Value) string {
	if s, ok := ToText(v); ok {
		return s
	}
	switch v.Kind() {
	case KindNil:
		return "nil"
	case KindBool:
		if v.bits != 0 {
			return "true"
		}
		return "false"
	case KindUserdata:
		return "userdata: (nil)"
	}
	return fmt.Sprintf("%s: %p", v.Kind(), v.ref)
}
