package script

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// State is a Lua machine with the libraries that Redis gives to scripts, whose
// globals and libraries cannot be changed. It is used by one goroutine at a
// time.
type State struct {
	L *lua.LState

	// Interrupt is called while a script runs or is compiled: before it begins, and
	// then about each millisecond, between two instructions or within a Go function
	// that takes long. If it returns an error the script ends with it, whatever it
	// does.
	Interrupt func() *lua.LTable

	// Beat, if it is set before anything runs, is called with each pulse, also while
	// a single instruction runs, by another goroutine.
	Beat func()

	// Running says that a script runs, other than one that is being loaded: only
	// then there are random numbers, as in Redis.
	Running bool

	globals *lua.LTable    // as the libraries fill it
	env     *lua.LTable    // what scripts have for globals
	most    int            // bytes of a string
	refuse  *lua.LFunction // what the metatables of tables that stand for others have, and no other: see guard
	shown   *lua.LTable    // what scripts see as the metatable of strings
	intrinsics
	random rand48
	ticks  *ticker
	last   raised
	bug    any            // what a command panicked with
	depth  int            // of coroutines that resume each other
	null   *lua.LUserData // what JSON calls null
	coRun  *lua.LFunction
}

// raised tells where the last error was raised.
type raised struct {
	source string
	line   int
	known  bool
}

// Limits of a machine: Lua's own.
const (
	maxCalls      = 20000   // nested; they take 1.8 MB
	registerStart = 1 << 10 // values on the stack

	// Coroutines have less, for gopher-lua then looks for what has called what in
	// quadratic time.
	maxCoroutineCalls = 2000

	registerMax = 1 << 20
	maxString   = 512 << 20 // bytes, unless a test says otherwise
	maxDepth    = 200       // of coroutines that resume each other
)

// A script looks whether it may go on (calls Interrupt) at each pulse of a timer, and
// when it has done so much work without one, which happens when the machine is busy.
// The timer is what bounds the time between two looks by that of one instruction: no
// number of instructions does, for t[60000000] = 1 takes 1 GB and half a second.
const (
	interval = 20_000 // instructions, or as much other work
	pulse    = time.Millisecond
)

// New returns a machine. It has no global redis: see SetLibrary.
func New() *State {
	st := &State{most: maxString}
	st.L = lua.NewState(lua.Options{
		CallStackSize: maxCalls, RegistrySize: registerStart, RegistryMaxSize: registerMax, RegistryGrowStep: 1 << 10,
		SkipOpenLibs: true,
	})
	// For coroutines, whose stacks grow as they need it.
	st.L.Options.MinimizeStackMemory, st.L.Options.CallStackSize, st.L.Options.RegistrySize = true, maxCoroutineCalls, 1<<8
	st.random.seed(0)
	st.ticks = &ticker{st: st, left: interval}
	st.ticks.timer = time.AfterFunc(math.MaxInt64, st.ticks.beat)
	st.L.SetContext(st.ticks)
	st.L.Panic = st.panicked
	st.globals = st.L.NewTable()
	st.intrinsics = intrinsics{join: st.function(st.join), loop: st.function(st.loop), mod: st.function(st.mod)}
	st.refuse = st.function(st.readonly)
	st.openBase()
	st.env = st.L.NewTable()
	st.refuse.Env = st.env
	return st
}

// Table returns an empty table.
func (st *State) Table() *lua.LTable { return st.L.CreateTable(0, 0) }

// function makes a value of a Go function. Its environment is that of scripts.
func (st *State) function(f lua.LGFunction) *lua.LFunction {
	fn := st.L.NewFunction(f)
	if st.env != nil {
		fn.Env = st.env
	}
	return fn
}

// library makes a table of functions.
func (st *State) library(functions map[string]lua.LGFunction) *lua.LTable {
	t := st.Table()
	for name, f := range functions {
		t.RawSetString(name, st.function(f))
	}
	return t
}

// Library makes a table of functions, for SetLibrary.
func (st *State) Library(functions map[string]lua.LGFunction) *lua.LTable {
	return st.library(functions)
}

// Seal makes the globals, with redis among them, what scripts see; from then on
// neither they nor what they hold can be changed.
func (st *State) Seal(redis *lua.LTable) {
	st.globals.RawSetString("redis", redis)
	st.guard(st.env, st.globals, true)
	names := []string{}
	st.globals.ForEach(func(k, _ lua.LValue) { names = append(names, string(k.(lua.LString))) })
	for _, name := range names {
		if t, ok := st.globals.RawGetString(name).(*lua.LTable); ok {
			st.globals.RawSetString(name, st.Guarded(t, false))
		}
	}
	st.globals.RawSetString("_G", st.env)
	st.shown.RawSetString("__index", st.globals.RawGetString("string"))
	st.L.G.Global = st.env
	st.L.Env = st.env
}

// Guarded returns a table that stands for t, which cannot be changed through
// it. If strict, it is an error to ask for what is not in it.
func (st *State) Guarded(t *lua.LTable, strict bool) *lua.LTable {
	g := st.Table()
	st.guard(g, t, strict)
	return g
}

// guard makes g stand for t. It stays empty: what is asked of it is asked of t,
// and what is to be put into it calls a function that refuses. That function, which
// scripts cannot come by, is also how such a table is known. (A map from them to
// what they stand for would keep those of every library that was ever loaded.)
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

