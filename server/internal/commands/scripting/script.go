package scripting

import (
	"bytes"
	"errors"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/lua/script"
)

// ScriptCommands returns the rows of SCRIPT and EVAL.
func ScriptCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "eval", Arity: -3, Flags: "noscript stale skip_monitor no_mandatory_keys may_replicate",
			Keys:  "2# RW access update (the code decides what it reads and writes)",
			Group: "scripting", Since: "2.6.0", Complexity: "That of the script",
			Summary: "Run a Lua script",
			Syntax:  "script numkeys [key [key ...]] [arg [arg ...]]",
		}, Run: eval, ScriptFlags: evalFlags},
		{Facts: protocol.Facts{
			Name: "eval_ro", Arity: -3, Flags: "readonly noscript stale skip_monitor no_mandatory_keys",
			Keys:  "2# RO access (the code decides what it reads)",
			Group: "scripting", Since: "7.0.0", Complexity: "That of the script",
			Summary: "Run a Lua script that changes nothing",
			Syntax:  "script numkeys [key [key ...]] [arg [arg ...]]",
		}, Run: evalRo, ScriptFlags: evalFlags},
		{Facts: protocol.Facts{
			Name: "evalsha", Arity: -3, Flags: "noscript stale skip_monitor no_mandatory_keys may_replicate",
			Keys:  "2# RW access update",
			Group: "scripting", Since: "2.6.0", Complexity: "That of the script",
			Summary: "Run a cached Lua script, given its SHA-1",
			Syntax:  "sha1 numkeys [key [key ...]] [arg [arg ...]]",
		}, Run: evalsha, ScriptFlags: shaFlags},
		{Facts: protocol.Facts{
			Name: "evalsha_ro", Arity: -3, Flags: "readonly noscript stale skip_monitor no_mandatory_keys",
			Keys:  "2# RO access",
			Group: "scripting", Since: "7.0.0", Complexity: "That of the script",
			Summary: "Run a cached Lua script that changes nothing, given its SHA-1",
			Syntax:  "sha1 numkeys [key [key ...]] [arg [arg ...]]",
		}, Run: evalshaRo, ScriptFlags: shaFlags},
		{Facts: protocol.Facts{
			Name: "script", Arity: -2,
			Group: "scripting", Since: "2.6.0", Complexity: "That of the subcommand",
			Summary: "The cache of Lua scripts, and the script that runs",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "script|debug", Arity: 3, Flags: "noscript",
				Group: "scripting", Since: "3.2.0", Complexity: "O(1)",
				Summary: "Debugging of scripts: only NO is accepted",
				Syntax:  "mode:YES|SYNC|NO",
			}, Run: scriptDebug, Local: true},
			{Facts: protocol.Facts{
				Name: "script|exists", Arity: -3, Flags: "noscript",
				Group: "scripting", Since: "2.6.0", Tips: "request_policy:all_shards response_policy:agg_logical_and",
				Complexity: "O(N), N scripts given",
				Summary:    "Whether the cache has each of the scripts",
				Syntax:     "sha1 [sha1 ...]",
			}, Run: scriptExists},
			{Facts: protocol.Facts{
				Name: "script|flush", Arity: -2, Flags: "noscript",
				Group: "scripting", Since: "2.6.0", Tips: "request_policy:all_nodes response_policy:all_succeeded",
				Complexity: "O(1); the memory is garbage collected",
				Summary:    "Empty the cache of scripts",
				Syntax:     "flush-type:[ASYNC|SYNC]@6.2.0",
				History:    []string{"6.2.0 `ASYNC`, `SYNC`"},
			}, Run: scriptFlush},
			engine.HelpRow(protocol.Facts{Name: "script|help", Group: "scripting", Since: "5.0.0"},
				"DEBUG (YES|SYNC|NO)",
				"    Only NO is accepted: there is no debugger.",
				"EXISTS <sha1> [<sha1> ...]",
				"    Which of the scripts are in the cache: 1 or 0 for each.",
				"FLUSH [ASYNC|SYNC]",
				"    Empty the cache. Both modes are the same.",
				"KILL",
				"    Stop the script that runs, if it has changed nothing.",
				"LOAD <script>",
				"    Put a script into the cache and reply its SHA-1.",
				"SHOW <sha1>",
				"    Reply the source of a script in the cache."),
			{Facts: protocol.Facts{
				Name: "script|kill", Arity: 2, Flags: "noscript allow_busy",
				Group: "scripting", Since: "2.6.0", Tips: "request_policy:all_shards response_policy:one_succeeded",
				Complexity: "O(1)",
				Summary:    "Stop the script that runs, if it has changed nothing",
			}, Run: scriptKill},
			{Facts: protocol.Facts{
				Name: "script|load", Arity: 3, Flags: "noscript stale",
				Group: "scripting", Since: "2.6.0", Tips: "request_policy:all_nodes response_policy:all_succeeded",
				Complexity: "O(N), N bytes of the script",
				Summary:    "Compile a script and put it into the cache",
				Syntax:     "script",
			}, Run: scriptLoad},
			{Facts: protocol.Facts{
				Name: "script|show", Arity: 3, Flags: "noscript stale",
				Group: "scripting", Since: "8.0.0", Complexity: "O(1)",
				Summary: "Source of a script in the cache",
				Syntax:  "sha1",
			}, Run: scriptShow},
		}},
	}
}

