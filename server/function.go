package server

import (
	"errors"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
	"github.com/zsetd/zsetd/server/script"
)

// Libraries of functions are kept in source form, as strings in the server's own
// database (keyspace.InternalDB), so they are journaled, saved and loaded as all other
// data. The compiled functions are kept beside it.

func functionCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "fcall", Arity: -3, Flags: "noscript stale skip_monitor no_mandatory_keys may_replicate",
			Keys:  "2# RW access update (We cannot tell how the keys will be used so we assume the worst, RW and UPDATE)",
			Group: "scripting", Since: "7.0.0", Complexity: "Depends on the function that is executed.",
			Summary: "Invoke a function",
			Syntax:  "function numkeys [key [key ...]] [arg [arg ...]]",
		}, run: fcall, scriptFlags: functionFlags},
		{Facts: protocol.Facts{
			Name: "fcall_ro", Arity: -3, Flags: "readonly noscript stale skip_monitor no_mandatory_keys",
			Keys:  "2# RO access (We cannot tell how the keys will be used so we assume the worst, RO and ACCESS)",
			Group: "scripting", Since: "7.0.0", Complexity: "Depends on the function that is executed.",
			Summary: "Invoke a read-only function",
			Syntax:  "function numkeys [key [key ...]] [arg [arg ...]]",
		}, run: fcallRo, scriptFlags: functionFlags},
		{Facts: protocol.Facts{
			Name: "function", Arity: -2,
			Group: "scripting", Since: "7.0.0", Complexity: "Depends on subcommand.",
			Summary: "A container for function commands",
		}, subcommands: []Command{
			{Facts: protocol.Facts{
				Name: "function|delete", Arity: 3, Flags: "write noscript",
				Group: "scripting", Since: "7.0.0", Tips: "request_policy:all_shards response_policy:all_succeeded",
				Complexity: "O(1)",
				Summary:    "Delete a function by name",
				Syntax:     "library-name",
			}, run: functionDelete},
			{Facts: protocol.Facts{
				Name: "function|dump", Arity: 2, Flags: "noscript",
				Group: "scripting", Since: "7.0.0", Complexity: "O(N) where N is the number of functions",
				Summary: "Dump all functions into a serialized binary payload",
			}, run: functionDump},
			{Facts: protocol.Facts{
				Name: "function|flush", Arity: -2, Flags: "write noscript",
				Group: "scripting", Since: "7.0.0", Tips: "request_policy:all_shards response_policy:all_succeeded",
				Complexity: "O(N) where N is the number of functions deleted",
				Summary:    "Deleting all functions",
				Syntax:     "async:[ASYNC|SYNC]",
			}, run: functionFlush},
			{Facts: protocol.Facts{
				Name: "function|help", Arity: 2, Flags: "loading stale",
				Group: "scripting", Since: "7.0.0", Complexity: "O(1)",
				Summary: "Show helpful text about the different subcommands",
			}, run: functionHelp},
			{Facts: protocol.Facts{
				Name: "function|kill", Arity: 2, Flags: "noscript allow_busy",
				Group: "scripting", Since: "7.0.0", Tips: "request_policy:all_shards response_policy:one_succeeded",
				Complexity: "O(1)",
				Summary:    "Kill the function currently in execution.",
			}, run: functionKill},
			{Facts: protocol.Facts{
				Name: "function|list", Arity: -2, Flags: "noscript",
				Group: "scripting", Since: "7.0.0", Tips: "nondeterministic_output_order",
				Complexity: "O(N) where N is the number of functions",
				Summary:    "List information about all the functions",
				Syntax:     "[LIBRARYNAME library-name-pattern] [WITHCODE]",
			}, run: functionList},
			{Facts: protocol.Facts{
				Name: "function|load", Arity: -3, Flags: "write denyoom noscript",
				Group: "scripting", Since: "7.0.0", Tips: "request_policy:all_shards response_policy:all_succeeded",
				Complexity: "O(1) (considering compilation time is redundant)",
				Summary:    "Create a function with the given arguments (name, code, description)",
				Syntax:     "[REPLACE] function-code",
			}, run: functionLoad},
			{Facts: protocol.Facts{
				Name: "function|restore", Arity: -3, Flags: "write denyoom noscript",
				Group: "scripting", Since: "7.0.0", Tips: "request_policy:all_shards response_policy:all_succeeded",
				Complexity: "O(N) where N is the number of functions on the payload",
				Summary:    "Restore all the functions on the given payload",
				Syntax:     "serialized-value policy:[FLUSH|APPEND|REPLACE]",
			}, run: functionRestore},
			{Facts: protocol.Facts{
				Name: "function|stats", Arity: 2, Flags: "noscript allow_busy",
				Group: "scripting", Since: "7.0.0", Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
				Complexity: "O(1)",
				Summary:    "Return information about the function currently running (name, description, duration)",
			}, run: functionStats},
		}},
	}
}

