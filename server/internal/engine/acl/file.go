//lint:file-ignore ST1005 Errors about users have the wording of Redis.

package acl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// MergeSelectors joins the words of a selector that is not quoted, "(+get" "~a*)".
// If a parenthesis is left open, it returns the word that has it.
func MergeSelectors[T string | []byte](words []T) (rules []string, open string) {
	var selector []string
	for _, w := range words {
		word := string(w)
		closes := strings.HasSuffix(word, ")")
		switch {
		case selector == nil && strings.HasPrefix(word, "(") && !closes:
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

// ReadFile returns the users of a file, with the default user. It changes nothing. If
// the file has errors, it returns all of them in Redis's words, with name as the name
// of the file.
func (a *List) ReadFile(path, name string) (users map[string]*User, problems string) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Sprintf("Error loading ACLs, opening file '%s': %s", name, strerror(err))
	}
	users = map[string]*User{}
	var report strings.Builder
	for i, line := range strings.Split(string(b), "\n") {
		if line = strings.Trim(line, " \t\r\n"); line != "" {
			a.loadLine(users, strings.Split(line, " "), fmt.Sprintf("%s:%d", name, i+1), &report)
		}
	}
	if report.Len() > 0 {
		return nil, report.String() + "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
	}
	if users[DefaultUser] == nil {
		users[DefaultUser] = a.newStandard()
	}
	return users, ""
}

// Replace replaces all users by those that ReadFile has returned. The default user is
// changed in place; Replace returns the others, which are gone.
func (a *List) Replace(users map[string]*User) (gone []*User) {
	*a.Standard = *users[DefaultUser]
	users[DefaultUser] = a.Standard
	for _, u := range a.Users {
		if u != a.Standard {
			gone = append(gone, u)
		}
	}
	a.Users = users
	a.Changed()
	return gone
}

// loadLine adds the user of a line of the file, or reports the errors of the line.
func (a *List) loadLine(users map[string]*User, words []string, place string, report *strings.Builder) {
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

// WriteFile writes all users to a new file and renames it, so that a complete
// file exists at any time.
func (a *List) WriteFile(path string) (err error) {
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
	for _, line := range a.Lines(true) {
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
