//lint:file-ignore ST1005 Errors about users have the wording of Redis.

package acl

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/zsetd/zsetd/protocol"
)

// List holds the users, and the log of denied commands. One lock of the caller guards
// all of it, except LoginRequired and Open, which need none.
type List struct {
	Commands    *Commands // all commands, by their original names
	Users       map[string]*User
	Standard    *User // "default", the user of new sessions
	Owner       *User // the user of commands of the embedding program: unrestricted, in no list
	AllChannels bool  // acl-pubsub-default
	Log         []*LogEntry
	Denials     [DeniedCertificate + 1]int64 // since the server started, for INFO

	declared            bool // the configuration declares users
	nextLogEntry        int64
	loginRequired, open atomic.Bool
}

// New returns the users of a new server: the default user, with all permissions
// and without a password.
func New(commands *Commands) *List {
	a := &List{Commands: commands, Users: map[string]*User{}, Owner: &User{Name: "(superuser)", Unrestricted: true}}
	a.Standard = a.newStandard()
	a.Users[DefaultUser] = a.Standard
	return a
}

// DefaultUser is the name of the user that sessions begin with.
const DefaultUser = "default"

func (a *List) newStandard() *User {
	u := a.NewUser(DefaultUser)
	s := &u.Selectors[0]
	s.resetCommands(true)
	s.allKeys, s.allChannels = true, true
	u.enabled, u.Nopass = true, true
	u.DeriveFields()
	return u
}

// NewUser returns a user without any permission.
func (a *List) NewUser(name string) *User {
	return &User{Name: name, Selectors: []Selector{a.newSelector()}}
}

func (a *List) newSelector() Selector {
	return Selector{Commands: make(commandSet, (len(a.Commands.list)+63)/64), allChannels: a.AllChannels}
}

// Sorted returns the users in the order of their names.
func (a *List) Sorted() []*User {
	return slices.SortedFunc(maps.Values(a.Users), func(u, v *User) int { return strings.Compare(u.Name, v.Name) })
}

// Lines returns the users as the lines of an ACL file, with the rules about payloads or
// without, as [User.Flags].
func (a *List) Lines(payloads bool) []string {
	var lines []string
	for _, u := range a.Sorted() {
		lines = append(lines, "user "+u.Name+" "+u.Describe(payloads))
	}
	return lines
}

// Changed updates LoginRequired and Open after a change of the default user.
func (a *List) Changed() {
	a.open.Store(a.Standard.Nopass)
	a.loginRequired.Store(!a.Standard.enabled || !a.Standard.Nopass)
}

// SetPassword applies the parameter requirepass to the default user.
func (a *List) SetPassword(password string) {
	u := a.Standard
	u.Passwords, u.Nopass = nil, password == ""
	if password != "" {
		u.Passwords = [][sha256.Size]byte{sha256.Sum256([]byte(password))}
	}
	a.Changed()
}

// LoginRequired reports whether new sessions must log in.
func (a *List) LoginRequired() bool { return a.loginRequired.Load() }

// Open reports whether the default user accepts any password.
func (a *List) Open() bool { return a.open.Load() }

// Declare adds the users of a configuration, a line "name rules…" for each.
func (a *List) Declare(lines string) error {
	for line := range strings.Lines(lines) {
		words, ok := protocol.SplitArgs(nil, []byte(line))
		if !ok || len(words) == 0 {
			return fmt.Errorf("unbalanced quotes in user declaration %q", strings.TrimSpace(line))
		}
		if err := a.declare(string(words[0]), words[1:]); err != nil {
			return err
		}
	}
	return nil
}

// declare adds a user of the configuration.
func (a *List) declare(name string, words [][]byte) error {
	if HasSpace(name) {
		return errors.New("spaces are not allowed in ACL usernames")
	}
	u := a.Users[name]
	switch {
	case u == nil:
		u = a.NewUser(name)
		a.Users[name] = u
	case u == a.Standard && !a.declared:
		a.declared = true
		*u = *a.NewUser(name)
	default:
		return fmt.Errorf("Error in user declaration '%s': %w", name, errRuleTwice)
	}
	rules, open := MergeSelectors(words)
	if open != "" {
		return fmt.Errorf("Error in user declaration '%s': Unmatched parenthesis in acl selector starting at '%s'.", name, open)
	}
	for _, rule := range rules {
		if err := a.Apply(u, rule); err != nil {
			return fmt.Errorf("Error in user declaration '%s': '%s': %w", name, rule, err)
		}
	}
	u.DeriveFields()
	return nil
}
