package script

import (
	"errors"
	"math"
	"runtime"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/zsetd/zsetd/server/internal/lua/compiler"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// openBase fills the globals.
func (st *State) openBase() {
	for name, f := range map[string]lua.LGFunction{
		"assert": st.assert, "collectgarbage": st.collectgarbage, "error": st.error, "gcinfo": st.gcinfo,
		"getmetatable": st.getmetatable, "load": st.load, "loadstring": st.loadstring,
		"next": st.next, "pcall": st.pcall, "rawequal": st.rawequal, "rawget": st.rawget,
		"rawset": st.rawset, "select": st.selectArgs, "setmetatable": st.setmetatable,
		"tonumber": st.tonumber, "tostring": st.tostring, "type": st.typeOf, "unpack": st.unpack, "xpcall": st.xpcall,
	} {
		st.globals.RawSetString(name, st.function(f))
	}
	next := st.globals.RawGetString("next")
	st.globals.RawSetString("pairs", st.function(func(L *lua.LState) int {
		t := L.Get(1)
		if _, ok := t.(*lua.LTable); !ok {
			st.typeError(L, 1, "table")
		}
		L.Push(next)
		L.Push(t)
		L.Push(lua.LNil)
		return 3
	}))
	step := st.function(st.ipairsStep)
	st.globals.RawSetString("ipairs", st.function(func(L *lua.LState) int {
		t := L.Get(1)
		if _, ok := t.(*lua.LTable); !ok {
			st.typeError(L, 1, "table")
		}
		L.Push(step)
		L.Push(t)
		L.Push(lua.LNumber(0))
		return 3
	}))
	st.globals.RawSetString("_VERSION", lua.LString("Lua 5.1"))
	st.globals.RawSetString("coroutine", st.coroutineLibrary())
	st.globals.RawSetString("table", st.tableLibrary())
	st.globals.RawSetString("math", st.mathLibrary())
	st.globals.RawSetString("string", st.stringLibrary())
	st.globals.RawSetString("os", st.osLibrary())
	st.globals.RawSetString("bit", st.bitLibrary())
	st.globals.RawSetString("struct", st.structLibrary())
	st.globals.RawSetString("cjson", st.jsonLibrary())
	st.globals.RawSetString("cmsgpack", st.msgpackLibrary())
}

func (st *State) assert(L *lua.LState) int {
	st.checkAny(L, 1)
	if lua.LVAsBool(L.Get(1)) {
		return L.GetTop()
	}
	msg := "assertion failed!"
	if L.GetTop() > 1 && L.Get(2) != lua.LNil {
		msg = conv.CString(st.checkString(L, 2))
	}
	st.Raise(L, msg)
	return 0
}

func (st *State) collectgarbage(L *lua.LState) int {
	switch st.checkOption(L, 1, "collect", "stop", "restart", "collect", "count", "step", "setpause", "setstepmul") {
	case "count":
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		L.Push(lua.LNumber(float64(m.HeapAlloc) / 1024))
	case "step":
		L.Push(lua.LTrue)
	default:
		L.Push(lua.LNumber(0))
	}
	return 1
}

func (st *State) gcinfo(L *lua.LState) int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	L.Push(lua.LNumber(m.HeapAlloc / 1024))
	return 1
}

func (st *State) error(L *lua.LState) int {
	level := st.optInt32(L, 2, 1)
	v := L.Get(1)
	if text, ok := conv.ToString(v); ok && level > 0 {
		v = lua.LString(st.position(L, level) + text)
	}
	L.Error(v, 0)
	return 0
}

// position returns the position of the function at a level above the running one. The
// function that protected puts on the stack is no level.
func (st *State) position(L *lua.LState, level int) string {
	for i := 1; ; i++ {
		f, ok := frameAt(L, i)
		if !ok {
			return ""
		}
		if f.fn == st.coRun {
			continue
		}
		if level--; level == 0 {
			return f.where()
		}
	}
}