// functions holds the libraries and their registered functions.
type functions struct {
	state       *script.State // nil until first used
	libraries   map[string]*library
	byName      map[string]*function // by lower-case name
	registering *library             // the library that registers its functions
}

// library is a library of functions.
type library struct {
	name, code string
	functions  map[string]*function
}

// function is a function of a library.
type function struct {
	name        string
	description *string
	flags       scriptFlags
	fn          *lua.LFunction
}

const (
	functionEngine  = "LUA"
	errLibraryName  = "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"
	loadTime        = 500 * time.Millisecond // time limit of registering functions
	functionPayload = "ERR DUMP payload version or checksum are wrong"
)

// find returns the function of a name, ignoring case; nil if it does not exist.
func (fs *functions) find(name []byte) *function {
	return fs.byName[strings.ToLower(protocol.View(name))]
}

// sorted returns the functions of a library by name.
func (l *library) sorted() []*function {
	list := make([]*function, 0, len(l.functions))
	for _, name := range sortedNames(l.functions) {
		list = append(list, l.functions[name])
	}
	return list
}

// functionState returns the Lua machine of functions.
func (srv *Server) functionState() *script.State {
	fs := &srv.scripting.functions
	if fs.state == nil {
		fs.state = script.New()
		fs.state.Beat = srv.scripting.tick
		a := &api{srv, fs.state}
		fs.state.Seal(a.library(false))
	}
	return fs.state
}

