package script

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"
	"github.com/zsetd/zsetd/server/internal/lua/compiler"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// State is a Lua machine with the libraries that Redis provides, whose globals and
// libraries are read-only. It is used by one goroutine at a time.
type State struct {
	L *lua.LState

	// Interrupt is called while a script runs or is compiled: after its first
	// instructions, and then about each millisecond, between two instructions or
	// within a Go function that takes long. If it returns an error, the script ends
	// with it and cannot catch it.
	Interrupt func() *lua.LTable

	// Beat, if it is set before anything runs, is called by another goroutine with
	// each pulse, also during a single instruction.
	Beat func()

	// Running reports that a script runs, other than one that is being loaded: only
	// then random numbers are available, as in Redis.
	Running bool

	globals  *lua.LTable           // as the libraries fill it
	fixed    map[string]lua.LValue // those of them that never change
	env      *lua.LTable           // the globals that scripts see
	most     int                   // greatest length of a string
	refuse   *lua.LFunction        // the __newindex of the metatables of proxies, and of no other table: see guard
	shown    *lua.LTable           // the metatable of strings as scripts see it
	compiler compiler.Compiler
	random   rand48
	ticks    *ticker
	last     raised
	bug      any            // the value with which a command panicked
	depth    int            // of coroutines that resume each other
	null     *lua.LUserData // the null of JSON
	coRun    *lua.LFunction

	fields   upvalueFields
	attempts []attempt // protected calls that run
}

// raised is the position where the last error was raised.
type raised struct {
	source string
	line   int
	known  bool
}

// Limits of a machine: Lua's own.
const (
	maxCalls      = 20000   // nested; they take 1.8 MB
	registerStart = 1 << 10 // values on the stack

	// Coroutines have a smaller stack: gopher-lua searches it for the caller in
	// quadratic time.
	maxCoroutineCalls = 2000

	registerMax = 1 << 20
	maxString   = 512 << 20 // bytes; tests may set another limit
	maxDepth    = 200       // of coroutines that resume each other
)

// A script calls Interrupt at each pulse of a timer, and after a fixed amount of
// work without a pulse, which happens when the machine is busy. The timer bounds
// the time between two calls by that of one instruction. A number of instructions
// alone does not bound it, as t[60000000] = 1 takes 1 GB and half a second.
const (
	interval = 20_000 // instructions, or as much other work
	pulse    = time.Millisecond

	// firstLook is the interval before the first check. Short scripts end before it:
	// a check takes half a microsecond, as long as such a script.
	firstLook = 1000
)

// New returns a machine without the global redis: see Seal.
func New() *State {
	st := &State{most: maxString, fields: upvalueOffsets()}
	st.L = lua.NewState(lua.Options{
		CallStackSize: maxCalls, RegistrySize: registerStart, RegistryMaxSize: registerMax, RegistryGrowStep: 1 << 10,
		SkipOpenLibs: true,
	})
	// For coroutines, whose stacks grow on demand.
	st.L.Options.MinimizeStackMemory, st.L.Options.CallStackSize, st.L.Options.RegistrySize = true, maxCoroutineCalls, 1<<8
	st.random.seed(0)
	st.ticks = &ticker{st: st, left: interval}
	st.ticks.timer = time.AfterFunc(math.MaxInt64, st.ticks.beat)
	st.L.SetContext(st.ticks)
	st.L.Panic = st.panicked
	st.globals = st.L.NewTable()
	st.compiler.Intrinsics = compiler.Intrinsics{Join: st.function(st.join), Loop: st.function(st.loop), Mod: st.function(st.mod)}
	st.refuse = st.function(st.readonly)
	st.openBase()
	st.env = st.L.NewTable()
	st.refuse.Env = st.env
	return st
}

// Table returns an empty table.
func (st *State) Table() *lua.LTable { return st.L.CreateTable(0, 0) }

