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

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/process"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/lua"
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

	calls [2]*lua.Function            // pcall and call
	bound map[boundCall]*lua.Function // see bind
}

// boundCall is pcall or call with the name of a command, as a script writes it.
type boundCall struct {
	f    *lua.Function
	name string
}

// maxBound is the number of functions that bind keeps: a name can be written in many ways.
const maxBound = 1000

// bind returns the function for calls of call or pcall with the name of a command in the source:
// it has looked up the command, whose name does not change once clients are served. It returns nil for
// other functions, names of no command, and commands that have subcommands.
func (a *api) bind(f *lua.Function, name string) *lua.Function {
	key := boundCall{f, name}
	if b := a.bound[key]; b != nil {
		return b
	}
	raise := f == a.calls[1]
	if !raise && f != a.calls[0] {
		return nil
	}
	cmd := a.srv.Table.Index.Find(protocol.BytesOf(name))
	if cmd == nil || cmd.ByArg != nil {
		return nil
	}
	key.name = strings.Clone(name) // else it would keep the source
	b := a.caller(raise, cmd, protocol.BytesOf(key.name))
	if a.bound == nil || len(a.bound) >= maxBound {
		a.bound = map[boundCall]*lua.Function{}
	}
	a.bound[key] = b
	return b
}

// caller returns call, or pcall unless it raises errors. With a command and its name, it takes the
// arguments after the name.
func (a *api) caller(raise bool, cmd *engine.Command, name []byte) *lua.Function {
	return lua.NewFunction(func(vm *lua.Machine, args lua.Args) (int, *lua.Error) { return a.call(vm, args, raise, cmd, name) })
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

// seal makes both tables visible to scripts.
func seal(srv *engine.Engine, state *script.State, eval bool) {
	redis, server := &api{srv: srv, state: state}, &api{srv: srv, state: state, valkey: true}
	state.Panicked = func(value any) any { return commandPanic(srv, value) }
	libraries := [2]*lua.Table{redis.library(eval), server.library(eval)}
	state.Bound = func(f *lua.Function, name string) *lua.Function {
		if b := redis.bind(f, name); b != nil {
			return b
		}
		return server.bind(f, name)
	}
	state.Seal(libraries[0], libraries[1], eval)
}

// commandPanic returns what a panic within a command is to become; nil if no command runs.
func commandPanic(srv *engine.Engine, value any) any {
	if r := srv.Scripting.Running; r == nil || !r.Calling {
		return nil
	}
	return &engine.ScriptPanic{Value: value, Stack: debug.Stack(), Command: srv.Scripting.Session.Call.ForLog()}
}

// library returns the table. Its entries are in the order in which Redis adds them, on which that of
// pairs depends; scripts have some more than functions.
func (a *api) library(eval bool) *lua.Table {
	a.calls = [2]*lua.Function{a.caller(false, nil, nil), a.caller(true, nil, nil)}
	entries := []script.Entry{
		{Name: "call", Value: a.calls[1].Value()}, {Name: "pcall", Value: a.calls[0].Value()}, script.Function("log", a.log),
	}
	entries = append(entries, constants()...)
	entries = append(entries,
		script.Function("setresp", a.setresp), script.Function("sha1hex", a.sha1hex), script.Function("error_reply", a.errorReply),
		script.Function("status_reply", a.statusReply), script.Function("set_repl", a.setRepl),
	)
	for i, name := range []string{"REPL_NONE", "REPL_AOF", "REPL_SLAVE", "REPL_REPLICA", "REPL_ALL"} {
		entries = append(entries, script.Entry{Name: name, Value: lua.Number([]float64{0, 1, 2, 2, 3}[i])})
	}
	entries = append(entries, script.Function("acl_check_cmd", a.aclCheckCmd))
	if eval {
		entries = append(entries,
			script.Function("breakpoint", func(_ *lua.Machine, args lua.Args) (int, *lua.Error) { return args.Return(lua.False) }), // there is no debugger
			script.Function("debug", func(*lua.Machine, lua.Args) (int, *lua.Error) { return 0, nil }),
			script.Function("replicate_commands", func(_ *lua.Machine, args lua.Args) (int, *lua.Error) { return args.Return(lua.True) }),
		)
	}
	return script.Library(entries...)
}

// constants returns the constants of redis, which exist also while a library is loaded.
func constants() (list []script.Entry) {
	for i, name := range []string{"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"} {
		list = append(list, script.Entry{Name: name, Value: lua.Number(float64(i))})
	}
	n := 0
	for part := range strings.SplitSeq(process.RedisVersion, ".") {
		d, err := strconv.Atoi(part)
		if err != nil {
			panic("BUG: invalid version")
		}
		n = n<<8 | d
	}
	return append(list, script.Entry{Name: "REDIS_VERSION_NUM", Value: lua.Number(float64(n))},
		script.Entry{Name: "REDIS_VERSION", Value: lua.Text(process.RedisVersion)})
}

// fail returns an error, which scripts see as a table.
func (a *api) fail(msg string) (int, *lua.Error) {
	return 0, a.state.Machine().Throw(engine.ErrorTable(a.state, "ERR "+msg, false).Value())
}

// outside returns the error of a function that is called while no script runs.
func (a *api) outside(name string) (int, *lua.Error) {
	return a.fail(name + " can only be called inside a script invocation")
}

// arguments returns the arguments, after a name unless that is nil, as a command, valid until the next
// call of it. The caller clears a.argv after use, which would retain strings of the script.
func (a *api) arguments(name []byte, args lua.Args) (argv [][]byte, wrong string) {
	n, rest := args.Len(), 0
	if name != nil {
		n, rest = n+1, 1
	}
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
	if name != nil {
		argv[0] = name
	}
	for i := rest; i < n; i++ {
		v := args.At(i - rest + 1)
		if s, ok := v.Str(); ok {
			argv[i] = protocol.BytesOf(s)
		} else if f, ok := v.Number(); ok {
			argv[i] = a.number(f)
		} else if a.ofValkey() {
			return nil, "Command arguments must be strings or integers"
		} else {
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
	if n := int32(x); float64(n) == x {
		a.numbers = protocol.AppendInt(a.numbers, int64(n))
	} else {
		if x != x && math.Signbit(x) {
			a.numbers = append(a.numbers, '-')
		}
		a.numbers = protocol.AppendFloat(a.numbers, x)
	}
	return a.numbers[at:len(a.numbers):len(a.numbers)]
}

func (a *api) call(vm *lua.Machine, args lua.Args, raise bool, cmd *engine.Command, name []byte) (int, *lua.Error) {
	r := a.srv.Scripting.Running
	if r == nil {
		return a.outside(a.name() + ".call/pcall")
	}
	if err := vm.Tick(10); err != nil {
		return 0, err
	}
	argv, wrong := a.arguments(name, args)
	var result lua.Value
	bad := true
	if wrong != "" {
		result = engine.ErrorTable(a.state, "ERR "+wrong, false).Value()
	} else if reply, failed := a.runCommand(r, cmd, argv); failed != "" {
		result = engine.ErrorTable(a.state, a.refusal(failed), true).Value()
	} else {
		bad = reply[0] == '-'
		d := decoder{vm: vm, rest: reply}
		if result = d.value(); d.err != nil {
			return 0, d.err
		}
	}
	clear(a.argv[:min(len(argv), len(a.argv))])
	if bad && raise {
		return 0, vm.Throw(result)
	}
	return args.Return(result)
}

// runCommand runs a command, which is looked up if it is nil. While it runs, a panic is its own: see
// commandPanic.
func (a *api) runCommand(r *engine.ScriptRun, cmd *engine.Command, argv [][]byte) (reply []byte, failed string) {
	r.Calling = true
	if cmd != nil {
		reply, failed = r.CallCommand(cmd, argv, 1)
	} else {
		reply, failed = r.Call(argv)
	}
	r.Calling = false
	return reply, failed
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

func (a *api) sha1hex(vm *lua.Machine, args lua.Args) (int, *lua.Error) {
	if args.Len() != 1 {
		return a.fail("wrong number of arguments")
	}
	s, _ := lua.ToText(args.At(1))
	sum := sha1.New()
	for b := protocol.BytesOf(s); len(b) > 0; {
		n := min(len(b), 1<<18)
		sum.Write(b[:n])
		b = b[n:]
		if err := vm.Tick(n >> 6); err != nil {
			return 0, err
		}
	}
	return args.Return(lua.Text(hex.EncodeToString(sum.Sum(nil))))
}

func sha1Of(b []byte) string {
	sum := sha1.Sum(b)
	return hex.EncodeToString(sum[:])
}

func (a *api) errorReply(_ *lua.Machine, args lua.Args) (int, *lua.Error) {
	s, ok := args.At(1).Str()
	if args.Len() != 1 || !ok {
		return args.Return(engine.ErrorTable(a.state, "ERR wrong number or type of arguments", false).Value())
	}
	return args.Return(engine.ErrorTable(a.state, errorLine(cText(strings.TrimPrefix(s, "-"))), false).Value())
}

func (a *api) statusReply(vm *lua.Machine, args lua.Args) (int, *lua.Error) {
	if _, ok := args.At(1).Str(); args.Len() != 1 || !ok {
		return args.Return(engine.ErrorTable(a.state, "ERR wrong number or type of arguments", false).Value())
	}
	t := lua.NewTable(0, 1)
	t.SetText(vm, "ok", args.At(1))
	return args.Return(t.Value())
}

func (a *api) setresp(_ *lua.Machine, args lua.Args) (int, *lua.Error) {
	if a.srv.Scripting.Running == nil {
		return a.outside(a.name() + ".setresp")
	}
	if args.Len() != 1 {
		return a.fail(a.name() + ".setresp() requires one argument.")
	}
	f, _ := lua.ToNumber(args.At(1))
	version := toInt(f)
	if version != 2 && version != 3 {
		return a.fail("RESP version must be 2 or 3.")
	}
	a.srv.Scripting.Session.Out.SetVersion(int(version))
	return 0, nil
}

// setRepl validates its argument and has no effect: replication of single commands
// follows from effects here.
func (a *api) setRepl(_ *lua.Machine, args lua.Args) (int, *lua.Error) {
	if a.srv.Scripting.Running == nil {
		return a.outside(a.name() + ".set_repl")
	}
	if args.Len() != 1 {
		return a.fail(a.name() + ".set_repl() requires one argument.")
	}
	f, _ := lua.ToNumber(args.At(1))
	if toInt(f)&^3 != 0 {
		return a.fail("Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	return 0, nil
}

// toInt converts a number to an int, as C does on amd64.
func toInt(f float64) int32 {
	if n := truncate(f); n == int64(int32(n)) {
		return int32(n)
	}
	return math.MinInt32
}

// aclCheckCmd returns whether the user may run a command.
func (a *api) aclCheckCmd(_ *lua.Machine, args lua.Args) (int, *lua.Error) {
	r := a.srv.Scripting.Running
	if r == nil {
		return a.outside(a.name() + ".acl_check_cmd")
	}
	defer clear(a.argv[:])
	argv, wrong := a.arguments(nil, args)
	if wrong != "" {
		return a.fail(wrong)
	}
	cmd, names := a.srv.Table.Find(argv)
	if cmd == nil || cmd.ByArg != nil && names == 1 && len(argv) > 1 {
		return a.fail("Invalid command passed to " + a.name() + ".acl_check_cmd()")
	}
	if cmd.Run == nil || !cmd.Spec.ArityOK(len(argv)) {
		return a.fail("Wrong number of args for " + a.name() + ".acl_check_cmd()")
	}
	return args.Return(lua.Bool(r.MayRun(cmd, argv)))
}

func (a *api) log(_ *lua.Machine, args lua.Args) (int, *lua.Error) {
	n := args.Len()
	if n < 2 {
		return a.fail(a.name() + ".log() requires two arguments or more.")
	}
	f, ok := lua.ToNumber(args.At(1))
	if !ok {
		return a.fail("First argument must be a number (log level).")
	}
	level := toInt(f)
	if level < 0 || level > 3 {
		return a.fail("Invalid log level.")
	}
	var line strings.Builder
	for i := 2; i <= n; i++ {
		s, ok := lua.ToText(args.At(i))
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
	return 0, nil
}