func (st *State) getmetatable(L *lua.LState) int {
	v := st.checkAny(L, 1)
	mt := L.GetMetatable(v)
	if t, ok := v.(*lua.LTable); ok && mt == lua.LFalse {
		if st.guardOf(t) != nil {
			mt = lua.LNil
		}
	}
	L.Push(mt)
	return 1
}

func (st *State) setmetatable(L *lua.LState) int {
	t, ok := L.Get(1).(*lua.LTable)
	if !ok {
		st.typeError(L, 1, "table")
	}
	mt, isTable := L.Get(2).(*lua.LTable)
	if !isTable && (L.GetTop() < 2 || L.Get(2) != lua.LNil) {
		st.argError(L, 2, "nil or table expected")
	}
	st.checkOpen(L, t)
	if old, ok := t.Metatable.(*lua.LTable); ok && old.RawGetString("__metatable") != lua.LNil {
		st.Raise(L, "cannot change a protected metatable")
	}
	if isTable {
		t.Metatable = mt
	} else {
		t.Metatable = lua.LNil
	}
	L.Push(t)
	return 1
}

func (st *State) next(L *lua.LState) int {
	t := st.checkTable(L, 1)
	key := L.Get(2)
	k, v := next(t, key)
	L.Push(k)
	if k == lua.LNil {
		return 1
	}
	L.Push(v)
	return 2
}

// next returns the entry after key. Unlike Lua's, it does not detect a key that was
// never in the table.
func next(t *lua.LTable, key lua.LValue) (lua.LValue, lua.LValue) { return t.Next(key) }

func (st *State) ipairsStep(L *lua.LState) int {
	t := st.checkTable(L, 1)
	i := st.checkInt(L, 2) + 1
	v := t.RawGetInt(i)
	if v == lua.LNil {
		return 0
	}
	L.Push(lua.LNumber(i))
	L.Push(v)
	return 2
}

func (st *State) load(L *lua.LState) int {
	chunk := "=(load)"
	if L.GetTop() > 1 && L.Get(2) != lua.LNil {
		chunk = st.checkString(L, 2)
	}
	f := st.checkFunction(L, 1)
	position := where(L, 1)
	var src strings.Builder
	reader := st.function(func(L *lua.LState) int {
		for {
			L.SetTop(0)
			L.Push(f)
			L.Call(0, 1)
			v := L.Get(1)
			s, ok := conv.ToString(v)
			if !ok && v != lua.LNil {
				st.raisePlain(L, position+"reader function must return a string")
			}
			if s == "" {
				return 0
			}
			st.checkLength(L, src.Len()+len(s))
			src.WriteString(s)
		}
	})
	L.SetTop(0)
	L.Push(reader)
	if ok, failed := st.protected(L, 0); !ok {
		L.Push(lua.LNil)
		L.Push(failed)
		return 2
	}
	return st.loaded(L, src.String(), chunk)
}

func (st *State) loadstring(L *lua.LState) int {
	src := st.checkString(L, 1)
	chunk := src
	if L.GetTop() > 1 && L.Get(2) != lua.LNil {
		chunk = st.checkString(L, 2)
	}
	return st.loaded(L, src, chunk)
}

func (st *State) loaded(L *lua.LState, src, chunk string) int {
	id := chunkID(chunk, idSize)
	f, err := st.compile(src, id)
	if err == compiler.ErrStopped {
		L.Error(st.ticks.end, 0)
	}
	if strings.HasPrefix(src, "\x1bLua") { // compiled code would bypass the checks of the compiler
		f, err = nil, errors.New(id+": bad code in precompiled chunk")
	}
	if err != nil {
		msg := err.Error()
		if rest, found := strings.CutPrefix(msg, id); found {
			msg = chunkID(chunk, syntaxIDSize) + rest
		}
		L.Push(lua.LNil)
		L.Push(lua.LString(msg))
		return 2
	}
	L.Push(f)
	return 1
}

// The bytes of a chunk's name in messages of Lua 5.1, with the NUL that ends it in C: of code that
// runs (LUA_IDSIZE of luaconf.h), and of the compiler (MAXSRC of llex.c).
const (
	idSize       = 60
	syntaxIDSize = 80
)

