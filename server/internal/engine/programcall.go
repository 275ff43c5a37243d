package engine

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// ProgramCall is one execution of a command that the embedding program defines, or of a function
// of Tx. The handler changes data only through Do, which runs commands as a script's redis.call
// does: in the commit scope of the call, with the permissions of the client.
type ProgramCall struct {
	call   *Call
	run    ScriptRun
	inside bool // a command of Do runs
	ended  bool // the handler has returned
}

// CallProgram runs the handler of a command of the embedding program, and replies its
// result.
//
// A panic of the handler is an error to the client if the handler has not begun to
// change data. Otherwise, and if a command that it has called panics, the data may be
// half changed: the panic goes on and stops the server (fault.go).
func CallProgram(c *Call, handler func(*ProgramCall) (any, error)) {
	p := newProgramCall(c)
	reply, panicked, err := p.handle(handler)
	if panicked != nil {
		err = fmt.Errorf("ERR internal error in '%s', see the server's log", c.Command.Name)
	}
	if err != nil {
		c.Reply.Error(errorText(err))
		return
	}
	mark := c.Reply.Len()
	if bad := replyValue(c.Reply, reply); bad != nil {
		c.Reply.Truncate(mark)
		c.Reply.Error(fmt.Sprintf("ERR the handler of '%s' returned a %T, which is no reply", c.Command.Name, bad))
	}
}

func newProgramCall(c *Call) *ProgramCall {
	p := &ProgramCall{call: c}
	caller := c.Session
	if caller.Modes.Script {
		caller = c.Engine.Scripting.Running.Caller
	}
	s := &Session{
		Engine: c.Engine, DB: c.DB, Peer: Peer{Addr: "?:0", LocalAddr: "?:0", FD: -1, Wake: func() {}},
		Login: login{User: caller.Login.User, Authenticated: true}, Modes: modes{NoBlock: true, Script: true},
	}
	s.Call = Call{Session: s, Engine: c.Engine, Reply: &s.Out, Nested: true, OfScript: true}
	s.Out.SetVersion(3)
	p.run = ScriptRun{
		Engine: c.Engine, Session: s, Caller: caller, Row: c.Command, Command: c.Argv,
		ReadOnly: !c.Command.Spec.Flags().Has(protocol.Write), Slot: -1,
	}
	if c.Engine.Cluster != nil {
		p.run.Slot, _ = caller.Misplaced(c.Command, c.Argv)
	}
	return p
}

// handlerExited is the panic of a handler that has ended its goroutine.
type handlerExited struct{}

// String implements fmt.Stringer.
func (handlerExited) String() string {
	return "a function of the program has ended its goroutine (runtime.Goexit, testing.T.FailNow) within the server"
}

// handle calls the handler. It returns the value of a panic that leaves the data whole.
func (p *ProgramCall) handle(handler func(*ProgramCall) (any, error)) (reply, panicked any, err error) {
	returned := false
	defer func() {
		p.ended = true
		if returned {
			return
		}
		switch panicked = recover(); {
		case panicked == nil: // only a panic can end the turn
			panic(handlerExited{})
		case p.inside || p.run.Wrote && !p.run.Atomic:
			panic(panicked)
		}
		p.call.Engine.Log.Error("panic in a command of the program; no data were changed",
			"command", p.call.Command.Name, "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
	}()
	calls := &p.call.Engine.callbacks
	defer calls.leave(calls.enter(mustNotWait))
	reply, err = handler(p)
	returned = true
	return reply, nil, err
}

// Args returns the arguments without the command's name.
func (p *ProgramCall) Args() [][]byte { return p.call.All() }

// DB returns the number of the client's database.
func (p *ProgramCall) DB() int { return p.call.DB.ID() }

// Do runs a command in the commit scope of the call.
func (p *ProgramCall) Do(args ...any) (any, error) {
	if p.ended {
		return nil, fmt.Errorf("zsetd: the call of '%s' has ended", p.call.Command.Name)
	}
	argv, err := p.run.Engine.Arguments(args)
	if err != nil {
		return nil, err
	}
	if len(argv) == 0 {
		return nil, fmt.Errorf("zsetd: no command")
	}
	cmd, _ := p.run.Engine.Table.Find(argv)
	switch {
	case cmd == nil:
		return nil, protocol.ReplyError(p.run.Engine.unknownCommand(argv))
	case cmd.Spec.Flags().Has(protocol.Module | protocol.NoScript):
		return nil, protocol.ReplyError("ERR '" + cmd.Name + "' cannot be called by a command of the program")
	case p.run.Atomic && cmd.Spec.Flags().Has(protocol.Write) && !cmd.Spec.HasKeys():
		return nil, protocol.ReplyError("ERR '" + cmd.Name + "' cannot be rolled back, so a transaction cannot call it")
	case cmd.Spec.Flags().Has(protocol.Write) && p.run.ReadOnly:
		return nil, protocol.ReplyError("ERR '" + cmd.Name + "' writes, and '" + p.call.Command.Name + "' lacks the flag write")
	case cmd.ByArg == nil && !cmd.Spec.ArityOK(len(argv)):
		return nil, protocol.ReplyError(cmd.WrongArity())
	}
	p.inside = true
	out, failed := p.run.Call(argv)
	p.inside = false
	if failed != "" {
		return nil, protocol.ReplyError(failed)
	}
	v, _, err := protocol.Decode(out)
	if err != nil {
		panic("BUG: reply of " + cmd.Name + ": " + err.Error())
	}
	if e, ok := v.(protocol.ReplyError); ok {
		return nil, e
	}
	return v, nil
}

// errorText returns an error as the line of an error reply, which begins with a code in
// capital letters.
func errorText(err error) string {
	msg := err.Error()
	code, _, _ := strings.Cut(msg, " ")
	if code == "" || strings.ToUpper(code) != code || strings.ToLower(code) == code {
		return "ERR " + msg
	}
	return msg
}

// replyValue replies a Go value, of the types that protocol.Decode returns and a few
// others. It returns the first value that is of no such type.
func replyValue(r *protocol.Reply, v any) (bad any) {
	switch v := v.(type) {
	case nil:
		r.Null()
	case string:
		r.BulkString(v)
	case []byte:
		r.Bulk(v)
	case int:
		r.Int(int64(v))
	case int64:
		r.Int(v)
	case float64:
		r.Double(v)
	case bool:
		r.Bool(v)
	case protocol.Status:
		r.Status(string(v))
	case protocol.BigNumber:
		r.BigNumber(string(v))
	case protocol.ReplyError:
		r.Error(string(v))
	case []string:
		r.Array(len(v))
		for _, s := range v {
			r.BulkString(s)
		}
	case []any:
		r.Array(len(v))
		return replyValues(r, v)
	case protocol.Set:
		r.Set(len(v))
		return replyValues(r, v)
	case protocol.Map:
		r.Map(len(v))
		for _, pair := range v {
			if bad = replyValues(r, []any{pair.Key, pair.Value}); bad != nil {
				return bad
			}
		}
	default:
		return v
	}
	return nil
}

func replyValues(r *protocol.Reply, values []any) (bad any) {
	for _, v := range values {
		if bad = replyValue(r, v); bad != nil {
			return bad
		}
	}
	return nil
}
