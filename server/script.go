package server

import (
	"bytes"
	"errors"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/script"
)

func scriptCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "eval", Arity: -3, Flags: "noscript stale skip_monitor no_mandatory_keys may_replicate",
			Keys:  "2# RW access update (We cannot tell how the keys will be used so we assume the worst, RW and UPDATE)",
			Group: "scripting", Since: "2.6.0", Complexity: "Depends on the script that is executed.",
			Summary: "Execute a Lua script server side",
			Syntax:  "script numkeys [key [key ...]] [arg [arg ...]]",
		}, run: eval, scriptFlags: evalFlags},
		{Facts: protocol.Facts{
			Name: "eval_ro", Arity: -3, Flags: "readonly noscript stale skip_monitor no_mandatory_keys",
			Keys:  "2# RO access (We cannot tell how the keys will be used so we assume the worst, RO and ACCESS)",
			Group: "scripting", Since: "7.0.0", Complexity: "Depends on the script that is executed.",
			Summary: "Execute a read-only Lua script server side",
			Syntax:  "script numkeys [key [key ...]] [arg [arg ...]]",
		}, run: evalRo, scriptFlags: evalFlags},
		{Facts: protocol.Facts{
			Name: "evalsha", Arity: -3, Flags: "noscript stale skip_monitor no_mandatory_keys may_replicate",
			Keys:  "2# RW access update",
			Group: "scripting", Since: "2.6.0", Complexity: "Depends on the script that is executed.",
			Summary: "Execute a Lua script server side",
			Syntax:  "sha1 numkeys [key [key ...]] [arg [arg ...]]",
		}, run: evalsha, scriptFlags: shaFlags},
		{Facts: protocol.Facts{
			Name: "evalsha_ro", Arity: -3, Flags: "readonly noscript stale skip_monitor no_mandatory_keys",
			Keys:  "2# RO access",
			Group: "scripting", Since: "7.0.0", Complexity: "Depends on the script that is executed.",
			Summary: "Execute a read-only Lua script server side",
			Syntax:  "sha1 numkeys [key [key ...]] [arg [arg ...]]",
		}, run: evalshaRo, scriptFlags: shaFlags},
		{Facts: protocol.Facts{
			Name: "script", Arity: -2,
			Group: "scripting", Since: "2.6.0", Complexity: "Depends on subcommand.",
			Summary: "A container for Lua scripts management commands",
		}, subcommands: []Command{
			{Facts: protocol.Facts{
				Name: "script|debug", Arity: 3, Flags: "noscript",
				Group: "scripting", Since: "3.2.0", Complexity: "O(1)",
				Summary: "Set the debug mode for executed scripts.",
				Syntax:  "mode:YES|SYNC|NO",
			}, run: scriptDebug},
			{Facts: protocol.Facts{
				Name: "script|exists", Arity: -3, Flags: "noscript",
				Group: "scripting", Since: "2.6.0", Tips: "request_policy:all_shards response_policy:agg_logical_and",
				Complexity: "O(N) with N being the number of scripts to check (so checking a single script is an O(1) operation).",
				Summary:    "Check existence of scripts in the script cache.",
				Syntax:     "sha1 [sha1 ...]",
			}, run: scriptExists},
			{Facts: protocol.Facts{
				Name: "script|flush", Arity: -2, Flags: "noscript",
				Group: "scripting", Since: "2.6.0", Tips: "request_policy:all_nodes response_policy:all_succeeded",
				Complexity: "O(N) with N being the number of scripts in cache",
				Summary:    "Remove all the scripts from the script cache.",
				Syntax:     "async:[ASYNC|SYNC]@6.2.0",
				History:    []string{"6.2.0 Added the `ASYNC` and `SYNC` flushing mode modifiers."},
			}, run: scriptFlush},
			{Facts: protocol.Facts{
				Name: "script|help", Arity: 2, Flags: "loading stale",
				Group: "scripting", Since: "5.0.0", Complexity: "O(1)",
				Summary: "Show helpful text about the different subcommands",
			}, run: scriptHelp},
			{Facts: protocol.Facts{
				Name: "script|kill", Arity: 2, Flags: "noscript allow_busy",
				Group: "scripting", Since: "2.6.0", Tips: "request_policy:all_shards response_policy:one_succeeded",
				Complexity: "O(1)",
				Summary:    "Kill the script currently in execution.",
			}, run: scriptKill},
			{Facts: protocol.Facts{
				Name: "script|load", Arity: 3, Flags: "noscript stale",
				Group: "scripting", Since: "2.6.0", Tips: "request_policy:all_nodes response_policy:all_succeeded",
				Complexity: "O(N) with N being the length in bytes of the script body.",
				Summary:    "Load the specified Lua script into the script cache.",
				Syntax:     "script",
			}, run: scriptLoad},
		}},
	}
}