// chunkID returns the name of a chunk in messages, of less than most bytes.
func chunkID(name string, most int) string {
	switch {
	case strings.HasPrefix(name, "="):
		return conv.CString(name[1:min(len(name), most)])
	case strings.HasPrefix(name, "@"):
		name = conv.CString(name[1:])
		if n := most - len(" '...' ") - 1; len(name) > n {
			return "..." + name[len(name)-n:]
		}
		return name
	}
	name = conv.CString(name)
	line, _, more := strings.Cut(name, "\n")
	if i := strings.IndexByte(line, '\r'); i >= 0 {
		line, more = line[:i], true
	}
	room := most - len(` [string "..."] `) - 1
	if len(line) > room {
		line, more = line[:room], true
	}
	if more {
		line += "..."
	}
	return `[string "` + line + `"]`
}

// pcall is Redis's: in place of an error that is a table it returns the field err of
// the table if that is a string, and else both.
func (st *State) pcall(L *lua.LState) int {
	n := L.GetTop()
	if n == 0 { // Redis then calls its own placeholder for the result
		L.Push(lua.LFalse)
		L.Push(lua.LString("attempt to call a boolean value"))
		return 2
	}
	ok, failed := st.protected(L, n-1)
	if ok {
		L.Insert(lua.LTrue, 1)
		return L.GetTop()
	}
	L.Push(lua.LFalse)
	t, isTable := failed.(*lua.LTable)
	if !isTable {
		L.Push(failed)
		return 2
	}
	field := L.GetField(t, "err")
	if text, isText := conv.ToString(field); isText {
		L.Push(lua.LString(text))
		return 2
	}
	L.Push(t)
	L.Push(field)
	return 3
}

// protected calls the function that is below n arguments on an otherwise empty
// stack. Its results replace it, or its error is returned.
func (st *State) protected(L *lua.LState, n int) (ok bool, failed lua.LValue) {
	called := L.Get(L.GetTop() - n)
	if _, isFunction := called.(*lua.LFunction); !isFunction && st.metafield(called, "__call") == lua.LNil {
		L.SetTop(0)
		return false, lua.LString("attempt to call a " + called.Type().String() + " value")
	}
	L.Insert(st.protect(), 1)
	err := st.try(L, n+1, lua.MultRet)
	L.Panic = st.panicked
	if err == nil {
		return true, nil
	}
	if st.bug != nil {
		panic(st.bug)
	}
	L.SetTop(0)
	return false, st.object(err)
}

func (st *State) xpcall(L *lua.LState) int {
	if L.GetTop() < 2 {
		st.argError(L, 2, "value expected")
	}
	handler := L.Get(2)
	L.SetTop(1)
	ok, failed := st.protected(L, 0)
	if ok {
		L.Insert(lua.LTrue, 1)
		return L.GetTop()
	}
	L.Push(handler)
	L.Push(failed)
	if ok, _ = st.protected(L, 1); !ok {
		L.Push(lua.LFalse)
		L.Push(lua.LString("error in error handling"))
		return 2
	}
	L.Insert(lua.LFalse, 1)
	L.SetTop(2)
	return 2
}

func (st *State) rawequal(L *lua.LState) int {
	L.Push(lua.LBool(L.RawEqual(st.checkAny(L, 1), st.checkAny(L, 2))))
	return 1
}

func (st *State) rawget(L *lua.LState) int {
	t := st.checkTable(L, 1)
	L.Push(t.RawGet(st.checkAny(L, 2)))
	return 1
}

func (st *State) rawset(L *lua.LState) int {
	t := st.checkOpenTable(L, 1)
	k := st.checkAny(L, 2)
	st.checkAny(L, 3)
	st.checkKey(L, k)
	t.RawSet(k, L.Get(3))
	L.SetTop(1)
	return 1
}

func (st *State) checkKey(L *lua.LState, k lua.LValue) {
	if k == lua.LNil {
		st.raisePlain(L, "table index is nil")
	}
	if n, ok := k.(lua.LNumber); ok && n != n {
		st.raisePlain(L, "table index is NaN")
	}
}

