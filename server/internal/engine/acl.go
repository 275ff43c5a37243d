package engine

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/glob"
)

// Access control lists. A user is a set of selectors; one of them must allow all of
// a command: the command itself, its keys and its channels. Rules outside of
// parentheses apply to the first selector, the root.
//
// Every command and subcommand has a number (Command.id). A selector holds one bit
// for each, and beside these bits the first arguments with which a command may be
// run that is not allowed otherwise. So a check is a bit test. For a user with all
// permissions there is no check: dispatch tests user.all only.
//
// The permissions of a selector are shown as the rules that produced them, in their
// order, without those that later rules have replaced, as in Redis since 7.2. Redis
// 7.0 derives categories that match the bits closely and lists the differences, in
// no particular order: a user saved in that form gains commands when a later
// version adds them to a category that no rule has named.

// acl holds the users and the log of denied commands. It is guarded by the server's
// lock, except loginRequired and open.
type acl struct {
	Table        *table // all commands, by their original names
	Users        map[string]*User
	Standard     *User // "default", the user of new sessions
	declared     bool  // the configuration declares users
	Owner        *User // the user of commands of the embedding program: unrestricted, in no list
	allChannels  bool  // acl-pubsub-default
	Log          denialLog
	Refusals     [DeniedChannel + 1]int64 // since the server started, for INFO
	nextLogEntry int64
	categories   map[protocol.Categories][]*Command // see commandsOf

	// loginRequired reports whether new sessions must log in, open whether the
	// default user accepts any password. Transports read both without the lock.
	loginRequired, open atomic.Bool
}

// DefaultUser is the name of the user that sessions begin with.
const DefaultUser = "default"

// User is an account. It is changed in place, so that sessions, which point to it,
// see changes at once.
type User struct {
	Name      string
	all       bool // no restrictions; this and the next follow from the selectors
	allKeys   bool // no selector restricts keys
	enabled   bool
	Nopass    bool // any password is accepted
	sanitize  sanitizing
	Passwords [][sha256.Size]byte
	Selectors []Selector // the root first

	// Used while rules are applied: passwords that DeriveFields removes, and the
	// positions of the others.
	removed       map[int]bool
	passwordIndex ruleIndex
}

// sanitizing is the sanitize-payload flag of a user: whether the payloads of
// RESTORE are checked. This server checks all of them.
type sanitizing uint8

const (
	sanitizeUnset sanitizing = iota
	sanitizeSkip
	sanitizeAlways
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
	channels             []string

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

// Has reports whether any of the flags g is set.
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
	access  keyAccess
}

type keyAccess uint8

// ReadKeys is the permission to read keys that match a pattern.
const (
	ReadKeys keyAccess = 1 << iota
	writeKeys
)

// ruleError is the reason why a rule is invalid.
type ruleError string

// Error returns Redis's text.
func (e ruleError) Error() string { return string(e) }

const (
	errRuleSyntax  ruleError = "Syntax error"
	errRuleCommand ruleError = "Unknown command or category name in ACL"
	errRuleKeys    ruleError = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have " +
		"any effect. Try 'resetkeys' to start with an empty list of patterns"
	errRuleChannels ruleError = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not " +
		"have any effect. Try 'resetchannels' to start with an empty list of channels"
	errRulePassword ruleError = "The password you are trying to remove from the user does not exist"
	errRuleHash     ruleError = "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
	errRuleFirstArg ruleError = "Allowing first-arg of a subcommand is not supported"
	errRuleTwice    ruleError = "Duplicate user found. A user can only be defined once in config files"
)

// NewACL returns the users of a new server: the default user, with all permissions
// and without a password.
func NewACL(t *table) *acl {
	own := &table{ByName: maps.Clone(t.ByName), Index: t.Index, Rows: slices.Clone(t.Rows), count: t.count}
	a := &acl{Table: own, categories: map[protocol.Categories][]*Command{}, Users: map[string]*User{}, Owner: &User{Name: "(superuser)", all: true}}
	a.Standard = a.newStandard()
	a.Users[DefaultUser] = a.Standard
	return a
}