// evalFlags returns the flags that the source of EVAL declares.
func evalFlags(_ *Server, argv [][]byte) scriptFlags {
	flags, _, _ := readShebang(argv[1])
	return flags
}

// shaFlags returns the flags that the script of EVALSHA declares.
func shaFlags(srv *Server, argv [][]byte) scriptFlags {
	if s := srv.scripting.cache[strings.ToLower(protocol.View(argv[1]))]; s != nil {
		return s.flags
	}
	return scriptCompat
}

// readShebang parses the first line of a script, if it begins with "#!". It returns
// the declared flags, the length of the line, and the error in it.
func readShebang(source []byte) (flags scriptFlags, length int, wrong string) {
	if !bytes.HasPrefix(source, []byte("#!")) {
		return scriptCompat, 0, ""
	}
	length = bytes.IndexByte(source, '\n')
	if nul := bytes.IndexByte(source, 0); length < 0 || nul >= 0 && nul < length {
		return scriptCompat, 0, "Invalid script shebang"
	}
	words, ok := protocol.SplitArgs(nil, source[:length])
	if !ok || len(words) == 0 {
		return scriptCompat, 0, "Invalid engine in script shebang"
	}
	if string(words[0]) != "#!lua" {
		return scriptCompat, 0, "Unexpected engine in script shebang: " + string(words[0])
	}
	for _, word := range words[1:] {
		list, ok := strings.CutPrefix(string(word), "flags=")
		if !ok {
			return scriptCompat, 0, "Unknown lua shebang option: " + string(word)
		}
		if list == "" {
			continue
		}
		for name := range strings.SplitSeq(list, ",") {
			flag := scriptFlagNamed(name)
			if flag == 0 {
				return scriptCompat, 0, "Unexpected flag in script shebang: " + name
			}
			flags |= flag
		}
	}
	return flags, length, ""
}