func (st *State) selectArgs(L *lua.LState) int {
	count := L.GetTop() - 1
	if L.Get(1) == lua.LString("#") {
		L.Push(lua.LNumber(count))
		return 1
	}
	first := st.checkInt32(L, 1)
	if first < 0 { // from the end
		first += count + 1
	}
	if first < 1 {
		st.argError(L, 1, "index out of range")
	}
	return max(count-first+1, 0)
}

func (st *State) tonumber(L *lua.LState) int {
	base := st.optInt32(L, 2, 10)
	var v lua.LValue = lua.LNil
	if base == 10 {
		if f, ok := conv.ToNumber(st.checkAny(L, 1)); ok {
			v = lua.LNumber(f)
		}
	} else {
		text := st.checkString(L, 1)
		if base < 2 || base > 36 {
			st.argError(L, 2, "base out of range")
		}
		if u, ok := unsignedNumber(conv.CString(text), base); ok {
			v = lua.LNumber(u)
		}
	}
	L.Push(v)
	return 1
}

// unsignedNumber parses an integer of a base, with spaces around it, as strtoul in C99
// (7.20.1.4) does: modulo 2^64 if it is negative, and the greatest one if it is out of
// range.
func unsignedNumber(text string, base int) (u uint64, ok bool) {
	text = strings.Trim(text, " \t\n\v\f\r")
	digits, negative := strings.CutPrefix(text, "-")
	if !negative {
		digits = strings.TrimPrefix(text, "+")
	}
	if hex := len(digits) > 2 && strings.EqualFold(digits[:2], "0x"); hex && base == 16 {
		digits = digits[2:]
	}
	u, err := strconv.ParseUint(digits, base, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return math.MaxUint64, true
	case negative:
		u = -u
	}
	return u, err == nil
}

func (st *State) tostring(L *lua.LState) int {
	v := st.checkAny(L, 1)
	if f := st.metafield(v, "__tostring"); f != lua.LNil {
		L.Push(f)
		L.Push(v)
		L.Call(1, 1)
		return 1
	}
	L.Push(lua.LString(display(v)))
	return 1
}

func (st *State) metafield(v lua.LValue, name string) lua.LValue {
	var mt lua.LValue = lua.LNil
	switch v := v.(type) {
	case *lua.LTable:
		mt = v.Metatable
	case *lua.LUserData:
		mt = v.Metatable
	}
	if t, ok := mt.(*lua.LTable); ok {
		return st.real(t).RawGetString(name)
	}
	return lua.LNil
}

func display(v lua.LValue) string {
	if s, ok := conv.ToString(v); ok {
		return s
	}
	if u, ok := v.(*lua.LUserData); ok && u.Value == nil { // cjson.null
		return "userdata: (nil)"
	}
	return v.String()
}

func (st *State) typeOf(L *lua.LState) int {
	L.Push(lua.LString(st.checkAny(L, 1).Type().String()))
	return 1
}

// maxUnpack is the number of values that Lua puts on its stack at once.
const maxUnpack = 8000

func (st *State) unpack(L *lua.LState) int {
	t := st.checkTable(L, 1)
	first := st.optInt32(L, 2, 1)
	last := st.optInt32(L, 3, t.Len())
	n := max(last-first+1, 0)
	if n >= maxUnpack {
		st.Raise(L, "too many results to unpack")
	}
	for i := range n {
		L.Push(t.RawGet(lua.LNumber(first + i)))
	}
	return n
}

// checkLength refuses strings that exceed the limit.
func (st *State) checkLength(L *lua.LState, n int) {
	if n > st.most {
		L.Error(lua.LString("not enough memory"), 0)
	}
}

// make raises an error if a string that is made is too long. It counts the string as work, so
// that many long ones lead to a check of the memory.
func (st *State) make(L *lua.LState, n int) {
	st.checkLength(L, n)
	st.ticks.left -= n >> 12
}

