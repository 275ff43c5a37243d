package scripting

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/glob"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/script"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// Libraries of functions are kept in source form, as strings in the server's own
// database (keyspace.InternalDB), so they are journaled, saved and loaded as all other
// data. The compiled functions are kept beside it.

// FunctionCommands returns the rows of FUNCTION and FCALL.
func FunctionCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "fcall", Arity: -3, Flags: "noscript stale skip_monitor no_mandatory_keys may_replicate",
			Keys:  "2# RW access update (the code decides what it reads and writes)",
			Group: "scripting", Since: "7.0.0", Complexity: "That of the function",
			Summary: "Call a function of a library",
			Syntax:  "function numkeys [key [key ...]] [arg [arg ...]]",
		}, Run: fcall, ScriptFlags: functionFlags},
		{Facts: protocol.Facts{
			Name: "fcall_ro", Arity: -3, Flags: "readonly noscript stale skip_monitor no_mandatory_keys",
			Keys:  "2# RO access (the code decides what it reads)",
			Group: "scripting", Since: "7.0.0", Complexity: "That of the function",
			Summary: "Call a function that changes nothing",
			Syntax:  "function numkeys [key [key ...]] [arg [arg ...]]",
		}, Run: fcallRo, ScriptFlags: functionFlags},
		{Facts: protocol.Facts{
			Name: "function", Arity: -2,
			Group: "scripting", Since: "7.0.0", Complexity: "That of the subcommand",
			Summary: "Libraries of functions in Lua",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "function|delete", Arity: 3, Flags: "write noscript",
				Group: "scripting", Since: "7.0.0", Tips: "request_policy:all_shards response_policy:all_succeeded",
				Complexity: "O(F), F functions of the library",
				Summary:    "Delete a library with its functions",
				Syntax:     "library-name",
			}, Run: functionDelete},
			{Facts: protocol.Facts{
				Name: "function|dump", Arity: 2, Flags: "noscript",
				Group: "scripting", Since: "7.0.0", Complexity: "O(N), N bytes of code",
				Summary: "Serialize all libraries for FUNCTION RESTORE",
			}, Run: functionDump},
			{Facts: protocol.Facts{
				Name: "function|flush", Arity: -2, Flags: "write noscript",
				Group: "scripting", Since: "7.0.0", Tips: "request_policy:all_shards response_policy:all_succeeded",
				Complexity: "O(L), L libraries",
				Summary:    "Delete all libraries",
				Syntax:     "flush-type:[ASYNC|SYNC]",
			}, Run: functionFlush},
			engine.HelpRow(protocol.Facts{Name: "function|help", Group: "scripting", Since: "7.0.0"},
				"LOAD [REPLACE] <FUNCTION CODE>",
				"    Add a library, or replace the one of its name.",
				"DELETE <LIBRARY NAME>",
				"    Delete a library with its functions.",
				"LIST [LIBRARYNAME PATTERN] [WITHCODE]",
				"    Name, engine and functions of all libraries, or of those whose names match,",
				"    and their code if WITHCODE is given.",
				"STATS",
				"    Name, command and milliseconds of the function that runs, or null, and the",
				"    number of libraries and functions of each engine.",
				"KILL",
				"    Stop the function that runs, if it has changed nothing.",
				"FLUSH [ASYNC|SYNC]",
				"    Delete all libraries. Both modes are the same.",
				"DUMP",
				"    All libraries as a payload for RESTORE.",
				"RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
				"    Create the libraries of a payload:",
				"    * APPEND beside the others, all of them or none (default)",
				"    * REPLACE those of the same names; a function of another library is an error",
				"    * FLUSH all others before"),
			{Facts: protocol.Facts{
				Name: "function|kill", Arity: 2, Flags: "noscript allow_busy",
				Group: "scripting", Since: "7.0.0", Tips: "request_policy:all_shards response_policy:one_succeeded",
				Complexity: "O(1)",
				Summary:    "Stop the function that runs, if it has changed nothing",
			}, Run: functionKill},
			{Facts: protocol.Facts{
				Name: "function|list", Arity: -2, Flags: "noscript",
				Group: "scripting", Since: "7.0.0", Tips: "nondeterministic_output_order",
				Complexity: "O(F log F), F functions of all libraries",
				Summary:    "Libraries with their functions and, if asked for, their code",
				Syntax:     "[LIBRARYNAME library-name-pattern] [WITHCODE]",
			}, Run: functionList},
			{Facts: protocol.Facts{
				Name: "function|load", Arity: -3, Flags: "write denyoom noscript",
				Group: "scripting", Since: "7.0.0", Tips: "request_policy:all_shards response_policy:all_succeeded",
				Complexity: "O(N), N bytes of code",
				Summary:    "Compile a library and add it, or replace the one of this name",
				Syntax:     "[REPLACE] function-code",
			}, Run: functionLoad},
			{Facts: protocol.Facts{
				Name: "function|restore", Arity: -3, Flags: "write denyoom noscript",
				Group: "scripting", Since: "7.0.0", Tips: "request_policy:all_shards response_policy:all_succeeded",
				Complexity: "O(N), N bytes of code",
				Summary:    "Create libraries from the reply of FUNCTION DUMP",
				Syntax:     "serialized-value policy:[FLUSH|APPEND|REPLACE]",
			}, Run: functionRestore},
			{Facts: protocol.Facts{
				Name: "function|stats", Arity: 2, Flags: "noscript allow_busy",
				Group: "scripting", Since: "7.0.0", Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
				Complexity: "O(1)",
				Summary:    "The function that runs, and the number of libraries and functions",
			}, Run: functionStats},
		}},
	}
}

