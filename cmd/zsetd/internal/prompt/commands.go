package prompt

import (
	"slices"
	"strings"

	"github.com/zsetd/zsetd/cmd/zsetd/internal/client"
	"github.com/zsetd/zsetd/protocol"
)

// command is what is known of a command of the server.
type command struct {
	name                  string // lower case, with that of its container: "config get"
	summary, since, group string
	arguments             []protocol.Argument
	subcommands           bool
}

// commands are those of the server, by their names.
type commands map[string]*command

// tableCommands returns the commands of a table: what is known without a server.
func tableCommands(table map[string]*protocol.Command) commands {
	all := commands{}
	for name, c := range table {
		all.add(name, c)
	}
	return all
}

func (all commands) add(name string, c *protocol.Command) {
	all[name] = &command{name: name, summary: c.Summary, since: c.Since, group: c.Group,
		arguments: c.Arguments(), subcommands: len(c.Subcommands()) > 0}
	for _, sub := range c.Subcommands() {
		all.add(strings.ReplaceAll(sub.Name, "|", " "), sub)
	}
}

// serverCommands returns the commands in a reply to COMMAND DOCS; nil if it is none.
func serverCommands(docs *client.Reply) commands {
	all := commands{}
	all.addDocs(docs)
	if len(all) == 0 {
		return nil
	}
	return all
}

func (all commands) addDocs(docs *client.Reply) {
	for i := 0; i+1 < len(docs.Elements); i += 2 {
		name, doc := strings.ReplaceAll(strings.ToLower(docs.Elements[i].Text), "|", " "), &docs.Elements[i+1]
		text := func(field string) string { r, _ := doc.Get(field); return r.Text }
		c := &command{name: name, summary: text("summary"), since: text("since"), group: text("group")}
		if r, ok := doc.Get("arguments"); ok {
			c.arguments = arguments(&r)
		}
		if r, ok := doc.Get("subcommands"); ok {
			c.subcommands = true
			all.addDocs(&r)
		}
		all[name] = c
	}
}

// arguments converts the arguments of COMMAND DOCS.
func arguments(list *client.Reply) (all []protocol.Argument) {
	for i := range list.Elements {
		r := &list.Elements[i]
		text := func(field string) string { r, _ := r.Get(field); return r.Text }
		a := protocol.Argument{Name: text("name"), Display: text("display_text"), Type: text("type"), Token: text("token"), KeySpec: -1}
		flags, _ := r.Get("flags")
		for _, flag := range flags.Elements {
			switch flag.Text {
			case "optional":
				a.Optional = true
			case "multiple":
				a.Multiple = true
			case "multiple_token":
				a.MultipleToken = true
			}
		}
		if inner, ok := r.Get("arguments"); ok {
			a.Arguments = arguments(&inner)
		}
		all = append(all, a)
	}
	return all
}

// find returns the command that begins words, and the words behind its name.
func (all commands) find(words []string) (*command, []string) {
	if len(words) == 0 {
		return nil, nil
	}
	c := all[strings.ToLower(words[0])]
	if c == nil || !c.subcommands {
		return c, words[1:]
	}
	if len(words) > 1 {
		if sub := all[strings.ToLower(words[0]+" "+words[1])]; sub != nil {
			return sub, words[2:]
		}
	}
	return c, words[1:]
}

// helpWord is the word that asks for help at the prompt.
const helpWord = "help"

// complete returns what may follow line to make its last word the name of a command,
// of a subcommand or of a topic of help.
func (all commands) complete(line string) (rests []string) {
	typed := strings.TrimLeft(line, " ")
	asksHelp := false
	if rest, ok := cutWordFold(typed, helpWord); ok {
		typed, asksHelp = rest, true
	}
	upper := typed != strings.ToLower(typed)
	lower := strings.Join(strings.Fields(typed), " ")
	if lower != "" && strings.HasSuffix(typed, " ") {
		lower += " "
	}
	lower = strings.ToLower(lower)
	var names []string
	for name := range all {
		names = append(names, name)
	}
	if asksHelp {
		for _, group := range all.groups() {
			names = append(names, "@"+group)
		}
	} else {
		names = append(names, "clear", "connect", "exit", helpWord, "quit")
	}
	for _, name := range names {
		// Subcommands follow when their container is complete.
		rest, ok := strings.CutPrefix(name, lower)
		if !ok || rest == "" || strings.Contains(rest, " ") {
			continue
		}
		if upper && all[name] != nil {
			rest = strings.ToUpper(rest)
		}
		rests = append(rests, rest)
	}
	slices.Sort(rests)
	return slices.Compact(rests)
}

