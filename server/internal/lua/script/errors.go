package script

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/zsetd/zsetd/server/internal/lua/compiler"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// frame is a position in a running function.
type frame struct {
	fn       *lua.LFunction
	position int // of a Lua function, as its prototype has it,
	pc       int // the index of its instruction
	line     int // and the line
}

// instruction returns the instruction of a Lua function.
func (f frame) instruction() compiler.Instruction {
	return compiler.Instruction(f.fn.Proto.Code[f.pc])
}

// frameAt returns a frame of the stack; level 0 is the innermost.
func frameAt(L *lua.LState, level int) (f frame, ok bool) {
	dbg, ok := L.GetStack(level)
	if !ok || level > 1 && lostFrame(L, level, dbg) {
		return f, false
	}
	fn, err := L.GetInfo("fl", dbg, lua.LNil)
	if err != nil {
		return f, false
	}
	f.fn = fn.(*lua.LFunction)
	if !f.fn.IsG {
		f.position = dbg.CurrentLine
		f.line, f.pc = compiler.Position(f.position)
	}
	return f, true
}

// lostFrame reports whether the level is that of a frame which a tail call has replaced
// and which is the last: gopher-lua returns the one above it again.
func lostFrame(L *lua.LState, level int, dbg *lua.Debug) bool {
	above, ok := L.GetStack(level - 1)
	frame := func(d *lua.Debug) uintptr { return reflect.ValueOf(d).Elem().FieldByName("frame").Pointer() }
	return ok && frame(above) == frame(dbg)
}

func (f frame) where() string {
	if f.fn == nil || f.fn.IsG || f.line == 0 {
		return ""
	}
	return f.fn.Proto.SourceName + ":" + strconv.Itoa(f.line) + ": "
}

// where returns the position at a level of the stack, as luaL_where does.
func where(L *lua.LState, level int) string {
	f, _ := frameAt(L, level)
	return f.where()
}

// Raise raises an error from a Go function that a script calls. The position is
// put in front of the message.
func (st *State) Raise(L *lua.LState, msg string) { L.Error(lua.LString(where(L, 1)+msg), 0) }

// raisePlain is Raise without the position, as Lua itself raises errors in C
// functions.
func (st *State) raisePlain(L *lua.LState, msg string) { L.Error(lua.LString(msg), 0) }

// Throw raises any value as an error.
func (st *State) Throw(L *lua.LState, v lua.LValue) { L.Error(v, 0) }

// panicked is the machine's handler that raises the error on top of its stack. It
// translates messages of gopher-lua to those of Lua.
func (st *State) panicked(L *lua.LState) {
	st.unwind(L)
	v := L.Get(-1)
	f, ok := frameAt(L, 0)
	if s, isString := v.(lua.LString); isString && ok {
		v = lua.LString(st.translate(L, f, string(s)))
	}
	if ok && f.fn.IsG {
		f, ok = frameAt(L, 1)
	}
	st.last = raised{}
	if ok {
		st.last = raised{"=[C]", -1, true}
		if !f.fn.IsG {
			st.last.source, st.last.line = "@"+f.fn.Proto.SourceName, f.line
			if strings.HasPrefix(f.fn.Proto.SourceName, "[string ") {
				st.last.source = f.fn.Proto.SourceName
			}
		}
	}
	if st.ticks.end != nil {
		v = st.ticks.end
		st.ticks.hurry()
	}
	panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: v, StackTrace: "-"})
}

// translate returns Lua's message for a message of gopher-lua's machine.
func (st *State) translate(L *lua.LState, f frame, msg string) string {
	// The machine has prefixed the position, with the index of the instruction in
	// the number of the line.
	at := f
	for level := 1; at.fn != nil && at.fn.IsG; level++ {
		at, _ = frameAt(L, level)
	}
	text, ok := msg, false
	if at.fn != nil && !at.fn.IsG {
		text, ok = strings.CutPrefix(msg, at.fn.Proto.SourceName+":"+strconv.Itoa(at.position)+": ")
	} else {
		text, ok = strings.CutPrefix(msg, " ")
	}
	if !ok {
		return msg
	}
	pos := at.where()
	if f.fn.IsG {
		pos = "" // raised in a Go function; Lua omits the position for a C function
	}
	return pos + st.reword(L, f, text)
}