// loadingGlobals returns the globals of a library while it registers its functions.
func (srv *Server) loadingGlobals(state *script.State) *lua.LTable {
	a := &api{srv, state}
	redis := state.Library(map[string]lua.LGFunction{"register_function": a.registerFunction, "log": a.log})
	a.constants(redis)
	globals := state.Table()
	globals.RawSetString("redis", state.Guarded(redis, true))
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

// compileLibrary compiles a library from its source. libraryTaken and functionTaken
// report the names in use: of libraries and, in lower case, of functions. c is the
// command that requests it, nil while data are loaded.
func (srv *Server) compileLibrary(c *Call, code string, timeout time.Duration, libraryTaken func(name string) bool,
	functionTaken func(library, name string) bool,
) (l *library, wrong string) {
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
	l = &library{name: name, code: code, functions: map[string]*function{}}
	state := srv.functionState()
	var fn *lua.LFunction
	var err error
	if c != nil {
		fn, err = c.compileScript(state, &scriptRun{name: name}, code[skip:], "user_function")
	} else {
		fn, err = state.Compile(code[skip:], "user_function")
	}
	if ended, ok := errors.AsType[*script.Interrupted](err); ok {
		msg, _ := errorOf(ended.Value)
		return nil, "Error compiling function: " + cText(msg)
	}
	if err != nil {
		return nil, "Error compiling function: " + cText(err.Error())
	}
	if wrong = srv.register(state, fn, l, timeout); wrong != "" {
		return nil, wrong
	}
	if len(l.functions) == 0 {
		return nil, "No functions registered"
	}
	for _, f := range l.sorted() {
		if functionTaken(name, strings.ToLower(f.name)) {
			return nil, "Function " + f.name + " already exists"
		}
	}
	return l, ""
}

// register runs the code of a library, which registers its functions.
func (srv *Server) register(state *script.State, fn *lua.LFunction, l *library, timeout time.Duration) (wrong string) {
	fs := &srv.scripting.functions
	began := time.Now()
	state.SetGlobals(srv.loadingGlobals(state))
	fs.registering = l
	var memory scriptMemory
	memory.begin(&srv.scripting, srv.keys, began)
	state.Interrupt = func() *lua.LTable {
		if memory.outgrown() {
			return errorTable(state, "ERR not enough memory", false)
		}
		if timeout > 0 && time.Since(began) > timeout {
			return errorTable(state, "ERR FUNCTION LOAD timeout", false)
		}
		return nil
	}
	defer func() {
		fs.registering, state.Interrupt = nil, nil
		memory.end()
		state.SetGlobals(nil)
	}()
	_, failed := state.Call(fn)
	if failed == nil {
		return ""
	}
	msg := ""
	if t, ok := failed.Value.(*lua.LTable); ok {
		msg, _ = errorOf(t)
	} else if text, ok := script.ToString(failed.Value); ok {
		msg = "ERR " + text
	}
	return "Error registering functions: " + cText(msg)
}

// registerFunction is redis.register_function.
func (a *api) registerFunction(L *lua.LState) int {
	l := a.srv.scripting.functions.registering
	if l == nil {
		a.fail(L, "redis.register_function can only be called on FUNCTION LOAD command")
	}
	f := &function{}
	switch L.GetTop() {
	case 1:
		a.namedArguments(L, f)
	case 2:
		name, ok := script.ToString(L.Get(1))
		if !ok {
			a.fail(L, "first argument to redis.register_function must be a string")
		}
		fn, ok := L.Get(2).(*lua.LFunction)
		if !ok {
			a.fail(L, "second argument to redis.register_function must be a function")
		}
		f.name, f.fn = name, fn
	default:
		a.fail(L, "wrong number of arguments to redis.register_function")
	}
	if !functionName(f.name) {
		a.fail(L, errLibraryName)
	}
	if l.functions[f.name] != nil {
		a.fail(L, "Function already exists in the library")
	}
	l.functions[f.name] = f
	return 0
}

func (a *api) namedArguments(L *lua.LState, f *function) {
	t, ok := L.Get(1).(*lua.LTable)
	if !ok {
		a.fail(L, "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).")
	}
	named := false
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		key, ok := script.ToString(k)
		if !ok {
			a.fail(L, "named argument key given to redis.register_function is not a string")
		}
		switch strings.ToLower(key) {
		case "function_name":
			if f.name, named = script.ToString(v); !named {
				a.fail(L, "function_name argument given to redis.register_function must be a string")
			}
		case "description":
			text, ok := script.ToString(v)
			if !ok {
				a.fail(L, "description argument given to redis.register_function must be a string")
			}
			f.description = &text
		case "callback":
			fn, ok := v.(*lua.LFunction)
			if !ok {
				a.fail(L, "callback argument given to redis.register_function must be a function")
			}
			f.fn = fn
		case "flags":
			flags, ok := v.(*lua.LTable)
			if !ok {
				a.fail(L, "flags argument to redis.register_function must be a table representing function flags")
			}
			for i := 1; flags.RawGetInt(i) != lua.LNil; i++ {
				name, _ := script.ToString(flags.RawGetInt(i))
				flag := scriptFlagNamed(strings.ToLower(name))
				if flag == 0 {
					a.fail(L, "unknown flag given")
				}
				f.flags |= flag
			}
		default:
			a.fail(L, "unknown argument given to redis.register_function")
		}
	}
	if !named {
		a.fail(L, "redis.register_function must get a function name argument")
	}
	if f.fn == nil {
		a.fail(L, "redis.register_function must get a callback argument")
	}
}

