package acl

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/glob"
)

// Command is a command or subcommand with its bit in the sets of selectors.
type Command struct {
	*protocol.Command
	id           int // its index among all commands and subcommands
	usesSelected bool
	subcommands  []*Command
}

// Commands holds all commands and subcommands by their names. It is immutable once
// [New] has it, except for a cache that the users' lock guards.
type Commands struct {
	list       []*Command
	byName     map[string]*Command
	categories map[protocol.Categories][]*Command // see of
}

// NewCommands numbers commands and their subcommands.
func NewCommands(specs []*protocol.Command) *Commands {
	t := &Commands{byName: map[string]*Command{}, categories: map[protocol.Categories][]*Command{}}
	for _, spec := range specs {
		cmd := t.add(spec)
		for _, sub := range spec.Subcommands() {
			cmd.subcommands = append(cmd.subcommands, t.add(sub))
		}
	}
	return t
}

func (t *Commands) add(spec *protocol.Command) *Command {
	cmd := &Command{Command: spec, id: len(t.list), usesSelected: usesSelected(spec)}
	t.list = append(t.list, cmd)
	t.byName[spec.Name] = cmd
	return cmd
}

// All returns the commands, each followed by its subcommands. The caller must not
// modify the list.
func (t *Commands) All() []*Command { return t.list }

// Named returns the command or subcommand ("config|get") of that name,
// case-insensitively, or nil.
func (t *Commands) Named(name string) *Command {
	var lower [64]byte
	if len(name) > len(lower) {
		return nil
	}
	for i := range len(name) {
		lower[i] = glob.Lower(name[i])
	}
	return t.byName[string(lower[:len(name)])]
}

// of returns the commands and subcommands of a category.
func (t *Commands) of(category protocol.Categories) []*Command {
	list, known := t.categories[category]
	if !known {
		for _, cmd := range t.list {
			if cmd.Categories().Has(category) {
				list = append(list, cmd)
			}
		}
		t.categories[category] = list
	}
	return list
}