// evalFlags returns the flags that the source of EVAL declares.
func evalFlags(_ *engine.Engine, argv [][]byte) engine.ScriptFlags {
	flags, _, _ := readShebang(argv[1])
	return flags
}

// shaFlags returns the flags that the script of EVALSHA declares.
func shaFlags(srv *engine.Engine, argv [][]byte) engine.ScriptFlags {
	if s, ok := srv.Scripting.Cache.Peek(strings.ToLower(protocol.View(argv[1]))); ok {
		return s.Flags
	}
	return engine.ScriptCompat
}

const errEngine = "Unexpected engine in script shebang: "

// readShebang parses the first line of a script, if it begins with "#!". It returns
// the declared flags, the length of the line, and the error in it.
func readShebang(source []byte) (flags engine.ScriptFlags, length int, wrong string) {
	if !bytes.HasPrefix(source, []byte("#!")) {
		return engine.ScriptCompat, 0, ""
	}
	length = bytes.IndexByte(source, '\n')
	if nul := bytes.IndexByte(source, 0); length < 0 || nul >= 0 && nul < length {
		return engine.ScriptCompat, 0, "Invalid script shebang"
	}
	words, ok := protocol.SplitArgs(nil, source[:length])
	if !ok || len(words) == 0 {
		return engine.ScriptCompat, 0, "Invalid engine in script shebang"
	}
	if language := string(words[0]); language != "#!lua" {
		return engine.ScriptCompat, 0, errEngine + language
	}
	for _, word := range words[1:] {
		list, ok := strings.CutPrefix(string(word), "flags=")
		if !ok {
			return engine.ScriptCompat, 0, "Unknown lua shebang option: " + string(word)
		}
		if list == "" {
			continue
		}
		for name := range strings.SplitSeq(list, ",") {
			flag := scriptFlagNamed(name)
			if flag == 0 {
				return engine.ScriptCompat, 0, "Unexpected flag in script shebang: " + name
			}
			flags |= flag
		}
	}
	return flags, length, ""
}