func (st *State) reword(L *lua.LState, f frame, text string) string {
	switch {
	case strings.HasPrefix(text, "attempt to index a non-table object("):
		kind, _, _ := strings.Cut(text[len("attempt to index a non-table object("):], ")")
		reg := -1
		if !f.fn.IsG {
			switch in := f.instruction(); in.Op() {
			case lua.OP_GETTABLE, lua.OP_GETTABLEKS, lua.OP_SELF:
				reg = in.B()
			case lua.OP_SETTABLE, lua.OP_SETTABLEKS:
				reg = in.A()
			}
		}
		return typeError("index", kind, f, reg)
	case text == "attempt to call a non-function object":
		kind, reg := "nil", -1
		switch {
		case f.fn == st.coRun:
			kind = L.Get(1).Type().String()
		case !f.fn.IsG:
			switch in := f.instruction(); in.Op() {
			case lua.OP_CALL, lua.OP_TAILCALL:
				reg = in.A()
				kind = st.registerKind(L, f, reg)
			case lua.OP_TFORLOOP:
				kind = st.registerKind(L, f, in.A())
			}
		}
		return typeError("call", kind, f, reg)
	case strings.HasPrefix(text, "cannot perform "):
		return st.arithError(L, f)
	case text == "__unm undefined":
		return st.arithError(L, f)
	case text == "__len undefined":
		reg := f.instruction().B()
		return typeError("get length of", st.registerKind(L, f, reg), f, reg)
	case strings.HasPrefix(text, "attempt to compare "):
		a, b, ok := strings.Cut(text[len("attempt to compare "):], " with ")
		if ok && a == b {
			return "attempt to compare two " + a + " values"
		}
	case text == "too many recursions in gettable":
		return "loop in gettable"
	case text == "too many recursions in settable":
		return "loop in settable"
	case text == "registry overflow":
		return "stack overflow"
	case text == "can not yield from outside of a coroutine":
		return "attempt to yield across metamethod/C-call boundary"
	}
	return text
}

func typeError(op, kind string, f frame, reg int) string {
	if reg >= 0 {
		if what, name := compiler.NameOf(f.fn.Proto, f.pc, reg); what != "" {
			return fmt.Sprintf("attempt to %s %s '%s' (a %s value)", op, what, name, kind)
		}
	}
	return "attempt to " + op + " a " + kind + " value"
}

// rkValue returns the value of an operand of the innermost frame.
func (st *State) rkValue(L *lua.LState, f frame, rk int) lua.LValue {
	if i, ok := compiler.Constant(rk); ok {
		return f.fn.Proto.Constants[i]
	}
	// The error's message is on the stack already.
	if v := L.Get(rk + 1); v != nil {
		return v
	}
	return lua.LNil
}

func (st *State) registerKind(L *lua.LState, f frame, reg int) string {
	return st.rkValue(L, f, reg).Type().String()
}

func (st *State) arithError(L *lua.LState, f frame) string {
	if f.fn.IsG {
		return "attempt to perform arithmetic on a nil value"
	}
	in := f.instruction()
	rk := in.B()
	if in.Op() != lua.OP_UNM {
		if _, ok := conv.ToNumber(st.rkValue(L, f, rk)); ok {
			rk = in.C()
		}
	}
	kind := st.registerKind(L, f, rk)
	if _, ok := compiler.Constant(rk); ok {
		rk = -1
	}
	return typeError("perform arithmetic on", kind, f, rk)
}

