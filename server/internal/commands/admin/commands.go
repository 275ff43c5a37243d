package admin

import (
	"cmp"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/glob"
	"github.com/zsetd/zsetd/server/internal/engine"
)

// CommandCommands returns the rows of the COMMAND command.
func CommandCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "command", Arity: -1, Flags: "loading stale",
			Group: "server", Since: "2.8.13", Categories: "connection", Tips: "nondeterministic_output_order",
			Complexity: "O(N), N commands of the server",
			Summary:    "Facts about all commands",
		}, Run: listCommands, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "command|count", Arity: 2, Flags: "loading stale",
				Group: "server", Since: "2.8.13", Categories: "connection", Complexity: "O(1)",
				Summary: "Number of commands, without subcommands",
			}, Run: commandCount},
			{Facts: protocol.Facts{
				Name: "command|docs", Arity: -2, Flags: "loading stale",
				Group: "server", Since: "7.0.0", Categories: "connection", Tips: "nondeterministic_output_order",
				Complexity: "O(N), N commands given, or all",
				Summary:    "Descriptions of commands and of their arguments",
				Syntax:     "[command-name [command-name ...]]",
			}, Run: commandDocs},
			{Facts: protocol.Facts{
				Name: "command|getkeys", Arity: -3, Flags: "loading stale",
				Group: "server", Since: "2.8.13", Categories: "connection",
				Complexity: "O(N), N arguments of the command",
				Summary:    "Keys in the arguments of a command",
				Syntax:     "command [arg [arg ...]]",
			}, Run: commandGetkeys},
			{Facts: protocol.Facts{
				Name: "command|getkeysandflags", Arity: -3, Flags: "loading stale",
				Group: "server", Since: "7.0.0", Categories: "connection",
				Complexity: "O(N), N arguments of the command",
				Summary:    "Keys in the arguments of a command, and how it uses them",
				Syntax:     "command [arg [arg ...]]",
			}, Run: commandGetkeysandflags},
			engine.HelpRow(protocol.Facts{Name: "command|help", Group: "server", Since: "5.0.0", Categories: "connection"},
				"(no subcommand)",
				"    The facts about all commands.",
				"COUNT",
				"    The number of commands, without subcommands.",
				"LIST",
				"    The names of all commands and subcommands.",
				"INFO [<command-name> ...]",
				"    The facts about the given commands, or about all.",
				"DOCS [<command-name> ...]",
				"    The descriptions of the given commands, or of all.",
				"GETKEYS <full-command>",
				"    The keys among the arguments of a command.",
				"GETKEYSANDFLAGS <full-command>",
				"    The keys among the arguments of a command, each with its use."),
			{Facts: protocol.Facts{
				Name: "command|info", Arity: -2, Flags: "loading stale",
				Group: "server", Since: "2.8.13", Categories: "connection", Tips: "nondeterministic_output_order",
				Complexity: "O(N), N commands given, or all",
				Summary:    "Facts about commands, by name",
				Syntax:     "[command-name [command-name ...]]",
				History:    []string{"7.0.0 No names: all commands"},
			}, Run: commandInfo},
			{Facts: protocol.Facts{
				Name: "command|list", Arity: -2, Flags: "loading stale",
				Group: "server", Since: "7.0.0", Categories: "connection", Tips: "nondeterministic_output_order",
				Complexity: "O(N), N commands of the server",
				Summary:    "Names of all commands, or of those that pass a filter",
				Syntax:     "[FILTERBY filterby:(MODULE module-name | ACLCAT category | PATTERN pattern)]",
			}, Run: commandList},
		}},
	}
}

func listCommands(c *engine.Call) { commandInfos(c, c.Engine.Table.Rows) }

func commandInfo(c *engine.Call) {
	if !c.More() {
		commandInfos(c, c.Engine.Table.Rows)
		return
	}
	var found []*engine.Command
	for c.More() {
		found = append(found, c.Engine.Table.Named(c.Bytes()))
	}
	commandInfos(c, found)
}

// commandInfos replies COMMAND INFO for each command; nil stands for an unknown
// one.
func commandInfos(c *engine.Call, list []*engine.Command) {
	c.Reply.Array(len(list))
	for _, cmd := range list {
		if cmd == nil {
			c.Reply.Null()
			continue
		}
		replyInfo(c, cmd.Spec)
	}
}