const (
	functionEngine    = "LUA"
	errFunctionName   = "Function names can only contain letters, numbers, or underscores(_) and must be at least one character long"
	errFunctionExists = "Function already exists in the library"
	errLibraryName    = "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"
	functionPayload   = "ERR DUMP payload version or checksum are wrong"
)

// find returns the function of a name, ignoring case; nil if it does not exist.
func find(fs *engine.Functions, name []byte) *engine.Function {
	return fs.ByName[strings.ToLower(protocol.View(name))]
}

// sorted returns the functions of a library by name.
func sorted(l *engine.Library) []*engine.Function {
	list := make([]*engine.Function, 0, len(l.Functions))
	for _, name := range slices.Sorted(maps.Keys(l.Functions)) {
		list = append(list, l.Functions[name])
	}
	return list
}

// functionState returns the Lua machine of functions.
func functionState(srv *engine.Engine) *script.State {
	fs := &srv.Scripting.Functions
	if fs.State == nil {
		fs.State = newFunctionState(srv)
	}
	return fs.State
}

// newFunctionState returns a machine for functions. It needs no lock.
func newFunctionState(srv *engine.Engine) *script.State {
	state := script.New()
	seal(srv, state, false)
	return state
}

// loader compiles libraries. Unless a command requests that, it uses nothing that the engine's
// lock guards.
type loader struct {
	srv     *engine.Engine
	state   *script.State
	limits  engine.LibraryLimits
	library *engine.Library // that registers its functions
}

// loaderOf returns the loader of a command.
func loaderOf(srv *engine.Engine) *loader {
	return &loader{srv: srv, state: functionState(srv), limits: srv.LibraryLimits(engine.LibraryTime)}
}

// globals returns the globals of a library while it registers its functions.
func (d *loader) globals() *lua.Table {
	globals := lua.NewTable(0, 2)
	for _, name := range []string{"redis", "server"} {
		a := &api{srv: d.srv, state: d.state, valkey: name == "server"}
		register := func(_ *lua.Machine, args lua.Args) (int, *lua.Error) { return d.registerFunction(a, args) }
		t := script.Library(append(constants(), script.Function("register_function", register), script.Function("log", a.log))...)
		d.state.Strict(t)
		globals.SetText(nil, name, t.Value())
	}
	return globals
}

// libraryHeader parses the first line of a library.
func libraryHeader(code string) (language, name string, length int, wrong string) {
	if !strings.HasPrefix(code, "#!") {
		return "", "", 0, "Missing library metadata"
	}
	length = strings.IndexByte(code, '\n')
	if nul := strings.IndexByte(code, 0); length < 0 || nul >= 0 && nul < length {
		return "", "", 0, "Invalid library metadata"
	}
	words, ok := protocol.SplitArgs(nil, []byte(code[:length]))
	if !ok || len(words) == 0 {
		return "", "", 0, "Invalid library metadata"
	}
	language = string(words[0])[2:]
	named := false
	for _, word := range words[1:] {
		if len(word) < 5 || !protocol.EqualFold(word[:5], "NAME=") {
			return "", "", 0, "Invalid metadata value given: " + string(word)
		}
		if named {
			return "", "", 0, "Invalid metadata value, name argument was given multiple times"
		}
		name, named = string(word[5:]), true
	}
	if !named {
		return "", "", 0, "Library name was not given"
	}
	return language, name, length, ""
}