// calledAs returns the expression by which the function at a level was called.
func calledAs(L *lua.LState, level int) (what, name string) {
	f, ok := frameAt(L, level+1)
	if !ok || f.fn.IsG {
		return "", "?"
	}
	switch in := f.instruction(); in.Op() {
	case lua.OP_CALL, lua.OP_TAILCALL, lua.OP_TFORLOOP:
		if what, name = compiler.NameOf(f.fn.Proto, f.pc, in.A()); what != "" {
			return what, name
		}
	}
	return "", "?"
}

// argError raises the error of a bad argument.
func (st *State) argError(L *lua.LState, n int, msg string) {
	what, name := calledAs(L, 0)
	if what == "method" {
		if n--; n == 0 {
			st.Raise(L, "calling '"+name+"' on bad self ("+msg+")")
		}
	}
	st.Raise(L, fmt.Sprintf("bad argument #%d to '%s' (%s)", n, name, msg))
}

func (st *State) typeError(L *lua.LState, n int, want string) {
	got := "no value"
	if n <= L.GetTop() {
		got = L.Get(n).Type().String()
	}
	st.argError(L, n, want+" expected, got "+got)
}

// The arguments of Go functions, parsed as Lua's auxiliary library does.

func (st *State) checkAny(L *lua.LState, n int) lua.LValue {
	if n > L.GetTop() {
		st.argError(L, n, "value expected")
	}
	return L.Get(n)
}

func (st *State) checkString(L *lua.LState, n int) string {
	s, ok := conv.ToString(L.Get(n))
	if !ok {
		st.typeError(L, n, "string")
	}
	return s
}

func (st *State) checkNumber(L *lua.LState, n int) float64 {
	if v, ok := L.Get(n).(lua.LNumber); ok {
		return float64(v)
	}
	f, ok := conv.ToNumber(L.Get(n))
	if !ok {
		st.typeError(L, n, "number")
	}
	return f
}

// checkInt reads an argument as Lua reads a ptrdiff_t, checkInt32 as an int.
func (st *State) checkInt(L *lua.LState, n int) int { return int(conv.ToInt(st.checkNumber(L, n))) }

func (st *State) checkInt32(L *lua.LState, n int) int { return conv.ToInt32(st.checkNumber(L, n)) }

func (st *State) optInt(L *lua.LState, n, missing int) int {
	if n > L.GetTop() || L.Get(n) == lua.LNil {
		return missing
	}
	return st.checkInt(L, n)
}

// checkTable reads a table argument; for a proxy, it returns the table behind it.
func (st *State) checkTable(L *lua.LState, n int) *lua.LTable {
	t, ok := L.Get(n).(*lua.LTable)
	if !ok {
		st.typeError(L, n, "table")
	}
	return st.real(t)
}

// checkOpen refuses a read-only table.
func (st *State) checkOpen(L *lua.LState, t *lua.LTable) {
	if st.guardOf(t) != nil {
		st.raisePlain(L, "Attempt to modify a readonly table")
	}
}

// checkOpenTable reads a table argument that is to be changed.
func (st *State) checkOpenTable(L *lua.LState, n int) *lua.LTable {
	t, ok := L.Get(n).(*lua.LTable)
	if !ok {
		st.typeError(L, n, "table")
	}
	st.checkOpen(L, t)
	return t
}

func (st *State) checkFunction(L *lua.LState, n int) *lua.LFunction {
	f, ok := L.Get(n).(*lua.LFunction)
	if !ok {
		st.typeError(L, n, "function")
	}
	return f
}

func (st *State) checkOption(L *lua.LState, n int, missing string, options ...string) string {
	s := missing
	if n <= L.GetTop() && L.Get(n) != lua.LNil || missing == "" {
		s = st.checkString(L, n)
	}
	if !slices.Contains(options, s) {
		st.argError(L, n, "invalid option '"+s+"'")
	}
	return s
}