// function returns the Lua value of a Go function, with the environment of scripts.
func (st *State) function(f lua.LGFunction) *lua.LFunction {
	fn := st.L.NewFunction(f)
	if st.env != nil {
		fn.Env = st.env
	}
	return fn
}

// library returns a table of functions.
func (st *State) library(functions map[string]lua.LGFunction) *lua.LTable {
	t := st.Table()
	for name, f := range functions {
		t.RawSetString(name, st.function(f))
	}
	return t
}

// Library returns a table of functions, for Seal.
func (st *State) Library(functions map[string]lua.LGFunction) *lua.LTable {
	return st.library(functions)
}

// Seal makes the globals, including redis and Valkey's server, visible to scripts. From then on scripts
// can change neither the globals nor their contents. If fixed, SetGlobals is never called, and
// the code of scripts contains values of globals in place of look-ups.
func (st *State) Seal(redis, server *lua.LTable, fixed bool) {
	st.globals.RawSetString("redis", redis)
	st.globals.RawSetString("server", server)
	st.guard(st.env, st.globals, true)
	names := []string{}
	st.globals.ForEach(func(k, _ lua.LValue) { names = append(names, string(k.(lua.LString))) })
	for _, name := range names {
		if t, ok := st.globals.RawGetString(name).(*lua.LTable); ok {
			st.globals.RawSetString(name, st.Guarded(t, false))
		}
	}
	st.globals.RawSetString("_G", st.env)
	if fixed {
		st.fixed = map[string]lua.LValue{}
		st.globals.ForEach(func(k, v lua.LValue) { st.fixed[string(k.(lua.LString))] = v })
		st.compiler.Fixed = st.fixedValue
	}
	st.shown.RawSetString("__index", st.globals.RawGetString("string"))
	st.L.G.Global = st.env
	st.L.Env = st.env
}

// fixedValue returns the value of a global variable that never changes, or of a field of its
// value; nil if there is none.
func (st *State) fixedValue(in lua.LValue, name string) lua.LValue {
	if in == nil || in == st.env {
		return st.fixed[name]
	}
	if t, ok := in.(*lua.LTable); ok && st.guardOf(t) != nil {
		if v := st.real(t).RawGetString(name); v != lua.LNil {
			return v
		}
	}
	return nil
}

// Guarded returns a read-only proxy of t. If strict, reading an absent field is an
// error.
func (st *State) Guarded(t *lua.LTable, strict bool) *lua.LTable {
	g := st.Table()
	st.guard(g, t, strict)
	return g
}

// guard makes g a read-only proxy of t. g stays empty: reads go to t, and writes
// call a function that refuses them. That function, which scripts cannot obtain,
// also identifies a proxy. (A map from proxies to their tables would retain those
// of every library that was ever loaded.)
func (st *State) guard(g, t *lua.LTable, strict bool) {
	meta := st.Table()
	meta.RawSetString("__newindex", st.refuse)
	meta.RawSetString("__index", t)
	shown := st.Table()
	if strict {
		shown.RawSetString("__index", st.strict(t))
	}
	if strict {
		shownGuard := st.Table()
		shownMeta := st.Table()
		shownMeta.RawSetString("__newindex", st.refuse)
		shownMeta.RawSetString("__index", shown)
		shownGuard.Metatable = shownMeta
		meta.RawSetString("__metatable", shownGuard)
	} else {
		meta.RawSetString("__metatable", lua.LFalse) // see getmetatable
	}
	g.Metatable = meta
}

// strict makes reading an absent field of t an error. It returns the function that
// raises it.
func (st *State) strict(t *lua.LTable) *lua.LFunction {
	missing := st.function(st.missing)
	meta := st.Table()
	meta.RawSetString("__index", missing)
	t.Metatable = meta
	return missing
}

// real returns the table behind the proxy t, or t.
func (st *State) real(t *lua.LTable) *lua.LTable {
	if meta := st.guardOf(t); meta != nil {
		return meta.RawGetString("__index").(*lua.LTable)
	}
	return t
}

