package scripting

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"log/slog"
	"math"
	"runtime/debug"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/process"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
	"github.com/zsetd/zsetd/server/internal/lua/script"
)

// api is the table redis of scripts, or the table server, which has the words of Valkey in
// its errors. In the dialect of Valkey both have them.
type api struct {
	srv    *engine.Engine
	state  *script.State
	valkey bool

	argv    [16][]byte // the arguments of the command that runs, if they are that few
	numbers []byte     // the texts of numbers; never overwritten, as effects borrow keys
}

// numbersSize is the size of an allocation for the texts of numbers: each takes up to 24
// bytes.
const numbersSize = 512

// name returns the name of the table, which is in the errors of its functions.
func (a *api) name() string {
	if a.ofValkey() {
		return "server"
	}
	return "redis"
}

// ofValkey reports whether errors have the words of Valkey.
func (a *api) ofValkey() bool { return a.valkey || a.srv.Config.Valkey() }

// seal makes both tables visible to scripts. Scripts have some more entries than functions.
func seal(srv *engine.Engine, state *script.State, eval bool) {
	redis, server := &api{srv: srv, state: state}, &api{srv: srv, state: state, valkey: true}
	state.Seal(redis.library(eval), server.library(eval), eval)
}

// library returns the table.
func (a *api) library(eval bool) *lua.LTable {
	functions := map[string]lua.LGFunction{
		"call": func(L *lua.LState) int { return a.call(L, true) }, "pcall": func(L *lua.LState) int { return a.call(L, false) },
		"sha1hex": a.sha1hex, "error_reply": a.errorReply, "status_reply": a.statusReply, "setresp": a.setresp,
		"set_repl": a.setRepl, "acl_check_cmd": a.aclCheckCmd, "log": a.log,
	}
	if eval {
		functions["breakpoint"] = a.returnFalse
		functions["debug"] = func(*lua.LState) int { return 0 }
		functions["replicate_commands"] = func(L *lua.LState) int {
			L.Push(lua.LTrue)
			return 1
		}
	}
	t := a.state.Library(functions)
	a.constants(t)
	for name, n := range map[string]int{"REPL_NONE": 0, "REPL_AOF": 1, "REPL_SLAVE": 2, "REPL_REPLICA": 2, "REPL_ALL": 3} {
		t.RawSetString(name, lua.LNumber(n))
	}
	return t
}

// constants adds the constants of redis, which exist also while a library is
// loaded.
func (a *api) constants(t *lua.LTable) {
	for i, name := range []string{"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"} {
		t.RawSetString(name, lua.LNumber(i))
	}
	t.RawSetString("REDIS_VERSION", lua.LString(process.RedisVersion))
	n := 0
	for part := range strings.SplitSeq(process.RedisVersion, ".") {
		d, err := strconv.Atoi(part)
		if err != nil {
			panic("BUG: invalid version")
		}
		n = n<<8 | d
	}
	t.RawSetString("REDIS_VERSION_NUM", lua.LNumber(n))
}

// returnFalse is a function that returns false: there is no debugger.
func (a *api) returnFalse(L *lua.LState) int {
	L.Push(lua.LFalse)
	return 1
}

// fail raises an error, which scripts see as a table.
func (a *api) fail(L *lua.LState, msg string) {
	a.state.Throw(L, engine.ErrorTable(a.state, "ERR "+msg, false))
}

// run returns the running script; without one it raises an error about the function
// name.
func (a *api) run(L *lua.LState, name string) *engine.ScriptRun {
	r := a.srv.Scripting.Running
	if r == nil {
		a.fail(L, name+" can only be called inside a script invocation")
	}
	return r
}

// arguments returns the arguments as a command, valid until the next call of it. The
// caller clears a.argv after use, which would retain strings of the script.
func (a *api) arguments(L *lua.LState) (argv [][]byte, wrong string) {
	n := L.GetTop()
	switch {
	case n > 0:
	case a.ofValkey():
		return nil, "Please specify at least one argument for this call"
	default:
		return nil, "Please specify at least one argument for this redis lib call"
	}
	if n <= len(a.argv) {
		argv = a.argv[:n]
	} else {
		argv = make([][]byte, n)
	}
	for i := range argv {
		switch v := L.Get(i + 1).(type) {
		case lua.LString:
			argv[i] = protocol.BytesOf(string(v))
		case lua.LNumber:
			argv[i] = a.number(float64(v))
		default:
			if a.ofValkey() {
				return nil, "Command arguments must be strings or integers"
			}
			return nil, "Lua redis lib command arguments must be strings or integers"
		}
	}
	return argv, ""
}

// number returns the text of a number: that of a score, but for the sign of zero, which is
// left out, and that of NaN, which C on amd64 sets for 0/0.
func (a *api) number(x float64) []byte {
	if cap(a.numbers)-len(a.numbers) < 32 {
		a.numbers = make([]byte, 0, numbersSize)
	}
	at := len(a.numbers)
	switch {
	case x == 0:
		x = 0
	case x != x && math.Signbit(x):
		a.numbers = append(a.numbers, '-')
	}
	a.numbers = protocol.AppendFloat(a.numbers, x)
	return a.numbers[at:len(a.numbers):len(a.numbers)]
}

