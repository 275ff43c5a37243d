package script

import (
	"fmt"
	"math"
	"runtime"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/compiler"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// State is a Lua machine with the libraries that Redis provides, whose globals and
// libraries are read-only. It is used by one goroutine at a time.
type State struct {
	// Interrupt is called while a script runs or is compiled: after its first instructions,
	// then after some ten thousand, or as much other work, and before and after much memory is
	// allocated. If it returns an error, the script ends with it and cannot catch it.
	Interrupt func() *lua.Table

	// Panicked is called with the value of a panic of a Go function that a script has called.
	// It returns the value to panic with; nil if the panic is an error of the script.
	Panicked func(value any) any

	// Bound returns a function of Go that takes the place of one of redis or server in calls with a
	// given string as the first argument, and takes the arguments after it; nil if there is none. It
	// is set before Seal.
	Bound func(f *lua.Function, first string) *lua.Function

	// Running reports that a script runs, other than one that is being loaded: only
	// then random numbers are available, as in Redis.
	Running bool

	vm       *lua.Machine
	globals  *lua.Table           // of scripts
	fixed    map[string]lua.Value // those of them that never change
	keys     *lua.Table           // KEYS
	argv     *lua.Table           // ARGV
	server   lua.Value            // the table that pairs does not visit, or nil
	compiler compiler.Compiler
	random   rand48
	active   bool                            // something runs, or is compiled
	end      *lua.Error                      // what must end it
	bug      any                             // see Bug
	kinds    [lua.KindUserdata + 1]lua.Value // what type returns
	calls    []*call                         // see function
	depth    int                             // of calls that run
	bytes    []byte                          // see buffer
}

// Limits of a machine.
const (
	// firstLook is the number of instructions before the first check. Short scripts end before
	// it: a check takes half a microsecond, as long as such a script.
	firstLook = 1000

	// lookBytes is the number of bytes that a script allocates between two checks.
	lookBytes = 16 << 20
)

// New returns a machine without the global redis: see Seal.
func New() *State {
	st := &State{vm: lua.New()}
	st.random.seed(0)
	st.vm.Interrupt = st.look
	st.globals = lua.NewTable(0, 0)
	st.vm.Globals = st.globals
	st.openBase()
	return st
}

// Entry is an entry of a library.
type Entry struct {
	Name  string
	Value lua.Value
}

// Function returns an entry that is a function.
func Function(name string, f lua.GoFunction) Entry { return Entry{name, lua.NewFunction(f).Value()} }

// Library returns a table of entries, which grows with them. The order of pairs depends on theirs.
func Library(entries ...Entry) *lua.Table {
	t := lua.NewTable(0, 0)
	for _, e := range entries {
		t.SetText(nil, e.Name, e.Value)
	}
	return t
}

// Seal makes the globals, including redis and Valkey's server, visible to scripts. From then on scripts
// can change neither the globals nor their contents. If fixed, KEYS and ARGV exist, SetGlobals is never
// called, and the code of scripts contains values of globals in place of look-ups; pairs does not visit
// server, which Redis does not have.
func (st *State) Seal(redis, server *lua.Table, fixed bool) {
	st.globals.SetText(nil, "redis", redis.Value())
	redis.ReadOnly, server.ReadOnly = true, true
	if fixed {
		st.globals.SetText(nil, "__redis__err__handler", st.function(errorHandler))
		st.server = server.Value()
	} else {
		st.globals.SetText(nil, "server", server.Value())
	}
	st.globals.SetText(nil, "debug", lua.Nil)
	for at := 0; ; {
		k, v, next := st.globals.Entry(at)
		if k.IsNil() {
			break
		}
		if t := v.Table(); t != nil {
			t.ReadOnly = true
		}
		at = next
	}
	st.Strict(st.globals)
	if !fixed {
		return
	}
	st.keys, st.argv = lua.NewTable(0, 0), lua.NewTable(0, 0)
	st.globals.SetText(nil, "KEYS", st.keys.Value())
	st.globals.SetText(nil, "ARGV", st.argv.Value())
	st.fixed = map[string]lua.Value{"server": st.server}
	for at := 0; ; {
		k, v, next := st.globals.Entry(at)
		if k.IsNil() {
			break
		}
		name, _ := k.Str()
		st.fixed[name] = v
		at = next
	}
	st.compiler.Fixed = st.fixedValue
	if st.Bound != nil {
		st.compiler.Bound = st.boundValue
	}
}

// boundValue is Bound for the compiler.
func (st *State) boundValue(f lua.Value, first string) lua.Value {
	if fn := f.Function(); fn != nil {
		return st.Bound(fn, first).Value()
	}
	return lua.Nil
}

// fixedValue returns the value of a global variable that never changes, or of a field of its
// value; nil if there is none.
func (st *State) fixedValue(in lua.Value, name string) lua.Value {
	if in.IsNil() || in.Table() == st.globals {
		return st.fixed[name]
	}
	if t := in.Table(); t != nil && t.ReadOnly {
		return t.GetText(name)
	}
	return lua.Nil
}

// Strict makes a table read-only, and reading an absent one an error.
func (st *State) Strict(t *lua.Table) {
	t.Meta = lua.NewTable(0, 1)
	t.Meta.SetText(nil, "__index", st.function(missing))
	t.Meta.ReadOnly, t.ReadOnly = true, true
}

func missing(c *call) {
	name, ok := lua.ToText(c.at(2))
	if c.len() != 2 {
		c.raise("Wrong number of arguments to luaProtectedTableError")
	}
	if !ok {
		c.raise("Second argument to luaProtectedTableError must be a string or number")
	}
	if name == "server" && !c.server.IsNil() {
		c.push(c.server)
		return
	}
	c.raise("Script attempted to access nonexistent global variable '" + conv.CString(name) + "'")
}

// SetArguments sets the elements of the global variables KEYS and ARGV, after Seal with fixed. Their
// tables are used again: no script can keep them, as neither globals nor what they refer to can be
// changed, and what a script creates ends with it.
func (st *State) SetArguments(keys, argv [][]byte) {
	st.fill(st.keys, keys)
	st.fill(st.argv, argv)
}

// fill makes a table one of strings.
func (st *State) fill(t *lua.Table, elements [][]byte) {
	t.Arrange(len(elements))
	for i, e := range elements {
		t.SetInt(st.vm, i+1, lua.Bytes(e))
	}
}

// Strings returns a table of strings.
func (st *State) Strings(elements [][]byte) *lua.Table {
	t := lua.NewTable(0, 0)
	st.fill(t, elements)
	return t
}

// SetGlobals replaces the globals that scripts see, which are read-only, too; nil
// restores their own. Both are read through the same table, so that functions which were made
// meanwhile see the globals that are in place when they run.
func (st *State) SetGlobals(t *lua.Table) {
	if st.vm.Globals == st.globals {
		st.vm.Globals = lua.NewTable(0, 0)
		st.vm.Globals.Meta = lua.NewTable(0, 1)
		st.vm.Globals.Meta.ReadOnly, st.vm.Globals.ReadOnly = true, true
		st.globals.SetText(nil, "_G", st.vm.Globals.Value())
	}
	if t == nil {
		t = st.globals
	} else {
		st.Strict(t)
	}
	st.vm.Globals.Meta.SetText(nil, "__index", t.Value())
}

// Compile compiles a source. The error is Lua's message, or [*Interrupted] if
// Interrupt has ended the compilation.
func (st *State) Compile(src, chunk string) (*lua.Function, error) {
	if !st.active { // a script that runs may compile another one
		st.start()
		defer st.stop()
	}
	fn, err := st.compile(src, chunk)
	if err == compiler.ErrStopped {
		return nil, &Interrupted{st.end.Value.Table()}
	}
	return fn, err
}

// The work of compiling a token, in instructions, and the memory that it takes.
const (
	tokenWork  = 10
	tokenBytes = 100
)

// compile is Compile while something runs. It returns [compiler.ErrStopped] if the
// script must end.
func (st *State) compile(src, chunk string) (*lua.Function, error) {
	proto, err := st.compiler.Compile(src, chunk, st.vm.Depth(), func() bool {
		st.vm.Spend(tokenBytes)
		return st.vm.Tick(tokenWork) != nil
	})
	if err != nil {
		return nil, err
	}
	return lua.NewClosure(proto), nil
}

// Interrupted is the error of a source whose compilation was ended by Interrupt.
type Interrupted struct{ Value *lua.Table }

// Error returns the message; Value is the error that Interrupt has returned.
func (e *Interrupted) Error() string { return "the compilation was interrupted" }

// Error is the error of a script.
type Error struct {
	Value  lua.Value // usually a string or a table
	Source string    // the chunk where it was raised,
	Line   int       // and the line
	Known  bool      // if they are known
}

// Call calls a function and returns its first result.
func (st *State) Call(fn *lua.Function, args ...lua.Value) (result lua.Value, failed *Error) {
	st.start()
	defer func() {
		p := recover()
		st.stop()
		switch {
		case st.bug != nil:
			p = st.bug
		case p == nil:
			return
		case st.Panicked != nil:
			if again := st.Panicked(p); again != nil {
				p = again
			}
		}
		if _, ok := p.(runtime.Error); !ok {
			panic(p)
		}
		// Other scripts and the server are not concerned.
		st.vm.Reset()
		failed = &Error{Value: lua.Text(compiler.InternalError + fmt.Sprint(p))}
	}()
	result, err := st.vm.Call1(fn.Value(), args...)
	if err != nil {
		failed = &Error{Value: err.Value, Known: err.Known}
		if err.Known {
			failed.Source, failed.Line = sourceName(err.Source()), err.Line()
		}
	}
	return result, failed
}

// Bug makes the call of a script end with a panic, when Interrupt returns an error.
func (st *State) Bug(value any) { st.bug = value }

// Machine returns the machine.
func (st *State) Machine() *lua.Machine { return st.vm }

func (st *State) start() {
	st.active, st.end, st.bug, st.depth = true, nil, nil, 0
	st.vm.AskAt = math.MaxInt64
	if st.Interrupt != nil {
		st.vm.AskAt = st.vm.Allocated + lookBytes
	}
	st.vm.Begin(firstLook)
}

func (st *State) stop() { st.active = false }

// look asks whether the script must end.
func (st *State) look() *lua.Error {
	if st.end == nil && st.Interrupt != nil {
		st.vm.AskAt = st.vm.Allocated + lookBytes
		if t := st.Interrupt(); t != nil {
			st.end = st.vm.Throw(t.Value())
			st.end.Fatal = true
		}
	}
	return st.end
}
