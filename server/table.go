package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// Command is a row of facts and its handler. A container such as CONFIG has
// subcommands in place of a handler.
type Command struct {
	protocol.Facts
	run         func(*Call)
	subcommands []Command

	// ofConnection: the command affects only its session, so it has no meaning in
	// Server.Do.
	ofConnection bool

	// scriptFlags returns the flags that the script declares which the command runs; nil
	// if it runs none.
	scriptFlags func(*Server, [][]byte) scriptFlags

	spec  *protocol.Command // the facts, parsed
	quick bool              // see series
	id    int               // its index among all commands and subcommands
	byArg map[string]*Command
	stats commandStats
}

// wrongArity is the error for too few or too many arguments: Redis's, plus the
// syntax for a command that Redis does not have.
func (c *Command) wrongArity() string {
	if c.Since != extensionSince {
		return wrongArity(c.Name)
	}
	return wrongArity(c.Name) + ": " + strings.ToUpper(c.Name) + " " + plainSyntax(c.Syntax)
}

// plainSyntax returns the syntax of a command without the names and types of its
// arguments, which COMMAND DOCS needs and readers do not.
func plainSyntax(syntax string) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(syntax) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		for {
			bare := strings.TrimLeft(word, "[(")
			b.WriteString(strings.ReplaceAll(word[:len(word)-len(bare)], "(", ""))
			name, rest, named := strings.Cut(bare, ":")
			if !named || rest[0] != '[' && rest[0] != '(' && rest != strings.ToUpper(rest) { // no prefix of the form name:type
				b.WriteString(strings.ReplaceAll(name, ")", ""))
				break
			}
			word = rest // the rest of name:[A|B], name:(...) or name:WORD
		}
	}
	return b.String()
}

// table looks up commands by name.
type table struct {
	byName map[string]*Command
	index  nameIndex  // of byName
	rows   []*Command // in the order of families
	count  int        // of commands and subcommands
}

// newTable compiles the rows of some families.
func newTable(families [][]Command) *table {
	t := &table{byName: map[string]*Command{}}
	for _, family := range families {
		for i := range family {
			c := &family[i]
			c.compile()
			t.byName[c.Name] = c
			t.rows = append(t.rows, c)
		}
	}
	t.each(func(c *Command) {
		c.id = t.count
		t.count++
	})
	t.index = newNameIndex(t.byName)
	return t
}

func (c *Command) compile() {
	var specs []*protocol.Command
	for i := range c.subcommands {
		sub := &c.subcommands[i]
		sub.compile()
		if c.byArg == nil {
			c.byArg = map[string]*Command{}
		}
		c.byArg[sub.Name[len(c.Name)+1:]] = sub
		specs = append(specs, sub.spec)
	}
	spec, err := protocol.Compile(c.Facts, specs...)
	if err != nil {
		panic("BUG: command " + c.Name + ": " + err.Error())
	}
	c.spec = spec
	c.quick = c.isQuick()
}

// rename gives commands other names, or removes them. pairs are old and new names,
// in quotes.
func (t *table) rename(pairs string) error {
	words, ok := protocol.SplitArgs(nil, []byte(pairs))
	if !ok || len(words)%2 != 0 {
		return errors.New("wrong number of arguments")
	}
	for pair := range slices.Chunk(words, 2) {
		old, name := strings.ToLower(string(pair[0])), strings.ToLower(string(pair[1]))
		c := t.byName[old]
		if c == nil {
			return fmt.Errorf("no such command: %s", old)
		}
		delete(t.byName, old)
		if name == "" {
			t.rows = slices.DeleteFunc(t.rows, func(o *Command) bool { return o == c })
			continue
		}
		if t.byName[name] != nil {
			return fmt.Errorf("there is a command %s already", name)
		}
		t.byName[name] = c
	}
	t.index = newNameIndex(t.byName)
	return nil
}

// find returns the command that argv invokes, or its subcommand, and how many
// arguments form the name. It returns nil for an unknown name, and the container
// and 1 for an unknown subcommand.
func (t *table) find(argv [][]byte) (c *Command, names int) {
	c = t.index.find(argv[0])
	if c == nil {
		return nil, 0
	}
	if c.byArg == nil || len(argv) < 2 {
		return c, 1
	}
	if sub := lookup(c.byArg, argv[1]); sub != nil {
		return sub, 2
	}
	return c, 1
}

// lookup finds a name case-insensitively without allocating.
func lookup(m map[string]*Command, name []byte) *Command {
	var lower [64]byte
	if len(name) > len(lower) {
		return nil
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return m[string(lower[:len(name)])]
}