// link adds a library and its functions to the tables.
func (fs *functions) link(l *library) {
	if fs.libraries == nil {
		fs.libraries, fs.byName = map[string]*library{}, map[string]*function{}
	}
	fs.libraries[l.name] = l
	for _, f := range l.functions {
		fs.byName[strings.ToLower(f.name)] = f
	}
}

func (fs *functions) unlink(l *library) {
	delete(fs.libraries, l.name)
	for _, f := range l.functions {
		delete(fs.byName, strings.ToLower(f.name))
	}
}

// keepLibrary writes a library to the server's own database.
func (c *Call) keepLibrary(l *library) {
	c.srv.keys.DB(keyspace.InternalDB).Put([]byte(l.name), keyspace.NewString([]byte(l.code)), false)
}

// changedLibraries counts a change.
func (c *Call) changedLibraries() { c.srv.scope.changes++ }

// takenBy returns functions that report the names in use, except those of the
// library to be replaced.
func (fs *functions) takenBy(replace bool) (libraries func(string) bool, functions func(library, name string) bool) {
	return func(name string) bool { return !replace && fs.libraries[name] != nil },
		func(library, name string) bool {
			f := fs.byName[name]
			if f == nil {
				return false
			}
			old := fs.libraries[library]
			return old == nil || old.functions[f.name] != f
		}
}

func functionLoad(c *Call) {
	replace := false
	for c.Len() > 1 {
		option := c.String()
		if !strings.EqualFold(option, "REPLACE") {
			c.Reply.Error("ERR Unknown option given: " + cText(option))
			return
		}
		replace = true
	}
	if c.Len() == 0 {
		c.Reply.Error("ERR Function code is missing")
		return
	}
	code := c.String()
	fs := &c.srv.scripting.functions
	libraryTaken, functionTaken := fs.takenBy(replace)
	l, wrong := c.srv.compileLibrary(c, code, loadTime, libraryTaken, functionTaken)
	if wrong != "" {
		c.Reply.Error("ERR " + wrong)
		return
	}
	if old := fs.libraries[l.name]; old != nil {
		fs.unlink(old)
	}
	fs.link(l)
	c.keepLibrary(l)
	c.changedLibraries()
	c.Reply.BulkString(l.name)
}

func functionDelete(c *Call) {
	fs := &c.srv.scripting.functions
	l := fs.libraries[c.String()]
	if l == nil {
		c.Reply.Error("ERR Library not found")
		return
	}
	fs.unlink(l)
	c.srv.keys.DB(keyspace.InternalDB).Delete([]byte(l.name))
	c.changedLibraries()
	c.Reply.OK()
}

// flushLibraries deletes all libraries.
func (c *Call) flushLibraries() {
	fs := &c.srv.scripting.functions
	own := c.srv.keys.DB(keyspace.InternalDB)
	for name := range fs.libraries {
		own.Delete([]byte(name))
	}
	fs.libraries, fs.byName = nil, nil
}

func functionFlush(c *Call) {
	if c.Len() > 1 {
		c.unknownSubcommand()
		return
	}
	if c.More() && !c.Is("ASYNC") && !c.Is("SYNC") {
		c.Reply.Error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
		return
	}
	c.flushLibraries()
	c.srv.scripting.functions.state = nil
	c.changedLibraries()
	c.Reply.OK()
}