// cutWordFold returns s without its first word, if that is word in any case.
func cutWordFold(s, word string) (string, bool) {
	if len(s) > len(word) && strings.EqualFold(s[:len(word)], word) && s[len(word)] == ' ' {
		return strings.TrimLeft(s[len(word):], " "), true
	}
	return s, false
}

func (all commands) groups() []string {
	var groups []string
	for _, c := range all {
		groups = append(groups, c.group)
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// hint returns the arguments that may follow a line, to be shown behind it.
func (all commands) hint(line string) string {
	args, ok := protocol.SplitArgs(nil, []byte(line))
	if !ok || len(args) == 0 {
		return ""
	}
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = string(arg)
	}
	c, given := all.find(words)
	if c == nil || c.subcommands {
		return ""
	}
	left, _ := consume(c.arguments, given)
	for i, a := range left {
		if a.Optional && a.Multiple && !a.HasToken() {
			a.Optional, a.Multiple = false, false
			left[i] = protocol.Argument{Display: protocol.Usage([]protocol.Argument{a}) + " ...", Optional: true}
		}
	}
	text := protocol.Usage(left)
	if text != "" && !strings.HasSuffix(line, " ") {
		text = " " + text
	}
	return text
}

// consume matches words with arguments from left to right, and returns what of the
// arguments is left, and how many words matched. Options, which begin with a
// token, may have any order.
func consume(args []protocol.Argument, words []string) (left []protocol.Argument, used int) {
	left = slices.Clone(args)
	for used < len(words) {
		at, n, inner := next(left, words[used:])
		if at < 0 {
			return left, used
		}
		used += n
		a := left[at]
		rest := slices.Clone(left[at+1:])
		before := slices.Clone(left[:at])
		if !startsWithToken(&a) {
			before = nil // what precedes a value by position cannot follow it
		}
		if a.Multiple {
			a.Optional = true
			rest = append([]protocol.Argument{a}, rest...)
		}
		left = append(append(inner, before...), rest...)
		if len(inner) > 0 {
			return left, used
		}
	}
	return left, used
}

// next returns the argument that the first of the words matches: a token if one is
// possible, else the first value. The argument takes n words; inner is what of it is
// left if they end within.
func next(args []protocol.Argument, words []string) (at, n int, inner []protocol.Argument) {
	for _, tokens := range []bool{true, false} {
		for i := range args {
			if startsWithToken(&args[i]) == tokens {
				if n, inner := match(&args[i], words); n > 0 {
					return i, n, inner
				}
			}
			if !args[i].Optional {
				break // it must come first
			}
		}
	}
	return -1, 0, nil
}

func startsWithToken(a *protocol.Argument) bool {
	switch {
	case a.Token != "" || a.Type == "pure-token":
		return true
	case a.Type == "oneof":
		return !slices.ContainsFunc(a.Arguments, func(a protocol.Argument) bool { return !startsWithToken(&a) })
	case a.Type == "block" && len(a.Arguments) > 0:
		return startsWithToken(&a.Arguments[0])
	}
	return false
}

// match matches one argument with the first of the words, and returns how many it takes
// (0 if it does not match) and what of it is left.
func match(a *protocol.Argument, words []string) (n int, left []protocol.Argument) {
	if a.Token != "" {
		if !strings.EqualFold(a.Token, words[0]) {
			return 0, nil
		}
		if a.Type == "pure-token" {
			return 1, nil
		}
		value := *a
		value.Token, value.Optional, value.Multiple = "", false, a.Multiple && !a.MultipleToken
		if len(words) == 1 {
			return 1, []protocol.Argument{value}
		}
		n, left := match(&value, words[1:])
		return n + 1, left
	}
	switch a.Type {
	case "oneof":
		for i := range a.Arguments {
			if n, left := match(&a.Arguments[i], words); n > 0 {
				return n, left
			}
		}
		return 0, nil
	case "block":
		left, n := consume(a.Arguments, words)
		if n < len(words) { // what follows the block is another argument's
			left = nil
		} else if !slices.ContainsFunc(left, func(a protocol.Argument) bool { return !a.Optional }) {
			left = nil
		}
		return n, left
	}
	return 1, nil
}
