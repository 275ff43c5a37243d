package acl

import (
	"maps"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// Selector is one set of permissions.
type Selector struct {
	Commands  commandSet
	firstArgs map[*Command][]string // allowed with these first arguments only; commands lacks them

	// rules are the rules that produced commands since +@all (everything is true)
	// or -@all; DeriveFields removes those that a later rule of the same name has
	// replaced.
	everything bool
	rules      []commandRule
	tidyLength int // length of the prefix of rules without replaced ones

	allKeys, allChannels bool
	keys                 []keyPattern
	channels             Channels
	databases            databases

	// Used while rules are applied: the positions of elements in the lists.
	keyIndex, channelIndex ruleIndex
	firstArgIndex          map[*Command]*ruleIndex
}

// commandRule is a rule that allows or forbids commands. A rule for a first
// argument replaces no other.
type commandRule struct {
	text     string
	replaces bool
}

// commandSet is a set of commands, with one bit for each Command.id.
type commandSet []uint64

// Has reports whether the set holds a command.
func (s commandSet) Has(c *Command) bool { return s[c.id/64]>>(c.id%64)&1 != 0 }

func (s commandSet) set(c *Command, in bool) {
	if in {
		s[c.id/64] |= 1 << (c.id % 64)
	} else {
		s[c.id/64] &^= 1 << (c.id % 64)
	}
}

func (s commandSet) fill(with uint64) {
	for i := range s {
		s[i] = with
	}
}

// keyPattern is a pattern of keys with the access that it permits.
type keyPattern struct {
	pattern string
	access  Access
}

// Access is a set of operations on keys.
type Access uint8

// The accesses to keys that match a pattern.
const (
	ReadKeys Access = 1 << iota
	WriteKeys
)

func (s *Selector) copy() Selector {
	t := *s
	t.keyIndex, t.channelIndex, t.firstArgIndex = ruleIndex{}, ruleIndex{}, nil
	t.Commands, t.rules = slices.Clone(s.Commands), slices.Clone(s.rules)
	t.keys, t.channels = slices.Clone(s.keys), slices.Clone(s.channels)
	t.databases.list = slices.Clone(s.databases.list)
	t.firstArgs = maps.Clone(s.firstArgs)
	for cmd, args := range t.firstArgs {
		t.firstArgs[cmd] = slices.Clone(args)
	}
	return t
}

// parseSelector parses the text in parentheses. As in Redis, unbalanced quotes
// yield an empty selector.
func (a *List) parseSelector(text string) (Selector, error) {
	s := a.newSelector()
	words, ok := protocol.SplitArgs(nil, []byte(text))
	if !ok {
		return s, nil
	}
	for _, word := range words {
		if err := a.applySelector(&s, string(word)); err != nil {
			return s, err
		}
	}
	return s, nil
}

// applySelector changes a selector by one rule.
func (a *List) applySelector(s *Selector, rule string) error {
	word := lowered(rule)
	switch word {
	case "":
		return errRuleSyntax
	case "allkeys", "~*":
		s.allKeys, s.keys = true, nil
		return nil
	case "resetkeys":
		s.allKeys, s.keys = false, nil
		return nil
	case "allchannels", "&*":
		s.allChannels, s.channels = true, nil
		return nil
	case "resetchannels":
		s.allChannels, s.channels = false, nil
		return nil
	case "alldbs":
		s.databases = databases{}
		return nil
	case "resetdbs":
		s.databases = databases{restricted: true}
		return nil
	case "allcommands", "+@all":
		s.resetCommands(true)
		return nil
	case "nocommands", "-@all":
		s.resetCommands(false)
		return nil
	}
	category := strings.HasPrefix(rule[1:], "@")
	switch {
	case strings.HasPrefix(word, "db="):
		d, err := parseDatabases(word)
		if err == nil {
			s.databases = d
		}
		return err
	case rule[0] == '~' || rule[0] == '%':
		return s.applyKeys(rule)
	case rule[0] == '&':
		return s.applyChannels(rule[1:])
	case (rule[0] == '+' || rule[0] == '-') && category:
		category, ok := Category(word[2:])
		if !ok {
			return errRuleCommand
		}
		for _, cmd := range a.Commands.of(category) {
			s.change(cmd, rule[0] == '+')
		}
		s.note(commandRule{word, true})
	case rule[0] == '+' && strings.Contains(rule, "|"):
		return a.applySubcommand(s, rule)
	case rule[0] == '+' || rule[0] == '-':
		cmd := a.Commands.Named(rule[1:])
		if cmd == nil {
			return errRuleCommand
		}
		s.change(cmd, rule[0] == '+')
		s.note(commandRule{word, true})
	default:
		return errRuleSyntax
	}
	return nil
}

// applyKeys adds a pattern of keys: ~pattern, %R~pattern, %W~, %RW~.
func (s *Selector) applyKeys(rule string) error {
	if s.allKeys {
		return errRuleKeys
	}
	access, i := ReadKeys|WriteKeys, 1
	if rule[0] == '%' {
		access = 0
	flags:
		for ; i < len(rule); i++ {
			switch c := rule[i] | 0x20; {
			case c == 'r' && access&ReadKeys == 0:
				access |= ReadKeys
			case c == 'w' && access&WriteKeys == 0:
				access |= WriteKeys
			case rule[i] == '~':
				i++
				break flags
			default:
				return errRuleSyntax
			}
		}
	}
	pattern := rule[i:]
	if access == 0 || HasSpace(pattern) {
		return errRuleSyntax
	}
	if i := s.keyIndex.find(len(s.keys), func(i int) string { return s.keys[i].pattern }, pattern); i >= 0 {
		s.keys[i].access |= access
		return nil
	}
	s.keys = append(s.keys, keyPattern{pattern, access})
	return nil
}

// applyChannels adds a pattern of channels.
func (s *Selector) applyChannels(pattern string) error {
	switch {
	case s.allChannels:
		return errRuleChannels
	case HasSpace(pattern):
		return errRuleSyntax
	case s.channelIndex.find(len(s.channels), func(i int) string { return s.channels[i] }, pattern) < 0:
		s.channels = append(s.channels, pattern)
	}
	return nil
}

// applySubcommand allows a subcommand, +config|get, or a first argument of a
// command without subcommands: +select|0.
func (a *List) applySubcommand(s *Selector, rule string) error {
	i := strings.LastIndexByte(rule, '|')
	first := rule[i+1:]
	cmd := a.Commands.Named(rule[1:i])
	switch {
	case cmd == nil:
		return errRuleCommand
	case strings.Contains(cmd.Name, "|"):
		return errRuleFirstArg
	case first == "":
		return errRuleSyntax
	case len(cmd.subcommands) > 0:
		sub := a.Commands.Named(rule[1:])
		if sub == nil {
			return errRuleCommand
		}
		s.change(sub, true)
		s.note(commandRule{"+" + sub.Name, true})
		return nil
	}
	if s.firstArgs == nil {
		s.firstArgs = map[*Command][]string{}
	}
	if s.firstArgIndex == nil {
		s.firstArgIndex = map[*Command]*ruleIndex{}
	}
	args, index := s.firstArgs[cmd], s.firstArgIndex[cmd]
	if index == nil {
		index = new(ruleIndex)
		s.firstArgIndex[cmd] = index
	}
	if index.find(len(args), func(i int) string { return lowered(args[i]) }, lowered(first)) >= 0 {
		return nil
	}
	s.firstArgs[cmd] = append(s.firstArgs[cmd], first)
	s.note(commandRule{"+" + cmd.Name + "|" + first, false})
	return nil
}

// Category returns the category of that name, ignoring case.
func Category(name string) (category protocol.Categories, ok bool) {
	i := slices.Index(protocol.CategoryNames(), lowered(name))
	return 1 << max(i, 0), i >= 0
}

// AllCommands reports whether s may run everything.
func (s *Selector) AllCommands() bool {
	return s.everything && !slices.ContainsFunc(s.rules, func(r commandRule) bool { return r.text[0] == '-' })
}

func (s *Selector) resetCommands(everything bool) {
	s.everything, s.rules, s.tidyLength, s.firstArgs = everything, nil, 0, nil
	s.Commands.fill(0)
	if everything {
		s.Commands.fill(^uint64(0))
	}
}

// change allows or forbids a command and its subcommands.
func (s *Selector) change(cmd *Command, allow bool) {
	s.Commands.set(cmd, allow)
	delete(s.firstArgs, cmd)
	for _, sub := range cmd.subcommands {
		s.Commands.set(sub, allow)
	}
}

// note appends the rule that has just changed the commands.
func (s *Selector) note(rule commandRule) {
	s.rules = append(s.rules, rule)
	if len(s.rules) > s.tidyLength*2+smallIndex {
		s.tidy()
	}
}

// tidy removes the rules that a later one replaces: those of the same command, and
// of its subcommands and first arguments.
func (s *Selector) tidy() {
	later := make(map[string]struct{}, len(s.rules))
	kept := len(s.rules)
	for i := len(s.rules) - 1; i >= 0; i-- {
		name := lowered(s.rules[i].text[1:])
		_, undone := later[name]
		for at := 0; at < len(name) && !undone; at++ {
			if name[at] == '|' {
				_, undone = later[name[:at]]
			}
		}
		if s.rules[i].replaces {
			later[name] = struct{}{}
		}
		if !undone {
			kept--
			s.rules[kept] = s.rules[i]
		}
	}
	s.rules = slices.Clone(s.rules[kept:])
	s.tidyLength = len(s.rules)
}

func (s *Selector) describe() string {
	var words []string
	if keys := s.DescribeKeys(); keys != "" {
		words = append(words, keys)
	}
	if !s.allChannels {
		words = append(words, "resetchannels")
	}
	if channels := s.DescribeChannels(); channels != "" {
		words = append(words, channels)
	}
	if s.databases.restricted {
		words = append(words, s.databases.describe())
	}
	return strings.Join(append(words, s.DescribeCommands()), " ")
}

// DescribeCommands returns the command rules of a selector, as ACL LIST shows them.
func (s *Selector) DescribeCommands() string {
	first := "-@all"
	if s.everything {
		first = "+@all"
	}
	words := []string{first}
	for _, r := range s.rules {
		words = append(words, r.text)
	}
	return strings.Join(words, " ")
}

// DescribeKeys returns the key patterns of a selector, as ACL LIST shows them.
func (s *Selector) DescribeKeys() string {
	if s.allKeys {
		return "~*"
	}
	var words []string
	for _, k := range s.keys {
		switch k.access {
		case ReadKeys:
			words = append(words, "%R~"+k.pattern)
		case WriteKeys:
			words = append(words, "%W~"+k.pattern)
		default:
			words = append(words, "~"+k.pattern)
		}
	}
	return strings.Join(words, " ")
}

// DescribeChannels returns the channel patterns of a selector, as ACL LIST shows them.
func (s *Selector) DescribeChannels() string {
	if s.allChannels {
		return "&*"
	}
	var words []string
	for _, c := range s.channels {
		words = append(words, "&"+c)
	}
	return strings.Join(words, " ")
}