// join is the function that a .. b calls.
func (st *State) join(L *lua.LState) int {
	n := L.GetTop()
	total := 0
	for i := 1; i <= n; i++ {
		switch v := L.Get(i).(type) {
		case lua.LString:
			total += len(v)
		case lua.LNumber:
			total += 8
		default:
			return st.joinValues(L, n)
		}
	}
	st.make(L, total)
	b := make([]byte, 0, total)
	for i := 1; i <= n; i++ {
		switch v := L.Get(i).(type) {
		case lua.LString:
			b = append(b, v...)
		case lua.LNumber:
			b = conv.AppendNumber(b, float64(v))
		}
	}
	L.Push(lua.LString(view(b)))
	return 1
}

// joinValues joins from the right, with metamethods where they exist.
func (st *State) joinValues(L *lua.LState, n int) int {
	right := L.Get(n)
	for i := n - 1; i >= 1; i-- {
		left := L.Get(i)
		a, ok1 := conv.ToString(left)
		b, ok2 := conv.ToString(right)
		if ok1 && ok2 {
			st.make(L, len(a)+len(b))
			right = lua.LString(a + b)
			continue
		}
		f := st.metafield(left, "__concat")
		if f == lua.LNil {
			f = st.metafield(right, "__concat")
		}
		if f == lua.LNil {
			n := i
			if ok1 {
				n = i + 1
			}
			st.Raise(L, st.operandError(L, "concatenate", n))
		}
		L.Push(f)
		L.Push(left)
		L.Push(right)
		L.Call(2, 1)
		right = L.Get(-1)
		L.Pop(1)
	}
	L.Push(right)
	return 1
}

// mod is the function that a % b calls, unless b is a whole constant: gopher-lua's
// remainder is exact, and Lua's is not.
func (st *State) mod(L *lua.LState) int {
	a, ok1 := conv.ToNumber(L.Get(1))
	b, ok2 := conv.ToNumber(L.Get(2))
	if ok1 && ok2 {
		L.Push(lua.LNumber(compiler.Remainder(a, b)))
		return 1
	}
	f := st.metafield(L.Get(1), "__mod")
	if f == lua.LNil {
		f = st.metafield(L.Get(2), "__mod")
	}
	if f == lua.LNil {
		n := 1
		if ok1 {
			n = 2
		}
		st.Raise(L, st.operandError(L, "perform arithmetic on", n))
	}
	L.Push(f)
	L.Insert(f, 1)
	L.SetTop(3)
	L.Call(2, 1)
	return 1
}

// operandError returns the message about an argument of an intrinsic, which was an
// operand in the source.
func (st *State) operandError(L *lua.LState, op string, n int) string {
	caller, ok := frameAt(L, 1)
	reg := -1
	if ok && !caller.fn.IsG {
		reg = caller.instruction().A() + n
	}
	return typeError(op, L.Get(n).Type().String(), caller, reg)
}

// loop converts the values of a for statement to numbers.
func (st *State) loop(L *lua.LState) int {
	for i, what := range []string{"initial value", "limit", "step"} {
		f, ok := conv.ToNumber(L.Get(i + 1))
		if !ok {
			st.Raise(L, "'for' "+what+" must be a number")
		}
		L.Push(lua.LNumber(f))
	}
	return 3
}

// arithmetic returns the metamethod of strings for an operator: gopher-lua would
// parse "010" as 8.
func (st *State) arithmetic(op int) lua.LGFunction {
	return func(L *lua.LState) int {
		a, ok1 := conv.ToNumber(L.Get(1))
		b, ok2 := conv.ToNumber(L.Get(2))
		if op == lua.OP_UNM {
			b, ok2 = 0, true
		}
		if !ok1 || !ok2 {
			bad, first := L.Get(1), true
			if ok1 {
				bad, first = L.Get(2), false
			}
			caller, ok := frameAt(L, 1)
			reg := -1
			if ok && !caller.fn.IsG {
				in := caller.instruction()
				if reg = in.C(); first {
					reg = in.B()
				}
				if _, constant := compiler.Constant(reg); constant {
					reg = -1
				}
			}
			st.Raise(L, typeError("perform arithmetic on", bad.Type().String(), caller, reg))
		}
		r, _ := compiler.Calculate(op, a, b)
		L.Push(lua.LNumber(r))
		return 1
	}
}
