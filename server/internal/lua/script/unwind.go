package script

import (
	"fmt"
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// A function that has captured a variable shares it with the function that declares it
// until that one is left: its upvalue is open. Gopher-lua closes all open upvalues when
// it raises an error, also those of functions that continue because the error is
// caught below them; later assignments to such a variable are seen by one side only.
// So here protected calls keep upvalues open, and close those of the functions that the
// error leaves. Gopher-lua has no functions for this, so its fields are accessed by
// their offsets.

// upvalueFields are the offsets of fields of gopher-lua.
type upvalueFields struct {
	keep uintptr // LState.hasErrorFunc: an error closes no upvalues
	open uintptr // LState.uvcache: the open upvalues, in ascending order of registers
	next uintptr // Upvalue.next
}

func upvalueOffsets() upvalueFields {
	offset := func(of any, name string) uintptr {
		t := reflect.TypeOf(of)
		f, ok := t.FieldByName(name)
		if !ok {
			panic(fmt.Sprintf("BUG: gopher-lua has no %s.%s", t, name))
		}
		return f.Offset
	}
	return upvalueFields{
		keep: offset(lua.LState{}, "hasErrorFunc"), open: offset(lua.LState{}, "uvcache"), next: offset(lua.Upvalue{}, "next"),
	}
}

// attempt is a protected call.
type attempt struct {
	L    *lua.LState
	last *lua.Upvalue // the last upvalue that was open before, or nil
}

// try calls a function in protected mode, as LState.PCall does, with the upvalues of
// the functions that the call is made from kept open.
func (st *State) try(L *lua.LState, nargs, nret int) error {
	keep := st.keeps(L)
	kept := *keep
	a := attempt{L: L}
	for uv := *st.firstOpen(L); uv != nil; uv = *st.nextOpen(uv) {
		a.last = uv
	}
	st.attempts = append(st.attempts, a)
	*keep = true
	err := L.PCall(nargs, nret, nil)
	*keep = kept
	st.attempts = st.attempts[:len(st.attempts)-1]
	if err != nil {
		st.closeAfter(L, a.last) // those that a panic of the machine has left open
	}
	return err
}

// unwind closes the upvalues of the functions that an error leaves. It is called when
// the error is raised, while they have their values.
func (st *State) unwind(L *lua.LState) {
	if len(st.attempts) == 0 {
		return
	}
	a := st.attempts[len(st.attempts)-1]
	if a.L != L {
		return // a coroutine that catches nothing: gopher-lua has closed them all
	}
	st.closeAfter(L, a.last)
}

// closeAfter closes the upvalues after one of them, or all.
func (st *State) closeAfter(L *lua.LState, last *lua.Upvalue) {
	at := st.firstOpen(L)
	if last != nil {
		at = st.nextOpen(last)
	}
	uv := *at
	*at = nil
	for ; uv != nil; uv = *st.nextOpen(uv) {
		if uv.Close(); uv.Value() == nil { // its register is gone
			uv.SetValue(lua.LNil)
		}
	}
}

func (st *State) keeps(L *lua.LState) *bool {
	return (*bool)(unsafe.Add(unsafe.Pointer(L), st.fields.keep))
}

func (st *State) firstOpen(L *lua.LState) **lua.Upvalue {
	return (**lua.Upvalue)(unsafe.Add(unsafe.Pointer(L), st.fields.open))
}

func (st *State) nextOpen(uv *lua.Upvalue) **lua.Upvalue {
	return (**lua.Upvalue)(unsafe.Add(unsafe.Pointer(uv), st.fields.next))
}