func functionName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c|32 && c|32 <= 'z' || '0' <= c && c <= '9' || c == '_') {
			return false
		}
	}
	return name != ""
}

// compile compiles a library from its source. libraryTaken and functionTaken report the
// names in use: of libraries and, in lower case, of functions. c is the command that requests
// it, nil while data are loaded.
func (d *loader) compile(c *engine.Call, code string, libraryTaken func(name string) bool, functionTaken func(library, name string) bool,
) (l *engine.Library, wrong string) {
	language, name, skip, wrong := libraryHeader(code)
	switch {
	case wrong != "":
		return nil, wrong
	case !functionName(name):
		return nil, errLibraryName
	case !strings.EqualFold(language, functionEngine):
		return nil, "Engine '" + language + "' not found"
	case libraryTaken(name):
		return nil, "Library '" + name + "' already exists"
	}
	l = &engine.Library{Name: name, Code: code, Functions: map[string]*engine.Function{}}
	var fn *lua.Function
	var err error
	if c != nil {
		fn, err = compileScript(c, d.state, &engine.ScriptRun{Name: name}, code[skip:], "user_function")
	} else {
		end := d.limit()
		fn, err = d.state.Compile(code[skip:], "user_function")
		end()
	}
	if ended, ok := errors.AsType[*script.Interrupted](err); ok {
		msg, _ := errorOf(ended.Value)
		return nil, "Error compiling function: " + cText(msg)
	}
	if err != nil {
		return nil, "Error compiling function: " + cText(err.Error())
	}
	if wrong = d.register(fn, l); wrong != "" {
		return nil, wrong
	}
	if len(l.Functions) == 0 {
		return nil, "No functions registered"
	}
	for _, f := range sorted(l) {
		if functionTaken(name, strings.ToLower(f.Name)) {
			return nil, "Function " + f.Name + " already exists"
		}
	}
	return l, ""
}

// limit makes the machine keep the limits until end is called.
func (d *loader) limit() (end func()) {
	watch := engine.StartWatch()
	var memory engine.ScriptMemory
	memory.BeginWithoutKeys(d.limits.Memory)
	d.state.Interrupt = func() *lua.Table {
		if memory.Outgrown() {
			return engine.ErrorTable(d.state, "ERR not enough memory", false)
		}
		if watch.Look() > d.limits.Time || d.limits.Ended() {
			return engine.ErrorTable(d.state, "ERR FUNCTION LOAD timeout", false)
		}
		return nil
	}
	return func() {
		d.state.Interrupt = nil
		memory.End()
	}
}

// register runs the code of a library, which registers its functions.
func (d *loader) register(fn *lua.Function, l *engine.Library) (wrong string) {
	end := d.limit()
	d.state.SetGlobals(d.globals())
	d.library = l
	defer func() {
		end()
		d.library = nil
		d.state.SetGlobals(nil)
	}()
	_, failed := d.state.Call(fn)
	if failed == nil {
		return ""
	}
	msg := ""
	if t := failed.Value.Table(); t != nil {
		msg, _ = errorOf(t)
	} else if text, ok := lua.ToText(failed.Value); ok {
		msg = "ERR " + text
	}
	if text := strings.TrimPrefix(msg, "ERR "); d.limits.Valkey && (text == errFunctionName || text == errFunctionExists) {
		return text
	}
	return "Error registering functions: " + cText(msg)
}

// registerFunction is redis.register_function.
func (d *loader) registerFunction(a *api, args lua.Args) (int, *lua.Error) {
	l := d.library
	if l == nil {
		return a.fail(a.name() + ".register_function can only be called on FUNCTION LOAD command")
	}
	f := &engine.Function{}
	switch args.Len() {
	case 1:
		if wrong := namedArguments(a.name()+".register_function", args.At(1), f); wrong != "" {
			return a.fail(wrong)
		}
	case 2:
		name, ok := lua.ToText(args.At(1))
		if !ok {
			return a.fail("first argument to " + a.name() + ".register_function must be a string")
		}
		fn := args.At(2).Function()
		if fn == nil {
			return a.fail("second argument to " + a.name() + ".register_function must be a function")
		}
		f.Name, f.Compiled = name, fn
	default:
		return a.fail("wrong number of arguments to " + a.name() + ".register_function")
	}
	if !functionName(f.Name) {
		wrong := errLibraryName
		if d.limits.Valkey {
			wrong = errFunctionName
		}
		return a.fail(wrong)
	}
	if l.Functions[f.Name] != nil {
		return a.fail(errFunctionExists)
	}
	l.Functions[f.Name] = f
	return 0, nil
}