// scriptFlagNamed returns the flag of a name, 0 if it does not exist.
func scriptFlagNamed(name string) engine.ScriptFlags {
	for i, n := range engine.ScriptFlagNames() {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// evalState returns the Lua machine of EVAL.
func evalState(srv *engine.Engine) *script.State {
	sc := &srv.Scripting
	if sc.State == nil {
		sc.State = script.New()
		seal(srv, sc.State, true)
	}
	return sc.State
}

// loadScript adds a script to the cache, if it is absent; for EVAL or SCRIPT LOAD. If the
// script cannot be compiled, it replies the error and returns nil.
func loadScript(c *engine.Call, source []byte, eval bool) *engine.EvalScript {
	state := evalState(c.Engine)
	sc := &c.Engine.Scripting
	name := sha1Of(source)
	if s, ok := sc.Cache.Get(name); ok {
		if !eval {
			sc.Cache.Keep(name)
		}
		return s
	}
	flags, skip, wrong := readShebang(source)
	if language, other := strings.CutPrefix(wrong, errEngine+"#!"); other {
		wrong = c.Engine.Config.Words(wrong, "Could not find scripting engine '"+language+"'")
	}
	if wrong != "" {
		c.Reply.Error("ERR " + wrong)
		return nil
	}
	text := string(source)
	run := &engine.ScriptRun{Name: name, Eval: true}
	fn, err := compileScript(c, state, run, text[skip:], "user_script")
	if ended, ok := errors.AsType[*script.Interrupted](err); ok {
		scriptFailed(c, run, &script.Error{Value: ended.Value.Value()})
		return nil
	}
	if err != nil {
		c.Reply.Error("ERR Error compiling script (new function): " + cText(err.Error()))
		return nil
	}
	s := &engine.EvalScript{Name: name, Source: text, Flags: flags, Function: fn}
	sc.Cache.Add(name, s, len(text), eval)
	return s
}

// numkeys parses a number of keys, and splits the arguments into keys and others.
func numkeys(c *engine.Call, notNumber string) (keys, args [][]byte) {
	n := c.IntOr(notNumber)
	switch {
	case c.Err() != "":
	case n > int64(c.Len()):
		c.Fail("ERR Number of keys can't be greater than number of args")
	case n < 0:
		c.Fail("ERR Number of keys can't be negative")
	default:
		return c.NextN(int(n)), c.Rest()
	}
	return nil, nil
}

func evalSource(c *engine.Call, readOnly bool) {
	if len(c.Engine.Clients.Monitors) > 0 {
		c.Engine.Clients.SendMonitors(c, c.Engine.Turn.At) // before the commands that the script runs
	}
	source := c.Bytes()
	keys, args := numkeys(c, protocol.ErrNotInteger)
	if !c.OK() {
		return
	}
	if s := loadScript(c, source, true); s != nil {
		runEval(c, s, readOnly, keys, args)
	}
}

func evalSHA(c *engine.Call, readOnly bool) {
	if len(c.Engine.Clients.Monitors) > 0 {
		c.Engine.Clients.SendMonitors(c, c.Engine.Turn.At)
	}
	name := c.Bytes()
	if len(name) != 40 {
		c.Reply.Error(c.Engine.Config.Words(engine.ErrNoScript, "NOSCRIPT No matching script."))
		return
	}
	keys, args := numkeys(c, protocol.ErrNotInteger)
	if !c.OK() {
		return
	}
	s, ok := c.Engine.Scripting.Cache.Get(strings.ToLower(protocol.View(name)))
	if !ok {
		c.Reply.Error(c.Engine.Config.Words(engine.ErrNoScript, "NOSCRIPT No matching script."))
		return
	}
	runEval(c, s, readOnly, keys, args)
}

func runEval(c *engine.Call, s *engine.EvalScript, readOnly bool, keys, args [][]byte) {
	runScript(c, c.Engine.Scripting.State, s.Function, s.Name, true, readOnly, s.Flags, keys, args)
}

func eval(c *engine.Call) { evalSource(c, false) }

func evalRo(c *engine.Call) { evalSource(c, true) }

func evalsha(c *engine.Call) { evalSHA(c, false) }

func evalshaRo(c *engine.Call) { evalSHA(c, true) }

func scriptDebug(c *engine.Call) {
	switch mode := c.Bytes(); {
	case protocol.EqualFold(mode, "NO"):
		c.Reply.OK()
	case protocol.EqualFold(mode, "YES"), protocol.EqualFold(mode, "SYNC"):
		c.Reply.Error("ERR there is no debugger for Lua scripts")
	default:
		c.Reply.Error("ERR Use SCRIPT DEBUG YES/SYNC/NO")
	}
}

func scriptExists(c *engine.Call) {
	c.Reply.Array(c.Len())
	for c.More() {
		if _, ok := c.Engine.Scripting.Cache.Peek(strings.ToLower(protocol.View(c.Bytes()))); ok {
			c.Reply.Int(1)
		} else {
			c.Reply.Int(0)
		}
	}
}

func scriptFlush(c *engine.Call) {
	if c.More() && !c.Is("ASYNC") && !c.Is("SYNC") || c.More() {
		c.Reply.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
		return
	}
	sc := &c.Engine.Scripting
	sc.State = nil
	sc.Cache.Clear()
	c.Reply.OK()
}

func scriptKill(c *engine.Call) { killScript(c, true) }

func scriptShow(c *engine.Call) {
	s, ok := c.Engine.Scripting.Cache.Peek(strings.ToLower(protocol.View(c.Bytes())))
	if !ok {
		c.Reply.Error("NOSCRIPT No matching script.")
		return
	}
	c.Reply.BulkString(s.Source)
}

func scriptLoad(c *engine.Call) {
	if s := loadScript(c, c.Bytes(), false); s != nil {
		c.Reply.BulkString(s.Name)
	}
}
