package server

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/wiring"
)

// Command is a command of the embedding program: see [Options].Commands. Clients call
// it as any other, also in MULTI and from Lua scripts, and [Server.Do] does; COMMAND
// INFO, COMMAND DOCS, COMMANDSTATS, SLOWLOG, MONITOR and the ACL know it. The
// configuration can name it, in rules of users or to rename it.
//
// Commands are options of New and cannot be added later, because users of the ACL, who
// are declared there, and sessions refer to the table of commands, which is therefore
// read without a lock.
type Command struct {
	// Name is in lower case, without spaces and "|". It must not be that of another
	// command. A prefix, as in "shop.checkout", avoids collisions with later versions.
	Name string

	// Arity is the number of words with the name; -3 means three or more. Calls with
	// another number are refused.
	Arity int

	// Flags are Redis's names, separated by spaces. "write" is needed to change data,
	// "readonly" says that the command reads only; "denyoom" refuses it while memory is
	// above maxmemory, "fast" and its absence set the ACL category @fast or @slow.
	// "noscript", "no_multi", "loading" and others have their meaning, too. The flag
	// "module", which Redis gives to commands that are not its own, is added.
	Flags string

	// Keys are the positions of the keys, for the ACL, COMMAND GETKEYS and cluster
	// clients, in the notation of [protocol.Facts]: "1 RW update" if the first argument
	// is a key that is changed, "1..-1 RO access" if all arguments are keys that are
	// read. The default is a command without keys.
	Keys string

	Summary string // one sentence, for COMMAND DOCS
	Syntax  string // of the arguments, for COMMAND DOCS, in the notation of [protocol.ParseSyntax]

	// Run executes the command. No other command runs meanwhile, so it must be short,
	// and methods of the Server that would wait for it return [ErrWithin]: [Call.Do] takes
	// their place. It must not wait for another goroutine that calls them. All changes that it makes become visible together
	// when it returns, also if it returns an error: nothing is undone, as in a script.
	//
	// The reply is a value of the types that Do returns (nil, string, int64, float64,
	// bool, []any, protocol.Status, protocol.Map, protocol.Set, …), or an int, []byte or
	// []string. An err is an error reply: its text, after the code ERR if it does not
	// begin with a code in capital letters; reply is then ignored.
	//
	// A panic before the first change of data is an error reply, and the log has the
	// stack. After that, data may be half changed, and the server stops as described
	// at [PanicError].
	Run func(c *Call) (reply any, err error)
}

// Call is one execution of a [Command]. It is valid until Run returns, in its
// goroutine.
type Call struct{ call *engine.ProgramCall }

// Args returns the arguments after the command's name. They must not be changed, nor
// be kept after Run has returned.
func (c *Call) Args() [][]byte { return c.call.Args() }

// Arg returns argument i, from 0, or "" if there are not so many.
func (c *Call) Arg(i int) string {
	if args := c.Args(); i >= 0 && i < len(args) {
		return string(args[i])
	}
	return ""
}

// DB returns the number of the database that the client has selected, and in which Do
// runs commands.
func (c *Call) DB() int { return c.call.DB() }

// Do runs a command as redis.call of a script does: in the same commit scope, so that
// no other client sees a state between two of them, and with the permissions of the
// client. Its arguments and its results are those of [Server.Do]. Commands that scripts
// cannot run, such as MULTI, and other commands of the program are refused; a command
// without the flag write cannot run one that has it.
func (c *Call) Do(args ...any) (reply any, err error) { return c.call.Do(args...) }

// programCommands returns the rows of the program's commands.
func programCommands(commands []Command) ([]engine.Command, error) {
	if len(commands) == 0 {
		return nil, nil
	}
	taken := map[string]bool{}
	for _, family := range wiring.Families() {
		for i := range family {
			taken[family[i].Name] = true
		}
	}
	var rows []engine.Command
	for _, c := range commands {
		fail := func(err error) ([]engine.Command, error) {
			return nil, fmt.Errorf("zsetd: command %q: %w", c.Name, err)
		}
		switch {
		case strings.ContainsFunc(c.Name, func(r rune) bool { return r <= ' ' || r > '~' || r == '|' || r == '"' || r == '\'' }):
			return fail(errors.New("the name has a character that is no letter, digit or sign"))
		case taken[c.Name]:
			return fail(errors.New("there is a command of this name"))
		case c.Run == nil:
			return fail(errors.New("the field Run is nil"))
		}
		taken[c.Name] = true
		facts := protocol.Facts{
			Name: c.Name, Arity: c.Arity, Flags: "module " + c.Flags, Keys: c.Keys,
			Group: "module", Summary: c.Summary, Syntax: c.Syntax,
		}
		if _, err := protocol.Compile(facts); err != nil {
			return nil, fmt.Errorf("zsetd: %w", err)
		}
		handler := func(p *engine.ProgramCall) (any, error) { return c.Run(&Call{p}) }
		rows = append(rows, engine.Command{Facts: facts, Run: func(call *engine.Call) { engine.CallProgram(call, handler) }})
	}
	return rows, nil
}