func (a *api) call(L *lua.LState, raise bool) int {
	r := a.srv.Scripting.Running
	if r == nil {
		a.fail(L, a.name()+".call/pcall can only be called inside a script invocation")
	}
	a.state.Spend(L, 10)
	argv, wrong := a.arguments(L)
	var result lua.LValue
	bad := true
	if wrong != "" {
		result = engine.ErrorTable(a.state, "ERR "+wrong, false)
	} else if reply, failed := a.callSafely(r, argv); failed != "" {
		result = engine.ErrorTable(a.state, a.refusal(failed), true)
	} else {
		bad = reply[0] == '-'
		result, _ = luaValue(a.state, L, reply)
	}
	clear(a.argv[:])
	if bad && raise {
		a.state.Throw(L, result)
	}
	L.Push(result)
	return 1
}

// refusal returns the error of a command that is refused, in the words of the table.
func (a *api) refusal(failed string) string {
	switch {
	case !a.ofValkey():
	case failed == engine.ErrScriptUnknown:
		return "ERR Unknown command called from script"
	case failed == engine.ErrScriptArity:
		return "ERR Wrong number of args calling command from script"
	case failed == engine.ErrScriptForbidden:
		return "ERR This Valkey command is not allowed from script"
	}
	return failed
}

// callSafely prevents scripts from catching the panic of a command.
func (a *api) callSafely(r *engine.ScriptRun, argv [][]byte) (reply []byte, failed string) {
	defer func() {
		if p := recover(); p != nil {
			bug := &engine.ScriptPanic{Value: p, Stack: debug.Stack(), Command: r.Engine.Scripting.Session.Call.ForLog()}
			a.state.Bug(bug)
			panic(bug)
		}
	}()
	return r.Call(argv)
}

func (a *api) sha1hex(L *lua.LState) int {
	if L.GetTop() != 1 {
		a.fail(L, "wrong number of arguments")
	}
	s, _ := conv.ToString(L.Get(1))
	sum := sha1.New()
	for b := protocol.BytesOf(s); len(b) > 0; {
		n := min(len(b), 1<<20)
		sum.Write(b[:n])
		b = b[n:]
		a.state.Spend(L, n>>6)
	}
	L.Push(lua.LString(hex.EncodeToString(sum.Sum(nil))))
	return 1
}

func sha1Of(b []byte) string {
	sum := sha1.Sum(b)
	return hex.EncodeToString(sum[:])
}

func (a *api) errorReply(L *lua.LState) int {
	s, ok := L.Get(1).(lua.LString)
	if L.GetTop() != 1 || !ok {
		L.Push(engine.ErrorTable(a.state, "ERR wrong number or type of arguments", false))
		return 1
	}
	L.Push(engine.ErrorTable(a.state, errorLine(cText(strings.TrimPrefix(string(s), "-"))), false))
	return 1
}

func (a *api) statusReply(L *lua.LState) int {
	s, ok := L.Get(1).(lua.LString)
	if L.GetTop() != 1 || !ok {
		L.Push(engine.ErrorTable(a.state, "ERR wrong number or type of arguments", false))
		return 1
	}
	t := a.state.L.CreateTable(0, 1)
	t.RawSetString("ok", s)
	L.Push(t)
	return 1
}

func (a *api) setresp(L *lua.LState) int {
	a.run(L, a.name()+".setresp")
	if L.GetTop() != 1 {
		a.fail(L, a.name()+".setresp() requires one argument.")
	}
	f, _ := conv.ToNumber(L.Get(1))
	switch int32(truncate(f)) {
	case 2:
		a.srv.Scripting.Session.Out.SetVersion(2)
	case 3:
		a.srv.Scripting.Session.Out.SetVersion(3)
	default:
		a.fail(L, "RESP version must be 2 or 3.")
	}
	return 0
}

// setRepl validates its argument and has no effect: replication of single commands
// follows from effects here.
func (a *api) setRepl(L *lua.LState) int {
	a.run(L, a.name()+".set_repl")
	if L.GetTop() != 1 {
		a.fail(L, a.name()+".set_repl() requires one argument.")
	}
	f, _ := conv.ToNumber(L.Get(1))
	if int32(truncate(f))&^3 != 0 {
		a.fail(L, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	return 0
}

// aclCheckCmd returns whether the user may run a command.
func (a *api) aclCheckCmd(L *lua.LState) int {
	r := a.run(L, a.name()+".acl_check_cmd")
	defer clear(a.argv[:])
	argv, wrong := a.arguments(L)
	if wrong != "" {
		a.fail(L, wrong)
	}
	cmd, names := a.srv.Table.Find(argv)
	if cmd == nil || cmd.ByArg != nil && names == 1 && len(argv) > 1 {
		a.fail(L, "Invalid command passed to "+a.name()+".acl_check_cmd()")
	}
	if cmd.Run == nil || !cmd.Spec.ArityOK(len(argv)) {
		a.fail(L, "Wrong number of args for "+a.name()+".acl_check_cmd()")
	}
	L.Push(lua.LBool(r.MayRun(cmd, argv)))
	return 1
}

func (a *api) log(L *lua.LState) int {
	n := L.GetTop()
	if n < 2 {
		a.fail(L, a.name()+".log() requires two arguments or more.")
	}
	f, ok := conv.ToNumber(L.Get(1))
	if !ok {
		a.fail(L, "First argument must be a number (log level).")
	}
	level := int32(truncate(f))
	if level < 0 || level > 3 {
		a.fail(L, "Invalid log level.")
	}
	var line strings.Builder
	for i := 2; i <= n; i++ {
		s, ok := conv.ToString(L.Get(i))
		if !ok {
			continue
		}
		if i > 2 {
			line.WriteByte(' ')
		}
		line.WriteString(s)
	}
	levels := [...]slog.Level{slog.LevelDebug, engine.Verbose, slog.LevelInfo, slog.LevelWarn}
	a.srv.Log.Log(context.Background(), levels[level], line.String())
	return 0
}
