//lint:file-ignore ST1005 Errors about users have the wording of Redis.

package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/zsetd/zsetd/protocol"
)

// Users come from the configuration, a line "user name rules…" for each, or from a
// file of such lines, the parameter aclfile; never from both. ACL LOAD and SAVE
// hold the lock while they read or write the file, as SAVE does: it has some
// kilobytes, an operator requests it, and no client sees a partial change.

// MergeSelectors joins the words of a selector that is not quoted, "(+get" "~a*)".
// If a parenthesis is left open, it returns the word that has it.
func MergeSelectors(words []string) (rules []string, open string) {
	var selector []string
	for _, word := range words {
		closes := strings.HasSuffix(word, ")")
		switch {
		case strings.HasPrefix(word, "(") && !closes:
			selector = []string{word}
		case selector != nil:
			selector = append(selector, word)
			if closes {
				rules = append(rules, strings.Join(selector, " "))
				selector = nil
			}
		default:
			rules = append(rules, word)
		}
	}
	if selector != nil {
		return nil, selector[0]
	}
	return rules, ""
}

// loadUsers applies the users of the configuration, or those of the file.
func (srv *Engine) loadUsers(lines string) error {
	a, path := srv.ACL, srv.Config.ACLFile
	a.allChannels = srv.Config.aclPubsub == "allchannels"
	a.setPassword(srv.Config.requirepass)
	if lines != "" && path != "" {
		return errors.New("zsetd: configuring users in the configuration file and an ACL file path at the same time is " +
			"invalid: declare them in one or the other")
	}
	if path != "" {
		if problems := srv.LoadUsersFile(nil); problems != "" {
			return errors.New("zsetd: aborting startup because of ACL errors: " + problems)
		}
		return nil
	}
	for line := range strings.Lines(lines) {
		words, ok := protocol.SplitArgs(nil, []byte(line))
		if !ok || len(words) == 0 {
			return fmt.Errorf("zsetd: unbalanced quotes in user declaration %q", strings.TrimSpace(line))
		}
		if err := a.declare(string(words[0]), StringsOf(words[1:])); err != nil {
			return fmt.Errorf("zsetd: %w", err)
		}
	}
	a.Changed()
	for _, u := range a.Sorted() {
		if lines != "" && !u.enabled {
			srv.Log.Info("user is disabled: the rules have no 'on'. Make sure this is not a configuration error",
				"user", u.Name)
		}
	}
	return nil
}

// declare adds a user of the configuration.
func (a *acl) declare(name string, words []string) error {
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
		u.sanitize = sanitizeAlways
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

// UserLines returns the lines of users for a configuration file: none if the users
// are in an ACL file.
func (srv *Engine) UserLines() []string {
	if srv.Config.ACLFile != "" {
		return nil
	}
	var lines []string
	for _, line := range srv.ACL.Lines() {
		lines = append(lines, protocol.JoinArgs(strings.Split(line, " ")))
	}
	return lines
}

// usersFile returns the path of the ACL file.
func (srv *Engine) usersFile() string {
	path := srv.Config.ACLFile
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(srv.Config.Dir, path)
}

// LoadUsersFile replaces all users by those of the file, and ends the sessions of
// all but the default user. If the file has errors it does nothing, and returns all
// of them, in Redis's words.
func (srv *Engine) LoadUsersFile(me *Session) (problems string) {
	a, name := srv.ACL, srv.Config.ACLFile
	b, err := os.ReadFile(srv.usersFile())
	if err != nil {
		return fmt.Sprintf("Error loading ACLs, opening file '%s': %s", name, strerror(err))
	}
	users := map[string]*User{}
	var report strings.Builder
	for i, line := range strings.Split(string(b), "\n") {
		if line = strings.Trim(line, " \t\r\n"); line != "" {
			a.loadLine(users, strings.Split(line, " "), fmt.Sprintf("%s:%d", name, i+1), &report)
		}
	}
	if report.Len() > 0 {
		return report.String() + "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
	}
	next := users[DefaultUser]
	if next == nil {
		next = a.newStandard()
	}
	srv.DropSubscribers(a.Standard, next, me)
	*a.Standard = *next
	users[DefaultUser] = a.Standard
	old := a.Users
	a.Users = users
	a.Changed()
	for _, u := range old {
		if u != a.Standard {
			srv.DropSessions(u, me)
		}
	}
	return ""
}

// loadLine adds the user of a line of the file, or reports the errors of the line.
func (a *acl) loadLine(users map[string]*User, words []string, place string, report *strings.Builder) {
	if words[0] != "user" || len(words) < 2 {
		report.WriteString(place + " should start with user keyword followed by the username. ")
		return
	}
	name := words[1]
	if HasSpace(name) {
		report.WriteString("'" + place + ": username '" + name + "' contains invalid characters. ")
		return
	}
	if users[name] != nil {
		_, number, _ := strings.Cut(place, ":")
		report.WriteString("WARNING: Duplicate user '" + name + "' found on line " + number + ". ")
		return
	}
	u := a.NewUser(name)
	users[name] = u
	rules, open := MergeSelectors(words[2:])
	if open != "" {
		report.WriteString(place + ": Unmatched parenthesis in selector definition.")
		return
	}
	reported := false
	for _, rule := range rules {
		rule = strings.Trim(rule, "\t\r\n")
		switch err := a.Apply(u, rule); {
		case err == nil:
		case errors.Is(err, errRuleCommand): // contains no secret
			report.WriteString(place + ": Error in applying operation '" + rule + "': " + err.Error() + ". ")
		case !reported: // later errors may be consequences of the first
			reported = true
			report.WriteString(place + ": " + err.Error() + ". ")
		}
	}
	u.DeriveFields()
}

// SaveUsersFile writes all users to a new file and renames it, so that a complete
// file exists at any time.
func (srv *Engine) SaveUsersFile() (err error) {
	path := srv.usersFile()
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	var text strings.Builder
	for _, line := range srv.ACL.Lines() {
		text.WriteString(line + "\n")
	}
	if _, err = f.WriteString(text.String()); err != nil {
		return err
	}
	if old, e := os.Stat(path); e == nil { // keep the mode; a new file is private to its owner, as it has hashes of passwords
		if err = f.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// strerror returns C's text of a system error.
func strerror(err error) string {
	text := err.Error()
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		text = errno.Error()
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// StringsOf returns the arguments as strings.
func StringsOf(words [][]byte) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	return list
}