// guardOf returns the metatable of the proxy t, or nil if t is not a proxy.
func (st *State) guardOf(t *lua.LTable) *lua.LTable {
	if meta, ok := t.Metatable.(*lua.LTable); ok && meta.RawGetString("__newindex") == lua.LValue(st.refuse) {
		return meta
	}
	return nil
}

func (st *State) readonly(L *lua.LState) int {
	st.Raise(L, "Attempt to modify a readonly table")
	return 0
}

func (st *State) missing(L *lua.LState) int {
	name, ok := conv.ToString(L.Get(2))
	if L.GetTop() != 2 {
		st.Raise(L, "Wrong number of arguments to luaProtectedTableError")
	}
	if !ok {
		st.Raise(L, "Second argument to luaProtectedTableError must be a string or number")
	}
	st.Raise(L, "Script attempted to access nonexistent global variable '"+conv.CString(name)+"'")
	return 0
}

// SetGlobal sets a global variable, which scripts cannot. It is none that existed in Seal.
func (st *State) SetGlobal(name string, v lua.LValue) { st.globals.RawSetString(name, v) }

// SetGlobals replaces the globals that scripts see, which are read-only, too; nil
// restores their own.
func (st *State) SetGlobals(t *lua.LTable) {
	if t == nil {
		t = st.globals
	} else {
		st.strict(t)
	}
	st.env.Metatable.(*lua.LTable).RawSetString("__index", t)
}

// Compile compiles a source. The error is Lua's message, or [*Interrupted] if
// Interrupt has ended the compilation.
func (st *State) Compile(src, chunk string) (*lua.LFunction, error) {
	if !st.ticks.running() { // a script that runs may compile another one
		st.ticks.start()
		defer st.ticks.stop()
	}
	fn, err := st.compile(src, chunk)
	if err == compiler.ErrStopped {
		return nil, &Interrupted{st.ticks.end}
	}
	return fn, err
}

// compile is Compile while the ticker runs. It returns [compiler.ErrStopped] if the
// script must end.
func (st *State) compile(src, chunk string) (*lua.LFunction, error) {
	proto, err := st.compiler.Compile(src, chunk, len(st.attempts), func() bool { return st.ticks.spent(tokenWork) })
	if err != nil {
		return nil, err
	}
	fn := st.L.NewFunctionFromProto(proto)
	fn.Env = st.env
	return fn, nil
}

// tokenWork is the work of compiling a token, in instructions.
const tokenWork = 10

// Interrupted is the error of a source whose compilation was ended by Interrupt.
type Interrupted struct{ Value *lua.LTable }

// Error returns the message; Value is the error that Interrupt has returned.
func (e *Interrupted) Error() string { return "the compilation was interrupted" }

// Error is the error of a script.
type Error struct {
	Value  lua.LValue // usually a string or a table
	Source string     // the chunk where it was raised,
	Line   int        // and the line
	Known  bool       // if they are known
}

// Call calls a function and returns its first result.
func (st *State) Call(fn *lua.LFunction, args ...lua.LValue) (result lua.LValue, failed *Error) {
	L := st.L
	st.ticks.start()
	defer st.ticks.stop()
	st.last, st.bug, st.depth = raised{}, nil, 0
	top := L.GetTop()
	L.Push(st.protect())
	L.Push(fn)
	for _, a := range args {
		L.Push(a)
	}
	err := st.try(L, len(args)+1, 1)
	if st.bug != nil {
		panic(st.bug)
	}
	if err != nil {
		L.SetTop(top)
		L.G.CurrentThread = L.G.MainThread // an error may have left another thread there
		return nil, &Error{st.object(err), st.last.source, st.last.line, st.last.known}
	}
	result = L.Get(-1)
	L.SetTop(top)
	return result, nil
}