func replyInfo(call *engine.Call, c *protocol.Command) {
	r := call.Reply
	r.Array(10)
	r.BulkString(c.Name)
	r.Int(int64(c.Arity))
	replyFlags(r, "", c.Flags().Names())
	first, last, step := c.LegacyKeys()
	r.Int(int64(first))
	r.Int(int64(last))
	r.Int(int64(step))
	replyFlags(r, "@", c.Categories().Names())
	r.Set(len(c.Tips()))
	for _, tip := range c.Tips() {
		r.BulkString(tip)
	}
	specs := c.KeySpecs()
	r.Set(len(specs))
	for i := range specs {
		replyKeySpec(r, &specs[i])
	}
	subs := c.Subcommands()
	if len(subs) == 0 && !call.Engine.Config.Valkey() {
		r.Set(0)
		return
	}
	r.Array(len(subs))
	for _, sub := range subs {
		replyInfo(call, sub)
	}
}

func replyFlags(r *protocol.Reply, prefix string, names []string) {
	r.Set(len(names))
	for _, name := range names {
		r.Status(prefix + name)
	}
}

func replyKeySpec(r *protocol.Reply, s *protocol.KeySpec) {
	if s.Note != "" {
		r.Map(4)
		r.BulkString("notes")
		r.BulkString(s.Note)
	} else {
		r.Map(3)
	}
	r.BulkString("flags")
	replyFlags(r, "", s.Flags.Names())
	method := func(name, kind string, fields int) {
		r.BulkString(name)
		r.Map(2)
		r.BulkString("type")
		r.BulkString(kind)
		r.BulkString("spec")
		r.Map(fields)
	}
	number := func(name string, n int) { r.BulkString(name); r.Int(int64(n)) }
	switch {
	case s.Unknown:
		method("begin_search", "unknown", 0)
	case s.Keyword != "":
		method("begin_search", "keyword", 2)
		r.BulkString("keyword")
		r.BulkString(s.Keyword)
		number("startfrom", s.From)
	default:
		method("begin_search", "index", 1)
		number("index", s.Index)
	}
	switch {
	case s.Unknown:
		method("find_keys", "unknown", 0)
	case s.Numkeys:
		method("find_keys", "keynum", 3)
		number("keynumidx", 0)
		number("firstkey", 1)
		number("keystep", s.Step)
	default:
		method("find_keys", "range", 3)
		number("lastkey", s.Last)
		number("keystep", s.Step)
		number("limit", s.Limit)
	}
}

func commandDocs(c *engine.Call) {
	var found []*engine.Command
	if !c.More() {
		found = c.Engine.Table.Rows
	}
	for c.More() {
		if cmd := c.Engine.Table.Named(c.Bytes()); cmd != nil {
			found = append(found, cmd)
		}
	}
	c.Reply.Map(len(found))
	for _, cmd := range found {
		c.Reply.BulkString(cmd.Name)
		replyDocs(c.Reply, cmd.Spec)
	}
}

// replyDocs replies the map of COMMAND DOCS for one command. The size precedes the
// fields, so the fields are collected first.
func replyDocs(r *protocol.Reply, c *protocol.Command) {
	type field struct {
		name  string
		write func()
	}
	var fields []field
	add := func(name string, write func()) { fields = append(fields, field{name, write}) }
	text := func(name, value string) {
		if value != "" {
			add(name, func() { r.BulkString(value) })
		}
	}
	text("summary", c.Summary)
	text("since", c.Since)
	text("group", c.Group)
	text("complexity", c.Complexity)
	if flags := c.DocFlags(); len(flags) > 0 {
		add("doc_flags", func() { replyFlags(r, "", flags) })
	}
	text("deprecated_since", c.Deprecated)
	text("replaced_by", c.ReplacedBy)
	if n := len(c.History); n > 0 {
		add("history", func() {
			r.Set(n)
			c.EachHistory(func(version, change string) {
				r.Array(2)
				r.BulkString(version)
				r.BulkString(change)
			})
		})
	}
	if args := c.Arguments(); len(args) > 0 {
		add("arguments", func() { replyArguments(r, args) })
	}
	if subs := c.Subcommands(); len(subs) > 0 {
		add("subcommands", func() {
			r.Map(len(subs))
			for _, sub := range subs {
				r.BulkString(sub.Name)
				replyDocs(r, sub)
			}
		})
	}
	r.Map(len(fields))
	for _, f := range fields {
		r.BulkString(f.name)
		f.write()
	}
}