func (a *acl) newStandard() *User {
	u := a.NewUser(DefaultUser)
	s := &u.Selectors[0]
	s.resetCommands(true)
	s.allKeys, s.allChannels = true, true
	u.enabled, u.Nopass = true, true
	u.DeriveFields()
	return u
}

// NewUser returns a user without any permission.
func (a *acl) NewUser(name string) *User {
	return &User{Name: name, Selectors: []Selector{a.newSelector()}}
}

func (a *acl) newSelector() Selector {
	return Selector{Commands: make(commandSet, (a.Table.count+63)/64), allChannels: a.allChannels}
}

// Sorted returns the users in the order of their names.
func (a *acl) Sorted() []*User {
	return slices.SortedFunc(maps.Values(a.Users), func(u, v *User) int { return strings.Compare(u.Name, v.Name) })
}

// Lines returns the users as the lines of an ACL file.
func (a *acl) Lines() []string {
	var lines []string
	for _, u := range a.Sorted() {
		lines = append(lines, "user "+u.Name+" "+u.Describe())
	}
	return lines
}

// Changed updates loginRequired and open after a change of the default user.
func (a *acl) Changed() {
	a.open.Store(a.Standard.Nopass)
	a.loginRequired.Store(!a.Standard.enabled || !a.Standard.Nopass)
}

// setPassword applies the parameter requirepass to the default user.
func (a *acl) setPassword(password string) {
	u := a.Standard
	u.Passwords, u.Nopass = nil, password == ""
	if password != "" {
		u.Passwords = [][sha256.Size]byte{sha256.Sum256([]byte(password))}
	}
	a.Changed()
}

// Copy returns a deep copy of a user.
func (u *User) Copy() *User {
	v := *u
	v.passwordIndex = ruleIndex{}
	v.Passwords = slices.Clone(u.Passwords)
	v.Selectors = make([]Selector, len(u.Selectors))
	for i := range u.Selectors {
		v.Selectors[i] = u.Selectors[i].copy()
	}
	return &v
}

func (s *Selector) copy() Selector {
	t := *s
	t.keyIndex, t.channelIndex, t.firstArgIndex = ruleIndex{}, ruleIndex{}, nil
	t.Commands, t.rules = slices.Clone(s.Commands), slices.Clone(s.rules)
	t.keys, t.channels = slices.Clone(s.keys), slices.Clone(s.channels)
	t.firstArgs = maps.Clone(s.firstArgs)
	for cmd, args := range t.firstArgs {
		t.firstArgs[cmd] = slices.Clone(args)
	}
	return t
}

// DeriveFields computes the derived fields. It must be called after the last of a
// series of rules was applied.
func (u *User) DeriveFields() {
	kept := u.Passwords[:0:0]
	for i, hash := range u.Passwords {
		if !u.removed[i] {
			kept = append(kept, hash)
		}
	}
	u.Passwords, u.removed, u.passwordIndex = kept, nil, ruleIndex{}
	for i := range u.Selectors {
		s := &u.Selectors[i]
		s.tidy()
		s.keyIndex, s.channelIndex, s.firstArgIndex = ruleIndex{}, ruleIndex{}, nil
	}
	u.all = slices.ContainsFunc(u.Selectors, func(s Selector) bool {
		return s.AllCommands() && s.allKeys && s.allChannels
	})
	u.allKeys = !slices.ContainsFunc(u.Selectors, func(s Selector) bool { return !s.allKeys })
}

// Accepts reports whether the password is right and the user may log in. A nil user
// is one that does not exist.
func (u *User) Accepts(password []byte) bool {
	if u == nil || !u.enabled {
		sha256.Sum256(password) // an absent user takes as long as a wrong password
		return false
	}
	if u.Nopass {
		return true
	}
	// The hashes have one length, so the comparison does not reveal that of a
	// password.
	given, right := sha256.Sum256(password), 0
	for i := range u.Passwords {
		right |= subtle.ConstantTimeCompare(given[:], u.Passwords[i][:])
	}
	return right == 1
}

