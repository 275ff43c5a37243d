package scripting

import (
	"fmt"
	"strings"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/script"
)

// luaReply writes the result of a script as a reply.
type luaReply struct {
	c     *engine.Call
	run   *engine.ScriptRun
	resp3 bool // the script has chosen RESP3, in which booleans are booleans
	work  int  // values since the last call of interrupt
	bytes int  // bytes of strings since then
	start int  // start of the reply in the client's output queue
	ended *lua.Table
}

// runScript runs a function for a command, and replies its result. name is that of the function, or
// the SHA-1 of a script; keys and args are globals of a script, and arguments of a function.
func runScript(c *engine.Call, state *script.State, fn *lua.Function, name string, eval, readOnly bool, flags engine.ScriptFlags, keys, args [][]byte) {
	srv := c.Engine
	sc := &srv.Scripting
	if sc.Running != nil { // only with DEBUG SET-DISABLE-DENY-SCRIPTS
		c.Reply.Error(engine.ErrScriptForbidden)
		return
	}
	r := sc.NewRun(name, eval, readOnly, flags)
	if srv.Cluster != nil {
		if r.Flags.Has(engine.ScriptNoCluster) {
			c.Reply.Error("ERR Can not run script on cluster, 'no-cluster' flag is set.")
			return
		}
		r.Slot, _ = c.Session.Misplaced(c.Command, c.Argv)
	}
	if !r.Flags.Has(engine.ScriptCompat) && !r.Flags.Has(engine.ScriptNoWrites) {
		switch {
		case srv.Keeper.Refuses():
			c.Reply.Error(engine.ErrScriptsMisconf)
			return
		case r.ReadOnly:
			c.Reply.Error("ERR Can not execute a script with write flag using *_ro command.")
			return
		case srv.ReadOnly() && !c.Session.Modes.Primary:
			c.Reply.Error("READONLY You can not run script with write flag on readonly replica.")
			return
		case srv.LacksReplicas():
			c.Reply.Error(engine.ErrNoReplicas)
			return
		}
	}
	r.ReadOnly = r.ReadOnly || r.Flags.Has(engine.ScriptNoWrites)
	attach(r, c, state)
	s := scriptSession(srv)
	r.Session = s
	s.DB, s.Login.User, s.Login.Authenticated, s.Transaction.Multi = c.DB, c.Session.Login.User, true, false
	s.Out.SetVersion(2)
	s.Out.Truncate(0)
	s.Out.SetLimit(int(srv.Scripting.MemoryLimit/8) + 1<<10) // a string of the greatest length, and its header
	sc.Begin(r)
	defer srv.EndScript(r)
	state.Running, state.Interrupt = true, r.Ask
	var result lua.Value
	var failed *script.Error
	if r.Eval {
		state.SetArguments(keys, args)
		result, failed = state.Call(fn)
	} else {
		result, failed = state.Call(fn, state.Strings(keys).Value(), state.Strings(args).Value())
	}
	if failed != nil {
		scriptFailed(c, r, failed)
		return
	}
	w := luaReply{c: c, run: r, resp3: s.Out.Version() == 3, start: c.Reply.Len()}
	if w.value(result, 2); w.ended != nil && !c.Reply.Over() {
		c.Reply.Truncate(w.start)
		scriptFailed(c, r, &script.Error{Value: w.ended.Value()})
	}
}

// attach records the command that runs a script.
func attach(r *engine.ScriptRun, c *engine.Call, state *script.State) {
	r.Engine, r.State, r.Caller, r.Row, r.Command, r.Watch = c.Engine, state, c.Session, c.Command, c.Argv, engine.StartWatch()
}

// compileScript compiles a source for a command. It can be interrupted like the
// script itself, because compiling 100 MB takes seconds.
func compileScript(c *engine.Call, state *script.State, r *engine.ScriptRun, source, chunk string) (*lua.Function, error) {
	sc := &c.Engine.Scripting
	if sc.Running != nil { // see runScript
		return state.Compile(source, chunk)
	}
	attach(r, c, state)
	sc.Begin(r)
	defer c.Engine.EndScript(r)
	state.Interrupt = r.Interrupt
	return state.Compile(source, chunk)
}

// scriptSession returns the session that runs the commands of scripts.
func scriptSession(srv *engine.Engine) *engine.Session {
	sc := &srv.Scripting
	if sc.Session == nil {
		s := &engine.Session{Engine: srv, Peer: engine.Peer{Addr: "?:0", LocalAddr: "?:0", FD: -1, Wake: func() {}}}
		s.Modes.NoBlock, s.Modes.Script = true, true
		s.Call = engine.Call{Session: s, Engine: srv, Reply: &s.Out, Nested: true, OfScript: true}
		sc.Session = s
	}
	return sc.Session
}

// scriptFailed replies the error that a script has raised.
func scriptFailed(c *engine.Call, r *engine.ScriptRun, failed *script.Error) {
	var msg string
	if t := failed.Value.Table(); t != nil {
		msg, c.Counted = errorOf(t)
	} else {
		msg = "ERR " + lua.Display(failed.Value)
	}
	c.Invented = true
	msg, _, _ = strings.Cut(msg, "\x00")
	if failed.Known {
		msg += fmt.Sprintf(" script: %son %s:%d.", r.Engine.Config.Words(r.Name+", ", ""), failed.Source, failed.Line)
	}
	c.Reply.Error(cText(msg))
}

// errorOf returns the message of an error table, and whether the error was counted
// with the command that has raised it.
func errorOf(t *lua.Table) (msg string, counted bool) {
	msg, ok := lua.ToText(t.GetText("err"))
	if !ok {
		msg = "ERR unknown error"
	}
	return msg, t.GetText("ignore_error_stats_update") == lua.True
}

// cText returns s as C would print it on a line.
func cText(s string) string {
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	return strings.Trim(s, "\r\n")
}

// killScript ends the running script, for SCRIPT KILL or FUNCTION KILL.
func killScript(c *engine.Call, eval bool) {
	r := c.Engine.Scripting.Running
	switch {
	case r == nil:
		c.Reply.Error(engine.ErrNotBusy)
	case r.Wrote:
		c.Reply.Error(engine.ErrUnkillable)
	case eval && !r.Eval:
		c.Reply.Error(engine.ErrBusyFcall)
	case !eval && r.Eval:
		c.Reply.Error(engine.ErrBusyEval)
	default:
		r.Killed = true
		c.Reply.OK()
	}
}