func replyArguments(r *protocol.Reply, args []protocol.Argument) {
	r.Array(len(args))
	for i := range args {
		a := &args[i]
		flags := a.Flags()
		shown := len(a.Arguments) == 0 // else its parts are
		n := 2
		for _, there := range []bool{shown, a.KeySpec >= 0, a.HasToken(), a.Since != "", a.Deprecated != "", len(flags) > 0, len(a.Arguments) > 0} {
			if there {
				n++
			}
		}
		text := func(name, value string) { r.BulkString(name); r.BulkString(value) }
		r.Map(n)
		text("name", a.Name)
		text("type", a.Type)
		if shown {
			text("display_text", cmp.Or(a.Display, a.Name))
		}
		if a.KeySpec >= 0 {
			r.BulkString("key_spec_index")
			r.Int(int64(a.KeySpec))
		}
		if a.HasToken() {
			text("token", a.Token)
		}
		if a.Since != "" {
			text("since", a.Since)
		}
		if a.Deprecated != "" {
			text("deprecated_since", a.Deprecated)
		}
		if len(flags) > 0 {
			r.BulkString("flags")
			replyFlags(r, "", flags)
		}
		if len(a.Arguments) > 0 {
			r.BulkString("arguments")
			replyArguments(r, a.Arguments)
		}
	}
}

func commandCount(c *engine.Call) { c.Reply.Int(int64(len(c.Engine.Table.Rows))) }

func commandList(c *engine.Call) {
	keep := func(*engine.Command) bool { return true }
	if c.More() {
		keep = commandFilter(c)
	}
	if !c.End() {
		return
	}
	var names []string
	c.Engine.Table.Each(func(cmd *engine.Command) {
		if keep(cmd) {
			names = append(names, cmd.Name)
		}
	})
	c.Reply.Array(len(names))
	for _, name := range names {
		c.Reply.BulkString(name)
	}
}

// commandFilter parses FILTERBY and its condition.
func commandFilter(c *engine.Call) (keep func(*engine.Command) bool) {
	by := c.Is("FILTERBY")
	switch {
	case by && c.Len() == 2 && c.Is("MODULE"):
		c.Skip(1)
		return func(*engine.Command) bool { return false } // no command comes from a module
	case by && c.Len() == 2 && c.Is("ACLCAT"):
		wanted := protocol.Categories(0)
		name := strings.ToLower(c.String())
		for i, category := range protocol.CategoryNames() {
			if category == name {
				wanted = 1 << i
			}
		}
		return func(cmd *engine.Command) bool { return cmd.Spec.Categories().Has(wanted) }
	case by && c.Len() == 2 && c.Is("PATTERN"):
		pattern := glob.Compile(c.Bytes(), true)
		return func(cmd *engine.Command) bool { return pattern.Match(protocol.BytesOf(cmd.Name)) }
	}
	c.Fail(protocol.ErrSyntax)
	return nil
}

func commandGetkeys(c *engine.Call)         { keysOf(c, false) }
func commandGetkeysandflags(c *engine.Call) { keysOf(c, true) }

// keysOf replies the keys in the command line that the arguments contain.
func keysOf(c *engine.Call, withFlags bool) {
	argv := c.Rest()
	cmd, _ := c.Engine.Table.Find(argv)
	if cmd == nil || cmd.ByArg != nil && len(argv) > 1 {
		c.Reply.Error("ERR Invalid command specified")
		return
	}
	spec := cmd.Spec
	if !spec.HasKeys() {
		c.Reply.Error("ERR The command has no key arguments")
		return
	}
	if !spec.ArityOK(len(argv)) {
		c.Reply.Error("ERR Invalid number of arguments specified for command")
		return
	}
	keys := spec.AppendKeys(nil, argv)
	if len(keys) == 0 && !spec.Flags().Has(protocol.NoMandatoryKeys) {
		c.Reply.Error("ERR Invalid arguments specified for command")
		return
	}
	c.Reply.Array(len(keys))
	for _, k := range keys {
		if withFlags {
			c.Reply.Array(2)
		}
		c.Reply.Bulk(argv[k.Index])
		if withFlags {
			replyFlags(c.Reply, "", k.Flags.Names())
		}
	}
}