// Apply changes a user by one rule. After an error the user is unchanged.
func (a *acl) Apply(u *User, rule string) error {
	if rule == "" {
		return nil
	}
	switch Lowered(rule) {
	case "on":
		u.enabled = true
		return nil
	case "off":
		u.enabled = false
		return nil
	case "skip-sanitize-payload":
		u.sanitize = sanitizeSkip
		return nil
	case "sanitize-payload":
		u.sanitize = sanitizeAlways
		return nil
	case "nopass":
		u.Nopass = true
		u.dropPasswords()
		return nil
	case "resetpass":
		u.Nopass = false
		u.dropPasswords()
		return nil
	case "clearselectors":
		u.Selectors = u.Selectors[:1]
		return nil
	case "reset":
		*u = *a.NewUser(u.Name)
		u.sanitize = sanitizeAlways
		return nil
	}
	switch rule[0] {
	case '>', '#', '<', '!':
		return u.applyPassword(rule)
	case '(':
		if strings.HasSuffix(rule, ")") {
			s, err := a.parseSelector(rule[1 : len(rule)-1])
			if err == nil {
				u.Selectors = append(u.Selectors, s)
			}
			return err
		}
	}
	return a.applySelector(&u.Selectors[0], rule)
}

// applyPassword adds (>password, #hash) or removes (<password, !hash) one.
func (u *User) applyPassword(rule string) error {
	var hash [sha256.Size]byte
	if rule[0] == '>' || rule[0] == '<' {
		hash = sha256.Sum256([]byte(rule[1:]))
	} else {
		b, err := hex.DecodeString(rule[1:])
		if err != nil || len(b) != len(hash) || rule != Lowered(rule) {
			return errRuleHash
		}
		copy(hash[:], b)
	}
	name := func(i int) string {
		if u.removed[i] {
			return ""
		}
		return string(u.Passwords[i][:])
	}
	i := u.passwordIndex.find(len(u.Passwords), name, string(hash[:]))
	if rule[0] == '>' || rule[0] == '#' {
		u.Nopass = false
		if i < 0 {
			u.Passwords = append(u.Passwords, hash)
		}
		return nil
	}
	if i < 0 {
		return errRulePassword
	}
	if u.removed == nil {
		u.removed = map[int]bool{}
	}
	u.removed[i] = true
	u.passwordIndex.forget(string(hash[:]))
	return nil
}

// dropPasswords removes all passwords.
func (u *User) dropPasswords() {
	u.Passwords, u.removed, u.passwordIndex = nil, nil, ruleIndex{}
}

// A ruleIndex finds elements of a list by their names. It serves a list that
// changes only by appending elements with new names, or by being emptied. The zero
// value is ready to use.
type ruleIndex struct {
	at      map[string]int
	indexed int // elements of the list
}

// smallIndex is the length up to which a list is searched linearly.
const smallIndex = 16

// find returns the position of the element with a name in a list of n elements, or
// -1.
func (x *ruleIndex) find(n int, name func(i int) string, wanted string) int {
	if n < x.indexed {
		*x = ruleIndex{}
	}
	if n <= smallIndex {
		for i := range n {
			if name(i) == wanted {
				return i
			}
		}
		return -1
	}
	if x.at == nil {
		x.at = make(map[string]int, n)
	}
	for ; x.indexed < n; x.indexed++ {
		x.at[name(x.indexed)] = x.indexed
	}
	if i, ok := x.at[wanted]; ok {
		return i
	}
	return -1
}

// forget removes an element from the index after its name was changed.
func (x *ruleIndex) forget(name string) { delete(x.at, name) }