// scriptFlagNamed returns the flag of a name, 0 if it does not exist.
func scriptFlagNamed(name string) scriptFlags {
	for i, n := range scriptFlagNames() {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// evalState returns the Lua machine of EVAL.
func (srv *Server) evalState() *script.State {
	sc := &srv.scripting
	if sc.state == nil {
		sc.state = script.New()
		sc.state.Beat = sc.tick
		a := &api{srv, sc.state}
		sc.state.Seal(a.library(true))
		sc.cache = map[string]*evalScript{}
	}
	return sc.state
}

// loadScript adds a script to the cache, if it is absent. If the script cannot be
// compiled, it replies the error and returns nil.
func (c *Call) loadScript(source []byte) *evalScript {
	state := c.srv.evalState()
	sc := &c.srv.scripting
	name := sha1Of(source)
	if s := sc.cache[name]; s != nil {
		return s
	}
	flags, skip, wrong := readShebang(source)
	if wrong != "" {
		c.Reply.Error("ERR " + wrong)
		return nil
	}
	text := string(source)
	run := &scriptRun{name: name, eval: true}
	fn, err := c.compileScript(state, run, text[skip:], "user_script")
	if ended, ok := errors.AsType[*script.Interrupted](err); ok {
		c.scriptFailed(run, &script.Error{Value: ended.Value})
		return nil
	}
	if err != nil {
		c.Reply.Error("ERR Error compiling script (new function): " + cText(err.Error()))
		return nil
	}
	s := &evalScript{name: name, source: text, flags: flags, fn: fn}
	sc.cache[name] = s
	sc.bytes += len(text)
	return s
}

// numkeys parses a number of keys, and splits the arguments into keys and others.
func (c *Call) numkeys(notNumber string) (keys, args [][]byte) {
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

func (c *Call) eval(readOnly bool) {
	if len(c.srv.monitors) > 0 {
		c.srv.sendMonitors(c, c.srv.at) // before the commands that the script runs
	}
	source := c.Bytes()
	keys, args := c.numkeys(protocol.ErrNotInteger)
	if !c.ok() {
		return
	}
	if s := c.loadScript(source); s != nil {
		c.runEval(s, readOnly, keys, args)
	}
}

func (c *Call) evalSHA(readOnly bool) {
	if len(c.srv.monitors) > 0 {
		c.srv.sendMonitors(c, c.srv.at)
	}
	name := c.Bytes()
	if len(name) != 40 {
		c.Reply.Error(errNoScript)
		return
	}
	keys, args := c.numkeys(protocol.ErrNotInteger)
	if !c.ok() {
		return
	}
	s := c.srv.scripting.cache[strings.ToLower(protocol.View(name))]
	if s == nil {
		c.Reply.Error(errNoScript)
		return
	}
	c.runEval(s, readOnly, keys, args)
}

func (c *Call) runEval(s *evalScript, readOnly bool, keys, args [][]byte) {
	c.runScript(c.srv.scripting.state, s.fn, &scriptRun{name: s.name, eval: true, readOnly: readOnly, flags: s.flags}, keys, args)
}

func eval(c *Call) { c.eval(false) }

func evalRo(c *Call) { c.eval(true) }

func evalsha(c *Call) { c.evalSHA(false) }

func evalshaRo(c *Call) { c.evalSHA(true) }

func scriptDebug(c *Call) {
	switch mode := c.Bytes(); {
	case protocol.EqualFold(mode, "NO"):
		c.Reply.OK()
	case protocol.EqualFold(mode, "YES"), protocol.EqualFold(mode, "SYNC"):
		c.Reply.Error("ERR there is no debugger for Lua scripts")
	default:
		c.Reply.Error("ERR Use SCRIPT DEBUG YES/SYNC/NO")
	}
}

func scriptExists(c *Call) {
	c.Reply.Array(c.Len())
	for c.More() {
		s := c.srv.scripting.cache[strings.ToLower(protocol.View(c.Bytes()))]
		if s != nil {
			c.Reply.Int(1)
		} else {
			c.Reply.Int(0)
		}
	}
}

func scriptFlush(c *Call) {
	if c.More() && !c.Is("ASYNC") && !c.Is("SYNC") || c.More() {
		c.Reply.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
		return
	}
	sc := &c.srv.scripting
	sc.state, sc.cache, sc.bytes = nil, nil, 0
	c.Reply.OK()
}

func scriptHelp(c *Call) {
	c.help("DEBUG (YES|SYNC|NO)",
		"    Set the debug mode for subsequent scripts executed.",
		"EXISTS <sha1> [<sha1> ...]",
		"    Return information about the existence of the scripts in the script cache.",
		"FLUSH [ASYNC|SYNC]",
		"    Flush the Lua scripts cache. Very dangerous on replicas.",
		"    When called without the optional mode argument, the behavior is determined by the",
		"    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
		"    * ASYNC: Asynchronously flush the scripts cache.",
		"    * SYNC: Synchronously flush the scripts cache.",
		"KILL",
		"    Kill the currently executing Lua script.",
		"LOAD <script>",
		"    Load a script into the scripts cache without executing it.")
}

func scriptKill(c *Call) { c.killScript(true) }

func scriptLoad(c *Call) {
	if s := c.loadScript(c.Bytes()); s != nil {
		c.Reply.BulkString(s.name)
	}
}