func functionList(c *Call) {
	withCode := false
	var asked pattern
	for c.More() {
		switch {
		case !withCode && c.Is("WITHCODE"):
			withCode = true
		case asked.text == nil && c.Is("LIBRARYNAME"):
			if !c.More() {
				c.Reply.Error("ERR library name argument was not given")
				return
			}
			asked = newPattern(c.Bytes(), true)
		default:
			c.Reply.Error("ERR Unknown argument " + cText(c.String()))
			return
		}
	}
	var found []*library
	libraries := c.srv.scripting.functions.libraries
	for _, name := range sortedNames(libraries) {
		if asked.matches(bytesOf(name)) {
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
		r.BulkString(l.name)
		r.BulkString("engine")
		r.BulkString(functionEngine)
		r.BulkString("functions")
		r.Array(len(l.functions))
		for _, f := range l.sorted() {
			f.describe(r)
		}
		if withCode {
			r.BulkString("library_code")
			r.BulkString(l.code)
		}
	}
}

func (f *function) describe(r *protocol.Reply) {
	r.Map(3)
	r.BulkString("name")
	r.BulkString(f.name)
	r.BulkString("description")
	if f.description != nil {
		r.BulkString(*f.description)
	} else {
		r.Null()
	}
	r.BulkString("flags")
	var names []string
	for i, name := range scriptFlagNames() {
		if f.flags.has(1 << i) {
			names = append(names, name)
		}
	}
	r.Set(len(names))
	for _, name := range names {
		r.Status(name)
	}
}

func functionStats(c *Call) {
	sc := &c.srv.scripting
	run := sc.running
	if run != nil && run.eval {
		c.Reply.Error(errBusyEval)
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
		r.BulkString(run.name)
		r.BulkString("command")
		r.Array(len(run.command))
		for _, a := range run.command {
			r.Bulk(a)
		}
		r.BulkString("duration_ms")
		r.Int(time.Since(run.started).Milliseconds())
	}
	r.BulkString("engines")
	r.Map(1)
	r.BulkString(functionEngine)
	r.Map(2)
	r.BulkString("libraries_count")
	r.Int(int64(len(sc.functions.libraries)))
	r.BulkString("functions_count")
	r.Int(int64(len(sc.functions.byName)))
}

func functionKill(c *Call) { c.killScript(false) }

func functionDump(c *Call) {
	libraries := c.srv.scripting.functions.libraries
	codes := make([]string, 0, len(libraries))
	for _, name := range sortedNames(libraries) {
		codes = append(codes, libraries[name].code)
	}
	c.Reply.Bulk(c.srv.codec().AppendFunctions(nil, codes))
}

func functionRestore(c *Call) {
	if c.Len() > 2 {
		c.unknownSubcommand()
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
	codes, wrong := c.srv.codec().Functions(payload)
	if codes == nil && wrong == "" {
		c.Reply.Error(functionPayload)
		return
	}
	if wrong == "" {
		wrong = c.restoreLibraries(codes, flush, replace)
	}
	if wrong != "" {
		c.Reply.Error("ERR " + cText(wrong))
		return
	}
	c.changedLibraries()
	c.Reply.OK()
}

// restoreLibraries adds libraries: all of them or, if it returns an error in wrong,
// none. With flush it first deletes all existing libraries, with replace those of
// the same names.
func (c *Call) restoreLibraries(codes []string, flush, replace bool) (wrong string) {
	var fresh functions
	libraryTaken, functionTaken := fresh.takenBy(false)
	for _, code := range codes {
		l, wrong := c.srv.compileLibrary(c, code, 0, libraryTaken, functionTaken)
		if wrong != "" {
			return wrong
		}
		fresh.link(l)
	}
	fs := &c.srv.scripting.functions
	if flush {
		c.flushLibraries()
	}
	var replaced []*library
	names := sortedNames(fresh.libraries)
	for _, name := range names {
		old := fs.libraries[name]
		switch {
		case old == nil:
		case !replace:
			return "Library " + name + " already exists"
		default:
			replaced = append(replaced, old)
		}
	}
	leaving := map[*function]bool{}
	for _, l := range replaced {
		for _, f := range l.functions {
			leaving[f] = true
		}
	}
	for _, name := range sortedNames(fresh.byName) {
		f := fs.byName[name]
		if f == nil {
			continue
		}
		if !leaving[f] {
			return "Function " + fresh.byName[name].name + " already exists"
		}
	}
	for _, l := range replaced {
		fs.unlink(l)
	}
	for _, name := range names {
		fs.link(fresh.libraries[name])
		c.keepLibrary(fresh.libraries[name])
	}
	return ""
}

// functionFlags returns the flags that the function of FCALL was registered with.
func functionFlags(srv *Server, argv [][]byte) scriptFlags {
	if f := srv.scripting.functions.find(argv[1]); f != nil {
		return f.flags
	}
	return scriptCompat
}

// loadLibraries compiles the libraries in the server's own database.
func (srv *Server) loadLibraries() {
	fs := &srv.scripting.functions
	fs.libraries, fs.byName = nil, nil
	libraryTaken, functionTaken := fs.takenBy(false)
	for e := range srv.keys.DB(keyspace.InternalDB).All() {
		code, ok := e.Value().(*keyspace.String)
		if !ok {
			continue
		}
		l, wrong := srv.compileLibrary(nil, string(code.Content()), 0, libraryTaken, functionTaken)
		if wrong != "" {
			srv.log.Error("cannot load a function library; keeping it in the data file", "library", e.Key(), "error", wrong)
			continue
		}
		fs.link(l)
	}
}

func functionHelp(c *Call) {
	c.help("LOAD [REPLACE] <FUNCTION CODE>",
		"    Create a new library with the given library name and code.",
		"DELETE <LIBRARY NAME>",
		"    Delete the given library.",
		"LIST [LIBRARYNAME PATTERN] [WITHCODE]",
		"    Return general information on all the libraries:",
		"    * Library name",
		"    * The engine used to run the Library",
		"    * Library description",
		"    * Functions list",
		"    * Library code (if WITHCODE is given)",
		"    It also possible to get only function that matches a pattern using LIBRARYNAME argument.",
		"STATS",
		"    Return information about the current function running:",
		"    * Function name",
		"    * Command used to run the function",
		"    * Duration in MS that the function is running",
		"    If no function is running, return nil",
		"    In addition, returns a list of available engines.",
		"KILL",
		"    Kill the current running function.",
		"FLUSH [ASYNC|SYNC]",
		"    Delete all the libraries.",
		"    When called without the optional mode argument, the behavior is determined by the",
		"    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
		"    * ASYNC: Asynchronously flush the libraries.",
		"    * SYNC: Synchronously flush the libraries.",
		"DUMP",
		"    Return a serialized payload representing the current libraries, can be restored using FUNCTION RESTORE command",
		"RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
		"    Restore the libraries represented by the given payload, it is possible to give a restore policy to",
		"    control how to handle existing libraries (default APPEND):",
		"    * FLUSH: delete all existing libraries.",
		"    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.",
		"    * REPLACE: appends the restored libraries to the existing libraries, On collision, replace the old",
		"      libraries with the new libraries (notice that even on this option there is a chance of failure",
		"      in case of functions name collision with another library).")
}

func (c *Call) fcall(readOnly bool) {
	if len(c.srv.monitors) > 0 {
		c.srv.sendMonitors(c, c.srv.at)
	}
	f := c.srv.scripting.functions.find(c.Bytes())
	if f == nil {
		c.Reply.Error("ERR Function not found")
		return
	}
	keys, args := c.numkeys("ERR Bad number of keys provided")
	if !c.ok() {
		return
	}
	c.runScript(c.srv.functionState(), f.fn, &scriptRun{name: f.name, readOnly: readOnly, flags: f.flags}, keys, args)
}

func fcall(c *Call) { c.fcall(false) }

func fcallRo(c *Call) { c.fcall(true) }