// protect returns a function that calls another one with panicked in place, because
// PCall replaces Panic by its own.
func (st *State) protect() *lua.LFunction {
	if st.coRun == nil {
		st.coRun = st.function(func(L *lua.LState) int {
			L.Panic = st.panicked
			L.Call(L.GetTop()-1, lua.MultRet)
			return L.GetTop()
		})
	}
	return st.coRun
}

// object returns the value of an error of gopher-lua. A panic of the machine is an error
// of the script: other scripts and the server are not concerned.
func (st *State) object(err error) lua.LValue {
	e := err.(*lua.ApiError)
	switch {
	case e.Type != lua.ApiErrorPanic:
		return e.Object
	case e.Object.String() == "lua callstack overflow":
		return lua.LString("stack overflow")
	}
	return lua.LString(compiler.InternalError + e.Object.String())
}

// Bug records the panic value of a Go function, which no script may catch.
func (st *State) Bug(r any) { st.bug = r }

// ticker interrupts scripts: it is a context that gopher-lua checks before each
// instruction. A check costs some nanoseconds; gopher-lua has no hooks.
type ticker struct {
	st    *State
	left  int         // instructions, or other work, until the next check if there is no pulse
	pulse atomic.Bool // set by the timer
	end   *lua.LTable // the error that the script must end with

	// The timer continues until nothing has run between two pulses: scripts that
	// take microseconds do not set it each time. turns is odd while something runs;
	// only start and stop change it.
	timer *time.Timer
	turns atomic.Uint64
	seen  uint64 // turns at the last pulse; beat only
	armed atomic.Bool
}

// start begins to count for a script, or a source to be compiled.
func (t *ticker) start() {
	t.left, t.end = firstLook, nil
	if t.st.Interrupt == nil {
		t.left = interval
		return
	}
	t.turns.Add(1)
	t.arm()
}

// stop reverses start.
func (t *ticker) stop() {
	if t.running() {
		t.turns.Add(1)
	}
}

func (t *ticker) running() bool { return t.turns.Load()%2 == 1 }

// arm sets the timer unless it is set.
func (t *ticker) arm() {
	if !t.armed.Load() && t.armed.CompareAndSwap(false, true) {
		t.timer.Reset(pulse)
	}
}

// beat is the function of the timer. A pulse concerns only what has run since the
// one before: short scripts in a row cost a call of beat each millisecond.
func (t *ticker) beat() {
	turns := t.turns.Load()
	running, same := turns%2 == 1, turns == t.seen
	t.seen = turns
	if running && same {
		t.pulse.Store(true)
		if t.st.Beat != nil {
			t.st.Beat()
		}
	}
	if running || !same {
		t.timer.Reset(pulse)
		return
	}
	t.armed.Store(false)
	if t.turns.Load() != turns { // start may have found the timer armed
		t.arm()
	}
}

// Done implements context.Context.
func (t *ticker) Done() <-chan struct{} {
	if !t.spent(1) {
		return nil
	}
	done := make(chan struct{})
	close(done)
	return done
}

// spent counts n instructions, and reports whether the script must end.
func (t *ticker) spent(n int) bool {
	t.left -= n
	return (t.left <= 0 || t.pulse.Load()) && t.look()
}

// look asks whether the script must end. It is apart from spent, so that the compiler
// inlines that.
func (t *ticker) look() bool {
	t.pulse.Store(false)
	if t.end == nil && t.st.Interrupt != nil {
		t.end = t.st.Interrupt()
	}
	if t.end == nil {
		t.left = interval
	}
	return t.end != nil
}

// hurry makes the next check come at the next instruction.
func (t *ticker) hurry() { t.left = 0 }

// Spend counts work of as much as n instructions. Go functions that may take long
// call it at intervals.
func (st *State) Spend(L *lua.LState, n int) {
	if st.ticks.spent(n) {
		L.Error(st.ticks.end, 0)
	}
}

// Err implements context.Context.
func (t *ticker) Err() error { return context.Canceled }

// Deadline implements context.Context.
func (t *ticker) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context.
func (t *ticker) Value(any) any { return nil }
