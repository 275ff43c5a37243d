package acl

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strings"
)

// User is an account. It is changed in place, so that sessions, which point to it,
// see changes at once.
type User struct {
	Name         string
	Unrestricted bool // no restrictions; this and allKeys follow from the selectors
	allKeys      bool // no selector restricts keys
	enabled      bool
	Nopass       bool // any password is accepted
	sanitize     sanitizing
	Passwords    [][sha256.Size]byte
	Selectors    []Selector // the root first

	// Used while rules are applied: passwords that DeriveFields removes, and the
	// positions of the others.
	removed       map[int]bool
	passwordIndex ruleIndex
}

// sanitizing is the sanitize-payload flag of a user: whether the payloads of
// RESTORE are checked. This server checks all of them.
type sanitizing uint8

const (
	sanitizeAlways sanitizing = iota
	sanitizeSkip
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
	errRuleDatabase ruleError = "The provided database ID is out of range"
	errRuleTwice    ruleError = "Duplicate user found. A user can only be defined once in config files"
)

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
	u.Unrestricted = slices.ContainsFunc(u.Selectors, func(s Selector) bool {
		return s.AllCommands() && s.allKeys && s.allChannels && !s.databases.restricted
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
func (a *List) Apply(u *User, rule string) error {
	if rule == "" {
		return nil
	}
	switch lowered(rule) {
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
		if err != nil || len(b) != len(hash) || rule != lowered(rule) {
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

// Describe returns the rules that turn a new user into this one, with those about payloads
// or without, as Flags.
func (u *User) Describe(payloads bool) string {
	words := u.Flags(payloads)
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

// Enabled reports whether the user may log in: the rules have "on".
func (u *User) Enabled() bool { return u.enabled }

// Flags returns the rules that are single words, in Redis's order. Valkey has none about
// the payloads of RESTORE.
func (u *User) Flags(payloads bool) []string {
	flags := []string{"off"}
	if u.enabled {
		flags[0] = "on"
	}
	if u.Nopass {
		flags = append(flags, "nopass")
	}
	switch {
	case !payloads:
		return flags
	case u.sanitize == sanitizeSkip:
		return append(flags, "skip-sanitize-payload")
	}
	return append(flags, "sanitize-payload")
}