// namedArguments reads the fields of the argument of a function; wrong is an error.
func namedArguments(function string, v lua.Value, f *engine.Function) (wrong string) {
	t := v.Table()
	if t == nil {
		return "calling " + function + " with a single argument is only applicable to Lua table (representing named arguments)."
	}
	named := false
	for k, v, at := t.Entry(0); !k.IsNil(); k, v, at = t.Entry(at) {
		key, ok := lua.ToText(k)
		if !ok {
			return "named argument key given to " + function + " is not a string"
		}
		switch strings.ToLower(key) {
		case "function_name":
			if f.Name, named = lua.ToText(v); !named {
				return "function_name argument given to " + function + " must be a string"
			}
		case "description":
			text, ok := lua.ToText(v)
			if !ok {
				return "description argument given to " + function + " must be a string"
			}
			f.Description = &text
		case "callback":
			fn := v.Function()
			if fn == nil {
				return "callback argument given to " + function + " must be a function"
			}
			f.Compiled = fn
		case "flags":
			flags := v.Table()
			if flags == nil {
				return "flags argument to " + function + " must be a table representing function flags"
			}
			for i := 1; !flags.GetInt(i).IsNil(); i++ {
				name, _ := lua.ToText(flags.GetInt(i))
				flag := scriptFlagNamed(strings.ToLower(name))
				if flag == 0 {
					return "unknown flag given"
				}
				f.Flags |= flag
			}
		default:
			return "unknown argument given to " + function
		}
	}
	if !named {
		return function + " must get a function name argument"
	}
	if f.Compiled == nil {
		return function + " must get a callback argument"
	}
	return ""
}

// link adds a library and its functions to the tables.
func link(fs *engine.Functions, l *engine.Library) {
	if fs.Libraries == nil {
		fs.Libraries, fs.ByName = map[string]*engine.Library{}, map[string]*engine.Function{}
	}
	fs.Libraries[l.Name] = l
	for _, f := range l.Functions {
		fs.ByName[strings.ToLower(f.Name)] = f
	}
}

func unlink(fs *engine.Functions, l *engine.Library) {
	delete(fs.Libraries, l.Name)
	for _, f := range l.Functions {
		delete(fs.ByName, strings.ToLower(f.Name))
	}
}

// keepLibrary writes a library to the server's own database.
func keepLibrary(c *engine.Call, l *engine.Library) {
	c.Engine.Keys.DB(keyspace.InternalDB).Put([]byte(l.Name), keyspace.NewString([]byte(l.Code)), false)
}

// changedLibraries counts a change.
func changedLibraries(c *engine.Call) { c.Engine.Stats.Changes++ }

// takenBy returns functions that report the names in use, except those of the
// library to be replaced.
func takenBy(fs *engine.Functions, replace bool) (libraries func(string) bool, functions func(library, name string) bool) {
	return func(name string) bool { return !replace && fs.Libraries[name] != nil },
		func(library, name string) bool {
			f := fs.ByName[name]
			if f == nil {
				return false
			}
			old := fs.Libraries[library]
			return old == nil || old.Functions[f.Name] != f
		}
}

func functionLoad(c *engine.Call) {
	replace := false
	for c.Len() > 1 {
		option := c.String()
		if !strings.EqualFold(option, "REPLACE") {
			c.Reply.Error("ERR Unknown option given: " + cText(option))
			return
		}
		replace = true
	}
	code := c.String()
	fs := &c.Engine.Scripting.Functions
	libraryTaken, functionTaken := takenBy(fs, replace)
	l, wrong := loaderOf(c.Engine).compile(c, code, libraryTaken, functionTaken)
	if wrong != "" {
		c.Reply.Error("ERR " + wrong)
		return
	}
	if old := fs.Libraries[l.Name]; old != nil {
		unlink(fs, old)
	}
	link(fs, l)
	keepLibrary(c, l)
	changedLibraries(c)
	c.Reply.BulkString(l.Name)
}