// parseSelector parses the text in parentheses. As in Redis, unbalanced quotes
// yield an empty selector.
func (a *acl) parseSelector(text string) (Selector, error) {
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
func (a *acl) applySelector(s *Selector, rule string) error {
	word := Lowered(rule)
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
	case "allcommands", "+@all":
		s.resetCommands(true)
		return nil
	case "nocommands", "-@all":
		s.resetCommands(false)
		return nil
	}
	category := strings.HasPrefix(rule[1:], "@")
	switch {
	case rule[0] == '~' || rule[0] == '%':
		return s.applyKeys(rule)
	case rule[0] == '&':
		return s.applyChannels(rule[1:])
	case (rule[0] == '+' || rule[0] == '-') && category:
		i := slices.Index(protocol.CategoryNames(), word[2:])
		if i < 0 {
			return errRuleCommand
		}
		a.changeCategory(s, 1<<i, rule[0] == '+')
		s.note(commandRule{word, true})
	case rule[0] == '+' && strings.Contains(rule, "|"):
		return a.applySubcommand(s, rule)
	case rule[0] == '+' || rule[0] == '-':
		cmd := a.Table.Named(BytesOf(rule[1:]))
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
	access, i := ReadKeys|writeKeys, 1
	if rule[0] == '%' {
		access = 0
	flags:
		for ; i < len(rule); i++ {
			switch c := rule[i] | 0x20; {
			case c == 'r' && access&ReadKeys == 0:
				access |= ReadKeys
			case c == 'w' && access&writeKeys == 0:
				access |= writeKeys
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
func (a *acl) applySubcommand(s *Selector, rule string) error {
	i := strings.LastIndexByte(rule, '|')
	first := rule[i+1:]
	cmd := a.Table.Named(BytesOf(rule[1:i]))
	switch {
	case cmd == nil:
		return errRuleCommand
	case strings.Contains(cmd.Name, "|"):
		return errRuleFirstArg
	case first == "":
		return errRuleSyntax
	case cmd.ByArg != nil:
		sub := a.Table.Named(BytesOf(rule[1:]))
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
	if index.find(len(args), func(i int) string { return Lowered(args[i]) }, Lowered(first)) >= 0 {
		return nil
	}
	s.firstArgs[cmd] = append(s.firstArgs[cmd], first)
	s.note(commandRule{"+" + cmd.Name + "|" + first, false})
	return nil
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
	for i := range cmd.Subcommands {
		s.Commands.set(&cmd.Subcommands[i], allow)
	}
}

func (a *acl) changeCategory(s *Selector, category protocol.Categories, allow bool) {
	for _, cmd := range a.commandsOf(category) {
		s.change(cmd, allow)
	}
}

// commandsOf returns the commands and subcommands of a category.
func (a *acl) commandsOf(category protocol.Categories) []*Command {
	list, known := a.categories[category]
	if !known {
		a.Table.Each(func(cmd *Command) {
			if cmd.Spec.Categories().Has(category) {
				list = append(list, cmd)
			}
		})
		a.categories[category] = list
	}
	return list
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
		name := Lowered(s.rules[i].text[1:])
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

// Describe returns the rules that turn a new user into this one.
func (u *User) Describe() string {
	words := u.Flags()
	for _, p := range u.Passwords {
		words = append(words, "#"+hex.EncodeToString(p[:]))
	}
	for i := range u.Selectors {
		text := u.Selectors[i].describe()
		if i > 0 {
			text = "(" + text + ")"
		}
		words = append(words, text)
	}
	return strings.Join(words, " ")
}

// Flags returns the rules that are single words, in Redis's order.
func (u *User) Flags() []string {
	flags := []string{"off"}
	if u.enabled {
		flags[0] = "on"
	}
	if u.Nopass {
		flags = append(flags, "nopass")
	}
	switch u.sanitize {
	case sanitizeSkip:
		flags = append(flags, "skip-sanitize-payload")
	case sanitizeAlways:
		flags = append(flags, "sanitize-payload")
	}
	return flags
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
		case writeKeys:
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

// Lowered returns s with ASCII letters in lower case.
func Lowered(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = glob.Lower(c)
	}
	return string(b)
}

// equalFold reports whether two strings are equal, ignoring the case of ASCII
// letters.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if glob.Lower(a[i]) != glob.Lower(b[i]) {
			return false
		}
	}
	return true
}

// HasSpace reports whether s holds a byte that a line of rules cannot contain.
func HasSpace(s string) bool { return strings.ContainsAny(s, " \t\n\v\f\r\x00") }
