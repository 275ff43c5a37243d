package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/process"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// Command is a row of facts and its handler. A container such as CONFIG has
// subcommands in place of a handler.
type Command struct {
	protocol.Facts
	Run         func(*Call)
	Subcommands []Command

	// OfConnection: the command affects only its session, or makes a stream of it, so it
	// has no meaning in Server.Do.
	OfConnection bool

	// Properties that other commands do not have.
	Local           bool     // never forwarded, see forward.go
	Function        bool     // Redis and Valkey have it as a function of its name, with one key: see cmd/zsetd/zsetd.lua
	Watches         bool     // its keys are watched until the end of a transaction
	InMulti         bool     // runs within MULTI in place of being queued
	NotNested       bool     // refused within MULTI in the dialect of Valkey
	RunsQueue       bool     // runs the commands that MULTI has queued
	WhileSubscribed bool     // allowed with subscriptions in RESP2
	Secret          bool     // arguments may be passwords: they are never logged
	OtherDatabases  bool     // opens keys of another database, or selects one
	AnyKey          bool     // may open a key that is not an argument
	Touches         bool     // counts as an access even with CLIENT NO-TOUCH
	EndsQueueing    bool     // within MULTI, runs although memory is short
	RefusedUnsaved  bool     // refused, like a write, after a failed save
	KeepsCaching    bool     // does not end the effect of CLIENT CACHING
	InStream        bool     // a primary may send it, although it changes no data
	Importable      bool     // accepted by Import, although it changes no data
	Batching        Batching // see isQuick
	Element         int      // the argument that is a member or field of the key; 0 for none
	Named           int      // from this argument on, all are members or fields, and the reply depends on those only; 0 if not so
	Ranks           int      // with two arguments, the reply is the rank of a member of the key: 1 from the lowest, -1 from the highest

	// Fields is what the command does with fields of hashes past their deadline, while
	// these stay; see keyspace.LazyFields.
	Fields keyspace.FieldUse

	// EnabledBy returns the value of the parameter that enables the command. Rows
	// with the flag protected have it, and no others.
	EnabledBy func(*config.Settings) string

	// ScriptFlags returns the flags that the script declares which the command runs; nil
	// if it runs none.
	ScriptFlags func(*Engine, [][]byte) ScriptFlags

	entry
}

// entry is what the table adds to a row.
type entry struct {
	Spec      *protocol.Command // the facts, parsed
	Access    *acl.Command      // the command as the ACL knows it
	ByArg     map[string]*Command
	quick     bool // see isQuick
	forwarded bool // see isForwarded
	Stats     commandStats
}

// WrongArity is the error for too few or too many arguments: Redis's, plus the
// syntax for a command that Redis does not have.
func (c *Command) WrongArity() string {
	if c.Since != process.ExtensionVersion {
		return WrongArity(c.Name)
	}
	return WrongArity(c.Name) + ": " + strings.ToUpper(c.Name) + " " + protocol.PlainSyntax(c.Syntax)
}

// table looks up commands by name.
type table struct {
	ByName map[string]*Command
	Index  nameIndex[Command] // of ByName
	Rows   []*Command         // in the order of families
	Access *acl.Commands      // Rows, as the ACL knows them
}

// NewTable compiles the rows of some families.
func NewTable(families [][]Command) *table {
	t := &table{ByName: map[string]*Command{}}
	for _, family := range families {
		for i := range family {
			c := &family[i]
			c.compile()
			t.ByName[c.Name] = c
			t.Rows = append(t.Rows, c)
		}
	}
	var specs []*protocol.Command
	for _, c := range t.Rows {
		specs = append(specs, c.Spec)
	}
	t.Access = acl.NewCommands(specs)
	t.Each(func(c *Command) { c.Access = t.Access.Named(c.Name) })
	t.Index = newNameIndex(t.ByName)
	return t
}

func (c *Command) compile() {
	var specs []*protocol.Command
	for i := range c.Subcommands {
		sub := &c.Subcommands[i]
		sub.compile()
		if c.ByArg == nil {
			c.ByArg = map[string]*Command{}
		}
		c.ByArg[sub.Name[len(c.Name)+1:]] = sub
		specs = append(specs, sub.Spec)
	}
	spec, err := protocol.Compile(c.Facts, specs...)
	if err != nil {
		panic("BUG: command " + c.Name + ": " + err.Error())
	}
	c.Spec = spec
	if spec.Flags().Has(protocol.Protected) != (c.EnabledBy != nil) {
		panic("BUG: command " + c.Name + ": the flag protected and EnabledBy go together")
	}
	c.quick = c.isQuick()
	c.forwarded = c.isForwarded()
}

// Rename gives commands other names, or removes them. pairs are old and new names,
// in quotes.
func (t *table) Rename(pairs string) error {
	words, ok := protocol.SplitArgs(nil, []byte(pairs))
	if !ok || len(words)%2 != 0 {
		return errors.New("wrong number of arguments")
	}
	for pair := range slices.Chunk(words, 2) {
		old, name := strings.ToLower(string(pair[0])), strings.ToLower(string(pair[1]))
		c := t.ByName[old]
		if c == nil {
			return fmt.Errorf("no such command: %s", old)
		}
		delete(t.ByName, old)
		if name == "" {
			t.Rows = slices.DeleteFunc(t.Rows, func(o *Command) bool { return o == c })
			continue
		}
		if t.ByName[name] != nil {
			return fmt.Errorf("there is a command %s already", name)
		}
		t.ByName[name] = c
	}
	t.Index = newNameIndex(t.ByName)
	return nil
}

// Renamed returns the name by which clients call a command, in lower case: its own name,
// unless Rename has changed it, and "" if there is none. O(n) for n commands if it has.
func (t *table) Renamed(name string) string {
	name = strings.ToLower(name)
	if c := t.ByName[name]; c != nil && c.Name == name {
		return name
	}
	for called, c := range t.ByName {
		if c.Name == name {
			return called
		}
	}
	return ""
}

// Find returns the command that argv invokes, or its subcommand, and how many
// arguments form the name. It returns nil for an unknown name, and the container
// and 1 for an unknown subcommand.
func (t *table) Find(argv [][]byte) (c *Command, names int) {
	c = t.Index.Find(argv[0])
	if c == nil {
		return nil, 0
	}
	if c.ByArg == nil || len(argv) < 2 {
		return c, 1
	}
	if sub := lookupName(c.ByArg, argv[1]); sub != nil {
		return sub, 2
	}
	return c, 1
}

// Named returns the command or subcommand ("config|get") of that name,
// case-insensitively, or nil.
func (t *table) Named(name []byte) *Command {
	for i, b := range name {
		if b != '|' {
			continue
		}
		if c := lookupName(t.ByName, name[:i]); c != nil && c.ByArg != nil {
			return lookupName(c.ByArg, name[i+1:])
		}
		return nil
	}
	return lookupName(t.ByName, name)
}