func functionDelete(c *engine.Call) {
	fs := &c.Engine.Scripting.Functions
	l := fs.Libraries[c.String()]
	if l == nil {
		c.Reply.Error("ERR Library not found")
		return
	}
	unlink(fs, l)
	c.Engine.Keys.DB(keyspace.InternalDB).Delete([]byte(l.Name))
	changedLibraries(c)
	c.Reply.OK()
}

// flushLibraries deletes all libraries.
func flushLibraries(c *engine.Call) {
	fs := &c.Engine.Scripting.Functions
	own := c.Engine.Keys.DB(keyspace.InternalDB)
	for name := range fs.Libraries {
		own.Delete([]byte(name))
	}
	fs.Libraries, fs.ByName = nil, nil
}

func functionFlush(c *engine.Call) {
	if c.Len() > 1 {
		c.UnknownSubcommand()
		return
	}
	async := c.More() && c.Is("ASYNC")
	if c.More() && !async && !c.Is("SYNC") {
		c.Reply.Error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
		return
	}
	if async {
		c.Engine.FunctionsFreed()
	}
	flushLibraries(c)
	c.Engine.Scripting.Functions.State = nil
	changedLibraries(c)
	c.Reply.OK()
}

func functionList(c *engine.Call) {
	withCode := false
	var asked glob.Pattern
	for c.More() {
		switch {
		case !withCode && c.Is("WITHCODE"):
			withCode = true
		case asked.Text == nil && c.Is("LIBRARYNAME"):
			if !c.More() {
				c.Reply.Error("ERR library name argument was not given")
				return
			}
			asked = glob.Compile(c.Bytes(), true)
		default:
			c.Reply.Error("ERR Unknown argument " + cText(c.String()))
			return
		}
	}
	var found []*engine.Library
	libraries := c.Engine.Scripting.Functions.Libraries
	for _, name := range slices.Sorted(maps.Keys(libraries)) {
		if asked.Match(protocol.BytesOf(name)) {
			found = append(found, libraries[name])
		}
	}
	r := c.Reply
	r.Array(len(found))
	for _, l := range found {
		if withCode {
			r.Map(4)
		} else {
			r.Map(3)
		}
		r.BulkString("library_name")
		r.BulkString(l.Name)
		r.BulkString("engine")
		r.BulkString(functionEngine)
		r.BulkString("functions")
		r.Array(len(l.Functions))
		for _, f := range sorted(l) {
			describe(f, r)
		}
		if withCode {
			r.BulkString("library_code")
			r.BulkString(l.Code)
		}
	}
}

func describe(f *engine.Function, r *protocol.Reply) {
	r.Map(3)
	r.BulkString("name")
	r.BulkString(f.Name)
	r.BulkString("description")
	if f.Description != nil {
		r.BulkString(*f.Description)
	} else {
		r.Null()
	}
	r.BulkString("flags")
	var names []string
	for i, name := range engine.ScriptFlagNames() {
		if f.Flags.Has(1 << i) {
			names = append(names, name)
		}
	}
	r.Set(len(names))
	for _, name := range names {
		r.Status(name)
	}
}

func functionStats(c *engine.Call) {
	sc := &c.Engine.Scripting
	run := sc.Running
	if run != nil && run.Eval {
		c.Reply.Error(engine.ErrBusyEval)
		return
	}
	r := c.Reply
	r.Map(2)
	r.BulkString("running_script")
	if run == nil {
		r.Null()
	} else {
		r.Map(3)
		r.BulkString("name")
		r.BulkString(run.Name)
		r.BulkString("command")
		r.Array(len(run.Command))
		for _, a := range run.Command {
			r.Bulk(a)
		}
		r.BulkString("duration_ms")
		r.Int(time.Since(run.Watch.Started).Milliseconds())
	}
	r.BulkString("engines")
	r.Map(1)
	r.BulkString(functionEngine)
	r.Map(2)
	r.BulkString("libraries_count")
	r.Int(int64(len(sc.Functions.Libraries)))
	r.BulkString("functions_count")
	r.Int(int64(len(sc.Functions.ByName)))
}

func functionKill(c *engine.Call) { killScript(c, false) }

func functionDump(c *engine.Call) {
	libraries := c.Engine.Scripting.Functions.Libraries
	codes := make([]string, 0, len(libraries))
	for _, name := range slices.Sorted(maps.Keys(libraries)) {
		codes = append(codes, libraries[name].Code)
	}
	c.Reply.Bulk(c.Engine.Codec().AppendFunctions(nil, codes))
}