// strict makes it an error to ask for what is not in t. It returns the function
// that is called then.
func (st *State) strict(t *lua.LTable) *lua.LFunction {
	missing := st.function(st.missing)
	meta := st.Table()
	meta.RawSetString("__index", missing)
	t.Metatable = meta
	return missing
}

// real returns the table that t stands for, or t.
func (st *State) real(t *lua.LTable) *lua.LTable {
	if meta := st.guardOf(t); meta != nil {
		return meta.RawGetString("__index").(*lua.LTable)
	}
	return t
}

// guardOf returns the metatable by which t stands for another, or nil.
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
	name, ok := ToString(L.Get(2))
	if L.GetTop() != 2 {
		st.Raise(L, "Wrong number of arguments to luaProtectedTableError")
	}
	if !ok {
		st.Raise(L, "Second argument to luaProtectedTableError must be a string or number")
	}
	st.Raise(L, "Script attempted to access nonexistent global variable '"+cString(name)+"'")
	return 0
}

// SetGlobal gives a global variable another value, which scripts cannot.
func (st *State) SetGlobal(name string, v lua.LValue) { st.globals.RawSetString(name, v) }

// SetGlobals makes scripts see other globals, which cannot be changed either; nil
// for their own.
func (st *State) SetGlobals(t *lua.LTable) {
	if t == nil {
		t = st.globals
	} else {
		st.strict(t)
	}
	st.env.Metatable.(*lua.LTable).RawSetString("__index", t)
}

// Compile compiles a source. The error is the message that Lua gives, or
// [*Interrupted] if Interrupt has ended it.
func (st *State) Compile(src, chunk string) (*lua.LFunction, error) {
	st.ticks.start()
	defer st.ticks.stop()
	return st.compile(src, chunk, func() {
		if st.ticks.spent(tokenWork) {
			panic(&Interrupted{st.ticks.end})
		}
	})
}

// tokenWork is the work of compiling a token, in instructions.
const tokenWork = 10

// Interrupted is the error of a source whose compilation was ended by Interrupt.
type Interrupted struct{ Value *lua.LTable }

// Error says so; Value is what Interrupt has returned.
func (e *Interrupted) Error() string { return "the compilation was interrupted" }

// compile is Compile that calls a function for each token.
func (st *State) compile(src, chunk string, spend func()) (*lua.LFunction, error) {
	proto, err := compile(src, chunk, st.intrinsics, spend)
	if err != nil {
		return nil, err
	}
	fn := st.L.NewFunctionFromProto(proto)
	fn.Env = st.env
	return fn, nil
}

// Error is what a script has failed with.
type Error struct {
	Value  lua.LValue // a string or a table as a rule
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
	err := L.PCall(len(args)+1, 1, nil)
	if st.bug != nil {
		panic(st.bug)
	}
	if err != nil {
		L.SetTop(top)
		L.G.CurrentThread = L.G.MainThread // it may have been another's error
		return nil, &Error{st.object(err), st.last.source, st.last.line, st.last.known}
	}
	result = L.Get(-1)
	L.SetTop(top)
	return result, nil
}

// protect returns the function that calls another one with our Panic in place,
// which PCall replaces by its own.
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

// object returns what an error of gopher-lua is about.
func (st *State) object(err error) lua.LValue {
	e := err.(*lua.ApiError)
	if e.Type != lua.ApiErrorPanic {
		return e.Object
	}
	// Something has panicked: gopher-lua's stack of calls, which has no room for
	// more, or what must not be hidden.
	if msg := e.Object.String(); msg != "lua callstack overflow" {
		panic("BUG: in a script: " + msg)
	}
	return lua.LString("stack overflow")
}

// Bug notes what a Go function has panicked with, which no script may catch.
func (st *State) Bug(r any) { st.bug = r }

// ticker is how scripts are interrupted: a context that gopher-lua asks before
// each instruction whether it is done. It costs some nanoseconds; gopher-lua has
// no hooks.
type ticker struct {
	st    *State
	left  int         // instructions, or other work, until the next look if there is no pulse
	pulse atomic.Bool // set by the timer
	end   *lua.LTable // the error that the script must end with

	// The timer goes on until it finds nothing that runs: scripts that take
	// microseconds do not set it each time.
	timer   *time.Timer
	mu      sync.Mutex // guards what follows
	running bool
	armed   bool
}

// start begins to count for a script, or a source to be compiled. The first look is at
// the first instruction.
func (t *ticker) start() {
	t.left, t.end = 0, nil
	if t.st.Interrupt == nil {
		t.left = interval
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running = true; !t.armed {
		t.armed = true
		t.timer.Reset(pulse)
	}
}

func (t *ticker) stop() {
	t.mu.Lock()
	t.running = false
	t.mu.Unlock()
}

// beat is what the timer does.
func (t *ticker) beat() {
	t.pulse.Store(true)
	if t.st.Beat != nil {
		t.st.Beat()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.armed = t.running; t.armed {
		t.timer.Reset(pulse)
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
	if t.left > 0 && !t.pulse.Load() {
		return false
	}
	t.pulse.Store(false)
	if t.end == nil && t.st.Interrupt != nil {
		t.end = t.st.Interrupt()
	}
	if t.end == nil {
		t.left = interval
	}
	return t.end != nil
}

// hurry makes the next look come at the next instruction.
func (t *ticker) hurry() { t.left = 0 }

// Spend is what a Go function calls, now and then, that may take long: it has done
// as much work as n instructions.
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