func functionRestore(c *engine.Call) {
	if c.Len() > 2 {
		c.UnknownSubcommand()
		return
	}
	payload := c.Bytes()
	flush, replace := false, false
	if c.More() {
		switch {
		case c.Is("FLUSH"):
			flush = true
		case c.Is("REPLACE"):
			replace = true
		case c.Is("APPEND"):
		default:
			c.Reply.Error("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
			return
		}
	}
	codes, wrong := c.Engine.Codec().Functions(payload)
	if codes == nil && wrong == "" {
		c.Reply.Error(functionPayload)
		return
	}
	if wrong == "" {
		wrong = restoreLibraries(c, codes, flush, replace)
	}
	if wrong != "" {
		c.Reply.Error("ERR " + cText(wrong))
		return
	}
	changedLibraries(c)
	c.Reply.OK()
}

// restoreLibraries adds libraries: all of them or, if it returns an error in wrong,
// none. With flush it first deletes all existing libraries, with replace those of
// the same names.
func restoreLibraries(c *engine.Call, codes []string, flush, replace bool) (wrong string) {
	var fresh engine.Functions
	libraryTaken, functionTaken := takenBy(&fresh, false)
	d := loaderOf(c.Engine)
	for _, code := range codes {
		l, wrong := d.compile(c, code, libraryTaken, functionTaken)
		if wrong != "" {
			return wrong
		}
		link(&fresh, l)
	}
	fs := &c.Engine.Scripting.Functions
	if flush {
		flushLibraries(c)
	}
	var replaced []*engine.Library
	names := slices.Sorted(maps.Keys(fresh.Libraries))
	for _, name := range names {
		old := fs.Libraries[name]
		switch {
		case old == nil:
		case !replace:
			return "Library " + name + " already exists"
		default:
			replaced = append(replaced, old)
		}
	}
	leaving := map[*engine.Function]bool{}
	for _, l := range replaced {
		for _, f := range l.Functions {
			leaving[f] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fresh.ByName)) {
		f := fs.ByName[name]
		if f == nil {
			continue
		}
		if !leaving[f] {
			return "Function " + fresh.ByName[name].Name + " already exists"
		}
	}
	for _, l := range replaced {
		unlink(fs, l)
	}
	for _, name := range names {
		link(fs, fresh.Libraries[name])
		keepLibrary(c, fresh.Libraries[name])
	}
	return ""
}

// functionFlags returns the flags that the function of FCALL was registered with.
func functionFlags(srv *engine.Engine, argv [][]byte) engine.ScriptFlags {
	if f := find(&srv.Scripting.Functions, argv[1]); f != nil {
		return f.Flags
	}
	return engine.ScriptCompat
}

// CompileLibraries compiles the libraries in the server's own database of a keyspace, which may
// not be that of the engine: the lock is needed only if it is. A library that cannot be
// compiled within the limits stays in the database.
func CompileLibraries(srv *engine.Engine, keys *keyspace.Keyspace, limits engine.LibraryLimits) (fs engine.Functions) {
	libraryTaken, functionTaken := takenBy(&fs, false)
	for e := range keys.DB(keyspace.InternalDB).All() {
		code, ok := e.Value().(*keyspace.String)
		if !ok {
			continue
		}
		if fs.State == nil {
			fs.State = newFunctionState(srv)
		}
		d := loader{srv: srv, state: fs.State, limits: limits}
		l, wrong := d.compile(nil, string(code.Content()), libraryTaken, functionTaken)
		if limits.Ended() {
			break
		}
		if wrong != "" {
			srv.Log.Error("cannot load a function library; keeping it in the data file", "library", e.Key(), "error", wrong)
			continue
		}
		link(&fs, l)
	}
	return fs
}

func callFunction(c *engine.Call, readOnly bool) {
	if len(c.Engine.Clients.Monitors) > 0 {
		c.Engine.Clients.SendMonitors(c, c.Engine.Turn.At)
	}
	f := find(&c.Engine.Scripting.Functions, c.Bytes())
	if f == nil {
		c.Reply.Error("ERR Function not found")
		return
	}
	keys, args := numkeys(c, "ERR Bad number of keys provided")
	if !c.OK() {
		return
	}
	runScript(c, functionState(c.Engine), f.Compiled, f.Name, false, readOnly, f.Flags, keys, args)
}

func fcall(c *engine.Call) { callFunction(c, false) }

func fcallRo(c *engine.Call) { callFunction(c, true) }
